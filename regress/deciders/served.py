#!/usr/bin/python3
# SPDX-License-Identifier: ISC

"""deciderd and the control client that answers its questions: one at a time,
who may go at any moment, and say anything."""

import json
import pathlib
import socket
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from case import Cases  # noqa: E402
from channel import C  # noqa: E402
from daemon import WAIT_S  # noqa: E402
from standin_parent import QUESTION, Deciderd  # noqa: E402

cases = Cases()

WORDS = ("ALLOW", "DENY", "UNSURE", "TIMEOUT", "ERROR", "BAD_RETURN")
GUARD = {"name": "guard", "kind": "DECIDER_CONTROL"}


class Served(Deciderd):
    """policyd hears, too, that there is somebody to ask."""

    def __init__(self, *deciders):
        self.served = 0
        super().__init__(*deciders or (GUARD,))

    def complaints(self):
        return "".join(line for line in self.log().splitlines(keepends=True)
                       if not line.startswith(('deciderd: decider "',
                                               "deciderd: questions are ")))

    def answer(self, timeout=WAIT_S):
        while True:
            message = self.policyd.read(timeout)
            assert message is not None, f"hung up: {self.log()}"
            if message.name != "SERVED":
                break
            self.served += 1
        message.word = next(w for w in WORDS
                            if C[f"ANSWER_{w}"] == message.result)
        return message


class Server:
    def __init__(self, d, term=0, size=None):
        self.sock, theirs = socket.socketpair()
        if size:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
        self.sock.settimeout(WAIT_S)
        self.file = self.sock.makefile("rb")
        with theirs:
            d.send("SERVE", fd=theirs.fileno(), term=term)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.file.close()
        self.sock.close()

    def read(self):
        line = self.file.readline()
        return json.loads(line) if line else None

    def say(self, value):
        self.sock.sendall((value if isinstance(value, bytes) else
                           json.dumps(value).encode()) + b"\n")


def expect(message, number, word, reason=None):
    assert (message.id, message.word) == (number, word), message
    assert reason is None or message.reason == reason, message


@cases.case
def asked_and_answered():
    """In any order, with the question as it came."""
    with Served(GUARD, {**GUARD, "name": "other"}) as d, Server(d) as s:
        one, two = d.put("guard"), d.put("other")
        lines = [s.read(), s.read()]
        for line, name in zip(lines, ("guard", "other")):
            assert list(line) == ["id", "decider", "rule", "timeout_ms",
                                  "question"], line
            assert line["decider"] == name and line["rule"] == 0, line
            assert line["question"] == QUESTION, line
            assert 9000 < line["timeout_ms"] <= 10000, line
        s.say({"id": lines[1]["id"], "decision": "allow", "reason": "fine"})
        expect(d.answer(), two, "ALLOW", "fine")
        s.say({"id": lines[0]["id"], "decision": "unsure", "reason": "hm"})
        expect(d.answer(), one, "UNSURE", "hm")
        three = d.put("guard")
        s.say({"id": s.read()["id"], "error": "there is nobody"})
        expect(d.answer(), three, "ERROR", "there is nobody")
        assert d.served == 1, d.served


KEEP = {
    "unsaid": ({}, 1), "true": ({"keep": True}, 1),
    "false": ({"keep": False}, 0),
}


@cases.each(KEEP)
def kept(name):
    """policyd hears if the answer is for no other request."""
    more, keep = KEEP[name]
    with Served() as d, Server(d) as s:
        for word in ("allow", "deny"):
            number = d.put("guard")
            s.say({"id": s.read()["id"], "decision": word, **more})
            message = d.answer()
            expect(message, number, word.upper())
            assert message.keep == keep, message


@cases.case
def nobody_serves():
    """The question waits until its time is up."""
    with Served() as d:
        d.gives("guard", "TIMEOUT", timeout_ms=300)


@cases.case
def comes_later():
    """What waits is put to the server that comes, with the time that is left,
    and what has ended is not."""
    with Served() as d:
        d.gives("guard", "TIMEOUT", timeout_ms=100)
        number = d.put("guard")
        with Server(d) as s:
            line = s.read()
            assert line["id"] == 2 and line["timeout_ms"] <= 10000, line
            s.say({"id": 2, "decision": "deny", "reason": "no"})
            expect(d.answer(), number, "DENY", "no")


@cases.case
def dropped():
    """The server is told of questions that have ended without it."""
    with Served() as d, Server(d) as s:
        number = d.put("guard", timeout_ms=200)
        first = s.read()["id"]
        expect(d.answer(), number, "TIMEOUT")
        assert s.read() == {"id": first, "drop": True}
        number = d.put("guard")
        second = s.read()["id"]
        d.policyd.send("QUESTION_DROP", cookie=number)
        assert s.read() == {"id": second, "drop": True}
        # Answers to both were on their way.
        for late in (first, second, 99):
            s.say({"id": late, "decision": "allow", "reason": "late"})
        number = d.put("guard")
        s.say({"id": s.read()["id"], "decision": "allow", "reason": "in time"})
        expect(d.answer(), number, "ALLOW", "in time")


