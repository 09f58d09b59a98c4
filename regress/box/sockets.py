#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Unix sockets of the host where the sandbox can see them, made before and
after its start: the battery, part K.  Those of its own work as ever."""

import contextlib
import os
import pathlib
import signal
import socket
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from boxlib import (PRELUDE, PYTHON, WHO, Place, Sandbox,  # noqa: E402
                    probe, same)
from case import Cases, run  # noqa: E402

cases = Cases()
place = Place()
WAIT_S = 30

UNIX = """
def unix(path, kind=socket.SOCK_STREAM):
    s = socket.socket(socket.AF_UNIX, kind)
    s.connect(path)
    return "connected"

def to(path, *more):
    return attempt(unix, path, *more)
"""


class Host:
    """A helper of the host's that hands a descriptor to who comes."""

    def __init__(self, path, kind=socket.SOCK_STREAM):
        self.path = str(path)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        self.sock = socket.socket(socket.AF_UNIX, kind)
        self.sock.bind(self.path)
        os.chmod(path, 0o777)
        self.kind = kind
        self.visits = 0
        if kind != socket.SOCK_DGRAM:
            self.sock.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                if self.kind == socket.SOCK_DGRAM:
                    if not self.sock.recv(10):
                        return
                    self.visits += 1
                    continue
                with self.sock.accept()[0] as peer:
                    self.visits += 1
                    socket.send_fds(peer, [b"x"], [self.sock.fileno()])

    def close(self):
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()
        os.unlink(self.path)


class Dialogue:
    """Python in a sandbox that is given code, line by line."""

    def __init__(self, who, **kwargs):
        self.box = Sandbox(place, who, [PYTHON, "-c", PRELUDE + UNIX + """
for line in sys.stdin:
    try:
        say(eval(line))
    except Exception as error:
        say(repr(error))
"""], **kwargs)

    def ask(self, code):
        self.box.proc.stdin.write(code.encode() + b"\n")
        self.box.proc.stdin.flush()
        line = self.box.proc.stdout.readline()
        assert line, self.box.proc.stderr.read()
        return eval(line, {"null": None, "true": True, "false": False})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.box.finish()


def shown(who):
    """A working directory, one read-only and one not, with their options."""
    dirs = [place.work(who), place.dir / "ro", place.dir / "rw"]
    for path in dirs:
        path.mkdir(exist_ok=True)
        path.chmod(0o777)
    return dirs, ["-x", dirs[1], "-X", dirs[2]]


@cases.each(WHO)
def before_and_after(who):
    """In each exposed directory, by each kind of name."""
    dirs, opts = shown(who)
    hosts = [Host(d / "early") for d in dirs]
    try:
        with Dialogue(who, opts=opts) as inside:
            hosts += [Host(d / "late") for d in dirs]
            hosts += [Host(d / "packets", socket.SOCK_SEQPACKET) for d in dirs]
            for host in hosts:
                same(inside.ask(f"to({host.path!r}, {int(host.kind)})"),
                     "EACCES")
            work = dirs[0]
            names = ["early", "./late", f"../{work.name}/late",
                     f"{work}/../rw/late"]
            inside.ask(f"os.symlink('{work}/early', '/tmp/link')")
            inside.ask("os.symlink('early', 'link')")
            os.link(work / "early", work / "hard")
            inside.ask("os.rename('late', 'moved')")
            names = [n.replace("late", "moved") if "rw" not in n else n
                     for n in names] + ["/tmp/link", "link", "hard", "moved"]
            same([inside.ask(f"to({n!r})") for n in names],
                 ["EACCES"] * len(names))
            # Through a process's own links nothing is found.
            inside.ask("os.dup2(os.open('.', os.O_RDONLY), 77)")
            for name in ("/proc/self/cwd/early", "/proc/self/fd/77/early"):
                assert inside.ask(f"to({name!r})") != "connected", name
            inside.ask("os.rename('moved', 'late')")
            os.unlink(work / "hard")
            same(inside.ask("os.unlink('link')"), None)
        same([h.visits for h in hosts], [0] * len(hosts))
    finally:
        for host in hosts:
            host.close()


