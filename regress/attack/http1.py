#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""The battery, part F over HTTP/1 and part H: requests with two meanings,
requests behind requests, and requests that only take up room.  The verdict is
what a listening origin got of it."""

import pathlib
import resource
import ssl
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from case import Cases
from daemon import SANITIZED, WAIT_S, until
from gate import EVIL, FINAL, GOOD, Broken, Gate, get, pair
from origin import authority
from standin_origin import StandinOrigin, answer, fields_of

cases = Cases()


def lines(*fields, start="GET /x HTTP/1.1", body=""):
    return "\r\n".join((start, *fields, "", body))


def post(*fields, body="hello"):
    return lines("Host: HOST", *fields, start="POST /x HTTP/1.1", body=body)


# HOST stands for the allowed name and the origin's port, NAME for the name,
# SCHEME and OTHER for the one in use and the one not in use.
FRAMING = {
    "cl_te": (post("Content-Length: 5", "Transfer-Encoding: chunked",
                   body="0\r\n\r\n"), 400),
    "te_cl": (post("Transfer-Encoding: chunked", "Content-Length: 5",
                   body="0\r\n\r\n"), 400),
    "two_lengths": (post("Content-Length: 5", "Content-Length: 5"), 400),
    "other_lengths": (post("Content-Length: 5", "Content-Length: 0"), 400),
    "length_list": (post("Content-Length: 5, 5"), 400),
    "length_negative": (post("Content-Length: -5"), 400),
    "length_plus": (post("Content-Length: +5"), 400),
    "length_hex": (post("Content-Length: 0x5"), 400),
    "length_text": (post("Content-Length: five"), 400),
    "length_empty": (post("Content-Length:"), 400),
    "length_inner_space": (post("Content-Length: 5 0"), 400),
    "length_fraction": (post("Content-Length: 5.0"), 400),
    "length_huge": (post("Content-Length: 9223372036854775808"), 400),
    "length_huger": (post("Content-Length: " + "9" * 40), 400),
    "length_underscore": (post("Content_Length: 5"), 400),
    "coding_suffix": (post("Transfer-Encoding: chunkedx"), 400),
    "coding_prefix": (post("Transfer-Encoding: xchunked"), 400),
    "coding_identity": (post("Transfer-Encoding: identity"), 400),
    "coding_parameter": (post("Transfer-Encoding: chunked;q=1"), 400),
    "coding_quoted": (post('Transfer-Encoding: "chunked"'), 400),
    "coding_vtab": (post("Transfer-Encoding: \x0bchunked"), 400),
    "coding_list_end": (post("Transfer-Encoding: chunked, identity"), 400),
    "coding_twice": (post("Transfer-Encoding: chunked, chunked"), 400),
    "coding_fields": (post("Transfer-Encoding: chunked",
                           "Transfer-Encoding: chunked"), 400),
    "coding_hidden": (post("Transfer-Encoding: chunked",
                           "Transfer-Encoding: identity"), 400),
    "coding_gzip": (post("Transfer-Encoding: gzip, chunked"), 501),
    "coding_underscore": (post("Transfer_Encoding: chunked"), 400),
    "coding_http10": (post("Transfer-Encoding: chunked").replace(
        "HTTP/1.1", "HTTP/1.0"), 400),
    "expectation": (post("Content-Length: 5", "Expect: 200-maybe"), 417),
    "expect_twice": (post("Content-Length: 5", "Expect: 100-continue",
                          "Expect: 100-continue"), 400),
}

LINES = {
    "bare_lf": (lines("Host: HOST").replace("\r\n", "\n"), 400),
    "bare_lf_field": ("GET /x HTTP/1.1\r\nHost: HOST\nX: 1\r\n\r\n", 400),
    "bare_lf_end": ("GET /x HTTP/1.1\r\nHost: HOST\r\n\n", 400),
    "bare_cr": ("GET /x HTTP/1.1\r\nHost: HOST\rX: 1\r\n\r\n", 400),
    "bare_cr_start": ("GET /x\r HTTP/1.1\r\nHost: HOST\r\n\r\n", 400),
    "fold": (lines("Host: HOST", "X: 1", " 2"), 400),
    "fold_tab": (lines("Host: HOST", "X: 1", "\tY: 2"), 400),
    "fold_first": (lines(" Host: HOST"), 400),
    "space_before_colon": (lines("Host : HOST"), 400),
    "space_in_name": (lines("Host: HOST", "X Y: 1"), 400),
    "tab_before_colon": (lines("Host: HOST", "X\t: 1"), 400),
    "no_colon": (lines("Host: HOST", "X"), 400),
    "no_name": (lines("Host: HOST", ": 1"), 400),
    "nul_value": (lines("Host: HOST", "X: \0"), 400),
    "nul_name": (lines("Host: HOST", "X\0: 1"), 400),
    "escape": (lines("Host: HOST", "X: \x1b[31m"), 400),
    "delete": (lines("Host: HOST", "X: \x7f"), 400),
    "nbsp_name": (lines("Host: HOST", "X\xa0: 1"), 400),
    "no_version": (lines("Host: HOST", start="GET /x"), 400),
    "version_2": (lines("Host: HOST", start="GET /x HTTP/2.0"), 505),
    "version_12": (lines("Host: HOST", start="GET /x HTTP/1.2"), 505),
    "version_case": (lines("Host: HOST", start="GET /x http/1.1"), 400),
    "version_more": (lines("Host: HOST", start="GET /x HTTP/1.1 x"), 400),
    "version_digits": (lines("Host: HOST", start="GET /x HTTP/1.10"), 400),
    "two_spaces": (lines("Host: HOST", start="GET  /x HTTP/1.1"), 400),
    "tabs": (lines("Host: HOST", start="GET\t/x\tHTTP/1.1"), 400),
    "space_in_target": (lines("Host: HOST", start="GET /x y HTTP/1.1"), 400),
    "empty_line_first": ("\r\n" + lines("Host: HOST"), 400),
    "method_bytes": (lines("Host: HOST", start="G\xc8T /x HTTP/1.1"), 400),
    "method_colon": (lines("Host: HOST", start="GET: /x HTTP/1.1"), 400),
    "method_long": (lines("Host: HOST", start="A" * 33 + " /x HTTP/1.1"),
                    501),
}

TARGETS = {
    "no_slash": (lines("Host: HOST", start="GET x HTTP/1.1"), 400),
    "asterisk": (lines("Host: HOST", start="GET * HTTP/1.1"), 400),
    "fragment": (lines("Host: HOST", start="GET /x#y HTTP/1.1"), 400),
    "bytes": (lines("Host: HOST", start="GET /\xc0\xae HTTP/1.1"), 400),
    "long": (lines("Host: HOST", start=f"GET /{'a' * 8192} HTTP/1.1"), 414),
    "longer": (lines("Host: HOST", start=f"GET /{'a' * 20000} HTTP/1.1"),
               414),
    "megabyte": (lines("Host: HOST", start=f"GET /{'a' * 1000000} HTTP/1.1"),
                 414),
    "connect": (lines("Host: HOST", start="CONNECT HOST HTTP/1.1"), 405),
    "connect_evil": (lines("Host: evil.test:443",
                           start="CONNECT evil.test:443 HTTP/1.1"), 405),
    "connect_path": (lines("Host: HOST", start="CONNECT / HTTP/1.1"), 400),
    "connect_body": (lines("Host: HOST", "Content-Length: 5",
                           start="CONNECT HOST HTTP/1.1", body="hello"), 400),
    "trace": (lines("Host: HOST", start="TRACE /x HTTP/1.1"), 405),
    "authority": (lines("Host: HOST", start="GET HOST HTTP/1.1"), 400),
    "absolute_other": (lines("Host: HOST",
                             start="GET SCHEME://evil.test/ HTTP/1.1"), 421),
    "absolute_userinfo": (lines("Host: HOST", start="GET SCHEME://a@HOST/ "
                                "HTTP/1.1"), 400),
    "absolute_scheme": (lines("Host: HOST", start="GET OTHER://HOST/ "
                              "HTTP/1.1"), 400),
    "absolute_ftp": (lines("Host: HOST", start="GET ftp://HOST/ HTTP/1.1"),
                     400),
    "absolute_empty": (lines("Host: HOST", start="GET SCHEME:///x HTTP/1.1"),
                       400),
    "preface": ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
}

HOSTS = {
    "none": (lines("X: 1"), 400),
    "two": (lines("Host: HOST", "Host: HOST"), 400),
    "two_other": (lines("Host: HOST", "Host: evil.test"), 400),
    "empty": (lines("Host:"), 400),
    "userinfo": (lines("Host: x@HOST"), 400),
    "userinfo_evil": (lines("Host: HOST@evil.test"), 400),
    "path": (lines("Host: HOST/x"), 400),
    "list": (lines("Host: HOST, evil.test"), 400),
    "space": (lines("Host: HOST evil.test"), 400),
    "brackets": (lines("Host: [NAME]"), 400),
    "port_zero": (lines("Host: NAME:0"), 400),
    "port_large": (lines("Host: NAME:65537"), 400),
    "port_text": (lines("Host: NAME:http"), 400),
    "port_sign": (lines("Host: NAME:+80"), 400),
    "two_ports": (lines("Host: NAME:80:80"), 400),
    "two_dots": (lines("Host: api..good.test"), 400),
    "leading_dot": (lines("Host: .good.test"), 400),
    "escape": (lines("Host: api%2egood.test"), 400),
    "long": (lines("Host: " + "a." * 130 + "test"), 400),
    "long_label": (lines("Host: " + "a" * 64 + ".good.test"), 400),
    "underscore_name": (lines("Host_: HOST"), 400),
}

BOMBS = {
    "fields": (lines("Host: HOST", *["X: 1"] * 200), 431),
    "line": (lines("Host: HOST", "X: " + "x" * 20000), 431),
    "endless_line": (lines("Host: HOST", "X: " + "x" * 4000000), 431),
    "head": (lines("Host: HOST", *["X: " + "x" * 8000] * 5), 431),
    "connection": (lines("Host: HOST", "Connection: " + "a, " * 100 + "a"),
                   400),
    "names": (lines("Host: HOST", *[f"X{n}: 1" for n in range(3000)]), 431),
}

GROUPS = {"framing": FRAMING, "lines": LINES, "targets": TARGETS,
          "hosts": HOSTS, "bombs": BOMBS}


def fill(text, both):
    schemes = ("https", "http") if both.is_tls else ("http", "https")
    for word, value in (("HOST", both.host()), ("NAME", GOOD),
                        ("SCHEME", schemes[0]), ("OTHER", schemes[1])):
        text = text.replace(word, value)
    return text.encode("latin-1")


@cases.each([f"{group}_{scheme}" for group in GROUPS
             for scheme in ("tls", "plain")])
def shapes(name):
    """Refused with the right status, hung up on, recorded once; the origin,
    with whom there is a kept connection, hears nothing of it."""
    group, scheme = name.rsplit("_", 1)
    texts = dict(GROUPS[group])
    if scheme == "plain":
        texts.pop("preface", None)      # HTTP/2 it is: h2_clear.py
    with pair(tls=scheme == "tls") as both, both.open() as first:
        assert first.ask(both.get()).body == b"ok"
        before = both.origin.got()
        count = 1
        for shape, (text, status) in texts.items():
            for behind in (b"", both.get("/smuggled")):
                with both.open() as wire:
                    if behind:
                        # As second request of a connection, and with a
                        # third behind it.
                        assert wire.ask(both.get()).body == b"ok"
                        before, count = both.origin.got(), count + 1
                    wire.send(fill(text, both) + behind)
                    check_refusal(shape, wire, status, shape in NOT_HTTP
                                  and not behind and scheme == "plain")
                    count += 1
            assert both.origin.got() == before, f"{shape}: it got through"
        ends = (*FINAL, "connection_refused")
        until(f"{count} records", lambda: sum(
            r["kind"] in ends for r in both.gate.records()) >= count)
        records = [r for r in both.gate.verified() if r["kind"] in ends]
        bad = [r for r in records if r["reason"] == "bad_request"]
        assert len(records) == count, f"{len(records)}, not {count}"
        assert len(bad) == 2 * len(texts), len(bad)
        assert {r["kind"] for r in bad} <= {
            "request_denied", "connection_refused"}, bad


# In the clear, what does not begin like HTTP is not answered like HTTP.
NOT_HTTP = ("no_version", "version_case", "empty_line_first", "tabs")
# A flood that is cut may lose the answer, not the refusal.
FLOODS = ("endless_line", "megabyte")


def check_refusal(shape, wire, status, silent):
    try:
        got = wire.answer()
    except (Broken, ConnectionError):
        got = None
    if got is None and (silent or shape in FLOODS):
        return
    assert got is not None, f"{shape}: no answer"
    assert got.status == status, f"{shape}: {got}"
    assert wire.ended(), f"{shape}: it goes on"


# ---- chunks -----------------------------------------------------------------

CHUNKS = {
    "size_text": b"zz\r\nhello\r\n0\r\n\r\n",
    "size_sign": b"-5\r\nhello\r\n0\r\n\r\n",
    "size_hex": b"0x5\r\nhello\r\n0\r\n\r\n",
    "size_space": b"5 \r\nhello\r\n0\r\n\r\n",
    "size_empty": b"\r\nhello\r\n0\r\n\r\n",
    "size_huge": b"10000000000000005\r\nhello\r\n0\r\n\r\n",
    "size_underscore": b"5_\r\nhello\r\n0\r\n\r\n",
    "bare_lf": b"5\nhello\n0\n\n",
    "lf_in_extension": b"5;a\nhello\r\n0\r\n\r\n",
    "data_long": b"5\r\nhelloo\r\n0\r\n\r\n",
    "data_no_crlf": b"5\r\nhello0\r\n\r\n",
    "extension_long": b"5;" + b"x" * 1000 + b"\r\nhello\r\n0\r\n\r\n",
    "trailer_fold": b"0\r\nX: 1\r\n 2\r\n\r\n",
    "trailer_lf": b"0\r\nX: 1\n\r\n",
    "trailer_long": b"0\r\nX: " + b"x" * 10000 + b"\r\n\r\n",
}


@cases.case
def chunks():
    """A chunk that is none: 400, hung up on, and the origin never sees an
    end to the body."""
    with pair() as both:
        for name, data in CHUNKS.items():
            with both.open() as wire:
                head = both.chunked(f"/{name}")[:-5]
                wire.send(head + data + both.get("/smuggled"))
                got = wire.answer()
                assert got.status == 400, f"{name}: {got}"
                assert wire.ended(), name
            record = both.gate.final(path=f"/{name}")
            assert (record["kind"], record["reason"]) == (
                "request_failed", "bad_request"), record
        for connection in both.origin.connections:
            assert connection.ended.wait(WAIT_S)
        assert b"0\r\n\r\n" not in both.origin.got()
        assert b"smuggled" not in both.origin.got()


# ---- one after the other ----------------------------------------------------

@cases.each(["tls", "plain"])
def every_request(scheme):
    """The second request, pipelined or not, has its own verdict."""
    with pair(rule='path "/ok/**"', tls=scheme == "tls") as both:
        denied = [both.get("/no"), both.get("/ok/x").replace(
            b"GET", b"GET", 1).replace(b"/ok/x", b"/ok%2F..%2Fno")]
        for late in (False, True):
            with both.open() as wire:
                if late:
                    assert wire.ask(both.get("/ok/1")).status == 200
                    assert wire.ask(denied[0]).status == 403
                    assert wire.ask(both.get("/ok/2")).status == 200
                    assert wire.ask(both.get("/", name=EVIL)).status == 421
                else:
                    wire.send(both.get("/ok/1") + denied[0] +
                              both.get("/ok/2") + both.get("/", name=EVIL) +
                              both.get("/ok/3"))
                    assert [wire.answer().status for _ in range(5)] == [
                        200, 403, 200, 421, 200]
        with both.open() as wire:
            wire.send(both.get("/ok/1") + denied[1] + both.get("/ok/smug"))
            assert wire.answer().status == 200
            assert wire.answer().status in (400, 403)
        assert b"/no" not in both.origin.got()
        assert b"evil" not in both.origin.got()
        until("both records",
              lambda: len(both.gate.finals(host=EVIL)) == 2)
        for record in both.gate.finals(host=EVIL):
            assert record["reason"] == "name_mismatch", record


@cases.case
def smuggled_in_a_body():
    """A request in a body is a body: it arrives as one, and what is behind
    the body is a request that is judged."""
    with pair(rule='path "/ok"') as both:
        inner = both.get("/secret")
        with both.open() as wire:
            assert wire.ask(both.post("/ok", inner)).status == 200
            assert wire.ask(both.chunked("/ok", inner)).status == 200
            # Too short a length: the rest is the next request.
            wire.send(both.post("/ok", b"") + inner)
            assert wire.answer().status == 200
            assert wire.answer().status == 403
            # Behind the last chunk.
            wire.send(both.chunked("/ok", b"x") + inner)
            assert wire.answer().status == 200
            assert wire.answer().status == 403
            # A length that a GET has, too.
            assert wire.ask(both.post("/ok", inner).replace(
                b"POST", b"GET", 1)).status == 200
        assert len(both.origin.connections) == 1
        got, heads = both.origin.got(), []
        while got:
            head, _, got = got.partition(b"\r\n\r\n")
            fields = fields_of(head)
            heads.append(head.split(b" ")[1])
            if b"transfer-encoding" in fields:
                _, _, got = got.partition(b"\r\n0\r\n\r\n")
            else:
                got = got[int(fields.get(b"content-length", 0)):]
        assert heads == [b"/ok"] * 5, heads
        until("both records",
              lambda: len(both.gate.finals(path="/secret")) == 2)


@cases.case
def fields_of_the_connection():
    """Overrides of the method, of the host, and invitations to speak
    something else do not reach the origin."""
    extra = ("X-HTTP-Method-Override: DELETE\r\nX-Kept: 1\r\n"
             "Connection: Upgrade, HTTP2-Settings, x-gone\r\n"
             "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n"
             "X-Gone: 1\r\nProxy-Connection: keep-alive\r\n"
             "Proxy-Authorization: Basic eDp5\r\nTE: trailers\r\n"
             "Keep-Alive: 300\r\n")
    with pair() as both, both.open() as wire:
        assert wire.ask(both.get("/", extra)).body == b"ok"
        head = both.origin.got()
        assert set(fields_of(head)) - {b""} == {
            b"host", b"x-kept", b"te", b"connection"}, head
        assert fields_of(head)[b"connection"] == b"TE", head
        for name in ("X-HTTP-Method", "X-Method-Override"):
            assert wire.ask(both.get("/", f"{name}: PUT\r\n")).status == 200
        assert b"PUT" not in both.origin.got()


UPGRADES = {
    "h2c": ("h2c", "Upgrade"),
    "h2c_case": ("H2C", "upgrade"),
    "h2": ("h2", "Upgrade"),
    "http2": ("HTTP/2.0", "Upgrade"),
    "http11": ("HTTP/1.1", "Upgrade"),
    "tls": ("TLS/1.3", "Upgrade"),
    "list": ("websocket, h2c", "Upgrade"),
    "not_listed": ("websocket", "notupgrade"),
    "listed_in_part": ("websocket", "x-upgrade"),
    "alone": ("websocket", "keep-alive"),
}


@cases.case
def upgrades():
    """To what would carry requests without a verdict, or what the client did
    not ask for properly: not passed on, and an origin that obliges all the
    same is not believed."""
    def serve(connection):
        head, _ = connection.request()
        connection.send(
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
            b"Upgrade: h2c\r\n\r\n" if b"/oblige" in head else answer())

    with pair(serve) as both:
        for name, (to, option) in UPGRADES.items():
            extra = f"Connection: {option}\r\nUpgrade: {to}\r\n"
            with both.open() as wire:
                got = wire.ask(both.get(f"/{name}", extra))
                assert got.body == b"ok", f"{name}: {got}"
            with both.open() as wire:
                got = wire.ask(both.get(f"/oblige/{name}", extra))
                assert got.status == 502, f"{name}: {got}"
        assert b"pgrade" not in both.origin.got(), both.origin.got()


# ---- paths ------------------------------------------------------------------

# A path, and what the origin gets: None for nothing.
PATHS = {
    "/pub/a": "/pub/a",
    "/pub/%61": "/pub/a",
    "/pub/%7e": "/pub/~",
    "/pub/a?b=/../c": "/pub/a?b=/../c",
    "/pub/%2f": "/pub/%2F",
    "/pub//a": "/pub//a",
    "/pub/a;x=1": "/pub/a;x=1",
    '/pub/"': "/pub/%22",
    "/pub/../no": None,
    "/pub/./a": None,
    "/pub/..": None,
    "/pub/%2e%2e/no": None,
    "/pub/%2E%2e%2Fno": None,
    "/pub/.%2e/no": None,
    "/pub/%252e%252e/no": None,
    "/pub/%25252e%25252e/no": None,
    "/pub/..;/no": None,
    "/pub/..;x=/../no": None,
    "/pub/;x=/../no": None,
    "/pub/..%2fno": None,
    "/pub/..%5cno": None,
    "/pub/..\\no": None,
    "/pub/\\..\\no": None,
    "/pub/%5c%2e%2e%5cno": None,
    "/pub/%00": None,
    "/pub/a%0d%0aX: 1": None,
    "/pub/%c0%ae%c0%ae/no": None,
    "/pub/%e0%80%ae/no": None,
    "/pub/%": None,
    "/pub/%2": None,
    "/pub/%zz": None,
    "/pub/%u002e": None,
    "/PUB/a": None,
    "/no/pub/a": None,
    "//pub/a": None,
    "/%2Fpub/a": None,
    "/pu%62/a": "/pub/a",
    "/pub;x/a": None,
    "/pub%2Fa": None,
    "/%70ub/..%2e/a": "/pub/.../a",
    "/pub/..%20/no": None,
    "/pub/%20../no": None,
    "/pub/..%3f/no": None,
    "/pub/%25%2532e%25%2532e/no": None,
    "/pub/%25252525": None,
    "/pub/%20%3f;x/+.": "/pub/%20%3F;x/+.",
    "/pub%20/a": None,
    "/pub%252Fa": None,
}


# Spellings of what is denied; some are refused before any rule is asked.
SECRETS = ["/secret", "/secret/", "/secret//", "//secret", "/secret%2f",
           "/secret/.", "/secret/%2e", "/secret.", "/secret%20", "/secret+",
           "/%20secret", "/secret/%20", "/secret;", "/secret;a=b/",
           "/secret%3b", "/secret%3fa", "/secret%23", "/secret%00",
           "/secret%09", "/secret\\", "/secret%5c", "/%73ecret",
           "/%2573ecret", "/%252573ecret", "/%25252573ecret",
           "/secret%253Ba%252f", "/;a/secret", "/Folded", "/FOLDED%20/"]


@cases.case
def denied_paths():
    """A deny means the path, in whatever spelling an origin takes it."""
    with pair(names=(), settings='deny path "/secret"\n'
              'deny path nocase "/folded"\ndefault allow') as both:
        for path in SECRETS:
            with both.open() as wire:
                got = wire.ask(both.get(path))
                assert got.status in (400, 403), f"{path}: {got}"
        assert not both.origin.connections
        for path in ("/SECRET", "/secrets", "/secret/a", "/x?/secret"):
            with both.open() as wire:
                assert wire.ask(both.get(path)).status == 200, path


@cases.case
def paths():
    """What is evaluated is what is recorded is what is sent."""
    with pair(rule='path "/pub/**"') as both:
        for path, want in PATHS.items():
            before = len(both.origin.got())
            records = len(both.gate.finals())
            with both.open() as wire:
                got = wire.ask(both.get(path))
            head = both.origin.got()[before:]
            sent = head.split(b" ")[1].decode() if head else None
            assert sent == want, f"{path} became {sent}"
            assert got.status == (200 if want else got.status), path
            assert want or got.status in (400, 403), f"{path}: {got}"
            until("its record", lambda: len(both.gate.finals()) > records)
            record = both.gate.finals()[-1]
            if want:
                assert record["request"]["path"] == want, record
        both.gate.verified()


@cases.case
def methods():
    """Methods are case-sensitive and pass as they are, if at all."""
    with pair(rule="method { GET, POST }") as both:
        for method, status in (("GET", 200), ("POST", 200), ("get", 403),
                               ("Get", 403), ("PUT", 403), ("GETX", 403),
                               ("POS", 403), ("PROPFIND", 403),
                               ("OPTIONS", 403), ("HEAD", 403)):
            with both.open() as wire:
                got = wire.ask(both.get().replace(b"GET", method.encode()),
                               method)
            assert got.status == status, f"{method}: {got}"
        assert both.origin.got().count(b"HTTP/1.1") == 2


@cases.case
def records_of_strange_bytes():
    """Bytes of every kind in fields and bodies: a line per record, the same
    number of lines, and no control character in the file."""
    every = bytes(range(256))
    with pair() as both, both.open() as wire:
        value = bytes(b for b in range(32, 256) if b != 127) + b"\t|"
        request = both.post("/x?" + "%0A%1B%00", every * 20).replace(
            b"\r\nContent", b"\r\nX-Odd: " + value + b"\r\nContent", 1)
        assert wire.ask(request).body == b"ok"
        record = both.gate.final(method="POST")
        text = both.gate.audit.read_bytes()
        assert not set(text) - {10} & set(range(32)), "a control character"
        assert b"\x7f" not in text and b"\xc2\x85" not in text
        both.gate.verified()
        preview = record["request"]["request_body"]["preview"]
        assert preview.startswith("\0\1\2") and len(preview) == 4096, preview


# ---- room and time ----------------------------------------------------------

@cases.case
def slow_head():
    """A head that comes byte by byte has its time and no more, the first
    and the second, also inside of a TLS record."""
    with pair(more="timeout head 1s") as both:
        for scheme in ("tls", "plain"):
            for second in (False, True):
                both.is_tls = scheme == "tls"
                with both.open() as wire:
                    if second and both.is_tls:
                        assert wire.ask(both.get()).status == 200
                    drip(wire, both.get("/slow"))
        with both.gate.plain() as wire:
            conceal(wire, both)
        assert b"/slow" not in both.origin.got()
        until("their records", lambda: sum(
            r["reason"] == "bad_request" for r in both.gate.finals()) == 5)


def drip(wire, data, answered=True):
    """Until the gate has had enough."""
    begin = time.monotonic()
    for byte in data[:-1]:
        if not wire.send(bytes([byte])):
            break
        wire.sock.settimeout(0.2)
        try:
            if not wire.more() or wire.data:
                break
        except TimeoutError:
            pass
        except Broken:
            break
        assert time.monotonic() - begin < WAIT_S, "it is borne for ever"
    wire.sock.settimeout(WAIT_S)
    assert time.monotonic() - begin > 0.5, "it has no time at all"
    if answered and wire.data:
        assert wire.answer().status == 408


def conceal(wire, both):
    """A record with a whole request in it, its bytes one by one."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    secure = both.gate.context().wrap_bio(incoming, outgoing,
                                          server_hostname=GOOD)
    while True:
        try:
            secure.do_handshake()
            break
        except ssl.SSLWantReadError:
            wire.sock.sendall(outgoing.read())
            incoming.write(wire.sock.recv(65536))
    wire.sock.sendall(outgoing.read())
    secure.write(both.get("/slow"))
    drip(Ticketless(wire), outgoing.read() + b"x", answered=False)


