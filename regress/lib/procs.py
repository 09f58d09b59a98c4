# SPDX-License-Identifier: ISC

"""What /proc says of the processes of a daemon, and who of them is left."""

import atexit
import ctypes
import os
import pathlib
import signal

from case import Skip

PR_SET_CHILD_SUBREAPER = 36


def status(pid):
    """The lines of /proc/PID/status; {} if there is no such process."""
    try:
        text = pathlib.Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return dict(line.split(":\t", 1) for line in text.splitlines()
                if ":\t" in line)


def title(pid):
    try:
        text = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return text.split(b"\0")[0].decode(errors="replace")


def children(parent):
    """Pid to title of the living children of a process."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        have = status(path.name)
        if have and have["PPid"] == str(parent) and have["State"][0] != "Z":
            found[int(path.name)] = title(path.name)
    return found


def adopt():
    """From now on whoever loses its parent becomes a child of this test, and
    ends with it at the latest."""
    atexit.register(end_orphans)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")


def orphans():
    """Processes of daemons that outlived their parent; see adopt()."""
    return {pid: name for pid, name in children(os.getpid()).items()
            if name.startswith("egressd-")}


def end_orphans():
    for pid in orphans():
        os.kill(pid, signal.SIGKILL)


def descriptors(pid):
    try:
        return sorted(int(name) for name in os.listdir(f"/proc/{pid}/fd"))
    except PermissionError:
        raise Skip("only root sees into the processes") from None
