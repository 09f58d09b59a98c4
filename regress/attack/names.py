#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""The battery, part C: one name for everything.  The address that was dialled,
SNI and Host must agree, in whatever spelling and pieces they come; and one that
does not trust the session's CA is told from one that hangs up."""

import os
import pathlib
import shutil
import ssl
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from case import Cases, Skip, run
from daemon import SANITIZED, TOP, WAIT_S, until
from gate import EVIL, GOOD, Broken, Gate, get, libressl, pair
from origin import authority
from standin_origin import StandinOrigin

cases = Cases()
BOTH = (GOOD, EVIL)
SAMPLES = TOP / "regress" / "fuzz" / "corpus" / "fuzz_hello"


def mismatch(both, got, **want):
    assert got.status == 421, got
    assert got.get("egress-decision") == "refuse, name_mismatch", got
    record = both.gate.final(**want)
    assert (record["kind"], record["reason"]) == (
        "request_denied", "name_mismatch"), record
    assert record["matched_rule"] is None, record


# ---- SNI and Host -----------------------------------------------------------

@cases.case
def sni_good_host_evil():
    """Though both are allowed; on the first request and on the second."""
    with pair(names=BOTH) as both, both.open(GOOD) as wire:
        mismatch(both, wire.ask(both.get("/1", name=EVIL)), path="/1")
        assert wire.ask(both.get("/2")).body == b"ok"
        mismatch(both, wire.ask(both.get("/3", name=EVIL)), path="/3")
        got = wire.ask(get(f"https://{both.host(EVIL)}/4", both.host(EVIL)))
        mismatch(both, got, path="/4")
        assert wire.ask(both.get("/5")).body == b"ok"
        assert b"evil" not in both.origin.got()


@cases.case
def sni_evil_host_good():
    with pair(names=BOTH) as both, both.open(EVIL) as wire:
        mismatch(both, wire.ask(both.get("/1")), path="/1")
        assert wire.ask(both.get("/2", name=EVIL)).body == b"ok"
        assert both.origin.got().count(b"GET") == 1


@cases.case
def host_good_then_evil():
    """In the clear the first Host settles it."""
    with pair(names=BOTH, tls=False) as both, both.open() as wire:
        assert wire.ask(both.get("/1")).body == b"ok"
        mismatch(both, wire.ask(both.get("/2", name=EVIL)), path="/2")
        assert wire.ask(both.get("/3")).body == b"ok"
        assert b"evil" not in both.origin.got()


@cases.case
def denied_sni():
    """A name that no rule allows is refused by request, not by handshake, so
    that the client can read why; the origin of the Host is not asked."""
    with pair() as both, both.open(EVIL) as wire:
        assert wire.ask(both.get("/1", name=EVIL)).status == 403
        mismatch(both, wire.ask(both.get("/2")), path="/2")
        assert not both.origin.connections


@cases.case
def no_sni():
    """Then the address is the name: no Host can make it another."""
    with pair(names=BOTH) as both:
        context = both.gate.context()
        context.check_hostname = False
        with both.open(None, context=context) as wire:
            cert = wire.sock.getpeercert()
            assert cert["subjectAltName"] == (
                ("IP Address", "127.0.0.1"),), cert
            mismatch(both, wire.ask(both.get("/1")), path="/1")
            got = wire.ask(get("/2", f"127.0.0.1:{both.origin.port}"))
            assert got.status == 403, got
        assert not both.origin.connections


@cases.case
def leaf():
    """The certificate is for the one name that was asked for."""
    with pair() as both:
        for name in (GOOD, EVIL, "a.b.c.example.com"):
            with both.open(name) as wire:
                cert = wire.sock.getpeercert()
                assert cert["subjectAltName"] == (("DNS", name),), cert


@cases.case
def forwarded_host():
    """What a field says about another host or path is not the name, and
    does not reach an origin that would believe it; the record has it."""
    with pair() as both, both.open() as wire:
        extra = f"X-Forwarded-Host: {EVIL}\r\nForwarded: host={EVIL}\r\n" \
                f"X-Host: {EVIL}\r\nX-Original-URL: /secret\r\n" \
                f"X_Rewrite_URL: /secret\r\nX-Kept: 1\r\n"
        assert wire.ask(both.get("/", extra)).body == b"ok"
        got = both.origin.got()
        assert f"Host: {both.host()}\r\n".encode() in got, got
        assert b"X-Kept" in got and b"secret" not in got, got
        assert EVIL.encode() not in got, got
        request = both.gate.final(path="/")["request"]
        assert request["host"] == GOOD, request
        assert request["request_headers"]["X-Original-URL"] == "/secret"


