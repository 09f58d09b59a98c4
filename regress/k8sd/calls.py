#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Calls and watches of k8sd against a stand-in API server that is busy, broken
or hostile, and clones by the git of a workspace."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from case import Cases, Skip  # noqa: E402
from driven import BUILD, Driver  # noqa: E402
from standin_kube import Kube, Raw, Refusal, RUNNING  # noqa: E402

cases = Cases()
S = "egressd-s-043a718774"
KEEP, DELETE = 0, 1
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


# ---- calls ----

@cases.case
def retry_after_is_honoured():
    kube = Kube()
    kube.fault(1, Refusal(429, "TooManyRequests", "slow down",
                          {"Retry-After": "1"}), "GET", S)
    with Driver(kube.url) as one:
        one.ready()
    times = [c[4] for c in kube.calls if c[0] == "GET" and c[1].endswith(S)]
    assert times[1] - times[0] >= 1, times


@cases.case
def a_busy_server_makes_pods_once():
    """What a 429 refuses has not begun: also a POST is sent again."""
    kube = Kube()
    kube.fault(2, Refusal(429, "TooManyRequests", "slow down"), "POST",
               "/pods")
    with Driver(kube.url) as one:
        one.ready()
    assert kube.count("POST", "/pods") == 3
    assert kube.names() == [S]


@cases.each([500, 502, 503, 504])
def errors_of_the_server_are_tried_again(code):
    kube = Kube()
    kube.fault(2, Refusal(code, "", "not now"), "GET", S)
    with Driver(kube.url) as one:
        one.ready()
    assert kube.count("GET", S) >= 3


@cases.case
def lost_connections_are_tried_again():
    kube = Kube()
    kube.fault(2, Raw([b""]), "GET", S)
    with Driver(kube.url) as one:
        one.ready()


@cases.case
def a_lost_creation_is_looked_for():
    """The pod may be there; libcurl may ask again by itself."""
    kube = Kube()
    answer = kube.answer

    def lose(method, path, query, body):
        said = answer(method, path, query, body)
        if method == "POST" and path.endswith("/pods"):
            raise Raw([b""])
        return said
    kube.answer = lose
    with Driver(kube.url) as one:
        one.ready()
    assert kube.count("POST", "/pods") <= 2
    assert kube.names() == [S]


@cases.case
def a_creation_that_fails_is_not_repeated():
    kube = Kube()
    kube.fault(9, Refusal(500, "InternalError", "etcd is away"), "POST",
               "/pods")
    with Driver(kube.url) as one:
        assert "etcd is away" in one.fails("cluster_refused")
    assert kube.count("POST", "/pods") == 1


@cases.case
def forbidden_names_verb_and_resource():
    kube = Kube()
    kube.fault(9, Refusal(403, "Forbidden", "pods is forbidden: User x"),
               "POST", "/pods")
    with Driver(kube.url) as one:
        text = one.fails("cluster_refused")
    assert "may not create pods: pods is forbidden: User x" in text, text


@cases.case
def quota_is_told():
    kube = Kube()
    kube.fault(9, Refusal(422, "Invalid", "spec.image: required\x1b[31m"),
               "POST", "/pods")
    with Driver(kube.url) as one:
        text = one.fails("cluster_refused")
    assert text.startswith("Invalid: spec.image: required"), text
    assert "\x1b" not in text


@cases.case
def nobody_is_there():
    with Driver("http://127.0.0.1:1") as one:
        assert one.ask("list")[1]["code"] == "cluster_unreachable"


@cases.case
def what_is_no_json():
    kube = Kube()
    kube.fault(99, Raw([HEAD + b"Content-Length: 9\r\n\r\n[1, 2, 3]"]),
               "GET", S)
    with Driver(kube.url) as one:
        assert "no JSON" in one.fails("cluster_unreachable")


@cases.case
def a_body_without_end():
    def pieces():
        yield HEAD + b"Content-Length: 1000000000\r\n\r\n"
        while True:
            yield b"[" * 65536
    kube = Kube()
    for _ in range(9):
        kube.fault(1, Raw(pieces()), "GET", S)
    with Driver(kube.url) as one:
        assert "too much" in one.fails("cluster_unreachable")


@cases.case
def redirects_are_not_followed():
    other, kube = Kube(), Kube()
    kube.fault(99, Refusal(302, "Found", "there", {
        "Location": other.url + "/api/v1/namespaces/default/pods/" + S}),
        "GET", S)
    with Driver(kube.url) as one:
        one.fails("cluster_refused")
    assert other.calls == []


