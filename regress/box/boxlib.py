# SPDX-License-Identifier: ISC

"""What the tests of egressd-box share: a sandbox with a stand-in engine, run
as root and as an ordinary user, and probes that run inside it."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import textwrap

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from case import Skip  # noqa: E402
from standin_engine import Engine  # noqa: E402

BUILD = pathlib.Path(os.environ.get("B", TOP / "build"))
PYTHON = "/usr/bin/python3"
NOBODY = 65534

# Ordinary user and root, each also as root of the sandbox.
WHO = ("user", "root", "user-r", "root-r")

PRELUDE = """
import errno, json, os, socket, struct, sys, time

def name(error):
    return errno.errorcode.get(error.errno, str(error.errno))

def tcp(host, port, source=None):
    s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    s.settimeout(10)
    try:
        if source:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind(("", source))
        s.connect((host, port))
        return s.makefile().readline().strip()
    except OSError as e:
        return name(e)

def attempt(function, *args):
    try:
        return function(*args)
    except OSError as e:
        return name(e)

def say(value):
    print(json.dumps(value), flush=True)
"""


class Place:
    """Scratch that an ordinary user can reach too."""

    def __init__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="egressd-box.",
                                                 dir="/tmp"))
        self.dir.chmod(0o755)
        (self.dir / "bin").mkdir()
        for program in ("egressd-box", "egressd-fence"):
            shutil.copy(BUILD / "libexec" / program, self.dir / "bin")
        for user in ("user", "root"):
            for part in ("work", "home"):
                path = self.dir / f"{part}-{user}"
                path.mkdir(mode=0o755)
                if os.getuid() == 0 and user == "user":
                    os.chown(path, NOBODY, NOBODY)
        self.box = self.dir / "bin" / "egressd-box"
        self.fence = self.dir / "bin" / "egressd-fence"

    def work(self, who):
        return self.dir / f"work-{who.removesuffix('-r')}"

    def home(self, who):
        return self.dir / f"home-{who.removesuffix('-r')}"

    def remove(self):
        shutil.rmtree(self.dir, ignore_errors=True)


def identity(who):
    """Arguments of Popen that make it run as this user."""
    if who.startswith("root"):
        if os.getuid() != 0:
            raise Skip("not root")
        return {}
    if os.getuid() != 0:
        return {}
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []}


class Sandbox:
    """A running egressd-box and the engine behind it."""

    def __init__(self, place, who, argv, opts=(), script=None, env=None,
                 wrap=(), pass_fds=(), **popen):
        self.engine = Engine(script)
        channel = self.engine.start()
        environ = dict(os.environ, HOME=str(place.home(who)), USER="tester")
        environ.update(env or {})
        args = [*wrap, place.box, "-e", channel.fileno(), *opts]
        if who.endswith("-r"):
            args.append("-r")
        popen.setdefault("cwd", place.work(who))
        popen.setdefault("stdin", subprocess.PIPE)
        popen.setdefault("stdout", subprocess.PIPE)
        popen.setdefault("stderr", subprocess.PIPE)
        self.proc = subprocess.Popen(
            [str(a) for a in [*args, "--", *argv]], env=environ,
            pass_fds=[channel.fileno(), *pass_fds], **identity(who), **popen)
        channel.close()

    def finish(self, data=b"", timeout=60):
        try:
            out, err = self.proc.communicate(data, timeout)
        finally:
            if self.proc.poll() is None:
                self.proc.kill()
            self.engine.stop()
        self.out = (out or b"").decode(errors="replace")
        self.err = (err or b"").decode(errors="replace")
        self.rc = self.proc.returncode
        return self


def run_box(place, who, *argv, **kwargs):
    return Sandbox(place, who, argv, **kwargs).finish()


def probe(place, who, code, **kwargs):
    """Run Python in the sandbox; its last line is a value.  With the engine."""
    done = run_box(place, who, PYTHON, "-c",
                   PRELUDE + textwrap.dedent(code), **kwargs)
    if done.rc != 0 or not done.out:
        raise AssertionError(f"exit {done.rc}: {done.err} {done.out}")
    return json.loads(done.out.splitlines()[-1]), done.engine


def same(have, want):
    assert have == want, f"{have!r}, expected {want!r}"
