#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Sessions whose sandbox the daemon makes, as clients of the control socket
see them: who may have which, what they are told, and how they end.  The
sandbox itself is a program that sends back what it gets, so that this is about
sessions and nothing else; what a sandbox does is conform_*.py's."""

import atexit
import json
import os
import pathlib
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases, Skip  # noqa: E402
from daemon import Client, Daemon, until  # noqa: E402

cases = Cases()
ROOT = os.geteuid() == 0
USER = 'user "nobody"' if ROOT else ""
CONF = f"""
default sandbox "echo"
policy "one" {{ allow host "a.test" }}
policy "two" {{ }}
session "fixed" {{ listen on 127.0.0.1 port 15001 transparent  policy "one" }}
sandbox "echo" custom "/bin/cat" {{ policy "one" {USER} ungated
	deadline 1h }}
sandbox "other" custom "/bin/cat" {{ policy "one" {USER} ungated }}
sandbox "false" custom "/bin/false" {{ policy "one" {USER} ungated }}
sandbox "none" custom "/nonexistent/program" {{ policy "one" {USER} ungated }}
sandbox "says" custom "/usr/bin/env" {{ policy "one" {USER} ungated
	environment {{ FROM "the block", PATH "/nowhere" }} }}
"""

daemon = Daemon(CONF)
atexit.register(daemon.end)
daemon.start()
daemon.settle()


def same(have, want):
    assert have == want, f"{have!r}, expected {want!r}"


def connect():
    return Client(daemon.socket)


def code(client, op, **fields):
    answer = client.ask(op, **fields)
    assert "error" in answer, answer
    return answer["error"]["code"]


def message(client, op, **fields):
    answer = client.ask(op, **fields)
    assert "error" in answer, answer
    return answer["error"]["message"]


def listed():
    return {s["session_id"]: s for s in daemon.ask("session.list")["sessions"]}


def gone(name):
    until(f"{name} is over", lambda: name not in listed())


def recorded(name, kind):
    """The last record of the kind, once there is one."""
    def found():
        return [r for r in daemon.records() if r["session_id"] == name and
                r["kind"] == kind]
    until(f"{kind} of {name}", found)
    return found()[-1]


def ended(name):
    return recorded(name, "session_ended")["reason"]


class Attached(Client):
    """A connection that is a sandbox's."""

    def __init__(self, name):
        super().__init__(daemon.socket)
        answer = self.ask("session.attach", session_id=name)
        assert answer.get("ok"), answer

    def echo(self, data):
        self.sock.sendall(data)
        have = b""
        while len(have) < len(data):
            piece = self.sock.recv(65536)
            assert piece, "it has ended"
            have += piece
        assert have == data

    def is_over(self):
        self.sock.settimeout(10)
        try:
            return self.sock.recv(1) == b""
        except ConnectionResetError:
            return True


@cases.case
def with_an_id_it_outlives_its_connection():
    with connect() as client:
        answer = client.ask("session.start", session_id="kept")
        same({k: answer[k] for k in ("session_id", "sandbox", "backend",
                                     "policy")},
             {"session_id": "kept", "sandbox": "echo", "backend": "custom",
              "policy": "one"})
    with Attached("kept") as wire:
        wire.echo(b"x" * 300000)
        have = listed()["kept"]
        same((have["kind"], have["state"], have["owner"], have["attached"]),
             ("sandbox", "running", os.geteuid(), 1))
        with connect() as client:
            answer = client.ask("session.stop", session_id="kept")
        same(answer["reason"], "by_request")
        assert wire.is_over()
    assert "kept" not in listed()
    same(ended("kept"), "by_request")


@cases.case
def without_one_it_ends_with_it():
    with connect() as client:
        name = client.ask("session.start")["session_id"]
        assert name.startswith("s-"), name
        wire = Attached(name)
        wire.echo(b"here")
    assert wire.is_over()
    wire.close()
    gone(name)
    same(ended(name), "owner_left")


@cases.case
def start_is_idempotent():
    with connect() as client:
        assert "existed" not in client.ask("session.start", session_id="same")
        with Attached("same") as wire, connect() as other:
            answer = other.ask("session.start", session_id="same")
            same(answer["existed"], True)
            same(answer["sandbox"], "echo")
            wire.echo(b"still the same")
        same(code(client, "session.start", session_id="same",
                  sandbox="other"), "session_exists")
        assert "sandbox is echo" in message(
            client, "session.start", session_id="same", sandbox="other")
        assert "policy is one" in message(
            client, "session.start", session_id="same", policy="two")
        client.ask("session.stop", session_id="same")


@cases.case
def two_at_the_same_moment():
    with connect() as one, connect() as two:
        for client in (one, two):
            client.send({"id": 7, "op": "session.start",
                         "session_id": "twins"})
        answers = [one.read(), two.read()]
        assert all(a.get("ok") for a in answers), answers
        same(len([n for n in listed() if n == "twins"]), 1)
        one.ask("session.stop", session_id="twins")


@cases.case
def names_of_others():
    with connect() as client:
        same(code(client, "session.start", session_id="fixed"),
             "session_exists")
        same(code(client, "session.start", sandbox="nope"),
             "unknown_sandbox")
        same(code(client, "session.start", policy="nope"), "unknown_policy")
        same(code(client, "session.start", session_id="a/b "), "bad_session")
        same(code(client, "session.stop", session_id="nope"),
             "unknown_session")
        same(code(client, "session.stop", session_id="fixed"),
             "not_permitted")
        same(code(client, "session.attach", session_id="fixed"),
             "not_permitted")
        same(code(client, "session.show", session_id="nope"),
             "unknown_session")
        same(code(client, "session.start", cwd="relative"), "bad_request")
        same(code(client, "session.start", env={"A B": "x"}), "bad_request")
        same(code(client, "session.start", environment=["A"]), "bad_request")
        same(code(client, "session.start", deadline=3601), "bad_request")


