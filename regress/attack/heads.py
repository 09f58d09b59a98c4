#!/usr/bin/python3
# SPDX-License-Identifier: ISC

"""The battery, part K: heads that make more records than they are bytes, and
more of them at once than the recorder reads."""

import contextlib
import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases  # noqa: E402
from check import stands  # noqa: E402
from daemon import until  # noqa: E402
from frames import Frames, ask, head  # noqa: E402
from gate import EVIL, GOOD, Gate, get, pair  # noqa: E402
from origin import authority  # noqa: E402
from standin_frames import (DATA, END_HEADERS, END_STREAM,  # noqa: E402
                            HEADERS, FrameOrigin, block, frame, number)
from standin_h2 import context  # noqa: E402

cases = Cases()

STREAMS = 100               # of a connection
LARGE = b"v" * 3800         # nearly the whole table of a connection
NEWEST = b"\xbe"            # the first entry of that table, in a byte
REFERENCES = 8              # to it in one head, within 32 KiB
MEMORY_KIB = 64 * 1024


def remembered(name, value):
    """A literal that the table keeps."""
    return b"\x40" + number(len(name)) + name + number(len(value)) + value


def heavy(n, fields, count=REFERENCES):
    """The n-th head of a connection that refers to one large field, often."""
    large = remembered(b"x-large", LARGE) if n == 0 else NEWEST
    return block(fields) + large + NEWEST * (count - 1)


def bomb(host):
    return b"".join(
        frame(HEADERS, END_HEADERS | END_STREAM, 2 * n + 1,
              heavy(n, head(host))) for n in range(STREAMS))


@contextlib.contextmanager
def same_engine(gate):
    engine = gate.engine()
    yield
    assert gate.engine() == engine, "the engine has died"
    have = gate.memory()
    assert have < MEMORY_KIB, f"{have} KiB"


@contextlib.contextmanager
def stopped(gate, role):
    """A process that is too busy to read, for a while."""
    pid = gate.processes()[role]
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def settles(gate):
    """Clients have sent what is taken, and nothing more is read or sent."""
    ours = f":{gate.port(15001):04X}"

    def queues():
        lines = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
        return sorted((q[2], q[4]) for q in map(str.split, lines)
                      if q[1].endswith(ours))
    until("nothing happens any more", lambda: stands(queues))


@contextlib.contextmanager
def clients(gate, count, name=GOOD):
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Frames(gate, wire=gate.tls(
            name, context=context(gate)))) for _ in range(count)]


def answered(gate, each, status=200, name=GOOD, streams=STREAMS):
    """All streams are, and have one final record each."""
    for frames in each:
        assert frames.until(lambda: len(frames.ended) == streams), \
            f"{len(frames.ended)} answers, {len(frames.resets)} resets"
        assert set(frames.status.values()) == {status}, frames.status
    finals = until("all have their records", lambda: enough(
        gate.finals(host=name), streams * len(each)))
    assert len({r["request"]["id"] for r in finals}) == len(finals)
    gate.verified()
    return finals


def enough(found, count):
    assert len(found) <= count, f"{len(found)} records"
    return found if len(found) == count else None


@contextlib.contextmanager
def framed(serve, settings=""):
    """A gate before an origin that speaks HTTP/2."""
    with FrameOrigin(serve, authority().leaf(GOOD)) as origin, Gate(
            f'allow host "{GOOD}" port {origin.port}\n{settings}',
            authority().cert) as gate:
        yield gate, origin, f"{GOOD}:{origin.port}"


@cases.each([GOOD, EVIL])
def indexed_fields(name):
    """50 KB of references to one field, in heads that are allowed or denied:
    every stream has its answer and its records, from the same engine."""
    with pair(names=(GOOD,)) as both, same_engine(both.gate), \
            clients(both.gate, 4, name) as each:
        for frames in each:
            frames.send(bomb(both.host(name)))
        answered(both.gate, each, 200 if name == GOOD else 403, name)


@cases.case
def many_heads():
    """Of 28 KB each, of clients that all come at once."""
    with Gate('deny host "**"') as gate, same_engine(gate), \
            contextlib.ExitStack() as stack:
        wires = [stack.enter_context(gate.plain()) for _ in range(300)]
        fields = "".join(f"X-{n}: {'x' * 7000}\r\n" for n in range(4))
        with stopped(gate, "recorder"):
            for wire in wires:
                wire.send(get("/", GOOD, fields))
            settles(gate)
        assert {wire.answer().status for wire in wires} == {403}
        until("all have their records",
              lambda: len(gate.finals(host=GOOD)) == 300)


