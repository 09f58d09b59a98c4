# SPDX-License-Identifier: ISC

"""The gate as a client meets it: connections to it, bytes in, answers out."""

import contextlib
import functools
import json
import pathlib
import re
import socket
import ssl
import struct

from case import run
from daemon import BUILD, SANITIZED, WAIT_S, Daemon, until
from origin import authority
from reasons import known
from standin_origin import StandinOrigin

GOOD = "api.good.test"
EVIL = "evil.test"
FINAL = ("request_denied", "request_closed", "request_failed")


@functools.cache
def libressl():
    """Whether the engine was built with it, which has limits of its own."""
    out = run(["ldd", BUILD / "libexec/egressd-tlsengine"]).stdout
    path = re.search(r"libcrypto\S* => (\S+)", out)[1]
    return b"LibreSSL" in pathlib.Path(path).read_bytes()


class Answer:
    def __init__(self, status, fields, body, interim, phrase):
        self.status = status
        self.fields = fields        # [(name, value)], names in lower case
        self.body = body
        self.interim = interim      # statuses
        self.phrase = phrase

    def __repr__(self):
        return f"<{self.status} {self.fields} {self.body[:200]}>"

    def get(self, name):
        return ", ".join(v for n, v in self.fields if n == name) or None


class Broken(Exception):
    """The connection ended in the middle of something."""


class Wire:
    """A connection to the gate, in the clear or with TLS."""

    def __init__(self, sock):
        self.sock = sock
        self.data = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    def reset(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                             struct.pack("ii", 1, 0))
        self.sock.close()

    def send(self, data):
        """True, or False if the gate does not take it any more."""
        try:
            self.sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            return False
        return True

    def more(self):
        """Some bytes, or none at a clean end."""
        try:
            data = self.sock.recv(65536)
        except (ConnectionResetError, BrokenPipeError):
            raise Broken("reset") from None
        except ssl.SSLEOFError:
            raise Broken("the end without close_notify") from None
        self.data += data
        return data

    def until(self, mark):
        while mark not in self.data:
            if not self.more():
                raise Broken(f"the end, after {self.data[:200]}")
        taken, _, self.data = self.data.partition(mark)
        return taken + mark

    def take(self, count):
        parts, have = [self.data[:count]], min(len(self.data), count)
        self.data = self.data[count:]
        while have < count:
            if not self.more():
                raise Broken(f"the end, {count - have} bytes early")
            parts.append(self.data[:count - have])
            self.data = self.data[count - have:]
            have += len(parts[-1])
        return b"".join(parts)

    def rest(self):
        while self.more():
            pass
        data, self.data = self.data, b""
        return data

    def ended(self):
        """Nothing more comes, and then the end, of whatever kind."""
        try:
            return self.rest() == b""
        except Broken:
            return self.data == b""

    def chunks(self):
        body = []
        while size := int(self.until(b"\r\n"), 16):
            body.append(self.take(size))
            assert self.take(2) == b"\r\n", "a chunk without its end"
        self.trailers = b""
        while (line := self.until(b"\r\n")) != b"\r\n":
            self.trailers += line
        return b"".join(body)

    def answer(self, method="GET"):
        """The next answer, whole."""
        interim = []
        while True:
            lines = self.until(b"\r\n\r\n").decode("latin-1").split("\r\n")
            _, status, phrase = lines[0].split(" ", 2)
            status = int(status)
            if status >= 200 or status == 101:
                break
            interim.append(status)
        fields = [(n.lower(), v.strip()) for n, _, v in
                  (line.partition(":") for line in lines[1:-2])]
        names = [n for n, _ in fields]
        length = dict(fields).get("content-length")
        assert names.count("content-length") <= 1, fields
        if method == "HEAD" or status in (101, 204, 304):
            body = b""
        elif "transfer-encoding" in names:
            assert length is None, fields
            body = self.chunks()
        elif length is not None:
            body = self.take(int(length))
        else:
            body = self.rest()
        return Answer(status, fields, body, interim, phrase)

    def ask(self, request, method="GET"):
        self.send(request)
        return self.answer(method)


def get(path="/", host=GOOD, extra=""):
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{extra}\r\n".encode()


