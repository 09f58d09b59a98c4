#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""How it all ends: by a signal to any one process, in order, or not at all
though descriptors have run out."""

import concurrent.futures
import contextlib
import functools
import os
import pathlib
import re
import resource
import signal
import socket
import sys
import time
from datetime import datetime

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from case import Cases, Skip  # noqa: E402
from daemon import (POLICY, SANITIZED, WAIT_S, Daemon, alive,  # noqa: E402
                    until, verify)
from procs import (adopt, children, descriptors, orphans,  # noqa: E402
                   status, title)

SHARED = ("controld", "policyd", "recorder", "dialer", "deciderd", "k8sd",
          "podd")
SESSIONS = ("edge", "other")
# "All ends within a second"; a build with sanitizers is that much slower.
END_S = 4 if SANITIZED else 1
# On a machine that is busy with other tests a late end proves nothing, so
# the time is a failure only if it is never kept.
TRIES = 4
# For times that have a lower bound; the upper one is then not so strict.
LATE_S = 5 * END_S
# In which an engine has to start.
START_S = 20

cases = Cases()


def files_left(daemon):
    return [path.name for path in (daemon.socket,
                                   daemon.socket.with_suffix(".pid"))
            if path.exists()]


def end_of(daemon, pids, start):
    """Wait until all are gone; the exit status and how long it took."""
    code = daemon.wait()
    until("all are gone", lambda: not any(alive(p) for p in pids.values()))
    took = time.monotonic() - start
    assert not orphans(), f"left behind: {orphans()}"
    return code, took


def in_time(once):
    """Some run of it keeps the time; in each, all else must hold."""
    took = min_took = once()
    for _ in range(TRIES - 1):
        if min_took <= END_S:
            return
        took = once()
        min_took = min(took, min_took)
    assert min_took <= END_S, f"took {min_took:.2f} s at best, not {END_S}"


def same_but(before, after, *names):
    """Nobody but these has another pid."""
    changed = [name for name in before if before[name] != after.get(name)]
    assert set(before) == set(after), (before, after)
    assert sorted(changed) == sorted(names), f"not {names}: {changed}"


# ---- the death of a process that all need ----

def blame(daemon, victim):
    """The log says why all ends and accuses nobody else.  One that saw the
    end of the victim may be heard of first, and so may an engine that could
    not start without it."""
    text = daemon.log()
    accused = re.findall(r"(\w+) is gone: all ends", text)
    followed = re.findall(r"(\w+) has lost a peer: all ends", text)
    died = re.search(rf"{victim}\[\d+\] died of signal 9", text)
    assert accused == [victim] or not accused and (followed or died) and \
        victim not in followed, text


def kill_shared(victim, number):
    with Daemon() as daemon:
        pids = daemon.settle()
        start = time.monotonic()
        os.kill(pids[victim], number)
        code, took = end_of(daemon, pids, start)
        text = daemon.log()
        assert code == 1, f"exit status {code}"
        blame(daemon, victim)
        assert f"{victim}[{pids[victim]}] died of signal {number:d} " in \
            text, text
        assert not files_left(daemon), files_left(daemon)
        verify(daemon.audit.read_text().splitlines())
        # Who would say so, or write it down, must not be the victim.
        if victim not in ("policyd", "recorder"):
            kinds = {kind: sorted(r["session_id"] for r in daemon.records()
                                  if r["kind"] == kind)
                     for kind in ("session_started", "session_ended")}
            assert kinds["session_started"] == kinds["session_ended"], kinds
        return took


@cases.each(SHARED)
def killed(victim):
    in_time(lambda: kill_shared(victim, signal.SIGKILL))


@cases.each([f"{victim} {name}" for victim in SHARED
             for name in ("SIGSEGV", "SIGABRT")])
def crashed(which):
    victim, name = which.split()
    if SANITIZED and name == "SIGSEGV":
        raise Skip("sanitizers make an abort of it")
    kill_shared(victim, signal.Signals[name])


def kill_parent(stopped):
    with Daemon() as daemon:
        pids = daemon.settle()
        for name in stopped:
            os.kill(pids[name], signal.SIGSTOP)
        start = time.monotonic()
        os.kill(pids["parent"], signal.SIGKILL)
        code, took = end_of(daemon, pids, start)
        assert code == -signal.SIGKILL, f"exit status {code}"
        # What it could not clear away is no obstacle.
        assert "egressd.sock" in files_left(daemon)
        daemon.start()
        pids = daemon.settle()
        assert daemon.verified()[-1]["kind"] == "session_started"
        assert daemon.stop() == 0
        assert not files_left(daemon), files_left(daemon)
        return took


@cases.case
def killed_parent():
    """All children follow, and the next start finds its way."""
    in_time(lambda: kill_parent([]))


@cases.case
def killed_parent_of_stopped():
    """Those who cannot see the end of file end by the kernel's hand."""
    in_time(lambda: kill_parent(SHARED + SESSIONS))


