#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Sandboxes that the daemon has started elsewhere, as it does under systemd:
egressd-launch at both ends of a socket, and a stand-in for systemd, which
starts one for each connection."""

import contextlib
import os
import pathlib
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from case import Cases, Skip  # noqa: E402
from daemon import BUILD, WAIT_S, Daemon, alive, until  # noqa: E402
from delegated import Delegated  # noqa: E402

cases = Cases()
LAUNCH = BUILD / "libexec" / "egressd-launch"
ROOT = os.geteuid() == 0
USER = 'user "nobody"' if ROOT else ""
BACKENDS = ("local", "virtual")
LEAVER = """#!/bin/sh
setsid sleep 9031 < /dev/null > /dev/null 2>&1 &
exec cat
"""
CONF = """
policy "none" {{ }}
sandbox "local" local {{
	policy "none" {user} cwd "{dir}/work" limit memory 200M processes 40
	environment {{ "COLOUR" "green" }}
}}
sandbox "virtual" virtual {{ policy "none" {user} size 16M }}
sandbox "missing" local {{ policy "none" {user} cwd "{dir}/missing" }}
sandbox "custom" custom "{dir}/leaver" {{ policy "none" {user} ungated }}
"""


def same(have, want, why=""):
    assert have == want, f"{have!r}, expected {want!r} {why}"


class Launcher:
    """What systemd does with a socket that has Accept=yes."""

    def __init__(self, path, program):
        self.path, self.program = path, program
        self.started = []
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(str(path))
        self.listener.listen(64)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # shutdown() wakes whoever is in accept().
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join(WAIT_S)
        self.listener.close()
        for process in self.started:
            process.kill()
            process.wait(WAIT_S)
        self.path.unlink()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                with client:
                    self.started.append(subprocess.Popen(
                        [str(self.program)], stdin=client,
                        stdout=subprocess.DEVNULL, start_new_session=True))

    def running(self):
        return [p for p in self.started if p.poll() is None]


class Place(contextlib.ExitStack):
    def __init__(self, program=LAUNCH, group=None, launcher=True):
        super().__init__()
        self.dir = pathlib.Path(self.enter_context(
            tempfile.TemporaryDirectory(prefix="egressd-test.")))
        self.dir.chmod(0o755)
        (self.dir / "work").mkdir()
        (self.dir / "work").chmod(0o777)
        (self.dir / "leaver").write_text(LEAVER)
        (self.dir / "leaver").chmod(0o755)
        if group:
            program = group.wrap(program, self.dir)
        path = self.dir / "launch.sock"
        if launcher:
            self.launcher = self.enter_context(Launcher(path, program))
        os.environ["EGRESSD_LAUNCHER"] = str(path)
        try:
            self.daemon = self.enter_context(
                Daemon(CONF.format(dir=self.dir, user=USER)))
        except BaseException:
            self.close()
            raise
        finally:
            del os.environ["EGRESSD_LAUNCHER"]

    def session(self, sandbox, name):
        answer = self.daemon.ask("session.start", sandbox=sandbox,
                                 session_id=name, env={"A": "b c"})
        assert answer["ok"], answer

    def boxes(self):
        """All below the launchers."""
        found = []
        todo = [p.pid for p in self.launcher.running()]
        while todo:
            with contextlib.suppress(OSError):
                text = pathlib.Path("/proc/%d/task/%d/children" % (
                    todo[0], todo[0])).read_text()
                found += map(int, text.split())
                todo += map(int, text.split())
            del todo[0]
        return found

    def ended(self, pids):
        until("the launchers end", lambda: not self.launcher.running())
        until("nothing is left", lambda: not any(map(alive, pids)))


@cases.each(BACKENDS)
def works(sandbox):
    with Place() as place:
        place.session(sandbox, "a")
        pids = place.boxes()
        assert len(pids) >= 3, pids
        done = place.daemon.ctl("exec", "a", "--", "sh", "-c", "id -u; "
                                "echo $A $COLOUR $EGRESSD_LAUNCHER; umask; "
                                "echo x > file; pwd")
        same((done.returncode, done.stderr), (0, ""))
        uid, env, mask, cwd = done.stdout.split("\n")[:4]
        same(uid, str(65534 if ROOT else os.geteuid()))
        same(env, "b c" + " green" * (sandbox == "local"))
        same(mask, "0022")
        work = place.dir / "work"
        same(cwd, str(work) if sandbox == "local" else "/work")
        same((work / "file").exists(), sandbox == "local")
        same(place.daemon.ask("session.show", session_id="a")["limited_by"],
             "rlimit" if sandbox == "local" else None)
        assert place.daemon.ask("session.stop", session_id="a")["ok"]
        place.ended(pids)


@cases.case
def limits_of_a_process():
    """Where no control group counts, its processes are limited as ever."""
    with Place() as place:
        place.session("local", "a")
        done = place.daemon.ctl("exec", "a", "--", "sh", "-c",
                                "ulimit -d; ulimit -p")
        same(done.stdout, f"{200 << 10}\n40\n", done.stderr)


@cases.case
def in_a_group():
    """All of a sandbox is in a control group below the launcher's."""
    with Delegated("launch") as group, Place(group=group) as place:
        place.session("local", "a")
        box, = group.boxes()
        pids = group.pids(box)
        same(sorted(pids), sorted(place.boxes()))
        same(place.daemon.ask("session.show", session_id="a")["limited_by"],
             "cgroup" if group.limits else "rlimit")
        assert place.daemon.ask("session.stop", session_id="a")["ok"]
        same(group.boxes(), [])
        place.ended(pids)


