#!/usr/bin/python3
# SPDX-License-Identifier: ISC

"""The battery, part F over HTTP/2: abuse that is legal frame by frame, of
clients that do not read and of ends that meet; and beside each limit those
whom it must not hit, for what they do only looks like it."""

import collections
import contextlib
import os
import pathlib
import signal
import socket
import struct
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases  # noqa: E402
from check import digest, noise, stands  # noqa: E402
from daemon import WAIT_S, until  # noqa: E402
from frames import (CALM, CANCEL, ESTABLISHED, PADDED, WIDE,  # noqa: E402
                    Scene, ask, denied, head, nobody_cut, sockets)
from standin_frames import (DATA, END_HEADERS, END_STREAM,  # noqa: E402
                            GOAWAY, HAS_PRIORITY, HEADERS, NO_ERROR, PING,
                            PRIORITY, RST_STREAM, WINDOW_UPDATE, FrameOrigin,
                            block, frame, settings)
from standin_origin import Closed, answer  # noqa: E402

cases = Cases()
MEMORY_KIB = 40 * 1024
BIG = "h" * 15000       # nearly a frame, and a head that is still taken
PRIORITY_UPDATE = 16
u32 = struct.Struct(">I").pack


def posted(scene, path="/x"):
    return head(scene.host, method="POST", path=path)


def reset(stream, code=CANCEL):
    return frame(RST_STREAM, 0, stream, u32(code))


def asked(scene, path):
    """The stream of a request at the origin, when it is there."""
    return until(f"{path} is asked for", lambda: [
        s for s in scene.origin.streams() if s.path == path])[0]


def one_final_each(scene, count):
    """So many requests had an end, and no more than one."""
    until("all have their records",
          lambda: len(scene.gate.finals(protocol="h2")) >= count)
    ends = collections.Counter(r["request"]["id"]
                               for r in scene.gate.finals(protocol="h2"))
    twice = [n for n in ends if ends[n] > 1]
    assert not twice and len(ends) == count, f"{len(ends)}; twice: {twice}"


@contextlib.contextmanager
def same_engine(scene):
    engine = scene.gate.engine()
    yield
    assert scene.gate.engine() == engine, "the engine has died"
    scene.alive()
    assert scene.gate.engine() == engine, "the engine has died"


# ---- one that does not read -------------------------------------------------

def download(stream):
    """/big is more than fits on the way, /head a head alone; what is not
    named here has no answer."""
    if stream.path == "/big":
        stream.headers(200)
        stream.data(bytes(2 << 20), True)
    elif stream.path == "/head":
        stream.headers(200, [("x-a", "y" * 2000)], True)
    elif stream.path == "/alive":
        stream.answer()


def stall(scene, frames):
    """Nothing more fits in its socket: stream 1 is a download that waits."""
    frames.send(ask(1, head(scene.host, path="/big")))
    big = asked(scene, "/big")
    until("nothing more goes", lambda: big.window == 0 and frames.stalled())


def heads_behind(scene, frames, count):
    """Answers that wait behind it, from stream 3 on."""
    frames.send(b"".join(ask(n, head(scene.host, path="/head"))
                         for n in range(3, 3 + 2 * count, 2)))
    until("all are answered", lambda: sum(
        s.answered for s in scene.origin.streams()) >= count)
    scene.origin.peers[0].ping()


@cases.case
def slow_reader():
    """A download is stalled, many answers wait behind it, and then a ping:
    that is no attack, and all of it arrives."""
    count = 60
    with Scene(serve=download, origin=FrameOrigin) as scene, \
            scene.narrow(WIDE) as frames:
        stall(scene, frames)
        heads_behind(scene, frames, count)
        frames.send(frame(PING, 0, 0, b"regress!"))
        until("it is read", lambda: frames.queues()[1] == 0)
        assert frames.until(lambda: len(frames.ended) > count), \
            f"cut off after {len(frames.ended)} answers: {frames.goaway}"
        assert frames.pongs == 1 and set(frames.status.values()) == {200}
        nobody_cut(scene)


@cases.each(["all", "rest"])
def goodbye_before_reading(wants):
    """One that says goodbye has not read its answers yet, and has all of them
    or all but the one that it does not want any more."""
    count = 60
    with Scene(serve=download, origin=FrameOrigin) as scene, \
            scene.narrow(WIDE) as frames:
        stall(scene, frames)
        heads_behind(scene, frames, count)
        if wants == "all":
            count += 1
        else:
            frames.send(reset(1))
        frames.send(frame(GOAWAY, 0, 0, bytes(8)))
        until("it is read", lambda: frames.queues()[1] == 0)
        frames.rest()
        assert len(frames.ended) == count, f"{len(frames.ended)} of {count}"


