#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Exec in a pod, against a stand-in for the API server: how it ends, what it
says of that, and that neither side is flooded.  What a real API server does is
regress/k8s'."""

import hashlib
import json
import os
import pathlib
import socket
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases  # noqa: E402
from origin import Authority  # noqa: E402
from standin_ws import CLOSE, LIMIT_S, Drive, Gone, Server, field, frame, \
    tls, upgrade  # noqa: E402

cases = Cases()
TMP = tempfile.TemporaryDirectory(prefix="egressd-exec.")
CA = Authority(TMP.name, "ca")
TLS = tls(CA, "127.0.0.1")
V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
RSS_KIB = 64 * 1024 * (8 if os.environ.get("SAN") else 1)
ARGS = ("arg=ns", "arg=pod", "arg=workspace", "arg=/egressd/bin/egressd-box",
        "arg=hands", "arg=a b&c")
SUCCESS = {"metadata": {}, "status": "Success"}


def exit_code(code):
    return {"metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
            "message": f"command terminated with exit code {code}",
            "details": {"causes": [{"reason": "ExitCode",
                                    "message": str(code)}]}}


def say(conn, channel, data=b""):
    conn.message(bytes([channel]) + data)


def end(conn, status):
    """The Status and a close, as an API server has it."""
    if status is not None:
        say(conn, 3, status if isinstance(status, bytes) else
            json.dumps(status).encode())
    conn.send(frame(CLOSE, b"\x03\xe8"))
    conn.drain()


class Exec:
    """An exec on its way; sock is the client's end."""

    def __init__(self, server, *options):
        self.sock, theirs = socket.socketpair()
        self.sock.settimeout(LIMIT_S)
        with theirs:
            self.run = Drive("exec", server.url, f"ca={CA.cert}", *options,
                             *ARGS, stdin=theirs)

    def output(self):
        """All that comes; the other end closes when it is over."""
        data = b""
        while piece := self.sock.recv(65536):
            data += piece
        return data

    def end(self):
        last, = self.run.end()
        self.sock.close()
        return last


def run(handler, *options, protocol=V4, context=TLS):
    """How it ended, and the output, if the server upgrades and goes on."""
    def serve(conn):
        upgrade(conn, protocol)
        handler(conn)

    with Server(serve, context) as server:
        ex = Exec(server, *options)
        output = ex.output()
        return ex.end(), output


def check(last, how, code=0, why=""):
    assert (last["how"], last["code"]) == (how, code), last
    assert why in last["why"], last
    assert how != "exited" or last["why"] == "", last


# ---- the request ----

@cases.case
def request():
    heads = []

    def handler(conn):
        heads.append(upgrade(conn, V4))
        end(conn, SUCCESS)

    with Server(handler, TLS) as server:
        ex = Exec(server, "header=Authorization: Bearer hush")
        check(ex.end(), "exited")
    line = heads[0].splitlines()[0]
    assert line == (
        "GET /api/v1/namespaces/ns/pods/pod/exec?container=workspace"
        "&stdin=true&stdout=true&stderr=true&tty=false"
        "&command=%2Fegressd%2Fbin%2Fegressd-box&command=hands"
        "&command=a%20b%26c HTTP/1.1"), line
    assert field(heads[0], "Sec-WebSocket-Protocol") == f"{V5}, {V4}"
    assert field(heads[0], "Authorization") == "Bearer hush"


@cases.each([400, 403])
def subprotocol_refused(status):
    """The older one alone is offered to a server that knows no other."""
    offers = []

    def handler(conn):
        head = conn.head()
        offers.append(field(head, "Sec-WebSocket-Protocol"))
        if V5 in offers[-1]:
            conn.send(f"HTTP/1.1 {status} No\r\n\r\n")
            return
        conn.pending = (head + "\r\n").encode() + conn.pending
        upgrade(conn, V4)
        end(conn, SUCCESS)

    with Server(handler, TLS) as server:
        check(Exec(server).end(), "exited")
    assert offers == [f"{V5}, {V4}", V4], offers


