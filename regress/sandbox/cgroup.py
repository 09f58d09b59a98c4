#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Sandboxes of the daemon's in control groups, where one is delegated to it:
what is limited, and that nothing stays, neither of the processes nor of the
groups."""

import contextlib
import pathlib
import signal
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from case import Cases, Skip  # noqa: E402
from daemon import BUILD, SANITIZED, Daemon, alive, until  # noqa: E402
from delegated import Delegated  # noqa: E402

cases = Cases()
MIB = 1 << 20
PYTHON = "/usr/bin/python3"
BACKENDS = ("local", "virtual")
# Leaves a process behind that is in a session of its own, and then serves.
LEAVER = """#!/bin/sh
setsid sleep 9021 < /dev/null > /dev/null 2>&1 &
exec cat
"""
CONF = """
policy "none" {{ }}
sandbox "local" local {{
	policy "none" user "nobody" cwd "{dir}/work"
	limit memory 64M processes 40
}}
sandbox "virtual" virtual {{
	policy "none" user "nobody" size 16M limit memory 64M processes 40
}}
sandbox "plain" virtual {{ policy "none" user "nobody" }}
sandbox "file" virtual {{ policy "none" user "nobody" limit file 1M }}
sandbox "custom" custom "{dir}/leaver" {{
	policy "none" user "nobody" ungated
}}
"""
# As much as it is asked for, shared by its children, who are limited together.
EAT = """
import mmap, sys
block = mmap.mmap(-1, int(sys.argv[1]))
for at in range(0, len(block), 4096):
    block[at] = 1
print("eaten")
"""
FORK = """
import os
n = 0
try:
    while n < 200:
        if os.fork() == 0:
            os.read(0, 1)
            os._exit(0)
        n += 1
except OSError as e:
    print(n, e.strerror, flush=True)
"""


def same(have, want, why=""):
    assert have == want, f"{have!r}, expected {want!r} {why}"


class Place(contextlib.ExitStack):
    """A daemon in a delegated group."""

    def __init__(self, name, mark=True):
        super().__init__()
        self.group = self.enter_context(Delegated(name, mark))
        self.dir = pathlib.Path(self.enter_context(
            tempfile.TemporaryDirectory(prefix="egressd-test.")))
        self.dir.chmod(0o755)
        (self.dir / "work").mkdir()
        (self.dir / "work").chmod(0o777)
        (self.dir / "leaver").write_text(LEAVER)
        (self.dir / "leaver").chmod(0o755)
        try:
            self.daemon = self.start()
        except BaseException:
            self.close()
            raise

    def start(self):
        program = self.group.wrap(BUILD / "egressd", self.dir)
        return self.enter_context(Daemon(CONF.format(dir=self.dir),
                                         program=program))

    def session(self, sandbox, name):
        answer = self.daemon.ask("session.start", sandbox=sandbox,
                                 session_id=name)
        assert answer["ok"], answer
        return answer

    def shown(self, name):
        return self.daemon.ask("session.show", session_id=name)["limited_by"]

    def stop(self, name):
        assert self.daemon.ask("session.stop", session_id=name)["ok"]

    def need_limits(self):
        if SANITIZED:
            raise Skip("sanitizers need more memory")
        if not self.group.limits:
            raise Skip("no memory and pids controllers in "
                       f"{self.group.top}: version 1 may have them")


@cases.each(BACKENDS)
def one_each(sandbox):
    """Its group has all of a sandbox, and nothing else is in there."""
    with Place("one") as place:
        place.session(sandbox, "a")
        place.session(sandbox, "b")
        boxes = place.group.boxes()
        same(len(boxes), 2)
        done = place.daemon.ctl("exec", "a", "--", "sh", "-c",
                                "cat /proc/self/cgroup; "
                                "setsid sleep 9020 > /dev/null 2>&1 &")
        same(done.returncode, 0, done.stderr)
        # It does not see where it is.
        assert "0::/\n" in done.stdout, done.stdout
        all_pids = [place.group.pids(box) for box in boxes]
        assert all(len(pids) >= 3 for pids in all_pids), all_pids
        us = place.group.pids(place.group.ours()[0] / "self")
        assert place.daemon.process.pid in us and len(us) > 5, us
        place.stop("a")
        until("the group is gone", lambda: not boxes[0].exists())
        assert not any(map(alive, all_pids[0])), all_pids
        assert boxes[1].exists() and all(map(alive, all_pids[1]))
        place.stop("b")
        until("the groups are gone", lambda: not place.group.boxes())


@cases.case
def forked_away():
    """What has left a custom program ends with the session."""
    with Place("away") as place:
        place.session("custom", "c")
        with place.daemon.client() as client:
            client.send({"id": 1, "op": "session.attach", "session_id": "c"})
            assert client.read()["ok"]
            client.sock.sendall(b"x")
            same(client.sock.recv(1), b"x")
            box, = place.group.boxes()
            pids = until("it is left", lambda: place.group.running(
                box, "sleep\0009021"))
            pids += place.group.running(box, "cat")
            place.stop("c")
            until("the group is gone", lambda: not box.exists())
            assert not any(map(alive, pids)), pids


@cases.case
def killed_daemon():
    """What it leaves is removed by the next, and by no other."""
    with Place("killed") as place:
        place.session("virtual", "a")
        place.session("custom", "c")
        old, = place.group.ours()
        other = place.start()
        same(len(place.group.ours()), 2)
        assert place.shown("a"), "it has lived on"
        place.daemon.process.send_signal(signal.SIGKILL)
        same(place.daemon.wait(), -signal.SIGKILL)
        assert old.exists()
        third = place.start()
        new = place.group.path / f"egressd-{third.process.pid}"
        assert not old.exists() and new.exists(), place.group.ours()
        assert (place.group.path / f"egressd-{other.process.pid}").exists()


@cases.case
def stopped_daemon():
    """Sandboxes of a daemon that stops go with it, and so do their groups."""
    with Place("stopped") as place:
        place.session("virtual", "a")
        place.session("plain", "b")
        same(len(place.group.boxes()), 2)
        same(place.daemon.stop(), 0)
        same(place.group.boxes(), [])


@cases.each(("rlimit", "cgroup"))
def said(by):
    """What keeps the limits is told."""
    with Place("said") as place:
        if by == "cgroup":
            place.need_limits()
        elif place.group.limits:
            raise Skip("the controllers are there")
        for name in (*BACKENDS, "plain", "file"):
            place.session(name, name)
        same([place.shown(n) for n in (*BACKENDS, "plain", "file")],
             [by, by, None, "rlimit"])


@cases.case
def not_delegated():
    """Without the mark it is somebody else's group."""
    with Place("theirs", mark=False) as place:
        place.session("virtual", "a")
        same(place.shown("a"), "rlimit")
        same(place.group.ours(), [])
        assert place.daemon.process.pid in \
            place.group.pids(place.group.path / "start")


