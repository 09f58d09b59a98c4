#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""policyd, with us for deciderd and for those who ask: what is put to
deciders and in which words, what becomes of their answers and of those that
do not come, what is kept, and how much one session can take up.
"""

import json
import os
import pathlib
import select
import socket
import sys
import tempfile
import time

sys.dont_write_bytecode = True
TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from case import Cases  # noqa: E402
from daemon import until  # noqa: E402
from policydlib import (ANSWER, CACHE, DECIDER, NO_LIMIT, SCOPE,  # noqa: E402
                        URL, Client, Policyd, part, rule, same, short)
from children import CHILD_FD, Child  # noqa: E402

cases = Cases()

OFF = {"cache": CACHE["CACHE_OFF"]}
REQUEST = {"cache": CACHE["CACHE_REQUEST"]}
PERSON = ("person", {"kind": DECIDER["DECIDER_OPERATOR"], "concurrency": 0})
SESSIONS = {f"s{i}": "p" for i in range(1, 6)}
WEB = URL["URL_HTTP"]


def asks(*deciders, kind="DECIDE", hosts=("**",), metadata=(), **more):
    return rule(kind, list(hosts), messages=5, conditions=[
        ("COND_DECIDER", name) for name in deciders or ("d",)] + [
        ("COND_METADATA", name, value) for name, value in metadata], **more)


class Bench(Policyd):
    """All sessions have one policy of these rules."""

    def __init__(self, *rules, deciders=("d",), pending=64, **settings):
        super().__init__({"p": list(rules)}, dict(SESSIONS), deciders, pending)
        self.settings = settings
        self.load()

    def question(self):
        """The next that deciderd hears has to be one."""
        name, values = self.deciderd.next()
        same(name, "QUESTION")
        values["json"] = json.loads(values["document"])
        return values

    def host(self):
        """Answered with a yes: the host that it was about."""
        question = self.question()
        self.say(question, "ALLOW")
        return question["json"]["request"]["host"]

    def say(self, question, result, reason="", keep=1):
        self.deciderd.send("ANSWER", id=question["id"], keep=keep,
                           result=ANSWER["ANSWER_" + result], reason=reason)

    def asked(self, engine):
        """Is it a question that comes, or the engine's verdict?"""
        sock = self.deciderd.sock
        ready, _, _ = select.select([sock, engine.channel.sock], [], [], 20)
        assert ready, "neither"
        return sock in ready

    def dropped(self):
        name, values = self.deciderd.next()
        same(name, "QUESTION_DROP")
        return values["cookie"]

    def failure(self):
        return self.recorder.receive("RECORD_DECIDER")


@cases.case
def answers():
    """They are told as they are; the connection is the rule's to open."""
    with Bench(asks(to_private=1, body=1024)) as bench:
        engine = bench.engine(instance=9)
        engine.ask("a.example.com", dial=5)
        question = bench.question()
        same(question["decider"], b"d")
        assert 0 < question["timeout_ms"] <= 60000, question
        bench.say(question, "ALLOW", "fine")
        answer = engine.told()
        same(short(answer), ("allow", 0, "decider: fine"))
        same(part(answer, "scope", "body", "decider", "generation"),
             (SCOPE["VERDICT_ONCE"], 1024, b"d", 1))
        grant = bench.dialer.receive("GRANT")
        same(part(grant, "instance", "dial", "port", "to_private", "host"),
             (9, 5, 443, 1, b"a.example.com"))
        engine.ask("b.example.com", dial=6)
        bench.say(bench.question(), "DENY", "not\tthis\x7f one")
        same(short(engine.told()), ("deny", 0, "decider: not this  one"))
        engine.ask("c.example.com")
        bench.say(bench.question(), "DENY", "é" * 200)
        same(short(engine.told())[2], "decider: " + "é" * 50)
        engine.ask("d.example.com")
        bench.say(bench.question(), "DENY")
        same(short(engine.told())[2], "decider: denied")


@cases.case
def document():
    """The whole question, and nothing else."""
    with Bench(asks(metadata=[("tenant", "acme"), ("x", "rule")])) as bench:
        client = Client(bench)
        for i in range(7):
            client.ask("session.message", session_id="s1", role="user",
                       content=f"message {i}")
        client.ask("session.metadata", session_id="s1",
                   metadata={"x": "session", "y": "\"\n"})
        engine = bench.engine()
        engine.ask("a.example.com", method="PUT", path="/x?y=%20",
                   length=17)
        text = bench.question()["json"]
        messages = text["recent_messages"]
        same([m["content"] for m in messages],
             [f"message {i}" for i in range(2, 7)])
        for m in messages:
            same(set(m), {"role", "content", "at"})
            same(len(m["at"]), len("2026-01-02T03:04:05.678Z"))
        del text["recent_messages"]
        same(text, {
            "session_id": "s1",
            "request": {"scheme": "https", "host": "a.example.com",
                        "port": 443, "method": "PUT", "path": "/x?y=%20",
                        "body_bytes": 17},
            "metadata": {"tenant": "acme", "x": "rule", "y": "\"\n"}})
        engine.ask("b.example.com", length=NO_LIMIT)
        same(bench.question()["json"]["request"]["body_bytes"], None)


@cases.case
def connection():
    """There is no method and no path yet."""
    with Bench(asks(tcp=1)) as bench:
        engine = bench.engine()
        engine.ask("a.example.com", about=0, scheme=URL["URL_TCP"], port=22,
                   method="", path="")
        question = bench.question()
        same(question["json"]["request"],
             {"scheme": "tcp", "host": "a.example.com", "port": 22,
              "method": None, "path": None, "body_bytes": 0xffffffff})
        bench.say(question, "ALLOW")
        same(short(engine.told())[0], "allow")


