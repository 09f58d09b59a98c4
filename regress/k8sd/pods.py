#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""The life of pods, by k8sd's own code, against a stand-in API server."""

import copy
import pathlib
import sys
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from case import Cases  # noqa: E402
from driven import Driver  # noqa: E402
from standin_kube import (Kube, Refusal, RUNNING, stamp,  # noqa: E402
                          waiting, workspace)

cases = Cases()
S = "egressd-s-043a718774"      # the pod of session s
KEEP, DELETE = 0, 1


def pending(reason, message=""):
    return {"phase": "Pending",
            "containerStatuses": [workspace(waiting(reason, message))]}


def made(kube, **conf):
    """A pod of session s that nobody follows any more, and its marks."""
    with Driver(kube.url, **conf) as one:
        one.ready()
        one.stop(how=KEEP)
    kube.change(S, lambda p: p["metadata"]["annotations"].pop(
        "egressd.io/follower"))
    return kube.get(S)


# ---- begin ----

@cases.case
def start_makes_a_pod():
    kube = Kube()
    with Driver(kube.url) as one:
        assert one.ready() == S
    pod = kube.get(S)
    meta = pod["metadata"]
    assert meta["labels"]["app.kubernetes.io/managed-by"] == "egressd"
    assert meta["labels"]["egressd.io/session"] == S[-10:]
    assert meta["annotations"]["egressd.io/session-id"] == "s"
    assert meta["annotations"]["egressd.io/term"] == "1"
    assert meta["annotations"]["egressd.io/follower"] in kube.names("leases")
    assert kube.count("POST", "/pods") == 1


@cases.case
def ids_find_their_pods():
    kube = Kube()
    ids = ["a.b", "a-b", "A.B", "team/x:1", "y" * 200]
    with Driver(kube.url) as one:
        names = {one.ready(i, n) for n, i in enumerate(ids)}
        assert len(names) == len(ids)
        items, _ = one.ask("list")
        assert {i[1] for i in items} == set(ids)
        for n in range(len(ids)):
            one.stop(n, KEEP)
        assert {one.ready(i, n) for n, i in enumerate(ids)} == names


@cases.case
def start_adopts():
    kube = Kube()
    uid = made(kube)["metadata"]["uid"]
    with Driver(kube.url) as one:
        one.ready()
    assert kube.get(S)["metadata"]["uid"] == uid
    assert kube.count("POST", "/pods") == 1
    assert kube.get(S)["metadata"]["annotations"]["egressd.io/term"] == "2"


@cases.case
def two_starts_make_one_pod():
    """Between the look and the creation another is faster."""
    kube = Kube()
    other = made(kube)
    kube.remove(other)
    other["status"] = RUNNING
    kube.fault(1, Refusal(409, "AlreadyExists", "it exists"), "POST", "/pods")
    looks = kube.count("GET", S)
    with Driver(kube.url) as one:
        one.send("start", 1, session="s")
        kube.wait(lambda: any(c[0] == "POST" and c[1].endswith("/pods")
                              for c in kube.calls[1:]))
        kube.plant(other)
        assert one.until("ready", "failed")["event"] == "ready"
    assert kube.names() == [S]
    assert kube.count("GET", S) > looks


@cases.case
def pending_is_waited_for():
    kube = Kube()
    kube.on_create = kube.stay
    with Driver(kube.url) as one:
        one.send("start", 1, session="s")
        kube.wait(lambda: kube.objects.get(("default", "pods", S)))
        kube.change(S, lambda p: p["spec"].update(nodeName="node7"))
        one.until("progress", text="scheduled on node7")
        kube.status(S, pending("ContainerCreating"))
        one.until("progress", text="container workspace is made")
        kube.status(S, RUNNING)
        one.until("ready")


@cases.case
def terminating_is_waited_out():
    kube = Kube()
    old = made(kube)
    kube.on_delete = kube.stay
    with Driver(kube.url) as one:
        assert one.ask("terminate", session="s")[1].get("code") is None
        one.send("start", 1, session="s")
        one.until("progress", text="is gone")
        kube.remove(old)
        one.until("ready")
    assert kube.get(S)["metadata"]["uid"] != old["metadata"]["uid"]


