#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""podd alone, with us for all its peers, and a stand-in for a pod's gate: what
passes between them that a whole daemon does not show."""

import json
import os
import pathlib
import sys
import threading

sys.dont_write_bytecode = True
TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from case import Cases  # noqa: E402
from channel import C  # noqa: E402
from children import CHILD_FD, Child  # noqa: E402
from daemon import WAIT_S, until  # noqa: E402
from standin_gate import Gate  # noqa: E402

cases = Cases()
OLD, NEW = "a" * 64, "b" * 64


def same(have, want):
    assert have == want, f"{have!r}, expected {want!r}"


class Podd(Child):
    def __init__(self):
        super().__init__("podd")

    def __enter__(self):
        super().__enter__()
        self.policyd = self.run()
        self.controld = self.connect("CONTROLD")
        self.recorder = self.connect("RECORDER")
        return self

    def open(self, gate, channel=1, **values):
        self.controld.send("PODD_OPEN", gate.ours.fileno(), channel=channel,
                           session="work", pod="pod-1", uid="uid-1",
                           node="node-1", **values)
        gate.ours.close()

    def state(self, want, channel=1):
        have = self.controld.receive("PODD_STATE")
        same((have["channel"], have["state"]), (channel, C[want]))
        return have["text"].decode()

    def record(self):
        """The next one, and its members."""
        text = b""
        while (message := self.recorder.next())[0] == "POD_MEMBERS":
            text += message[1]["text"]
        same(message[0], "POD_RECORD")
        return message[1], json.loads(text)


@cases.case
def reload():
    """Asked for again until the configuration is there."""
    with Podd() as podd, Gate(sha256=OLD) as gate:
        podd.open(gate, sha256=OLD)
        podd.state("PODD_UP")
        podd.controld.send("PODD_RELOAD", channel=1, sha256=NEW)
        until("it is asked twice", lambda: gate.reloads >= 2)
        gate.sha256 = NEW
        have = podd.controld.receive("PODD_RELOADED")
        same((have["channel"], have["ok"]), (1, 1))


@cases.case
def reload_refused():
    with Podd() as podd, Gate(sha256=OLD) as gate:
        podd.open(gate, sha256=OLD)
        podd.state("PODD_UP")
        gate.op_reload = lambda letter, said: gate.say(letter, {
            "id": said["id"], "error": {"code": "bad_configuration",
                                        "message": "line 3"}})
        podd.controld.send("PODD_RELOAD", channel=1, sha256=NEW)
        have = podd.controld.receive("PODD_RELOADED")
        same((have["ok"], have["text"]), (0, b"line 3"))


@cases.case
def given_at_last():
    """A gate that was found with another configuration, and takes ours."""
    with Podd() as podd, Gate(sha256=OLD) as gate:
        podd.open(gate, sha256=NEW)
        podd.state("PODD_OTHER_CONF")
        assert not gate.serves.is_set()
        gate.sha256 = NEW
        podd.controld.send("PODD_RELOAD", channel=1, sha256=NEW)
        same(podd.controld.receive("PODD_RELOADED")["ok"], 1)
        podd.state("PODD_UP")
        assert gate.serves.wait(WAIT_S)


@cases.case
def not_written():
    """The recorder has no room: the channel ends, nothing is acknowledged."""
    with Podd() as podd, Gate() as gate:
        podd.open(gate)
        podd.state("PODD_UP")
        gate.tell()
        have, _ = podd.record()
        same(have["origin_seq"], 1)
        podd.recorder.send("POD_UNRECORDED", channel=1)
        assert "cannot be written" in podd.state("PODD_LOST")
        until("it is hung up on", lambda: not gate.thread.is_alive())
        same(gate.spool.acked, 0)
        # What crosses the end on its way is no fault.
        podd.recorder.send("POD_RECORDED", channel=1, origin_seq=1)
        podd.controld.send("PODD_CLOSE", channel=1)
        podd.controld.send("PODD_RELOAD", channel=1, sha256=NEW)


@cases.case
def acknowledged():
    """Up to what is written, once for all that was meanwhile."""
    with Podd() as podd, Gate() as gate:
        podd.open(gate)
        podd.state("PODD_UP")
        for _ in range(5):
            gate.tell()
            podd.record()
        same(gate.spool.acked, 0)
        podd.recorder.send("POD_RECORDED", channel=1, origin_seq=3)
        same(gate.acks.get(timeout=WAIT_S), 3)
        podd.recorder.send("POD_RECORDED", channel=1, origin_seq=5)
        same(gate.acks.get(timeout=WAIT_S), 5)


@cases.case
def slow_recorder():
    """While it takes nothing, gates are not read; nothing is lost."""
    with Podd() as podd, Gate() as gate:
        podd.open(gate)
        podd.state("PODD_UP")
        teller = threading.Thread(target=lambda: [
            gate.tell(x="y" * 60000) for _ in range(16)])
        teller.start()
        for number in range(1, 17):
            have, members = podd.record()
            same((have["origin_seq"], len(members["x"])), (number, 60000))
        teller.join()


KEEP = {
    "allow": ("ALLOW", 1, {"decision": "allow", "reason": "x"}),
    "allow_once": ("ALLOW", 0, {"decision": "allow", "reason": "x",
                                "keep": False}),
    "deny_once": ("DENY", 0, {"decision": "deny", "reason": "x",
                              "keep": False}),
    "error": ("ERROR", 0, {"error": "x"}),
}


@cases.each(KEEP)
def kept(which):
    """The gate is told if the answer is for its request only."""
    word, keep, line = KEEP[which]
    with Podd() as podd, Gate() as gate:
        podd.open(gate)
        podd.state("PODD_UP")
        assert gate.serves.wait(WAIT_S)
        gate.ask(7)
        same(podd.policyd.receive("POD_QUESTION")["id"], 7)
        podd.policyd.send("POD_QUESTION_ANSWER", channel=1, id=7,
                          result=C["ANSWER_" + word], keep=keep, reason="x")
        same(gate.answer(), {"id": 7, **line})


LIES = {
    "open_0": ("controld", "PODD_OPEN", {"channel": 0}),
    "open_twice": ("controld", "PODD_OPEN", {"channel": 1}),
    "reload_no_hash": ("controld", "PODD_RELOAD", {"sha256": "x"}),
    "recorded_what_was_not": ("recorder", "POD_RECORDED",
                              {"channel": 1, "origin_seq": 7}),
    "answer": ("policyd", "POD_QUESTION_ANSWER", {"result": 99}),
    "answer_keep": ("policyd", "POD_QUESTION_ANSWER", {"keep": 2}),
}


@cases.each(LIES)
def bad_message(which):
    """Who is trusted more talks nonsense: all ends."""
    who, name, values = LIES[which]
    with Podd() as podd, Gate() as gate, Gate() as other:
        podd.open(gate)
        podd.state("PODD_UP")
        peer = getattr(podd, who)
        if name == "PODD_OPEN":
            peer.send(name, other.ours.fileno(), session="work", **values)
        else:
            peer.send(name, **values)
        podd.end(1, f"bad message from {who}")


# Nothing of ours may be in the way of a child's descriptor.
while os.open(os.devnull, os.O_RDWR) < CHILD_FD:
    pass
cases.main()
