#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""DNS of a session: answered by its engine, recorded, and never passed on."""

import contextlib
import ctypes
import ipaddress
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases, Skip  # noqa: E402
from daemon import Daemon, until  # noqa: E402

cases = Cases()

CLONE_NEWNET = 0x40000000
UPSTREAM = "192.0.2.53"     # what the daemon takes for its resolver
CONF = f"""
resolver {UPSTREAM}
policy "open" {{ allow host "api.good.test" }}
session "edge" {{
    listen on 0.0.0.0 port 15001 transparent
    dns on 0.0.0.0 port 15053
    policy "open"
}}
"""
BOTH = CONF.replace("policy \"open\"\n}", "dns on :: port 15054\n"
                    "    policy \"open\"\n}") + """
session "other" {
    listen on 127.0.0.1 port 15002 transparent
    dns on 127.0.0.1 port 15055
    policy "open"
}
"""

A, PTR, TXT, AAAA, HTTPS, IXFR, AXFR, ANY = 1, 12, 16, 28, 65, 251, 252, 255
NOERROR, FORMERR, SERVFAIL, NXDOMAIN, NOTIMP, REFUSED = range(6)
BADVERS = 16
TYPES = {"TXT": TXT, "NULL": 10, "ANY": ANY, "HTTPS": HTTPS, "SVCB": 64,
         "MX": 15, "SRV": 33, "NS": 2, "SOA": 6, "CNAME": 5, "CAA": 257}


def isolate():
    """A network namespace of our own, in which every address is local: what
    is sent to any server arrives here.  False if we may not."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        return False
    for command in ("ip link set lo up", "ip route add local default dev lo",
                    "ip -6 route add local default dev lo"):
        subprocess.run(command.split(), check=True)
    return True


ISOLATED = isolate()


def need_isolation():
    if not ISOLATED:
        raise Skip("no network namespace for us")


# ---- packets ----------------------------------------------------------------

def wire(name):
    return b"".join(bytes([len(label)]) + label.encode()
                    for label in name.split(".") if label) + b"\0"


def query(name, kind=A, ident=0x4242, cls=1, flags=0x0100, extra=b""):
    """extra is one additional record."""
    return struct.pack(">6H", ident, flags, 1, 0, 0, bool(extra)) + \
        wire(name) + struct.pack(">2H", kind, cls) + extra


class Answer:
    """Read strictly: all that is said to be there, and nothing else."""

    def __init__(self, packet):
        self.packet = packet
        self.id, self.flags, *counts = struct.unpack(">6H", packet[:12])
        assert self.flags & 0x8000, "not an answer"
        assert not self.flags & 0x0200, "truncated"
        self.rcode = self.flags & 15
        self.pos = 12
        self.question, self.data, self.opt = None, None, False
        assert counts[0] <= 1 and counts[1] <= 1 and counts[2] == 0 and \
            counts[3] <= 1, counts
        if counts[0]:
            self.question = self.name(), *self.take(">2H")
        if counts[1]:
            self.record()
        if counts[3]:
            *opt, upper, version, flags, size = self.take(">BHHBBHH")
            assert opt == [0, 41, 1232] and not version | flags | size, packet
            self.rcode |= upper << 4
            self.opt = True
        assert self.pos == len(packet), packet

    def take(self, layout):
        values = struct.unpack_from(layout, self.packet, self.pos)
        self.pos += struct.calcsize(layout)
        return values

    def name(self):
        labels = []
        while True:
            size = self.take(">B")[0]
            if size == 0:
                return ".".join(labels)
            assert size < 64, "compressed"
            labels.append(self.packet[self.pos:self.pos + size].decode())
            self.pos += size

    def record(self):
        owner, kind, cls, self.ttl, size = self.take(">3HIH")
        assert (owner, kind, cls) == (0xc00c, *self.question[1:]), self.packet
        if kind == PTR:
            self.data = self.name()
        else:
            assert size == {A: 4, AAAA: 16}[kind], self.packet
            self.data = ipaddress.ip_address(self.take(f">{size}s")[0])


def udp(daemon, packet, port=15053, host="127.0.0.1"):
    """One question, answered from the address that was asked."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.settimeout(5)
        sock.connect((host, daemon.port(port)))
        sock.send(packet)
        return Answer(sock.recv(4096))


