#!/usr/bin/python3
# SPDX-License-Identifier: ISC

"""Many streams of one connection: each is judged for itself, under its own
name, by the rules of its time; they share what they may and no more."""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases  # noqa: E402
from check import MIB, broken, figures, one_final_each  # noqa: E402
from daemon import SANITIZED, WAIT_S, until  # noqa: E402
from gate import EVIL, GOOD, Broken  # noqa: E402
from standin_any import mixed  # noqa: E402
from standin_h2 import CODES, Reset, StandinClient, ok  # noqa: E402

cases = Cases()
ORIGINS = ("h1", "h2")


class Held:
    """An origin that answers when it is let, except /free."""

    def __init__(self):
        self.go = threading.Event()
        self.at_once = self.most = 0
        self.lock = threading.Lock()

    def serve(self, stream):
        stream.body()
        with self.lock:
            self.at_once += 1
            self.most = max(self.most, self.at_once)
        try:
            if "free" not in stream.path:
                assert self.go.wait(WAIT_S)
            stream.answer(200, [("content-length", "2")])
            stream.send(b"ok", True)
        finally:
            with self.lock:
                self.at_once -= 1


def h2_to(server, serve=ok, **how):
    return mixed(f"h2-{server}", serve, **how)


# ---- names ------------------------------------------------------------------

@cases.each(ORIGINS)
def other_authority(server):
    """A connection that was settled on one name is for that name: a stream
    for another, though allowed, gets 421, a record, and never the origin; the
    other streams go on."""
    with h2_to(server, names=(GOOD, EVIL)) as both, both.connect() as client:
        first = client.request("/1")
        second = client.request("/2", host=both.host(EVIL))
        third = client.request("/3")
        assert (first.head(), second.head(), third.head()) == (200, 421, 200)
        assert first.body() == third.body() == b"ok"
        assert second.get("egress-decision") == "refuse, name_mismatch"
        record = both.gate.final(path="/2")
        assert (record["kind"], record["reason"]) == (
            "request_denied", "name_mismatch"), record
        assert record["request"]["host"] == EVIL, record
        asked = sorted(s.path for s in both.asked())
        assert asked == ["/1", "/3"], asked
        # On a connection of its own it is served.
        with StandinClient(both.gate, both.host(EVIL), EVIL) as honest:
            assert honest.fetch("/4").whole == b"ok"
        one_final_each(both.gate, 4)


@cases.case
def other_ways_to_say_it():
    """Ports, case and Host beside :authority."""
    with h2_to("h1", names=(GOOD, EVIL)) as both, both.connect() as client:
        host, evil = both.host(), both.host(EVIL)
        for number, (authority, fields, want) in enumerate((
                (host.upper(), [], 200), (host, [("host", host)], 200),
                (host, [("host", host.upper())], 200),
                (host, [("host", evil)], 421), (evil, [("host", host)], 421),
                (evil, [("host", evil)], 421), (EVIL, [], 421),
                (host.replace(GOOD, GOOD + "."), [], 200))):
            got = client.fetch(f"/{number}", host=authority, fields=fields)
            assert got.status == want, f"{authority} {fields}: {got.status}"
        for asked in both.asked():
            assert asked.get("host") == host, asked.fields


# ---- verdicts ---------------------------------------------------------------

@cases.each(ORIGINS)
def third_stream_denied(server):
    """A rule on the path denies that stream only, wherever it stands."""
    with h2_to(server, rule='path "/ok/**"') as both, \
            both.connect() as client:
        paths = ["/ok/1", "/ok/2", "/no/3", "/ok/4", "/ok%2F..%2Fno",
                 "/ok/../no", "/ok/7"]
        streams = [client.request(p) for p in paths]
        got = [s.head() for s in streams]
        assert got == [200, 200, 403, 200, got[4], got[5], 200], got
        assert got[4] in (400, 403) and got[5] in (400, 403), got
        assert streams[2].get("egress-decision") == "refuse, default_deny"
        record = both.gate.final(path="/no/3")
        assert (record["kind"], record["reason"]) == (
            "request_denied", "default_deny"), record
        asked = [s.path for s in both.asked()]
        assert sorted(asked) == ["/ok/1", "/ok/2", "/ok/4", "/ok/7"], asked


