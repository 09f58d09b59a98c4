#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""What deciders say, as clients of the gate meet it: failures, the cache,
chains, people who answer.  The gate is whole; the judge is ours."""

import pathlib
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases  # noqa: E402
from daemon import BUILD, WAIT_S, until  # noqa: E402
from gate import EVIL, GOOD, Pair  # noqa: E402
from judge import ALLOW, DENY, UNSURE, Judge, judged  # noqa: E402

cases = Cases()

DECIDE = f'decide "judge" host "{GOOD}"'
OPERATOR = 'decider "person" operator\n'
SHORT = "timeout 200ms"
# What may come on top of a time that was configured, on a busy machine.
LATE_MS = 2000


def same(have, want, why=""):
    assert have == want, f"{have!r}, expected {want!r} {why}"


class Later:
    """A request whose answer is waited for elsewhere."""

    def __init__(self, ask, *args):
        self.value = None
        self.thread = threading.Thread(target=self.run, args=[ask, *args],
                                       daemon=True)
        self.thread.start()

    def run(self, ask, *args):
        self.value = ask(*args)

    def get(self):
        self.thread.join(WAIT_S)
        assert not self.thread.is_alive(), "no answer"
        return self.value


# ---- failures ---------------------------------------------------------------

def failed(pair, path, reason, least_ms, name="judge"):
    """It is refused, the client is told why, and two records tell it too."""
    refused = pair.ask(Pair.get(pair, path))
    same(refused.status, 403)
    same(refused.get("egress-decision"), f"refuse, {reason}")
    assert f'"reason":"{reason}"'.encode() in refused.body, refused
    final = pair.gate.final(path=path)
    # Two processes tell the recorder, and it hears either first.
    failure, = until("the failure is recorded", lambda: [
        r for r in pair.gate.records() if r["kind"] == "decider_failure" and
        r["request"]["path"] == path])
    for record in (final, failure):
        same((record["reason"], record["decider"]["name"]), (reason, name))
        # Deadlines are kept by the clock of an event loop, which lags.
        assert least_ms - 20 <= record["decider"]["latency_ms"] < \
            least_ms + LATE_MS, record
    same(final["kind"], "request_denied")
    same(final["matched_rule"], {"index": 0, "kind": "decide"})
    assert failure["decider"]["detail"], failure
    assert not pair.arrived(path.encode()), "it arrived"
    return failure


@cases.case
def timeout_by_default():
    """Nothing is configured: five seconds."""
    with Judge(None) as judge, judged(DECIDE, judge.conf()) as pair:
        start = time.monotonic()
        failed(pair, "/slow", "decider_timeout", 5000)
        took = time.monotonic() - start
        print(f"refused after {took:.3f} s without an answer")
        assert 4.98 <= took < 6, took
        judge.asked(1)


@cases.each(["rule", "decider"])
def timeout_configured(where):
    """The rule's is before the decider's."""
    rule, decider = (SHORT, "timeout 1m") if where == "rule" else ("", SHORT)
    with Judge(None) as judge, \
            judged(f"{DECIDE} {rule}", judge.conf(options=decider)) as pair:
        failed(pair, "/slow", "decider_timeout", 200)


@cases.case
def error():
    """Nobody is there; then somebody is, who hangs up on a question."""
    judge = Judge()
    judge.stop()
    with judged(f"{DECIDE} timeout 2s", judge.conf()) as pair:
        failed(pair, "/dead", "decider_error", 0)
        judge.start()

        def hang_up(_):
            judge.stop()
        judge.says(hang_up)
        failed(pair, "/dies", "decider_error", 0)


@cases.case
def error_of_a_program():
    with judged(DECIDE, 'decider "judge" exec '
                        '{ command { "/bin/false" } }') as pair:
        failure = failed(pair, "/x", "decider_error", 0)
        assert "1" in failure["decider"]["detail"], failure


BAD = {
    "text": b"allow", "json_text": b'"allow"', "true": b"true",
    "allow_inside": b'I would {"decision":"allow"} this',
    "no_id": b'{"decision":"allow"}', "empty": b"{}",
    "huge": b'{"decision":"allow","reason":"' + b"x" * 100000 + b'"}',
}
BAD_ANSWERS = {
    "type": {"decision": True}, "list": {"decision": ["allow"]},
    "case": {"decision": "ALLOW"}, "near": {"decision": "allow "},
    "words": {"decision": "deny, no, allow"},
    "more": {**ALLOW, "sure": True}, "none": {"reason": "allow"},
}


@cases.case
def bad_return():
    """Only the answer counts, and nothing that resembles it.  A good one in
    between, as the breaker is not meant here."""
    with Judge() as judge, judged(f"{DECIDE} cache off timeout 2s",
                                  judge.conf()) as pair:
        for name, said in (BAD | BAD_ANSWERS).items():
            judge.says(said)
            failed(pair, f"/{name}", "decider_bad_return", 0)
            judge.says(ALLOW)
            same(pair.get(f"/after-{name}"), 200)


@cases.each([True, False])
def records_why(allow):
    """Whose word it was and why, and whether it was said before."""
    said = ALLOW if allow else DENY
    with Judge(said) as judge, \
            judged(f"{DECIDE} cache host", judge.conf()) as pair:
        for path, cached in (("/one", None), ("/two", True)):
            same(pair.get(path), 200 if allow else 403)
            final = pair.gate.final(path=path)
            records = [final] + [r for r in pair.gate.records()
                                 if r["kind"] == "request_allowed" and
                                 r["request"]["path"] == path]
            same(len(records), 2 if allow else 1)
            for record in records:
                decider = record["decider"]
                same((decider["name"], decider.get("cached")),
                     ("judge", cached))
                same(decider.get("reason"), "so allow" if allow else None)
            same(final["reason"], None if allow else "decider: so deny")
        judge.asked(1)


# ---- the cache --------------------------------------------------------------

@cases.each(["http", "https"])
def kept_for_the_host(scheme):
    """The second request asks nobody, whatever it is."""
    with Judge() as judge, judged('decide "judge"', judge.conf(),
                                  tls=scheme == "https") as pair:
        same([pair.get("/a"), pair.get("/b?c"), pair.post("/d", b"e")],
             [200] * 3)
        judge.asked(1)
        same(pair.get("/a", name=EVIL), 200)
        judge.asked(2)
        record = pair.gate.final(path="/b?c")
        same(record["matched_rule"]["kind"], "decide")
        same(record["decider"]["name"], "judge")


@cases.case
def denial_is_kept():
    with Judge(DENY) as judge, judged(DECIDE, judge.conf()) as pair:
        same(pair.get("/a"), 403)
        judge.says(ALLOW)
        same(pair.get("/b"), 403)
        judge.asked(1)
        same(pair.gate.final(path="/b")["reason"], "decider: so deny")


@cases.case
def failure_is_not_kept():
    with Judge(None) as judge, judged(f"{DECIDE} {SHORT}",
                                      judge.conf()) as pair:
        failed(pair, "/a", "decider_timeout", 200)
        judge.says({"decision": "maybe"})
        failed(pair, "/b", "decider_bad_return", 0)
        judge.says(UNSURE)
        same(pair.get("/c"), 403)
        judge.says(ALLOW)
        same([pair.get("/d"), pair.get("/e")], [200, 200])
        judge.asked(4)


@cases.case
def names_in_other_spellings():
    """They are one name, and have one answer; another port has its own."""
    with Judge() as judge, judged('decide "judge"', judge.conf()) as pair:
        port = pair.origin.port
        for host in (f"{GOOD}:{port}", f"{GOOD}.:{port}",
                     f"{GOOD.upper()}:{port}", f"Api.Good.Test.:{port:05}"):
            with pair.open() as wire:
                wire.send(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
                same(wire.answer().status, 200, host)
        judge.asked(1)
        with pair.open() as wire:
            wire.send(f"GET / HTTP/1.1\r\nHost: {GOOD}:1\r\n\r\n".encode())
            same(wire.answer().status, 502)
        judge.asked(2)


@cases.case
def kept_for_a_time():
    with Judge() as judge, judged(f"{DECIDE} ttl 1s", judge.conf()) as pair:
        same(pair.get("/a"), 200)
        start = time.monotonic()
        until("it is asked again", lambda: pair.get("/b") == 200 and
              len(judge.questions) == 2)
        took = time.monotonic() - start
        assert 0.9 < took < 3, f"after {took} s"


@cases.case
def kept_for_some_uses():
    with Judge() as judge, judged(f"{DECIDE} uses 2", judge.conf()) as pair:
        for count in (1, 1, 1, 2, 2, 2, 3):
            same(pair.get("/"), 200)
            judge.asked(count)


@cases.case
def kept_for_the_request():
    """By method, path with its query, and class of size."""
    with Judge() as judge, judged(f"{DECIDE} cache request",
                                  judge.conf()) as pair:
        count = 0
        for ask in (lambda: pair.get("/a"), lambda: pair.get("/a?b"),
                    lambda: pair.get("/A"), lambda: pair.post("/a", b""),
                    lambda: pair.post("/a", b"x"),
                    lambda: pair.post("/a", b"x" * 1025),
                    lambda: pair.post("/a", b"x" * 65537),
                    lambda: pair.post("/a", b"x" * 1048577)):
            count += 1
            for _ in range(2):
                same(ask(), 200)
                judge.asked(count)
        same(pair.post("/a", b"x" * 1024), 200)     # as the one byte
        same(pair.get("/%61"), 200)                 # as /a
        judge.asked(count)
        same(pair.ask(pair.chunked("/a", b"x")).status, 200)
        same(judge.asked(count + 1)[-1]["request"]["body_bytes"], None)


@cases.case
def reload_clears():
    """With a policy that has changed, and with one that has not."""
    with Judge() as judge, judged(DECIDE, judge.conf()) as pair:
        same(pair.get("/a"), 200)
        judge.says(DENY)
        same(pair.get("/b"), 200)
        judge.asked(1)
        pair.gate.reload(f'{DECIDE}\ndeny host "{EVIL}"')
        same(pair.gate.ask("cache.list")["cache"], [])
        same(pair.get("/c"), 403)
        judge.asked(2)
        pair.gate.reload(f'allow host "{GOOD}" port {pair.origin.port}\n')
        same(pair.get("/d"), 200)
        judge.asked(2)


@cases.case
def shown_and_cleared():
    """egressctl cache show, and clear of a host."""
    with Judge() as judge, judged('decide "judge"', judge.conf()) as pair:
        same(pair.get("/a"), 200)
        same(pair.get("/a", name=EVIL), 200)
        shown = pair.gate.ctl("cache", "show").stdout
        assert GOOD in shown and EVIL in shown, shown
        same(pair.gate.ctl("cache", "clear", "edge", EVIL).returncode, 0)
        shown = pair.gate.ctl("cache", "show").stdout
        assert GOOD in shown and EVIL not in shown, shown
        same(pair.get("/b"), 200)
        judge.asked(2)
        same(pair.get("/b", name=EVIL), 200)
        judge.asked(3)


@cases.case
def asked_once():
    """Ten at the same time for one host are one question."""
    go = threading.Event()
    with Judge(lambda _: go.wait(WAIT_S) and ALLOW) as judge, \
            judged(DECIDE, judge.conf()) as pair:
        held = [Later(pair.get, f"/{i}") for i in range(10)]
        until("all wait", lambda: pair.gate.ask("status")["sessions"][0][
            "pending"] == 10)
        go.set()
        same([h.get() for h in held], [200] * 10)
        judge.asked(1)


# ---- chains, and narrow -----------------------------------------------------

CHAIN = f'decide {{ "first", "second" }} host "{GOOD}" cache off {SHORT}'


def by_path(word):
    """Says what the path has after this word: /first-allow,second-deny."""
    def decide(question):
        for part in question["request"]["path"][1:].split(","):
            who, _, what = part.partition("-")
            if who == word:
                return {"allow": ALLOW, "deny": DENY,
                        "unsure": UNSURE}.get(what)
        return None
    return decide


CHAINED = {
    # path: status, last asked, reason, how many were asked
    "/first-allow": (200, "first", None, 1),
    "/first-deny,second-allow": (403, "first", "decider: so deny", 1),
    "/first-unsure,second-allow": (200, "second", None, 2),
    "/first-unsure,second-deny": (403, "second", "decider: so deny", 2),
    "/first-unsure,second-unsure": (403, "second", "decider: unsure", 2),
    "/first-fails,second-allow": (403, "first", "decider_timeout", 1),
    "/first-unsure,second-fails": (403, "second", "decider_timeout", 2),
}


@cases.case
def chain():
    """The first that knows decides; the last who does not denies; a failure
    is no `unsure'."""
    with Judge(by_path("first")) as first, \
            Judge(by_path("second")) as second, \
            judged(CHAIN, first.conf("first") + second.conf("second")) as pair:
        for path, (status, last, reason, count) in CHAINED.items():
            first.questions.clear()
            second.questions.clear()
            same(pair.get(path), status, path)
            record = pair.gate.final(path=path)
            same((record["decider"]["name"], record["reason"]),
                 (last, reason), path)
            same((len(first.questions), len(second.questions)),
                 (1, count - 1), path)
            same(pair.arrived(path.encode()), status == 200, path)


@cases.case
def narrow():
    """It takes away, and gives nothing: what the rules below deny is not even
    a question."""
    with Judge(by_path("judge")) as judge, Judge(by_path("second")) as second:
        rules = (f'narrow "judge" cache off {SHORT}\n'
                 f'deny host "{GOOD}" path "/judge-allow,no"\n'
                 f'decide "second" host "{GOOD}" path "/*,second-*" '
                 f'cache off {SHORT}\n')
        with judged(rules, judge.conf() + second.conf("second")) as pair:
            pair.gate.reload(rules + f'allow host "{GOOD}" '
                             f'port {pair.origin.port}')
            for path, status, asked, both in (
                    ("/judge-allow", 200, 1, 0),
                    ("/judge-deny", 403, 1, 0),
                    ("/judge-unsure", 403, 1, 0),
                    ("/judge-fails", 403, 1, 0),
                    ("/judge-allow,no", 403, 0, 0),
                    ("/judge-allow,second-allow", 200, 1, 1),
                    ("/judge-allow,second-deny", 403, 1, 1),
                    ("/judge-deny,second-allow", 403, 1, 0)):
                judge.questions.clear()
                second.questions.clear()
                same(pair.get(path), status, path)
                same((len(judge.questions), len(second.questions)),
                     (asked, both), path)
            judge.questions.clear()
            same(pair.get("/judge-allow", name=EVIL), 403)
            judge.asked(0)
            same(pair.gate.final(path="/judge-allow", host=EVIL)["reason"],
                 "default_deny")


@cases.case
def denials_pause():
    """An agent that tries one wording after the other is not heard, and what
    needs no decider goes on."""
    with Judge(DENY) as judge:
        rules = f"{DECIDE} cache off\npause after 3 denials in 2s\n"
        with judged(rules, judge.conf()) as pair:
            pair.gate.reload(f'{rules}allow host "{EVIL}" '
                             f'port {pair.origin.port}')
            same([pair.get(f"/{i}") for i in range(3)], [403] * 3)
            judge.says(ALLOW)
            same(pair.get("/paused"), 403)
            same(pair.gate.final(path="/paused")["reason"], "decider: paused")
            judge.asked(3)
            same(pair.get("/static", name=EVIL), 200)
            assert pair.gate.ask("status")["sessions"][0]["paused"]
            until("it is heard again", lambda: pair.get("/again") == 200)


# ---- what it is told --------------------------------------------------------

@cases.case
def context():
    """Messages, oldest first and as many as the rule says; metadata of the
    session, and over it the rule's."""
    rules = f'{DECIDE} cache off messages 2 metadata {{ tenant "acme" }}'
    with Judge() as judge, judged(rules, judge.conf(), tls=True) as pair:
        gate = pair.gate
        for i in range(4):
            same(gate.ctl("message", "edge", "user", f"say {i}").returncode, 0)
        same(gate.ctl("metadata", "edge", "tenant=evil", "task=7").returncode,
             0)
        same(pair.post("/p?q", b"four"), 200)
        asked, = judge.asked(1)
        same([m["content"] for m in asked["recent_messages"]],
             ["say 2", "say 3"])
        same(asked["metadata"], {"tenant": "acme", "task": "7"})
        same(asked["request"], {
            "scheme": "https", "host": GOOD, "port": pair.origin.port,
            "method": "POST", "path": "/p?q", "body_bytes": 4})
        same(asked["session_id"], "edge")


# ---- people -----------------------------------------------------------------

def wait_pending(gate, count):
    """The questions to people, when there are so many."""
    listed = []

    def there():
        listed[:] = gate.ask("pending.list")["pending"]
        return len(listed) == count
    until(f"{count} pending", there)
    return listed


PERSON = f'decide "person" host "{GOOD}"'


@cases.case
def shown_at_once():
    """`egressctl pending' shows it within 100 ms of the request."""
    with judged(f"{PERSON} cache off", OPERATOR) as pair:
        times = []
        for i in range(5):
            with pair.open() as wire:
                start = time.monotonic()
                wire.send(Pair.get(pair, f"/held/{i}"))
                shown = until("it is shown", lambda: next(
                    (line for line in pair.gate.ctl(
                        "pending").stdout.splitlines()
                     if f"/held/{i}" in line), None))
                times.append(time.monotonic() - start)
                same(pair.gate.ctl("answer", shown.split()[0],
                                   "allow").returncode, 0)
                same(wire.answer().status, 200)
        print("shown after", ", ".join(f"{t * 1e3:.0f}" for t in times), "ms")
        assert min(times) < 0.1, times


