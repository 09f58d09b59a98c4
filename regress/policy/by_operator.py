#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Between controld and policyd: what one may ask of the other, how much of it
at a time, and that a crowd of control clients is no burden to verdicts.
"""

import contextlib
import json
import os
import pathlib
import selectors
import socket
import sys
import threading
import time

sys.dont_write_bytecode = True
TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from case import Cases  # noqa: E402
from policydlib import (ANSWER, CACHE, DECIDER, RECORD, Client,  # noqa: E402
                        Controld, Policyd, part, rule, same, short)
from channel import C  # noqa: E402
from children import CHILD_FD, SESSION, Child  # noqa: E402
from msgtab import ROLES  # noqa: E402

cases = Cases()

PERSON = ("person", {"kind": DECIDER["DECIDER_OPERATOR"], "concurrency": 0})
OK, NONE, TOO_MUCH = range(3)
CROWD = 200
RATE = 10                       # surveys in a second
ERRANDS = 32                    # under way
OPEN = [rule("ALLOW", ["fast.com"]),
        rule("DECIDE", ["p.com"], cache=CACHE["CACHE_OFF"],
             conditions=[("COND_DECIDER", "person")]),
        rule("DECIDE", ["**"], cache=CACHE["CACHE_OFF"],
             conditions=[("COND_DECIDER", "d")])]


def policyd():
    return Policyd({"p": OPEN}, {"s1": "p"}, ["d", PERSON])


# ---- policyd, with us for controld ----

BAD = {
    "answer_allow": ("PENDING_ANSWER", {"allow": 2}, "allow 2"),
    "answer_remember": ("PENDING_ANSWER", {"remember": 2}, "remember 2"),
    "list_kind": ("LIST_ASK", {"kind": 2}, "list of kind 2"),
    "list_query": ("LIST_ASK", {"query": 2}, "query 2"),
    "role": ("CONTEXT_MESSAGE", {"session": "s1", "role": "a b"}, "role a b"),
    "truncated": ("CONTEXT_MESSAGE", {"role": "user", "truncated": 2},
                  "truncated 2"),
    "pairs_open": ("CONTEXT_METADATA", {"pairs": b"a\0b"}, "no pairs"),
    "pairs_odd": ("CONTEXT_METADATA", {"pairs": b"a\0b\0c\0"}, "no pairs"),
    "pairs_twice": ("CONTEXT_METADATA", {"pairs": b"a\0b\0a\0c\0"},
                    "no pairs"),
    "pairs_many": ("CONTEXT_METADATA", {"pairs": b"".join(
        b"%d\0\0" % i for i in range(257))}, "no pairs"),
    "inquiry_cookie": ("INQUIRY_ASK", {"cookie": 1 << 31}, "inquiry"),
    "inquiry_port": ("INQUIRY_ASK", {"cookie": 1, "host": "a.com"}, "port 0"),
    "inquiry_scheme": ("INQUIRY_ASK", {"cookie": 1, "scheme": 2, "port": 1},
                       "scheme 2"),
    "inquiry_path": ("INQUIRY_ASK", {
        "cookie": 1, "scheme": 1, "port": 1, "host": "a.com",
        "method": "GET", "path": "/a/../b"}, "path that is not canonical"),
    "drop": ("INQUIRY_DROP", {}, "inquiry 0"),
}


@cases.each(BAD)
def bad_from_controld(name):
    """A sound one sends none of these: policyd ends, and all with it."""
    message, values, why = BAD[name]
    with policyd() as daemon:
        control = daemon.connect("CONTROLD")
        daemon.load()
        control.send(message, **values)
        daemon.end(1, why)


@cases.case
def second_watch():
    with policyd() as daemon:
        control = daemon.connect("CONTROLD")
        daemon.load()
        control.send("PENDING_WATCH", version=1)
        control.send("PENDING_WATCH", version=1)
        daemon.end(1, "a second watch")


@cases.case
def too_many_inquiries():
    """controld keeps to its credit, or is no controld of ours."""
    with policyd() as daemon:
        control = daemon.connect("CONTROLD")
        daemon.load()
        for i in range(65):
            control.send("INQUIRY_ASK", cookie=i + 1, decider="d", scheme=1,
                         port=443, host="a.com", method="GET", path="/")
        daemon.end(1, "inquiry 65")


@cases.case
def answers_for_people_only():
    """controld says what a person says, of what waits for one."""
    with policyd() as daemon:
        control = daemon.connect("CONTROLD")
        engine = daemon.load().engine()
        engine.ask("a.com", dial=1)
        question = daemon.deciderd.receive("QUESTION")
        for number in (question["id"], 0, 4711, 0xffffffff):
            control.send("PENDING_ANSWER", cookie=7, id=number, allow=1)
            same(control.receive("CONTROL_DONE"),
                 {"cookie": 7, "result": NONE, "count": 0})
        engine.ask("p.com", dial=2)
        # It has them all when it has answered this.
        engine.connection("x", 1)
        control.send("LIST_ASK", cookie=8, kind=0)
        listed = control.receive("LISTED_PENDING")
        same(part(control.receive("LIST_END"), "cookie", "more"), (8, 0))
        control.send("PENDING_ANSWER", cookie=9, id=listed["id"], allow=1,
                     remember=1)
        # The rule keeps no answers, whoever asks for it.
        same(control.receive("CONTROL_DONE"),
             {"cookie": 9, "result": OK, "count": 0})
        same(short(engine.told()), ("allow", 1, "decider: allowed"))
        same(daemon.dialer.receive("GRANT")["dial"], 2)
        daemon.deciderd.send("ANSWER", id=question["id"],
                             result=ANSWER["ANSWER_DENY"])
        same(short(engine.told())[0], "deny")


@cases.case
def no_such_session():
    """controld may know one that policyd does not know any more."""
    with policyd() as daemon:
        control = daemon.connect("CONTROLD")
        daemon.load()
        for message, more in {
                "CACHE_CLEAR": {}, "CONTEXT_METADATA": {},
                "CONTEXT_MESSAGE": {"role": "user"}}.items():
            control.send(message, cookie=3, session="gone", **more)
            same(control.receive("CONTROL_DONE")["result"], NONE)
        control.send("LIST_ASK", cookie=4, kind=1, session="gone")
        same(control.receive("LIST_END")["known"], 0)
        control.send("CONTEXT_METADATA", cookie=5, session="s1",
                     pairs=b"a\0" + b"\1" * 2000 + b"\0")
        same(control.receive("CONTROL_DONE")["result"], TOO_MUCH)


@cases.case
def inquiry_dropped():
    """Each that was put has its one answer, also who was not waited for."""
    with policyd() as daemon:
        control = daemon.connect("CONTROLD")
        daemon.load()
        control.send("INQUIRY_ASK", cookie=5, decider="d", scheme=1,
                     port=443, host="a.com", method="GET", path="/")
        same(control.receive("INQUIRY_ASKED")["result"], 0)
        question = daemon.deciderd.receive("QUESTION")
        control.send("INQUIRY_DROP", cookie=5)
        same(control.receive("INQUIRY_ANSWER")["cookie"], 5)
        same(daemon.deciderd.receive("QUESTION_DROP")["cookie"],
             question["id"])
        daemon.deciderd.send("ANSWER", id=question["id"])
        control.send("INQUIRY_DROP", cookie=5)
        control.send("INQUIRY_ASK", cookie=5, decider="person", scheme=1,
                     port=443, host="a.com", method="GET", path="/")
        same(control.next()[0], "INQUIRY_ASKED")


# ---- sessions that the parent opens and closes ----

def opened(daemon, name="box", number=7, **more):
    daemon.send("SESSION_OPEN", number=number, session=name, policy="p",
                engine=1, **more)
    return daemon.engine(name, instance=number)


@cases.case
def open_and_close():
    """policyd records beginning and end, with what controld knew, and tells
    controld of the end."""
    with policyd() as daemon:
        control = daemon.connect("CONTROLD")
        daemon.load()
        engine = opened(daemon, told=1, environment="HOME TERM")
        started = daemon.recorder.receive("RECORD_SESSION")
        same(part(started, "kind", "session", "policy", "told",
                  "environment"),
             (RECORD["RECORD_SESSION_STARTED"], b"box", b"p", 1,
              b"HOME TERM"))
        same(short(engine.verdict("fast.com"))[0], "allow")
        # The parent is heard first; the engine's last words count all the
        # same.
        engine.channel.send("ENGINE_BYE")
        daemon.send("SESSION_CLOSE", number=7)
        engine.channel.close()
        ended = daemon.recorder.receive("RECORD_SESSION")
        same(part(ended, "kind", "session", "reason"),
             (RECORD["RECORD_SESSION_ENDED"], b"box", b""))
        same(control.receive("SESSION_ENDED"), {"number": 7, "reason": b""})
        opened(daemon, number=8).channel.close()
        same(control.receive("SESSION_ENDED"),
             {"number": 8, "reason": b"engine_died"})
        daemon.send("SESSION_CLOSE", number=8)
        opened(daemon, number=9)
        daemon.send("SESSION_CLOSE", number=9)
        opened(daemon, number=10)
        same(control.receive("SESSION_ENDED")["number"], 9)


@cases.case
def without_an_engine():
    """It runs from the parent's first word to its last, and both are on
    record, with what became of it."""
    with policyd() as daemon:
        control = daemon.connect("CONTROLD")
        daemon.load()
        for number, cause, text, reason in (
                (7, "CAUSE_SANDBOX", "evicted", b"sandbox_died: evicted"),
                (8, "CAUSE_REQUEST", "", b"by_request"),
                (9, "CAUSE_SANDBOX", "x" * 1024,
                 b"sandbox_died: " + b"x" * 1010)):
            daemon.send("SESSION_OPEN", number=number, session="box",
                        policy="p", told=1, environment="HOME")
            same(part(daemon.recorder.receive("RECORD_SESSION"), "kind",
                      "session", "ca", "environment"),
                 (RECORD["RECORD_SESSION_STARTED"], b"box", b"", b"HOME"))
            daemon.send("SESSION_CLOSE", number=number, text=text,
                        cause=C[cause])
            same(part(daemon.recorder.receive("RECORD_SESSION"), "kind",
                      "session", "reason"),
                 (RECORD["RECORD_SESSION_ENDED"], b"box", reason))
            same(control.receive("SESSION_ENDED"),
                 {"number": number, "reason": reason})


@cases.case
def without_an_engine_and_policy():
    """Its policy goes, and the session with it: once."""
    with policyd() as daemon:
        control = daemon.connect("CONTROLD")
        daemon.load()
        daemon.send("SESSION_OPEN", number=7, session="box", policy="p")
        daemon.recorder.receive("RECORD_SESSION")
        daemon.policies = {"q": OPEN}
        daemon.sessions = {"s1": "q"}
        daemon.load()
        same(control.receive("SESSION_ENDED"),
             {"number": 7, "reason": b"removed"})
        same(daemon.recorder.receive("RECORD_SESSION")["reason"], b"removed")
        daemon.send("SESSION_CLOSE", number=7)
        daemon.send("SESSION_OPEN", number=8, session="box", policy="q")
        same(daemon.recorder.receive("RECORD_SESSION")["kind"],
             RECORD["RECORD_SESSION_STARTED"])


@cases.case
def close_unopened():
    with policyd() as daemon:
        daemon.load()
        daemon.send("SESSION_CLOSE", number=7)
        daemon.end(1, "no session 7")


@cases.case
def name_of_a_sandbox():
    """A configuration does not take it, whatever controld says of it."""
    with policyd() as daemon:
        daemon.connect("CONTROLD")
        daemon.load()
        opened(daemon)
        daemon.sessions["box"] = "p"
        daemon.prepare()
        same(daemon.receive("CONF_NAK")["why"], b"session box: the session of "
             b"a running sandbox has this name")


@cases.case
def policy_goes():
    """Its session ends with it; nothing is judged by rules that are gone."""
    with policyd() as daemon:
        control = daemon.connect("CONTROLD")
        daemon.load()
        engine = opened(daemon)
        daemon.policies = {"q": OPEN}
        daemon.sessions = {"s1": "q"}
        daemon.load()
        same(control.receive("SESSION_ENDED"),
             {"number": 7, "reason": b"removed"})
        engine.channel.wait_closed()
        daemon.send("SESSION_CLOSE", number=7)
        same(short(daemon.engine("s1", 9).verdict("fast.com"))[0], "allow")


# ---- controld, with us for policyd ----

class Alone(Controld):
    """controld, whose policyd we are: self.policyd is our end."""

    def __init__(self):
        Child.__init__(self, "controld")
        self.boot()
        self.recorder, self.policyd = (self.connect(name)
                                     for name in ("RECORDER", "POLICYD"))
        self.offer()
        self.commit()

    def controld(self):
        return self

    def environment(self):
        """It serves whoever does not need policyd."""
        Client(self).ask("session.environment")


def ask_clear(controld):
    client = Client(controld)
    client.send("cache.clear", session_id=SESSION)
    return client


@cases.case
def credit():
    """So many errands are under way; who wants more waits, and is served
    then.  Others go on meanwhile."""
    with Alone() as controld:
        clients = [ask_clear(controld) for _ in range(ERRANDS + 8)]
        cookies = [controld.policyd.receive("CACHE_CLEAR")["cookie"]
                   for _ in range(ERRANDS)]
        controld.environment()
        nothing_more(controld.policyd)
        # Also who has gone has used its credit.
        clients.pop(0).sock.close()
        controld.environment()
        for _ in range(8):
            for cookie in cookies:
                controld.policyd.send("CONTROL_DONE", cookie=cookie, count=3)
            cookies = []
        for _ in range(8):
            cookies.append(controld.policyd.receive("CACHE_CLEAR")["cookie"])
        for cookie in cookies:
            controld.policyd.send("CONTROL_DONE", cookie=cookie, count=3)
        same([client.answer()["cleared"] for client in clients],
             [3] * len(clients))


@cases.case
def errands_unasked():
    with Alone() as controld:
        controld.policyd.send("CONTROL_DONE")
        controld.end(1, "of 0 errands")


@cases.case
def lists_are_shared():
    """One at a time; whoever asks meanwhile has the next one's answer."""
    with Alone() as controld:
        clients = [Client(controld) for _ in range(20)]
        for client in clients:
            client.send("pending.list")
        first = controld.policyd.receive("LIST_ASK")["cookie"]
        controld.environment()
        controld.policyd.send("LIST_END", cookie=first, known=1, version=5)
        same(clients[0].answer()["version"], 5)
        second = controld.policyd.receive("LIST_ASK")["cookie"]
        controld.policyd.send("LIST_END", cookie=second, known=1, version=6)
        for client in clients[1:]:
            same(client.answer()["pending"], [])
        # What comes for a list that is over is for nobody.
        controld.policyd.send("LIST_END", cookie=first, known=1, version=5)
        controld.environment()


