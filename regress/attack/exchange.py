#!/usr/bin/python3
# SPDX-License-Identifier: ISC

"""What a hostile client or origin does to one exchange, between versions of
HTTP, across a reload, at the moment when something ends.  Each of these was a
way through, or a way to stop the gate."""

import base64
import ctypes
import os
import pathlib
import shutil
import signal
import struct
import sys
import threading

import h2.exceptions

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases  # noqa: E402
from daemon import WAIT_S, alive, until  # noqa: E402
from gate import GOOD, Broken, Gate, Pair, get, pair  # noqa: E402
from judge import ALLOW, DENY, Judge, Judged  # noqa: E402
from origin import authority  # noqa: E402
from procs import status  # noqa: E402
from standin_frames import (WINDOW_UPDATE, FrameOrigin, frame,  # noqa: E402
                            settings)
from standin_h2 import StandinClient  # noqa: E402
from standin_origin import StandinOrigin, answer  # noqa: E402

cases = Cases()


def tunnel(host, path="/ws"):
    return [(":method", "CONNECT"), (":protocol", "websocket"),
            (":scheme", "https"), (":authority", host), (":path", path),
            ("sec-websocket-version", "13")]


@cases.each(["close", "length"])
def request_behind_an_upgrade(framing):
    """Bytes for a tunnel that the origin does not open are not a request: it
    never sees them, whatever it would take them for."""
    heads = []

    def serve(connection):
        while True:
            heads.append(connection.request()[0].split(b"\r\n")[0])
            if framing == "close":
                connection.send(b"HTTP/1.1 200 OK\r\n\r\nno")
                return
            connection.send(answer())

    with pair(serve, rule='method GET path "/ws"') as both, \
            StandinClient(both.gate, both.host()) as client:
        refused = client.request("/secret", method="DELETE")
        assert refused.head() == 403
        stream = client.ask(tunnel(both.host()), False)
        stream.send(f"DELETE /secret HTTP/1.1\r\nHost: {both.host()}"
                    "\r\n\r\n".encode())
        # A 2xx would mean that there is a tunnel: RFC 8441, 5.
        assert stream.head() == 502, stream.head()
        final = both.gate.final(path="/ws")
        assert final["reason"] == "stream_broken", final
        assert heads == [b"GET /ws HTTP/1.1"], heads


def unread(port):
    """Whether something has come from there that nobody has read."""
    rows = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
    return any(int(row.split()[2].split(":")[1], 16) == port and
               int(row.split()[4].split(":")[1], 16) > 0 for row in rows)


@cases.each(["trailers", "window"])
def reset_in_an_upload(how):
    """The origin breaks the stream of a WebSocket just as the client sends:
    that is the end of the one, and of nothing else."""
    key = base64.b64encode(bytes(range(16))).decode()
    ask = ("Connection: Upgrade\r\nUpgrade: websocket\r\n"
           f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n")
    streams = []

    def serve(stream):
        if stream.head[":method"] != "CONNECT":
            stream.answer()
            return
        stream.headers(200, [])
        streams.append(stream)

    with FrameOrigin(serve, authority().leaf(GOOD),
                     settings(streams=100, connect=1)) as origin, \
            Gate(f'allow host "{GOOD}" port {origin.port}',
                 authority().cert, "") as gate:
        both = Pair(origin, gate, True)
        engine = gate.engine()
        with both.open() as other, both.open() as wire:
            assert other.ask(both.get("/")).status == 200
            assert wire.ask(both.get("/ws", ask)).status == 101
            wire.send(b"hello")
            until("it is open", lambda: streams and
                  bytes(streams[0].body) == b"hello")
            # Both are there to be read when it goes on.
            os.kill(engine, signal.SIGSTOP)
            until("it has stopped", lambda: "T" in status(engine)["State"])
            if how == "trailers":
                streams[0].headers(None, [("x", "y")])
            else:
                origin.peers[0].send(frame(WINDOW_UPDATE, 0, streams[0].id,
                                           struct.pack(">I", 0x7fffffff)))
            until("it has come", lambda: unread(origin.port))
            wire.send(b"x" * 60000)
            os.kill(engine, signal.SIGCONT)
            assert gate.final(path="/ws")["kind"] == "request_failed"
            assert alive(engine) and gate.engine() == engine
            assert other.ask(both.get("/")).status == 200


def long_head(connection):
    """A head that alone is more than may wait, and a few bytes behind it."""
    while True:
        connection.request()
        pad = b"".join(b"X-%d: %s\r\n" % (i, b"y" * 4000) for i in range(5))
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n" + pad +
                        b"\r\nhello")


