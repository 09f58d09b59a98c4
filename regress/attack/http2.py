#!/usr/bin/python3
# SPDX-License-Identifier: ISC

"""The battery, part F over HTTP/2: frames that are none, heads with two
meanings, and floods that only take up room.  Frames are written by hand.  The
verdict is what a listening origin got of it; memory is that of the engine,
and another session's requests are timed meanwhile."""

import contextlib
import pathlib
import struct
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases, run  # noqa: E402
from daemon import SANITIZED, WAIT_S, until  # noqa: E402
from frames import (CALM, MEMORY_KIB, PADDED, WIDE, Flood,  # noqa: E402
                    Frames, Scene, ask, denied, head, nobody_cut)
from gate import GOOD, Broken, get  # noqa: E402
from standin_frames import (ACK, CONTINUATION, DATA, END_HEADERS,  # noqa: E402
                            END_STREAM, GOAWAY, HEADERS, PING, PREFACE,
                            PRIORITY, PUSH_PROMISE, RST_STREAM, SETTINGS,
                            WINDOW_UPDATE, FrameOrigin, block, frame,
                            given_back, number)
from standin_h2 import StandinClient  # noqa: E402
from standin_origin import StandinOrigin, answer  # noqa: E402

cases = Cases()


# ---- heads with two meanings ------------------------------------------------