@cases.case
def policyd_is_silent():
    """It is said so, and controld goes on."""
    with Alone() as controld:
        client = Client(controld)
        client.send("status")
        cookie = controld.receive("STATUS_ASK")["cookie"]
        controld.send("STATUS_END", cookie=cookie)
        start = time.monotonic()
        same(client.answer()["error"], {
            "code": "internal", "message": "policyd does not answer"})
        assert time.monotonic() - start > 4
        controld.environment()


def late(client):
    same(client.answer()["error"], {
        "code": "internal", "message": "policyd does not answer"})


def nothing_more(channel):
    """controld has said nothing but what was read already."""
    channel.sock.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        raise AssertionError(channel.next())
    channel.sock.settimeout(20)


@cases.case
def list_is_late():
    """It is not asked for again before it has come, and comes to nobody: who
    asked meanwhile has a newer one."""
    with Alone() as controld:
        first, second = Client(controld), Client(controld)
        first.send("pending.list")
        cookie = controld.policyd.receive("LIST_ASK")["cookie"]
        late(first)
        first.send("pending.list")
        second.send("pending.list")
        late(first)
        late(second)
        second.send("pending.list")
        controld.environment()
        nothing_more(controld.policyd)
        controld.policyd.send("LIST_END", cookie=cookie, known=1, version=5)
        cookie = controld.policyd.receive("LIST_ASK")["cookie"]
        controld.policyd.send("LIST_END", cookie=cookie, known=1, version=6)
        same(second.answer()["version"], 6)


