#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""The gate's other side: origins that are not who they say, not there, slow,
or hostile; and addresses that are nobody's business."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import ssl
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from case import Cases
from daemon import WAIT_S, until
from gate import GOOD, Broken, Gate, get, pair
from origin import authority, free_port
from procs import status
from standin_origin import StandinOrigin, answer, always, once

cases = Cases()


def refused(both, got, reason, status=502, path="/"):
    """The client was told, the record says more, and both agree."""
    assert got.status == status, got
    assert got.get("egress-decision") == f"refuse, {reason}", got
    record = both.gate.final(path=path)
    assert record["kind"] == "request_failed", record
    assert record["reason"].split(":")[0] == reason, record
    assert record["request"]["response_status"] is None, record
    assert record["matched_rule"] == {"index": 0, "kind": "allow"}, record
    both.gate.verified()
    return record["reason"]


# ---- who they are -----------------------------------------------------------

def self_signed():
    root = authority("selfish")
    return root.cert, root.key


STRANGERS = {
    "other_name": (lambda: authority().leaf("other.test"), "hostname"),
    "name_with_suffix": (lambda: authority().leaf(f"{GOOD}.evil.test"),
                         "hostname"),
    "wildcard_too_high": (lambda: authority().leaf("*.test"), "hostname"),
    "address": (lambda: authority().leaf("127.0.0.1"), "hostname"),
    "unknown_root": (lambda: authority("unknown").leaf(GOOD), "issuer"),
    "expired": (lambda: authority().leaf(GOOD, days=-1), "expired"),
    "self_signed": (self_signed, "signed certificate"),
}


@cases.each(STRANGERS)
def untrusted(who):
    """Not a byte of a request for one who cannot prove who he is, also the
    second time."""
    cert, word = STRANGERS[who]
    with pair(cert=cert()) as both, both.open() as wire:
        for path in ("/1", "/2"):
            got = wire.ask(both.get(path))
            why = refused(both, got, "upstream_untrusted", path=path)
            assert word in why.lower(), why
            assert GOOD.encode() in got.body
        assert both.origin.got() == b"", both.origin.got()


@cases.case
def trusted_by_wildcard():
    """A wildcard for one label, and names beside others."""
    cert = authority().leaf("x.test", "*.good.test")
    with pair(cert=cert) as both, both.open() as wire:
        assert wire.ask(both.get()).body == b"ok"


# ---- whether they are there -------------------------------------------------

def hang(connection):
    connection.until(b"never")


def say(data):
    def serve(connection):
        connection.send(data)
        connection.until(b"never")
    return serve


def leave(connection):
    connection.until(b"\x16")
    connection.reset()