# After what, fields of the request.  HOST stands for the right authority.
H = ":authority"
BAD_HEADS = {
    # One who reads names without case sees another request.
    "upper_case_name": head("HOST", ("X-Up", "1")),
    "upper_case_host": head("HOST", ("Host", "evil.test")),
    # Fields of a connection that HTTP/1 behind us would believe.
    "connection": head("HOST", ("connection", "close")),
    "keep_alive": head("HOST", ("keep-alive", "300")),
    "transfer_encoding": head("HOST", ("transfer-encoding", "chunked")),
    "upgrade": head("HOST", ("upgrade", "h2c")),
    "proxy_connection": head("HOST", ("proxy-connection", "keep-alive")),
    "te_gzip": head("HOST", ("te", "gzip")),
    "te_list": head("HOST", ("te", "trailers, gzip")),
    # Pseudo-headers: twice, missing, late, unknown, for answers.
    "two_methods": head("HOST", (":method", "POST")),
    "two_paths": head("HOST", (":path", "/y")),
    "two_authorities": head("HOST", (H, "HOST")),
    "two_authorities_evil": head("HOST", (H, "evil.test")),
    "two_schemes": head("HOST", (":scheme", "http")),
    "no_method": head("HOST", skip=[":method"]),
    "no_path": head("HOST", skip=[":path"]),
    "no_scheme": head("HOST", skip=[":scheme"]),
    "no_authority": head("HOST", skip=[H]),
    "late_path": [*head("HOST", skip=[":path"]), ("x-a", "1"),
                  (":path", "/x")],
    "late_authority": [*head("HOST", skip=[H]), ("x-a", "1"), (H, "HOST")],
    "unknown_pseudo": head("HOST", (":foo", "1")),
    "status": head("HOST", (":status", "200")),
    "protocol_without_connect": head("HOST", (":protocol", "websocket")),
    "empty_method": head("HOST", method=""),
    "empty_path": head("HOST", path=""),
    "empty_authority": head(""),
    "empty_scheme": head("HOST", scheme=""),
    # A path that is a second request line to HTTP/1.
    "path_space": head("HOST", path="/x HTTP/1.1"),
    "path_crlf": head("HOST", path="/x HTTP/1.1\r\nX: 1\r\n\r\nGET /smug"),
    "path_lf": head("HOST", path="/x\nX: 1"),
    "path_nul": head("HOST", path="/x\0y"),
    "path_tab": head("HOST", path="/x\ty"),
    "path_bytes": head("HOST", path="/\xc0\xae"),
    "path_absolute": head("HOST", path="https://evil.test/"),
    "path_no_slash": head("HOST", path="x"),
    "path_authority": head("HOST", path="evil.test:443"),
    "path_fragment": head("HOST", path="/x#y"),
    "path_asterisk": head("HOST", path="*"),
    "path_dots": head("HOST", path="/x/../../y"),
    "path_long": head("HOST", path="/" + "a" * 9000),
    # Methods that are more than a method.
    "method_space": head("HOST", method="GET /y HTTP/1.1"),
    "method_crlf": head("HOST", method="GET\r\nX: 1"),
    "method_colon": head("HOST", method="GET:"),
    "method_long": head("HOST", method="A" * 40),
    "trace": head("HOST", method="TRACE"),
    # Tunnels.
    "connect": [(":method", "CONNECT"), (H, "HOST")],
    "connect_evil": [(":method", "CONNECT"), (H, "evil.test:443")],
    "connect_with_path": head("HOST", method="CONNECT"),
    "connect_tcp": head("HOST", (":protocol", "connect-tcp"),
                        method="CONNECT"),
    "connect_udp": head("HOST", (":protocol", "connect-udp"),
                        method="CONNECT"),
    "connect_empty": head("HOST", (":protocol", ""), method="CONNECT"),
    "connect_list": head("HOST", (":protocol", "websocket, h2c"),
                         method="CONNECT"),
    # Names.
    "userinfo": head("x@HOST"),
    "userinfo_evil": head("HOST@evil.test"),
    "authority_nul": head("HOST\0.good.test"),
    "authority_space": head("HOST evil.test"),
    "authority_crlf": head("HOST\r\nX: 1"),
    "authority_list": head("HOST,evil.test"),
    "authority_path": head("HOST/x"),
    "authority_brackets": head("[NAME]"),
    "authority_scheme": head("https://HOST"),
    "port_zero": head("NAME:0"),
    "port_large": head("NAME:65537"),
    "port_text": head("NAME:https"),
    "port_sign": head("NAME:+443"),
    "two_ports": head("NAME:443:443"),
    "authority_long": head("a." * 130 + "test"),
    "host_differs": head("HOST", ("host", "evil.test")),
    "host_port_differs": head("HOST", ("host", "NAME:1")),
    "two_hosts": head("HOST", ("host", "HOST"), ("host", "HOST")),
    "host_alone_twice": head("", ("host", "HOST"), ("host", "evil.test"),
                             skip=[H]),
    "scheme_http": head("HOST", scheme="http"),
    "scheme_ftp": head("HOST", scheme="ftp"),
    "scheme_case": head("HOST", scheme="HTTPS"),
    # Bytes that end a line, or a string, for one behind us.
    "value_crlf": head("HOST", ("x-a", "1\r\nx-b: 2")),
    "value_lf": head("HOST", ("x-a", "1\nx-b: 2")),
    "value_cr": head("HOST", ("x-a", "1\r")),
    "value_nul": head("HOST", ("x-a", "1\0")),
    "value_escape": head("HOST", ("x-a", "\x1b[31m")),
    "value_leading_space": head("HOST", ("x-a", " 1")),
    "value_trailing_tab": head("HOST", ("x-a", "1\t")),
    "name_crlf": head("HOST", ("x-a\r\nx-b", "1")),
    "name_colon": head("HOST", ("x-a:", "1")),
    "name_space": head("HOST", ("x a", "1")),
    "name_nul": head("HOST", ("x-a\0", "1")),
    "name_empty": head("HOST", ("", "1")),
    "name_bytes": head("HOST", ("x-\xe4", "1")),
    # Lengths that do not add up (no body comes).
    "length_without_body": head("HOST", ("content-length", "5")),
    "two_lengths": head("HOST", ("content-length", "0"),
                        ("content-length", "0")),
    "length_list": head("HOST", ("content-length", "0, 0")),
    "length_negative": head("HOST", ("content-length", "-1")),
    "length_plus": head("HOST", ("content-length", "+0")),
    "length_text": head("HOST", ("content-length", "five")),
    "length_huge": head("HOST", ("content-length", "9" * 30)),
    "length_empty": head("HOST", ("content-length", "")),
    "expectation": head("HOST", ("expect", "200-maybe")),
}


def fill(fields, host):
    return [tuple(t.replace("HOST", host).replace("NAME", GOOD).encode(
        "latin-1") for t in field) for field in fields]


@cases.case
def bad_heads():
    """Each costs at most its stream: refused or reset, recorded, and the
    origin, with whom there is a kept connection, hears nothing of it."""
    with Scene() as scene:
        scene.alive()
        for name, fields in BAD_HEADS.items():
            with scene.open() as frames:
                frames.send(ask(1, fill(fields, scene.host)))
                got = frames.over(1)
                assert got in ("reset", "closed") or 400 <= got < 600, \
                    f"{name}: {got}"
                if got != "closed":
                    frames.send(ask(3, head(scene.host, path="/after")))
                    assert frames.over(3) == 200, f"{name}: then {got}"
            asked = [p for p in scene.requests()
                     if p not in ("/alive", "/after")]
            assert not asked, f"{name}: the origin was asked for {asked}"
            assert b"evil" not in scene.origin.got(), name
        count = len(BAD_HEADS)
        bad = until(f"{count} records", lambda: len(denied(scene)) >= count
                    and denied(scene))
        assert len(bad) == count, f"{len(bad)} records, not {count}"
        scene.gate.verified()