class Ticketless:
    """A wire on which what comes before the end does not count."""

    def __init__(self, wire):
        self.sock, self.wire, self.data = wire.sock, wire, b""
        self.send = wire.send

    def more(self):
        return self.wire.more()


@cases.case
def half_open():
    """Half a hello, and none: both are gone after a while."""
    with pair(more="timeout handshake 1s") as both:
        with both.gate.plain() as half, both.gate.plain() as silent:
            half.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
            assert half.ended() and silent.ended()
        until("the record of the one that spoke", lambda: [
            r for r in both.gate.records()
            if r["kind"] == "connection_refused"])
        with both.open() as wire:
            assert wire.ask(both.get()).body == b"ok"


@cases.case
def crowd():
    """Far more connections than are allowed, all idle: those that have one
    keep it, memory is bounded, another session does not notice."""
    count = 400 if SANITIZED else 2000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, count + 500), hard))
    held = []
    with StandinOrigin() as origin:
        host = f"{GOOD}:{origin.port}"
        rules = f'allow host "{GOOD}" port {origin.port}'
        gate = Gate(rules, authority().cert, "limit connections 50")
        gate.conf.write_text(gate.conf.read_text() + (
            'session "other" { listen on 127.0.0.1 port '
            f'{gate.port(15002)} policy "p" }}\n'))
        try:
            gate.start()
            with gate.plain() as first, \
                    gate.plain(port=gate.port(15002)) as other:
                assert first.ask(get("/1", host)).body == b"ok"
                for _ in range(count):
                    held.append(gate.plain())
                begin = time.monotonic()
                assert other.ask(get("/2", host)).body == b"ok"
                assert time.monotonic() - begin < 5, "the other waits"
                assert first.ask(get("/3", host)).body == b"ok"
                until("all but 49 are refused", lambda: sum(
                    r.get("reason") == "quota" for r in gate.records()) ==
                    count - 49)
                assert gate.memory("VmRSS") < 32 << 10
                for wire in held:
                    wire.close()
                until("there is room again", lambda: served(gate, host))
            gate.verified()
        finally:
            gate.end()
            for wire in held:
                wire.close()
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def served(gate, host):
    with gate.plain() as wire:
        try:
            return wire.ask(get("/4", host)).status == 200
        except (Broken, ConnectionError):
            return False


@cases.case
def idle_after_tls():
    """Connections that have shaken hands and then say nothing go away."""
    with pair(more="timeout idle 1s") as both:
        with both.open() as wire, both.open() as used:
            assert used.ask(both.get()).body == b"ok"
            assert wire.rest() == b"" and used.rest() == b"", "not a clean end"


@cases.case
def unread_answer():
    """One who does not read his answer does not hold it for ever."""
    with pair(lambda c: (c.request(), c.send(answer(bytes(1 << 24)))),
              more="timeout idle 1s") as both, both.open() as wire:
        wire.send(both.get("/large"))
        record = both.gate.final(path="/large")
        assert (record["kind"], record["reason"]) == (
            "request_failed", "stream_broken: idle"), record


cases.main()
