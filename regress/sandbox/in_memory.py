#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Virtual sandboxes of a daemon: whatever is done in one by its operations, the
host's files stay as they are, and the memory comes back."""

import atexit
import glob
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from backends import Attached, Box, same  # noqa: E402
from case import Cases  # noqa: E402
from daemon import Daemon, until  # noqa: E402
from hands import HandsError  # noqa: E402

cases = Cases()
MIB = 1 << 20
ROOT = os.geteuid() == 0
USER = 'user "nobody"' if ROOT else ""
OPERATIONS = 1000
MARK = f"egressd-test-{os.getpid()}"

top = pathlib.Path(tempfile.mkdtemp(prefix="egressd-memory."))
atexit.register(shutil.rmtree, top, ignore_errors=True)
top.chmod(0o755)
for made in ("data", "out", "aside"):
    (top / made / "deep" / "deeper").mkdir(parents=True)
    (top / made / "file").write_text("as it was\n")
    (top / made / "deep" / "file").write_text("as it was\n")
# Only their mounts keep the sandbox from writing there.
for path in [top, *top.rglob("*")]:
    path.chmod(0o777 if path.is_dir() else 0o666)

daemon = Daemon(f"""
policy "none" {{ }}
sandbox "plain" virtual {{ policy "none" {USER} size 300M }}
sandbox "mounts" virtual {{
	policy "none" {USER} size 64M
	mount "{top}/data" on "/data" read-only
	mount "{top}/data/file" on "/one" read-only
	mount "{top}/out" on "/out" read-write
}}
""")
atexit.register(daemon.end)
daemon.start()
daemon.settle()


class Session:
    """One of the daemon's; as a context, a Box."""

    shell = True

    def __init__(self, sandbox):
        self.sandbox = sandbox

    def connect(self):
        return Attached(daemon, MARK)

    def __enter__(self):
        answer = daemon.ask("session.start", session_id=MARK,
                            sandbox=self.sandbox)
        assert answer.get("ok"), answer
        self.box = Box(self)
        return self.box

    def __exit__(self, *_):
        self.box.close()
        answer = daemon.ask("session.stop", session_id=MARK)
        assert answer.get("ok"), answer


def look(*tops):
    """Names, modes, sizes and times of all that lies there."""
    found = {}
    for one in tops:
        for path in [one, *one.rglob("*")]:
            st = path.lstat()
            found[str(path)] = (st.st_mode, st.st_uid, st.st_size,
                                st.st_mtime_ns, st.st_ctime_ns)
    return found


def marks():
    """Where on the host something of the sandbox's has appeared: others work
    in these directories too, so it is its name that tells."""
    homes = {str(pathlib.Path.home()), "/root", "/home", "/nonexistent"}
    found = []
    for one in ("/", "/usr", "/usr/bin", "/usr/local", "/etc", "/opt", "/srv",
                "/var", "/var/lib", "/dev", "/dev/shm", "/run", "/work",
                *homes):
        found += glob.glob(f"{one}/*{MARK}*")
    for one in ("/tmp", "/var/tmp"):
        for depth in ("", "*/", "*/*/"):
            found += glob.glob(f"{one}/{depth}*{MARK}*")
    return found


def kept():
    """Files of the host that the sandbox sees, or that are named as its."""
    paths = ["/etc/passwd", "/etc/hostname", "/etc/resolv.conf", "/usr/bin/env",
             "/bin/sh", "/proc/sys/kernel/hostname"]
    return {p: (os.stat(p).st_ino, os.stat(p).st_size, os.stat(p).st_mode)
            for p in paths if os.path.exists(p)}


def directories(box):
    found = box.sh("find / -maxdepth 3 -type d -not -path '/proc/[0-9]*' "
                   "2>/dev/null || :").splitlines()
    return found + [str(top), str(top / "aside"), str(top / "aside" / "deep"),
                    "/proc/1/root/tmp", "/proc/1/cwd", "/proc/self/root",
                    "../../../../../../tmp", str(daemon.dir)]