@cases.each(WHO)
def among_renames(who):
    """Whatever is renamed meanwhile, by anybody: the kernel gives up names
    with `..' then, and says EAGAIN."""
    dirs, opts = shown(who)
    name, end = place.dir / "renamed", threading.Event()
    host = Host(dirs[0] / "early")

    def rename():
        while not end.is_set():
            os.rename(name, f"{name}.too")
            os.rename(f"{name}.too", name)

    name.touch()
    busy = threading.Thread(target=rename)
    busy.start()
    try:
        have, _ = probe(place, who, UNIX + f"""
say(sorted({{to("../{dirs[0].name}/early") for _ in range(3000)}}))
""", opts=opts)
    finally:
        end.set()
        busy.join()
        host.close()
    same(have, ["EACCES"])


@cases.each(WHO)
def datagrams(who):
    """They need no connection, so there are none."""
    dirs, opts = shown(who)
    hosts = [Host(d / "log", socket.SOCK_DGRAM) for d in dirs]
    have, _ = probe(place, who, f"""
        def send(path, make):
            s = make()
            return s.sendto(b"x", path)
        kinds = (socket.SOCK_DGRAM, socket.SOCK_RAW,
                 socket.SOCK_DGRAM | socket.SOCK_CLOEXEC,
                 socket.SOCK_DGRAM | (1 << 32))
        made = []
        for kind in kinds:
            for make in (lambda: socket.socket(socket.AF_UNIX, kind),
                         lambda: socket.socketpair(socket.AF_UNIX, kind)[0]):
                for path in {[h.path for h in hosts]}:
                    try:
                        made.append(attempt(send, path, make))
                    except (OverflowError, ValueError):
                        pass
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", 0))
        udp.connect(udp.getsockname())
        udp.send(b"word")
        say([sorted(set(made)), udp.recv(10).decode()])
    """, opts=opts)
    same([h.visits for h in hosts], [0] * 3)
    for host in hosts:
        host.close()
    same(have, [["EACCES"], "word"])


# Two threads, one of which changes what the other has asked for.
RACE = PRELUDE + """
import ctypes, threading
libc = ctypes.CDLL(None, use_errno=True)
own = socket.socket(socket.AF_UNIX)
own.bind("/tmp/own")
own.listen(4096)
tcp = socket.create_server(("127.0.0.1", 0), backlog=4096)
def un(path):
    return b"\\1\\0" + path.encode()
target, fair = un(sys.argv[1]), un("/tmp/own")
inet = struct.pack("=H", 2) + struct.pack("!H", tcp.getsockname()[1]) + (
    b"\\x7f\\0\\0\\1" + bytes(8))
size = max(len(target), len(fair)) + 1
target, fair, inet = (a.ljust(size, b"\\0") for a in (target, fair, inet))
buffer = ctypes.create_string_buffer(size)
stop, tries, through = False, 0, 0
def flip():
    while not stop:
        for data in (fair, target, inet, target):
            ctypes.memmove(buffer, data, size)
def swap():
    i = 0
    while not stop:
        i += 1
        with socket.socket(socket.AF_UNIX if i % 2 else socket.AF_INET) as s:
            os.dup2(s.fileno(), 99)
threads = [threading.Thread(target=f) for f in (flip, swap)]
for t in threads:
    t.start()
end = time.monotonic() + 1.5
while time.monotonic() < end or tries < 200:
    tries += 1
    kind = socket.AF_INET if tries % 3 == 0 else socket.AF_UNIX
    with socket.socket(kind) as s:
        s.setblocking(False)
        fd = 99 if tries % 2 else s.fileno()
        if libc.connect(fd, buffer, size) == 0 and fd != 99:
            through += 1
        elif ctypes.get_errno() not in (0, errno.EACCES):
            pass
stop = True
for t in threads:
    t.join()
say([tries >= 200, through > 0])
"""


@cases.each(("user", "root-r"))
def race(who):
    """What is connected to is what was looked at."""
    host = Host(place.work(who) / "h")
    box = Sandbox(place, who, [PYTHON, "-c", RACE, host.path]).finish()
    same((box.rc, box.out), (0, "[true, true]\n"))
    same(host.visits, 0)
    host.close()