@cases.case
def a_program_that_is_not_there():
    with connect() as client:
        answer = client.ask("session.start", sandbox="none", session_id="n")
        same(answer["error"]["code"], "start_failed")
        assert "/nonexistent/program" in answer["error"]["message"], answer
        assert "n" not in listed()


@cases.case
def a_program_that_ends():
    with connect() as client:
        name = client.ask("session.start", sandbox="false")["session_id"]
        for _ in range(3):
            with Attached(name) as wire:
                assert wire.is_over()
        assert name in listed()


@cases.case
def deadline():
    with connect() as client:
        answer = client.ask("session.start", session_id="brief", deadline=1)
        assert answer.get("ok"), answer
        with Attached("brief") as wire:
            answer = client.ask("session.wait", session_id="brief")
            same(answer["reason"], "deadline")
            assert wire.is_over()
    same(ended("brief"), "deadline")


@cases.case
def attach_is_the_last_request():
    with connect() as client:
        name = client.ask("session.start")["session_id"]
        with connect() as other:
            line = json.dumps({"id": 1, "op": "session.attach",
                               "session_id": name}).encode() + b"\n"
            other.sock.sendall(line + b"\0\0\0\0")
            same(other.read()["error"]["code"], "bad_request")
        same(code(client, "session.attach", session_id=name), "bad_request")
        with connect() as other:
            other.send({"id": 1, "op": "session.attach", "session_id": name})
            same(other.read(), {"id": 1, "ok": True, "session_id": name})
            other.sock.sendall(b"frames")
            same(other.sock.recv(6, socket.MSG_WAITALL), b"frames")


@cases.case
def show_and_status():
    with connect() as client:
        client.ask("session.start", session_id="seen", env={"A": "secret"})
        have = client.ask("session.show", session_id="seen")
        same((have["backend"], have["limits"], have["limited_by"]),
             ("custom", {}, None))
        assert have["deadline"] is not None
        assert "secret" not in json.dumps(have)
        sessions = {s["session_id"]: s
                    for s in client.ask("status")["sessions"]}
        same(sessions["seen"]["kind"], "sandbox")
        same(recorded("seen", "session_started")["environment"], ["A"])
        client.ask("session.stop", session_id="seen")


@cases.case
def removed_with_its_policy():
    with connect() as client:
        client.ask("session.start", session_id="removed", policy="two")
        daemon.write(CONF.replace('policy "two" { }', ""))
        assert client.ask("reload").get("ok")
        gone("removed")
        same(ended("removed"), "removed")
        daemon.write(CONF)
        assert client.ask("reload").get("ok")


@cases.case
def by_egressctl():
    out = daemon.ctl("session", "start", "-n", "ctl", "-e", "A=b", "echo")
    same(out.stdout, "ctl\n")
    out = daemon.ctl("session", "list")
    assert "ctl" in out.stdout and "custom" in out.stdout, out
    out = daemon.ctl("session", "show", "ctl")
    assert "backend" in out.stdout, out
    out = daemon.ctl("session", "stop", "ctl")
    same((out.returncode, out.stdout), (0, "ctl stopped\n"))
    out = daemon.ctl("session", "stop", "ctl")
    same(out.returncode, 1)
    assert "no session ctl" in out.stderr, out


@cases.case
def one_that_is_there_stays_as_it_is():
    """Who asks for more is told that it was in vain."""
    more = ["-e", "A=b", "-t", "1m", "-w", "/"]
    try:
        for words, wanted in ((more, ""), ([], ""), (more, "-e, -t, -w")):
            out = daemon.ctl("session", "start", "-n", "again", *words,
                             "echo")
            same((out.returncode, out.stdout), (0, "again\n"))
            assert wanted in out.stderr and bool(wanted) == bool(
                out.stderr), out
        out = daemon.ctl("session", "start", "-n", "again", "-n", "new", *more,
                         "echo")
        same((out.returncode, set(out.stdout.split())), (0, {"again", "new"}))
        assert "session again was there already" in out.stderr and \
            "session new" not in out.stderr, out
    finally:
        daemon.ctl("session", "stop", "again")
        daemon.ctl("session", "stop", "new")


@cases.case
def what_a_program_is_told():
    """Its session and what the block says, nothing of a client's."""
    with connect() as client:
        client.ask("session.start", session_id="told 1", sandbox="says",
                   env={"LD_PRELOAD": "/x", "FROM": "a client"})
        with Attached("told 1") as wire:
            have = wire.sock.makefile().read().splitlines()
        client.ask("session.stop", session_id="told 1")
    same(have, ["EGRESSD_SESSION=told 1", "FROM=the block",
                "PATH=/nowhere"])


@cases.case
def of_another_user():
    if not ROOT:
        raise Skip("only root can be another user")
    with connect() as client:
        name = client.ask("session.start", session_id="roots")["session_id"]
        os.chmod(daemon.dir, 0o755)
        os.chmod(daemon.socket, 0o666)
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
                with connect() as other:
                    for op in ("session.stop", "session.attach"):
                        same(code(other, op, session_id=name),
                             "not_permitted")
                    assert "another user's" in message(
                        other, "session.start", session_id=name)
                    mine = other.ask("session.start", session_id="mine")
                    assert mine.get("ok"), mine
                status = 0
            finally:
                os._exit(status)
        same(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        same(listed()["mine"]["owner"], 65534)
        for name in ("roots", "mine"):
            assert client.ask("session.stop", session_id=name).get("ok")


cases.main()
