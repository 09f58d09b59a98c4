#!/usr/bin/python3
# SPDX-License-Identifier: ISC

"""Clients that leave before their request is decided, or even opened: nothing
is dialled for them, and each leaves one final record."""

import pathlib
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases  # noqa: E402
from daemon import WAIT_S, until  # noqa: E402
from gate import EVIL, GOOD, Pair  # noqa: E402
from judge import ALLOW, Judge, judged  # noqa: E402
from standin_h2 import StandinClient  # noqa: E402

cases = Cases()

CREDIT = 2048           # requests that may be open in a session
STREAMS = 64            # of a connection
RULES = f'decide "judge" host {{ "{GOOD}", "{EVIL}" }} cache off'
PERSON = f'decide "person" host "{GOOD}" timeout 1h cache off'
OPERATOR = 'decider "person" operator\nlimit pending 65536\n'


def same(have, want, why=""):
    assert have == want, f"{have!r}, expected {want!r} {why}"


def wait_pending(pair, count):
    """The questions that policyd waits to have answered."""
    until(f"{count} pending", lambda: pair.gate.ask("status")["sessions"][0][
        "pending"] == count)


# ---- ways to leave; each waits until told that it has been read -------------

def h1_tls(pair, path, read):
    with pair.open() as wire:
        wire.send(Pair.get(pair, path))
        read()


def h1_plain(pair, path, read):
    """In the clear, only a reset says that nobody reads the answer."""
    wire = pair.open()
    wire.send(Pair.get(pair, path))
    read()
    wire.reset()


def h2_stream(pair, path, read):
    """The connection stays until there is a record."""
    with StandinClient(pair.gate, pair.host()) as client:
        stream = client.request(path)
        read()
        stream.reset()
        pair.gate.final(path=path)


def h2_connection(pair, path, read):
    with StandinClient(pair.gate, pair.host()) as client:
        client.request(path)
        read()


def h2_upload(pair, path, read):
    """There is more to come of its body."""
    with StandinClient(pair.gate, pair.host()) as client:
        client.request(path, "POST", end=False).send(b"some")
        read()


WAYS = {way.__name__: way for way in (
    h1_tls, h1_plain, h2_stream, h2_connection, h2_upload)}


@cases.each(WAYS)
def question_under_way(way):
    """What the decider allows in the end is not dialled: it is gone.  Then
    another request is, and its connection is the only one."""
    hold = threading.Event()

    def decide(question):
        if question["request"]["path"] == "/gone":
            assert hold.wait(WAIT_S)
        return ALLOW

    with Judge(decide) as judge, \
            judged(RULES, judge.conf(), tls=way != "h1_plain") as pair:
        WAYS[way](pair, "/gone", lambda: judge.asked(1))
        final = pair.gate.final(path="/gone")
        same((final["kind"], final["reason"], final["request"]["address"]),
             ("request_failed", "client_left", None))
        hold.set()
        wait_pending(pair, 0)
        same(pair.get("/there"), 200)
        judge.asked(2)
        pair.origin.wait(1)
        same(pair.origin.visits(), 1)
        assert not pair.arrived(b"/gone"), "it arrived"
        pair.gate.final(path="/gone")


def fill(pair):
    """As many as may be open, all put to a person; their connections."""
    clients = []
    for i in range(0, CREDIT, STREAMS):
        client = StandinClient(pair.gate, pair.host())
        clients.append(client)
        for j in range(i, i + STREAMS):
            client.request(f"/{j}")
    wait_pending(pair, CREDIT)
    return clients


@cases.each(WAYS)
def no_credit(way):
    """Read, but not opened as too many others are: it leaves, they end, and
    each of them all has one final record."""
    with judged(PERSON, OPERATOR, tls=True) as pair:
        clients = fill(pair)

        def read():
            """Of what is not even a request there is a record at once."""
            with pair.gate.plain() as wire:
                same(wire.ask(b"GET / HTTP/1.1\r\n\r\n").status, 400)
        pair.is_tls = way != "h1_plain"
        if way == "h2_stream":
            with StandinClient(pair.gate, pair.host()) as client:
                client.request("/gone").reset()
                read()
        else:
            WAYS[way](pair, "/gone", read)
        read()
        same(pair.gate.finals(path="/gone"), [])
        for client in clients:
            client.close()
        final = pair.gate.final(path="/gone")
        same((final["kind"], final["reason"], final["request"]["host"]),
             ("request_failed", "client_left", GOOD))
        until("all have ended", lambda: len(pair.gate.finals()) >=
              CREDIT + 3)
        paths = [r["request"].get("path") for r in pair.gate.finals()]
        same(sorted(p for p in paths if p),
             sorted([f"/{i}" for i in range(CREDIT)] + ["/gone"]))
        same(pair.origin.visits(), 0)


if __name__ == "__main__":
    cases.main()
