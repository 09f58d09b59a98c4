# SPDX-License-Identifier: ISC

"""A private egressd for one test: started, known to be ready, ended."""

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import pathlib
import pwd
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

from case import Skip
from reasons import known

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("B", TOP / "build")).absolute()
EGRESSCTL = os.environ.get("EGRESSCTL") or BUILD / "egressctl"
SANITIZED = bool(os.environ.get("SAN"))

# Uids that no Debian package takes; every instance may use the same.
UIDS = "61200 - 61299"
WAIT_S = 60 if SANITIZED else 20
LOG_LINES = 25      # of a daemon whose case has failed

POLICY = """
policy "open" { allow host "api.good.test" }
session "edge" { listen on 127.0.0.1 port 15001 transparent  policy "open" }
session "other" { listen on 127.0.0.1 port 15002 transparent  policy "open" }
"""


def until(what, condition, seconds=None):
    """Wait for a condition that gives no event, bounded."""
    end = time.monotonic() + (seconds or WAIT_S)
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds or WAIT_S} s")
        time.sleep(0.01)


def alive(pid):
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rsplit(")", 1)[1].split()[0] != "Z"


def pids_of(status):
    """Name or session to pid: {"parent": 1, ..., "edge": 9}."""
    return {p.get("session_id") or p["role"]: p["pid"]
            for p in status["processes"]}


def verify(lines, before=None):
    """Audit lines that follow each other, and the line before if there is
    one; the records.  Only a gap may leave numbers out, and it says so."""
    records = []
    for line in lines:
        record = known(json.loads(line))
        assert list(record)[0] == "seq" and list(record)[-1] == "prev", line
        if before is None:
            assert record["prev"] is None, f"the first line has a prev: {line}"
        else:
            digest = hashlib.sha256(before.encode()).hexdigest()
            assert record["prev"] == digest, f"{before} is not before {line}"
            lost = record["lost"] if record["kind"] == "gap" else 0
            last = json.loads(before)["seq"]
            assert record["seq"] == last + 1 + lost, f"{last} before {line}"
        records.append(record)
        before = line
    return records


given = set()


@functools.cache
def ports():
    """A file that all tests on the machine share: byte n is locked by who has
    port n, until its process ends."""
    path = pathlib.Path(tempfile.gettempdir()) / "egressd-test-ports"
    with contextlib.suppress(FileExistsError):
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC)
        os.fchmod(fd, 0o666)
        return fd
    return os.open(path, os.O_RDWR | os.O_CLOEXEC)