# What an origin without TLS does when it is spoken to with TLS.
ABSENT = {
    "silent": hang,
    "garbage": say(b"SSH-2.0-OpenSSH_9.2\r\n"),
    "zeros": say(bytes(4096)),
    "http": say(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
    "reset": leave,
    "closed": lambda connection: connection.until(b"\x16"),
    "alert": say(b"\x15\x03\x03\x00\x02\x02\x28"),
    "old": say(b"\x15\x03\x01\x00\x02\x02\x46"),
}


@cases.each(ABSENT)
def no_tls(how):
    with pair(ABSENT[how], tls=False, more="timeout handshake 2s") as both:
        both.is_tls = True
        with both.open() as wire:
            got = wire.ask(both.get())
            refused(both, got, "upstream_unreachable")
            assert b"GET" not in both.origin.got(), both.origin.got()


@cases.case
def tls_on_the_clear():
    """http to a port that speaks TLS gets what the origin says to that, or
    nothing; never a request with TLS."""
    with pair() as both:
        both.is_tls = False
        with both.open() as wire:
            got = wire.ask(both.get())
            assert got.status == 502, got
        assert both.gate.final(path="/")["kind"] == "request_failed"


def refuse_handshakes(origin, count):
    """The next so many connections hear that it has failed."""
    run, left = origin.run, iter(range(count))

    def refusing(sock, peer):
        if next(left, None) is None:
            run(sock, peer)
            return
        with sock:
            sock.recv(4096)
            sock.sendall(b"\x15\x03\x03\x00\x02\x02\x28")
            origin.failed.append(peer)
    origin.run = refusing


# Whether there is a session to resume, how many handshakes fail, and what
# becomes of the request after how many of them.
FAILING = {"with": (True, 1, 200, 2), "without": (False, 1, 502, 1),
           "twice": (True, 2, 502, 2)}


@cases.each(FAILING)
def session_refused(how):
    """A session that an origin fails on is forgotten, and once more tried."""
    known, count, status, tried = FAILING[how]
    with pair(once(answer())) as both, both.open() as wire:
        if known:
            assert wire.ask(both.get("/1")).status == 200
        before = len(both.origin.accepted)
        refuse_handshakes(both.origin, count)
        assert wire.ask(both.get("/2")).status == status
        assert len(both.origin.accepted) - before == tried
        assert wire.ask(both.get("/3")).status == 200
        both.gate.verified()


@cases.case
def session_of_another_version():
    """The origin has TLS 1.3 now, and had not when the session was made."""
    with pair(once(answer())) as both, both.open() as wire:
        context = both.origin.context
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        assert wire.ask(both.get("/1")).status == 200
        context.maximum_version = ssl.TLSVersion.TLSv1_3
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        for path in ("/2", "/3"):
            assert wire.ask(both.get(path)).status == 200, path


@cases.case
def closed_port():
    with pair() as both:
        both.origin.end()
        with both.open() as wire:
            got = wire.ask(both.get())
            why = refused(both, got, "upstream_unreachable")
            assert "refused" in why.lower(), why
            # The connection is good for more.
            assert wire.ask(both.get("/2")).status == 502


@cases.each(["clear", "tls"])
def large_and_kept(how):
    """Large answers, one after the other, come over one connection."""
    body, connections = bytes(3 << 20), []

    def serve(connection):
        connections.append(connection)
        while True:
            connection.request()
            connection.send(answer(body))

    with pair(serve, tls=how == "tls") as both, both.open() as wire:
        for number in range(20):
            assert wire.ask(both.get(f"/{number}")).body == body
        assert len(connections) == 1, f"{len(connections)} connections"


# As many records as are read in one turn; with the last, more waits for the
# client than is held back.
ONE_TURN = [b"x"] * 13 + [b"y" * 16384] * 3


def send_while_stopped(connection, engine):
    """All of it is there to be read when the engine goes on."""
    def cork(on):
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, on)

    os.kill(engine, signal.SIGSTOP)
    until("it has stopped", lambda: "T" in status(engine)["State"])
    cork(1)
    connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" %
                    sum(map(len, ONE_TURN)))
    for piece in ONE_TURN:
        connection.send(piece)
    cork(0)
    os.kill(engine, signal.SIGCONT)


@contextlib.contextmanager
def ahead_of(pid):
    """This thread runs instead of that process whenever it can; as a user
    only at times."""
    cpus = os.sched_getaffinity(0)
    with contextlib.suppress(PermissionError):
        os.sched_setaffinity(pid, [min(cpus)])
        os.sched_setaffinity(0, [min(cpus)])
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        os.sched_setaffinity(0, cpus)


@cases.case
def left_with_the_whole():
    """A client that closes as soon as it has the last byte has had it all."""
    def serve(connection):
        connection.request()
        connection.send(answer())
        connection.request()
        send_while_stopped(connection, engine)
        connection.more()

    with pair(serve) as both, both.open() as wire:
        engine = both.gate.engine()
        assert wire.ask(both.get("/first")).status == 200
        with ahead_of(engine):
            wire.send(both.get("/whole"))
            wire.until(b"\r\n\r\n")
            wire.take(sum(map(len, ONE_TURN)))
            wire.reset()
        final = both.gate.final(path="/whole")
        assert final["kind"] == "request_closed", final