@cases.each(ORIGINS)
def denied_with_a_body(server):
    """The body of a denied request goes nowhere, and the connection lives."""
    with h2_to(server, rule="method GET") as both, both.connect() as client:
        for size in (10, 100000, 3 << 20):
            stream = client.request(f"/{size}", method="POST", end=False)
            with contextlib.suppress(Broken):
                stream.send(bytes(size), True)
            assert stream.head() == 403, stream.status
        assert client.fetch("/get").whole == b"ok"
        assert [s.path for s in both.asked()] == ["/get"]
        one_final_each(both.gate, 4)


@cases.case
def curl_is_told():
    """A reset after the answer, as if to say that the rest is not needed, is
    an error to curl: it would not know that it was refused."""
    with h2_to("h1", rule="method GET") as both:
        for size in (4, 3 << 20) * 5:
            done = subprocess.run(
                ["curl", "-sS", "--http2", "--cacert", both.gate.ca,
                 "--noproxy", "*", "--connect-to",
                 f"::127.0.0.1:{both.gate.port(15001)}", "-T", "-", "-w",
                 "%{http_code}", "-o", os.devnull,
                 f"https://{both.host()}/{size}"], input=bytes(size),
                capture_output=True, timeout=WAIT_S, check=False)
            assert (done.returncode, done.stdout) == (0, b"403"), done


@cases.case
def refuse_with_reset():
    """Not a byte for an answer: the stream is reset, the others go on."""
    with h2_to("h1", rule='path "/ok"', settings="refuse with reset") as both:
        with both.connect() as client:
            stream = client.request("/no")
            stream.gone()
            assert stream.status is None and not stream.data
        with both.connect() as client:
            assert client.fetch("/ok").whole == b"ok"


@cases.each(ORIGINS)
def slow_policyd(server):
    """While no verdict comes nothing is dialled, requests that need none go
    on, and each gets its own when it comes."""
    with h2_to(server, rule='path "/ok/**"') as both, \
            both.connect() as client:
        assert client.fetch("/ok/0").whole == b"ok"
        policyd = both.gate.processes()["policyd"]
        os.kill(policyd, signal.SIGSTOP)
        try:
            streams = [client.request(f"/{'ok' if n % 3 else 'no'}/{n}")
                       for n in range(1, 31)]
            client.ping()
            client.wait("a pong", lambda: client.pongs == 1)
            assert not any(s.status for s in streams)
            assert len(both.asked()) == 1, "asked without a verdict"
            # One that is given up gets its record all the same.
            streams[3].reset()
        finally:
            os.kill(policyd, signal.SIGCONT)
        for number, stream in enumerate(streams, 1):
            if number != 4:
                assert stream.head() == (200 if number % 3 else 403), number
        one_final_each(both.gate, 31)
        record = both.gate.final(path="/ok/4")
        assert (record["kind"], record["reason"]) == (
            "request_failed", "client_left"), record


# ---- how many ---------------------------------------------------------------

@cases.each(ORIGINS)
def hundred_at_once(server):
    """A hundred streams, all open before the first is answered."""
    held = Held()
    with h2_to(server, held.serve) as both, both.connect() as client:
        client.wait("settings", lambda: 3 in client.settings)
        assert client.settings[3] == 100, client.settings
        streams = [client.request(f"/{n}") for n in range(100)]
        until("all are at the origin", lambda: held.at_once == 100)
        held.go.set()
        for number, stream in enumerate(streams):
            assert stream.head() == 200 and stream.body() == b"ok", number
        one_final_each(both.gate, 100)
        print(f"# {server}: {len(both.origin.connections)} connections to "
              f"the origin, {both.gate.memory()} KiB")
        if server == "h2":
            # Nobody knew what it speaks, and so they waited to hear.
            for number in range(100, 300):
                assert client.fetch(f"/{number}").whole == b"ok"
            assert len(both.origin.connections) == 1, \
                len(both.origin.connections)
        assert both.gate.memory() < 32 * 1024