@cases.each(["tls", "plain"])
def rest_behind_a_long_head(transport):
    """What has been read and could not be passed on is not forgotten."""
    with pair(long_head, tls=transport == "tls") as both, both.open() as wire:
        assert wire.ask(both.get("/")).body == b"hello"


@cases.case
def rest_for_a_small_window():
    """The same for chunks, to a client of HTTP/2 that takes little at once."""
    size, count = 8000, 20

    def serve(connection):
        while True:
            connection.request()
            connection.send(
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" +
                b"%x\r\n%s\r\n" % (size, b"x" * size) * count +
                b"0\r\n\r\n")

    with pair(serve) as both, \
            StandinClient(both.gate, both.host(), window=65535) as client:
        for number in range(4):
            stream = client.request(f"/{number}")
            assert stream.head() == 200
            assert len(stream.body()) == size * count


@cases.each([0, 8])
def given_up(code):
    """A client that resets a stream has no more to do with it, with whichever
    code: the request ends, and its place is free for another."""
    go = threading.Event()

    def serve(connection):
        while True:
            connection.request()
            if not go.wait(WAIT_S):
                return
            connection.send(answer())

    with pair(serve) as both, \
            StandinClient(both.gate, both.host()) as client:
        for number in range(150):
            client.request(f"/{number}").reset(code)
        until("all have ended", lambda: len(both.gate.finals()) == 150)
        assert {f["reason"] for f in both.gate.finals()} <= {
            "client_left", "stream_broken"}
        go.set()


@cases.each(["client", "window"])
def rapid_reset(by):
    """Streams that are opened to be reset, by the client's own hand or by
    making us do it: a connection for that is cut."""
    def serve(connection):
        while b"/x" not in connection.request()[0]:
            connection.send(answer())
        connection.more()

    with pair(serve) as both, \
            StandinClient(both.gate, both.host()) as client:
        assert client.fetch("/warm").status == 200
        for number in range(2000):
            if client.gone:
                break
            try:
                with client.lock:
                    stream = client.request("/x")
                    if by == "client":
                        stream.reset(8)
                    else:
                        client.out += frame(WINDOW_UPDATE, 0, stream.number,
                                            struct.pack(">I", 0x7fffffff))
                        client.flush()
                client.wait("the end of it",
                            lambda: client.gone or stream.lost())
            except (OSError, Broken, h2.exceptions.ProtocolError):
                break
        client.wait("the end", lambda: client.gone)
        until("a record says why", lambda: [
            r for r in both.gate.records()
            if r["kind"] == "connection_refused" and r["reason"] == "quota"])


@cases.case
def body_limit_by_reload():
    """A limit that comes with new rules holds for what is under way, as soon
    as it is asked about again: what has been sent by then counts.  The origin
    does not answer, or that might be over before the engine has asked."""
    def silent(connection):
        while True:
            connection.request()

    with pair(silent, tls=False) as both, both.open() as wire:
        wire.send(f"POST /up HTTP/1.1\r\nHost: {both.host()}\r\n"
                  "Transfer-Encoding: chunked\r\n\r\n"
                  "5\r\nhello\r\n".encode())
        until("some of it has arrived",
              lambda: both.origin.got().endswith(b"hello\r\n"))
        both.gate.reload(f'allow host "{GOOD}" port {both.origin.port} '
                         'body 1K')
        wire.send(b"2710\r\n" + b"z" * 10000 + b"\r\n0\r\n\r\n")
        assert wire.answer().status == 413
        final = both.gate.final(path="/up")
        assert final["reason"] == "body_limit", final


