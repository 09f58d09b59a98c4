#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Connections that are forwarded unread: tcp and pass rules, and alerts."""

import contextlib
import ctypes
import hashlib
import json
import os
import pathlib
import random
import select
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases, Skip  # noqa: E402
from daemon import WAIT_S, until  # noqa: E402
from gate import Broken, Gate, get  # noqa: E402
from origin import authority  # noqa: E402

cases = Cases()

CLONE_NEWNET = 0x40000000
RAW, OTHER = "raw.test", "other.test"
MIB = 1 << 20
ACCESS_DENIED = "TLSV1_ALERT_ACCESS_DENIED"
TCP = f'allow tcp host "{RAW}" port 15001'
PASS = f'pass host "{RAW}" port 15001'


def isolate():
    """A network namespace of our own in which every address is local: the
    gate takes what is sent to any of IPv4, origins are at ::1."""
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() != 0 or libc.unshare(CLONE_NEWNET) != 0:
        return False
    for command in ("ip link set lo up", "ip route add local default dev lo"):
        subprocess.run(command.split(), check=True)
    return True


ISOLATED = isolate()


class Origin:
    """Calls serve(socket) in a thread for each connection."""

    def __init__(self, port, serve):
        self.serve = serve
        self.visits = 0
        self.listener = socket.create_server(("::1", port),
                                             family=socket.AF_INET6)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self.listener.accept()
                self.visits += 1
                threading.Thread(target=self.run, args=(sock,),
                                 daemon=True).start()

    def run(self, sock):
        with sock, contextlib.suppress(OSError):
            self.serve(sock)

    def end(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def echo(sock):
    while data := sock.recv(65536):
        sock.sendall(data)


def drain(sock):
    """All that comes, hashed: (bytes, digest)."""
    digest, count = hashlib.sha256(), 0
    while data := sock.recv(65536):
        digest.update(data)
        count += len(data)
    return count, digest.hexdigest()


def digest_of(data):
    return len(data), hashlib.sha256(data).hexdigest()


class Bench(Gate):
    """A gate with DNS, and an origin for all names on the gate's own port."""

    def __init__(self, rules, serve=echo, dns=True, more=""):
        if not ISOLATED:
            raise Skip("no network namespace for us")
        where = "0.0.0.0 port 15001 transparent\n" \
            "listen on 0.0.0.0 port 15002 transparent"
        if dns:
            where += "\ndns on 127.0.0.1 port 15053"
        super().__init__(rules, authority().cert, more, listen=where,
                         hosts={RAW: "::1", OTHER: "::1"})
        self.serve, self.origin = serve, None

    def start(self):
        super().start()
        if self.serve:
            self.origin = Origin(self.port(15001), self.serve)
        return self

    def end(self):
        if self.origin:
            self.origin.end()
        super().end()

    def address(self, name):
        """What the session's DNS says."""
        question = struct.pack(">6H", 7, 0x0100, 1, 0, 0, 0) + b"".join(
            bytes([len(p)]) + p.encode() for p in name.split(".")) + \
            b"\0\0\1\0\1"
        with socket.socket(type=socket.SOCK_DGRAM) as sock:
            sock.settimeout(WAIT_S)
            sock.sendto(question, ("127.0.0.1", self.port(15053)))
            answer = sock.recv(512)
        return socket.inet_ntoa(answer[-4:])

    def to(self, name=RAW, port=15001):
        """A connection as a client of that name makes it."""
        return self.plain(self.address(name), self.port(port))

    def secure(self, name=RAW, sni=RAW, trust=None, address=None):
        context = ssl.create_default_context(
            cafile=str(trust or authority().cert))
        return self.tls(sni, address or self.address(name),
                        self.port(15001), context)

    def raw(self, **want):
        """The one final record of a flow, when it is there."""
        record = self.final(method=None, **want)
        request = record["request"]
        assert request["inspected"] is False, record
        assert request["request_body"].get("preview") is None, record
        return record, request


def kinds(gate):
    """Of the records about requests, in the order of a whole chain."""
    return [r["kind"] for r in gate.verified()
            if r["kind"].startswith("request_")]


@contextlib.contextmanager
def stopped(gate, name):
    """For as long, the process says nothing and hears nothing."""
    pid = gate.processes()[name]
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def no_verdicts(gate):
    return stopped(gate, "policyd")


def is_reset(wire):
    """It is cut, and not so much as an end comes before that."""
    try:
        data = wire.more()
    except Broken:
        return True
    raise AssertionError(f"not cut, but {data[:100]}")


def refused_at_once(gate, address):
    """The reset may come before the client knows itself connected."""
    try:
        with gate.plain(address) as wire:
            is_reset(wire)
    except ConnectionResetError:
        pass


def served(context):
    """TLS on the origin's side; one line back for each that comes."""
    def serve(sock):
        with context.wrap_socket(sock, server_side=True) as tls:
            while data := tls.recv(4096):
                tls.sendall(data.upper())
    return serve


def origin_context(*names):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority().leaf(*names))
    return context