def refuses(status, body, *options):
    """A server that never agrees: the end, and how often it was asked."""
    heads = []

    def handler(conn):
        heads.append(conn.head())
        text = body if isinstance(body, str) else json.dumps(body)
        conn.send(f"HTTP/1.1 {status} No\r\nContent-Length: {len(text)}\r\n"
                  f"\r\n{text}")
        conn.drain()

    with Server(handler, TLS) as server:
        return Exec(server, *options).end(), heads


@cases.case
def forbidden():
    """The API's own word is told, and it is not asked twice."""
    last, heads = refuses(403, {
        "kind": "Status", "status": "Failure", "reason": "Forbidden",
        "message": "pods \"w\" is forbidden: cannot get \"pods/exec\""})
    check(last, "refused", why="status 403: pods \"w\" is forbidden")
    assert len(heads) == 1


@cases.case
def forbidden_without_a_word():
    last, heads = refuses(403, "go away\x1b[2J")
    check(last, "refused", why="status 403: go away?[2J")
    assert len(heads) == 2


@cases.case
def unauthorized():
    """The credential is asked for once more, and no further."""
    last, heads = refuses(401, {"status": "Failure", "message": "Unauthorized"},
                          "header=Authorization: Bearer old",
                          "header=Authorization: Bearer new")
    check(last, "refused", why="status 401: Unauthorized")
    assert [field(head, "Authorization") for head in heads] == \
        ["Bearer old", "Bearer new"], heads


@cases.case
def unauthorized_then_welcome():
    def handler(conn):
        head = conn.head()
        if field(head, "Authorization") == "Bearer old":
            conn.send("HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n")
            conn.drain()
        conn.pending = (head + "\r\n").encode() + conn.pending
        upgrade(conn, V4)
        end(conn, exit_code(9))

    with Server(handler, TLS) as server:
        check(Exec(server, "header=Authorization: Bearer old",
                   "header=Authorization: Bearer new").end(), "exited", 9)


@cases.case
def credential_is_not_quoted():
    last, _ = refuses(404, "no pod for hush", "header=Authorization: Bearer "
                      "hush")
    check(last, "refused", why="status 404")
    assert "hush" not in last["why"], last


@cases.case
def not_found():
    last, _ = refuses(404, {"status": "Failure", "reason": "NotFound",
                            "message": "pods \"pod\" not found"})
    check(last, "refused", why="pods \"pod\" not found")


@cases.case
def nobody_there():
    with Server(lambda c: None) as server:
        server.url = server.url.replace("http:", "https:")
    check(Exec(server).end(), "lost", why="connect")


@cases.case
def other_certificate():
    other = Authority(TMP.name, "other")
    with Server(lambda c: None, tls(other, "127.0.0.1")) as server:
        check(Exec(server).end(), "lost", why="certificate")


# ---- how it ends ----

@cases.each([0, 1, 3, 124, 137, 255])
def exits(code):
    """By the Status alone: text says what it likes."""
    def handler(conn):
        say(conn, 1)
        say(conn, 1, b"exit code 0\n")
        say(conn, 2, b"exit code 1\n")
        end(conn, exit_code(code) if code else SUCCESS)

    last, output = run(handler)
    check(last, "exited", code)
    assert output == b"exit code 0\n" and last["stderr"] == "exit code 1", last


INTERNAL = {"status": "Failure", "reason": "InternalError",
            "message": "error executing command in container"}
BAD = {
    "no_json": b"exit code 0",
    "no_object": b"[]",
    "no_status": b"{}",
    "other_kind": {**SUCCESS, "kind": "Pod"},
    "other_status": {"status": "success"},
    "code_0": exit_code(0),
    "code_256": exit_code(256),
    "code_minus": exit_code("-1"),
    "code_text": exit_code("3 "),
    "code_hex": exit_code("0x3"),
    "no_code": {**exit_code(3), "details": {"causes": []}},
    "two_codes": {**exit_code(3), "details": {
        "causes": exit_code(3)["details"]["causes"] * 2}},
    "twice": b'{"status":"Success","status":"Failure"}',
    "cut": b'{"status":"Succ',
    "empty": b"",
}


