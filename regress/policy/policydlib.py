#
# Copyright (c) 2026 The egressd authors
#
# Permission to use, copy, modify, and distribute this software for any
# purpose with or without fee is hereby granted, provided that the above
# copyright notice and this permission notice appear in all copies.
#
# THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES
# WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF
# MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR
# ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES
# WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
# ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF
# OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
#

"""policyd with us for its parent, engines, dialer, recorder and deciderd."""

import json
import pathlib
import re
import socket
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "ipc"))
from children import LIMIT_S, Child  # noqa: E402
from msgtab import ROLES, read_enum, read_header  # noqa: E402

MSGTAB, POLICY = read_header("msgtab.h"), read_header("policy.h")
COND = read_enum(MSGTAB, "COND_HOST")
ABOUT = read_enum(MSGTAB, "ABOUT_CONNECTION")
URL = read_enum(MSGTAB, "URL_HTTP,")
VERDICT = read_enum(MSGTAB, "VERDICT_ALLOW")
SCOPE = read_enum(MSGTAB, "VERDICT_ONCE")
ANSWER = read_enum(MSGTAB, "ANSWER_ALLOW")
DECIDER = read_enum(MSGTAB, "DECIDER_AGENT")
RECORD = read_enum(MSGTAB, "RECORD_REQUEST_OPENED,")
CACHE = read_enum(POLICY, "CACHE_HOST")
KIND = read_enum(POLICY, "RULE_ALLOW")
RULE_NONE = UNKNOWN = 0xffffffff
NO_LIMIT = 0xffffffffffffffff


def rule(kind, hosts=(), **more):
    return kind, hosts, more


class Policyd(Child):
    """One that serves sessions of these policies."""

    def __init__(self, policies, sessions, judges=("d",), pending=64):
        super().__init__("policyd")
        self.policies, self.sessions = policies, sessions
        self.judges, self.pending = judges, pending
        self.settings, self.redacts = {}, []
        self.boot()
        self.recorder = self.connect("RECORDER")
        self.dialer = self.connect("DIALER")
        self.deciderd = self.connect("DECIDERD")

    def send_rule(self, index, kind, hosts, more):
        conditions = more.pop("conditions", [])
        self.send("CONF_RULE", index=index, kind=KIND["RULE_" + kind],
                  **{"body": NO_LIMIT, **more})
        for host in hosts:
            self.send("CONF_COND", kind=COND["COND_HOST"], text=host)
        for cond, text, *value in conditions:
            self.send("CONF_COND", kind=COND[cond], text=text,
                      value=value[0] if value else "")

    def send_judges(self):
        """Names, or names and what is unusual about them."""
        for judge in self.judges:
            name, more = (judge, {}) if isinstance(judge, str) else judge
            self.send("CONF_JUDGE", name=name, **{
                "kind": DECIDER["DECIDER_WEBHOOK"], "timeout_ms": 60000,
                "concurrency": 8, **more})

    def prepare(self):
        self.generation += 1
        self.send("CONF_BEGIN", generation=self.generation)
        self.send("CONF_LIMITS", clients=4, pending=self.pending)
        self.send_judges()
        for name, rules in self.policies.items():
            self.send("CONF_POLICY", name=name, **self.settings)
            for i, (kind, hosts, more) in enumerate(rules):
                self.send_rule(i, kind, hosts, dict(more))
            for redact in self.redacts:
                self.send("CONF_REDACT", policy=name, **redact)
        for session, policy in self.sessions.items():
            self.send("CONF_SESSION", session=session, policy=policy)
        self.send("CONF_END", generation=self.generation)

    def load(self):
        self.prepare()
        same(self.receive("CONF_ACK")["generation"], self.generation)
        self.commit()
        return self

    def engine(self, session="s1", instance=7, hello=True):
        engine = self.connect_to(session, instance)
        if hello:
            engine.send("ENGINE_HELLO")
        return Engine(self, engine, instance)

    def connect_to(self, session, instance):
        """As connect(), to a session of this name."""
        channel = type(self.recorder)()
        self.peers.append(channel)
        self.send("CHANNEL", channel.other.fileno(),
                  peer=ROLES["ROLE_ENGINE"], instance=instance,
                  session=session)
        channel.handed_over()
        return channel


class Engine:
    def __init__(self, policyd, channel, instance):
        self.policyd, self.channel = policyd, channel
        self.instance, self.last = instance, 0

    def ask(self, host, **more):
        self.last += 1
        self.channel.send("ASK", **{
            "id": self.last, "about": ABOUT["ABOUT_REQUEST"],
            "scheme": URL["URL_HTTPS"], "port": 443, "length": UNKNOWN,
            "host": host, "method": "GET", "path": "/", **more})

    def told(self):
        return self.channel.receive("VERDICT")

    def verdict(self, host, **more):
        self.ask(host, **more)
        answer = self.told()
        same(answer["id"], more.get("id", self.last))
        return answer

    def connection(self, host, port, **more):
        return self.verdict(host, about=ABOUT["ABOUT_CONNECTION"],
                            scheme=URL["URL_TCP"], port=port, method="",
                            path="", **more)

    def bad(self, why):
        """It is told of, by name, and let go."""
        told = self.policyd.receive("ENGINE_BAD")
        same(told["instance"], self.instance)
        assert re.search(why, told["why"].decode()), told["why"]
        self.channel.wait_closed()


def same(got, want):
    assert got == want, f"{got!r}, not {want!r}"


def part(answer, *names):
    return tuple(answer[name] for name in names)


def short(answer):
    """Verdict, rule and reason."""
    word = {v: k.split("_")[1].lower() for k, v in VERDICT.items()}
    index = answer["rule"]
    return (word[answer["verdict"]], None if index == RULE_NONE else index,
            answer["reason"].decode())


class Client:
    """One that the parent hands to policyd, as it does in private daemons."""

    def __init__(self, policyd, sock=None):
        self.sock = sock
        if sock is None:
            self.sock, other = socket.socketpair()
            policyd.send("CLIENT", other.fileno())
            other.close()
        self.sock.settimeout(LIMIT_S)
        self.lines = self.sock.makefile("rb")
        self.last = 0

    def send(self, op, **more):
        self.last += 1
        line = json.dumps({"id": self.last, "op": op, **more})
        self.sock.sendall(line.encode() + b"\n")

    def answer(self):
        line = self.lines.readline()
        assert line, "it hung up"
        return json.loads(line)

    def ask(self, op, **more):
        self.send(op, **more)
        answer = self.answer()
        same(answer["id"], self.last)
        assert answer.get("ok"), answer
        return answer

    def refused(self, op, **more):
        self.send(op, **more)
        return self.answer()["error"]["code"]
