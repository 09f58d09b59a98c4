#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Deciders under load: a thousand requests that wait for a person, judges that
die, hang and come back.  What needs no decider does not feel it."""

import contextlib
import os
import pathlib
import resource
import statistics
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases  # noqa: E402
from daemon import WAIT_S, alive, until  # noqa: E402
from gate import EVIL, GOOD, Broken, Pair  # noqa: E402
from judge import ALLOW, DENY, Judge, directory, judged  # noqa: E402

cases = Cases()

HELD = 1000
SAMPLES = 1000
# For every request, as the verdict is not one about the host.
STATIC = f'allow host "{EVIL}" port 1-65535 path "/static/**"\n'


def same(have, want, why=""):
    assert have == want, f"{have!r}, expected {want!r} {why}"


def raise_limit(count):
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(count, hard), hard))


class Static:
    """Requests one after the other that only rules decide."""

    def __init__(self, pair):
        self.pair, self.wire = pair, pair.open(EVIL)
        self.request = Pair.get(pair, "/static/x", name=EVIL)
        self.times, self.bad = [], []
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def once(self):
        start = time.monotonic()
        answer = self.wire.ask(self.request)
        self.times.append(time.monotonic() - start)
        if answer.status != 200:
            self.bad.append(answer)

    def run(self):
        while not self.stop.is_set():
            self.once()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join(WAIT_S)
        self.wire.close()

    def figures(self, what):
        """Of what was measured since the last figures, in ms."""
        times, self.times = sorted(self.times), []
        median, p99 = (statistics.median(times) * 1e3,
                       times[len(times) * 99 // 100] * 1e3)
        print(f"{what}: {len(times)} static requests, median {median:.2f} "
              f"ms, p99 {p99:.2f} ms", flush=True)
        assert not self.bad, self.bad[0]
        return p99


# The engine of a session has 2048 requests open at most.
HOLDERS = 4


def hold(pair, count):
    """So many requests that wait, in equal parts of all sessions; by path."""
    wires = {}
    for i in range(count):
        wire = pair.gate.plain(port=pair.gate.port(15001 + i % HOLDERS))
        wire.send(Pair.get(pair, f"/held/{i}"))
        wires[f"/held/{i}"] = wire
    until("all wait", lambda: sum(
        s["pending"] for s in pair.gate.ask("status")["sessions"]) == count)
    return wires


@cases.case
def held():
    raise_limit(4 * HELD)
    conf = ('decider "person" operator { timeout 5m }\n'
            f"limit pending {8 * HELD}\n" + "".join(
                f'session "s{i}" {{ listen on 127.0.0.1 port {15001 + i}\n'
                f'policy "p" }}\n' for i in range(1, HOLDERS)))
    with judged(f'{STATIC}decide "person" host "{GOOD}" cache off',
                conf) as pair:
        static = Static(pair)
        for _ in range(SAMPLES):
            static.once()
        before = static.figures("nobody waits")
        wires = hold(pair, HELD)
        for _ in range(SAMPLES):
            static.once()
        after = static.figures(f"{HELD} requests wait")
        assert after < 5 * before + 50, (before, after)
        start = time.monotonic()
        first = pair.gate.ask("pending.list")["pending"]
        print(f"pending.list: {len(first)} of them in "
              f"{(time.monotonic() - start) * 1e3:.1f} ms")
        for question, word in zip(first[:2], ("allow", "deny")):
            same(pair.gate.ask("pending.answer", pending=question["id"],
                               decision=word).get("ok"), True)
            same(wires[question["request"]["path"]].answer().status,
                 200 if word == "allow" else 403)
        for wire in [*wires.values(), static.wire]:
            wire.close()


def breaker(pair):
    return pair.gate.ask("status")["deciders"][0]["breaker"]


def failures(pair):
    return [r for r in pair.gate.records() if r["kind"] == "decider_failure"]


@cases.case
def dies_hangs_returns():
    """The breaker opens, what is asked meanwhile is refused at once, and it
    closes when there are answers again; each time the records tell."""
    rules = (f'{STATIC}decide "judge" host "{GOOD}" cache off '
             "timeout 300ms")
    with Judge() as judge, judged(rules, judge.conf()) as pair, \
            Static(pair) as static:

        def decided():
            return pair.get("/decided")

        def down(why):
            until(f"{why}: it opens", lambda: decided() == 403 and
                  breaker(pair) != "closed")
            start = time.monotonic()
            same(decided(), 403)
            took = time.monotonic() - start
            until(f"{why}: refused at once", lambda: decided() == 403 and
                  failures(pair)[-1]["decider"]["detail"] == "breaker open")
            return took

        def up(why):
            until(f"{why}: it closes", lambda: decided() == 200 and
                  breaker(pair) == "closed")

        for _ in range(20):
            same(decided(), 200)
        static.figures("it answers")
        judge.stop()
        took = down("it is dead")
        print(f"with an open breaker refused after {took * 1e3:.1f} ms")
        static.figures("it is dead")
        same({r["reason"] for r in failures(pair)}, {"decider_error"})
        judge.start()
        up("it is back")
        judge.says(None)
        down("it hangs")
        static.figures("it hangs")
        assert "decider_timeout" in {r["reason"] for r in failures(pair)}
        judge.says(ALLOW)
        up("it answers again")
        p99 = static.figures("it answers again")
        assert p99 < 500, p99
        assert "decider judge: it answers again" in pair.gate.log()


PROGRAM = """#!/usr/bin/python3
import json, os, sys, time
with open("{log}", "a") as log:
    log.write(f"{{os.getpid()}}\\n")
