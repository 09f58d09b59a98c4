#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""The battery, parts A, B and J: ways out of the local sandbox, tried from
inside it."""

import ctypes
import os
import pathlib
import platform
import socket
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from boxlib import (PYTHON, WHO, Place, Sandbox, identity,  # noqa: E402
                    probe, run_box, same)
from case import Cases, Skip  # noqa: E402
from standin_engine import Engine, sealed  # noqa: E402

cases = Cases()
place = Place()
libc = ctypes.CDLL(None, use_errno=True)
ADD_KEY, REQUEST_KEY, KEYCTL = ((248, 249, 250)
                                if platform.machine() == "x86_64"
                                else (217, 218, 219))

# Signals, traces and system calls, by ctypes where Python has no word.
LIBC = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)

def call(function, *args):
    ctypes.set_errno(0)
    if function(*args) == -1:
        return errno.errorcode[ctypes.get_errno()]
    return "done"

def netlink(protocol, kind, flags, body):
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
    s.settimeout(5)
    s.send(struct.pack("=IHHII", 16 + len(body), kind, flags | 5, 1, 0) + body)
    return errno.errorcode.get(-struct.unpack_from("=i", s.recv(4096), 16)[0],
                               "done")
"""


class Listener:
    """A server of the host that counts who comes."""

    def __init__(self, family, address):
        self.sock = socket.socket(family)
        self.sock.bind(address)
        self.sock.listen()
        self.visits = 0
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        try:
            while True:
                self.sock.accept()[0].close()
                self.visits += 1
        except OSError:
            pass

    def close(self):
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()


def host_address():
    """Of the interface that leads out, if there is one."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        s.connect(("192.0.2.1", 9))
        return s.getsockname()[0]
    except OSError:
        return None
    finally:
        s.close()


@cases.each(WHO)
def host_listeners(who):
    """The host's loopback and its other addresses."""
    address = host_address()
    listener = Listener(socket.AF_INET, ("0.0.0.0", 0))
    port = listener.sock.getsockname()[1]
    try:
        have, engine = probe(place, who, f"""
            say([tcp("127.0.0.1", {port}), tcp("{address or '192.0.2.1'}",
                                               {port})])
        """)
    finally:
        listener.close()
    same(have, ["ECONNREFUSED", f"{address or '192.0.2.1'} {port}"])
    same(len(engine.connections), 1)
    same(listener.visits, 0)


@cases.each(WHO)
def host_sockets(who):
    """Unix sockets of the host, abstract and in /tmp, /run and home."""
    name = f"egressd-{os.getpid()}-{who}"
    where = [pathlib.Path(tempfile.mkdtemp(dir="/tmp")), place.home(who)]
    if os.getuid() == 0:
        where.append(pathlib.Path("/run"))
    paths = [str(d / name) for d in where]
    listeners = [Listener(socket.AF_UNIX, p) for p in ["\0" + name] + paths]
    try:
        have, _ = probe(place, who, f"""
            def connect(path):
                s = socket.socket(socket.AF_UNIX)
                s.connect(path)
                return "connected"
            say([attempt(connect, p) for p in ["\\0{name}"] + {paths}])
        """)
    finally:
        for listener in listeners:
            listener.close()
        for path in paths:
            os.unlink(path)
        where[0].rmdir()
    same(have, ["ECONNREFUSED"] + ["ENOENT"] * len(paths))
    same([li.visits for li in listeners], [0] * len(listeners))