# ---- where it went ----------------------------------------------------------

@cases.each(["synthetic_names", "no_names"])
def dialled_address(how):
    """`Host: good' sent to another's address.  With names of our own only
    their addresses stand for names; else the name is dialled, never the
    address.  A port that is not the one that was dialled is refused."""
    with StandinOrigin(address="127.0.0.1") as origin, \
            StandinOrigin(address="127.0.0.3", port=origin.port) as evil:
        evil.end()      # the gate takes that address over
        dns = "\ndns on 127.0.0.1 port 15053" if how == "synthetic_names" \
            else ""
        with Gate(f'allow host "{GOOD}" port {origin.port}',
                  authority().cert, listen=f"127.0.0.3 port {origin.port} "
                  f"transparent{dns}") as gate:
            with gate.plain("127.0.0.3", origin.port) as wire:
                got = wire.ask(get("/1", f"{GOOD}:{origin.port}"))
                if dns:
                    assert got.status == 421, got
                    assert gate.final(path="/1")["reason"] == "name_mismatch"
                    assert not origin.connections
                else:
                    assert got.body == b"ok", got
                    assert gate.final(path="/1")["request"]["address"] == \
                        "127.0.0.1"
            with gate.plain("127.0.0.3", origin.port) as wire:
                got = wire.ask(get("/2", f"{GOOD}:{origin.port + 1}"))
                assert got.status == 421, got
            with gate.plain("127.0.0.3", origin.port) as wire:
                got = wire.ask(get("/3", f"127.0.0.3:{origin.port}"))
                assert got.status == 403, got
            with gate.plain("127.0.0.3", origin.port) as wire:
                got = wire.ask(get("/4", GOOD))
                assert got.status == (421 if dns else 200), got
            with gate.tls(GOOD, "127.0.0.3", origin.port) as wire:
                got = wire.ask(get("/5", f"{GOOD}:{origin.port}"))
                assert got.status == (421 if dns else 502), got


# ---- spelling ---------------------------------------------------------------

# All in `hosts', so that a name taken for another would be reached.
WILD = {
    "a.good.test": 200,
    "A.GOOD.TEST": 200,
    "a.good.test.": 200,
    "xn--bcher-kva.good.test": 200,
    "a-b.good.test": 200,
    "good.test": 403,
    "xgood.test": 403,
    "a.xgood.test": 403,
    "a.b.good.test": 403,
    "a.good.test.evil.test": 403,
    "good.test.evil.test": 403,
    "evil.test": 403,
}


@cases.case
def wildcard():
    """`*' is one label and never crosses a dot."""
    hosts = {n.lower().rstrip("."): "127.0.0.1" for n in WILD}
    with StandinOrigin() as origin:
        with Gate(f'allow host "*.good.test" port {origin.port}',
                  authority().cert, hosts=hosts) as gate:
            for name, status in WILD.items():
                before = len(origin.got())
                with gate.plain() as wire:
                    got = wire.ask(get("/", f"{name}:{origin.port}"))
                assert got.status == status, f"{name}: {got}"
                head = origin.got()[before:]
                want = f"Host: {name.lower().rstrip('.')}:{origin.port}\r\n"
                assert (want.encode() in head) == (status == 200), head


# Names that are none, or addresses in disguise.
DISGUISED = [
    "evil.test\0.good.test", f"{GOOD}\0", f"{GOOD}@evil.test",
    "[evil.test]", f"[{GOOD}]", "evil.test:443", "api..good.test",
    f".{GOOD}", f"{GOOD}..", "*.good.test", f"{GOOD}/", f"{GOOD} ",
    f" {GOOD}", f"{GOOD},evil.test", "api%2egood.test", "-", "",
    "b\u00fccher.good.test", "\uff11\uff12\uff17.0.0.1", "api\u3002good.test",
    "\uff41pi.good.test", "0x7f.1", "0x7f000001", "2130706433", "017700000001",
    "0177.0.0.1", "127.1", "127.0.1", "127.0.0.01", "127.0.0.1.",
    "1.2.3.4.5", "256.1.1.1", "::ffff:7f00:1%lo", "a" * 64 + ".good.test",
    "a." * 127 + "test",
]