@cases.case
def status_is_late():
    """Likewise of each who has a part in it."""
    with Alone() as controld:
        client = Client(controld)
        client.send("status")
        cookie = controld.receive("STATUS_ASK")["cookie"]
        controld.policyd.receive("STATE_ASK")
        controld.send("STATUS_END", cookie=cookie)
        late(client)
        client.send("status")
        controld.environment()
        nothing_more(controld)
        nothing_more(controld.policyd)
        controld.policyd.send("STATE_END", cookie=cookie)
        controld.recorder.receive("AUDIT_ASK")
        controld.recorder.send("AUDIT_STATUS", cookie=cookie)
        cookie = controld.receive("STATUS_ASK")["cookie"]
        controld.send("STATUS_END", cookie=cookie, generation=7)
        controld.policyd.receive("STATE_ASK")
        controld.policyd.send("STATE_END", cookie=cookie)
        controld.recorder.receive("AUDIT_ASK")
        controld.recorder.send("AUDIT_STATUS", cookie=cookie)
        same(client.answer()["generation"], 7)


# ---- a crowd ----

class Crowd(threading.Thread):
    """Clients that ask again as soon as they are answered."""

    def __init__(self, controld, request):
        super().__init__(daemon=True)
        self.request = json.dumps({"id": 1, **request}).encode() + b"\n"
        self.answers, self.over = 0, False
        self.selector = selectors.DefaultSelector()
        for _ in range(CROWD):
            ours, theirs = socket.socketpair()
            controld.send("CLIENT", theirs.fileno())
            theirs.close()
            self.selector.register(ours, selectors.EVENT_READ)
            ours.sendall(self.request)
        self.start()

    def run(self):
        while not self.over:
            for key, _ in self.selector.select(0.1):
                data = key.fileobj.recv(1 << 16)
                assert b'"error":{' not in data, data
                lines = data.count(b"\n")
                self.answers += lines
                key.fileobj.sendall(self.request * lines)

    def end(self):
        self.over = True
        self.join()