# ---- tcp --------------------------------------------------------------------

@cases.case
def tcp_both_ways():
    """What comes out is what went in, and all of it is counted."""
    data = random.randbytes(5 * MIB)
    with Bench(TCP) as gate, gate.to() as wire:
        sender = threading.Thread(target=lambda: (
            wire.send(data), wire.sock.shutdown(socket.SHUT_WR)))
        sender.start()
        assert drain(wire.sock) == digest_of(data)
        sender.join()
        record, request = gate.raw(host=RAW)
        assert (record["kind"], record["reason"]) == (
            "request_closed", None), record
        assert (record["bytes_in"], record["bytes_out"]) == (
            len(data), len(data)), record
        assert (request["scheme"], request["protocol"], request["port"],
                request["address"], request["path"]) == (
                    "tcp", "tcp", gate.port(15001), "::1", None), record
        assert record["matched_rule"] == {"index": 0, "kind": "allow"}, record
        assert kinds(gate) == ["request_opened", "request_allowed",
                               "request_closed"]


@cases.case
def tcp_server_speaks_first():
    def serve(sock):
        sock.sendall(b"220 ready\r\n")
        echo(sock)
    with Bench(TCP, serve) as gate, gate.to() as wire:
        assert wire.until(b"\n") == b"220 ready\r\n"
        wire.send(b"EHLO\r\n")
        assert wire.until(b"\n") == b"EHLO\r\n"


@cases.case
def tcp_client_ends_first():
    def serve(sock):
        count, digest = drain(sock)
        sock.sendall(f"{count} {digest}".encode())
    data = random.randbytes(MIB)
    with Bench(TCP, serve) as gate, gate.to() as wire:
        wire.send(data)
        wire.sock.shutdown(socket.SHUT_WR)
        assert wire.rest() == b"%d %s" % (
            len(data), hashlib.sha256(data).hexdigest().encode())
        assert gate.raw(host=RAW)[0]["kind"] == "request_closed"


@cases.case
def tcp_origin_ends_first():
    """What the client still has to say arrives."""
    got, data = [], random.randbytes(MIB)

    def serve(sock):
        sock.sendall(b"bye")
        sock.shutdown(socket.SHUT_WR)
        got.append(drain(sock))
    with Bench(TCP, serve) as gate, gate.to() as wire:
        assert wire.rest() == b"bye"
        assert not gate.finals(host=RAW)
        wire.send(data)
        wire.close()
        until("all has come", lambda: got)
        assert got == [digest_of(data)]
        assert gate.raw(host=RAW)[0]["kind"] == "request_closed"


@cases.case
def tcp_origin_closes_both_ways():
    """It has said what it had to say: that is no failure."""
    closed = threading.Event()

    def serve(sock):
        sock.recv(1)
        sock.sendall(b"bye")
        sock.close()
        closed.set()
    with Bench(TCP, serve) as gate, gate.to() as wire:
        wire.send(b"x")
        assert wire.rest() == b"bye" and closed.wait(WAIT_S)
        wire.send(b"too late")
        wire.close()
        record, _ = gate.raw(host=RAW)
        assert (record["kind"], record["reason"]) == (
            "request_closed", None), record


