#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""What box does in a pod, in a pid namespace instead of a container: the first
process, hands that leave to it what commands have left, and the installation
into a volume."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from case import Cases, Skip, run  # noqa: E402
from hands import BOX, WAIT_S, Piped, within  # noqa: E402
from procs import status  # noqa: E402

cases = Cases()
USER = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
BEAT = ("(while :; do echo noise; echo noise >&2; echo x >>beat; "
        "sleep 0.02; done) & echo $! >pid; echo said")


class Container:
    """A pid namespace of which egressd-box keep is the first process."""

    def __init__(self, tmp):
        self.dir = pathlib.Path(tmp)
        self.proc = subprocess.Popen(
            ["unshare", *USER, "--pid", "--fork", "--kill-child",
             "--mount-proc", str(BOX), "keep"], stderr=subprocess.PIPE,
            text=True)
        self.first = None
        try:
            within(WAIT_S, self.is_up, "the first process")
        except AssertionError:
            self.proc.kill()
            raise Skip(f"no pid namespace: {self.proc.stderr.read()}") \
                from None

    def is_up(self):
        children = self.children(self.proc.pid)
        if children and status(children[0]).get("Name") == "egressd-box":
            self.first = children[0]
        return self.first

    @staticmethod
    def children(pid):
        path = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
        try:
            return [int(word) for word in path.read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            return []

    def hands(self):
        """As a pod's exec does it."""
        return Piped(["nsenter", "-t", str(self.first), "-m", "-p",
                          *(["-U", "--preserve-credentials"] if USER else []),
                          str(BOX), "hands", "-k", "-d", str(self.dir)])

    def end(self):
        """The exit status of the first process, and its last words."""
        os.kill(self.first, signal.SIGTERM)
        return self.proc.wait(WAIT_S)


@contextlib.contextmanager
def container():
    with tempfile.TemporaryDirectory(prefix="egressd-pod.") as tmp:
        pod = Container(tmp)
        try:
            yield pod
        finally:
            pod.proc.kill()
            pod.proc.wait()
            pod.proc.stderr.close()


def size(path):
    return path.stat().st_size if path.exists() else 0


def grows(path):
    old = size(path)
    within(WAIT_S, lambda: size(path) > old, f"more in {path.name}")


# ---- the first process ------------------------------------------------------

@cases.case
def keep_ends_what_runs():
    with container() as pod, pod.hands() as hands:
        hands.call("exec", command="(trap 'echo told >sign; exit' TERM; "
                   "echo up >up; while :; do sleep 0.05; done) "
                   ">/dev/null 2>&1 &")
        within(WAIT_S, lambda: size(pod.dir / "up"))
        assert pod.end() == 0
        assert (pod.dir / "sign").read_text() == "told\n"


@cases.case
def keep_ends_whoever_does_not():
    """One that ignores SIGTERM, and one that is stopped."""
    with container() as pod, pod.hands() as hands:
        hands.call("exec", command="(trap '' TERM; echo up >a; "
                   "while :; do sleep 0.05; done) >/dev/null 2>&1 & "
                   "(sh -c 'kill -STOP $$') & echo up >b")
        within(WAIT_S, lambda: size(pod.dir / "a") and size(pod.dir / "b"))
        assert pod.end() == 0
        hands.wait_closed()


@cases.case
def keep_is_not_ended_from_inside():
    with container() as pod, pod.hands() as hands:
        for name in ("TERM", "INT", "HUP", "QUIT", "CHLD", "STOP", "KILL"):
            answer = hands.call("exec", command=f"kill -{name} 1")
            assert answer.result == {"exit_code": 0}, answer
        assert hands.call("exec", command="echo on").out == b"on\n"
        assert pod.proc.poll() is None
        assert pod.end() == 0


@cases.case
def keep_reaps():
    with container() as pod, pod.hands() as hands:
        hands.call("exec", command="for i in 1 2 3 4 5 6 7 8; do "
                   "(setsid sh -c 'sleep 0.1; echo x >>ended' &) & done; "
                   ":")
        within(WAIT_S, lambda: size(pod.dir / "ended") == 16)
        within(WAIT_S, lambda: not pod.children(pod.first), "no zombie")


@cases.case
def keep_is_the_first_or_nothing():
    done = run([BOX, "keep"])
    assert done.returncode == 125 and "not the first" in done.stdout, done
    assert run([BOX, "keep", "x"]).returncode == 125


# ---- what commands leave ----------------------------------------------------

@cases.case
def left_behind_outlives_its_client():
    """And may go on writing to the pipes that it was given."""
    with container() as pod:
        with pod.hands() as hands:
            answer = hands.call("exec", command=BEAT)
            assert answer.out.startswith(b"said\n") or \
                b"\nsaid\n" in answer.out, answer
            grows(pod.dir / "beat")
        grows(pod.dir / "beat")
        with pod.hands() as hands:
            pid = (pod.dir / "pid").read_text().strip()
            answer = hands.call("exec", command=f"kill -KILL {pid}")
            assert answer.result == {"exit_code": 0}, answer
        within(WAIT_S, lambda: not pod.children(pod.first),
               "nobody takes what nobody writes")


@cases.case
def left_behind_holds_no_stream():
    """The exec is over when the hands are, whoever is left."""
    with container() as pod:
        hands = pod.hands()
        hands.call("exec", command=BEAT)
        assert hands.close() == 0
        hands.check()
        grows(pod.dir / "beat")
        assert pod.end() == 0


@cases.case
def running_ends_with_its_client():
    with container() as pod:
        with pod.hands() as hands:
            hands.start("exec", command="(setsid sh -c 'echo a >a; while :; "
                        "do sleep 0.05; done') & echo b >b; exec sleep 1000")
            within(WAIT_S, lambda: size(pod.dir / "a") and
                   size(pod.dir / "b"))
            assert hands.close() == 0
        within(WAIT_S, lambda: not pod.children(pod.first), "all are gone")


# ---- installation -----------------------------------------------------------

@cases.case
def refused_is_read_to_its_end():
    """The cluster may not tell of an exec's end whose input nobody takes."""
    with tempfile.TemporaryFile() as sent:
        sent.write(bytes(11) + b"\1" + bytes(4 * 1024 * 1024))
        sent.seek(0)
        done = subprocess.run([BOX, "hands", "-k", "-d", "/"], stdin=sent,
                              stdout=subprocess.PIPE, timeout=WAIT_S)
        assert done.returncode == 1 and b"bad_request" in done.stdout, done
        assert not sent.read(1), "there is some left"


@cases.each(["there", "missing"])
def installed(directory):
    with tempfile.TemporaryDirectory(prefix="egressd-volume.") as tmp:
        to = pathlib.Path(tmp) / "bin"
        if directory == "there":
            to.mkdir()
            to.chmod(0o777)
        done = run([BOX, "install", to], umask=0o077)
        assert done.returncode == 0, done
        assert os.listdir(to) == ["egressd-box"]
        assert to.stat().st_mode & 0o7777 == 0o755
        copy = to / "egressd-box"
        assert copy.stat().st_mode & 0o7777 == 0o755
        assert copy.read_bytes() == BOX.read_bytes()
        assert run([copy, "keep"]).returncode == 125


@cases.case
def installed_over_one_that_runs():
    """The init container may run again, also after it was cut short."""
    with tempfile.TemporaryDirectory(prefix="egressd-volume.") as tmp:
        copy = pathlib.Path(tmp) / "egressd-box"
        shutil.copy("/bin/true", pathlib.Path(tmp) / ".egressd-box.new")
        assert run([BOX, "install", tmp]).returncode == 0
        with Piped([str(copy), "hands"]) as hands:
            assert run([BOX, "install", tmp]).returncode == 0
            assert hands.call("stat", path="/").result["type"] == "directory"
        assert os.listdir(tmp) == ["egressd-box"]


@cases.case
def installed_nowhere():
    for where in (["/proc/none"], ["/dev/null"], [], ["/tmp", "/tmp"]):
        done = run([BOX, "install", *where])
        assert done.returncode == 125 and done.stdout, done


cases.main()