@cases.each(SHARED)
def killed_during_start(victim):
    """Before it is confined, configured or connected; whichever it is."""
    daemon = Daemon()
    try:
        daemon.popen()
        parent = daemon.process.pid
        os.kill(until("start", lambda: [
            pid for pid, title in children(parent).items()
            if title == f"egressd-{victim}"])[0], signal.SIGKILL)
        assert daemon.wait() == 1, daemon.log()
        until("nobody is left", lambda: not orphans())
        blame(daemon, victim)
        assert not files_left(daemon), files_left(daemon)
    finally:
        daemon.end()


def hit_engine(daemon, number):
    """Signal an engine that starts for the first time; was it in time?"""
    daemon.popen()
    parent, hit = daemon.process.pid, []
    listed = pathlib.Path(f"/proc/{parent}/task/{parent}/children")
    end = time.monotonic() + WAIT_S
    # children() would look at everybody, and be late.
    while not hit and time.monotonic() < end:
        hit = [int(pid) for pid in listed.read_text().split()
               if title(pid) == "egressd-tlsengine: edge"]
    os.kill(hit[0], number)
    until("it has the signal",
          lambda: status(hit[0]).get("State", "Z")[0] in "TZX")
    # The last that it does before it answers.
    return "session edge: CA " not in daemon.log()


@cases.each(["SIGKILL", "SIGSTOP"])
def engine_during_start(name):
    """Without one of its sessions it is not ready, and does not wait for it
    for ever."""
    for _ in range(20):
        daemon = Daemon()
        if hit_engine(daemon, signal.Signals[name]):
            break
        daemon.end()
    try:
        assert daemon.wait(START_S + LATE_S) == 1, daemon.log()
        until("nobody is left", lambda: not orphans())
        text = daemon.log()
        assert "session edge: its engine does not start" in text, text
        assert ("is killed: it does not start" in text) == (
            name == "SIGSTOP"), text
        assert not files_left(daemon), files_left(daemon)
    finally:
        daemon.end()


# ---- the death of an engine ----

def seconds_down(records, session):
    """Between each end of a session and its next start."""
    downs, ended = [], None
    for record in records:
        if record["session_id"] != session:
            continue
        at = datetime.fromisoformat(record["at"])
        if record["kind"] == "session_ended":
            assert record["reason"] == "engine_died", record
            ended = at
        elif record["kind"] == "session_started" and ended is not None:
            downs.append((at - ended).total_seconds())
            ended = None
    return downs


def kill_engine(daemon, number, name="edge"):
    """Returns once there is another; nobody else has changed."""
    before = daemon.settle()
    os.kill(before[name], number)
    until("it dies", lambda: not alive(before[name]))
    after = until("another", lambda: (lambda now: now if now.get(
        name, before[name]) != before[name] else None)(daemon.settle()))
    same_but(before, after, name)