def free_port():
    """A port below those that the kernel gives to clients, and above those
    that stand for others in a configuration."""
    locks = ports()
    while True:
        port = random.randrange(16000, 32000)
        if port in given:
            continue
        with socket.socket() as probe, contextlib.suppress(OSError):
            fcntl.lockf(locks, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
            given.add(port)
            probe.bind(("127.0.0.1", port))
            return port


class Client:
    """One connection to the control socket."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # connect() waits while the backlog is full, with an end to it.
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO,
                             struct.pack("ll", WAIT_S, 0))
        self.sock.connect(str(path))
        self.sock.settimeout(WAIT_S)
        self.file = self.sock.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.file.close()
        self.sock.close()

    def send(self, request):
        try:
            self.sock.sendall(json.dumps(request).encode() + b"\n")
        except BrokenPipeError:
            pass    # why it hung up may be there to read

    def read(self):
        """The next answer or record; None when we were hung up on."""
        try:
            line = self.file.readline()
        except ConnectionResetError:
            return None
        return json.loads(line) if line else None

    def ask(self, op, **fields):
        self.send({"id": 1, "op": op, **fields})
        answer = self.read()
        assert answer is not None, f"{op}: hung up"
        return answer


class Started:
    """With it, it has been started; and it ends, also if that failed."""

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.end()
            raise

    def __exit__(self, kind, *_):
        if kind is not None and kind is not Skip:
            self.show()
        self.end()

    def show(self):
        """What may say why a case has failed."""


class Daemon(Started):
    """Started as root, or with user=name as that user.

    The directory is the daemon's own: configuration, sockets, audit file.
    Ports 15000 to 15999 of a configuration stand for free ones: see port().
    Without option it gets no -s: the configuration says where its socket is.
    """

    def __init__(self, conf=POLICY, user=None, audit=True, args=(),
                 program=None, head=True, option=True):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="egressd-test."))
        self.conf = self.dir / "egressd.conf"
        self.socket = self.dir / "egressd.sock"
        self.audit = self.dir / "audit.log"
        self.stderr = self.dir / "stderr"
        self.user = user
        self.args = ["-d", "-f", str(self.conf), *args]
        if option:
            self.args += ["-s", str(self.socket)]
        self.program = program or BUILD / "egressd"
        self.audited = audit
        self.head = head
        self.process = None
        self.ports = {}
        self.owner = pwd.getpwnam(user) if user else None
        if self.owner:
            os.chown(self.dir, self.owner.pw_uid, self.owner.pw_gid)
        self.write(conf)

    def port(self, written):
        """The free port that stands for one written in a configuration."""
        if written not in self.ports:
            self.ports[written] = free_port()
        return self.ports[written]

    def write(self, conf):
        conf = re.sub(r"\bport (15\d{3})\b",
                      lambda m: f"port {self.port(int(m[1]))}", conf)
        head = ""
        if self.head:
            head += "" if self.user else f"uids {UIDS}\n"
            head += f'audit file "{self.audit}"\n' if self.audited else ""
        self.conf.write_text(head + conf)
        self.conf.chmod(0o600)
        if self.owner:
            os.chown(self.conf, self.owner.pw_uid, self.owner.pw_gid)

    def popen(self, **kwargs):
        """The program, in the foreground, without waiting for anything."""
        if self.owner:
            kwargs.update(user=self.owner.pw_uid, group=self.owner.pw_gid,
                          extra_groups=[])
        with open(self.stderr, "ab") as log:
            self.process = subprocess.Popen(
                [str(self.program), *self.args],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd="/", **kwargs)
        return self.process

    def start(self):
        """Returns once the daemon has said that it is ready."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            path = self.dir / "notify"
            notify.bind(str(path))
            path.chmod(0o666)
            notify.settimeout(0.1)
            self.popen(env={**os.environ, "NOTIFY_SOCKET": str(path)})
            end = time.monotonic() + WAIT_S
            while True:
                try:
                    text = notify.recv(64)
                except TimeoutError:
                    text = b""
                if text == b"READY=1":
                    break
                assert self.process.poll() is None and \
                    time.monotonic() < end, f"not ready: {self.log()}"
            path.unlink()
        return self

    def log(self):
        return self.stderr.read_text(errors="replace")

    def show(self):
        print("egressd said:", *self.log().splitlines()[-LOG_LINES:],
              sep="\n  ", flush=True)

    def wait(self, seconds=None):
        """The exit status; a negative number is a signal."""
        return self.process.wait(timeout=seconds or WAIT_S)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def end(self):
        """Whatever happened: nothing of it is left."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.wait(10)
        shutil.rmtree(self.dir, ignore_errors=True)

    def client(self):
        return Client(self.socket)

    def ask(self, op, **fields):
        with self.client() as client:
            return client.ask(op, **fields)

    def processes(self):
        return pids_of(self.ask("status"))

    def settle(self):
        """Wait for the engines that the sessions want, and no others."""
        def settled():
            status = self.ask("status")
            engines = [str(p.get("session_id")) for p in status["processes"]
                       if p["role"] == "tlsengine"]
            running = [s["session_id"] for s in status["sessions"]
                       if s["state"] == "running"]
            return pids_of(status) if sorted(engines) == running and \
                len(running) == len(status["sessions"]) else None
        return until("sessions run", settled)

    def records(self):
        """The audit file, each line parsed."""
        return [known(json.loads(line))
                for line in self.audit.read_text().splitlines()]

    def verified(self):
        """The same, and the chain holds from its beginning to its end."""
        self.ask("status")      # what it counts has been written
        return verify(self.audit.read_text().splitlines())

    def spawn_ctl(self, *args):
        """egressctl in the background, for the caller to end."""
        them = {}
        if self.owner:
            them = {"user": self.owner.pw_uid, "group": self.owner.pw_gid,
                    "extra_groups": []}
        return subprocess.Popen(
            [str(BUILD / "egressctl"), "-s", str(self.socket), *args],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, cwd="/", **them)

    def ctl(self, *args):
        """The same, to its end, as the daemon's own user."""
        process = self.spawn_ctl(*args)
        try:
            out, err = process.communicate(timeout=WAIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
        return subprocess.CompletedProcess(args, process.returncode, out, err)