@cases.each(WHO)
def own_sockets(who):
    """In private places, the working directory and without a file; of both
    kinds; from a thread, from a nested root, and its peer has a user.  On a
    tmpfs of the host's nobody can tell whose they are: there they are not."""
    kind = run(["stat", "-f", "-c", "%T", place.work(who)]).stdout.strip()
    have, _ = probe(place, who, UNIX + f"told = {kind != 'tmpfs'}" + """
import threading
def serve(path, kind=socket.SOCK_STREAM):
    s = socket.socket(socket.AF_UNIX, kind)
    s.bind(path)
    s.listen()
    return s
def talk(path, kind=socket.SOCK_STREAM, wait=10):
    s = serve(path, kind)
    c = socket.socket(socket.AF_UNIX, kind)
    c.settimeout(wait)
    c.connect(path)
    p = s.accept()[0]
    p.sendall(b"word")
    uid = struct.unpack("iii", p.getsockopt(socket.SOL_SOCKET,
                                            socket.SO_PEERCRED, 12))[1]
    return [c.recv(10).decode(), uid == os.getuid(), c.getpeername() == path
            or c.getpeername() == path.encode()]
home = os.environ["HOME"]
deep = "/tmp/" + "d" * 60
os.mkdir(deep)
os.symlink(deep, "/tmp/l")
good = [talk(p, *more) for p, *more in (
    ("/tmp/a",), ("/run/a",), (home + "/a",), ("/dev/shm/a",),
    ("a" if told else "/tmp/i",),
    (os.getcwd() + "/b" if told else "/tmp/j",), ("\\0own",), ("/tmp/c", socket.SOCK_SEQPACKET),
    ("/tmp/n", socket.SOCK_STREAM, None), (deep + "/a",), ("/tmp/l/b",))]
kept = []
def relative(where, path):
    os.chdir(where)
    kept.append(serve("rel"))
    return to(path)
os.mkdir("sub")
here = os.getcwd()
good += [relative("/tmp", "rel"), relative(here + "/sub", "../sub/rel")]
os.chdir(here)
if not told:
    kept += [serve("a"), serve("b")]
got = []
t = threading.Thread(target=lambda: got.append(to("/tmp/rel")))
t.start()
t.join()
pid = os.fork()
if pid == 0:
    import ctypes
    libc = ctypes.CDLL(None)
    libc.unshare(0x10000000 | 0x20000)
    ok = [to("/tmp/rel"), libc.chroot(b"/tmp"), to("/rel")]
    os._exit(ok != ["connected", 0, "connected"])
got.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
for name in ("a", "b", "sub/rel"):
    os.unlink(name)
os.rmdir("sub")
say([good, got])
""")
    same(have[0], [["word", True, True]] * 11 + ["connected", "connected" if
                   kind != "tmpfs" else "EACCES"])
    same(have[1], ["connected", 0])


@cases.case
def errors():
    """As the kernel has them, but for a socket in an exposed directory that
    nobody of ours listens on."""
    have, _ = probe(place, "user", UNIX + """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def connect(fd, address, size=None):
    libc.connect(fd, address, len(address) if size is None else size)
    return errno.errorcode[ctypes.get_errno()]
keep = socket.socket(socket.AF_UNIX)
u = keep.fileno()
open("/tmp/file", "w").close()
dead = socket.socket(socket.AF_UNIX)
dead.bind("/tmp/dead")
dead.close()
dead = socket.socket(socket.AF_UNIX)
dead.bind("dead")
dead.close()
say([to(p) for p in ("/tmp/none", "/tmp/file/x", "/tmp/file", "/tmp/dead",
                     "/tmp", "\\0none")] +
    [connect(-1, b"x" * 16), connect(0, b"\\1\\0/tmp"), connect(u, b"", 0),
     connect(u, b"\\1"), connect(u, b"\\2\\0" + bytes(14)),
     connect(u, b"\\1\\0" + b"x" * 200), connect(u, None, 16),
     connect(u, b"\\1\\0", -1), to("x" * 107), to("dead")])
os.unlink("dead")
""")
    same(have, ["ENOENT", "ENOTDIR", "ECONNREFUSED", "ECONNREFUSED",
                "ECONNREFUSED", "ECONNREFUSED", "EBADF", "ENOTSOCK", "EINVAL",
                "EINVAL", "EINVAL", "EINVAL", "EFAULT", "EINVAL", "ENOENT",
                "EACCES"])


