#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""`egressctl run --virtual`: what a command writes is in memory and nowhere
else; and `-m`, paths of the host by other names."""

import atexit
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from runlib import ORIGIN, PYTHON, WHO, identity, place  # noqa: E402
from case import Cases  # noqa: E402

cases = Cases()
here = place()
atexit.register(here.end)
URL = f"https://{ORIGIN}:{here.origin.port}"

MARK = f"egressd-test-{os.getpid()}"

# Writes, or tries to, in every directory that it can find, by way of links
# and of other processes too.
EVERYWHERE = f"""
import ctypes, errno, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)
outside = sys.argv[1:]
made = 0
def write(path):
    global made
    try:
        with open(path, "w") as f:
            f.write("written")
        made += 1
    except OSError:
        pass
for top, dirs, files in os.walk("/"):
    if top.count("/") > 5 or top.startswith(("/proc/", "/sys/")):
        del dirs[:]
    write(top + "/{MARK}")
for n, path in enumerate(outside):
    for link in (path, "../" * 20 + path, "/proc/1/root" + path,
                 "/proc/self/root" + path, "/proc/1/cwd/" + path):
        name = f"/work/link{{n}}-{{hash(link)}}"
        os.symlink(link, name)
        write(name + "/{MARK}")
        write(link + "/{MARK}")
def call(name, *args):
    return "done" if getattr(libc, name)(*args) != -1 else \\
        errno.errorcode[ctypes.get_errno()]
def enter(kind):
    try:
        fd = os.open("/proc/1/ns/" + kind, os.O_RDONLY)
    except OSError as e:
        return errno.errorcode[e.errno]
    return call("setns", fd, 0)
