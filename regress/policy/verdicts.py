#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""policyd alone, with us for its parent, engines, dialer and recorder: what
it answers to questions, whom it grants a connection, and what it makes of an
engine that asks what a sound one would not.
"""

import os
import pathlib
import sys

sys.dont_write_bytecode = True
TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
import policydlib  # noqa: E402
from case import Cases  # noqa: E402
from policydlib import (KIND, NO_LIMIT, RECORD, SCOPE, UNKNOWN,  # noqa: E402
                        URL, VERDICT, part, rule, same, short)
from children import CHILD_FD  # noqa: E402

cases = Cases()


OPEN = [
    rule("ALLOW", ["a.example.com"]),
    rule("DENY", ["no.example.com"]),
    rule("ALLOW", ["b.example.com"], to_private=1, body=1024,
         conditions=[("COND_NET", "10.0.0.0/8"), ("COND_NET", "fd00::/8")]),
    rule("ALLOW", ["m.example.com"],
         conditions=[("COND_METHOD", "GET")]),
    rule("DECIDE", ["ask.example.com"],
         conditions=[("COND_DECIDER", "d")]),
    rule("PASS", ["pass.example.com"]),
]
CLOSED = [rule("DENY", ["a.example.com"])]


def Policyd(policies=None, sessions=None):
    return policydlib.Policyd(policies or {"open": OPEN, "closed": CLOSED},
                              sessions or {"s1": "open", "s2": "closed"})


@cases.case
def verdicts():
    with Policyd() as policyd:
        engine = policyd.load().engine()
        for host, want in {
                "a.example.com": ("allow", 0, ""),
                "no.example.com": ("deny", 1, "matched_deny_rule"),
                "b.example.com": ("allow", 2, ""),
                "m.example.com": ("allow", 3, ""),
                "pass.example.com": ("allow", 5, ""),
                "other.example.com": ("deny", None, "default_deny")}.items():
            same(short(engine.verdict(host)), want)


@cases.case
def fields():
    with Policyd() as policyd:
        engine = policyd.load().engine()
        names = ("scope", "rule_kind", "generation", "body")
        once, host = SCOPE["VERDICT_ONCE"], SCOPE["VERDICT_HOST"]
        same(part(engine.verdict("a.example.com", id=UNKNOWN), *names),
             (host, KIND["RULE_ALLOW"], 1, NO_LIMIT))
        same(part(engine.verdict("b.example.com"), *names),
             (host, KIND["RULE_ALLOW"], 1, 1024))
        same(part(engine.verdict("m.example.com"), *names),
             (once, KIND["RULE_ALLOW"], 1, NO_LIMIT))
        same(part(engine.verdict("x.example.com"), *names),
             (host, KIND["RULE_DENY"], 1, 0))


@cases.case
def connections():
    with Policyd() as policyd:
        engine = policyd.load().engine()
        for host, port, want in [
                ("pass.example.com", 443, ("allow", 5, "")),
                ("pass.example.com", 80, ("deny", None, "default_deny")),
                ("a.example.com", 443, ("look", None, "")),
                ("a.example.com", 22, ("deny", None, "default_deny")),
                ("no.example.com", 22, ("deny", 1, "matched_deny_rule"))]:
            same(short(engine.connection(host, port)), want)


@cases.case
def own_session():
    """Whose question it is decides by whose rules."""
    with Policyd() as policyd:
        policyd.load()
        one, two = policyd.engine("s1", 7), policyd.engine("s2", 8)
        one.ask("a.example.com")
        two.ask("a.example.com")
        same(short(two.told()), ("deny", 0, "matched_deny_rule"))
        same(short(one.told()), ("allow", 0, ""))


@cases.case
def grants():
    """For what is allowed and asks for one, and for nothing else."""
    with Policyd() as policyd:
        engine = policyd.load().engine(instance=9)
        engine.verdict("a.example.com")
        engine.verdict("no.example.com", dial=1)
        engine.ask("ask.example.com", dial=2)
        engine.verdict("x.example.com", dial=3)
        engine.connection("a.example.com", 443, dial=4)
        engine.verdict("a.example.com", dial=5)
        same(policyd.dialer.receive("GRANT"),
             {"instance": 9, "dial": 5, "port": 443, "to_private": 0,
              "host": b"a.example.com", "nets": b""})
        engine.verdict("b.example.com", dial=UNKNOWN)
        same(policyd.dialer.receive("GRANT"),
             {"instance": 9, "dial": UNKNOWN, "port": 443, "to_private": 1,
              "host": b"b.example.com", "nets": b"10.0.0.0/8 fd00::/8"})
        engine.connection("pass.example.com", 443, dial=6)
        same(policyd.dialer.receive("GRANT")["dial"], 6)


BAD = {
    "about": ({"about": 2}, "about 2"),
    "scheme": ({"scheme": 3}, "scheme 3"),
    "request_unread": ({"scheme": URL["URL_TCP"]}, "about 1, scheme 2"),
    "connection_read": ({"about": 0}, "about 0, scheme 1"),
    "connection_method": ({"about": 0, "scheme": 2, "path": ""},
                          "with a method or path"),
    "connection_path": ({"about": 0, "scheme": 2, "method": ""},
                        "with a method or path"),
    "port": ({"port": 0}, "port 0"),
    "host_empty": ({"host": ""}, "host that is not canonical"),
    "host_case": ({"host": "A.example.com"}, "host that is not canonical"),
    "host_dot": ({"host": "a.example.com."}, "host that is not canonical"),
    "host_number": ({"host": "0x7f.1"}, "host that is not canonical"),
    "host_address": ({"host": "2001:DB8::1"}, "host that is not canonical"),
    "host_pattern": ({"host": "*.example.com"}, "host that is not canonical"),
    "host_brackets": ({"host": "[::1]"}, "host that is not canonical"),
    "method_empty": ({"method": ""}, "method that is no token"),
    "method_space": ({"method": "GET x"}, "method that is no token"),
    "method_line": ({"method": "GET\r\n"}, "method that is no token"),
    "path_empty": ({"path": ""}, "path that is not canonical"),
    "path_relative": ({"path": "x"}, "path that is not canonical"),
    "path_dots": ({"path": "/v1/../x"}, "path that is not canonical"),
    "path_escape": ({"path": "/%61"}, "path that is not canonical"),
    "path_lower": ({"path": "/%2f"}, "path that is not canonical"),
    "path_raw": ({"path": b"/\xff"}, "path that is not canonical"),
    "path_long": ({"path": "/" + "x" * 8192}, "path that is not canonical"),
    "asterisk": ({"path": "*"}, "path that is not canonical"),
}


@cases.each(BAD)
def engine_bad(name):
    """The one is lost; the other, and the next, are served."""
    values, why = BAD[name]
    with Policyd() as policyd:
        engine = policyd.load().engine()
        other = policyd.engine("s2", 8)
        engine.ask(**{"host": "a.example.com", **values})
        engine.bad("^ASK: .*" + why)
        same(short(other.verdict("x.example.com"))[0], "deny")
        again = policyd.engine("s1", 9)
        same(short(again.verdict("a.example.com")), ("allow", 0, ""))


@cases.case
def not_bad():
    """The edges of what is sound."""
    with Policyd() as policyd:
        engine = policyd.load().engine()
        for values in [{"method": "OPTIONS", "path": "*"},
                       {"method": "X-'!#$"}, {"path": "/" + "x" * 8191},
                       {"path": "/%2F//x;y?%zz"}, {"port": 65535},
                       {"host": "2001:db8::1"}, {"host": "_x.example.com"},
                       {"method": "x" * 32}, {"length": 0}]:
            engine.verdict(**{"host": "a.example.com", **values})


NO_HASH = {"empty": "", "short": "0" * 63, "upper": "A" * 64,
           "words": "CA\n" + "0" * 61}


@cases.each(NO_HASH)
def no_fingerprint(name):
    """What an engine calls its CA is a hash, or nothing of it is kept."""
    with Policyd() as policyd:
        engine = policyd.load().engine()
        same(policyd.recorder.receive("RECORD_SESSION")["ca"], b"")
        engine.channel.send("ENGINE_CA", sha256=NO_HASH[name])
        engine.bad("a CA without a fingerprint")
        policyd.recorder.receive("RECORD_SESSION")
        again = policyd.engine("s1", 9, hello=False)
        again.channel.send("ENGINE_CA", sha256="0" * 64)
        again.channel.send("ENGINE_HELLO")
        same(policyd.recorder.receive("RECORD_SESSION")["ca"], b"0" * 64)


@cases.case
def before_hello():
    with Policyd() as policyd:
        engine = policyd.load().engine(hello=False)
        engine.ask("a.example.com")
        engine.bad("before hello")


@cases.case
def before_commit():
    """An engine that is early finds everything closed."""
    with Policyd() as policyd:
        policyd.prepare()
        policyd.receive("CONF_ACK")
        engine = policyd.engine()
        answer = engine.verdict("a.example.com", dial=1)
        same(short(answer), ("deny", None, "default_deny"))
        same(part(answer, "scope", "generation"),
             (SCOPE["VERDICT_ONCE"], 0))
        policyd.commit()
        same(short(engine.verdict("a.example.com", dial=2)),
             ("allow", 0, ""))
        same(policyd.dialer.receive("GRANT")["dial"], 2)


@cases.case
def reload():
    """From the commit on, and not before, the new rules decide."""
    with Policyd() as policyd:
        engine = policyd.load().engine()
        names = ("verdict", "generation")
        allow, deny = VERDICT["VERDICT_ALLOW"], VERDICT["VERDICT_DENY"]
        same(part(engine.verdict("a.example.com"), *names), (allow, 1))
        policyd.policies["open"] = CLOSED
        policyd.prepare()
        policyd.receive("CONF_ACK")
        same(part(engine.verdict("a.example.com"), *names), (allow, 1))
        policyd.commit()
        same(part(engine.verdict("a.example.com"), *names), (deny, 2))
        policyd.policies["open"] = OPEN
        policyd.prepare()
        policyd.receive("CONF_ACK")
        policyd.send("CONF_ABORT", generation=policyd.generation)
        same(part(engine.verdict("a.example.com"), *names), (deny, 2))
        policyd.sessions["s1"] = "other"
        policyd.policies["other"] = OPEN
        policyd.load()
        same(part(engine.verdict("a.example.com"), *names), (allow, 4))


@cases.case
def reload_removes():
    """A session that is gone has no engine, hence no questions."""
    with Policyd() as policyd:
        engine = policyd.load().engine()
        other = policyd.engine("s2", 8)
        del policyd.sessions["s1"]
        policyd.load()
        engine.channel.wait_closed()
        same(short(other.verdict("a.example.com"))[0], "deny")


@cases.case
def prefixes_too_long():
    """Cut off, a prefix would be another one."""
    nets = [("COND_NET", f"fd00:{i:x}::/32") for i in range(4096, 4196)]
    rules = [rule("ALLOW", ["a.example.com"], conditions=nets)]
    with Policyd({"open": rules}, {"s1": "open"}) as policyd:
        policyd.prepare()
        why = policyd.receive("CONF_NAK")["why"].decode()
        same(why, "policy open: rule 0 opens too many prefixes")


@cases.case
def dialer_is_slow():
    """Who asks for more than the dialer takes is denied; policyd lives."""
    host = "x" * 60 + "." + "y" * 60 + ".a.example.com"
    rules = [rule("ALLOW", ["**.a.example.com"])]
    with Policyd({"open": rules}, {"s1": "open"}) as policyd:
        engine = policyd.load().engine()
        granted = 0
        while True:
            verdict, _, reason = short(engine.verdict(host, dial=granted + 1))
            if verdict != "allow":
                break
            granted += 1
            assert granted < 100000, "the queue has no end"
        same(reason, "upstream_unreachable: too many connections are being "
             "made")
        same(short(engine.verdict(host))[0], "allow")
        for n in range(granted):
            same(policyd.dialer.receive("GRANT")["dial"], n + 1)
        same(short(engine.verdict(host, dial=UNKNOWN))[0], "allow")
        same(policyd.dialer.receive("GRANT")["dial"], UNKNOWN)


@cases.case
def stopped():
    """The last word on each running session is recorded."""
    with Policyd() as policyd:
        engine = policyd.load().engine("s1", 7)
        policyd.engine("s2", 8, hello=False)
        engine.verdict("a.example.com")
        started = policyd.recorder.receive("RECORD_SESSION")
        same(started["kind"], RECORD["RECORD_SESSION_STARTED"])
        policyd.stop()
        ended = policyd.recorder.receive("RECORD_SESSION")
        same(part(ended, "kind", "session", "policy", "reason"),
             (RECORD["RECORD_SESSION_ENDED"], b"s1", b"open", b"stopped"))
        try:
            extra = policyd.recorder.next()
        except Exception:
            return
        raise AssertionError(f"and then {extra}")


# Nothing of ours may be in the way of a child's descriptor.
while os.open(os.devnull, os.O_RDWR) < CHILD_FD:
    pass
cases.main()