@cases.case
def no_such_name():
    """A name that nobody resolves; and P1: what is denied is not asked."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as resolver:
        resolver.bind(("127.0.0.1", 0))
        resolver.setblocking(False)
        port = resolver.getsockname()[1]
        with Gate('allow host "nowhere.test" port 80',
                  authority().cert, f"resolver 127.0.0.1 port {port}\n"
                  "timeout dial 1s") as gate:
            with gate.plain() as wire:
                got = wire.ask(get("/", "denied.test"))
                assert got.status == 403, got
                assert gate.final(host="denied.test")["reason"] == \
                    "default_deny"
                try:
                    raise AssertionError(f"asked: {resolver.recv(512)}")
                except BlockingIOError:
                    pass
            with gate.plain() as wire:
                got = wire.ask(get("/", "nowhere.test"))
                assert got.status == 502, got
                assert b"nowhere" in resolver.recv(512)
            record = gate.final(host="nowhere.test")
            assert record["reason"].startswith("upstream_unreachable: ")


@cases.case
def resolver_is_down():
    with Gate('allow host "nowhere.test" port 80', authority().cert,
              f"resolver 127.0.0.1 port {free_port()}\n"
              "timeout dial 2s") as gate, gate.plain() as wire:
        got = wire.ask(get("/", "nowhere.test"))
        assert got.status == 502, got
        record = gate.final(host="nowhere.test")
        assert record["reason"].startswith("upstream_unreachable: "), record


# ---- what they say ----------------------------------------------------------

OK = b"HTTP/1.1 200 OK\r\n"

# None of these has one meaning for all readers.
ANSWERS = {
    "garbage": b"hello\r\n\r\n",
    "http09": b"<html>hello</html>",
    "status_text": b"HTTP/1.1 abc OK\r\n\r\n",
    "status_two_digits": b"HTTP/1.1 20 OK\r\n\r\n",
    "version": b"HTTP/2.0 200 OK\r\n\r\n",
    "bare_lf": b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
    "two_lengths": OK + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nok",
    "other_lengths": OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nok",
    "length_list": OK + b"Content-Length: 2, 2\r\n\r\nok",
    "length_sign": OK + b"Content-Length: +2\r\n\r\nok",
    "length_huge": OK + b"Content-Length: 99999999999999999999\r\n\r\nok",
    "length_and_coding": OK + b"Content-Length: 2\r\n"
                         b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "coding": OK + b"Transfer-Encoding: gzip\r\n\r\nok",
    "coding_twice": OK + b"Transfer-Encoding: chunked\r\n"
                    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "coding_odd": OK + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "fold": OK + b"X: 1\r\n 2\r\nContent-Length: 2\r\n\r\nok",
    "space_before_colon": OK + b"Content-Length : 2\r\n\r\nok",
    "nul": OK + b"X: \0\r\nContent-Length: 2\r\n\r\nok",
    "bare_cr": OK + b"X: 1\rY: 2\r\nContent-Length: 2\r\n\r\nok",
    "many_fields": OK + b"X: 1\r\n" * 1000 + b"Content-Length: 2\r\n\r\nok",
    "long_field": OK + b"X: " + b"x" * 20000 + b"\r\n\r\n",
    "long_head": OK + (b"X: " + b"x" * 8000 + b"\r\n") * 5 + b"\r\n",
    "endless_head": OK + b"X: " + b"x" * 1000000,
    "interim_flood": b"HTTP/1.1 103 Early Hints\r\n\r\n" * 1000,
    "interim_body": b"HTTP/1.1 103 Early Hints\r\nContent-Length: 2\r\n\r\nok",
    "switch": b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
              b"Upgrade: regress\r\n\r\nok",
    "nothing": b"",
    "half": OK + b"Content-Len",
}


@cases.case
def answers():
    """Response smuggling and worse: 502, one record, the next request of
    the client fares well over a new connection."""
    script = {"answer": b""}

    def serve(connection):
        while True:
            head, _ = connection.request()
            if b"/fine" in head:
                connection.send(answer())
            else:
                connection.send(script["answer"])
                connection.finish()
                return

    with pair(serve) as both, both.open() as wire:
        for name, data in ANSWERS.items():
            script["answer"] = data
            got = wire.ask(both.get(f"/{name}"))
            assert got.status == 502, f"{name}: {got}"
            assert set(got.interim) <= {103}, f"{name}: {got}"
            assert len(got.interim) <= 16, f"{name}: {got.interim}"
            record = both.gate.final(path=f"/{name}")
            assert record["kind"] == "request_failed", record
            assert record["reason"].split(":")[0] in (
                "stream_broken", "upstream_unreachable"), record
            got = wire.ask(both.get(f"/fine/{name}"))
            assert got.body == b"ok", f"after {name}: {got}"
        count = 2 * len(ANSWERS)
        until("all records", lambda: len(both.gate.finals()) == count)
        both.gate.verified()


# The head was good and has gone to the client before these were seen.
BODIES = {
    "chunk_size": b"zz\r\nok\r\n0\r\n\r\n",
    "chunk_sign": b"+2\r\nok\r\n0\r\n\r\n",
    "chunk_hex": b"0x2\r\nok\r\n0\r\n\r\n",
    "chunk_huge": b"ffffffffffffffffff\r\nok\r\n0\r\n\r\n",
    "chunk_long": b"2\r\nokok\r\n0\r\n\r\n",
    "chunk_lf": b"2\nok\n0\n\n",
    "chunk_line": b"2;" + b"x" * 4096 + b"\r\nok\r\n0\r\n\r\n",
    "trailer_fold": b"0\r\n x\r\n\r\n",
    "trailers": b"0\r\n" + b"X: 1\r\n" * 10000 + b"\r\n",
}


@cases.case
def bodies():
    """Broken in the middle: the client sees a break, not an end."""
    script = {}

    def serve(connection):
        connection.request()
        connection.send(OK + b"Transfer-Encoding: chunked\r\n\r\n" +
                        script["body"])
        connection.finish()

    with pair(serve) as both:
        for name, data in BODIES.items():
            script["body"] = data
            with both.open() as wire:
                try:
                    got = wire.ask(both.get(f"/{name}"))
                    raise AssertionError(f"{name} looks whole: {got}")
                except Broken:
                    pass
            record = both.gate.final(path=f"/{name}")
            assert (record["kind"], record["reason"]) == (
                "request_failed", "stream_broken"), record


@cases.each(["at_once", "later"])
def unasked(when):
    """An answer that nobody asked for is nobody's answer."""
    evil = answer(b"poison")
    sent = threading.Event()

    def serve(connection):
        connection.request()
        if both.origin.connections[0] is not connection:
            connection.send(answer(b"another"))
        elif when == "at_once":
            connection.send(answer() + evil)
        else:
            connection.send(answer())
            sent.wait(WAIT_S)
            connection.send(evil)
        connection.request()
        connection.send(answer(b"second"))

    with pair(serve) as both, both.open() as wire:
        assert wire.ask(both.get()).body == b"ok"
        if when == "later":
            sent.set()
            assert both.origin.connections[0].ended.wait(WAIT_S), \
                "it was not hung up on"
        for _ in range(3):
            got = wire.ask(both.get())
            assert got.body in (b"another", b"second"), got


