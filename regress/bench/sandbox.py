# SPDX-License-Identifier: ISC

"""What sandboxes of a daemon cost: time of operations, of a start, memory.

	B=build /usr/bin/python3 regress/bench/sandbox.py [sandboxes]

Printed for people to compare, never asserted.  The goals are written behind."""

import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from backends import Attached  # noqa: E402
from daemon import EGRESSCTL, Daemon  # noqa: E402
from hands import CALL, RESULT, Hands, frame  # noqa: E402
from procs import status, title  # noqa: E402

MIB = 1 << 20
BIG = 64 * MIB
ROOT = os.geteuid() == 0
USER = 'user "nobody"' if ROOT else ""


class Wire(Attached):
    """Without the thread that reads for tests: one request, its answer."""

    def __init__(self, daemon, name):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(daemon.socket))
        self.attach(name)
        Hands.__init__(self, self.sock.fileno(), self.sock.fileno(), raw=True)
        self.all = self.frames()
        next(self.all)      # hello

    def ask(self, number, **call):
        """Until its RESULT; what DATA came."""
        self.send_raw(frame(number, CALL, call))
        data = b""
        for have in self.all:
            if have.kind == RESULT:
                return data
            data += have.body
        raise SystemExit("the connection has ended")


def timed(function, *args):
    start = time.perf_counter()
    function(*args)
    return (time.perf_counter() - start) * 1000


def row(name, samples, goal, unit="ms"):
    print(f"{name:<30} {min(samples):>9.2f} {statistics.median(samples):>9.2f}"
          f" {max(samples):>9.2f}  {unit:<4} {goal}", flush=True)


def start(daemon, name, sandbox):
    answer = daemon.ask("session.start", session_id=name, sandbox=sandbox)
    assert answer.get("ok"), answer


def stop(daemon, name):
    answer = daemon.ask("session.stop", session_id=name)
    assert answer.get("ok"), answer


def execs(daemon, sandbox):
    start(daemon, "execs", sandbox)
    wire = Wire(daemon, "execs")
    samples = [timed(lambda n=n: wire.ask(n, op="exec", argv=["/bin/true"]))
               for n in range(1, 301)]
    row(f"exec /bin/true, {sandbox}", samples, "p50 under 3")
    wire.sock.close()
    stop(daemon, "execs")


def reads(daemon, sandbox):
    """Asked in a row, and each after the answer to the one before."""
    start(daemon, "reads", sandbox)
    wire = Wire(daemon, "reads")
    wire.ask(1, op="exec", command="echo text > small")

    def thousand(base):
        for n in range(1000):
            assert wire.ask(base + n, op="read", path="small") == b"text\n"
    row(f"1,000 small reads, {sandbox}",
        [timed(thousand, 10000 * n) for n in range(1, 6)], "under 100")
    wire.sock.close()
    stop(daemon, "reads")


def writes(daemon, sandbox, top):
    """Against cat(1), which has the file in memory, too."""
    big = daemon.dir / "big"
    big.write_bytes(os.urandom(MIB) * (BIG // MIB))

    def cat():
        subprocess.run(["sh", "-c", 'cat "$1" > "$2"', "sh", str(big),
                        str(top / "copied")], check=True)
        (top / "copied").unlink()

    def write():
        with open(big, "rb") as file:
            subprocess.run([str(EGRESSCTL), "-s", str(daemon.socket), "write",
                            "writes", "written"], stdin=file, check=True)
    start(daemon, "writes", sandbox)
    cats = [timed(cat) for _ in range(5)]
    row("64 MiB by cat", cats, "")
    have = [timed(write) for _ in range(5)]
    times = statistics.median(have) / statistics.median(cats)
    row(f"64 MiB by egressctl, {sandbox}", have,
        f"within 3 times: {times:.1f}")
    stop(daemon, "writes")


def starts(daemon, sandbox):
    def first():
        start(daemon, "first", sandbox)
        wire = Wire(daemon, "first")
        wire.ask(1, op="exec", argv=["/bin/true"])
        wire.sock.close()
    samples = []
    for _ in range(20):
        samples.append(timed(first))
        stop(daemon, "first")
    row(f"start to first exec, {sandbox}", samples, "p50 under 120")


def pss_kib(pid):
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return next(int(line.split()[1]) for line in text.splitlines()
                if line.startswith("Pss:"))


def below(parent):
    kids = {}
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        have = status(path.name)
        if have:
            kids.setdefault(int(have["PPid"]), []).append(int(path.name))
    found, todo = [], [parent]
    while todo:
        more = kids.get(todo.pop(), [])
        found += more
        todo += more
    return found


def many(daemon, count):
    begin = time.perf_counter()
    clients = [daemon.client() for _ in range(8)]
    for n in range(count):
        # Eight are asked for at a time.
        if n >= 8:
            assert clients[n % 8].read().get("ok")
        clients[n % 8].send({"id": n, "op": "session.start",
                             "session_id": f"many-{n}", "sandbox": "virtual"})
    for n in range(min(8, count)):
        assert clients[(count + n) % 8].read().get("ok")
    took = time.perf_counter() - begin
    weights = {}
    for pid in below(daemon.process.pid):
        name = title(pid).split(":")[0]
        if name in ("egressd-box", "egressd-tlsengine"):
            weights.setdefault(name, []).append(pss_kib(pid))
    print(f"\n{count} virtual sandboxes: {took:.1f} s, "
          f"{took / count * 1000:.0f} ms each")
    for name, kib in sorted(weights.items()):
        print(f"{name + ' x %d' % len(kib):<30} "
              f"{sum(kib) / count / 1024:>9.2f} MiB PSS for each sandbox")
    print(f"{'all of a sandbox':<30} "
          f"{sum(map(sum, weights.values())) / count / 1024:>9.2f} MiB PSS")
    begin = time.perf_counter()
    for n in range(count):
        clients[n % 8].send({"id": n, "op": "session.stop",
                             "session_id": f"many-{n}"})
    for n in range(count):
        assert clients[n % 8].read().get("ok")
    print(f"stopped in {time.perf_counter() - begin:.1f} s")


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    top = pathlib.Path(tempfile.mkdtemp(prefix="egressd-bench."))
    if ROOT:
        shutil.chown(top, "nobody")
    daemon = Daemon(f"""
        limit sessions {count + 10}
        policy "none" {{ }}
        sandbox "local" local {{ policy "none" {USER} cwd "{top}" }}
        sandbox "virtual" virtual {{ policy "none" {USER} }}
    """)
    try:
        daemon.start()
        print("load", *(f"{n:.1f}" for n in os.getloadavg()), f"on {os.cpu_count()} processors")
        print(f"{'':<30} {'min':>9} {'median':>9} {'max':>9}")
        for sandbox in ("local", "virtual"):
            execs(daemon, sandbox)
            reads(daemon, sandbox)
            writes(daemon, sandbox, top)
            starts(daemon, sandbox)
        many(daemon, count)
    finally:
        daemon.end()
        shutil.rmtree(top, ignore_errors=True)


main()
