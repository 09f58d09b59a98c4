#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Pods with a gate, by k8sd's own code, against a stand-in API server: their
Secrets and NetworkPolicies, from the first to the last.  There is no collector
of garbage here, so that what goes is what k8sd has deleted."""

import base64
import hashlib
import pathlib
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from case import Cases  # noqa: E402
from driven import Driver  # noqa: E402
from standin_kube import Kube, Refusal, stamp  # noqa: E402

cases = Cases()
S = "egressd-s-043a718774"      # the pod of session s
KINDS = "secrets", "networkpolicies"
KEEP, DELETE = 0, 1
CONF = "egressd.io/configuration"


def owned(kube):
    return {kind: kube.get(S, kind=kind) for kind in KINDS}


def is_dressed(kube, text="policy"):
    """It has both, they are its own, and the gate is told what it should."""
    uid = kube.get(S)["metadata"]["uid"]
    for thing in owned(kube).values():
        assert thing["metadata"]["ownerReferences"] == [{
            "apiVersion": "v1", "kind": "Pod", "name": S, "uid": uid}]
        assert thing["metadata"]["labels"]["egressd.io/session"] == S[-10:]
    data = kube.get(S, kind="secrets")["data"]
    assert base64.b64decode(data["egressd.conf"]).decode() == text
    assert base64.b64decode(data["upstream.pem"]) == b"T\n"
    assert kube.get(S)["metadata"]["annotations"][CONF] == \
        hashlib.sha256(text.encode()).hexdigest()


def unfollow(kube):
    kube.change(S, lambda p: p["metadata"]["annotations"].pop(
        "egressd.io/follower"))


def is_bare(kube):
    return all(thing is None for thing in owned(kube).values())


@cases.case
def a_pod_has_what_it_owns():
    kube = Kube()
    with Driver(kube.url, gated=1) as one:
        one.ready()
        is_dressed(kube)
        one.stop(how=DELETE)
        kube.wait(lambda: not kube.objects or is_bare(kube))
    spec = [c[3]["spec"] for c in kube.calls
            if c[0] == "POST" and c[1].endswith("/pods")][0]
    assert [c["name"] for c in spec["containers"]] == ["gate", "workspace"]


@cases.case
def sidecars_are_used_where_they_are_known():
    kube = Kube()
    kube.minor = 29
    with Driver(kube.url, gated=1) as one:
        one.ready()
    spec = kube.get(S)["spec"]
    assert [c["name"] for c in spec["initContainers"]] == ["fence", "gate"]
    assert spec["initContainers"][1]["restartPolicy"] == "Always"
    assert [c["name"] for c in spec["containers"]] == ["workspace"]


@cases.case
def private_ranges_are_closed_unless_a_rule_opens_them():
    for private in (0, 1):
        kube = Kube()
        with Driver(kube.url, gated=1) as one:
            one.ready(private=private)
        dns, world = kube.get(S, kind="networkpolicies")["spec"]["egress"]
        assert {"ipBlock": {"cidr": "10.0.0.3/32"}} in dns["to"]
        assert {"ipBlock": {"cidr": "fd00::3/128"}} in dns["to"]
        four = world["to"][0]["ipBlock"]
        assert four["cidr"] == "0.0.0.0/0"
        assert ("169.254.0.0/16" in four.get("except", [])) != bool(private)


@cases.case
def no_network_policy_if_none_is_wanted():
    kube = Kube()
    with Driver(kube.url, gated=1, network=0) as one:
        one.ready()
    assert kube.get(S, kind="secrets") is not None
    assert kube.get(S, kind="networkpolicies") is None


@cases.case
def what_the_gate_is_told_may_come_late():
    kube = Kube()
    with Driver(kube.url, gated=1) as one:
        one.send("start", 1, session="s", late=1)
        one.send("gate", 1)
        one.until("ready")
        is_dressed(kube)


@cases.case
def a_stop_before_that_leaves_nothing():
    kube = Kube()
    with Driver(kube.url, gated=1) as one:
        one.send("start", 1, session="s", late=1)
        one.stop(how=DELETE)
    assert kube.calls == []


@cases.case
def another_policy_is_not_adopted():
    kube = Kube()
    with Driver(kube.url, gated=1) as one:
        one.ready()
        one.stop(how=KEEP)
    unfollow(kube)
    with Driver(kube.url, gated=1) as one:
        text = one.fails("pod_differs", gate="another")
        assert CONF in text, text
        one.ready()


@cases.case
def a_gate_is_not_an_ungated_pod():
    kube = Kube()
    with Driver(kube.url) as one:
        one.ready()
        one.stop(how=KEEP)
    with Driver(kube.url, gated=1) as one:
        assert "egressd.io/" in one.fails("pod_differs")


@cases.case
def what_is_missing_or_changed_is_mended():
    """A control host that died in between, or somebody who wrote to it."""
    kube = Kube()
    with Driver(kube.url, gated=1) as one:
        one.ready()
        one.stop(how=KEEP)
    with kube.changed:
        del kube.objects["default", "networkpolicies", S]
    kube.change(S, lambda s: s["data"].update({"egressd.conf": "eHh4"}),
                kind="secrets")
    unfollow(kube)
    with Driver(kube.url, gated=1) as one:
        one.ready()
        is_dressed(kube)


@cases.case
def what_the_last_pod_left_is_replaced():
    kube = Kube()
    with Driver(kube.url, gated=1) as one:
        one.ready()
        one.stop(how=KEEP)
    old = owned(kube)
    kube.remove(kube.get(S))
    with Driver(kube.url, gated=1) as one:
        one.ready(gate="new")
        is_dressed(kube, "new")
    for kind in KINDS:
        assert kube.get(S, kind=kind)["metadata"]["uid"] != \
            old[kind]["metadata"]["uid"]


@cases.case
def anothers_secret_is_left_alone():
    kube = Kube()
    mine = {"metadata": {"name": S}, "data": {"a": "Yg=="}}
    kube.plant(mine, kind="secrets")
    with Driver(kube.url, gated=1) as one:
        text = one.fails("foreign_pod")
        assert "secrets" in text and "not ours" in text, text
        kube.wait(lambda: ("default", "pods", S) not in kube.objects)
    assert kube.get(S, kind="secrets")["data"] == mine["data"]


@cases.case
def a_right_that_is_missing_is_named():
    kube = Kube()
    kube.fault(9, Refusal(403, "Forbidden", "no secrets for you"), "POST",
               "/secrets")
    with Driver(kube.url, gated=1) as one:
        text = one.fails("cluster_refused")
        assert "may not create secrets: no secrets for you" in text, text
        kube.wait(lambda: ("default", "pods", S) not in kube.objects)


@cases.case
def pod_security_is_named():
    kube = Kube()
    kube.fault(9, Refusal(403, "Forbidden", 'violates PodSecurity "baseline"'),
               "POST", "/pods")
    with Driver(kube.url, gated=1) as one:
        assert "a gate needs privileged" in one.fails("cluster_refused")


@cases.case
def terminate_deletes_all_of_it():
    kube = Kube()
    with Driver(kube.url, gated=1) as one:
        one.ready()
        one.stop(how=KEEP)
        items, over = one.ask("terminate", session="s")
        assert over.get("code") is None and items[0][0] == S, (items, over)
        assert is_bare(kube) and kube.names() == []


@cases.case
def reap_deletes_all_of_it():
    kube = Kube()
    with Driver(kube.url, gated=1) as one:
        one.ready()
        one.stop(how=KEEP)
        kube.change(S, lambda p: p["metadata"]["annotations"].update({
            "egressd.io/heartbeat": stamp(kube.now() - 3600)}))
        items, over = one.ask("reap")
        assert over.get("code") is None and items[0][4] == "deleted", items
        assert is_bare(kube) and kube.names() == []


@cases.case
def what_the_next_pod_owns_stays():
    """A Secret of that name whose owner is another pod."""
    kube = Kube()
    with Driver(kube.url, gated=1) as one:
        one.ready()
        one.stop(how=KEEP)

        def other(thing):
            thing["metadata"]["ownerReferences"][0]["uid"] = "another"
        for kind in KINDS:
            kube.change(S, other, kind=kind)
        one.ask("terminate", session="s")
    assert kube.names() == [] and not is_bare(kube)


@cases.case
def a_check_knows_what_gates_need():
    for gated in (0, 1):
        kube = Kube()
        with Driver(kube.url, gated=gated) as one:
            items, _ = one.ask("check")
        what = {i[0] for i in items}
        assert ("create secrets" in what) == bool(gated), what
        assert ("delete networkpolicies" in what) == bool(gated), what


if __name__ == "__main__":
    cases.main()
