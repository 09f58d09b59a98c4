#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""egressctl test: what the policies of a file make of a request, offline."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases  # noqa: E402

TOP = pathlib.Path(__file__).resolve().parents[2]
EGRESSCTL = pathlib.Path(os.environ.get("B", TOP / "build")) / "egressctl"

CONF = """\
decider "netguard" operator
db = "db.example.com"
policy "coding" {
	allow tcp host $db port 5432 to private
	pass host "pinned.example.com"
	deny host "*.internal.example.com"
	allow host { "api.github.com", "*.openai.com" }
	allow host "registry.npmjs.org" method { GET, HEAD }
	allow host "api.example.com" path "/v1/**" port 8443 body 1M \\
	    to { 10.0.0.0/8, private }
	decide { "netguard" } host "ask.example.com" timeout 5s
	allow host { "2001:db8::1", "192.0.2.1" }
}
policy "narrowed" {
	narrow "netguard"
	deny host "b.example.com"
	default allow
}
policy "paths" {
	deny path "/secret"
	deny path nocase "/admin/**"
	decide "netguard" path "/ask/**"
	allow host "a.example.com" path { "/pub/*", "/one" }
	allow host "b.example.com"
}
policy "open" { default allow }
policy "empty" { }
"""

cases = Cases()


class Bench:
    def __init__(self, text=CONF, mode=0o600):
        self.dir = tempfile.TemporaryDirectory(prefix="egressd-policy.")
        self.path = pathlib.Path(self.dir.name) / "test.conf"
        self.path.write_text(text)
        self.path.chmod(mode)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.dir.cleanup()

    def run(self, *words):
        env = {k: v for k, v in os.environ.items()
               if k.endswith("SAN_OPTIONS")}
        return subprocess.run(
            [EGRESSCTL, "-f", str(self.path), "test", *words],
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
            env={**env, "LC_ALL": "C.UTF-8"}, timeout=60)

    def json(self, *words):
        done = self.run("-j", *words)
        assert done.stderr == "", done.stderr
        return done.returncode, json.loads(done.stdout)


def same(got, want):
    assert got == want, f"{got!r}, not {want!r}"


# Policy, method, URL; then exit status, verdict, rule, reason and scope.
TABLE = [
    ("coding GET https://api.github.com/x", 0, "allow", 3, None, "host"),
    ("coding POST https://chat.openai.com", 0, "allow", 3, None, "host"),
    ("coding GET http://api.github.com", 0, "allow", 3, None, "host"),
    ("coding GET http://api.github.com:443", 1, "deny", None, "default_deny",
     "host"),
    ("coding GET https://api.github.com:8443", 1, "deny", None,
     "default_deny", "host"),
    ("coding GET HTTPS://API.GitHub.COM.:443/x", 0, "allow", 3, None, "host"),
    ("coding GET https://a.internal.example.com/", 1, "deny", 2,
     "matched_deny_rule", "host"),
    ("coding GET https://registry.npmjs.org/x", 0, "allow", 4, None, "once"),
    ("coding PUT https://registry.npmjs.org/x", 1, "deny", None,
     "default_deny", "once"),
    ("coding GET https://api.example.com:8443/v1/a", 0, "allow", 5, None,
     "once"),
    ("coding GET https://api.example.com:8443/v1%2Fa", 1, "deny", None,
     "default_deny", "once"),
    ("coding GET https://ask.example.com/", 3, "decide", 6, None, "once"),
    ("coding GET https://pinned.example.com/", 0, "allow", 1, None, "host"),
    ("coding - tcp://db.example.com:5432", 0, "allow", 0, None, "host"),
    ("coding - tcp://db.example.com:22", 1, "deny", None, "default_deny",
     "host"),
    ("coding - tcp://api.github.com:443", 1, "deny", None, "bad_request",
     "host"),
    ("coding GET https://[2001:DB8:0::1]/", 0, "allow", 7, None, "host"),
    ("coding GET https://[2001:db8::1]:443/", 0, "allow", 7, None, "host"),
    ("coding GET https://192.0.2.1/", 0, "allow", 7, None, "host"),
    ("narrowed GET https://a.example.com/", 3, "decide", 0, None, "once"),
    ("narrowed GET https://b.example.com/", 1, "deny", 1,
     "matched_deny_rule", "host"),
    ("open GET https://a.example.com:1/", 0, "allow", None, None, "host"),
    ("open - tcp://a.example.com:1", 1, "deny", None, "bad_request", "host"),
    ("empty GET https://a.example.com/", 1, "deny", None, "default_deny",
     "host"),
]


