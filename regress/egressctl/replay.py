#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Regress of egressctl replay: recorded requests under another policy.

The lines are written here as the recorder writes them; the program never
talks to a daemon.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from case import Cases  # noqa: E402
from daemon import EGRESSCTL  # noqa: E402

SAME, CHANGED, ERROR = 0, 1, 2

CONF = """
decider "person" operator
policy "new" {
	deny host "bad.test"
	allow host "good.test" path "/open/**"
	decide "person" host "ask.test"
	allow tcp host "db.test" port 5432
	narrow "person" host "narrow.test"
	allow host "narrow.test"
}
policy "other" { default allow }
"""

cases = Cases()


def record(kind="request_closed", reason=None, rule=None, session="job-42",
           decider=None, **request):
    return {"seq": 1, "kind": kind, "at": "2026-01-02T03:04:05.678Z",
            "session_id": session,
            "request": {"id": "1-1", "host": "good.test", "port": 443,
                        "scheme": "https", "protocol": "http/1.1",
                        "method": "GET", "path": "/open/x?secret", **request},
            "reason": reason,
            "matched_rule": rule and {"index": rule[0], "kind": rule[1]},
            **({"decider": decider} if decider else {}), "prev": None}


def denied(reason="default_deny", rule=None, **more):
    return record("request_denied", reason, rule, **more)


ALLOW = (2, "allow")


def replay(lines, *words, conf=CONF, policy="new", limit=(), stdin=None):
    with tempfile.TemporaryDirectory(prefix="replay.") as tmp:
        pathlib.Path(tmp, "conf").write_text(conf)
        content = b"".join(
            (one if isinstance(one, bytes) else json.dumps(one).encode())
            + b"\n" for one in lines)
        pathlib.Path(tmp, "log").write_bytes(content)
        done = subprocess.run(
            [*limit, EGRESSCTL, "replay", "-" if stdin else "log", "-f",
             "conf", *(["-p", policy] if policy else []), *words],
            cwd=tmp, capture_output=True, timeout=120,
            input=content if stdin else b"",
            env={**{k: v for k, v in os.environ.items() if "SAN" in k},
                 "LC_ALL": "C.UTF-8"})
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def want(got, status, out, err=""):
    assert got == (status, out, err), got


@cases.case
def nothing_changes():
    want(replay([record(rule=ALLOW), denied("matched_deny_rule", (0, "deny"),
                                            host="bad.test")]), SAME,
         "2 requests, 0 would change\n")
    want(replay([]), SAME, "0 requests, 0 would change\n")


@cases.case
def what_changes():
    want(replay([
        record(rule=ALLOW, path="/shut"), record(rule=ALLOW, host="bad.test"),
        record(rule=ALLOW, path="/shut?other=query"),
        record(rule=ALLOW, method="PUT", path="/shut"),
        record("request_failed", "stream_broken", ALLOW, path="/shut"),
        record(rule=None, path="/shut"),
        denied(), denied("matched_deny_rule", (7, "deny"))]), CHANGED,
        "was allow rule 2 -> now deny default, 3x "
        "GET https://good.test:443/shut\n"
        "was allow rule 2 -> now deny rule 0, 1x "
        "GET https://bad.test:443/open/x\n"
        "was allow rule 2 -> now deny default, 1x "
        "PUT https://good.test:443/shut\n"
        "was allow default -> now deny default, 1x "
        "GET https://good.test:443/shut\n"
        "was deny default -> now allow rule 1, 1x "
        "GET https://good.test:443/open/x\n"
        "was deny rule 7 -> now allow rule 1, 1x "
        "GET https://good.test:443/open/x\n"
        "8 requests, 8 would change\n")


@cases.case
def deciders():
    want(replay([
        record(rule=ALLOW, host="ask.test"), denied(host="ask.test"),
        record(rule=(1, "decide"), host="ask.test"),
        denied("decider_timeout", (1, "decide"), host="ask.test"),
        denied("decider: no", (1, "decide"), host="bad.test"),
        record(rule=(1, "decide")),
        record(rule=(5, "allow"), host="narrow.test",
               decider={"name": "person", "latency_ms": 5})]), CHANGED,
        "was allow rule 2 -> now ask rule 2, 1x "
        "GET https://ask.test:443/open/x\n"
        "was deny default -> now ask rule 2, 1x "
        "GET https://ask.test:443/open/x\n"
        "was deny rule 1 (asked) -> now deny rule 0, 1x "
        "GET https://bad.test:443/open/x\n"
        "was allow rule 1 (asked) -> now allow rule 1, 1x "
        "GET https://good.test:443/open/x\n"
        "7 requests, 4 would change\n")


@cases.case
def connections():
    tcp = {"scheme": "tcp", "protocol": "tcp", "method": None, "path": None}
    want(replay([record(rule=(3, "allow"), host="db.test", port=5432, **tcp),
                 record(rule=(3, "allow"), host="db.test", port=22, **tcp)]),
         CHANGED,
         "was allow rule 3 -> now deny default, 1x - tcp://db.test:22\n"
         "2 requests, 1 would change\n")


@cases.case
def asterisk():
    want(replay([record(rule=ALLOW, method="OPTIONS", path="*",
                        host="narrow.test", decider={"name": "person"})]),
         SAME, "1 request, 0 would change\n")


@cases.case
def not_for_a_policy():
    """What would be refused under any; and what is not final."""
    unread = denied("bad_request")
    for name in ("scheme", "path", "id"):
        del unread["request"][name]
    unread["request"]["method"] = None
    want(replay([denied("name_mismatch"), denied("address_refused"),
                 denied("quota"), unread,
                 record("request_failed", "tls_client_rejected_ca",
                        method=None, path=None),
                 record("request_failed", "client_left"),
                 record("request_opened"), record("request_allowed"),
                 {"seq": 3, "kind": "gap", "prev": None}]), SAME,
         "0 requests, 0 would change, 6 not decided by a policy\n")