def wait_for_end(sock):
    """Nothing is read of what comes before it."""
    poll = select.poll()
    poll.register(sock, select.POLLRDHUP)
    assert poll.poll(WAIT_S * 1000)


@cases.each(["client", "origin"])
def tcp_last_words_unread(who):
    """As psql over TLS and its server end: one has said that it ends, and the
    other closes without a look at that, which makes a reset.  All that
    mattered was said."""
    def serve(sock):
        sock.recv(1)
        if who == "origin":
            wait_for_end(sock)
        sock.sendall(b"last words")
        sock.close()
    with Bench(TCP, serve) as gate:
        wire = gate.to()
        wire.send(b"X" + (b"last words" if who == "origin" else b""))
        if who == "client":
            wait_for_end(wire.sock)
        wire.close()
        record, _ = gate.raw(host=RAW)
        assert (record["kind"], record["reason"]) == (
            "request_closed", None), record


def reset_hard(sock):
    hard = struct.pack("ii", 1, 0)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, hard)
    sock.close()


@cases.each(["client", "origin", "both"])
def tcp_goodbye_and_reset(who):
    """All of it comes at once: each has a last alert for the other, and closes
    without a look at what has come, which makes a reset."""
    begun, may_end, ended = (threading.Event() for _ in range(3))

    def serve(sock):
        assert sock.recv(1) == b"X"
        begun.set()
        assert may_end.wait(WAIT_S)
        if who != "client":
            sock.sendall(b"a goodbye of 24 letters.")
            reset_hard(sock)
        else:
            sock.close()
        ended.set()
    with Bench(TCP, serve) as gate:
        wire = gate.to()
        wire.send(b"X")
        assert begun.wait(WAIT_S)
        with stopped(gate, "edge"):
            wire.send(b"a goodbye of 24 letters.")
            if who == "origin":
                wire.close()
            else:
                reset_hard(wire.sock)
            may_end.set()
            assert ended.wait(WAIT_S)
        record, _ = gate.raw(host=RAW)
        assert (record["kind"], record["reason"]) == (
            "request_closed", None), record


@cases.each(["ends", "ends_slowly", "stays", "silent"])
def tcp_origin_resets(client):
    """The reset may overtake the end of a client that has said all it had to
    say, and then nothing is lost; one that stays is told, and so is one that
    has said nothing."""
    greeted, closed = threading.Event(), threading.Event()

    def serve(sock):
        if client == "silent":
            sock.sendall(b"hello")
            assert greeted.wait(WAIT_S)
        elif sock.recv(1) != b"X":
            sock.sendall(b"y")
            return
        else:
            assert sock.recv(1, socket.MSG_PEEK)
        reset_hard(sock)
        closed.set()

    def meanwhile():
        """What came before this is seen before this."""
        with gate.to() as other:
            other.send(b"y")
            assert other.rest() == b"y"
    with Bench(TCP, serve) as gate:
        with gate.to() as wire:
            if client == "silent":
                assert wire.take(5) == b"hello"
                greeted.set()
            else:
                wire.send(b"X, and goodbye")
            assert closed.wait(WAIT_S)
            if client.startswith("ends"):
                meanwhile()
                if client == "ends_slowly":
                    wire.send(b"a goodbye of 24 letters.")
                    meanwhile()
            else:
                assert is_reset(wire)
        until("all records", lambda: len(gate.finals(host=RAW)) ==
              {"ends": 2, "ends_slowly": 3}.get(client, 1))
        kinds = {(r["kind"], r["reason"]) for r in gate.finals(host=RAW)}
        assert kinds == {("request_closed", None)
                         if client.startswith("ends") else
                         ("request_failed", "stream_broken")}, kinds


@cases.case
def tcp_reset_is_passed_on():
    ended = threading.Event()

    def serve(sock):
        with contextlib.suppress(OSError):
            echo(sock)
        ended.set()
    with Bench(TCP, serve) as gate:
        with gate.to() as wire:
            wire.send(b"x")
            assert wire.take(1) == b"x"
            wire.reset()
        assert ended.wait(WAIT_S)
        record, _ = gate.raw(host=RAW)
        # Nothing was under way: the client has left, in its own manner.
        assert (record["kind"], record["reason"]) == (
            "request_closed", None), record