@cases.each(["SIGKILL", "SIGSEGV", "SIGABRT", "SIGSYS"])
def killed_engine(name):
    """Its session ends and starts again; nothing else notices."""
    if SANITIZED and name == "SIGSEGV":
        raise Skip("sanitizers make an abort of it")
    with Daemon() as daemon, daemon.client() as client:
        pid = daemon.settle()["edge"]
        kill_engine(daemon, signal.Signals[name])
        assert client.ask("status").get("ok"), "a client was hung up on"
        number = signal.Signals[name]
        assert f"tlsengine: edge[{pid}] died of signal {number:d} " in \
            daemon.log(), daemon.log()
        kinds = [(r["kind"], r["reason"]) for r in daemon.verified()
                 if r["session_id"] == "edge"]
        assert kinds == [("session_started", None),
                         ("session_ended", "engine_died"),
                         ("session_started", None)], kinds
        others = [r["kind"] for r in daemon.records()
                  if r["session_id"] == "other"]
        assert others == ["session_started"], others
        sessions = {s["session_id"]: s["restarts"]
                    for s in daemon.ask("status")["sessions"]}
        assert sessions == {"edge": 1, "other": 0}, sessions
        assert daemon.stop() == 0


@cases.case
def killed_engine_again():
    """At once the first time, then later and later; not so the others."""
    with Daemon() as daemon:
        for _ in range(3):
            kill_engine(daemon, signal.SIGKILL)
        kill_engine(daemon, signal.SIGKILL, "other")
        waits = re.findall(r"session (\w+): its engine starts again in (\d+)",
                           daemon.log())
        assert waits == [("edge", "0"), ("edge", "500"), ("edge", "1000"),
                         ("other", "0")], waits
        downs = seconds_down(daemon.verified(), "edge")
        assert len(downs) == 3 and downs[1] >= 0.5 and downs[2] >= 1, downs


@cases.case
def killed_engines():
    """All at once."""
    with Daemon() as daemon:
        before = daemon.settle()
        for name in SESSIONS:
            os.kill(before[name], signal.SIGKILL)
        until("they die", lambda: not any(alive(before[name])
                                          for name in SESSIONS))
        same_but(before, daemon.settle(), *SESSIONS)
        daemon.verified()


@cases.case
def killed_engine_in_reload():
    """A reload that waits for an engine does not wait for a dead one."""
    with Daemon() as daemon:
        before = daemon.settle()
        os.kill(before["edge"], signal.SIGSTOP)
        with daemon.client() as client:
            client.send({"id": 1, "op": "reload"})
            os.kill(before["edge"], signal.SIGKILL)
            answer = client.read()
        assert answer.get("generation") == 2, answer
        same_but(before, daemon.settle(), "edge")


# ---- those who do not answer ----

@cases.case
def stopped_engine():
    """It has a second to take a configuration, then it is replaced."""
    with Daemon() as daemon:
        before = daemon.settle()
        os.kill(before["edge"], signal.SIGSTOP)
        start = time.monotonic()
        answer = daemon.ask("reload")
        took = time.monotonic() - start
        assert answer.get("generation") == 2, answer
        assert 0.9 < took < 1 + LATE_S, f"answered after {took:.2f} s"
        # Killed is not yet gone.
        until("edge is another",
              lambda: daemon.settle()["edge"] != before["edge"])
        same_but(before, daemon.settle(), "edge")
        assert f"tlsengine: edge[{before['edge']}] is killed: it does not " \
            "answer" in daemon.log(), daemon.log()
        daemon.verified()


def stop_voter(victim):
    with Daemon() as daemon:
        pids = daemon.settle()
        os.kill(pids[victim], signal.SIGSTOP)
        start = time.monotonic()
        os.kill(pids["parent"], signal.SIGHUP)
        code, took = end_of(daemon, pids, start)
        assert code == 1, f"exit status {code}"
        assert 4.9 < took < 5 + LATE_S, f"ended after {took:.2f} s"
        assert f"{victim}[{pids[victim]}] is killed: it does not answer" in \
            daemon.log(), daemon.log()
        assert not files_left(daemon), files_left(daemon)