@cases.case
def custom():
    """A program for each connection; what it leaves behind goes with it."""
    with Delegated("custom") as group, Place(group=group) as place:
        place.session("custom", "c")
        with place.daemon.client() as client:
            client.send({"id": 1, "op": "session.attach", "session_id": "c"})
            assert client.read()["ok"]
            client.sock.sendall(b"x")
            same(client.sock.recv(1), b"x")
            box, = group.boxes()
            pids = group.pids(box)
            pids += until("it is left", lambda: group.running(
                box, "sleep\0009031"))
        place.ended(pids)
        until("the group is gone", lambda: not group.boxes())


@cases.case
def killed_daemon():
    with Place() as place:
        place.session("virtual", "a")
        place.session("local", "b")
        pids = place.boxes()
        place.daemon.process.kill()
        place.daemon.wait()
        place.ended(pids)


@cases.case
def killed_launcher():
    """The session is over, and says why."""
    with Place() as place:
        place.session("virtual", "a")
        pids = place.boxes()
        with place.daemon.client() as client:
            client.send({"id": 1, "op": "session.wait", "session_id": "a"})
            for process in place.launcher.running():
                process.send_signal(signal.SIGKILL)
            same(client.read()["reason"], "sandbox_died")
        place.ended(pids)


@cases.case
def why_not():
    """Of a sandbox that does not start, the client hears its last words."""
    with Place() as place:
        answer = place.daemon.ask("session.start", sandbox="missing")
        assert re.search(r"missing: No such file", answer["error"]["message"]
                         ), answer
        place.ended([])


@cases.case
def no_launcher():
    with Place(launcher=False) as place:
        answer = place.daemon.ask("session.start", sandbox="virtual")
        assert "launch.sock: No such file" in answer["error"]["message"], \
            answer


def serve(data, fds=(), **kwargs):
    """A packet to a launcher of its own: how it ended, what it said."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        socket.send_fds(ours, [data], fds)
        ours.shutdown(socket.SHUT_WR)
        done = subprocess.run([str(LAUNCH)], stdin=theirs, text=True,
                              stdout=subprocess.DEVNULL, timeout=WAIT_S,
                              stderr=subprocess.PIPE, **kwargs)
        return done.returncode, done.stderr


@cases.case
def another_user():
    """Nobody but the user that it runs as is served."""
    if not ROOT:
        raise Skip("needs a second user")
    # Who runs the tests may keep the tree to himself.
    with tempfile.TemporaryDirectory() as tmp:
        os.chmod(tmp, 0o755)
        copy = pathlib.Path(tmp, "egressd-launch")
        copy.write_bytes(LAUNCH.read_bytes())
        copy.chmod(0o755)
        ours, theirs = socket.socketpair(socket.AF_UNIX,
                                         socket.SOCK_SEQPACKET)
        with ours, theirs:
            done = subprocess.run([str(copy)], stdin=theirs, user=65534,
                                  timeout=WAIT_S, capture_output=True,
                                  text=True)
    same((done.returncode, done.stderr),
         (127, "egressd-launch: user 0 is connected\n"))


@cases.case
def told_in_the_end():
    """A sandbox that ends while it is told to: how it ended is heard all the
    same."""
    with tempfile.TemporaryDirectory() as tmp, \
            socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        path = f"{tmp}/sock"
        listener.bind(path)
        listener.listen()
        listener.settimeout(WAIT_S)
        process = subprocess.Popen([str(LAUNCH), f"-s{path}", "-uroot", "-d/",
                                    "--", "/bin/true", "true"])
        try:
            client, _ = listener.accept()
            with client:
                client.settimeout(WAIT_S)
                _, fds, _, _ = socket.recv_fds(client, 65536, 5)
                for fd in fds:
                    os.close(fd)
                process.terminate()
                assert select.select([client], [], [], WAIT_S)[0]
                client.send(struct.pack("i", 7 << 8))
            same(process.wait(WAIT_S), 7)
        finally:
            process.kill()
            process.wait()


HEAD = struct.pack("=IIIIQQQ", 1, 0, 0, 0, 0, 0, 0)
WORDS = b"root\0/\0/bin/true\0true\0"


@cases.case
def packets():
    """What is not whole starts nothing."""
    with open(os.devnull) as null:
        fds = [null.fileno()] * 3
        for data, give in ((b"x", fds), (HEAD, fds), (HEAD + b"a\0/\0", fds),
                           (HEAD + WORDS[:-1], fds), (HEAD + WORDS, fds[:2]),
                           (HEAD + WORDS, ()),
                           (b"\xff" * 8 + HEAD[8:] + WORDS, fds)):
            code, text = serve(data, give)
            same(code, 127, (data, give, text))
    same(serve(b""), (0, ""), "hung up")


@cases.case
def not_as_root():
    if not ROOT:
        raise Skip("who is not root cannot become root")
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs, open(os.devnull, "r+") as null, \
            tempfile.TemporaryFile("w+") as errors:
        socket.send_fds(ours, [HEAD + WORDS], [
            null.fileno(), null.fileno(), errors.fileno()])
        subprocess.run([str(LAUNCH)], stdin=theirs, timeout=WAIT_S,
                       check=True)
        status, = struct.unpack("i", ours.recv(4))
        same(os.waitstatus_to_exitcode(status), 127)
        errors.seek(0)
        same(errors.read(), "egressd-launch: root is root\n")


cases.main()
