#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Load: fifty thousand requests over 64 kept connections, with two followers
of whom one stops reading.  Each has its one final record, nobody grows."""

import collections
import os
import pathlib
import select
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases, run  # noqa: E402
from daemon import BUILD, SANITIZED, WAIT_S, until, verify  # noqa: E402
from gate import FINAL, GOOD, Gate  # noqa: E402
from origin import Nginx, authority  # noqa: E402

cases = Cases()

CONNECTIONS = 64
COUNT = 3000 if SANITIZED else 50000
WARM = COUNT // 2 if SANITIZED else COUNT // 5
# By then the follower that does not read was cut.  It has ten seconds from
# there to take what was left for it.
CUT = min(WARM, 2000)
LIMIT_S = 240
# Every so many-th is for a path that a rule denies, so that policyd is asked
# about all of them.
DENIED = 8
# How many requests the follower that reads may be behind.  The recorder
# queues 256 KiB for it, and a request makes less than 2 KiB of records; so
# to be cut it would have to be the recorder's fault and not the scheduler's.
BEHIND = 128
# What a process may grow by, between WARM and COUNT.
GROWTH_KIB = 1024
WATCHED = ("edge", "recorder", "policyd", "dialer", "parent")


def is_denied(number):
    return number % DENIED == 0


def path_of(number):
    return f"/none/{'no' if is_denied(number) else 'yes'}/{number}"


class Follower:
    """A follower that is read without waiting; counts final records."""

    def __init__(self, gate):
        self.client = gate.client()
        assert self.client.ask("events.follow")["ok"]
        self.sock = self.client.sock
        self.lines, self.part, self.finals = [], b"", 0

    def read(self):
        data = self.sock.recv(1 << 20)
        assert data, f"cut after {len(self.lines)}: {self.lines[-1:]}"
        *lines, self.part = (self.part + data).split(b"\n")
        self.lines += lines
        self.finals += sum(
            any(b'"kind":"%s"' % kind.encode() in line[:60] for kind in FINAL)
            for line in lines)

    def rest(self):
        """All that one who read nothing was left, to the end of it."""
        parts = []
        while data := self.sock.recv(1 << 20):
            parts.append(data)
        return b"".join(parts).split(b"\n")


class Traffic:
    """Requests by their numbers, one at a time on each connection."""

    def __init__(self, gate, host, follower):
        self.host, self.follower = host, follower
        self.poll = select.epoll()
        self.poll.register(follower.sock, select.EPOLLIN)
        self.wires = {}
        for _ in range(CONNECTIONS):
            sock = gate.plain().sock
            self.wires[sock.fileno()] = sock
            self.poll.register(sock, select.EPOLLIN)
        self.free = collections.deque(self.wires)
        self.asking = {}            # descriptor: number
        self.answers = collections.Counter()
        self.sent = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for sock in self.wires.values():
            sock.close()
        self.poll.close()

    def until(self, count):
        """Go on until so many have been answered and followed."""
        end = time.monotonic() + LIMIT_S
        while self.follower.finals < count or self.asking:
            while self.free and self.sent < count and \
                    self.sent - self.follower.finals < BEHIND:
                self.ask(self.free.popleft())
            for fd, _ in self.poll.poll(WAIT_S):
                if fd == self.follower.sock.fileno():
                    self.follower.read()
                else:
                    self.answer(fd)
            assert time.monotonic() < end, (
                f"{self.sent} sent, {sum(self.answers.values())} answered, "
                f"{self.follower.finals} followed")

    def ask(self, fd):
        self.wires[fd].sendall(
            f"GET {path_of(self.sent)} HTTP/1.1\r\nHost: {self.host}\r\n"
            "\r\n".encode())
        self.asking[fd] = self.sent
        self.sent += 1

    def answer(self, fd):
        """They are small and come whole, or the count would tell."""
        data = self.wires[fd].recv(65536)
        number = self.asking.pop(fd)
        want = 403 if is_denied(number) else 204
        assert data.startswith(b"HTTP/1.1 %d " % want), (number, data[:200])
        self.answers[want] += 1
        self.free.append(fd)


def memory(pids):
    """KiB of each; its share of what it shares, where we may know."""
    def of(pid):
        name = "smaps_rollup" if os.geteuid() == 0 else "status"
        key = "Pss:" if os.geteuid() == 0 else "VmRSS:"
        text = pathlib.Path(f"/proc/{pid}/{name}").read_text()
        return int(text.split(key)[1].split()[0])
    return {name: of(pids[name]) for name in WATCHED}


def check_memory(before, after):
    if SANITIZED:
        return
    assert all(after[n] - before[n] < GROWTH_KIB for n in WATCHED), \
        f"{before} after {WARM}, {after} after {COUNT}"


def check_records(lines):
    """Three of each that was allowed, two of each that was not."""
    seen = collections.Counter((r["kind"], r["request"]["path"])
                               for r in verify(lines)
                               if r["kind"].startswith("request_"))
    want = {}
    for number in range(COUNT):
        kinds = ("opened", "denied") if is_denied(number) else \
            ("opened", "allowed", "closed")
        want.update({(f"request_{k}", path_of(number)): 1 for k in kinds})
    wrong = {k: (seen[k], want.get(k, 0)) for k in {*seen, *want}
             if seen[k] != want.get(k, 0)}
    assert not wrong, f"{len(wrong)}, as {sorted(wrong.items())[:3]}"


def check_stopped(lines, written):
    """What it has is a piece of the chain, and why there is no more."""
    assert lines.pop() == b"", "its last line is torn"
    gap = lines.pop()
    assert b'"kind":"gap"' in gap and b'"slow_follower"' in gap, gap
    assert 0 < len(lines) < len(written), f"{len(lines)} and {gap}"
    assert written[:len(lines)] == lines, "what it has was never written"


def load(gate, nginx):
    host = f"{GOOD}:{nginx.port}"
    pids = gate.settle()
    live, stopped = Follower(gate), Follower(gate)
    until("two followers", lambda: gate.ask(
        "status")["audit"]["followers"] == 2)
    start = len(gate.audit.read_bytes().splitlines())
    with Traffic(gate, host, live) as traffic:
        traffic.until(CUT)
        # It was cut though it never read a byte.
        assert gate.ask("status")["audit"]["followers"] == 1
        left = stopped.rest()
        traffic.until(WARM)
        before = memory(pids)
        traffic.until(COUNT)
        check_memory(before, memory(pids))
    refused = sum(is_denied(number) for number in range(COUNT))
    assert traffic.answers == {204: COUNT - refused, 403: refused}
    assert gate.settle() == pids, "somebody died"
    lines = gate.audit.read_bytes().splitlines()
    check_records([line.decode() for line in lines])
    assert live.lines == lines[start:], "it did not see everything"
    check_stopped(left, lines[start:])
    live.client.close()
    stopped.client.close()


@cases.case
def one_final_record_each():
    cert = authority().leaf(GOOD)
    with Nginx(*cert, requests=100000) as nginx:
        rules = (f'deny host "{GOOD}" path "/none/no/**"\n'
                 f'allow host "{GOOD}" port {nginx.port}')
        with Gate(rules, authority().cert) as gate:
            load(gate, nginx)
            done = run([BUILD / "egressctl", "verify", gate.audit])
            assert done.returncode == 0 and \
                "0 gaps, chain intact" in done.stdout, done.stdout


cases.main()