@functools.cache
def stopped_voters():
    """All together, since each is five seconds of waiting."""
    pool = concurrent.futures.ThreadPoolExecutor(len(SHARED))
    return {victim: pool.submit(stop_voter, victim) for victim in SHARED}


@cases.each(SHARED)
def stopped_voter(victim):
    """Without its vote there is no going on."""
    stopped_voters()[victim].result()


@cases.each(SHARED + SESSIONS)
def stopped_at_the_end(victim):
    """Who does not follow when all end is killed; the rest is in order."""
    with Daemon() as daemon:
        pids = daemon.settle()
        os.kill(pids[victim], signal.SIGSTOP)
        start = time.monotonic()
        daemon.process.terminate()
        code, took = end_of(daemon, pids, start)
        assert code == 0, f"exit status {code}"
        assert took < LATE_S, f"took {took:.2f} s"
        assert f"[{pids[victim]}] does not end, killed" in daemon.log()
        assert not files_left(daemon), files_left(daemon)
        verify(daemon.audit.read_text().splitlines())


# ---- the end in order ----

@cases.each(["SIGTERM", "SIGINT"])
def ended(name):
    """Every session's end is the last that the chain says of it."""
    def once():
        with Daemon() as daemon, daemon.client() as follower:
            pids = daemon.settle()
            assert follower.ask("events.follow").get("ok")
            until("follower", lambda: daemon.ask("status")["audit"][
                "followers"] == 1)
            start = time.monotonic()
            daemon.process.send_signal(signal.Signals[name])
            code, took = end_of(daemon, pids, start)
            assert code == 0, f"exit status {code}: {daemon.log()}"
            assert not files_left(daemon), files_left(daemon)
            lines = daemon.audit.read_text().splitlines()
            ends = [(r["session_id"], r["reason"]) for r in verify(lines)
                    if r["kind"] == "session_ended"]
            assert sorted(ends) == [("edge", "stopped"),
                                    ("other", "stopped")], ends
            seen = [follower.read() for _ in ends]
            assert seen == verify(lines)[-2:], seen
            assert follower.read() is None, "a follower is not hung up on"
            assert "died" not in daemon.log(), daemon.log()
            return took
    in_time(once)


@cases.each([0, 3, 6, 10, 15, 20, 30, 45])
def ended_during_start(delay_ms):
    """Whenever the signal comes, there is an end and room for a new start."""
    daemon = Daemon()
    try:
        daemon.popen()
        time.sleep(delay_ms / 1000)
        daemon.process.terminate()
        code = daemon.wait()
        # Before it listens to signals it has nothing to put in order.
        assert code in (0, -signal.SIGTERM), f"status {code}: {daemon.log()}"
        until("nobody is left", lambda: not orphans())
        if code == 0:
            assert not files_left(daemon), files_left(daemon)
        daemon.start()
        daemon.settle()
        daemon.verified()
        assert daemon.stop() == 0
    finally:
        daemon.end()


@cases.each(["SIGTERM", "SIGKILL"])
def ended_during_reload(name):
    """What only the next configuration has is cleared away too."""
    with Daemon() as daemon:
        pids = daemon.settle()
        read_only = daemon.dir / "ro.sock"
        os.kill(pids["dialer"], signal.SIGSTOP)
        daemon.write(f'control socket "{read_only}" read-only\n' + POLICY)
        os.kill(pids["parent"], signal.SIGHUP)
        until("the new socket", read_only.exists)
        start = time.monotonic()
        if name == "SIGTERM":
            daemon.process.terminate()
        else:
            os.kill(pids["dialer"], signal.SIGKILL)
        code, _ = end_of(daemon, pids, start)
        assert code == (name == "SIGKILL"), f"exit status {code}"
        assert not files_left(daemon), files_left(daemon)
        assert not read_only.exists(), "ro.sock is left"


