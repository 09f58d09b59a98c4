# SPDX-License-Identifier: ISC

"""A control group as a service manager would delegate it, for one test.

It is made at the top of what is mounted, or of a mount in a namespace of the
test's own, and removed with all that is in it."""

import atexit
import contextlib
import ctypes
import os
import pathlib
import re
import subprocess
import tempfile

from case import Skip
from daemon import until

CLONE_NEWNS = 0x20000


def mounted():
    """Where control groups of version 2 are, or None."""
    text = pathlib.Path("/proc/self/mountinfo").read_text()
    found = re.search(r"^\S+ \S+ \S+ / (\S+) .* - cgroup2 ", text, re.M)
    return pathlib.Path(found[1]) if found else None


def mount_own():
    """Where nothing has mounted them, which is not to be seen elsewhere."""
    if ctypes.CDLL(None).unshare(CLONE_NEWNS) != 0:
        raise Skip("no mount namespace of its own")
    path = tempfile.mkdtemp(prefix="egressd-test.")
    atexit.register(subprocess.run, f"umount -l {path} 2>&1; rmdir {path}",
                    shell=True, stdout=subprocess.DEVNULL)
    for argv in (["mount", "--make-rprivate", "/"],
                 ["mount", "-t", "cgroup2", "none", path]):
        done = subprocess.run(argv, capture_output=True, text=True)
        if done.returncode != 0:
            raise Skip(f"no control groups of version 2: {done.stderr}")
    return pathlib.Path(path)


def remove(group):
    """A group and those in it; their processes are killed."""
    with contextlib.suppress(OSError):
        (group / "cgroup.kill").write_text("1")
    for path in sorted(group.rglob("*"), reverse=True):
        if path.is_dir():
            remove(path)

    def removed():
        with contextlib.suppress(OSError):
            group.rmdir()
        return not group.exists()
    until(f"{group} is empty", removed)


class Delegated:
    """The group is path; program starts the daemon in one just below it, as
    systemd's DelegateSubgroup does, so that the same can be used again."""

    def __init__(self, name, mark=True):
        if os.geteuid() != 0:
            raise Skip("only root can delegate a control group")
        self.top = mounted() or mount_own()
        self.path = self.top / f"egressd-test-{os.getpid()}-{name}"
        self.mark = mark
        self.limits = False

    def __enter__(self):
        with contextlib.suppress(OSError):
            (self.top / "cgroup.subtree_control").write_text("+memory +pids")
        try:
            (self.path / "start").mkdir(parents=True)
        except OSError as why:
            raise Skip(f"no control group can be made: {why}") from why
        have = (self.path / "cgroup.controllers").read_text().split()
        self.limits = {"memory", "pids"} <= set(have)
        try:
            if self.mark:
                os.setxattr(self.path, "user.delegate", b"1")
        except OSError as why:
            self.__exit__()
            raise Skip(f"no control group can be marked: {why}") from why
        return self

    def __exit__(self, *_):
        remove(self.path)

    def wrap(self, program, place):
        """A program that starts the other one in here."""
        path = pathlib.Path(place, "delegated")
        path.write_text(f"#!/bin/sh\necho $$ > {self.path}/start/cgroup.procs"
                        f"\nexec {program} \"$@\"\n")
        path.chmod(0o755)
        return path

    def ours(self):
        """The daemons' groups."""
        return sorted(self.path.glob("egressd-*"))

    def boxes(self):
        return sorted(self.path.glob("egressd-*/box-*"))

    @staticmethod
    def pids(group):
        return [int(n) for n in (group / "cgroup.procs").read_text().split()]

    def running(self, group, word):
        """Those of a group that were started with a word."""
        found = []
        for pid in self.pids(group):
            with contextlib.suppress(OSError):
                line = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
                found += [pid] * (word.encode() in line)
        return found
