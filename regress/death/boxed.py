#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Sandboxes that the daemon makes, when any process on the way is killed at any
moment of their life: nothing of them is left, whoever lives on says why, and
the same session can be had again.

The moments are chosen at random; DEATHS_SEED=number chooses them again."""

import contextlib
import glob
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from case import Cases  # noqa: E402
from daemon import EGRESSCTL, WAIT_S, Daemon, alive, until  # noqa: E402
from procs import adopt, status, title  # noqa: E402

SEED = int(os.environ.get("DEATHS_SEED") or random.randrange(1 << 32))
MOMENTS = 50
PYTHON = "/usr/bin/python3"     # which a sandbox has too
MIB = 1 << 20
BIG = 64 * MIB
ROOT = os.geteuid() == 0
USER = 'user "nobody"' if ROOT else ""
BACKENDS = ("local", "virtual")
PHASES = ("start", "exec", "write", "idle")
# Without one of these there is no sandbox; the first two end the daemon.
VICTIMS = ("parent", "controld", "engine", "box", "init", "hands", "broker",
           "client", "owner")
WHY = {"engine": "engine_died", "box": "sandbox_died", "init": "sandbox_died",
       "hands": "sandbox_died", "owner": "owner_left"}
# Children that their parents leave behind, in sessions of their own.
FAMILY = ("setsid sh -c 'sleep 9001 & sleep 9002' & (sleep 9003 &); "
          "(setsid sleep 9004 &); sleep 9005")
FAMILY_SIZE = 5
# Holds a session that ends with its connection.
OWNER = """
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(sys.argv[2].encode())
print(s.makefile().readline(), flush=True)
s.recv(1)
"""

cases = Cases()
adopt()


# ---- who there is ----

def tree(top):
    """Pid to title of all below a process, zombies not."""
    kids = {}
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        have = status(path.name)
        if have:
            kids.setdefault(int(have["PPid"]), []).append(
                (int(path.name), have["State"][0]))
    found, todo = {}, [top]
    while todo:
        for pid, state in kids.get(todo.pop(), ()):
            todo.append(pid)
            if state != "Z":
                found[pid] = title(pid)
    return found


def numbers(pid):
    """The pids that a process has, its sandbox's last."""
    return status(pid).get("NSpid", "").split()


def cast(daemon, name):
    """The processes of the only session, by what they are."""
    parent = daemon.process.pid
    found = {"parent": parent}
    for pid, text in tree(parent).items():
        have = status(pid)
        above = have.get("PPid")
        if text == "egressd-controld":
            found["controld"] = pid
        elif text == f"egressd-tlsengine: {name}":
            found["engine"] = pid
        elif text != "egressd-box" or not have:
            continue
        elif above == str(parent):
            found["box"] = pid
        elif len(numbers(pid)) == 1:
            found["broker"] = pid
        elif numbers(pid)[-1] == "1":
            found["init"] = pid
        elif len(numbers(above)) > 1 and numbers(above)[-1] == "1":
            found["hands"] = pid
    return found


def strangers(place):
    """Processes that stem from us and are a session's."""
    own = {place.daemon.process.pid} | {h.pid for h in place.helpers}
    found = tree(os.getpid())
    for pid, text in found.items():
        if re.fullmatch(r"egressd-(controld|policyd|recorder|dialer|deciderd|"
                        r"k8sd|podd)", text):
            own.add(pid)
    return {pid: text for pid, text in found.items() if pid not in own}


def namespaces(pids):
    """Those of some processes that are not ours."""
    found = set()
    for pid in pids:
        for path in glob.glob(f"/proc/{pid}/ns/*"):
            with contextlib.suppress(OSError):
                found.add(os.readlink(path))
    for path in pathlib.Path("/proc/self/ns").glob("*"):
        found.discard(os.readlink(path))
    return found