@cases.case
def stale_is_an_error():
    kube = Kube()
    made(kube)
    kube.status(S, {"phase": "Failed", "reason": "DeadlineExceeded",
                    "message": "it was active for too long"})
    with Driver(kube.url) as one:
        text = one.fails("stale_pod")
    assert "Failed: DeadlineExceeded: it was active" in text, text
    assert kube.names() == [S]


@cases.case
def stale_is_recreated():
    kube = Kube()
    uid = made(kube)["metadata"]["uid"]
    kube.status(S, {"phase": "Succeeded"})
    with Driver(kube.url, recreate=1) as one:
        one.ready()
    assert kube.get(S)["metadata"]["uid"] != uid


@cases.case
def planted_is_refused():
    kube = Kube()
    kube.plant({"metadata": {"name": S}, "status": RUNNING,
                "spec": {"containers": []}})
    with Driver(kube.url) as one:
        text = one.fails("foreign_pod")
        assert "app.kubernetes.io/managed-by" in text, text
        assert one.ask("terminate", session="s")[1]["code"] == "foreign_pod"
        assert one.ask("list")[0] == []
    assert kube.names() == [S]


@cases.case
def copied_marks_are_no_pod_of_ours():
    kube = Kube()
    made(kube)
    kube.change(S, lambda p: p["spec"].update(hostNetwork=True))
    with Driver(kube.url) as one:
        text = one.fails("pod_differs")
    assert "spec.hostNetwork is not ours" in text, text


@cases.case
def another_owner_is_refused():
    kube = Kube()
    made(kube)
    with Driver(kube.url) as one:
        text = one.fails("pod_differs", owner=1001)
    assert 'owner-uid is "1000", not "1001"' in text, text


@cases.case
def another_image_is_told():
    kube = Kube()
    made(kube)
    with Driver(kube.url, image="other:1") as one:
        text = one.fails("pod_differs")
    assert "spec.containers[0].image" in text, text


@cases.case
def unknown_phase():
    kube = Kube()
    made(kube)
    kube.status(S, {"phase": "Unknown"})
    with Driver(kube.url) as one:
        assert "Unknown" in one.fails("unexpected_phase")


# ---- what goes wrong with a pod ----

@cases.case
def image_that_cannot_be_pulled():
    kube = Kube()
    kube.on_create = kube.stay
    with Driver(kube.url) as one:
        one.send("start", 1, session="s")
        kube.wait(lambda: kube.objects.get(("default", "pods", S)))
        kube.status(S, pending("ErrImagePull", "no such host"))
        one.until("progress", text="ErrImagePull")
        kube.status(S, pending("ImagePullBackOff", "back-off"))
        told = one.until("failed")
        assert told["code"] == "pod_failed", told
        assert "no such host" in told["text"], told
        kube.wait(lambda: not kube.objects.get(("default", "pods", S)))


@cases.case
def no_node():
    kube = Kube()
    kube.on_create = lambda pod: kube.status(S, {
        "phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False",
             "reason": "Unschedulable", "message": "0/3 nodes fit"}]})
    with Driver(kube.url, ready_ms=500) as one:
        text = one.fails("pod_failed")
    assert "Unschedulable: 0/3 nodes fit" in text, text


@cases.case
def never_ready():
    kube = Kube()
    kube.on_create = kube.stay
    with Driver(kube.url, ready_ms=500) as one:
        assert "waits for a node" in one.fails("ready_timeout")
        kube.wait(lambda: not kube.objects.get(("default", "pods", S)))


def event(kube, uid, reason, message, kind="Warning", age=0):
    kube.plant({"metadata": {"name": f"{S}.{reason}"}, "type": kind,
                "involvedObject": {"name": S, "uid": uid}, "reason": reason,
                "message": message, "lastTimestamp": stamp(
                    kube.now() - age)}, kind="events")


