# SPDX-License-Identifier: ISC

"""Stand-ins that speak HTTP/2, on either side of the gate: a thread keeps the
connection going, callers wait.  Windows open as data is read, so one who does
not read holds the other side up.  Needs Debian's python3-h2."""

import contextlib
import select
import socket
import ssl
import threading

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings

from daemon import WAIT_S
from gate import GOOD, Broken
from standin_origin import StandinOrigin

CODES = h2.settings.SettingCodes
WINDOW = 1 << 20        # of a stream; ours, to be sent into


class Reset(Broken):
    """The stream was reset; with the code."""

    def __init__(self, code):
        super().__init__(f"reset with {code}")
        self.code = code


class Stream:
    """One request and its answer, seen from one end."""

    def __init__(self, peer, number):
        self.peer, self.number = peer, number
        self.method = self.path = self.authority = self.status = None
        self.fields, self.interim, self.trailers = [], [], []
        self.data = bytearray()
        self.ended = False          # the other side has said all
        self.code = None            # it was reset, with this
        self.done = False           # so have we

    def get(self, name):
        return ", ".join(v for n, v in self.fields if n == name) or None

    # ---- what comes

    def head(self):
        """Wait for the final head; its status."""
        self.peer.wait("a head", lambda: self.status or self.lost())
        if self.status is None:
            self.fail()
        return self.status

    def lost(self):
        return self.code is not None or self.peer.gone

    def fail(self):
        raise Reset(self.code) if self.code is not None else Broken("the end")

    def read(self):
        """Some bytes, or none at the end."""
        self.peer.wait("data", lambda: self.data or self.ended or self.lost())
        with self.peer.lock:
            data = bytes(self.data)
            self.data.clear()
            if data:
                self.peer.taken(self, len(data))
        if not data and not self.ended:
            self.fail()
        return data

    def body(self):
        parts = []
        while data := self.read():
            parts.append(data)
        return b"".join(parts)

    def gone(self):
        """Wait until the other side has reset it, or left."""
        self.peer.wait("a reset", self.lost)
        return self.code

    # ---- what goes

    def answer(self, status, fields=(), end=False):
        self.peer.headers(self, [(":status", str(status)), *fields], end)

    def send(self, data, end=False):
        view = memoryview(data)
        while view:
            count = self.peer.room(self, len(view))
            self.peer.write(self, bytes(view[:count]),
                            end and count == len(view))
            view = view[count:]
        if end and not data:
            self.end()

    def end(self, trailers=()):
        if trailers:
            self.peer.headers(self, list(trailers), True)
        else:
            self.peer.write(self, b"", True)

    def reset(self, code=8):
        self.peer.reset(self, code)