def entered(spaces):
    """Who is in one of these, or has it open."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        for link in glob.glob(f"{path}/ns/*") + glob.glob(f"{path}/fd/*"):
            with contextlib.suppress(OSError):
                if os.readlink(link) in spaces and alive(path.name):
                    found[path.name] = title(path.name)
    return found


def mounts(place):
    """What the host has mounted that has to do with the test."""
    lines = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
    return [line for line in lines if str(place.dir) in line or
            place.name in line or " nsfs " in line and "egressd" in line]


def litter(place):
    """Files that nobody has asked for: staged ones, and what is new beside
    the daemon's."""
    found = []
    for top in (place.dir, pathlib.Path("/tmp"), pathlib.Path("/var/tmp"),
                pathlib.Path("/dev/shm"), pathlib.Path("/")):
        found += [p for p in top.glob(".egressd-*")]
    known = {"egressd.conf", "egressd.sock", "egressd.pid", "audit.log",
             "audit.log.tip", "stderr", "big", "notify"}
    found += [p for p in place.daemon.dir.iterdir() if p.name not in known]
    if place.dir.exists():
        found += [p for p in place.dir.iterdir() if p.name != "written"]
    return sorted(set(map(str, found)) - place.there)


# ---- where it happens ----

class Place:
    """A daemon and the name of a session, which may be another's to end."""

    def __init__(self, backend, name):
        self.backend, self.name, self.there = backend, name, set()
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="egressd-deaths."))
        if ROOT:
            shutil.chown(self.dir, "nobody")
        self.daemon = Daemon(f"""
            policy "none" {{ }}
            sandbox "local" local {{ policy "none" {USER} cwd "{self.dir}" }}
            sandbox "virtual" virtual {{ policy "none" {USER} size 256M }}
        """)
        self.big = self.daemon.dir / "big"
        with open(self.big, "wb") as file:
            file.truncate(BIG)
        self.helpers = []

    def __enter__(self):
        try:
            self.daemon.start()
            self.daemon.settle()
            self.there = set(litter(self))
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            self.daemon.show()
        self.end()

    def end(self):
        for helper in self.helpers:
            helper.kill()
            helper.communicate()
        self.daemon.end()
        shutil.rmtree(self.dir, ignore_errors=True)

    def ask(self, op, **fields):
        return self.daemon.ask(op, **fields)

    def start(self):
        return self.ask("session.start", **self.wish())

    def wish(self):
        return {"session_id": self.name, "sandbox": self.backend}

    def spawn(self, argv, **popen):
        popen.setdefault("stdin", subprocess.DEVNULL)
        helper = subprocess.Popen(
            [str(a) for a in argv], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, cwd="/", **popen)
        self.helpers.append(helper)
        return helper

    def ctl(self, *args, **popen):
        """egressctl in the background."""
        return self.spawn([EGRESSCTL, "-s", self.daemon.socket, *args],
                          **popen)

    def works(self):
        helper = self.ctl("exec", self.name, "--", "echo", "works")
        out, err = helper.communicate(timeout=WAIT_S)
        assert (helper.returncode, out) == (0, "works\n"), (out, err)

    def listed(self):
        return [s["session_id"] for s in
                self.ask("session.list")["sessions"]]


def hold(place):
    """Have a process of its own start a session without an id."""
    wish = {"id": 1, "op": "session.start", "sandbox": place.backend}
    helper = place.spawn([sys.executable, "-c", OWNER, place.daemon.socket,
                          json.dumps(wish) + "\n"])
    return helper


def sleepers(place):
    return [pid for pid, text in tree(place.daemon.process.pid).items()
            if text == "sleep"]


def begin_exec(place, rng):
    client = place.ctl("exec", place.name, "--", "sh", "-c", FAMILY)
    until("the family is there", lambda: len(sleepers(place)) == FAMILY_SIZE)
    return client


