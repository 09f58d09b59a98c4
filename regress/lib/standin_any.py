# SPDX-License-Identifier: ISC

"""A stand-in client and a stand-in origin that speak HTTP/1 or HTTP/2, behind
one face: that of standin_h2's streams.  A case written for them runs for each
mixture of versions."""

import contextlib
import socket

from gate import GOOD, Broken, Gate, Pair
from origin import authority
from standin_h2 import StandinClient, StandinH2Origin
from standin_origin import Closed, StandinOrigin

MIXES = [f"{a}-{b}" for a in ("h1", "h2") for b in ("h1", "h2")]


class Lines:
    """A message in HTTP/1: what standin_h2.Stream is in HTTP/2.  wire has
    until(), take(), more(), send() and reset()."""

    lost = (Broken, Closed, OSError)

    def __init__(self, wire):
        self.wire = wire
        self.method = self.path = self.status = None
        self.fields, self.interim, self.trailers = [], [], []
        self.left = None            # None: chunked; -1: to the end
        self.ended = self.done = False
        self.chunked = False        # what we send
        self.head_done = False

    def get(self, name):
        return ", ".join(v for n, v in self.fields if n == name) or None

    def take_fields(self):
        fields = []
        while (line := self.until(b"\r\n")) != b"\r\n":
            name, _, value = line.decode("latin-1").partition(":")
            fields.append((name.lower(), value.strip()))
        return fields

    def until(self, mark):
        try:
            return self.wire.until(mark)
        except self.lost as error:
            raise Broken(str(error)) from None

    def take(self, count):
        try:
            return self.wire.take(count)
        except self.lost as error:
            raise Broken(str(error)) from None

    def frame(self, nobody):
        """How long what follows the fields is."""
        length = self.get("content-length")
        if nobody:
            self.ended = True
        elif self.get("transfer-encoding") == "chunked":
            self.left = None
        elif length is not None:
            self.left = int(length)
            self.ended = self.left == 0
        else:
            assert self.status is None, "an answer until the end"
            self.ended = True

    def read(self):
        if self.ended:
            return b""
        if self.left is not None:
            data = self.take(min(self.left, 65536))
            self.left -= len(data)
            self.ended = self.left == 0
            return data
        size = int(self.until(b"\r\n").split(b";")[0], 16)
        if size == 0:
            self.trailers = self.take_fields()
            self.ended = True
            return b""
        data = self.take(size)
        assert self.take(2) == b"\r\n", "a chunk without its end"
        return data

    def body(self):
        parts = []
        while data := self.read():
            parts.append(data)
        return b"".join(parts)

    def put_head(self, line, fields, end):
        fields = list(fields)
        names = {n for n, _ in fields}
        self.chunked = not end and "content-length" not in names and \
            "upgrade" not in names
        if self.chunked:
            fields.append(("transfer-encoding", "chunked"))
        self.put("".join([line, "\r\n", *(f"{n}: {v}\r\n" for n, v in fields),
                          "\r\n"]).encode("latin-1"))
        self.done = end

    def put(self, data):
        if self.wire.send(data) is False:
            raise Broken("not taken any more")

    def send(self, data, end=False):
        if data:
            self.put(b"%x\r\n%s\r\n" % (len(data), data) if self.chunked
                     else data)
        if end:
            self.end()

    def end(self, trailers=()):
        if self.chunked:
            self.put(b"0\r\n%s\r\n" % b"".join(
                f"{n}: {v}\r\n".encode() for n, v in trailers))
        self.done = True

    def reset(self, _=None):
        self.wire.reset()


class Answered(Lines):
    """A request as the client sees it."""

    def head(self):
        while self.status is None:
            line = self.until(b"\r\n")
            status = int(line.split()[1])
            self.fields = self.take_fields()
            if status < 200 and status != 101:
                self.interim.append(status)
                continue
            self.status = status
            self.frame(self.method == "HEAD" or status in (101, 204, 304))
        return self.status


class Asked(Lines):
    """A request as the origin sees it."""

    def __init__(self, wire):
        super().__init__(wire)
        line = self.until(b"\r\n").decode("latin-1")
        self.method, self.path, _ = line.split(" ")
        self.fields = self.take_fields()
        self.frame(False)

    def answer(self, status, fields=(), end=False):
        if status < 200:
            self.put(f"HTTP/1.1 {status} \r\n\r\n".encode())
            return
        if end and not dict(fields).get("content-length") and \
                status not in (204, 304):
            fields = [*fields, ("content-length", "0")]
        self.put_head(f"HTTP/1.1 {status} ", fields, end)


class OneClient:
    """A connection for HTTP/1, with StandinClient's face."""

    def __init__(self, both):
        self.both, self.wire = both, both.gate.tls()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.wire.close()

    def request(self, path="/", method="GET", fields=(), end=True):
        stream = Answered(self.wire)
        stream.method = method
        stream.put_head(f"{method} {path} HTTP/1.1",
                        [("host", self.both.host()), *fields], end)
        return stream

    def fetch(self, path="/", **how):
        stream = self.request(path, **how)
        stream.head()
        stream.whole = stream.body()
        return stream


def by_lines(serve, seen):
    """serve(stream) for an origin that speaks HTTP/1."""
    def each(connection):
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            stream = Asked(connection)
            seen.append(stream)
            serve(stream)
            stream.body()

    def until_broken(connection):
        with contextlib.suppress(Broken):
            each(connection)
    return until_broken


class Mix(Pair):
    """A gate and a stand-in origin, of the two versions in mix."""

    def __init__(self, mix, origin, gate, seen):
        super().__init__(origin, gate, True)
        self.client, self.server = mix.split("-")
        self.seen = seen

    def connect(self, **how):
        return StandinClient(self.gate, self.host(), **how) \
            if self.client == "h2" else OneClient(self)

    def asked(self):
        """The requests that the origin got."""
        return self.origin.streams() if self.server == "h2" else \
            list(self.seen)


@contextlib.contextmanager
def mixed(mix, serve, rule="", settings="", more="", names=(GOOD,),
          settings_h2=()):
    """Allowed are the names, as far as rule says."""
    cert, seen = authority().leaf(*names), []
    origin = StandinH2Origin(serve, cert, settings=settings_h2) \
        if mix.endswith("h2") else \
        StandinOrigin(by_lines(serve, seen), cert)
    with origin:
        rules = "\n".join(f'allow host "{n}" port {origin.port} {rule}'
                          for n in names)
        with Gate(f"{rules}\n{settings}", authority().cert, more) as gate:
            yield Mix(mix, origin, gate, seen)
