#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Gates in pods, as the control host sees them: their records in its chain,
their questions before its deciders, their channels dialled again and again.  A
whole daemon but for k8sd, which we are; the gates are stand-ins."""

import contextlib
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases, Skip  # noqa: E402
from daemon import WAIT_S, Client, until  # noqa: E402
from gateslib import (CONF, JUDGE, OURS, arrive, begin,  # noqa: E402
                      daemon, lost, of_pod, same, show, state, stop, up)
from standin_gate import HASH, Gate, Spool, record  # noqa: E402
from standin_k8sd import ROOT, STANDIN, Pods  # noqa: E402
from standin_program import mount_standin  # noqa: E402

cases = Cases()


# ---- records ----

@cases.case
def records():
    """Ours in number and chain, the pod's in what they say; acknowledged."""
    spool = Spool()
    spool.add("session_started", policy="one", reason=None, ca_sha256=HASH)
    spool.add("request_denied", request={
        "id": "1-2-3", "host": "x.test", "port": 443, "method": "GET",
        "path": "/\u00e4\u200b\"\\", "request_headers": [["a", "b\uef80"]]},
        reason="default_deny", matched_rule=None)
    with daemon() as d, up(d, spool=spool) as gate:
        found = arrive(d, 2)
        for have, want in zip(found, spool.records):
            same([have[m] for m in OURS],
                 ["pod-1", "uid-1", "node-1", want["seq"]])
            same({k: v for k, v in have.items()
                  if k not in (*OURS, "seq", "session_id", "prev")},
                 {k: v for k, v in want.items()
                  if k not in ("seq", "session_id", "prev")})
        until("both are acknowledged", lambda: spool.acked == 2)
        gate.tell(request={"host": "y.test", "port": 53, "method": None,
                           "protocol": "udp"}, reason=None)
        same(arrive(d, 3)[-1]["request"]["host"], "y.test")
        until("it is acknowledged", lambda: spool.acked == 3)
        with Client(d.socket) as client:
            client.send({"id": 1, "op": "session.refusals",
                         "session_id": "work"})
            same(client.read()["refusals"],
                 [{"host": "x.test", "reason": "default_deny", "count": 1}])
        stop(d, gate.told)


@cases.case
def shown():
    """egressctl knows them, and that the chain is whole."""
    with daemon() as d, up(d) as gate:
        gate.tell("request_denied", request={
            "host": "x.test", "port": 443, "scheme": "https",
            "method": "GET", "path": "/"}, reason="default_deny")
        arrive(d, 1)
        same(d.ctl("verify", str(d.audit)).returncode, 0)
        stop(d, gate.told)


@cases.case
def long_record():
    """One that fills a line in the pod has room here, and says what it lost."""
    spool = Spool()
    spool.add("request_closed", request={
        "host": "x.test", "request_body": {"preview": "y" * 257000}})
    spool.add("request_closed", request={
        "host": "x.test", "request_body": {"preview": "z" * 100000}})
    with daemon() as d, up(d, spool=spool) as gate:
        long, short = arrive(d, 2)
        assert long["shortened"] and "shortened" not in short, long.keys()
        assert long["request"]["request_body"]["preview"].startswith("yyy")
        same(len(short["request"]["request_body"]["preview"]), 100000)
        until("both are acknowledged", lambda: spool.acked == 2)
        stop(d, gate.told)


@cases.case
def cut_again_and_again():
    """Whatever is cut off, no record is missing, and none is there twice."""
    spool = Spool()
    with daemon() as d:
        told, dialled = begin(d)
        for turn in range(4):
            for _ in range(50):
                spool.add()
            # Every other one hears nothing of what was written.
            with Gate(spool) as gate:
                gate.deaf = turn % 2 == 0
                d.k8sd.opens(dialled, gate)
                arrive(d, (turn + 1) * 50)
                gate.cut()
            d.k8sd.send("POD_CHANNEL_ENDED", channel=dialled.channel,
                        text="cut")
            dialled = d.k8sd.expect("POD_CHANNEL", number=told.number)
        same([r["origin_seq"] for r in of_pod(d)], list(range(1, 201)))
        stop(d, told)