@cases.case
def events_say_why():
    """What is in no status; and not what was said of an earlier pod."""
    kube = Kube()

    def tell(pod):
        uid = pod["metadata"]["uid"]
        event(kube, uid, "Scheduled", "on a node", "Normal", 5)
        event(kube, uid, "FailedMount", "claim \"x\" not found")
        event(kube, "another", "FailedSomething", "else")
    kube.on_create = tell
    with Driver(kube.url, ready_ms=500) as one:
        text = one.fails("pod_failed")
        assert 'FailedMount: claim "x" not found' in text, text
        kube.wait(lambda: not kube.objects.get(("default", "pods", S)))


@cases.case
def the_last_event_is_no_warning():
    kube = Kube()

    def tell(pod):
        uid = pod["metadata"]["uid"]
        event(kube, uid, "FailedMount", "not yet", age=5)
        event(kube, uid, "Pulling", "the image", "Normal")
    kube.on_create = tell
    with Driver(kube.url, ready_ms=500) as one:
        text = one.fails("ready_timeout")
    assert "Pulling: the image" in text, text


@cases.case
def no_right_to_read_events():
    kube = Kube()
    kube.on_create = kube.stay
    kube.fault(9, Refusal(403, "Forbidden", "no"), "GET", "/events")
    with Driver(kube.url, ready_ms=500) as one:
        one.fails("ready_timeout")


@cases.each(["Evicted", "DeadlineExceeded"])
def ends_with_its_reason(reason):
    kube = Kube()
    with Driver(kube.url) as one:
        one.ready()
        kube.status(S, {"phase": "Failed", "reason": reason,
                        "message": "says the node"})
        told = one.until("ended")
        assert told["code"] == ("deadline" if reason == "DeadlineExceeded"
                                else "sandbox_died"), told
        assert f"{reason}: says the node" in told["text"], told


@cases.case
def deleted_by_somebody():
    kube = Kube()
    with Driver(kube.url) as one:
        one.ready()
        kube.remove(kube.get(S))
        assert "deleted" in one.until("ended")["text"]


@cases.case
def container_restarts():
    """Out of memory is no end: the kubelet starts the workspace again."""
    kube = Kube()
    with Driver(kube.url) as one:
        one.ready()
        kube.status(S, {"phase": "Running", "containerStatuses": [workspace(
            waiting("CrashLoopBackOff"), 1,
            {"reason": "OOMKilled", "exitCode": 137})]})
        kube.status(S, {"phase": "Running", "containerStatuses": [workspace(
            {"running": {}}, 1)]})
        assert one.ask("list")[0][0][2] == "Running"
        assert one.stop(how=DELETE)["code"] == "by_request"
        assert not any(e["event"] == "ended" for e in one.heard[:-1])


@cases.case
def crash_loop_at_the_start():
    kube = Kube()
    kube.on_create = lambda pod: kube.status(S, {
        "phase": "Running", "containerStatuses": [workspace(
            waiting("CrashLoopBackOff", "back-off"), 2,
            {"reason": "Error", "exitCode": 125})]})
    with Driver(kube.url) as one:
        assert "Error, exit code 125" in one.fails("pod_failed")


@cases.case
def a_client_does_not_wait_for_ever():
    """The workspace does not come back."""
    kube = Kube()
    with Driver(kube.url, ready_ms=1000) as one:
        one.ready()
        kube.status(S, {"phase": "Running", "containerStatuses": [workspace(
            waiting("CrashLoopBackOff"), 1)]})
        until = time.monotonic() + 30
        while time.monotonic() < until:     # until the watch has told it
            one.send("attach", 1)
            if "gone" in one.until("heard", "closed")["text"]:
                break
        else:
            raise AssertionError(one.heard[-3:])
        assert "the workspace does not run" in one.heard[-1]["text"]
        one.until("closed")


# ---- logs ----

@cases.case
def a_log_is_shown():
    kube = Kube()
    kube.print(b"one\n")
    with Driver(kube.url) as one:
        one.ready()
        one.send("logs", 7, session="s")
        one.until("closed")
        told = {e["event"]: e["text"] for e in one.heard}
        assert told["heard"] == "one\n" and told["over"] == "", told
    path = next(c for c in kube.calls if c[1].endswith("/log"))
    assert path[2]["container"] == "workspace", path


