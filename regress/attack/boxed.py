#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""The battery against sandboxes that a daemon makes, part two: from inside, by
what hands run there; what variables do; and one that takes all it can get."""

import atexit
import json
import os
import pathlib
import sys
import textwrap

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from boxedlib import (ALICE, Attached, Host, Place, Sandbox,  # noqa: E402
                      same, until)
from insidelib import (EVIL_ADDRESS, EVIL_ADDRESS6, METADATA,  # noqa: E402
                       OURS, PRELUDE, SHUT, none_of, to, world)
from backends import HandsError  # noqa: E402
from case import Cases  # noqa: E402
from daemon import BUILD  # noqa: E402
from procs import children  # noqa: E402

cases = Cases()
BACKENDS = ("local", "virtual")
place = Place()
atexit.register(place.end)
work = place.make("work", ALICE)
host = Host(f"""
{world.more()}
policy "p" {{ {SHUT} }}
sandbox "local" local {{ policy "p" user "nobody" cwd "{work}" }}
sandbox "virtual" virtual {{ policy "p" user "nobody" size 64M }}
sandbox "small" virtual {{ policy "p" user "nobody" size 8M
	limit memory 256M processes 40 file 4M cpu 1h }}
sandbox "said" virtual {{ policy "p" user "nobody" environment {{
	"SAID" "conf" "HOME" "/conf" "PATH" "/conf" }} }}