class Peer:
    """One end of a connection; serve(stream) gets a thread for each request
    that comes.  It is among peers before the first one can come."""

    def __init__(self, sock, client, serve=None, window=WINDOW, settings=(),
                 peers=None):
        self.sock, self.client, self.serve = sock, client, serve
        self.lock = threading.Condition(threading.RLock())
        self.streams, self.threads = {}, []
        self.gone = False
        self.broken = None              # the other side's mistake
        self.goaway = None              # the code of the other side's
        self.settings = {}              # the other side's
        self.pongs = 0
        self.out = b""
        self.woken, self.waker = socket.socketpair()
        # Illegal things are for the case to find, not for this library.
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(
            client_side=client, header_encoding="latin-1",
            validate_inbound_headers=False, validate_outbound_headers=False,
            normalize_outbound_headers=False))
        values = {CODES.INITIAL_WINDOW_SIZE: window, **dict(settings)}
        if client:
            values[CODES.ENABLE_PUSH] = 0
        # An update() would count from the other side's acknowledgement on.
        self.h2.local_settings = h2.settings.Settings(client, values)
        self.h2.initiate_connection()
        if window > 65535:
            self.h2.increment_flow_control_window(16 * window)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setblocking(False)
        self.thread = threading.Thread(target=self.run, daemon=True)
        # Whoever finds it among peers may join its thread, also of one whose
        # other side has left before the first flush.
        with self.lock:
            if peers is not None:
                peers.append(self)
            self.flush()
            self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        with self.lock:
            self.leave()
        self.wake()
        if threading.current_thread() is not self.thread:
            self.thread.join(WAIT_S)

    def leave(self):
        self.gone = True
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        self.lock.notify_all()

    def wait(self, what, condition):
        with self.lock:
            if not self.lock.wait_for(condition, WAIT_S):
                raise AssertionError(f"{what}: not within {WAIT_S} s")

    # ---- the connection

    def wake(self):
        with contextlib.suppress(OSError):
            self.waker.send(b"x")

    def flush(self):
        """With the lock held: what can be sent is."""
        self.out += self.h2.data_to_send()
        try:
            while self.out:
                self.out = self.out[self.sock.send(self.out):]
        except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
            self.wake()
        except OSError:
            self.leave()

    def run(self):
        while not self.gone:
            select.select([self.sock, self.woken],
                          [self.sock] if self.out else [], [])
            with contextlib.suppress(BlockingIOError):
                self.woken.recv(4096, socket.MSG_DONTWAIT)
            with self.lock:
                if not self.gone:
                    self.turn()
        self.sock.close()
        self.woken.close()
        self.waker.close()

    def turn(self):
        try:
            while True:
                data = self.sock.recv(65536)
                if not data:
                    self.leave()
                    return
                for event in self.h2.receive_data(data):
                    self.happened(event)
                self.lock.notify_all()
                self.flush()
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            self.flush()
        except OSError:
            self.leave()
        except h2.exceptions.ProtocolError as error:
            self.broken = error
            self.flush()
            self.leave()

    def happened(self, event):
        handler = HANDLERS.get(type(event))
        if handler:
            handler(self, event)

    def on_request(self, event):
        stream = Stream(self, event.stream_id)
        self.streams[event.stream_id] = stream
        stream.all = list(event.headers)
        for name, value in event.headers:
            if name in (":method", ":path", ":authority"):
                setattr(stream, name[1:], value)
        stream.fields = [f for f in event.headers if f[0][0] != ":"]
        thread = threading.Thread(target=self.call, args=(stream,),
                                  daemon=True)
        self.threads.append(thread)
        thread.start()

    def call(self, stream):
        with contextlib.suppress(Broken, OSError):
            self.serve(stream)

    def on_answer(self, event):
        stream = self.streams[event.stream_id]
        stream.fields = [f for f in event.headers if f[0][0] != ":"]
        stream.status = int(dict(event.headers)[":status"])

    def on_interim(self, event):
        self.streams[event.stream_id].interim.append(
            int(dict(event.headers)[":status"]))

    def on_trailers(self, event):
        self.streams[event.stream_id].trailers = list(event.headers)

    def on_data(self, event):
        stream = self.streams[event.stream_id]
        stream.data += event.data
        if event.flow_controlled_length > len(event.data):
            self.taken(stream, event.flow_controlled_length -
                       len(event.data))

    def on_end(self, event):
        self.streams[event.stream_id].ended = True

    def on_reset(self, event):
        if stream := self.streams.get(event.stream_id):
            stream.code = int(event.error_code)

    def on_goaway(self, event):
        self.goaway = int(event.error_code)

    def on_settings(self, event):
        self.settings.update({int(code): change.new_value for code, change
                              in event.changed_settings.items()})

    def on_pong(self, _):
        self.pongs += 1

    # ---- for streams

    def ask(self, fields, end):
        """A new stream with these fields, :method and all."""
        with self.lock:
            stream = Stream(self, self.h2.get_next_available_stream_id())
            stream.method = dict(fields).get(":method")
            self.streams[stream.number] = stream
            self.headers(stream, fields, end)
        return stream

    def headers(self, stream, fields, end):
        with self.lock:
            self.check(stream)
            self.h2.send_headers(
                stream.number, [(n.encode("latin-1"), v.encode("latin-1"))
                                for n, v in fields], end_stream=end)
            stream.done = end
            self.flush()

    def check(self, stream):
        if stream.lost():
            stream.fail()

    def room(self, stream, count):
        """Wait until some of so many bytes may be sent."""
        def window():
            if stream.lost():
                return -1
            if len(self.out) > 1 << 20:
                return 0
            return min(self.h2.local_flow_control_window(stream.number),
                       self.h2.max_outbound_frame_size)
        self.wait("a window", window)
        with self.lock:
            self.check(stream)
            return min(count, window())

    def write(self, stream, data, end):
        with self.lock:
            self.check(stream)
            self.h2.send_data(stream.number, data, end_stream=end)
            stream.done = end
            self.flush()

    def reset(self, stream, code):
        with self.lock:
            with contextlib.suppress(h2.exceptions.ProtocolError):
                self.h2.reset_stream(stream.number, code)
            stream.code = code
            self.flush()

    def taken(self, stream, count):
        with contextlib.suppress(h2.exceptions.ProtocolError):
            self.h2.acknowledge_received_data(count, stream.number)
        self.flush()

    def ping(self):
        with self.lock:
            self.h2.ping(b"regress!")
            self.flush()

    def goodbye(self, code=0):
        with self.lock:
            self.h2.close_connection(code)
            self.flush()


