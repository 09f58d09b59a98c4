#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""HTTP/1 through the gate: what arrives is what was sent, and it is written
down."""

import hashlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from case import Cases, run
from check import MIB, digest, noise, one_final_each
from daemon import WAIT_S, until
from gate import EVIL, GOOD, Broken, Gate, get, pair
from origin import Nginx, authority
from standin_origin import Closed, always, answer, fields_of, once

cases = Cases()


class Real:
    """A gate and nginx behind it."""

    def __init__(self, **kwargs):
        self.nginx = Nginx(*authority().leaf(GOOD), **kwargs)
        try:
            self.gate = Gate(f'allow host "{GOOD}" port {self.nginx.tls}\n'
                             f'allow host "{GOOD}" port {self.nginx.port}',
                             authority().cert).__enter__()
        except BaseException:
            self.nginx.end()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.gate.end()
        self.nginx.end()

    def curl(self, path, *args, scheme="https"):
        """Standard output, and the status."""
        port = self.nginx.tls if scheme == "https" else self.nginx.port
        out = self.nginx.dir / "out"
        result = run(["curl", "-sS", "--path-as-is", "--http1.1",
                      "--cacert", self.gate.ca, "--noproxy", "*",
                      "--connect-to", f"::127.0.0.1:{self.gate.port(15001)}",
                      "-o", out, "-w", "%{http_code}", *args,
                      f"{scheme}://{GOOD}:{port}{path}"])
        assert result.returncode == 0, result.stdout
        body = out.read_bytes() if out.exists() else b""
        out.unlink(missing_ok=True)
        return body, int(result.stdout)


# ---- a real server ----------------------------------------------------------

@cases.case
def nginx_answers():
    """Statuses with and without a body, with curl, both schemes."""
    with Real() as real:
        (real.nginx.root / "a.txt").write_bytes(b"A" * 1000)
        for scheme in ("https", "http"):
            assert real.curl("/a.txt", scheme=scheme) == (b"A" * 1000, 200)
            assert real.curl("/a.txt", "-I", scheme=scheme)[1] == 200
            assert real.curl("/none", scheme=scheme) == (b"", 204)
            assert real.curl("/no.txt", scheme=scheme)[1] == 404
            body, status = real.curl("/a.txt", "-H", "If-Modified-Since: "
                                     "Fri, 01 Jan 2100 00:00:00 GMT",
                                     scheme=scheme)
            assert (body, status) == (b"", 304), status
            assert real.curl("/a.txt", "-0", scheme=scheme) == (
                b"A" * 1000, 200)
            assert real.curl("/a.txt", "-r", "10-19", scheme=scheme) == (
                b"A" * 10, 206)
        one_final_each(real.gate, 14)


@cases.each(["length", "chunked"])
def nginx_upload(framing):
    """5 MiB up and down again, the same to the byte."""
    with Real() as real:
        body = noise(5 * MIB)
        source = real.nginx.dir / "source"
        source.write_bytes(body)
        more = ["-H", "Transfer-Encoding: chunked"] if framing == "chunked" \
            else []
        said, status = real.curl("/put/x.bin", "-T", source, *more)
        assert status == 201, (status, said)
        assert (real.nginx.root / "put/x.bin").read_bytes() == body
        assert digest(real.curl("/put/x.bin")[0]) == digest(body)
        record = real.gate.final(method="PUT")
        assert record["request"]["request_body"]["bytes"] == len(body)
        assert record["bytes_out"] > len(body), record["bytes_out"]
        record = real.gate.final(method="GET")
        assert record["request"]["response_body"]["bytes"] == len(body)
        assert record["bytes_in"] > len(body), record["bytes_in"]


@cases.case
def nginx_gzip():
    """A content coding passes as it is."""
    with Real() as real:
        text = b"egress " * 10000
        (real.nginx.root / "t.txt").write_bytes(text)
        with real.gate.tls() as wire:
            got = wire.ask(get("/gzip/t.txt", f"{GOOD}:{real.nginx.tls}",
                               "Accept-Encoding: gzip\r\n"))
        assert got.get("content-encoding") == "gzip", got
        assert got.get("transfer-encoding") == "chunked", got
        unzip = subprocess.run(["gzip", "-d"], input=got.body, check=True,
                               stdout=subprocess.PIPE)
        assert unzip.stdout == text


@cases.case
def reuse():
    """Clients share a connection to the origin while it is kept; when it is
    not, the TLS session is resumed."""
    with Real(requests=3) as real:
        (real.nginx.root / "a.txt").write_bytes(b"A")
        for _ in range(6):
            with real.gate.tls() as wire:
                request = get("/a.txt", f"{GOOD}:{real.nginx.tls}")
                assert wire.ask(request).status == 200
        lines = until("6 requests", lambda: len(
            real.nginx.served()) == 6 and real.nginx.served())
        assert [int(line[1]) for line in lines] == [1, 2, 3] * 2, lines
        assert [line[2] for line in lines] == ["."] * 3 + ["r"] * 3, lines


# ---- requests ---------------------------------------------------------------

@cases.each(["length", "chunked", "small_chunks", "plain"])
def post(how):
    """The origin gets 5 MiB as they were, whatever the framing."""
    body = noise(5 * MIB)
    seen = []

    def serve(connection):
        while True:
            head, got = connection.request()
            seen.append((head, digest(got)))
            connection.send(answer(b"thanks"))

    with pair(serve, tls=how != "plain") as both, both.open() as wire:
        if how == "chunked":
            request = both.chunked("/up", body[:MIB], body[MIB:])
        elif how == "small_chunks":
            body = body[:100000]
            request = both.chunked(
                "/up", *(body[i:i + 7] for i in range(0, len(body), 7)))
        else:
            request = both.post("/up", body)
        for _ in range(2):
            assert wire.ask(request).body == b"thanks"
        assert [d for _, d in seen] == [digest(body)] * 2
        names = fields_of(seen[0][0])
        assert (b"transfer-encoding" in names) == ("chunk" in how), names
        assert (b"content-length" in names) != ("chunk" in how), names
        one_final_each(both.gate, 2)
        for record in both.gate.finals():
            request = record["request"]["request_body"]
            assert (request["bytes"], request["truncated"]) == (
                len(body), True), request


@cases.each(["asked", "ignored", "refused"])
def expect(how):
    """100-continue is the origin's to give; a client tired of waiting, or
    one whom nobody asks, is served too."""
    def serve(connection):
        head = connection.until(b"\r\n\r\n")
        assert b"expect: 100-continue" in head.lower(), head
        if how == "refused":
            connection.send(answer(b"no", b"417 Expectation Failed"))
            return
        if how == "asked":
            connection.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        connection.send(answer(digest(connection.body(head)).encode()))

    with pair(serve) as both, both.open() as wire:
        body = noise(MIB)
        head, _, _ = both.post("/", body, "Expect: 100-continue\r\n"
                               ).partition(b"\r\n\r\n")
        wire.send(head + b"\r\n\r\n")
        if how == "refused":
            assert wire.answer().status == 417
            assert wire.ended()
            return
        if how == "asked":
            assert wire.until(b"\r\n\r\n").startswith(b"HTTP/1.1 100 ")
        else:
            both.origin.wait(1)
            until("the head", lambda: b"\r\n\r\n" in both.origin.got())
        wire.send(body)
        got = wire.answer()
        assert got.body.decode() == digest(body) and not got.interim, got
        one_final_each(both.gate, 1)


@cases.case
def curl_expects():
    """The same with a client of the world, which waits for a second."""
    with pair() as both:
        source = both.gate.dir / "source"
        source.write_bytes(noise(2 * MIB))
        result = run(["curl", "-sS", "--http1.1", "--cacert", both.gate.ca,
                      "--connect-to",
                      f"::127.0.0.1:{both.gate.port(15001)}",
                      "--expect100-timeout", "0.3", "--data-binary",
                      f"@{source}", "-H", "Expect: 100-continue",
                      f"https://{both.host()}/"])
        assert result.stdout == "ok", result.stdout
        assert both.origin.got().endswith(source.read_bytes())


@cases.case
def http10():
    """An old client: the connection ends with the answer, unless it asked."""
    with pair() as both:
        head = f"GET /%s HTTP/1.0\r\nHost: {both.host()}\r\n"
        with both.open() as wire:
            got = wire.ask((head % "a" + "\r\n").encode())
            assert got.body == b"ok" and wire.ended(), got
            assert got.get("connection") == "close", got
        with both.open() as wire:
            for path in "bc":
                got = wire.ask((head % path + "Connection: keep-alive\r\n\r\n"
                                ).encode())
                assert got.get("connection") == "keep-alive", got
        records = [both.gate.final(path=f"/{p}") for p in "abc"]
        assert {r["request"]["protocol"] for r in records} == {"http/1.0"}
        assert both.origin.got().count(b" HTTP/1.1\r\n") == 3


@cases.case
def keep_alive():
    """Hundreds of requests over one connection on either side."""
    count = 300
    with pair() as both, both.open() as wire:
        for number in range(count):
            assert wire.ask(both.get(f"/{number}")).body == b"ok"
        one_final_each(both.gate, count)
        assert len(both.origin.connections) == 1
        paths = [r["request"]["path"] for r in both.gate.finals()]
        assert paths == [f"/{n}" for n in range(count)]


def serve_path(connection):
    """Answers with the path, as often as the path says."""
    while True:
        head, _ = connection.request()
        path = head.split(b" ")[1]
        connection.send(answer(path * int(path.split(b"/")[1])))


@cases.case
def pipelined():
    """Many requests in one write: answered in the order in which they came."""
    with pair(serve_path) as both, both.open() as wire:
        paths = [f"/{1 + n % 3}/{n}" for n in range(100)]
        wire.send(b"".join(both.get(p) for p in paths))
        for path in paths:
            got = wire.answer().body.decode()
            assert got == path * int(path[1]), f"{path}: {got}"
        one_final_each(both.gate, len(paths))


@cases.case
def pipelined_unread():
    """Answers that pile up unread, denials among them, and are then read."""
    with pair(serve_path, rule='path "/40000/**"') as both, \
            both.open() as wire:
        paths = [f"/{40000 if n % 5 else 3}/{n:04}" for n in range(100)]
        wire.send(b"".join(both.get(p) for p in paths))
        until("the gate has stopped", lambda: stands(
            lambda: len(both.gate.records())))
        assert both.gate.memory("VmRSS") < 32 * 1024
        for path in paths:
            got = wire.answer()
            assert got.status == (200 if path[1] == "4" else 403), path
            assert got.status == 403 or got.body == path.encode() * 40000
        one_final_each(both.gate, len(paths))


def stands(value, seconds=0.5):
    """It does not change for so long."""
    before = value()
    changed = threading.Event()
    changed.wait(seconds)
    return value() == before


@cases.each(["tls", "plain"])
def half_closed(how):
    """A client that says first that it is done still gets all of it, and
    takes its time."""
    body = noise(4 * MIB)
    with pair(always(answer(body)), tls=how == "tls") as both, \
            both.open() as wire:
        wire.send(both.get("/", "Connection: close\r\n"))
        if how == "plain":
            wire.sock.shutdown(socket.SHUT_WR)
        both.origin.wait(1)
        until("the gate has stopped", lambda: stands(
            lambda: both.gate.memory("VmRSS"), 2.5))
        assert digest(wire.answer().body) == digest(body)
        assert both.gate.final(path="/")["kind"] == "request_closed"


# ---- answers ----------------------------------------------------------------

CHUNKED = (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
           b"Trailer: X-Sum\r\n\r\n"
           b"5;ext=1\r\nhello\r\n6\r\n world\r\n0\r\nX-Sum: 1\r\n\r\n")


@cases.case
def chunked_answer():
    """The data is the same, and so are trailers; extensions are not passed
    on, nor trailers where there are no chunks."""
    with pair(always(CHUNKED)) as both, both.open() as wire:
        for _ in range(2):
            got = wire.ask(both.get())
            assert got.body == b"hello world", got
            assert got.get("transfer-encoding") == "chunked", got
            assert got.get("trailer") == "X-Sum", got
            assert wire.trailers == b"X-Sum: 1\r\n", wire.trailers
        head = f"GET /old HTTP/1.0\r\nHost: {both.host()}\r\n\r\n"
        with both.open() as old:
            got = old.ask(head.encode())
            assert got.body == b"hello world", got
            assert got.get("transfer-encoding") is None, got
        assert len(both.origin.connections) == 1


@cases.each(["tls", "plain"])
def until_close(how):
    """An answer that ends with its connection gets a framing of its own."""
    body = noise(300000)
    with pair(once(b"HTTP/1.1 200 OK\r\n\r\n" + body),
              tls=how == "tls") as both, both.open() as wire:
        for _ in range(2):
            got = wire.ask(both.get())
            assert digest(got.body) == digest(body)
            assert got.get("transfer-encoding") == "chunked", got
        one_final_each(both.gate, 2)
        assert {r["kind"] for r in both.gate.finals()} == {"request_closed"}


@cases.case
def interim():
    """Early hints come early, and are not the answer."""
    go = threading.Event()

    def serve(connection):
        connection.request()
        connection.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
        go.wait(WAIT_S)
        connection.send(answer())

    with pair(serve) as both, both.open() as wire:
        wire.send(both.get())
        hints = wire.until(b"\r\n\r\n")
        assert hints.startswith(b"HTTP/1.1 103 ") and b"Link: </a>" in hints
        go.set()
        assert wire.answer().body == b"ok"
        assert both.gate.final(path="/")["request"]["response_status"] == 200


@cases.each(["empty", "head", "304"])
def no_body(how):
    """A length without a body does not make the client wait, or the next
    answer part of this one."""
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n"
    says = {"empty": b"HTTP/1.1 204 No Content\r\n\r\n", "head": head,
            "304": head.replace(b"200 OK", b"304 Not Modified")}[how]
    with pair(always(says)) as both, both.open() as wire:
        request = both.get().replace(b"GET", b"HEAD") if how == "head" \
            else both.get()
        for _ in range(3):
            got = wire.ask(request, "HEAD" if how == "head" else "GET")
            assert got.get("content-length") == (
                None if how == "empty" else "1234"), got
        assert len(both.origin.connections) == 1


def serve_echo(connection):
    head, _ = connection.request()
    if b"upgrade: regress" not in head.lower():
        connection.send(answer())
        return
    connection.send(b"HTTP/1.1 101 Switching Protocols\r\n"
                    b"Connection: Upgrade\r\nUpgrade: regress\r\n\r\nhello")
    while True:
        try:
            connection.more()
        except Closed:
            connection.send(b"bye")
            connection.finish()
            return
        connection.send(connection.take(len(connection.got) -
                                        connection.used))


UPGRADE = "Connection: Upgrade\r\nUpgrade: regress\r\n"


@cases.each(["tls", "plain"])
def upgrade(how):
    """After its own verdict, bytes both ways and an end from either side."""
    with pair(serve_echo, rule='path "/ws"', tls=how == "tls") as both:
        with both.open() as wire:
            got = wire.ask(both.get("/other", UPGRADE))
            assert got.status == 403, got
            assert not both.origin.connections, "dialled before the verdict"
            got = wire.ask(both.get("/ws", UPGRADE))
            assert got.status == 101, got
            assert got.get("upgrade") == "regress", got
            assert wire.take(5) == b"hello"
            data = noise(3 * MIB)
            for at in range(0, len(data), 65536):
                wire.send(data[at:at + 65536])
                assert wire.take(65536) == data[at:at + 65536]
            assert not both.gate.finals(path="/ws"), "it still runs"
            if how == "plain":
                wire.sock.shutdown(socket.SHUT_WR)
                assert wire.rest() == b"bye"
        record = both.gate.final(path="/ws")
        assert record["kind"] == ("request_closed" if how == "plain" else
                                  record["kind"]), record
        assert record["request"]["response_status"] == 101, record
        assert record["request"]["request_body"]["bytes"] == len(data)
        assert record["request"]["response_body"]["bytes"] >= len(data)


@cases.case
def upgrade_declined():
    """The origin may answer as usual, and the connection goes on."""
    with pair() as both, both.open() as wire:
        for _ in range(2):
            assert wire.ask(both.get("/", UPGRADE)).body == b"ok"
        assert len(both.origin.connections) == 1


# ---- load and loss ----------------------------------------------------------

@cases.case
def large_download():
    """200 MiB to a client that does not read: the origin is held up, the
    engine stays small, and in the end all of it arrives."""
    total, piece = 200 * MIB, noise(MIB)
    sent = [0]

    def serve(connection):
        head, _ = connection.request()
        if b"/large" not in head:
            connection.send(answer())
            return
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" %
                        total)
        while sent[0] < total:
            connection.send(piece)
            sent[0] += len(piece)
        connection.until(b"never")

    with pair(serve) as both, both.open() as wire:
        wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        wire.send(both.get("/large"))
        wire.until(b"\r\n\r\n")
        until("the origin is held up", lambda: stands(lambda: sent[0]))
        assert sent[0] < 32 * MIB, f"{sent[0]} bytes are somewhere"
        with both.open() as other:
            assert other.ask(both.get("/other")).body == b"ok"
        left, want, got = total, hashlib.sha256(), hashlib.sha256()
        for _ in range(total // len(piece)):
            want.update(piece)
        while left:
            data = wire.data or wire.more()
            wire.data = b""
            got.update(data)
            left -= len(data)
        assert got.digest() == want.digest()
        peak = both.gate.memory()
        assert peak < 32 * 1024, f"{peak} KiB at its largest"
        record = both.gate.final(path="/large")
        assert record["request"]["response_body"]["bytes"] == total
        assert total < record["bytes_in"] < total + 1000, record["bytes_in"]


@cases.case
def client_leaves():
    """In the middle of its request, of the wait, and of the answer: the
    origin notices, and each is one failed request."""
    def serve(connection):
        head, _ = connection.request()
        if b"/wait" in head:
            connection.until(b"never")
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n")
        while True:
            connection.send(bytes(65536))

    with pair(serve) as both:
        wire = both.open()
        wire.send(both.post("/request", bytes(1000000))[:-1])
        both.origin.wait(1)
        wire.close()
        wire = both.open()
        wire.send(both.get("/answer"))
        wire.until(b"\r\n\r\n")
        wire.reset()
        for path in ("/request", "/answer"):
            record = both.gate.final(path=path)
            assert (record["kind"], record["reason"]) == (
                "request_failed", "stream_broken"), record
        for connection in both.origin.connections:
            assert connection.ended.wait(WAIT_S), "the origin was not told"
        assert len(both.origin.connections[0].got) < 1001000
        one_final_each(both.gate, 2)


CUTS = {
    "length": b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf",
    "chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
               b"4\r\nhalf\r\n",
    "chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
             b"ff\r\nhalf",
    "until_close": b"HTTP/1.1 200 OK\r\n\r\nhalf",
}


@cases.each(CUTS)
def origin_leaves(how):
    """In the middle of its answer: the client does not take the half for
    the whole."""
    with pair(once(CUTS[how], clean=how != "until_close")) as both:
        with both.open() as wire:
            try:
                got = wire.ask(both.get("/cut"))
            except Broken:
                got = None
            assert got is None, f"it looks whole: {got}"
        record = both.gate.final(path="/cut")
        assert (record["kind"], record["reason"]) == (
            "request_failed", "stream_broken"), record
        assert record["request"]["response_body"]["bytes"] == 4, record


@cases.case
def origin_closes_idle():
    """A kept connection that the origin has closed costs no request."""
    with pair(once(answer())) as both, both.open() as wire:
        for _ in range(20):
            assert wire.ask(both.get()).body == b"ok"
        one_final_each(both.gate, 20)
        assert {r["kind"] for r in both.gate.finals()} == {"request_closed"}


# ---- limits, refusals, reload -----------------------------------------------

READERS = {
    "git": ("User-Agent: git/2.39.2\r\nAccept: */*\r\n", "text/plain"),
    "text": ("Accept: text/html, text/plain\r\n", "text/plain"),
    "json": ("Accept: application/json\r\n", "application/json"),
    "api": ("Accept: application/vnd.api+json\r\n", "application/json"),
    "all": ("User-Agent: curl/8\r\nAccept: */*\r\n", "application/json"),
    "none": ("User-Agent: digit/2\r\n", "application/json"),
}


@cases.case
def refusal_is_legible():
    """In the first line, and in a body that the client would show."""
    with pair(settings=f'deny host "{EVIL}"') as both:
        for who, (extra, kind) in READERS.items():
            with both.open(EVIL) as wire:
                got = wire.ask(both.get("/x", extra, name=EVIL))
            number = got.get("egress-request")
            assert (got.status, got.phrase, got.get("content-type")) == (
                403, "Denied by egress policy: matched_deny_rule", kind), \
                f"{who}: {got.phrase} {got}"
            if kind == "text/plain":
                assert got.body.decode() == (
                    "Denied by egress policy: matched_deny_rule (host "
                    f"{EVIL}, rule 1, request {number})\n"), f"{who}: {got}"
            else:
                assert json.loads(got.body)["rule"] == 1, f"{who}: {got}"
        both.origin.end()
        for who, (extra, kind) in READERS.items():
            with both.open() as wire:
                got = wire.ask(both.get("/y", extra))
            assert (got.status, got.phrase, got.get("content-type")) == (
                502, "Egress gate: upstream_unreachable", kind), \
                f"{who}: {got.phrase} {got}"


@cases.case
def denied():
    """Legible, with a reason; nothing is dialled."""
    with pair(settings=f'deny host "{EVIL}"') as both, \
            both.open(EVIL) as wire, both.open("other.test") as other:
        got = wire.ask(both.get("/x", name=EVIL))
        assert got.status == 403, got
        assert got.get("egress-decision") == "refuse, matched_deny_rule", got
        assert b'"reason":"matched_deny_rule"' in got.body, got
        got = wire.ask(both.get("/y", name=EVIL).replace(b"GET", b"HEAD"),
                       "HEAD")
        assert got.status == 403, got
        # The body of a denied request is not the next request.
        wire.send(both.post("/z", b"x" * 9).replace(GOOD.encode(),
                                                    EVIL.encode()))
        assert wire.answer().status == 403 and wire.ended()
        got = other.ask(both.get("/default", name="other.test"))
        assert got.get("egress-decision") == "refuse, default_deny", got
        assert not both.origin.connections
        for path in ("/x", "/y", "/z"):
            record = both.gate.final(path=path)
            assert (record["kind"], record["reason"]) == (
                "request_denied", "matched_deny_rule"), record
            assert record["matched_rule"] == {"index": 1, "kind": "deny"}
        record = both.gate.final(path="/default")
        assert record["reason"] == "default_deny", record
        assert record["matched_rule"] is None, record
        one_final_each(both.gate, 4)


@cases.case
def whole_ids():
    """Who was refused can name the record: session and id are those of the
    answer, and no other life of the daemon or of an engine has that id."""
    ids = set()
    with pair(rule='path "/ok"') as both:
        gate = both.gate
        for life in range(3):
            with both.open() as wire:
                got = wire.ask(both.get(f"/{life}"))
            body = json.loads(got.body)
            record = gate.final(path=f"/{life}")
            assert got.get("egress-request") == body["request_id"] == \
                record["request"]["id"], (got, record)
            assert body["session_id"] == record["session_id"] == "edge", body
            ids.add(body["request_id"])
            if life == 0:
                before = gate.settle()["edge"]
                os.kill(before, signal.SIGKILL)
                until("another engine", lambda:
                      gate.settle()["edge"] != before)
            else:
                assert gate.stop() == 0
                gate.start()
                gate.settle()
        assert len(ids) == 3, ids


@cases.case
def refuse_with_reset():
    """Not a byte for an answer."""
    with pair(rule='path "/ok"', settings="refuse with reset") as both:
        for tls in (True, False):
            both.is_tls = tls
            with both.open() as wire:
                wire.send(both.get("/no"))
                try:
                    data = wire.rest()
                    raise AssertionError(f"a clean end after {data}")
                except Broken as why:
                    assert wire.data == b"", wire.data
                    assert tls or "reset" in str(why), why
        both.is_tls = True
        with both.open() as wire:
            assert wire.ask(both.get("/ok")).body == b"ok"
        until("two denials", lambda: len(both.gate.finals(path="/no")) == 2)


@cases.each(["length", "chunked"])
def body_limit(framing):
    """413 and a record; beyond the limit not a byte reaches the origin."""
    with pair(rule="body 1M") as both:
        with both.open() as wire:
            assert wire.ask(both.post("/fits", bytes(MIB))).status == 200
        before = len(both.origin.got())
        with both.open() as wire:
            body = bytes(MIB + 1)
            request = both.post("/over", body) if framing == "length" else \
                both.chunked("/over", body[:MIB // 2], body[MIB // 2:])
            wire.send(request)
            got = wire.answer()
            assert got.status == 413, got
            assert got.get("egress-decision") == "refuse, body_limit", got
        record = both.gate.final(path="/over")
        assert (record["kind"], record["reason"]) == (
            "request_failed", "body_limit"), record
        data = both.origin.got()[before:]
        if framing == "length":
            assert data == b"", "the origin has heard of it"
        else:
            assert data.count(b"\0") <= MIB and not data.endswith(
                b"0\r\n\r\n"), len(data)
        one_final_each(both.gate, 2)


@cases.case
def reload():
    """What is no longer allowed is cut; what is still allowed goes on."""
    go = threading.Event()

    def serve(connection):
        while True:
            head, _ = connection.request()
            if b"/wait" not in head:
                connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n"
                                b"\r\nhalf")
            go.wait(WAIT_S)
            connection.send(answer() if b"/wait" in head else b"full")

    with pair(serve, names=(GOOD, EVIL)) as both, \
            both.open(GOOD) as good, both.open(GOOD) as idle, \
            both.open(EVIL) as evil, both.open(EVIL) as waiting:
        good.send(both.get("/good"))
        evil.send(both.get("/evil", name=EVIL))
        waiting.send(both.get("/wait", name=EVIL))
        good.until(b"half"), evil.until(b"half")
        until("all wait", lambda: both.origin.got().count(b"GET") == 3)
        both.gate.reload(f'allow host "{GOOD}" port {both.origin.port}')
        got = waiting.answer()
        assert got.status == 403, got
        assert got.get("egress-decision") == "refuse, default_deny", got
        try:
            data = evil.rest()
            raise AssertionError(f"it looks whole: {data}")
        except Broken:
            pass
        go.set()
        assert good.take(4) == b"full"
        for path in ("/evil", "/wait"):
            record = both.gate.final(path=path)
            assert (record["kind"], record["reason"]) == (
                "request_failed", "default_deny"), record
        assert both.gate.final(path="/good")["kind"] == "request_closed"
        assert idle.ask(both.get("/wait2")).status == 200
        assert good.ask(both.get("/wait3")).status == 200
        with both.open(EVIL) as wire:
            assert wire.ask(both.get("/late", name=EVIL)).status == 403
        one_final_each(both.gate, 6)


@cases.case
def reload_tells_the_method():
    """A chunked body that has taken the place of its head in our memory is
    not taken for the method when the rules are asked again."""
    with pair(rule="method POST") as both, both.open() as wire:
        head = both.chunked("/up")[:-5]
        junk = b"GET / HTTP/1.1\r\n" * 6000
        wire.send(head + b"%x\r\n%s\r\n" % (len(junk), junk))
        until("the body", lambda: both.origin.got().count(b"GET") > 5900)
        both.gate.reload(f'allow host "{GOOD}" port {both.origin.port} '
                         "method POST")
        wire.send(b"3\r\nend\r\n0\r\n\r\n")
        assert wire.answer().body == b"ok"
        both.gate.reload(f'allow host "{GOOD}" port {both.origin.port} '
                         "method GET")
        assert wire.ask(both.post("/up2", b"")).status == 403


# ---- records ----------------------------------------------------------------

SECRETS = ["sesame-1", "sesame-2", "sesame-3", "sesame-4", "sesame-5",
           "sesame-6", "sesame-7"]


@cases.case
def records():
    """Every member that is documented; secrets nowhere in the file."""
    extra = (f"Authorization: Bearer {SECRETS[0]}\r\n"
             f"Cookie: a={SECRETS[1]}\r\n"
             f"X-Tenant-Key: {SECRETS[2]}\r\n"
             "Accept: text/plain\r\nAccept: text/html\r\n"
             "X-Odd: \x1b[31m\xff\r\n")
    says = answer(b"r" * 5000, extra=f"Set-Cookie: s={SECRETS[3]}\r\n"
                  "X-Two: 1\r\nx-two: 2\r\n".encode())
    with pair(always(says), settings="capture redact { header x-tenant-key, "
              "query token }") as both, both.open() as wire:
        path = (f"/p?a=1&token={SECRETS[4]}&b=2&%74oken={SECRETS[5]}"
                f"&TOKEN={SECRETS[6]}")
        extra = extra.replace("\x1b[31m", "")
        body = b"q" * 4097
        sent = both.post(path, body, extra).decode("latin-1").encode("latin-1")
        assert wire.ask(sent).body == b"r" * 5000
        for secret in SECRETS[:3] + SECRETS[4:]:
            assert secret.encode() in both.origin.got(), secret
        record = both.gate.final(method="POST")
        text = both.gate.audit.read_text()
        for secret in SECRETS:
            assert secret not in text, f"{secret} is in the file"
        request = record["request"]
        assert request["path"] == (
            "/p?a=1&token=[redacted]&b=2&%74oken=[redacted]"
            "&TOKEN=[redacted]"), request["path"]
        headers = request["request_headers"]
        assert headers["Authorization"] == headers["Cookie"] == \
            headers["X-Tenant-Key"] == "[redacted]", headers
        assert headers["Accept"] == "text/plain, text/html", headers
        assert headers["X-Odd"] == "\uefc3\uefbf" or \
            headers["X-Odd"] == "\u00ff", headers
        assert request["response_headers"]["Set-Cookie"] == "[redacted]"
        assert request["response_headers"]["X-Two"] == "1, 2", request
        assert re.fullmatch(r"[0-9a-f]{16}-\d+-\d+", request["id"]), request
        assert {k: request[k] for k in (
            "host", "port", "scheme", "protocol", "method",
            "response_status", "address")} == {
            "host": GOOD, "port": both.origin.port, "scheme": "https",
            "protocol": "http/1.1", "method": "POST",
            "response_status": 200, "address": "127.0.0.1"}, request
        assert request["request_body"] == {
            "sha256": None, "bytes": 4097, "preview": "q" * 4096,
            "truncated": True}, request["request_body"]
        assert request["response_body"] == {
            "sha256": None, "bytes": 5000, "preview": "r" * 4096,
            "truncated": True}, request["response_body"]
        assert request["started_at"] <= request["finished_at"], request
        assert record["session_id"] == "edge" and record["reason"] is None
        assert record["matched_rule"] == {"index": 0, "kind": "allow"}
        assert record["bytes_out"] == len(both.origin.got()), record
        assert record["bytes_in"] == len(says), record
        one_final_each(both.gate, 1)


@cases.case
def preview_is_whole():
    """Exactly as much as is captured is not truncated, whatever the pieces
    in which it came."""
    with pair() as both, both.open() as wire:
        for size in (1, 4095, 4096):
            body = noise(size).hex().encode()[:size]
            assert wire.ask(both.post(f"/{size}", body)).status == 200
            kept = both.gate.final(path=f"/{size}")["request"]["request_body"]
            assert (kept["preview"], kept["truncated"]) == (
                body.decode(), False), kept
        wire.send(both.chunked("/c", *[b"abc"] * 2000))
        assert wire.answer().status == 200
        kept = both.gate.final(path="/c")["request"]["request_body"]
        assert kept["preview"] == ("abc" * 2000)[:4096], kept
        # More than 16 KiB at once: what is captured is what was sent.
        body = noise(30000).hex().encode()
        assert wire.ask(both.post("/large", body)).status == 200
        kept = both.gate.final(path="/large")["request"]["request_body"]
        assert kept["preview"] == body[:4096].decode(), kept["preview"][:99]


@cases.case
def capture():
    """Nothing, where the policy says 0; the hash, where it says so."""
    body = b"payload" * 9000
    with pair(settings="capture body 0 hash") as both, both.open() as wire:
        assert wire.ask(both.post("/hash", body)).status == 200
        assert wire.ask(both.get("/none")).status == 200
        request = both.gate.final(path="/hash")["request"]
        assert request["request_body"] == {
            "sha256": digest(body), "bytes": len(body), "preview": None,
            "truncated": True}, request["request_body"]
        assert request["response_body"] == {
            "sha256": digest(b"ok"), "bytes": 2, "preview": None,
            "truncated": True}, request["response_body"]
        request = both.gate.final(path="/none")["request"]
        assert request["request_body"] == {
            "sha256": None, "bytes": 0, "preview": None,
            "truncated": False}, request["request_body"]
        assert "payload" not in both.gate.audit.read_text()


@cases.case
def engine_dies():
    """Requests under way when an engine dies have a final record too."""
    def serve(connection):
        connection.request()
        connection.until(b"never")

    with pair(serve) as both, both.open() as wire:
        wire.send(both.get("/open"))
        until("it is under way", lambda: b"/open" in both.origin.got())
        os.kill(both.gate.engine(), 9)
        assert wire.ended()
        record = both.gate.final(path="/open")
        assert (record["kind"], record["reason"]) == (
            "request_failed", "no_engine"), record
        both.gate.settle()
        both.gate.verified()


cases.main()
