# SPDX-License-Identifier: ISC

"""A stand-in for an origin that speaks HTTP/2, right or wrong.  Frames are
written by hand, so that a case can send any; only HPACK is nghttp2's."""

import ctypes
import select
import socket
import ssl
import struct
import threading

from daemon import WAIT_S
from standin_origin import Closed, StandinOrigin

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, \
    WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS, HAS_PRIORITY = 1, 1, 4, 32
NO_ERROR, INTERNAL_ERROR, REFUSED_STREAM = 0, 2, 7
MAX_STREAMS, INITIAL_WINDOW, CONNECT_PROTOCOL = 3, 4, 8


class Field(ctypes.Structure):
    _fields_ = [("name", ctypes.POINTER(ctypes.c_uint8)),
                ("value", ctypes.POINTER(ctypes.c_uint8)),
                ("namelen", ctypes.c_size_t), ("valuelen", ctypes.c_size_t),
                ("flags", ctypes.c_uint8)]


class Inflater:
    """A peer's HPACK, of one connection."""

    def __init__(self):
        self.lib = ctypes.CDLL("libnghttp2.so.14")
        self.lib.nghttp2_hd_inflate_hd2.restype = ctypes.c_ssize_t
        self.state = ctypes.c_void_p()
        assert self.lib.nghttp2_hd_inflate_new(ctypes.byref(self.state)) == 0

    def close(self):
        self.lib.nghttp2_hd_inflate_del(self.state)

    def fields(self, data):
        found = []
        while True:
            field, flags = Field(), ctypes.c_int(0)
            used = self.lib.nghttp2_hd_inflate_hd2(
                self.state, ctypes.byref(field), ctypes.byref(flags),
                data, ctypes.c_size_t(len(data)), 1)
            assert used >= 0, f"hpack: {used}"
            data = data[used:]
            if flags.value & 2:
                found.append((ctypes.string_at(field.name, field.namelen),
                              ctypes.string_at(field.value, field.valuelen)))
            if flags.value & 1:
                self.lib.nghttp2_hd_inflate_end_headers(self.state)
                return found
            assert used or flags.value & 2, "hpack: no progress"


def number(value):
    """With a prefix of seven bits."""
    if value < 127:
        return bytes([value])
    out, value = b"\x7f", value - 127
    while value >= 128:
        out, value = out + bytes([value % 128 + 128]), value // 128
    return out + bytes([value])


def block(fields):
    """Literals that nobody has to remember."""
    out = b""
    for name, value in fields:
        name, value = (t.encode() if isinstance(t, str) else t
                       for t in (name, value))
        out += b"\0" + number(len(name)) + name + number(len(value)) + value
    return out


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(
        ">BBI", kind, flags, stream) + payload


def given_back(count, piece, stream):
    """So many bytes of both windows, in pieces."""
    sizes = [struct.pack(">I", min(piece, count - at))
             for at in range(0, count, piece)]
    return b"".join(frame(WINDOW_UPDATE, 0, 0, size) +
                    frame(WINDOW_UPDATE, 0, stream, size) for size in sizes)


def settings(**values):
    names = {"streams": MAX_STREAMS, "window": INITIAL_WINDOW,
             "connect": CONNECT_PROTOCOL}
    return frame(SETTINGS, payload=b"".join(
        struct.pack(">HI", names[n], v) for n, v in values.items()))


class Stream:
    """A request as it comes, and its answer."""

    def __init__(self, peer, id_, fields, ended):
        self.peer, self.id = peer, id_
        self.head = {n.decode(): v.decode() for n, v in fields}
        self.path = self.head.get(":path")
        self.window = peer.window
        self.body = bytearray()
        self.trailers = None
        self.ended = ended          # the request is complete
        self.answered = False       # so is the answer
        self.code = None            # of the gate's reset

    def wait(self, condition, what):
        """True when it is so, False if the gate has reset the stream."""
        with self.peer.news:
            assert self.peer.news.wait_for(
                lambda: condition() or self.code is not None or
                self.peer.gone, WAIT_S), what
            if self.peer.gone:
                raise Closed
            return self.code is None and condition()

    def read(self):
        """The whole body."""
        self.wait(lambda: self.ended, "the end of the request")
        return bytes(self.body)

    def headers(self, status=None, fields=(), end=False):
        if status is not None:
            fields = [(":status", str(status)), *fields]
        self.answered |= end
        self.peer.send(frame(HEADERS, END_HEADERS | end, self.id,
                             block(fields)))

    def room(self, size):
        """So much of it may be sent, sometime."""
        with self.peer.news:
            if not self.wait(lambda: min(
                    self.window, self.peer.window_all) > 0, "a window"):
                return 0
            size = min(size, 16384, self.window, self.peer.window_all)
            self.window -= size
            self.peer.window_all -= size
        return size

    def data(self, data, end=False):
        """As the windows allow; False if the gate has reset it."""
        while data:
            if (size := self.room(len(data))) == 0:
                return False
            self.answered |= end and size == len(data)
            self.peer.send(frame(DATA, self.answered, self.id, data[:size]))
            data = data[size:]
        if end and not self.answered:
            self.answered = True
            self.peer.send(frame(DATA, END_STREAM, self.id))
        return True

    def answer(self, body=b"ok", status=200, fields=()):
        self.headers(status, [("content-length", str(len(body))), *fields],
                     not body)
        return not body or self.data(body, True)

    def reset(self, code=INTERNAL_ERROR):
        self.peer.send(frame(RST_STREAM, 0, self.id, struct.pack(">I", code)))


