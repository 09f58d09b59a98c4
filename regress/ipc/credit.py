#!/usr/bin/python3
# SPDX-License-Identifier: ISC

"""The engine alone, with us for its recorder: what it does without a credit,
and what becomes of requests whose clients leave meanwhile."""

import os
import pathlib
import socket
import sys
import tempfile

sys.dont_write_bytecode = True
TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from case import Cases  # noqa: E402
from children import CHILD_FD, TRUST, Child  # noqa: E402
from gate import GOOD, Gate, get  # noqa: E402
from msgtab import ENUMS, FILES  # noqa: E402
from standin_h2 import StandinClient  # noqa: E402

VERDICT, RECORD = ENUMS["verdict"], ENUMS["record_kind"]
URL, PROTOCOL = ENUMS["url_scheme"], ENUMS["protocol"]
LOOK = VERDICT["VERDICT_LOOK"]
DENIED = RECORD["RECORD_REQUEST_DENIED"]
FAILED = RECORD["RECORD_REQUEST_FAILED"]
HOUR_MS = 3600000
# A path so long that few of them are all that may be kept.
LONG, ROOM = 8000, 1 << 20

cases = Cases()


def same(have, want, why=""):
    assert have == want, f"{have!r}, expected {want!r} {why}"


class Engine(Child):
    """Serves a listener; its recorder, policyd and clients are ours."""

    plain, tls, context = Gate.plain, Gate.tls, Gate.context

    def __init__(self, asks=0):
        super().__init__("tlsengine")
        self.asks = asks
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.listener.setblocking(False)
        self.boot()
        self.policyd = self.connect("POLICYD")
        self.recorder = self.connect("RECORDER")
        self.box = self.connect("BOX")
        self.offer()
        self.commit_and_trust()
        self.policyd.receive("ENGINE_HELLO")

    def __exit__(self, *exc):
        super().__exit__(*exc)
        self.listener.close()
        self.ca.unlink()

    def port(self, _):
        return self.listener.getsockname()[1]

    def offer(self):
        self.generation += 1
        self.send("CONF_BEGIN", generation=self.generation)
        self.send("CONF_ENGINE", policy="p", asks=self.asks, connections=1000,
                  **{f"{name}_ms": HOUR_MS for name in (
                      "handshake", "head", "response", "idle", "tunnel")})
        self.send("CONF_LISTEN", self.listener.fileno(),
                  transparent=self.asks)
        with tempfile.TemporaryFile() as trust:
            trust.write(TRUST.encode())
            trust.seek(0)
            self.send("CONF_FILE", trust.fileno(), what=FILES["FILE_TRUST"])
        self.send("CONF_END", generation=self.generation)
        self.receive("CONF_ACK")

    def commit_and_trust(self):
        self.send("CONF_COMMIT", generation=self.generation)
        trust = self.receive("ENGINE_TRUST")
        self.receive("CONF_DONE")
        fd, name = tempfile.mkstemp(suffix=".pem")
        self.ca = pathlib.Path(name)
        with open(fd, "wb") as file:
            file.write(trust["ca"])

    def credit(self, count):
        self.recorder.send("CREDIT", count=count)

    def told(self, name):
        """The next that the recorder hears has to be this."""
        have, values = self.recorder.next()
        same(have, name, str(values)[:200])
        return values

    def settle(self):
        """What was sent before has been read, and nothing was told of it."""
        with self.plain() as wire:
            same(wire.ask(b"GET / HTTP/1.1\r\n\r\n").status, 400)
        same(self.told("RECORD_OTHER")["reason"], b"bad_request")

    def final(self, path):
        """A request that was opened and has ended, before it was asked about.
        """
        opened, closed = self.told("RECORD_OPENED"), self.told("RECORD_CLOSED")
        same(closed["request"], opened["request"])
        same((opened["path"], closed["reason"]),
             (path.encode(), b"client_left"))
        same((opened["allowed"], closed["failed"]), (0, 1))
        return opened


# ---- ways to leave ----------------------------------------------------------

def h1_tls(engine):
    with engine.tls() as wire:
        wire.send(get("/gone"))
        engine.settle()


def h1_plain(engine):
    """In the clear, only a reset says that nobody reads the answer."""
    wire = engine.plain()
    wire.send(get("/gone"))
    engine.settle()
    wire.reset()


def h1_body(engine):
    with engine.tls() as wire:
        wire.send(get("/gone", extra="Content-Length: 9\r\n") + b"body")
        engine.settle()


def h2_stream(engine):
    """The connection stays, and another of its streams."""
    client = StandinClient(engine, GOOD)
    engine.clients.append(client)
    client.request("/stays")
    client.request("/gone").reset()


