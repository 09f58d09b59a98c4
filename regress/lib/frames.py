# SPDX-License-Identifier: ISC

"""HTTP/2 as an attacker writes it: a client that sends any bytes and reads
frame by frame, and a gate with a second session that must not notice."""

import contextlib
import pathlib
import select
import socket
import ssl
import struct
import subprocess
import sys
import time

from check import figures, stands
from daemon import WAIT_S
from gate import EVIL, GOOD, Broken, Gate, Wire
from origin import Nginx, authority
from standin_frames import (ACK, DATA, END_HEADERS, END_STREAM, GOAWAY,
                            HEADERS, INITIAL_WINDOW, PING, PREFACE,
                            RST_STREAM, SETTINGS, WINDOW_UPDATE, Inflater,
                            block, frame)
from standin_h2 import context
from standin_origin import StandinOrigin

LIB = pathlib.Path(__file__).resolve().parent
MEMORY_KIB = 32 * 1024
PADDED = 8
CALM = 11               # ENHANCE_YOUR_CALM
CANCEL = 8
ESTABLISHED = 1         # of TCP, as the kernel has it

# Windows as wide as they can be.
WIDE = frame(SETTINGS, 0, 0, struct.pack(
    ">HI", INITIAL_WINDOW, (1 << 31) - 1)) + frame(
    WINDOW_UPDATE, 0, 0, struct.pack(">I", (1 << 31) - 1 - 65535))


def sockets(ours, theirs):
    """The state of two ports that are connected, as each has it, with bytes
    that it has not sent and not read: {port: (state, unsent, unread)}."""
    found = {}
    with open("/proc/net/tcp", encoding="ascii") as file:
        for line in list(file)[1:]:
            _, local, remote, state, queues = line.split()[:5]
            local, remote = (int(a.split(":")[1], 16) for a in (local, remote))
            if {local, remote} == {ours, theirs}:
                found[local] = (int(state, 16), *(
                    int(q, 16) for q in queues.split(":")))
    return found


def narrow(gate):
    """A connection that holds little: segments and buffers are small."""
    sock = socket.socket()
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.settimeout(WAIT_S)
    sock.connect(("127.0.0.1", gate.port(15001)))
    return Wire(context(gate).wrap_socket(sock, server_hostname=GOOD,
                                          suppress_ragged_eofs=False))


class Frames:
    """A client that writes what it likes and reads frame by frame."""

    def __init__(self, gate, hello=b"", wire=None,
                 preface=PREFACE + frame(SETTINGS)):
        self.wire = wire or gate.tls(context=context(gate))
        self.ports = (self.wire.sock.getsockname()[1],
                      self.wire.sock.getpeername()[1])
        self.hpack = Inflater()
        self.seen = []              # (kind, flags, stream, payload)
        self.status = {}            # by stream
        self.resets = {}
        self.ended = set()
        self.goaway = None
        self.pongs = 0
        self.send(preface + hello)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.hpack.close()
        self.wire.close()

    def send(self, data):
        return self.wire.send(data)

    def read(self):
        """The next frame; None at the end, whatever its kind."""
        try:
            head = self.wire.take(9)
            kind, flags, stream = struct.unpack(">BBI", head[3:])
            payload = self.wire.take(int.from_bytes(head[:3], "big"))
        except (Broken, ConnectionError, ssl.SSLError):
            return None
        self.note(kind, flags, stream, payload)
        self.seen.append((kind, flags, stream, payload))
        return self.seen[-1]

    def note(self, kind, flags, stream, payload):
        if kind == SETTINGS and not flags & ACK:
            self.send(frame(SETTINGS, ACK))
        elif kind == HEADERS:
            fields = dict(self.hpack.fields(payload))
            if b":status" in fields:
                self.status[stream] = int(fields[b":status"])
        elif kind == RST_STREAM:
            self.resets[stream] = struct.unpack(">I", payload)[0]
        elif kind == PING and flags & ACK:
            self.pongs += 1
        elif kind == GOAWAY:
            self.goaway = struct.unpack(">I", payload[4:8])[0]
        if kind in (HEADERS, DATA) and flags & END_STREAM:
            self.ended.add(stream)

    def until(self, condition):
        """Read until it is so; False if the gate hangs up first."""
        while not condition():
            if self.read() is None:
                return False
        return True

    def over(self, stream):
        """Wait for the end of a stream: its status, or why there is none."""
        self.until(lambda: stream in self.ended or stream in self.resets)
        return self.status.get(stream) or (
            "reset" if stream in self.resets else "closed")

    def rest(self):
        while self.read() is not None:
            pass

    def ping(self):
        """Whether the gate is there, and has read all so far."""
        count = self.pongs
        self.send(frame(PING, 0, 0, b"regress!"))
        return self.until(lambda: self.pongs > count)

    # Of one that does not read no frame tells what the gate has done.

    def queues(self):
        """Bytes that the gate has sent and nobody has read, and ours."""
        ours, gate = (sockets(*self.ports).get(p, (0, 0, 0))
                      for p in self.ports)
        return gate[1] + ours[2], ours[1] + gate[2]

    def stalled(self):
        """The gate has read all so far, and can send no more."""
        there, here = self.queues()
        return there > 0 and here == 0 and stands(self.queues, 0.2)

    def cut(self):
        """The gate has no connection any more, or has closed its side."""
        return sockets(*self.ports).get(
            self.ports[1], (0,))[0] != ESTABLISHED