@cases.case
def disguised_hosts():
    """In Host: 400, in every spelling; nothing is dialled."""
    with pair(settings='allow host "**" port 1') as both:
        both.is_tls = False
        names = [n for n in DISGUISED if n.strip() != GOOD and
                 not n.endswith(":443")]        # in Host that is a port
        names += ["[::ffff:7f00:1]", "[::1", "::1", f"{GOOD}:443:443"]
        for name in names:
            with both.open() as wire:
                got = wire.ask(f"GET / HTTP/1.1\r\nHost: {name}\r\n\r\n"
                               .encode())
                assert got.status == 400, f"{name!r}: {got}"
                assert wire.ended(), repr(name)
        assert not both.origin.connections
        until("their records", lambda: len(both.gate.finals()) ==
              len(names))
        assert {r["reason"] for r in both.gate.finals()} == {"bad_request"}


def vector(width, data):
    return len(data).to_bytes(width, "big") + data


def extension(number, data):
    return struct.pack(">H", number) + vector(2, data)


def server_name(*names, kind=0):
    return extension(0, vector(2, b"".join(
        bytes([kind]) + vector(2, n) for n in names)))


def hello(*extensions):
    """A ClientHello of TLS 1.3 and what else it is to carry."""
    share = vector(2, struct.pack(">H", 29) + vector(2, os.urandom(32)))
    body = (b"\x03\x03" + os.urandom(32) + vector(1, os.urandom(32)) +
            vector(2, b"\x13\x01\x13\x02") + vector(1, b"\0") +
            vector(2, b"".join((
                extension(43, vector(1, b"\x03\x04")),
                extension(10, vector(2, b"\0\x1d")),
                extension(13, vector(2, b"\x04\x03\x08\x04")),
                extension(51, share), *extensions))))
    message = b"\x01" + vector(3, body)
    return b"".join(b"\x16\x03\x01" + vector(2, message[at:at + 16000])
                    for at in range(0, len(message), 16000))


def is_server_hello(data):
    return data[:1] == b"\x16" and data[5:6] == b"\x02"


def greeted(gate, data):
    """Whether the gate goes on with this hello."""
    with gate.plain() as wire:
        wire.send(data)
        try:
            return is_server_hello(wire.more())
        except Broken:
            return False


@cases.case
def disguised_sni():
    """In SNI: reset before the handshake, and a record."""
    with pair(names=BOTH) as both:
        assert greeted(both.gate, hello(server_name(GOOD.encode())))
        assert greeted(both.gate, hello())
        shapes = [hello(server_name(n.encode("utf-8"))) for n in DISGUISED]
        good, evil = GOOD.encode(), EVIL.encode()
        shapes += [
            hello(server_name(b"a" * 256)),
            hello(server_name(b"a" * 5000)),
            hello(server_name(good, evil)),
            hello(server_name(good, good)),
            hello(server_name(good, kind=1)),
            hello(server_name()),
            hello(server_name(good), server_name(good)),
            hello(server_name(good), server_name(evil)),
            hello(extension(0, b"")),
            hello(extension(0, vector(2, b"\0" + vector(2, good))[:-1])),
            hello(extension(0, vector(2, b"\0" + vector(2, good)) + b"x")),
        ]
        for shape in shapes:
            assert not greeted(both.gate, shape), shape
        until("their records", lambda: sum(
            r["kind"] == "connection_refused" and r["reason"] == "bad_request"
            for r in both.gate.records()) == len(shapes))
        assert not both.origin.connections


@cases.case
def hello_sizes():
    """Above 1 KiB (post-quantum keys) and up to a bound; GREASE."""
    with pair() as both:
        name = server_name(GOOD.encode())
        for size in (1200, 5000, 16000, 30000):
            padding = extension(21, bytes(size))
            assert greeted(both.gate, hello(name, padding)), size
        assert not greeted(both.gate, hello(name, extension(21, bytes(
            40000)))), "40 KiB"
        for sample in ("pq-grease", "curl-h2", "java"):
            assert greeted(both.gate, (SAMPLES / sample).read_bytes()), sample