@cases.case
def cut_is_marked():
    """What does not fit is said to be missing."""
    with Bench(asks()) as bench:
        client, engine = Client(bench), bench.engine()
        client.ask("session.message", session_id="s1", role="user",
                   content="x" * 4095 + "é")
        client.ask("session.message", session_id="s1", role="user",
                   content="y" * 4096)
        engine.ask("a.example.com", path="/" + "z" * 2047)
        text = bench.question()["json"]
        long, short_one = text["recent_messages"]
        same(long["content"], "x" * 4095)
        same(long["content_truncated"], True)
        assert "content_truncated" not in short_one
        assert "path_truncated" not in text["request"]
        engine.ask("b.example.com", path="/" + "z" * 2048)
        request = bench.question()["json"]["request"]
        same((request["path"], request["path_truncated"]),
             ("/" + "z" * 2047, True))


@cases.case
def secrets_are_hidden():
    """What records hide, no decider and no person sees; but how much."""
    long = "/?key=" + "k" * 4000 + "&a=" + "z" * 3000
    with Bench(asks("d", cache=CACHE["CACHE_REQUEST"])) as bench:
        bench.redacts = [dict(kind=1, name="x"), dict(kind=1, show=1,
                                                      name="code")]
        bench.load()
        client, engine = Client(bench), bench.engine()
        for path, want, hidden in (
                ("/?token=s3cret&x=s3cret&code=1&a=%20b",
                 "/?token=[redacted]&x=[redacted]&code=1&a=%20b", 12),
                ("/?%74oken=s3cret", "/?%74oken=[redacted]", 6),
                ("/?a=b&token=", "/?a=b&token=", None),
                (long, "/?key=[redacted]&a=" + "z" * 2029, 4000)):
            engine.ask("a.example.com", path=path)
            question = bench.question()
            request = question["json"]["request"]
            same((request["path"], request.get("path_redacted"),
                  request.get("path_truncated")),
                 (want, hidden, True if path is long else None))
            assert "s3cret" not in str(question["json"])
            bench.say(question, "ALLOW")
            same(short(engine.told())[0], "allow")
        kept = client.ask("cache.list")["cache"]
        same(len(kept), 4)
        assert "s3cret" not in str(kept) and "[redacted]" in str(kept), kept


@cases.case
def secrets_are_hidden_from_people():
    with Bench(asks("person"), deciders=[PERSON]) as bench:
        client, engine = Client(bench), bench.engine()
        version = client.ask("pending.list")["version"]
        client.send("pending.wait", version=version)
        engine.ask("a.com", path="/x?secret=s3cret")
        entry, = client.answer()["pending"]
        same(part(entry["request"], "path", "path_redacted"),
             ("/x?secret=[redacted]", 6))


@cases.case
def fits():
    """However the text is escaped: older messages go, and are counted."""
    with Bench(asks(metadata=[("k%d" % i, "\x01" * 100)
                              for i in range(10)])) as bench:
        client, engine = Client(bench), bench.engine()
        same(client.refused("session.metadata", session_id="s1",
                            metadata={"x": "\x01" * 1400}), "too_much")
        client.ask("session.metadata", session_id="s1",
                   metadata={"x": "\x01" * 1300})
        for i in range(5):
            client.ask("session.message", session_id="s1", role=f"r{i}",
                       content="\x01" * 4000)
        engine.ask("a.example.com", path="/" + "'" * 4000)
        question = bench.question()
        text = question["json"]
        same([m["role"] for m in text["recent_messages"]], ["r4"])
        same(text["messages_dropped"], 4)
        same(len(text["metadata"]), 11)
        assert len(question["document"]) <= 49152


@cases.case
def metadata_refused():
    """What would not fit into a question is no configuration."""
    with Bench() as bench:
        bench.policies["p"] = [asks(metadata=[
            (f"k{i}", "x" * 1000) for i in range(9)])]
        bench.prepare()
        why = bench.receive("CONF_NAK")["why"].decode()
        same(why, "policy p: rule 0 has more than 8192 bytes of metadata")


NO_DECIDER = {
    "unknown": (asks("x"), "asks x, which is no decider"),
    "none": (rule("DECIDE", ["**"]), "asks nobody"),
}


@cases.each(NO_DECIDER)
def decider_refused(name):
    refused, want = NO_DECIDER[name]
    with Bench() as bench:
        bench.policies["p"] = [refused]
        bench.prepare()
        why = bench.receive("CONF_NAK")["why"].decode()
        same(why, "policy p: rule 0 " + want)


@cases.each(["TIMEOUT", "ERROR", "BAD_RETURN"])
def failure(result):
    """Denied, recorded, and asked again the next time."""
    with Bench(asks()) as bench:
        engine = bench.engine()
        for _ in range(2):
            engine.ask("a.example.com", dial=1, method="POST", path="/x")
            bench.say(bench.question(), result, "it fell over")
            reason = "decider_" + result.lower()
            answer = engine.told()
            same(short(answer), ("deny", 0, reason))
            same(answer["decider"], b"d")
            record = bench.failure()
            same(part(record, "session", "decider", "reason", "detail",
                      "scheme", "port", "host", "method", "path"),
                 (b"s1", b"d", reason.encode(), b"it fell over",
                  URL["URL_HTTPS"], 443, b"a.example.com", b"POST", b"/x"))


@cases.case
def timeout():
    """Ours to keep, whatever the decider does; its answer comes too late."""
    with Bench(asks(timeout_ms=150)) as bench:
        engine = bench.engine()
        start = time.monotonic()
        engine.ask("a.example.com")
        question = bench.question()
        answer = engine.told()
        waited = time.monotonic() - start
        same(short(answer), ("deny", 0, "decider_timeout"))
        assert 0.14 < waited < 5, waited
        assert 140 <= answer["waited_ms"] < 5000, answer
        same(part(bench.failure(), "reason", "detail"),
             (b"decider_timeout", b"no answer in time"))
        bench.say(question, "ALLOW")
        engine.ask("a.example.com")
        # Nor was it taken back: deciderd is to see that the decider is late.
        bench.say(bench.question(), "DENY")
        same(short(engine.told())[0], "deny")


