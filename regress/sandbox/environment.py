#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""What of its caller's environment the command in a sandbox has: a short list,
what the caller and the policy name, and never more than that."""

import array
import atexit
import json
import os
import pathlib
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from runlib import ORIGIN, WHO, place, records  # noqa: E402
from case import Cases  # noqa: E402
from daemon import Client, until  # noqa: E402

cases = Cases()
here = place()
atexit.register(here.end)

# What every sandbox has, whoever calls.
OWN = {"AWS_CA_BUNDLE", "CARGO_HTTP_CAINFO",
       "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", "CURL_CA_BUNDLE", "DENO_CERT",
       "EGRESSD_SESSION", "GIT_SSL_CAINFO",
       "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "HEX_CACERTS_PATH", "HOME",
       "HTTPLIB2_CA_CERTS", "JAVA_TOOL_OPTIONS", "NIX_SSL_CERT_FILE",
       "NODE_EXTRA_CA_CERTS", "PATH", "PIP_CERT", "PWD", "REQUESTS_CA_BUNDLE",
       "SSL_CERT_FILE"}
SECRETS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
           "GITHUB_TOKEN", "ANTHROPIC_API_KEY", "OPENAI_API_KEY",
           "VAULT_TOKEN", "DB_PASSWORD", "npm_config__authToken",
           "GOOGLE_APPLICATION_CREDENTIALS")
HOST = ("SSH_AUTH_SOCK", "CREDENTIALS_DIRECTORY", "NOTIFY_SOCKET",
        "KUBECONFIG", "DBUS_SESSION_BUS_ADDRESS", "http_proxy", "HTTPS_PROXY",
        "All_Proxy", "no_proxy", "DISPLAY", "DOCKER_HOST", "XDG_RUNTIME_DIR",
        "TMPDIR", "LISTEN_FDS", "EGRESSD_SOCKET_X")
CODE = ("LD_PRELOAD_X", "LD_LIBRARY_PATH", "PYTHONPATH", "NODE_OPTIONS",
        "BASH_ENV", "ENV", "PERL5OPT", "GIT_ASKPASS", "GIT_SSH_COMMAND",
        "SHELLOPTS_X", "BASH_FUNC_f%%", "9LIVES", "A.B", "Ä")
PLAIN = ("LC_TIME", "LANG", "TERM", "COLORTERM", "TZ", "EDITOR", "PAGER",
         "USER", "LOGNAME", "SHELL", "NO_COLOR", "GIT_AUTHOR_NAME")
GIVEN = {name: f"value-of-{n}" for n, name in enumerate(
    SECRETS + HOST + CODE + PLAIN + ("CARGO_HOME", "CARGO_NET_GIT"))}
ALWAYS = {"PATH", "HOME", "LC_ALL"}


def same(have, want, why=""):
    assert have == want, f"{have!r}, expected {want!r} {why}"


def conf_with(who, *lines, more=""):
    return here.conf(who, 'policy "open" { allow host "%s"\n%s\n}\n' % (
        ORIGIN, "\n".join(lines)), more)


def inside(who, *args, conf=None, env=None, status=0):
    """(its environment, what was said, the names on record)"""
    conf, log = conf or here.conf(who)
    done = here.run(who, "run", "-f", conf, *args, "--", "/usr/bin/env", "-0",
                    env=GIVEN if env is None else env)
    same(done.returncode, status, done.stderr)
    if status != 0:
        return done.stderr
    have = dict(e.split("=", 1) for e in done.stdout.split("\0") if e)
    started = [r for r in records(log) if r["kind"] == "session_started"]
    same([r for r in records(log) if "environment" in r], started)
    for name, value in GIVEN.items():
        assert value not in log.read_text(), name
    return have, done.stderr, started[-1]["environment"]


def passed(have):
    """What came from outside."""
    return {name for name, value in have.items()
            if value.startswith("value-of-")}


@cases.each(WHO)
def by_default(who):
    have, said, names = inside(who)
    same(passed(have), set(PLAIN))
    same(set(have), OWN | {"LC_ALL"} | set(PLAIN))
    same(set(names), ALWAYS | set(PLAIN))
    same(len(names), len(set(names)))
    same(said, "egressctl: not passed into the sandbox: AWS_ACCESS_KEY_ID, "
         "AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, GITHUB_TOKEN, "
         "ANTHROPIC_API_KEY, OPENAI_API_KEY and 4 more (-e NAME passes "
         "one)\n")


@cases.case
def nothing_is_said():
    """Not of what is no credential, nor to who is quiet or asked for it."""
    same(inside("user", env={"CARGO_HOME": "x", "SSH_AUTH_SOCK": "x"})[1], "")
    same(inside("user", "-q")[1], "")
    same(inside("user", "-E")[1], "")


@cases.case
def by_name():
    have, said, names = inside("user", "-e", "ANTHROPIC_API_KEY", "-e",
                               "SSH_AUTH_SOCK", "-e", "http_proxy")
    want = set(PLAIN) | {"ANTHROPIC_API_KEY", "SSH_AUTH_SOCK", "http_proxy"}
    same(passed(have), want)
    same(set(names), want | ALWAYS)
    assert "ANTHROPIC_API_KEY" not in said, said
    said = inside("user", "-E", "-e", "UNSET_KEY")[1]
    same(said, "egressctl: -e UNSET_KEY: not set in your environment\n")


@cases.case
def with_a_value():
    """It wins over the caller's own, and the last over the others."""
    have, _, names = inside("user", "-e", "A=one=two", "-e", "TERM=other",
                            "-e", "EMPTY=", "-e", "A", "-e", "TZ=x", "-e",
                            "TZ=y")
    same((have["A"], have["TERM"], have["EMPTY"], have["TZ"]),
         ("one=two", "other", "", "y"))
    same(sorted(n for n in names if n in ("A", "TERM", "EMPTY", "TZ")),
         ["A", "EMPTY", "TERM", "TZ"])