@cases.case
def limit():
    """More than that: refused, and nothing of it is sent on; those that are
    open are not disturbed."""
    held = Held()
    with h2_to("h1", held.serve) as both, both.connect() as client:
        client.wait("settings", lambda: 3 in client.settings)
        streams = [client.request(f"/{n}") for n in range(100)]
        until("all are at the origin", lambda: held.at_once == 100)
        # The library would not do it.
        client.h2.remote_settings[CODES.MAX_CONCURRENT_STREAMS] = 10000
        client.h2.remote_settings.acknowledge()
        more = client.request("/more")
        client.wait("the end of it", more.lost)
        held.go.set()
        assert not [s for s in both.asked() if s.path == "/more"]
        if not client.gone:
            assert more.code == 7, more.code
            for stream in streams:
                assert stream.head() == 200
        else:
            until("records of all", lambda: len(both.gate.finals()) == 100)


@cases.each(ORIGINS)
def shared_connections(server):
    """Clients come and go; connections to the origin are used again."""
    count = 10 if SANITIZED else 40
    with h2_to(server) as both:
        for number in range(count):
            with both.connect() as client:
                assert client.fetch(f"/{number}/a").whole == b"ok"
                assert client.fetch(f"/{number}/b").whole == b"ok"
        one_final_each(both.gate, 2 * count)
        assert len(both.origin.connections) == 1, \
            len(both.origin.connections)


@cases.case
def few_streams_at_the_origin():
    """An origin that takes four at once is given no more on a connection."""
    held = Held()
    with h2_to("h2", held.serve,
               settings_h2=[(CODES.MAX_CONCURRENT_STREAMS, 4)]) as both, \
            both.connect() as client:
        assert client.fetch("/free").whole == b"ok"
        streams = [client.request(f"/{n}") for n in range(40)]
        until("some are at the origin", lambda: held.at_once >= 4)
        held.go.set()
        for stream in streams:
            assert stream.head() == 200 and stream.body() == b"ok"
        for peer in both.origin.peers:
            assert not peer.broken, peer.broken
        one_final_each(both.gate, 41)
        print(f"# {len(both.origin.connections)} connections to the origin")


# ---- the end of connections -------------------------------------------------

@cases.each(ORIGINS)
def client_says_goodbye(server):
    """GOAWAY from a client: what it has asked for is finished, then the
    connection is closed."""
    held = Held()
    with h2_to(server, held.serve) as both, both.connect() as client:
        streams = [client.request(f"/{n}") for n in range(10)]
        until("all are at the origin", lambda: held.at_once == 10)
        with client.lock:
            # The library would forget the streams.
            client.out += b"\0\0\x08\x07\0\0\0\0\0" + bytes(8)
            client.flush()
        held.go.set()
        for stream in streams:
            assert stream.head() == 200 and stream.body() == b"ok"
        client.wait("the gate closes", lambda: client.gone)
        one_final_each(both.gate, 10)
        assert {r["kind"] for r in both.gate.finals()} == {"request_closed"}


@cases.each(ORIGINS)
def client_just_leaves(server):
    """All its requests fail, each with its record."""
    held = Held()
    with h2_to(server, held.serve) as both:
        with both.connect() as client:
            for number in range(20):
                client.request(f"/{number}")
            until("all are at the origin", lambda: held.at_once == 20)
        until("20 records", lambda: len(both.gate.finals()) == 20)
        for record in both.gate.finals():
            broken(record)
        held.go.set()
        with both.connect() as client:
            assert client.fetch("/next").whole == b"ok"
        one_final_each(both.gate, 21)