@cases.case
def timeout_of_decider():
    with Bench(asks(), deciders=[("d", {"timeout_ms": 100})]) as bench:
        engine = bench.engine()
        engine.ask("a.example.com")
        same(short(engine.told())[2], "decider_timeout")


@cases.case
def unknown_answer():
    """An answer to nothing is nothing; one that is no answer is the end."""
    with Bench(asks()) as bench:
        engine = bench.engine()
        engine.ask("a.example.com")
        question = bench.question()
        bench.say({"id": question["id"] + 1}, "ALLOW")
        bench.say({"id": 0}, "ALLOW")
        bench.say(question, "DENY")
        bench.say(question, "ALLOW")
        same(short(engine.told())[0], "deny")
        same(short(engine.verdict("a.example.com"))[0], "deny")
        bench.deciderd.send("ANSWER", id=1, result=6)
        bench.end(1, "ANSWER: answer 6")
    with Bench(asks()) as bench:
        bench.deciderd.send("ANSWER", id=1, keep=2)
        bench.end(1, "ANSWER: answer 0, keep 2")


@cases.case
def chain():
    """In order, until one is sure."""
    with Bench(asks("d", "e", "f"), deciders=["d", "e", "f"]) as bench:
        engine = bench.engine()
        engine.ask("a.example.com")
        question = bench.question()
        bench.say(question, "UNSURE")
        second = bench.question()
        same(second["decider"], b"e")
        assert second["id"] != question["id"]
        bench.say(question, "ALLOW")
        bench.say(second, "DENY", "no")
        answer = engine.told()
        same(short(answer), ("deny", 0, "decider: no"))
        same(answer["decider"], b"e")
        engine.ask("b.example.com")
        for name in (b"d", b"e", b"f"):
            question = bench.question()
            same(question["decider"], name)
            bench.say(question, "UNSURE")
        same(short(engine.told()), ("deny", 0, "decider: unsure"))
        engine.ask("c.example.com")
        bench.say(bench.question(), "ERROR", "gone")
        same(short(engine.told()), ("deny", 0, "decider_error"))
        engine.ask("b.example.com")
        same(bench.host(), "b.example.com")


@cases.case
def narrow():
    """It takes away and does not give."""
    with Bench(asks("n", kind="NARROW"),
               rule("DENY", ["no.example.com"]),
               rule("ALLOW", ["yes.example.com"], to_private=1, body=9),
               asks("d", hosts=["ask.example.com"]),
               deciders=["d", "n"]) as bench:
        engine = bench.engine()
        same(short(engine.verdict("no.example.com"))[2], "matched_deny_rule")
        same(short(engine.verdict("x.example.com"))[2], "default_deny")
        engine.ask("yes.example.com", dial=1)
        question = bench.question()
        same(question["decider"], b"n")
        bench.say(question, "ALLOW")
        answer = engine.told()
        same(short(answer), ("allow", 2, "decider: allowed"))
        same(part(answer, "body", "decider"), (9, b"n"))
        same(bench.dialer.receive("GRANT")["to_private"], 1)
        engine.ask("ask.example.com")
        for name, word in ((b"n", "ALLOW"), (b"d", "ALLOW")):
            question = bench.question()
            same(question["decider"], name)
            bench.say(question, word)
        same(short(engine.told()), ("allow", 3, "decider: allowed"))
        engine.ask("yes.example.com", port=8443)
        same(short(engine.told()), ("deny", None, "default_deny"))


@cases.case
def narrow_denies():
    with Bench(asks("n", kind="NARROW", **OFF),
               asks("m", kind="NARROW", **OFF),
               rule("ALLOW", ["**"]), deciders=["n", "m"]) as bench:
        engine = bench.engine()
        engine.ask("a.example.com", dial=1)
        bench.say(bench.question(), "ALLOW")
        question = bench.question()
        same(question["decider"], b"m")
        bench.say(question, "DENY", "no")
        same(short(engine.told()), ("deny", 1, "decider: no"))
        engine.ask("a.example.com", dial=1)
        bench.say(bench.question(), "DENY", "no")
        same(short(engine.told()), ("deny", 0, "decider: no"))


@cases.case
def cache_host():
    """Session, rule, scheme, host and port; whatever is asked of it."""
    with Bench(asks()) as bench:
        engine, other = bench.engine(), bench.engine("s2", 8)
        engine.ask("a.example.com")
        same(bench.host(), "a.example.com")
        same(engine.told()["cached"], 0)
        answer = engine.verdict("a.example.com", method="POST", path="/x")
        same(short(answer), ("allow", 0, "decider: allowed"))
        same(part(answer, "scope", "decider", "cached"),
             (SCOPE["VERDICT_ONCE"], b"d", 1))
        for who, more in ((engine, {"port": 8443}), (engine, {"scheme": WEB}),
                          (other, {})):
            who.ask("a.example.com", **more)
            same(bench.host(), "a.example.com")
            same(short(who.told())[0], "allow")


KEYS = [{"path": "/y"}, {"path": "/x?q"}, {"method": "PUT"}, {"length": 0},
        {"length": 1024}, {"length": 65537}, {"length": 1 << 20 | 1},
        {"length": NO_LIMIT}, {"scheme": WEB}, {"port": 1},
        {"host": "b.example.com"}]


@cases.case
def cache_request():
    """Each of these is another; sizes of a class are one."""
    with Bench(asks(**REQUEST)) as bench:
        engine = bench.engine()
        base = {"host": "a.example.com", "method": "POST", "path": "/x",
                "length": 65536}
        for values in [{}] + KEYS:
            engine.ask(**{**base, **values})
            bench.host()
            same(short(engine.told())[0], "allow")
        for values in [{}, {"length": 1025}, {"length": 1}, *KEYS]:
            same(short(engine.verdict(**{**base, **values}))[0], "allow")