@cases.case
def hangup_reloads():
    with Daemon() as daemon:
        before = daemon.settle()
        os.kill(before["parent"], signal.SIGHUP)
        until("reload", lambda: daemon.ask("status")["generation"] == 2)
        same_but(before, daemon.settle())


@cases.case
def signals_to_children():
    """A terminal's signals are for the parent to understand."""
    with Daemon() as daemon:
        before = daemon.settle()
        for name, pid in before.items():
            if name != "parent":
                for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP,
                               signal.SIGPIPE, signal.SIGUSR1, signal.SIGTSTP):
                    os.kill(pid, number)
        assert daemon.ask("reload").get("ok")
        same_but(before, daemon.settle())


@cases.case
def second_start():
    """A socket that is served is not taken over."""
    with Daemon() as daemon:
        before = daemon.settle()
        other = Daemon(option=False, args=["-s", str(daemon.socket)])
        try:
            other.popen()
            assert other.wait() == 1
            assert "another egressd serves it" in other.log(), other.log()
        finally:
            other.end()
        same_but(before, daemon.settle())
        assert daemon.stop() == 0


# ---- no descriptors left ----

def limit_descriptors(pid, count):
    """Below its hard limit, and as its own user: root may not be almighty."""
    owner = [int(status(pid)[key].split()[0]) for key in ("Gid", "Uid")]
    helper = os.fork()
    if helper == 0:
        try:
            os.setresgid(*owner[:1] * 3)
            os.setresuid(*owner[1:] * 3)
            _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (
                hard if count is None else count, hard))
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(helper, 0)[1] == 0, f"prlimit of {pid}"


@contextlib.contextmanager
def starved(pid):
    """A process that gets no descriptor beyond those that it has."""
    held = set(descriptors(pid))
    limit_descriptors(pid, next(n for n in range(len(held) + 1)
                                if n not in held))
    try:
        yield
    finally:
        if alive(pid):
            limit_descriptors(pid, None)


def count_descriptors(pids):
    return {name: len(descriptors(pid)) for name, pid in pids.items()}


def pester(daemon, ops):
    """Everything that takes descriptors, from clients that may get none."""
    with contextlib.ExitStack() as stack:
        for i in range(12):
            client = stack.enter_context(daemon.client())
            client.sock.settimeout(0.05)
            stack.enter_context(socket.create_connection(
                ("127.0.0.1", daemon.port(15001)), 1))
            with contextlib.suppress(OSError):
                client.send({"id": 1, "op": ops[i % len(ops)]})
                client.read()


def starve(victim, meanwhile=lambda daemon, client: None,
           ops=("status", "events.follow", "reload")):
    """All survive, and when it is over all is as before."""
    with Daemon() as daemon, daemon.client() as client:
        before = daemon.settle()
        # A connection that is still being closed would leave some room.
        until("others are gone", lambda: client.ask("status")["clients"] == 1)
        count = count_descriptors(before)
        with starved(before[victim]):
            meanwhile(daemon, client)
            pester(daemon, ops)
            os.kill(before["other"], signal.SIGKILL)
            until("it dies", lambda: not alive(before["other"]))
            for name, pid in before.items():
                assert name == "other" or alive(pid), f"{name}: {daemon.log()}"
        same_but(before, daemon.settle(), "other")
        # Reloads that clients left behind may still be under way.
        until("reload", lambda: daemon.ask("reload").get("ok"))
        with daemon.client() as follower:
            assert follower.ask("events.follow").get("ok")
            os.kill(daemon.settle()["other"], signal.SIGKILL)
            kinds = {follower.read()["kind"] for _ in range(2)}
            assert kinds == {"session_started", "session_ended"}, kinds
        daemon.verified()
        client.close()
        after = daemon.settle()
        same_but(before, after, "other")
        until(f"{count}", lambda: count_descriptors(after) == {
            **count, "controld": count["controld"] - 1})
        assert daemon.stop() == 0, daemon.log()


