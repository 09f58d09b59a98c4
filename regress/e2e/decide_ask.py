#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""egressctl ask: a question that an operator makes up."""

import json
import pathlib
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases  # noqa: E402
from daemon import until  # noqa: E402
from gate import GOOD  # noqa: E402
from judge import ALLOW, Judge, judged  # noqa: E402

cases = Cases()

DECIDE = f'decide "judge" host "{GOOD}" cache host'
PLACE = {"scheme": "https", "host": "a.example", "port": 443,
         "method": "GET", "path": "/x"}


def same(have, want, why=""):
    assert have == want, f"{have!r}, expected {want!r} {why}"


@cases.case
def asked():
    """What it is asked, what it says, how long that takes; and no more."""
    with Judge() as judge, judged(DECIDE, judge.conf()) as pair:
        done = pair.gate.ctl("ask", "judge", "GET",
                             f"https://{GOOD}/x?key=s3cret", "-m", "fix it",
                             "-m", "now \x1b[2J")
        same((done.returncode, done.stderr), (0, ""))
        *lines, time = done.stdout.splitlines()
        same(lines, [
            f"question  GET https://{GOOD}:443/x?key=[redacted]",
            "message   fix it", "message   now \\033[2J",
            "decision  allow", "reason    so allow"])
        assert time.startswith("time      "), time
        assert "\x1b" not in done.stdout and "s3cret" not in done.stdout
        asked, = judge.asked(1)
        same([m["content"] for m in asked["recent_messages"]],
             ["fix it", "now \x1b[2J"])
        same(asked["request"], {
            "scheme": "https", "host": GOOD, "port": 443, "method": "GET",
            "path": "/x?key=[redacted]", "path_redacted": 6,
            "body_bytes": 0})
        same(pair.gate.ask("cache.list")["cache"], [])
        # And a request of the sandbox is a question of its own.
        same(pair.get("/x"), 200)
        judge.asked(2)
        said = pair.gate.ask("decider.ask", decider="judge", **PLACE)
        same(said["question"], judge.asked(3)[2])
        same((said["decision"], said["failure"], said["reason"]),
             ("allow", None, "so allow"))


@cases.case
def fails():
    """As often as one likes: the breaker is for requests."""
    with Judge(None) as judge, \
            judged(f"{DECIDE} timeout 20s",
                   judge.conf(options="timeout 200ms")) as pair:
        done = pair.gate.ctl("ask", "judge", "GET", "https://a.example/")
        same(done.stdout.splitlines()[1:3],
             ["failure   decider_timeout",
              "reason    no answer within 200 ms"])
        judge.stop()
        for _ in range(8):
            said = pair.gate.ask("decider.ask", decider="judge", **PLACE)
            assert said["decision"] is None and said["failure"] in (
                "decider_error", "decider_timeout"), said
        judge.start()
        judge.says(ALLOW)
        until("it is there again", lambda: pair.gate.ask(
            "decider.ask", decider="judge", **PLACE)["decision"] == "allow")
        same(pair.get("/x"), 200)


WRONG = {
    "decider": ({"decider": "other"}, "unknown_decider"),
    "person": ({"decider": "person"}, "bad_request"),
    "scheme": ({"scheme": "tcp"}, "bad_request"),
    "port": ({"port": 0}, "bad_request"),
    "host": ({"host": "A.example"}, "bad_request"),
    "method": ({"method": "G T"}, "bad_request"),
    "path": ({"path": "/a/../b"}, "bad_request"),
    "messages": ({"messages": [1]}, "bad_request"),
    "missing": ({"method": None}, "bad_request"),
}


@cases.case
def refused():
    with Judge() as judge, \
            judged(DECIDE, judge.conf() +
                   'decider "person" operator\n') as pair:
        for name, (change, code) in WRONG.items():
            fields = {"decider": "judge", **PLACE, **change}
            said = pair.gate.ask("decider.ask", **{
                k: v for k, v in fields.items() if v is not None})
            same(said.get("error", {}).get("code"), code, name)
        judge.asked(0)
        done = pair.gate.ctl("ask", "judge", "get", "https://a.example/")
        same(done.returncode, 2, done.stderr)
        done = pair.gate.ctl("ask", "judge", "-", "tcp://a.example:1")
        same(done.returncode, 2, done.stderr)


@cases.case
def left():
    """Who asks may go; the gate does not mind."""
    with Judge(None) as judge, judged(DECIDE, judge.conf()) as pair:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(str(pair.gate.socket))
            sock.sendall(json.dumps({
                "id": 1, "op": "decider.ask", "decider": "judge",
                **PLACE}).encode() + b"\n")
            judge.asked(1)
        judge.says(ALLOW)
        said = pair.gate.ask("decider.ask", decider="judge", **PLACE)
        same(said["decision"], "allow")
        until("the daemon answers", lambda: pair.gate.ask("status"))


cases.main()
