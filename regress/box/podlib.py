# SPDX-License-Identifier: ISC

"""A pod's workspace, as far as box is concerned: a pid namespace in place of a
container, and the capabilities that one has."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from case import Skip  # noqa: E402
from hands import BOX, WAIT_S, Piped, within  # noqa: E402
from procs import status  # noqa: E402

USER = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
# What a container has that nobody has thought about, without NET_RAW.
CAPS = ("chown", "dac_override", "fowner", "fsetid", "kill", "setgid",
        "setuid", "setpcap", "net_bind_service", "sys_chroot", "mknod",
        "audit_write", "setfcap")


def with_caps(caps=CAPS, *more):
    return ["setpriv", *more, "--inh-caps", "-all", "--bounding-set",
            ",".join(["-all", *(f"+{c}" for c in caps)])]


def first_process(*opts, caps=CAPS, user=(), mounts=()):
    """The beginning of a container whose mounts are the test's."""
    return ["unshare", *USER, "--pid", "--fork", "--kill-child",
            "--mount-proc", "sh", "-ec", "\n".join([*mounts, 'exec "$@"']),
            "sh", *with_caps(caps, *user), str(BOX), "keep", *opts]


class Container:
    """A pid namespace of which egressd-box keep is the first process."""

    def __init__(self, tmp, *opts, **kwargs):
        self.dir = pathlib.Path(tmp)
        self.proc = subprocess.Popen(
            first_process(*opts, **kwargs), stderr=subprocess.PIPE, text=True)
        self.first = None
        try:
            within(WAIT_S, self.is_up, "the first process")
        except AssertionError:
            self.proc.kill()
            raise Skip(f"no pid namespace: {self.proc.stderr.read()}") \
                from None

    def is_up(self):
        children = self.children(self.proc.pid)
        if children and status(children[0]).get("Name") == "egressd-box":
            self.first = children[0]
        return self.first

    @staticmethod
    def children(pid):
        path = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
        try:
            return [int(word) for word in path.read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            return []

    def hands(self, *opts):
        """As a pod's exec does it."""
        return Piped(["nsenter", "-t", str(self.first), "-m", "-p",
                      *(["-U", "--preserve-credentials"] if USER else []),
                      *with_caps(), str(BOX), "hands", "-k", *opts, "-d",
                      str(self.dir)])

    def end(self):
        """The exit status of the first process.  One that has just begun does
        not hear the signal yet."""
        for _ in range(WAIT_S * 5):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.first, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self.proc.wait(0.2)
        raise AssertionError("the first process does not end")

    def close(self):
        """A process that has changed its user does not end with its parent."""
        if self.first and self.proc.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.first, signal.SIGKILL)
        self.proc.kill()
        self.proc.wait()
        self.proc.stderr.close()