def attempt(box, rng, where):
    """One operation that changes something, or tries to; whether it did."""
    name = f"{where}/{MARK}-{rng.randrange(50)}"
    old = rng.choice(["/etc/passwd", "/etc/hostname", "/usr/bin/env",
                      f"{top}/aside/file", f"{top}/aside/deep/file"])
    kind = rng.randrange(8)
    try:
        if kind < 3:
            box.write(name, b"x" * rng.randrange(5000))
        elif kind == 3:
            box.call("mkdir", path=f"{name}/deep/deeper")
        elif kind == 4:
            box.write(old, b"overwritten")
        elif kind == 5:
            box.call("remove", path=rng.choice((name, old, where)),
                     recursive=True)
        elif kind == 6:
            box.call("edit", path=old, old="a", new="b")
        else:
            return "done" in box.call("exec", argv=[
                "/bin/sh", "-c", 'ln -s "$2" "$1.l" && echo w > "$1.l/$3"; '
                'rm -rf "$2"; mv "$2" "$1"; echo w > "$1.x" && echo done',
                "sh", name, old, MARK]).out.decode()
    except HandsError as error:
        assert error.code != "gone", (kind, where, old)
        return False
    return True


@cases.case
def host_unchanged():
    seed = random.randrange(1 << 32)
    rng = random.Random(seed)
    before, others = look(top), kept()
    with Session("plain") as box:
        places = directories(box)
        # Those that are the sandbox's own would be few among all.
        own = ["/tmp", "/var/tmp", "/work", "/dev/shm", "/run", "/", "~"]
        own[-1] = box.sh("echo $HOME").strip()
        done = sum(attempt(box, rng, rng.choice(rng.choice((places, own))))
                   for _ in range(OPERATIONS))
        assert done > OPERATIONS / 10, f"only {done} did anything"
        # Others of the same sandbox see what was written.
        assert MARK in box.sh("ls -R /tmp /work /var /home || :")
        same(look(top), before, f"seed {seed}")
    same(look(top), before, f"seed {seed}")
    same(kept(), others, f"seed {seed}")
    same(marks(), [], f"seed {seed}")


def shmem():
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("Shmem:"):
            return int(line.split()[1]) * 1024


@cases.case
def memory_comes_back():
    before = shmem()
    with Session("plain") as box:
        for n in range(4):
            box.write(f"/{('work', 'tmp', 'var', 'dev/shm')[n]}/big",
                      os.urandom(MIB) * 50)
        used = int(box.sh("df -B1 --output=used / | tail -1"))
        assert 200 * MIB <= used < 220 * MIB, used
        assert shmem() > before + 150 * MIB, (before, shmem())
    # Others may have some of it at the same time, but not for long.
    until("memory is given back", lambda: shmem() < before + 50 * MIB)


@cases.case
def no_process_of_the_host():
    marked = subprocess.Popen(["sleep", "98765"])
    try:
        with Session("plain") as box:
            shown = box.sh("for p in /proc/[0-9]*; do "
                           "tr '\\0' ' ' < $p/cmdline; echo; done "
                           "2>/dev/null").splitlines()
            assert 2 < len(shown) < 10, shown
            for line in shown:
                assert line.split(" ")[0] in (
                    "egressd-box", "/bin/sh", "sh", "tr", ""), shown
            same(box.call("exec", command=f"kill -0 {marked.pid}")
                 .result == {"exit_code": 0}, False)
    finally:
        marked.kill()
        marked.wait()


@cases.case
def read_only_mounts():
    before = look(top / "data")
    with Session("mounts") as box:
        same(box.read("/data/file"), b"as it was\n")
        same(box.read("/one"), b"as it was\n")
        for op, members in (
                ("write", {"path": "/data/new", "data": b"x"}),
                ("write", {"path": "/data/file", "data": b"x"}),
                ("write", {"path": "/data/deep/deeper/new", "data": b"x"}),
                ("write", {"path": "/one", "data": b"x"}),
                ("edit", {"path": "/one", "old": "as it", "new": "x"}),
                ("edit", {"path": "/data/file", "old": "as it", "new": "x"}),
                ("mkdir", {"path": "/data/made"}),
                ("remove", {"path": "/data/file"}),
                ("remove", {"path": "/data/deep", "recursive": True})):
            box.refused("denied", op, **members)
        for command in ("echo x > /data/file", "rm /data/file",
                        "chmod 600 /data/file", "touch /data/file",
                        "ln /data/file /data/other", "echo x > /one",
                        "mount -o remount,rw /data"):
            answer = box.call("exec", command=command)
            assert answer.result != {"exit_code": 0}, command
        same(look(top / "data"), before)


@cases.case
def mounts_that_may_be_written():
    with Session("mounts") as box:
        box.write("/out/deep/new", b"written")
        same((top / "out" / "deep" / "new").read_bytes(), b"written")
        box.call("remove", path="/out/deep/new")
        assert not (top / "out" / "deep" / "new").exists()


cases.main()