def dropped(daemon, packet):
    """Whether there is no answer: the next question's comes in its place."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(5)
        sock.connect(("127.0.0.1", daemon.port(15053)))
        sock.send(packet)
        sock.send(query("after.test", ident=0x0f0f))
        return Answer(sock.recv(4096)).id == 0x0f0f


class Stream:
    """DNS over TCP."""

    def __init__(self, daemon, port=15053):
        self.sock = socket.create_connection(
            ("127.0.0.1", daemon.port(port)), timeout=20)
        self.file = self.sock.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.sock.close()

    @staticmethod
    def frame(packet):
        return struct.pack(">H", len(packet)) + packet

    def send(self, *packets):
        self.sock.sendall(b"".join(self.frame(p) for p in packets))

    def read(self):
        """The next answer, None at the end."""
        try:
            size = self.file.read(2)
            return Answer(self.file.read(*struct.unpack(">H", size))) \
                if size else None
        except ConnectionResetError:
            return None


def tcp(daemon, packet, port=15053):
    with Stream(daemon, port) as stream:
        stream.send(packet)
        return stream.read()


WAYS = {"udp": udp, "tcp": tcp}


def asked(daemon):
    """(host, protocol, reason) of each name_asked."""
    return [(r["request"]["host"], r["request"]["protocol"], r["reason"])
            for r in daemon.verified() if r["kind"] == "name_asked"]


def recorded(daemon, *hosts):
    """Wait until all of these are; what was asked until then."""
    def complete():
        records = asked(daemon)
        return records if set(hosts) <= {r[0] for r in records} else None
    return until(f"records of {hosts}", complete)


def counted(daemon, reason):
    """How many the records of a throttled reason stand for."""
    return sum(1 if why == reason else int(why.split()[1])
               for _, _, why in asked(daemon)
               if why and why.startswith(reason))


@contextlib.contextmanager
def upstreams():
    """Servers on port 53 of every address; what reaches them."""
    need_isolation()
    with contextlib.ExitStack() as stack:
        socks = []
        for family, kind in ((socket.AF_INET, socket.SOCK_DGRAM),
                             (socket.AF_INET6, socket.SOCK_DGRAM),
                             (socket.AF_INET, socket.SOCK_STREAM),
                             (socket.AF_INET6, socket.SOCK_STREAM)):
            sock = stack.enter_context(socket.socket(family, kind))
            if family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            sock.bind(("", 53))
            sock.setblocking(False)
            if kind == socket.SOCK_STREAM:
                sock.listen()
            socks.append(sock)

        def reached():
            seen = []
            for sock in socks:
                with contextlib.suppress(BlockingIOError):
                    seen.append(sock.recv(4096)
                                if sock.type == socket.SOCK_DGRAM
                                else sock.accept()[0].close())
            return seen
        yield reached


# ---- answers ----------------------------------------------------------------

@cases.each(WAYS)
def addresses(way):
    """Synthetic, one pair per name, the question as it was spelt."""
    ask = WAYS[way]
    with Daemon(CONF) as daemon:
        one = ask(daemon, query("OnE.tEst"))
        assert one.id == 0x4242 and one.question == ("OnE.tEst", A, 1)
        assert one.flags == 0x8580 and one.ttl == 60, vars(one)
        assert one.data in ipaddress.ip_network("198.18.0.0/15"), one.data
        six = ask(daemon, query("one.test", AAAA)).data
        assert six in ipaddress.ip_network("fd00::/8"), six
        assert ask(daemon, query("one.test.")).data == one.data
        assert ask(daemon, query("two.test")).data != one.data
        assert ask(daemon, query("two.test", AAAA)).data != six
        for name in ("localhost", "a.localhost"):
            assert str(ask(daemon, query(name)).data) == "127.0.0.1"
            assert str(ask(daemon, query(name, AAAA)).data) == "::1"
        for data in (one.data, six):
            back = ask(daemon, query(data.reverse_pointer, PTR))
            assert back.data == "one.test", vars(back)
        other = ask(daemon, query("9.9.9.9.in-addr.arpa", PTR))
        assert (other.rcode, other.data) == (NXDOMAIN, None)


@cases.case
def kept():
    """The same address after a thousand other names, over both ways, and
    after a reload."""
    with Daemon(CONF) as daemon:
        first = udp(daemon, query("kept.test")).data
        others = set()
        with Stream(daemon) as stream:
            for i in range(1000):
                stream.send(query(f"n{i}.test", ident=i))
                answer = stream.read()
                assert answer.id == i and answer.rcode == NOERROR
                others.add(answer.data)
        assert len(others) == 1000 and first not in others
        assert daemon.ask("reload").get("ok"), daemon.log()
        assert udp(daemon, query("kept.test")).data == first
        assert tcp(daemon, query("KEPT.test")).data == first
        assert tcp(daemon, query("n500.test")).data in others


@cases.each(TYPES)
def no_data(kind):
    """Other types are empty, and the name is recorded all the same."""
    with Daemon(CONF) as daemon:
        for way, ask in WAYS.items():
            answer = ask(daemon, query(f"{way}.evil.test", TYPES[kind]))
            assert (answer.rcode, answer.data) == (NOERROR, None)
        recorded(daemon, "udp.evil.test", "tcp.evil.test")


@cases.case
def refusals():
    opt = struct.pack(">BHHBBHH", 0, 41, 4096, 0, 0, 0x8000, 0)
    badvers = struct.pack(">BHHBBHH", 0, 41, 4096, 0, 1, 0, 0)
    with Daemon(CONF) as daemon:
        for ask in WAYS.values():
            for kind in (AXFR, IXFR):
                assert ask(daemon, query("x.test", kind)).rcode == REFUSED
            assert ask(daemon, query("version.bind", TXT, cls=3)).rcode == \
                REFUSED
            assert ask(daemon, query("x.test", flags=0x2800)).rcode == NOTIMP
            assert ask(daemon, query("x.test", flags=0x0300)).rcode == FORMERR
            assert ask(daemon, query("x.test") + b"x").rcode == FORMERR
            assert ask(daemon, query("127.0.0.1")).rcode == NXDOMAIN
            assert ask(daemon, query("x.test", extra=opt)).opt
            assert ask(daemon, query("x.test", extra=badvers)).rcode == \
                BADVERS


@cases.case
def malformed():
    """Loops, cuts and floods of rubbish: no answer or FORMERR, and it lives."""
    head = struct.pack(">6H", 7, 0x0100, 1, 0, 0, 0)
    whole = query("cut.test")
    with Daemon(CONF) as daemon:
        engine = daemon.settle()["edge"]
        for rest in (b"\xc0\x0c\0\1\0\1", b"\1a\xc0\x0c\0\1\0\1", b"\x40" * 80,
                     b"\xff" * 300, wire("x" * 60 + ".") * 5, b""):
            assert udp(daemon, head + rest).rcode == FORMERR, rest
        for size in range(len(whole)):
            if size < 12:
                assert dropped(daemon, whole[:size]), size
            else:
                assert udp(daemon, whole[:size]).rcode == FORMERR, size
        assert dropped(daemon, query("x.test", flags=0x8180)), "an answer"
        assert dropped(daemon, whole + bytes(1400)), "oversized"
        assert dropped(daemon, bytes(60000)), "far oversized"
        with Stream(daemon) as stream:
            stream.send(query("x.test", flags=0x8180))
            assert stream.read() is None
        with Stream(daemon) as stream:
            stream.sock.sendall(b"\xff\xff" + bytes(2000))
            assert stream.read() is None
        assert udp(daemon, whole).rcode == NOERROR
        assert daemon.settle()["edge"] == engine


@cases.case
def answered_from_where_it_was_asked():
    """Any server that the agent asks seems to answer; sessions differ."""
    need_isolation()
    with Daemon(BOTH) as daemon:
        data = udp(daemon, query("from.test")).data
        for host in ("127.0.0.9", "8.8.8.8", "203.0.113.7"):
            assert udp(daemon, query("from.test"), host=host).data == data
        for host in ("::1", "2001:db8::53", "fd00::1"):
            assert udp(daemon, query("from.test"), 15054, host).data == data
        six = udp(daemon, query("from.test", AAAA)).data
        other = udp(daemon, query("from.test", AAAA), 15055).data
        assert six.packed[:8] != other.packed[:8], (six, other)


@cases.case
def dig():
    """A resolver that we did not write agrees."""
    if shutil.which("dig") is None:
        raise Skip("no dig")
    with Daemon(CONF) as daemon:
        for more in ([], ["+tcp"], ["+noedns"], ["+dnssec"], ["+edns=1"]):
            done = subprocess.run(
                ["dig", "@127.0.0.1", "-p", str(daemon.port(15053)), "+tries=1",
                 *more, "dig.test", "A"], capture_output=True, text=True,
                timeout=20)
            assert "status: NOERROR" in done.stdout, done.stdout
            assert "198.1" in done.stdout, done.stdout
            assert "WARNING" not in done.stdout.upper(), done.stdout


@cases.case
def libc_resolver():
    """glibc's own resolver, told of us by resolv.conf."""
    need_isolation()
    conf = CONF.replace("port 15053", "port 53")
    script = ("echo nameserver 9.9.9.9 > $1/resolv && "
              "echo 'hosts: dns' > $1/nss && "
              "mount --bind $1/resolv /etc/resolv.conf && "
              "mount --bind $1/nss /etc/nsswitch.conf && "
              "exec getent ahosts glibc.test")
    with Daemon(conf) as daemon:
        done = subprocess.run(
            ["unshare", "-m", "sh", "-c", script, "sh", str(daemon.dir)],
            capture_output=True, text=True, timeout=30)
        if "unshare:" in done.stderr or "mount:" in done.stderr:
            raise Skip(done.stderr.strip())
        found = {line.split()[0] for line in done.stdout.splitlines()}
        assert any(text.startswith("198.1") for text in found), done
        recorded(daemon, "glibc.test")


