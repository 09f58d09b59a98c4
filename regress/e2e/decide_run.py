#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Every shape of decider about real requests of a real sandbox: a command of
`egressctl run` behind a private daemon is allowed and denied what they say.
What they are asked is checked against the schema."""

import atexit
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import time

REGRESS = pathlib.Path(__file__).resolve().parents[1]
for part in ("lib", "sandbox"):
    sys.path.insert(0, str(REGRESS / part))
from case import Cases, Skip  # noqa: E402
from daemon import TOP, WAIT_S, free_port, until  # noqa: E402
from gate import FINAL  # noqa: E402
from judge import ALLOW, DENY, SCHEMA, Judge, directory  # noqa: E402
from origin import authority  # noqa: E402
from runlib import ORIGIN, WHO, identity, place, records  # noqa: E402
from schema import check  # noqa: E402
from standin_decider import (StandinDecider, anthropic, openai,  # noqa: E402
                             tool)

cases = Cases()
here = place()
atexit.register(here.end)
PORT = here.origin.port
URL = f"https://{ORIGIN}:{PORT}"
EXAMPLES = TOP / "etc" / "examples"
STYLES = ("anthropic", "openai")
PROMPT = "You are the guard.\n\tBe \"strict\" \\ and brief: \u00e4\u4e16\n\n"
KEY = "sk-not-a-real-key"


def same(have, want, why=""):
    assert have == want, f"{have!r}, expected {want!r} {why}"


def decide(question):
    good = (question["request"]["path"] or "/good").startswith("/good")
    return {"decision": "allow" if good else "deny",
            "reason": "by its path"}


PROGRAM = """#!/usr/bin/python3
import json, sys
def decide(question):
    with open("{log}", "a") as log:
        log.write(json.dumps(question) + "\\n")
    good = question["request"]["path"].startswith("/good")
    return {{"decision": "allow" if good else "deny", "reason": "by its path"}}
"""
ONCE = PROGRAM + "print(json.dumps(decide(json.load(sys.stdin))))\n"
KEPT = PROGRAM + """
for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps({{"id": asked["id"], **decide(asked["question"])}}),
          flush=True)
