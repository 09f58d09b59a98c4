#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""What a sandbox that the daemon starts is told besides: where its working
directory may be (-W), and how much it may use (-l)."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from boxlib import NOBODY, WHO, Place, probe, run_box, same  # noqa: E402
from case import Cases, Skip  # noqa: E402

cases = Cases()
place = Place()
MB = 1024 * 1024

# work/top/in, work/top-not, work/link -> top, work/top/out -> ../top-not
TOP = place.work("user") / "top"
ASIDE = place.work("user") / "top-not"
for made in (TOP, TOP / "in", ASIDE):
    made.mkdir()
    if os.getuid() == 0:
        os.chown(made, NOBODY, NOBODY)
(place.work("user") / "link").symlink_to("top")
(TOP / "out").symlink_to(ASIDE)
(ASIDE / "back").symlink_to(TOP / "in")


@cases.case
def beneath():
    """By its real name, however it is spelt."""
    work = place.work("user")
    for named, real in ((TOP, TOP), (f"{TOP}/", TOP), (TOP / "in", TOP / "in"),
                        (f"{ASIDE}/../top//in/.", TOP / "in"),
                        (work / "link" / "in", TOP / "in"),
                        (ASIDE / "back", TOP / "in"), ("top/in", TOP / "in")):
        for top in (TOP, f"{TOP}/", work / "link"):
            have, _ = probe(place, "user", "say(os.getcwd())",
                            opts=("-W", top, "-w", named))
            same(have, str(real))


@cases.case
def not_beneath():
    work = place.work("user")
    for named, real in ((work, work), (ASIDE, ASIDE), (TOP / "out", ASIDE),
                        (f"{TOP}/in/../..", work),
                        (f"{TOP}/../top-not", ASIDE)):
        done = run_box(place, "user", "true", opts=("-W", TOP, "-w", named))
        same((done.rc, done.err), (125, "egressd-box: working directory "
             f"{real}: not beneath {TOP}\n"))
    # Nor where the caller happens to stand.
    done = run_box(place, "user", "true", opts=("-W", TOP))
    same((done.rc, done.err), (125, "egressd-box: working directory "
         f"{work}: not beneath {TOP}\n"))
    done = run_box(place, "user", "true", opts=("-W", "/nonexistent", "-w",
                                                TOP))
    same(done.rc, 125)


@cases.case
def one_of_several():
    opts = ("-W", TOP, "-W", ASIDE)
    have, _ = probe(place, "user", "say(os.getcwd())",
                    opts=(*opts, "-w", ASIDE))
    same(have, str(ASIDE))
    done = run_box(place, "user", "true",
                   opts=(*opts, "-w", place.work("user")))
    same((done.rc, done.err), (125, "egressd-box: working directory "
         f"{place.work('user')}: not beneath {TOP}, nor another one that is "
         "permitted\n"))


@cases.case
def beneath_virtual():
    """By name: nothing is there yet."""
    opts = ("-V", 4 * MB, "-W", "/work/")
    for named in ("/work", "/work//a/"):
        run = run_box(place, "user", "true", opts=(*opts, "-w", named))
        same((run.rc, run.err), (0, ""))
    for named, why in (("/workshop", "working directory /workshop: not "
                        "beneath /work/"),
                       ("/tmp", "working directory /tmp: not beneath "
                        "/work/"),
                       ("/work/../tmp", "/work/../tmp: must not contain . "
                        "or ..")):
        run = run_box(place, "user", "true", opts=(*opts, "-w", named))
        same((run.rc, run.err), (125, f"egressd-box: {why}\n"))


LIMITS = """
import resource
def limits(*names):
    return [list(resource.getrlimit(getattr(resource, "RLIMIT_" + n)))
            for n in names]
"""


@cases.each(WHO)
def limit_memory(who):
    have, _ = probe(place, who, LIMITS + f"""
try:
    len(bytearray({512 * MB}))
    got = "enough"
except MemoryError:
    got = "MemoryError"
limit = limits("DATA")
try:
    resource.setrlimit(resource.RLIMIT_DATA, (-1, -1))
    raised = "raised"
except ValueError:
    raised = "not raised"
say([got, limit, raised])
""", opts=("-l", f"memory={256 * MB}"))
    same(have, ["MemoryError", [[256 * MB] * 2], "not raised"])


@cases.each(("user", "user-r"))
def limit_processes(who):
    """Those of this sandbox, whatever else its user runs."""
    have, _ = probe(place, who, """
        read, write = os.pipe()
        def child():
            pid = os.fork()
            if pid == 0:
                os.close(write)
                os.read(read, 1)
                os._exit(0)
        n = 0
        try:
            while n < 100:
                child()
                n += 1
        except OSError as e:
            say([n, name(e)])
        else:
            say([n, "no limit"])
    """, opts=("-l", "processes=20"))
    if os.getuid() != 0 and have[0] < 19:
        raise Skip("this user is busy, and the kernel counts it all")
    same(have, [19, "EAGAIN"])


@cases.each(WHO)
def limit_file(who):
    have, _ = probe(place, who, """
        import signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        def put(size):
            with open("/tmp/file", "wb", 0) as f:
                f.seek(size - 1)
                f.write(b"x")
        say([attempt(put, 65536), attempt(put, 65537)])
    """, opts=("-l", "file=65536"))
    same(have, [None, "EFBIG"])


@cases.case
def limit_cpu():
    done = run_box(place, "user", "/bin/sh", "-c", "while :; do :; done",
                   opts=("-l", "cpu=1"))
    same(done.rc, -9)


@cases.case
def limits_together():
    have, _ = probe(place, "user", LIMITS + """
say(limits("DATA", "NPROC", "FSIZE", "CPU"))
""", opts=("-V", 4 * MB, "-l", f"memory={512 * MB}", "-l", "processes=100",
           "-l", "file=12345", "-l", "cpu=60"))
    same(have, [[512 * MB] * 2, [100] * 2, [12345] * 2, [60] * 2])


@cases.case
def limits_refused():
    for text, why in (("memory", "must be memory, processes, file or cpu, "
                       "and = with a number"),
                      ("mem=1", "must be memory, processes, file or cpu, "
                       "and = with a number"),
                      ("=1", "must be memory, processes, file or cpu, "
                       "and = with a number"),
                      ("cpu=", "invalid"), ("cpu=0", "too small"),
                      ("file=1M", "invalid"), ("file=-1", "too small")):
        done = run_box(place, "user", "true", opts=("-l", text))
        same((done.rc, done.err), (125, f"egressd-box: limit {text}: "
             f"{why}\n"))


if __name__ == "__main__":
    try:
        cases.main()
    finally:
        place.remove()
