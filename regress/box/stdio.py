#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""The battery, part K: what may be standard input, output and error of a
sandbox.  A socket of the host would be a way out past the gate; a pipe stands in for it."""

import contextlib
import os
import pathlib
import pty
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from boxlib import (PRELUDE, PYTHON, WHO, Place, Sandbox,  # noqa: E402
                    run_box, same)
from case import Cases, Skip  # noqa: E402

cases = Cases()
place = Place()
WAIT_S = 30

KINDS = PRELUDE + """
import stat
def kind(fd):
    mode = os.fstat(fd).st_mode
    return next(k for k in ("FIFO", "REG", "CHR", "SOCK") if
                getattr(stat, "S_IS" + k)(mode))
kinds = [kind(fd) for fd in range(3)]
"""


def tcp_pair():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = socket.create_connection(listener.getsockname())
        theirs = listener.accept()[0]
    ours.settimeout(WAIT_S)
    return ours, theirs


def unix_pair(kind=socket.SOCK_STREAM):
    ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
    ours.settimeout(WAIT_S)
    return ours, theirs


PAIRS = {
    "tcp": tcp_pair, "unix": unix_pair,
    "seqpacket": lambda: unix_pair(socket.SOCK_SEQPACKET),
}


def all_of(sock):
    data = b""
    while more := sock.recv(65536):
        data += more
    return data


@contextlib.contextmanager
def on_socket(who, sock, *argv, streams=("stdin", "stdout", "stderr"), **kw):
    """A sandbox that has this socket as its standard streams."""
    box = Sandbox(place, who, argv, **{s: sock for s in streams}, **kw)
    sock.close()
    try:
        yield box
    finally:
        box.finish()


@cases.each(WHO)
def tcp_both_ways(who):
    """One connection as all three, as inetd gives it: what is written arrives
    in order, half a close is an end of input, all is there at the end."""
    ours, theirs = tcp_pair()
    data = os.urandom(1 << 20)
    with on_socket(who, theirs, PYTHON, "-c", KINDS + """
data = sys.stdin.buffer.read()
for i in range(3):
    os.write(1, b"out")
    os.write(2, b"err")
sys.stdout.buffer.write(data[::-1])
say(kinds)
sys.exit(7)
""") as box:
        sender = threading.Thread(target=lambda: (
            ours.sendall(data), ours.shutdown(socket.SHUT_WR)))
        sender.start()
        have = all_of(ours)
        sender.join()
    same(box.rc, 7)
    same(have[:18], b"outerr" * 3)
    same(have[18:18 + len(data)] == data[::-1], True)
    same(have[18 + len(data):], b'["FIFO", "FIFO", "FIFO"]\n')


@cases.each(PAIRS)
def talk(kind):
    """Question and answer, one after the other."""
    ours, theirs = PAIRS[kind]()
    with on_socket("user", theirs, "/bin/sh", "-c",
                   "while read a; do echo got $a; done; echo end"):
        for word in (b"one", b"two"):
            ours.sendall(word + b"\n")
            same(ours.recv(100), b"got " + word + b"\n")
        ours.shutdown(socket.SHUT_WR)
        same(ours.recv(100), b"end\n")


@cases.each(("stdin", "stdout", "stderr"))
def one_of_them(stream):
    """Only one is a socket: the others are what they were."""
    ours, theirs = tcp_pair()
    with on_socket("user", theirs, PYTHON, "-c", KINDS + """
with open("kinds", "w") as f:
    f.write(" ".join(kinds))
line = sys.stdin.readline()
print(line, end="", flush=True)
print(line, end="", file=sys.stderr)
""", streams=(stream,)) as box:
        if stream == "stdin":
            ours.sendall(b"word\n")
            ours.close()
        else:
            box.proc.stdin.write(b"word\n")
            box.proc.stdin.close()
            box.proc.stdin = None
            same(all_of(ours), b"word\n")
    same([box.out, box.err], ["" if s == stream else "word\n"
                              for s in ("stdout", "stderr")])
    same((place.work("user") / "kinds").read_text(), "FIFO FIFO FIFO")


@cases.case
def used_again():
    """A script's next command finds the connection as open as before."""
    ours, theirs = tcp_pair()
    for word in (b"one", b"two"):
        box = Sandbox(place, "user", ["/bin/sh", "-c", f"echo {word.decode()}; "
                      "exec >&- 2>&-; sleep 0.1"], stdout=theirs)
        same(box.finish().rc, 0)
    theirs.sendall(b"three\n")
    theirs.close()
    same(all_of(ours), b"one\ntwo\nthree\n")


@cases.case
def slow_reader():
    """What was written before the end is not lost, however late it is read."""
    ours, theirs = tcp_pair()
    with on_socket("user", theirs, "/bin/sh", "-c",
                   "head -c 8000000 /dev/zero; exit 3", streams=["stdout"]) \
            as box:
        watch = os.pidfd_open(box.proc.pid)
        same(select.select([watch], [], [], 0.5)[0], [])
        same(len(all_of(ours)), 8000000)
        same(select.select([watch], [], [], WAIT_S)[0], [watch])
        os.close(watch)
    same(box.rc, 3)


