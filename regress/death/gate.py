#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""The gate dies while a sandbox speaks through it: whoever of us it is, nothing
gets out any more, the command is refused, and the exit status tells.

The command sends all the time, in three ways: on a connection that it keeps,
on one for each request, and a body that has no end.  What counts is what the
origin gets."""

import atexit
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

REGRESS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REGRESS / "sandbox"))
from runlib import ORIGIN, PYTHON, descendants, place  # noqa: E402
from case import Cases  # noqa: E402
from daemon import (SANITIZED, WAIT_S, Started, alive, until,  # noqa: E402
                    verify)
from gate import FINAL  # noqa: E402
from procs import status, title  # noqa: E402
from standin_origin import StandinOrigin  # noqa: E402

cases = Cases()
here = place()
atexit.register(here.end)

# Without them nothing can be judged, recorded or dialled; the last four would
# not be missed at once, and are no less fatal.
VICTIMS = ("tlsengine", "policyd", "recorder", "dialer", "parent", "deciderd",
           "k8sd", "podd", "controld")
# From the death of one to the death of the engine.
CUT_S = 8 if SANITIZED else 2
GONE = 125

SENDER = r"""
import json, socket, sys, threading, time

host, port = sys.argv[1], int(sys.argv[2])
good = {"kept": 0, "fresh": 0, "body": 0}
bad = dict(good)

def connect():
    sock = socket.create_connection((host, port), 20)
    sock.settimeout(20)
    return sock

def ask(sock, way):
    sock.sendall(b"GET /%s HTTP/1.1\r\nHost: %s:%d\r\n\r\n" % (
        way.encode(), host.encode(), port))
    if not sock.recv(4096).startswith(b"HTTP/1.1 200 "):
        raise OSError("refused")

def kept():
    with connect() as sock:
        while True:
            ask(sock, "kept")
            good["kept"] += 1

def fresh():
    with connect() as sock:
        ask(sock, "fresh")
    good["fresh"] += 1

def body():
    with connect() as sock:
        sock.sendall(b"POST /body HTTP/1.1\r\nHost: %s:%d\r\n"
                     b"Content-Length: 1000000000\r\n\r\n" % (
                     host.encode(), port))
        while True:
            sock.sendall(b"secret" * 100)
            good["body"] += 1
            time.sleep(0.002)

def again(way):
    while True:
        try:
            way()
        except OSError:
            bad[way.__name__] += 1
            time.sleep(0.01)

def wait(counts, count):
    while min(counts.values()) < count:
        time.sleep(0.01)

for way in (kept, fresh, body):
    threading.Thread(target=again, args=(way,), daemon=True).start()
wait(good, 20)
print("busy", flush=True)
sys.stdin.readline()
bad.update(dict.fromkeys(bad, 0))
# An answer may have come before the end and be read only now.
wait(bad, 1)
before = dict(good)
wait(bad, 5)
print(json.dumps({"good": {w: good[w] - before[w] for w in
                           ("kept", "fresh")}}), flush=True)
sys.stdin.readline()
"""


class Traffic(Started):
    """A sandbox whose command sends, the daemon behind it, and an origin."""

    def __init__(self, who, private, more=""):
        self.who, self.private = who, private
        self.origin = StandinOrigin()
        self.rules = (f'policy "open" {{ allow host "{ORIGIN}" port '
                      f'{self.origin.port} path "/**" {more} }}\n')
        self.daemon = self.log = self.process = None

    def start(self):
        args = ["-n", "loud"]
        if self.private:
            conf, self.log = here.conf(self.who, self.rules)
            args += ["-f", conf]
        else:
            self.context = here.daemon(self.who, self.rules)
            self.daemon = self.context.__enter__()
            self.log = self.daemon.audit
        self.process = here.spawn(
            self.who, "run", "-q", *args, "--", PYTHON, "-c", SENDER, ORIGIN,
            self.origin.port, stdin=subprocess.PIPE)
        self.expect("busy")
        return self

    def expect(self, text):
        line = self.process.stdout.readline().decode().strip()
        if line != text and not line.startswith("{"):
            self.process.kill()
            raise AssertionError((line, self.process.communicate()))
        return line

    def say(self):
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def end(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        if self.daemon is not None:
            self.context.__exit__(None, None, None)
        self.origin.end()

    def pids(self):
        """Of all processes of the daemon, by program."""
        root = self.process.pid if self.private else os.getpid()
        found = {}
        for pid in descendants(root):
            name = title(pid).split(":")[0].split("/")[-1]
            if name.startswith("egressd") and name not in (
                    "egressd-box", "egressd-fence"):
                found[name.removeprefix("egressd").lstrip("-") or
                      "parent"] = pid
        return found

    def quiet(self):
        """Every connection of the origin's is over: what there is, is all."""
        connections = self.origin.others()
        for connection in connections:
            assert connection.ended.wait(WAIT_S), "a connection goes on"
        return len(connections), len(self.origin.got())

    def refused(self):
        """The command tries on, in each way, and nothing comes of it."""
        before = self.quiet()
        self.say()
        told = json.loads(self.expect("{"))
        assert not any(told["good"].values()), f"served afterwards: {told}"
        assert self.quiet() == before, f"{before}, then {self.quiet()}"

    def exit(self):
        """After the command has ended of itself, with 0."""
        _, err = self.process.communicate(b"\n", timeout=WAIT_S)
        code = self.process.returncode
        assert code == GONE, f"exit status {code}: {err.decode()}"
        assert b"gate" in err, err
        return err


