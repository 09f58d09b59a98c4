#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""What box does in a pod, in a pid namespace instead of a container: the first
process, hands that leave to it what commands have left, and the installation
into a volume."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from case import Cases, Skip, run  # noqa: E402
from hands import BOX, WAIT_S, Piped, within  # noqa: E402
from podlib import CAPS, Container, first_process  # noqa: E402
from procs import status  # noqa: E402

cases = Cases()
BEAT = ("(while :; do echo noise; echo noise >&2; echo x >>beat; "
        "sleep 0.02; done) & echo $! >pid; echo said")


@contextlib.contextmanager
def container(*opts, **kwargs):
    with tempfile.TemporaryDirectory(prefix="egressd-pod.") as tmp:
        pod = Container(tmp, *opts, **kwargs)
        try:
            yield pod
        finally:
            pod.close()


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
    for args in (["x"], ["-x"], ["-u", "-t", "/"], ["-t", "/none"]):
        assert run([BOX, "keep", *args]).returncode == 125, args


# ---- what the runtime leaves open -------------------------------------------

@cases.each(["net_raw", "net_admin", "sys_admin", "sys_module", "sys_rawio"])
def keep_refuses(cap):
    """With these a workspace gets round the gate."""
    done = run(first_process(caps=(*CAPS, cap)), timeout=WAIT_S)
    if "sh:" in done.stdout or "unshare:" in done.stdout:
        raise Skip(done.stdout)
    assert done.returncode == 125, done
    assert f"capability {cap.upper()}" in done.stdout, done
    with container("-u", caps=(*CAPS, cap)) as pod:
        assert pod.end() == 0


TRIES = """
import ctypes, errno, socket
libc = ctypes.CDLL(None, use_errno=True)
def make(family):
    try:
        socket.socket(family, socket.SOCK_DGRAM).close()
        return "made"
    except OSError as e:
        return errno.errorcode[e.errno]
libc.syscall(425, 1, None)
print([make(f) for f in (40, 17, 38, 2, 10, 1)],
      errno.errorcode[ctypes.get_errno()])
"""


@cases.each(["gated", "ungated"])
def sockets_of_other_kinds(how):
    """vsock, packet and algorithm sockets, io_uring: nothing of them is in the
    fence's sight."""
    opts = ["-u"] if how == "ungated" else []
    with container(*opts) as pod, pod.hands(*opts) as hands:
        said = hands.call("exec", argv=["/usr/bin/python3", "-c", TRIES]).out
        confined = (b"['EAFNOSUPPORT', 'EAFNOSUPPORT', 'EAFNOSUPPORT', "
                    b"'made', 'made', 'made'] ENOSYS\n")
        assert (said == confined) == (how == "gated"), said
        first = status(pod.first)
        assert first["NoNewPrivs"] == ("1" if how == "gated" else "0"), first


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
