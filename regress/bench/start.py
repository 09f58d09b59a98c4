# SPDX-License-Identifier: ISC

"""How long egressd takes to start, what it weighs, how fast it answers.

	B=build python3 regress/bench/start.py [daemons]

Printed for people to compare, never asserted: start to ready should stay
under 300 ms, all idle processes together under 30 MiB of PSS.
"""

import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from daemon import BUILD, POLICY, Daemon  # noqa: E402

STATUS_ROUNDS = 1000
RELOAD_ROUNDS = 20


def pss_kib(pid):
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return next(int(line.split()[1]) for line in text.splitlines()
                if line.startswith("Pss:"))


def timed(function):
    start = time.perf_counter()
    function()
    return (time.perf_counter() - start) * 1000


def rounds(daemon, op, count):
    """Milliseconds of each question on one connection."""
    with daemon.client() as client:
        client.ask("status")

        def ask():
            answer = client.ask(op)
            assert "ok" in answer, answer
        return [timed(ask) for _ in range(count)]


def weigh(daemon):
    """PSS by role, as (processes, KiB)."""
    weights = {}
    for process in daemon.ask("status")["processes"]:
        count, kib = weights.get(process["role"], (0, 0))
        weights[process["role"]] = count + 1, kib + pss_kib(process["pid"])
    return weights


def row(name, samples, unit="ms"):
    print(f"{name:<18} {min(samples):>9.2f} {statistics.median(samples):>9.2f}"
          f" {max(samples):>9.2f}  {unit}")


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    starts, stops, status, reload, weights = [], [], [], [], []
    for _ in range(count):
        daemon = Daemon(POLICY)
        try:
            starts.append(timed(daemon.start))
            daemon.settle()
            weights.append(weigh(daemon))
            status += rounds(daemon, "status", STATUS_ROUNDS // count)
            reload += rounds(daemon, "reload", max(1, RELOAD_ROUNDS // count))
            stops.append(timed(daemon.stop))
        finally:
            daemon.end()
    print(f"{BUILD / 'egressd'}, {count} daemons with two sessions each\n")
    print(f"{'':<18} {'min':>9} {'median':>9} {'max':>9}")
    row("start to ready", starts)
    row("status", status)
    row("reload", reload)
    row("stop", stops)
    print()
    for role, (processes, _) in weights[0].items():
        name = role if processes == 1 else f"{role} x {processes}"
        row(name, [w[role][1] / 1024 for w in weights], "MiB PSS")
    row("all", [sum(kib for _, kib in w.values()) / 1024 for w in weights],
        "MiB PSS")


main()