def check_records(traffic, witness):
    """The chain holds.  If somebody was left to write it down, the origin got
    nothing without a record, and each request has one end."""
    lines = traffic.log.read_text().split("\n")
    torn = lines.pop()
    records = verify(lines)
    if not witness:
        return
    assert torn == "", f"torn though the recorder lived: {torn[:80]}"
    ends = {}
    for record in records:
        if record["kind"] in FINAL and record["request"]:
            name = record["request"]["id"]
            ends[name] = ends.get(name, 0) + 1
    opened = [r["request"]["id"] for r in records
              if r["kind"] == "request_opened"]
    got = traffic.origin.got()
    count = got.count(b"GET /") + got.count(b"POST /")
    assert len(opened) >= count, f"{count} at the origin, {len(opened)} known"
    wrong = {n: ends.get(n, 0) for n in opened if ends.get(n, 0) != 1}
    assert not wrong, (f"{len(wrong)} of {len(opened)} requests have not one "
                       f"final record: {wrong}")


def kill(who, victim, private, number=signal.SIGKILL, witness=True):
    with Traffic(who, private) as traffic:
        pids = traffic.pids()
        assert set(VICTIMS) <= set(pids), pids
        start = time.monotonic()
        os.kill(pids[victim], number)
        until("the engine is gone", lambda: not alive(pids["tlsengine"]))
        took = time.monotonic() - start
        traffic.refused()
        assert took < CUT_S, f"the engine outlived it by {took:.2f} s"
        if victim != "tlsengine":
            until("all are gone", lambda: not any(
                alive(p) for p in pids.values()))
        traffic.exit()
        check_records(traffic, witness)


@cases.each([f"{victim} {who}" for victim in VICTIMS
             for who in ("user", "root")])
def killed_in_traffic(which):
    """Of the daemon that `egressctl run' started for itself."""
    victim, who = which.split()
    kill(who, victim, True, witness=False)


@cases.each(VICTIMS)
def killed_of_all(victim):
    """Of a daemon that is there for everybody.  Without a recorder nobody can
    write, and the kernel kills those who have lost their parent; else every
    request has its end."""
    kill("user", victim, False,
         witness=victim not in ("recorder", "parent"))


@cases.each(("user", "root"))
def ended_in_traffic(who):
    """In order: not even then is a request without its end."""
    kill(who, "parent", False, signal.SIGTERM)


# ---- those who do not answer ------------------------------------------------

def still(traffic):
    """Wait until the origin gets nothing for a while; what it has then."""
    last, since = None, time.monotonic()
    while time.monotonic() - since < STILL_S:
        have = len(traffic.origin.connections), count(traffic)
        if have != last:
            last, since = have, time.monotonic()
        time.sleep(0.02)
    return last


def count(traffic):
    """Requests; a body that was allowed may go on."""
    got = traffic.origin.got()
    return got.count(b"GET /") + got.count(b"POST /")


STILL_S = 1
# What fits into its channel; after that nothing is sent, whatever the credit.
CREDIT = 1280
SILENT = {"policyd": 3, "recorder": CREDIT}


@cases.each(SILENT)
def stopped_in_traffic(victim):
    """Stopped is not dead, and nobody notices; but what it alone can permit is
    not permitted.  Killed later, it is as above."""
    with Traffic("user", True) as traffic:
        pids = traffic.pids()
        os.kill(pids[victim], signal.SIGSTOP)
        before = count(traffic)
        until("it has stopped", lambda: "T" in status(pids[victim])["State"])
        after = still(traffic)
        assert after[1] - before <= SILENT[victim], (before, after)
        os.kill(pids[victim], signal.SIGKILL)
        until("the engine is gone", lambda: not alive(pids["tlsengine"]))
        traffic.refused()
        assert count(traffic) - before <= SILENT[victim], (
            before, after, count(traffic))
        traffic.exit()
        check_records(traffic, False)


@cases.case
def stopped_dialer_in_traffic():
    """Connections that there are may be used, a new one is not made."""
    with Traffic("user", True) as traffic:
        pids = traffic.pids()
        os.kill(pids["dialer"], signal.SIGSTOP)
        until("it has stopped", lambda: "T" in status(pids["dialer"])["State"])
        before = len(traffic.origin.connections)
        start = count(traffic)
        until("requests go on", lambda: count(traffic) > start + 100)
        assert len(traffic.origin.connections) == before
        os.kill(pids["dialer"], signal.SIGKILL)
        traffic.refused()
        traffic.exit()
        check_records(traffic, False)


cases.main()
