#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Mounts into virtual sandboxes of a daemon, by the control socket: when one
starts and while it runs, where the configuration permits them; what they show,
what cannot be done to them from inside, and that nothing stays."""

import atexit
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from backends import Attached, Box, same  # noqa: E402
from case import Cases, Skip  # noqa: E402
from daemon import Client, Daemon, until  # noqa: E402
from procs import children, descriptors  # noqa: E402

cases = Cases()
ROOT = os.geteuid() == 0
USER = 'user "nobody"' if ROOT else ""
MARK = f"egressd-mounts-{os.getpid()}"

top = pathlib.Path(tempfile.mkdtemp(prefix="egressd-mounts."))
atexit.register(shutil.rmtree, top, ignore_errors=True)
for made in ("data/deep", "out", "aside"):
    (top / made).mkdir(parents=True)
for made in ("data/file", "data/deep/file", "out/file", "aside/file"):
    (top / made).write_text("as it was\n")
# Only a mount keeps the sandbox from writing there.
for path in [top, *top.rglob("*")]:
    path.chmod(0o777 if path.is_dir() else 0o666)
(top / "data/fifo").parent.joinpath("link").symlink_to("deep")
os.mkfifo(top / "data/fifo")

CONF = f"""
policy "none" {{ }}
sandbox "mounts" virtual {{
	policy "none" {USER} size 64M
	mount below "{top}/data"
	mount below "{top}/out" read-write
	mount "{top}/out" on "/conf" read-write
}}
sandbox "plain" virtual {{ policy "none" {USER} }}
sandbox "local" local {{ policy "none" {USER} cwd "{top}/aside" }}
sandbox "custom" custom "/bin/cat" {{ policy "none" {USER} ungated }}
"""
daemon = Daemon(CONF)
atexit.register(daemon.end)
daemon.start()
daemon.settle()


class Session:
    """One of the daemon's; as a context, a Box."""

    shell = True

    def __init__(self, sandbox="mounts", **fields):
        self.sandbox = sandbox
        self.fields = fields

    def connect(self):
        return Attached(daemon, MARK)

    def __enter__(self):
        answer = daemon.ask("session.start", session_id=MARK,
                            sandbox=self.sandbox, **self.fields)
        assert answer.get("ok"), answer
        self.box = Box(self)
        return self.box

    def __exit__(self, *_):
        self.box.close()
        daemon.ask("session.stop", session_id=MARK)


def mount(source, target, **fields):
    return daemon.ask("session.mount", session_id=MARK, source=str(source),
                      target=target, **fields)


def mounted(source, target, **fields):
    answer = mount(source, target, **fields)
    same(answer.get("ok"), True, answer)


def refused(code, source, target, *words, **fields):
    answer = mount(source, target, **fields)
    assert "error" in answer, answer
    same(answer["error"]["code"], code, answer)
    for word in words:
        assert word in answer["error"]["message"], answer


def look():
    """All that lies there: names, modes, sizes and times."""
    return {str(p): (p.lstat().st_mode, p.lstat().st_size,
                     p.lstat().st_mtime_ns) for p in top.rglob("*")}


def workers():
    return [p for p, name in children(daemon.process.pid).items()
            if p not in daemon_pids]


daemon_pids = set(children(daemon.process.pid))


# ---- while it runs --------------------------------------------------------------

@cases.case
def it_is_seen_at_once():
    """By hands, by a command that runs already and one that begins later."""
    with Session() as box:
        waits = box.start("exec", command="read x; cat /in/it/file; read x",
                          stdin=True)
        mounted(top / "data", "/in/it")
        waits.send(b"go\n")
        waits.until(lambda r: r.out)
        same(bytes(waits.out), b"as it was\n")
        same(box.read("/in/it/deep/file"), b"as it was\n")
        same(box.sh("cat /in/it/file"), "as it was\n")
        waits.send(b"go\n")
        waits.end()
        same(waits.wait().result, {"exit_code": 0})
        # What changes outside, changes inside.
        (top / "data/file").write_text("changed\n")
        same(box.read("/in/it/file"), b"changed\n")
        (top / "data/file").write_text("as it was\n")


@cases.case
def a_file_alone():
    with Session() as box:
        mounted(top / "data/file", "/etc-like/one")
        same(box.read("/etc-like/one"), b"as it was\n")
        box.write("there", b"x")
        mounted(top / "data/deep/file", "/work/there")
        same(box.read("there"), b"as it was\n")
        refused("mount_failed", top / "data", "/work/there", "no directory")
        refused("mount_failed", top / "data/file", "/tmp", "a directory")