@cases.case
def head_answered_with_body():
    """What follows the answer to a HEAD is not the next answer."""
    with pair(always(answer(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n"
                            b"poison"))) as both, both.open() as wire:
        for _ in range(3):
            request = both.get().replace(b"GET", b"HEAD")
            assert wire.ask(request, "HEAD").body == b""
            assert wire.ask(both.get()).body.startswith(b"HTTP/1.1 200")


@cases.case
def hop_by_hop():
    """Fields of the connection stay there, in both directions."""
    says = answer(extra=b"Connection: x-secret, close\r\nX-Secret: 1\r\n"
                  b"Keep-Alive: timeout=1\r\nProxy-Authenticate: x\r\n"
                  b"X-Kept: 1\r\n")
    with pair(once(says)) as both, both.open() as wire:
        got = wire.ask(both.get("/", "Connection: x-mine, keep-alive\r\n"
                                "X-Mine: 1\r\nProxy-Authorization: x\r\n"
                                "TE: trailers\r\nX-Kept: 1\r\n"))
        names = {n for n, _ in got.fields}
        assert names == {"content-length", "x-kept"}, names
        head = both.origin.got().lower()
        for name in (b"x-mine", b"proxy-auth", b"keep-alive"):
            assert name not in head, head
        assert b"x-kept: 1" in head, head
        # We pass trailers on, and say so for ourselves.
        assert b"te: trailers\r\nconnection: te\r\n" in head, head
        assert wire.ask(both.get()).body == b"ok"


