#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""The battery against sandboxes that a daemon makes, part four: one user wants
all that there is for everybody.  Others, and root before all, still have some."""

import atexit
import contextlib
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from boxedlib import (ALICE, BOB, Client, Host, Place, ask_as,  # noqa: E402
                      error, same, until)
from case import Cases  # noqa: E402

cases = Cases()
CLIENTS, SESSIONS, LINES = 16, 8, 5000
place = Place()
atexit.register(place.end)
loud = place.top / "loud"
loud.write_text(f"#!/bin/sh\nseq -f 'line %g' {LINES} >&2\nexec cat\n")
loud.chmod(0o755)
host = Host(f"""
limit clients {CLIENTS}
limit sessions {SESSIONS}
policy "p" {{ }}
sandbox "echo" custom "/bin/cat" {{ policy "p" user "nobody" ungated }}
sandbox "loud" custom "{loud}" {{ policy "p" user "nobody" ungated }}
sandbox "virtual" virtual {{ policy "p" user "nobody" }}
""")
atexit.register(host.end)
host.start()


@contextlib.contextmanager
def connecting_as(uid):
    """By the kernel's word; the process is still the test."""
    os.setegid(uid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def connect(stack, uid):
    """A client, and what it was told."""
    with connecting_as(uid):
        client = stack.enter_context(Client(host.socket))
    client.send({"id": 1, "op": "session.list"})
    return client.read()


@cases.case
def connections():
    """That wait for nothing, and are not hung up on."""
    with contextlib.ExitStack() as stack:
        told = [connect(stack, ALICE) for _ in range(2 * CLIENTS)]
        had = [answer for answer in told if answer.get("ok")]
        same(len(had), CLIENTS * 3 // 4)
        same({error(answer)[0] for answer in told if answer not in had},
             {"too_many_clients"})
        assert connect(stack, BOB).get("ok")
        assert host.ask("status").get("ok")
    until("they are gone", lambda: host.ask("status")["clients"] == 1)


@cases.case
def sessions():
    def start(uid, name):
        return ask_as(uid, host.socket, "session.start", session_id=name,
                      sandbox="echo")
    names = [f"a{i}" for i in range(SESSIONS)]
    told = {name: start(ALICE, name) for name in names}
    had = [name for name in names if told[name].get("ok")]
    same(had, names[:SESSIONS * 3 // 4])
    same({error(told[name])[0] for name in names if name not in had},
         {"too_many_sessions"})
    assert start(BOB, "b").get("ok")
    host.begin("root", "echo")
    for name in (*had, "b", "root"):
        host.stop_session(name)
    until("all are over", host.idle)


@cases.case
def lines_of_the_log():
    """A program's standard error is anybody's to fill."""
    host.begin("loud", "loud")
    with Client(host.socket) as client:
        assert client.ask("session.attach", session_id="loud").get("ok")
        client.sock.sendall(b"x")
        same(client.sock.recv(1), b"x")
    host.stop_session("loud")
    until("the log says so", lambda: "which is not logged" in host.log())
    assert host.log().count("line ") < LINES / 10, host.log().count("line ")


@cases.case
def the_daemon_works_on():
    host.works()


cases.main()