@cases.each(["16000", "8000"])
def end_when_full(size):
    """The end of a body comes while its last frame waits for the socket."""
    size = int(size)
    with Scene(origin=FrameOrigin, serve=lambda _: None) as scene, \
            scene.narrow(WIDE) as frames:
        frames.send(ask(1, head(scene.host)))
        stream = asked(scene, "/x")
        stream.headers(200)
        until("the head is there", lambda: stands(frames.queues, 0.1))
        sent = before = 0
        while frames.queues()[0] - before >= size or sent == 0:
            before = frames.queues()[0]
            stream.data(bytes(size))
            sent += size
            stream.peer.ping()
            until("it is under way", lambda: stands(frames.queues, 0.05))
        stream.data(b"", True)
        stream.peer.ping()
        frames.wire.sock.settimeout(WAIT_S / 4)
        with contextlib.suppress(TimeoutError):
            frames.over(1)
        got = sum(len(f[3]) for f in frames.seen if f[0] == DATA)
        assert got == sent, f"{got} of {sent} bytes"
        assert 1 in frames.ended, f"no end after {sent} bytes"


@cases.case
def unread_heads():
    """Answers of heads alone, which no window holds back, to one that never
    reads, who resets them and asks again."""
    done = []

    def serve(stream):
        for _ in range(16):
            stream.headers(103, [("link", BIG)])
        stream.headers(200, [("x-a", BIG)])
        done.append(stream)

    def over():
        refused = [r for r in denied(scene) if r["kind"] == "request_denied"]
        return frames.cut() or len(done) + len(refused) >= first // 2

    with Scene(serve=serve, origin=FrameOrigin, more="timeout idle 1s"
               ) as scene, scene.watched("unread heads"):
        with scene.narrow() as frames:
            first = 201
            frames.send(b"".join(ask(n, head(scene.host))
                                 for n in range(1, first, 2)))
            until("all are answered", over)
            while not frames.cut() and first < 2000:
                frames.send(b"".join(
                    reset(n - 200) + ask(n, head(scene.host))
                    for n in range(first, first + 80, 2)))
                first += 80
                until("all are answered", over)
            have = scene.gate.memory()
            assert have < MEMORY_KIB, f"{have} KiB"
            assert frames.cut(), "it is borne"
        print(f"# {first // 2} streams, {have} KiB")


class Deaf(FrameOrigin):
    """Says what it has to, and never reads."""

    def __init__(self, serve=None, cert=None):
        self.over = threading.Event()
        super().__init__(serve, cert, settings(streams=100))

    def run_peer(self, connection):
        connection.send(self.hello)
        self.over.wait()

    def end(self):
        self.over.set()
        super().end()


def judged(scene):
    """How many requests were; quicker than to read all of their records."""
    return sum(b'"/x"' in line and (b'"request_allowed"' in line or
                                    b'"request_denied"' in line)
               for line in scene.gate.audit.read_bytes().splitlines())


@cases.case
def deaf_origin():
    """Requests with large heads, cancelled and asked again, for an origin
    that does not read them."""
    count = 0
    with Scene(origin=Deaf, more="timeout idle 1s") as scene:
        with scene.watched("deaf origin"):
            for _ in range(10):
                with scene.open() as frames:
                    for first in range(1, 601, 200):
                        streams = range(first, first + 200, 2)
                        frames.send(b"".join(
                            ask(n, head(scene.host, ("x-a", BIG)))
                            for n in streams))
                        count += len(streams)
                        until("all are judged",
                              lambda: judged(scene) >= count)
                        frames.send(b"".join(map(reset, streams)))
                        assert frames.ping(), "cut off"
            have = scene.gate.memory()
        print(f"# {count} requests, {len(scene.origin.connections)} "
              f"connections, {have} KiB")
        assert have < MEMORY_KIB, f"{have} KiB"
        one_final_each(scene, count)
        until("the gate has hung up", lambda: not any(
            open_still(c.sock) for c in scene.origin.connections))


def open_still(sock):
    """Whether the gate still has its side of this connection."""
    try:
        ours, theirs = sock.getsockname()[1], sock.getpeername()[1]
    except OSError:
        return False
    return sockets(ours, theirs).get(theirs, (0,))[0] == ESTABLISHED


# ---- ends that meet ---------------------------------------------------------

