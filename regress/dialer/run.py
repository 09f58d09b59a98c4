#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""The dialer: names, addresses, connections, and what it refuses.

The test runs in a network namespace of its own, where loopback carries
addresses that look public; nothing leaves it.
"""

import ctypes
import fcntl
import os
import pathlib
import socket
import struct
import subprocess
import sys
import threading
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
import standin_dns as dns  # noqa: E402
from case import Cases, Skip  # noqa: E402
from channel import C  # noqa: E402
from child import in_user_namespace  # noqa: E402
from daemon import Daemon, WAIT_S, until  # noqa: E402
from msgtab import TABLE  # noqa: E402
from standin_peers import (KINDS, Dialer,  # noqa: E402
                           without_remedy)

PUBLIC, PUBLIC2, PUBLIC6 = "11.0.0.1", "11.0.0.2", "2a00:1::1"
INSIDE, METADATA = "10.9.9.9", "169.254.169.254"
SLOW_S = 2.5        # half the time to dial: what was not done by itself

cases = Cases()


def enter_namespace():
    """Root's own, or with a user namespace around it."""
    libc = ctypes.CDLL(None, use_errno=True)
    newnet, newuser = 0x40000000, 0x10000000
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(newnet) == -1:
        if libc.unshare(newuser | newnet) == -1:
            print("skip all: no network namespace can be made here")
            sys.exit(0)
        pathlib.Path("/proc/self/setgroups").write_text("deny")
        pathlib.Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
        pathlib.Path("/proc/self/gid_map").write_text(f"0 {gid} 1")
    for line in ("link set lo up", f"addr add {PUBLIC}/32 dev lo",
                 f"addr add {PUBLIC2}/32 dev lo",
                 f"addr add {INSIDE}/32 dev lo",
                 f"addr add {METADATA}/32 dev lo",
                 f"addr add {PUBLIC6}/128 dev lo nodad"):
        subprocess.run(["ip", *line.split()], check=True)


class Origin:
    """Counts who connects, and keeps the connections."""

    def __init__(self, *addresses, port=0):
        self.socks, self.accepted, self.port = [], [], port
        for text in addresses:
            family = socket.AF_INET6 if ":" in text else socket.AF_INET
            sock = socket.socket(family)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((text, self.port))
            sock.listen(512)
            self.port = sock.getsockname()[1]
            self.socks.append(sock)

    def __enter__(self):
        for sock in self.socks:
            threading.Thread(target=self.run, args=[sock],
                             daemon=True).start()
        return self

    def __exit__(self, *_):
        for sock in self.socks:
            sock.shutdown(socket.SHUT_RDWR)
            sock.close()
        for conn in self.accepted:
            conn.close()

    def run(self, sock):
        try:
            while True:
                self.accepted.append(sock.accept()[0])
        except OSError:
            return

    def locals(self):
        return [c.getsockname()[0] for c in self.accepted]


class Swamp:
    """An address that swallows what is sent there: its queue is full."""

    def __init__(self, address, port=0):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.listener = socket.socket(family)
        self.listener.bind((address, port))
        self.listener.listen(0)
        self.port = self.listener.getsockname()[1]
        self.fill = []
        for _ in range(4):
            sock = socket.socket(family)
            sock.setblocking(False)
            sock.connect_ex((address, self.port))
            self.fill.append(sock)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for sock in [self.listener, *self.fill]:
            sock.close()


def closed_port(address):
    with socket.socket() as sock:
        sock.bind((address, 0))
        return sock.getsockname()[1]


def fastest(function):
    """Of a few, as the machine may be busy with something else."""
    times = []
    for _ in range(5):
        start = time.monotonic()
        function()
        times.append(time.monotonic() - start)
    return min(times)


# ---- sockets and hosts ----

@cases.case
def stock():
    """It asks for a few of each kind, and for another as one is used."""
    with Dialer(hosts=[("origin.test", "127.0.0.1")]) as dialer, \
            Origin("127.0.0.1") as origin:
        assert dialer.asked == dict.fromkeys(KINDS, 8), dialer.asked
        dialer.settle(engines=0)
        dialer.engine().connects("origin.test", origin.port, "127.0.0.1")
        until("another is asked for",
              lambda: dialer.asked[C["SOCKET_TCP4"]] == 9)


@cases.case
def hosts_entry():
    """The operator's word reaches loopback, and the socket works."""
    with Dialer(hosts=[("origin.test", "127.0.0.1")]) as dialer, \
            Origin("127.0.0.1") as origin:
        message = dialer.engine().dial("origin.test", origin.port)
        assert message.address == "127.0.0.1", message
        flags = fcntl.fcntl(message.fd, fcntl.F_GETFL)
        assert flags & os.O_NONBLOCK, "it blocks"
        until("accepted", lambda: origin.accepted)
        message.sock.sendall(b"through")
        assert origin.accepted[0].recv(7) == b"through"
        message.sock.close()


