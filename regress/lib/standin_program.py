# SPDX-License-Identifier: ISC

"""Scripts in the place of the daemon's programs: mounted over them, in a
namespace of the test's own."""

import atexit
import ctypes
import os
import pathlib
import shutil
import socket
import sys
import tempfile

from daemon import BUILD, TOP, WAIT_S

NEWNS, NEWUSER = 0x20000, 0x10000000
MS_BIND, MS_PRIVATE = 0x1000, 0x44000

HEAD = """#!{python}
import socket, sys
sys.dont_write_bytecode = True
sys.path.insert(0, {lib!r})
from channel import C, Channel
relay = socket.socket(socket.AF_UNIX)
relay.connect({path!r})
"""


def directory(mode=0o755):
    """For the length of the run, and for other users to see."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="egressd-standin."))
    path.chmod(mode)
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def unshare(libc):
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(NEWNS) == 0:
        return
    if libc.unshare(NEWUSER | NEWNS) == -1:
        print("skip all: no mount namespace can be made here")
        sys.exit(0)
    pathlib.Path("/proc/self/setgroups").write_text("deny")
    pathlib.Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    pathlib.Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")


def mount_standin(text, *roles):
    """What to listen on for the relay of each, a connection to us."""
    libc = ctypes.CDLL(None, use_errno=True)
    unshare(libc)
    where = directory()
    path = str(where / "relay")
    standin = where / "standin"
    standin.write_text(HEAD.format(
        python=sys.executable, lib=str(TOP / "regress" / "lib"),
        path=path) + text)
    standin.chmod(0o755)
    for role in roles:
        program = BUILD / "libexec" / f"egressd-{role}"
        if libc.mount(None, b"/", None, MS_PRIVATE, None) == -1 or \
                libc.mount(bytes(standin), bytes(program), None, MS_BIND,
                           None) == -1:
            print("skip all: nothing can be mounted here")
            sys.exit(0)
    relay = socket.socket(socket.AF_UNIX)
    relay.bind(path)
    os.chmod(path, 0o666)
    relay.listen()
    relay.settimeout(WAIT_S)
    return relay
