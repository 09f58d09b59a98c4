#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""regress/run itself: what a test finds, whoever started it."""

import os
import pathlib
import runpy
import signal
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from case import Cases, Skip, run  # noqa: E402

INNER = "REGRESS_INNER"     # set: this is the test that the other case starts
SIGNALS = [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE,
           signal.SIGTERM]

cases = Cases()


@cases.case
def signals_are_default():
    """Neither ignored nor blocked, for the programs that a test starts."""
    if INNER not in os.environ and signal.getsignal(
            signal.SIGHUP) == signal.SIG_IGN:
        raise Skip("not started by regress/run")
    status = dict(line.split(":\t") for line in
                  run(["cat", "/proc/self/status"]).stdout.splitlines())
    for mask in ("SigIgn", "SigBlk"):
        bits = int(status[mask], 16)
        found = [s.name for s in SIGNALS if bits >> (s - 1) & 1]
        assert not found, f"{mask}: {found}"


@cases.case
def whoever_started_it():
    """As nohup(1), or a shell that puts it in the background, would."""
    if INNER in os.environ:
        return
    names = [s.name.removeprefix("SIG") for s in SIGNALS]
    done = run(["env", *(f"--ignore-signal={n}" for n in names),
                *(f"--block-signal={n}" for n in names),
                TOP / "regress" / "run", "-j1", "harness/"],
               env={**os.environ, INNER: "1"})
    assert done.returncode == 0, done.stdout
    assert "ok      harness/run.py: signals_are_default" in done.stdout, (
        done.stdout)


@cases.case
def what_needs_a_cluster_is_named():
    """make check has none."""
    chosen = runpy.run_path(str(TOP / "regress" / "run"))["is_chosen"]
    for asked, want in (([], False), (["conform"], False), (["k8s/"], True),
                        (["k8s/conform_files"], True), (["e2e/"], False),
                        (["k8s/pod", "conform_"], False)):
        assert chosen("k8s/conform_files.py", asked) == want, asked
    assert chosen("e2e/http1.py", [])
    assert chosen("sandbox/conform_files.py", ["conform"])


cases.main()