sandbox "echo" custom "/bin/cat" {{ policy "p" user "nobody" ungated }}
""")
atexit.register(host.end)
host.start()
host.settle()


class Inside(Sandbox):
    """With a daemon, and what probes have."""

    def __init__(self, *args, **fields):
        super().__init__(host, *args, **fields)

    def python(self, code, **members):
        return super().python(PRELUDE + textwrap.dedent(code), **members)


# ---- A, B, J: from inside ---------------------------------------------------------

@cases.each(BACKENDS)
def the_shipped_battery(backend):
    """`egressctl attack', inside."""
    world.outside.sent()
    with Inside(backend) as box:
        data = (BUILD / "egressctl").read_bytes()
        box.hands.call("write", data, path="egressctl", mode=0o755)
        done = box.hands.call("exec", argv=[
            "./egressctl", "-j", "attack", "-e", EVIL_ADDRESS],
            timeout_ms=200000, timeout=220)
        lines = [json.loads(line) for line in done.out.splitlines()]
        leaks = [one for one in lines[:-1] if one["result"] == "LEAKED"]
        same(leaks, [])
        same(done.result, {"exit_code": 0}, done.err)
        assert lines[-1]["blocked"] > 15, lines[-1]
    frames = [f for f in world.outside.sent() if to(EVIL_ADDRESS)(f) or
              to(METADATA)(f)]
    same(frames, [])
    same((world.evil.visits, world.evil.got), (0, []))


@cases.each(BACKENDS)
def ways_out(backend):
    """Past the gate: addresses, families and networks of one's own."""
    world.outside.sent()
    with Inside(backend) as box:
        said = box.python(f"""
            out = []
            for host in ("{EVIL_ADDRESS}", "{EVIL_ADDRESS6}", "{METADATA}",
                         "{OURS}", "127.0.0.1", "::ffff:{EVIL_ADDRESS}"):
                for port in (22, 53, 80, 443, 8443):
                    out.append(plain(host, port, get(host)))
                out.append(udp(host, 443))
            def family(*args):
                return attempt(lambda: socket.socket(*args).close() or "made")
            made = [family(f, t) for f in (17, 40, 16, 44, 31) for t in (1, 3)
                    if (f, t) != (16, 3)]
            made += [family(2, 3, 1), family(10, 3, 58)]
            CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
            net = [call(libc.unshare, CLONE_NEWNET),
                   call(libc.unshare, CLONE_NEWUSER | CLONE_NEWNET),
                   plain("{EVIL_ADDRESS}", 80, get("x"))]
            own = [call(libc.setns, os.open(f"/proc/{{p}}/ns/net", 0), 0)
                   for p in ("self", "thread-self")]
            say([out, made, net, own])
        """, timeout_ms=100000)
    none_of(said[0], [200, "SSH-2.0-evil\r\n"])
    none_of(said[1], ["made"])
    same(said[2][0], "EPERM")
    same([f for f in world.outside.sent() if to(EVIL_ADDRESS)(f)], [])
    same((world.evil.visits, world.evil.got), (0, []))


@cases.each(BACKENDS)
def control_plane_and_keys(backend):
    """Our sockets by every path, also by a link to the very file that lies in
    the working directory; no key, policy, record or command line of ours."""
    link = work / "link.sock"
    if not link.exists():
        os.link(host.socket, link)
    with Inside(backend) as box:
        said = box.python(f"""
            def unix(path):
                s = socket.socket(socket.AF_UNIX)
                s.settimeout(5)
                s.connect(path)
                s.sendall(b'{{"id":1,"op":"status"}}\\n')
                return s.recv(4096).decode()
            places = ["{host.socket}", "{link}", "link.sock", "./link.sock",
                      "/run/egressd.sock", "\\0egressd", "/proc/1/cwd/link.sock",
                      "/proc/1/root{host.socket}", "/proc/self/cwd/link.sock"]
            found = []
            for top, dirs, files in os.walk("/"):
                if top.startswith(("/proc", "/sys", "/usr")):
                    dirs[:] = []
                found += [os.path.join(top, f) for f in files
                          if f in ("egressd.conf", "audit.log")]
            seen = []
            for pid in filter(str.isdigit, os.listdir("/proc")):
                with contextlib.suppress(OSError), open(
                        f"/proc/{{pid}}/cmdline") as f:
                    seen.append(f.read().split("\\0")[0])
            say([[attempt(unix, p) for p in places], found, seen,
                 [k for k in os.environ if k.startswith("EGRESSD_")]])
        """)
    for outcome in said[0]:
        assert len(outcome) < 20, said[0]
    same(said[1], [])
    none_of([os.path.basename(s) for s in said[2]],
            ["egressd", "egressd-policyd", "egressd-tlsengine",
             "egressd-controld"])
    same(said[3], ["EGRESSD_SESSION"])


@cases.each(BACKENDS)
def hands_from_beside(backend):
    """The process that serves has the commands' uid, and is not theirs."""
    with Inside(backend) as box:
        other = Attached(host, box.name)    # another client's connection
        said = box.python("""
            pids = [int(p) for p in os.listdir("/proc") if p.isdigit()
                    and int(p) != os.getpid()]
            me = sorted(os.listdir("/proc/self/fd"))
            read, done = [], []
            for pid in pids:
                for file in ("mem", "environ", "maps", "syscall", "stack",
                             "fd/3", "fd/4", "fdinfo/3", "root/etc/passwd",
                             "cwd/.", "exe", "map_files", "auxv", "io"):
                    with contextlib.suppress(OSError):
                        path = f"/proc/{pid}/{file}"
                        if os.path.isdir(path):
                            os.listdir(path)
                        else:
                            open(path, "rb").read(1)
                        read.append([pid, file])
                with contextlib.suppress(OSError):
                    read.append([pid, os.listdir(f"/proc/{pid}/fd")])
                with contextlib.suppress(OSError):
                    open(f"/proc/{pid}/mem", "r+b").close()
                    done.append([pid, "mem"])
                for request in (16, 0x4206):
                    done.append(call(libc.ptrace, request, pid, 0, 0))
                p = libc.syscall(434, pid, 0)
                done += [call(libc.syscall, 438, p, n, 0) for n in range(8)]
                buf = ctypes.create_string_buffer(16)
                class Iov(ctypes.Structure):
                    _fields_ = [("p", ctypes.c_void_p), ("n", ctypes.c_size_t)]
                one = Iov(ctypes.addressof(buf), 8)
                two = Iov(0x400000, 8)
                for f in (libc.process_vm_readv, libc.process_vm_writev):
                    done.append(call(f, pid, ctypes.byref(one), 1,
                                     ctypes.byref(two), 1, 0))
                done.append(attempt(lambda: os.readlink(f"/proc/{pid}/ns/net")))
            say([len(pids), read, done, me])
        """)
        assert said[0] >= 3, said      # init, hands, supervisor
        same(said[1], [])
        assert set(said[2]) <= {"EPERM", "EACCES", "EBADF", "ESRCH"}, said[2]
        assert len(said[3]) <= 4, said[3]       # and the directory
        with other:
            same(other.call("exec", command="echo mine").out, b"mine\n")


@cases.each(BACKENDS)
def nothing_is_left_open(backend):
    """A command has its three, however it is started; a tty is its own."""
    with Inside(backend) as box:
        others = [Attached(host, box.name) for _ in range(5)]
        look = "ls -l /proc/self/fd | sed 's/.*> //'; cat /proc/self/stat"
        for members in ({}, {"merge": True}, {"stdin": True},
                        {"tty": {"rows": 24, "columns": 80}}):
            with box.hands.start("exec", command=look, **members) as request:
                if "stdin" in members:
                    request.end()
                out = bytes(request.wait().out).decode()
            assert "socket" not in out and "anon_inode" not in out, out
        for other in others:
            other.close()


@cases.case
def neighbours_of_the_same_user():
    """Two sandboxes of one uid and one directory: files are shared, nothing
    else is."""
    with Inside("local", "one") as one, Inside("local", "two") as two:
        server = two.hands.start("exec", argv=["/usr/bin/python3", "-c", """if 1:
            import ctypes, os, socket, sys, time
            libc = ctypes.CDLL(None)
            for path in ("sock", "\\0siege"):
                s = socket.socket(socket.AF_UNIX)
                if os.path.exists(path):
                    os.unlink(path)
                s.bind(path)
                s.listen()
                globals()[path] = s
            t = socket.socket(); t.bind(("127.0.0.1", 4711)); t.listen()
            libc.shmget(4711, 4096, 0o1666)
            open("/dev/shm/siege", "w").close()
            open("/tmp/siege", "w").close()
            open("ready", "w").close()
            sys.stdin.read()
            """], stdin=True)
        until("it listens", (work / "ready").exists)
        pids = [two.box, two.hands_pid(), *children(two.hands_pid())]
        said = one.python(f"""
            def unix(path):
                s = socket.socket(socket.AF_UNIX)
                s.connect(path)
                return "connected"
            say([[attempt(unix, p) for p in ("sock", "\\0siege")],
                 plain("127.0.0.1", 4711, b"x"),
                 call(libc.shmget, 4711, 4096, 0o666),
                 [os.path.exists(p) for p in ("/dev/shm/siege", "/tmp/siege",
                                              "sock")],
                 [attempt(os.kill, p, 9) or "killed" for p in {pids!r}],
                 [call(libc.syscall, 434, p, 0) for p in {pids!r}],
                 attempt(os.kill, -1, 0) or "some",
                 len([p for p in os.listdir("/proc") if p.isdigit()])])
        """)
        none_of(said[0], ["connected"])
        assert not str(said[1]).startswith("2"), said[1]
        same(said[2], "ENOENT")
        same(said[3], [False, False, True])
        assert set(said[4]) <= {"ESRCH", "EPERM"}, said[4]
        assert set(said[5]) == {"ESRCH"}, said[5]
        assert said[7] <= 6, said[7]
        server.end()
        same(server.wait().result, {"exit_code": 0})
        same(two.sh("echo here"), "here\n")
    for name in ("sock", "ready"):
        (work / name).unlink()


@cases.each(BACKENDS)
def who_kills_the_hands(backend):
    """Ends its own sandbox and no other; the first process ignores it."""
    with Inside("virtual", "other") as other:
        with Inside(backend) as box:
            box.sh("kill -9 1; kill -STOP 1; kill -TERM 1")
            same(box.sh("echo here"), "here\n")
            try:
                box.sh("kill -9 -1; kill -9 2 $PPID; sleep 60")
            except HandsError as why:
                same(why.code, "gone")
            host.gone(box.name)
        same(other.sh("echo here"), "here\n")
    host.works()


# ---- names and variables -----------------------------------------------------------------

HOSTILE_ENV = {
    "LD_PRELOAD": "/work/evil.so", "LD_LIBRARY_PATH": "/work",
    "GLIBC_TUNABLES": "glibc.malloc.check=3", "MALLOC_CHECK_": "3",
    "MALLOC_ARENA_MAX": "1", "TMPDIR": "/work", "HOME": "/srv/other",
    "USER": "root", "LOGNAME": "root", "PATH": "/work:/usr/bin:/bin",
    "LOCPATH": "/work", "GCONV_PATH": "/work", "RES_OPTIONS": "debug",
    "HOSTALIASES": "/work/x", "TZ": "/work/x", "SSL_CERT_FILE": "/work/ca",
    "NODE_EXTRA_CA_CERTS": "/work/ca", "EGRESSD_SESSION": "other",
    "EGRESSD_GIVEN_X": "x", "LINES": "a\nb\x1b[2J\n", "PWD": "/root",
    "JAVA_TOOL_OPTIONS": "-Djavax.net.ssl.trustStore=/work/x",
    "EMPTY": "", "EQUALS": "a=b=c",
}
OURS_ALONE = ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "EGRESSD_SESSION", "PWD",
              "HOME")


@cases.case
def variables_of_a_client():
    """Commands have them, but for those that are ours; box, which runs before
    anything is confined, has none under the name that it would obey."""
    with Inside("virtual", env=HOSTILE_ENV) as box:
        text = pathlib.Path(f"/proc/{box.box}/environ").read_bytes()
        names = [v.split(b"=")[0].decode() for v in text.split(b"\0") if v]
        same(sorted(n for n in names if not n.startswith("EGRESSD_GIVEN_")),
             ["HOME", "USER"])
        assert b"\0HOME=/srv/other" not in b"\0" + text
        have = box.python("say(dict(os.environ))",
                          env={"LD_PRELOAD": "", "GLIBC_TUNABLES": ""})
        have |= box.python("""say({k: v for k, v in (
            e.split("=", 1) for e in open("/proc/self/environ").read()
            .split("\\0") if e) if k in ("LD_PRELOAD", "GLIBC_TUNABLES")})""")
        for key, value in HOSTILE_ENV.items():
            if key not in (*OURS_ALONE, "JAVA_TOOL_OPTIONS"):
                same(have[key], value, key)
        for key in OURS_ALONE:
            assert have[key] != HOSTILE_ENV[key], (key, have[key])
        assert have["JAVA_TOOL_OPTIONS"].count("trustStore=") == 2
        same(have["EGRESSD_SESSION"], box.name)
        same(len([k for k in have if k.startswith("EGRESSD_GIVEN_")]), 1)
        passwd = box.sh("id -un; grep -c . /etc/passwd")
        same(passwd.split()[0], "nobody")


@cases.case
def variables_of_a_block():
    """A client's are on top of the block's, and those on top of ours; no name
    is there twice."""
    with Inside("said", env={"SAID": "client", "PATH": "/usr/bin"}) as box:
        text = box.hands.call("exec", argv=["/usr/bin/env", "-0"]).out
        names = [v.split(b"=")[0] for v in text.split(b"\0") if v]
        same(len(names), len(set(names)), names)
        same(box.sh("echo $SAID $PATH"), "client /usr/bin\n")


@cases.case
def names_that_are_none():
    for env in ({"A=B": "x"}, {"": "x"}, {"A\0B": "x"}, {"A\nB": "x"},
                {"1A": "x"}, {"A-B": "x"}, {"A": 1}, {"A": None}, ["A=b"],
                {"A": "x" * 70000}, {f"A{n}": "x" * 64 for n in range(600)}):
        with host.client() as client:
            client.send({"id": 1, "op": "session.start", "sandbox": "virtual",
                         "env": env})
            answer = client.read()
            assert answer is None or "error" in answer, (str(env)[:80], answer)
    same(host.sessions(), {})


# ---- one that takes all it can get ---------------------------------------------------------

GREEDY = {
    "processes": "i=0; while [ $i -lt 200 ]; do sleep 300 & i=$((i+1)); done; "
                 "echo $i",
    "bomb": "b() { b | b & }; b; sleep 2",
    "memory": "/usr/bin/python3 -c 'x = [bytearray(1 << 20) for _ in "
              "range(1024)]'",
    "file": "head -c 64M /dev/zero > /work/big",
    "space": "i=0; while head -c 1M /dev/zero >/work/$i; do i=$((i+1)); "
             "[ $i -lt 100 ] || break; done; echo $i",
    "names": "i=0; while mkdir -p /work/d$((i%100))/$i; do i=$((i+1)); "
             "[ $i -lt 20000 ] || break; done; echo $i",
    "output": "head -c 8M /dev/zero",
}


@cases.each(GREEDY)
def one_that_takes_all(what):
    """Limits hold where there are any; the neighbour, of the same uid, and the
    daemon go on, and the end is the end of everything."""
    with Inside("virtual", "other") as other:
        before = host.held()
        with Inside("small", "greedy") as box:
            try:
                done = box.hands.call("exec", command=GREEDY[what],
                                      timeout_ms=20000, timeout=60)
                assert what in ("output", "processes", "names", "space",
                                "bomb") or done.result != {"exit_code": 0}, done
                if what == "space":
                    assert int(done.out) < 10, done.out
            except HandsError as why:
                assert why.code in ("timeout", "failed", "gone"), why
            same(other.sh("echo here"), "here\n")
            mine = [p for p in pathlib.Path("/proc").glob("[0-9]*/status")
                    if box.box in lineage(p)]
            assert len(mine) <= 50, len(mine)
            host.works()
        same(other.sh("echo here"), "here\n")
        until("nothing is held", lambda: all(
            now <= then for now, then in zip(host.held(), before)))


def lineage(path):
    """A process and those above it; [] if it has ended."""
    above, pid = [], int(path.parent.name)
    try:
        while pid > 1 and len(above) < 64:
            above.append(pid)
            text = pathlib.Path(f"/proc/{pid}/status").read_text()
            pid = int(text.split("\nPPid:")[1].split()[0])
    except OSError:
        pass
    return above


cases.main()
