#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""A credential goes where it is sent, and nowhere else: not into records, not
into questions, not before a person, not into a log."""

import gzip
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases  # noqa: E402
from daemon import until  # noqa: E402
from gate import GOOD, pair  # noqa: E402
from judge import Judge, judged  # noqa: E402
from standin_origin import always, answer  # noqa: E402

cases = Cases()

SECRET = "s3cret"
JSON = "Content-Type: application/json\r\n"
FORM = "Content-Type: application/x-www-form-urlencoded\r\n"
MULTIPART = "Content-Type: multipart/form-data; boundary=b\r\n"


def hidden(both, *texts):
    """It has arrived, and is found nowhere here."""
    assert SECRET.encode() in both.origin.got(), "it did not arrive"
    for text in (both.gate.audit.read_text(), both.gate.log(), *texts):
        where = str(text).find(SECRET)
        assert where == -1, str(text)[max(0, where - 200):where + 20]


@cases.case
def questions():
    """Also those that nobody answers, and what is kept."""
    path = f"/a?access_token={SECRET}&q=1"
    shown = "/a?access_token=[redacted]&q=1"
    with Judge() as judge, \
            judged(f'decide "judge" host "{GOOD}" cache request',
                   "log level debug\n" + judge.conf()) as both:
        assert both.get(path) == 200
        request = judge.asked(1)[0]["request"]
        assert (request["path"], request["path_redacted"]) == (
            shown, len(SECRET)), request
        both.gate.final(path=shown)
        kept = both.gate.ask("cache.list")
        assert kept["cache"][0]["path"] == shown, kept
        judge.says(b"no answer")
        assert both.get(path + "&more=1") == 403
        both.gate.final(path=shown + "&more=1")
        hidden(both, judge.questions, kept)


@cases.case
def people():
    with judged(f'decide "person" host "{GOOD}" timeout 500ms',
                'decider "person" operator\n') as both:
        before = both.gate.ask("pending.list")["version"]
        with both.open() as wire:
            # Not allowed: what arrives comes by another way.
            wire.send(super(type(both), both).get(f"/a?key={SECRET}"))
            waiting = both.gate.ask("pending.wait", version=before)
            request = waiting["pending"][0]["request"]
            assert request["path"] == "/a?key=[redacted]", request
            assert wire.answer().status == 403
        both.gate.final(path="/a?key=[redacted]")
        assert SECRET not in both.gate.audit.read_text() + both.gate.log()


HEADERS = "".join(f"{name}: {SECRET}\r\n" for name in (
    "X-Goog-Api-Key", "X-Vault-Token", "DD-API-KEY", "DD-APPLICATION-KEY",
    "X-Amz-Security-Token", "Ocp-Apim-Subscription-Key", "X-Figma-Token",
    "Stripe-Signature", "apikey", "Cf-Access-Jwt-Assertion"))
ANSWER = answer(json.dumps({"refresh_token": SECRET, "id": 7}).encode(),
                extra=f"{JSON}Location: https://u:{SECRET}@x/cb?code={SECRET}"
                f"\r\nSet-Cookie: a={SECRET}\r\n".encode())
PARTS = (f'--b\r\nContent-Disposition: form-data; name="password"\r\n\r\n'
         f'{SECRET}\r\n--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n'
         'b\r\n--b--\r\n')
BODIES = {
    "json": (JSON, '{"user":"me","pass\\u0077ord":"%s"}' % SECRET,
             '{"user":"me","pass\\u0077ord":"[redacted]"}'),
    "nested": (JSON, '{"arguments":"{\\"api_key\\":\\"%s\\"}"}' % SECRET,
               '{"arguments":"{\\"api_key\\":\\"[redacted]\\"}"}'),
    "form": (FORM, f"user=me&client_secret={SECRET}&mine={SECRET}",
             "user=me&client_secret=[redacted]&mine=[redacted]"),
    "curl": (FORM, '{"mine": ["%s"]}' % SECRET, '{"mine": "[redacted]"}'),
    "multipart": (MULTIPART, PARTS, PARTS.replace(SECRET, "[redacted]")),
    "cut": (JSON, '{"user":"me","token":"%s' % (SECRET * 1000),
            '{"user":"me","token":"[redacted]"'),
    "shown": (JSON, '{"token":"public","secret":"%s"}' % SECRET,
              '{"token":"public","secret":"[redacted]"}'),
}


@cases.each(sorted(BODIES))
def records(name):
    fields, body, shown = BODIES[name]
    settings = "capture redact field mine\n"
    if name == "shown":
        settings += 'capture show field "token"\n'
    with pair(always(ANSWER), settings=settings) as both, \
            both.open() as wire:
        assert wire.ask(both.post(f"/{name}?sig={SECRET}", body.encode(),
                                  fields + HEADERS)).status == 200
        request = both.gate.final(path=f"/{name}?sig=[redacted]")["request"]
        assert request["request_body"]["preview"] == shown, request
        got = request["response_body"]
        assert (json.loads(got["preview"]), got["truncated"]) == (
            {"refresh_token": "[redacted]", "id": 7}, False), got
        assert request["response_headers"]["Location"] == \
            "https://[redacted]@x/cb?code=[redacted]", request
        hidden(both)


@cases.case
def withheld():
    """A body that is compressed cannot be looked into."""
    body = gzip.compress(json.dumps({"password": SECRET}).encode())
    says = answer(body, extra=f"{JSON}Content-Encoding: gzip\r\n".encode())
    with pair(always(says), settings="capture hash") as both, \
            both.open() as wire:
        got = wire.ask(both.get("/z"))
        assert got.body == body, got
        kept = both.gate.final(path="/z")["request"]["response_body"]
        assert (kept["preview"], kept["truncated"], kept["withheld"],
                kept["bytes"]) == (None, True, True, len(body)), kept
        assert kept["sha256"] is not None, kept
        assert "withheld" not in until(
            "the record", lambda: both.gate.finals(path="/z"))[0]["request"][
                "request_body"]


cases.main()