HANDLERS = {
    h2.events.RequestReceived: Peer.on_request,
    h2.events.ResponseReceived: Peer.on_answer,
    h2.events.InformationalResponseReceived: Peer.on_interim,
    h2.events.TrailersReceived: Peer.on_trailers,
    h2.events.DataReceived: Peer.on_data,
    h2.events.StreamEnded: Peer.on_end,
    h2.events.StreamReset: Peer.on_reset,
    h2.events.ConnectionTerminated: Peer.on_goaway,
    h2.events.RemoteSettingsChanged: Peer.on_settings,
    h2.events.PingAckReceived: Peer.on_pong,
}


# ---- the client -------------------------------------------------------------

def context(gate):
    """As a client that wants nothing but HTTP/2."""
    made = gate.context()
    made.set_alpn_protocols(["h2"])
    return made


class StandinClient(Peer):
    """A client's connection to the gate; in the clear, by prior knowledge."""

    def __init__(self, gate, host, name=GOOD, port=None, clear=False, **how):
        wire = gate.plain(port=port) if clear else gate.tls(
            name, port=port, context=context(gate))
        assert clear or wire.sock.selected_alpn_protocol() == "h2", "no HTTP/2"
        self.host, self.scheme = host, "http" if clear else "https"
        super().__init__(wire.sock, True, **how)

    def request(self, path="/", method="GET", fields=(), end=True, host=None,
                scheme=None):
        return self.ask([(":method", method),
                         (":scheme", scheme or self.scheme),
                         (":authority", host or self.host), (":path", path),
                         *fields], end)

    def fetch(self, path="/", **how):
        """A request to its end; the stream, with all of the body in it."""
        stream = self.request(path, **how)
        stream.head()
        stream.whole = stream.body()
        return stream


# ---- the origin -------------------------------------------------------------

def ok(stream):
    stream.body()
    stream.answer(200, [("content-length", "2")])
    stream.send(b"ok", True)


class StandinH2Origin(StandinOrigin):
    """Calls serve(stream) for every request; peers are the connections."""

    def __init__(self, serve=None, cert=None, alpn=("h2",), **how):
        self.handler, self.how = serve or ok, how
        self.peers = []
        super().__init__(self.speak, cert)
        if self.context:
            self.context.set_alpn_protocols(list(alpn))

    def speak(self, connection):
        Peer(connection.sock, False, self.handler, peers=self.peers,
             **self.how).thread.join()

    def end(self):
        super().end()
        for peer in self.peers:
            peer.close()

    def streams(self):
        """All requests that ever came, in the order of connections."""
        return [s for p in list(self.peers) for s in list(
            p.streams.values())]
