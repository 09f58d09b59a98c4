#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Not one packet, and no question to a name server, before a decider has
allowed it, and none ever for what it denies: seen on the only wire that
leaves.  And the usual port, which only a wire of our own can have."""

import pathlib
import struct
import sys
import threading
import time

REGRESS = pathlib.Path(__file__).resolve().parents[1]
for part in ("lib", "dialer"):
    sys.path.insert(0, str(REGRESS / part))
from case import Cases, Skip  # noqa: E402
from daemon import WAIT_S, until  # noqa: E402
from gate import EVIL, GOOD, Gate, get  # noqa: E402
from judge import ALLOW, DENY, Judge  # noqa: E402
from origin import authority  # noqa: E402
from outside import (DNS_ADDRESS, EVIL_ADDRESS, GOOD_ADDRESS,  # noqa: E402
                     Outside)
from standin_dns import Server, static  # noqa: E402
from standin_origin import StandinOrigin  # noqa: E402

cases = Cases()
UDP, TCP = 17, 6
# There is no event for what does not happen.
NOTHING_S = 0.5


def same(have, want, why=""):
    assert have == want, f"{have!r}, expected {want!r} {why}"


class World:
    """A gate whose names are resolved and whose origins live outside; the
    judge is on a socket, so what it is asked takes no wire."""

    def __init__(self):
        self.outside = Outside()
        self.dns = self.outside.do(Server, DNS_ADDRESS, {
            GOOD: static(GOOD_ADDRESS), EVIL: static(EVIL_ADDRESS)})
        for cert, port in ((authority().leaf(GOOD), 443), (None, 80)):
            self.outside.do(StandinOrigin, None, cert, GOOD_ADDRESS, port)

    def gate(self, rules, conf):
        return Gate(rules, authority().cert, f"resolver {DNS_ADDRESS} port "
                    f"{self.dns.port}\n{conf}",
                    hosts={"unused.test": "127.0.0.1"})

    def sent(self):
        """(protocol, destination port) of all that has left since."""
        kinds = []
        for frame in self.outside.sent():
            assert frame[12:14] == b"\x08\x00", frame[:60].hex()
            start = 14 + (frame[14] & 15) * 4
            kinds.append((frame[23], struct.unpack_from(
                ">H", frame, start + 2)[0]))
        return kinds

    def asked(self):
        return {question.name for question in self.dns.questions}


try:
    world = World()
except Skip as why:
    print(f"skip all: {why}")
    sys.exit(0)


def wire_of(gate, scheme, name=GOOD):
    if scheme == "http":
        return gate.plain()
    return gate.tls(name)


@cases.each(["http", "https"])
def held(scheme):
    """While it is asked nothing leaves; then a name is resolved and a
    connection made, in this order."""
    go = threading.Event()
    with Judge(lambda _: go.wait(WAIT_S) and ALLOW) as judge, \
            world.gate('decide "judge"', judge.conf()) as gate:
        world.sent()
        with wire_of(gate, scheme) as wire:
            wire.send(get("/held"))
            until("it is asked", lambda: judge.questions)
            time.sleep(NOTHING_S)
            same(world.sent(), [], "before the answer")
            go.set()
            same(wire.answer().body, b"ok")
        kinds = world.sent()
        same(kinds[0], (UDP, world.dns.port))
        assert (TCP, 443 if scheme == "https" else 80) in kinds, kinds


@cases.each(["http", "https"])
def denied(scheme):
    """Its name is not resolved, by the gate or for the judge, nor is it for a
    record, for an entry of the cache, for a failure or for a person."""
    secret = f"c2VjcmV0LXRoYXQtbXVzdC1zdGF5.{EVIL}"
    person = 'decider "person" operator { timeout 300ms }\n'
    with Judge(DENY) as judge, world.gate(
            f'decide "person" host "{EVIL}" path "/person"\n'
            'decide "judge" timeout 300ms', judge.conf() + person) as gate:
        del world.dns.questions[:]
        world.sent()
        paths = 0

        def refused(name, path):
            with wire_of(gate, scheme, name) as wire:
                same(wire.ask(get(path, name)).status, 403)

        for name in (EVIL, secret, f"{GOOD}.{EVIL}"):
            for path in ("/asked", "/kept"):
                refused(name, path)
                paths += 1
        gate.ask("cache.clear")
        judge.says(None)
        refused(EVIL, "/late")
        judge.says(b"allow")
        refused(EVIL, "/garbage")
        refused(EVIL, "/person")
        until("all are on record", lambda: len(gate.finals()) == paths + 3)
        gate.ctl("cache", "show")
        time.sleep(NOTHING_S)
        same(world.sent(), [])
        same(world.asked(), set())


@cases.case
def usual_ports():
    """NAME, NAME:443, NAME. and other cases of it have one answer; and one of
    its own has http."""
    with Judge() as judge, world.gate('decide "judge"', judge.conf()) as gate:
        for host in (GOOD, f"{GOOD}:443", f"{GOOD}.", f"{GOOD}.:443",
                     GOOD.upper(), f"{GOOD.title()}.:443"):
            with gate.tls(GOOD) as wire:
                same(wire.ask(get("/", host)).status, 200, host)
        with gate.tls(GOOD.upper()) as wire:
            same(wire.ask(get("/")).status, 200)
        judge.asked(1)
        for host in (GOOD, f"{GOOD}:80", f"{GOOD.upper()}."):
            with gate.plain() as wire:
                same(wire.ask(get("/", host)).status, 200, host)
        same([(q["request"]["scheme"], q["request"]["port"])
              for q in judge.asked(2)], [("https", 443), ("http", 80)])


cases.main()
