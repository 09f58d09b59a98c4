#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""What only a pod can show of box: its first process, what is left behind, and
what becomes of a client when a part of the cluster dies.  By a raw exec; no
egressd is on the way."""

import contextlib
import os
import pathlib
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
import images  # noqa: E402
from case import Cases, Skip  # noqa: E402
from hands import CANCEL, HEADER, HandsError, within  # noqa: E402
from kube import KubeError  # noqa: E402
from pods import CWD, Streamed, cluster, is_ready, manifest, pod  # noqa: E402

cases = Cases()
GRACE_S = 90        # a pod's, before the runtime kills what is left
WAIT_S = 120        # for the cluster to be itself again
ZOMBIES = ("for s in /proc/[0-9]*/stat; do read -r line <$s || continue; "
           "case ${line##*)} in \\ Z*) echo $line;; esac; done 2>/dev/null; :")


@contextlib.contextmanager
def hands_in(name):
    hands = Streamed(cluster(), name)
    try:
        yield hands
    finally:
        hands.close()


def sh(hands, command):
    answer = hands.call("exec", command=command)
    assert answer.result == {"exit_code": 0}, answer
    return answer.out.decode()


def size(hands, path):
    try:
        return hands.call("stat", path=path).result["size"]
    except HandsError:
        return 0


def grows(hands, path):
    old = size(hands, path)
    within(WAIT_S, lambda: size(hands, path) > old, f"more in {path}")


def pods_path():
    return f"/api/v1/namespaces/{cluster().space}/pods"


@contextlib.contextmanager
def own_pod(name, kind, **spec):
    """For one case."""
    kube = cluster()
    what = manifest(name, kind)
    what["spec"].update(spec)
    kube.create(pods_path(), what)
    try:
        kube.until(pods_path(), name, is_ready)
        yield name
    finally:
        kube.delete(f"{pods_path()}/{name}", 0)


def node(*words):
    """Do something to the node, where it is the tests' own."""
    if not os.environ.get("K8S_NODE"):
        raise Skip("the cluster is not the tests' own")
    subprocess.run([TOP / "regress" / "k8s" / "cluster", *words], check=True,
                   stdout=subprocess.DEVNULL)


def works_again(name):
    """A new client, as soon as the cluster lets it."""
    def greeted():
        try:
            with hands_in(name) as hands:
                return bool(hands.call("stat", path="."))
        except (OSError, HandsError, KubeError):
            return time.sleep(0.5)
    within(WAIT_S, greeted, "a connection")


# ---- what runs --------------------------------------------------------------

@cases.case
def an_image_without_a_shell():
    with hands_in(pod("bare")) as hands:
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
    with hands_in(pod(kind)) as hands:
        assert sh(hands, "id -u; pwd") == f"{uid}\n{CWD}\n"
        assert hands.hello["cwd"] == CWD
        hands.call("write", b"x", path="mine")
        assert str(hands.call("stat", path="mine").result["uid"]) == uid


@cases.case
def status_and_nothing_else_tells_the_exit_code():
    """Hands that are sent what is no frame exit 1."""
    hands = Streamed(cluster(), pod("root"))
    hands.send_raw(HEADER.pack(0, 1, CANCEL, b"\1\0\0"))
    hands.wait_closed()
    hands.stream.thread.join(WAIT_S)
    assert hands.stream.code() == 1, hands.stream.status
    assert hands.refusal["code"] == "bad_request", hands.refusal
    hands.close()


# ---- what is left behind ----------------------------------------------------

@cases.each(["root", "user"])
def left_behind_outlives_its_client(kind):
    """And writes to pipes of an exec that is over."""
    with hands_in(pod(kind)) as hands:
        out = sh(hands, "(while :; do echo noise; echo noise >&2; "
                 "echo x >>beat; sleep 0.05; done) & echo $! >pid; sleep 0.2")
        assert "noise\n" in out
    with hands_in(pod(kind)) as hands:
        grows(hands, "beat")
        sh(hands, "kill -KILL $(cat pid)")
        within(WAIT_S, lambda: not sh(hands, ZOMBIES), "no zombie")


@cases.case
def running_ends_with_its_client():
    with hands_in(pod("root")) as other:
        with hands_in(pod("root")) as hands:
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
    kube = cluster()
    with own_pod("quick", "root", terminationGracePeriodSeconds=GRACE_S):
        with hands_in("quick") as hands:
            sh(hands, "(trap '' TERM HUP INT; echo up >up; while :; do "
               "sleep 0.1; done) >/dev/null 2>&1 & while ! test -s up; do "
               "sleep 0.05; done")
        begun = time.monotonic()
        kube.delete(f"{pods_path()}/quick")
        kube.until(pods_path(), "quick", lambda found: found is None,
                   GRACE_S * 2)
        took = time.monotonic() - begun
        assert took < GRACE_S / 2, f"{took:.0f} s"


# ---- what dies --------------------------------------------------------------

def restarts(found):
    return found["status"]["containerStatuses"][0]["restartCount"]


@cases.case
def a_container_that_is_killed_comes_back_with_its_files():
    kube = cluster()
    with own_pod("killed", "user") as name:
        found = kube.get(f"{pods_path()}/{name}")
        container = found["status"]["containerStatuses"][0]["containerID"]
        with hands_in(name) as hands:
            hands.call("write", b"kept", path="d/file")
            running = hands.start("exec", argv=["sleep", "1000"])
            node("enter", "ctr", "-n", "k8s.io", "tasks", "kill", "-s",
                 "SIGKILL", container.removeprefix("containerd://"))
            try:
                raise AssertionError(running.wait(WAIT_S))
            except HandsError as error:
                assert error.code == "gone", error
        kube.until(pods_path(), name, lambda p: is_ready(p) and
                   restarts(p) == 1)
        with hands_in(name) as hands:
            assert hands.call("read", path="d/file").out == b"kept"
            assert sh(hands, "id -u") == "1000\n"


@cases.each(["kubelet", "kube-apiserver"])
def a_part_that_dies_during_an_exec(part):
    """The client sees the end, what it ran is killed, what it left is not,
    and another one is served as soon as the part is back."""
    name = pod("root")
    with hands_in(name) as hands:
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
    works_again(name)
    with hands_in(name) as hands:
        within(WAIT_S, lambda: not sh(hands, f"test -d /proc/{pid} && "
                                      "echo there; :"), "its end")
        grows(hands, "left")
        sh(hands, "kill -KILL $(cat pid)")


cases.main()