@cases.each(WHO)
def processes(who):
    """Nobody but the sandbox's own; its first one is untouchable."""
    have, _ = probe(place, who, LIBC + """
def read(path):
    with open(path, "rb") as f:
        return len(f.read())
say({
    "pids": len([p for p in os.listdir("/proc") if p.isdigit()]),
    "parent": os.getppid(),
    "read": [attempt(read, f"/proc/1/{f}") for f in
             ("environ", "mem", "maps", "auxv", "io")],
    "look": [attempt(os.listdir, f"/proc/1/{f}") for f in
             ("root", "cwd", "map_files")],
    "links": [attempt(os.readlink, f"/proc/1/{f}") for f in
              ("exe", "fd/0", "ns/net", "ns/user", "ns/mnt")],
    "attach": [call(libc.ptrace, 16, 1, 0, 0), call(libc.ptrace, 0x4206, 1, 0,
               0)],
    "kill": [attempt(os.kill, 1, s) for s in (9, 15, 19)],
    "alive": os.path.exists("/proc/1"),
})
""")
    same(have["parent"], 1)
    same(have["pids"], 2)
    for key in ("read", "look", "links", "attach"):
        assert set(have[key]) <= {"EACCES", "EPERM"}, (key, have[key])
    same(have["alive"], True)


@cases.each(WHO)
def caller_is_not_signalled(who):
    """kill(0) and kill(-1) end the sandbox at most, not who waits for it."""
    code = "import os; os.kill(0, 9)"
    outer = """
import subprocess, sys
p = subprocess.Popen(sys.argv[1:], pass_fds=[int(sys.argv[3])])
print("alive", p.wait())
"""
    for inner in (code, code.replace("(0", "(-1"),
                  "import os, time; os.setsid()\n" + code):
        done = run_box(place, who, PYTHON, "-c", inner,
                       wrap=[PYTHON, "-c", outer],
                       start_new_session=True)
        assert done.out.startswith("alive"), (inner, done.rc, done.err)


@cases.each(WHO)
def network_is_fixed(who):
    """Routes, addresses, rules and reports are not the command's to change."""
    have, _ = probe(place, who, LIBC + """
route = struct.pack("=BBBBBBBBI", 2, 0, 0, 0, 255, 4, 254, 2, 0)
link = struct.pack("=BBHiII", 0, 0, 0, 1, 0, 1)
table = struct.pack("=BBH", 1, 0, 0) + struct.pack("=HH8s", 12, 1, b"egressd")
batch = lambda kind: struct.pack("=IHHII", 20, kind, 1, 0, 0) + struct.pack(
    "!BBH", 0, 0, 10)
def nft():
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)
    s.settimeout(5)
    body = struct.pack("=IHHII", 16 + len(table), 0xa02, 5, 1, 0) + table
    s.send(batch(16) + body + batch(17))
    return errno.errorcode.get(-struct.unpack_from("=i", s.recv(4096), 16)[0],
                               "done")
nflog = struct.pack("!BBH", 0, 0, 1) + struct.pack("=HHB3x", 5, 1, 1)
say([netlink(0, 24, 0x600, route), netlink(0, 16, 0, link), nft(),
     netlink(12, 0x401, 0, nflog),
     attempt(open, "/proc/sys/net/ipv4/ip_forward", "w"),
     call(libc.sethostname, b"x", 1)])
""")
    same(have[:4], ["EPERM"] * 4)
    assert have[4] in ("EROFS", "EACCES"), have
    assert have[5] == "done" or who == "user", have