@cases.case
def hosts_name_only():
    """Neither the address nor another name is opened by an entry."""
    with dns.Server(zone={"other.test": dns.static("127.0.0.1")}) as server, \
            Dialer([("origin.test", "127.0.0.1")], [server]) as dialer:
        engine = dialer.engine()
        engine.fails("127.0.0.1", 80, "DIAL_ADDRESS_REFUSED",
                     "loopback address 127.0.0.1")
        engine.fails("other.test", 80, "DIAL_ADDRESS_REFUSED",
                     "loopback address 127.0.0.1")


@cases.case
def hosts_several():
    """Addresses of one name are tried in turn."""
    with Origin("127.0.0.1") as origin, \
            Dialer([("o.test", "127.0.0.2"), ("o.test", "127.0.0.1")]) as d:
        d.engine().connects("o.test", origin.port, "127.0.0.1")


@cases.case
def waits_for_a_socket():
    with Origin("127.0.0.1") as origin, \
            Dialer([("o.test", "127.0.0.1")],
                   withhold=[C["SOCKET_TCP4"]]) as dialer:
        engine = dialer.engine()
        numbers = {engine.grant("o.test", origin.port) for _ in range(20)}
        until("asked for those who wait",
              lambda: dialer.asked[C["SOCKET_TCP4"]] >= 28)
        dialer.release()
        for _ in range(20):
            message = engine.answer()
            assert message.name == "DIALED", message
            message.sock.close()
            numbers.remove(message.dial)
        assert not numbers


@cases.case
def no_ipv6_sockets():
    """A machine whose kernel has no IPv6: the parent has none to give."""
    v6 = [C["SOCKET_TCP6"], C["SOCKET_UDP6"]]
    zone = {"two.test": dns.static(PUBLIC6, PUBLIC)}
    with Origin(PUBLIC, PUBLIC6) as origin, dns.Server(zone=zone) as server, \
            Dialer(resolvers=[server], withhold=v6) as dialer:
        engine = dialer.engine()
        engine.connects("two.test", origin.port, PUBLIC)
        message = engine.dial(PUBLIC6, origin.port)     # by now it knows
        assert message.failure == C["DIAL_UNREACHABLE"] and message.why == \
            f"address family not supported by protocol ({PUBLIC6})", message
        assert fastest(lambda: engine.connects(
            "two.test", origin.port, PUBLIC)) < 0.2, "it waits for IPv6"


# ---- names ----

@cases.case
def nothing_before_a_grant():
    """P1: no question leaves before a grant, then only these two."""
    with dns.Server(zone={"a.test": dns.static(PUBLIC)}) as server, \
            Dialer(resolvers=[server]) as dialer, Origin(PUBLIC) as origin:
        engine = dialer.engine()
        engine.connects(PUBLIC, origin.port, PUBLIC)
        assert not server.questions
        engine.connects("a.test", origin.port, PUBLIC)
        asked = sorted((q.name, q.type) for q in server.questions)
        assert asked == [("a.test", dns.A), ("a.test", dns.AAAA)], asked


@cases.case
def ipv6():
    with dns.Server(zone={"a.test": dns.static(PUBLIC6)}) as server, \
            Dialer(resolvers=[server]) as dialer, Origin(PUBLIC6) as origin:
        dialer.engine().connects("a.test", origin.port, PUBLIC6)


@cases.case
def localhost_is_not_asked():
    with dns.Server(zone={"localhost": dns.static(PUBLIC)}) as server, \
            Dialer(resolvers=[server]) as dialer:
        for name in ("localhost", "x.localhost"):
            dialer.engine().fails(name, 80, "DIAL_ADDRESS_REFUSED",
                                  "loopback name")
        assert not server.questions


@cases.case
def no_name_server():
    with Dialer() as dialer:
        dialer.engine().fails("a.test", 80, "DIAL_UNREACHABLE",
                              "no name server is configured")


def serve_bad(rcode):
    return lambda question, _: dns.reply(question, rcode=rcode)


FAULTS = {
    "nxdomain": ("no such name", serve_bad(3)),
    "nodata": ("no address", serve_bad(0)),
    "servfail": ("no name server has an answer", serve_bad(2)),
    "refused": ("no name server has an answer", serve_bad(5)),
    # A record whose length points past the end.
    "cut": ("the name server's answer is malformed", lambda q, _: dns.reply(
        q, [("bad.test", q.type, 60, b"\0\0\0\0")])[:-2]),
    # Names that point at themselves.
    "loop": ("the name server's answer is malformed", lambda q, _: dns.reply(
        q, [("bad.test", q.type, 60, b"")]).replace(
            dns.pack_name("bad.test") + b"\0" + bytes([q.type]) + b"\0\1\0",
            b"\xc0\x1a\0" + bytes([q.type]) + b"\0\1\0")),
}


@cases.each(FAULTS)
def no_address(fault):
    why, serve = FAULTS[fault]
    with dns.Server(zone={"bad.test": serve}) as server, \
            Dialer(resolvers=[server]) as dialer:
        dialer.engine().fails("bad.test", 80, "DIAL_UNREACHABLE", why)