def h2_connection(engine):
    with StandinClient(engine, GOOD) as client:
        client.request("/gone")
        engine.settle()


WAYS = {way.__name__: way for way in (
    h1_tls, h1_plain, h1_body, h2_stream, h2_connection)}


@cases.each(WAYS)
def left(way):
    """One record of it once there is credit, and policyd is not asked.  Who
    still waits is next."""
    with Engine() as engine:
        engine.clients = []
        WAYS[way](engine)
        engine.settle()
        with engine.plain() as wire:
            wire.send(get("/here"))
            engine.settle()
            engine.credit(1)
            opened = engine.final("/gone")
            same((opened["host"], opened["method"], opened["inspected"]),
                 (GOOD.encode(), b"GET", 1))
            protocol = "H2" if way.startswith("h2") else "HTTP11"
            same(opened["protocol"], PROTOCOL[f"PROTOCOL_{protocol}"])
            engine.settle()
            for path in (["/stays"] if way == "h2_stream" else []) + ["/here"]:
                engine.credit(1)
                same(engine.told("RECORD_OPENED")["path"], path.encode())
                same(engine.policyd.receive("ASK")["path"], path.encode())
        for client in engine.clients:
            client.close()


@cases.case
def left_unread():
    """A connection about which policyd was to be asked before it is read: so
    was another, which has the only credit."""
    with Engine(asks=1) as engine:
        first, second = engine.plain(), engine.plain()
        engine.credit(1)
        ask = engine.policyd.receive("ASK")
        second.reset()
        first.reset()
        opened = engine.final("")
        same((opened["inspected"], opened["scheme"], opened["method"]),
             (0, URL["URL_TCP"], b""))
        same(engine.policyd.receive("ASK_DROP")["cookie"], ask["id"])
        engine.credit(1)
        opened = engine.final("")
        same((opened["inspected"], opened["protocol"]),
             (0, PROTOCOL["PROTOCOL_TCP"]))


@cases.case
def credit_comes_back():
    """A connection that is looked into has no record of its own; its credit
    is for who waits."""
    with Engine(asks=1) as engine, engine.plain(), engine.plain():
        engine.credit(1)
        first = engine.policyd.receive("ASK")
        engine.policyd.send("VERDICT", id=first["id"], verdict=LOOK,
                            generation=engine.generation)
        second = engine.policyd.receive("ASK")
        assert second["id"] != first["id"], second


@cases.case
def too_many():
    """What is kept of them is bounded, and how many were not is told."""
    count = 0
    with Engine() as engine:
        for _ in range(4):
            with StandinClient(engine, GOOD) as client:
                for _ in range(50):
                    client.request(f"/{count:0{LONG}}")
                    count += 1
                client.wait("all are sent", lambda: not client.out)
                engine.settle()
        engine.settle()
        engine.credit(count)
        kept = 0
        while (message := engine.recorder.next())[0] == "RECORD_OPENED":
            same(message[1]["path"], f"/{kept:0{LONG}}".encode())
            same(engine.told("RECORD_CLOSED")["request"],
                 message[1]["request"])
            kept += 1
        assert ROOM // 2 < kept * LONG < ROOM, kept
        name, lost = message
        same((name, lost["kind"], lost["reason"]), (
            "RECORD_OTHER", DENIED,
            f"audit_full: requests that left unrecorded: {count - kept}"
            .encode()))
        # And there is room again.
        with engine.plain() as wire:
            wire.send(get("/here"))
            same(engine.told("RECORD_OPENED")["path"], b"/here")


@cases.each(["engine", "sandbox"])
def all_ends(what):
    """There will be no credit: what can be said without one is."""
    with Engine() as engine, engine.plain() as wire:
        h1_tls(engine)
        wire.send(get("/here"))
        engine.settle()
        left = FAILED, b"client_left"
        end, last = {"engine": (engine, (DENIED, b"no_engine")),
                     "sandbox": (engine.box, left)}[what]
        end.sock.shutdown(socket.SHUT_WR)
        for kind, reason in (left, last):
            other = engine.told("RECORD_OTHER")
            same((other["kind"], other["host"], other["reason"]),
                 (kind, GOOD.encode(), reason))
        if what == "sandbox":
            engine.policyd.receive("ENGINE_BYE")
        engine.end(0, "")


if __name__ == "__main__":
    # Nothing of ours may be in the way of a child's descriptor.
    while os.open(os.devnull, os.O_RDWR) < CHILD_FD:
        pass
    cases.main()