# ---- bodies and lengths -----------------------------------------------------

BODIES = {
    "short": ("5", b"hell"), "long": ("5", b"hellooo"),
    "longer_later": ("5", b"hello" + b"x" * 20000),
    "none": ("5", b""), "zero": ("0", b"hello"),
}


@cases.case
def lengths():
    """A body that is not as long as was said never looks whole to the
    origin, and what is too much is not the next request."""
    done = []

    def serve(connection):
        while True:
            request, body = connection.request()
            done.append((request.split(b" ")[1].decode(), len(body)))
            connection.send(answer())

    with Scene(serve=serve) as scene:
        for name, (length, body) in BODIES.items():
            with scene.open() as frames:
                frames.send(ask(1, head(scene.host, ("content-length",
                                                     length), method="POST",
                                        path=f"/{name}"), end=False) +
                            frame(DATA, END_STREAM, 1, body[:16000]))
                got = frames.over(1)
                assert got != 200, f"{name}: {got}"
        scene.alive()
        assert {p for p, _ in done} <= {"/alive"}, done


# ---- frames that are none ---------------------------------------------------

def bad_frames(host):
    good = ask(1, head(host))
    opened = ask(1, head(host, method="POST", path="/open"), end=False)
    u32 = struct.Struct(">I").pack
    return {
        "no_preface": None,         # see below
        "data_before_headers": frame(DATA, 0, 1, b"hello"),
        "data_on_zero": opened + frame(DATA, 0, 0, b"hello"),
        "headers_on_zero": frame(HEADERS, END_HEADERS, 0, block(head(host))),
        "even_stream": ask(2, head(host)),
        "lower_stream": ask(5, head(host)) + ask(3, head(host)),
        "stream_again": good + ask(1, head(host, path="/again")),
        "data_after_end": good + frame(DATA, END_STREAM, 1, b"hello"),
        "headers_after_end": good + ask(1, [("x-a", "1")]),
        "trailers_without_end": opened + ask(1, [("x-a", "1")], end=False),
        "trailers_pseudo": opened + ask(1, [(":path", "/y")]),
        "continuation_alone": frame(CONTINUATION, END_HEADERS, 1,
                                    block(head(host))),
        "headers_interrupted": frame(HEADERS, END_STREAM, 1,
                                     block(head(host))) + frame(PING, 0, 0,
                                                                bytes(8)),
        "continuation_of_other": frame(HEADERS, END_STREAM, 1, b"") + frame(
            CONTINUATION, END_HEADERS, 3, block(head(host))),
        "push_promise": frame(PUSH_PROMISE, END_HEADERS, 1, u32(2) + block(
            head(host))),
        "settings_short": frame(SETTINGS, 0, 0, b"\0\3\0"),
        "settings_on_stream": frame(SETTINGS, 0, 1),
        "settings_ack_full": frame(SETTINGS, ACK, 0, bytes(6)),
        "settings_window": frame(SETTINGS, 0, 0, struct.pack(
            ">HI", 4, 1 << 31)),
        "settings_frame_size": frame(SETTINGS, 0, 0, struct.pack(
            ">HI", 5, 1)),
        "settings_push": frame(SETTINGS, 0, 0, struct.pack(">HI", 2, 7)),
        "ping_short": frame(PING, 0, 0, b"1234"),
        "ping_on_stream": frame(PING, 0, 1, bytes(8)),
        "goaway_short": frame(GOAWAY, 0, 0, b"1234"),
        "rst_short": opened + frame(RST_STREAM, 0, 1, b"12"),
        "rst_on_zero": frame(RST_STREAM, 0, 0, u32(8)),
        "rst_idle": frame(RST_STREAM, 0, 7, u32(8)),
        "window_zero": frame(WINDOW_UPDATE, 0, 0, u32(0)),
        "window_zero_stream": opened + frame(WINDOW_UPDATE, 0, 1, u32(0)),
        "window_overflow": frame(WINDOW_UPDATE, 0, 0, u32((1 << 31) - 1)),
        "window_overflow_stream": opened + frame(WINDOW_UPDATE, 0, 1, u32(
            (1 << 31) - 1)),
        "window_idle": frame(WINDOW_UPDATE, 0, 9, u32(1)),
        "window_short": frame(WINDOW_UPDATE, 0, 0, b"12"),
        "priority_self": opened + frame(PRIORITY, 0, 1, u32(1) + b"\0"),
        "too_large": frame(DATA, 0, 1, bytes(20000)),
        "padding": frame(HEADERS, END_HEADERS | END_STREAM | PADDED, 1,
                         b"\xff" + block(head(host))[:100]),
        "hpack_index": frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\xff" +
                             b"\xff" * 4),
        "hpack_zero": frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\x80"),
        "hpack_huffman": frame(HEADERS, END_HEADERS | END_STREAM, 1,
                               b"\x00\x84\xff\xff\xff\xff\x01x"),
        "hpack_cut": frame(HEADERS, END_HEADERS | END_STREAM, 1,
                           block(head(host))[:-3]),
        "hpack_table_size": frame(HEADERS, END_HEADERS | END_STREAM, 1,
                                  b"\x3f\xe1\xff\x03" + block(head(host))),
        "hpack_integer": frame(HEADERS, END_HEADERS | END_STREAM, 1,
                               b"\x7f" + b"\x80" * 30 + b"\x01"),
        "http1": get("/x", host),
        "tls_hello": b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + bytes(200),
        "zeros": bytes(5000),
    }