class Memory:
    """TLS over a socket whose bytes we hold in our hands."""

    def __init__(self, gate, name=GOOD):
        self.wire = gate.plain()
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.secure = gate.context().wrap_bio(
            self.incoming, self.outgoing, server_hostname=name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.wire.close()

    def handshake(self, cut):
        """The hello goes through cut(), which yields what to send."""
        first = True
        while True:
            try:
                self.secure.do_handshake()
                break
            except ssl.SSLWantReadError:
                data = self.outgoing.read()
                for piece in cut(data) if first else [data]:
                    self.wire.sock.sendall(piece)
                first = False
                data = self.wire.sock.recv(65536)
                assert data, "hung up on"
                self.incoming.write(data)
        self.wire.sock.sendall(self.outgoing.read())

    def ask(self, request):
        self.secure.write(request)
        self.wire.sock.sendall(self.outgoing.read())
        answer = b""
        while b"\r\n\r\n" not in answer:
            try:
                answer += self.secure.read(65536)
            except ssl.SSLWantReadError:
                data = self.wire.sock.recv(65536)
                assert data, "hung up on"
                self.incoming.write(data)
        return int(answer.split(b" ")[1])


def records_of(size):
    """The handshake message in records of so many bytes."""
    def cut(data):
        message, at = b"", 0
        while at < len(data):
            length = int.from_bytes(data[at + 3:at + 5], "big")
            message += data[at + 5:at + 5 + length]
            at += 5 + length
        yield b"".join(b"\x16\x03\x01" + vector(2, message[i:i + size])
                       for i in range(0, len(message), size))
    return cut


def segments_of(size):
    def cut(data):
        for at in range(0, len(data), size):
            yield data[at:at + size]
    return cut


def both_of(data):
    for records in records_of(11)(data):
        yield from segments_of(3)(records)


PIECES = {"whole": segments_of(99999), "records_1": records_of(1),
          "records_50": records_of(50), "segments_1": segments_of(1),
          "segments_100": segments_of(100), "both": both_of}


@cases.case
def hello_in_pieces():
    """Over records and segments, in every way: the name is found, and found
    to be the one or the other."""
    with pair(names=BOTH) as both:
        for name, cut in PIECES.items():
            with Memory(both.gate) as memory:
                memory.handshake(cut)
                assert memory.ask(both.get(f"/{name}")) == 200, name
                status = memory.ask(both.get(f"/no/{name}", name=EVIL))
                assert status == 421, f"{name}: {status}"
        assert b"evil" not in both.origin.got()


# How a name may be spelt; LibreSSL takes no dot at the end, no underscore.
SPELT = {"API.Good.TEST": GOOD, f"{GOOD}.": GOOD, "API.GOOD.TEST.": GOOD,
         "a_b.test": "a_b.test"}


@cases.each(SPELT)
def sni_spelling(name):
    """Upper case and a trailing dot are the same name.  One that the TLS
    library does not take is refused for that, and not for a broken stream."""
    host = SPELT[name]
    with StandinOrigin(cert=authority().leaf(host)) as origin, Gate(
            f'allow host "{host}" port {origin.port}', authority().cert,
            hosts={host: "127.0.0.1"}) as gate:
        client = subprocess.Popen(
            ["openssl", "s_client", "-quiet", "-servername", name,
             "-CAfile", str(gate.ca), "-verify_return_error",
             "-verify_hostname", host, "-connect",
             f"127.0.0.1:{gate.port(15001)}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
        out, _ = client.communicate(
            get("/", f"{host}:{origin.port}", "Connection: close\r\n"),
            timeout=WAIT_S)
        if libressl() and (name.endswith(".") or "_" in name):
            record = until("the refusal", lambda: [
                r for r in gate.records()
                if r.get("reason") == "tls_name_unsupported"])[0]
            assert record["kind"] == "connection_refused", record
            assert record["request"]["host"] == host, record
            assert origin.got() == b""
        else:
            assert b"200 OK" in out and out.endswith(b"ok"), out
            assert gate.final(path="/")["request"]["host"] == host


@cases.case
def many_names():
    """A flood of random names costs a bounded room."""
    count = 50 if SANITIZED else 300
    with pair() as both:
        for number in range(count):
            with both.open(f"n{number}.{EVIL}"):
                pass
        assert both.gate.memory("VmRSS") < 32 << 10
        with both.open() as wire:
            assert wire.ask(both.get()).body == b"ok"


# ---- clients that do not trust us -------------------------------------------

JAVA = """
import javax.net.ssl.*;
public class Ask {
    public static void main(String[] a) throws Exception {
        java.net.Socket s = new java.net.Socket("127.0.0.1",
            Integer.parseInt(a[0]));
        SSLSocketFactory f = (SSLSocketFactory)SSLSocketFactory.getDefault();
        ((SSLSocket)f.createSocket(s, a[1], 443, true)).startHandshake();
    }
}
"""

NODE = """
const [port, name] = process.argv.slice(1);
const s = require("tls").connect({ host: "127.0.0.1", port, servername: name },
    () => process.exit(0));
s.on("error", () => process.exit(9));
"""


def curl_client(both, *more):
    return run(["curl", "-sS", "--noproxy", "*", *more, "--connect-to",
                f"::127.0.0.1:{both.gate.port(15001)}",
                f"https://{both.host()}/"]).returncode


def python_client(both):
    try:
        both.open(context=ssl.create_default_context()).close()
        return 0
    except ssl.SSLCertVerificationError:
        return 1


def openssl_client(both, *more):
    return run(["openssl", "s_client", "-verify_return_error", "-servername",
                GOOD, *more, "-connect",
                f"127.0.0.1:{both.gate.port(15001)}"]).returncode


def wget_client(both):
    """GnuTLS; the name is in no resolver, so by an address."""
    return run(["wget", "-q", "-O", "/dev/null", "-t", "1", "--no-proxy",
                f"https://127.0.0.1:{both.gate.port(15001)}/"]).returncode


def java_client(both):
    with tempfile.TemporaryDirectory() as directory:
        source = pathlib.Path(directory) / "Ask.java"
        source.write_text(JAVA)
        return run(["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", source,
                    both.gate.port(15001), GOOD]).returncode


def node_client(both):
    return run(["node", "-e", NODE, both.gate.port(15001), GOOD]).returncode


CLIENTS = {
    "curl": curl_client,
    "curl_tls12": lambda b: curl_client(b, "--tls-max", "1.2"),
    "python": python_client,
    "openssl": openssl_client,
    "openssl_tls12": lambda b: openssl_client(b, "-tls1_2"),
    "wget": wget_client,
    "java": java_client,
    "node": node_client,
}


@cases.each(CLIENTS)
def distrust(client):
    """A client that refuses the CA is a record that says so."""
    program = client.split("_")[0]
    if program != "python" and shutil.which(program) is None:
        raise Skip(f"{program} is not installed")
    with pair() as both:
        assert CLIENTS[client](both) != 0, "it trusts us"
        assert not both.origin.connections
        record = until("its record", both.gate.finals)[0]
        # These two shake hands first and look then; they send no alert, and
        # nothing tells that from a client that has changed its mind.
        quiet = client in ("node", "wget")
        assert (record["kind"], record["reason"]) == (
            "request_failed", "stream_broken" if quiet else
            "tls_client_rejected_ca"), record
        assert record["request"]["method"] is None, record
        assert record["request"]["host"] == (
            "127.0.0.1" if client == "wget" else GOOD), record


# Rules, and what becomes of a client that distrusts us when it asks for EVIL.
DISTRUSTED = {
    "denied": (f'deny host "{EVIL}"', "matched_deny_rule",
               {"index": 0, "kind": "deny"}),
    "default": (f'allow host "{GOOD}"', "default_deny", None),
    "beside_tcp": (f'allow tcp host "{GOOD}" port 1\ndeny host "{EVIL}"',
                   "matched_deny_rule", {"index": 1, "kind": "deny"}),
    "allowed": (f'allow host "{EVIL}" port 1-65535', None, None),
    "some": (f'deny host "{EVIL}" path "/x"\n'
             f'allow host "{EVIL}" port 1-65535', None, None),
}


@cases.each(DISTRUSTED)
def distrust_of_denied(how):
    """What would be denied anyway is recorded so, with its rule."""
    rules, reason, rule = DISTRUSTED[how]
    with Gate(rules, listen="127.0.0.3 port 15001 transparent") as gate:
        def give_up(check):
            context = ssl.create_default_context(
                cafile=None if check else gate.ca)
            try:
                gate.tls(EVIL, "127.0.0.3", gate.port(15001),
                         context=context).close()
            except ssl.SSLCertVerificationError:
                assert check
        for count, check in enumerate((True, False, True), 1):
            give_up(check)
            until("its record", lambda: len(gate.finals()) == count)
            record = gate.finals()[-1]
            why = reason or (
                "tls_client_rejected_ca" if check else "stream_broken")
            assert (record["kind"], record["reason"],
                    record["matched_rule"]) == (
                "request_denied" if reason else "request_failed", why,
                rule), record
            assert (record["request"]["host"], record["request"]["method"],
                    record["request"]["port"]) == (
                EVIL, None, gate.port(15001)), record


@cases.case
def hang_up_is_not_distrust():
    """In the middle of the handshake, for reasons of his own."""
    with pair() as both:
        with both.gate.plain() as wire:
            wire.send(hello(server_name(GOOD.encode())))
            assert is_server_hello(wire.more())
        record = until("its record", both.gate.finals)[0]
        assert (record["kind"], record["reason"]) == (
            "request_failed", "stream_broken"), record


cases.main()