@cases.case
def failures_are_not_kept():
    def serve(question, before):
        return dns.reply(question, rcode=3) if before == 0 else \
            dns.static(PUBLIC)(question, before)
    with dns.Server(zone={"a.test": serve}) as server, \
            Dialer(resolvers=[server]) as dialer, Origin(PUBLIC) as origin:
        engine = dialer.engine()
        engine.fails("a.test", origin.port, "DIAL_UNREACHABLE",
                     "no such name")
        engine.connects("a.test", origin.port, PUBLIC)


@cases.case
def name_server_is_down():
    class Down:
        host, port = "127.0.0.1", closed_port("127.0.0.1")
    with Dialer(resolvers=[Down]) as dialer:
        dialer.engine().fails("a.test", 80, "DIAL_UNREACHABLE",
                              "no name server has an answer")


@cases.case
def second_name_server():
    """One that is down and one that fails do not matter."""
    class Down:
        host, port = "127.0.0.1", closed_port("127.0.0.1")
    good = {f"a{i}.test": dns.static(PUBLIC) for i in range(40)}
    bad = {name: serve_bad(2) for name in good}
    with dns.Server(zone=good) as server, dns.Server(zone=bad) as failing, \
            Dialer(resolvers=[Down, failing, server]) as dialer, \
            Origin(PUBLIC) as origin:
        engine = dialer.engine()
        for name in good:
            engine.grant(name, origin.port)
        for _ in good:
            message = engine.answer()
            assert message.name == "DIALED", message
            message.sock.close()


@cases.case
def truncated():
    """The rest of the answer comes over TCP."""
    def serve(question, _):
        many = [dns.address("a.test", f"11.1.0.{i}") for i in range(1, 101)]
        many.insert(0, dns.address("a.test", PUBLIC))
        if question.type == dns.AAAA:
            return dns.reply(question)
        return dns.reply(question, many if question.tcp else [],
                         truncated=not question.tcp)
    with dns.Server(zone={"a.test": serve}) as server, \
            Dialer(resolvers=[server]) as dialer, Origin(PUBLIC) as origin:
        dialer.engine().connects("a.test", origin.port, PUBLIC)
        assert any(q.tcp for q in server.questions)


@cases.case
def hundred_addresses():
    """Only so many are tried, each once."""
    many = [f"11.{i}.0.1" for i in range(1, 101)]
    port = closed_port(PUBLIC)
    for address in many[:32]:
        subprocess.run(["ip", "addr", "add", f"{address}/32", "dev", "lo"],
                       check=True)
    with dns.Server(zone={"a.test": dns.static(*many)}) as server, \
            Dialer(resolvers=[server]) as dialer:
        dialer.engine().fails("a.test", port, "DIAL_UNREACHABLE",
                              "connection refused (11.4.0.1)")


@cases.case
def slow_name_server():
    with dns.Server(zone={"a.test": lambda q, _: None}) as server, \
            Dialer(resolvers=[server], timeout_ms=300) as dialer:
        start = time.monotonic()
        dialer.engine().fails("a.test", 80, "DIAL_UNREACHABLE",
                              "timed out after 300 ms")
        assert 0.25 < time.monotonic() - start < 2


@cases.case
def one_family_is_silent():
    """Questions for AAAA that nobody answers do not hold up IPv4."""
    def serve(question, before):
        return None if question.type == dns.AAAA else \
            dns.static(PUBLIC)(question, before)
    with dns.Server(zone={"a.test": serve}) as server, \
            Dialer(resolvers=[server]) as dialer, Origin(PUBLIC) as origin:
        start = time.monotonic()
        dialer.engine().connects("a.test", origin.port, PUBLIC)
        assert time.monotonic() - start < SLOW_S


@cases.case
def late_family():
    """IPv6 that comes after IPv4 has failed is tried as well."""
    gate = threading.Event()

    def serve(question, before):
        if question.type == dns.AAAA:
            gate.wait(WAIT_S)
        return dns.static(PUBLIC, PUBLIC6)(question, before)
    with dns.Server(zone={"a.test": serve}) as v6, \
            Dialer(resolvers=[v6]) as dialer, Origin(PUBLIC6) as origin:
        engine = dialer.engine()
        engine.grant("a.test", origin.port)
        until("IPv4 is tried", lambda: dialer.asked[C["SOCKET_TCP4"]] == 9)
        gate.set()
        message = engine.answer()
        assert message.name == "DIALED" and message.address == PUBLIC6, \
            message
        message.sock.close()