@cases.case
def all_of_them():
    want(replay([record(rule=ALLOW), record(rule=ALLOW),
                 record(rule=ALLOW, path="/shut")], "-v"), CHANGED,
         "still allow rule 2 -> allow rule 1, 2x "
         "GET https://good.test:443/open/x\n"
         "was allow rule 2 -> now deny default, 1x "
         "GET https://good.test:443/shut\n"
         "3 requests, 1 would change\n")


@cases.case
def as_json():
    status, out, err = replay([record(rule=ALLOW, path="/shut"), b"x"], "-j")
    assert (status, err) == (ERROR, ""), err
    bad, change, total = [json.loads(line) for line in out.splitlines()]
    assert bad == {"finding": "bad_line", "file": "log", "line": 2,
                   "message": "not a record: no JSON object"}, bad
    assert change == {
        "changed": True, "count": 1,
        "was": {"verdict": "allow", "rule": 2, "asked": False},
        "now": {"verdict": "deny", "rule": None, "asked": False},
        "request": {"scheme": "https", "host": "good.test", "port": 443,
                    "method": "GET", "path": "/shut"}}, change
    assert total == {"requests": 1, "changed": 1, "not_listed": 0,
                     "not_policy": 0, "bad_lines": 1}, total


@cases.case
def one_session():
    lines = [record(rule=ALLOW, path="/shut"),
             record(rule=ALLOW, path="/shut", session="j")]
    status, out, _ = replay(lines, "session", "j")
    assert status == CHANGED and "1 request, 1 would" in out, out


@cases.case
def standard_input():
    want(replay([record(rule=ALLOW), b"{"], stdin=True), ERROR,
         "standard input:2: not a record: no JSON object\n"
         "1 request, 0 would change, 1 bad line\n")


@cases.case
def bad_lines():
    good = record(rule=ALLOW)
    for line, why in (
            (b"", "no JSON object"), (b"[1]", "no JSON object"),
            (b"\xff{}", "no JSON object"), (b"[" * 9000, "no JSON object"),
            (b"{}", "there is no kind"), (b'{"kind":7}', "there is no kind"),
            (record(port=0), "the port is not"),
            (record(port="x"), "the port is not"),
            (record(host="a b"), "the host is no host name"),
            (record(host=None), "the host is no host name"),
            (record(scheme="gopher"), "the scheme is not"),
            (record(path=None), "the request has no path"),
            (record(path="/open", path_truncated=True), "the beginning of"),
            (record(path="/../x"), "the path is not one"),
            (record(path="x"), "the path is not one")):
        status, out, err = replay([good, line, good])
        assert status == ERROR and err == "", (line, err)
        assert out.startswith("log:2: ") and why in out, (line, out)
        assert out.endswith("2 requests, 0 would change, 1 bad line\n"), out


@cases.case
def query_cut_off():
    """What is left of the path is all that rules look at."""
    status, out, _ = replay([record(rule=ALLOW, path_truncated=True)])
    assert "1 request, 0 would change\n" in out, (status, out)


@cases.case
def hostile_text():
    text = "\033[2J\nwas allow"
    status, out, _ = replay([record(rule=(0, text), method=text,
                                    path="/shut", session=text)])
    assert status == CHANGED and len(out.splitlines()) == 2, out
    assert out.isascii() and "\033" not in out, out
    assert "1x \\033[2J\\nwas\\040allow https://" in out, out


@cases.case
def torn_and_too_long():
    for content, why in ((b'{"kind"', "torn"),
                         (b"x" * (300 << 10), "longer than any record")):
        with tempfile.TemporaryDirectory() as tmp:
            pathlib.Path(tmp, "conf").write_text(CONF)
            pathlib.Path(tmp, "log").write_bytes(content)
            done = subprocess.run(
                [EGRESSCTL, "replay", "log", "-f", "conf", "-p", "new"],
                cwd=tmp, capture_output=True, text=True, timeout=60)
        assert done.returncode == ERROR and why in done.stdout, done


@cases.case
def wrong_configuration():
    for options, why in (({"policy": "nwe"}, 'did you mean "new"?'),
                         ({"policy": None}, "name one with -p"),
                         ({"conf": "policy {"}, "conf:1:")):
        status, out, err = replay([], **options)
        assert (status, out) == (ERROR, "") and why in err, (options, err)
    want(replay([record(rule=ALLOW)], policy=None,
                conf='policy "p" { allow host "good.test" }'), SAME,
         "1 request, 0 would change\n")
    assert replay([], "session", "a", "b")[0] == ERROR
    done = subprocess.run([EGRESSCTL, "replay", "/nonexistent", "-f",
                           "/nonexistent"], capture_output=True)
    assert done.returncode == ERROR


@cases.case
def bounded():
    """More distinct changes than the table takes, in little memory."""
    lines = [record(rule=ALLOW, path=f"/shut/{n}/" + "x" * 7000)
             for n in range(4000)]
    limit = [] if os.environ.get("SAN") else ["prlimit", f"--as={64 << 20}"]
    status, out, err = replay(lines, limit=limit)
    assert status == CHANGED and err == "", err
    said = out.splitlines()
    listed = len(said) - 1
    assert 1000 < listed < 4000, listed
    assert said[-1] == (f"4000 requests, 4000 would change, {4000 - listed} "
                        "not listed for lack of room"), said[-1]


if __name__ == "__main__":
    cases.main()