SAID = {
    "git": b"0027git-upload-pack /x\0host=other.test\0",
    "ssh": b"SSH-2.0-OpenSSH_9.2\r\n",
    "postgres": b"\0\0\0\x10\0\x03\0\0user\0a\0\0",
}


@cases.each(SAID)
def denied_in_its_words(who):
    """If the policy does not say reset."""
    with Bench(TCP) as gate:
        with gate.to(OTHER, 15002) as wire:
            # In two, as git sends the length of a line apart from it.
            wire.send(SAID[who][:4])
            with gate.to(OTHER, 15002) as other:    # the first was read
                assert other.ask(b"GET / HTTP/1.1\r\n\r\n").status == 400
            wire.send(SAID[who][4:])
            said = wire.rest()
        assert f"default_deny (host {OTHER}, port {gate.port(15002)})" \
            .encode() in said, said
        until("both records", lambda: len(gate.finals(host=OTHER)) == 2)
        record = gate.finals(host=OTHER)[1]
        assert (record["kind"], record["reason"]) == (
            "request_denied", "default_deny"), record
    with Bench(f"{TCP}\nrefuse with reset") as gate, \
            gate.to(OTHER, 15002) as wire:
        wire.send(SAID[who])
        assert is_reset(wire)


@cases.each(("tcp", "pass", "decide"))
def left_before_the_verdict(how):
    """Nobody knows what it would have been, and still it was tried."""
    rule = {"tcp": TCP, "pass": PASS,
            "decide": f'decide tcp "judge" host "{RAW}"'}[how]
    judge = 'decider "judge" exec { command { "/bin/false" } }'
    with Bench(rule, more=judge if how == "decide" else "") as gate:
        with no_verdicts(gate):
            gate.to().reset()
            record, request = gate.raw(host=RAW)
        assert (record["kind"], record["reason"], record["matched_rule"]) == (
            "request_failed", "client_left", None), record
        assert (request["scheme"], request["protocol"], request["port"]) == (
            "tcp", "tcp", gate.port(15001)), record
        # The verdict on it comes now, before that on another.
        with gate.to(OTHER, 15002) as wire:
            assert is_reset(wire)
        gate.raw(host=OTHER)
        assert kinds(gate) == ["request_opened", "request_failed",
                               "request_opened", "request_denied"]


@cases.case
def looked_into_late():
    """What is read in the end has the record of its request, and no other."""
    def serve(sock):
        sock.recv(4096)
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    rules = f'{TCP}\nallow host "{OTHER}" port 15001'
    with Bench(rules, serve) as gate:
        with no_verdicts(gate):
            wire = gate.to(OTHER)
            wire.send(get("/x", f"{OTHER}:{gate.port(15001)}"))
        with wire:
            assert wire.answer().status == 200
        gate.final(path="/x")
        assert kinds(gate) == ["request_opened", "request_allowed",
                               "request_closed"]


@cases.each(("before", "after"))
def denied_and_left(when):
    """Also who says nothing was denied, before the verdict or after it."""
    with Bench(TCP) as gate:
        if when == "before":
            with no_verdicts(gate):
                gate.to(port=15002).close()
        else:
            with gate.to(port=15002) as wire:
                assert is_reset(wire)
            gate.raw(host=RAW)
            gate.to(port=15002).close()
        count = 1 if when == "before" else 2
        found = until("it is recorded", lambda: [
            r for r in [gate.finals(host=RAW)] if len(r) == count])[0]
        for record in found:
            assert (record["kind"], record["reason"]) == (
                "request_denied", "default_deny"), record
        assert kinds(gate) == ["request_opened", "request_denied"] * count


