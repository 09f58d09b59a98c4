#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Who looks after the pods of a real cluster: heartbeats, reaping, and two
daemons that share it."""

import pathlib
import signal
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
import images  # noqa: E402
from case import Cases  # noqa: E402
from daemon import until  # noqa: E402
from pods import (attached, block, cluster, daemon, found, gone,  # noqa: E402
                  patch, pods_path, read, refused, run, sh, start, write)

cases = Cases()
NOTE = "egressd.io/"
BLOCKS = [block("kept", images.name("root"), "heartbeat off"),
          block("beats", images.name("root"), "heartbeat 1s")]


def notes(name):
    return found(name)["metadata"]["annotations"]


@cases.case
def a_heartbeat_is_seen():
    with daemon(*BLOCKS) as d:
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
    with daemon(*BLOCKS) as d:
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
    with daemon(*BLOCKS) as e:
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
        e.ask("session.stop", session_id="lives")
        e.ask("pods.terminate", session_id="no-heartbeat", sandbox="kept")
    cluster().delete(f"{pods_path()}/{stranger}", 0)


@cases.case
def a_session_has_one_follower():
    """And another one when that has died, with the files as they were."""
    with daemon(*BLOCKS) as d, daemon(*BLOCKS) as e:
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
        e.ask("session.stop", session_id="followed")


cases.main()