@cases.each(["ticket", "none"])
def ticket_of_old_trust(late):
    """An origin that is trusted no more hands out a ticket for later: it has
    to be verified like any other all the same."""
    libssl = ctypes.CDLL("libssl.so.3")
    libssl.SSL_new_session_ticket.argtypes = [ctypes.c_void_p]
    arrived, go = threading.Event(), threading.Event()

    def serve(connection):
        while True:
            head, _ = connection.request()
            if b"/hold" in head:
                arrived.set()
                go.wait(WAIT_S)
                if late == "ticket":
                    # Python has no name for it.
                    inside = id(connection.sock._sslobj) + 24
                    assert libssl.SSL_new_session_ticket(
                        ctypes.c_void_p.from_address(inside).value) == 1
            connection.send(answer())

    folder = pathlib.Path(authority().cert).parent
    trust = folder / f"trust-{late}.pem"
    shutil.copy(authority().cert, trust)
    with StandinOrigin(serve, authority().leaf(GOOD)) as origin:
        origin.context.num_tickets = 0
        rules = f'allow host "{GOOD}" port {origin.port}'
        with Gate(rules, str(trust)) as gate:
            both = Pair(origin, gate, True)
            with both.open() as wire:
                wire.send(both.get("/hold"))
                assert arrived.wait(WAIT_S)
                shutil.copy(authority("another").cert, trust)
                gate.reload(rules)
                go.set()
                assert wire.answer().status == 200
            with both.open() as wire:
                assert wire.ask(both.get("/after")).status == 502
            final = gate.final(path="/after")
            assert final["reason"].startswith("upstream_untrusted"), final


# ---- across a reload --------------------------------------------------------

RELOADS = 60        # one in fifteen was enough


@cases.case
def decider_of_old_rules():
    """A question that is asked again under new rules goes to the decider that
    these name, and never to the one that the old ones meant."""
    rule = f'decide "judge" host "{GOOD}" cache request timeout 60s'
    with Judge(None) as now, Judge(None) as later, \
            StandinOrigin(None) as origin, \
            Gate(rule, more=now.conf(), hosts={GOOD: "127.0.0.1"}) as gate:
        for number in range(RELOADS):
            now.says(None)
            later.says(DENY)
            with gate.plain() as wire:
                asked = len(now.questions)
                wire.send(get(f"/{number}", f"{GOOD}:{origin.port}"))
                until("it is asked", lambda: len(now.questions) > asked)
                # Whatever it is asked from now on.
                now.says(lambda _: ALLOW)
                gate.more = later.conf()
                gate.reload(rule)
                assert wire.answer().status == 403, number
            now, later = later, now
        assert not origin.got()


@cases.case
def address_of_old_rules():
    """Nor is a connection made to where the old ones meant."""
    with Judge(None) as judge, StandinOrigin(None) as one, \
            StandinOrigin(None, address="127.0.0.2", port=one.port) as two, \
            Gate("", more=judge.conf(), hosts={GOOD: "127.0.0.1"}) as gate:
        for number in range(RELOADS):
            gate.hosts = f'"{GOOD}" 127.0.0.1'
            gate.reload(f'decide "judge" host "{GOOD}" cache off timeout 60s')
            with gate.plain() as wire:
                asked = len(judge.questions)
                wire.send(get(f"/{number}", f"{GOOD}:{one.port}"))
                until("it is asked", lambda: len(judge.questions) > asked)
                gate.hosts = f'"{GOOD}" 127.0.0.2'
                gate.reload(f'allow host "{GOOD}" port {one.port}')
                assert wire.answer().status == 200
            assert not one.got() and two.got(), number


# ---- what is asked ----------------------------------------------------------

@cases.each(["request", "off"])
def upgrade_is_no_get(cache):
    """What goes through a tunnel is a body of a length that nobody knows, to
    the decider and to what is kept of its answers."""
    def decide(question):
        return ALLOW if question["request"]["body_bytes"] == 0 else DENY

    with Judge(decide) as judge, StandinOrigin(None) as origin, \
            Gate(f'decide "judge" host "{GOOD}" cache {cache}',
                 more=judge.conf(), hosts={GOOD: "127.0.0.1"}) as gate:
        both = Judged(origin, gate, False)
        assert both.get("/ws") == 200
        with both.open() as wire:
            assert wire.ask(get("/ws", both.host(), "Connection: Upgrade\r\n"
                                "Upgrade: any\r\n")).status == 403
        assert judge.questions[-1]["request"]["body_bytes"] is None


cases.main()