class Status(threading.Thread):
    """The parent's and the recorder's part of each survey; how many."""

    def __init__(self, controld):
        super().__init__(daemon=True)
        self.controld, self.count = controld, 0
        self.start()

    def run(self):
        with contextlib.suppress(Exception):
            while True:
                cookie = self.controld.receive("STATUS_ASK")["cookie"]
                self.count += 1
                self.controld.send("STATUS_END", cookie=cookie)
                self.controld.recorder.receive("AUDIT_ASK")
                self.controld.recorder.send("AUDIT_STATUS", cookie=cookie)


def cpu_s(pid):
    """As the scheduler counts, or in ticks where it does not tell."""
    with contextlib.suppress(OSError, ValueError):
        return int(pathlib.Path(f"/proc/{pid}/schedstat").read_text(
            ).split()[0]) / 1e9
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")")[1]
    return sum(map(int, fields.split()[11:13])) / os.sysconf("SC_CLK_TCK")


def verdicts(daemon, engine, seconds):
    """How long they take, and how much of policyd's time."""
    times, start = [], time.monotonic()
    before = cpu_s(daemon.proc.pid)
    while time.monotonic() - start < seconds:
        begin = time.monotonic()
        same(short(engine.verdict("fast.com"))[0], "allow")
        times.append(time.monotonic() - begin)
    used = (cpu_s(daemon.proc.pid) - before) / len(times)
    times.sort()
    return times[len(times) // 2], used


CROWDS = {
    "status": {"op": "status"},
    "pending": {"op": "pending.list"},
    "cache": {"op": "cache.list"},
    "message": {"op": "session.message", "session_id": "s1", "role": "user",
                "content": "x" * 1000},
}


@cases.each(CROWDS)
def crowd(name):
    """Two hundred of them that ask without pause do not keep verdicts
    waiting; and however many ask for the status, there are ten surveys in a
    second."""
    with policyd() as daemon:
        engine = daemon.load().engine()
        controld = daemon.controld()
        alone, alone_cpu = verdicts(daemon, engine, 1)
        status, start = Status(controld), time.monotonic()
        clients = Crowd(controld, CROWDS[name])
        median, cpu = verdicts(daemon, engine, 3)
        surveys, seconds = status.count, time.monotonic() - start
        clients.end()
        print(f"{name}: {clients.answers} answers, verdicts {median * 1e6:.0f}"
              f" us, {cpu * 1e6:.0f} us of policyd; alone {alone * 1e6:.0f} "
              f"us, {alone_cpu * 1e6:.0f} us")
        assert clients.answers >= CROWD, clients.answers
        assert surveys <= RATE * (seconds + 1), (surveys, seconds)
        assert median < 0.05, median
        controld.proc.kill()
        status.join()


# Nothing of ours may be in the way of a child's descriptor.
while os.open(os.devnull, os.O_RDWR) < CHILD_FD:
    pass
cases.main()
