#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""The battery against sandboxes that a daemon makes, part three: against the
parent, by a box and by hands that were taken over, and by clients that come and
go.  Whatever they do, their session is all that ends, and nothing of it is
left."""

import atexit
import ctypes
import os
import pathlib
import signal
import socket
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from boxedlib import (ALICE, Client, Host, Place, Sandbox,  # noqa: E402
                      error, same, until)
from case import Cases  # noqa: E402
from daemon import alive  # noqa: E402
from procs import title  # noqa: E402

cases = Cases()
SYS_PIDFD_OPEN, SYS_PIDFD_GETFD = 434, 438
CHANNEL = 3             # of hands
place = Place()
atexit.register(place.end)
work = place.make("work", ALICE)
host = Host(f"""
policy "p" {{ }}
sandbox "local" local {{ policy "p" user "nobody" cwd "{work}" }}
sandbox "virtual" virtual {{ policy "p" user "nobody" size 64M }}
sandbox "echo" custom "/bin/cat" {{ policy "p" user "nobody" ungated }}
""")
atexit.register(host.end)
host.start()
host.settle()


def taken(pid, number):
    """A descriptor of another process, as whoever has taken it over."""
    libc = ctypes.CDLL(None, use_errno=True)
    pidfd = libc.syscall(SYS_PIDFD_OPEN, pid, 0)
    assert pidfd >= 0, ctypes.get_errno()
    fd = libc.syscall(SYS_PIDFD_GETFD, pidfd, number, 0)
    os.close(pidfd)
    assert fd >= 0, os.strerror(ctypes.get_errno())
    return socket.socket(fileno=fd)


# ---- the parent's side --------------------------------------------------------------

def box_is_killed(box):
    os.kill(box.box, signal.SIGKILL)


def hands_are_killed(box):
    os.kill(box.hands_pid(), signal.SIGKILL)


def speak(*packets):
    def attack(box):
        with taken(box.hands_pid(), CHANNEL) as channel:
            channel.setblocking(False)
            try:
                for packet in packets:
                    channel.send(packet)
            except OSError:
                pass    # it has been cut off, or is full
    return attack


def send_descriptors(box):
    with taken(box.hands_pid(), CHANNEL) as channel:
        reads, writes = os.pipe()
        channel.setblocking(False)
        try:
            for word in (b"R", b"A", b"x"):
                socket.send_fds(channel, [word], [reads, writes, 0] * 20)
        except OSError:
            pass
        finally:
            os.close(reads)
            os.close(writes)


def both_at_once(box):
    """Its end and that of the channel are seen in one turn of the parent."""
    pid = host.process.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        os.kill(box.box, signal.SIGKILL)
        until("it is dead", lambda: not alive(box.box))
    finally:
        os.kill(pid, signal.SIGCONT)


HOSTILE = {
    "box_is_killed": box_is_killed, "hands_are_killed": hands_are_killed,
    "both_at_once": both_at_once, "ready_twice": speak(b"R"),
    "flood": speak(*[b"R"] * 20000), "long_word": speak(b"R" * 60000),
    "other_word": speak(b"A"), "empty_word": speak(b""),
    "descriptors": send_descriptors,
}


def holds_no_more(before):
    """At first a process that was about to be reaped may have counted, too; a
    leak of each of many is more than that."""
    until("nothing is held", lambda: all(
        now <= then for now, then in zip(host.held(), before)))


@cases.each(HOSTILE)
def a_box_that_was_taken_over(how):
    """Its session ends; parent, controld and the neighbour go on, and hold
    what they held before."""
    with Sandbox(host, "virtual", "other") as other:
        before = host.held()
        for number in range(3):
            box = Sandbox(host, "virtual", f"taken{number}")
            HOSTILE[how](box)
            host.gone(box.name)
            box.hands.close()
        same(other.sh("echo here"), "here\n")
        holds_no_more(before)
    host.works()


@cases.case
def hands_that_do_not_listen():
    """Clients that nobody takes are not kept for ever, and hold up nobody."""
    with Sandbox(host, "virtual", "other") as other:
        before = host.held()
        box = Sandbox(host, "virtual", "deaf")
        pid = box.hands_pid()
        os.kill(pid, signal.SIGSTOP)
        wires = []
        for _ in range(400):
            wire = Client(host.socket)
            assert wire.ask("session.attach", session_id="deaf").get("ok")
            wires.append(wire)
        same(other.sh("echo here"), "here\n")
        host.stop_session("deaf")
        for wire in wires:
            wire.close()
        box.hands.close()
        holds_no_more(before)


def caught_starting(client):
    """A box that is stopped before it serves, if it is: it is fast."""
    listed = pathlib.Path(f"/proc/{host.process.pid}/task/"
                          f"{host.process.pid}/children")
    known = set(listed.read_text().split())
    client.send({"id": 1, "op": "session.start", "sandbox": "virtual",
                 "session_id": "late"})
    end = time.monotonic() + 10
    while time.monotonic() < end:
        for pid in set(listed.read_text().split()) - known:
            if title(pid) == "egressd-box":
                os.kill(int(pid), signal.SIGSTOP)
                return
    raise AssertionError("no box in 10 s")


@cases.case
def never_ready():
    """A box that is stopped while it starts: whoever waits can end it, and
    nothing is left."""
    until("it is quiet", host.idle)
    before = host.held()
    for _ in range(20):
        with host.client() as client, host.client() as other:
            caught_starting(client)
            host.works()
            state = host.sessions()["late"]["state"]
            answer = other.ask("session.attach", session_id="late") \
                if state == "starting" else None
            host.ask("session.stop", session_id="late")
            first = client.read()
        if answer is not None:
            break
    same(error(answer)[0], "busy")
    same(error(first)[0], "start_failed")
    holds_no_more(before)


@cases.case
def what_a_box_says():
    """Megabytes and escape sequences: the log has some of it, made visible."""
    with Sandbox(host, "virtual") as box:
        size = len(host.log())
        with open(f"/proc/{box.box}/fd/2", "wb", buffering=0) as pipe:
            pipe.write(b"\x1b[2J\x1b]0;title\x07 \xff\xfe <0>parent: forged\n")
            for _ in range(64):
                pipe.write((b"x" * 1000 + b"\n") * 32 + b"y" * 32768)
        host.works()
        log = host.log()[size:]
        assert "\x1b" not in log and "\x07" not in log, log[:200]
        assert "^[[2J" in log, log[:200]
        assert len(log) < 400000, f"{len(log)} bytes of log"
        assert "not logged" in log, log[-300:]


@cases.case
def what_a_client_is_told():
    """A name with escape sequences and lines, in a message of one line."""
    answer = host.ask("session.start", sandbox="local",
                      cwd=f"{work}/\x1b[2J\nsecond \x9b line")
    code, message = error(answer)
    same(code, "start_failed")
    assert len(message) < 2000 and "\n" not in message, message
    done = host.ctl("session", "start", "-w", f"{work}/\x1b[2J\x07", "local")
    assert done.returncode != 0 and "\x1b" not in done.stderr, done
    assert "\x07" not in done.stderr, done
    assert "\x1b" not in host.log()


# ---- clients that come and go ---------------------------------------------------------

def attach_and_leave(count):
    with Sandbox(host, "virtual", "busy"):
        for _ in range(count):
            with Client(host.socket) as client:
                assert client.ask("session.attach",
                                  session_id="busy").get("ok")


def attach_many(count):
    """All at once; hands serve 32 of them."""
    with Sandbox(host, "virtual", "busy") as box:
        wires = []
        for _ in range(count):
            wires.append(Client(host.socket))
            answer = wires[-1].ask("session.attach", session_id="busy")
            assert answer.get("ok"), answer
        same(box.sh("echo here"), "here\n")
        for wire in wires:
            wire.close()


def start_and_leave(count):
    for number in range(count):
        with Client(host.socket) as client:
            client.send({"id": 1, "op": "session.start",
                         "sandbox": ("virtual", "local", "echo")[number % 3]})


def stop_while_starting(count):
    for number in range(count):
        with Client(host.socket) as one, Client(host.socket) as two:
            one.send({"id": 1, "op": "session.start", "session_id": "brief",
                      "sandbox": ("virtual", "local", "echo")[number % 3]})
            until("it is known", lambda: "brief" in host.sessions())
            two.send({"id": 2, "op": "session.stop", "session_id": "brief"})
            assert one.read() and two.read()
        host.gone("brief")


def start_that_fails(count):
    for _ in range(count):
        error(host.ask("session.start", sandbox="local", cwd="/nonexistent"))


@cases.each((f"{f.__name__} {n}" for f, n in (
    (attach_and_leave, 1000), (attach_many, 200), (start_and_leave, 30),
    (stop_while_starting, 15), (start_that_fails, 20))))
def clients_come_and_go(what):
    """No process, descriptor or session is left of any."""
    name, count = what.split()
    globals()[name](1)
    until("it is quiet", host.idle)
    before = host.held()
    globals()[name](int(count))
    until("it is quiet again", host.idle)
    holds_no_more(before)
    host.works()


cases.main()