@cases.case
def idle():
    """A connection without requests is told goodbye and closed; one with a
    request that waits for its answer is not."""
    held = Held()
    with h2_to("h1", held.serve, more="timeout idle 1s") as both, \
            both.connect() as quiet, both.connect() as waiting:
        assert quiet.fetch("/free").whole == b"ok"
        stream = waiting.request("/wait")
        quiet.wait("the end", lambda: quiet.gone)
        assert quiet.goaway == 0, quiet.goaway
        threading.Event().wait(1.5)
        held.go.set()
        assert stream.head() == 200


# ---- new rules --------------------------------------------------------------

@cases.each(ORIGINS)
def reload(server):
    """Running streams are judged again: what is no longer allowed is cut,
    the rest of the same connection goes on."""
    go = threading.Event()

    def serve(stream):
        stream.body()
        if "begun" in stream.path:
            stream.answer(200)
            stream.send(b"half")
        assert go.wait(WAIT_S)
        if "begun" not in stream.path:
            stream.answer(200)
        stream.send(b"full", True)

    with h2_to(server, serve) as both, both.connect() as client:
        paths = ("/keep/begun", "/drop/begun", "/keep/wait", "/drop/wait")
        streams = {p: client.request(p) for p in paths}
        for path in paths[:2]:
            assert streams[path].head() == 200
            assert streams[path].read() == b"half"
        until("all are at the origin", lambda: len(both.asked()) == 4)
        both.gate.reload(f'allow host "{GOOD}" port {both.origin.port} '
                         'path "/keep/**"')
        assert streams["/drop/wait"].head() == 403
        assert streams["/drop/begun"].gone() is not None, "not reset"
        go.set()
        assert streams["/keep/begun"].body() == b"full"
        assert streams["/keep/wait"].head() == 200
        assert streams["/keep/wait"].body() == b"full"
        for path in ("/drop/begun", "/drop/wait"):
            broken(both.gate.final(path=path), "default_deny")
        for path in ("/keep/begun", "/keep/wait"):
            assert both.gate.final(path=path)["kind"] == "request_closed"
        assert client.fetch("/keep/late").whole == b"full"
        assert client.fetch("/drop/late").status == 403
        one_final_each(both.gate, 6)


@cases.each(ORIGINS)
def reload_in_traffic(server):
    """Rules change while streams come and go: nothing is lost, and nothing
    that was never allowed gets through."""
    with h2_to(server, rule='path "/a/**"') as both, \
            both.connect() as client:
        rules = [f'allow host "{GOOD}" port {both.origin.port} path '
                 f'"/{p}/**"' for p in ("a", "b")]
        stop = threading.Event()
        asked = [0]

        def ask():
            while not stop.is_set():
                for path in ("/a/", "/b/", "/c/"):
                    # One whose answer had begun is cut.
                    with contextlib.suppress(Reset):
                        got = client.fetch(f"{path}{asked[0]}")
                        assert got.status in (200, 403), got.status
                    asked[0] += 1

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        for number in range(10):
            before = asked[0]
            both.gate.reload(rules[number % 2])
            until("requests under these", lambda: asked[0] > before + 6)
        stop.set()
        thread.join(WAIT_S)
        one_final_each(both.gate, asked[0])
        assert not [s for s in both.asked() if s.path.startswith("/c")]


# ---- how long ---------------------------------------------------------------

@cases.each(ORIGINS)
def fair(server):
    """A stream with a large answer does not starve small ones beside it."""
    piece = bytes(1 << 20)

    def serve(stream):
        stream.body()
        stream.answer(200)
        if stream.path == "/large":
            with contextlib.suppress(Broken):
                while True:
                    stream.send(piece)
        stream.send(b"ok", True)

    with h2_to(server, serve) as both, both.connect() as client:
        stop = threading.Event()
        large = client.request("/large")
        large.head()

        def drain():
            with contextlib.suppress(Broken):
                while not stop.is_set():
                    large.read()

        thread = threading.Thread(target=drain, daemon=True)
        thread.start()
        times = []
        for number in range(30):
            begin = time.monotonic()
            assert client.fetch(f"/{number}").whole == b"ok"
            times.append((time.monotonic() - begin) * 1000)
        stop.set()
        large.reset()
        thread.join(WAIT_S)
        median, most = figures(times)
        print(f"# {server}: beside a large one {median:.1f} ms, "
              f"p99 {most:.1f} ms")
        assert most < 2000, f"{most:.0f} ms"


