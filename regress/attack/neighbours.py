#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""The battery, part J, tried from inside of a real sandbox: sockets,
descriptors and processes of the host next door."""

import os
import pathlib
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from insidelib import WHO, Probe, none_of, same  # noqa: E402
from case import Cases  # noqa: E402

cases = Cases()


class Neighbour:
    """A server of the host that must not be visited."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.bind(path)
        self.sock.listen()
        self.sock.setblocking(False)
        if not path.startswith("\0"):
            os.chmod(path, 0o777)

    def visited(self):
        try:
            self.sock.accept()
            return True
        except BlockingIOError:
            return False
        finally:
            self.sock.close()


@cases.each(WHO)
def sockets_of_the_host(who):
    """Of engines, buses, agents and screens: by the paths that programs know,
    by variables that lead to them, and without a path."""
    with tempfile.TemporaryDirectory(dir="/tmp") as top, \
            tempfile.TemporaryDirectory(dir="/run") as run:
        os.chmod(top, 0o755)
        os.chmod(run, 0o755)
        number = os.getpid()
        paths = [f"{top}/agent.{number}", f"{run}/docker.sock", f"{run}/bus",
                 f"\0/tmp/.X11-unix/X{number}", f"\0dbus-{number}"]
        neighbours = [Neighbour(p) for p in paths]
        probe = Probe(who, f"""
            def unix(path):
                s = socket.socket(socket.AF_UNIX)
                s.connect(path)
                s.sendall(b"secret")
                return "connected"
            def by(path):
                return attempt(unix, path)
            say([[by(p) for p in {paths!r}],
                 [v for v in os.environ if v in ("SSH_AUTH_SOCK", "DISPLAY",
                  "DOCKER_HOST", "DBUS_SESSION_BUS_ADDRESS")],
                 [by(f"/proc/{{p}}/root{{q}}") for p in (1, os.getppid())
                  for q in {paths[:3]!r}]])
        """, env={"SSH_AUTH_SOCK": paths[0], "DISPLAY": f":{number}",
                  "DOCKER_HOST": f"unix://{paths[1]}",
                  "DBUS_SESSION_BUS_ADDRESS": f"unix:path={paths[2]}"})
        same([n.visited() for n in neighbours], [False] * len(paths))
        none_of(probe.said[0] + probe.said[2], ["connected"])
        same(probe.said[1], [], "lead nowhere")


@cases.each(WHO)
def inherited(who):
    """What `egressctl run' was started with is not the command's, but for
    the three that are."""
    secret = tempfile.TemporaryFile()
    ours, theirs = socket.socketpair()
    root = os.open("/", os.O_RDONLY)
    try:
        probe = Probe(who, """
            found = []
            for fd in range(3, 256):
                with contextlib.suppress(OSError):
                    os.fstat(fd)
                    found.append([fd, os.readlink(f"/proc/self/fd/{fd}")])
            say(found)
        """, pass_fds=(secret.fileno(), theirs.fileno(), root))
    finally:
        secret.close()
        ours.close()
        theirs.close()
        os.close(root)
    same(probe.said, [])


@cases.each(WHO)
def processes_of_the_host(who):
    """They are not seen, not signalled and not entered; the same number inside
    is not the same process."""
    sleeper = subprocess.Popen(["sleep", "600"])
    try:
        probe = Probe(who, f"""
            pid = {sleeper.pid}
            say([attempt(os.kill, pid, 9),
                 call(libc.ptrace, 16, pid, 0, 0),
                 [os.path.exists(f"/proc/{{pid}}/{{f}}") for f in
                  ("root", "cwd", "ns/net", "fd")],
                 call(libc.syscall, 434, pid, 0),
                 attempt(os.kill, -1, 0), len(os.listdir("/proc/1/task"))
                 if os.access("/proc/1/task", os.R_OK) else 1,
                 sum(p.isdigit() for p in os.listdir("/proc"))])
        """)
        same(probe.said[0], "ESRCH")
        same(probe.said[1], "ESRCH")
        same(probe.said[2], [False] * 4)
        same(probe.said[3], "ESRCH")
        assert probe.said[6] <= 3, probe.said
        assert sleeper.poll() is None, "it was killed"
    finally:
        sleeper.kill()
        sleeper.wait()


cases.main()