@cases.case
def more_records_than_traffic():
    """Every request has its records, but not all that such a head says of
    itself; one that comes later has all of its own."""
    rounds = 3
    with Gate('deny host "**"') as gate, same_engine(gate):
        for n in range(rounds):
            with clients(gate, 4) as each:
                for frames in each:
                    frames.send(bomb(GOOD))
                for frames in each:
                    assert frames.until(lambda: len(frames.ended) == STREAMS)
        finals = until("all have their records", lambda: enough(
            gate.finals(host=GOOD), rounds * 4 * STREAMS))
        cut = sum(r["request"].get("request_headers_truncated", False)
                  for r in finals)
        size = gate.audit.stat().st_size
        print(f"# {size} bytes, {cut} of {len(finals)} heads are cut")
        assert cut > len(finals) / 2 and size < 12 << 20, (cut, size)

        def whole():
            with gate.plain() as wire:
                wire.ask(get("/later", EVIL, f"X: {'x' * 3000}\r\n"))
            return any("request_headers_truncated" not in r["request"]
                       for r in gate.finals(host=EVIL))
        until("a head is whole again", whole)


@cases.case
def recorder_does_not_read_requests():
    """Clients wait for it, however much they send."""
    with pair(names=(GOOD,)) as both, same_engine(both.gate), \
            clients(both.gate, 6) as each:
        with stopped(both.gate, "recorder"):
            for frames in each:
                frames.send(bomb(both.host()))
            settles(both.gate)
        answered(both.gate, each)


@cases.case
def recorder_does_not_read_bodies():
    """Nor do their beginnings fill its channel: clients wait."""
    count, body = 200, b"b" * 60000
    with pair(tls=False, settings="capture body 64K") as both, \
            same_engine(both.gate), contextlib.ExitStack() as stack:
        wires = [stack.enter_context(both.open()) for _ in range(count)]
        for wire in wires:
            wire.send(both.post("/", body).removesuffix(body))
        both.origin.wait(count)
        with stopped(both.gate, "recorder"):
            for wire in wires:
                wire.send(body)
            settles(both.gate)
        assert {wire.answer().status for wire in wires} == {200}
        finals = until("all have their records", lambda: enough(
            both.gate.finals(), count))
        for record in finals:
            shown = record["request"]["request_body"]
            assert shown["bytes"] == len(body), shown["bytes"]
            assert len(shown["preview"]) == len(body), len(shown["preview"])


@cases.case
def recorder_does_not_read_answers():
    """Heads of origins, by HTTP/2 and large, all at once."""
    asked, streams = [], 10
    with framed(asked.append) as (gate, origin, host), same_engine(gate), \
            clients(gate, 70) as each:
        for frames in each:
            frames.send(b"".join(ask(2 * n + 1, head(host))
                                 for n in range(streams)))
        until("all are asked for", lambda: len(asked) == 70 * streams)
        with stopped(gate, "recorder"):
            for peer in origin.peers:
                peer.send(b"".join(
                    frame(HEADERS, END_HEADERS | END_STREAM, stream.id,
                          heavy(n, [(":status", "200")], REFERENCES // 2))
                    for n, stream in enumerate(peer.streams.values())))
            settles(gate)
        answered(gate, each, streams=streams)


def long_paths(host, each):
    for at, frames in enumerate(each):
        for n in range(STREAMS):
            frames.send(ask(2 * n + 1, head(host, path=f"/{at}/{n}/" +
                                            "p" * 8000)))


@cases.case
def policyd_does_not_read():
    """Questions with long paths, more than its channel holds."""
    with Gate(f'allow host "{GOOD}" path "/none"') as gate, \
            same_engine(gate), clients(gate, 11) as each:
        with stopped(gate, "policyd"):
            long_paths(GOOD, each)
        answered(gate, each, 403)


@cases.case
def reload_of_long_paths():
    """Requests under way are asked about again, all at once."""
    asked = []
    with framed(asked.append) as (gate, origin, host), same_engine(gate), \
            clients(gate, 11) as each:
        long_paths(host, each)
        until("all are asked for", lambda: len(asked) == 11 * STREAMS,
              60)
        gate.reload(gate.rules)
        for stream in asked:
            stream.answer()
        answered(gate, each)


cases.main()