def refused(daemon, client, conf, code, *words):
    """A reload that is refused for want of descriptors, which it says."""
    daemon.write(conf)
    answer = client.ask("reload")
    error = answer.get("error", {})
    assert error.get("code") == code, answer
    for word in words:
        assert word in error["message"], answer
    daemon.write(POLICY)
    assert client.ask("status")["generation"] == 1


@cases.case
def starved_parent():
    starve("parent", lambda daemon, client: refused(
        daemon, client, POLICY, "bad_configuration", "Too many open files"))


@cases.case
def starved_policyd():
    starve("policyd")


@cases.case
def starved_controld():
    def meanwhile(daemon, client):
        refused(daemon, client, POLICY, "reload_refused", "controld",
                "no free descriptor")
    starve("controld", meanwhile)


@cases.case
def starved_controld_clients():
    """Who has to wait for a descriptor is served when there is one."""
    with Daemon() as daemon:
        before = daemon.settle()
        with starved(before["controld"]):
            clients = [daemon.client() for _ in range(20)]
            for client in clients:
                client.send({"id": 1, "op": "status"})
            until("it says so", lambda: "clients have to wait" in
                  daemon.log())
            assert daemon.log().count("have to wait") == 1
        for client in clients:
            assert client.read().get("ok")
            client.close()
        same_but(before, daemon.settle())


@cases.case
def starved_recorder():
    def meanwhile(daemon, client):
        other = f'audit file "{daemon.dir}/other.log"\n'
        daemon.audited = False
        refused(daemon, client, other + POLICY, "reload_refused", "recorder",
                "no free descriptor")
        daemon.audited = True
        daemon.write(POLICY)
    starve("recorder", meanwhile)


@cases.case
def starved_dialer():
    starve("dialer")


DECIDER = """
decider "guard" agent {{
        api anthropic
        url "https://127.0.0.1:1/v1/messages"
        model "small"
        key file "{key}"
        prompt file "{key}"
}}
"""
CLUSTER = """
cluster "lab" {{
        server "https://127.0.0.1:1"
        token file "{key}"
}}
sandbox "pod" kubernetes {{ policy "open" cluster "lab" ungated }}
"""


def with_file(role, block):
    def meanwhile(daemon, client):
        key = daemon.dir / "key"
        key.write_text("secret\n")
        key.chmod(0o600)
        refused(daemon, client, POLICY + block.format(key=key),
                "reload_refused", role, "Too many open files")
    starve(role, meanwhile)


@cases.case
def starved_deciderd():
    with_file("deciderd", DECIDER)


@cases.case
def starved_k8sd():
    with_file("k8sd", CLUSTER)


@cases.case
def starved_engine():
    starve("edge", ops=("status", "events.follow"))


@cases.case
def starved_engine_in_reload():
    """It has no vote, so if it cannot follow it is replaced; no more."""
    with Daemon() as daemon:
        before = daemon.settle()
        with starved(before["edge"]):
            answer = daemon.ask("reload")
            assert answer.get("generation") == 2, answer
        after = until("it works", daemon.settle)
        same_but({**before, "edge": 0}, {**after, "edge": 1}, "edge")
        daemon.verified()


@cases.each([4, 7, 10, 12, 15, 20, 24, 64, 320])
def started_with_few(files):
    """With so few descriptors it works or says why it does not."""
    daemon = Daemon()
    try:
        daemon.popen(preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_NOFILE, (files, files)))
        until("ready or not", lambda: daemon.process.poll() is not None or
              "ready, generation" in daemon.log())
        if daemon.process.poll() is None:
            daemon.settle()
            assert daemon.stop() == 0
        else:
            assert daemon.wait() == 1, f"{daemon.wait()}: {daemon.log()}"
            assert re.search("open files|descriptor", daemon.log()), \
                daemon.log()
        until("nobody is left", lambda: not orphans())
        # libevent ends the process if it cannot have its own.
        assert "[err]" in daemon.log() or not files_left(daemon), \
            files_left(daemon)
        daemon.start()
        assert daemon.stop() == 0
    finally:
        daemon.end()


adopt()
cases.main()
