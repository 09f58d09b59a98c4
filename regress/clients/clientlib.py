# SPDX-License-Identifier: ISC

"""What the tests of clients share: an origin, a name server that nobody may
ask, and a sandbox in which a script runs, with its records."""

import atexit
import functools
import os
import pathlib
import socket
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "lib"), str(HERE.parent / "sandbox")]
from case import Skip, run  # noqa: E402
from daemon import TOP, until  # noqa: E402
from gate import FINAL  # noqa: E402
from origins import MIB, Web, digest  # noqa: E402
from programs import PATH  # noqa: E402
from runlib import ORIGIN, place, records  # noqa: E402

here = place()
atexit.register(here.end)

WHO = "root" if os.getuid() == 0 else "user"


def same(have, want, why=""):
    assert have == want, f"{have!r}, expected {want!r} {why}"


def need(*wanted):
    for what, command in wanted:
        if run(command, env={"PATH": PATH}).returncode != 0:
            raise Skip(f"{what} is not installed")


@functools.cache
def origin():
    web = Web(ORIGIN)
    atexit.register(web.end)
    return web


@functools.cache
def resolver():
    """The daemon's name server: one that only listens."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("127.0.0.1", 0))
    sock.setblocking(False)
    return sock


def asked():
    """The queries since the last time."""
    found = []
    while True:
        try:
            found.append(resolver().recv(4096))
        except BlockingIOError:
            return found


def work_for(who, **files):
    """A directory to work in, with these files."""
    work = here.fresh(who, "work")
    for name, data in files.items():
        (work / name).write_bytes(data)
    return work


def settings(who, rule=None):
    rule = rule or f'allow host "{ORIGIN}" port {origin().tls}'
    return here.conf(
        who, f'policy "p" {{ {rule} }}\n',
        f"resolver 127.0.0.1 port {resolver().getsockname()[1]}\n")


def run_through(who, script, work, rule=None, options=(), **env):
    """A script in a sandbox, that must do well; its output and records."""
    conf, log = settings(who, rule)
    done = here.sh(who, conf, f"set -e\n{script}", *options,
                   *(f"-e{name}" for name in env), work=work, env=env)
    same(done.returncode, 0, f"{done.stdout[-400:]} {done.stderr[-800:]}")
    return done.stdout, records(log)


def through(who, script, work, more_names=(), options=(), **env):
    """A script in a sandbox.  What the origin has served is what the audit
    file has, request for request.  Inside, only the origin's name was asked
    for, and more_names; outside, none."""
    web = origin()
    before = len(web.log())
    _, written = run_through(who, script, work, None, options, **env)
    finals = [r for r in written if r["kind"] in FINAL]
    same([r for r in finals if r["kind"] != "request_closed"], [])
    told = sorted((r["request"]["method"], r["request"]["path"],
                   r["request"]["response_status"]) for r in finals)
    until(f"the origin has served {told}",
          lambda: sorted(web.log()[before:]) == told, 5)
    same({(r["request"]["host"], r["request"]["port"]) for r in finals},
         {(ORIGIN, web.tls)})
    same({r["request"]["host"] for r in written
          if r["kind"] == "name_asked"}, {ORIGIN, *more_names})
    same(asked(), [], "asked of the name server")
    return finals


def fetch_and_send(client, who, script, *options, **env):
    """The script gets $GET into `got', posts `body' to $POST into `reply'."""
    web = origin()
    path, body = f"/hash/{client}-{who}", os.urandom(5 * MIB)
    work = work_for(who, body=body)
    finals = through(who, script, work, (), options, GET=web.url("/data.bin"),
                     POST=web.url(path), HOST=f"{ORIGIN}:{web.tls}", **env)
    same(digest((work / "got").read_bytes()), digest(web.data), "got")
    same(web.posted(path), (len(body), digest(body)), "posted")
    same((work / "reply").read_text(), digest(body), "reply")
    post, = [r["request"] for r in finals if r["request"]["method"] == "POST"]
    same(post["request_body"]["bytes"], len(body))


# By its real name, which is what a sandbox is shown.
PACKAGES = (TOP / "build" / "npm" / "lib" / "node_modules").resolve()


def of_npm(pattern):
    """A file of the packages that `make npm' installs."""
    for path in sorted(PACKAGES.glob(pattern)):
        return path
    raise Skip(f"{pattern.partition('/')[0]} is not installed (make npm)")