# What RFC 9113 lets pass or costs a stream only; the first request may have
# been a good one.
SERVED = ("stream_again", "data_after_end", "headers_after_end",
          "lower_stream")


@cases.case
def frames_that_are_none():
    """The stream or the connection ends, in time; nothing but what was
    properly asked for reaches the origin."""
    with Scene(more="timeout idle 2s\ntimeout head 2s") as scene:
        scene.alive()
        for name, data in bad_frames(scene.host).items():
            if data is None:
                frames = scene.open(preface=b"")
                data = frame(SETTINGS) + ask(1, head(scene.host))
            else:
                frames = scene.open()
            before = scene.requests()
            with frames:
                frames.send(data)
                begin = time.monotonic()
                frames.rest()
                assert time.monotonic() - begin < 8, f"{name}: it is borne"
            asked = scene.requests()[len(before):]
            if name in SERVED:
                assert set(asked) <= {"/x"}, f"{name}: {asked}"
            else:
                assert not [p for p in asked if p != "/open"], \
                    f"{name}: {asked}"
        scene.alive()
        scene.small("bad frames")
        assert b"/again" not in scene.origin.got()


# ---- in the clear -----------------------------------------------------------

@cases.case
def in_the_clear():
    """h2c by upgrade, and the wrong protocol after ALPN: never a second one
    whose requests nobody judges.  Prior knowledge: h2_clear.py."""
    with Scene() as scene:
        upgrade = ("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
                   "HTTP2-Settings: AAMAAABkAAQAAP__\r\n")
        with scene.gate.plain() as wire:
            wire.send(get("/up", scene.host, upgrade) + PREFACE + frame(
                SETTINGS) + ask(1, head(scene.host, path="/smuggled")))
            status = wire.answer().status
            assert status != 101, status
        # The preface by one who has asked for HTTP/1 with ALPN.
        with scene.gate.tls() as wire:
            wire.send(PREFACE + frame(SETTINGS) + ask(
                1, head(scene.host, path="/smuggled")))
            assert wire.answer().status in (400, 505)
        # And HTTP/1 by one who has asked for HTTP/2.
        with scene.open() as frames:
            frames.send(get("/smuggled", scene.host))
            frames.rest()
        assert b"smuggled" not in scene.origin.got()
        assert b"h2c" not in scene.origin.got().lower()


# ---- floods -----------------------------------------------------------------

