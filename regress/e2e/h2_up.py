#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""The gate as a client meets it: connections to it, bytes in, answers out."""
"""Clients of HTTP/1 and origins of HTTP/2: one connection for many, and what
an origin may do to it."""

import base64
import contextlib
import hashlib
import os
import pathlib
import struct
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from case import Cases
from check import digest
from daemon import WAIT_S, until
from gate import GOOD, Broken, Gate, Pair
from origin import Nginx, authority
from standin_frames import (CONTINUATION, DATA, END_HEADERS, END_STREAM,
                            HEADERS, INTERNAL_ERROR, PING, PREFACE,
                            PUSH_PROMISE, REFUSED_STREAM, WINDOW_UPDATE,
                            FrameOrigin, Inflater, block, frame, settings)
from standin_origin import fields_of

cases = Cases()


def noise(count):
    return os.urandom(4096) * (count // 4096)


@contextlib.contextmanager
def pair(serve=None, rule="", more="", hello=None):
    with FrameOrigin(serve, authority().leaf(GOOD), hello) as origin, \
            Gate(f'allow host "{GOOD}" port {origin.port} {rule}',
                 authority().cert, more) as gate:
        yield Pair(origin, gate, True)


def failed(both, path="/", reason="stream_broken"):
    record = both.gate.final(path=path)
    assert record["kind"] == "request_failed", record
    assert record["reason"].split(":")[0] == reason, record
    return record


def closed(both, path="/"):
    record = both.gate.final(path=path)
    assert record["kind"] == "request_closed", record
    return record


# ---- requests and answers ---------------------------------------------------

@cases.case
def get():
    with pair() as both, both.open() as wire:
        got = wire.ask(both.get("/a?b=c", "X-Mine: 1\r\nCookie: a=1\r\n"))
        assert (got.status, got.body) == (200, b"ok"), got
        assert got.get("content-length") == "2", got
        head = both.origin.streams()[0].head
        assert head[":method"] == "GET" and head[":scheme"] == "https", head
        assert head[":authority"] == both.host(), head
        assert head[":path"] == "/a?b=c" and head["x-mine"] == "1", head
        record = closed(both, "/a?b=c")
        assert record["request"]["response_status"] == 200, record
        both.gate.verified()


def spelt(fields):
    """How long a head is before it is packed."""
    return sum(len(name) + len(value) for name, value in fields)


@cases.case
def counted():
    """Heads count the same way out and in, also without a body."""
    def serve(stream):
        stream.headers(103, [("link", "</x>")])
        stream.headers(204, [("x-long", "y" * 1000)], True)

    with pair(serve) as both, both.open() as wire:
        assert wire.ask(both.get("/", "X-Mine: 1\r\n")).status == 204
        record = closed(both)
        head = both.origin.streams()[0].head
        assert record["bytes_out"] == spelt(head.items()), record
        assert record["bytes_in"] == spelt([
            (":status", "103"), ("link", "</x>"), (":status", "204"),
            ("x-long", "y" * 1000)]), record


def nothing(stream):
    status = int(stream.path[1:])
    stream.headers(status, [("content-length", "99")] if status == 200 else
                   [], True)


@cases.each([200, 204, 304, 404])
def no_body(status):
    """HEAD and statuses that have none; the next request is not confused."""
    with pair(nothing) as both, both.open() as wire:
        for _ in range(3):
            method = "HEAD" if status == 200 else "GET"
            got = wire.ask(both.get(f"/{status}").replace(
                b"GET", method.encode()), method)
            assert (got.status, got.body) == (status, b""), got
            if status == 200:
                assert got.get("content-length") == "99", got
            elif status == 404:
                assert got.get("content-length") == "0", got


@cases.each(["length", "chunked"])
def upload(framing):
    """5 MiB up, and the digest down."""
    body = noise(5 << 20)

    def serve(stream):
        stream.answer(digest(stream.read()).encode())

    with pair(serve) as both, both.open() as wire:
        request = both.post("/", body) if framing == "length" else \
            both.chunked("/", *(body[i:i + 50000]
                                for i in range(0, len(body), 50000)))
        got = wire.ask(request)
        assert got.body == digest(body).encode(), got
        head = both.origin.streams()[0].head
        assert head.get("content-length") == (
            str(len(body)) if framing == "length" else None), head
        record = closed(both)
        assert record["request"]["request_body"]["bytes"] == len(body), record


@cases.each(["length", "unknown"])
def download(framing):
    body = noise(8 << 20)

    def serve(stream):
        if framing == "length":
            stream.answer(body)
        else:
            stream.headers(200)
            stream.data(body, True)

    with pair(serve) as both, both.open() as wire:
        for path in ("/1", "/2"):
            got = wire.ask(both.get(path))
            assert digest(got.body) == digest(body), len(got.body)
            assert closed(both, path)["request"]["response_body"]["bytes"] == \
                len(body)
        assert len(both.origin.connections) == 1


@cases.case
def streamed():
    """Each piece goes on when it comes."""
    go = threading.Semaphore(0)

    def serve(stream):
        stream.headers(200, [("content-type", "text/event-stream")])
        for i in range(5):
            assert go.acquire(timeout=WAIT_S)
            stream.data(b"data: %d\n\n" % i)
        stream.data(b"", True)

    with pair(serve) as both, both.open() as wire:
        wire.send(both.get())
        wire.until(b"\r\n\r\n")
        for i in range(5):
            go.release()
            wire.until(b"data: %d\n\n" % i)
        wire.until(b"0\r\n\r\n")


@cases.case
def both_ways():
    """What is sent is answered before the request ends."""
    def serve(stream):
        stream.headers(200)
        for i in range(5):
            stream.wait(lambda: len(stream.body) > i, "a byte")
            stream.data(bytes(stream.body[i:i + 1]))
        stream.read()
        stream.data(b"", True)

    with pair(serve) as both, both.open() as wire:
        wire.send(both.chunked("/")[:-5])
        wire.until(b"\r\n\r\n")
        for i in range(5):
            wire.send(b"1\r\n%d\r\n" % i)
            wire.until(b"%d\r\n" % i)
        wire.send(b"0\r\n\r\n")
        wire.until(b"0\r\n\r\n")
        closed(both)


@cases.case
def trailers():
    """Up and down, but nothing that would change what was judged."""
    def serve(stream):
        stream.read()
        stream.headers(200, [("trailer", "x-sum")])
        stream.data(b"ok")
        stream.headers(None, [("x-sum", "7"), ("authorization", "x")], True)

    with pair(serve) as both, both.open() as wire:
        request = both.chunked("/", b"body", extra="TE: trailers\r\n")
        wire.send(request[:-2] + b"X-Up: 1\r\nHost: evil.test\r\n\r\n")
        wire.until(b"\r\n\r\n")
        assert wire.until(b"0\r\n").endswith(b"ok\r\n0\r\n")
        assert wire.until(b"\r\n\r\n").lower() == b"x-sum: 7\r\n\r\n"
        stream = both.origin.streams()[0]
        assert stream.trailers == [(b"x-up", b"1")], stream.trailers
        assert stream.head["te"] == "trailers", stream.head
        record = closed(both)
        # Frames of a body may count too, with their own heads of 9 bytes.
        more = record["bytes_out"] - len("body") - spelt(
            [*stream.head.items(), *stream.trailers])
        assert more in (0, 9, 18), record


@cases.case
def interim():
    """103 goes on; 100 releases a body that waits for it."""
    def serve(stream):
        stream.headers(103, [("link", "</x>")])
        stream.headers(100)
        stream.answer(stream.read())

    with pair(serve) as both, both.open() as wire:
        request = both.post("/", b"body", "Expect: 100-continue\r\n")
        wire.send(request[:-4])
        assert b" 103 " in wire.until(b"\r\n\r\n")
        assert b" 100 " in wire.until(b"\r\n\r\n")
        assert both.origin.streams()[0].head["expect"] == "100-continue"
        wire.send(b"body")
        assert wire.answer().body == b"body"


@cases.case
def slow_reader():
    """The origin is not read further than its windows; memory stays."""
    size = 64 << 20
    sent = []

    def serve(stream):
        if stream.path == "/small":
            stream.answer()
            return
        stream.headers(200, [("content-length", str(size))])
        for _ in range(size >> 20):
            stream.data(bytes(1 << 20))
            sent.append(1)
        stream.data(b"", True)

    with pair(serve) as both, both.open() as wire, both.open() as other:
        before = both.gate.memory()
        wire.send(both.get())
        wire.until(b"\r\n\r\n")
        stream = both.origin.streams()[0]
        until("the window is used up", lambda: stream.window == 0)
        # The connection goes on for others, as its window is larger.
        assert other.ask(both.get("/small")).body == b"ok"
        assert len(both.origin.connections) == 1
        assert len(sent) < 16, sent
        assert wire.take(size) == bytes(size)
        closed(both)
        assert both.gate.memory() < before + 8192, both.gate.memory()


# ---- one connection for many ------------------------------------------------

@cases.case
def shared():
    """All at once: of the first ones each may have opened a connection, the
    later ones share one."""
    together = threading.Barrier(30, timeout=WAIT_S)

    def serve(stream):
        if stream.path != "/first":
            together.wait()
        stream.answer(stream.path.encode())

    with pair(serve) as both, contextlib.ExitStack() as stack:
        wires = [stack.enter_context(both.open()) for _ in range(30)]
        wires[0].ask(both.get("/first"))
        for i, wire in enumerate(wires):
            wire.send(both.get(f"/{i}"))
        for i, wire in enumerate(wires):
            assert wire.answer().body == f"/{i}".encode()
        assert len(both.origin.connections) == 1
        # The connection is gone; what comes at once waits for one.
        both.origin.peers[0].hang_up()
        assert both.origin.connections[0].ended.wait(WAIT_S)
        for i, wire in enumerate(wires):
            wire.send(both.get(f"/again/{i}"))
        for i, wire in enumerate(wires):
            assert wire.answer().body == f"/again/{i}".encode()
        assert len(both.origin.connections) == 2, both.origin.connections
        until("all records", lambda: len(both.gate.finals()) == 61)
        both.gate.verified()


@cases.case
def room():
    """No more at once than the origin allows."""
    seen = {"most": 0}
    lock = threading.Lock()
    together = threading.Barrier(10, timeout=WAIT_S)

    def serve(stream):
        if stream.path == "/first":
            stream.answer()
            return
        with lock:
            here = sum(not s.answered for s in stream.peer.streams.values())
            seen["most"] = max(seen["most"], here)
        together.wait()
        stream.answer()

    with pair(serve, hello=settings(streams=4)) as both, \
            contextlib.ExitStack() as stack:
        wires = [stack.enter_context(both.open()) for _ in range(10)]
        assert wires[0].ask(both.get("/first")).body == b"ok"
        for wire in wires:
            wire.send(both.get())
        for wire in wires:
            assert wire.answer().body == b"ok"
        assert seen["most"] == 4, seen
        assert 3 <= len(both.origin.connections) <= 10


@cases.case
def turns_to_h1():
    """An origin that spoke HTTP/2 and does not any more: those that wait for
    one connection each get their own."""
    with pair() as both, contextlib.ExitStack() as stack:
        wires = [stack.enter_context(both.open()) for _ in range(5)]
        assert wires[0].ask(both.get()).body == b"ok"
        both.origin.context.set_alpn_protocols(["http/1.1"])
        together = threading.Barrier(5, timeout=WAIT_S)

        def serve(connection):
            connection.request()
            together.wait()
            connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nold")
            connection.until(b"never")

        both.origin.serve = serve
        both.origin.peers[0].hang_up()
        assert both.origin.connections[0].ended.wait(WAIT_S)
        for wire in wires:
            wire.send(both.get())
        for wire in wires:
            assert wire.answer().body == b"old"


@cases.case
def reload():
    """A new generation takes no connection of the old one, and what is under
    way there is finished."""
    go = threading.Event()

    def serve(stream):
        if stream.path == "/slow":
            stream.headers(200)
            stream.data(b"begin")
            assert go.wait(WAIT_S)
            stream.data(b"end", True)
        else:
            stream.answer()

    with pair(serve) as both, both.open() as slow, both.open() as wire:
        slow.send(both.get("/slow"))
        slow.until(b"begin\r\n")
        assert wire.ask(both.get("/1")).body == b"ok"
        assert len(both.origin.connections) == 1
        both.gate.reload(both.gate.rules)
        assert wire.ask(both.get("/2")).body == b"ok"
        assert len(both.origin.connections) == 2
        go.set()
        slow.until(b"end\r\n0\r\n\r\n")
        assert both.origin.connections[0].ended.wait(WAIT_S)
        assert wire.ask(both.get("/3")).body == b"ok"
        assert len(both.origin.connections) == 2


# ---- endings ----------------------------------------------------------------

@cases.each(["before", "within"])
def reset(when):
    """By the origin: this one is told, the connection goes on."""
    def serve(stream):
        if stream.path == "/fine":
            stream.answer()
            return
        if when == "within":
            stream.headers(200, [("content-length", "9")])
            stream.data(b"half")
        stream.reset(INTERNAL_ERROR)

    with pair(serve) as both, both.open() as wire, both.open() as other:
        assert other.ask(both.get("/fine")).body == b"ok"
        wire.send(both.get())
        if when == "before":
            assert wire.answer().status == 502
        else:
            try:
                raise AssertionError(f"it looks whole: {wire.answer()}")
            except Broken:
                pass
        failed(both)
        assert other.ask(both.get("/fine")).body == b"ok"
        assert len(both.origin.connections) == 1


@cases.case
def client_leaves():
    """The stream is reset, the connection stays."""
    def serve(stream):
        if stream.path == "/fine":
            stream.answer()
        else:
            stream.headers(200)
            while stream.data(bytes(16384)):
                pass

    with pair(serve) as both, both.open() as other:
        with both.open() as wire:
            wire.send(both.get())
            wire.until(b"\r\n\r\n")
            wire.reset()
        failed(both)
        stream = both.origin.streams()[0]
        until("a reset", lambda: stream.code is not None)
        assert other.ask(both.get("/fine")).body == b"ok"
        assert len(both.origin.connections) == 1


@cases.each(["GET", "POST", "twice"])
def refused(how):
    """REFUSED_STREAM: not begun, so it is sent again, but not for ever."""
    count = []

    def serve(stream):
        count.append(stream.head[":method"])
        if len(count) == 1 or how == "twice":
            stream.reset(REFUSED_STREAM)
        else:
            stream.answer(stream.read())

    with pair(serve) as both, both.open() as wire:
        if how == "POST":
            wire.send(both.post("/", b"body")[:-4])
            until("it was sent again", lambda: len(count) == 2)
            wire.send(b"body")
            assert wire.answer().body == b"body"
            closed(both)
        else:
            got = wire.ask(both.get())
            assert got.status == (502 if how == "twice" else 200), got
            assert len(count) == 2, count


@cases.case
def goaway():
    """What the origin has taken is finished, what it has not is sent to
    another connection, and so is what comes later."""
    go = threading.Event()

    def serve(stream):
        first = stream.peer is both.origin.peers[0]
        if stream.path == "/taken":
            stream.headers(200)
            stream.data(b"begin")
            assert go.wait(WAIT_S)
            stream.data(b"end", True)
        elif stream.path == "/not" and first:
            stream.peer.goaway(stream.id - 2)
        else:
            stream.answer()

    with pair(serve) as both, both.open() as taken, both.open() as wire:
        taken.send(both.get("/taken"))
        taken.until(b"begin\r\n")
        assert wire.ask(both.get("/not")).body == b"ok"
        assert wire.ask(both.get("/later")).body == b"ok"
        assert len(both.origin.connections) == 2
        go.set()
        taken.until(b"end\r\n0\r\n\r\n")
        assert both.origin.connections[0].ended.wait(WAIT_S)
        for path in ("/taken", "/not", "/later"):
            closed(both, path)


@cases.case
def goaway_idle():
    with pair() as both, both.open() as wire:
        for count in (1, 2, 3):
            assert wire.ask(both.get()).body == b"ok"
            assert len(both.origin.connections) == count
            both.origin.peers[-1].goaway(2 ** 31 - 1)
            assert both.origin.connections[-1].ended.wait(WAIT_S)


@cases.case
def cut():
    """The connection goes: all of its requests hear of it; those that can be
    are sent again."""
    started = threading.Semaphore(0)

    def serve(stream):
        if stream.peer is not both.origin.peers[0] or stream.path == "/":
            stream.answer()
            return
        if stream.path == "/half":
            stream.headers(200, [("content-length", "9")])
            stream.data(b"half")
        started.release()

    with pair(serve) as both, both.open() as half, both.open() as post, \
            both.open() as get_:
        assert half.ask(both.get("/")).body == b"ok"
        half.send(both.get("/half"))
        post.send(both.post("/post", b"body"))
        get_.send(both.get("/get"))
        for _ in range(3):
            assert started.acquire(timeout=WAIT_S)
        half.until(b"half")
        both.origin.peers[0].hang_up()
        try:
            half.rest()
            raise AssertionError("it looks whole")
        except Broken:
            pass
        assert post.answer().status == 502
        assert get_.answer().body == b"ok"
        failed(both, "/half")
        failed(both, "/post")
        closed(both, "/get")


@cases.case
def late():
    """Each has its own time; a connection that does not answer gets no
    more."""
    def serve(stream):
        if stream.path == "/body":
            stream.headers(200, [("content-length", "9")])
            stream.data(b"half")
        elif stream.path != "/silent":
            stream.answer()

    with pair(serve, more="timeout response 1s\ntimeout idle 2s") as both, \
            both.open() as wire, both.open() as other:
        assert wire.ask(both.get()).body == b"ok"
        other.send(both.get("/body"))
        got = wire.ask(both.post("/silent", b"x"))
        assert got.status == 502, got
        assert "in time" in failed(both, "/silent",
                                   "upstream_unreachable")["reason"]
        try:
            raise AssertionError(f"it looks whole: {other.answer()}")
        except Broken:
            pass
        failed(both, "/body")
        with both.open() as another:
            assert another.ask(both.get("/2")).body == b"ok"
        assert len(both.origin.connections) == 2


# ---- hostile origins --------------------------------------------------------

@cases.case
def no_settings():
    """Those who wait to hear how many may come do not wait for ever."""
    hello = [settings(streams=100)]

    with pair(hello=b"", more="timeout handshake 1s") as both, \
            both.open() as one, both.open() as two:
        both.origin.hello = hello[0]
        assert one.ask(both.get()).body == b"ok"
        both.origin.hello = b""
        both.origin.peers[0].hang_up()
        assert both.origin.connections[0].ended.wait(WAIT_S)
        both.origin.serve_stream = lambda stream: None
        one.send(both.post("/one", b"x"))
        two.send(both.post("/two", b"x"))
        assert one.answer().status == 502
        assert two.answer().status == 502


def head(*fields):
    return lambda stream: stream.headers(200, fields, True)


def raw(data):
    return lambda stream: stream.peer.send(
        data(stream.id) if callable(data) else data)


def after(first, data):
    def serve(stream):
        stream.headers(200, first)
        raw(data)(stream)
    return serve


# What has no one meaning, or no meaning, or no end.
HOSTILE = {
    "no_status": lambda s: s.headers(None, [("x", "1")], True),
    "status_text": lambda s: s.headers("abc", (), True),
    "status_101": lambda s: s.headers(101, (), True),
    "status_twice": head((":status", "200")),
    "pseudo_late": head(("x", "1"), (":status", "200")),
    "request_pseudo": head((":path", "/")),
    "upper_case": head(("X-Upper", "1")),
    "connection": head(("connection", "close")),
    "transfer_encoding": head(("transfer-encoding", "chunked")),
    "upgrade": head(("upgrade", "websocket")),
    "line_break": head(("x", "1\r\ny: 2")),
    "nul": head(("x", "\0")),
    "name_colon": head(("x:y", "1")),
    "name_space": head(("x y", "1")),
    "length_text": head(("content-length", "x")),
    "two_lengths": head(("content-length", "0"), ("content-length", "0")),
    "length_and_end": head(("content-length", "9")),
    "long_head": lambda s: [s.headers(200, [("x", "x" * 8000)] * 5, True)],
    "many_fields": head(*[(f"x{i}", "1") for i in range(500)]),
    "data_first": raw(lambda i: frame(DATA, END_STREAM, i, b"ok")),
    "interim_flood": lambda s: [s.headers(103) for _ in range(40)],
    "interim_end": lambda s: s.headers(103, (), True),
    "garbage": raw(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    "huge_frame": raw(lambda i: frame(DATA, 0, i, bytes(1 << 20))),
    "push": raw(lambda i: frame(PUSH_PROMISE, END_HEADERS, i, struct.pack(
        ">I", 2) + block([(":method", "GET"), (":scheme", "https"),
                          (":authority", GOOD), (":path", "/x")]))),
    "other_stream": raw(frame(HEADERS, END_HEADERS, 99,
                              block([(":status", "200")]))),
    "even_stream": raw(frame(HEADERS, END_HEADERS, 2,
                             block([(":status", "200")]))),
    "hpack": raw(lambda i: frame(HEADERS, END_HEADERS, i, b"\xff" * 20)),
    "continuations": raw(lambda i: frame(HEADERS, 0, i, block(
        [(":status", "200")])) + frame(CONTINUATION, 0, i, block(
            [("x", "1" * 1000)])) * 1000),
    "settings_flood": raw(settings() * 5000),
    "ping_flood": raw(frame(PING, payload=bytes(8)) * 5000),
    "empty_flood": after((), lambda i: frame(DATA, 0, i) * 5000),
    "window_overflow": raw(frame(
        WINDOW_UPDATE, payload=b"\x7f\xff\xff\xff") * 2),
    "close": lambda s: s.peer.hang_up(),
    "goaway": lambda s: (s.peer.goaway(s.id), s.peer.hang_up()),
}


@cases.case
def hostile():
    """502 or a cut, one record, and the next request fares well."""
    script = {}

    def serve(stream):
        if stream.path.startswith("/fine"):
            stream.answer()
        else:
            script["serve"](stream)

    with pair(serve) as both:
        for name, what in HOSTILE.items():
            script["serve"] = what
            with both.open() as wire:
                wire.send(both.post(f"/{name}", b"x"))
                try:
                    got = wire.answer()
                    assert got.status == 502, f"{name}: {got}"
                    assert len(got.interim) <= 16, f"{name}: {got.interim}"
                except Broken:
                    pass
                except TimeoutError:
                    raise AssertionError(f"{name}: no answer") from None
            record = both.gate.final(path=f"/{name}")
            assert record["kind"] == "request_failed", f"{name}: {record}"
            with both.open() as wire:
                got = wire.ask(both.get(f"/fine/{name}"))
                assert got.body == b"ok", f"after {name}: {got}"
        count = 2 * len(HOSTILE)
        until("all records", lambda: len(both.gate.finals()) == count)
        both.gate.verified()


# The head says how much is to come.
LENGTHS = {
    "longer": lambda s: (s.headers(200, [("content-length", "2")]),
                         s.data(b"okHTTP/1.1 200 OK\r\n\r\n", True)),
    "shorter": lambda s: (s.headers(200, [("content-length", "9")]),
                          s.data(b"ok", True)),
    "of_204": lambda s: (s.headers(204), s.data(b"poison", True)),
    "of_304": lambda s: (s.headers(304), s.data(b"poison", True)),
}


@cases.each(LENGTHS)
def length(how):
    """More or less than was said is not taken for an answer, let alone for
    the next one."""
    with pair(LENGTHS[how]) as both, both.open() as wire:
        wire.send(both.get("/1") + both.get("/2"))
        with contextlib.suppress(Broken):
            while wire.more():
                pass
        data = wire.data
        assert data.count(b"HTTP/1.1") <= 2, data
        assert b"poison" not in data, data
        if how in ("longer", "shorter"):
            failed(both, "/1")


# ---- WebSockets -------------------------------------------------------------

KEY = base64.b64encode(bytes(range(16))).decode()
ACCEPT = base64.b64encode(hashlib.sha1(
    KEY.encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()).decode()
ASK = ("Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: "
       f"13\r\nSec-WebSocket-Key: {KEY}\r\nSec-WebSocket-Protocol: chat\r\n")


def echo(stream):
    if stream.head[":method"] != "CONNECT":
        stream.answer()
        return
    stream.headers(200, [("sec-websocket-protocol", "chat")])
    at = 0
    while True:
        if not stream.wait(lambda: len(stream.body) > at or stream.ended,
                           "a byte"):
            return
        if len(stream.body) == at:
            break
        part, at = bytes(stream.body[at:]), len(stream.body)
        stream.data(part)
    stream.data(b"", True)


@cases.case
def websocket():
    """By HTTP/1 there, by HTTP/2 on: with the proof that HTTP/1 wants."""
    with pair(echo, hello=settings(streams=100, connect=1)) as both, \
            both.open() as wire, both.open() as other:
        assert other.ask(both.get("/")).body == b"ok"
        got = wire.ask(both.get("/ws", ASK))
        assert got.status == 101, got
        assert got.get("sec-websocket-accept") == ACCEPT, got
        assert got.get("upgrade") == "websocket", got
        assert got.get("sec-websocket-protocol") == "chat", got
        stream = both.origin.streams()[1]
        assert stream.head[":protocol"] == "websocket", stream.head
        assert stream.head["sec-websocket-version"] == "13", stream.head
        assert "sec-websocket-key" not in stream.head, stream.head
        for size in (1, 10, 100000):
            wire.send(b"x" * size)
            assert wire.take(size) == b"x" * size
        assert len(both.origin.connections) == 1
        wire.close()
        closed(both, "/ws")
        assert other.ask(both.get("/2")).body == b"ok"


@cases.case
def websocket_refused():
    with pair(lambda s: s.answer(b"no", 200 if s.path == "/" else 403),
              hello=settings(streams=100, connect=1)) as both, \
            both.open() as wire:
        assert wire.ask(both.get("/")).status == 200
        assert wire.ask(both.get("/ws", ASK)).status == 403
        assert len(both.origin.connections) == 1


@cases.case
def websocket_by_h1():
    """An origin that does not allow it over HTTP/2 gets it over HTTP/1."""
    def serve(connection):
        if connection.sock.selected_alpn_protocol() == "h2":
            both.origin.run_peer(connection)
            return
        assert b"Key: " + KEY.encode() in connection.until(b"\r\n\r\n")
        connection.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: "
                        b"Upgrade\r\nUpgrade: websocket\r\n\r\nhello")
        connection.send(connection.take(5))

    with pair() as both, both.open() as wire:
        both.origin.serve = serve
        assert wire.ask(both.get("/")).body == b"ok"
        assert wire.ask(both.get("/ws", ASK)).status == 101
        assert wire.take(5) == b"hello"
        wire.send(b"world")
        assert wire.take(5) == b"world"
        assert len(both.origin.connections) == 2


def h2_client(gate):
    """TLS, settled on HTTP/2, with the preface out."""
    context = gate.context()
    context.set_alpn_protocols(["h2"])
    wire = gate.tls(context=context)
    assert wire.sock.selected_alpn_protocol() == "h2"
    wire.send(PREFACE + settings())
    return wire


def next_frame(wire, wanted):
    """Of this kind, on the first stream; the others are not waited for."""
    while True:
        head_ = wire.take(9)
        payload = wire.take(int.from_bytes(head_[:3], "big"))
        if (head_[3], head_[8]) == (wanted, 1):
            return payload


@cases.each(["proven", "no_proof", "false_proof"])
def websocket_of_h2(how):
    """By HTTP/2 there, by HTTP/1 on: an origin that has not understood the
    key has not understood."""
    def serve(connection):
        head_ = connection.until(b"\r\n\r\n")
        key = fields_of(head_)[b"sec-websocket-key"]
        proof = base64.b64encode(hashlib.sha1(
            key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
        proof = {"proven": b"Sec-WebSocket-Accept: " + proof + b"\r\n",
                 "false_proof": b"Sec-WebSocket-Accept: " + proof.swapcase() +
                 b"\r\n", "no_proof": b""}[how]
        connection.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: "
                        b"Upgrade\r\nUpgrade: websocket\r\n" + proof +
                        b"\r\n")
        connection.send(connection.take(5))

    with pair() as both:
        both.origin.serve = serve
        both.origin.context.set_alpn_protocols(["http/1.1"])
        with h2_client(both.gate) as wire:
            wire.send(frame(HEADERS, END_HEADERS, 1, block([
                (":method", "CONNECT"), (":protocol", "websocket"),
                (":scheme", "https"), (":authority", both.host()),
                (":path", "/ws"), ("sec-websocket-version", "13")])))
            fields = dict(Inflater().fields(next_frame(wire, HEADERS)))
            if how != "proven":
                assert fields[b":status"] == b"502", fields
                failed(both, "/ws")
                return
            assert fields[b":status"] == b"200", fields
            assert b"sec-websocket-accept" not in fields, fields
            wire.send(frame(DATA, 0, 1, b"hello"))
            assert next_frame(wire, DATA) == b"hello"
            closed(both, "/ws")


# ---- a real one -------------------------------------------------------------

@cases.case
def nginx():
    body = noise(5 << 20)
    with Nginx(*authority().leaf(GOOD), h2=True) as server, \
            Gate(f'allow host "{GOOD}" port {server.tls}',
                 authority().cert) as gate:
        (server.root / "file.bin").write_bytes(body)
        both = Pair(server, gate, True)
        server.port = server.tls
        with contextlib.ExitStack() as stack:
            wires = [stack.enter_context(both.open()) for _ in range(8)]
            got = wires[0].ask(both.get("/file.bin"))
            assert digest(got.body) == digest(body), got
            for wire in wires:
                wire.send(both.get("/file.bin"))
            for wire in wires:
                assert digest(wire.answer().body) == digest(body)
            assert wires[0].ask(both.get("/nowhere")).status == 404
            assert wires[0].ask(both.get("/none")).status == 204
            request = both.get("/file.bin").replace(b"GET", b"HEAD")
            assert wires[0].ask(request, "HEAD").get("content-length") == \
                str(len(body))
            request = both.post("/put/x", body).replace(b"POST", b"PUT")
            assert wires[0].ask(request).status == 201
            assert (server.root / "put/x").read_bytes() == body
        served = server.served()
        assert len({line[0] for line in served}) == 1, served


cases.main()
