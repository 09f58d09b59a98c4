#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""The virtual sandbox: nothing of the host can be written to, and all that
can be is one file system of a given size; mounts under another name."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from boxlib import NOBODY, WHO, Place, probe, run_box, same  # noqa: E402
from case import Cases  # noqa: E402

cases = Cases()
place = Place()
SIZE = 4 * 1024 * 1024
VIRTUAL = ("-V", SIZE)

# Where one can write: each gets a file of some bytes, or what it fails with.
FILL = """
def fill(where, size, name="fill"):
    path = os.path.join(where, name)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        while size > 0:
            size -= os.write(fd, bytes(min(size, 65536)))
        return "done"
    except OSError as e:
        return errno.errorcode[e.errno]
    finally:
        os.close(fd)
"""


@cases.each(WHO)
def one_file_system(who):
    """All places together hold what was given, then there is no space; what
    is removed in one is there for another."""
    have, _ = probe(place, who, FILL + f"""
places = ["/", "/tmp", "/run", "/var", "/var/tmp", "/dev", "/dev/shm",
          "/work", os.environ["HOME"]]
part = {SIZE} // (len(places) + 1)
said = [fill(p, part) for p in places]
more = [fill(p, 2 * part, "more") for p in ("/tmp", "/dev/shm", "/work")]
os.unlink("/var/fill")
os.unlink("/run/fill")
os.unlink("/work/more")
say([said, more[-1], fill("/dev/shm", part, "again"),
     len({{os.stat(p).st_dev for p in places}})])
""", opts=VIRTUAL)
    same(have, [["done"] * 9, "ENOSPC", "done", 1])


@cases.each(WHO)
def many_files(who):
    """Empty ones take memory as well."""
    have, _ = probe(place, who, """
        def make(n):
            for i in range(n):
                os.close(os.open(f"/tmp/{i}", os.O_CREAT | os.O_WRONLY))
        say(attempt(make, 100000))
    """, opts=VIRTUAL)
    same(have, "ENOSPC")


def tree(top):
    """What a directory of the host's holds, to the time of each entry."""
    found = {}
    for path in [top, *top.rglob("*")]:
        st = path.lstat()
        found[str(path)] = (st.st_mode, st.st_size, st.st_mtime_ns)
    return found


@cases.each(WHO)
def host_unchanged(who):
    """Every directory that is there is tried; the caller's working directory
    and home are not even seen."""
    (place.work(who) / "mine").write_text("as it was")
    (place.home(who) / "mine").write_text("as it was")
    before = tree(place.work(who)), tree(place.home(who))
    have, _ = probe(place, who, f"""
        made = 0
        for top, dirs, files in os.walk("/"):
            if top.startswith(("/proc/", "/usr/share/", "/usr/lib/")):
                del dirs[:]
            try:
                os.close(os.open(top + "/egressd-was-here",
                                 os.O_CREAT | os.O_WRONLY))
                made += 1
            except OSError:
                pass
        here = {str(place.work(who))!r}
        say([made > 10, os.getcwd(), os.listdir("."),
             os.path.exists(here), os.path.exists(here + "/mine"),
             os.path.exists(os.environ["HOME"] + "/mine")])
    """, opts=VIRTUAL)
    same(have, [True, "/work", ["egressd-was-here"], False, False, False])
    same((tree(place.work(who)), tree(place.home(who))), before)
    left = [d for d in ("/", "/usr", "/usr/bin", "/opt", "/etc", "/tmp",
                        "/var", "/var/tmp", "/dev", "/dev/shm", "/run",
                        "/var/lib/dpkg")
            if os.path.exists(d + "/egressd-was-here")]
    same(left, [])


@cases.each(WHO)
def ways_out(who):
    """Links, parents, the first process, mounts and namespaces lead nowhere
    that the host is, nor can the system's directories be put aside."""
    (place.work(who) / "mine").write_text("as it was")
    have, _ = probe(place, who, f"""
        import ctypes, subprocess
        libc = ctypes.CDLL(None, use_errno=True)
        mine = {str(place.work(who) / "mine")!r}
        def call(name, *args):
            if getattr(libc, name)(*args) == -1:
                return errno.errorcode[ctypes.get_errno()]
            return "done"
        os.symlink(mine, "/work/link")
        os.symlink("/proc/1/root", "/work/root")
        os.symlink("../../../../../../.." + mine, "/work/up")
        def ns(kind):
            return call("setns", os.open(f"/proc/1/ns/{{kind}}", os.O_RDONLY),
                        0)
        def detached():
            return subprocess.run(
                ["unshare", "-Urm", "sh", "-c",
                 "umount /usr || umount -l / || mount -o remount,rw /usr"],
                stderr=subprocess.DEVNULL).returncode != 0
        say([[os.path.exists(p) for p in (mine, "/work/link", "/work/up",
              "/work/root" + mine, "/.host", "/.all")],
             attempt(os.listdir, "/proc/1/root"),
             attempt(os.readlink, "/proc/1/fd/0"),
             [attempt(ns, k) for k in ("mnt", "user", "pid", "net")],
             call("ptrace", 16, 1, 0, 0),
             [attempt(os.rename, p, p + "-aside") for p in ("/usr", "/etc",
              "/proc", "/tmp")],
             call("umount2", b"/usr", 2), detached(),
             call("mount", b"none", b"/usr", None, 0x1020, None),
             attempt(open, "/usr/new", "w")])
    """, opts=VIRTUAL)
    same(have[0], [False] * 6)
    same(have[1:4], ["EACCES", "EACCES", ["EACCES"] * 4])
    same(have[4], "EPERM")
    same(have[5], ["EBUSY"] * 4)
    assert have[6] in ("EPERM", "EINVAL"), have[6]
    same(have[7], True)
    same(have[8:], ["EPERM", "EROFS"])