@cases.case
def cache_off():
    with Bench(asks(**OFF)) as bench:
        engine = bench.engine()
        for _ in range(3):
            engine.ask("a.example.com")
            bench.host()
            engine.told()


@cases.each(["ALLOW", "DENY"])
def cache_not_wanted(said):
    """Who answers may say that it is not to be kept, whatever the rule has;
    who has waited for the same answer asks anew."""
    with Bench(asks()) as bench:
        engine = bench.engine()
        engine.ask("a.com")
        engine.ask("a.com")
        for number in (1, 2):
            bench.say(bench.question(), said, keep=0)
            answer = engine.told()
            same((answer["id"], short(answer)[0], answer["cached"]),
                 (number, said.lower(), 0))
        engine.ask("a.com")
        bench.say(bench.question(), said)
        same(engine.told()["cached"], 0)
        same(engine.verdict("a.com")["cached"], 1)


@cases.case
def cache_denies():
    with Bench(asks()) as bench:
        engine = bench.engine()
        engine.ask("a.example.com")
        bench.say(bench.question(), "DENY", "no")
        engine.told()
        same(short(engine.verdict("a.example.com")),
             ("deny", 0, "decider: no"))


@cases.case
def cache_uses():
    """So many more requests, then it is asked again."""
    with Bench(asks(uses=2)) as bench:
        engine = bench.engine()
        for _ in range(2):
            engine.ask("a.example.com")
            bench.host()
            engine.told()
            for _ in range(2):
                engine.verdict("a.example.com")


@cases.case
def cache_ttl():
    with Bench(asks(ttl_ms=1000)) as bench:
        engine = bench.engine()
        engine.ask("a.example.com")
        bench.host()
        engine.told()
        start = time.monotonic()
        engine.ask("a.example.com")
        while not bench.asked(engine):
            engine.told()
            engine.ask("a.example.com")
        waited = time.monotonic() - start
        assert 0.2 < waited < 5, waited


@cases.case
def cache_reload():
    """A new generation begins without answers."""
    with Bench(asks()) as bench:
        engine = bench.engine()
        for _ in range(2):
            engine.ask("a.example.com")
            bench.host()
            engine.told()
            bench.load()


@cases.case
def cache_restart():
    """So does an engine that takes the place of another."""
    with Bench(asks()) as bench:
        for instance in (7, 8):
            engine = bench.engine(instance=instance)
            engine.ask("a.example.com")
            bench.host()
            engine.told()


@cases.case
def cache_ops():
    with Bench(asks(hosts=["*.a.com"], uses=5), asks(**REQUEST)) as bench:
        client, engine = Client(bench), bench.engine()
        for host in ("x.a.com", "b.com"):
            engine.ask(host, path="/p?q", length=3)
            bench.host()
            engine.told()
        engine.verdict("x.a.com", length=3)
        one, two = client.ask("cache.list")["cache"]
        if one["host"] == "b.com":
            one, two = two, one
        assert one.pop("age_ms") < 20000
        same(one, {"session_id": "s1", "decider": "d", "rule": 0,
                   "scheme": "https", "host": "x.a.com", "port": 443,
                   "decision": "allow", "reason": "decider: allowed",
                   "left_ms": None, "left_uses": 4})
        same(part(two, "method", "path", "size", "left_uses", "rule"),
             ("GET", "/p?q", "1K", None, 1))
        same(client.ask("cache.list", session_id="s2")["cache"], [])
        same(client.refused("cache.list", session_id="x"), "unknown_session")
        same(client.refused("cache.clear", host="x y"), "bad_request")
        same(client.ask("cache.clear", session_id="s2")["cleared"], 0)
        same(client.ask("cache.clear", host="B.com.")["cleared"], 1)
        same(client.ask("cache.clear", session_id="s1")["cleared"], 1)
        engine.ask("x.a.com")
        bench.host()


@cases.case
def asked_once():
    """Those that would be answered alike wait for one answer."""
    with Bench(asks()) as bench:
        engine = bench.engine()
        for host in ("a.com", "a.com", "b.com", "a.com"):
            engine.ask(host)
        first, second = bench.question(), bench.question()
        same(second["json"]["request"]["host"], "b.com")
        bench.say(first, "ALLOW")
        same(sorted(engine.told()["id"] for _ in range(3)), [1, 2, 4])
        bench.say(second, "ERROR", "")
        same(engine.told()["id"], 3)


@cases.case
def asked_once_fails():
    """A failure is the one's alone: another asks again."""
    with Bench(asks()) as bench:
        engine = bench.engine()
        for _ in range(3):
            engine.ask("a.com")
        bench.say(bench.question(), "BAD_RETURN")
        same(short(engine.told())[2], "decider_bad_return")
        bench.say(bench.question(), "DENY", "no")
        for _ in range(2):
            same(short(engine.told())[2], "decider: no")


@cases.case
def turns():
    """One at a time, and each session in its turn."""
    with Bench(asks(**OFF), deciders=[("d", {"concurrency": 1})]) as bench:
        one, two = bench.engine(), bench.engine("s2", 8)
        for i in range(4):
            one.ask(f"one{i}.com")
        question = bench.question()
        # It has them all when it has answered this.
        one.connection("x", 1)
        for i in range(2):
            two.ask(f"two{i}.com")
        two.connection("x", 1)
        bench.say(question, "ALLOW")
        same([bench.host() for _ in range(5)],
             ["one1.com", "two0.com", "one2.com", "two1.com", "one3.com"])


@cases.case
def deadline_of_the_queue():
    """It counts from the request, not from the turn."""
    with Bench(asks(timeout_ms=300, **OFF),
               deciders=[("d", {"concurrency": 1})]) as bench:
        engine = bench.engine()
        engine.ask("a.com")
        engine.ask("b.com")
        bench.question()
        same([short(engine.told())[2] for _ in range(2)],
             ["decider_timeout"] * 2)


