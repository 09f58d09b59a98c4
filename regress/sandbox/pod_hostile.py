#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Gates in pods that somebody has taken over: what they say is the end of
their channel, is recorded, and concerns no other."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases  # noqa: E402
from daemon import until  # noqa: E402
from gateslib import (JUDGE, cut_off, daemon, of_pod, same,  # noqa: E402
                      show, state, stop, up)
from standin_gate import Gate, Spool, record  # noqa: E402
from standin_k8sd import STANDIN, Pods  # noqa: E402
from standin_program import mount_standin  # noqa: E402

cases = Cases()

LONG = b"b" + b"x" * (1024 * 1024 + 2)
HOSTILE = {
    "no_json": b"b{\n",
    "no_object": b"b[]\n",
    "another_letter": b"z{}\n",
    "upper_case": b"B{}\n",
    "long_line": LONG,
    "nul": b"b\0\n",
    "twice": record(2),
    "back": record(1),
    "no_number": record(0),
    "huge_number": record(1 << 53),
    "other_session": record(3, session="other"),
    "our_session": record(3, session="work"),
    "no_session": record(3, session=None),
    "attached": record(3, "session_attached"),
    "hostile_kind": record(3, "pod_hostile"),
    "unknown_kind": record(3, "x"),
    "claims_a_pod": record(3, pod="another"),
    "claims_a_number": record(3, origin_seq=1),
    "fraction": record(3, x=1.5),
    "bad_time": {**record(3), "at": "2026-13-18T14:00:00.123Z"},
    "no_time": {**record(3), "at": None},
    "bad_prev": {**record(3), "prev": "x"},
    "false_gap": record(3, "gap", None, first_seq=9, last_seq=1),
    "deep": record(3, x=[[[[[[[[[]]]]]]]]]),
    "unasked_answer": b'a{"id":1,"ok":true}\na{"id":2,"ok":true}\n',
    "unasked_ack": b'd{"id":1,"ok":true}\n',
    "question_no_json": b"c{\n",
    "question_of_another": b'c{"id":1,"decider":"who","rule":0,"timeout_ms":1,'
                           b'"question":{"session_id":"work","request":{}}}\n',
    "question_more": b'c{"id":1,"decider":"who","rule":0,"timeout_ms":1,'
                     b'"question":{"session_id":"pod","request":{},"x":1}}\n',
    "question_without_id": b'c{"drop":true}\n',
    "question_time": b'c{"id":1,"decider":"who","rule":0,"timeout_ms":0}\n',
}


@cases.each(HOSTILE)
def hostile(which):
    what = HOSTILE[which]
    with daemon() as d, up(d) as gate:
        gate.tell()
        gate.tell()
        if isinstance(what, bytes):
            gate.raw(what)
        else:
            gate.say("b", what)
        cut_off(d, gate)
        same([r["origin_seq"] for r in of_pod(d)], [1, 2])
        stop(d, gate.told)


@cases.case
def hostile_window():
    """More than it may send before it is answered."""
    spool = Spool()
    with daemon() as d, up(d, spool=spool) as gate:
        gate.deaf = True
        for _ in range(40):
            gate.tell(x="y" * 65536)
        assert "before it is answered" in cut_off(d, gate)
        stop(d, gate.told)


@cases.case
def hostile_flood():
    """More questions at a time than any gate has."""
    with daemon() as d, up(d) as gate:
        JUDGE.says(None)
        for number in range(300):
            gate.ask(number)
        assert "questions at a time" in cut_off(d, gate)
        stop(d, gate.told)


STRANGE = {
    "decider": {"decider": "nobody"},
    "host": {"host": "A.test"},
    "path": {"path": ""},
    "method": {"method": ""},
    "tcp": {"scheme": "tcp"},
}


@cases.each(STRANGE)
def hostile_question(which):
    with daemon() as d, up(d) as gate:
        gate.ask(1, **STRANGE[which])
        cut_off(d, gate)
        same(JUDGE.questions, [])
        stop(d, gate.told)


@cases.case
def not_of_that_rule():
    """A decider of the policy, but not of this rule: refused, no more."""
    with daemon() as d, up(d) as gate:
        gate.ask(1, "who", 1)
        gate.ask(2, "who", 77)
        for _ in range(2):
            assert "error" in gate.answer()
        same(JUDGE.questions, [])
        same(show(d)["channel"]["state"], "up")
        stop(d, gate.told)


@cases.case
def hostile_alone():
    """Another session's channel has nothing of it."""
    with daemon() as d, up(d) as bad, up(d, "other") as good:
        bad.raw(b"b{\n")
        cut_off(d, bad)
        good.tell()
        until("it is acknowledged", lambda: good.spool.acked == 1)
        same(show(d, "other")["channel"]["state"], "up")
        stop(d, bad.told)
        stop(d, good.told, "other")


@cases.case
def hostile_again():
    """Who starts or attaches to the session has it dialled again."""
    with daemon() as d, up(d) as gate:
        gate.raw(b"b{\n")
        cut_off(d, gate)
        assert d.ask("session.start", session_id="work",
                     sandbox="pod")["existed"]
        dialled = d.k8sd.expect("POD_CHANNEL", number=gate.told.number)
        with Gate() as better:
            d.k8sd.opens(dialled, better)
            state(d, "up")
            stop(d, gate.told)


if __name__ == "__main__":
    Pods.relay = mount_standin(STANDIN, "k8sd")
    cases.main()
