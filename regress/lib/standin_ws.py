# SPDX-License-Identifier: ISC

"""Servers for the HTTPS client and the program that drives it: raw HTTP and
WebSockets, right or wrong, with TLS or without; and a proxy."""

import base64
import contextlib
import hashlib
import json
import os
import pathlib
import re
import select
import socket
import ssl
import struct
import subprocess
import threading

BUILD = pathlib.Path(os.environ.get(
    "B", pathlib.Path(__file__).resolve().parents[2] / "build"))
DRIVE = BUILD / "regress/https/drive"
LIMIT_S = 60
CONT, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10


class Gone(Exception):
    """The other end has closed."""


class Conn:
    """One connection: exact reads, and frames."""

    def __init__(self, sock):
        self.sock = sock
        self.pending = b""

    def read(self, count):
        while len(self.pending) < count:
            data = self.sock.recv(65536)
            if not data:
                raise Gone(f"{len(self.pending)} of {count} bytes")
            self.pending += data
        data, self.pending = self.pending[:count], self.pending[count:]
        return data

    def head(self):
        """A request up to its empty line."""
        while b"\r\n\r\n" not in self.pending:
            data = self.sock.recv(65536)
            if not data:
                raise Gone("within a head")
            self.pending += data
        head, self.pending = self.pending.split(b"\r\n\r\n", 1)
        return head.decode("latin-1") + "\r\n"

    def drain(self):
        """Reads until the other end has closed."""
        while self.sock.recv(65536):
            pass
        raise Gone("at last")

    def leave(self):
        """Reads up to a close, and answers it."""
        while self.frame()[1] != CLOSE:
            pass
        self.send(frame(CLOSE, b"\x03\xe8"))
        self.drain()

    def send(self, data):
        self.sock.sendall(data if isinstance(data, bytes) else data.encode())

    def frame(self):
        """(fin, opcode, masked, payload) of the next."""
        first, second = self.read(2)
        count = second & 127
        if count == 126:
            count, = struct.unpack(">H", self.read(2))
        elif count == 127:
            count, = struct.unpack(">Q", self.read(8))
        mask = self.read(4) if second & 128 else b"\0\0\0\0"
        data = bytearray(self.read(count))
        for i in range(4):
            data[i::4] = data[i::4].translate(
                bytes(b ^ mask[i] for b in range(256)))
        return first >> 7, first & 15, second >> 7, bytes(data)

    def message(self, data, opcode=BINARY):
        self.send(frame(opcode, data))

    def shut(self):
        """Whoever reads or writes gets an error; who made it closes it."""
        with contextlib.suppress(OSError, ValueError):
            self.sock.shutdown(socket.SHUT_RDWR)


def frame(opcode, data=b"", fin=1, rsv=0, masked=False, count=None, wide=0):
    """A frame, also such as there should not be."""
    count = len(data) if count is None else count
    head = bytes([fin << 7 | rsv << 4 | opcode])
    bit = 128 if masked else 0
    if wide == 8 or (not wide and count > 65535):
        head += bytes([bit | 127]) + struct.pack(">Q", count)
    elif wide == 2 or (not wide and count > 125):
        head += bytes([bit | 126]) + struct.pack(">H", count)
    else:
        head += bytes([bit | count])
    return head + (b"\0\0\0\0" if masked else b"") + data


def field(head, name):
    """A header's value, or None."""
    found = re.search(rf"(?im)^{name}:[ \t]*(.*?)[ \t]*\r$", head)
    return found[1] if found else None


def accept_key(head):
    text = field(head, "Sec-WebSocket-Key") + \
        "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    return base64.b64encode(hashlib.sha1(text.encode()).digest()).decode()


def upgrade(conn, protocol=None, more=""):
    """Reads the request and agrees; the request's head."""
    head = conn.head()
    line = f"Sec-WebSocket-Protocol: {protocol}\r\n" if protocol else ""
    conn.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
              "Connection: Upgrade\r\nSec-WebSocket-Accept: "
              f"{accept_key(head)}\r\n{line}{more}\r\n")
    return head


class Server:
    """Each connection gets handler(conn) in a thread of its own.  Of errors
    only those are kept that are not the other end's leaving."""

    def __init__(self, handler, context=None):
        self.handler, self.context = handler, context
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        scheme = "https" if context else "http"
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        self.errors, self.conns, self.accepted = [], [], 0
        self.threads = []
        self.start(self.accept)

    def start(self, function, *args):
        thread = threading.Thread(target=function, args=args, daemon=True)
        self.threads.append(thread)
        thread.start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self.listener.accept()
                self.accepted += 1
                self.start(self.serve, sock)

    def serve(self, sock):
        sock.settimeout(LIMIT_S)
        conn = Conn(sock)
        self.conns.append(conn)
        try:
            if self.context:
                conn.sock = self.context.wrap_socket(sock, server_side=True)
            self.handler(conn)
            conn.shut()
        except (Gone, OSError) as error:
            self.errors.append(error)
        finally:
            conn.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.threads[0].join(LIMIT_S)
        self.listener.close()
        for conn in self.conns:
            conn.shut()
        for thread in self.threads:
            thread.join(LIMIT_S)


def tls(authority, *names, client=None, protocols=("http/1.1",)):
    """A context of a server, which wants certificates of client's."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*map(str, authority.leaf(*names)))
    context.set_alpn_protocols(list(protocols))
    if client:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(str(client.cert))
    return context


def proxy(seen, target=None):
    """A handler that is a CONNECT proxy, and notes the heads that it sees."""
    def handler(conn):
        head = conn.head()
        seen.append(head)
        host, port = head.split()[1].rsplit(":", 1)
        with socket.create_connection(target or (host, int(port))) as out:
            conn.send("HTTP/1.1 200 Established\r\n\r\n")
            pump(conn.sock, out)
    return handler


def pump(one, other):
    """Both ways until either ends."""
    pairs = {one: other, other: one}
    while True:
        ready = [sock for sock in pairs if isinstance(sock, ssl.SSLSocket) and
                 sock.pending()] or \
            select.select(list(pairs), [], [], LIMIT_S)[0]
        for sock in ready:
            data = sock.recv(65536)
            if not data:
                return
            pairs[sock].sendall(data)


class Drive:
    """The program, confined as k8sd is; what it prints is JSON lines."""

    def __init__(self, mode, url, *options, **kwargs):
        kwargs.setdefault("stdin", subprocess.PIPE)
        self.process = subprocess.Popen(
            [str(DRIVE), mode, url, *map(str, options)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)
        self.timer = threading.Timer(LIMIT_S, self.process.kill)
        self.timer.start()
        self.rss = 0

    def line(self):
        text = self.process.stdout.readline()
        assert text, f"it said nothing: {self.process.stderr.read()}"
        return json.loads(text)

    def end(self):
        """The lines that are left; it has to end well."""
        if self.process.stdin and not self.process.stdin.closed:
            with contextlib.suppress(OSError):
                self.process.stdin.close()
        lines = [json.loads(text) for text in self.process.stdout]
        said = self.process.stderr.read().decode()
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.timer.cancel()
        self.process.stdout.close()
        self.process.stderr.close()
        self.rss = usage.ru_maxrss
        assert status == 0, f"status {status}: {said}"
        return lines


def drive(mode, url, *options):
    """One call, or one WebSocket that says nothing itself."""
    return Drive(mode, url, *options).end()
