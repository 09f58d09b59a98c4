#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""What ends requests beside rules: a full audit file, the session's quota."""

import collections
import contextlib
import os
import pathlib
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases, Skip  # noqa: E402
from daemon import WAIT_S, until, verify  # noqa: E402
from gate import (FINAL, GOOD, Broken, Gate, Pair, get,  # noqa: E402
                  pair)
from standin_origin import StandinOrigin, always  # noqa: E402
from standin_origin import answer as reply  # noqa: E402

cases = Cases()

# Denied requests make records without any origin.
DENY = 'deny host "**"'


def fill(path):
    with open(path, "wb", buffering=0) as file:
        for size in (4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"x" * size)


@contextlib.contextmanager
def small_disk(gate, size, taken=0):
    """The audit file stands on a file system of its own, of which some is
    taken already; the rest is set aside at the start, as far as it goes."""
    if os.geteuid() != 0:
        raise Skip("only root can mount")
    disk = gate.dir / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs",
                    str(disk)], check=True)
    try:
        gate.audit = disk / "audit.log"
        gate.policy(gate.rules)
        (disk / "filler").write_bytes(b"x" * taken)
        with gate:
            yield disk
            gate.stop()
            have = gate.audit.stat()
            assert have.st_blocks * 512 < have.st_size + 8192, \
                f"{have.st_blocks * 512} bytes, {have.st_size} used"
    finally:
        subprocess.run(["umount", str(disk)], check=True)
        gate.end()


@contextlib.contextmanager
def full_disk(settings=""):
    gate = Gate(f"{DENY}\n{settings}")
    with small_disk(gate, 256 << 10, 128 << 10) as disk:
        assert status(gate) == 403
        fill(disk / "more")
        yield gate, disk / "filler"


def status(gate):
    with gate.plain() as wire:
        return wire.ask(get()).status


@cases.case
def audit_on_full_deny():
    """Nothing passes that nobody can account for, until there is room."""
    with full_disk() as (gate, filler):
        until("refused for want of records", lambda: status(gate) == 503)
        with gate.plain() as wire:
            answer = wire.ask(get())
            assert answer.get("egress-decision") == "refuse, audit_full", \
                answer
        assert gate.ask("status")["audit"]["full"] is True
        filler.unlink()
        until("served again", lambda: status(gate) == 403)
        assert gate.ask("status")["audit"]["full"] is False
        verify(gate.audit.read_text().splitlines())


class Load:
    """A client that sends requests ahead, each with a path of its own, and
    notes which of them were answered by the origin."""

    AHEAD = 8

    def __init__(self, both, name):
        self.both, self.name, self.served, self.refused = both, name, [], 0
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        """Until it is refused."""
        count = 0
        with self.both.open() as wire:
            while not self.refused:
                paths = [f"/{self.name}/{count + n}"
                         for n in range(self.AHEAD)]
                count += len(paths)
                wire.send(b"".join(self.both.get(p, EXTRA) for p in paths))
                for path in paths:
                    answer = wire.answer()
                    if answer.status == 200:
                        self.served.append(path)
                    else:
                        assert answer.get("egress-decision") == \
                            "refuse, audit_full", answer
                        self.refused += 1


EXTRA = f"X-Long: {'x' * 1000}\r\n"


def loads(both, names):
    """What was served; every client was refused in the end."""
    clients = [Load(both, name) for name in names]
    for client in clients:
        client.thread.join(WAIT_S)
        assert client.refused, "it goes on"
    return [path for client in clients for path in client.served]


def accounted(both, served, chain):
    """What the origin has seen has its final record, and nothing more."""
    asked = {line.split(b" ")[1].decode()
             for line in both.origin.got().split(b"\r\n")
             if line.startswith(b"GET ")}
    finals = collections.Counter(
        r["request"]["path"] for r in chain
        if r["kind"] in FINAL and r["kind"] != "request_denied")
    assert set(finals.values()) <= {1}, finals.most_common(3)
    for what, paths in (("served", set(served)), ("asked for", asked)):
        missing = paths - set(finals)
        assert not missing, f"{len(missing)} of {len(paths)} were {what} " \
            f"without a final record, {min(missing)}"
    return len(finals)


@cases.case
def disk_fills_under_load():
    """Nothing leaves whose records have no room: what was served is in the
    file, in fewer words perhaps; and when there is room it goes on."""
    with StandinOrigin(always(reply(b"y" * 3000))) as origin:
        gate = Gate(f'allow host "{GOOD}" port {origin.port}\n'
                    "capture body 4K")
        load(Pair(origin, gate, False))


def load(both):
    gate, served = both.gate, []
    with small_disk(gate, 16 << 20, 8 << 20) as disk:
        for n in range(2):
            filler = threading.Thread(target=fill, args=(disk / f"{n}",))
            filler.start()
            served += loads(both, [f"{n}-{i}" for i in range(16)])
            filler.join()
            if n == 0:
                (disk / "filler").unlink()
                until("served again", lambda: status(gate) == 403)
        chain = verify(gate.audit.read_text().splitlines())
        count = accounted(both, served, chain)
        brief = sum(r["request"].get("request_headers_truncated", False)
                    for r in chain if r["kind"] == "request_closed")
        print(f"# {count} requests, {brief} of them in few words")
        assert count > 500, count


@cases.case
def audit_on_full_gap():
    """The operator may prefer to go on; then the loss is a record."""
    with full_disk("audit on full gap") as (gate, filler):
        until("records are lost",
              lambda: status(gate) == 403 and "are lost" in gate.log())
        for _ in range(20):
            assert status(gate) == 403
        filler.unlink()
        until("the gap is written", lambda: any(
            r["kind"] == "gap" for r in gate.records()))


@cases.case
def quota_out():
    """What a session may send in all is one sum for all its requests."""
    with pair(settings="quota out 100K") as both:
        with both.open() as wire:
            assert wire.ask(both.post("/1", b"x" * 60000)).status == 200
            assert wire.ask(both.post("/2", b"x" * 42400)).status == 200
            assert wire.ask(both.get("/3")).status == 403
        record = both.gate.final(path="/3")
        assert (record["kind"], record["reason"]) == (
            "request_denied", "quota"), record


@cases.case
def quota_out_within_a_body():
    with pair(settings="quota out 100K") as both, both.open() as wire:
        assert wire.ask(both.post("/1", b"x" * 60000)).status == 200
        wire.send(both.post("/2", b"x" * 60000))
        assert wire.answer().status == 413
        record = both.gate.final(path="/2")
        assert (record["kind"], record["reason"]) == (
            "request_failed", "quota"), record


@cases.each(("no answer", "half an answer"))
def total_time(what):
    """A request ends after so long, even while something comes."""
    def serve(connection):
        connection.request()
        if what == "half an answer":
            connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
            connection.send(b"half")
        connection.more()

    with pair(serve, more="timeout total 500ms") as both, both.open() as wire:
        wire.send(both.get("/slow"))
        if what == "no answer":
            got = wire.answer()
            assert (got.status, got.get("egress-decision")) == (
                504, "refuse, total_time"), got
        else:
            try:
                raise AssertionError(f"it looks whole: {wire.answer()}")
            except Broken:
                pass
        record = both.gate.final(path="/slow")
        assert (record["kind"], record["reason"]) == (
            "request_failed", "total_time"), record


cases.main()
