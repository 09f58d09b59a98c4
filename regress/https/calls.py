#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""The HTTPS client with TLS: who is verified, who verifies us, by which name
and by which way; and servers that send too much, or nothing."""

import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases  # noqa: E402
from origin import Authority  # noqa: E402
from standin_ws import Drive, Server, drive, field, proxy, tls  # noqa: E402

cases = Cases()
TMP = tempfile.TemporaryDirectory(prefix="egressd-https.")
CA = Authority(TMP.name, "ca")
OTHER = Authority(TMP.name, "other")
CLIENT = CA.leaf("client.test")[0]
RSS_KIB = 64 * 1024 * (8 if os.environ.get("SAN") else 1)


def answer(conn, text="ok", status="200 OK", more=""):
    head = conn.head()
    conn.send(f"HTTP/1.1 {status}\r\nContent-Length: {len(text)}\r\n{more}"
              f"\r\n{text}")
    return head


def one(server, *options):
    last = drive("call", server.url, *options)[-1]
    return last


def check(last, result, why="", status=200):
    assert last["result"] == result, last
    assert why in last["why"], last
    if result == "answered":
        assert last["status"] == status, last


# ---- who is verified ----

@cases.case
def verified_by_address():
    with Server(answer, tls(CA, "127.0.0.1")) as server:
        check(one(server, f"ca={CA.cert}"), "answered")


@cases.case
def other_authority():
    with Server(answer, tls(OTHER, "127.0.0.1")) as server:
        check(one(server, f"ca={CA.cert}"), "failed", "certificate")


@cases.case
def other_address():
    with Server(answer, tls(CA, "127.0.0.2")) as server:
        check(one(server, f"ca={CA.cert}"), "failed", "127.0.0.1")


@cases.case
def insecure_only_if_said():
    with Server(answer, tls(OTHER, "a.test")) as server:
        check(one(server), "failed", "no certificates to verify it with")
        assert server.accepted == 0
        check(one(server, "insecure"), "answered")


@cases.case
def server_name():
    """The name that it is asked for; but the Host is still the URL's."""
    heads, names = [], []
    context = tls(CA, "kubernetes.default.svc")
    context.sni_callback = lambda _sock, name, _context: names.append(name)
    with Server(lambda c: heads.append(answer(c)), context) as server:
        check(one(server, f"ca={CA.cert}"), "failed", "127.0.0.1")
        check(one(server, f"ca={CA.cert}", "name=kubernetes.default.svc"),
              "answered")
        assert names[-1] == "kubernetes.default.svc", names
        assert field(heads[-1], "Host") == f"127.0.0.1:{server.port}"
        check(one(server, f"ca={CA.cert}", "name=else.test"), "failed",
              "else.test")


# ---- who verifies us ----

@cases.case
def client_certificate():
    seen = []

    def handler(conn):
        seen.append(conn.sock.getpeercert()["subjectAltName"])
        answer(conn)

    with Server(handler, tls(CA, "127.0.0.1", client=CA)) as server:
        check(one(server, f"ca={CA.cert}", f"cert={CLIENT}"), "answered")
        assert seen == [(("DNS", "client.test"),)], seen
        check(one(server, f"ca={CA.cert}"), "failed")
        other = OTHER.leaf("client.test")[0]
        check(one(server, f"ca={CA.cert}", f"cert={other}"), "failed")


# ---- proxies ----

SECRET = "header=Authorization: Bearer hush"


@cases.each(["http", "https"])
def by_proxy(scheme):
    """It is asked for the server, is told no secret of its, and sees none."""
    seen, heads = [], []
    context = tls(CA, "127.0.0.1") if scheme == "https" else None
    with Server(lambda c: heads.append(answer(c)),
                tls(CA, "127.0.0.1")) as server, \
            Server(proxy(seen), context) as way:
        check(one(server, f"ca={CA.cert}", f"proxy={way.url}", SECRET),
              "answered")
        place = f"127.0.0.1:{server.port}"
        assert seen[0].startswith(f"CONNECT {place} HTTP/1.1\r\n"), seen
        assert "hush" not in seen[0], seen
        assert field(heads[0], "Authorization") == "Bearer hush", heads


@cases.case
def by_proxy_with_name_and_credentials():
    seen = []
    with Server(answer, tls(CA, "kubernetes")) as server, \
            Server(proxy(seen)) as way:
        url = way.url.replace("//", "//me:pass@")
        check(one(server, f"ca={CA.cert}", f"proxy={url}", "name=kubernetes"),
              "answered")
        assert seen[0].startswith(f"CONNECT 127.0.0.1:{server.port} "), seen
        assert field(seen[0], "Proxy-Authorization") == "Basic bWU6cGFzcw=="


