#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""The life of sessions in a real cluster: pods that are found again, that are
in the way, or that somebody else has made; heartbeats, reaping, and two
daemons on one cluster."""

import contextlib
import hashlib
import pathlib
import re
import signal
import sys
import threading

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
import images  # noqa: E402
from case import Cases  # noqa: E402
from daemon import Daemon, until  # noqa: E402
from kube import KubeError  # noqa: E402
from pods import (AGAIN_S, START_S, attached, block, cluster,  # noqa: E402
                  conf, pods_path, run, sh, start)

cases = Cases()
NOTE = "egressd.io/"
MERGE = "application/merge-patch+json"
FINALIZER = "test.egressd.io/wait"


def configuration():
    image = images.name("root")
    return conf(
        block("kept", image, "heartbeat off"),
        block("again", image, "heartbeat off on stale recreate"),
        block("beats", image, "heartbeat 1s"),
        block("none", "localhost/egressd-no-such-image:1", "ready timeout "
              "100s"),
        block("huge", image, 'requests { memory "999Ti" } '
              "ready timeout 10s"),
        block("unmounted", image, 'workspace claim "no-such-claim" '
              "ready timeout 20s"))


@contextlib.contextmanager
def daemon():
    cluster()
    with Daemon(configuration()) as one:
        one.settle()
        yield one


def pod_name(session):
    """As doc/cluster.md has it for ids that are simple."""
    digest = hashlib.sha256(session.encode()).hexdigest()[:10]
    return f"egressd-{session}-{digest}"


def found(name):
    try:
        return cluster().get(f"{pods_path()}/{name}")
    except KubeError as error:
        assert error.status == 404, error
        return None


def notes(name):
    return found(name)["metadata"]["annotations"]


def patch(name, **meta):
    cluster().call("PATCH", f"{pods_path()}/{name}", {"metadata": meta},
                   kind=MERGE)


def refused(answer, code):
    assert answer.get("error", {}).get("code") == code, answer
    return answer["error"]["message"]


def gone(name):
    cluster().until(pods_path(), name, lambda pod: pod is None)


def write(d, session, text):
    with attached(d, session) as hands:
        hands.call("write", text, path="file")


def read(d, session):
    with attached(d, session) as hands:
        return hands.call("read", path="file").out


# ---- found again ------------------------------------------------------------

@cases.case
def a_session_finds_its_pod_again():
    with daemon() as d:
        pod = run(d, "twice", "kept")
        uid = found(pod)["metadata"]["uid"]
        assert start(d, "twice", "kept")["existed"]
        write(d, "twice", b"edit")
        assert d.ask("session.stop", session_id="twice").get("ok")
        assert run(d, "twice", "kept") == pod
        assert read(d, "twice") == b"edit"
        assert found(pod)["metadata"]["uid"] == uid
        d.ask("session.stop", session_id="twice", delete=True)
        gone(pod)


@cases.case
def ids_have_names_of_their_own():
    ids = ["a.b", "a-b", "A.B", "team/x:1", "y" * 200]
    with daemon() as d:
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
            d.ask("session.stop", session_id=i, delete=True)


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
    with daemon() as d, daemon() as e:
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
        one.ask("session.stop", session_id="both", delete=True)


# ---- in the way -------------------------------------------------------------

@cases.case
def a_pod_that_goes_is_waited_out():
    with daemon() as d:
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
        d.ask("session.stop", session_id="leaves", delete=True)


@cases.case
def a_pod_that_has_ended_is_an_error_or_made_again():
    """By its deadline, which the cluster keeps."""
    with daemon() as d:
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
        d.ask("session.stop", session_id="ended", delete=True)


@cases.case
def a_planted_pod_is_refused():
    name = pod_name("planted")
    cluster().create(pods_path(), {
        "metadata": {"name": name}, "spec": {"containers": [
            {"name": "workspace", "image": images.name("root"),
             "command": ["sleep", "1000"]}]}})
    uid = found(name)["metadata"]["uid"]
    with daemon() as d:
        text = refused(start(d, "planted", "kept"), "foreign_pod")
        assert "managed-by" in text, text
        refused(d.ask("pods.terminate", session_id="planted",
                      sandbox="kept"), "foreign_pod")
        assert found(name)["metadata"]["uid"] == uid
        # Our marks do not make it ours, either.
        run(d, "real", "kept")
        marks = found(pod_name("real"))["metadata"]
        d.ask("session.stop", session_id="real", delete=True)
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
    with daemon() as d:
        text = refused(start(d, f"bad-{sandbox}", sandbox), "pod_failed")
        assert word in text, text
        gone(pod_name(f"bad-{sandbox}"))


# ---- heartbeats and hosts ---------------------------------------------------

@cases.case
def a_heartbeat_is_seen():
    with daemon() as d:
        pod = run(d, "beats", "beats")
        old = notes(pod)[NOTE + "heartbeat"]
        until("heartbeats", lambda: notes(pod)[NOTE + "heartbeat"] > old)
        d.ask("session.stop", session_id="beats")
        # By hand, of a session that nobody has.
        patch(pod, annotations={NOTE + "heartbeat": "2020-01-01T00:00:00Z"})
        assert d.ask("session.heartbeat", session_id="beats",
                     sandbox="beats").get("ok")
        assert notes(pod)[NOTE + "heartbeat"] > "2021"
        d.ask("pods.terminate", session_id="beats", sandbox="beats")


def age(pod):
    patch(pod, annotations={NOTE + "heartbeat": "2020-01-01T00:00:00Z"})


@cases.case
def reaped_by_another_when_its_daemon_died():
    with daemon() as d:
        dead = run(d, "dead", "beats")
        old = run(d, "no-heartbeat", "kept")
        d.process.send_signal(signal.SIGKILL)
        d.wait()
    stranger = f"stranger-{cluster().space[-6:]}"
    cluster().create(pods_path(), {
        "metadata": {"name": stranger, "annotations": {
            NOTE + "heartbeat": "2020-01-01T00:00:00Z"}},
        "spec": {"containers": [{"name": "c", "image": images.name("root"),
                                 "command": ["sleep", "1000"]}]}})
    with daemon() as e:
        lives = run(e, "lives", "beats")
        asked = {"sandbox": "beats"}
        assert e.ask("pods.reap", **asked)["pods"] == []
        age(dead)
        dry = e.ask("pods.reap", dry_run=True, **asked)["pods"]
        assert [(p["session_id"], p["state"]) for p in dry] == \
            [("dead", "kept")], dry
        assert found(dead)
        done = e.ask("pods.reap", **asked)["pods"]
        assert [(p["session_id"], p["state"]) for p in done] == \
            [("dead", "deleted")], done
        gone(dead)
        for left in (lives, old, stranger):
            assert "deletionTimestamp" not in found(left)["metadata"], left
        e.ask("session.stop", session_id="lives", delete=True)
        e.ask("pods.terminate", session_id="no-heartbeat", sandbox="kept")
    cluster().delete(f"{pods_path()}/{stranger}", 0)


@cases.case
def a_session_has_one_follower():
    """And another one when that has died, with the files as they were."""
    with daemon() as d, daemon() as e:
        pod = run(d, "followed", "beats")
        write(d, "followed", b"of the first")
        first = notes(pod)[NOTE + "follower"]
        text = refused(start(e, "followed", "beats"), "followed_elsewhere")
        assert first in text, text
        d.process.send_signal(signal.SIGKILL)
        d.wait()
        assert run(e, "followed", "beats") == pod
        assert notes(pod)[NOTE + "follower"] != first
        assert notes(pod)[NOTE + "term"] == "2"
        assert read(e, "followed") == b"of the first"
        with attached(e, "followed") as hands:
            assert sh(hands, "echo works") == "works\n"
        e.ask("session.stop", session_id="followed", delete=True)


cases.main()
