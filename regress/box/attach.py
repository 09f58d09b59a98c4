#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""A sandbox whose command is hands, as the daemon starts it: connections
arrive on a channel that nobody else in there has, and its end is theirs."""

import contextlib
import fcntl
import os
import pathlib
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from boxlib import PRELUDE, PYTHON, WHO, Place, identity, same  # noqa: E402
from case import Cases  # noqa: E402
from hands import Hands, HandsError  # noqa: E402
from standin_engine import Engine  # noqa: E402

cases = Cases()
place = Place()
MB = 1024 * 1024
WAIT_S = 60


class Sandbox:
    """As the parent starts one: an engine, a channel, and no terminal."""

    def __init__(self, who, *opts, channel_first=False, left_open=()):
        if not channel_first:
            self.engine = Engine()
        self.channel, theirs = socket.socketpair(socket.AF_UNIX,
                                                 socket.SOCK_SEQPACKET)
        self.channel.settimeout(WAIT_S)
        self.inode = os.fstat(theirs.fileno()).st_ino
        if channel_first:
            self.engine = Engine()
        gate = self.engine.start()
        args = [place.box, "-e", gate.fileno(), "-c", theirs.fileno(), *opts]
        if who.endswith("-r"):
            args.append("-r")
        self.proc = subprocess.Popen(
            [str(a) for a in args], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            pass_fds=[gate.fileno(), theirs.fileno(), *left_open], cwd="/",
            env={"PATH": "/usr/bin:/bin", "HOME": str(place.home(who))},
            **identity(who))
        gate.close()
        theirs.close()
        self.connections = []

    def attach(self):
        """A connection of a client's, passed on."""
        ours, theirs = socket.socketpair()
        socket.send_fds(self.channel, [b"A"], [theirs.fileno()])
        theirs.close()
        self.connections.append(ours)
        return Hands(ours.fileno(), ours.fileno())

    def end(self):
        """By the channel's end; what box has said."""
        self.channel.close()
        try:
            _, err = self.proc.communicate(timeout=WAIT_S)
        finally:
            if self.proc.poll() is None:
                self.proc.kill()
            self.engine.stop()
        return err.decode()


@contextlib.contextmanager
def sandbox(who, *opts, **kwargs):
    box = Sandbox(who, *opts, **kwargs)
    try:
        same(box.channel.recv(16), b"R")
        yield box
    finally:
        err = box.end()
    same((box.proc.returncode, err), (0, ""))


def holders(box):
    """The processes of the sandbox that have its end of the channel open."""
    found, todo = [], [box.proc.pid]
    while todo:
        pid = todo.pop()
        with contextlib.suppress(OSError):
            todo += map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children"
                                          ).read_text().split())
            links = [os.readlink(f) for f in pathlib.Path(
                f"/proc/{pid}/fd").iterdir()]
            if f"socket:[{box.inode}]" in links:
                found.append(pid)
    return found


def python(hands, code, **members):
    return hands.call("exec", argv=[PYTHON, "-c", PRELUDE + code], **members)


@cases.each(WHO)
def serves(who):
    """A local one: files of the host's directory, commands, the gate."""
    work = place.work(who)
    with sandbox(who, "-w", work) as box:
        hands = box.attach()
        same((hands.hello["protocol"], hands.hello["cwd"]), (1, str(work)))
        hands.call("write", b"text", path="new")
        same((work / "new").read_bytes(), b"text")
        (work / "new").unlink()
        out = python(hands, """
say([os.getcwd(), os.getuid(), os.environ["EGRESSD_SESSION"],
     os.environ["HOME"], tcp("192.0.2.1", 443)])
""").out
        uid = 0 if who.endswith("-r") else work.stat().st_uid
        home = "/root" if who.endswith("-r") else str(place.home(who))
        same(eval(out), [str(work), uid, "job-42", home, "192.0.2.1 443"])
        # As many as one likes, side by side.
        others = [box.attach() for _ in range(5)]
        same([h.call("exec", command="echo x").out for h in others],
             [b"x\n"] * 5)


@cases.each(("user", "user-r"))
def virtual(who):
    with sandbox(who, "-V", 4 * MB) as box:
        hands = box.attach()
        same(hands.hello["cwd"], "/work")
        hands.call("write", b"text", path="a")
        same(hands.call("exec", command="cat /work/a").out, b"text")
        try:
            hands.call("write", bytes(5 * MB), path="/tmp/b")
            raise AssertionError("more than there is room for")
        except HandsError as error:
            same(error.code, "no_space")
        same(hands.call("glob", pattern="/tmp/b*").items, [])


@cases.each(WHO)
def nobody_has_the_channel(who):
    """Nor do commands have anything of hands or find it in their way, and
    hands cannot be looked into."""
    with sandbox(who, "-V", 4 * MB) as box:
        out = python(box.attach(), """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
seen, mine = {}, []
for pid in filter(str.isdigit, os.listdir("/proc")):
    for fd in range(64):
        link = attempt(os.readlink, f"/proc/{pid}/fd/{fd}")
        if int(pid) == os.getpid():
            mine.append(link)
        elif link not in ("EACCES", "EPERM", "ENOENT"):
            seen[f"{pid}/{fd}"] = link
libc.ptrace(16, os.getppid(), 0, 0)
say([sorted(set(m.split(":")[0] for m in mine)), seen,
     errno.errorcode[ctypes.get_errno()],
     attempt(open, f"/proc/{os.getppid()}/mem", "rb"),
     [attempt(open, f"/proc/{p}/root/work") for p in (1, 2)]])
""").out
        mine, seen, trace, memory, roots = eval(out)
        assert not [m for m in mine if m.startswith("socket")], mine
        same((seen, trace), ({}, "EPERM"))
        same([memory, *roots], ["EACCES"] * 3)
        if os.getuid() == 0:
            same(len(holders(box)), 1)


