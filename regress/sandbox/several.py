#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Several `egressctl run` at once from one configuration, each with a daemon of
its own that stays out of the way of the others."""

import atexit
import contextlib
import os
import pathlib
import pwd
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from runlib import (ORIGIN, WHO, descendants, identity, place,  # noqa: E402
                    records)
from case import Cases, Skip  # noqa: E402
from daemon import free_port  # noqa: E402
from procs import status  # noqa: E402

cases = Cases()
here = place()
atexit.register(here.end)
URL = f"https://{ORIGIN}:{here.origin.port}"


def same(have, want, why=""):
    assert have == want, f"{have!r}, expected {want!r} {why}"


def bare(who, more=""):
    """A configuration without a word on users."""
    into = here.fresh(who, "conf")
    conf, log = into / "egressd.conf", into / "audit.log"
    conf.write_text(f'audit file "{log}"\n' + here.text(more=more))
    have = identity(who)
    if have:
        os.chown(conf, have["user"], have["group"])
    return conf, log


@contextlib.contextmanager
def running(who, conf, *args):
    """A run whose command waits for its standard input to end."""
    process = here.spawn(who, "run", "-f", conf, *args, "--", "sh", "-c",
                         f"curl -sS {URL}/; echo there; read x; exit 3",
                         stdin=subprocess.PIPE)
    try:
        lines = [process.stdout.readline() for _ in range(2)]
        same(lines, [b"hello from /\n", b"there\n"])
        yield process
    finally:
        process.kill()
        process.communicate()


def end(process):
    _, err = process.communicate(b"\n", timeout=20)
    same(process.returncode, 3, err)
    return err.decode()


def no_users():
    try:
        pwd.getpwnam("_egressd-policyd")
    except KeyError:
        return
    raise Skip("egressd is installed: its users exist")


@cases.each(WHO)
def at_once(who):
    """Each has an audit file of its own, and says which."""
    conf, log = bare(who)
    no_users()
    with running(who, conf) as first, running(who, conf) as second, \
            running(who, conf) as third:
        other = [log.with_name(f"audit.log.run{n}") for n in (2, 3)]
        said = [end(process) for process in (second, third, first)]
    for text, file in zip(said, other):
        assert f"audit file {log}: another process writes it, records go " \
            f"to {file}" in text, text
    assert "another process" not in said[2], said[2]
    names = set()
    for file in (log, *other):
        written = records(file)
        same([r["kind"] for r in written if "session" in r["kind"]],
             ["session_started", "session_ended"])
        names.add(written[-1]["session_id"])
    same(len(names), 3)
    # Who comes next has the first again, and its chain goes on.
    with running(who, conf) as again:
        end(again)
    same(sum(r["kind"] == "session_started" for r in records(log)), 2)


@cases.case
def reloaded():
    """A file of its own stays its own."""
    conf, log = bare("user")
    where = here.fresh("user", "socket")
    with running("user", conf) as first, \
            running("user", conf, "-S", where) as second:
        answer = here.ask("user", "reload", where / "egressd.sock")
        same(answer["ok"], True)
        end(second)
        end(first)
    same([r["kind"] for r in records(log.with_name("audit.log.run2"))
          if "session" in r["kind"]], ["session_started", "session_ended"])


@cases.each(WHO)
def with_a_fixed_session(who):
    """Its port and its sockets are left to the daemon that serves them."""
    conf, _ = bare(who, f"""
        policy "edge" {{ allow host "x.test" }}
        session "edge" {{
            listen on 127.0.0.1 port {free_port()}
            policy "edge"
        }}
    """)
    no_users()
    args = ("-p", "open")
    with running(who, conf, *args) as first, \
            running(who, conf, *args) as second:
        end(second)
        end(first)


def uids(process):
    """Of the daemon's children."""
    found = set()
    for pid in descendants(process.pid):
        have = status(pid)
        if have and have["Name"].startswith("egressd-") and \
                have["Name"] != "egressd-box":
            found.add(int(have["Uid"].split()[0]))
    return found


@cases.case
def user_ids():
    """Root's has user ids of nobody's, and another run has others."""
    if os.getuid() != 0:
        raise Skip("not root")
    no_users()
    conf, _ = bare("root")
    with running("root", conf) as first, running("root", conf) as second:
        ours, theirs = uids(first), uids(second)
        assert len(ours) >= 5 and 0 not in ours, ours
        same(ours & theirs, set())
        for uid in ours | theirs:
            try:
                raise AssertionError(pwd.getpwuid(uid))
            except KeyError:
                pass
        end(second)
        end(first)


cases.main()
