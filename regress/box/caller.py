#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""What a sandbox can do to its caller, and what of the caller it keeps:
priorities, groups, and what only root or a group may read:
the battery, part K."""

import json
import os
import pathlib
import pty
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from boxlib import (NOBODY, PRELUDE, PYTHON, WHO, Place,  # noqa: E402
                    Sandbox, probe, run_box, same)
from case import Cases, Skip  # noqa: E402

cases = Cases()
place = Place()
IOPRIO_SET, IOPRIO_GET = ((251, 252) if os.uname().machine == "x86_64"
                          else (30, 31))
GROUP = 54321

# What the kernel knows of a process that its user may change.
STANDING = f"""
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def standing():
    try:
        group = open("/proc/self/autogroup").read().split()[-1]
    except OSError:
        group = None
    return [os.getpriority(os.PRIO_PROCESS, 0),
            libc.syscall({IOPRIO_GET}, 1, 0),
            len(os.sched_getaffinity(0)), os.sched_getscheduler(0), group]
"""

# The caller, a script in a session of its own, before and after.
CALLER = STANDING + """
import json, subprocess
if sys.argv[-1] == "terminal":
    import fcntl, termios
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
before = standing()
p = subprocess.run(sys.argv[1:], pass_fds=[int(sys.argv[3])])
with open("standing", "w") as f:
    json.dump([p.returncode, before, standing()], f)
"""

CHANGES = PRELUDE + f"""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def call(*args):
    if libc.syscall(*args) == -1:
        return errno.errorcode[ctypes.get_errno()]
    return "done"
PROCESS, GROUP, USER = 0, 1, 2
said = [attempt(os.setpriority, GROUP, 0, 10),
        call({IOPRIO_SET}, 2, 0, 3 << 13)]
for which in (GROUP, USER):
    for who in (0, os.getuid(), os.getpgrp(), 1):
        attempt(os.setpriority, which, who, 10)
        call({IOPRIO_SET}, which + 1, who, 3 << 13)
for pid in (1, os.getppid()):
    attempt(os.sched_setaffinity, pid, [min(os.sched_getaffinity(0))])
    attempt(os.sched_setscheduler, pid, os.SCHED_IDLE, os.sched_param(0))
for pid in range(2, 400):
    if pid != os.getpid():
        attempt(os.setpriority, PROCESS, pid, 10)
if "terminal" not in sys.argv:
    try:
        with open("/proc/self/autogroup", "w") as f:
            f.write("19")
    except OSError:
        pass
os.setpgid(0, 0) if os.getpgrp() != os.getpid() else None
said += [attempt(os.setpriority, PROCESS, 0, 11),
         attempt(os.setpriority, GROUP, os.getpgrp(), 12),
         os.getpriority(PROCESS, 0)]
with open("said", "w") as f:
    json.dump(said, f)
"""


def check_standing(who):
    work = place.work(who)
    code, before, after = json.loads((work / "standing").read_text())
    same(code, 0)
    same(after, before)
    return json.loads((work / "said").read_text())


@cases.each(WHO)
def priorities(who):
    """The caller's priority, I/O class, processors, scheduling and session's
    share are as before; its own the sandbox may change."""
    done = run_box(place, who, PYTHON, "-c", CHANGES,
                   wrap=[PYTHON, "-c", CALLER], start_new_session=True)
    same((done.rc, done.err), (0, ""))
    same(check_standing(who), ["EPERM", "EPERM", None, None, 12])


@cases.each(("user", "root-r"))
def priorities_at_a_terminal(who):
    """There the command is in the caller's own group."""
    master, slave = pty.openpty()
    if os.getuid() == 0:
        os.fchown(slave, place.work(who).stat().st_uid, -1)
    box = Sandbox(place, who, [PYTHON, "-c", CHANGES, "terminal"],
                  wrap=[PYTHON, "-c", CALLER], start_new_session=True,
                  stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    same(box.finish().rc, 0)
    os.close(master)
    same(check_standing(who), ["EPERM", "EPERM", None, None, 12])


@cases.case
def group_of_its_own():
    """Where there is no terminal, so is the session."""
    have, _ = probe(place, "user", """
        say([os.getpgrp() == os.getpid(), os.getsid(0) == os.getpid()])
    """, start_new_session=True)
    same(have, [True, True])


HIDDEN = ("slabinfo", "vmallocinfo", "kallsyms", "keys", "key-users", "kmsg",
          "timer_list", "sched_debug", "pagetypeinfo", "kcore", "kpagecount",
          "kpageflags", "kpagecgroup", "sysrq-trigger", "mtrr", "allocinfo",
          "latency_stats", "tty/driver", "dynamic_debug/control")


@cases.each(WHO)
def kernel_secrets(who):
    """What the host's root may read of its kernel, a sandbox of root's may
    not, nor write it."""
    have, _ = probe(place, who, f"""
        import stat
        def read(path):
            if os.path.isdir(path):
                return len(os.listdir(path))
            with open(path, "rb") as f:
                return len(f.read(1))
        def write(path):
            with open(path, "r+b", 0) as f:
                return "open"
        top = ["/proc/" + e for e in os.listdir("/proc") if not e.isdigit()]
        files = [p for p in top if stat.S_ISREG(os.lstat(p).st_mode)]
        say([[attempt(read, "/proc/" + p) for p in {HIDDEN}
              if os.path.exists("/proc/" + p)],
             [p for p in files if os.lstat(p).st_mode & 0o222 and
              attempt(write, p) == "open"],
             [p for p in files if os.lstat(p).st_mode & 4 == 0]])
    """)
    assert set(have[0]) <= {0, "EACCES", "EPERM"}, have[0]
    same(have[1:], [[], []])


# As the user, in that group, with a part of /etc that only it may read.
IN_GROUP = f"""
mount -t tmpfs none /etc/default && cd /etc/default &&
mkdir -p open/deep shut && for f in open/deep/secret open/deep/plain shut/x
do echo word > $f; done && chown 0:{GROUP} shut open/deep/secret &&
chmod 750 shut && chmod 640 open/deep/secret && cd "$OLDPWD" &&
exec setpriv --reuid {NOBODY} --regid {NOBODY} --groups {GROUP} "$@"
"""


@cases.case
def supplementary_group():
    """Nobody but root can leave one, so what it could read in /etc is not
    shown; root leaves its groups outside."""
    if os.getuid() != 0:
        raise Skip("not root")
    box = Sandbox(place, "root", ["/bin/sh", "-c", "cd /etc/default; "
                  "cat open/deep/plain open/deep/secret; ls -a shut; "
                  "cat shut/x"],
                  wrap=["unshare", "-m", "sh", "-c", IN_GROUP, "x"], cwd="/tmp")
    same(box.finish().out, "word\n")
    box = Sandbox(place, "root", ["/usr/bin/id", "-G"], extra_groups=[GROUP])
    same(box.finish().out, "0\n")


if __name__ == "__main__":
    try:
        cases.main()
    finally:
        place.remove()