class Gate(Daemon):
    """A daemon with one fixed session, `edge'; its rules are the case's."""

    def __init__(self, rules, root=None, more="", listen=None, hosts=None,
                 user=None):
        hosts = hosts or {GOOD: "127.0.0.1", EVIL: "127.0.0.1"}
        self.rules, self.root, self.more = rules, root, more
        self.listen = listen or "127.0.0.1 port 15001"
        self.hosts = ", ".join(f'"{n}" {a}' for n, a in hosts.items())
        super().__init__("", user=user)
        self.trust = self.dir / "trust"
        self.ca = self.trust / "ca.pem"
        self.policy(rules)

    def policy(self, rules):
        """Written, not yet loaded."""
        trust = f'upstream trust file "{self.root}"\n' if self.root else ""
        self.write(f'{self.more}\n{trust}hosts {{ {self.hosts} }}\n'
                   f'policy "p" {{\n{rules}\n}}\n'
                   f'session "edge" {{ listen on {self.listen}\n'
                   f'policy "p"  trust directory "{self.trust}" }}\n')

    def reload(self, rules):
        self.policy(rules)
        answer = self.ask("reload")
        assert answer.get("ok"), answer

    def __exit__(self, kind, *_):
        if kind is not None:
            print("\n".join(f"| {line}" for line in self.log().split("\n")))
        self.end()

    def start(self):
        super().start()
        self.settle()
        until("the session's CA", self.ca.exists)
        return self

    def plain(self, address=None, port=None):
        sock = socket.create_connection(
            (address or "127.0.0.1", port or self.port(15001)), WAIT_S)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return Wire(sock)

    def context(self):
        context = ssl.create_default_context(cafile=str(self.ca))
        context.set_alpn_protocols(["http/1.1"])
        # Cut off without close_notify is an error.
        context.options &= ~getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)
        return context

    def tls(self, name=GOOD, address=None, port=None, context=None):
        wire = self.plain(address, port)
        try:
            wire.sock = (context or self.context()).wrap_socket(
                wire.sock, server_hostname=name, suppress_ragged_eofs=False)
        except BaseException:
            wire.close()
            raise
        return wire

    def records(self):
        """Those that are whole; the last may be in the writing."""
        lines = self.audit.read_text().split("\n")[:-1]
        return [known(json.loads(line)) for line in lines]

    def finals(self, **want):
        """Final records so far, whose request has these members."""
        return [r for r in self.records() if r["kind"] in FINAL and
                all(r["request"].get(k) == v for k, v in want.items())]

    def final(self, **want):
        """The one final record of a request, when it is there."""
        found = until(f"a final record of {want}",
                      lambda: self.finals(**want))
        assert len(found) == 1, f"{want} has {len(found)}: {found}"
        return found[0]

    def engine(self):
        return self.settle()["edge"]

    def memory(self, field="VmHWM"):
        """Of the engine, in KiB; nothing to speak of if it is sanitized."""
        if SANITIZED:
            return 0
        with open(f"/proc/{self.engine()}/status", encoding="ascii") as file:
            for line in file:
                if line.startswith(field):
                    return int(line.split()[1])
        raise AssertionError(f"no {field}")


class Pair:
    """A gate and a stand-in origin behind it, for both names."""

    def __init__(self, origin, gate, tls):
        self.origin, self.gate, self.is_tls = origin, gate, tls

    def host(self, name=GOOD):
        return f"{name}:{self.origin.port}"

    def open(self, name=GOOD, **how):
        return self.gate.tls(name, **how) if self.is_tls else \
            self.gate.plain(**how)

    def get(self, path="/", extra="", name=GOOD):
        return get(path, self.host(name), extra)

    def post(self, path, body, extra=""):
        return (f"POST {path} HTTP/1.1\r\nHost: {self.host()}\r\n{extra}"
                f"Content-Length: {len(body)}\r\n\r\n").encode() + body

    def chunked(self, path, *chunks, extra=""):
        return (f"POST {path} HTTP/1.1\r\nHost: {self.host()}\r\n{extra}"
                "Transfer-Encoding: chunked\r\n\r\n").encode() + b"".join(
                    b"%x\r\n%s\r\n" % (len(c), c) for c in (*chunks, b""))


@contextlib.contextmanager
def pair(serve=None, tls=True, rule="", settings="", names=(GOOD,),
         more="", cert=None):
    """Allowed are the names, at the origin's port, as far as rule says."""
    if tls and cert is None:
        cert = authority().leaf(GOOD, EVIL)
    with StandinOrigin(serve, cert) as origin:
        rules = "\n".join(
            f'allow host "{n}" port {origin.port} {rule}' for n in names)
        with Gate(f"{rules}\n{settings}", authority().cert, more) as gate:
            yield Pair(origin, gate, tls)
