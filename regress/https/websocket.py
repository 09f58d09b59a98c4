#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""The WebSocket of the HTTPS client: the upgrade, frames, closing, pings, and
servers that get any of these wrong."""

import functools
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases  # noqa: E402
from origin import Authority  # noqa: E402
from standin_ws import BINARY, CLOSE, CONT, PING, PONG, TEXT, Drive, \
    Server, accept_key, drive, field, frame, proxy, tls, \
    upgrade  # noqa: E402

cases = Cases()
TMP = tempfile.TemporaryDirectory(prefix="egressd-ws.")
RSS_KIB = 64 * 1024 * (8 if os.environ.get("SAN") else 1)


@functools.cache
def authority():
    return Authority(TMP.name, "ca")


def speak(handler, *options, protocol="b"):
    """What the client says to a server which upgrades and then goes on; it
    has nothing to say itself, and its end of input comes last."""
    def serve(conn):
        upgrade(conn, protocol)
        handler(conn)

    with Server(serve) as server:
        run = Drive("ws", server.url, "protocol=a", "protocol=b", *options)
        lines = [run.line()]
        while "result" not in lines[-1]:
            lines.append(run.line())
        run.end()
        return lines


def check_failed(lines, why):
    assert lines[-1]["result"] == "failed", lines[-1]
    assert why in lines[-1]["why"], lines[-1]


# ---- the upgrade ----

@cases.case
def request():
    """What is sent, and what is said of it."""
    heads, frames = [], []

    def handler(conn):
        heads.append(upgrade(conn, "b"))
        frames.append(conn.frame())
        conn.message(b"there")
        conn.send(frame(CLOSE, b"\x03\xe8bye"))
        frames.append(conn.frame())

    with Server(handler) as server:
        run = Drive("ws", server.url, "path=/p?q=%2F", "protocol=a",
                    "protocol=b", "header=Authorization: Bearer x")
        assert run.line() == {"open": 1}
        run.process.stdin.write(b"hello\n")
        run.process.stdin.flush()
        assert run.line() == {"piece": "there", "first": 1, "last": 1}
        last = run.line()
        run.end()
    assert (last["result"], last["status"], last["close"], last["body"]) == \
        ("answered", 101, 1000, "bye"), last
    head = heads[0]
    assert head.startswith("GET /p?q=%2F HTTP/1.1\r\n"), head
    want = {"Host": f"127.0.0.1:{server.port}", "Upgrade": "websocket",
            "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Protocol": "a, b", "Authorization": "Bearer x"}
    for name, value in want.items():
        assert field(head, name) == value, (name, head)
    assert frames == [(1, BINARY, 1, b"hello"), (1, CLOSE, 1, b"\x03\xe8")], \
        frames


@cases.case
def keys_and_masks_differ():
    """Nobody who sees one knows the next (RFC 6455, 10.3)."""
    keys, masks = set(), set()

    def handler(conn):
        keys.add(field(upgrade(conn, "b"), "Sec-WebSocket-Key"))
        for _ in range(4):
            raw = conn.read(2 + 4 + 4)
            masks.add(raw[2:6])
        conn.send(frame(CLOSE))

    with Server(handler) as server:
        for _ in range(4):
            run = Drive("ws", server.url, "protocol=b")
            run.line()
            run.process.stdin.write(b"same\n" * 4)
            run.process.stdin.flush()
            run.line()
            run.end()
    assert len(keys) == 4 and len(masks) == 16, (keys, masks)


OK = {"Upgrade": "websocket", "Connection": "keep-alive, Upgrade",
      "Sec-WebSocket-Protocol": "b"}
NO_HTTP = "its answer is no HTTP"
FAULTS = {
    "other_key": (101, {**OK, "Sec-WebSocket-Accept": "x" * 27 + "="},
                  "another key"),
    "long_key": (101, {**OK, "Sec-WebSocket-Accept": "x" * 100}, NO_HTTP),
    "no_key": (101, {**OK, "Sec-WebSocket-Accept": None}, "another key"),
    "no_upgrade": (101, {**OK, "Upgrade": None}, "does not upgrade"),
    "other_upgrade": (101, {**OK, "Upgrade": "h2c"}, "does not upgrade"),
    "no_connection": (101, {**OK, "Connection": "close"}, "does not upgrade"),
    "no_protocol": (101, {**OK, "Sec-WebSocket-Protocol": None},
                    "none of the subprotocols"),
    "other_protocol": (101, {**OK, "Sec-WebSocket-Protocol": "c"},
                       "none of the subprotocols"),
    "two_protocols": (101, {**OK, "Sec-WebSocket-Protocol": "a, b"},
                      "none of the subprotocols"),
    "extension": (101, {**OK, "Sec-WebSocket-Extensions":
                        "permessage-deflate"}, "an extension"),
    "line_without_colon": (101, {**OK, "X\r\nY": "z"}, NO_HTTP),
    "folded": (101, {**OK, "X": "y\r\n z: 1"}, NO_HTTP),
}


@cases.each(FAULTS)
def upgrade_fault(name):
    status, fields, why = FAULTS[name]

    def handler(conn):
        head = conn.head()
        fields.setdefault("Sec-WebSocket-Accept", accept_key(head))
        lines = "".join(f"{key}: {value}\r\n" for key, value in fields.items()
                        if value is not None)
        conn.send(f"HTTP/1.1 {status} Yes\r\n{lines}\r\n")
        conn.drain()

    with Server(handler) as server:
        check_failed(drive("ws", server.url, "protocol=a", "protocol=b"), why)


# What is sent instead of an answer, and whether the connection is closed then.
NOISE = {
    "nonsense": (b"SSH-2.0-x\r\n\r\n", False, NO_HTTP),
    "version": (b"HTTP/2 101 x\r\n\r\n", False, NO_HTTP),
    "status": (b"HTTP/1.1 1e1 x\r\n\r\n", False, NO_HTTP),
    "endless": (b"HTTP/1.1 101 x\r\nX: " + b"y" * 20000, False, NO_HTTP),
    "cut_off": (b"HTTP/1.1 101 x\r\n", True, "it has closed"),
    "nothing": (b"", True, "it has closed"),
}


@cases.each(NOISE)
def no_answer(name):
    data, closes, why = NOISE[name]

    def handler(conn):
        conn.head()
        conn.send(data)
        if not closes:
            conn.drain()

    with Server(handler) as server:
        check_failed(drive("ws", server.url, "protocol=b"), why)


REFUSALS = {
    "sized": ("Content-Length: 4\r\n\r\nno, ", False, "no, "),
    "chunked": ("Transfer-Encoding: chunked\r\n\r\n2\r\nno\r\n2;x\r\n, \r\n"
                "0\r\n\r\n", False, "no, "),
    "until_closed": ("\r\nno, ", True, "no, "),
    "empty": ("Content-Length: 0\r\n\r\n", False, ""),
}


@cases.each(REFUSALS)
def refused(name):
    """Whoever asked is told the status and what was said."""
    text, closes, body = REFUSALS[name]

    def handler(conn):
        conn.head()
        conn.send(f"HTTP/1.1 403 Forbidden\r\n{text}")
        if not closes:
            conn.drain()

    with Server(handler) as server:
        last, = drive("ws", server.url, "protocol=b")
    assert (last["result"], last["status"], last["body"]) == \
        ("answered", 403, body), last


@cases.case
def refused_at_length():
    def handler(conn):
        conn.head()
        conn.send("HTTP/1.1 403 Forbidden\r\n\r\n")
        while True:
            conn.send(b"x" * 65536)

    with Server(handler) as server:
        last, = drive("ws", server.url, "protocol=b")
    assert (last["result"], last["status"]) == ("huge", 403), last


@cases.case
def redirect_is_a_refusal():
    with Server(lambda c: None) as other:
        def handler(conn):
            conn.head()
            conn.send(f"HTTP/1.1 302 Found\r\nLocation: {other.url}\r\n"
                      "Content-Length: 0\r\n\r\n")
            conn.drain()

        with Server(handler) as server:
            last, = drive("ws", server.url, "protocol=b")
        assert (last["result"], last["status"]) == ("answered", 302), last
        assert other.accepted == 0


@cases.case
def stalled_upgrade():
    with Server(lambda c: c.drain()) as server:
        last, = drive("ws", server.url, "protocol=b", "timeout=300")
    assert last["result"] == "late", last


@cases.case
def line_in_a_header():
    """Nothing that is handed on can become a line of the request."""
    with Server(lambda c: c.drain()) as server:
        check_failed(drive("ws", server.url, "header=X: y\r\nZ: 1"),
                     "cannot be sent")
        check_failed(drive("ws", server.url, "path=/ HTTP/1.1\r\nX: y"), "")


# ---- frames ----

def closes(conn):
    conn.send(frame(CLOSE, b"\x03\xe8"))
    conn.drain()


@cases.case
def messages():
    """In parts, empty, long, with control frames between the parts."""
    pongs = []

    def handler(conn):
        conn.send(frame(BINARY, b"") + frame(BINARY, b"one"))
        conn.send(frame(BINARY, b"tw", fin=0) + frame(PING, b"?") +
                  frame(CONT, b"", fin=0) + frame(CONT, b"o"))
        conn.send(frame(BINARY, b"x" * 200) + frame(BINARY, b"y" * 70000))
        pongs.append(conn.frame())
        closes(conn)

    lines = speak(handler)
    assert lines[0] == {"open": 1} and lines[-1]["close"] == 1000, lines[-1]
    texts, text = [], ""
    for line in lines[1:-1]:
        assert line["first"] == (text is None or text == ""), line
        text += line["piece"] or "|"
        if line["last"]:
            texts.append(text)
            text = ""
    assert texts == ["|", "one", "tw|o", "x" * 200, "y" * 70000], texts[:3]
    assert pongs == [(1, PONG, 1, b"?")], pongs


# What is sent, and what is said of it.
BAD_FRAMES = {
    "rsv1": (frame(BINARY, b"x", rsv=4), "reserved bits"),
    "rsv3": (frame(PING, rsv=1), "reserved bits"),
    "masked": (frame(BINARY, b"x", masked=True), "masks"),
    "masked_ping": (frame(PING, masked=True), "masks"),
    "text": (frame(TEXT, b"x"), "not spoken"),
    "opcode_3": (frame(3, b"x"), "not spoken"),
    "opcode_11": (frame(11), "not spoken"),
    "control_in_parts": (frame(PING, fin=0), "bad length"),
    "long_control": (frame(PING, b"x" * 126), "bad length"),
    "not_shortest_2": (frame(BINARY, b"x", wide=2), "bad length"),
    "not_shortest_8": (frame(BINARY, b"x" * 300, wide=8), "bad length"),
    "negative": (frame(BINARY, count=1 << 63), "bad length"),
    "too_long": (frame(BINARY, b"x", count=(32 << 20) + 1), "more than 32 MiB"),
    "too_long_in_parts": (frame(BINARY, b"x", fin=0) +
                          frame(CONT, b"x", count=32 << 20), "more than 32 MiB"),
    "continues_nothing": (frame(CONT, b"x"), "wrong order"),
    "begins_within": (frame(BINARY, fin=0) + frame(BINARY), "wrong order"),
    "close_of_one_byte": (frame(CLOSE, b"\x03"), "proper code"),
    "close_1005": (frame(CLOSE, b"\x03\xed"), "proper code"),
    "close_0": (frame(CLOSE, b"\0\0"), "proper code"),
    "close_5000": (frame(CLOSE, b"\x13\x88"), "proper code"),
}


@cases.each(BAD_FRAMES)
def bad_frame(name):
    """It ends, says so, and tells the server."""
    data, why = BAD_FRAMES[name]
    got = []

    def handler(conn):
        conn.send(data)
        got.append(conn.frame())
        conn.drain()

    lines = speak(handler)
    check_failed(lines, why)
    assert got == [(1, CLOSE, 1, b"\x03\xea")], got
    assert "result" in lines[-1] and lines[-1]["bytes"] <= 1, lines


@cases.each(["frame", "head", "nothing"])
def cut_off(where):
    data = {"frame": frame(BINARY, b"x", count=5), "head": b"\x82",
            "nothing": b""}[where]
    check_failed(speak(lambda c: c.send(data)), "it has closed")


@cases.case
def close_without_code():
    """And one with a reason."""
    last = speak(lambda c: (c.send(frame(CLOSE)), c.drain()))[-1]
    assert (last["status"], last["close"], last["body"]) == (101, 0, ""), last
    last = speak(lambda c: (c.send(frame(CLOSE, b"\x0f\xa0why")),
                            c.drain()))[-1]
    assert (last["close"], last["body"]) == (4000, "why"), last


@cases.case
def close_by_us():
    """They answer, or they just go, or they are mute."""
    got = []

    def answers(conn):
        upgrade(conn, "b")
        got.append(conn.frame())
        conn.send(frame(CLOSE, b"\x03\xe8"))

    def goes(conn):
        upgrade(conn, "b")
        got.append(conn.frame())

    for handler, code in ((answers, 1000), (goes, 0)):
        with Server(handler) as server:
            last = drive("ws", server.url, "protocol=b")[-1]
        assert (last["result"], last["status"], last["close"]) == \
            ("answered", 101, code), last
    assert got == [(1, CLOSE, 1, b"\x03\xe8")] * 2, got


@cases.case
def mute_after_our_close():
    """Whoever waits for the answer does not do so for ever."""
    def handler(conn):
        upgrade(conn, "b")
        conn.drain()

    with Server(handler) as server:
        last = drive("ws", server.url, "protocol=b")[-1]
    assert last["result"] == "answered", last


@cases.case
def signs_of_life():
    """A server that answers pings may be silent, another is lost."""
    def answers(conn):
        for _ in range(3):
            assert conn.frame()[1] == PING
            conn.send(frame(PONG))
        closes(conn)

    last = speak(answers, "idle=1000")[-1]
    assert (last["result"], last["close"]) == ("answered", 1000), last
    check_failed(speak(lambda c: c.drain(), "idle=100"), "silent")


@cases.case
def pings_without_reading():
    """Whoever pings and reads no answer costs no memory."""
    def handler(conn):
        for _ in range(4000):
            conn.send(frame(PING, b"x" * 125) * 10)
        conn.send(frame(BINARY, b"done"))
        closes(conn)

    lines = speak(handler)
    assert lines[1]["piece"] == "done", lines[1]


# ---- TLS ----

@cases.case
def many_frames_in_a_record():
    """What TLS has read already is not to be waited for at the socket."""
    count = 3000

    def handler(conn):
        upgrade(conn, "b")
        data = b"".join(frame(BINARY, b"%d" % i) for i in range(count))
        conn.send(data)
        # Nothing more comes: whoever sleeps on the rest sleeps for ever.
        conn.frame()
        conn.send(frame(CLOSE, b"\x03\xe8"))

    with Server(handler, tls(authority(), "127.0.0.1")) as server:
        run = Drive("ws", server.url, "protocol=b",
                    f"ca={authority().cert}")
        assert run.line() == {"open": 0}
        text = ""
        while not text.endswith(f" {count - 1}"):
            line = run.line()
            text += " " * line["first"] + line["piece"]
        assert text.split() == [str(i) for i in range(count)], text[-80:]
        assert run.end()[-1]["close"] == 1000


@cases.case
def by_proxy_with_certificate():
    """All that a call may have, a WebSocket may."""
    seen = []

    def handler(conn):
        seen.append(conn.sock.getpeercert()["subjectAltName"])
        upgrade(conn, "b")
        closes(conn)

    cert = authority().leaf("client.test")[0]
    with Server(handler, tls(authority(), "kubernetes",
                             client=authority())) as server, \
            Server(proxy([])) as way:
        last = drive("ws", server.url, "protocol=b", f"cert={cert}",
                     f"ca={authority().cert}", "name=kubernetes",
                     f"proxy={way.url}")[-1]
    assert last["close"] == 1000, last
    assert seen == [(("DNS", "client.test"),)], seen


@cases.case
def much():
    """64 MiB in one direction, in few messages, cost no memory."""
    total = 64 << 20

    def handler(conn):
        upgrade(conn, "b")
        for _ in range(total >> 24):
            conn.message(bytes(1 << 24))
        closes(conn)

    with Server(handler, tls(authority(), "127.0.0.1")) as server:
        run = Drive("ws", server.url, "protocol=b", "stop=1",
                    f"ca={authority().cert}")
        assert run.line() == {"open": 0}
        last = run.line()
        run.end()
        assert last["bytes"] == total, last
        assert run.rss < RSS_KIB, f"{run.rss} KiB"


cases.main()
