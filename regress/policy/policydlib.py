# SPDX-License-Identifier: ISC

"""policyd with us for its parent, engines, dialer, recorder and deciderd; and a
real controld beside it, for those who have control clients."""

import json
import os
import pathlib
import re
import socket
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / "regress" / "ipc"), str(TOP / "regress" / "lib")]
from children import LIMIT_S, Child  # noqa: E402
from msgtab import (ENUMS, POLICY_OPTIONS, ROLES,  # noqa: E402
                    RULE_OPTIONS, options)

COND, ABOUT = ENUMS["cond_kind"], ENUMS["about"]
URL, VERDICT = ENUMS["url_scheme"], ENUMS["verdict"]
SCOPE, ANSWER = ENUMS["verdict_scope"], ENUMS["answer_result"]
DECIDER, RECORD = ENUMS["decider_kind"], ENUMS["record_kind"]
CACHE, KIND = ENUMS["rule_cache"], ENUMS["rule_kind"]
RULE_NONE = UNKNOWN = 0xffffffff
NO_LIMIT = 0xffffffffffffffff


def rule(kind, hosts=(), **more):
    return kind, hosts, more


class Policyd(Child):
    """One that serves sessions of these policies."""

    def __init__(self, policies, sessions, deciders=("d",), pending=64):
        super().__init__("policyd")
        self.policies, self.sessions = policies, sessions
        self.deciders, self.pending = deciders, pending
        self.settings, self.redacts, self.control = {}, [], None
        self.boot()
        self.recorder = self.connect("RECORDER")
        self.dialer = self.connect("DIALER")
        self.deciderd = self.connect("DECIDERD")

    def __exit__(self, *exc):
        if self.control is not None:
            self.control.__exit__(*exc)
        super().__exit__(*exc)

    def controld(self):
        """Started when it is first needed."""
        if self.control is None:
            self.control = Controld(self)
        return self.control

    def send_rule(self, index, kind, hosts, more):
        conditions = more.pop("conditions", [])
        self.send("CONF_RULE", index=index, kind=KIND["RULE_" + kind],
                  tcp=more.pop("tcp", 0))
        for option in options("RULE", RULE_OPTIONS, more):
            self.send("CONF_OPTION", **option)
        for host in hosts:
            self.send("CONF_COND", kind=COND["COND_HOST"], text=host)
        for cond, text, *value in conditions:
            self.send("CONF_COND", kind=COND[cond], text=text,
                      value=value[0] if value else "")

    def send_deciders(self):
        """Names, or names and what is unusual about them."""
        for decider in self.deciders:
            name, more = (decider, {}) if isinstance(decider, str) else \
                decider
            self.send("CONF_DECIDER_NAME", name=name, **{
                "kind": DECIDER["DECIDER_WEBHOOK"], "timeout_ms": 60000,
                "concurrency": 8, **more})

    def prepare(self):
        self.generation += 1
        self.send("CONF_BEGIN", generation=self.generation)
        self.send("CONF_PENDING", max=self.pending)
        self.send_deciders()
        for name, rules in self.policies.items():
            self.send("CONF_POLICY", name=name,
                      allow=self.settings.get("allow", 0))
            for option in options("POLICY", POLICY_OPTIONS, {
                    k: v for k, v in self.settings.items() if k != "allow"}):
                self.send("CONF_OPTION", **option)
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
        if self.control is not None:
            self.control.load()
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


class Controld(Child):
    """A real one, wired to a real policyd and of the same configuration."""

    def __init__(self, policyd):
        super().__init__("controld")
        self.policyd = policyd
        self.boot()
        self.recorder = self.connect("RECORDER")
        ours, theirs = socket.socketpair()
        with ours, theirs:
            self.send("CHANNEL", ours.fileno(), peer=ROLES["ROLE_POLICYD"])
            policyd.send("CHANNEL", theirs.fileno(),
                         peer=ROLES["ROLE_CONTROLD"])
        self.load()

    def load(self, listener=None):
        """With a read-only control socket, perhaps."""
        self.generation += 1
        self.send("CONF_BEGIN", generation=self.generation)
        if listener is not None:
            self.send("CONF_CONTROL", os.dup(listener.fileno()), read_only=1)
        self.send("CONF_LIMITS", clients=256)
        for name, rules in self.policyd.policies.items():
            self.send("CONF_POLICY_NAME", name=name, rules=len(rules))
        for session, policy in self.policyd.sessions.items():
            self.send("CONF_SESSION", session=session, policy=policy)
        self.send("CONF_END", generation=self.generation)
        same(self.receive("CONF_ACK")["generation"], self.generation)
        self.commit()


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
    """One that the parent hands to controld, as it does in private daemons."""

    def __init__(self, policyd, sock=None):
        self.sock = sock
        if sock is None:
            self.sock, other = socket.socketpair()
            policyd.controld().send("CLIENT", other.fileno())
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
