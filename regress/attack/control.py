#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""The battery, parts B and H: what a control client can do to us, which is
nothing.

Each case ends with the same question: does anybody else notice?
"""

import array
import contextlib
import json
import os
import pathlib
import pwd
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases, Skip  # noqa: E402
from daemon import POLICY, SANITIZED, WAIT_S, Daemon, until  # noqa: E402
from gate import Gate, get  # noqa: E402

cases = Cases()

STATUS = b'{"id":1,"op":"status"}\n'
GROWTH_KIB = 8 * 1024


def rss(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError(f"no VmRSS of {pid}")


def descriptors(pid):
    """Their number, or None for whom the kernel does not tell."""
    with contextlib.suppress(PermissionError):
        return len(os.listdir(f"/proc/{pid}/fd"))


@contextlib.contextmanager
def unnoticed(conf=POLICY):
    """A daemon that is attacked while another client looks on: the same
    processes, the same answers, and no memory or descriptor is lost."""
    with Daemon(conf) as daemon, daemon.client() as witness:
        pids = daemon.settle()
        watched = ("controld", "policyd", "recorder", "parent")
        witness.ask("status")
        memory = {name: rss(pids[name]) for name in watched}
        files = {name: descriptors(pids[name]) for name in watched}
        yield daemon
        assert witness.ask("status")["ok"]
        until("the attackers are gone", lambda: witness.ask(
            "status")["clients"] == 1)
        assert daemon.settle() == pids, "somebody died"
        for name in watched:
            until(f"{name} has {files[name]} descriptors again",
                  lambda: descriptors(pids[name]) == files[name])
            grown = rss(pids[name]) - memory[name]
            assert SANITIZED or grown < GROWTH_KIB, f"{name}: {grown} KiB"
        assert "is killed" not in daemon.log(), daemon.log()[-600:]


def throw(daemon, data):
    """Send it; what comes back until we are hung up on."""
    with daemon.client() as client:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            client.sock.sendall(data)
        return drain(client)


def drain(client):
    got = b""
    with contextlib.suppress(ConnectionResetError):
        while chunk := client.sock.recv(65536):
            got += chunk
    return got


def codes(answers):
    return {json.loads(line).get("error", {}).get("code")
            for line in answers.splitlines()}


class SlowSender:
    """One byte a second, and never a whole request: it has 15 seconds."""

    def __init__(self):
        self.thread = threading.Thread(target=self.run)
        self.lasted, self.error = None, None

    def run(self):
        try:
            with Daemon() as daemon:
                self.lasted = self.attack(daemon)
                assert daemon.ask("status")["ok"]
        except Exception as error:
            self.error = error

    def attack(self, daemon):
        with daemon.client() as slow, daemon.client() as silent, \
                daemon.client() as idle:
            assert idle.ask("status")["ok"]
            start = time.monotonic()
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                for byte in b'{"id":1,' + b" " * 40:
                    slow.sock.sendall(bytes([byte]))
                    slow.sock.settimeout(1)
                    with contextlib.suppress(TimeoutError):
                        if slow.sock.recv(1) == b"":
                            break
            lasted = time.monotonic() - start
            assert drain(silent) == b"", "a silent one is answered"
            assert idle.ask("status")["ok"], "one that has asked has time"
        return lasted


slow_sender_attack = SlowSender()


@cases.case
def garbage():
    with unnoticed() as daemon:
        for data in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\n", b"\0\n",
                     b"\xff\xfe\xfd\n", b"{}{}\n", b"nul\n", b'"\n',
                     bytes(range(256)), os.urandom(60000) + b"\n",
                     b"\x16\x03\x01\x02\x00\x01\x00\n", b"[" * 60000 + b"\n",
                     b'{"a":' * 12000 + b"\n", b"-" * 60000 + b"\n"):
            got = throw(daemon, data)
            assert codes(got) == {"bad_json"}, (data[:40], got[:200])


@cases.case
def nesting():
    """A hundred thousand brackets, in one line and in as many as fit."""
    with unnoticed() as daemon:
        assert codes(throw(daemon, b"[" * 100000 + b"\n")) == {"too_long"}
        for depth in (500, 999, 1001, 30000):
            line = b'{"op":"status","x":' + b"[" * depth + b"]" * depth + b"}"
            with daemon.client() as client:
                client.sock.sendall(line + b"\n")
                answer = client.read()
                assert answer["error"]["code"] in (
                    "bad_json", "bad_request"), answer


@cases.case
def numbers():
    """An id is an integer that JSON readers agree about, or an error."""
    with unnoticed() as daemon:
        for number in (b"1e400", b"-1e400", b"1" * 60, b"1" * 60000, b"-0.5",
                       b"0." + b"1" * 60000, b"9007199254740993",
                       b"18446744073709551616", b"nan", b"0x10"):
            with daemon.client() as client:
                client.sock.sendall(b'{"id":' + number +
                                    b',"op":"status"}\n')
                answer = client.read()
                assert answer["id"] is None, answer
                assert answer["error"]["code"] in (
                    "bad_json", "bad_request"), answer


@cases.case
def duplicates():
    """Two readers would take two different ones: so neither is taken."""
    with unnoticed() as daemon, daemon.client() as client:
        for line in (b'{"op":"status","op":"reload"}',
                     b'{"op":"reload","op":"status"}',
                     b'{"op":"status","\\u006fp":"reload"}',
                     b'{"id":1,"id":2,"op":"status"}',
                     b'{"op":"status",' + b'"op":"x",' * 6000 + b'"z":1}'):
            client.sock.sendall(line + b"\n")
            answer = client.read()
            assert answer["error"]["code"] == "bad_request", answer
        assert client.ask("status")["generation"] == 1


@cases.case
def escapes():
    """What a client said comes back in answers and logs as text only."""
    with unnoticed() as daemon, daemon.client() as client:
        assert daemon.ask("log.level", level="debug")["ok"]
        for text in ("\x1b[2J\x1b]0;owned\x07", "a\nb\r", '"}\n{"id":1',
                     "\u202e\u2028", "x" * 30000, "%s%n%x" * 100, "é\x7f"):
            client.send({"id": 1, "op": text})
            answer = client.file.readline()
            assert json.loads(answer)["error"]["code"] == "unknown_op"
            assert b"\x1b" not in answer and len(answer) < 4096, answer
        assert "\x1b" not in daemon.log() and "owned\x07" not in daemon.log()


@cases.case
def ten_mebibytes():
    """No newline in sight: hung up on after 64 KiB."""
    with unnoticed() as daemon:
        for data in (b"x", b" ", b"\0", b"["):
            got = throw(daemon, data * (10 * 1024 * 1024))
            assert codes(got) <= {"too_long"}, got[:200]
        assert codes(throw(daemon, b"x" * 65537)) == {"too_long"}


@cases.case
def stops_reading():
    """It asks and asks and never reads: at most 1 MiB waits for it."""
    with unnoticed() as daemon:
        for line in (b'{"id":1,"op":"nothing"}\n', STATUS):
            with daemon.client() as client:
                client.sock.settimeout(WAIT_S)
                sent = 0
                with contextlib.suppress(BrokenPipeError,
                                         ConnectionResetError):
                    while sent < 64 * 1024 * 1024:
                        sent += client.sock.send(line * 1000)
                assert sent < 64 * 1024 * 1024, f"{sent} bytes are borne"


@cases.case
def reads_nothing_at_first():
    """Thousands of requests are answered if they are asked at a pace, and
    read late, as long as what waits is bounded."""
    with unnoticed() as daemon, daemon.client() as client:
        line = b'{"id":%d,"op":"nothing"}\n'
        for n in range(2000):
            client.sock.sendall(line % n)
        for n in range(2000):
            assert client.read()["id"] == n


@cases.case
def half_closed():
    """Answers to what was asked before the sending side was closed."""
    with unnoticed() as daemon:
        for data, count in ((STATUS, 1), (STATUS * 30, 30), (b"", 0),
                            (STATUS + b'{"id":2,"op"', 1), (b'{"id":2', 0)):
            with daemon.client() as client:
                client.sock.sendall(data)
                client.sock.shutdown(socket.SHUT_WR)
                got = drain(client)
                assert got.count(b"\n") == count, (data[:60], got[:200])
        with daemon.client() as client:
            client.sock.shutdown(socket.SHUT_RD)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                client.sock.sendall(STATUS * 10)


@cases.case
def storm():
    """Connect and close, with and without a word, two thousand times."""
    with unnoticed() as daemon:
        for n in range(2000):
            with socket.socket(socket.AF_UNIX) as sock:
                sock.connect(str(daemon.socket))
                with contextlib.suppress(BrokenPipeError):
                    sock.send((b"", STATUS, STATUS[:10])[n % 3])
        honest(daemon)


@cases.case
def refusals_and_away():
    """What the recorder tells of a session is long; whoever asks for it again
    and again, and leaves, does not make it tell more than somebody reads."""
    label = "a" * 60
    with Gate('allow host "api.good.test"') as gate:
        for n in range(8):
            with gate.plain() as wire:
                wire.ask(get("/", host=f"{label}.{label}.{label}.{n}{label[5:]}.t"))
        pids = gate.settle()
        asks = b"".join(json.dumps({
            "id": n, "op": "session.refusals", "session_id": "edge"}).encode()
            + b"\n" for n in range(64))
        end = time.monotonic() + 3
        while time.monotonic() < end:
            with contextlib.ExitStack() as held:
                for _ in range(10):
                    throw_in(held, gate, asks)
        assert until("there is room again", lambda: gate.ask(
            "session.refusals", session_id="edge").get("total")) == 8
        assert gate.settle() == pids, "somebody died"


def throw_in(held, daemon, data):
    """Sent by a client that stays until held is left; it may be refused, and
    waits for nobody."""
    sock = held.enter_context(socket.socket(socket.AF_UNIX))
    sock.settimeout(WAIT_S)
    with contextlib.suppress(OSError):
        sock.connect(str(daemon.socket))
        sock.sendall(data)


def crowd(daemon, count):
    """So many at once: how many were served, how many refused."""
    clients = [daemon.client() for _ in range(count)]
    served = refused = 0
    try:
        for client in clients:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                client.sock.sendall(STATUS)
        for client in clients:
            answer = client.read()
            assert answer is not None, "hung up on without a word"
            if "error" in answer:
                assert answer["error"]["code"] == "too_many_clients", answer
                assert answer["id"] is None and client.read() is None
                refused += 1
            else:
                assert answer["ok"] and answer["id"] == 1, answer
                served += 1
    finally:
        for client in clients:
            client.close()
    return served, refused


def honest(daemon):
    """One more, when they have left: served within a second of our own
    time, or of the machine's if that has other things to do."""
    start, load = time.monotonic(), os.getloadavg()[0]
    until("it is served", lambda: "error" not in daemon.ask("status"))
    took = time.monotonic() - start
    limit = max(1, load / os.cpu_count()) * (5 if SANITIZED else 1)
    assert took < limit, f"it waited {took:.1f} s, load {load}"