@cases.case
def forged_answers():
    """Wrong id, wrong question and another source do not count, and rubbish
    costs no more than another question."""
    def serve(question, before):
        if question.type == dns.AAAA:
            return dns.reply(question)
        rubbish = [] if before else [b"", b"\xff", os.urandom(64)]
        liar = [dns.address("a.test", PUBLIC2)]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            for port in ports:
                sock.sendto(dns.reply(question, liar), ("127.0.0.1", port))
        other = dns.Question(
            struct.pack(">HHHHHH", question.id, 0, 1, 0, 0, 0) +
            dns.pack_name("b.test") + b"\0\1\0\1", False)
        return [dns.reply(question, liar, ident=question.id ^ 1),
                dns.reply(other, liar), *rubbish,
                dns.static(PUBLIC)(question, before)]

    ports = []
    with dns.Server(zone={"a.test": serve}) as server, \
            Dialer(resolvers=[server]) as dialer, \
            Origin(PUBLIC, PUBLIC2) as origin:
        receive = server.udp.recvfrom

        def remember(size):
            data, peer = receive(size)
            ports.append(peer[1])
            return data, peer
        server.udp = Wrapped(server.udp, remember)
        dialer.engine().connects("a.test", origin.port, PUBLIC)
        assert PUBLIC2 not in origin.locals()


class Wrapped:
    """A socket whose recvfrom is watched."""

    def __init__(self, sock, recvfrom):
        self.sock, self.recvfrom = sock, recvfrom

    def __getattr__(self, name):
        return getattr(self.sock, name)


@cases.case
def shared_question():
    """Ten dials of a name are one question."""
    gate = threading.Event()

    def serve(question, before):
        gate.wait(WAIT_S)
        return dns.static(PUBLIC)(question, before)
    with dns.Server(zone={"a.test": serve}) as server, \
            Dialer(resolvers=[server]) as dialer, Origin(PUBLIC) as origin:
        engines = [dialer.engine() for _ in range(10)]
        for engine in engines:
            engine.grant("a.test", origin.port)
        engines[0].channel.close()
        gate.set()
        for engine in engines[1:]:
            message = engine.answer()
            assert message.name == "DIALED", message
            message.sock.close()
        assert server.count("a.test") == 2, server.count("a.test")


@cases.case
def cache():
    """Asked once within its time to live; not after a reload."""
    zone = {"a.test": dns.static(PUBLIC, ttl=300)}
    with dns.Server(zone=zone) as server, Origin(PUBLIC) as origin, \
            Dialer(resolvers=[server]) as dialer:
        engine = dialer.engine()
        for _ in range(3):
            engine.connects("a.test", origin.port, PUBLIC)
        assert server.count("a.test") == 2
        dialer.conf(resolvers=[server])
        engine.connects("a.test", origin.port, PUBLIC)
        assert server.count("a.test") == 4


@cases.case
def cache_is_bounded():
    """Thousands of names go through; the oldest are asked again."""
    names = [f"n{i}.test" for i in range(1100)]
    with dns.Server(zone={n: dns.static(INSIDE) for n in names}) as server, \
            Dialer(resolvers=[server]) as dialer:
        engine = dialer.engine()
        for name in names + names[:1] + names[-1:]:
            engine.fails(name, 80, "DIAL_ADDRESS_REFUSED",
                         f"private address {INSIDE}")
        assert server.count(names[0]) == 4, "it is still known"
        assert server.count(names[-1]) == 2, "it is not known"


# ---- the address policy ----

REFUSED = {
    "0.0.0.0": "this-network", "10.0.0.1": "private",
    "100.64.0.1": "cgnat", "100.100.100.200": "metadata",
    "127.0.0.1": "loopback", "169.254.1.1": "link-local",
    "169.254.169.254": "metadata", "172.31.0.1": "private",
    "192.168.1.1": "private", "198.18.0.1": "benchmark",
    "203.0.113.1": "reserved", "224.0.0.1": "multicast",
    "255.255.255.255": "reserved", "::1": "loopback", "::": "this-network",
    "fe80::1": "link-local", "fd00:ec2::254": "metadata",
    "fc00::1": "private", "ff02::1": "multicast",
    "::ffff:127.0.0.1": "loopback", "64:ff9b::a9fe:a9fe": "metadata",
    "2002:a9fe:a9fe::": "metadata", "2001:db8::1": "reserved",
    "64:ff9b:1::7f00:1": "loopback",
}


@cases.each(REFUSED)
def refused(address):
    """As a literal and as what a name leads to."""
    with dns.Server(zone={"a.test": dns.static(address)}) as server, \
            Dialer(resolvers=[server]) as dialer:
        engine = dialer.engine()
        # Mapped, a literal is the IPv4 address by the time it is granted.
        for host in ("a.test", address.removeprefix("::ffff:")):
            engine.fails(host, 80, "DIAL_ADDRESS_REFUSED",
                         f"{REFUSED[address]} address "
                         f"{address if host == 'a.test' else host}")


@cases.case
def private_by_rule():
    """`to private' and prefixes open private ranges, and only these."""
    with Origin(INSIDE) as origin, Dialer() as dialer:
        engine, port = dialer.engine(), origin.port
        engine.connects(INSIDE, port, INSIDE, to_private=1)
        engine.connects(INSIDE, port, INSIDE, nets="192.168.0.0/16 10.9.0.0/16")
        for nets in ("10.8.0.0/16", "fd00::/8", "0.0.0.0/32"):
            engine.fails(INSIDE, port, "DIAL_ADDRESS_REFUSED",
                         f"private address {INSIDE}", nets=nets)
        for host in ("127.0.0.1", METADATA):
            engine.fails(host, port, "DIAL_ADDRESS_REFUSED",
                         f"{REFUSED[host]} address {host}",
                         nets="0.0.0.0/0", to_private=1)