@cases.case
def numbers_left_out():
    """They are recorded as such; what the pod's own gap accounts for is not."""
    with daemon() as d, up(d) as gate:
        gate.say("b", record(1))
        gate.say("b", record(5))
        gate.say("b", record(9, "gap", None, reason="audit_full", lost=3,
                             first_seq=6, last_seq=8, lost_hash=None,
                             lost_bytes=0))
        gate.say("b", record(10, "file_opened", None, last_seq=9,
                             last_hash=None))
        found = arrive(d, 5)
        same([(r["kind"], r["origin_seq"], r.get("reason")) for r in found],
             [("name_asked", 1, None), ("pod_gap", 4, "numbers_missing"),
              ("name_asked", 5, None), ("pod_gap", 9, "audit_full"),
              ("pod_gap", 10, "audit_switched")])
        same([found[1][m] for m in ("first_seq", "last_seq", "lost")],
             [2, 4, 3])
        stop(d, gate.told)


@cases.case
def heard_elsewhere():
    """Another control host has had some of them: a gap in ours."""
    spool = Spool()
    spool.add()
    with daemon() as d:
        told, dialled = begin(d)
        with Gate(spool) as gate:
            d.k8sd.opens(dialled, gate)
            until("it is acknowledged", lambda: spool.acked == 1)
        dialled = d.k8sd.expect("POD_CHANNEL")
        for _ in range(5):
            spool.add()
        spool.acked = 4
        with Gate(spool) as gate:
            d.k8sd.opens(dialled, gate)
            found = arrive(d, 4)
            same([(r["kind"], r["origin_seq"]) for r in found],
                 [("name_asked", 1), ("pod_gap", 4), ("name_asked", 5),
                  ("name_asked", 6)])
            stop(d, told)


@contextlib.contextmanager
def small_disk(d):
    """The audit file stands on a file system of its own."""
    disk = d.dir / "disk"
    disk.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs",
                           str(disk)], capture_output=True, text=True)
    if done.returncode != 0:
        raise Skip(f"no tmpfs: {done.stderr.strip()}")
    try:
        d.audit = disk / "audit.log"
        d.write(CONF)
        yield disk
    finally:
        if d.process is not None and d.process.poll() is None:
            d.stop()
        subprocess.run(["umount", str(disk)], check=True)


@cases.case
def full_disk():
    """What cannot be written is not acknowledged, and comes again."""
    if not ROOT:
        raise Skip("only root can mount")
    d, spool = Pods(CONF), Spool()
    try:
        with small_disk(d) as disk, d, Gate(spool) as gate:
            told, dialled = begin(d)
            d.k8sd.opens(dialled, gate)
            assert gate.follows.wait(WAIT_S)
            gate.tell()
            until("it is acknowledged", lambda: spool.acked == 1)
            with open(disk / "filler", "wb", buffering=0) as file, \
                    contextlib.suppress(OSError):
                while True:
                    file.write(b"x" * 4096)
            for _ in range(8):
                gate.tell(x="y" * 8192)
            until("it is hung up on", lambda: not gate.thread.is_alive())
            assert spool.acked < 9, spool.acked
            dialled = d.k8sd.expect("POD_CHANNEL", number=told.number)
            (disk / "filler").unlink()
            until("there is room", lambda: not d.ask(
                "status")["audit"]["full"])
            with Gate(spool) as again:
                d.k8sd.opens(dialled, again)
                until("all are acknowledged", lambda: spool.acked == 9)
                same({r["origin_seq"] for r in of_pod(d)},
                     set(range(1, 10)))
                stop(d, told)
    finally:
        d.end()


@cases.case
def another_pod():
    """Its numbers begin anew, and none of them is taken for an old one."""
    with daemon() as d:
        for uid in ("uid-1", "uid-2"):
            told, dialled = begin(d)
            spool = Spool()
            spool.add()
            with Gate(spool) as gate:
                d.k8sd.opens(dialled, gate, uid=uid)
                until("it is acknowledged", lambda: spool.acked == 1)
                stop(d, told)
        same([(r["pod_uid"], r["origin_seq"]) for r in of_pod(d)],
             [("uid-1", 1), ("uid-2", 1)])


# ---- questions ----