@cases.case
def five_hundred_refused():
    """Beyond `limit clients` they are told so."""
    with unnoticed() as daemon:
        served, refused = crowd(daemon, 500)
        assert 1 <= served <= 63 and served + refused == 500, (served, refused)
        honest(daemon)


@cases.case
def five_hundred_served():
    with unnoticed("limit clients 600\n" + POLICY) as daemon:
        served, refused = crowd(daemon, 500)
        assert (served, refused) == (500, 0), (served, refused)
        honest(daemon)


@cases.case
def five_hundred_hold():
    """They all hold on with half a request: one more is told that there are
    too many, and who was there before is served as before."""
    with unnoticed() as daemon:
        clients = [daemon.client() for _ in range(500)]
        try:
            for client in clients:
                with contextlib.suppress(BrokenPipeError):
                    client.sock.sendall(STATUS[:-1])
            answer = daemon.ask("status")
            assert answer["error"]["code"] == "too_many_clients", answer
        finally:
            for client in clients:
                client.close()
        honest(daemon)


@cases.case
def descriptors_sent():
    """Descriptors that come with a request stay with nobody: `unnoticed`
    counts ours afterwards."""
    if os.geteuid() != 0:
        raise Skip("only root can count the descriptors of a confined one")
    with unnoticed() as daemon, open("/etc/passwd", "rb") as file, \
            daemon.client() as client, daemon.client() as follower:
        pids = daemon.processes()
        until("the last one who asked is gone", lambda: client.ask(
            "status")["clients"] == 3)
        before = descriptors(pids["controld"])
        fds = array.array("i", [file.fileno()] * 200)
        message = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)]
        for n in range(50):
            client.sock.sendmsg([STATUS], message)
            assert client.read()["error"]["code"] == "bad_request"
        assert descriptors(pids["controld"]) == before
        assert follower.ask("events.follow")["ok"]
        until("a follower", lambda: daemon.ask(
            "status")["audit"]["followers"] == 1)
        before = descriptors(pids["recorder"])
        for _ in range(50):
            follower.sock.sendmsg([b"x"], message)
        assert daemon.ask("status")["ok"]
        until("the recorder keeps none", lambda: descriptors(
            pids["recorder"]) == before)


