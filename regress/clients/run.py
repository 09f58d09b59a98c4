#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Programs as they are, in a sandbox behind the gate.  Nothing is configured
in them: names and trust are what the sandbox gives.  Each fetches a file and
sends 5 MiB; installers, which send nothing, fetch a package of that size.
Every request that the origin served is in the audit file once, and no other."""

import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from clientlib import (ORIGIN, WHO, asked, fetch_and_send,  # noqa: E402
                       here, need, origin, records, same, settings, through,
                       work_for)
from case import Cases, Skip, run  # noqa: E402
from origins import (MIB, apt_repository, digest,  # noqa: E402
                     git_repository, npm_registry, wheel)
from programs import CLIENTS, PYTHON, program, python  # noqa: E402

cases = Cases()


@cases.each(CLIENTS)
def client(name):
    needed, script = CLIENTS[name]
    need(needed)
    fetch_and_send(name, WHO, script)


@cases.each(["curl", "python-urllib"])
def client_of_user(name):
    """Nobody's, where the others are root's."""
    if os.getuid() != 0:
        raise Skip("not root: the other cases are this one")
    fetch_and_send(name, "user", CLIENTS[name][1])


# ---- those that have a protocol of their own --------------------------------

@cases.case
def git():
    """Pushed is 5 MiB, which git sends in chunks; cloned is the same."""
    need(program("git"))
    web, payload = origin(), os.urandom(5 * MIB)
    bare = git_repository(web)
    work = work_for(WHO, payload=payload)
    finals = through(WHO, """
git clone -q "$URL" first
cd first
mv ../payload .
git add payload
git -c user.name=regress -c user.email=regress@origin.test commit -q -m 1
git push -q origin HEAD:main
cd ..
git clone -q "$URL" second
""", work, URL=web.url("/git/standin.git"))
    same(digest((work / "second" / "payload").read_bytes()), digest(payload))
    kept = run(["git", "-C", bare, "cat-file", "-s", "main:payload"])
    same(kept.stdout.strip(), str(len(payload)))
    sent = [r["request"]["request_body"]["bytes"] for r in finals
            if r["request"]["path"] == "/git/standin.git/git-receive-pack"]
    assert max(sent) > len(payload), sent


@cases.case
def git_is_refused():
    """It says why."""
    need(program("git"))
    conf, _ = settings(WHO)
    done = here.sh(WHO, conf, "git clone https://nope.test/x.git",
                   work=work_for(WHO))
    assert done.returncode != 0, done
    assert "remote: Denied by egress policy: default_deny (host nope.test, " \
        in done.stderr, done.stderr


# What is not HTTP: a command, and what it says.
OTHERS = {
    "git": ("git clone git://nope.test/x.git",
            "fatal: remote error: {why}"),
    "ssh": ("ssh -o BatchMode=yes -p 22 nope.test true", ":11: {why}"),
    "psql": ("psql postgres://nope.test/x?connect_timeout=30 -c 'select 1'",
             "FATAL:  {why}"),
}


@cases.each(OTHERS)
def refused_in_its_words(name):
    """At once, and not after a time that is meant for slow ones."""
    need(program(name))
    command, want = OTHERS[name]
    conf, log = settings(WHO)
    start = time.monotonic()
    done = here.sh(WHO, conf, command, work=work_for(WHO))
    assert done.returncode != 0, done
    why = "Egress gate: what is not HTTP needs a tcp rule"
    assert want.format(why=why) in done.stderr, done.stderr
    assert time.monotonic() - start < 9, "it waited"
    same({(r["kind"], r["reason"]) for r in records(log)
          if r["kind"] == "connection_refused"},
         {("connection_refused", "bad_request")})


@cases.case
def pip():
    need(python("pip"))
    web, payload = origin(), os.urandom(5 * MIB)
    wheel(web, payload)
    work = work_for(WHO)
    through(WHO, f"""
{PYTHON} -m pip --disable-pip-version-check install -q --no-cache-dir \\
    --root-user-action ignore --target into --index-url "$URL" standin
""", work, URL=web.url("/simple/"))
    same(digest((work / "into/standin/payload").read_bytes()),
         digest(payload))


@cases.case
def npm():
    need(program("node"), program("npm"))
    web, payload = origin(), os.urandom(5 * MIB)
    npm_registry(web, payload)
    work = work_for(WHO, **{"package.json": b"{}"})
    through(WHO, """
npm install --registry "$URL" --no-audit --no-fund --no-update-notifier \\
    standin
""", work, URL=web.url("/npm/"))
    same(digest((work / "node_modules/standin/payload").read_bytes()),
         digest(payload))


@cases.each(["root", "user", "user-r"])
def apt(name):
    """No option but for where the packages come from.  The suite is `/', since
    `./' is a dot segment, which the gate refuses.  apt looks for an SRV record
    too, and is told that there is none."""
    who, options = name.removesuffix("-r"), ["-r"] * name.endswith("-r")
    if who == "root" and os.getuid() != 0:
        raise Skip("not root")
    need(program("apt-get"), program("dpkg-deb"))
    work, payload = work_for(who), os.urandom(5 * MIB)
    place = f"/apt-{name}"
    apt_repository(origin(), place, payload)
    through(who, """
echo "deb [trusted=yes] $URL /" >sources.list
echo 'Dir::Etc { SourceList "'$PWD'/sources.list"; SourceParts "-"; };' >conf
export APT_CONFIG=$PWD/conf
apt-get -q update
apt-get -q download standin
dpkg-deb -x standin_1.0_all.deb into
""", work, [f"_https._tcp.{ORIGIN}"], options, URL=origin().url(place))
    same(digest((work / "into/payload").read_bytes()), digest(payload))


# ---- what the cases above rest on -------------------------------------------

@cases.case
def resolver_would_be_asked():
    """A name that only the name server knows, so that its silence above says
    something."""
    need(program("curl"))
    conf, _ = settings(
        WHO, f'allow host "elsewhere.test" port {origin().tls}')
    done = here.sh(WHO, conf, f"curl -sS -m 1 https://elsewhere.test:"
                   f"{origin().tls}/")
    assert done.returncode != 0, done.stdout
    assert any(b"elsewhere" in query for query in asked()), done.stderr


@cases.case
def trust_is_needed():
    """curl does verify: without what the sandbox gives it, it refuses."""
    need(program("curl"))
    conf, log = settings(WHO)
    done = here.sh(WHO, conf, 'curl -sS --cacert root.pem "$GET"', "-eGET",
                   work=work_for(WHO, **{
                       "root.pem": here.trust.read_bytes()}),
                   env={"GET": origin().url("/data.bin")})
    same(done.returncode, 60, done.stderr)
    same([r for r in records(log) if r["kind"] == "request_closed"], [])


cases.main()