print(json.dumps({{
    "made": made > 10, "cwd": os.getcwd(),
    "mount": call("mount", b"none", b"/usr", None, 0x1020, None),
    "umount": call("umount2", b"/usr", 2),
    "setns": [enter(k) for k in ("mnt", "user", "pid", "net", "cgroup")],
    "ptrace": call("ptrace", 16, 1, 0, 0),
    "chroot": call("chroot", b"/proc/1/root"),
    "outside": [p for p in outside if os.path.exists(p)],
}}))
"""


def same(have, want, why=""):
    assert have == want, f"{have!r}, expected {want!r} {why}"


def tree(*tops):
    """Names, modes, sizes and times of all that lies there."""
    found = {}
    for top in tops:
        for path in [top, *top.rglob("*")]:
            st = path.lstat()
            found[str(path)] = (st.st_mode, st.st_size, st.st_mtime_ns,
                                st.st_ctime_ns)
    return found


def marks():
    """Where on the host the command has left its mark."""
    tops = ["/", "/usr", "/usr/bin", "/usr/local", "/opt", "/etc", "/tmp",
            "/var", "/var/tmp", "/var/lib", "/dev", "/dev/shm", "/run",
            "/root", "/home", "/srv"]
    return [t for t in tops if os.path.lexists(f"{t}/{MARK}")]


@cases.each((*WHO, "root-r", "user-r"))
def host_unchanged(who):
    who, _, root = who.partition("-")
    conf, _ = here.conf(who)
    home, work = here.fresh(who, "home"), here.fresh(who, "work")
    for path in (home, work):
        (path / "mine").write_text("as it was")
        (path / "mine").chmod(0o666)
    before = tree(home, work)
    done = here.run(who, "run", "-f", conf, *(["-r"] if root else []),
                    "--virtual", "--", PYTHON, "-c", EVERYWHERE, home, work,
                    home=home, work=work)
    same((done.returncode, done.stderr), (0, ""), done.stdout)
    have = json.loads(done.stdout)
    # HOME is there by its name, and empty; root has another.
    same(have.pop("outside"), [] if root else [str(home)])
    assert have.pop("umount") in ("EPERM", "EINVAL")
    assert have.pop("chroot") in ("EPERM", "EACCES")
    same(have, {"made": True, "cwd": "/work", "mount": "EPERM",
                "setns": ["EACCES"] * 5, "ptrace": "EPERM"})
    same(tree(home, work), before)
    same(marks(), [])


@cases.case
def gate():
    """The network is as in any sandbox."""
    conf, _ = here.conf("user")
    done = here.run("user", "run", "-f", conf, "--virtual", "--", "sh", "-c",
                    f"curl -sSO {URL}/file && cat file")
    same((done.returncode, done.stdout), (0, "hello from /file\n"),
         done.stderr)


@cases.case
def size():
    conf, _ = here.conf("user")
    fill = "head -c 3M /dev/zero > /tmp/a && head -c 3M /dev/zero > ~/b"
    done = here.run("user", "run", "-f", conf, "--virtual=5M", "--", "sh",
                    "-c", fill)
    same(done.returncode, 1)
    assert "No space left on device" in done.stderr, done.stderr
    done = here.run("user", "run", "-f", conf, "--virtual", "--", "sh", "-c",
                    fill + "; df --output=size -B1 / | tail -1")
    same((done.returncode, done.stdout.strip()), (0, str(256 << 20)),
         done.stderr)
    for text in ("1K", "0", "", "5T", "-1", "1025G", "1Mx", "99999999999999"):
        done = here.run("user", "run", "-f", conf, f"--virtual={text}", "--",
                        "true")
        same((done.returncode, done.stderr), (
            125, f"egressctl: --virtual={text}: wanted a size from 1M to "
            "1024G, such as 512M\n"))


@cases.case
def working_directory():
    conf, _ = here.conf("user")
    done = here.run("user", "run", "-f", conf, "--virtual", "-w", "/a/b",
                    "--", "sh", "-c", "pwd; echo x > y")
    same((done.returncode, done.stdout, done.stderr), (0, "/a/b\n", ""))
    for opts in (("-H", here.fresh("user", "kept")),
                 ("-X", here.fresh("user", "shown"))):
        done = here.run("user", "run", "-f", conf, "--virtual", *opts, "--",
                        "true")
        same(done.returncode, 125)
        assert "virtual" in done.stderr, done.stderr


@cases.each(("user", "root", "user-local"))
def mounts(who):
    """Of the host, by another name, for reading or for writing."""
    who, _, local = who.partition("-")
    how = "-q" if local else "--virtual"
    conf, _ = here.conf(who)
    data, out = here.fresh(who, "data"), here.fresh(who, "out")
    (data / "file").write_text("of the host\n")
    (data / "tool").write_text("#!/bin/sh\necho a tool\n")
    (data / "tool").chmod(0o755)
    done = here.run(who, "run", "-f", conf, how, "-m", f"{data}:/data",
                    "--mount", f"{out}:/srv/out:rw", "-m",
                    f"{data}/file:/one:ro", "--", "sh", "-c",
                    "cat /one; /data/tool; echo w > /srv/out/w; "
                    "echo w > /data/w; echo w > /one")
    same(done.returncode, 2)
    same(done.stdout, "of the host\na tool\n")
    same(done.stderr.count("Read-only file system"), 2)
    same((out / "w").read_text(), "w\n")
    same(sorted(os.listdir(data)), ["file", "tool"])
    done = here.run(who, "run", "-f", conf, how, "-m", f"{data}:/data",
                    "--", "/data/tool")
    same((done.returncode, done.stdout), (0, "a tool\n"), done.stderr)


@cases.case
def mounts_refused():
    conf, _ = here.conf("user")
    for text in ("/srv", "/srv:", ":/x", "/srv:x", "/srv:/x:rx", ":rw"):
        done = here.run("user", "run", "-f", conf, "-m", text, "--", "true")
        same((done.returncode, done.stderr), (
            125, f"egressctl: -m {text}: wanted a path, a colon and an "
            "absolute path in the sandbox, and :rw if it may be written "
            "to\n"))


@cases.case
def mount_of_the_policy():
    """A mount that may be written to is as writable as any, and a secret in
    one is as visible."""
    into = here.fresh("user", "conf")
    conf, _ = here.conf("user", into=into)
    done = here.run("user", "run", "-f", conf, "--virtual", "-m",
                    f"{into}:/in:rw", "--", "true")
    same(done.returncode, 0)
    assert f"{conf} is in {into}, where the sandbox may write" in done.stderr
    mine = identity("user")
    key = into / "key"
    key.write_text("secret\n")
    key.chmod(0o600)
    if mine:
        os.chown(key, mine["user"], mine["group"])
    conf, _ = here.conf("user", more=f'decider "d" webhook {{ url '
                        f'"https://d.test/" key file "{key}" }}\n')
    done = here.run("user", "run", "-f", conf, "--virtual", "-m",
                    f"{into}:/in", "--", "true")
    same(done.returncode, 125)
    assert str(key) in done.stderr, done.stderr


if __name__ == "__main__":
    cases.main()