@cases.case
def closed_by_operator():
    """`address deny' holds against everything but `hosts'."""
    with Origin(PUBLIC, INSIDE) as origin, \
            Dialer([("o.test", PUBLIC)], deny=["11.0.0.0/31", "10.0.0.0/8"]) \
            as dialer:
        engine, port = dialer.engine(), origin.port
        for host in (PUBLIC, INSIDE, "64:ff9b::b00:1"):
            engine.fails(host, port, "DIAL_ADDRESS_REFUSED",
                         f"closed address {host}", to_private=1,
                         nets="10.0.0.0/8")
        engine.connects("o.test", port, PUBLIC)


@cases.case
def remedies():
    """Who refuses an address says what would open it."""
    with Dialer(deny=["11.0.0.0/31"]) as dialer:
        engine = dialer.engine()
        for host, why in {
                INSIDE: f'private address {INSIDE} ("to private" would allow '
                        'it)',
                METADATA: f"metadata address {METADATA} (never dialled)",
                PUBLIC: f'closed address {PUBLIC} (our own, or "address '
                        'deny")'}.items():
            message = engine.dial(host, 80)
            assert message.why == why, message


@cases.case
def mixed_answer():
    """Of good and bad addresses only the good are dialled."""
    zone = {"a.test": dns.static("::1", METADATA, INSIDE, "fe80::1", PUBLIC)}
    with dns.Server(zone=zone) as server, Dialer(resolvers=[server]) as d, \
            Origin(PUBLIC, INSIDE, METADATA, "::1") as origin:
        engine = d.engine()
        for _ in range(5):
            engine.connects("a.test", origin.port, PUBLIC)
        until("accepted", lambda: len(origin.accepted) == 5)
        assert set(origin.locals()) == {PUBLIC}, origin.locals()


@cases.case
def mixed_answer_unreachable():
    """No bad address stands in for a good one that fails."""
    zone = {"a.test": dns.static(METADATA, PUBLIC2)}
    with dns.Server(zone=zone) as server, Dialer(resolvers=[server]) as d, \
            Origin(METADATA) as origin:
        d.engine().fails("a.test", origin.port, "DIAL_UNREACHABLE",
                         f"connection refused ({PUBLIC2})")
        assert not origin.accepted


@cases.each([METADATA, "127.0.0.1", INSIDE])
def rebinding(inside):
    """Public first, then inside: the second answer gets nowhere."""
    def serve(question, before):
        return dns.static(PUBLIC if before == 0 else inside,
                          ttl=0)(question, before)
    with dns.Server(zone={"a.test": serve}) as server, \
            Dialer(resolvers=[server]) as dialer, \
            Origin(PUBLIC, inside) as origin:
        engine = dialer.engine()
        engine.connects("a.test", origin.port, PUBLIC)

        def turned():
            message = engine.dial("a.test", origin.port)
            if message.sock:
                message.sock.close()
                return None
            return message
        message = until("the answer changes", turned)
        assert message.failure == C["DIAL_ADDRESS_REFUSED"], message
        assert without_remedy(message.why) == \
            f"{REFUSED.get(inside, 'private')} address {inside}", message
        assert inside not in origin.locals()


@cases.case
def vetted_at_each_use():
    """What one grant opened, the cache does not open for another."""
    with dns.Server(zone={"a.test": dns.static(INSIDE)}) as server, \
            Dialer(resolvers=[server]) as dialer, Origin(INSIDE) as origin:
        engine = dialer.engine()
        engine.connects("a.test", origin.port, INSIDE, to_private=1)
        engine.fails("a.test", origin.port, "DIAL_ADDRESS_REFUSED",
                     f"private address {INSIDE}")
        assert server.count("a.test") == 2


@cases.case
def alias_inside():
    zone = {"a.test": dns.static(("alias", "db.inside.test"), INSIDE)}
    with dns.Server(zone=zone) as server, Dialer(resolvers=[server]) as d, \
            Origin(INSIDE) as origin:
        d.engine().fails("a.test", origin.port, "DIAL_ADDRESS_REFUSED",
                         f"private address {INSIDE}")
        assert not origin.accepted


@cases.case
def alias_outside():
    zone = {"a.test": dns.static(("alias", "cdn.test"), PUBLIC)}
    with dns.Server(zone=zone) as server, Dialer(resolvers=[server]) as d, \
            Origin(PUBLIC) as origin:
        d.engine().connects("a.test", origin.port, PUBLIC)


# ---- connecting ----

@cases.case
def connection_refused():
    with Dialer() as dialer:
        dialer.engine().fails(PUBLIC, closed_port(PUBLIC), "DIAL_UNREACHABLE",
                              f"connection refused ({PUBLIC})")