@cases.case
def by_pattern():
    have, _, _ = inside("user", "-e", "CARGO_*", "-e", "*_API_KEY")
    same(passed(have), set(PLAIN) | {"CARGO_HOME", "CARGO_NET_GIT",
                                     "ANTHROPIC_API_KEY", "OPENAI_API_KEY"})
    have, _, _ = inside("user", "-e", "*")
    same(passed(have), {name for name in GIVEN if name not in HOST and
                        name.replace("_", "a").isalnum() and
                        name.isascii() and not name[0].isdigit()})


@cases.each(WHO)
def clean(who):
    have, _, names = inside(who, "-E")
    same(set(have), OWN)
    same(names, ["HOME"])
    same(have["PATH"], "/usr/local/bin:/usr/bin:/bin")
    have, _, names = inside(who, "-E", "-e", "PATH", "-e", "TERM", conf=(
        conf_with(who, 'environment pass "*"')))
    same(set(have), OWN | {"TERM"})
    same(have["PATH"], "/usr/sbin:/usr/bin:/sbin:/bin")
    same(set(names), {"HOME", "PATH", "TERM"})


@cases.case
def of_the_sandbox():
    """Its own words win, whatever is passed."""
    have, _, _ = inside("user", "-e", "SSL_CERT_FILE=/x", "-e", "PWD=/x", "-e",
                        "EGRESSD_SESSION=x", "-e", "JAVA_TOOL_OPTIONS=-Xmx1g")
    same(have["SSL_CERT_FILE"], "/etc/egressd-trust/bundle.pem")
    assert have["PWD"] != "/x" and have["EGRESSD_SESSION"] != "x", have
    assert have["JAVA_TOOL_OPTIONS"].startswith("-Xmx1g -D"), have


@cases.each(("", "=x", "a b", "A-B", "1A", "A" * 65, "Ä", "HOME", "HOME=/",
             "1A=secret", "A B=secret", "A*=secret"))
def bad_options(arg):
    said = inside("user", "-e", arg, status=125)
    assert said.startswith(f"egressctl: -e {arg.split('=')[0]}: "), said
    assert "secret" not in said, said


