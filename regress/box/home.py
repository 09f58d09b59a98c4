#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Whose home a sandbox is kept out of, and where the caller may stand:
the battery, part K.  -h is what the user database says."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from boxlib import (NOBODY, WHO, Place, Sandbox, probe, run_box,  # noqa: E402
                    same)
from case import Cases, Skip  # noqa: E402

cases = Cases()
place = Place()
other = place.dir / "other"
other.mkdir(mode=0o777)
other.chmod(0o777)

# What HOME says, and what the command's is then; None: that of the database.
SAYS = {
    "unset": (None, None),
    "empty": ("", None),
    "root": ("/", None),
    "relative": ("home", None),
    "dots": (f"{place.dir}/../home", None),
    "tmp": ("/tmp", None),
    "missing_in_system": ("/opt/egressd-missing", None),
    "missing": (f"{place.dir}/missing", f"{place.dir}/missing"),
    "another": (str(other), str(other)),
    "link": (f"{place.dir}/link", None),
    "same": ("home", None),
}


def shell(who, script, cwd, home, says, opts=()):
    """In a sandbox of somebody whose HOME may lie; None unsets it."""
    env = [f"HOME={says}"] if says is not None else ["-u", "HOME"]
    return run_box(place, who, "/bin/sh", "-c", script, cwd=cwd,
                   opts=["-h", home, *opts], wrap=["/usr/bin/env", *env])


@cases.each(SAYS)
def home_by_database(how):
    """Not shown when the caller stands there, whatever HOME says."""
    says, want = SAYS[how]
    for who in ("user", "root-r"):
        home = place.home(who)
        (home / "secret").write_text("x")
        if how == "link":
            link = place.dir / "link"
            link.unlink(missing_ok=True)
            link.symlink_to(home)
        done = shell(who, f"echo $HOME; ls -a {home} 2>/dev/null; "
                     f"mkdir -p {home}; echo x > {home}/made; "
                     "echo x > ~/mine && echo written",
                     home, home, str(home) if how == "same" else says)
        lines = done.out.splitlines()
        same(lines[0], "/root" if who == "root-r" else want or str(home))
        assert "secret" not in lines, lines
        same(lines[-1], "written")
        same(sorted(p.name for p in home.iterdir()), ["secret"])
        assert f"{home} is not exposed: it holds all" in done.err, done.err


def standing(home, name, make=True):
    path = home / name
    if make:
        path.mkdir(parents=True, exist_ok=True)
        for p in (path, *path.parents):
            if p == home:
                break
            os.chown(p, home.stat().st_uid, home.stat().st_gid)
    return path


PLACES = {
    "project": (True, "src/project"), "hidden_project": (True, ".dotfiles/x"),
    "settings_of_one": (True, ".config/nvim"),
    "ssh": (False, ".ssh"), "ssh_deeper": (False, ".ssh/old"),
    "gnupg": (False, ".gnupg"), "aws": (False, ".aws"),
    "config": (False, ".config"), "local": (False, ".local/share"),
}


@cases.each(PLACES)
def standing_at_home(name):
    """In a project of it, it is shown; among keys it is not, unless asked."""
    shown, place_in_home = PLACES[name]
    for says in ("right", None):
        home = place.home("user")
        cwd = standing(home, place_in_home)
        (cwd / "key").write_text("x")
        for opts in ((), ("-w", cwd)):
            done = shell("user", "cat key", cwd, home,
                         str(home) if says else None, opts)
            same(done.out, "x" if shown or opts else "")
            if not shown and not opts:
                assert f"{cwd} is not exposed: it holds settings" in done.err


@cases.each(["/", "/home", "/etc", "/etc/ssl", "/usr/share", "/proc", "/tmp"])
def standing_elsewhere(cwd):
    """Above the home or in the system."""
    if not os.path.isdir(cwd):
        raise Skip("not here")
    for says in (None, "/"):
        home = "/home/egressd-nobody" if cwd == "/home" else place.home("user")
        name = f"egressd-home-{os.getpid()}"
        done = shell("user", f"pwd; touch {name}", cwd, home, says)
        assert f"{cwd} is not exposed: " in done.err, done.err
        assert not os.path.exists(f"{cwd}/{name}")


@cases.each(WHO)
def standing_under_mounts(who):
    """A mount point is shown with what is mounted beneath, but for the
    kernel's file systems, and is not exposed if it is one."""
    if os.getuid() != 0:
        raise Skip("not root")
    point = place.dir / "a point"
    point.mkdir(exist_ok=True)
    ids = "" if who.startswith("root") else (
        f"setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups")
    setup = f"""
cd '{point}' && mount -t tmpfs none . && cd . && cd '{point}' &&
mkdir proc sys tmp && mount --rbind /proc proc && mount --rbind /sys sys &&
mount -t tmpfs none tmp && echo word > tmp/file && exec {ids} "$@"
"""
    opts = ["-r"] if who.endswith("-r") else []

    def under(*more, script=""):
        box = Sandbox(place, "root", ["/bin/sh", "-c", script +
                      "ls proc sys; ls; cat tmp/file"], opts=[*opts, *more],
                      wrap=["unshare", "-m", "sh", "-c", setup, "x"])
        return box.finish()
    done = under()
    same(done.out, "proc:\n\nsys:\nproc\nsys\ntmp\nword\n")
    done = under("-k", point, script="cd; ")
    same(done.out, "proc:\n\nsys:\nproc\nsys\ntmp\nword\n")
    for more in ("-x", "-w"):
        done = under(more, point / "proc")
        same((done.rc, done.out), (125, ""))
        assert "it is the kernel's (proc)" in done.err, done.err


@cases.each(("user", "root"))
def home_in_sight(who):
    """Both homes are covered where the sandbox would see them."""
    if os.getuid() != 0:
        raise Skip("not root")
    homes = [pathlib.Path(f"/opt/egressd-{os.getpid()}-{n}") for n in (1, 2)]
    try:
        for home in homes:
            home.mkdir(mode=0o755)
            (home / "secret").write_text("x")
        have, _ = probe(place, who, f"""
            say([os.environ["HOME"]] + [os.listdir(h) for h in
                {[str(h) for h in homes]}])
        """, env={"HOME": str(homes[0])}, opts=["-h", homes[1]])
    finally:
        for home in homes:
            (home / "secret").unlink(missing_ok=True)
            home.rmdir()
    same(have, [str(homes[0]), [".pki"], []])


if __name__ == "__main__":
    try:
        cases.main()
    finally:
        place.remove()