@cases.case
def no_route():
    with Dialer() as dialer:
        dialer.engine().fails("12.0.0.1", 80, "DIAL_UNREACHABLE",
                              "network is unreachable (12.0.0.1)")


@cases.case
def telling_failure():
    """That IPv6 has no route is not what is worth saying."""
    hosts = [("a.test", where) for where in ("2a00:2::1", "2a00:3::1",
                                             PUBLIC)]
    with Dialer(hosts) as dialer:
        dialer.engine().fails("a.test", closed_port(PUBLIC),
                              "DIAL_UNREACHABLE",
                              f"connection refused ({PUBLIC})")


@cases.case
def connect_times_out():
    with Swamp(PUBLIC) as swamp, Dialer(timeout_ms=300) as dialer:
        dialer.engine().fails(PUBLIC, swamp.port, "DIAL_UNREACHABLE",
                              "timed out after 300 ms")


@cases.case
def second_family_after_stagger():
    """IPv6 first; when nothing comes of it, IPv4 beside it."""
    zone = {"a.test": dns.static(PUBLIC, PUBLIC6)}
    with dns.Server(zone=zone) as server, Dialer(resolvers=[server]) as d, \
            Swamp(PUBLIC6) as swamp, Origin(PUBLIC, port=swamp.port):
        start = time.monotonic()
        d.engine().connects("a.test", swamp.port, PUBLIC)
        assert 0.2 < time.monotonic() - start < SLOW_S
        d.settle(engines=1)     # the other attempt is closed


@cases.case
def ipv6_is_first():
    zone = {"a.test": dns.static(PUBLIC, PUBLIC6)}
    with dns.Server(zone=zone) as server, Dialer(resolvers=[server]) as d, \
            Origin(PUBLIC, PUBLIC6) as origin:
        d.engine().connects("a.test", origin.port, PUBLIC6)


@cases.case
def no_ipv6_route():
    """A failed attempt is followed at once."""
    zone = {"a.test": dns.static("2a00:2::1", "2a00:3::1", PUBLIC)}
    with dns.Server(zone=zone) as server, Dialer(resolvers=[server]) as d, \
            Origin(PUBLIC) as origin:
        engine = d.engine()
        assert fastest(lambda: engine.connects(
            "a.test", origin.port, PUBLIC)) < 0.2


# ---- bounds ----

@cases.case
def no_leak():
    """Descriptors after hundreds of dials of all outcomes: as before."""
    zone = {"a.test": dns.static(PUBLIC, PUBLIC6, INSIDE)}
    with dns.Server(zone=zone) as server, Origin(PUBLIC, PUBLIC6) as origin, \
            Dialer([("o.test", PUBLIC)], [server]) as dialer:
        engine = dialer.engine()
        bad = closed_port(PUBLIC)
        for _ in range(60):
            engine.connects("a.test", origin.port, PUBLIC6)
            engine.connects("o.test", origin.port, PUBLIC)
            assert engine.dial("o.test", bad).name == "DIAL_FAILED"
            assert engine.dial("none.test", 80).name == "DIAL_FAILED"
            assert engine.dial(INSIDE, 80).name == "DIAL_FAILED"
        dialer.settle(engines=1)


@cases.case
def too_many_of_one_engine():
    """The 257th is told so at once; another engine is not."""
    with Swamp(PUBLIC) as swamp, Origin(PUBLIC2) as origin, \
            Dialer(timeout_ms=60000) as dialer:
        greedy, other = dialer.engine(), dialer.engine()
        for _ in range(257):
            greedy.grant(PUBLIC, swamp.port)
        message = greedy.answer()
        assert message.dial == 257 and \
            message.why == "too many connections are being made", message
        other.connects(PUBLIC2, origin.port, PUBLIC2)


@cases.case
def too_many_names_of_one_engine():
    """Questions that nobody waits for any more count as well."""
    with dns.Server() as server, Origin(PUBLIC) as origin, \
            Dialer(resolvers=[server], timeout_ms=100) as dialer:
        server.zone = dict.fromkeys((f"n{i}.test" for i in range(300)),
                                    lambda q, _: None)
        server.zone["a.test"] = dns.static(PUBLIC)
        greedy, other = dialer.engine(), dialer.engine()
        for i in range(256):
            greedy.grant(f"n{i}.test", 80)
        for _ in range(256):
            message = greedy.answer()
            assert message.why == "timed out after 100 ms", message
        greedy.fails("n256.test", 80, "DIAL_UNREACHABLE",
                     "too many names are being resolved")
        dialer.conf(resolvers=[server])     # with time to spare
        other.connects("a.test", origin.port, PUBLIC)


@cases.case
def too_many_in_all():
    """2048 dials of nine engines: the rest is refused, none is lost."""
    with dns.Server() as server, \
            Dialer(resolvers=[server], timeout_ms=4000) as dialer:
        server.zone["a.test"] = lambda q, _: None
        engines = [dialer.engine() for _ in range(9)]
        for _ in range(240):
            for engine in engines:
                engine.grant("a.test", 80)
        texts = [engine.answer().why for engine in engines
                 for _ in range(240)]
        assert texts.count("too many connections are being made") == \
            9 * 240 - 2048, {t: texts.count(t) for t in set(texts)}


