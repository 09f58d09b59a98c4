#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""An audit file that is a spool: records for another host, which asks for
them, writes them down and acknowledges them.  None is missing and none comes
twice, whoever is cut off or killed."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases, Skip  # noqa: E402
from daemon import POLICY, WAIT_S, Client, Daemon, alive, until  # noqa: E402
from gate import Broken, Gate, get  # noqa: E402

cases = Cases()

CUTS = 20
MIB = 1024 * 1024


def spooled(size="16M", more=""):
    """A gate whose audit file is a spool; it denies what it is asked."""
    return Gate("", more=f"spool {size}\n{more}")


class Host:
    """What a control host does: it keeps lines and acknowledges them."""

    def __init__(self, daemon, term=1):
        self.daemon = daemon
        self.term = term
        self.kept, self.lost = [], []

    def follow(self, term=None):
        client = self.daemon.client()
        answer = client.ask("events.follow", **{
            "from": "acknowledged", "term": term or self.term})
        assert answer.get("ok"), answer
        return client

    def ack(self, client, seq):
        answer = client.ask("events.ack", seq=seq, term=self.term)
        assert answer.get("acknowledged") == seq, answer

    def keep(self, record):
        """The next number, unless a gap says why it is not."""
        if record["kind"] == "gap" and record["lost"] > 0:
            self.lost += range(record["first_seq"], record["last_seq"] + 1)
        self.kept.append(record["seq"])

    def forget(self, acked):
        """What comes again was not acknowledged."""
        self.kept = [seq for seq in self.kept if seq <= acked]

    def check(self, lost=False):
        """Every number once, in order; lost, but for those of gaps."""
        assert lost or not self.lost, self.lost
        have = sorted(self.kept + self.lost)
        assert have == list(range(1, len(have) + 1)), have
        assert self.kept == sorted(self.kept), self.kept

    def catch_up(self, follower, control, step=16):
        """Keep all that there is, until the spool has nothing more."""
        while (audit := self.daemon.ask("status")["audit"])["spool"][
                "waiting"] > 0:
            while not self.kept or self.kept[-1] < audit["seq"]:
                self.keep(follower.read())
                if self.kept[-1] % step == 0:
                    self.ack(control, self.kept[-1])
                # The rest may be lost, which nobody says before there is room.
                if audit["full"]:
                    break
            self.ack(control, self.kept[-1])


class Load:
    """Requests, one after the other, until it is told to stop; how many."""

    def __init__(self, gate):
        self.gate = gate
        self.count = 0
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.thread.join()

    def run(self):
        while not self.stopped.is_set():
            with contextlib.suppress(OSError, Broken), \
                    self.gate.plain() as wire:
                for _ in range(50):
                    wire.ask(get(f"/{self.count}", host="evil.test"))
                    self.count += 1
                    if self.stopped.is_set():
                        return


def requests(gate, count, path="/"):
    with gate.plain() as wire:
        for _ in range(count):
            assert wire.ask(get(path, host="evil.test")).status == 403


def waiting(daemon):
    return daemon.ask("status")["audit"]["spool"]["waiting"]


@cases.case
def cut_off_under_load():
    """Twenty followers, each cut off in the middle of it; what it had not
    acknowledged the next one gets again, and nothing else."""
    with spooled("64M") as gate, Load(gate):
        host = Host(gate)
        for cut in range(CUTS):
            host.forget(gate.ask("status")["audit"]["spool"][
                "acknowledged"])
            with host.follow() as follower, gate.client() as control:
                for n in range(100 + cut):
                    host.keep(follower.read())
                    if n % 30 == 29:
                        host.ack(control, host.kept[-1 - cut % 3])
        host.check()
        assert len(host.kept) > CUTS * 80, len(host.kept)


@cases.each(("recorder", "parent"))
def killed(who):
    """Killed in the middle of it and started again: what was not acknowledged
    is on the disk."""
    with spooled("64M") as gate:
        host = Host(gate)
        for life in range(3):
            pids = gate.settle()
            with Load(gate), host.follow() as follower, \
                    gate.client() as control:
                for n in range(200):
                    host.keep(follower.read())
                    if n % 50 == 37 + life:
                        host.ack(control, host.kept[-1])
                acked = host.kept[-1 - 10]
                host.ack(control, acked)
                os.kill(pids["recorder"] if who == "recorder" else
                        gate.process.pid, signal.SIGKILL)
                gate.wait()
                for pid in pids.values():
                    until(f"{pid} is gone", lambda: not alive(pid))
            host.forget(acked)
            gate.start()
        with host.follow() as follower, gate.client() as control:
            host.catch_up(follower, control)
        host.check()


def acknowledged_all(gate, host):
    with host.follow() as follower, gate.client() as control:
        host.catch_up(follower, control)