@cases.case
def tcp_slow_client():
    """An origin waits for its client, and the engine holds next to nothing."""
    sent, total, piece = [0], 64 * MIB, random.randbytes(MIB)

    def serve(sock):
        for _ in range(total // MIB):
            sock.sendall(piece)
            sent[0] += MIB
    with Bench(TCP, serve) as gate, gate.to() as wire:
        before = gate.memory()
        stalled(sent)
        assert sent[0] < total, "nobody held it back"
        grown = gate.memory() - before
        assert grown < 1024, f"{grown} KiB more"
        digest = hashlib.sha256()
        for _ in range(total // MIB):
            digest.update(piece)
        assert drain(wire.sock) == (total, digest.hexdigest())


@cases.case
def tcp_slow_origin():
    go, got = threading.Event(), []
    sent, total, piece = [0], 64 * MIB, random.randbytes(MIB)

    def serve(sock):
        go.wait(WAIT_S)
        got.append(drain(sock))

    def send():
        for _ in range(total // MIB):
            wire.send(piece)
            sent[0] += MIB
        wire.close()
    with Bench(TCP, serve) as gate, gate.to() as wire:
        before = gate.memory()
        threading.Thread(target=send, daemon=True).start()
        stalled(sent)
        assert sent[0] < total, "nobody held it back"
        grown = gate.memory() - before
        assert grown < 1024, f"{grown} KiB more"
        go.set()
        until("all has come", lambda: got)
        assert got[0][0] == total, got


def stalled(counter):
    """It has not moved for a while."""
    last, same = -1, 0
    quiet = threading.Event()
    while same < 5:
        quiet.wait(0.1)
        same = same + 1 if counter[0] == last and last else 0
        last = counter[0]


@cases.case
def tcp_unreachable():
    with Bench(TCP, serve=None) as gate:
        refused_at_once(gate, gate.address(RAW))
        record, _ = gate.raw(host=RAW)
        assert record["kind"] == "request_failed" and \
            record["reason"].startswith("upstream_unreachable: "), record


@cases.case
def tcp_address_policy():
    """A rule opens a name, not the addresses that nobody may reach."""
    with Bench('allow tcp host "10.1.2.3" port 15001') as gate:
        refused_at_once(gate, "10.1.2.3")
        record, _ = gate.raw(host="10.1.2.3")
        assert (record["kind"], record["reason"]) == (
            "request_failed", "address_refused: private address 10.1.2.3 "
            '("to private" would allow it)'), record


@cases.case
def tcp_denied_above():
    with Bench(f'deny tcp host "{RAW}"\n{TCP}') as gate:
        with gate.to() as wire:
            wire.send(b"\0\0\0\x08 not HTTP")
            assert is_reset(wire)
        record, request = gate.raw(host=RAW)
        assert (record["kind"], record["reason"], record["matched_rule"]) == (
            "request_denied", "matched_deny_rule",
            {"index": 0, "kind": "deny"}), record
        assert request["scheme"] == "tcp", record
        assert gate.origin.visits == 0


@cases.case
def tcp_other_port():
    """Who waits for the server to speak is not kept waiting for long."""
    with Bench(TCP) as gate:
        with gate.to(port=15002) as wire:
            assert is_reset(wire)
        record, request = gate.raw(host=RAW)
        assert (record["kind"], record["reason"], record["matched_rule"],
                request["port"]) == ("request_denied", "default_deny", None,
                                     gate.port(15002)), record


@cases.case
def denied_http_is_told():
    """Where the client speaks HTTP, a refusal is one that it can read."""
    with Bench(TCP) as gate:
        with gate.to(OTHER) as wire:
            answer = wire.ask(get("/x", f"{OTHER}:{gate.port(15001)}"))
            assert answer.status == 403, answer
        record = gate.final(path="/x")
        assert record["reason"] == "default_deny" and \
            "inspected" not in record["request"], record
        with gate.secure(OTHER, OTHER, trust=gate.ca) as wire:
            answer = wire.ask(get("/y", f"{OTHER}:{gate.port(15001)}"))
            assert answer.status == 403, answer


@cases.case
def allowed_http_is_read():
    """A rule for one name changes nothing for another."""
    def serve(sock):
        while sock.recv(4096):
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    rules = f'{TCP}\nallow host "{OTHER}" port 15001'
    with Bench(rules, serve) as gate:
        for n in range(3):
            with gate.to(OTHER) as wire:
                answer = wire.ask(get(f"/{n}", f"{OTHER}:{gate.port(15001)}"))
                assert answer.status == 200, answer
            assert "inspected" not in gate.final(path=f"/{n}")["request"]
        with gate.to(OTHER) as wire:
            wire.send(b"\0\0\0\x08 not HTTP")
            assert is_reset(wire)
        until("it is recorded", lambda: any(
            r["kind"] == "connection_refused" and r["reason"] == "bad_request"
            for r in gate.records()))


@cases.case
def tcp_quota():
    """Counted are the bytes that leave; what comes in is free."""
    with Bench(f"{TCP}\nquota out 100K") as gate:
        with gate.to() as wire:
            wire.send(b"x" * 60000)
            assert wire.take(60000)
            wire.send(b"x" * 60000)
            with contextlib.suppress(Broken):
                wire.take(60000)
                raise AssertionError("it was not cut")
        record, _ = gate.raw(host=RAW)
        assert (record["kind"], record["reason"]) == (
            "request_failed", "quota"), record
        assert record["bytes_out"] <= 102400, record


@cases.case
def tcp_idle():
    with Bench(TCP, more="timeout tunnel 500ms") as gate, gate.to() as wire:
        wire.send(b"x")
        assert wire.take(1) == b"x"
        assert wire.ended()
        record, _ = gate.raw(host=RAW)
        assert (record["kind"], record["reason"]) == (
            "request_failed", "stream_broken: idle"), record


@cases.case
def tcp_one_way_is_not_idle():
    """Silence is that of both."""
    pause = threading.Event()

    def serve(sock):
        for _ in range(10):
            sock.sendall(b"x")
            pause.wait(0.2)
    with Bench(TCP, serve, more="timeout tunnel 1s") as gate, \
            gate.to() as wire:
        assert wire.rest() == b"x" * 10


@cases.each(("allow", "deny"))
def tcp_decided(how):
    """A decider is asked once about a connection, by name and port."""
    if not ISOLATED:
        raise Skip("no network namespace for us")
    with tempfile.TemporaryDirectory() as where:
        log, program = (pathlib.Path(where) / n for n in ("log", "judge"))
        pathlib.Path(where).chmod(0o755)
        log.touch()
        log.chmod(0o666)
        program.write_text(
            f"#!/bin/sh\ncat >> {log}\necho >> {log}\n"
            f"echo '{{\"decision\":\"{how}\",\"reason\":\"so\"}}'\n")
        program.chmod(0o755)
        with Bench(f'decide tcp "judge" host "{RAW}" cache off', more=(
                f'decider "judge" exec {{ command {{ "{program}" }} }}')) \
                as gate:
            with gate.to() as wire:
                wire.send(b"x")
                if how == "allow":
                    assert wire.take(1) == b"x"
                else:
                    assert is_reset(wire)
            record, _ = gate.raw(host=RAW)
            assert (record["kind"], record["reason"]) == (
                ("request_closed", None) if how == "allow" else
                ("request_denied", "decider: so")), record
            assert record["matched_rule"]["kind"] == "decide", record
        questions = [json.loads(line)
                     for line in log.read_text().splitlines() if line]
        assert [(q["request"]["host"], q["request"]["scheme"])
                for q in questions] == [(RAW, "tcp")], questions


@cases.case
def tcp_total_time():
    """Busy or not, there is an end to it."""
    with Bench(TCP, more="timeout total 1s") as gate, gate.to() as wire:
        try:
            while wire.send(b"x" * 1000):
                wire.take(1000)
        except Broken:
            pass
        record, _ = gate.raw(host=RAW)
        assert (record["kind"], record["reason"]) == (
            "request_failed", "total_time"), record


@cases.each(("denied", "read"))
def reload_cuts(how):
    """A flow that no rule allows any more ends, and others go on."""
    rest = f'allow tcp host "{OTHER}" port 15001'
    if how == "read":
        rest += f'\nallow host "{RAW}" port 15001'
    with Bench(f'{TCP}\n{rest}') as gate:
        with gate.to() as one, gate.to(OTHER) as other:
            for wire in (one, other):
                wire.send(b"x")
                assert wire.take(1) == b"x"
            gate.reload(rest)
            assert is_reset(one)
            other.send(b"y")
            assert other.take(1) == b"y"
        record, _ = gate.raw(host=RAW)
        assert (record["kind"], record["reason"]) == (
            "request_failed", "default_deny"), record
        assert gate.raw(host=OTHER)[0]["kind"] == "request_closed"


# ---- pass -------------------------------------------------------------------

@cases.case
def pass_end_to_end():
    """A real client and a real server; the certificate is the server's."""
    with Bench(PASS, serve=None) as gate:
        cert, key = authority().leaf(RAW)
        server = subprocess.Popen(
            ["openssl", "s_server", "-6", "-accept", str(gate.port(15001)),
             "-cert", cert, "-key", key, "-www"], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            while b"ACCEPT" not in server.stdout.readline():
                assert server.poll() is None, "no server"
            url = f"https://{RAW}:{gate.port(15001)}/"
            done = subprocess.run(
                ["curl", "-sSv", "--cacert", authority().cert, "--resolve",
                 f"{RAW}:{gate.port(15001)}:{gate.address(RAW)}", url],
                capture_output=True, text=True, timeout=WAIT_S)
        finally:
            server.terminate()
            server.wait()
        assert done.returncode == 0 and "s_server" in done.stdout, done
        assert "issuer: CN=regress root" in done.stderr, done.stderr
        record, request = gate.raw(host=RAW)
        assert record["kind"] == "request_closed", record
        assert (request["scheme"], request["protocol"],
                request["address"]) == ("https", "tls", "::1"), record
        assert record["bytes_in"] > len(done.stdout) and \
            record["bytes_out"] > 200, record
        assert record["matched_rule"] == {"index": 0, "kind": "pass"}, record


@cases.case
def pass_the_origins_certificate():
    context = origin_context(RAW)
    with Bench(PASS, served(context)) as gate, gate.secure() as wire:
        der = ssl.PEM_cert_to_DER_cert(authority().leaf(RAW)[0].read_text())
        assert wire.sock.getpeercert(True) == der
        wire.send(b"hello\n")
        assert wire.until(b"\n") == b"HELLO\n"


@cases.case
def pass_another_name():
    """The name inside must be the one that was asked for."""
    context = origin_context(RAW, OTHER)
    with Bench(PASS, served(context)) as gate:
        try:
            with gate.secure(sni=OTHER):
                raise AssertionError("it passed")
        except OSError:
            pass
        record, request = gate.raw(host=OTHER)
        assert (record["kind"], record["reason"], record["matched_rule"],
                request["scheme"]) == ("request_denied", "name_mismatch",
                                       None, "https"), record


@cases.case
def pass_without_a_name():
    """Some clients say none; then it is the one that they dialled."""
    context = origin_context(RAW)
    with Bench(PASS, served(context)) as gate, gate.to() as wire:
        ours = ssl.create_default_context(cafile=str(authority().cert))
        ours.check_hostname = False
        wire.sock = ours.wrap_socket(wire.sock)
        wire.send(b"hello\n")
        assert wire.until(b"\n") == b"HELLO\n"


@cases.each(("http", "binary", "bad hello", "silence"))
def pass_not_tls(what):
    data = {"http": get(), "binary": b"\0\0\0\x08", "silence": b"",
            "bad hello": b"\x16\x03\x01\0\x04\x02\0\0\0"}[what]
    with Bench(PASS, more="timeout handshake 500ms") as gate:
        with gate.to() as wire:
            wire.send(data)
            assert is_reset(wire)
        record, _ = gate.raw(host=RAW)
        assert (record["kind"], record["reason"]) == (
            "request_denied", "bad_request"), record


@cases.each(("close", "reset"))
def pass_left_before_the_hello(how):
    with Bench(PASS) as gate:
        with gate.to() as wire:
            wire.send(b"not TLS")
            assert is_reset(wire)
        gate.raw(host=RAW)
        # Now the verdict is known.
        getattr(gate.to(), how)()
        until("it is recorded", lambda: len(gate.finals(host=RAW)) == 2)
        record = gate.finals(host=RAW)[1]
        assert (record["kind"], record["reason"],
                record["request"]["protocol"]) == (
                    "request_failed", "client_left", "tls"), record
        assert kinds(gate) == ["request_opened", "request_denied",
                               "request_opened", "request_failed"]


@cases.case
def pass_hello_in_pieces():
    """What was read before the connection is there goes out first."""
    got, context = [], ssl.create_default_context()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing,
                         server_hostname=RAW).do_handshake()
    hello = outgoing.read()
    with Bench(PASS, lambda sock: got.append(drain(sock))) as gate:
        with gate.to() as wire:
            for n in range(0, len(hello), 50):
                wire.send(hello[n:n + 50])
            wire.send(b"and more")
        until("all has come", lambda: got)
        assert got == [digest_of(hello + b"and more")]


@cases.case
def pass_by_the_hello():
    """Without DNS the client's hello is all that gives a name."""
    context = origin_context(RAW)
    rules = f'{PASS}\nallow host "{OTHER}" port 15001'
    with Bench(rules, served(context), dns=False) as gate:
        for _ in range(2):
            with gate.secure(address="127.0.0.1") as wire:
                wire.send(b"hello\n")
                assert wire.until(b"\n") == b"HELLO\n"
        until("both are recorded", lambda: len(
            gate.finals(host=RAW, method=None)) == 2)
        # Other names are looked into as ever.
        with gate.secure(sni=OTHER, trust=gate.ca,
                         address="127.0.0.1") as wire:
            answer = wire.ask(get("/", f"{OTHER}:{gate.port(15001)}"))
            assert answer.status == 502, answer
        with gate.secure(sni="evil.test", trust=gate.ca,
                         address="127.0.0.1") as wire:
            assert wire.ask(get("/", "evil.test")).status in (403, 421)


# ---- alerts -----------------------------------------------------------------

@cases.case
def alert_for_a_name():
    """Where the whole name is denied, hands are not shaken."""
    with Bench(f'allow host "{OTHER}" port 15001\nrefuse with alert') as gate:
        for _ in range(2):
            try:
                with gate.secure(trust=gate.ca):
                    raise AssertionError("hands were shaken")
            except ssl.SSLError as error:
                assert error.reason == ACCESS_DENIED, error
        until("both are recorded", lambda: len(gate.finals()) == 2)
        for record in gate.finals():
            assert (record["kind"], record["reason"],
                    record["request"]["host"]) == (
                        "request_denied", "default_deny", RAW), record


@cases.case
def alert_for_a_name_by_the_hello():
    with Bench(f'allow host "{OTHER}" port 15001\nrefuse with alert',
               dns=False) as gate:
        try:
            with gate.secure(trust=gate.ca, address="127.0.0.1"):
                raise AssertionError("hands were shaken")
        except ssl.SSLError as error:
            assert error.reason == ACCESS_DENIED, error
        assert gate.raw(host=RAW)[0]["reason"] == "default_deny"


@cases.case
def alert_for_a_path():
    """Later there is an end in order, and no answer."""
    rules = f'allow host "{RAW}" port 15001 path "/good"\nrefuse with alert'
    with Bench(rules) as gate, gate.secure(trust=gate.ca) as wire:
        wire.send(get("/bad", f"{RAW}:{gate.port(15001)}"))
        assert wire.rest() == b""
        record = gate.final(path="/bad")
        assert (record["kind"], record["reason"]) == (
            "request_denied", "default_deny"), record


@cases.case
def alert_in_the_clear():
    rules = f'allow host "{OTHER}" port 15001\nrefuse with alert'
    with Bench(rules) as gate, gate.to() as wire:
        wire.send(get("/", f"{RAW}:{gate.port(15001)}"))
        assert is_reset(wire)


cases.main()