def floods(host):
    """What is sent first, then what, and how often."""
    u32 = struct.Struct(">I").pack
    opened = ask(1, head(host, method="POST", path="/open"), end=False)
    closed = opened + frame(RST_STREAM, 0, 1, u32(8))
    return {
        "continuation": (frame(HEADERS, 0, 1, block(head(host))), frame(
            CONTINUATION, 0, 1, block([("x-a", "y" * 4000)])), 20000),
        "continuation_empty": (frame(HEADERS, 0, 1, block(head(host))),
                               frame(CONTINUATION, 0, 1) * 100, 2000),
        "settings": (b"", frame(SETTINGS, 0, 0, struct.pack(
            ">HI", 3, 100)) * 100, 2000),
        "settings_ack": (b"", frame(SETTINGS, ACK) * 100, 2000),
        "settings_table": (b"", frame(SETTINGS, 0, 0, struct.pack(
            ">HIHI", 1, 0, 1, 4096)) * 100, 2000),
        "ping": (b"", frame(PING, 0, 0, b"regress!") * 100, 2000),
        "ping_ack": (b"", frame(PING, ACK, 0, b"regress!") * 100, 2000),
        "empty_data": (opened, frame(DATA, 0, 1) * 100, 2000),
        "empty_data_padded": (opened, frame(DATA, PADDED, 1, b"\0") * 100,
                              2000),
        "priority": (b"", b"".join(frame(PRIORITY, 0, n, u32(0) + b"\x10")
                                   for n in range(1, 200, 2)), 2000),
        "window_update": (b"", frame(WINDOW_UPDATE, 0, 0, u32(1)) * 100, 2000),
        "window_update_open": (opened, frame(WINDOW_UPDATE, 0, 1, u32(1)) *
                               100, 2000),
        "window_update_closed": (closed, frame(WINDOW_UPDATE, 0, 1, u32(1)) *
                                 100, 2000),
        "unknown": (b"", frame(0xbe, 0, 0, b"x" * 100) * 100, 2000),
        "unknown_empty": (opened, frame(0x21, 0xff, 1) * 100, 2000),
        "unknown_large": (b"", frame(0xff, 0, 7, bytes(16384)), 2000),
        "unknown_all": (b"", b"".join(frame(k, 0, 0, b"x") for k in
                                      range(10, 256)), 1000),
    }


@cases.each(floods("x"))
def flood(name):
    """Frames that cost a client nothing: it is cut off, the engine stays
    small, another session does not notice."""
    with Scene() as scene:
        before, data, count = floods(scene.host)[name]
        scene.alive()
        with scene.watched(name):
            pourer = Flood(scene, before)
            taken = pourer.pour(data, count)
            pourer.close()
        print(f"# {name}: {pourer.sent >> 10} KiB sent, "
              f"{'taken' if taken else 'cut off'}")
        scene.small(name)
        assert not taken, "it is borne"
        scene.alive()
        assert "/x" not in scene.requests()


# Once too often, in one write: all of it is read before the end.
NUISANCES = {
    "ping_ack": frame(PING, ACK, 0, bytes(8)),
    "priority": frame(PRIORITY, 0, 1, bytes(4) + b"\x10"),
    "window_update": frame(WINDOW_UPDATE, 0, 0, b"\0\0\0\1"),
    "unknown": frame(0xbe), "altsvc": frame(10, 0, 0, b"\0\1xy"),
    "priority_update": frame(16, 0, 0, b"\0\0\0\1u=1"),
}


@cases.each(NUISANCES)
def calm(name):
    """Who is cut off hears why, and there is a record of it."""
    with Scene() as scene:
        for count, cut in ((300, False), (1000, True)):
            with scene.open(NUISANCES[name] * count) as frames:
                frames.send(ask(1, head(scene.host)))
                got = frames.over(1)
                assert got == ("closed" if cut else 200), f"{count}: {got}"
                assert frames.goaway == (CALM if cut else None)
        record, = until("a record", lambda: denied(scene))
        assert (record["kind"], record["reason"]) == (
            "connection_refused", "quota"), record
        assert scene.requests() == ["/x"]


@cases.each(NUISANCES)
def origin_calm(name):
    """The same from an origin: its streams are lost and it hears why; the
    next request has another connection."""
    def serve(stream):
        if stream.path == "/x":
            stream.peer.send(NUISANCES[name] * 1000)
        else:
            stream.answer()

    with Scene(serve=serve, origin=FrameOrigin) as scene:
        with scene.open() as frames:
            frames.send(ask(1, head(scene.host)))
            assert frames.over(1) == 502
            frames.send(ask(3, head(scene.host, path="/alive")))
            assert frames.over(3) == 200
        assert scene.gate.final(path="/x")["kind"] == "request_failed"
        first, second = scene.origin.peers
        until("a word of why", lambda: first.goaways)
        assert (first.goaways, second.goaways) == ([CALM], [])