@cases.each(["allow", "deny"])
def answered(word):
    with judged(PERSON, OPERATOR) as pair:
        gate = pair.gate
        first, second = (Later(pair.ask, Pair.get(pair, f"/{i}"))
                         for i in (1, 2))
        one, two = wait_pending(gate, 2)
        same(gate.ctl("answer", one["id"], word, "as I say").returncode, 0)
        path = one["request"]["path"]
        done = first if path == "/1" else second
        got = done.get()
        same(got.status, 200 if word == "allow" else 403)
        assert word == "allow" or b"as I say" in got.body, got
        same(gate.final(path=path)["decider"]["name"], "person")
        # One answer is for one request, unless it is to be remembered.
        same([p["id"] for p in wait_pending(gate, 1)], [two["id"]])
        same(gate.ctl("answer", "-c", two["id"], word).returncode, 0)
        same((first.get().status, second.get().status), (got.status,) * 2)
        same(pair.get("/3"), got.status)
        wait_pending(gate, 0)


@cases.case
def remembered_releases_others():
    with judged(PERSON, OPERATOR) as pair:
        held = [Later(pair.get, f"/{i}") for i in range(3)]
        questions = wait_pending(pair.gate, 3)
        same(pair.gate.ctl("answer", "-c", questions[1]["id"],
                           "allow").returncode, 0)
        same([h.get() for h in held], [200] * 3)