@cases.case
def engine_dies():
    """Its dials end with it, others go on."""
    with Swamp(PUBLIC) as swamp, Origin(PUBLIC2) as origin, \
            Dialer(timeout_ms=60000) as dialer:
        other = dialer.engine()
        other.connects(PUBLIC2, origin.port, PUBLIC2)
        engine = dialer.engine()
        for _ in range(50):
            engine.grant(PUBLIC, swamp.port)
        until("they are under way", lambda: dialer.descriptors() > 80)
        engine.channel.close()
        dialer.settle(engines=1)
        other.connects(PUBLIC2, origin.port, PUBLIC2)


@cases.case
def engine_dies_while_its_name_is_asked():
    with dns.Server(zone={"a.test": lambda q, _: None}) as server, \
            Dialer(resolvers=[server]) as dialer, Origin(PUBLIC) as origin:
        engine, other = dialer.engine(), dialer.engine()
        engine.grant("a.test", origin.port)
        server.wait("a.test", 2, WAIT_S)
        engine.channel.close()
        server.zone["a.test"] = dns.static(PUBLIC)
        other.connects("a.test", origin.port, PUBLIC)


@cases.case
def engine_does_not_read():
    """What it leaves in its channel does not use up our descriptors."""
    with Origin(PUBLIC, PUBLIC2) as origin, Dialer() as dialer:
        idle, other = dialer.engine(), dialer.engine()
        for i in range(12):
            for _ in range(200):
                idle.grant(PUBLIC, origin.port)
            other.connects(PUBLIC2, origin.port, PUBLIC2)
        assert dialer.descriptors() < 1000, dialer.descriptors()
        other.connects(PUBLIC2, origin.port, PUBLIC2)
        seen = {"DIALED": 0, "DIAL_FAILED": 0}
        for _ in range(2400):
            message = idle.answer()
            seen[message.name] += 1
            if message.sock:
                message.sock.close()
        assert seen["DIALED"] > 0, seen


@cases.case
def descriptors_exhausted():
    """With room for a few dozen it is slow, and nothing is lost."""
    with Swamp(PUBLIC) as swamp, Origin(PUBLIC2) as origin, \
            Dialer(files=64, timeout_ms=3000) as dialer:
        engine = dialer.engine()
        for i in range(100):
            engine.grant(PUBLIC, swamp.port)
        for _ in range(100):
            message = engine.answer()
            assert message.why == "timed out after 3000 ms", message
        for _ in range(100):
            engine.grant(PUBLIC2, origin.port)
        for _ in range(100):
            message = engine.answer()
            assert message.name == "DIALED", message
            message.sock.close()


# ---- peers ----

@cases.case
def unknown_engine():
    with Origin(PUBLIC) as origin, Dialer() as dialer:
        engine = dialer.engine()
        dialer.policyd.send("GRANT", instance=99, dial=1, host=PUBLIC,
                            port=origin.port)
        engine.connects(PUBLIC, origin.port, PUBLIC)
        until("one connection", lambda: origin.accepted)
        assert len(origin.accepted) == 1


@cases.each(["GRANT", "DIALED", "ENGINE_HELLO", "SOCKET_ASK", "ASK"])
def engine_speaks(name):
    """It has nothing to say here: reported, cut off, nothing else."""
    with Origin(PUBLIC) as origin, Dialer() as dialer:
        engine, other = dialer.engine(), dialer.engine()
        with socket.socket() as sock:
            says = {"instance": 2, "dial": 1, "host": PUBLIC,
                    "port": origin.port}
            engine.channel.send(
                name, sock.fileno() if name == "DIALED" else None,
                **{field: says[field] for _, field, _ in TABLE[name].fields
                   if field in says})
        assert dialer.expect("ENGINE_BAD").instance == engine.instance
        assert engine.channel.read(WAIT_S) is None
        other.connects(PUBLIC, origin.port, PUBLIC)
        until("one connection", lambda: origin.accepted)
        assert len(origin.accepted) == 1


BAD_GRANTS = {
    "upper case": {"host": "A.test"}, "trailing dot": {"host": "a.test."},
    "octal": {"host": "0177.0.0.1"}, "short": {"host": "127.1"},
    "number": {"host": "2130706433"}, "bracketed": {"host": "[::1]"},
    "with port": {"host": "a.test:80"}, "empty": {"host": ""},
    "space": {"host": "a test"}, "no port": {"port": 0},
    "no number": {"dial": 0}, "to private": {"to_private": 2},
    "prefix": {"nets": "10.0.0.0/8 10.0.0.1/8"},
    "long prefix": {"nets": "1" * 90}, "v6 spelling": {"host": "0:0::1"},
}