@cases.each(BAD)
def bad_status(name):
    """What makes no sense is no end: the connection was lost."""
    check(run(lambda c: end(c, BAD[name]))[0], "lost", why="without a Status")


@cases.case
def no_status():
    check(run(lambda c: end(c, None))[0], "lost", why="code 1000 and without")
    check(run(lambda c: say(c, 1, b"x"))[0], "lost", why="it has closed")


@cases.case
def failed_to_start():
    """Before the first byte it is a refusal, afterwards a loss."""
    check(run(lambda c: (say(c, 1), end(c, INTERNAL)))[0], "refused",
          why="InternalError: error executing")
    check(run(lambda c: (say(c, 1, b"x"), end(c, INTERNAL)))[0], "lost",
          why="InternalError: error executing")


@cases.case
def status_in_parts():
    def handler(conn):
        text = json.dumps(exit_code(3)).encode()
        conn.send(frame(2, b"\3" + text[:9], fin=0) + frame(0, text[9:20]))
        say(conn, 3, text[20:])
        conn.leave()

    check(run(handler)[0], "exited", 3)


@cases.case
def long_status():
    def handler(conn):
        for _ in range(100):
            say(conn, 3, b" " * 10000)
        conn.leave()

    check(run(handler)[0], "lost", why="a Status that is too long")


@cases.each([0, 4, 5, 254, 255])
def other_channel(number):
    def handler(conn):
        say(conn, number, b"x")
        conn.leave()

    check(run(handler)[0], "lost", why="channel")


@cases.case
def much_on_stderr():
    """The end of it is told, printable, and no more is kept."""
    def handler(conn):
        for i in range(20000):
            say(conn, 2, b"line %d\x1b[1m\n" % i)
        end(conn, exit_code(1))

    last, _ = run(handler)
    check(last, "exited", 1)
    assert last["stderr"].endswith("line 19999?[1m"), last
    assert len(last["stderr"]) <= 1024, last


# ---- the pump ----

@cases.each([V4, V5])
def both_ways(protocol):
    """32 MiB each way arrive as they were, and little of it at a time."""
    count, piece = 32, os.urandom(1 << 20)
    got = hashlib.sha256()

    def handler(conn):
        left = count << 20
        while left:
            data = conn.frame()[3]
            assert data[0] == 0 and len(data) <= 32769
            got.update(data[1:])
            left -= len(data) - 1
        for _ in range(count):
            say(conn, 1, piece)
        end(conn, SUCCESS)

    def serve(conn):
        upgrade(conn, protocol)
        handler(conn)

    want = hashlib.sha256()
    with Server(serve, TLS) as server:
        ex = Exec(server)
        for _ in range(count):
            ex.sock.sendall(piece)
            want.update(piece)
        back = hashlib.sha256()
        while data := ex.sock.recv(1 << 20):
            back.update(data)
        check(ex.end(), "exited")
        assert got.digest() == want.digest(), "what went in differs"
        assert back.digest() == want.digest(), "what came out differs"
        assert ex.run.rss < RSS_KIB, f"{ex.run.rss} KiB"


def stuck(function):
    """How many bytes it takes until nobody takes any more."""
    total, still = 0, 0
    while still < 20:
        try:
            total += function()
            still = 0
        except (TimeoutError, BlockingIOError):
            still += 1
        assert total < 64 << 20, "there is no end"
    return total


@cases.case
def slow_client():
    """What nobody reads stays with the server, which has to wait."""
    sent = []
    stop = threading.Event()

    def handler(conn):
        upgrade(conn, V4)
        data = frame(2, b"\1" + bytes(16384))
        conn.sock.settimeout(0.05)
        sent.append(stuck(lambda: conn.sock.send(data)))
        stop.set()

    with Server(handler) as server:
        ex = Exec(server)
        assert stop.wait(LIMIT_S), "it takes what nobody reads"
        ex.sock.close()
        ex.run.end()
        assert sent and ex.run.rss < RSS_KIB, (sent, ex.run.rss)