@cases.each(("user", "root-r"))
def working_directory(who):
    """Another one is made, in there only."""
    for named, where in (("/work", "/work"), ("/a/b//c/", "/a/b/c"),
                         ("/tmp", "/tmp"), ("/home/x", "/home/x")):
        have, _ = probe(place, who, """
            open("new", "w").close()
            say([os.getcwd(), os.environ["PWD"]])
        """, opts=(*VIRTUAL, "-w", named))
        same(have, [where, where])
    assert not os.path.exists("/a")
    for named, why in (("work", "work: not an absolute path"),
                       ("/work/../usr", "/work/../usr: must not contain . "
                        "or .."),
                       ("/./work", "/./work: must not contain . or .."),
                       ("/usr/none/x", "sandbox: /usr/none: Read-only file "
                        "system")):
        done = run_box(place, who, "true", opts=(*VIRTUAL, "-w", named))
        same((done.rc, done.err), (125, f"egressd-box: {why}\n"))


@cases.case
def refused():
    work, home = place.work("user"), place.home("user")
    for opts, why in (
            (("-X", work), f"cannot expose {work} for writing: the sandbox "
             "is virtual"),
            (("-k", home), f"home {home}: a virtual sandbox keeps nothing"),
            (("-V", "0"), "size 0: too small"),
            (("-V", "1G"), "size 1G: invalid")):
        done = run_box(place, "user", "true", opts=(*VIRTUAL, *opts))
        same((done.rc, done.err), (125, f"egressd-box: {why}\n"))


@cases.case
def too_small():
    """A sandbox that has no room for itself says so."""
    done = run_box(place, "user", "true", opts=("-V", 4096))
    same(done.rc, 125)
    assert "No space left on device" in done.err, done.err


@cases.case
def shown_read_only():
    """Other paths of the host may be seen by their own names."""
    (place.work("user") / "mine").write_text("seen")
    have, _ = probe(place, "user", f"""
        path = {str(place.work("user") / "mine")!r}
        say([open(path).read(), attempt(open, path, "w")])
    """, opts=(*VIRTUAL, "-x", place.work("user")))
    same(have, ["seen", "EROFS"])


def source(who, name):
    path = place.work(who) / name
    path.mkdir(exist_ok=True)
    (path / "file").write_text("of the host")
    if os.getuid() == 0 and who.startswith("user"):
        os.chown(path, NOBODY, NOBODY)
        os.chown(path / "file", NOBODY, NOBODY)
    return path


@cases.each(("user", "root", "user-r", "user/local"))
def mounts(who):
    """A directory or a file of the host by another name, read-only or not;
    one in another, whatever their order."""
    who, _, local = who.partition("/")
    data, out = source(who, "data"), source(who, "out")
    (data / "out").mkdir(exist_ok=True)
    have, _ = probe(place, who, """
        def put(path):
            with open(path, "w") as f:
                f.write("written")
        say([open("/data/file").read(), attempt(put, "/data/file"),
             attempt(put, "/data/out/new"), attempt(put, "/one"),
             open("/one").read()])
    """, opts=(*(() if local else VIRTUAL), "-M", f"{out}:/data/out",
               "-m", f"{data}:/data//", "-m", f"{data}/file:/one"))
    same(have, ["of the host", "EROFS", None, "EROFS", "of the host"])
    same((out / "new").read_text(), "written")
    (out / "new").unlink()


@cases.case
def mounts_with_colon():
    """The last one parts the two."""
    data = source("user", "a:b")
    have, _ = probe(place, "user", 'say(open("/c/file").read())',
                    opts=(*VIRTUAL, "-m", f"{data}:/c"))
    same(have, "of the host")


@cases.case
def mounts_refused():
    work = place.work("user")
    for text, why in (
            (f"{work}", f"mount {work}: must be a path, : and where it is in "
             "the sandbox"),
            (":/x", "mount :/x: must be a path, : and where it is in the "
             "sandbox"),
            (f"{work}:x", "x: not an absolute path"),
            (f"{work}:/x/../y", "/x/../y: must not contain . or .."),
            (f"{work}:/", f"mount {work}:/: not on the root"),
            (f"{work}:/proc/x", f"mount {work}:/proc/x: not in /proc"),
            (f"{work}:/etc/egressd-trust", f"mount {work}:/etc/egressd-trust: "
             "not in /etc/egressd-trust"),
            ("/nonexistent:/x", "cannot expose /nonexistent: No such file or "
             "directory"),
            ("/proc:/x", "cannot expose /proc: it shows the host's "
             "processes"),
            ("/:/x", "cannot expose /: it is the whole host")):
        done = run_box(place, "user", "true", opts=(*VIRTUAL, "-m", text))
        same((done.rc, done.err), (125, f"egressd-box: {why}\n"))


if __name__ == "__main__":
    try:
        cases.main()
    finally:
        place.remove()