@cases.case
def unwilling_reader():
    """A signal ends the wait for somebody who does not read."""
    ours, theirs = unix_pair()
    with on_socket("user", theirs, PYTHON, "-c", """
import os, select, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.set_blocking(1, False)
while select.select([], [1], [], 0.5)[1]:
    os.write(1, bytes(4096))
print("full", file=sys.stderr)
os._exit(4)
""", streams=["stdout"]) as box:
        same(box.proc.stderr.readline(), b"full\n")
        with contextlib.suppress(subprocess.TimeoutExpired):
            box.proc.wait(0.5)
        same(box.proc.poll(), None)
        while box.proc.poll() is None:
            box.proc.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                box.proc.wait(0.2)
    same(box.rc, 4)
    ours.close()


@cases.case
def reader_goes_away():
    """The command learns of it as with a pipe."""
    ours, theirs = tcp_pair()
    with on_socket("user", theirs, "/bin/sh", "-c", "exec yes",
                   streams=["stdout"]) as box:
        ours.recv(10)
        ours.close()
        box.proc.wait(WAIT_S)
    same(box.rc, -signal.SIGPIPE)


@cases.case
def input_not_read():
    """A command that ends without reading does not wait for its input."""
    ours, theirs = tcp_pair()
    ours.sendall(b"x" * 100000)
    with on_socket("user", theirs, "/bin/true", streams=["stdin"]) as box:
        same(box.proc.wait(WAIT_S), 0)
    ours.close()


# What an attacker does with a socket that is the host's.
ATTEMPTS = KINDS + """
fds = len(os.listdir("/proc/self/fd"))
def socket_calls(fd):
    s = socket.socket(fileno=os.dup(fd))
    s.connect(target)
    return "connected"
def unspec(fd):
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.connect(fd, bytes(16), 16) == -1:
        return errno.errorcode[ctypes.get_errno()]
    return "loose"
def passed(fd):
    import ctypes
    s = socket.socket(socket.AF_UNIX, fileno=os.dup(fd))
    return len(s.recvmsg(1, 256)[1])
"""


def unconnected(family, kind):
    def make():
        return None, socket.socket(family, kind)
    return make


def bound_udp():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("127.0.0.1", 0))
    return None, s


def connected_udp():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect(("127.0.0.1", 9))
    return None, s


def listening():
    return None, socket.create_server(("127.0.0.1", 0))


HOST_SOCKETS = {
    "tcp": tcp_pair, "tcp_loose": unconnected(socket.AF_INET,
                                              socket.SOCK_STREAM),
    "tcp_listens": listening,
    "udp": unconnected(socket.AF_INET, socket.SOCK_DGRAM),
    "udp_bound": bound_udp, "udp_connected": connected_udp,
    "udp6": unconnected(socket.AF_INET6, socket.SOCK_DGRAM),
    "unix": unix_pair, "unix_loose": unconnected(socket.AF_UNIX,
                                                 socket.SOCK_STREAM),
    "unix_datagrams": unconnected(socket.AF_UNIX, socket.SOCK_DGRAM),
    "unix_datagram_pair": lambda: unix_pair(socket.SOCK_DGRAM),
    "vsock": unconnected(socket.AF_VSOCK, socket.SOCK_STREAM),
}


@cases.each(HOST_SOCKETS)
def way_out(kind):
    """No socket of the host's gets in, neither connected nor not: it would
    keep its network, or let its peer pass descriptors."""
    for who in ("user", "root-r"):
        try:
            ours, theirs = HOST_SOCKETS[kind]()
        except OSError as error:
            raise Skip(f"no such socket: {error}")
        with socket.create_server(("127.0.0.1", 0)) as host, theirs:
            host.settimeout(0)
            target = host.getsockname()
            if kind.startswith("unix") and ours:
                socket.send_fds(ours, [b"x"], [host.fileno()])
            done = run_box(place, who, PYTHON, "-c", ATTEMPTS + f"""
target = {target}
print([[attempt(f, fd) for f in (socket_calls, unspec, passed)]
       for fd in range(3)], kinds, fds, file=open("said", "w"))
""", stdin=theirs, stdout=theirs, stderr=theirs)
            same(done.rc, 0)
            said = (place.work(who) / "said").read_text()
            same(said, f"{[['ENOTSOCK'] * 3] * 3} {['FIFO'] * 3} 4\n")
            try:
                host.accept()
                raise AssertionError("it was reached")
            except BlockingIOError:
                pass
        if ours:
            ours.close()


def dup_of(thing):
    with thing:
        return os.dup(thing.fileno())


def anonymous(number, *args):
    """A descriptor that Python has no word for."""
    def make():
        import ctypes
        fd = ctypes.CDLL(None, use_errno=True).syscall(number, *args)
        if fd == -1:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return fd
    return make


def opened(path, flags=os.O_RDONLY):
    return lambda: os.open(path, flags)


