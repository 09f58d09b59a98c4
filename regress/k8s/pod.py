#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""What only a pod can show of box and of a session's clients: its first
process, what is left behind, and what becomes of a client when a part of the
cluster dies."""

import contextlib
import pathlib
import sys
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
import images  # noqa: E402
from case import Cases  # noqa: E402
from hands import HandsError, within  # noqa: E402
from pods import (CWD, attached, cluster, clustered, container,  # noqa: E402
                  is_ready, node, pods_path, run, session, sh, size,
                  works_again)

cases = Cases()
GRACE_S = 90        # a pod's, before the runtime kills what is left
WAIT_S = 120        # for the cluster to be itself again
ZOMBIES = ("for s in /proc/[0-9]*/stat; do read -r line <$s || continue; "
           "case ${line##*)} in \\ Z*) echo $line;; esac; done 2>/dev/null; :")


def grows(hands, path):
    old = size(hands, path)
    within(WAIT_S, lambda: size(hands, path) > old, f"more in {path}")


def hands_in(kind):
    """A client of the pod that all cases share."""
    return attached(clustered(), session(kind))


@contextlib.contextmanager
def own_pod(name, kind):
    """A session for one case, and its pod."""
    name = f"{cluster().space}-{name}"
    pod = run(clustered(), name, f"pod-{kind}")
    try:
        yield name, pod
    finally:
        clustered().ask("session.stop", session_id=name)


# ---- what runs --------------------------------------------------------------

@cases.case
def an_image_without_a_shell():
    with hands_in("bare") as hands:
        answer = hands.call("exec", argv=[images.PROGRAM, "--version"])
        assert answer.result == {"exit_code": 0}, answer
        assert answer.out.startswith(b"ldconfig"), answer.out
        try:
            raise AssertionError(hands.call("exec", command="true"))
        except HandsError as error:
            assert error.code == "not_found", error
            assert "/bin/sh" in error.message, error


@cases.each(["root", "user"])
def as_whom_the_image_says(kind):
    uid = {"root": "0", "user": "1000"}[kind]
    with hands_in(kind) as hands:
        assert sh(hands, "id -u; pwd") == f"{uid}\n{CWD}\n"
        assert hands.hello["cwd"] == CWD
        hands.call("write", b"x", path="mine")
        assert str(hands.call("stat", path="mine").result["uid"]) == uid


# ---- what is left behind ----------------------------------------------------

@cases.each(["root", "user"])
def left_behind_outlives_its_client(kind):
    """And writes to pipes of an exec that is over."""
    with hands_in(kind) as hands:
        out = sh(hands, "(while :; do echo noise; echo noise >&2; "
                 "echo x >>beat; sleep 0.05; done) & echo $! >pid; sleep 0.2")
        assert "noise\n" in out
    with hands_in(kind) as hands:
        grows(hands, "beat")
        sh(hands, "kill -KILL $(cat pid)")
        within(WAIT_S, lambda: not sh(hands, ZOMBIES), "no zombie")


@cases.case
def running_ends_with_its_client():
    with hands_in("root") as other:
        with hands_in("root") as hands:
            hands.start("exec", command="echo $$ >runs; setsid sh -c "
                        "'echo $$ >>runs; exec sleep 1000' & "
                        "exec sleep 1000")
            within(WAIT_S, lambda: size(other, "runs") and len(
                sh(other, "cat runs").split()) == 2, "two processes")
            pids = sh(other, "cat runs").split()
        within(WAIT_S, lambda: not sh(other, "for p in %s; do test -d "
                                      "/proc/$p && echo $p; done; :" %
                                      " ".join(pids)), "they are gone")


@cases.case
def a_pod_ends_quickly():
    """Whatever runs in it does not want to."""
    with own_pod("quick", "root") as (name, pod):
        with attached(clustered(), name) as hands:
            sh(hands, "(trap '' TERM HUP INT; echo up >up; while :; do "
               "sleep 0.1; done) >/dev/null 2>&1 & while ! test -s up; do "
               "sleep 0.05; done")
        found = cluster().get(f"{pods_path()}/{pod}")
        grace = found["spec"]["terminationGracePeriodSeconds"]
        begun = time.monotonic()
        cluster().delete(f"{pods_path()}/{pod}", max(grace, GRACE_S))
        cluster().until(pods_path(), pod, lambda found: found is None,
                        GRACE_S * 2)
        took = time.monotonic() - begun
        assert took < GRACE_S / 2, f"{took:.0f} s"


# ---- what dies --------------------------------------------------------------

def restarts(found):
    return found["status"]["containerStatuses"][0]["restartCount"]


@cases.case
def a_container_that_is_killed_comes_back_with_its_files():
    with own_pod("killed", "user") as (name, pod):
        with attached(clustered(), name) as hands:
            hands.call("write", b"kept", path="d/file")
            running = hands.start("exec", argv=["sleep", "1000"])
            node("enter", "ctr", "-n", "k8s.io", "tasks", "kill", "-s",
                 "SIGKILL", container(pod))
            try:
                raise AssertionError(running.wait(WAIT_S))
            except HandsError as error:
                assert error.code == "gone", error
        cluster().until(pods_path(), pod, lambda p: is_ready(p) and
                        restarts(p) == 1)
        works_again(clustered(), name)
        with attached(clustered(), name) as hands:
            assert hands.call("read", path="d/file").out == b"kept"
            assert sh(hands, "id -u") == "1000\n"
        # It was no end: a client that comes is served by the same session.
        answer = clustered().ask("session.show", session_id=name)
        assert answer["state"] == "running", answer


@cases.each(["kubelet", "kube-apiserver"])
def a_part_that_dies_during_an_exec(part):
    """The client sees the end, what it ran is killed, what it left is not,
    and another one is served as soon as the part is back."""
    name = session("root")
    with hands_in("root") as hands:
        sh(hands, "rm -f runs left; (echo $$ >left; while :; do echo x >>left"
           "; sleep 0.1; done) >/dev/null 2>&1 & echo $! >pid")
        running = hands.start("exec", command="echo $$ >runs; sleep 1000")
        within(WAIT_S, lambda: size(hands, "runs"), "it runs")
        pid = int(hands.call("read", path="runs").out)
        node("kill", part)
        try:
            raise AssertionError(running.wait(WAIT_S))
        except HandsError as error:
            assert error.code == "gone", error
    works_again(clustered(), name)
    with hands_in("root") as hands:
        within(WAIT_S, lambda: not sh(hands, f"test -d /proc/{pid} && "
                                      "echo there; :"), "its end")
        grows(hands, "left")
        sh(hands, "kill -KILL $(cat pid)")


cases.main()