@cases.case
def bounds():
    """A session has its share, all together the whole, and it is denied at
    once, and recorded, what is more."""
    with Bench(asks(**OFF), pending=16) as bench:
        engines = [bench.engine(f"s{i}", i) for i in range(1, 6)]
        for engine in engines[:4]:
            for i in range(4):
                engine.ask(f"{i}.com")
            answer = engine.verdict("more.com")
            same(short(answer), ("deny", 0, "decider_error"))
            same(part(bench.failure(), "detail", "host"),
                 (b"too many questions", b"more.com"))
        same(short(engines[4].verdict("more.com"))[2], "decider_error")
        question = bench.question()
        bench.say(question, "ALLOW")
        engines[int(question["json"]["session_id"][1]) - 1].told()
        engines[4].ask("less.com")
        while bench.host() != "less.com":
            pass
        same(short(engines[4].told())[0], "allow")


@cases.case
def bounds_and_cache():
    """What is kept needs no place."""
    with Bench(asks(), pending=4) as bench:
        engine = bench.engine()
        engine.ask("a.com")
        bench.host()
        engine.told()
        engine.ask("b.com")
        same(short(engine.verdict("a.com"))[0], "allow")
        same(short(engine.verdict("c.com"))[2], "decider_error")


def fail(bench, engine, n):
    for _ in range(n):
        engine.ask("a.com")
        bench.say(bench.question(), "ERROR", "dead")
        engine.told()
        same(bench.failure()["detail"], b"dead")


@cases.case
def breaker():
    """Five in a row open it; then one is asked, and no other meanwhile."""
    with Bench(asks(**OFF)) as bench:
        client, engine = Client(bench), bench.engine()
        fail(bench, engine, 4)
        engine.ask("a.com")
        bench.host()
        engine.told()
        fail(bench, engine, 5)
        start = time.monotonic()
        same(breaker_word(bench, client), "open")
        engine.ask("a.com")
        while not bench.asked(engine):
            same(short(engine.told())[2], "decider_error")
            same(bench.failure()["detail"], b"breaker open")
            engine.ask("a.com")
        question = bench.question()
        assert 0.9 < time.monotonic() - start < 10
        same(breaker_word(bench, client), "probing")
        same(short(engine.verdict("b.com"))[2], "decider_error")
        same(bench.failure()["detail"], b"breaker open")
        bench.say(question, "DENY")
        same(short(engine.told())[2], "decider: denied")
        same(breaker_word(bench, client), "closed")
        fail(bench, engine, 1)
        engine.ask("a.com")
        bench.host()


@cases.case
def breaker_sessions():
    """Failures of one session keep no other from asking; those of two do."""
    with Bench(asks(**OFF)) as bench:
        one, two = bench.engine(), bench.engine("s2", 8)
        fail(bench, one, 5)
        same(short(one.verdict("a.com"))[2], "decider_error")
        two.ask("b.com")
        bench.say(bench.question(), "ERROR", "dead")
        two.told()
        for engine in one, two, bench.engine("s3", 9):
            same(short(engine.verdict("a.com"))[2], "decider_error")


@cases.case
def breaker_other_answers():
    """It answers somebody: so it is asked by everybody."""
    with Bench(asks(**OFF)) as bench:
        one, two = bench.engine(), bench.engine("s2", 8)
        fail(bench, one, 5)
        two.ask("b.com")
        same(bench.host(), "b.com")
        two.told()
        one.ask("a.com")
        same(bench.host(), "a.com")


@cases.case
def breaker_no_answer():
    """What is no answer was said all the same, by one that lives."""
    with Bench(asks(**OFF)) as bench:
        client, engine = Client(bench), bench.engine()
        for _ in range(2):
            fail(bench, engine, 2)
            for _ in range(6):
                engine.ask("a.com")
                bench.say(bench.question(), "BAD_RETURN", "no")
                same(short(engine.told())[2], "decider_bad_return")
                bench.failure()
        same(breaker_word(bench, client), "closed")
        fail(bench, engine, 1)
        same(breaker_word(bench, client), "open")


def status(bench, client):
    controld = bench.controld()
    client.send("status")
    cookie = controld.receive("STATUS_ASK")["cookie"]
    controld.send("STATUS_END", cookie=cookie)
    controld.recorder.receive("AUDIT_ASK")
    controld.recorder.send("AUDIT_STATUS", cookie=cookie)
    return client.answer()


def breaker_word(bench, client):
    return status(bench, client)["deciders"][0]["breaker"]


@cases.case
def breaker_probe_dropped():
    """Who was to show how things are has gone: another does."""
    with Bench(asks(**OFF)) as bench:
        engine, other = bench.engine(), bench.engine("s2", 8)
        fail(bench, other, 5)
        fail(bench, engine, 1)
        engine.ask("a.com")
        while not bench.asked(engine):
            engine.told()
            engine.ask("a.com")
        bench.question()
        engine.channel.close()
        bench.dropped()
        other.ask("b.com")
        same(bench.host(), "b.com")


@cases.case
def pause():
    """So many denials, then no question for a while; what is kept serves."""
    with Bench(asks(), rule("ALLOW", ["x"]), pause_denials=3,
               pause_ms=1000) as bench:
        client, engine = Client(bench), bench.engine()
        other = bench.engine("s2", 8)
        engine.ask("ok.com")
        bench.host()
        engine.told()
        engine.ask("a.com")
        bench.say(bench.question(), "DENY")
        engine.told()
        engine.verdict("a.com")
        engine.ask("b.com")
        bench.say(bench.question(), "DENY")
        engine.told()
        start = time.monotonic()
        answer = engine.verdict("c.com")
        same(short(answer), ("deny", 0, "decider: paused"))
        same(short(engine.verdict("ok.com"))[0], "allow")
        same([s["paused"] for s in status(bench, client)["sessions"]][:2],
             [True, False])
        other.ask("c.com")
        bench.host()
        engine.ask("c.com")
        while not bench.asked(engine):
            engine.told()
            engine.ask("c.com")
        waited = time.monotonic() - start
        assert 0.8 < waited < 5, waited


