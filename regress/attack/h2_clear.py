#!/usr/bin/python3
# SPDX-License-Identifier: ISC

"""The battery, part F: HTTP/2 in the clear by prior knowledge, as insecure
gRPC speaks it.  Every stream is judged, all have one name, and the origin is
spoken to in the same way; what only looks like it is refused."""

import contextlib
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases  # noqa: E402
from check import one_final_each  # noqa: E402
from daemon import until  # noqa: E402
from frames import Frames, ask, head  # noqa: E402
from gate import EVIL, GOOD, Gate, get  # noqa: E402
from origin import authority  # noqa: E402
from standin_frames import PREFACE, SETTINGS, frame  # noqa: E402
from standin_h2 import StandinClient, StandinH2Origin  # noqa: E402
from standin_origin import StandinOrigin  # noqa: E402

cases = Cases()


class Clear:
    """A gate before an origin that speaks in the clear, and a rule for one
    of its paths besides."""

    def __init__(self, origin):
        self.origin = origin
        self.gate = Gate(
            f'deny host "{GOOD}" path "/denied"\n'
            f'allow host "{GOOD}" port {origin.port}', authority().cert)
        self.host = f"{GOOD}:{origin.port}"

    def client(self, **how):
        return StandinClient(self.gate, self.host, clear=True, **how)

    def frames(self, preface=PREFACE + frame(SETTINGS)):
        return Frames(self.gate, wire=self.gate.plain(), preface=preface)

    def ask(self, stream, path="/x", host=None, **how):
        return ask(stream, head(host or self.host, path=path, scheme="http",
                                **how))

    def asked(self):
        return [s.path for s in self.origin.streams()]


@contextlib.contextmanager
def clear(serve=None):
    with StandinH2Origin(serve) as origin:
        scene = Clear(origin)
        with scene.gate:
            yield scene


def refused(gate, **want):
    """The one final record of what was refused."""
    record = gate.final(**want)
    assert record["kind"] == "request_denied", record
    return record["reason"]


@cases.case
def judged():
    """Streams of one connection, a verdict and a record each; the origin has
    one connection that speaks HTTP/2, with the scheme of the clear."""
    def serve(stream):
        body = stream.body()
        stream.answer(200, [("content-type", "application/grpc")])
        stream.send(body or b"ok")
        stream.end([("grpc-status", "0")])

    with clear(serve) as scene, scene.client() as client:
        assert client.fetch("/a").whole == b"ok"
        stream = client.request("/b", "POST", [("te", "trailers")], end=False)
        stream.send(b"x" * 300000, True)
        assert stream.head() == 200 and len(stream.body()) == 300000
        assert stream.trailers == [("grpc-status", "0")], stream.trailers
        assert client.fetch("/denied").status == 403
        many = [client.request(f"/many{n}") for n in range(50)]
        assert {s.head() for s in many} == {200}
        assert len(scene.origin.peers) == 1, scene.origin.peers
        assert "/denied" not in scene.asked()
        assert {dict(s.all)[":scheme"] for s in scene.origin.streams()} == {
            "http"}
        assert {s.authority for s in scene.origin.streams()} == {scene.host}
        request = scene.gate.final(path="/b")["request"]
        assert (request["protocol"], request["scheme"]) == ("h2", "http")
        assert refused(scene.gate, path="/denied") == "matched_deny_rule"
        one_final_each(scene.gate, 53)


@cases.case
def another_name():
    """The first stream names the connection; a host that is denied is denied
    stream by stream."""
    with clear() as scene:
        with scene.client() as client:
            assert client.fetch("/first").status == 200
            assert client.fetch("/second", host=f"{EVIL}:{scene.origin.port}"
                                ).status == 421
            assert client.fetch("/third").status == 200
        with scene.client() as client:
            for path in "/one", "/two":
                assert client.fetch(path, host=EVIL).status == 403
        assert refused(scene.gate, path="/second") == "name_mismatch"
        assert refused(scene.gate, path="/one") == "default_deny"
        assert refused(scene.gate, path="/two") == "default_deny"
        assert scene.asked() == ["/first", "/third"], scene.asked()