def start_many(kube, count):
    """The most that was waited for one of them, in seconds; the calls."""
    begin = time.monotonic()
    with Driver(kube.url, heartbeat_ms=0) as one:
        for n in range(count):
            one.send("start", n + 1, session=f"s{n}")
        for _ in range(count):
            assert one.until("ready", "failed")["event"] == "ready"
        return time.monotonic() - begin, len(kube.calls)


@cases.case
def calls_have_a_rate():
    """100 at once, then 50 in a second, whatever sessions want."""
    kube = Kube()
    seconds, calls = start_many(kube, 150)
    assert calls <= 100 + 50 * seconds + 2, (seconds, calls)
    assert kube.count("POST", "/pods") == 150
    assert kube.count("GET", "/pods", watch="1") <= 2


@cases.case
def calls_grow_with_sessions_and_no_faster():
    """A look and a creation each; the rest is the same for any number."""
    _, few = start_many(Kube(), 50)
    _, many = start_many(Kube(), 200)
    assert many - few <= 2 * 150 + 4, (few, many)


@cases.case
def a_lease_is_not_held_up():
    """It is renewed, though hundreds of sessions wait for their turn."""
    kube = Kube()
    count = 500
    with Driver(kube.url, heartbeat_ms=0) as one:
        for n in range(count):
            one.send("start", n + 1, session=f"s{n}")
        for _ in range(count):
            assert one.until("ready", "failed")["event"] == "ready"
    calls = [(method, path) for method, path, _, _, _ in kube.calls]
    renewed = next(n for n, (method, path) in enumerate(calls)
                   if method == "PATCH" and "/leases/" in path)
    left = sum(method == "POST" and path.endswith("/pods")
               for method, path in calls[renewed:])
    assert left > count / 20, left


@cases.case
def paths_have_a_prefix():
    kube = Kube()
    with Driver(kube.url, prefix="/clusters/x") as one:
        assert one.ask("check")[1]["code"] == "cluster_refused"
    assert kube.calls[0][1] == "/clusters/x/version"


@cases.case
def rights_are_checked():
    kube = Kube()
    with Driver(kube.url) as one:
        items, over = one.ask("check")
    assert over["text"] == "v1.20.2-standin", over
    assert [i[0] for i in items if i[2] == "not"] == [
        "list events", *(f"{verb} leases" for verb in (
            "get", "list", "create", "patch", "delete"))]


# ---- watches ----

def watched(kube):
    """A watch is under way."""
    kube.wait(lambda: kube.watches)


@cases.case
def watch_goes_on_after_a_loss():
    kube = Kube()
    with Driver(kube.url) as one:
        one.ready()
        watched(kube)
        kube.cut_watches()
        kube.remove(kube.get(S))
        assert "deleted" in one.until("ended")["text"]


@cases.case
def an_expired_version_is_listed_again():
    kube = Kube()
    with Driver(kube.url) as one:
        one.ready()
        watched(kube)
        lists = kube.count("GET", "/pods", limit="100")
        kube.faults.append(lambda m, p, q: Refusal(
            410, "Expired", "too old") if q.get("watch") and
            kube.count("GET", "/pods", limit="100") == lists else None)
        kube.cut_watches()
        kube.wait(lambda: sum(c[2].get("limit") == "100"
                              for c in kube.calls) > lists)
        kube.status(S, {"phase": "Failed", "reason": "Evicted"})
        assert "Evicted" in one.until("ended")["text"]


@cases.case
def an_error_in_the_stream_is_listed_again():
    kube = Kube()
    with Driver(kube.url) as one:
        one.ready()
        watched(kube)
        with kube.changed:
            kube.objects.clear()
            kube.version += 1
            kube.forget_history()
            kube.changed.notify_all()
        assert "deleted" in one.until("ended")["text"]


HOSTILE = {
    "no_json": [b"4\r\n{{{\n\r\n"],
    "no_version": [b"20\r\n{\"type\":\"ADDED\",\"object\":{}}   \n\r\n"],
    "half": [b"5\r\n{\"typ\r\n"],
    "nothing": [b"0\r\n\r\n"],
    "deep": [b"8001\r\n" + b"[" * 32768 + b"\n\r\n"],
    "line_without_end": [b"100000\r\n" + b"x" * 1048576 + b"\r\n"] * 6,
}


