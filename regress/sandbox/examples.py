#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""The examples of clients do what they say, with a stand-in for the daemon: its
control socket is made up, the frames are those of egressd-box(8).  One case has
no stand-in."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / "regress" / "lib"), str(TOP / "regress" / "sandbox")]
from backends import boxing, same  # noqa: E402
from case import Cases, Skip  # noqa: E402
from hands import WAIT_S  # noqa: E402
from standin_sessions import SESSION, StandinSessions  # noqa: E402

cases = Cases()
EXAMPLES = TOP / "etc" / "examples"
# By what each is run, and how many lines it may have.
CLIENTS = {"session.py": ("python3", 60), "session.mjs": ("node", 60)}
SANDBOXES = {"zip-sandbox": 100}


def client(name, directory, argument, **env):
    runner, _ = CLIENTS[name]
    if shutil.which(runner) is None:
        raise Skip(f"{runner} is not installed")
    return subprocess.run(
        [runner, str(EXAMPLES / name), *argument], cwd=directory,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, timeout=WAIT_S,
        env={**os.environ, **env})


class Place:
    """A directory for the sandbox, one for the client, a socket."""

    def __enter__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="egressd-example."))
        for name in ("inside", "client"):
            (self.dir / name).mkdir()
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.dir)

    def standin(self, **kwargs):
        return StandinSessions(str(self.dir / "sock"), self.dir / "inside",
                               **kwargs)

    def run(self, name, *argument, **env):
        return client(name, self.dir / "client", argument, **env)


@cases.each(CLIENTS)
def session(name):
    with Place() as place, place.standin() as daemon:
        done = place.run(name, str(place.dir / "sock"))
        same((done.returncode, done.stdout, done.stderr),
             (0, "hello from the sandbox\n", ""))
        assert daemon.served.wait(WAIT_S)
        asked = daemon.asked()
        same([r["op"] for r in asked],
             ["session.start", "session.attach", "session.stop"])
        same(asked[0]["caller_cwd"], str(place.dir / "client"))
        same([r["session_id"] for r in asked[1:]], [SESSION, SESSION])
        same(os.listdir(place.dir / "inside"), [], "it clears up")


@cases.each(CLIENTS)
def with_a_daemon(name):
    """No stand-in: a sandbox in memory, which is the daemon's default."""
    daemon = boxing()
    with Place() as place:
        done = place.run(name, str(daemon.socket))
        same((done.returncode, done.stdout, done.stderr),
             (0, "hello from the sandbox\n", ""))
    same(daemon.ask("session.list")["sessions"], [])


@cases.each(CLIENTS)
def socket_by_environment(name):
    with Place() as place, place.standin():
        done = place.run(name, EGRESSD_SOCKET=str(place.dir / "sock"))
        same((done.returncode, done.stdout), (0, "hello from the sandbox\n"))


@cases.each(CLIENTS)
def session_refused(name):
    """It is told, and the example does not go on."""
    for op in ("session.start", "session.attach"):
        with Place() as place, place.standin(refuse=(op,)) as daemon:
            done = place.run(name, str(place.dir / "sock"))
            assert done.returncode != 0 and op in done.stderr and \
                "not by a stand-in" in done.stderr, done
            same(daemon.asked()[-1]["op"], op)


@cases.each(CLIENTS)
def sandbox_refuses(name):
    """A directory is where the file should be."""
    with Place() as place, place.standin():
        (place.dir / "inside" / "hello.txt").mkdir()
        done = place.run(name, str(place.dir / "sock"))
        assert done.returncode != 0 and "wrong_type" in done.stderr, done


@cases.each({**CLIENTS, **SANDBOXES})
def small(name):
    """An example is to be read."""
    lines = (EXAMPLES / name).read_text().count("\n")
    limit = CLIENTS[name][1] if name in CLIENTS else SANDBOXES[name]
    assert lines < limit, f"{lines} lines"
    assert os.access(EXAMPLES / name, os.X_OK)


cases.main()