# ---- nothing leaves ---------------------------------------------------------

@cases.case
def secret_label():
    """A secret in a label, by every type and way: recorded, sent nowhere."""
    with upstreams() as reached, Daemon(CONF) as daemon:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.sendto(b"control", (UPSTREAM, 53))
        assert until("the server hears", reached) == [b"control"]
        for way, ask in WAYS.items():
            for kind in (A, AAAA, *TYPES.values(), AXFR, IXFR):
                ask(daemon, query(f"s3cr3t-{way}-{kind}.evil.test", kind))
            ask(daemon, query(f"s3cr3t-{way}-chaos.evil.test", cls=3))
        names = {f"s3cr3t-{way}-{kind}.evil.test" for way in WAYS
                 for kind in (A, AAAA, *TYPES.values(), AXFR, IXFR, "chaos")}
        records = recorded(daemon, *names)
        assert len(records) == len(names), records
        assert {(h, p.lower(), r) for h, p, r in records} == {
            (name, name.split("-")[1], None) for name in names}, records
        assert reached() == [], "a question went out"


@cases.case
def recorded_once():
    with Daemon(CONF) as daemon:
        for _ in range(50):
            for kind in (A, AAAA, HTTPS, TXT):
                udp(daemon, query("once.test", kind))
        udp(daemon, query("localhost"))
        udp(daemon, query("last.test"))
        records = recorded(daemon, "last.test")
        assert [h for h, _, _ in records] == ["once.test", "last.test"]
        assert {r["request"]["port"] for r in daemon.records()
                if r["kind"] == "name_asked"} == {53}