@cases.each(row[0] for row in TABLE)
def verdict(words):
    status, *want = next(row[1:] for row in TABLE if row[0] == words)
    with Bench() as bench:
        got, answer = bench.json(*words.split())
        rule = answer["matched_rule"]
        same((got, answer["verdict"], rule and rule["index"],
              answer["reason"], answer["scope"]), (status, *want))
        same(bench.run(*words.split()).returncode, status)


@cases.case
def whole_answer():
    with Bench() as bench:
        _, answer = bench.json("coding", "GET",
                               "https://API.example.com:8443/v1/%61?q=1")
        same(answer, {
            "verdict": "allow", "reason": None, "scope": "once",
            "unread": False, "to_private": True, "to": ["10.0.0.0/8"],
            "body": 1048576, "policy": "coding",
            "matched_rule": {
                "index": 5, "kind": "allow", "file": str(bench.path),
                "line": 9,
                "text": 'allow host "api.example.com" port 8443 path "/v1/**"'
                        ' to { private, 10.0.0.0/8 } body 1M'},
            "request": {"host": "api.example.com", "port": 8443,
                        "scheme": "https", "method": "GET",
                        "path": "/v1/a?q=1"}})
        _, answer = bench.json("coding", "-", "tcp://db.example.com:5432")
        same(answer["request"], {"host": "db.example.com", "port": 5432,
                                 "scheme": "tcp"})
        assert answer["unread"], answer
        _, answer = bench.json("coding", "GET", "https://ask.example.com")
        same(answer["deciders"], ["netguard"])


@cases.case
def as_text():
    with Bench() as bench:
        done = bench.run("coding", "GET", "https://x.internal.example.com/")
        same(done.stdout,
             "verdict   deny\n"
             f"rule      2, {bench.path}:6: "
             'deny host "*.internal.example.com"\n'
             "reason    matched_deny_rule\n"
             "scope     host\n")
        done = bench.run("coding", "-", "tcp://db.example.com:5432")
        same(done.stdout,
             "verdict   allow\n"
             f"rule      0, {bench.path}:4: allow tcp "
             'host "db.example.com" port 5432 to private\n'
             "scope     host\n"
             "          forwarded without being looked into\n")
        done = bench.run("empty", "GET", "https://a.example.com/")
        same(done.stdout.split("\n")[1], "rule      none, the default")


# A path, and the rule that decided, the reading that it had of the path, and
# the rule that would have allowed it with another one.
PATHS = {
    "/secret": (0, None, None),
    "/secret/": (0, "/secret/", None),
    "/secret.": (0, "/secret", None),
    "/secret%20": (0, "/secret", None),
    "/%2573ecret": (0, "/secret", None),
    "/%252573ecret": (0, "/secret", None),
    "/secret%3B": (0, "/secret", None),
    "/secret;x=y": (0, "/secret", None),
    "/secret%3Fx": (0, "/secret", None),
    "//secret": (0, "//secret", None),
    "/secret?x": (0, None, None),
    "/SECRET": (None, None, None),
    "/Admin": (1, None, None),
    "/%2541DMIN%252fx;y": (1, "/ADMIN/x;y", None),
    "/ask/x": (2, None, None),
    "/pub/a": (3, None, None),
    "/pub/a%20b": (3, None, None),
    "/pub/a%2Fb": (None, None, (3, "/pub/a/b")),
    "/pub/%FC%252Fb": (None, None, (3, "/pub/%FC/b")),
    "/pub/%20": (None, None, (3, "/pub/")),
    "/one/": (None, None, None),
}


@cases.each(PATHS)
def path_explained(path):
    with Bench() as bench:
        _, got = bench.json("paths", "GET", f"https://a.example.com{path}")
        rule, missed = got["matched_rule"], got.get("missed_rule")
        same((rule and rule["index"], got.get("read_as"),
              missed and (missed["index"], missed["read_as"])), PATHS[path])


