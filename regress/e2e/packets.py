#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Not one packet for what is denied, and none before the verdict about what is
allowed: seen on the only wire that leaves."""

import os
import pathlib
import signal
import ssl
import struct
import sys
import time

REGRESS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REGRESS / "lib"))
sys.path.insert(0, str(REGRESS / "dialer"))
from case import Cases, Skip  # noqa: E402
from daemon import until  # noqa: E402
from gate import EVIL, GOOD, Broken, Gate, get  # noqa: E402
from origin import authority  # noqa: E402
from outside import DNS_ADDRESS, EVIL_ADDRESS, GOOD_ADDRESS  # noqa: E402
from outside import Outside  # noqa: E402
from procs import status  # noqa: E402
from standin_dns import Server, static  # noqa: E402
from standin_origin import StandinOrigin  # noqa: E402

cases = Cases()
UDP, TCP = 17, 6
# There is no event for what does not happen.
NOTHING_S = 0.5


def protocol(frame):
    """(protocol, destination port) of an IPv4 frame."""
    assert frame[12:14] == b"\x08\x00", f"not IPv4: {frame[:60].hex()}"
    start = 14 + (frame[14] & 15) * 4
    return frame[23], struct.unpack_from(">H", frame, start + 2)[0]


class World:
    """A gate whose names are resolved and whose origins live outside."""

    def __init__(self):
        self.outside = Outside()
        self.dns = self.outside.do(Server, DNS_ADDRESS, {
            GOOD: static(GOOD_ADDRESS), EVIL: static(EVIL_ADDRESS)})
        self.origin = self.outside.do(
            StandinOrigin, None, authority().leaf(GOOD), GOOD_ADDRESS, 443)
        self.plain = self.outside.do(
            StandinOrigin, None, None, GOOD_ADDRESS, 80)

    def gate(self, rules=f'allow host "{GOOD}"'):
        return Gate(rules, authority().cert,
                    f"resolver {DNS_ADDRESS} port {self.dns.port}",
                    hosts={"unused.test": "127.0.0.1"})


try:
    world = World()
except Skip as why:
    print(f"skip all: {why}")
    sys.exit(0)


def wires(gate, name, scheme):
    if scheme == "http":
        return gate.plain()
    context = gate.context()
    context.check_hostname = False      # an address is no SNI
    return gate.tls(name, context=context)


@cases.each(["http", "https"])
def allowed(scheme):
    """That the wire is the only way, and that we see it: a name is asked for
    and a connection is made, in this order."""
    with world.gate() as gate:
        assert not world.outside.sent()
        with wires(gate, GOOD, scheme) as wire:
            assert not world.outside.sent(), "for a handshake"
            assert wire.ask(get()).body == b"ok"
        kinds = [protocol(f) for f in world.outside.sent()]
        assert kinds[0] == (UDP, world.dns.port), kinds
        port = 443 if scheme == "https" else 80
        first = kinds.index((TCP, port))
        assert {k for k in kinds[:first]} == {(UDP, world.dns.port)}, kinds
    world.outside.sent()


def quiet(gate, wire, request, **want):
    try:
        got = wire.ask(request)
        assert got.status in (400, 403, 405, 421), got
    except Broken:
        pass
    if want:
        gate.final(**want)
    frames = world.outside.sent()
    assert not frames, f"{request[:60]}: {[f.hex() for f in frames[:3]]}"


@cases.each(["http", "https"])
def denied(scheme):
    """No question, no connection; in whatever way it is denied."""
    rules = f'allow host "{GOOD}" path "/ok"\ndeny host "ads.test"'
    secret = f"c2VjcmV0LXRoYXQtbXVzdC1zdGF5.{EVIL}"
    with world.gate(rules) as gate:
        assert not world.outside.sent()
        for name in (EVIL, "ads.test", secret, EVIL_ADDRESS,
                     f"{GOOD}.{EVIL}", "127.0.0.1", "169.254.169.254"):
            with wires(gate, name, scheme) as wire:
                quiet(gate, wire, get(f"/{name}", name), path=f"/{name}")
        with wires(gate, GOOD, scheme) as wire:
            quiet(gate, wire, get("/no"), path="/no")
            quiet(gate, wire, get("/no", extra="Connection: close\r\n"))
        with wires(gate, GOOD, scheme) as wire:
            quiet(gate, wire, get("/port", f"{GOOD}:22"), path="/port")
        for request in (b"GET /ok\r\n\r\n", get("/ok", f"{EVIL}@{GOOD}"),
                        f"CONNECT {GOOD}:443 HTTP/1.1\r\nHost: {GOOD}:443"
                        "\r\n\r\n".encode(),
                        get(f"{scheme}://{EVIL}/ok", GOOD)):
            with wires(gate, GOOD, scheme) as wire:
                quiet(gate, wire, request)
        # Nor does anything come late: a record, a log, a name for either.
        gate.ask("status")
        time.sleep(NOTHING_S)
        assert not world.outside.sent()
        assert world.dns.count(EVIL) == world.dns.count(secret) == 0


@cases.case
def handshake_alone():
    """TLS is ended before anything is known of the origin; for an allowed name
    as for another."""
    with world.gate() as gate:
        for name in (GOOD, EVIL):
            gate.tls(name).close()
            try:
                gate.tls(name, context=ssl.create_default_context()).close()
            except ssl.SSLCertVerificationError:
                pass
        until("records of those who left", lambda: gate.finals(host=EVIL))
        time.sleep(NOTHING_S)
        assert not world.outside.sent()


@cases.each(["http", "https"])
def before_the_verdict(scheme):
    """policyd does not answer: it is opened and nothing more.  When it does,
    the request goes."""
    with world.gate() as gate:
        pid = gate.settle()["policyd"]
        world.outside.sent()
        with wires(gate, GOOD, scheme) as wire:
            os.kill(pid, signal.SIGSTOP)
            until("it has stopped", lambda: status(pid)["State"][0] == "T")
            try:
                wire.send(get("/held"))
                until("it is opened", lambda: [
                    r for r in gate.records()
                    if r["kind"] == "request_opened"])
                time.sleep(NOTHING_S)
                assert not world.outside.sent(), "before the verdict"
            finally:
                os.kill(pid, signal.SIGCONT)
            assert wire.answer().body == b"ok"
        kinds = [protocol(f) for f in world.outside.sent()]
        assert kinds[0] == (UDP, world.dns.port), kinds
        allowed_at, = [r["at"] for r in gate.records()
                       if r["kind"] == "request_allowed"]
        assert gate.final(path="/held")["at"] >= allowed_at
    world.outside.sent()


@cases.case
def decider_is_no_way_out():
    """What would be put to a decider that cannot be asked is not resolved to
    be ready for its answer."""
    rules = f'decide "guard" host "{GOOD}"'
    gate = world.gate(rules)
    gate.more += '\ndecider "guard" exec { command { "/bin/false" } }'
    gate.policy(rules)
    with gate, gate.plain() as wire:
        quiet(gate, wire, get("/asked"), path="/asked")


cases.main()