# One that every user may run.
PYTHON = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else \
    sys.executable

# A client as a program: it prints what it was told.
PROBE = r"""
import os, socket, sys
sock = socket.socket(socket.AF_UNIX)
sock.settimeout(20)
sock.connect(sys.argv[1])
if len(sys.argv) > 2 and os.fork() != 0:
    os._exit(0)
try:
    sock.sendall(b'{"id":1,"op":"status"}\n')
    got = sock.makefile("rb").readline()
except (BrokenPipeError, ConnectionResetError):
    got = b""
except TimeoutError:
    got = b"stuck"
print("served" if b'"ok":true' in got else "hung up" if not got else got)
"""


def probe(daemon, *wrapper, more=(), **kwargs):
    done = subprocess.run(
        [*wrapper, PYTHON, "-c", PROBE, str(daemon.socket), *more],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd="/",
        timeout=WAIT_S * 2, **kwargs)
    return done.stdout.strip() or done.stderr.strip()


def can_unshare(flags, **kwargs):
    done = subprocess.run(["unshare", flags, "true"], capture_output=True,
                          text=True, **kwargs)
    if done.returncode != 0:
        raise Skip(f"unshare {flags}: {done.stderr.strip()}")


@cases.each(["-Urn", "-Ur", "-n"])
def from_a_sandbox(flags):
    """A peer in another user or network namespace is hung up on without a
    word, root or not; the same peer outside is served."""
    if os.geteuid() != 0 and flags == "-n":
        raise Skip("only root has a network namespace without a user one")
    can_unshare(flags)
    with unnoticed() as daemon:
        assert probe(daemon) == "served"
        assert probe(daemon, "unshare", flags) == "hung up"
        assert "sandbox" in daemon.log(), daemon.log()
        assert probe(daemon) == "served"