for line in sys.stdin:
    asked = json.loads(line)
    path = asked["question"]["request"]["path"]
    if path.startswith("/die"):
        os._exit(3)
    if path.startswith("/hang"):
        continue
    print(json.dumps({{"id": asked["id"], "decision": "allow"}}), flush=True)
"""


@cases.case
def program_is_started_again():
    """One that has died, and one that lets three questions in a row go
    unanswered, which is killed."""
    folder = directory()
    folder.chmod(0o777)
    log, path = folder / "pids", folder / "decider"
    path.write_text(PROGRAM.format(log=log))
    path.chmod(0o755)
    conf = (f'decider "judge" exec {{ command {{ "{path}" }} persistent\n'
            'timeout 2s }\n')
    rules = (f'decide "judge" host "{GOOD}" path "/hang*" cache off '
             f'timeout 100ms\ndecide "judge" host "{GOOD}" cache off')

    def pids():
        return [int(line) for line in log.read_text().split()]

    with judged(rules, conf) as pair:
        same(pair.get("/1"), 200)
        first, = pids()
        same(pair.get("/die"), 403)
        same(pair.gate.final(path="/die")["reason"], "decider_error")
        until("it comes back", lambda: pair.get("/2") == 200)
        same(len(pids()), 2)
        for i in range(3):
            same(pair.get(f"/hang{i}"), 403)
            same(pair.gate.final(path=f"/hang{i}")["reason"],
                 "decider_timeout")
        until("it is killed", lambda: not alive(pids()[1]))
        until("there is another", lambda: pair.get("/3") == 200)
        same(len(pids()), 3)


@cases.case
def deciderd_dies():
    """The process that asks is killed with a question under way: it is
    refused, or there is no daemon any more; never is it allowed."""
    with Judge(None) as judge, judged(f'decide "judge" host "{GOOD}"',
                                      judge.conf()) as pair:
        with pair.open() as wire:
            wire.send(Pair.get(pair, "/held"))
            until("it is asked", lambda: judge.questions)
            os.kill(pair.gate.processes()["deciderd"], 9)
            with contextlib.suppress(Broken):
                same(wire.answer().status, 403)
        assert not pair.arrived(b"/held")


def flood(pair, names, threads):
    """Requests for all these names, so many at a time."""
    todo, statuses = list(names), []

    def run():
        with contextlib.suppress(IndexError):
            while True:
                statuses.append(pair.get("/flood", name=todo.pop()))

    workers = [threading.Thread(target=run, daemon=True)
               for _ in range(threads)]
    for worker in workers:
        worker.start()
    return workers, statuses


@cases.case
def flood_of_names():
    """One session asks about ever new names.  It has its share of the table
    and no more; another session's questions to the same judge are answered
    in their turn, and answers that are kept are bounded."""
    delay = 0.02

    def decide(question):
        time.sleep(delay)
        return ALLOW if question["session_id"] == "other" else DENY

    conf = ('limit pending 128\n'
            'session "other" { listen on 127.0.0.1 port 15002\npolicy "p" }\n')
    with Judge(decide) as judge, \
            judged(f'{STATIC}decide "judge" timeout 2s',
                   judge.conf() + conf) as pair, Static(pair) as static:
        workers, statuses = flood(
            pair, (f"n{i}.flood.test" for i in range(4000)), 96)
        port, times, most = pair.gate.port(15002), [], 0
        while any(w.is_alive() for w in workers):
            start = time.monotonic()
            with pair.gate.plain(port=port) as wire:
                got = wire.ask(Pair.get(pair, f"/{len(times)}"))
            times.append(time.monotonic() - start)
            same(got.status, 200, f"in the other session: {got}")
            pair.gate.ask("cache.clear", session_id="other")
            most = max(most, *(s["pending"] for s in
                               pair.gate.ask("status")["sessions"]))
        p99 = static.figures("flood")
        times.sort()
        print(f"flood: {len(statuses)} names, at most {most} wait; the other "
              f"session's {len(times)} questions took at most "
              f"{times[-1] * 1e3:.0f} ms, median "
              f"{times[len(times) // 2] * 1e3:.0f} ms, the judge "
              f"{delay * 1e3:.0f} ms")
        same(set(statuses), {403})
        assert most <= 128 // 4, most
        assert times[len(times) // 2] < 10 * delay and times[-1] < 1, times
        assert p99 < 500, p99
        kept = pair.gate.ask("cache.list", session_id="edge")
        assert len(kept["cache"]) + kept.get("more", 0) <= 1024
        details = {r["decider"]["detail"] for r in failures(pair)}
        same(details, {"too many questions"})


if __name__ == "__main__":
    cases.main()