@cases.case
def bad_name():
    """No host name: told with its bytes escaped, once a second."""
    packet = struct.pack(">6H", 7, 0x0100, 1, 0, 0, 0) + \
        b"\x09ev\0l.te\x1bt\0\0\1\0\1"
    with Daemon(CONF) as daemon:
        start = time.monotonic()
        for _ in range(500):
            assert udp(daemon, packet).rcode == NXDOMAIN
        spent = time.monotonic() - start
        udp(daemon, query("last.test"))
        records = [r for r in recorded(daemon, "last.test")
                   if r[0] != "last.test"]
        assert records[0] == ("ev\\000l\\046te\\027t", "udp", "bad_request"), \
            records
        assert len(records) <= 2 + spent, (records, spent)
        until("the others are counted",
              lambda: counted(daemon, "bad_request") == 500)


@cases.case
def flood():
    """Names without end: refused beyond a rate, counted, others unhurt."""
    with Daemon(BOTH) as daemon:
        known = udp(daemon, query("known.test")).data
        counts = {NOERROR: 0, SERVFAIL: 0}
        with Stream(daemon) as stream:
            for i in range(200):
                stream.send(*(query(f"f{i}x{j}.evil.test", ident=j)
                              for j in range(25)))
                for _ in range(25):
                    counts[stream.read().rcode] += 1
        assert counts[NOERROR] >= 2000 and counts[SERVFAIL] > 0, counts
        assert udp(daemon, query("known.test")).data == known
        assert udp(daemon, query("calm.test"), 15055).rcode == NOERROR

        until("all refusals are counted",
              lambda: counted(daemon, "quota") == counts[SERVFAIL])
        records = asked(daemon)
        quota = [r for _, _, r in records if r]
        assert quota[0] == "quota" and len(quota) < 20, quota
        assert len(records) - len(quota) == counts[NOERROR] + 2