@cases.each(WHO)
def further_namespaces(who):
    """It may make its own, and gains nothing: no network, no other mounts."""
    have, engine = probe(place, who, LIBC + f"""
NEWUSER, NEWNS, NEWNET, NEWPID = 0x10000000, 0x20000, 0x40000000, 0x20000000
def within(*steps):
    r, w = os.pipe()
    if os.fork() == 0:
        out = [s() for s in steps]
        os.write(w, json.dumps(out).encode())
        os._exit(0)
    os.wait()
    return json.loads(os.read(r, 4096))
def unshare(flags):
    return lambda: call(libc.unshare, flags)
def mount(flags, target, kind=None):
    return lambda: call(libc.mount, b"none", target, kind, flags, None)
REMOUNT, BIND = 32, 4096
say([
    within(unshare(NEWUSER | NEWNET), lambda: tcp("192.0.2.1", 443),
           lambda: tcp("198.18.0.1", 65001), lambda: tcp("127.0.0.1", 65001)),
    within(unshare(NEWUSER | NEWNS), mount(REMOUNT | BIND, b"/usr"),
           mount(REMOUNT | BIND, b"/proc/sys"), mount(REMOUNT | BIND, b"/etc"),
           mount(REMOUNT | BIND, b"/"),
           lambda: call(libc.umount2, b"/proc/sys", 2),
           lambda: call(libc.umount2, b"/etc/resolv.conf", 2),
           lambda: call(libc.umount2, b"/proc/timer_list", 2)),
    within(unshare(NEWUSER | NEWNS | NEWPID),
           lambda: os.waitstatus_to_exitcode(os.wait()[1]) if os.fork() else
           os._exit(call(libc.mount, b"p", b"/proc", b"proc", 0, None)
                    == "done")),
    within(lambda: call(libc.setns, os.open("/proc/self/ns/net", 0), NEWNET)),
])
""")
    same(have[0][0], "done")
    assert set(have[0][1:]) <= {"ENETUNREACH", "EADDRNOTAVAIL"}, have[0]
    same(have[1][0], "done")
    assert set(have[1][1:]) <= {"EPERM", "EINVAL", "EACCES"}, have[1]
    same(have[2], ["done", 0])
    same(have[3], ["EPERM"])
    same(engine.connections, [])


@cases.each(WHO)
def other_sockets(who):
    """Families that do not know network namespaces, and ways to make them."""
    have, _ = probe(place, who, LIBC + """
say([attempt(socket.socket, f, t) for f, t in ((40, 1), (40, 2), (38, 5),
     (30, 5), (31, 3), (42, 2), (17, 3), (44, 3))] +
    [call(libc.syscall, 425, 8, bytes(120)),
     attempt(socket.socketpair, 30, 5),
     attempt(socket.socketpair) and "pair"])
""")
    same(have, ["EAFNOSUPPORT"] * 8 + ["ENOSYS", "EAFNOSUPPORT", "pair"])


@cases.case
def old_calls():
    """The same with the numbers of 32-bit programs."""
    if platform.machine() != "x86_64":
        raise Skip("not x86")
    # push rbx; mov eax, nr; mov ebx, b; mov ecx, c; xor edx, edx; int 0x80;
    # pop rbx; ret
    have, _ = probe(place, "user", LIBC + """
import mmap
page = mmap.mmap(-1, 4096, prot=7)
code = ctypes.addressof(ctypes.c_char.from_buffer(page))
def old(nr, b, c):
    word = lambda n: struct.pack("<I", n).hex()
    page.seek(0)
    page.write(bytes.fromhex(f"53 b8{word(nr)} bb{word(b)} b9{word(c)}"
                             "31d2 cd80 5b c3"))
    n = ctypes.CFUNCTYPE(ctypes.c_int)(code)()
    return errno.errorcode[-n] if n < 0 else "done"
say([old(359, 40, 1), old(359, 2, 1), old(102, 1, 0), old(54, 0, 0x5412),
     old(425, 8, 0), call(libc.syscall, 0x40000000 | 41, 40, 1, 0),
     old(286, 0, 0), old(287, 0, 0), old(288, 1, 0),
     old(97, 1, 0), old(289, 2, 0), old(359, 1, 2), old(359, 1, 1)])
""")
    if have[1] != "done":
        raise Skip(f"no 32-bit calls here: {have[1]}")
    same(have, ["EAFNOSUPPORT", "done", "ENOSYS", "EPERM"] + ["ENOSYS"] * 5 +
         ["EPERM", "EPERM", "EACCES", "done"])


@cases.each(("user", "root"))
def descriptors(who):
    """What the caller left open is not passed on."""
    extra = [os.open("/", os.O_RDONLY), os.open("/etc/passwd", os.O_RDONLY)]
    pair = socket.socketpair()
    fds = extra + [s.fileno() for s in pair]
    try:
        have, _ = probe(place, who, """
            fds = os.listdir("/proc/self/fd")
            say(sorted(int(f) for f in fds if
                       os.path.exists(f"/proc/self/fd/{f}") or int(f) > 3))
        """, pass_fds=fds)
    finally:
        for fd in extra:
            os.close(fd)
        for sock in pair:
            sock.close()
    same(have, [0, 1, 2])