@cases.case
def under_signals():
    """A signal that comes while the broker connects has the call repeated,
    which is no second connection."""
    have, _ = probe(place, "user", UNIX + """
import signal
s = socket.socket(socket.AF_UNIX)
s.bind("/tmp/often")
s.listen(100)
signal.signal(signal.SIGALRM, lambda *_: None)
signal.siginterrupt(signal.SIGALRM, False)
signal.setitimer(signal.ITIMER_REAL, 0.0001, 0.0001)
results = {}
for i in range(1500):
    c = socket.socket(socket.AF_UNIX)
    error = c.connect_ex("/tmp/often")
    results[error] = results.get(error, 0) + 1
    if error == 0:
        s.accept()[0].close()
    c.close()
signal.setitimer(signal.ITIMER_REAL, 0)
say(sorted(results.items()))
""")
    same(have, [[0, 1500]])


@cases.case
def waiting():
    """Connections that wait for somebody to accept hold up no other, and
    complete when somebody does; signals interrupt them."""
    have, _ = probe(place, "user", UNIX + """
import signal, threading
s = socket.socket(socket.AF_UNIX)
s.bind("/tmp/slow")
s.listen(0)
done = []
def wait(i):
    c = socket.socket(socket.AF_UNIX)
    c.connect("/tmp/slow")
    done.append(i)
threads = [threading.Thread(target=wait, args=(i,)) for i in range(12)]
for t in threads:
    t.start()
other = socket.create_server(("127.0.0.1", 0))
free = [tcp("127.0.0.1", 1), to("/tmp/none")]
socket.create_connection(other.getsockname(), 10).close()
before = len(done)
class Late(Exception):
    pass
def late(*_):
    raise Late
signal.signal(signal.SIGALRM, late)
signal.setitimer(signal.ITIMER_REAL, 0.2)
try:
    unix("/tmp/slow")
    alarm = "connected"
except Late:
    alarm = "late"
# That of the alarm may still stand in line; who was the last to be accepted
# need not know it yet.
kept = []
def accept():
    while True:
        kept.append(s.accept())
threading.Thread(target=accept, daemon=True).start()
for t in threads:
    t.join()
say([free, before < len(threads), alarm, len(done)])
""")
    same(have, [["ECONNREFUSED", "ENOENT"], True, "late", 12])


@cases.each(WHO)
def asked_for(who):
    """-U: they may be connected to, and datagrams be sent."""
    dirs, opts = shown(who)
    with Dialogue(who, opts=[*opts, "-U"]) as inside:
        hosts = [Host(d / "late") for d in dirs]
        log = Host(dirs[0] / "log", socket.SOCK_DGRAM)
        same([inside.ask(f"to({h.path!r})") for h in hosts],
             ["connected"] * 3)
        same(inside.ask("socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)"
                        ".sendto(b'x', 'log')"), 1)
    for host in (*hosts, log):
        host.close()


def broker_of(box):
    """The child of box that is in the host's set of process numbers."""
    path = pathlib.Path(f"/proc/{box.pid}/task/{box.pid}/children")
    for pid in map(int, path.read_text().split()):
        text = pathlib.Path(f"/proc/{pid}/status").read_text()
        if len(text.split("NSpid:")[1].split("\n")[0].split()) == 1:
            return pid
    raise AssertionError("no broker")


@cases.each(("user", "root"))
def without_broker(who):
    """It has no rights and nothing of ours open; without it there are no
    connections."""
    with Dialogue(who) as inside:
        same(inside.ask("tcp('192.0.2.1', 443)"), "192.0.2.1 443")
        pid = broker_of(inside.box.proc)
        status = dict(line.split(":\t", 1) for line in pathlib.Path(
            f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)
        same([int(status[c], 16) for c in ("CapEff", "CapPrm", "CapBnd")],
             [0] * 3)
        if os.getuid() == 0:
            fds = [os.readlink(f"/proc/{pid}/fd/{fd}")
                   for fd in os.listdir(f"/proc/{pid}/fd")]
            same(sorted(set(fds)), ["/dev/null", "anon_inode:seccomp notify"])
        os.kill(pid, signal.SIGKILL)
        same(inside.ask("tcp('192.0.2.1', 443)"), "ENOSYS")


if __name__ == "__main__":
    try:
        cases.main()
    finally:
        place.remove()
