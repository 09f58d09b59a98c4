# SPDX-License-Identifier: ISC

"""What sessions in pods cost: time of an operation, of many starts, memory of
k8sd and calls to the API server.

	B=build /usr/bin/python3 regress/bench/pods.py [sessions [more]]

With KUBECONFIG that many (100) are started in its cluster.  More (2000) are
held against regress/lib/standin_kube.py, an API server in Python that makes
every pod run at once and has no node: it shows what k8sd does, and not what a
cluster would.  Printed for people to compare, never asserted."""

import os
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from driven import Driver  # noqa: E402
from procs import status  # noqa: E402
from standin_kube import Kube  # noqa: E402

ROUNDS = 200
MINUTE = 60         # in which each pod has a heartbeat, or nearly so


def row(name, value, goal=""):
    print(f"{name:<44} {value:>12}  {goal}", flush=True)


def kib(pid):
    return int(status(pid)["VmRSS"].split()[0])


# ---- a cluster --------------------------------------------------------------

def timed(function, rounds=ROUNDS):
    """Milliseconds, the median."""
    samples = []
    for _ in range(rounds):
        begin = time.perf_counter()
        function()
        samples.append((time.perf_counter() - begin) * 1000)
    return statistics.median(samples)


def small_reads(d, pods, sandbox):
    """Over one connection each: to the API server, and to a session."""
    import http.client
    kube = pods.cluster()
    pods.run(d, "bench-read", sandbox)
    pods.write(d, "bench-read", b"small")
    conn = http.client.HTTPConnection(kube.host, kube.port)
    conn.sock = kube.connect()

    def api():
        conn.request("GET", f"{pods.pods_path()}/none", headers=kube.headers)
        conn.getresponse().read()
    with pods.attached(d, "bench-read") as hands:
        trip = timed(api)
        read = timed(lambda: hands.call("read", path="file"))
    row("API server's round trip", f"{trip:.2f} ms")
    row("read of a small file, attached", f"{read:.2f} ms",
        f"{read / trip:.1f} x; at most 3")
    d.ask("session.stop", session_id="bench-read", delete=True)


def many_starts(d, pods, count):
    ids = [f"bench-{n}" for n in range(count)]
    pid = d.processes()["k8sd"]
    before = kib(pid)
    begin = time.monotonic()
    process = d.spawn_ctl("session", "start", *(
        word for i in ids for word in ("-n", i)), "bench")
    out, err = process.communicate()
    took = time.monotonic() - begin
    started = len(out.split())
    row(f"{count} sessions in one command", f"{took:.1f} s",
        f"{started} started, {len(err.splitlines())} lines of progress")
    row("memory of k8sd for each",
        f"{(kib(pid) - before) / max(started, 1):.1f} KiB")
    for i in ids:
        d.ask("session.stop", session_id=i)


def real(count):
    import images
    import pods
    with pods.daemon(pods.block("bench", images.name("root"))) as d:
        small_reads(d, pods, "bench")
        many_starts(d, pods, count)


# ---- a stand-in -------------------------------------------------------------

def held(count):
    """That many sessions against the stand-in, each with a heartbeat."""
    kube = Kube()
    with Driver(kube.url, heartbeat_ms=60000) as one:
        one.ready("first", 1)
        before, begin = kib(one.proc.pid), time.monotonic()
        for n in range(count - 1):
            one.send("start", n + 2, session=f"s{n}")
        for _ in range(count - 1):
            assert one.until("ready", "failed")["event"] == "ready"
        took, calls = time.monotonic() - begin, len(kube.calls)
        size = kib(one.proc.pid) - before
        quiet = len(kube.calls)
        time.sleep(MINUTE)
        rate = (len(kube.calls) - quiet) / MINUTE
        one.kill()
    row(f"{count} sessions, stand-in: until ready", f"{took:.1f} s")
    row("  calls for each", f"{calls / count:.2f}")
    row("  memory of k8sd for each", f"{size / count:.1f} KiB")
    row("  calls in a second after that", f"{rate:.1f}",
        f"heartbeats alone are {count / 60:.1f}")


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    more = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    if os.environ.get("KUBECONFIG"):
        real(count)
    for n in (more // 4, more // 2, more):
        if n > 0:
            held(n)


if __name__ == "__main__":
    main()