@cases.case
def directory_as_input():
    fd = os.open("/", os.O_RDONLY)
    done = run_box(place, "user", "/bin/true", stdin=fd)
    os.close(fd)
    same(done.rc, 125)
    assert "descriptor 0 is a directory" in done.err, done.err


# A key of the user's own keyring, for a minute, and the numbers of both.
OWN_KEY = f"""
import ctypes
call = ctypes.CDLL(None).syscall
key = call({ADD_KEY}, b"user", b"egressd-own", b"secret", 6, -4)
call({KEYCTL}, 15, key, 60)
print(call({KEYCTL}, 0, -4, 1), key)
"""


@cases.each(WHO)
def keyring(who):
    """Keys of the caller's session, and of its uid, which is the same in any
    user namespace."""
    done = subprocess.run([PYTHON, "-c", OWN_KEY], capture_output=True,
                          text=True, **identity(who))
    ring, own = map(int, done.stdout.split())
    libc.syscall(KEYCTL, 1, None)               # a session keyring of our own
    key = libc.syscall(ADD_KEY, b"user", b"egressd-test", b"secret", 6, -3)
    if key == -1 or own == -1:
        raise Skip("no keyrings here")
    found = libc.syscall(REQUEST_KEY, b"user", b"egressd-test", None, 0)
    same(found, key)
    have, _ = probe(place, who, LIBC + f"""
def key(nr, *args):
    return call(libc.syscall, nr, *[a if isinstance(a, bytes) else
                ctypes.c_long(a) for a in args])
say([key({REQUEST_KEY}, b"user", b"egressd-test", 0, 0),
     key({ADD_KEY}, b"user", b"x", b"x", 1, -3), key({KEYCTL}, 11, {key}, 0, 0),
     key({KEYCTL}, 8, {ring}, -3), key({KEYCTL}, 11, {own}, 0, 0)])
""")
    same(have, ["ENOSYS"] * 5)


@cases.each(WHO)
def control_groups(who):
    """Their file system, where the caller's uid may kill and freeze, cannot be
    mounted, nor a namespace be made that it could be mounted from."""
    have, _ = probe(place, who, LIBC + """
NEWUSER, NEWNS, NEWCGROUP = 0x10000000, 0x20000, 0x2000000
def mount(kind=b"cgroup2", data=None):
    return call(libc.mount, b"none", b"/run", kind, 0, data)
def within(flags):
    r, w = os.pipe()
    if os.fork() == 0:
        out = [call(libc.unshare, flags), mount(), mount(b"cgroup", b"none,"
               b"name=x")]
        os.write(w, json.dumps(out).encode())
        os._exit(0)
    os.wait()
    return json.loads(os.read(r, 4096))
say([mount(), within(NEWUSER | NEWNS), within(NEWUSER | NEWNS | NEWCGROUP),
     within(NEWCGROUP)[0]])
""")
    same(have[:3], ["EPERM", ["done", "EPERM", "EPERM"],
                    ["ENOSPC", "EPERM", "EPERM"]])
    assert have[3] in ("EPERM", "ENOSPC"), have


@cases.each(("cwd", "-w", "-x", "-X"))
def link_takes_the_place(how):
    """Between the look at a name and its use, as a neighbour may do that can
    write there: what the link shows is not shown."""
    base = place.work("user") / f"swap{how}"
    sub, secret = base / "sub", place.dir / f"secret{how}"
    for path in (base, sub, secret):
        path.mkdir()
        os.chmod(path, 0o777)
    (secret / "file").write_text("topsecret")

    def script(engine):
        sub.rename(base / "old")
        sub.symlink_to(secret)
        engine.answer()
    done = run_box(place, "user", "/bin/sh", "-c",
                   f"cat {sub}/file; echo x > {sub}/made", script=script,
                   **({"cwd": sub} if how == "cwd" else {"opts": [how, sub]}))
    same((done.rc, done.out, list(secret.iterdir())),
         (125, "", [secret / "file"]))
    assert f"cannot expose {sub}: a symbolic link" in done.err, done.err