@cases.each(["-Urn", "-Ur"])
def ordinary_user_in_a_sandbox(flags):
    if os.geteuid() != 0:
        raise Skip("only root can be another user")
    nobody = pwd.getpwnam("nobody")
    them = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    can_unshare(flags, **them)
    with open_to("nobody") as daemon:
        assert probe(daemon, **them) == "served"
        assert probe(daemon, "unshare", flags, **them) == "hung up"
        others = {**them, "user": nobody.pw_uid - 1}
        assert "PermissionError" in probe(daemon, **others)


@contextlib.contextmanager
def open_to(owner):
    """A daemon whose socket belongs to somebody else."""
    daemon = Daemon()
    daemon.dir.chmod(0o711)
    daemon.write(f'control socket "{daemon.socket}" owner "{owner}"\n' +
                 POLICY)
    with daemon:
        pids = daemon.settle()
        yield daemon
        assert daemon.settle() == pids


@cases.case
def our_own_uid():
    """A process of ours that fell to an attacker is no operator."""
    if os.geteuid() != 0:
        raise Skip("without root all our processes are the user's")
    with Daemon() as daemon:
        engine = daemon.settle()["edge"]
        status = pathlib.Path(f"/proc/{engine}/status").read_text()
        uid = int(status.split("Uid:")[1].split()[0])
    with open_to(str(uid)) as daemon:
        assert probe(daemon, user=uid, group=uid, extra_groups=[]) == "hung up"


@cases.case
def peer_is_gone():
    """Connected by a process that has ended; its child asks."""
    with unnoticed() as daemon:
        for _ in range(20):
            said = probe(daemon, more=("leave",))
            assert said in ("served", "hung up"), said


@cases.case
def stopped_peer():
    """A client that is stopped in the middle holds up nobody."""
    with unnoticed() as daemon:
        process = subprocess.Popen(
            [PYTHON, "-c", PROBE +
             "\nsys.stdout.flush(); import time; time.sleep(60)",
             str(daemon.socket)], stdout=subprocess.PIPE, cwd="/")
        try:
            assert process.stdout.readline() == b"served\n"
            process.send_signal(signal.SIGSTOP)
            honest(daemon)
            assert daemon.ask("reload")["ok"]
            daemon.settle()
        finally:
            process.kill()
            process.communicate()


@cases.case
def slow_sender():
    """Measured beside the other cases."""
    slow_sender_attack.thread.join()
    if slow_sender_attack.error is not None:
        raise slow_sender_attack.error
    assert 10 <= slow_sender_attack.lasted <= 25, slow_sender_attack.lasted


if not sys.argv[1:] or any(word in "slow_sender" for word in sys.argv[1:]):
    slow_sender_attack.thread.start()
cases.main()