@cases.case
def a_log_is_followed():
    kube = Kube()
    kube.print(b"one\n")
    with Driver(kube.url) as one:
        one.ready()
        one.send("logs", 7, session="s", follow=1)
        assert one.until("heard")["text"] == "one\n"
        kube.print(b"two\n")
        assert one.until("heard")["text"] == "two\n"


# ---- stop, share ----

@cases.case
def stop_with_an_id_keeps():
    kube = Kube()
    with Driver(kube.url) as one:
        one.ready()
        one.stop()
    assert kube.names() == [S]


@cases.case
def stop_without_an_id_deletes():
    kube = Kube()
    with Driver(kube.url) as one:
        one.ready(named=0)
        one.stop()
    assert kube.names() == []
    body = next(c[3] for c in kube.calls if c[0] == "DELETE")
    assert set(body["preconditions"]) == {"uid", "resourceVersion"}, body


@cases.case
def stop_while_it_is_made():
    kube = Kube()
    kube.on_create = kube.stay
    with Driver(kube.url) as one:
        one.send("start", 1, session="s", named=0)
        one.until("progress")
        one.stop()
    assert kube.names() == []


@cases.case
def a_change_does_not_save_what_is_stopped():
    """The version of the precondition is that of the last look."""
    kube = Kube()
    with Driver(kube.url) as one:
        one.ready(named=0)
        kube.fault(1, Refusal(409, "Conflict", "it has changed"), "DELETE", S)
        one.stop()
    assert kube.names() == []
    assert kube.count("DELETE", S) == 2


@cases.case
def sessions_share_a_pod():
    kube = Kube()
    with Driver(kube.url, id="common") as one:
        pod = one.ready("a", 1)
        assert one.ready("b", 2) == pod
        assert one.start("c", 3, owner=1001)["code"] == "pod_differs"
        one.stop(1, DELETE)
        assert kube.names() == [pod]
        one.stop(2, DELETE)
    assert kube.names() == []


@cases.case
def start_after_a_stop_that_deletes():
    kube = Kube()
    kube.on_delete = kube.stay
    with Driver(kube.url) as one:
        one.ready()
        one.send("stop", 1, how=DELETE)
        kube.wait(lambda: kube.count("DELETE", S) == 1)
        one.send("start", 2, session="s")
        kube.remove(kube.get(S))
        one.until("ready", number=2)
    assert any(e["event"] == "ended" for e in one.heard)


# ---- heartbeats, reaping ----

def beat_of(kube):
    return kube.get(S)["metadata"]["annotations"]["egressd.io/heartbeat"]


@cases.case
def heartbeats():
    kube = Kube()
    kube.skew = 86400 * 365
    with Driver(kube.url, heartbeat_ms=200) as one:
        one.ready()
        kube.wait(lambda: kube.count("PATCH", S) >= 3)
        assert beat_of(kube) > stamp(time.time() + 86400 * 364)


@cases.case
def no_heartbeat():
    kube = Kube()
    with Driver(kube.url, heartbeat_ms=0) as one:
        one.ready()
        notes = kube.get(S)["metadata"]["annotations"]
        assert "egressd.io/heartbeat" not in notes
        assert one.ask("heartbeat", session="s")[1].get("code") is None
        assert beat_of(kube)
        over = one.ask("heartbeat", session="nobody")[1]
        assert over["code"] == "unknown_session", over
    assert kube.count("PATCH", S) == 1


@cases.each(["Failed", "Terminating"])
def a_heartbeat_that_is_too_late(phase):
    kube = Kube()
    pod = made(kube)
    if phase == "Failed":
        kube.status(S, {"phase": "Failed", "reason": "Evicted"})
    else:
        kube.change(S, lambda p: p["metadata"].update(
            deletionTimestamp=stamp(kube.now())))
    with Driver(kube.url) as one:
        over = one.ask("heartbeat", session="s")[1]
        assert over["code"] == "bad_heartbeat", over
    assert kube.count("PATCH", S) == 0, pod


