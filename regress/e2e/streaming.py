#!/usr/bin/python3
# SPDX-License-Identifier: ISC

"""Messages that must not wait for each other: gRPC, WebSockets, events, long
polls, uploads that ask first.  How much later a message arrives than without
the gate is measured and told.

	SSE_SECONDS=60 e2e/streaming.py events"""

import asyncio
import contextlib
import os
import pathlib
import ssl
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases, Skip, run  # noqa: E402
from check import (MIB, digest, figures, noise, one_final_each)  # noqa: E402
from daemon import SANITIZED, WAIT_S, until  # noqa: E402
from gate import GOOD, Broken, Gate  # noqa: E402
from origin import Nginx, authority  # noqa: E402
from standin_any import MIXES, OneClient, mixed  # noqa: E402
from standin_h2 import CODES, StandinClient  # noqa: E402

cases = Cases()
SSE_S = float(os.environ.get("SSE_SECONDS", "10"))
PERIOD_S = 0.02
ADDED_MS = 5            # of a message, at the median
CONNECT = [(CODES.ENABLE_CONNECT_PROTOCOL, 1)]


class Direct:
    """The origin as it is without a gate; what clients want of a gate."""

    def __init__(self, both):
        self.both = both

    def context(self):
        made = ssl.create_default_context(cafile=str(authority().cert))
        made.set_alpn_protocols(["http/1.1"])
        return made

    def tls(self, name=GOOD, port=None, context=None):
        return self.both.gate.tls(name, port=self.both.origin.port,
                                  context=context or self.context())


class DirectPair:
    def __init__(self, both):
        self.gate, self.host = Direct(both), both.host


def straight(both):
    """A client of the origin's version, without the gate."""
    if both.server == "h2":
        return StandinClient(Direct(both), both.host())
    return OneClient(DirectPair(both))


def compare(what, through, without):
    """Seconds of both; the gate adds little."""
    (median, most), (median0, most0) = (
        figures([s * 1000 for s in times]) for times in (through, without))
    print(f"# {what}: {median:.2f} ms, p99 {most:.2f}; without the gate "
          f"{median0:.2f}, {most0:.2f}")
    if not SANITIZED:
        assert median - median0 < ADDED_MS, f"{median - median0:.1f} ms more"


# ---- gRPC -------------------------------------------------------------------

def message(data):
    return struct.pack(">BI", 0, len(data)) + data


class Messages:
    """The messages of a stream, one at a time."""

    def __init__(self, stream):
        self.stream, self.data = stream, b""

    def next(self):
        """None at the end."""
        while True:
            if len(self.data) >= 5:
                size = struct.unpack(">I", self.data[1:5])[0] + 5
                if len(self.data) >= size:
                    found, self.data = self.data[5:size], self.data[size:]
                    return found
            if not (more := self.stream.read()):
                assert not self.data, "half a message"
                return None
            self.data += more


def grpc_echo(stream):
    """Two messages for each that comes, at once; the status at the end."""
    stream.answer(200, [("content-type", "application/grpc")])
    messages, count = Messages(stream), 0
    while (data := messages.next()) is not None:
        count += 1
        stream.send(message(data))
        stream.send(message(data[::-1]))
    stream.end([("grpc-status", "0"), ("grpc-message", str(count))])


def grpc_call(client, path, count):
    """Message by message; the times that answers took."""
    stream = client.request(path, method="POST", end=False, fields=[
        ("content-type", "application/grpc"), ("te", "trailers")])
    assert stream.head() == 200
    messages, times = Messages(stream), []
    for number in range(count):
        data = noise(1 + number * 37 % 3000)
        begin = time.monotonic()
        stream.send(message(data))
        assert messages.next() == data
        times.append(time.monotonic() - begin)
        assert messages.next() == data[::-1]
    stream.end()
    assert messages.next() is None
    assert dict(stream.trailers) == {
        "grpc-status": "0", "grpc-message": str(count)}, stream.trailers
    return times


@cases.case
def grpc():
    """Both sides speak in turns, for as long as they like; the status comes
    in trailers."""
    with mixed("h2-h2", grpc_echo) as both, both.connect() as client, \
            straight(both) as without:
        compare("gRPC", grpc_call(client, "/pkg.Service/Echo", 500),
                grpc_call(without, "/direct", 500))
        record = both.gate.final(path="/pkg.Service/Echo")
        assert record["kind"] == "request_closed", record
        assert record["request"]["request_body"]["bytes"] * 2 == \
            record["request"]["response_body"]["bytes"], record