class Peer:
    """One connection of the gate's.  A stream is served in a thread."""

    def __init__(self, connection, serve, hello, piece):
        self.connection, self.serve, self.hello = connection, serve, hello
        self.piece = piece          # of a window that is given back, or 0
        self.goaways = []           # the gate's codes
        self.pongs = 0
        self.lock = threading.Lock()
        self.news = threading.Condition()
        self.streams = {}
        self.hpack = Inflater()
        self.window = self.window_all = 65535
        self.gone = False
        connection.more = self.more
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sock.setblocking(False)

    # One thread reads and others write, and a TLS connection is not made for
    # both at once.

    def more(self):
        while True:
            try:
                with self.lock:
                    data = self.connection.sock.recv(65536)
            except ssl.SSLWantReadError:
                select.select([self.connection.sock], [], [])
                continue
            except (OSError, ValueError):
                data = b""
            if not data:
                raise Closed
            self.connection.got += data
            return

    def send(self, data):
        with self.lock:
            while data:
                try:
                    data = data[self.connection.sock.send(data):]
                except ssl.SSLWantWriteError:
                    select.select([], [self.connection.sock], [])

    def hang_up(self):
        """Without a word, not even one of TLS."""
        with self.lock:
            socket.socket.shutdown(self.connection.sock, socket.SHUT_RDWR)

    def ping(self):
        """Wait until the gate has read all so far."""
        count = self.pongs
        self.send(frame(PING, payload=b"regress!"))
        with self.news:
            assert self.news.wait_for(
                lambda: self.gone or self.pongs > count, WAIT_S), "a pong"
            if self.gone:
                raise Closed

    def goaway(self, last, code=NO_ERROR):
        self.send(frame(GOAWAY, payload=struct.pack(">II", last, code)))

    def run(self):
        try:
            self.send(self.hello)
            assert self.connection.take(len(PREFACE)) == PREFACE
            while True:
                self.one()
        finally:
            with self.news:
                self.gone = True
                self.news.notify_all()
            self.hpack.close()

    def one(self):
        head = self.connection.take(9)
        kind, flags, id_ = struct.unpack(">BBI", head[3:])
        payload = self.connection.take(int.from_bytes(head[:3], "big"))
        with self.news:
            self.take(kind, flags, id_, payload)
            self.news.notify_all()

    def take(self, kind, flags, id_, payload):
        stream = self.streams.get(id_)
        if kind == SETTINGS and not flags & ACK:
            self.take_settings(payload)
        elif kind == PING and flags & ACK:
            self.pongs += 1
        elif kind == PING:
            self.send(frame(PING, ACK, payload=payload))
        elif kind == WINDOW_UPDATE and id_ == 0:
            self.window_all += struct.unpack(">I", payload)[0]
        elif kind == WINDOW_UPDATE and stream:
            stream.window += struct.unpack(">I", payload)[0]
        elif kind == HEADERS:
            self.take_headers(flags, id_, payload)
        elif kind == DATA:
            stream.body += payload
            stream.ended = bool(flags & END_STREAM)
            if self.piece:
                self.send(given_back(len(payload), self.piece, id_))
        elif kind == RST_STREAM and stream:
            stream.code = struct.unpack(">I", payload)[0]
        elif kind == GOAWAY:
            self.goaways.append(struct.unpack(">I", payload[4:8])[0])

    def take_settings(self, payload):
        for at in range(0, len(payload), 6):
            name, value = struct.unpack(">HI", payload[at:at + 6])
            if name == INITIAL_WINDOW:
                for stream in self.streams.values():
                    stream.window += value - self.window
                self.window = value
        self.send(frame(SETTINGS, ACK))

    def take_headers(self, flags, id_, payload):
        assert flags & END_HEADERS, "heads in several frames are not for us"
        fields = self.hpack.fields(payload[5 if flags & HAS_PRIORITY else 0:])
        ended = bool(flags & END_STREAM)
        if id_ in self.streams:
            self.streams[id_].trailers = fields
            self.streams[id_].ended = ended
            return
        stream = self.streams[id_] = Stream(self, id_, fields, ended)
        threading.Thread(target=self.serve_one, args=(stream,),
                         daemon=True).start()

    def serve_one(self, stream):
        try:
            self.serve(stream)
        except (Closed, OSError):
            pass


class FrameOrigin(StandinOrigin):
    """Calls serve(stream) in a thread for each request."""

    piece = 16384

    def __init__(self, serve=None, cert=None, hello=None):
        self.peers = []
        self.serve_stream = serve or (lambda stream: stream.answer())
        self.hello = settings(streams=100) if hello is None else hello
        super().__init__(self.run_peer, cert)
        self.context.set_alpn_protocols(["h2", "http/1.1"])

    def run_peer(self, connection):
        peer = Peer(connection, self.serve_stream, self.hello, self.piece)
        self.peers.append(peer)
        peer.run()

    def streams(self):
        return [s for p in self.peers for s in list(p.streams.values())]
