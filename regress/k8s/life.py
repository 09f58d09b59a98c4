#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""The life of sessions in a real cluster: pods that are found again, that are
in the way, that somebody else has made, or that cannot be."""

import hashlib
import pathlib
import re
import sys
import threading

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
import images  # noqa: E402
from case import Cases  # noqa: E402
from daemon import until  # noqa: E402
from pods import (AGAIN_S, MERGE, START_S, block, cluster, daemon,  # noqa: E402
                  found, gone, patch, pods_path, read, refused, run, start,
                  write)

cases = Cases()
FINALIZER = "test.egressd.io/wait"


IMAGE = images.name("root")
BLOCKS = [
    block("kept", IMAGE, "heartbeat off"),
    block("again", IMAGE, "heartbeat off on stale recreate"),
    block("none", "localhost/egressd-no-such-image:1"),
    block("huge", IMAGE, 'requests { memory "999Ti" } ready timeout 10s'),
    block("unmounted", IMAGE, 'workspace claim "no-such-claim" '
          "ready timeout 20s")]


def pod_name(session):
    """As doc/cluster.md has it for ids that are simple."""
    digest = hashlib.sha256(session.encode()).hexdigest()[:10]
    return f"egressd-{session}-{digest}"


# ---- found again ------------------------------------------------------------

@cases.case
def a_session_finds_its_pod_again():
    with daemon(*BLOCKS) as d:
        pod = run(d, "twice", "kept")
        uid = found(pod)["metadata"]["uid"]
        assert start(d, "twice", "kept")["existed"]
        write(d, "twice", b"edit")
        assert d.ask("session.stop", session_id="twice").get("ok")
        assert run(d, "twice", "kept") == pod
        assert read(d, "twice") == b"edit"
        assert found(pod)["metadata"]["uid"] == uid
        with d.client() as client:
            client.sock.settimeout(START_S)
            assert client.ask("session.stop", session_id="twice",
                              delete=True).get("ok")
        assert found(pod) is None


@cases.case
def ids_have_names_of_their_own():
    ids = ["a.b", "a-b", "A.B", "team/x:1", "y" * 200]
    with daemon(*BLOCKS) as d:
        made = {i: run(d, i, "kept") for i in ids}
        assert len(set(made.values())) == len(ids), made
        for name in made.values():
            assert re.fullmatch(r"[a-z0-9][a-z0-9-]{0,61}[a-z0-9]", name), name
        for i in ids:
            write(d, i, i.encode())
            d.ask("session.stop", session_id=i)
        listed = {p["session_id"]: p["pod"] for p in
                  d.ask("pods.list", sandbox="kept")["pods"]}
        assert {i: listed.get(i) for i in ids} == made, listed
        for i in ids:
            assert run(d, i, "kept") == made[i]
            assert read(d, i) == i.encode()
            d.ask("session.stop", session_id=i)


def at_once(*calls):
    """What they return, each in a thread of its own."""
    answers = [None] * len(calls)

    def one(n):
        answers[n] = calls[n]()
    threads = [threading.Thread(target=one, args=(n,))
               for n in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * START_S)
    return answers


@cases.case
def two_starts_at_once_have_one_pod():
    with daemon(*BLOCKS) as d, daemon(*BLOCKS) as e:
        answers = at_once(*[lambda one=one: start(one, "both", "kept")
                            for one in (d, d, e)])
        good = [a for a in answers if a and a.get("ok")]
        assert good and {a["pod"] for a in good} == {pod_name("both")}, answers
        for answer in answers:
            if answer not in good:
                refused(answer, "followed_elsewhere")
        pods = [p for p in cluster().get(pods_path())["items"]
                if p["metadata"]["name"].startswith("egressd-both-")]
        assert len(pods) == 1, pods
        one = d if answers[0].get("ok") else e
        one.ask("session.stop", session_id="both")


# ---- in the way -------------------------------------------------------------

@cases.case
def a_pod_that_goes_is_waited_out():
    with daemon(*BLOCKS) as d:
        pod = run(d, "leaves", "kept")
        old = found(pod)["metadata"]["uid"]
        d.ask("session.stop", session_id="leaves")
        patch(pod, finalizers=[FINALIZER])
        cluster().delete(f"{pods_path()}/{pod}", 0)
        with d.client() as client:
            client.sock.settimeout(START_S)
            client.send({"id": 1, "op": "session.start", "sandbox": "kept",
                         "session_id": "leaves", "progress": True})
            told = client.read()
            assert "is gone" in told.get("progress", ""), told
            patch(pod, finalizers=[])
            while "progress" in (told := client.read()):
                pass
            assert told.get("ok"), told
        assert found(pod)["metadata"]["uid"] != old
        d.ask("session.stop", session_id="leaves")


@cases.case
def a_pod_that_has_ended_is_an_error_or_made_again():
    """By its deadline, which the cluster keeps."""
    with daemon(*BLOCKS) as d:
        pod = run(d, "ended", "kept", deadline=3600)
        cluster().call("PATCH", f"{pods_path()}/{pod}",
                       {"spec": {"activeDeadlineSeconds": 1}}, kind=MERGE)
        until("the session's end", lambda: "error" in d.ask(
            "session.show", session_id="ended"), AGAIN_S)
        over = [r for r in d.records() if r["kind"] == "session_ended" and
                r["session_id"] == "ended"]
        assert over and over[-1]["reason"].startswith("deadline"), over
        text = refused(start(d, "ended", "kept"), "stale_pod")
        assert "Failed: DeadlineExceeded" in text, text
        assert run(d, "ended", "again") == pod
        assert found(pod)["status"]["phase"] == "Running"
        d.ask("session.stop", session_id="ended")


@cases.case
def a_planted_pod_is_refused():
    name = pod_name("planted")
    cluster().create(pods_path(), {
        "metadata": {"name": name}, "spec": {"containers": [
            {"name": "workspace", "image": images.name("root"),
             "command": ["sleep", "1000"]}]}})
    uid = found(name)["metadata"]["uid"]
    with daemon(*BLOCKS) as d:
        text = refused(start(d, "planted", "kept"), "foreign_pod")
        assert "managed-by" in text, text
        refused(d.ask("pods.terminate", session_id="planted",
                      sandbox="kept"), "foreign_pod")
        assert found(name)["metadata"]["uid"] == uid
        # Our marks do not make it ours, either.
        run(d, "real", "kept")
        marks = found(pod_name("real"))["metadata"]
        d.ask("session.stop", session_id="real")
        marks["annotations"]["egressd.io/session-id"] = "planted"
        marks["labels"]["egressd.io/session"] = name[-10:]
        patch(name, labels=marks["labels"], annotations=marks["annotations"])
        refused(start(d, "planted", "kept"), "pod_differs")
        assert found(name)["metadata"]["uid"] == uid
    cluster().delete(f"{pods_path()}/{name}", 0)


@cases.each(["none ErrImagePull", "huge Unschedulable", "unmounted claim"])
def the_reason_is_told(words):
    """And is not that the time is over."""
    sandbox, word = words.split()
    with daemon(*BLOCKS) as d:
        text = refused(start(d, f"bad-{sandbox}", sandbox), "pod_failed")
        assert word in text, text
        gone(pod_name(f"bad-{sandbox}"))


cases.main()