@cases.case
def reset_after_answer():
    """A client has its answer and wants no more, while its body waits for the
    origin's window.  That opens, so that the client is idle for too long
    before the origin is; and then the origin ends its answer."""
    class Origin(FrameOrigin):
        piece = 0

    with Scene(serve=download, origin=Origin, more="timeout idle 2s") as scene:
        with same_engine(scene):
            with scene.open() as frames:
                frames.send(ask(1, posted(scene), end=False) +
                            frame(DATA, 0, 1, bytes(16384)) * 12)
                stream = asked(scene, "/x")
                stream.wait(lambda: len(stream.body) == 65535, "a window")
                stream.headers(204)
                frames.until(lambda: 1 in frames.status)
                frames.send(reset(1, NO_ERROR))
                frames.ping()
                assert stands(lambda: len(stream.body), 1), "too much came"
                stream.peer.send(
                    frame(WINDOW_UPDATE, 0, 0, u32(1 << 20)) +
                    frame(WINDOW_UPDATE, 0, stream.id, u32(1 << 20)))
                frames.wire.sock.settimeout(1.4)
                with contextlib.suppress(TimeoutError):
                    frames.rest()
                # To whom nobody listens, or who is gone: as it should be.
                with contextlib.suppress(Closed, OSError):
                    stream.peer.send(frame(DATA, END_STREAM, stream.id))
                    stream.peer.ping()
        scene.gate.final(path="/x")


@cases.case
def late_and_overdue():
    """Requests of one that does not read any more are too late in two ways,
    and both are found out at once."""
    count = 90
    with Scene(serve=download, origin=FrameOrigin,
               more="timeout idle 1s\ntimeout total 3s") as scene:
        with same_engine(scene), scene.narrow(WIDE) as frames:
            engine = scene.gate.engine()
            stall(scene, frames)
            frames.send(b"".join(
                ask(n, posted(scene, f"/{n}"), end=False)
                for n in range(3, 3 + 2 * count, 2)))
            until("all are asked for",
                  lambda: len(scene.origin.streams()) > count)
            os.kill(engine, signal.SIGSTOP)
            assert stands(lambda: len(scene.gate.finals()), 3.1), "it runs"
            os.kill(engine, signal.SIGCONT)
            until("all have their records",
                  lambda: len(scene.gate.finals()) > count)
        one_final_each(scene, count + 2)


# ---- requests that are none -------------------------------------------------

@cases.each(["read", "unread"])
def bad_requests(how):
    """What cannot be read costs a few bytes, and us an answer and a record:
    not for ever.  Nobody has an answer without a record."""
    with Scene() as scene, same_engine(scene):
        with scene.watched("bad requests"), scene.open() as frames:
            for first in range(1, 8000, 100):
                last = first + 98
                frames.send(b"".join(
                    frame(HEADERS, END_HEADERS | END_STREAM, n, b"\x82")
                    for n in range(first, last + 1, 2)))
                if how == "read" and not frames.until(
                        lambda: last in frames.ended):
                    break
            assert not frames.until(lambda: last in frames.ended), \
                f"it is borne: {len(frames.ended)} answers"
        print(f"# {how}: cut off after {len(frames.status)}")
        assert frames.goaway == CALM or how == "unread", frames.goaway
        assert set(frames.status.values()) <= {400}
        until("a record of why", lambda: [r for r in denied(scene)
              if (r["kind"], r["reason"]) == ("connection_refused", "quota")])
        recorded = sum(r["reason"] == "bad_request" for r in denied(scene))
        assert recorded >= len(frames.status), f"{recorded} records"
        scene.gate.verified()


# ---- cut in pieces ----------------------------------------------------------

def digests(connection):
    while True:
        _, body = connection.request()
        connection.send(answer(digest(body).encode()))


def same_body(frames, stream, body):
    status = frames.over(stream)
    assert status == 200, status
    got = b"".join(p for kind, _, n, p in frames.seen
                   if kind == DATA and n == stream)
    assert got == digest(body).encode(), "another body"
    frames.seen.clear()


@cases.each(["plain", "padded"])
def record_ends_in_head(how):
    """A full TLS record that ends just before, in or after the head of a
    frame: what is behind it is not there yet."""
    flags, pad = (PADDED, b"\3") if how == "padded" else (0, b"")
    with Scene(serve=digests) as scene, same_engine(scene), \
            scene.open() as frames:
        for stream, cut in enumerate(range(-2, 14)):
            stream = 2 * stream + 1
            body = noise(16384 - 9 - cut + 100)
            whole = frame(DATA, 0, stream, body[:-100]) + frame(
                DATA, flags, stream, pad + body[-100:] + bytes(len(pad) * 3))
            frames.send(ask(stream, posted(scene), end=False))
            frames.send(whole[:16384])
            until("it is read", lambda: frames.queues()[1] == 0)
            frames.send(whole[16384:] + frame(DATA, END_STREAM, stream))
            same_body(frames, stream, body)