@cases.case
def nobody_answers():
    with judged(f"{PERSON} {SHORT}", OPERATOR) as pair:
        failed(pair, "/held", "decider_timeout", 200, "person")
        wait_pending(pair.gate, 0)


# ---- one request is one question --------------------------------------------

@cases.case
def client_leaves():
    """Nobody is to answer for a request that is not there any more.  With
    HTTP/1 the gate sees so when it writes; with HTTP/2, at once."""
    with judged(PERSON, OPERATOR, tls=True) as pair:
        curl = subprocess.Popen(
            ["curl", "-sS", "--http2", "--cacert", str(pair.gate.ca),
             "--connect-to", f"::127.0.0.1:{pair.gate.port(15001)}",
             f"https://{pair.host()}/gone"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_pending(pair.gate, 1)
        finally:
            curl.kill()
            curl.wait()
        wait_pending(pair.gate, 0)


@cases.case
def reload_meanwhile():
    with judged(PERSON, OPERATOR) as pair:
        held = Later(pair.get, "/held")
        for _ in range(3):
            wait_pending(pair.gate, 1)
            pair.gate.reload(PERSON)

        def answered():
            """The engine asks again when it has heard of the reload."""
            question, = wait_pending(pair.gate, 1)
            return not pair.gate.ctl("answer", question["id"],
                                     "allow").returncode
        until("it is answered", answered)
        same(held.get(), 200)


@cases.case
def kept_connection_of_another_rule():
    """There is a connection to the origin that could serve, were it not made
    under another rule."""
    with Judge() as judge, judged(
            f'decide "judge" host "{GOOD}" path "/a" cache off\n'
            f'decide "judge" host "{GOOD}" path "/b" cache off',
            judge.conf()) as pair:
        for count, path in enumerate(("/a", "/b", "/a", "/b"), 1):
            same(pair.get(path), 200)
            judge.asked(count)


@cases.case
def kept_connection_ends():
    """There was one that could have served while a person thought."""
    with judged(f"{PERSON} cache off", OPERATOR) as pair:
        for path in ("/1", "/2"):
            held = Later(pair.get, path)
            question, = wait_pending(pair.gate, 1)
            for connection in pair.origin.connections:
                connection.reset()
            same(pair.gate.ctl("answer", question["id"],
                               "allow").returncode, 0)
            same(held.get(), 200)
            wait_pending(pair.gate, 0)


@cases.case
def watched():
    """egressctl watch: one line allows, the next denies and remembers."""
    with judged(PERSON, OPERATOR) as pair:
        watch = subprocess.Popen(
            [str(BUILD / "egressctl"), "-s", str(pair.gate.socket), "watch"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            for path, key, status in (("/1", "a", 200), ("/2", "D", 403)):
                held = Later(pair.get, path)
                line = next(text for text in watch.stdout if path in text)
                assert GOOD in line, line
                watch.stdin.write(f"{key}\n")
                watch.stdin.flush()
                same(held.get(), status)
            same(pair.get("/3"), 403)
        finally:
            watch.stdin.close()
            watch.wait(WAIT_S)
            watch.stdout.close()
        same(watch.returncode, 0)


if __name__ == "__main__":
    cases.main()