def begin_write(place, rng):
    """Up to some place in the file; a write that is over by then is none to
    be interrupted, and as good a moment."""
    if rng.random() < 0.5:
        helper = place.ctl("exec", place.name, "--", "sh", "-c",
                           "echo old > written")
        helper.communicate(timeout=WAIT_S)
    with open(place.big, "rb") as file:
        client = place.ctl("write", place.name, "written", stdin=file)
    wanted = rng.randrange(BIG)

    def there():
        try:
            text = pathlib.Path(f"/proc/{client.pid}/fdinfo/0").read_text()
        except OSError:
            return True
        return int(text.split()[1]) >= wanted or client.poll() is not None
    until("it writes", there)
    return client


def begin_idle(place, rng):
    client = place.ctl("exec", "-i", place.name, "--", "sh", "-c",
                       "echo there; exec cat", stdin=subprocess.PIPE)
    assert client.stdout.readline() == "there\n", client.stderr.read()
    time.sleep(rng.random() / 20)
    return client


BEGIN = {"exec": begin_exec, "write": begin_write, "idle": begin_idle}


# ---- what follows ----

def kill(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def nothing_left(place, spaces):
    """Of the processes, namespaces, mounts and files of the session."""
    until("no process is left", lambda: not strangers(place))
    until("no namespace is left", lambda: not entered(spaces))
    assert not mounts(place), mounts(place)
    assert not litter(place), litter(place)
    with contextlib.suppress(FileNotFoundError):
        size = (place.dir / "written").stat().st_size
        assert size in (len("old\n"), BIG), f"half a file: {size}"


def ends_of(place, name):
    return [r["reason"] for r in place.daemon.verified()
            if r["kind"] == "session_ended" and r["session_id"] == name]


def begins_of(place, name):
    return sum(r["kind"] == "session_started" and r["session_id"] == name
               for r in place.daemon.records())


def stop_at_once(place):
    """When the answer to session.stop has come, nobody is left."""
    answer = place.ask("session.stop", session_id=place.name)
    # The engine, which has closed its channels and has no title any more,
    # is none of the sandbox's.
    left = {pid: text for pid, text in strangers(place).items()
            if not status(pid).get("Name", "egressd-tlsengine").startswith(
                "egressd-tls")}
    assert answer.get("reason") == "by_request", answer
    assert not left, f"behind the answer of session.stop: {left}"


def again(place):
    """The same session can be had again; nothing is left of that either."""
    answer = place.start()
    assert answer.get("ok") and not answer.get("existed"), answer
    place.works()
    stop_at_once(place)
    nothing_left(place, set())


def daemon_dies(place, victim, spaces):
    code = place.daemon.wait()
    assert code == (-signal.SIGKILL if victim == "parent" else 1), code
    nothing_left(place, spaces)
    place.daemon.start()
    place.daemon.settle()


def session_dies(place, victim, name, waiter, spaces):
    """The record, session.wait and session.list agree."""
    answer = waiter.read()
    assert answer.get("reason") == WHY[victim], answer
    ends = ends_of(place, name)
    assert ends == [WHY[victim]], ends
    assert name not in place.listed()
    nothing_left(place, spaces)


def session_stays(place, victim, spaces):
    """Without its client, or with nobody who could connect."""
    until("what the client ran has ended",
          lambda: victim != "client" or not sleepers(place))
    assert place.name in place.listed()
    if victim == "broker":
        helper = place.ctl("exec", place.name, "--", PYTHON, "-c",
                           "import socket; socket.create_connection("
                           "('127.0.0.1', 1))")
        _, err = helper.communicate(timeout=WAIT_S)
        assert "Function not implemented" in err, err
    place.works()
    stop_at_once(place)
    assert ends_of(place, place.name) == ["by_request"]
    nothing_left(place, spaces)


def at_work(place, victim, phase, rng):
    """Kill somebody while the sandbox is at work."""
    name = place.name
    if victim == "owner":
        client = hold(place)
        name = json.loads(client.stdout.readline())["session_id"]
        place.name = name
    else:
        answer = place.start()
        assert answer.get("ok"), answer
        client = None
    with place.daemon.client() as waiter:
        waiter.send({"id": 1, "op": "session.wait", "session_id": name})
        worker = BEGIN[phase](place, rng)
        people = cast(place.daemon, name)
        people["client"] = worker.pid
        people["owner"] = client.pid if client else None
        spaces = namespaces(strangers(place))
        kill(people[victim])
        if victim in ("parent", "controld"):
            daemon_dies(place, victim, spaces)
        elif victim in WHY:
            session_dies(place, victim, name, waiter, spaces)
        else:
            session_stays(place, victim, spaces)


def starting(place, victim, rng):
    """Kill somebody while the sandbox starts, as soon as there is such a
    process or a little later."""
    client = place.ctl("session", "start", "-n", place.name, place.backend)
    people = {"client": client.pid, "owner": client.pid}

    def there():
        people.update(cast(place.daemon, place.name))
        return victim in people
    until(f"{victim} is there", there)
    time.sleep(rng.choice((0, rng.random() / 100, rng.random() / 10)))
    spaces = namespaces(strangers(place))
    kill(people[victim])
    if victim in ("parent", "controld"):
        daemon_dies(place, victim, spaces)
        return
    out, err = client.communicate(timeout=WAIT_S)
    if victim in ("client", "owner", "broker"):
        # In time or not: what was started is there, and else it never was.
        until("it is settled", lambda: all(
            s["state"] == "running" for s in
            place.ask("session.list")["sessions"]))
        if place.name in place.listed():
            place.works()
            stop_at_once(place)
    else:
        until("it is over", lambda: place.name not in place.listed())
        # policyd and the recorder hear of it by and by.
        until("each beginning has its end", lambda: begins_of(
            place, place.name) == len(ends_of(place, place.name)))
        ends = ends_of(place, place.name)
        assert set(ends) <= {WHY[victim]}, (ends, out, err)
    nothing_left(place, spaces)


def moments():
    """Each kind of victim and of moment is about as frequent."""
    rng = random.Random(SEED)
    kinds = [(b, v, p) for b in BACKENDS for v in VICTIMS for p in PHASES]
    rng.shuffle(kinds)
    return [f"{n} {b} {v} {p}" for n, (b, v, p) in
            enumerate((kinds * 2)[:MOMENTS])]


@cases.each(moments())
def killed(moment):
    number, backend, victim, phase = moment.split()
    rng = random.Random(f"{SEED} {number}")
    try:
        with Place(backend, f"deaths-{number}") as place:
            if phase == "start":
                starting(place, victim, rng)
            else:
                at_work(place, victim, phase, rng)
            again(place)
    except Exception:
        print(f"DEATHS_SEED={SEED} chooses these moments again")
        raise


@cases.each([f"{backend} {who}" for backend in BACKENDS
             for who in ("hands", "init", "box", "broker", "engine")])
def held(which):
    """One that has been stopped cannot hold up the end of its session."""
    backend, who = which.split()
    with Place(backend, "held") as place:
        assert place.start().get("ok")
        begin_exec(place, random.Random(0))
        os.kill(cast(place.daemon, place.name)[who], signal.SIGSTOP)
        spaces = namespaces(strangers(place))
        answer = place.ask("session.stop", session_id=place.name)
        assert answer.get("reason") == "by_request", answer
        nothing_left(place, spaces)
        again(place)


@cases.each(BACKENDS)
def ended_in_order(backend):
    """When the daemon has exited, its sandboxes are gone."""
    with Place(backend, "ended") as place:
        assert place.start().get("ok")
        begin_exec(place, random.Random(0))
        assert place.daemon.stop() == 0
        assert not strangers(place), strangers(place)
        ends = [r["reason"] for r in place.daemon.records()
                if r["kind"] == "session_ended"]
        assert ends == ["stopped"], ends


if __name__ == "__main__":
    cases.main()