@cases.each(BACKENDS)
def memory(sandbox):
    """Of all together, shared or not; only the command dies of it."""
    with Place("memory") as place:
        place.need_limits()
        place.session(sandbox, "a")
        box, = place.group.boxes()
        same(int((box / "memory.max").read_text()),
             (64 + 16 * (sandbox == "virtual")) * MIB)
        for size, want in ((32, 0), (128, 137), (32, 0)):
            done = place.daemon.ctl("exec", "a", "--", PYTHON, "-c", EAT,
                                    str(size * MIB))
            same(done.returncode, want, done.stderr)
        # What a process reserves is not what it uses.
        done = place.daemon.ctl("exec", "a", "--", PYTHON, "-c",
                                "import mmap; mmap.mmap(-1, 1 << 33, "
                                "2 | 0x4000)")
        same(done.returncode, 0, done.stderr)


@cases.each(BACKENDS)
def processes(sandbox):
    with Place("processes") as place:
        place.need_limits()
        place.session(sandbox, "a")
        box, = place.group.boxes()
        same(int((box / "pids.max").read_text()), 48)
        done = place.daemon.ctl("exec", "a", "--", PYTHON, "-c", FORK)
        number, why = done.stdout.strip().split(" ", 1)
        assert 20 < int(number) < 48, done.stdout
        same(why, "Resource temporarily unavailable")
        # exec needs processes too: it has them again.
        same(place.daemon.ctl("exec", "a", "--", "true").returncode, 0)


@cases.case
def timeout():
    """A command that takes too long ends, with all that it has started."""
    with Place("timeout") as place:
        place.session("virtual", "a")
        done = place.daemon.ctl("exec", "-t", "1s", "a", "--", "sh", "-c",
                                "setsid sleep 9022 & sleep 9023")
        assert done.returncode != 0 and "timeout" in done.stderr, done
        box, = place.group.boxes()
        until("they are gone",
              lambda: not place.group.running(box, "sleep\000902"))
        same(place.daemon.ctl("exec", "a", "--", "true").returncode, 0)


cases.main()