# What a client in a rush says, and what its origin answers first.
RUSH = {
    "download": ("GET / HTTP/1.1\r\n",
                 f"HTTP/1.1 200 \r\nContent-Length: {1 << 50}\r\n\r\n"),
    "upload": (f"POST / HTTP/1.1\r\nContent-Length: {1 << 50}\r\n", ""),
    "tunnel": ("GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: x\r\n",
               "HTTP/1.1 101 \r\nConnection: Upgrade\r\n"
               "Upgrade: x\r\n\r\n"),
}
PIECE = 64 * MIB        # of what they move; the share of a turn is one MiB

# Both, in the clear and in a process of their own.  They never make the gate
# wait: they copy no byte of what it has to copy and to hash.
RUSHING = r"""
import mmap, os, socket, sys, threading

way, request, answer = sys.argv[1:4]
port, listener, counter, size = map(int, sys.argv[4:])
moved = mmap.mmap(counter, 8)
piece = os.memfd_create("piece")
os.posix_fallocate(piece, 0, size)

def pour(sock):
    while True:
        os.sendfile(sock.fileno(), piece, 0, size)

def drain(sock):
    room, total = bytearray(1 << 20), 0
    while count := sock.recv_into(room, 0, socket.MSG_TRUNC):
        total += count
        moved[:] = total.to_bytes(8, "little")

def serve():
    sock, _ = socket.socket(fileno=listener).accept()
    sock.recv(4096)
    sock.sendall(answer.encode())
    (pour if way == "download" else drain)(sock)

threading.Thread(target=serve, daemon=True).start()
sock = socket.create_connection(("127.0.0.1", port))
sock.sendall(request.encode())
if way == "tunnel":
    sock.recv(4096)
(drain if way == "download" else pour)(sock)
"""


class Rush:
    def __init__(self, way):
        self.way = way
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.counter = os.memfd_create("moved")
        os.ftruncate(self.counter, 8)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        os.close(self.counter)

    @contextlib.contextmanager
    def through(self, gate):
        request, first = RUSH[self.way]
        process = subprocess.Popen(
            [sys.executable, "-c", RUSHING, self.way,
             f"{request}Host: {GOOD}:{self.port}\r\n\r\n", first,
             *map(str, (gate.port(15001), self.listener.fileno(),
                        self.counter, PIECE))],
            pass_fds=(self.listener.fileno(), self.counter))
        try:
            until("it is fast", lambda: self.moved() > PIECE)
            yield
        finally:
            process.kill()
            process.wait()

    def moved(self):
        return int.from_bytes(os.pread(self.counter, 8, 0), "little")


@cases.each(RUSH)
def beside_a_rush(way):
    """A connection for which there is always more to do has its share of the
    engine and no more: others wait for a turn.  What passes until then tells
    it, whoever else keeps this machine busy."""
    with Rush(way) as rush, h2_to("h1", settings=(
            f'allow host "{GOOD}" port {rush.port}\ncapture hash')) as both, \
            both.connect() as client, rush.through(both.gate):
        waits, begin, end = [], time.monotonic(), rush.moved() + 12 * PIECE
        while (before := rush.moved()) < end:
            pongs = client.pongs
            client.ping()
            client.wait("a pong", lambda: client.pongs > pongs)
            waits.append(rush.moved() - before)
            # Not in the way of those who are in a rush.
            time.sleep(0.01)
        took = time.monotonic() - begin
        median, most = figures(waits)
        print(f"# {way}: {12 * PIECE / took / MIB:.0f} MiB/s; "
              f"{median / MIB:.1f} MiB to a pong, p99 {most / MIB:.1f}")
        most = max(waits)
        assert most < 2 * PIECE, f"{most / MIB:.0f} MiB before a pong"


cases.main()
