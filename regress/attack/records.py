#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""The battery, part H: what must not be in a record, in a log or with a
follower, however the request that carried it ended; and requests that want
longer records than there can be.  Part K: what nobody sees in one."""

import hashlib
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases  # noqa: E402
from daemon import free_port, until  # noqa: E402
from gate import EVIL, FINAL, GOOD, Broken, get, pair  # noqa: E402
from standin_origin import always, answer  # noqa: E402

cases = Cases()

SECRET = "sesame-%s-emases"
FIELDS = ("Authorization", "AUTHORIZATION", "Proxy-Authorization", "Cookie",
          "X-Api-Key", "Api-Key", "X-Auth-Token", "X-Amz-Security-Token",
          "Private-Token", "X-Tenant")
QUERIES = ("token=%s", "a=b&TOKEN=%s", "%%74oken=%s", "token=x&token=%s",
           "a;token=%s", "token=%s%%23x", "?token=%s", "token=x;%s",
           "token[]=%s", "token=%s&sig=%s")
REDACT = "capture redact { header x-tenant, query token, query sig }"


class Secrets:
    """Each is another, so that one that is found tells where it was."""

    def __init__(self):
        self.count = 0

    def new(self):
        self.count += 1
        return SECRET % self.count

    def fields(self):
        return "".join(f"{n}: Bearer {self.new()}\r\n" for n in FIELDS)

    def queries(self):
        for text in QUERIES:
            while "%s" in text:
                text = text.replace("%s", self.new(), 1)
            yield text.replace("%%", "%")


def oblige(connection):
    """An origin with secrets of its own."""
    while True:
        head, _ = connection.request()
        if b"/broken" in head:
            connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
            return
        connection.send(answer(extra=(
            f"Set-Cookie: a={SECRET % 'origin'}\r\n"
            f"set-cookie: b={SECRET % 'origin'}\r\n").encode()))


def attempts(both, secrets):
    """Requests that end in every way, each with secrets where they may be."""
    free = free_port()
    for query in secrets.queries():
        for path, name in (("/ok", both.host()), ("/no", both.host()),
                           ("/ok", both.host(EVIL)), ("/broken", both.host()),
                           ("/ok", f"{GOOD}:{free}"), ("/ok/..", both.host())):
            yield get(f"{path}?{query}", name, secrets.fields())
    bad = secrets.fields()
    for spoilt in ("Content-Length: x\r\n", "Transfer-Encoding: y\r\n",
                   "Host: other\r\n", "X : 1\r\n", "Expect: z\r\n",
                   "X: " + "x" * 40000 + "\r\n"):
        yield get(f"/ok?token={secrets.new()}", both.host(), bad + spoilt)
    for start in (f"GET http://user:{secrets.new()}@{GOOD}/ HTTP/1.1",
                  f"GET /ok?token={secrets.new()} HTTP/9.9",
                  f"TRACE /ok?token={secrets.new()} HTTP/1.1",
                  f"CONNECT user:{secrets.new()}@x:1 HTTP/1.1",
                  f"GET /ok?token={secrets.new()}{'y' * 9000} HTTP/1.1",
                  f"GET /ok\\?token={secrets.new()} HTTP/1.1"):
        yield f"{start}\r\nHost: {both.host()}\r\n{bad}\r\n".encode()


def ask(both, request):
    with both.open() as wire:
        try:
            wire.ask(request)
        except (Broken, ConnectionError, ValueError):
            pass


@cases.each(["plain", "tls"])
def secrets_of_requests(scheme):
    """In fields and in parameters, in what is allowed, denied, refused, broken
    off by either side and not even a request."""
    secrets = Secrets()
    with pair(oblige, tls=scheme == "tls", rule='path { "/ok", "/broken" }',
              settings=REDACT, names=(GOOD, EVIL)) as both, \
            both.gate.client() as follower:
        gate = both.gate
        assert gate.ask("log.level", level="debug")["ok"]
        assert follower.ask("events.follow")["ok"]
        count = 0
        for request in attempts(both, secrets):
            ask(both, request)
            count += 1
        ends = (*FINAL, "connection_refused")
        until(f"{count} ends", lambda: sum(
            r["kind"] in ends for r in gate.records()) >= count)
        gate.ask("status")
        follower.sock.settimeout(1)
        seen = b""
        try:
            while data := follower.sock.recv(1 << 20):
                seen += data
        except TimeoutError:
            pass
        for where, text in (("record", gate.audit.read_text()),
                            ("log", gate.log()),
                            ("follower", seen.decode(errors="replace"))):
            found = set(re.findall("sesame-[^\"]{0,40}", text))
            assert not found, f"in a {where}: {context(text, found)}"
        assert b"[redacted]" in seen


def context(text, found):
    at = text.find(min(found))
    return f"{len(found)}, as {text[max(0, at - 200):at + 40]!r}"


# A byte that is no text is written as six.
ODD = b"\xff" * 60000
HEAD = b"".join(b"X-%d: %s\r\n" % (i, ODD[:7000]) for i in range(4))
LINE_MAX = 256 * 1024


def shown(text):
    """How many odd bytes a text in a record stands for, and no others."""
    assert set(text) <= {"\uefff"}, f"{text[:40]!a}"
    return len(text)


def check_heads(request):
    for side in ("request", "response"):
        assert request[f"{side}_headers_truncated"] is True, side
        fields = request[f"{side}_headers"]
        assert shown(fields["X-0"]) == 7000, side
        assert "X-3" not in fields, side
        body = request[f"{side}_body"]
        assert shown(body["preview"]) > 3000 and body["bytes"] == 5000, body


def check_bodies(request):
    assert "request_headers_truncated" not in request, list(request)
    assert request["request_headers"]["Content-Length"] == "60000"
    for side in ("request", "response"):
        body = request[f"{side}_body"]
        assert shown(body["preview"]) > 20000, shown(body["preview"])
        assert body["truncated"] is True and body["bytes"] == 60000
        assert body["sha256"] == hashlib.sha256(ODD).hexdigest()


@cases.each(["heads", "bodies"])
def longer_than_a_line(what):
    """What an agent and an origin say cannot end the recorder, nor go without
    a record: it has less of it, for the file as for those who follow."""
    extra, body, check = (HEAD, ODD[:5000], check_heads) \
        if what == "heads" else (b"", ODD, check_bodies)
    with pair(always(answer(body, extra=extra)),
              settings="capture body 64K hash") as both:
        gate = both.gate
        events, seen = gate.spawn_ctl("-j", "events"), []
        try:
            until("a follower", lambda:
                  gate.ask("status")["audit"]["followers"] == 1)
            for path in ("/1", "/2"):
                with both.open() as wire:
                    assert wire.ask(both.post(path, body, "@").replace(
                        b"@", extra, 1)).status == 200
                check(gate.final(path=path)["request"])
                seen += [json.loads(events.stdout.readline())
                         for _ in range(3)]
        finally:
            events.kill()
            events.communicate()
        assert seen == gate.verified()[-6:]
        longest = max(map(len, gate.audit.read_bytes().splitlines(True)))
        assert LINE_MAX / 2 < longest <= LINE_MAX, longest
        done = gate.ctl("verify", str(gate.audit))
        assert done.returncode == 0, done.stdout + done.stderr
        assert gate.stop() == 0
        # It goes on from a line of that length.
        gate.start()
        assert len(gate.verified()) > len(seen) + 1


UNSEEN = "".join(map(chr, (0x200b, 0xfeff, 0x2060, 0xad, 0x202e, 0x2066,
                           0x2028, 0xfe0f, 0x3164, 0xe0041, 0xe007f,
                           0xe0100, 0x10fffd)))


@cases.case
def unseen():
    """What a person does not see, in fields, bodies and paths of both sides:
    no record shows it raw, and none has lost it."""
    said = f"a{UNSEEN}b"
    field = f"X-Said: {said}\r\n".encode()
    with pair(always(answer(said.encode(), extra=field)),
              settings="capture body 1K") as both:
        with both.open() as wire:
            assert wire.ask(both.post("/1", said.encode(), "@").replace(
                b"@", field, 1)).status == 200
        ask(both, both.get(f"/{UNSEEN}"))
        request = both.gate.final(path="/1")["request"]
        for side in ("request", "response"):
            assert request[f"{side}_headers"]["X-Said"] == said, request
            assert request[f"{side}_body"]["preview"] == said, request
        raw = both.gate.audit.read_text()
        found = [f"U+{ord(c):04X}" for c in UNSEEN if c in raw]
        assert not found, f"raw in the audit file: {found}"


cases.main()