@cases.case
def slow_server():
    """What the server does not take stays with the client."""
    release = threading.Event()

    def handler(conn):
        upgrade(conn, V4)
        release.wait(LIMIT_S)

    with Server(handler) as server:
        ex = Exec(server)
        ex.sock.settimeout(0.05)
        stuck(lambda: ex.sock.send(bytes(16384)))
        release.set()
        check(ex.end(), "lost")
        assert ex.run.rss < RSS_KIB, f"{ex.run.rss} KiB"


@cases.case
def slow_reader_gets_all():
    """Also after the server has gone."""
    total = 4 << 20
    gone = threading.Event()

    def handler(conn):
        upgrade(conn, V4)
        for _ in range(total >> 16):
            say(conn, 1, bytes(65536))
        say(conn, 3, json.dumps(exit_code(4)).encode())
        try:
            conn.leave()
        except Gone:
            gone.set()

    with Server(handler, TLS) as server:
        ex = Exec(server)
        data = 0
        while data < total - 65536:
            data += len(ex.sock.recv(4096))
        assert gone.wait(LIMIT_S), "the connection is still there"
        data += len(ex.output())
        check(ex.end(), "exited", 4)
        assert data == total, data


@cases.case
def idle_costs_nothing():
    """No turn of the loop while nothing happens; by its own processor time."""
    ready, leave = threading.Event(), threading.Event()

    def handler(conn):
        upgrade(conn, V4)
        say(conn, 1, b"x" * 100000)
        ready.set()
        leave.wait(LIMIT_S)
        end(conn, SUCCESS)

    def ticks(pid):
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().split()
        return int(fields[13]) + int(fields[14])

    with Server(handler, TLS) as server:
        ex = Exec(server)
        assert ready.wait(LIMIT_S)
        while len(ex.sock.recv(1, socket.MSG_PEEK)) == 0:
            pass
        before = ticks(ex.run.process.pid)
        threading.Event().wait(2)
        after = ticks(ex.run.process.pid)
        leave.set()
        ex.output()
        check(ex.end(), "exited")
        assert after - before <= 20, f"{after - before} ticks in 2 s"


# ---- the end of input ----

@cases.case
def end_of_input_v5():
    """The command is told, and goes on to answer."""
    got = []

    def handler(conn):
        while not got or got[-1][0] != 255:
            got.append(conn.frame()[3])
        say(conn, 1, b"bye")
        end(conn, SUCCESS)

    def serve(conn):
        upgrade(conn, V5)
        handler(conn)

    with Server(serve, TLS) as server:
        ex = Exec(server)
        ex.sock.sendall(b"hello")
        ex.sock.shutdown(socket.SHUT_WR)
        assert ex.output() == b"bye"
        check(ex.end(), "exited")
    assert b"".join(data[1:] for data in got[:-1]) == b"hello", got
    assert got[-1] == b"\xff\0", got


@cases.case
def end_of_input_v4():
    """The connection ends, after what was still said."""
    def serve(conn):
        upgrade(conn, V4)
        data = b""
        while data != b"hello":
            data += conn.frame()[3][1:]
        say(conn, 1, b"bye")
        assert conn.frame()[1] == CLOSE
        conn.send(frame(CLOSE, b"\x03\xe8"))

    with Server(serve, TLS) as server:
        ex = Exec(server)
        ex.sock.sendall(b"hello")
        ex.sock.shutdown(socket.SHUT_WR)
        assert ex.output() == b"bye"
        check(ex.end(), "lost", why="its input has ended")


@cases.case
def client_leaves():
    """With output on its way that nobody reads any more."""
    def serve(conn):
        upgrade(conn, V4)
        while True:
            say(conn, 1, bytes(65536))

    with Server(serve, TLS) as server:
        ex = Exec(server)
        assert ex.sock.recv(1)
        check(ex.end() if ex.sock.close() is None else None, "lost",
              why="client has left")


cases.main()
