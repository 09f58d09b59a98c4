# SPDX-License-Identifier: ISC

"""What the batteries that run inside the sandbox share: a world outside with an
attacker in it, and probes behind the real gate, as an ordinary user and as root
of the host, each also as root of the sandbox."""

import atexit
import json
import pathlib
import subprocess
import sys
import textwrap

REGRESS = pathlib.Path(__file__).resolve().parents[1]
for part in ("lib", "dialer", "sandbox"):
    sys.path.insert(0, str(REGRESS / part))
from case import Skip  # noqa: E402
from daemon import verify  # noqa: E402
from gate import EVIL, GOOD  # noqa: E402
from origin import authority  # noqa: E402
from outside import (DNS_ADDRESS, EVIL_ADDRESS, EVIL_ADDRESS6,  # noqa: E402
                     GOOD_ADDRESS, METADATA, OURS, OURS6, Evil, Outside)
from runlib import PYTHON, place  # noqa: E402
from standin_dns import Server, static  # noqa: E402
from standin_origin import StandinOrigin, answer  # noqa: E402

WHO = ("user", "user-r", "root", "root-r")
# For what rules do not decide: whatever is asked for is allowed.
OPEN = "default allow\n"
SHUT = f'allow host "{GOOD}"\n'

PRELUDE = """
import contextlib, ctypes, errno, json, os, socket, ssl, struct, subprocess
import sys, time
libc = ctypes.CDLL(None, use_errno=True)
GOOD, EVIL = "api.good.test", "evil.test"

def name(error):
    return errno.errorcode.get(error.errno, str(error))

def attempt(function, *args):
    try:
        return function(*args)
    except OSError as e:
        return name(e)

def call(function, *args):
    ctypes.set_errno(0)
    if function(*args) == -1:
        return errno.errorcode[ctypes.get_errno()]
    return "done"

def connect(host, port):
    sock = socket.create_connection((host, port), 10)
    sock.settimeout(10)
    return sock

def get(host, path="/"):
    return f"GET {path} HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n".encode()

def exchange(sock, data):
    "The status of an answer, what came instead, or how it ended."
    try:
        sock.sendall(data)
        got = sock.recv(65536)
    except OSError as e:
        return name(e)
    finally:
        sock.close()
    return int(got.split()[1]) if got.startswith(b"HTTP/1.1 ") else \\
        got.decode("latin-1")

def plain(host, port, data):
    try:
        return exchange(connect(host, port), data)
    except OSError as e:
        return name(e)

def secure(host, port, data, sni):
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        sock = context.wrap_socket(connect(host, port), server_hostname=sni)
    except OSError as e:
        return name(e)
    return exchange(sock, data)

def udp(host, port, data=b"secret"):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.settimeout(2)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            sock.sendto(data, (host, port))
            return sock.recv(4096).hex()
        except OSError as e:
            return name(e)

def say(value):
    print(json.dumps(value), flush=True)
"""


class World:
    """Names are resolved outside, origins live there, and so does EVIL."""

    def __init__(self):
        self.outside = Outside()
        self.zone = {GOOD: static(GOOD_ADDRESS), EVIL: static(EVIL_ADDRESS)}
        self.dns = self.outside.do(Server, DNS_ADDRESS, self.zone)
        self.static, self.serve = static, answer()
        self.tls, self.clear = (
            self.outside.do(StandinOrigin, self.good, cert, GOOD_ADDRESS, port)
            for cert, port in ((authority().leaf(GOOD), 443), (None, 80)))
        self.evil = Evil(self.outside)
        self.here = place()
        atexit.register(self.here.end)

    def good(self, connection):
        while True:
            connection.request()
            connection.send(self.serve)

    def more(self):
        return f"resolver {DNS_ADDRESS} port {self.dns.port}\n"


def to(address):
    """A test of frames: whether they go to this IPv4 address."""
    packed = bytes(map(int, address.split(".")))
    return lambda frame: frame[12:14] == b"\x08\x00" and \
        frame[30:34] == packed


try:
    world = World()
except Skip as why:
    print(f"skip all: {why}")
    sys.exit(0)
here = world.here


class Probe:
    """A program inside, to its end: what it said, and what is left of it."""

    def __init__(self, who, code, rules=SHUT, options=(), more="", env=None,
                 conf=None, **kwargs):
        user, _, root = who.partition("-")
        world.outside.sent()
        del world.dns.questions[:], world.evil.got[:]
        world.evil.visits = 0
        file, self.log = conf or here.conf(
            user, f'policy "p" {{ {rules} }}\n', world.more() + more)
        try:
            done = here.run(user, "run", "-q", "-n", "probe", "-f", file,
                            *(("-r",) if root else ()), *options, "--",
                            PYTHON, "-c", PRELUDE + textwrap.dedent(code),
                            env=env, **kwargs)
        except subprocess.TimeoutExpired:
            raise AssertionError("the probe does not end") from None
        if done.returncode != 0 or not done.stdout:
            raise AssertionError(f"exit {done.returncode}: {done.stderr} "
                                 f"{done.stdout}")
        self.said = json.loads(done.stdout.splitlines()[-1])
        self.records = verify(self.log.read_text().splitlines())

    def has(self, kind, **want):
        """That there is a record of the kind, about such a request."""
        found = [r for r in self.records if r["kind"] == kind and all(
            (r["request"] or {}).get(k) == v for k, v in want.items())]
        assert found, f"no {kind} of {want}: {self.brief()}"
        return found

    def brief(self):
        return [(r["kind"], r.get("reason"), *[(r.get("request") or {}).get(k)
                 for k in ("protocol", "host", "port")])
                for r in self.records][:40]

    def nothing_left(self):
        """Not one packet, not even a question about a name."""
        frames = world.outside.sent()
        assert not frames, f"{len(frames)} left, as {frames[0].hex()}"
        self.no_evil()

    def no_evil(self):
        """EVIL had no visit and got no byte."""
        assert not world.evil.visits and not world.evil.got, (
            world.evil.visits, world.evil.got)
        frames = [f for f in world.outside.sent() if to(EVIL_ADDRESS)(f) or
                  to(METADATA)(f)]
        assert not frames, f"{len(frames)} to EVIL, as {frames[0].hex()}"
        assert EVIL not in {q.name for q in world.dns.questions}


def same(have, want, why=""):
    assert have == want, f"{have!r}, expected {want!r} {why}"


def none_of(have, bad, why=""):
    """No outcome is one of these."""
    assert not set(map(str, have)) & set(map(str, bad)), f"{have} {why}"