@cases.case
def full_denies():
    """With nobody to take the records, requests end where the spool does; when
    somebody does, they go on and no number is missing."""
    with spooled("1M", "audit on full deny\n") as gate:
        host = Host(gate)
        padding = "/" + "x" * 3000
        answers = []

        def full():
            with gate.plain() as wire:
                for _ in range(20):
                    answers.append(wire.ask(
                        get(padding, host="evil.test")).status)
            return 503 in answers
        until("requests are refused", full)
        status = gate.ask("status")["audit"]
        assert status["full"] is True, status
        assert MIB // 2 < status["spool"]["waiting"] <= MIB, status
        acknowledged_all(gate, host)
        until("there is room", lambda: not gate.ask(
            "status")["audit"]["full"])
        requests(gate, 3)
        acknowledged_all(gate, host)
        host.check(lost=True)
        assert set(answers) == {403, 503}, set(answers)


@cases.case
def full_with_a_gap():
    """They go on, and the gap says which numbers nobody has."""
    with spooled("1M", "audit on full gap\n") as gate:
        padding = "/" + "x" * 3000

        def full():
            requests(gate, 50, padding)
            return gate.ask("status")["audit"]["full"]
        until("it is full", full)
        assert waiting(gate) <= MIB
        requests(gate, 50)
        with Host(gate).follow() as follower, gate.client() as control:
            expected, gaps, acked = 1, [], 0
            while not gaps:
                record = follower.read()
                assert record is not None, "hung up"
                if record["kind"] == "gap":
                    gaps.append(record)
                    assert record["first_seq"] == expected, record
                    expected = record["last_seq"] + 1
                assert record["seq"] == expected, record
                expected += 1
                acked += 1
                if acked % 10 == 0:
                    assert control.ask("events.ack", seq=record["seq"])["ok"]
            assert gaps[0]["reason"] == "audit_full", gaps


@cases.case
def lies():
    """What was not sent cannot be acknowledged, nor what was before; who has
    an old term has no say."""
    with spooled() as gate:
        requests(gate, 5)
        with gate.client() as control:
            def code(**fields):
                return control.ask("events.ack", **fields)["error"]["code"]
            assert code(seq=1) == "out_of_range"
            with Host(gate).follow(term=4) as follower:
                seen = [follower.read()["seq"] for _ in range(4)]
                assert seen == [1, 2, 3, 4], seen
                seq = gate.ask("status")["audit"]["seq"]
                assert code(seq=seq + 100) == "out_of_range"
                assert code(seq=-1) == "bad_request"
                assert code(seq=2, term=3) == "taken_over"
                assert control.ask("events.ack", seq=3)["ok"]
                assert control.ask("events.ack", seq=3)["ok"]
                assert code(seq=2) == "out_of_range"
                assert code(seq="3") == "bad_request"
                assert code() == "bad_request"
            with Host(gate).follow(term=3) as late:
                assert late.read()["error"]["code"] == "taken_over"
                assert late.read() is None
            with Host(gate).follow(term=4) as again:
                assert again.read()["seq"] == 4
                with Host(gate).follow(term=5) as other:
                    assert other.read()["seq"] == 4
                    end = again.read()
                    while "error" not in end:
                        end = again.read()
                    assert end["error"]["code"] == "taken_over", end
                    assert again.read() is None


@cases.case
def stuck_follower():
    """It does not read and is not hung up on, at most a window is for it, and
    others see everything at once."""
    with spooled("16M") as gate:
        with gate.client() as stuck, gate.client() as live:
            assert stuck.ask("events.follow", **{
                "from": "acknowledged", "window": 256 * 1024})["ok"]
            assert live.ask("events.follow")["ok"]
            until("both follow", lambda: gate.ask(
                "status")["audit"]["followers"] == 2)
            first = gate.ask("status")["audit"]["seq"]
            padding = "/" + "x" * 3000
            seen = []
            for _ in range(8):
                requests(gate, 20, padding)
                last = gate.ask("status")["audit"]["seq"]
                seen += [live.read()["seq"]
                         for _ in range(first + len(seen), last)]
            assert seen == list(range(first + 1, last + 1))
            size = seq = 0
            with contextlib.suppress(TimeoutError):
                while True:
                    if size > 128 * 1024:
                        stuck.sock.settimeout(1)
                    line = stuck.file.readline()
                    seq += 1
                    assert json.loads(line)["seq"] == seq, line
                    size += len(line)
            assert 128 * 1024 < size <= 256 * 1024, size
            assert seq < last