@cases.case
def path_may_be_decided():
    """Of what only some origins read as the rule's, the decider has to allow
    it and so has the rest of the policy."""
    with Bench() as bench:
        for host, path, status in [("a", "/ask/x", 3), ("b", "/ask/x", 3),
                                   ("b", "//ask/x", 3), ("a", "//ask/x", 1),
                                   ("b", "/ask%2Fx", 3), ("b", "/x", 0)]:
            done = bench.run("paths", "GET",
                             f"https://{host}.example.com{path}")
            same((host, path, done.returncode), (host, path, status))


@cases.case
def path_as_text():
    with Bench() as bench:
        done = bench.run("paths", "GET", "https://a.example.com/%2573ecret")
        same(done.stdout.split("\n")[1:3],
             [f'rule      0, {bench.path}:20: deny path "/secret"',
              "read as   /secret"])
        done = bench.run("paths", "GET", "https://a.example.com/pub/a%2Fb")
        same(done.stdout.split("\n")[2],
             "          rule 3 would allow it, but an origin may read the "
             "path as /pub/a/b")
        done = bench.run("paths", "GET", "https://a.example.com/Admin")
        assert 'deny path nocase "/admin/**"' in done.stdout, done.stdout


BAD = {
    "codng GET https://a.example.com": 'unknown policy "codng", did you mean '
                                       '"coding"?',
    "zzz GET https://a.example.com": 'unknown policy "zzz", known are: '
                                     "coding, narrowed, paths, open, empty",
    "coding get https://a.example.com": 'method "get": must be',
    "coding G(T https://a.example.com": 'method "G(T": must be',
    "coding GET tcp://a.example.com:1": "tcp:// has no method",
    "coding - tcp://a.example.com": "tcp:// needs a port",
    "coding - tcp://a.example.com:1/x": "tcp:// has no path",
    "coding GET a.example.com": "it must begin with https://",
    "coding GET ftp://a.example.com": "it must begin with https://",
    "coding GET https://": 'URL "https://": ',
    "coding GET https://u:p@a.example.com/": "no user or password",
    "coding GET https://a.example.com:0/": "port must be between",
    "coding GET https://a.example.com:65536/": "port must be between",
    "coding GET https://a.example.com:443x/": "port must be between",
    "coding GET https://[192.0.2.1]/": "must hold an IPv6 address",
    "coding GET https://[::1/": "must hold an IPv6 address",
    "coding GET https://[::1]x/": "only a port may follow",
    "coding GET https://192.0.2/": 'URL "https://192.0.2/": ',
    "coding GET https://a..b/": 'URL "https://a..b/": ',
    "coding GET https://a.example.com/../x": "dot segment",
    "coding GET https://a.example.com/%25252525": "escaped too often",
    "coding GET https://a.example.com/..%20/x": "dot segment",
    "coding GET https://a.example.com/x#y": 'URL "https://',
    "coding GET": 'something is missing after "GET": URL',
    "coding": 'something is missing after "coding": method',
}


@cases.each(BAD)
def refused(words):
    with Bench() as bench:
        done = bench.run(*words.split())
        same((done.returncode, done.stdout), (2, ""))
        assert BAD[words] in done.stderr, done.stderr


@cases.case
def bad_configuration():
    with Bench('policy "p" { allow tcp }\nbogus\n') as bench:
        done = bench.run("p", "GET", "https://a.example.com/")
        same((done.returncode, done.stdout), (2, ""))
        lines = done.stderr.split("\n")
        same(lines[0], f"{bench.path}:1: allow tcp must say which port")
        assert lines[1].startswith(f"{bench.path}:2: "), lines
    with Bench(mode=0o666) as bench:
        done = bench.run("coding", "GET", "https://a.example.com/")
        same(done.returncode, 2)
        assert "writable by group or others" in done.stderr, done.stderr
    with Bench() as bench:
        bench.path.unlink()
        done = bench.run("coding", "GET", "https://a.example.com/")
        same(done.returncode, 2)
        assert "No such file" in done.stderr, done.stderr
        assert "with -f" not in done.stderr, done.stderr


@cases.case
def terminal_is_safe():
    with Bench() as bench:
        done = bench.run("coding", "GET", "https://a.example.com/\033[31m")
        same(done.returncode, 2)
        assert "\033" not in done.stderr, done.stderr
        done = bench.run("\033[2J", "GET", "https://a.example.com/")
        assert "\033" not in done.stderr, done.stderr


cases.main()