@cases.each(["forwarded", "refused"])
def rapid_reset(how):
    """Opened and reset in a loop (CVE-2023-44487): far fewer reach the
    origin, and the client is cut off."""
    with Scene(rule='path "/alive"' if how == "refused" else "") as scene:
        scene.alive()
        with scene.watched(f"rapid reset, {how}"):
            pourer = Flood(scene)
            stream, taken = 1, True
            end = time.monotonic() + 6
            while taken and time.monotonic() < end:
                data = b""
                for _ in range(50):
                    data += ask(stream, head(scene.host, path=f"/{stream}")
                                ) + frame(RST_STREAM, 0, stream,
                                          struct.pack(">I", 8))
                    stream += 2
                taken = pourer.pour(data, 1)
            pourer.close()
        print(f"# {stream // 2} streams, "
              f"{'taken' if taken else 'cut off'}")
        assert not taken, "it is borne"
        assert stream < 20000, f"{stream} before it was cut off"
        scene.small("rapid reset")
        asked = len(scene.requests())
        assert asked < 1000, f"{asked} reached the origin"
        scene.alive()


@cases.case
def made_to_reset():
    """The same, where it is the gate that is made to reset."""
    with Scene() as scene:
        scene.alive()
        with scene.watched("made to reset"):
            pourer = Flood(scene)
            stream, taken = 1, True
            end = time.monotonic() + 6
            while taken and time.monotonic() < end:
                data = b""
                for _ in range(50):
                    data += ask(stream, head(scene.host), end=False) + frame(
                        WINDOW_UPDATE, 0, stream, bytes(4))
                    stream += 2
                taken = pourer.pour(data, 1)
            pourer.close()
        print(f"# {stream // 2} streams, "
              f"{'taken' if taken else 'cut off'}")
        assert not taken, "it is borne"
        scene.small("made to reset")
        scene.alive()


# ---- what looks like a flood, and is none -----------------------------------

class Reader(Frames):
    """Gives back what it gets in pieces, at once or when the window of the
    stream is shut."""

    def __init__(self, gate, window, piece, late):
        self.window, self.piece, self.late = window, piece, late
        self.got = self.used = self.updates = 0
        super().__init__(gate, frame(SETTINGS, 0, 0, struct.pack(
            ">HI", 4, window)))

    def note(self, kind, flags, stream, payload):
        super().note(kind, flags, stream, payload)
        if kind != DATA:
            return
        self.got += len(payload)
        self.used += len(payload)
        if self.late and self.used < self.window:
            return
        data = given_back(self.used, self.piece, stream)
        self.used = 0
        self.updates += len(data) // 13
        self.send(data)


# Bytes of: the body, the window of a stream, a piece; whether it is late.
READERS = {
    "each_frame": (5 << 20, 65535, 16384, False),
    "each_kib": (5 << 20, 65535, 1024, False),
    "late": (5 << 20, 65535, 1024, True),
    "small_window": (1 << 20, 1000, 500, True),
    "tiny_window": (20000, 10, 10, False),
}


def body_of(size):
    def serve(connection):
        while True:
            connection.request()
            connection.send(answer(bytes(size)))
    return serve


@cases.each(READERS)
def busy_reader(how):
    """Updates of windows by the thousand, for bytes that it got."""
    size, window, piece, late = READERS[how]
    with Scene(serve=body_of(size)) as scene:
        with Reader(scene.gate, window, piece, late) as frames:
            frames.send(ask(1, head(scene.host)))
            frames.over(1)
            assert frames.got == size, \
                f"{frames.got} bytes, then {frames.goaway}"
            print(f"# {size} bytes, {frames.updates} updates")
            assert frames.updates > 600
        nobody_cut(scene)


@cases.each(["10", "14"])
def busy_h2load(bits):
    """Real clients with small windows: streams beside each other."""
    with Scene(serve=body_of(1 << 20)) as scene:
        out = run(["h2load", "-n", "20", "-c", "2", "-m", "5", "-w", bits,
                   "-W", bits, "--connect-to",
                   f"127.0.0.1:{scene.gate.port(15001)}",
                   f"https://{scene.host}/x"])
        assert "20 succeeded, 0 failed" in out.stdout, out.stdout
        nobody_cut(scene)


@cases.case
def busy_origin():
    """An origin that gives back each KiB of an upload at once."""
    size = 5 << 20

    def serve(stream):
        stream.answer(str(len(stream.read())).encode())

    class Origin(FrameOrigin):
        piece = 1024

    with Scene(serve=serve, origin=Origin) as scene, \
            StandinClient(scene.gate, scene.host) as client:
        stream = client.request("/up", method="POST", end=False)
        stream.send(bytes(size), True)
        assert stream.head() == 200 and stream.body() == b"%d" % size
        assert len(scene.origin.peers) == 1