def pod_like(pod, session, age, **changes):
    """A pod of ours of another session, with a heartbeat so long ago."""
    import hashlib
    other = copy.deepcopy(pod)
    digest = hashlib.sha256(session.encode()).hexdigest()[:10]
    meta = other["metadata"]
    meta.pop("uid")
    meta["name"] = f"egressd-{session}-{digest}"
    meta["labels"]["egressd.io/session"] = digest
    meta["labels"].update(changes.get("labels", {}))
    meta["annotations"]["egressd.io/session-id"] = session
    meta["annotations"]["egressd.io/heartbeat"] = age
    other["status"] = changes.get("status", RUNNING)
    return other


@cases.case
def reaps_what_is_old_and_ours():
    kube = Kube()
    kube.skew = -86400 * 30     # whatever our own clock says
    pod = made(kube)
    now = kube.now()
    kube.plant(pod_like(pod, "old", stamp(now - 1000)))
    kube.plant(pod_like(pod, "red", stamp(now - 1000),
                        labels={"team": "red"}))
    kube.plant(pod_like(pod, "young", stamp(now - 100)))
    kube.plant(pod_like(pod, "future", stamp(now + 1000)))
    kube.plant(pod_like(pod, "bad", "yesterday"))
    kube.plant(pod_like(pod, "failed", stamp(now - 1000),
                        status={"phase": "Failed"}))
    kube.plant(pod_like(pod, "theirs", stamp(now - 1000),
                        labels={"egressd.io/owner": "other"}))
    odd = pod_like(pod, "odd", stamp(now - 1000))
    odd["metadata"]["name"] = "database"
    kube.plant(odd)
    before = kube.names()
    with Driver(kube.url) as one:
        items, _ = one.ask("reap", dry_run=1)
        assert {i[1] for i in items} == {"old", "red", "failed"}, items
        assert kube.names() == before
        items, _ = one.ask("reap", selector="team=red")
        assert [(i[1], i[4]) for i in items] == [("red", "deleted")], items
        items, _ = one.ask("reap")
        assert {i[1] for i in items} == {"old", "failed"}, items
        listed = {i[1]: i for i in one.ask("list")[0]}
        assert listed["bad"][4] == "bad heartbeat", listed
        assert 100 <= int(listed["young"][3]) < 400, listed
    assert kube.count("DELETE") == 3


@cases.case
def a_heartbeat_saves():
    kube = Kube()
    made(kube)
    kube.fault(1, Refusal(409, "Conflict", "it has changed"), "DELETE", S)
    with Driver(kube.url) as one:
        items, over = one.ask("reap", age_s=0)
    assert "changed meanwhile" in items[0][4], items
    assert kube.names() == [S]


@cases.case
def what_is_in_use_is_not_reaped():
    kube = Kube()
    with Driver(kube.url) as one:
        one.ready()
        assert one.ask("reap", age_s=0)[0] == []
    assert kube.names() == [S]


@cases.case
def many_pods_come_in_pages():
    kube = Kube()
    pod = made(kube)
    for n in range(250):
        kube.plant(pod_like(pod, f"p{n}", stamp(kube.now())))
    with Driver(kube.url) as one:
        items, _ = one.ask("list")
        assert len({i[1] for i in items}) == 251
        one.ready()
        # The watch begins with a list too.
        kube.wait(lambda: kube.count("GET", "/pods", limit="100") >= 6)


# ---- two control hosts ----

@cases.case
def one_host_follows():
    kube = Kube()
    with Driver(kube.url) as first, Driver(kube.url) as second:
        first.ready()
        lease = kube.names("leases")
        kube.wait(lambda: any(k[1] == "leases" for k in kube.objects))
        text = second.fails("followed_elsewhere")
        assert lease[0] in text or "followed by" in text, text
        # The first is not killed, but cut off for long enough.
        name, = [n for n in kube.names("leases") if n == kube.get(S)[
            "metadata"]["annotations"]["egressd.io/follower"]]
        kube.fault(1000, Refusal(500, "InternalError", "no"), "PATCH", name)
        kube.change(name, lambda le: le["spec"].update(
            renewTime=stamp(kube.now() - 100)[:-1] + ".000000Z"),
            kind="leases")
        second.ready()
        told = first.until("ended")
        assert "another control host" in told["text"], told
    notes = kube.get(S)["metadata"]["annotations"]
    assert notes["egressd.io/term"] == "2", notes