@cases.case
def grpc_many():
    """Many calls on one connection, each at its own pace."""
    errors = []
    with mixed("h2-h2", grpc_echo) as both, both.connect() as client:
        def call(number):
            try:
                grpc_call(client, f"/pkg.Service/{number}", 40)
            except Exception as error:      # told below
                errors.append(error)

        threads = [threading.Thread(target=call, args=(n,), daemon=True)
                   for n in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_S)
        assert not errors, errors[0]
        one_final_each(both.gate, 20)


@cases.case
def grpc_only_trailers():
    """An error that is a head and nothing else."""
    def serve(stream):
        stream.answer(200, [("content-type", "application/grpc"),
                            ("grpc-status", "12")], end=True)

    with mixed("h2-h2", serve) as both, both.connect() as client:
        stream = client.request("/none", method="POST", end=False)
        assert stream.head() == 200 and stream.get("grpc-status") == "12"
        assert stream.body() == b""
        with contextlib.suppress(Broken):
            stream.end()


# ---- WebSockets -------------------------------------------------------------

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
FRAGMENTED = [b"a" * 10, b"b" * 70000, b"c"]


def ws_frame(opcode, data, fin=True, mask=None):
    size = len(data)
    head = bytes([opcode | (0x80 if fin else 0)])
    bit = 0x80 if mask else 0
    if size < 126:
        head += bytes([size | bit])
    elif size < 65536:
        head += struct.pack(">BH", 126 | bit, size)
    else:
        head += struct.pack(">BQ", 127 | bit, size)
    if mask:
        key = (mask * (size // 4 + 1))[:size]
        data = (int.from_bytes(data, "big") ^ int.from_bytes(
            key, "big")).to_bytes(size, "big")
        head += mask
    return head + data


class Socket:
    """WebSocket frames on a stream; masked if we are the client."""

    def __init__(self, stream, client):
        self.stream, self.mask = stream, b"mask" if client else None
        self.data = b""

    def take(self, count):
        while len(self.data) < count:
            if not (more := self.stream.read()):
                raise Broken("the end")
            self.data += more
        taken, self.data = self.data[:count], self.data[count:]
        return taken

    def frame(self):
        first, second = self.take(2)
        size = second & 0x7f
        if size == 126:
            size = struct.unpack(">H", self.take(2))[0]
        elif size == 127:
            size = struct.unpack(">Q", self.take(8))[0]
        key = self.take(4) if second & 0x80 else None
        data = self.take(size)
        if key:
            key = (key * (size // 4 + 1))[:size]
            data = (int.from_bytes(data, "big") ^ int.from_bytes(
                key, "big")).to_bytes(size, "big")
        return bool(first & 0x80), first & 15, data

    def send(self, opcode, data, fin=True):
        self.stream.send(ws_frame(opcode, data, fin, self.mask))

    def message(self):
        """The next, whole, with its opcode; control frames between."""
        fin, kind, data = self.frame()
        while not fin:
            fin, opcode, more = self.frame()
            assert opcode == 0, opcode
            data += more
        return kind, data


def ws_by_hand(stream):
    """An origin that echoes, over RFC 8441."""
    if dict(stream.all).get(":protocol") != "websocket":
        stream.answer(400, end=True)
        return
    assert "sec-websocket-key" not in dict(stream.fields), stream.fields
    stream.answer(200)
    socket = Socket(stream, False)
    while True:
        kind, data = socket.message()
        socket.send(PONG if kind == PING else kind, data)
        if kind == CLOSE:
            stream.end()
            return


def library():
    try:
        import websockets
    except ImportError:
        raise Skip("python3-websockets is not installed") from None
    return websockets


class Echo:
    """An origin by the library, over HTTP/1, in a thread of its own."""

    def __init__(self):
        self.library = library()
        self.loop = asyncio.new_event_loop()
        self.ready = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        assert self.ready.wait(WAIT_S), "no server"

    def run(self):
        asyncio.set_event_loop(self.loop)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*authority().leaf(GOOD))
        context.set_alpn_protocols(["http/1.1"])

        async def echo(socket, *_):
            async for data in socket:
                await socket.send(data)

        async def serve():
            server = await self.library.serve(
                echo, "127.0.0.1", 0, ssl=context, max_size=None)
            self.port = server.sockets[0].getsockname()[1]
            self.ready.set()

        self.loop.run_until_complete(serve())
        self.loop.run_forever()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(WAIT_S)


@contextlib.contextmanager
def ws_origin(version):
    """A gate before an echo of that version: the gate, and the host."""
    if version == "h2":
        with mixed("h2-h2", ws_by_hand, settings_h2=CONNECT) as both:
            # Whether an origin allows it is known once it was spoken to.
            with both.connect() as client:
                assert client.fetch("/first").status == 400
            yield both.gate, both.host()
            assert len(both.origin.connections) == 1
        return
    with Echo() as origin, Gate(f'allow host "{GOOD}" port {origin.port}',
                                authority().cert) as gate:
        yield gate, f"{GOOD}:{origin.port}"


def ws_ask_h2(gate, host, rounds):
    """By hand over HTTP/2; the times of the echoes."""
    times = []
    with StandinClient(gate, host) as client:
        client.wait("settings", lambda: client.settings.get(8) == 1)
        stream = client.ask([(":method", "CONNECT"),
                             (":protocol", "websocket"), (":scheme", "https"),
                             (":authority", host), (":path", "/ws"),
                             ("sec-websocket-version", "13")], False)
        assert stream.head() == 200, stream.status
        assert stream.get("sec-websocket-accept") is None, stream.fields
        socket = Socket(stream, True)
        for number in range(rounds):
            begin = time.monotonic()
            socket.send(TEXT, b"hello %d" % number)
            assert socket.message() == (TEXT, b"hello %d" % number)
            times.append(time.monotonic() - begin)
        for number, piece in enumerate(FRAGMENTED):
            socket.send(0 if number else BINARY, piece,
                        number == len(FRAGMENTED) - 1)
        assert socket.message() == (BINARY, b"".join(FRAGMENTED))
        socket.send(PING, b"there?")
        assert socket.message() == (PONG, b"there?")
        socket.send(CLOSE, struct.pack(">H", 1000))
        assert socket.message()[0] == CLOSE
        # The gate may say that it wants no more of it.
        with contextlib.suppress(Broken):
            stream.end()
        # Who leaves before the origin has ended it breaks it off.
        client.wait("its end", lambda: stream.ended or stream.lost())
    return times


def ws_ask_h1(gate, host, rounds):
    """By the library over HTTP/1."""
    websockets = library()

    async def talk():
        times = []
        context = gate.context()
        async with websockets.connect(
                f"wss://{host}/ws", ssl=context, server_hostname=GOOD,
                host="127.0.0.1", port=gate.port(15001), max_size=None,
                compression=None) as socket:
            for number in range(rounds):
                begin = time.monotonic()
                await socket.send(f"hello {number}")
                assert await socket.recv() == f"hello {number}"
                times.append(time.monotonic() - begin)
            await socket.send(FRAGMENTED)
            assert await socket.recv() == b"".join(FRAGMENTED)
            await asyncio.wait_for(await socket.ping(b"there?"), WAIT_S)
        assert socket.close_code == 1000, socket.close_code
        return times

    return asyncio.run(asyncio.wait_for(talk(), 3 * WAIT_S))


@cases.each(MIXES)
def websocket(mix):
    """Echoes, fragments, a ping and a proper end; its own verdict and
    record."""
    client, server = mix.split("-")
    with ws_origin(server) as (gate, host):
        asker = ws_ask_h2 if client == "h2" else ws_ask_h1
        times = asker(gate, host, 200)
        median, most = figures([t * 1000 for t in times])
        print(f"# {mix}: an echo in {median:.2f} ms, p99 {most:.2f}")
        record = gate.final(path="/ws")
        assert record["kind"] == "request_closed", record
        assert record["request"]["protocol"] == {
            "h1": "http/1.1", "h2": "h2"}[client], record
        assert record["request"]["method"] == "GET", record
        assert record["request"]["response_status"] in (101, 200), record
        assert record["request"]["response_body"]["bytes"] > 70000, record
        one_final_each(gate, 1 + (server == "h2"))


@cases.case
def websocket_denied():
    """Without a verdict no socket, over HTTP/2 either."""
    with Echo() as origin, Gate(
            f'allow host "{GOOD}" port {origin.port} path "/ok"',
            authority().cert) as gate:
        host = f"{GOOD}:{origin.port}"
        with StandinClient(gate, host) as client:
            stream = client.ask([
                (":method", "CONNECT"), (":protocol", "websocket"),
                (":scheme", "https"), (":authority", host), (":path", "/ws"),
                ("sec-websocket-version", "13")], False)
            assert stream.head() == 403, stream.status
        assert gate.final(path="/ws")["kind"] == "request_denied"


# ---- events -----------------------------------------------------------------

@cases.each(MIXES)
def events(mix):
    """Server-sent events for a while: each is there before the next is
    sent, and hardly later than without the gate."""
    count = int(SSE_S / PERIOD_S)
    sent = {"/through": [], "/without": []}

    def serve(stream):
        stream.answer(200, [("content-type", "text/event-stream")])
        for number in range(count):
            threading.Event().wait(PERIOD_S)
            sent[stream.path].append(time.monotonic())
            stream.send(b"data: %d\n\n" % number)
        stream.end()

    def listen(client, path, came):
        stream = client.request(path)
        assert stream.head() == 200
        data = b""
        while more := stream.read():
            data += more
            while b"\n\n" in data:
                event, _, data = data.partition(b"\n\n")
                assert event == b"data: %d" % len(came), event
                came.append(time.monotonic())

    with mixed(mix, serve) as both, both.connect() as client, \
            straight(both) as without:
        came = {"/through": [], "/without": []}
        beside = threading.Thread(
            target=listen, args=(without, "/without", came["/without"]),
            daemon=True)
        beside.start()
        listen(client, "/through", came["/through"])
        beside.join(WAIT_S + SSE_S)
        late = {path: [c - s for c, s in zip(came[path], sent[path])]
                for path in came}
        compare(f"events, {mix}", late["/through"], late["/without"])
        assert len(came["/through"]) == count
        waited = sum(c > s for c, s in zip(came["/through"],
                                           sent["/through"][1:]))
        # Those that the scheduler is to blame for are few.
        assert waited <= count // 20, f"{waited} came with the next"


@cases.each(MIXES)
def long_poll(mix):
    """An answer that takes longer than idle connections live."""
    go = threading.Event()

    def serve(stream):
        stream.body()
        go.wait(2.5)
        stream.answer(200)
        stream.send(b"at last", True)

    with mixed(mix, serve, more="timeout idle 1s") as both, \
            both.connect() as client:
        stream = client.request("/poll", method="POST", end=False)
        stream.send(b"since=1", True)
        assert stream.head() == 200 and stream.body() == b"at last"
        assert both.gate.final(path="/poll")["kind"] == "request_closed"


# ---- uploads that ask first -------------------------------------------------

@cases.each(MIXES)
def expect(mix):
    """5 MiB with Expect: 100-continue, by programs of the world: curl for
    HTTP/1, nghttp for HTTP/2."""
    client, server = mix.split("-")
    body = noise(5 * MIB)
    with Nginx(*authority().leaf(GOOD), h2=server == "h2") as nginx, \
            Gate(f'allow host "{GOOD}" port {nginx.tls}',
                 authority().cert) as gate:
        source = gate.dir / "source"
        source.write_bytes(body)
        (nginx.root / "put").mkdir()
        begin = time.monotonic()
        if client == "h1":
            result = run(["curl", "-sS", "--http1.1", "--cacert", gate.ca,
                          "--connect-to", f"::127.0.0.1:{gate.port(15001)}",
                          "-H", "Expect: 100-continue", "-T", source,
                          "--expect100-timeout", str(WAIT_S) if
                          server == "h1" else "1",
                          f"https://{GOOD}:{nginx.tls}/put/x"])
            assert result.returncode == 0, result.stdout
        else:
            subprocess.run(
                ["nghttp", "--expect-continue", "-H", ":method: PUT", "-H",
                 f":authority: {GOOD}:{nginx.tls}", "-d", str(source),
                 f"https://127.0.0.1:{gate.port(15001)}/put/x"], check=True,
                timeout=2 * WAIT_S, stdout=subprocess.DEVNULL)
        gone = time.monotonic() - begin
        assert gone < WAIT_S - 1, f"nobody said go on for {gone:.0f} s"
        until("the file", lambda: (nginx.root / "put/x").exists())
        assert digest((nginx.root / "put/x").read_bytes()) == digest(body)
        record = gate.final(method="PUT")
        assert record["request"]["request_body"]["bytes"] == len(body)


cases.main()