@cases.each(BAD_GRANTS)
def bad_grant(what):
    """A sound policyd sends none of these: the dialer ends."""
    with dns.Server() as server, Dialer(resolvers=[server]) as dialer:
        engine = dialer.engine()
        dialer.policyd.send("GRANT", **{
            "instance": engine.instance, "dial": 1, "host": "a.test",
            "port": 80, **BAD_GRANTS[what]})
        assert dialer.process.wait(WAIT_S) != 0
        assert "bad message from policyd: GRANT" in dialer.log()
        assert not server.questions
        dialer.errors.truncate(0)


@cases.case
def unasked_socket():
    with Dialer() as dialer:
        dialer.give(C["SOCKET_TCP4"])
        assert dialer.process.wait(WAIT_S) != 0
        assert "bad message from parent: SOCKET" in dialer.log()


@cases.case
def quiet():
    """Names do not appear in the log of an ordinary level."""
    with dns.Server(zone={"a.test": dns.static(INSIDE)}) as server, \
            Dialer(resolvers=[server]) as dialer:
        engine = dialer.engine()
        for name in ("a.test", "none.test", "localhost"):
            assert engine.dial(name, 80).name == "DIAL_FAILED"
        assert dialer.log() == ""


# ---- reload ----

@cases.case
def reload_changes_everything():
    with Origin(PUBLIC, "127.0.0.1") as origin, Dialer() as dialer:
        engine, port = dialer.engine(), origin.port
        engine.connects(PUBLIC, port, PUBLIC)
        dialer.conf([("o.test", "127.0.0.1")], deny=[f"{PUBLIC}/32"])
        engine.connects("o.test", port, "127.0.0.1")
        engine.fails(PUBLIC, port, "DIAL_ADDRESS_REFUSED",
                     f"closed address {PUBLIC}")
        dialer.conf()
        engine.connects(PUBLIC, port, PUBLIC)
        engine.fails("o.test", port, "DIAL_UNREACHABLE",
                     "no name server is configured")


@cases.case
def reload_aborted():
    with Origin(PUBLIC) as origin, Dialer() as dialer:
        engine = dialer.engine()
        dialer.prepare(deny=["0.0.0.0/0"])
        dialer.expect("CONF_ACK")
        dialer.send("CONF_ABORT", generation=dialer.generation)
        engine.connects(PUBLIC, origin.port, PUBLIC)


@cases.case
def reload_moves_questions():
    """What the old servers have not answered, the new ones are asked."""
    with dns.Server(zone={"a.test": lambda q, _: None}) as old, \
            dns.Server(zone={"a.test": dns.static(PUBLIC)}) as new, \
            Dialer(resolvers=[old]) as dialer, Origin(PUBLIC) as origin:
        engine = dialer.engine()
        engine.grant("a.test", origin.port)
        old.wait("a.test", 2, WAIT_S)
        count = old.count("a.test")
        dialer.conf(resolvers=[new])
        start = time.monotonic()
        message = engine.answer()
        assert message.name == "DIALED", message
        message.sock.close()
        assert time.monotonic() - start < SLOW_S
        assert old.count("a.test") == count


@cases.case
def reload_without_servers():
    with dns.Server(zone={"a.test": lambda q, _: None}) as old, \
            Dialer(resolvers=[old]) as dialer:
        engine = dialer.engine()
        engine.grant("a.test", 80)
        old.wait("a.test", 2, WAIT_S)
        dialer.conf()
        message = engine.answer()
        assert message.why == "no name server is configured", message


# ---- with the real parent ----

def steal(pid):
    """The internet sockets of a process, as duplicates of ours."""
    libc = ctypes.CDLL(None, use_errno=True)
    pidfd = libc.syscall(434, pid, 0)               # pidfd_open
    for text in os.listdir(f"/proc/{pid}/fd"):
        fd = libc.syscall(438, pidfd, int(text), 0)     # pidfd_getfd
        if fd == -1:
            raise Skip("descriptors of another process cannot be had here")
        if os.readlink(f"/proc/self/fd/{fd}").startswith("socket:"):
            with socket.socket(fileno=fd) as sock:
                if sock.family != socket.AF_UNIX:
                    yield sock
        else:
            os.close(fd)
    os.close(pidfd)


@cases.case
def real_parent():
    """It gives sockets of each kind, as they should be."""
    if in_user_namespace():
        raise Skip("needs root")
    with Daemon(conf='policy "p" { allow host "a.test" }') as daemon:
        pid = daemon.processes()["dialer"]
        until("a stock of sockets",
              lambda: len(list(steal(pid))) == 8 * len(KINDS))
        seen = []
        for sock in steal(pid):
            seen.append((sock.family, sock.type))
            assert fcntl.fcntl(sock, fcntl.F_GETFL) & os.O_NONBLOCK, sock
            assert sock.type != socket.SOCK_STREAM or sock.getsockopt(
                socket.IPPROTO_TCP, socket.TCP_NODELAY), sock
        assert sorted(seen) == sorted(list(KINDS.values()) * 8), seen


enter_namespace()
cases.main()