@cases.case
def another_host_takes_over_from_the_dead():
    kube = Kube()
    first = Driver(kube.url)
    first.ready()
    uid = kube.get(S)["metadata"]["uid"]
    first.kill()
    for name in kube.names("leases"):
        kube.change(name, lambda le: le["spec"].update(
            renewTime="2020-01-01T00:00:00.000000Z"), kind="leases")
    with Driver(kube.url) as second:
        assert [i[1] for i in second.ask("list")[0]] == ["s"]
        second.ready()
    assert kube.get(S)["metadata"]["uid"] == uid


@cases.case
def a_dead_host_is_waited_out():
    """Its Lease has some seconds left, and nobody renews it."""
    kube = Kube()
    first = Driver(kube.url)
    first.ready()
    first.kill()
    name = kube.get(S)["metadata"]["annotations"]["egressd.io/follower"]
    kube.change(name, lambda le: le["spec"].update(
        renewTime=stamp(kube.now() - 28)[:-1] + ".000000Z"), kind="leases")
    with Driver(kube.url) as second:
        second.ready()
        assert any(name in text for text in second.progress()), \
            second.progress()
    assert kube.get(S)["metadata"]["annotations"]["egressd.io/term"] == "2"


@cases.case
def leases_of_the_dead_are_swept():
    kube = Kube()
    marks = {"app.kubernetes.io/managed-by": "egressd",
             "egressd.io/owner": "egressd"}
    for name, labels, age in (("old", marks, 3600), ("young", marks, 60),
                              ("theirs", {}, 3600)):
        kube.plant({"metadata": {"name": name, "labels": labels}, "spec": {
            "renewTime": stamp(kube.now() - age)[:-1] + ".000000Z",
            "leaseDurationSeconds": 30}}, kind="leases")
    with Driver(kube.url) as one:
        one.ready()
        kube.wait(lambda: ("default", "leases", "old") not in kube.objects)
        assert kube.count("DELETE") == 1
    assert {"young", "theirs"} <= set(kube.names("leases"))


@cases.case
def of_two_hosts_one_is_refused():
    """The pod has changed since it was seen: look again."""
    kube = Kube()
    made(kube)
    kube.fault(1, Refusal(409, "Conflict", "it has changed"), "PATCH", S)
    with Driver(kube.url) as one:
        one.ready()
    assert kube.get(S)["metadata"]["annotations"]["egressd.io/term"] == "2"


# ---- the channel to the gate ----

@cases.case
def channel():
    """Where the pod is, who follows it, what is run there; its end is told."""
    kube = Kube()

    def run(pod):
        kube.change(S, lambda p: p["spec"].update(nodeName="node-7"))
        kube.run(pod)
    kube.on_create = run
    for term in ("1", "2"):
        with Driver(kube.url) as one:
            one.ready()
            uid = kube.get(S)["metadata"]["uid"]
            for number in (11, 12):
                one.send("channel", 1, channel=number)
                ran = one.until("exec")
                assert (ran["pod"], ran["text"], ran["code"]) == \
                    (S, "/usr/local/bin/egressctl", "pump"), ran
                told = one.until("channel", number=number)
                assert (told["pod"], told["text"]) == \
                    (uid, f"node-7 {term}"), told
                one.until("channel_ended", number=number)
            one.stop(how=KEEP)
        kube.change(S, lambda p: p["metadata"]["annotations"].pop(
            "egressd.io/follower"))


@cases.case
def channel_of_none():
    """There is nobody to speak with in a pod that does not run yet."""
    kube = Kube()
    kube.on_create = kube.stay
    with Driver(kube.url) as one:
        one.send("start", 1, session="s")
        one.until("progress")
        one.send("channel", 1, channel=11)
        assert one.until("channel", number=11)["code"] == "none"


if __name__ == "__main__":
    cases.main()