def trust(kind, fd=None, body=None):
    return lambda e: e.send("BOX_TRUST", bytes([kind]) if body is None else
                            body, sealed(b"x") if fd is None else fd())


ALL = [trust(kind) for kind in range(5)]
SCRIPTS = {
    "hangs_up": [lambda e: e.die()],
    "unknown_type": [lambda e: e.send(9999)],
    "type_zero": [lambda e: e.send(0)],
    "not_for_box": [lambda e: e.send("VERDICT", bytes(40))],
    "from_box_only": [lambda e: e.send("BOX_READY", b"\1")],
    "go_without_trust": [Engine.go],
    "go_without_java": [trust(0), trust(1), Engine.go],
    "go_without_nss": ALL[:3] + [Engine.go],
    "go_too_long": ALL + [lambda e: e.go(b"x" * 256)],
    "go_with_nul": ALL + [lambda e: e.go(b"a\0b")],
    "go_with_more": ALL + [lambda e: e.send("BOX_GO", b"\0\1a\0b")],
    "go_with_descriptor": ALL + [
        lambda e: e.send("BOX_GO", b"\0\1a\0", sealed(b"x"))],
    "speaks_after_go": ALL + [
        lambda e: e.ours.sendall(e.frame("BOX_GO", b"\0\1a\0") * 2)],
    "trust_kind_seven": [trust(7)],
    "trust_twice": [trust(0), trust(0)],
    "trust_unsealed": [trust(0, lambda: sealed(b"x", 0))],
    "trust_half_sealed": [trust(0, lambda: sealed(b"x", 0x2))],
    "trust_empty": [trust(0, lambda: sealed(b""))],
    "trust_huge": [trust(0, lambda: sealed(bytes(5 << 20)))],
    "trust_no_file": [trust(0, lambda: os.pipe()[0])],
    "trust_without_descriptor": [lambda e: e.send("BOX_TRUST", b"\0")],
    "trust_short": [trust(0, body=b"")],
    "trust_long": [trust(0, body=b"\0\0")],
    "bad_length": [lambda e: e.ours.sendall(b"\0\0\0\1\0\0\0\3\0\0\0\0")],
}


@cases.each(SCRIPTS)
def hostile_engine(name):
    """A bad word from the engine: no command, and it says so."""
    def script(engine):
        for step in SCRIPTS[name]:
            step(engine)
    done = run_box(place, "user", "/bin/echo", "ran", script=script)
    same(done.rc, 125)
    same(done.out, "")
    assert done.err.startswith("egressd-box: "), done.err


@cases.case
def silent_engine():
    """One that says nothing is not waited for."""
    done = run_box(place, "user", "/bin/echo", "ran", script=lambda e: None)
    same((done.rc, done.out), (125, ""))
    assert "did not answer in 10 s" in done.err, done.err


@cases.each(("user", "root"))
def engine_dies(who):
    """Connections are refused from then on, and the exit code tells."""
    box = Sandbox(place, who, [PYTHON, "-uc", """
import socket, sys
def tcp(port):
    try:
        s = socket.create_connection(("192.0.2.1", port), 5)
        return s.makefile().readline().strip()
    except OSError as e:
        return e.errno
print(tcp(443), flush=True)
sys.stdin.readline()
print(tcp(443), tcp(53), tcp(8080), flush=True)
"""])
    same(box.proc.stdout.readline(), b"192.0.2.1 443\n")
    box.engine.stop()
    box.finish(b"\n")
    same(box.out, "111 111 111\n")
    same(box.rc, 125)
    assert "the gate is gone" in box.err, box.err
    assert "the gate was lost" in box.err, box.err


if __name__ == "__main__":
    try:
        cases.main()
    finally:
        place.remove()