@cases.each(sorted(HOSTILE))
def hostile_watch(kind):
    """The first watches are nonsense; there is a rest and then a good one."""
    kube = Kube()
    head = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    left = [2]

    def spoil(method, path, query):
        if query.get("watch") and left[0] > 0:
            left[0] -= 1
            return Raw([head] + HOSTILE[kind])
        return None
    kube.faults.append(spoil)
    with Driver(kube.url) as one:
        one.ready()
        kube.wait(lambda: left[0] == 0 and kube.watches)
        kube.status(S, {"phase": "Failed", "reason": "Evicted"})
        assert "Evicted" in one.until("ended")["text"]
    times = [c[4] for c in kube.calls if c[2].get("watch")]
    assert len(times) <= 4, times


@cases.case
def no_right_to_watch():
    kube = Kube()
    kube.on_create = kube.stay
    kube.faults.append(lambda m, p, q: Refusal(
        403, "Forbidden", "no") if q.get("watch") else None)
    with Driver(kube.url) as one:
        assert "may not watch pods" in one.fails("cluster_refused")


@cases.case
def nothing_is_polled():
    """A quiet second costs no call but those of a Lease."""
    kube = Kube()
    with Driver(kube.url, heartbeat_ms=0) as one:
        one.ready()
        watched(kube)
        before = len(kube.calls)
        time.sleep(1)
        assert len(kube.calls) - before <= 1, kube.calls[before:]


# ---- workspace git ----

def git(cwd, *words):
    return subprocess.run(
        ["git", "-c", "user.name=x", "-c", "user.email=x@example.com", "-c",
         "init.defaultBranch=main", *words], cwd=cwd, check=True,
        stdout=subprocess.PIPE, text=True).stdout.strip()


def repository(top):
    """With a file, a tag on it, and a later change."""
    path = top / "origin"
    path.mkdir()
    git(path, "init", "-q")
    (path / "file").write_text("first\n")
    git(path, "add", "file")
    git(path, "commit", "-qm", "first")
    git(path, "tag", "v1")
    (path / "file").write_text("second\n")
    git(path, "commit", "-qam", "second")
    return path


class Cloning:
    def __init__(self, **conf):
        if os.getuid() != 0 and not os.access(BUILD, os.R_OK):
            raise Skip("no build")
        self.dir = tempfile.TemporaryDirectory()
        self.top = pathlib.Path(self.dir.name)
        self.work = self.top / "work"
        self.work.mkdir()
        self.origin = repository(self.top)
        self.kube = Kube()
        self.one = Driver(self.kube.url, cwd=str(self.work),
                          box=str(BUILD / "libexec" / "egressd-box"),
                          **{"git": str(self.origin), **conf})

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.one.__exit__(*what)
        self.dir.cleanup()


@cases.case
def clones():
    with Cloning() as on:
        on.one.ready()
        assert (on.work / "file").read_text() == "second\n"
        assert "clones the repository" in on.one.progress()


@cases.case
def clones_a_ref_and_keeps_edits():
    with Cloning(ref="v1") as on:
        on.one.ready()
        assert (on.work / "file").read_text() == "first\n"
        (on.work / "new").write_text("mine\n")
        on.one.stop(how=KEEP)
        on.one.ready()
        assert (on.work / "new").read_text() == "mine\n"
        assert (on.work / "file").read_text() == "first\n"


@cases.case
def a_ref_that_is_new_is_fetched():
    with Cloning() as on:
        on.one.ready()
        on.one.stop(how=KEEP)
        git(on.origin, "tag", "v2")
        on.one.reconfigure(ref="v2")
        on.one.ready()


@cases.case
def a_ref_that_is_none():
    with Cloning(ref="nowhere") as on:
        text = on.one.fails("workspace_source")
        assert "git fetch: exit code" in text and "nowhere" in text, text


@cases.case
def a_repository_that_is_none():
    url = "https://me:secret@127.0.0.1:1/x"
    with Cloning(git=url) as on:
        text = on.one.fails("workspace_source")
        assert "git clone: exit code 128" in text, text
        assert "secret" not in text, text


@cases.case
def a_clone_that_takes_too_long():
    with Cloning(git="ext::sleep 600", git_timeout_ms=1) as on:
        on.one.fails("workspace_source")


@cases.case
def no_connection_to_the_pod():
    kube = Kube()
    with Driver(kube.url, git="/nowhere") as one:
        assert "no exec here" in one.fails("remote_error")


if __name__ == "__main__":
    cases.main()