@cases.case
def requests_for_it():
    """What is refused before the recorder hears of it, and after."""
    with spooled() as gate, gate.client() as client:
        def code(**fields):
            return client.ask("events.follow", **fields)["error"]["code"]
        for fields in ({"from": 0}, {"from": -1}, {"from": "x"},
                       {"from": True}, {"from": 1, "window": 1048576},
                       {"from": 1, "term": 1}, {"window": 1048576},
                       {"from": "acknowledged", "window": 1},
                       {"from": "acknowledged", "kinds": ["gap"]},
                       {"from": "acknowledged", "session_id": "edge"},
                       {"from": "acknowledged", "term": -1}):
            assert code(**fields) == "bad_request", fields
        assert client.ask("events.follow", **{"from": 10000})["ok"]
        assert client.read()["error"]["code"] == "out_of_range"
        assert client.read() is None


@cases.case
def from_a_number():
    """History and what comes, of a file that is no spool, with what was asked
    for only; nothing to acknowledge there."""
    with Gate("") as gate:
        def recorded(count):
            until(f"{count} records", lambda: gate.ask(
                "status")["audit"]["seq"] >= count)
        requests(gate, 30)
        recorded(31)
        with gate.client() as client:
            assert client.ask("events.follow", **{"from": 5})["ok"]
            requests(gate, 3)
            recorded(now := 34)
            seen = [client.read() for _ in range(5, now + 1)]
            assert seen == gate.records()[4:now]
        with gate.client() as client:
            assert client.ask("events.follow", **{
                "from": 1, "kinds": ["session_started"],
                "session_id": "edge"})["ok"]
            assert client.read()["kind"] == "session_started"
            os.kill(gate.engine(), signal.SIGKILL)
            assert client.read()["kind"] == "session_started"
        assert gate.ask("events.ack", seq=1)["error"]["code"] == \
            "not_supported"
        with gate.client() as client:
            assert client.ask("events.follow",
                              **{"from": "acknowledged"})["ok"]
            assert client.read()["error"]["code"] == "not_supported"


@cases.case
def read_only():
    """Who may only look takes over from nobody, and forgets nothing."""
    more = 'control socket "{}" read-only mode 0666\n'
    with Daemon() as daemon:
        path = daemon.dir / "ro.sock"
        daemon.write(f"spool 1M\n{more.format(path)}{POLICY}")
        answer = daemon.ask("reload")
        assert answer.get("ok"), answer
        with Client(path) as client:
            for op, fields in (("events.ack", {"seq": 1}),
                               ("events.follow", {"from": "acknowledged"})):
                answer = client.ask(op, **fields)
                assert answer["error"]["code"] == "not_permitted", answer
            assert client.ask("events.follow", **{"from": 1})["ok"]
            assert client.read()["seq"] == 1


@cases.case
def turned_on_and_off():
    """By reload: what the file holds is what is to be acknowledged; with a
    hole in it the file cannot be an audit file again."""
    with spooled() as gate:
        gate.more = ""
        gate.reload("")
        requests(gate, 3)
        assert "spool" not in gate.ask("status")["audit"]
        gate.more = "spool 32M\n"
        gate.reload("")
        host = Host(gate)
        padding = "/" + "x" * 3000
        requests(gate, 60, padding)
        acknowledged_all(gate, host)
        host.check()
        spool = gate.ask("status")["audit"]["spool"]
        assert spool == {"size": 32 * MIB, "waiting": 0,
                         "acknowledged": len(host.kept)}, spool
        gate.more = ""
        gate.policy("")
        answer = gate.ask("reload")
        assert "error" in answer, answer
        requests(gate, 1)


@contextlib.contextmanager
def ramfs(gate):
    """A file system that takes nothing back."""
    where = gate.dir / "ramfs"
    where.mkdir()
    if os.geteuid() != 0 or subprocess.run(
            ["mount", "-t", "ramfs", "ramfs", where], check=False,
            stderr=subprocess.DEVNULL).returncode != 0:
        raise Skip("only root mounts a file system")
    try:
        where.chmod(0o755)
        gate.audit = where / "audit.log"
        gate.policy(gate.rules)
        yield
    finally:
        gate.end()
        subprocess.run(["umount", where], check=True)


@cases.case
def takes_nothing_back():
    """Then the file begins anew when all of it is acknowledged, and until then
    counts as a whole."""
    gate = spooled("1M", "audit on full deny\n")
    try:
        with ramfs(gate):
            gate.start()
            host = Host(gate)
            padding = "/" + "x" * 3000
            for _ in range(8):
                with gate.plain() as wire:
                    for _ in range(40):
                        wire.ask(get(padding, host="evil.test"))
                acknowledged_all(gate, host)
                assert gate.audit.stat().st_size <= MIB
            host.check(lost=True)
            assert "takes nothing back" in gate.log()
    finally:
        gate.end()


cases.main()