@cases.case
def split_anywhere():
    """The same frames in two records, wherever they are cut."""
    def frames_of(stream, body):
        return ask(stream, posted(scene), end=False) + frame(
            DATA, 0, stream, body[:9]) + frame(
            WINDOW_UPDATE, 0, 0, u32(1)) + frame(
            DATA, PADDED, stream, b"\2" + body[9:] + bytes(2)) + frame(
            PING, 0, 0, b"regress!") + frame(DATA, END_STREAM, stream)

    with Scene(serve=digests) as scene, same_engine(scene), \
            scene.open() as frames:
        body, stream = noise(20), 1
        for cut in range(1, len(frames_of(1, body))):
            whole = frames_of(stream, body)
            frames.send(whole[:cut])
            frames.send(whole[cut:])
            same_body(frames, stream, body)
            stream += 2
        nobody_cut(scene)


@cases.case
def one_byte_records():
    """Frames in TLS records of a byte each, by the thousand."""
    with Scene(serve=digests) as scene, scene.watched("one byte each"), \
            scene.open() as frames:
        for stream in (1, 3, 5):
            body = noise(2900)
            data = ask(stream, posted(scene), end=False) + frame(
                DATA, END_STREAM, stream, body)
            # They are to come together.
            frames.wire.sock.setsockopt(socket.IPPROTO_TCP,
                                        socket.TCP_CORK, 1)
            for byte in data:
                frames.send(bytes([byte]))
            frames.wire.sock.setsockopt(socket.IPPROTO_TCP,
                                        socket.TCP_CORK, 0)
            same_body(frames, stream, body)
        nobody_cut(scene)


# ---- what looks like a flood, and is none -----------------------------------

@cases.each(["client", "origin"])
def ping_with_each(who):
    """gRPC measures its way with a ping for data that came, one at a time."""
    count = 2000
    with Scene(serve=download, origin=FrameOrigin) as scene, \
            scene.open(WIDE) as frames:
        frames.send(ask(1, posted(scene), end=False))
        stream = asked(scene, "/x")
        stream.headers(200)
        for n in range(count):
            if who == "client":
                frames.seen.clear()
                stream.peer.send(frame(DATA, 0, stream.id, b"message"))
                assert frames.until(lambda: DATA in [
                    f[0] for f in frames.seen]) and frames.ping(), \
                    f"cut off after {n}: {frames.goaway}"
            else:
                frames.send(frame(DATA, 0, 1, b"message"))
                stream.wait(lambda: len(stream.body) >= 7 * (n + 1), "data")
                stream.peer.ping()
        frames.send(frame(DATA, END_STREAM, 1))
        stream.read()
        stream.headers(None, [("grpc-status", "0")], True)
        frames.over(1)
        assert 1 in frames.ended, frames.resets
        peer, = scene.origin.peers
        assert not peer.goaways, peer.goaways
        nobody_cut(scene)


@cases.case
def early_answers():
    """An origin answers without the body, which it does not want, and says
    so with a reset (RFC 9113, 8.1)."""
    def serve(stream):
        stream.headers(429, [("content-length", "2")])
        stream.peer.send(frame(DATA, END_STREAM, stream.id, b"no") +
                         reset(stream.id, NO_ERROR))

    with Scene(serve=serve, origin=FrameOrigin) as scene, \
            scene.open() as frames:
        for stream in range(1, 1401, 2):
            frames.send(ask(stream, posted(scene), end=False))
            got = frames.over(stream)
            assert got == 429, f"{stream}: {got}"
            frames.send(frame(DATA, END_STREAM, stream, b"hello"))
        assert frames.ping()
        peer, = scene.origin.peers
        peer.ping()
        assert not peer.goaways, peer.goaways
        nobody_cut(scene)


@cases.case
def priorities():
    """Browsers of yesterday and today, with priorities for each request."""
    def request(n):
        return frame(PRIORITY, 0, n, u32(0) + b"\x10") + frame(
            HEADERS, END_HEADERS | END_STREAM | HAS_PRIORITY, n,
            u32(0) + b"\xff" + block(head(scene.host))) + frame(
            PRIORITY_UPDATE, 0, 0, u32(n) + b"u=1, i")

    with Scene() as scene, scene.open() as frames:
        for first in range(1, 2001, 100):
            streams = range(first, first + 100, 2)
            frames.send(b"".join(map(request, streams)))
            for stream in streams:
                got = frames.over(stream)
                assert got == 200, f"{stream}: {got}, {frames.goaway}"
        nobody_cut(scene)


cases.main()