@cases.case
def read_only_is_read_only():
    before = look()
    with Session() as box:
        mounted(top / "data", "/data")
        for op, members in (("write", {"data": b"x", "path": "/data/new"}),
                            ("write", {"data": b"x", "path": "/data/file"}),
                            ("mkdir", {"path": "/data/new"}),
                            ("remove", {"path": "/data/file"}),
                            ("edit", {"path": "/data/file", "old": "it",
                                      "new": "was"})):
            data = members.pop("data", None)
            try:
                box.call(op, data, **members)
                raise AssertionError(f"{op} was done")
            except Exception as why:
                assert "ead-only" in str(why), why
        out = box.sh("""
            touch /data/a; chmod 0 /data/file; rm -f /data/file
            mv /data/file /data/b; ln /data/file /work/l; umount /data
            mount -o remount,rw /data; mount -o remount,bind,rw /data
            echo x >/data/file; mv /data /away; rmdir /data
            for how in "" --map-root-user; do
                unshare --user $how --mount sh -c 'mount -o remount,bind,rw \
                    /data; umount /data; umount -l /data
                    mount --make-private /data; mount --bind /data /mnt
                    mount -o remount,bind,rw /mnt; touch /mnt/x; echo x \
                    >/data/file'
            done 2>&1
            cat /data/file; grep ' /data ' /proc/self/mountinfo
            """)
        assert "as it was" in out, out
        line = out.splitlines()[-1]
        for word in ("ro", "nosuid", "nodev"):
            assert word in line.split()[5].split(","), line
    same(look(), before)


@cases.case
def read_write_where_the_block_says_so():
    with Session() as box:
        mounted(top / "out", "/w", write=True)
        box.write("/w/new", b"from inside")
        same((top / "out/new").read_bytes(), b"from inside")
        (top / "out/new").unlink()
        mounted(top / "out", "/r")
        same(box.sh("touch /r/x 2>/dev/null && echo yes; true"), "")
        refused("not_permitted", top / "data", "/w2", "read-write",
                write=True)
        # What is mounted read-write does not get a directory for a target.
        before = look()
        refused("mount_failed", top / "data", "/w/made", "not made")
        refused("mount_failed", top / "data", "/conf/a/b", "not made")
        same(look(), before)


@cases.case
def locked_by_the_kernel():
    """Not even who has every right in the commands' namespaces can open it."""
    if not ROOT:
        raise Skip("needs root")
    with Session() as box:
        mounted(top / "data", "/data")
        pid = box.start("exec", command="echo $$; read x", stdin=True)
        pid.until(lambda r: r.out)
        inside = [p for p in map(int, filter(str.isdigit, os.listdir("/proc")))
                  if cmdline(p) == "/bin/sh\0-c\0echo $$; read x\0"]
        same(len(inside), 1)
        for command in ("mount -o remount,bind,rw /data", "umount /data",
                        "umount -l /data"):
            done = subprocess.run(
                ["nsenter", "-t", str(inside[0]), "-U", "-m",
                 "--preserve-credentials", "sh", "-c", command],
                capture_output=True, text=True, check=False)
            assert done.returncode != 0, (command, done)
        pid.end()
        pid.wait()
        refused_write = box.sh("touch /data/x 2>&1; true")
        assert "ead-only" in refused_write, refused_write