def head(host, *more, method="GET", path="/x", scheme="https", skip=()):
    fields = [(":method", method), (":scheme", scheme), (":path", path),
              (":authority", host)]
    return [f for f in fields if f[0] not in skip] + list(more)


def ask(stream, fields, end=True, raw=b""):
    return frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), stream,
                 block(fields) + raw)


class Scene:
    """A gate with two sessions, and an origin that counts."""

    def __init__(self, rule="", more="", serve=None, origin=StandinOrigin):
        cert = authority().leaf(GOOD, EVIL)
        self.nginx = Nginx(*cert, requests=1000000)
        (self.nginx.root / "other.txt").write_bytes(b"ok")
        self.origin = origin(serve, cert)
        self.host = f"{GOOD}:{self.origin.port}"
        self.gate = Gate(
            f'allow host "{GOOD}" port {self.origin.port} {rule}\n'
            f'allow host "{GOOD}" port {self.nginx.tls} path "/other.txt"',
            authority().cert, more)
        self.gate.conf.write_text(self.gate.conf.read_text() + (
            'session "other" { listen on 127.0.0.1 port '
            f'{self.gate.port(15002)} policy "p"  trust directory '
            f'"{self.gate.dir}/trust2" }}\n'))

    def __enter__(self):
        try:
            self.gate.__enter__()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *why):
        self.gate.__exit__(*why)
        self.end()

    def end(self):
        self.origin.end()
        self.nginx.end()

    def open(self, hello=b"", **how):
        return Frames(self.gate, hello, **how)

    def narrow(self, hello=b""):
        return Frames(self.gate, hello, narrow(self.gate))

    def requests(self):
        """What the origin was asked for."""
        return [line.split(b" ")[1].decode() for line in
                self.origin.got().split(b"\r\n")
                if line.endswith(b" HTTP/1.1")]

    def small(self, what):
        have = self.gate.memory()
        assert have < MEMORY_KIB, f"{what}: {have} KiB"
        return have

    def alive(self):
        """A client who behaves is served, by the same engine."""
        with self.open() as frames:
            frames.send(ask(1, head(self.host, path="/alive")))
            assert frames.over(1) == 200, "nobody is served any more"

    @contextlib.contextmanager
    def watched(self, what):
        """Another session's requests meanwhile; its slowest are told."""
        other = subprocess.Popen(
            [sys.executable, str(LIB / "watch.py"),
             str(self.gate.dir / "trust2" / "ca.pem"),
             str(self.gate.port(15002)), f"{GOOD}:{self.nginx.tls}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        engine = self.gate.engine()
        try:
            # The first has to wait for its connection to the origin.
            quiet = [float(other.stdout.readline()) for _ in range(101)][1:]
            yield
        finally:
            out, _ = other.communicate(timeout=WAIT_S)
        assert other.returncode == 0, "the other session fails"
        assert self.gate.engine() == engine, "the engine is another one"
        (median, usual), (now, most) = figures(quiet), figures(
            [float(line) for line in out.split()] or quiet)
        print(f"# {what}: the other session {now:.1f} ms, p99 {most:.1f} "
              f"(before {median:.1f}, {usual:.1f}); {self.gate.memory()} KiB")
        # Few processors for all of this, the attacker's included.
        assert most < max(250, 20 * usual), f"p99 {most:.0f} ms"


class Flood:
    """Sends as fast as it is taken, and reads all that comes back."""

    def __init__(self, scene, hello=b""):
        self.frames = scene.open(hello)
        self.sock = self.frames.wire.sock
        self.sock.setblocking(False)
        self.sent = 0
        self.got = b""

    def read(self):
        """False at the end."""
        try:
            while data := self.sock.recv(65536):
                self.got = (self.got + data)[-65536:]
            return False
        except (BlockingIOError, ssl.SSLWantReadError):
            return True
        except OSError:
            return False

    def pour(self, data, count, seconds=6):
        """True if all of it was taken; False if the gate hung up."""
        end = time.monotonic() + seconds
        for _ in range(count):
            left = memoryview(data)
            while left:
                if not self.read():
                    return False
                try:
                    left = left[self.sock.send(left):]
                except (BlockingIOError, ssl.SSLWantWriteError,
                        ssl.SSLWantReadError):
                    select.select([self.sock], [self.sock], [], 0.1)
                except OSError:
                    return False
                if time.monotonic() > end:
                    return True
            self.sent += len(data)
        # What it was too much for may say so only now.
        select.select([self.sock], [], [], 0.3)
        return self.read()

    def close(self):
        self.frames.hpack.close()
        self.frames.wire.reset()


def denied(scene):
    """What came of requests that were no good, and connections."""
    return [r for r in scene.gate.records() if r["kind"] in (
        "request_denied", "request_failed", "connection_refused")]


def nobody_cut(scene):
    refused = [r for r in scene.gate.records()
               if r["kind"] == "connection_refused"]
    assert not refused, refused