@cases.case
def operator():
    """It waits, is seen, and is answered once."""
    with Bench(asks("person", **OFF), deciders=[PERSON]) as bench:
        client, engine = Client(bench), bench.engine()
        before = client.ask("pending.list")
        same(before["pending"], [])
        client.send("pending.wait", version=before["version"])
        start = time.monotonic()
        engine.ask("a.com", method="POST", path="/x?q=1", dial=3)
        after = client.answer()
        assert time.monotonic() - start < 0.1 or os.getloadavg()[0] > 2
        entry, = after["pending"]
        assert entry.pop("waiting_ms") < 20000
        assert 0 < entry.pop("left_ms") <= 60000
        number = entry.pop("id")
        same(entry, {"session_id": "s1", "decider": "person", "rule": 0,
                     "request": {"scheme": "https", "host": "a.com",
                                 "port": 443, "method": "POST",
                                 "path": "/x?q=1"}})
        same(client.ask("pending.wait", version=0)["version"],
             after["version"])
        same(client.refused("pending.answer", pending=number,
                            decision="perhaps"), "bad_request")
        for bad in ("0", "x", "-1", "4294967296", ""):
            same(client.refused("pending.answer", pending=bad,
                                decision="allow"), "no_such_question")
        client.ask("pending.answer", pending=number, decision="allow")
        same(short(engine.told()), ("allow", 0, "decider: allowed"))
        same(bench.dialer.receive("GRANT")["dial"], 3)
        same(client.refused("pending.answer", pending=number,
                            decision="allow"), "no_such_question")
        same(client.ask("pending.list")["pending"], [])


@cases.case
def operator_remembers():
    """Only if told to, and then for all that wait."""
    with Bench(asks("person"), deciders=[PERSON]) as bench:
        client, engine = Client(bench), bench.engine()
        for path in ("/1", "/2", "/3"):
            engine.ask("a.com", path=path)
        engine.ask("b.com")
        engine.connection("x", 1)
        ids = [p["id"] for p in client.ask("pending.list")["pending"]]
        same(len(ids), 4)
        answer = client.ask("pending.answer", pending=ids[0],
                            decision="deny", reason="no")
        same(answer["remembered"], False)
        same(short(engine.told())[2], "decider: no")
        answer = client.ask("pending.answer", pending=ids[1],
                            decision="allow", remember=True)
        same(answer["remembered"], True)
        same(sorted(engine.told()["id"] for _ in range(2)), [2, 3])
        same(short(engine.verdict("a.com"))[0], "allow")
        left, = client.ask("pending.list")["pending"]
        same(left["request"]["host"], "b.com")


@cases.case
def operator_is_late():
    with Bench(asks("person", timeout_ms=100), deciders=[PERSON]) as bench:
        client, engine = Client(bench), bench.engine()
        version = client.ask("pending.list")["version"]
        client.send("pending.wait", version=version)
        engine.ask("a.com")
        number = client.answer()["pending"][0]["id"]
        same(short(engine.told())[2], "decider_timeout")
        same(bench.failure()["detail"], b"nobody answered in time")
        same(client.refused("pending.answer", pending=number,
                            decision="allow"), "no_such_question")


@cases.case
def operator_only():
    """What is put to others is not for people to answer."""
    with Bench(asks("d", "person"), deciders=["d", PERSON]) as bench:
        client, engine = Client(bench), bench.engine()
        engine.ask("a.com")
        question = bench.question()
        same(client.ask("pending.list")["pending"], [])
        same(client.refused("pending.answer", pending=str(question["id"]),
                            decision="allow"), "no_such_question")
        version = client.ask("pending.list")["version"]
        client.send("pending.wait", version=version)
        bench.say(question, "UNSURE")
        entry, = client.answer()["pending"]
        same(entry["decider"], "person")


@cases.case
def engine_gone():
    """Its questions are taken back; nothing is left of them."""
    with Bench(asks("d"), asks("person"), deciders=["d", PERSON]) as bench:
        client, engine = Client(bench), bench.engine()
        for _ in range(3):
            engine.ask("a.com")
        question = bench.question()
        engine.channel.close()
        same(bench.dropped(), question["id"])
        bench.say(question, "ALLOW")
        state = status(bench, client)
        same(part(state["deciders"][0], "asked", "waiting"), (0, 0))
        same(state["sessions"][0]["pending"], 0)


@cases.case
def left():
    """What nobody waits for any more is no question.  One that a decider has
    is his to finish: coming and going is no way to ask more."""
    with Bench(asks("person", hosts=["p.com"]), asks("d", **OFF),
               deciders=[("d", {"concurrency": 1}), PERSON]) as bench:
        client, engine = Client(bench), bench.engine()
        for dial, host in enumerate(("p.com", "a.com", "b.com", "c.com"), 1):
            engine.ask(host, dial=dial)
        asked = bench.question()
        for number in (1, 2, 3, 3, 4711):
            engine.channel.send("ASK_DROP", cookie=number)
        engine.connection("x", 1)
        same(client.ask("pending.list")["pending"], [])
        same(status(bench, client)["sessions"][0]["pending"], 2)
        bench.say(asked, "ALLOW")
        same(bench.host(), "c.com")
        same(engine.told()["id"], 4)
        same(bench.dialer.receive("GRANT")["dial"], 4)


LATER = {"ALLOW": [asks(kind="NARROW"), asks("e")],
         "UNSURE": [asks("d", "e")], "DENY": [asks("d")],
         "ERROR": [asks("d")]}