@cases.case
def heads():
    """The scheme must be that of the clear; what is no request over TLS is
    none here."""
    with clear() as scene, scene.frames() as frames:
        for stream, (fields, status) in enumerate((
                (head(scene.host), 400),
                (head(scene.host, scheme="ftp"), 400),
                (head(scene.host, ("upgrade", "h2c"), scheme="http"), 400),
                (head(scene.host, ("connection", "x"), scheme="http"), 400),
                (head(scene.host, method="CONNECT", skip=(":path", ":scheme")),
                 405),
                (head(scene.host, scheme="http"), 200))):
            frames.send(ask(2 * stream + 1, fields))
            got = frames.over(2 * stream + 1)
            assert got in (status, "reset") and (status, got) != (
                200, "reset"), f"{fields}: {got}"
        assert scene.asked() == ["/x"], scene.asked()


@cases.case
def in_pieces():
    """Each byte of the preface in a segment of its own, and all at once."""
    with clear() as scene:
        with scene.gate.plain() as wire:
            for byte in PREFACE:
                wire.send(bytes([byte]))
            with Frames(scene.gate, wire=wire, preface=frame(
                    SETTINGS)) as frames:
                frames.send(scene.ask(1, "/pieces"))
                assert frames.over(1) == 200
        with scene.frames(PREFACE + frame(SETTINGS) + b"".join(
                scene.ask(n, f"/at-once{n}") for n in range(1, 41, 2))
                ) as frames:
            assert {frames.over(n) for n in range(1, 41, 2)} == {200}


GARBAGE = {
    "half": PREFACE[:18] + b"XX\r\n\r\n",
    "http1": PREFACE[:18] + b"GET /smuggled HTTP/1.1\r\nHost: HOST\r\n\r\n",
    "twice": PREFACE + PREFACE,
    "frames": PREFACE + b"\xff" * 64,
    "request": PREFACE + b"GET /smuggled HTTP/1.1\r\nHost: HOST\r\n\r\n",
}
NOT_IT = {
    "version": b"PRI * HTTP/2.1\r\n\r\nSM\r\n\r\n",
    "field": b"PRI * HTTP/2.0\r\nHost: HOST\r\n\r\nSM\r\n\r\n",
    "path": b"PRI / HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "case": b"pri * HTTP/2.0\r\n\r\nSM\r\n\r\n",
}


@cases.each([*GARBAGE, *NOT_IT])
def not_http2(name):
    """Hung up on, recorded, and nothing of it at the origin."""
    with clear() as scene, scene.gate.plain() as wire:
        text = (GARBAGE | NOT_IT)[name].replace(b"HOST", scene.host.encode())
        wire.send(text + scene.ask(1, "/smuggled"))
        data = b""
        with contextlib.suppress(Exception):
            data = wire.rest()
        assert data.startswith(b"HTTP/1.1 ") == (name in NOT_IT), data[:80]
        until("a record", lambda: [r for r in scene.gate.records()
                                   if r["reason"] == "bad_request"])
        assert not scene.origin.others(), "it got through"


@cases.case
def behind_a_request():
    """The preface behind a request of HTTP/1 is no beginning."""
    with StandinOrigin() as origin:
        scene = Clear(origin)
        with scene.gate, scene.gate.plain() as wire:
            assert wire.ask(get("/", scene.host)).status == 200
            wire.send(PREFACE + frame(SETTINGS) + scene.ask(1, "/smuggled"))
            assert wire.answer().status == 505
            assert wire.ended()
            assert b"smuggled" not in origin.got()


@cases.case
def origin_of_http1():
    """One that speaks no HTTP/2 in the clear gets no other version of the
    request: 502, and a connection of HTTP/1 that is kept is not used."""
    with StandinOrigin() as origin:
        scene = Clear(origin)
        with scene.gate, scene.gate.plain() as wire:
            assert wire.ask(get("/kept", scene.host)).status == 200
            with scene.client() as client:
                assert client.fetch("/new").status == 502
            assert wire.ask(get("/again", scene.host)).status == 200
            assert scene.gate.final(path="/new")["kind"] == "request_failed"
            first, second = origin.others()
            assert b"/again" in bytes(first.got), first.got
            assert bytes(second.got).startswith(PREFACE), second.got


@cases.case
def both_versions():
    """Where HTTP/2 is kept open, a client of HTTP/1 has a connection of its
    own."""
    with clear() as scene, scene.client() as client:
        assert client.fetch("/two").status == 200
        with scene.gate.plain() as wire:
            wire.send(get("/one", scene.host))
            origin = scene.origin
            until("a second connection", lambda: len(origin.others()) == 2)
            assert scene.asked() == ["/two"], scene.asked()


cases.main()