@cases.case
def question():
    """The decider sees the session as we know it, and the pod's request."""
    with daemon() as d, up(d) as gate:
        d.ask("session.message", session_id="work", role="user",
              content="fetch it")
        d.ask("session.metadata", session_id="work",
              metadata={"team": "blue"})
        gate.ask(7, path="/p?q=1", path_truncated=True, path_redacted=12,
                 body_bytes=None)
        same(gate.answer(), {"id": 7, "decision": "allow",
                             "reason": "so be it"})
        asked, = JUDGE.asked(1)
        same(asked["session_id"], "work")
        same(asked["recent_messages"][0]["content"], "fetch it")
        same(asked["metadata"], {"team": "blue"})
        request = asked["request"]
        same((request["path"], request["path_truncated"],
              request["path_redacted"], request["body_bytes"]),
             ("/p?q=1", True, 12, None))
        # Nothing is kept: that is the gate's to do.
        gate.ask(8, path="/p?q=1")
        same(gate.answer()["id"], 8)
        JUDGE.asked(2)
        same(d.ask("cache.list")["cache"], [])
        stop(d, gate.told)


@cases.each(["deny", "unsure"])
def decision(word):
    with daemon() as d, up(d) as gate:
        JUDGE.says({"decision": word, "reason": "why"})
        gate.ask(1)
        same(gate.answer(), {"id": 1, "decision": word, "reason": "why"})
        stop(d, gate.told)


@cases.case
def no_decision():
    """A decider that fails is an error for the gate, and on record here."""
    with daemon() as d, up(d) as gate:
        JUDGE.says(b"nonsense")
        gate.ask(1)
        answer = gate.answer()
        assert answer["id"] == 1 and "error" in answer and \
            "decision" not in answer, answer
        until("a record", lambda: [r for r in d.records() if
                                   r["kind"] == "decider_failure"])
        stop(d, gate.told)


@cases.case
def late():
    """The time that the gate gives it is all that it has."""
    with daemon() as d, up(d) as gate:
        JUDGE.says(None)
        gate.ask(1, timeout_ms=200)
        answer = gate.answer()
        assert answer["id"] == 1 and "error" in answer, answer
        stop(d, gate.told)


@cases.case
def person():
    """`pending' shows it, and a person's answer goes back."""
    with daemon() as d, up(d) as gate:
        gate.ask(3, "person", 1, host="b.test", path="/secret?x=y")
        asked = until("it is pending",
                      lambda: d.ask("pending.list")["pending"])
        same([(q["session_id"], q["decider"], q["request"]["host"],
               q["request"]["path"])
              for q in asked], [("work", "person", "b.test", "/secret?x=y")])
        assert d.ask("pending.answer", pending=asked[0]["id"],
                     decision="deny", reason="no")["ok"]
        same(gate.answer(), {"id": 3, "decision": "deny", "reason": "no",
                             "keep": False})
        gate.ask(4, "person", 1, host="b.test")
        until("it is pending", lambda: d.ask("pending.list")["pending"])
        gate.say("c", {"id": 4, "drop": True})
        until("it is dropped", lambda: not d.ask("pending.list")["pending"])
        stop(d, gate.told)


@cases.case
def channel_lost_with_questions():
    """Nobody waits for them any more."""
    with daemon() as d:
        with up(d) as gate:
            gate.ask(4, "person", 1, host="b.test")
            until("it is pending", lambda: d.ask("pending.list")["pending"])
        until("it is dropped", lambda: not d.ask("pending.list")["pending"])
        stop(d, gate.told)


@cases.case
def policy_changed():
    """After a reload the gate's rules are old ones: an error, no offence."""
    with daemon() as d, up(d) as gate:
        gate.ask(5, "person", 1, host="b.test")
        until("it is pending", lambda: d.ask("pending.list")["pending"])
        d.conf.write_text(d.conf.read_text().replace(
            'decide "person" host "b.test"', 'allow host "b.test"'))
        d.ask("reload")
        answer = gate.answer()
        assert answer["id"] == 5 and "error" in answer, answer
        gate.ask(6, "person", 1, host="b.test")
        answer = gate.answer()
        assert answer["id"] == 6 and "error" in answer, answer
        same(show(d)["channel"]["state"], "up")
        stop(d, gate.told)