@cases.each(LATER)
def left_is_asked_no_further(said):
    """Nobody else is asked for it, nothing is granted, nothing stands; but a
    word that is kept serves others."""
    with Bench(*LATER[said], deciders=["d", "e"]) as bench:
        client, engine = Client(bench), bench.engine()
        engine.ask("a.com", dial=1)
        question = bench.question()
        engine.channel.send("ASK_DROP", cookie=1)
        same(status(bench, client)["sessions"][0]["pending"], 1)
        bench.say(question, said)
        if said == "ERROR":
            same(bench.failure()["reason"], b"decider_error")
        until("nothing is pending", lambda: status(bench, client)[
            "sessions"][0]["pending"] == 0)
        engine.ask("a.com", dial=2)
        if said == "DENY":
            answer = engine.told()
            same((answer["id"], short(answer)[0]), (2, "deny"))
            return
        # In a chain the first decider is asked again; it knew nothing.
        question = bench.question()
        same(question["decider"], b"e" if said == "ALLOW" else b"d")
        bench.say(question, "ALLOW")
        answer = engine.told()
        same((answer["id"], short(answer)[0]), (2, "allow"))
        same(bench.dialer.receive("GRANT")["dial"], 2)


@cases.case
def left_leads():
    """Who follows it goes on, and who comes back is one of them."""
    with Bench(asks()) as bench:
        engine = bench.engine()
        for dial in (1, 2):
            engine.ask("a.com", dial=dial)
        question = bench.question()
        engine.channel.send("ASK_DROP", cookie=1)
        engine.ask("a.com", dial=3)
        engine.connection("x", 1)
        bench.say(question, "ALLOW")
        for number in (2, 3):
            same(engine.told()["id"], number)
            same(bench.dialer.receive("GRANT")["dial"], number)


@cases.case
def left_before_reload():
    """It is not asked anew by the new rules."""
    with Bench(asks(**OFF)) as bench:
        client, engine = Client(bench), bench.engine()
        engine.ask("a.com", dial=1)
        question = bench.question()
        engine.channel.send("ASK_DROP", cookie=1)
        same(status(bench, client)["sessions"][0]["pending"], 1)
        bench.load()
        same(bench.dropped(), question["id"])
        same(status(bench, client)["sessions"][0]["pending"], 0)
        engine.ask("b.com", dial=2)
        same(bench.host(), "b.com")
        same(engine.told()["id"], 2)
        same(bench.dialer.receive("GRANT")["dial"], 2)


@cases.case
def stands():
    """Allowed without a connection, it needs one after all: the word stands
    for the same request, once."""
    with Bench(asks(**OFF)) as bench:
        engine = bench.engine()
        engine.ask("a.com", path="/x", length=5)
        bench.say(bench.question(), "ALLOW")
        same(short(engine.told())[0], "allow")
        for other in ({"path": "/y"}, {"length": 6}, {"method": "PUT"},
                      {"host": "b.com"}, {"again": 7}, {"dial": 0}):
            engine.ask(**{"host": "a.com", "path": "/x", "length": 5,
                          "dial": 9, "again": 1, **other})
            bench.say(bench.question(), "DENY")
            same(short(engine.told())[0], "deny")
        engine.ask("a.com", path="/x", length=5, dial=9, again=1)
        answer = engine.told()
        same((short(answer)[0], answer["decider"]), ("allow", b"d"))
        same(bench.dialer.receive("GRANT")["dial"], 9)
        engine.ask("a.com", path="/x", length=5, dial=10, again=1)
        bench.say(bench.question(), "DENY")
        same(short(engine.told())[0], "deny")


@cases.case
def stands_no_longer():
    """Not under other rules, and not for ever."""
    with Bench(asks(**OFF)) as bench:
        engine = bench.engine()
        for i in range(65):
            engine.ask(f"{i}.com")
            bench.say(bench.question(), "ALLOW")
            same(short(engine.told())[0], "allow")
        engine.ask("0.com", dial=1, again=1)
        same(bench.host(), "0.com")
        same(short(engine.told())[0], "allow")
        bench.load()
        engine.ask("64.com", dial=2, again=65)
        same(bench.host(), "64.com")


@cases.case
def reload():
    """What waits is asked anew, or has a verdict, by the new rules."""
    with Bench(asks(), deciders=["d", "e"]) as bench:
        engine = bench.engine()
        for host in ("a.com", "a.com", "b.com", "c.com"):
            engine.ask(host, dial=1)
        old = [bench.question() for _ in range(3)]
        bench.policies["p"] = [rule("DENY", ["b.com"]),
                               rule("ALLOW", ["c.com"]), asks("e")]
        bench.load()
        same(sorted(bench.dropped() for _ in range(3)),
             sorted(q["id"] for q in old))
        question = bench.question()
        same(question["decider"], b"e")
        bench.say(old[0], "ALLOW")
        told = [engine.told() for _ in range(2)]
        same([(a["id"], *short(a)) for a in told],
             [(3, "deny", 0, "matched_deny_rule"), (4, "allow", 1, "")])
        bench.say(question, "ALLOW")
        for want in (1, 2):
            answer = engine.told()
            same(part(answer, "id", "generation"), (want, 2))
            same(short(answer), ("allow", 2, "decider: allowed"))


@cases.case
def reload_removes():
    """The session goes, and its questions with it."""
    with Bench(asks()) as bench:
        engine = bench.engine()
        engine.ask("a.com")
        question = bench.question()
        del bench.sessions["s1"]
        bench.load()
        same(bench.dropped(), question["id"])
        engine.channel.wait_closed()