@cases.case
def rights():
    """Hands have no more than the commands, and those no terminal."""
    with sandbox("user", "-V", 4 * MB) as box:
        hands = box.attach()
        out = hands.call("exec", command="grep -h ^Cap /proc/2/status "
                         "/proc/self/status | sort -u; tty; "
                         "ps -o tty= -p 2").out.decode()
        zero = "0" * 16
        caps = [line.split() for line in out.splitlines() if "Cap" in line]
        same({c[1] for c in caps if c[0] in ("CapPrm:", "CapEff:",
                                             "CapInh:", "CapAmb:")}, {zero})
        assert "not a tty" in out and out.endswith("?\n"), out
        # What a command has shut, hands do not open.
        hands.call("exec", command="echo x > a; chmod 0 a")
        try:
            hands.call("read", path="a")
            raise AssertionError("read what it must not")
        except HandsError as error:
            same(error.code, "denied")


@cases.case
def end_of_the_channel():
    """Whatever runs in there ends with it."""
    box = Sandbox("user", "-V", 4 * MB)
    same(box.channel.recv(16), b"R")
    hands = box.attach()
    request = hands.start("exec", command="setsid sleep 1000 & echo on; "
                          "sleep 1000")
    request.until(lambda r: b"on\n" in r.out)
    same((box.end(), box.proc.returncode), ("", 0))
    hands.wait_closed()


@cases.case
def end_of_box():
    """So it does with box, which passes a signal on."""
    box = Sandbox("user", "-V", 4 * MB)
    same(box.channel.recv(16), b"R")
    hands = box.attach()
    hands.start("exec", command="sleep 1000")
    box.proc.terminate()
    box.proc.wait(WAIT_S)
    hands.wait_closed()
    same(box.channel.recv(16), b"")
    box.end()


@cases.each(("with", "without"))
def forward(how):
    with sandbox("user", "-V", 4 * MB, *(["-F"] if how == "with" else [])
                 ) as box:
        hands = box.attach()
        request = hands.start("exec", argv=[PYTHON, "-u", "-c", """
import socket
s = socket.create_server(("127.0.0.1", 8000))
print("listens")
s.accept()[0].sendall(b"from inside")
"""])
        request.until(lambda r: b"listens" in r.out)
        try:
            said = hands.call("forward", b"", port=8000).out
        except HandsError as error:
            said = error.code
        same(said, b"from inside" if how == "with" else "denied")


@cases.case
def limits():
    """Memory and time of each command, files and processes of all."""
    with sandbox("user", "-V", 64 * MB, "-l", f"memory={128 * MB}", "-l",
                 "processes=30", "-l", f"file={MB}", "-l", "cpu=2") as box:
        hands = box.attach()
        out = python(hands, """
import resource as r
say([r.getrlimit(x) for x in (r.RLIMIT_DATA, r.RLIMIT_NPROC, r.RLIMIT_FSIZE,
                              r.RLIMIT_CPU)])
""").out
        same(eval(out), [[128 * MB] * 2, [30] * 2, [MB] * 2, [2] * 2])
        same(hands.call("exec", command="while :; do :; done").result["signal"],
             "KILL")
        try:
            hands.call("write", bytes(2 * MB), path="large")
            raise AssertionError("larger than is permitted")
        except HandsError as error:
            assert error.code in ("too_large", "failed"), error
        same(hands.call("exec", command="echo on").out, b"on\n")


@cases.case
def standard_error():
    """What goes wrong before is said there, in one line."""
    for opts, why in ((("-W", place.work("user"), "-w", place.home("user")),
                       f"working directory {place.home('user')}: not beneath "
                       f"{place.work('user')}"),
                      (("-w", "/nonexistent"), "cannot expose /nonexistent: "
                       "No such file or directory"),
                      (("-V", MB, "-w", "/usr/x"), "sandbox: /usr/x: "
                       "Read-only file system")):
        box = Sandbox("user", *opts)
        same(box.channel.recv(16), b"")
        same((box.end(), box.proc.returncode), (f"egressd-box: {why}\n", 125))


@cases.case
def usage():
    """Hands or a command, and each channel for itself."""
    for args in (("-c", "4", "--", "true"), ("-c", "3"), ()):
        done = subprocess.run([str(place.box), "-e", "3", *args],
                              capture_output=True, timeout=WAIT_S)
        same(done.returncode, 125)
        assert done.stderr.startswith(b"usage:"), done.stderr


@cases.each(("channel first", "engine first"))
def other_descriptors(order):
    """What the starter left open is closed, between the channels too."""
    read, write = os.pipe()
    high = fcntl.fcntl(write, fcntl.F_DUPFD, 200)
    with sandbox("user", "-V", 4 * MB, left_open=(write, high),
                 channel_first=order.startswith("channel")) as box:
        os.close(write)
        os.close(high)
        same(os.read(read, 1), b"")
        same(box.attach().call("exec", command="echo x").out, b"x\n")
    os.close(read)


if __name__ == "__main__":
    try:
        cases.main()
    finally:
        place.remove()
