#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Ids of sessions: 1 to 255 printable characters, which nothing that carries
one may mistake for a path, an option, a format, a quote or the end of a
line."""

import atexit
import os
import pathlib
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "lib"), str(HERE.parent / "egressctl")]
from case import Cases  # noqa: E402
from daemon import EGRESSCTL, Client, Daemon, until  # noqa: E402
from mcplib import Client as Agent, same, values  # noqa: E402

cases = Cases()
USER = 'user "nobody"' if os.geteuid() == 0 else ""
LONGEST = "".join(chr(c) for c in range(0x21, 0x7f) if chr(c) != "-")
LONGEST = (LONGEST * 3)[:254] + "\\"
IDS = {
    "dots": "a.b",
    "case": "A.B",
    "slashes": "team/x:1",
    "parent": "../../etc/passwd",
    "dot": ".",
    "format": "%s%n%%d",
    "shell": "$(id) `id` ; 'a' \"b\" & | > <",
    "spaces": "a  b",
    "json": '"}],"x":{\\u0000\\',
    "longest": LONGEST,
    "quotes": '"' * 255,
}
top = pathlib.Path(tempfile.mkdtemp(prefix="egressd-ids."))
atexit.register(shutil.rmtree, top, ignore_errors=True)
daemon = Daemon(f"""
	policy "none" {{ }}
	default sandbox "virtual"
	sandbox "virtual" virtual {{ policy "none" {USER} size 64M }}
""")
atexit.register(daemon.end)
daemon.start()
daemon.settle()


def listed():
    return {s["session_id"] for s in daemon.ask("session.list")["sessions"]}


def ctl(*words):
    done = daemon.ctl(*words)
    same((done.returncode, done.stderr), (0, ""))
    return done.stdout


def records(name):
    return [r for r in daemon.records() if r["session_id"] == name]


CURL = "curl -sS --max-time 20 https://evil.example/x"


@cases.each(sorted(IDS))
def is_what_it_is(which):
    """From egressctl to the record, and nobody else's."""
    name = IDS[which]
    same(ctl("session", "start", "-n", name), f"{name}\n")
    assert name in listed()
    assert daemon.ask("session.start", session_id=name)["existed"]
    same(ctl("exec", name, "--", "printenv", "EGRESSD_SESSION"), f"{name}\n")
    answer = ctl("exec", name, "--", "sh", "-c", CURL)
    assert "default_deny" in answer, answer
    same(daemon.ask("session.refusals", session_id=name)["total"], 1)
    (top / "from").write_text("copied")
    ctl("cp", "-n", name, f"{top}/from", ":to")
    ctl("cp", "-n", name, ":to", f"{top}/back")
    same((top / "back").read_text(), "copied")
    agent = Agent([EGRESSCTL, "-s", str(daemon.socket), "mcp", name],
                  "2025-11-25")
    same(values(agent.call("read", path="to"))["content"], "copied")
    same(agent.end(), 0)
    same(ctl("session", "stop", name), name.replace("\\", "\\\\") + " stopped\n")
    until("its end is recorded", lambda: "session_ended" in
          [r["kind"] for r in records(name)])
    same([r["request"]["host"] for r in records(name)
          if r["kind"] == "request_denied"], ["evil.example"])
    daemon.verified()


@cases.case
def by_case_and_by_tail():
    """Ids that differ somewhere are two sessions."""
    names = ["a.b", "A.B", "a.b.", "x" * 254, "x" * 255]
    with Client(daemon.socket) as client:
        for name in names:
            answer = client.ask("session.start", session_id=name)
            assert answer.get("ok") and "existed" not in answer, answer
        assert listed() >= set(names)
        for name in names:
            same(client.ask("session.stop", session_id=name)["reason"],
                 "by_request")
    assert not listed() & set(names)


REFUSED = {
    "empty": ("", "session ids have 1 to 255 bytes"),
    "256": ("x" * 256, "session ids have 1 to 255 bytes"),
    "newline": ("a\nb", "byte 2 is 0x0a"),
    "escape": ("abc\x1b", "byte 4 is 0x1b"),
    "delete": ("\x7f", "byte 1 is 0x7f"),
    "letter": ("aä", "byte 2 is 0xc3"),
    "space": (" a", "session ids do not begin or end with a space"),
    "last": ("a ", "session ids do not begin or end with a space"),
    "option": ("-n", "session ids do not begin with -"),
}


@cases.each(sorted(REFUSED))
def refused(which):
    name, why = REFUSED[which]
    with Client(daemon.socket) as client:
        error = client.ask("session.start", session_id=name)["error"]
        same(error["code"], "bad_session")
        assert error["message"].startswith("session_id: "), error
        assert error["message"].endswith(why), error
        for op in ("session.show", "session.stop", "session.attach"):
            error = client.ask(op, session_id=name)["error"]
            same(error["code"], "bad_request")
        done = daemon.ctl("run", "-n", name, "--", "true")
        same(done.returncode, 125)
        assert why in done.stderr, done.stderr
    assert name not in listed()


cases.main()