@cases.each(["requests", "answers"])
def empty_ends(whose):
    """Bodies whose end is an empty frame, many in a second."""
    def serve(stream):
        stream.headers(200)
        stream.data(b"hello")
        stream.data(b"", True)

    def post(stream):
        return ask(stream, head(scene.host, method="POST"), end=False) + \
            frame(DATA, 0, stream, b"hello") + frame(DATA, END_STREAM, stream)

    def plain(stream):
        return ask(stream, head(scene.host))

    mine = whose == "requests"
    with Scene(serve=None if mine else serve, origin=StandinOrigin if mine
               else FrameOrigin) as scene, scene.open() as frames:
        for first in range(1, 2000, 100):
            streams = range(first, first + 100, 2)
            frames.send(b"".join(map(post if mine else plain, streams)))
            for stream in streams:
                frames.over(stream)
                assert stream in frames.ended, f"{stream}: cut off"
        nobody_cut(scene)


@cases.case
def unknown_beside():
    """A frame of unknown type before each that is known, as browsers send to
    see whether they are ignored."""
    with Scene() as scene, scene.open() as frames:
        frames.send(ask(1, head(scene.host, method="POST"), end=False))
        # Its windows are large enough once their settings are known.
        frames.read()
        frames.send((frame(0x0b, 0xff, 1, b"grease") +
                     frame(DATA, 0, 1, bytes(100))) * 2000)
        frames.send(frame(0x2a) + frame(DATA, END_STREAM, 1))
        assert frames.over(1) == 200, frames.goaway
        nobody_cut(scene)


# ---- bombs ------------------------------------------------------------------

def indexed(value):
    return b"\x40" + number(3) + b"x-b" + number(len(value)) + value


@cases.each(["references", "literals", "cookies", "names", "in_trailers"])
def hpack_bomb(how):
    """A small block that decodes to megabytes: refused, and small."""
    with Scene() as scene:
        scene.alive()
        base = block(head(scene.host))
        with scene.watched(f"bomb of {how}"):
            for _ in range(30):
                with scene.open() as frames:
                    flags, before = END_HEADERS | END_STREAM, b""
                    if how == "references":
                        data = base + indexed(b"a" * 4000) + b"\xbe" * 12000
                    elif how == "literals":
                        data = base + block([("x-a", "y" * 60)] * 230)
                    elif how == "cookies":
                        data = base + b"\x60" + number(100) + b"c" * 100 + \
                            b"\xbe" * 12000
                    elif how == "names":
                        data = base + b"".join(block([(f"x{n}", "")])
                                               for n in range(2000))
                    else:
                        before = ask(1, head(scene.host, method="POST",
                                             path="/open"), end=False)
                        data = indexed(b"a" * 4000) + b"\xbe" * 12000
                    frames.send(before + frame(HEADERS, flags, 1,
                                               data[:16384]))
                    got = frames.over(1)
                    assert got in (400, 431, "reset", "closed") or \
                        how == "in_trailers", f"{how}: {got}"
        scene.small(how)
        scene.alive()
        assert "/x" not in scene.requests()


@cases.case
def long_head():
    """A head of the longest kind that we take, in one-byte frames, is a
    request; one byte a second is not."""
    with Scene(more="timeout head 2s") as scene:
        with scene.open() as frames:
            data = block(head(scene.host, ("x-a", "y" * 100), path="/slow"))
            parts = [bytes([b]) for b in data]
            frames.send(frame(HEADERS, END_STREAM, 1, parts[0]) + b"".join(
                frame(CONTINUATION, 0, 1, p) for p in parts[1:-1]) + frame(
                CONTINUATION, END_HEADERS, 1, parts[-1]))
            print(f"# a head in {len(parts)} frames: {frames.over(1)}")
        for cut in ("frames", "bytes"):
            with scene.open() as frames:
                begin = time.monotonic()
                data = block(head(scene.host, path="/late"))
                if cut == "frames":
                    pieces = [frame(HEADERS, END_STREAM, 1, data[:1])] + [
                        frame(CONTINUATION, 0, 1, bytes([b]))
                        for b in data[1:]]
                else:
                    whole = frame(HEADERS, END_HEADERS | END_STREAM, 1, data)
                    pieces = [bytes([b]) for b in whole]
                drip(frames, pieces)
                gone = time.monotonic() - begin
                assert 0.5 < gone < 10, f"{cut}: after {gone:.1f} s"
        assert "/late" not in scene.requests()


def drip(frames, pieces):
    """One at a time, until the gate has had enough."""
    frames.wire.sock.settimeout(0.25)
    for piece in pieces:
        if not frames.send(piece):
            return
        try:
            if not frames.wire.more():
                return
        except TimeoutError:
            continue
        except Broken:
            return
    raise AssertionError("all of it was taken")