# ---- TCP --------------------------------------------------------------------

@cases.case
def pipelined():
    """Many questions in one write, one question in many."""
    with Daemon(CONF) as daemon, Stream(daemon) as stream:
        stream.send(*(query(f"p{i}.test", ident=i) for i in range(300)))
        assert [stream.read().id for _ in range(300)] == list(range(300))
        for byte in stream.frame(query("slow.test", ident=9)):
            stream.sock.sendall(bytes([byte]))
        assert stream.read().id == 9
        stream.send(query("half.test", ident=10))
        stream.sock.shutdown(socket.SHUT_WR)
        assert stream.read().id == 10
        assert stream.read() is None


@cases.case
def idle():
    """Half a question does not hold a connection, nor does one byte at a
    time; meanwhile others are served."""
    with Daemon(CONF) as daemon:
        with Stream(daemon) as quiet, Stream(daemon) as slow:
            start = time.monotonic()
            slow.sock.settimeout(1)
            frame = slow.frame(query("x" * 60 + ".test"))
            try:
                for byte in frame:
                    slow.sock.sendall(bytes([byte]))
                    with contextlib.suppress(TimeoutError):
                        if slow.sock.recv(1) == b"":
                            break
            except (ConnectionResetError, BrokenPipeError):
                pass
            assert 4 < time.monotonic() - start < 20
            assert tcp(daemon, query("meanwhile.test")).rcode == NOERROR
            assert quiet.read() is None


@cases.case
def too_many():
    """Connections are bounded, one more is hung up on and recorded."""
    with Daemon(CONF) as daemon, contextlib.ExitStack() as stack:
        streams = [stack.enter_context(Stream(daemon)) for _ in range(32)]
        for stream in streams:
            stream.send(query("many.test"))
            assert stream.read().rcode == NOERROR
        with Stream(daemon) as extra:
            assert extra.read() is None
        assert udp(daemon, query("many.test")).rcode == NOERROR
        until("the refusal is recorded", lambda: [
            r for r in daemon.records()
            if r["kind"] == "connection_refused" and r["reason"] == "quota"])
        streams[0].sock.close()
        streams[0].file.close()
        until("there is room again",
              lambda: tcp(daemon, query("many.test")))


@cases.case
def slow_reader():
    """Who asks and does not read is dropped, and costs a bounded buffer."""
    packet = Stream.frame(query("x" * 60 + ".test", AAAA))
    with Daemon(CONF) as daemon, Stream(daemon) as stream:
        stream.sock.settimeout(0.2)
        start = time.monotonic()
        sent = 0
        try:
            while time.monotonic() - start < 30:
                with contextlib.suppress(TimeoutError):
                    sent += stream.sock.send(packet * 100)
                assert udp(daemon, query("meanwhile.test")).rcode == NOERROR
        except (ConnectionResetError, BrokenPipeError):
            pass
        else:
            assert False, f"not dropped after {sent} bytes"
        assert 4 < time.monotonic() - start < 30


# ---- names and connections --------------------------------------------------

def get(daemon, address, host):
    """The status of a request to an address, by its Host."""
    with socket.create_connection((str(address), daemon.port(15001)),
                                  timeout=20) as sock:
        sock.sendall(f"GET / HTTP/1.1\r\nHost: {host}:{daemon.port(15001)}\r\n"
                     "Connection: close\r\n\r\n".encode())
        return int(sock.makefile("rb").readline().split()[1])


@cases.case
def connected_by_address():
    """An address that we gave out stands for its name and for no other."""
    need_isolation()
    with Daemon(CONF) as daemon:
        evil = udp(daemon, query("evil.test")).data
        good = udp(daemon, query("api.good.test")).data
        assert get(daemon, evil, "evil.test") == 403
        assert get(daemon, evil, "api.good.test") == 421
        assert get(daemon, good, "evil.test") == 421
        never = ipaddress.ip_address("198.18.0.1")
        assert get(daemon, never, "api.good.test") == 421
        assert get(daemon, "203.0.113.80", "api.good.test") == 421


cases.main()