# ---- how long they take -----------------------------------------------------

@cases.case
def late_answer():
    with pair(hang, more="timeout response 1s") as both, \
            both.open() as wire:
        got = wire.ask(both.get())
        why = refused(both, got, "upstream_unreachable")
        assert "in time" in why, why


@cases.case
def late_body():
    """A body that stands still is cut, and looks cut."""
    with pair(say(OK + b"Content-Length: 9\r\n\r\nhalf"),
              more="timeout idle 1s") as both, both.open() as wire:
        wire.send(both.get())
        try:
            raise AssertionError(f"it looks whole: {wire.answer()}")
        except Broken:
            pass
        record = both.gate.final(path="/")
        assert (record["kind"], record["reason"]) == (
            "request_failed", "stream_broken: idle"), record


@cases.case
def slow_upload():
    """An upload that takes longer than an answer may is not late."""
    with pair(more="timeout response 1s") as both, both.open() as wire:
        request = both.post("/", b"x" * 8)
        wire.send(request[:-8])
        pause = threading.Event()
        for byte in request[-8:]:
            pause.wait(0.25)
            wire.send(bytes([byte]))
        assert wire.answer().body == b"ok"


@cases.case
def crowd():
    """Many at once: each has its own connection, answer and record."""
    gathered = threading.Barrier(60)

    def serve(connection):
        head, _ = connection.request()
        gathered.wait(WAIT_S)
        connection.send(answer(head.split(b" ")[1]))

    with pair(serve) as both:
        wires = [both.open() for _ in range(60)]
        for number, wire in enumerate(wires):
            wire.send(both.get(f"/{number}"))
        for number, wire in enumerate(wires):
            assert wire.answer().body == b"/%d" % number
            wire.close()
        until("all records", lambda: len(both.gate.finals()) == 60)
        both.gate.verified()


# ---- where they live --------------------------------------------------------

ADDRESSES = {
    "loopback": "127.0.0.1",
    "loopback_net": "127.9.9.9",
    "any": "0.0.0.0",
    "metadata": "169.254.169.254",
    "metadata_alibaba": "100.100.100.200",
    "private": "10.0.0.1",
    "benchmark": "198.18.0.1",
    "multicast": "224.0.0.1",
    "loopback6": "::1",
    "metadata6": "fd00:ec2::254",
    "nat64": "64:ff9b::7f00:1",
    "sixtofour": "2002:7f00:1::1",
    "link_local6": "fe80::1",
}


@cases.case
def addresses():
    """A rule that allows a literal address does not make it dialled; only
    `hosts' leads to loopback."""
    with StandinOrigin() as origin:
        names = ", ".join(f'"{a}"' for a in ADDRESSES.values())
        with Gate(f"allow host {{ {names} }} port {origin.port}",
                  authority().cert) as gate:
            for name, address in ADDRESSES.items():
                host = f"[{address}]" if ":" in address else address
                with gate.plain() as wire:
                    got = wire.ask(get(f"/{name}", f"{host}:{origin.port}"))
                assert got.status == 403, f"{name}: {got}"
                record = gate.final(path=f"/{name}")
                assert record["reason"].startswith("address_refused: ") and \
                    f" address {address} (" in record["reason"], record
                assert ('("to private" would allow it)' in
                        record["reason"]) == (name == "private"), record
                assert record["reason"] in json.loads(got.body)["reason"], got
                assert got.get("egress-decision") == \
                    "refuse, address_refused", f"{name}: {got}"
                assert record["kind"] == "request_failed", record
        assert not origin.connections, "one was dialled"


@cases.case
def to_private_is_not_loopback():
    """What a rule opens are private ranges, and never loopback."""
    with StandinOrigin() as origin:
        with Gate(f'allow host {{ "127.0.0.1", "::1" }} port {origin.port} '
                  "to private", authority().cert) as gate:
            for host in ("127.0.0.1", "[::1]"):
                with gate.plain() as wire:
                    got = wire.ask(get("/", f"{host}:{origin.port}"))
                assert got.status == 403, got
                assert b"address_refused" in got.body, got
        assert not origin.connections, "one was dialled"


cases.main()