@cases.case
def too_many():
    env = {f"A{n:063d}": "x" for n in range(130)}
    said = inside("user", "-e", "A*", env=env, status=125)
    assert "more than 8192 bytes in all" in said, said
    have, _, names = inside("user", "-e", "A*", env=dict(
        list(env.items())[:120]))
    same(len([n for n in names if n in env]), 120)
    assert set(names) <= set(have)


@cases.case
def by_policy():
    """From top to bottom, the first that matches; then the global ones."""
    conf = conf_with(
        "user", "environment pass { ANTHROPIC_API_KEY, CARGO_HOME }",
        'environment drop { "CARGO_*", TERM }',
        more='environment pass { TERM, "CARGO_*", GITHUB_TOKEN }\n'
             "environment drop { GITHUB_TOKEN_X, VAULT_TOKEN, LANG }\n")
    have, said, _ = inside("user", conf=conf)
    same(passed(have), set(PLAIN) - {"TERM", "LANG"} | {
        "ANTHROPIC_API_KEY", "CARGO_HOME", "GITHUB_TOKEN"})
    # What the policy drops on purpose is not missed.
    assert "VAULT_TOKEN" not in said and "AWS_SESSION" in said, said
    have, _, _ = inside("user", "-e", "TERM", "-e", "VAULT_TOKEN", conf=conf)
    assert {"TERM", "VAULT_TOKEN"} <= passed(have), have


@cases.case
def all_and_nothing():
    conf = conf_with("user", 'environment pass "*"')
    assert passed(inside("user", conf=conf)[0]) & set(HOST) == set()
    conf = conf_with("user", "environment pass TZ", 'environment drop "*"')
    have, said, names = inside("user", conf=conf)
    same((passed(have), said, set(names)), ({"TZ"}, "", {"HOME", "TZ"}))


@cases.case
def not_in_box_either():
    """What stays out is in no process of the sandbox at all."""
    conf, _ = here.conf("user")
    script = ("cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | "
              "grep -c value-of-; true")
    same(here.sh("user", conf, script, env={"GITHUB_TOKEN": "value-of-it"}
                 ).stdout, "0\n")


class Passing(Client):
    def start(self, **fields):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            self.sock.sendmsg(
                [json.dumps({"id": 1, "op": "session.start",
                             **fields}).encode() + b"\n"],
                [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                  array.array("i", [theirs.fileno()]))])
            return self.read()


@cases.case
def by_socket():
    """What any client may ask for and tell."""
    who = "root" if os.getuid() == 0 else "user"
    with here.daemon(who, 'policy "a" { environment pass X\n environment '
                     'drop "Y*" }\npolicy "b" { }\n') as daemon, \
            Passing(daemon.socket) as client:
        same(client.ask("session.environment", policy="a"),
             {"id": 1, "ok": True, "policy": "a",
              "environment": [{"pass": "X"}, {"drop": "Y*"}]})
        same(client.ask("session.environment", policy="b")["environment"], [])
        for fields in ({}, {"policy": "none"}):
            same(client.ask("session.environment", **fields)["error"]["code"],
                 "unknown_policy")
        for bad in ("X", {}, [1], [["X"]], [""], ["A=b"], ["A*"], ["a b"],
                    ["X\n"], ["\u200b"], ["X" * 65], ["1"], [None],
                    ["A" * 64] * 127):
            answer = client.start(policy="a", environment=bad)
            same(answer["error"]["code"], "bad_request", answer)
        for name, fields in (("none", {}), ("empty", {"environment": []}),
                             ("some", {"environment": ["A", "b_1"]}),
                             ("many", {"environment": ["A" * 64] * 126})):
            answer = client.start(policy="a", session_id=name, **fields)
            same(answer.get("ok"), True, answer)
        def started():
            return {r["session_id"]: r for r in records(daemon.audit)
                    if r["kind"] == "session_started"}

        until("all are on record", lambda: "many" in started())
        have = started()
        assert "environment" not in have["none"], have
        same(have["empty"]["environment"], [])
        same(have["some"]["environment"], ["A", "b_1"])
        same(have["many"]["environment"], ["A" * 64] * 126)


cases.main()
