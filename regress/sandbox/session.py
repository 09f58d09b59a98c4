#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""session.start and session.wait, as any client of the control socket may use
or misuse them."""

import array
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
CONF = """
policy "one" { allow host "a.test" }
session "fixed" { listen on 127.0.0.1 port 15001 transparent  policy "one" }
"""


def same(have, want):
    assert have == want, f"{have!r}, expected {want!r}"


class Passing(Client):
    """A client that sends descriptors with its requests."""

    def send(self, request, *fds):
        self.raw(json.dumps(request).encode() + b"\n", *fds)

    def raw(self, data, *fds):
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                      array.array("i", fds))] if fds else []
        self.sock.sendmsg([data], ancillary)

    def ask(self, op, *fds, **fields):
        self.send({"id": 1, "op": op, **fields}, *fds)
        return self.read()

    def code(self, op, *fds, **fields):
        answer = self.ask(op, *fds, **fields)
        assert "error" in answer, answer
        return answer["error"]["code"]


class Box:
    """The sandbox's end of the pair; to close it is the sandbox's end."""

    def __init__(self):
        self.ours, self.theirs = socket.socketpair()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ours.close()
        self.theirs.close()

    @property
    def fd(self):
        return self.theirs.fileno()

    def close(self):
        self.ours.close()
        self.theirs.close()


daemon = Daemon(CONF)
atexit.register(daemon.end)
daemon.start()
daemon.settle()


def connect():
    return Passing(daemon.socket)


def sessions():
    return {s["session_id"]: s for s in daemon.ask("status")["sessions"]}


CONTROLD = daemon.processes()["controld"]


def descriptors():
    if os.geteuid() != 0:
        raise Skip("only root can count the descriptors of a confined one")
    return len(os.listdir(f"/proc/{CONTROLD}/fd"))


def alone(client):
    """How many descriptors controld has with this client and no other."""
    until("the others are gone",
          lambda: client.ask("status")["clients"] == 1)
    return descriptors()


def gone(name):
    until(f"{name} is over", lambda: name not in sessions())


@cases.case
def from_start_to_end():
    with connect() as client, Box() as box:
        answer = client.ask("session.start", box.fd, session_id="a.b-c_1",
                            policy="one")
        same(answer, {"id": 1, "ok": True, "session_id": "a.b-c_1",
                      "policy": "one"})
        have = sessions()["a.b-c_1"]
        same((have["kind"], have["policy"], have["restarts"]),
             ("run", "one", 0))
        client.send({"id": 2, "op": "session.wait", "session_id": "a.b-c_1"})
        box.close()
        same(client.read(), {"id": 2, "ok": True, "session_id": "a.b-c_1",
                             "policy": "one", "reason": None})
    mine = [r for r in daemon.verified() if r["session_id"] == "a.b-c_1"]
    same([(r["kind"], r["reason"]) for r in mine],
         [("session_started", None), ("session_ended", None)])


@cases.case
def deadline():
    """The session ends as a session: who waits is told, the record has it."""
    with connect() as client, Box() as box, Box() as other:
        client.ask("session.start", box.fd, session_id="short", deadline=1)
        client.ask("session.start", other.fd, session_id="long",
                   deadline=366 * 86400)
        client.send({"id": 2, "op": "session.wait", "session_id": "short"})
        same(client.read(), {"id": 2, "ok": True, "session_id": "short",
                             "policy": "one", "reason": "deadline"})
        same([n for n in sessions() if n in ("short", "long")], ["long"])
        # Its name is free again, and the old deadline is not the new one's.
        with Box() as again:
            assert client.ask("session.start", again.fd,
                              session_id="short")["ok"]
            assert "short" in sessions()
    gone("short")
    gone("long")
    mine = [r for r in daemon.verified() if r["session_id"] == "short"]
    same([(r["kind"], r["reason"]) for r in mine][:3],
         [("session_started", None), ("session_ended", "deadline"),
          ("session_started", None)])


@cases.each((0, -1, 366 * 86400 + 1, 1e18, 1.5, "1h"))
def bad_deadline(value):
    with connect() as client, Box() as box:
        answer = client.ask("session.start", box.fd, deadline=value)
        same(answer["error"]["code"], "bad_request")
        assert answer["error"]["message"].startswith("deadline: wanted "), \
            answer


@cases.case
def name_and_policy_are_optional():
    with connect() as client, Box() as one, Box() as two:
        names = [client.ask("session.start", box.fd)["session_id"]
                 for box in (one, two)]
        assert len(set(names)) == 2 and all(
            n.startswith("run-") and len(n) == 12 for n in names), names
        same({sessions()[n]["policy"] for n in names}, {"one"})
    for name in names:
        gone(name)


@cases.case
def without_a_descriptor():
    """The daemon would make the sandbox, and wants no names of variables."""
    with connect() as client:
        same(client.code("session.start", environment=["A"]), "bad_request")
        same(set(sessions()), {"fixed"})


@cases.case
def with_too_many():
    with connect() as client, Box() as box:
        before = alone(client)
        same(client.code("session.start", box.fd, box.fd), "bad_request")
        same(client.code("session.start", *[box.fd] * 200), "bad_request")
        # What has been spoilt is spoilt for that request only.
        answer = client.ask("session.start", box.fd, session_id="after")
        same(answer["ok"], True)
        box.close()
        gone("after")
        same(alone(client), before)


@cases.case
def with_another_request():
    """It is closed, and the request refused."""
    with connect() as client, Box() as box:
        before = alone(client)
        for op in ("status", "reload", "events.follow"):
            same(client.code(op, box.fd), "bad_request")
        same(client.code("session.wait", box.fd, session_id="x"),
             "bad_request")
        same(client.code("nonsense", box.fd), "unknown_op")
        same(client.code("session.start", session_id="x", environment=["A"]),
             "bad_request")
        same(alone(client), before)


@cases.case
def before_the_newline():
    """A descriptor may come with any part of its line."""
    with connect() as client, Box() as box:
        client.raw(b'{"id":1,"op":"session.')
        client.raw(b"start", box.fd)
        client.raw(b'","session_id":"part"}\n')
        same(client.read()["session_id"], "part")
    gone("part")


@cases.case
def nobody_waits_for_it():
    """A descriptor without a request goes with its client."""
    with connect() as witness, Box() as box:
        before = alone(witness)
        with connect() as client:
            client.raw(b'{"id":1', box.fd)
            until("it has come", lambda: descriptors() == before + 2)
        same(alone(witness), before)


@cases.case
def bad_names():
    with connect() as client, Box() as box:
        for name in ("", " ", " a", "a ", "x" * 256, "ä", "-", "-x",
                     "a\x7f", "a\tb", "a\n", "a\u200b", "\ufeffa"):
            same(client.code("session.start", box.fd, session_id=name),
                 "bad_session")
        same(client.ask("session.start", box.fd, session_id="a\nb")["error"]
             ["message"], "session_id: session ids are of printable ASCII "
             "characters, byte 2 is 0x0a")
        same(client.code("session.start", box.fd, policy="no"),
             "unknown_policy")
        same(client.code("session.start", box.fd, policy="a b"),
             "bad_request")


@cases.case
def names_in_use():
    with connect() as client, Box() as one, Box() as two:
        same(client.code("session.start", one.fd, session_id="fixed"),
             "session_exists")
        same(client.ask("session.start", one.fd, session_id="x")["ok"], True)
        same(client.code("session.start", two.fd, session_id="x"),
             "session_exists")
    gone("x")


@cases.case
def waits():
    with connect() as client:
        same(client.code("session.wait", session_id="none"),
             "unknown_session")
        same(client.code("session.wait", session_id="fixed"),
             "unknown_session")
        same(client.code("session.wait"), "bad_request")


@cases.case
def no_channel_at_all():
    """What was passed is no socket: the engine cannot use it."""
    with connect() as client, open("/dev/null", "rb") as null:
        answer = client.ask("session.start", null.fileno(), session_id="null")
        if "ok" not in answer:
            same(answer["error"]["code"], "start_failed")
        gone("null")
    assert daemon.ask("status")["ok"]


@cases.case
def nonsense_from_the_sandbox():
    """It costs its own session."""
    with connect() as client, Box() as box:
        same(client.ask("session.start", box.fd, session_id="mad")["ok"],
             True)
        client.send({"id": 2, "op": "session.wait", "session_id": "mad"})
        box.ours.sendall(b"\xff" * 64)
        same(client.read()["reason"], "engine_died")
    same(set(sessions()), {"fixed"})


@cases.case
def client_leaves_at_once():
    with connect() as witness:
        before = alone(witness)
        with Box() as box:
            for i in range(8):
                client = connect()
                client.send({"id": 1, "op": "session.start",
                             "session_id": f"left-{i}"}, box.fd)
                client.close()
        until("all are over", lambda: set(sessions()) == {"fixed"})
        same(alone(witness), before)


@cases.case
def limit():
    conf = "limit sessions 3\n" + CONF
    with Daemon(conf) as small:
        with Passing(small.socket) as client, Box() as a, Box() as b, \
                Box() as c:
            same(client.ask("session.start", a.fd)["ok"], True)
            same(client.ask("session.start", b.fd)["ok"], True)
            same(client.code("session.start", c.fd), "too_many_sessions")


@cases.case
def read_only_socket():
    with Daemon(CONF, head=True) as base:
        ro = base.dir / "ro.sock"
        base.conf.write_text(base.conf.read_text() +
                             f'control socket "{ro}" read-only\n')
        same(base.ask("reload")["ok"], True)
        with Passing(ro) as client, Box() as box:
            same(client.code("session.start", box.fd), "not_permitted")
            same(client.code("session.wait", session_id="x"),
                 "unknown_session")


@cases.case
def configuration_wants_the_name():
    """A reload cannot declare a session that a sandbox has."""
    with Daemon(CONF) as base:
        with Passing(base.socket) as client, Box() as box:
            same(client.ask("session.start", box.fd,
                            session_id="later")["ok"], True)
            base.write(CONF + 'session "later" { listen on 127.0.0.1 port '
                       '15003 transparent policy "one" }\n')
            error = base.ask("reload")["error"]
            same(error["code"], "reload_refused")
            assert "later" in error["message"], error
            box.close()
            until("it is over", lambda: "later" not in [
                s["session_id"] for s in base.ask("status")["sessions"]])
        same(base.ask("reload")["ok"], True)


RELOAD = {"id": 2, "op": "reload"}


def begin(way, base, client, box):
    """A session and a reload at once; their answers."""
    start = {"id": 1, "op": "session.start", "policy": "one"}
    if way == "before":
        # In one message, so that the engine has only just been made.
        client.raw(b"".join(json.dumps(request).encode() + b"\n"
                            for request in (start, RELOAD)), box.fd)
        told = {answer["id"]: answer
                for answer in (client.read(), client.read())}
        return told[1], told[2]
    with base.client() as other:
        other.ask("status")
        other.send(RELOAD)
        client.send(start, box.fd)
        return client.read(), other.read()


@cases.each(["before", "during"])
def start_and_reload(way):
    """A session that is starting when a reload begins does start, and is one
    that the next reload knows."""
    with Daemon(CONF) as base:
        for i in range(5):
            with Passing(base.socket) as client, Box() as box:
                client.ask("status")
                session, reload = begin(way, base, client, box)
                same(session.get("ok"), True)
                same(reload.get("generation"), 2 * i + 2)
                same(base.ask("reload")["generation"], 2 * i + 3)
                client.send({"id": 3, "op": "session.wait",
                             "session_id": session["session_id"]})
                box.close()
                same(client.read()["reason"], None)


@cases.each(["before", "during"])
def start_and_reload_refused(way):
    """Nothing has changed: the session starts all the same."""
    with Daemon(CONF) as base, Passing(base.socket) as taken, Box() as first:
        same(taken.ask("session.start", first.fd,
                       session_id="later")["ok"], True)
        base.write(CONF + 'session "later" { listen on 127.0.0.1 port '
                   '15003 transparent policy "one" }\n')
        with Passing(base.socket) as client, Box() as box:
            client.ask("status")
            session, reload = begin(way, base, client, box)
            same(session.get("ok"), True)
            same(reload["error"]["code"], "reload_refused")


@cases.case
def start_without_policy():
    """The reload takes the policy away that the session was to have."""
    with Daemon(CONF) as base:
        base.write(CONF.replace('"one"', '"two"'))
        with Passing(base.socket) as client, Box() as box:
            client.ask("status")
            session, reload = begin("before", base, client, box)
            same(reload.get("generation"), 2)
            error = session["error"]
            same((error["code"], error["message"]),
                 ("start_failed", "its policy is no longer there"))


cases.main()
