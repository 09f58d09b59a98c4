#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""The programs of the daemon, each alone, with us for its parent and peers.

A bad message from the parent is the end of a child, and so is one from a
process that the whole daemon shares; a bad message from an engine is told to
the parent and harms nobody else.
"""

import os
import pathlib
import socket
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from msgtab import (FD_MARK, FILES, HEADER, NAMES, ROLES, TABLE,  # noqa: E402
                    VERSION, frame)

LIBEXEC = pathlib.Path(os.environ.get("B", TOP / "build")) / "libexec"
LIMIT_S = 20
CHILD_FD = 3
SESSION, POLICY = "s1", "p1"

# A certificate for engines to trust; nobody has its key.
TRUST = """\
-----BEGIN CERTIFICATE-----
MIIBezCCASGgAwIBAgIUBLiyzYSdVBQFwlBt1WvK0i0t6MAwCgYIKoZIzj0EAwIw
EjEQMA4GA1UEAwwHcmVncmVzczAgFw0yNjExMTYwMzEzNDRaGA8yMTI2MTAyMzAz
MTM0NFowEjEQMA4GA1UEAwwHcmVncmVzczBZMBMGByqGSM49AgEGCCqGSM49AwEH
A0IABLLWgmeWFCFoB78AxJLwlkRnjCJOWqjUIEeiXi337CMFDtgOn+qkQGRK8rUn
TQzh+/BOsed/UiZyOVaDP/uhxNSjUzBRMB0GA1UdDgQWBBTMI1ODLRU/7mIYFmuz
L2dVqndbQTAfBgNVHSMEGDAWgBTMI1ODLRU/7mIYFmuzL2dVqndbQTAPBgNVHRMB
Af8EBTADAQH/MAoGCCqGSM49BAMCA0gAMEUCIBkOLNmLyjMr56CUlzKkrUql2y+1
WiUCNtKL/1HX0rNvAiEA8/1dfjjeZAJ5RnJsEWfis9yrLXuSXRKKflqDML3TDMc=
-----END CERTIFICATE-----
"""

PROGRAMS = {
    "controld": "CONTROLD",
    "policyd": "POLICYD",
    "recorder": "RECORDER",
    "dialer": "DIALER",
    "deciderd": "DECIDERD",
    "k8sd": "K8SD",
    "podd": "PODD",
    "tlsengine": "ENGINE",
}


class Failure(Exception):
    pass


def require(cond, text):
    if not cond:
        raise Failure(text)


class Channel:
    """Our end of a pair of sockets that carries messages."""

    def __init__(self):
        self.sock, self.other = socket.socketpair()
        self.sock.settimeout(LIMIT_S)
        self.buf = b""

    def handed_over(self):
        self.other.close()

    def close(self):
        self.sock.close()

    def raw(self, data, fds=()):
        """What the other end no longer reads is its answer, not an error."""
        try:
            socket.send_fds(self.sock, [data], list(fds))
        except (BrokenPipeError, ConnectionResetError):
            pass

    def send(self, name, fd=None, /, **values):
        row = TABLE[name]
        self.raw(frame(row.number, row.encode(**values), fd is not None),
                 [] if fd is None else [fd])

    def fill(self, size):
        while len(self.buf) < size:
            data = self.sock.recv(65536)
            require(data, "it closed the channel")
            self.buf += data

    def next(self):
        self.fill(HEADER.size)
        number, length, _ = HEADER.unpack(self.buf[:HEADER.size])
        length &= ~FD_MARK
        self.fill(length)
        payload, self.buf = self.buf[HEADER.size:length], self.buf[length:]
        row = NAMES[number]
        return row.name, row.decode(payload)

    def receive(self, wanted):
        """The next answer has to be this one; questions go unanswered."""
        while True:
            name, values = self.next()
            if name == wanted:
                return values
            require(not name.startswith("CONF_") and name != "ENGINE_BAD",
                    f"{name} {values} came, not {wanted}")

    def wait_closed(self):
        try:
            while self.sock.recv(65536):
                pass
        except ConnectionResetError:
            pass


def start(role, args=(), fd=None):
    """The program, with a descriptor as its fourth or without one."""
    if fd is not None:
        os.dup2(fd, CHILD_FD)
    proc = subprocess.Popen(
        [LIBEXEC / f"egressd-{role}", *args], env={},
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, pass_fds=() if fd is None else (CHILD_FD,))
    os.dup2(0, CHILD_FD, inheritable=False)
    return proc


class Child(Channel):
    """A program and the channel to it from its parent."""

    def __init__(self, role):
        super().__init__()
        self.role = role
        self.proc = start(role, fd=self.other.fileno())
        self.handed_over()
        self.peers = []
        self.generation = 0

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.proc.kill()
        self.proc.communicate()
        self.close()
        for peer in self.peers:
            peer.close()

    def fill(self, size):
        try:
            super().fill(size)
        except (Failure, ConnectionResetError) as error:
            _, err = self.proc.communicate(timeout=LIMIT_S)
            raise Failure(f"{error}: {err!r}") from None

    def boot(self, **values):
        row = {"version": VERSION, "log_level": 1,
               "role": ROLES[f"ROLE_{PROGRAMS[self.role]}"],
               "session": SESSION if self.role == "tlsengine" else ""}
        self.send("BOOT", **{**row, **values})

    def connect(self, peer, instance=0):
        """A channel to a peer, whom we play as well."""
        channel = Channel()
        self.peers.append(channel)
        self.send("CHANNEL", channel.other.fileno(),
                  peer=ROLES[f"ROLE_{peer}"], instance=instance,
                  session=SESSION if peer == "ENGINE" else "")
        channel.handed_over()
        return channel

    def offer(self):
        """As little of a generation as this role accepts."""
        self.generation += 1
        self.send("CONF_BEGIN", generation=self.generation)
        if self.role == "controld":
            self.send("CONF_LIMITS", clients=256)
            self.send("CONF_POLICY_NAME", name=POLICY)
            self.send("CONF_SESSION", session=SESSION, policy=POLICY)
        elif self.role == "policyd":
            self.send("CONF_PENDING")
            self.send("CONF_POLICY", name=POLICY)
            self.send("CONF_SESSION", session=SESSION, policy=POLICY)
        elif self.role == "dialer":
            self.send("CONF_DIAL", timeout_ms=1000)
        elif self.role == "tlsengine":
            self.send("CONF_ENGINE", policy=POLICY)
            with tempfile.TemporaryFile() as trust:
                trust.write(TRUST.encode())
                trust.seek(0)
                self.send("CONF_FILE", trust.fileno(),
                          what=FILES["FILE_TRUST"])
        self.send("CONF_END", generation=self.generation)
        require(self.receive("CONF_ACK")["generation"] == self.generation,
                "it accepts another generation")

    def commit(self):
        self.send("CONF_COMMIT", generation=self.generation)
        require(self.receive("CONF_DONE")["generation"] == self.generation,
                "it commits another generation")

    def run(self):
        """To where it serves; the peer it cannot do without."""
        self.boot()
        peer = self.connect({"policyd": "RECORDER", "k8sd": "CONTROLD"}.get(
            self.role, "POLICYD"))
        if self.role in ("tlsengine", "controld"):
            self.connect("RECORDER")
        self.offer()
        self.commit()
        return peer

    def stop(self):
        """Close the channel; the recorder hears policyd out first."""
        self.sock.shutdown(socket.SHUT_WR)
        if self.role == "recorder" and self.peers:
            self.peers[0].sock.shutdown(socket.SHUT_WR)
        self.end(0, "")

    def end(self, status, text):
        """It ends, so, and says this; None is for nothing at all."""
        try:
            _, err = self.proc.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            raise Failure("it does not end") from None
        err = err.decode(errors="replace")
        require(self.proc.returncode == status,
                f"status {self.proc.returncode}, not {status}: {err!r}")
        if text is None:
            require(not err, f"it says {err!r}")
        else:
            require(text in err, f"{text!r} is not in {err!r}")


# ---- from the parent -------------------------------------------------------

def data(name, /, **values):
    return TABLE[name].encode(**values)


def message(name, payload, marked=False):
    return frame(TABLE[name].number, payload, marked)


def foreign(role):
    """Something that the parent says while another role prepares."""
    mine = {f"R_{PROGRAMS[role]}", "R_CHILDREN"}
    return next(row for row in TABLE.values()
                if "R_PARENT" in row.senders and "S_PREPARE" in row.states
                and not row.must and not row.receivers & mine)


def at_birth(child):
    pass


def at_setup(child):
    child.boot()


def at_prepare(child):
    child.boot()
    child.send("CONF_BEGIN", generation=1)


def at_run(child):
    child.run()


LEVEL, CHANNEL = data("LOG_LEVEL", level=2), data("CHANNEL", peer=200)
BOOT = data("BOOT", version=VERSION, role=200)

# Name, when, the bytes, descriptors with them, what the log says.
BAD = [
    ("boot_unknown", at_birth, frame(0xffffffff, b""), 0,
     "unknown message 4294967295"),
    ("boot_not_first", at_birth, message("LOG_LEVEL", LEVEL), 0,
     "LOG_LEVEL in state"),
    ("boot_short", at_birth, message("BOOT", data("BOOT")[:-1]), 0,
     "BOOT of"),
    ("boot_long", at_birth, message("BOOT", TABLE["BOOT"].most() + b"x"), 0,
     "BOOT of"),
    ("boot_trailing", at_birth, message("BOOT", BOOT + b"\0"), 0,
     "BOOT does not decode"),
    ("boot_descriptor", at_birth, message("BOOT", BOOT, True), 1,
     "BOOT with a descriptor"),
    ("boot_role", at_birth, message("BOOT", BOOT), 0, "BOOT: role 200"),
    ("boot_twice", at_setup, message("BOOT", BOOT), 0, "BOOT in state"),
    ("unknown_0", at_setup, frame(0, b""), 0, "unknown message 0"),
    ("unknown_max", at_setup, frame(len(TABLE) + 1, b""), 0,
     f"unknown message {len(TABLE) + 1}"),
    ("unknown_ffffffff", at_setup, frame(0xffffffff, b""), 0,
     "unknown message 4294967295"),
    ("short", at_setup, message("LOG_LEVEL", b""), 0, "LOG_LEVEL of 0"),
    ("long", at_setup, message("LOG_LEVEL", LEVEL + b"x"), 0,
     "LOG_LEVEL of 2"),
    ("trailing", at_setup, message("CHANNEL", CHANNEL + b"\0", True), 1,
     "CHANNEL does not decode"),
    ("extra_descriptor", at_setup, message("LOG_LEVEL", LEVEL, True), 1,
     "LOG_LEVEL with a descriptor"),
    ("hidden_descriptor", at_setup, message("LOG_LEVEL", LEVEL), 1,
     "broken framing"),
    ("missing_descriptor", at_setup, message("CHANNEL", CHANNEL), 0,
     "CHANNEL without a descriptor"),
    ("two_descriptors", at_setup, message("CHANNEL", CHANNEL, True), 2,
     "broken framing"),
    ("many_descriptors", at_setup, message("CHANNEL", CHANNEL, True), 9,
     "too many descriptors"),
    ("header_short", at_setup, frame(1, b"", length=11), 0,
     "broken framing"),
    ("header_long", at_setup, frame(1, b"", length=0x7fffffff), 0,
     "broken framing"),
    ("end_before_begin", at_setup,
     message("CONF_END", data("CONF_END", generation=1)), 0,
     "CONF_END in state"),
    ("commit_before_begin", at_setup,
     message("CONF_COMMIT", data("CONF_COMMIT", generation=1)), 0,
     "CONF_COMMIT in state"),
    ("begin_twice", at_prepare,
     message("CONF_BEGIN", data("CONF_BEGIN", generation=2)), 0,
     "CONF_BEGIN in state"),
    ("end_generation", at_prepare,
     message("CONF_END", data("CONF_END", generation=2)), 0,
     "CONF_END: generation 2"),
    ("commit_generation", at_prepare,
     message("CONF_COMMIT", data("CONF_COMMIT", generation=2)), 0,
     "CONF_COMMIT: generation 2"),
    ("abort_generation", at_prepare,
     message("CONF_ABORT", data("CONF_ABORT", generation=2)), 0,
     "CONF_ABORT: generation 2"),
    ("begin_generation", at_run,
     message("CONF_BEGIN", data("CONF_BEGIN", generation=1)), 0,
     "CONF_BEGIN: generation 1"),
    ("not_from_parent", at_prepare,
     message("CONF_ACK", data("CONF_ACK", generation=1)), 0,
     "CONF_ACK is not for parent to send"),
    ("value", at_setup, message("LOG_LEVEL", data("LOG_LEVEL", level=200)),
     0, "LOG_LEVEL: log level 200"),
    ("channel_to_nobody", at_setup, message("CHANNEL", CHANNEL, True), 1,
     "CHANNEL: channel to role 200"),
]


def bad_case(role, when, payload, nfds, text):
    with Child(role) as child:
        when(child)
        child.raw(payload, [0] * nfds)
        child.end(1, text)


def not_for_us(role):
    with Child(role) as child:
        at_prepare(child)
        row = foreign(role)
        child.send(row.name)
        child.end(1, f"{row.name} is not for {role} to receive")


# ---- how it starts and ends ------------------------------------------------

def by_hand(role, args=(), fd=None):
    proc = start(role, args, fd)
    _, err = proc.communicate(timeout=LIMIT_S)
    require(proc.returncode == 1, f"status {proc.returncode}")
    require(b"is started by egressd, not by hand" in err, f"it says {err!r}")


def by_hand_argument(role):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        by_hand(role, ["-v"], theirs.fileno())


def by_hand_no_socket(role):
    by_hand(role, fd=0)


def other_version(role):
    with Child(role) as child:
        child.boot(version="egressd 99")
        child.end(3, f"this program is of {VERSION}, and who started it of "
                  "egressd 99")


def end_at_birth(role):
    with Child(role) as child:
        child.sock.shutdown(socket.SHUT_WR)
        child.end(1, "end of file")


def end_at_setup(role):
    with Child(role) as child:
        child.boot()
        child.sock.shutdown(socket.SHUT_WR)
        child.end(0, None)


def end_in_message(role):
    with Child(role) as child:
        at_prepare(child)
        child.raw(frame(1, b"", length=100))
        child.sock.shutdown(socket.SHUT_WR)
        child.end(0, None)


def end_at_run(role):
    with Child(role) as child:
        child.run()
        child.stop()


def transaction(role):
    """Abort and commit, and again: the same child goes on."""
    with Child(role) as child:
        child.run()
        child.offer()
        child.send("CONF_ABORT", generation=child.generation)
        child.offer()
        child.commit()
        child.stop()


# ---- from others -----------------------------------------------------------

GARBAGE = [
    ("unknown", frame(0xffffffff, b""), 0, "unknown message 4294967295"),
    ("sender", message("CONF_BEGIN", data("CONF_BEGIN")), 0, "CONF_BEGIN"),
    ("framing", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 0, "broken framing"),
    ("descriptors", b"\0" * 4, 9, "too many descriptors"),
]


def peer_garbage(role, payload, nfds, text):
    """From a process that all depend on."""
    with Child(role) as child:
        peer = child.run()
        peer.raw(payload, [0] * nfds)
        child.end(1, text)


def peer_end(role):
    """Everyone dies by it, but for the recorder, which has requests to account
    for until its engines have ended; the parent ends it last."""
    with Child(role) as child:
        child.run().sock.shutdown(socket.SHUT_RDWR)
        if role == "recorder":
            child.offer()
            child.commit()
            child.stop()
        else:
            child.end(0, None)


def engine_garbage(role, payload, nfds, text):
    """One engine talks nonsense; its successor and the child go on."""
    with Child(role) as child:
        child.run()
        engine = child.connect("ENGINE", 7)
        engine.raw(payload, [0] * nfds)
        told = child.receive("ENGINE_BAD")
        require(told["instance"] == 7, f"instance {told['instance']}")
        require(text in told["why"].decode(), f"why {told['why']!r}")
        engine.wait_closed()
        child.connect("ENGINE", 8)
        child.offer()
        child.commit()
        child.stop()


def engine_end(role):
    """That is no offence: the parent knows whom it started."""
    with Child(role) as child:
        child.run()
        engine = child.connect("ENGINE", 7)
        engine.sock.shutdown(socket.SHUT_WR)
        engine.wait_closed()
        child.offer()
        child.commit()
        child.stop()


# ---- all of it -------------------------------------------------------------

def cases(role):
    yield "by_hand", by_hand, ()
    yield "by_hand_argument", by_hand_argument, ()
    yield "by_hand_no_socket", by_hand_no_socket, ()
    yield "other_version", other_version, ()
    yield "end_at_birth", end_at_birth, ()
    yield "end_at_setup", end_at_setup, ()
    yield "end_in_message", end_in_message, ()
    yield "end_at_run", end_at_run, ()
    yield "transaction", transaction, ()
    for name, *args in BAD:
        yield name, bad_case, args
    yield "not_for_us", not_for_us, ()
    for name, *args in GARBAGE:
        yield f"peer_{name}", peer_garbage, args
    yield "peer_end", peer_end, ()
    if role in ("policyd", "recorder", "dialer"):
        for name, *args in GARBAGE:
            yield f"engine_{name}", engine_garbage, args
        yield "engine_end", engine_end, ()


def main():
    failed = 0
    # Nothing of ours may be in the way of a child's descriptor.
    while os.open(os.devnull, os.O_RDWR) < CHILD_FD:
        pass
    for role in PROGRAMS:
        for name, function, args in cases(role):
            try:
                function(role, *args)
                print(f"ok children.{role}.{name}", flush=True)
            except Exception as error:
                failed = 1
                why = f"{error!r}"[:300]
                print(f"not ok children.{role}.{name}: {why}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