@cases.case
def proxy_refuses():
    with Server(answer, tls(CA, "127.0.0.1")) as server, \
            Server(lambda c: answer(c, "no", "403 Forbidden")) as way:
        check(one(server, f"ca={CA.cert}", f"proxy={way.url}"), "failed",
              "403")
        assert server.accepted == 0


@cases.case
def proxy_of_another_authority():
    with Server(answer, tls(CA, "127.0.0.1")) as server, \
            Server(proxy([]), tls(OTHER, "127.0.0.1")) as way:
        check(one(server, f"ca={CA.cert}", f"proxy={way.url}"), "failed",
              "certificate")


# ---- hostile servers ----

@cases.case
def redirect_is_not_followed():
    with Server(answer, tls(CA, "127.0.0.1")) as other, \
            Server(lambda c: answer(c, "", "302 Found",
                                    f"Location: {other.url}/\r\n"),
                   tls(CA, "127.0.0.1")) as server:
        check(one(server, f"ca={CA.cert}", SECRET), "answered", status=302)
        assert other.accepted == 0


@cases.case
def huge_body():
    def handler(conn):
        conn.head()
        conn.send(f"HTTP/1.1 200 OK\r\nContent-Length: {1 << 40}\r\n\r\n")
        while True:
            conn.send(bytes(65536))

    with Server(handler, tls(CA, "127.0.0.1")) as server:
        check(one(server, f"ca={CA.cert}"), "huge")


@cases.case
def streamed_body_is_not_kept():
    total = 100 << 20

    def handler(conn):
        conn.head()
        conn.send(f"HTTP/1.1 200 OK\r\nContent-Length: {total}\r\n\r\n")
        for _ in range(total >> 20):
            conn.send(bytes(1 << 20))

    with Server(handler, tls(CA, "127.0.0.1")) as server:
        run = Drive("call", server.url, f"ca={CA.cert}", "stream",
                    "timeout=60000")
        last = run.end()[-1]
        check(last, "answered")
        assert last["bytes"] == total and last["pieces"] > 1, last
        assert run.rss < RSS_KIB, f"{run.rss} KiB"


@cases.case
def endless_body_ends_when_said():
    def handler(conn):
        conn.head()
        conn.send("HTTP/1.1 200 OK\r\n\r\n")
        while True:
            conn.send(bytes(65536))

    with Server(handler, tls(CA, "127.0.0.1")) as server:
        last = one(server, f"ca={CA.cert}", "stream", "stop=1000000")
        check(last, "answered")
        assert last["bytes"] >= 1000000, last


@cases.case
def endless_head():
    def handler(conn):
        conn.head()
        conn.send("HTTP/1.1 200 OK\r\nX: ")
        while True:
            conn.send(b"x" * 65536)

    with Server(handler, tls(CA, "127.0.0.1")) as server:
        last = one(server, f"ca={CA.cert}")
        assert last["result"] in ("huge", "failed"), last


@cases.each(["handshake", "head", "body"])
def stalls(where):
    def handler(conn):
        if where != "handshake":
            conn.head()
        if where == "body":
            conn.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
        conn.drain()

    context = None if where == "handshake" else tls(CA, "127.0.0.1")
    with Server(handler, context) as server:
        url = server.url.replace("http:", "https:")
        last = drive("call", url, f"ca={CA.cert}", "timeout=300")[-1]
        check(last, "late")


@cases.case
def idle_stream():
    """Silence counts from the last byte, not from the first."""
    def handler(conn):
        conn.head()
        conn.send("HTTP/1.1 200 OK\r\n\r\nsome")
        conn.drain()

    with Server(handler, tls(CA, "127.0.0.1")) as server:
        last = one(server, f"ca={CA.cert}", "stream", "idle=2000")
        check(last, "late")
        assert last["bytes"] == 4, last


@cases.case
def no_tls():
    """Something else than TLS where that should be."""
    with Server(lambda c: c.send("HTTP/1.1 400 Bad\r\n\r\n")) as server:
        url = server.url.replace("http:", "https:")
        check(drive("call", url, f"ca={CA.cert}")[-1], "failed")


@cases.case
def connection_is_kept():
    def handler(conn):
        for _ in range(3):
            answer(conn)

    with Server(handler, tls(CA, "127.0.0.1")) as server:
        lines = drive("call", server.url, f"ca={CA.cert}", f"cert={CLIENT}",
                      "times=3")
        assert [line["result"] for line in lines] == ["answered"] * 3, lines
        assert server.accepted == 1


cases.main()
