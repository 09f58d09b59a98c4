#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""The record of who was attached to a sandbox, and from when to when, however
either side ends; and that whoever writes it holds up nobody's end."""

import atexit
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases  # noqa: E402
from daemon import EGRESSCTL, Client, Daemon, until  # noqa: E402
from hands import frame  # noqa: E402

cases = Cases()
USER = 'user "nobody"' if os.geteuid() == 0 else ""
daemon = Daemon(f"""
	default sandbox "virtual"
	policy "none" {{ }}
	sandbox "virtual" virtual {{ policy "none" {USER} size 64M forward yes }}
	sandbox "echo" custom "/bin/cat" {{ policy "none" {USER} ungated }}
	sandbox "short" custom "/bin/true" {{ policy "none" {USER} ungated }}
""")
atexit.register(daemon.end)
daemon.start()
daemon.settle()
KINDS = ("session_attached", "session_detached")
BACKENDS = ("virtual", "echo")


def same(have, want):
    assert have == want, f"{have!r}, expected {want!r}"


def records(name, kinds=KINDS):
    return [r for r in daemon.records() if r["session_id"] == name and
            r["kind"] in kinds]


def wait_for(name, *kinds):
    """Its records of attachments, once they are of these kinds."""
    until(f"{kinds} of {name}", lambda: [
        r["kind"] for r in records(name)] == list(kinds))
    return records(name)


class Session:
    """One that is there; stopped at the end unless it has ended."""
    number = 0

    def __init__(self, sandbox):
        Session.number += 1
        self.name = f"{sandbox}-{Session.number}"
        answer = daemon.ask("session.start", session_id=self.name,
                            sandbox=sandbox)
        assert answer.get("ok"), answer

    def __enter__(self):
        return self

    def __exit__(self, *_):
        daemon.ask("session.stop", session_id=self.name)

    def attach(self):
        client = Client(daemon.socket)
        answer = client.ask("session.attach", session_id=self.name)
        assert answer.get("ok"), answer
        return client


def is_over(client):
    """Nothing but the end comes, and it does."""
    client.sock.settimeout(20)
    try:
        while client.sock.recv(65536):
            pass
    except ConnectionResetError:
        pass


@cases.each(BACKENDS)
def client_leaves(backend):
    with Session(backend) as session:
        client = session.attach()
        record, = wait_for(session.name, "session_attached")
        same((record["uid"], record["pid"]), (os.geteuid(), os.getpid()))
        same(record["program"], pathlib.Path(
            f"/proc/{os.getpid()}/comm").read_text().strip())
        client.close()
        record, last = wait_for(session.name, *KINDS)
        for member in ("attachment", "uid", "pid", "program"):
            same(last[member], record[member])
        same(last["attached_at"], record["at"])
        assert last["at"] >= last["attached_at"], last
        daemon.verified()


@cases.each(BACKENDS)
def several_at_once(backend):
    """Each has its own, and only what has ended is over."""
    with Session(backend) as session:
        one, two = session.attach(), session.attach()
        first, second = wait_for(session.name, "session_attached",
                                 "session_attached")
        assert first["attachment"] != second["attachment"]
        two.close()
        last = wait_for(session.name, "session_attached", *KINDS)[-1]
        same(last["attachment"], second["attachment"])
        one.close()
        last = wait_for(session.name, "session_attached", *KINDS,
                        "session_detached")[-1]
        same(last["attachment"], first["attachment"])


@cases.each(BACKENDS)
def what_is_sent_is_no_end(backend):
    """Nor does it wake who looks for the end."""
    with Session(backend) as session, session.attach() as client:
        wait_for(session.name, "session_attached")
        for _ in range(100):
            if backend == "echo":
                client.sock.sendall(b"x")
                same(client.sock.recv(1), b"x")
            else:
                client.sock.sendall(frame(1, 1, b'{"op":"list","path":"/"}'))
        same(len(records(session.name)), 1)


@cases.case
def killed_client():
    with Session("virtual") as session:
        process = subprocess.Popen(
            [EGRESSCTL, "-s", str(daemon.socket), "exec", session.name, "--",
             "sleep", "600"], stdin=subprocess.DEVNULL)
        record, = wait_for(session.name, "session_attached")
        same((record["pid"], record["program"]), (process.pid, "egressctl"))
        process.send_signal(signal.SIGKILL)
        process.wait()
        wait_for(session.name, *KINDS)


@cases.case
def forward():
    """Through the same connection, from its start to its end."""
    with Session("virtual") as session:
        process = subprocess.Popen(
            [EGRESSCTL, "-s", str(daemon.socket), "forward", session.name,
             "0:8080"], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        record, = wait_for(session.name, "session_attached")
        same(record["pid"], process.pid)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
        wait_for(session.name, *KINDS)


def program(pid):
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return ""       # it has just ended


def boxes():
    """Of the daemon's own children, those that make sandboxes."""
    have = pathlib.Path(f"/proc/{daemon.process.pid}/task/"
                        f"{daemon.process.pid}/children").read_text()
    return {pid for pid in map(int, have.split())
            if program(pid) == "egressd-box"}


@cases.case
def killed_box():
    before = boxes()
    session = Session("virtual")
    box, = boxes() - before
    with session.attach() as client:
        wait_for(session.name, "session_attached")
        os.kill(box, signal.SIGKILL)
        is_over(client)
        wait_for(session.name, *KINDS)
    until("the session is over", lambda: records(
        session.name, ["session_ended"]))


@cases.each(BACKENDS)
def stopped(backend):
    with Session(backend) as session:
        with session.attach() as client:
            wait_for(session.name, "session_attached")
            same(daemon.ask("session.stop", session_id=session.name)
                 ["reason"], "by_request")
            is_over(client)
        until("it is recorded", lambda: {r["kind"] for r in records(
            session.name, (*KINDS, "session_ended"))} ==
            {*KINDS, "session_ended"})


@cases.case
def refused_by_the_sandbox():
    """A client that breaks the protocol sees the end at once."""
    with Session("virtual") as session, session.attach() as client:
        client.sock.sendall(b"\xff" * 64)
        start = time.monotonic()
        is_over(client)
        assert time.monotonic() - start < 15
        wait_for(session.name, *KINDS)


@cases.case
def a_program_that_ends():
    with Session("short") as session, session.attach() as client:
        is_over(client)
        wait_for(session.name, *KINDS)


@cases.case
def more_than_the_sandbox_takes():
    """Those that are not served are not kept waiting, nor are the others."""
    with Session("virtual") as session:
        clients = [session.attach() for _ in range(33)]
        is_over(clients[-1])
        for client in clients:
            client.close()
        until("all have left", lambda: len(
            records(session.name, ["session_detached"])) == len(clients))


cases.main()
