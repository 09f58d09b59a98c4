#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""egressctl pump: several connections over one pair of streams, of which either
end may vanish, stand still or talk nonsense."""

import contextlib
import json
import os
import pathlib
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases  # noqa: E402
from daemon import EGRESSCTL, POLICY, WAIT_S, Daemon, until  # noqa: E402
from gate import Broken, Gate, get  # noqa: E402

cases = Cases()

LATE = 124
USAGE = 2
MIB = 1024 * 1024


class Pump:
    """The pump, and a reader of its lines by letter."""

    def __init__(self, path, *args, read=True):
        self.process = subprocess.Popen(
            [str(EGRESSCTL), "-s", str(path), "pump", *args],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        self.queues = {}
        self.lock = threading.Lock()
        self.thread = None
        if read:
            self.read_on()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        if self.thread:
            self.thread.join()
        for file in (self.process.stdin, self.process.stdout,
                     self.process.stderr):
            with contextlib.suppress(BrokenPipeError):
                file.close()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def read_on(self):
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def queue(self, letter):
        with self.lock:
            return self.queues.setdefault(letter, queue.Queue())

    def read(self):
        for line in self.process.stdout:
            text = line.decode().rstrip("\n")
            self.queue(text[:1]).put(text[1:])
        for letter in ("", *map(chr, range(ord("a"), ord("z") + 1))):
            self.queue(letter).put(None)

    def send(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def say(self, letter, **request):
        self.send(f"{letter}{json.dumps(request)}\n".encode())

    def next(self, letter):
        """The next line of a connection; "" for its end, None for ours."""
        text = self.queue(letter).get(timeout=WAIT_S)
        return json.loads(text) if text else text

    def ask(self, letter, op, **fields):
        self.say(letter, id=1, op=op, **fields)
        return self.next(letter)

    def echo(self):
        self.send(b"\n")
        return self.next("") == ""

    def ended(self):
        """Its status, and what it said."""
        status = self.process.wait(timeout=WAIT_S)
        return status, self.process.stderr.read().decode()


class Standin:
    """Where a daemon should be: connections, for the case to use."""

    def __init__(self):
        self.dir = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.dir.name) / "s"
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path))
        self.listener.listen(32)
        self.listener.settimeout(WAIT_S)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        self.dir.cleanup()

    def accept(self):
        conn, _ = self.listener.accept()
        conn.settimeout(WAIT_S)
        return conn


@cases.case
def several():
    """All letters, each a connection of its own, and echoes between."""
    with Daemon() as daemon, Pump(daemon.socket) as pump:
        letters = [chr(ord("a") + n) for n in range(26)]
        for letter in letters:
            pump.say(letter, id=ord(letter), op="log.level", level="info")
        for letter in letters:
            assert pump.next(letter) == {"id": ord(letter), "ok": True,
                                         "log_level": "info"}
        assert pump.echo()
        assert pump.ask("a", "status")["clients"] == 26
        assert pump.ask("b", "events.follow")["ok"]
        os.kill(daemon.settle()["edge"], signal.SIGKILL)
        assert pump.next("b")["kind"] == "session_ended"
        assert pump.ask("a", "status")["ok"]


@cases.case
def in_order():
    """Many requests at once, on three connections."""
    with Daemon() as daemon, Pump(daemon.socket) as pump:
        for n in range(600):
            pump.say("axz"[n % 3], id=n, op="log.level", level="info")
        for letter, first in (("a", 0), ("x", 1), ("z", 2)):
            got = [pump.next(letter)["id"] for _ in range(200)]
            assert got == list(range(first, 600, 3)), got


@cases.case
def closed_and_opened():
    """A letter alone, once for each connection, whoever has closed it."""
    with Daemon() as daemon, Pump(daemon.socket) as pump:
        for _ in range(5):
            assert pump.ask("a", "log.level", level="info")["ok"]
            pump.send(b"a\n")
            assert pump.next("a") == ""
        pump.send(b"a\na\nq\n")     # none is open
        assert pump.echo()
        until("they have gone", lambda: daemon.ask(
            "status")["clients"] == 1)
        pump.send(b"b[]\n")
        assert pump.next("b")["error"]["code"] == "bad_json"
        assert pump.next("b") == ""
        assert pump.ask("b", "log.level", level="info")["ok"]
        pump.send(b"b" + b"x" * 100000 + b"\n")
        assert pump.next("b")["error"]["code"] == "too_long"
        assert pump.next("b") == ""
        assert pump.queue("a").empty() and pump.queue("b").empty()


@cases.case
def end_of_input():
    with Daemon() as daemon, Pump(daemon.socket) as pump:
        assert pump.ask("a", "status")["ok"]
        pump.process.stdin.close()
        assert pump.process.wait(timeout=WAIT_S) == 0
        until("it has gone", lambda: daemon.ask("status")["clients"] == 1)


GARBAGE = {
    "capital": b"A{}\n", "digit": b"1{}\n", "brace": b"{}\n", "nul": b"\0\n",
    "space": b" a{}\n", "return": b"\r\n", "high": b"\xc3\xa9\n",
    "behind": b"a{}\nGET / HTTP/1.1\n",
}


@cases.each(GARBAGE)
def garbage(name):
    """It ends at once; nothing that is not understood is passed on."""
    with Standin() as standin, Pump(standin.path) as pump:
        pump.send(GARBAGE[name])
        status, said = pump.ended()
        assert status == USAGE and "not with a letter" in said, said


@cases.case
def long_lines():
    """Of up to 1 MiB with the letter; a byte more ends the pump, or the
    connection that it came by."""
    with Standin() as standin, Pump(standin.path) as pump:
        most = b"x" * (MIB - 1)
        sender = threading.Thread(target=pump.send, args=[b"a" + most + b"\n"])
        sender.start()
        with standin.accept() as conn, conn.makefile("rb") as file:
            assert file.readline() == most + b"\n"
            sender.join()
            conn.sendall(b'"' + b"y" * (MIB - 2) + b'"\n')
            assert len(pump.next("a")) == MIB - 2
            with contextlib.suppress(OSError):
                conn.sendall(b"z" * (MIB + 1) + b"\n")
            assert pump.next("a") == ""
        assert pump.echo()
        with contextlib.suppress(BrokenPipeError):
            pump.send(b"a" + b"x" * MIB)
            pump.send(b"x")
        status, said = pump.ended()
        assert status == USAGE and "longer than" in said, said
        with contextlib.suppress(BrokenPipeError):
            pump.process.stdin.close()


@cases.case
def half_a_line():
    """What the daemon has not ended is not shown."""
    with Standin() as standin, Pump(standin.path) as pump:
        pump.send(b"a{}\n")
        with standin.accept() as conn:
            conn.sendall(b'{"a":1}\n{"b":')
        assert pump.next("a") == {"a": 1}
        assert pump.next("a") == ""


@cases.case
def no_daemon():
    """It is said, and tried again with the next line."""
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name) / "s"
        with Pump(path) as pump:
            pump.send(b"a{}\na{}\n")
            assert pump.next("a") == "" and pump.next("a") == ""
            assert pump.echo()
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(str(path))
                listener.listen()
                listener.settimeout(WAIT_S)
                pump.send(b"a{}\n")
                with listener.accept()[0] as conn:
                    assert conn.recv(3) == b"{}\n"
                assert pump.next("a") == ""


@cases.case
def nobody_there():
    """Half-open: nothing comes, and the pump ends by itself."""
    with Standin() as standin, Pump(standin.path, "-i", "1") as pump:
        pump.send(b"a{}\n")
        with standin.accept() as conn:
            conn.recv(3)
            status, said = pump.ended()
            assert status == LATE and "no input" in said, said
            assert conn.recv(1) == b""


@cases.case
def kept_alive():
    """By echoes alone."""
    with Standin() as standin, Pump(standin.path, "-i", "5") as pump:
        end = time.monotonic() + 8
        while time.monotonic() < end:
            assert pump.echo()
            time.sleep(0.2)
        assert pump.process.poll() is None


@cases.case
def stuck_output():
    """Nobody reads: the daemon is not read from any more, and after a while
    the pump ends although there is input."""
    with Standin() as standin, \
            Pump(standin.path, "-i", "2", read=False) as pump:
        pump.send(b"a{}\n")
        with standin.accept() as conn:
            conn.settimeout(0.2)
            sent, stuck = 0, False
            end = time.monotonic() + WAIT_S
            while not stuck and sent < 64 * MIB and time.monotonic() < end:
                try:
                    sent += conn.send(b"1234567\n" * 1000)
                except TimeoutError:
                    # Else it has not come to it yet.
                    stuck = sent > MIB // 2
            assert stuck and sent < 8 * MIB, sent
            with contextlib.suppress(BrokenPipeError):
                while pump.process.poll() is None and \
                        time.monotonic() < end + WAIT_S:
                    pump.send(b"\n")
                    time.sleep(0.05)
        status, said = pump.ended()
        assert status == LATE and "takes the output" in said, said


@cases.case
def stuck_for_a_while():
    """Then it is read after all: nothing is missing."""
    with Standin() as standin, Pump(standin.path, read=False) as pump:
        pump.send(b"a{}\n")
        with standin.accept() as conn:
            lines = b"".join(b'[%d,"%s"]\n' % (n, b"x" * 200)
                             for n in range(40000))
            conn.settimeout(1)
            sent = 0
            with contextlib.suppress(TimeoutError):
                while sent < len(lines):
                    sent += conn.send(lines[sent:sent + 65536])
            assert sent < len(lines)
            conn.settimeout(WAIT_S)
            sender = threading.Thread(target=conn.sendall,
                                      args=[lines[sent:]])
            sender.start()
            pump.read_on()
            for n in range(40000):
                assert pump.next("a")[0] == n
            sender.join()


@cases.case
def stuck_connection():
    """One that does not read is closed when it has enough; the others never
    notice."""
    with Standin() as standin, Pump(standin.path) as pump:
        pump.send(b"a{}\n")
        with standin.accept() as good:
            assert good.recv(3) == b"{}\n"
            pump.send(b"b{}\n")
            with standin.accept():
                for _ in range(100):
                    pump.send(b"b" + b"x" * 65535 + b"\n")
                    if not pump.queue("b").empty():
                        break
                assert pump.next("b") == ""
                pump.send(b'a"still"\n')
                assert good.recv(8) == b'"still"\n'
                good.sendall(b'"here"\n')
                assert pump.next("a") == "here"
                assert pump.echo()


@cases.case
def options():
    for arg in ("0", "-1", "x", "86401", "1s"):
        done = subprocess.run([str(EGRESSCTL), "pump", "-i", arg],
                              stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=WAIT_S, check=False)
        assert done.returncode == USAGE and "wanted" in done.stderr, done


# ---- as a control host uses it ----------------------------------------------

class Load:
    def __init__(self, gate):
        self.gate = gate
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.thread.join()

    def run(self):
        while not self.stopped.is_set():
            with contextlib.suppress(OSError, Broken), \
                    self.gate.plain() as wire:
                for _ in range(50):
                    wire.ask(get("/", host="evil.test"))
                    if self.stopped.is_set():
                        return


@cases.case
def twenty_cuts():
    """The pump is killed in the middle of records; with the next one no number
    is missing, and none that was acknowledged comes again."""
    with Gate("", more="spool 64M") as gate, Load(gate):
        kept = []
        for cut in range(20):
            with Pump(gate.socket) as pump:
                audit = pump.ask("a", "status")["audit"]
                kept = [n for n in kept
                        if n <= audit["spool"]["acknowledged"]]
                assert pump.ask("b", "events.follow", **{
                    "from": "acknowledged", "term": cut})["ok"]
                for n in range(60):
                    kept.append(pump.next("b")["seq"])
                    if n % 20 == 19:
                        answer = pump.ask("d", "events.ack",
                                          seq=kept[-1 - cut % 5], term=cut)
                        assert answer["ok"], answer
                pump.kill()
        assert kept == list(range(1, len(kept) + 1)), kept
        assert len(kept) > 20 * 50, len(kept)


@cases.case
def daemon_killed():
    """All connections end, and open again when it is back."""
    with Daemon(f"spool 16M\n{POLICY}") as daemon, \
            Pump(daemon.socket) as pump:
        assert pump.ask("b", "events.follow", **{"from": "acknowledged"})["ok"]
        assert pump.ask("c", "questions.serve")["ok"]
        assert pump.next("b")["seq"] == 1
        daemon.settle()
        daemon.process.kill()
        daemon.wait()
        while pump.next("b") != "":
            continue
        assert pump.next("c") == ""
        daemon.start()
        assert pump.ask("b", "events.follow", **{"from": "acknowledged"})["ok"]
        assert pump.next("b")["seq"] == 1


cases.main()