@cases.case
def context_bounds():
    """100 messages, 64 KiB: the oldest make room."""
    with Bench(rule("DECIDE", ["**"], messages=100, conditions=[
            ("COND_DECIDER", "d")])) as bench:
        client, engine = Client(bench), bench.engine()
        for i in range(105):
            client.ask("session.message", session_id="s1", role="user",
                       content=str(i))
        engine.ask("a.com")
        messages = bench.question()["json"]["recent_messages"]
        same([m["content"] for m in messages],
             [str(i) for i in range(5, 105)])
        for i in range(17):
            answer = client.ask("session.message", session_id="s1",
                                role="user", content=chr(97 + i) * 4096)
        same(answer["messages"], 16)
        same(client.refused("session.message", session_id="s1", role="a b",
                            content="x"), "bad_request")
        same(client.refused("session.message", session_id="s9", role="user",
                            content="x"), "unknown_session")
        for bad in ({"a": 1}, [], "x", {str(i): "" for i in range(257)}):
            same(client.refused("session.metadata", session_id="s1",
                                metadata=bad), "bad_request")


@cases.case
def read_only():
    """It lists, without queries, and changes nothing."""
    with tempfile.TemporaryDirectory() as folder, \
            Bench(asks("person"), deciders=[PERSON]) as bench, \
            socket.socket(socket.AF_UNIX) as listener:
        listener.bind(folder + "/sock")
        listener.listen()
        controld = bench.controld()
        controld.load(listener)
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(folder + "/sock")
        controld.send("PEER_ANSWER", welcome=1,
                      cookie=controld.receive("PEER_ASK")["cookie"])
        client, engine = Client(bench, sock), bench.engine()
        version = client.ask("pending.list")["version"]
        client.send("pending.wait", version=version)
        engine.ask("a.com", path="/x?secret=1")
        entry, = client.answer()["pending"]
        same(part(entry["request"], "path", "path_truncated"), ("/x", True))
        same(client.ask("cache.list")["cache"], [])
        for op, more in {
                "pending.answer": {"pending": "1", "decision": "allow"},
                "cache.clear": {},
                "decider.ask": {"decider": "d", "scheme": "https",
                                "host": "a.com", "port": 443, "method": "GET",
                                "path": "/"},
                "session.message": {"session_id": "s1", "role": "x",
                                    "content": ""},
                "session.metadata": {"session_id": "s1", "metadata": {}},
                }.items():
            same(client.refused(op, **more), "not_permitted")


@cases.case
def held_requests():
    """A thousand of them do not slow what needs no decider."""
    with Bench(rule("ALLOW", ["fast.com"]), asks(**OFF),
               pending=4096) as bench:
        engine = bench.engine()
        for i in range(1000):
            engine.ask(f"{i}.com", path="/" + "x" * 1000)
        times = []
        for _ in range(1000):
            start = time.monotonic()
            same(short(engine.verdict("fast.com"))[0], "allow")
            times.append(time.monotonic() - start)
        times.sort()
        print(f"static verdicts beside 1000 held requests: median "
              f"{times[500] * 1e6:.0f} us, p99 {times[990] * 1e6:.0f} us")
        assert times[990] < 0.05, times[990]


@cases.case
def deciderd_is_slow():
    """It does not read: questions wait for it, and policyd lives."""
    with Bench(asks(**OFF), pending=4096,
               deciders=[("d", {"concurrency": 1024})]) as bench:
        client, engine = Client(bench), bench.engine()
        for _ in range(5):
            client.ask("session.message", session_id="s1", role="user",
                       content="\x01" * 4096)
        for i in range(1000):
            engine.ask(f"{i}.com")
        engine.connection("x", 1)
        state = status(bench, client)["deciders"][0]
        same(state["asked"] + state["waiting"], 1000)
        assert state["waiting"] > 0
        for i in range(1000):
            same(bench.host(), f"{i}.com")
            same(short(engine.told())[0], "allow")


@cases.case
def record():
    """What the recorder makes of a failure; secrets are not in it."""
    with Child("recorder") as recorder, \
            tempfile.NamedTemporaryFile() as audit:
        recorder.boot()
        policyd = recorder.connect("POLICYD")
        controld = recorder.connect("CONTROLD")
        recorder.send("CONF_BEGIN", generation=1)
        recorder.send("CONF_AUDIT", os.open(audit.name, os.O_RDWR |
                                            os.O_APPEND), path="audit")
        recorder.send("CONF_TIP", os.memfd_create("tip"))
        recorder.send("CONF_REDACT", policy="p", kind=1, name="token")
        recorder.send("CONF_SESSION", session="s1", policy="p")
        recorder.send("CONF_END", generation=1)
        recorder.receive("CONF_ACK")
        recorder.generation = 1
        recorder.commit()
        failed = {"at": 1767323045678000000, "session": "s1",
                  "decider": "d", "reason": "decider_timeout",
                  "detail": "it\x1bsleeps", "waited_ms": 5001,
                  "scheme": URL["URL_HTTPS"], "port": 443,
                  "host": "a.example.com"}
        policyd.send("RECORD_DECIDER", **failed, method="GET",
                     path="/x?token=secret&y=z")
        policyd.send("RECORD_DECIDER", **failed)
        # It hears policyd out before it answers about what it has written.
        controld.send("AUDIT_ASK", cookie=1)
        same(controld.receive("AUDIT_STATUS")["seq"], 2)
        one, two = map(json.loads, open(audit.name))
        for record in (one, two):
            del record["prev"]
        request = {"host": "a.example.com", "port": 443, "scheme": "https",
                   "method": "GET", "path": "/x?token=[redacted]&y=z"}
        same(one, {"seq": 1, "kind": "decider_failure",
                   "at": "2026-01-02T03:04:05.678Z", "session_id": "s1",
                   "request": request, "reason": "decider_timeout",
                   "decider": {"name": "d", "latency_ms": 5001,
                               "detail": "it\x1bsleeps"}})
        same(two["request"], {**request, "method": None, "path": None})
        policyd.send("RECORD_DECIDER", **{**failed, "scheme": 9})
        recorder.end(1, "RECORD_DECIDER: scheme 9")


# Nothing of ours may be in the way of a child's descriptor.
while os.open(os.devnull, os.O_RDWR) < CHILD_FD:
    pass
cases.main()
