#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Each fuzzer for a bounded time, from a copy of its corpus.

`make fuzzers` has built them; FUZZ_B says where, FUZZ_S for how many seconds
each is run.  The corpus of fuzz_x is corpus/fuzz_x or corpus/x.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))
from case import Cases  # noqa: E402

BUILD = pathlib.Path(os.environ.get("FUZZ_B", HERE.parents[1] / "build/fuzz"))
SECONDS = int(os.environ.get("FUZZ_S", "6"))

cases = Cases()
fuzzers = sorted(path.name for path in BUILD.glob("fuzz_*")
                 if path.is_file() and os.access(path, os.X_OK))
sources = sorted(path.stem for path in HERE.glob("fuzz_*.c"))


@cases.case
def built():
    """All that there are, or this would pass by running none."""
    assert sources, f"no fuzz_*.c in {HERE}"
    missing = set(sources) - set(fuzzers)
    assert not missing, f"not in {BUILD}: {' '.join(sorted(missing))}"


def seed(name, corpus):
    """A copy: what the fuzzer finds stays out of the tree."""
    for source in (HERE / "corpus" / name,
                   HERE / "corpus" / name.removeprefix("fuzz_")):
        if source.is_dir():
            shutil.copytree(source, corpus)
            return
    corpus.mkdir()


def finding(directory):
    """The input that broke it, so that the log is enough to repeat it."""
    found = [path for path in directory.iterdir() if path.is_file()]
    return "; ".join(f"{path.name}: {path.read_bytes().hex()}"
                     for path in found)


@cases.each(fuzzers)
def fuzz(name):
    with tempfile.TemporaryDirectory(prefix="egressd-fuzz.") as tmp:
        corpus = pathlib.Path(tmp, "corpus")
        artifacts = pathlib.Path(tmp, "found")
        seed(name, corpus)
        artifacts.mkdir()
        done = subprocess.run(
            [str(BUILD / name), f"-max_total_time={SECONDS}",
             "-max_len=65536", "-timeout=20", "-rss_limit_mb=1024",
             "-print_final_stats=1", f"-artifact_prefix={artifacts}/",
             str(corpus)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, cwd=tmp, text=True, errors="replace",
            timeout=SECONDS * 3 + 60)
        if done.returncode != 0:
            print(done.stdout[-3000:], finding(artifacts), sep="\n")
        assert done.returncode == 0, \
            f"status {done.returncode}, input {finding(artifacts)}"
        runs = [line for line in done.stdout.splitlines()
                if "number_of_executed_units" in line]
        assert runs and int(runs[0].split()[-1]) > 0, "it ran no input"


cases.main()
