#!/usr/bin/python3
# SPDX-License-Identifier: ISC

"""The recorder is there and does not read.  What its channel holds it will
know of, whatever happens; a request that has no place in it does not leave.
Nobody else waits for that."""

import contextlib
import os
import pathlib
import signal
import socket
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases, Skip  # noqa: E402
from check import one_final_each, stands  # noqa: E402
from daemon import SANITIZED, alive, until  # noqa: E402
from gate import GOOD  # noqa: E402
from procs import status  # noqa: E402
from standin_any import MIXES, mixed  # noqa: E402
from standin_h2 import ok  # noqa: E402

cases = Cases()

COUNT = 90
# Four fields, of bytes that HPACK cannot make fewer.
FIELDS = [(f"x-{n}", "&" * 5000) for n in range(4)]
SIZE = sum(len(v) for _, v in FIELDS)
# The kernel takes twice what it was asked for, and while there is any room a
# piece more, of half the room at most.
CHANNEL = min(256 * 1024, int(pathlib.Path(
    "/proc/sys/net/core/wmem_max").read_text())) * 2 * 3 // 2
STILL_S = 2 if SANITIZED else 1
SOON_S = 5


class Full:
    """A gate with many requests, each with more to be told than is usual, and
    a recorder that has stopped before the first of them."""

    def __init__(self, both, stack):
        self.both = both
        with both.connect() as client:
            assert client.fetch("/first").status == 200
        count = COUNT if both.client == "h1" else 1
        clients = [stack.enter_context(both.connect()) for _ in range(count)]
        pids = both.gate.settle()
        self.engine, self.recorder = pids["edge"], pids["recorder"]
        os.kill(self.recorder, signal.SIGSTOP)
        stack.callback(self.go_on)
        until("it has stopped", lambda: "T" in status(self.recorder)["State"])
        self.streams = [
            clients[n % count].request(f"/{n}", fields=FIELDS)
            for n in range(COUNT)]
        until("the origin gets no more", lambda: stands(self.came, STILL_S))

    def came(self):
        """Requests at the origin, but for the first."""
        return len(self.both.asked()) - 1

    def go_on(self):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.recorder, signal.SIGCONT)


@contextlib.contextmanager
def full(mix):
    if CHANNEL // SIZE > COUNT // 2:
        raise Skip(f"a channel holds {CHANNEL} bytes")
    with mixed(mix, ok) as both, contextlib.ExitStack() as stack:
        both.gate.listen += "  dns on 127.0.0.1 port 15053"
        both.gate.reload(both.gate.rules)
        yield both, Full(both, stack)


@cases.each(MIXES)
def held_back(mix):
    """No more than the channel can hold get to the origin, and when the
    recorder reads again all do, each with its records."""
    with full(mix) as (both, them):
        came = them.came()
        print(f"# {mix}: {came} of {COUNT} came, {CHANNEL // SIZE} may")
        assert came <= CHANNEL // SIZE, f"{came} of {COUNT} at the origin"
        them.go_on()
        for stream in them.streams:
            assert stream.head() == 200 and stream.body() == b"ok"
        one_final_each(both.gate, 1 + COUNT)
        assert them.came() == COUNT, them.came()


@cases.each(MIXES)
def known_after_all(mix):
    """The engine is killed then: the recorder, when it reads again, finds all
    that the origin had got, and ends each."""
    with full(mix) as (both, them):
        os.kill(them.engine, signal.SIGKILL)
        until("it is gone", lambda: not alive(them.engine))
        came = {stream.path for stream in both.asked()}
        them.go_on()

        def known():
            return [r["request"]["path"] for r in both.gate.finals()]

        until(f"an end of each of the {len(came)} that came",
              lambda: came <= set(known()))
        both.gate.verified()
        paths = known()
        print(f"# {mix}: {len(came)} came, {len(paths)} are known")
        assert len(set(paths)) == len(paths), f"an end twice: {paths}"


# ---- meanwhile --------------------------------------------------------------

def ask_name(port, number):
    """Whether a question is answered."""
    question = struct.pack(">6H", number, 0x0100, 1, 0, 0, 0) + b"".join(
        bytes([len(label)]) + label.encode()
        for label in GOOD.split(".")) + struct.pack(">B2H", 0, 1, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(SOON_S)
        sock.sendto(question, ("127.0.0.1", port))
        return sock.recv(512)[:2] == question[:2]


@cases.each(("h1-h1", "h2-h2"))
def not_waited_for(mix):
    """The engine waits for the recorder without sleep: names are answered,
    and clients are let in."""
    with full(mix) as (both, them):
        begin = time.monotonic()
        for number in range(10):
            assert ask_name(both.gate.port(15053), number)
            both.gate.tls().close()
            took = time.monotonic() - begin
            assert took < SOON_S, f"{took:.2f} s for {number + 1}"
        print(f"# {mix}: {took * 100:.1f} ms each")


cases.main()