"""


class Program:
    def __init__(self, text, options=""):
        folder = directory()
        folder.chmod(0o777)
        self.log, self.path = folder / "questions", folder / "decider"
        self.path.write_text(text.format(log=self.log))
        self.path.chmod(0o755)
        self.options = options

    def conf(self):
        return (f'decider "judge" exec {{ command {{ "{self.path}" }}\n'
                f'{self.options}\n}}\n')

    @property
    def questions(self):
        return [json.loads(line) for line in self.log.open()]


def file(name, text, mode=0o644):
    """One that whoever runs the daemon can read."""
    path = directory() / name
    path.write_text(text)
    path.chmod(mode)
    return path


def secret(name, text):
    """For a daemon of root's or of a user's, and for nobody else."""
    mine = identity("user")
    path = file(name, text, 0o640 if mine else 0o600)
    if mine:
        os.chown(path, 0, mine["group"])
    return path


def trust():
    """Of the authority that stand-ins are signed by."""
    return authority("root").cert.read_text()


class Server(StandinDecider):
    """A webhook, or a language model of either style."""

    def __init__(self, kind):
        self.kind = kind
        super().__init__(self.reply)
        self.__enter__()
        atexit.register(self.__exit__)

    def document(self, request):
        if self.kind == "webhook":
            return request.json
        messages = request.json["messages"]
        return json.loads(messages[-1]["content"])

    def reply(self, request):
        said = decide(self.document(request))
        return 200, {}, {"webhook": lambda: said,
                         "anthropic": lambda: anthropic(tool(said)),
                         "openai": lambda: openai(json.dumps(said))
                         }[self.kind]()

    def conf(self):
        common = (f'url "{self.url()}"\n'
                  f'trust file "{file("root", trust())}"\n'
                  f'key file "{secret("key", KEY)}"\ntimeout 4s\n'
                  'concurrency 2\n')
        if self.kind == "webhook":
            return f'decider "judge" webhook {{ {common} }}\n'
        return (f'decider "judge" agent {{ api {self.kind}\n model "small"\n'
                f'prompt file "{file("prompt", PROMPT)}"\n{common} }}\n')

    @property
    def questions(self):
        return [self.document(r) for r in self.requests]


class Listener(Judge):
    def __init__(self):
        super().__init__(decide)
        atexit.register(self.stop)


SHAPES = {
    "exec": lambda: Program(ONCE),
    "persistent": lambda: Program(KEPT, "persistent"),
    "socket": Listener,
    "webhook": lambda: Server("webhook"),
    "anthropic": lambda: Server("anthropic"),
    "openai": lambda: Server("openai"),
}
CURL = "curl -sS -o /dev/null -w '%{http_code} '"


@cases.each([f"{shape} {who}" for shape in SHAPES for who in WHO])
def decides(which):
    shape, who = which.split()
    judge = SHAPES[shape]()
    conf, log = here.conf(
        who, 'policy "p" { decide "judge" cache request timeout 4s '
        'messages 3 metadata { tenant "acme" } }\n', judge.conf())
    before = len(here.origin.seen)
    done = here.sh(who, conf, f"for i in good good evil; do {CURL} {URL}/$i; "
                   f"done; curl -sS {URL}/evil2; {CURL} --http1.1 -d secret "
                   f"{URL}/evil",
                   "-n", "job")
    status, _, told = done.stdout.partition("{")
    same(status.split(), ["200", "200", "403"],
         (done.stdout, done.stderr))
    assert '"reason":"decider: by its path"' in told, done.stdout
    assert told.endswith("403 "), told
    same([p for _, p in here.origin.seen[before:]], ["/good"] * 2)
    asked = judge.questions
    same([q["request"]["path"] for q in asked],
         ["/good", "/evil", "/evil2", "/evil"])
    same([check(q, SCHEMA) for q in asked], [[]] * 4)
    same(asked[3], {"session_id": "job", "recent_messages": [], "request": {
        "scheme": "https", "host": ORIGIN, "port": PORT, "method": "POST",
        "path": "/evil", "body_bytes": 6}, "metadata": {"tenant": "acme"}})
    finals = [r for r in records(log) if r["kind"] in (
        "request_closed", "request_denied")]
    same([r["decider"]["name"] for r in finals], ["judge"] * 5)
    same([r["reason"] for r in finals],
         [None, None] + ["decider: by its path"] * 3)


@cases.each(STYLES)
def agent_is_asked(style):
    """The prompt is the system prompt, byte for byte; the key is where the
    server looks for it, and nowhere else."""
    server = Server(style)
    conf, _ = here.conf("user", 'policy "p" { decide "judge" }\n',
                        server.conf())
    same(here.sh("user", conf, f"{CURL} {URL}/good").stdout, "200 ")
    request, = server.requests
    body = request.json
    system = body["system"] if style == "anthropic" else \
        body["messages"][0]["content"]
    same(system.encode(), PROMPT.encode())
    header = "x-api-key" if style == "anthropic" else "authorization"
    assert request.headers[header].endswith(KEY), request.headers
    assert KEY.encode() not in request.body
    same(body["model"], "small")


@cases.each(["allow", "deny"])
def connection(word):
    """A connection that is not looked into is a question without method and
    path; refused, not a byte of it arrives."""
    with Judge(ALLOW if word == "allow" else DENY) as judge:
        conf, log = here.conf("user", 'policy "p" { decide tcp "judge" host '
                              f'"{ORIGIN}" port {PORT} }}\n', judge.conf())
        before = len(here.origin.seen)
        # One address: after a reset, curl would try the other one too.
        done = here.sh("user", conf, f"{CURL} -4 -k {URL}/raw")
        asked, = judge.asked(1)
        same(asked["request"], {
            "scheme": "tcp", "host": ORIGIN, "port": PORT, "method": None,
            "path": None, "body_bytes": None})
        arrived = [p for _, p in here.origin.seen[before:]]
        same(arrived, ["/raw"] if word == "allow" else [])
        assert (done.stdout == "200 ") == (word == "allow"), done.stdout
        opened, = [r for r in records(log) if r["kind"] == "request_opened"]
        final, = [r for r in records(log) if r["kind"] in FINAL]
        same((final["decider"]["name"], final["request"]["id"]),
             ("judge", opened["request"]["id"]))


@cases.each(WHO)
def people(who):
    """A private daemon with a socket: somebody answers for the command."""
    folder = here.fresh(who, "socket")
    folder.chmod(0o700)
    conf, _ = here.conf(who, 'policy "p" { decide "person" }\n',
                        'decider "person" operator\n')
    command = here.spawn(who, "run", "-q", "-f", conf, "-S", folder, "--",
                         "sh", "-c", f"{CURL} {URL}/held")
    try:
        def shown():
            return json.loads(here.run(
                who, "-j", "-s", folder / "egressd.sock",
                "pending").stdout or "{}").get("pending")
        until("there is a socket", (folder / "egressd.sock").exists)
        def ended():
            if command.poll() is not None:
                raise AssertionError(
                    f"it ended with {command.returncode}: "
                    f"{command.communicate()}")
        question, = until("it is pending", lambda: ended() or shown())
        same(question["request"]["path"], "/held")
        done = here.run(who, "-s", folder / "egressd.sock", "answer",
                        question["id"], "allow")
        same(done.returncode, 0, done.stderr)
        same(command.communicate(timeout=WAIT_S)[0], b"200 ")
    finally:
        command.kill()
        command.communicate()


# ---- the examples -----------------------------------------------------------

def example_webhook():
    """The program as it is shipped, but for the port that is written into
    it, as somebody else may have that; (program, key, port)."""
    port = free_port()
    text, count = re.subn(r"^(ADDRESS = .*)\b8711\b", fr"\g<1>{port}",
                          (EXAMPLES / "decide-webhook").read_text(),
                          flags=re.MULTILINE)
    same(count, 1)
    tenants = file("tenants", json.dumps({"acme": [ORIGIN]}))
    key = secret("hook", "k\n")
    program = subprocess.Popen(
        ["/usr/bin/python3", file("webhook", text), str(key), str(tenants)],
        stderr=subprocess.PIPE, text=True,
        # Where it is noon: it keeps office hours.
        env={"TZ": f"NOON{time.gmtime().tm_hour - 12:+d}"})
    until("it listens", lambda: program.poll() is not None or
          socket.socket().connect_ex(("127.0.0.1", port)) == 0)
    assert program.poll() is None, program.stderr.read()
    return program, key, port


@cases.case
def examples():
    """In a chain, all three: what is short and only read is allowed by the
    first, and the rest goes to the model, with the prompt as it is; what
    narrows has the say of its metadata."""
    if not os.access("/usr/bin/jq", os.X_OK):
        raise Skip("jq is not installed")
    program, key, port = example_webhook()
    try:
        server = Server("anthropic")
        more = server.conf().replace('"judge"', '"netguard"')
        more = more.replace("prompt file", f'prompt file '
                            f'"{EXAMPLES / "netguard.prompt"}" #')
        more += (f'decider "hours" webhook {{ url "http://127.0.0.1:{port}/"\n'
                 f'key file "{key}" }}\n'
                 f'decider "readers" exec {{ command '
                 f'{{ "{file_of("decide-readers")}" }} }}\n')
        conf, log = here.conf(
            "user", 'policy "p" {\n narrow "hours" metadata { tenant "acme" }'
            '\n decide { "readers", "netguard" } cache off }\n', more)
        done = here.sh("user", conf, f"{CURL} {URL}/a; {CURL} --http1.1 -d x "
                       f"{URL}/evil;"
                       f"{CURL} -XPOST {URL}/good; {CURL} https://evil.test/")
        # The origin knows no POST; it arrived all the same.
        same(done.stdout, "200 403 501 403 ", done.stderr)
        finals = [r for r in records(log) if r["kind"] in (
            "request_closed", "request_denied")]
        same([r["decider"]["name"] for r in finals],
             ["readers", "netguard", "netguard", "hours"])
        system = server.requests[0].json["system"].encode()
        same(system, (EXAMPLES / "netguard.prompt").read_bytes())
    finally:
        program.kill()
        program.wait()


def file_of(name):
    return file(name, (EXAMPLES / name).read_text(), 0o755)


if __name__ == "__main__":
    cases.main()