# ---- windows that stay shut -------------------------------------------------

LARGE = answer(bytes(1 << 24))
# All hundred have to be asked for before the first is given up.
IDLE = "timeout idle 6s"


def large(connection):
    while True:
        connection.request()
        connection.send(LARGE)


@cases.each(["zero", "small", "shrunk"])
def stalled_window(how):
    """A client asks for a hundred large answers and never opens its window:
    bounded, and over after a while."""
    window = {"zero": 0, "small": 1, "shrunk": 65535}[how]
    setting = frame(SETTINGS, 0, 0, struct.pack(">HI", 4, window))
    with Scene(serve=large, more=IDLE) as scene:
        with scene.watched(f"stalled, {how}"), scene.open(setting) as frames:
            frames.send(b"".join(
                ask(n, head(scene.host, path=f"/{n}"))
                for n in range(1, 201, 2)))
            if how == "shrunk":
                frames.read()
                frames.send(frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 0)))
            begin = time.monotonic()
            until("all were asked for",
                  lambda: len(scene.requests()) >= 100)
            scene.small(how)
            # It goes on saying something, so that it is not just idle.
            frames.wire.sock.settimeout(0.3)
            while len(scene.gate.finals(protocol="h2")) < 100:
                frames.send(frame(PING, 0, 0, b"regress!"))
                with contextlib.suppress(TimeoutError):
                    if frames.read() is None:
                        break
                assert time.monotonic() - begin < WAIT_S, "borne for ever"
            until("all have their records",
                  lambda: len(scene.gate.finals(protocol="h2")) == 100)
            for record in scene.gate.finals(protocol="h2"):
                assert record["kind"] == "request_failed", record
        scene.small(how)


@cases.case
def unread():
    """The same with windows wide open and a socket that is not read."""
    with Scene(serve=large, more=IDLE) as scene:
        with scene.watched("unread"), scene.open(WIDE) as frames:
            frames.send(b"".join(
                ask(n, head(scene.host, path=f"/{n}"))
                for n in range(1, 201, 2)))
            until("all were asked for",
                  lambda: len(scene.requests()) >= 100)
            have = scene.small("unread")
            until("all have their records",
                  lambda: len(scene.gate.finals(protocol="h2")) == 100)
        print(f"# {have} KiB")


# ---- many -------------------------------------------------------------------

@cases.case
def ten_thousand_streams():
    """One after the other, on one connection: all are served and recorded,
    nothing is left of them."""
    count = 500 if SANITIZED else 10000
    with Scene() as scene, scene.open() as frames:
        before = None
        stream = 1
        for at in range(0, count, 50):
            frames.send(b"".join(
                ask(n, head(scene.host, path="/many"))
                for n in range(stream, stream + 100, 2)))
            for number_ in range(stream, stream + 100, 2):
                assert frames.over(number_) == 200, number_
            stream += 100
            frames.seen.clear()
            frames.ended.clear()
            if at == count // 5 // 50 * 50:
                before = scene.gate.memory("VmRSS")
        grown = scene.gate.memory("VmRSS") - before
        print(f"# grown by {grown} KiB")
        assert grown < 1024, f"{grown} KiB"
        until("all records", lambda: len(scene.gate.finals(
            path="/many")) == count)


@cases.case
def ten_thousand_at_once():
    """As many as can be opened at once, on many connections, and held."""
    wires = 5 if SANITIZED else 100
    never = threading.Event()

    def serve(connection):
        request, _ = connection.request()
        while b"/held" in request.split(b"\r\n")[0]:
            if never.wait(0.2):
                return
        connection.send(answer())

    with Scene(serve=serve) as scene:
        held = []
        try:
            with scene.watched("ten thousand at once"):
                for _ in range(wires):
                    frames = scene.open()
                    held.append(frames)
                    frames.send(b"".join(
                        ask(n, head(scene.host, path="/held"), end=False)
                        for n in range(1, 201, 2)))
                until("the origin has some",
                      lambda: len(scene.requests()) > 90)
                rss = scene.gate.memory()
            print(f"# {wires} connections with 100 streams: {rss} KiB")
            assert rss < 4 * MEMORY_KIB, f"{rss} KiB"
        finally:
            never.set()
            for frames in held:
                frames.__exit__()
        until("it is alive again", lambda: alive_again(scene))


def alive_again(scene):
    with contextlib.suppress(AssertionError, Broken, OSError):
        scene.alive()
        return True
    return False


cases.main()
