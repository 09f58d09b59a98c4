#!/usr/bin/env python3
#
# Copyright (c) 2026 The egressd authors
#
# Permission to use, copy, modify, and distribute this software for any
# purpose with or without fee is hereby granted, provided that the above
# copyright notice and this permission notice appear in all copies.
#
# THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES
# WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF
# MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR
# ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES
# WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
# ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF
# OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
#

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
SECONDS = int(os.environ.get("FUZZ_S", "10"))

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