def cmdline(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


@cases.case
def in_a_namespace_of_a_command():
    """One that a command has made, as browsers do, sees what comes later."""
    with Session() as box:
        waits = box.start("exec", stdin=True, command="unshare -Urm --propagation "
                          "unchanged sh -c 'echo in; read x; cat /late/file'")
        waits.until(lambda r: r.out)
        mounted(top / "data", "/late")
        waits.send(b"\n")
        waits.end()
        waits.wait()
        same(bytes(waits.out), b"in\nas it was\n")


# ---- targets ----------------------------------------------------------------------

@cases.case
def targets():
    before = look()
    with Session() as box:
        box.sh("mkdir -p /a/b; ln -s /proc /a/l; ln -s / /a/r; ln -s b /a/s;"
               "ln -s /data /x; ln -s ../../../.. /a/up; touch /a/f")
        for target in ("/proc", "/proc/1", "/proc/self/root/x", "/sys",
                       "/sys/x", "/dev", "/dev/x", "/dev/shm/x",
                       "/etc/egressd-trust", "/etc/egressd-trust/x", "/a/l",
                       "/a/l/1/root", "/a/r/a", "/a/s", "/x", "/a/up/a",
                       "/a/f/x", "/usr/new", "/etc/new"):
            refused("mount_failed", top / "data", target)
        for target in ("/", "//a", "/a/", "/a//b", "/a/../b", "/..", "/.",
                       "/a/./b", "/a/.."):
            refused("not_permitted", top / "data", target, f"{target}: ")
        for target in ("", "a", "./a", "../a"):
            refused("bad_request", top / "data", target)
        same(box.sh("cat /proc/self/mountinfo").count(str(top / "data")), 0)
        mounted(top / "data", "/a/b")
        mounted(top / "data", "/home/new")
        mounted(top / "data/deep", "/a/b/deep")
    same(look(), before)


@cases.case
def targets_that_move():
    """A command exchanges the directory for a link all the time; whatever
    becomes of it, the mount is in the sandbox, and not in /proc."""
    with Session() as box:
        mover = box.start("exec", stdin=True, argv=[
            "/usr/bin/python3", "-c", """if 1:
            import ctypes, os, threading
            libc = ctypes.CDLL(None)
            os.mkdir("/t"); os.mkdir("/t/a"); os.symlink("/proc", "/t/b")
            end = threading.Event()
            def spin():
                while not end.is_set():
                    libc.renameat2(-100, b"/t/a", -100, b"/t/b", 2)
            t = threading.Thread(target=spin); t.start()
            print("spins", flush=True)
            input(); end.set(); t.join()
            """])
        mover.until(lambda r: r.out)
        for _ in range(20):
            answer = mount(top / "data", "/t/a/x")
            if "error" in answer:
                same(answer["error"]["code"], "mount_failed")
        mover.send(b"\n")
        mover.end()
        mover.wait()
        points = [line.split()[4] for line in
                  box.sh("cat /proc/self/mountinfo").splitlines()
                  if str(top / "data") in line.split()[3]]
        assert all(p in ("/t/a/x", "/t/b/x") for p in points), points


# ---- sources ----------------------------------------------------------------------

@cases.case
def sources():
    with Session() as box:
        for source in (top, top / "aside", f"{top}/dat", f"{top}/data2",
                       f"{top}/data/../aside", f"{top}/data/", f"{top}//data",
                       f"{top}/./data", f"{top}/data/..", "/", "/etc",
                       "/proc/self/root", f"/proc/self/root{top}/data"):
            refused("not_permitted", source, "/m", str(source))
        refused("mount_failed", top / "data/link", "/m", "symbolic link")
        refused("mount_failed", top / "data/link/file", "/m", "symbolic link")
        refused("mount_failed", top / "data/none", "/m", "No such file")
        refused("mount_failed", top / "data/fifo", "/m", "neither")
        for source in ("", "data", "~/data"):
            refused("bad_request", source, "/m")
        same(box.sh("ls -d /m 2>/dev/null; true"), "")


@cases.case
def the_kernels_file_systems():
    """Neither as the source nor mounted in it."""
    if not ROOT:
        raise Skip("needs root")
    inner = top / "data/proc"
    inner.mkdir()
    subprocess.run(["mount", "-t", "proc", "proc", inner], check=True)
    try:
        with Session() as box:
            refused("mount_failed", inner, "/m", "kernel's")
            refused("mount_failed", inner / "self", "/m", "symbolic link")
            refused("mount_failed", top / "data", "/m", "is mounted on")
            mounted(top / "data/deep", "/m")
            same(box.read("/m/file"), b"as it was\n")
    finally:
        subprocess.run(["umount", inner], check=True)
        inner.rmdir()


# ---- where it works ------------------------------------------------------------------

@cases.each(("local", "custom"))
def other_backends(sandbox):
    wish = [{"source": str(top / "data"), "target": "/m"}]
    answer = daemon.ask("session.start", session_id=MARK, sandbox=sandbox,
                        mounts=wish)
    same(answer["error"]["code"], "not_supported")
    assert daemon.ask("session.start", session_id=MARK,
                      sandbox=sandbox).get("ok")
    try:
        refused("not_supported", top / "data", "/m", sandbox)
        have = daemon.ask("session.show", session_id=MARK)
        same((have["mountable"], have["gated"]),
             (False, sandbox != "custom"))
    finally:
        daemon.ask("session.stop", session_id=MARK)


@cases.case
def a_block_that_permits_none():
    wish = [{"source": str(top / "data"), "target": "/m"}]
    answer = daemon.ask("session.start", session_id=MARK, sandbox="plain",
                        mounts=wish)
    same(answer["error"]["code"], "not_permitted")
    with Session("plain") as box:
        refused("not_permitted", top / "data", "/m", "mount below")
        same(daemon.ask("session.show", session_id=MARK)["mountable"], False)
        same(box.call("stat", path="/").result["type"], "directory")
        # Nothing is prepared for it, either.
        assert "master:" not in box.sh("cat /proc/self/mountinfo")


# ---- with the start ----------------------------------------------------------------

@cases.case
def with_the_start():
    wish = [{"source": str(top / "data"), "target": "/in"},
            {"source": str(top / "data/file"), "target": "/work/one"},
            {"source": str(top / "out"), "target": "/out", "write": True},
            {"source": str(top / "data/deep"), "target": "/out/file.d"}]
    (top / "out/file.d").mkdir()
    try:
        with Session(mounts=wish) as box:
            same(box.read("/in/file"), b"as it was\n")
            same(box.read("one"), b"as it was\n")
            same(box.read("/out/file.d/file"), b"as it was\n")
            box.write("/out/x", b"1")
            same(daemon.ask("session.show", session_id=MARK)["mountable"],
                 True)
        same((top / "out/x").read_bytes(), b"1")
        (top / "out/x").unlink()
    finally:
        (top / "out/file.d").rmdir()


DATA = {"source": f"{top}/data", "target": "/m"}
FAILING = {
    "not permitted": ([DATA | {"source": f"{top}/aside"}], "start_failed"),
    "the second": ([DATA, DATA | {"source": f"{top}/data/none"}],
                   "start_failed"),
    "to write": ([DATA | {"write": True}], "start_failed"),
    "taken": ([DATA | {"target": "/proc"}], "start_failed"),
    "no target": ([{"source": f"{top}/data"}], "bad_request"),
    "relative": ([DATA | {"target": "m"}], "bad_request"),
    "a number": ([DATA | {"write": 1}], "bad_request"),
    "one more": ([DATA | {"more": 1}], "bad_request"),
    "a word": ([f"{top}/data:/m"], "bad_request"),
    "no list": (DATA, "bad_request"),
    "too many": ([DATA] * 65, "bad_request"),
    "too long": ([DATA | {"source": f"/{'a' * 1022}"}] * 17, "bad_request"),
}


@cases.case
def which_of_several_fails():
    answer = daemon.ask("session.start", session_id=MARK, sandbox="mounts",
                        mounts=[DATA, DATA | {"source": f"{top}/aside"}])
    assert f"{top}/aside: not below" in answer["error"]["message"], answer


@cases.case
def root_is_told_why():
    """It has no right that another owner of files would not have."""
    if not ROOT:
        raise Skip("only root has rights that it gives up")
    theirs = top / "out/theirs"
    theirs.mkdir(mode=0o700)
    shutil.chown(theirs, "nobody")
    try:
        with Session():
            refused("mount_failed", theirs, "/m", str(theirs), "root, too")
    finally:
        theirs.rmdir()


@cases.each(tuple(FAILING))
def starts_that_fail(wish):
    """Then there is no session, and nothing of one."""
    mounts, code = FAILING[wish]
    answer = daemon.ask("session.start", session_id=MARK, sandbox="mounts",
                        mounts=mounts)
    same(answer["error"]["code"], code, answer)
    same([s["session_id"] for s in daemon.ask("session.list")["sessions"]],
         [])


# ---- egressctl --------------------------------------------------------------------

@cases.case
def by_egressctl():
    """Names are relative to where one stands, which is the root directory
    here, and no more is made of them."""
    data = f"{top}/data"[1:]
    try:
        done = daemon.ctl("session", "start", "-n", MARK, "-m",
                          f"{data}/deep:/deep", "-M", f"{top}/out/:/out",
                          "mounts")
        same(done.returncode, 0, done.stderr)
        done = daemon.ctl("mount", MARK, f"{data}/deep/.././/file", "/one")
        same((done.returncode, done.stdout),
             (0, f"{data}/deep/.././/file is at /one, read-only\n"),
             done.stderr)
        done = daemon.ctl("mount", "-w", MARK, f"../{data}/../out", "/w")
        same(done.returncode, 0, done.stderr)
        same(daemon.ctl("read", MARK, "/one").stdout, "as it was\n")
        done = daemon.ctl("exec", MARK, "--", "sh", "-c", "cat /deep/file "
                          "/out/file; touch /deep/x /one; touch /w/x && "
                          "rm /out/x")
        same((done.returncode, done.stdout), (0, "as it was\n" * 2))
        for words, said in ((("-w", MARK, data, "/m"), "read-write"),
                            ((MARK, f"{data}/link", "/m"), "symbolic link"),
                            ((MARK, f"{data}/..", "/m"), "not below"),
                            ((MARK, f"{data}/none", "/m"), "No such file"),
                            ((MARK, data, "m"), "absolute"),
                            (("none", data, "/m"), "no session")):
            done = daemon.ctl("mount", *words)
            same((done.returncode, said in done.stderr), (1, True),
                 done.stderr)
            assert "read-only socket" not in done.stderr, done.stderr
        same(daemon.ctl("mount", MARK, data).returncode, 2)
        for wrong in ("x", "x:", ":/x", "x:y", "/x:/y:rw"):
            done = daemon.ctl("session", "start", "-m", wrong, "mounts")
            same(done.returncode, 2)
            assert f"-m {wrong}: " in done.stderr, done.stderr
    finally:
        daemon.ask("session.stop", session_id=MARK)


@cases.each(("local", "plain"))
def egressctl_where_it_does_not_work(sandbox):
    assert daemon.ask("session.start", session_id=MARK,
                      sandbox=sandbox).get("ok")
    try:
        done = daemon.ctl("mount", MARK, str(top / "data"), "/m")
        same(done.returncode, 1)
        assert ("only a virtual sandbox" if sandbox == "local" else
                "mount below") in done.stderr, done.stderr
    finally:
        daemon.ask("session.stop", session_id=MARK)


# ---- life and death ------------------------------------------------------------------

@cases.case
def many_at_once():
    """From several connections; then there are enough."""
    with Session() as box:
        answers = []

        def several(n):
            with Client(daemon.socket) as client:
                for i in range(8):
                    answers.append(client.ask(
                        "session.mount", session_id=MARK,
                        source=str(top / "data"), target=f"/m/{n}/{i}"))
        threads = [threading.Thread(target=several, args=(n,))
                   for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        same([a for a in answers if not a.get("ok")], [])
        same(len(answers), 64)
        refused("mount_failed", top / "data", "/m/more", "as many")
        same(box.sh("cat /m/*/*/file | sort | uniq -c").split()[0], "64")


@cases.case
def all_is_gone():
    """Nothing is left of a session with mounts: no process, mount, descriptor
    or file."""
    def held():
        pids = daemon.processes()
        return [len(descriptors(pids[n])) for n in ("parent", "controld")]
    with Session():     # whatever is made once
        mounted(top / "data", "/m")
    until("no worker", lambda: not workers())
    before, files = held(), look()
    hosts = pathlib.Path("/proc/self/mountinfo").read_text()
    for _ in range(3):
        with Session(mounts=[{"source": str(top / "data"), "target": "/m"}]):
            mounted(top / "out", "/n", write=True)
            refused("mount_failed", top / "data/none", "/o")
    until("no worker", lambda: not workers())
    until("nothing is open", lambda: held() == before)
    same(look(), files)
    same(pathlib.Path("/proc/self/mountinfo").read_text(), hosts)


@cases.case
def who_makes_it_is_killed():
    """At any moment: whoever waits is answered, and the sandbox goes on."""
    with Session() as box:
        stop = threading.Event()
        box_pids = set(children(daemon.process.pid))

        def kill():
            while not stop.is_set():
                for pid in set(children(daemon.process.pid)) - box_pids:
                    try:
                        os.kill(pid, 9)
                    except ProcessLookupError:
                        pass
        killer = threading.Thread(target=kill)
        killer.start()
        try:
            answers = [mount(top / "data", f"/m{i}") for i in range(30)]
        finally:
            stop.set()
            killer.join()
        codes = {a["error"]["code"] if "error" in a else "ok"
                 for a in answers}
        assert codes <= {"ok", "mount_failed"}, codes
        mounted(top / "data", "/after")
        same(box.read("/after/file"), b"as it was\n")


@cases.case
def the_sandbox_ends_meanwhile():
    for _ in range(5):
        with Session(), Client(daemon.socket) as client:
            for i in range(10):
                client.send({"id": i, "op": "session.mount", "session_id":
                             MARK, "source": str(top / "data"),
                             "target": f"/m{i}"})
            daemon.ask("session.stop", session_id=MARK)
            seen = [client.read() for _ in range(10)]
            same(sorted(a["id"] for a in seen), list(range(10)))
    until("no worker", lambda: not workers())


@cases.case
def it_is_logged():
    with Session():
        mounted(top / "data", "/logged")
        refused("not_permitted", top / "aside", "/logged")
    said = f"user {os.geteuid()} mounts {top}/data on /logged, read-only"
    until("the log says so", lambda: said in daemon.log())
    assert f"may not mount {top}/aside" in daemon.log()


cases.main()
