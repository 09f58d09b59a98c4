# SPDX-License-Identifier: ISC

"""What the cases about gates in pods share: a whole daemon but for k8sd, which
we are, and sessions whose pods have stand-ins for a gate."""

import contextlib

from daemon import WAIT_S, Client, until
from judge import Judge
from standin_gate import Gate
from standin_k8sd import Pods
from standin_program import directory

TOKEN = directory() / "token"
TOKEN.write_text("none")
TOKEN.chmod(0o600)
JUDGE = Judge()
CONF = f"""
limit pending 1024
decider "person" operator {{ }}
{JUDGE.conf("who")}
policy "one" {{ decide "who" host "a.test"
	decide "person" host "b.test"
	allow host "c.test" }}
policy "two" {{ }}
cluster "far" {{ server "https://127.0.0.1:9" token file "{TOKEN}" }}
sandbox "pod" kubernetes {{ policy "one" image "x" cluster "far" ungated }}
"""
OURS = ("pod", "pod_uid", "node", "origin_seq")


def same(have, want):
    assert have == want, f"{have!r}, expected {want!r}"


@contextlib.contextmanager
def daemon(conf=CONF):
    JUDGE.says({"decision": "allow", "reason": "so be it"})
    JUDGE.questions.clear()
    with Pods(conf) as d:
        yield d
        if d.process.poll() is None:
            same(d.stop(), 0)
            warned = [line for line in d.log().splitlines()
                      if "killed" in line or "bad message" in line]
            assert not warned, warned


def begin(d, name="work", pod="pod-1"):
    """A session whose pod runs, and has a gate that is to be dialled."""
    with Client(d.socket) as client:
        client.send({"id": 1, "op": "session.start", "sandbox": "pod",
                     "session_id": name})
        told = d.k8sd.expect("POD_START")
        d.k8sd.runs(told, pod, gated=1)
        assert client.read()["ok"]
    return told, d.k8sd.expect("POD_CHANNEL", number=told.number)


def show(d, name="work"):
    return d.ask("session.show", session_id=name)


def state(d, want, name="work"):
    return until(f"channel {want}", lambda: (
        lambda c: c if c["state"] == want else None)(
            show(d, name)["channel"]))


def lost(d, why):
    """It waits to be dialled again, or is by now; why is shown."""
    def shown():
        channel = show(d)["channel"]
        return channel["state"] in ("waiting", "dialling") and \
            why in (channel["reason"] or "")
    until(f"lost: {why}", shown)


@contextlib.contextmanager
def up(d, name="work", **kwargs):
    """The channel of a new session, up."""
    told, dialled = begin(d, name)
    with Gate(**kwargs) as gate:
        gate.told = told
        d.k8sd.opens(dialled, gate)
        assert gate.serves.wait(WAIT_S) and gate.follows.wait(WAIT_S)
        state(d, "up", name)
        yield gate


def of_pod(d, name="work"):
    return [r for r in d.verified() if r["session_id"] == name and
            "origin_seq" in r]


def arrive(d, count, name="work"):
    until(f"{count} records", lambda: len(of_pod(d, name)) >= count)
    return of_pod(d, name)


def stop(d, told, name="work"):
    with Client(d.socket) as client:
        client.send({"id": 1, "op": "session.stop", "session_id": name})
        while (message := d.k8sd.messages.get(timeout=WAIT_S)).name != \
                "POD_STOP":
            same(message.name, "POD_CHANNEL")
        d.k8sd.ended(told)
        assert client.read()["ok"]


def cut_off(d, gate, name="work"):
    """What is shown and recorded of it; it is not dialled again."""
    channel = state(d, "hostile", name)
    assert channel["reason"], channel
    until("it is hung up on", lambda: not gate.thread.is_alive())
    found = until("a record", lambda: [
        r for r in d.verified() if r["kind"] == "pod_hostile" and
        r["session_id"] == name])
    same([(r["pod"], r["pod_uid"], r["node"], r["reason"]) for r in found],
         [("pod-1", "uid-1", "node-1",
           f"gate_hostile: {channel['reason']}")])
    d.k8sd.silent()
    return channel["reason"]