# ---- supervision ----

@cases.case
def dialled_again():
    """Each time later; why is shown; and success is no end in order."""
    with daemon() as d:
        told, dialled = begin(d)
        began, numbers = time.monotonic(), [dialled.channel]
        for _ in range(3):
            d.k8sd.send("POD_CHANNEL_ENDED", channel=dialled.channel,
                        text="egressctl pump ended with status 0: ")
            lost(d, "status 0")
            dialled = d.k8sd.expect("POD_CHANNEL", number=told.number)
            numbers.append(dialled.channel)
        took = time.monotonic() - began
        # 0.5, 1 and 2 seconds, each with a quarter off at most.
        assert took > 2.6, took
        same(len(set(numbers)), 4)
        with Gate() as gate:
            d.k8sd.opens(dialled, gate)
            shown_up = state(d, "up")
            same((shown_up["node"], shown_up["reason"]), ("node-1", None))
            assert show(d)["gated"]
            stop(d, told)


@cases.case
def reason_of_k8sd():
    """podd sees an end, and k8sd knows why it was."""
    with daemon() as d:
        with up(d) as gate:
            pass
        dialled = d.k8sd.expect("POD_CHANNEL", number=gate.told.number)
        d.k8sd.send("POD_CHANNEL_ENDED", channel=dialled.channel,
                    text="the kubelet is gone")
        lost(d, "the kubelet is gone")
        stop(d, gate.told)


@cases.case
def other_configuration():
    """Records are taken, questions are not."""
    with daemon() as d:
        told, dialled = begin(d)
        with Gate(sha256="a" * 64) as gate:
            gate.spool.add()
            d.k8sd.opens(dialled, gate, sha256="b" * 64)
            state(d, "other_configuration")
            until("it is acknowledged", lambda: gate.spool.acked == 1)
            assert not gate.serves.is_set()
            stop(d, told)


@cases.case
def same_configuration():
    with daemon() as d:
        told, dialled = begin(d)
        with Gate(sha256="a" * 64) as gate:
            d.k8sd.opens(dialled, gate, sha256="a" * 64)
            state(d, "up")
            stop(d, told)


@cases.case
def term():
    """The gate is told who asks, and may refuse an old one."""
    with daemon() as d:
        told, dialled = begin(d)
        with Gate(follow=False) as gate:
            d.k8sd.opens(dialled, gate, term=7)
            asked = {}
            while "events.follow" not in asked or \
                    "questions.serve" not in asked:
                _, said = gate.asked.get(timeout=WAIT_S)
                asked[said["op"]] = said
            same([asked[op]["term"] for op in
                  ("events.follow", "questions.serve")], [7, 7])
            gate.say("b", {"id": 2, "error": {"code": "not_permitted",
                                              "message": "term 7 is old"}})
            lost(d, "term 7 is old")
        d.k8sd.expect("POD_CHANNEL")
        stop(d, told)


@cases.case
def stopped():
    """With the session its channel ends, and is not dialled again."""
    with daemon() as d, up(d) as gate:
        stop(d, gate.told)
        until("it is hung up on", lambda: not gate.thread.is_alive())
        d.k8sd.silent()


@cases.case
def pod_ends():
    with daemon() as d, up(d) as gate:
        d.k8sd.ended(gate.told, "CAUSE_SANDBOX", "evicted")
        until("it is hung up on", lambda: not gate.thread.is_alive())
        until("no session", lambda: not d.sessions())
        d.k8sd.silent()


@cases.case
def ungated():
    """A pod without a gate is not dialled, and it is said."""
    with daemon() as d:
        with Client(d.socket) as client:
            client.send({"id": 1, "op": "session.start", "sandbox": "pod",
                         "session_id": "work"})
            told = d.k8sd.expect("POD_START")
            d.k8sd.runs(told)
            assert client.read()["ok"]
        shown_it = show(d)
        assert not shown_it["gated"] and "channel" not in shown_it, shown_it
        d.k8sd.silent()
        stop(d, told)


if __name__ == "__main__":
    Pods.relay = mount_standin(STANDIN, "k8sd")
    cases.main()