def raw(family, kind, protocol):
    return lambda: socket.socket(family, kind, protocol).detach()


def block_device():
    for path in pathlib.Path("/sys/block").glob("*"):
        with contextlib.suppress(OSError):
            return os.open(f"/dev/{path.name}", os.O_RDONLY)
    raise FileNotFoundError("no disk here")


REFUSED = {
    "directory": (opened("/"), "a directory of the host (/)"),
    "path": (opened("/etc/passwd", os.O_PATH), "a path of the host"),
    "path_directory": (opened("/", os.O_PATH), "a path of the host"),
    "path_socket_pair": (lambda: os.open(f"/proc/self/fd/"
                         f"{socket.socketpair()[0].detach()}", os.O_PATH),
                         "a path of the host"),
    "proc_file": (opened("/proc/self/mem", os.O_RDWR), "a file of the kernel"),
    "sys_file": (opened("/sys/kernel/mm/transparent_hugepage/enabled"),
                 "a file of the kernel"),
    "network": (opened("/proc/self/ns/net"), "(net:["),
    "mounts": (opened("/proc/self/ns/mnt"), "(mnt:["),
    "pidfd": (lambda: os.pidfd_open(os.getpid()), "pidfd"),
    "epoll": (lambda: dup_of(select.epoll()), "eventpoll"),
    "eventfd": (lambda: os.eventfd(0), "eventfd"),
    "signalfd": (anonymous(289, -1, bytes(8), 8, 0), "signalfd"),
    "inotify": (anonymous(294, 0), "inotify"),
    "userfaultfd": (anonymous(323, 1), "userfaultfd"),
    "io_uring": (anonymous(425, 8, bytes(120)), "io_uring"),
    "terminal_master": (lambda: pty.openpty()[0], "a device of the host"),
    "tun": (opened("/dev/net/tun", os.O_RDWR), "a device of the host"),
    "kernel_log": (opened("/dev/kmsg", os.O_WRONLY), "a device of the host"),
    "disk": (block_device, "a disk of the host"),
    "raw_socket": (raw(socket.AF_INET, socket.SOCK_RAW, 1),
                   "a socket that carries more"),
    "packet_socket": (raw(socket.AF_PACKET, socket.SOCK_RAW, 3),
                      "a socket that carries more"),
    "netlink_socket": (raw(socket.AF_NETLINK, socket.SOCK_RAW, 0),
                       "a socket that carries more"),
}
ON_X86 = ("signalfd", "inotify", "userfaultfd")


@cases.each(REFUSED)
def refused(kind):
    """A handle on the host: nothing is run, and the error names it."""
    make, text = REFUSED[kind]
    if kind in ON_X86 and os.uname().machine != "x86_64":
        raise Skip("numbers of x86")
    try:
        fd = make()
    except OSError as error:
        raise Skip(f"none here: {error}")
    try:
        for number, stream in enumerate(("stdin", "stdout", "stderr")):
            done = run_box(place, "user", "/usr/bin/touch", "ran",
                           **{stream: fd})
            same(done.rc, 125)
            assert not (place.work("user") / "ran").exists()
            if stream != "stderr":
                assert f"descriptor {number} is " in done.err, done.err
                assert text in done.err, done.err
    finally:
        os.close(fd)


def fifo():
    path = place.dir / "fifo"
    with contextlib.suppress(FileExistsError):
        os.mkfifo(path)
    return os.open(path, os.O_RDWR)


ALLOWED = {
    "file": lambda: dup_of(tempfile.TemporaryFile(dir=place.dir)),
    "memory": lambda: os.memfd_create("x"),
    "null": opened("/dev/null", os.O_RDWR),
    "zero": opened("/dev/zero", os.O_RDWR),
    "urandom": opened("/dev/urandom", os.O_RDWR),
    "fifo": fifo,
    "terminal": lambda: pty.openpty()[1],
}


@cases.each(ALLOWED)
def allowed(kind):
    """Files, pipes, terminals and the harmless devices are the caller's."""
    fd = ALLOWED[kind]()
    want = os.fstat(fd)
    done = run_box(place, "user", PYTHON, "-c", """
import os
with open("said", "w") as f:
    print(*[(s.st_rdev, s.st_ino) for s in map(os.fstat, range(3))], file=f)
""", stdin=fd, stdout=fd, stderr=fd)
    os.close(fd)
    same(done.rc, 0)
    same((place.work("user") / "said").read_text().strip(),
         " ".join([str((want.st_rdev, want.st_ino))] * 3))


@cases.case
def closed():
    """Where there is nothing, there is /dev/null."""
    done = run_box(place, "user", "/bin/sh", "-c",
                   "stat -Lc %t:%T /dev/fd/0 /dev/fd/3 /dev/fd/2 3>&1 > said",
                   wrap=["/bin/sh", "-c", 'exec "$@" <&- >&- 2>&-', "x"])
    same(done.rc, 0)
    same((place.work("user") / "said").read_text(), "1:3\n" * 3)


if __name__ == "__main__":
    try:
        cases.main()
    finally:
        place.remove()