@cases.case
def taken_over():
    """The next one has what the one before has not answered; its answers do
    not count any more."""
    with Served() as d, Server(d, 3) as old:
        numbers = [d.put("guard") for _ in range(3)]
        ids = [old.read()["id"] for _ in numbers]
        old.say({"id": ids[1], "decision": "allow", "reason": "old"})
        expect(d.answer(), numbers[1], "ALLOW", "old")
        with Server(d, 2) as low:
            assert low.read()["error"]["code"] == "taken_over"
            assert low.read() is None
        with Server(d, 3) as new:
            assert [new.read()["id"] for _ in range(2)] == [ids[0], ids[2]]
            assert old.read()["error"]["code"] == "taken_over"
            assert old.read() is None
            for n in (0, 2):
                new.say({"id": ids[n], "decision": "deny", "reason": "new"})
                expect(d.answer(), numbers[n], "DENY", "new")
            number = d.put("guard")
            new.read()
        with Server(d, 4) as last:
            last.say({"id": last.read()["id"], "decision": "allow",
                      "reason": "last"})
            expect(d.answer(), number, "ALLOW", "last")


BAD = {
    "text": b"allow", "no_id": b'{"decision":"allow","reason":"x"}',
    "empty": b"", "list": b"[1]", "id_zero": b'{"id":0,"decision":"allow"}',
    "nul": b'{"id":1,"decision":"allow\\u0000"}', "control": b"\x01",
    "id_text": b'{"id":"1","decision":"allow"}',
    "two": b'{"id":1,"decision":"allow"}{"id":1,"decision":"allow"}',
    "huge": b'{"id":1,"decision":"allow","reason":"' + b"x" * 100000 + b'"}',
}


@cases.each(BAD)
def no_answer(name):
    """The connection ends, the question does not."""
    with Served() as d:
        number = d.put("guard")
        with Server(d) as s:
            assert s.read()["id"] == 1
            try:
                s.say(BAD[name])
            except OSError:
                pass
            try:
                assert s.read() is None
            except ConnectionResetError:
                pass
        with Server(d) as s:
            assert s.read()["id"] == 1
            s.say({"id": 1, "decision": "allow", "reason": "well"})
            expect(d.answer(), number, "ALLOW", "well")


WRONG = {
    "word": {"decision": "yes"}, "none": {"reason": "x"},
    "member": {"decision": "allow", "reason": "x", "sure": True},
    "error_number": {"error": 1}, "error_and": {"error": "x", "reason": "y"},
    "error_but": {"error": "x", "decision": "allow"},
    "error_more": {"error": "x", "sure": True},
    "error_keep": {"error": "x", "keep": False},
    "keep_number": {"decision": "allow", "keep": 0},
    "keep_text": {"decision": "allow", "keep": "false"},
    "keep_null": {"decision": "allow", "keep": None},
    "keep_case": {"decision": "allow", "Keep": False},
    "keep_only": {"keep": False},
}


@cases.each(WRONG)
def bad_answer(name):
    """It is one, but says nothing; the connection stays."""
    with Served() as d, Server(d) as s:
        number = d.put("guard")
        s.say({"id": s.read()["id"], **WRONG[name]})
        expect(d.answer(), number, "BAD_RETURN")
        number = d.put("guard")
        s.say({"id": s.read()["id"], "decision": "allow", "reason": "x"})
        expect(d.answer(), number, "ALLOW")


@cases.each(["false,true", "true,false"])
def keep_twice(words):
    """Neither the first nor the last is believed."""
    one, two = words.split(",")
    with Served() as d, Server(d) as s:
        number = d.put("guard")
        s.say(b'{"id":%d,"decision":"allow","keep":%s,"keep":%s}' % (
            s.read()["id"], one.encode(), two.encode()))
        expect(d.answer(), number, "BAD_RETURN")


@cases.case
def does_not_read():
    """A server that stands still costs a bounded part of the questions; they
    end in time, and what it has missed is put when it reads again."""
    big = {**QUESTION, "metadata": {"x": "y" * 40000}}
    with Served({**GUARD}) as d, Server(d, size=4096) as s:
        numbers = {d.put("guard", big, timeout_ms=60000) for _ in range(100)}
        answered = set()
        while len(answered) < 100:
            line = s.read()
            assert line["question"] == big
            s.say({"id": line["id"], "decision": "allow", "reason": "x"})
            message = d.answer()
            assert message.word == "ALLOW"
            answered.add(message.id)
        assert answered == numbers


@cases.case
def only_rules_ask():
    with Served() as d, Server(d):
        d.last += 1
        d.policyd.send("QUESTION", id=d.last, timeout_ms=1000, rule=2**32 - 1,
                       decider="guard", document='{"a":1}')
        expect(d.answer(), d.last, "ERROR", "only rules ask it")


@cases.case
def nothing_is_left():
    with Served() as d:
        count = d.descriptors()
        for term in range(20):
            with Server(d, term) as s:
                number = d.put("guard")
                s.say({"id": s.read()["id"], "decision": "allow",
                       "reason": "x"})
                expect(d.answer(), number, "ALLOW")
        d.settle(count)


cases.main()
