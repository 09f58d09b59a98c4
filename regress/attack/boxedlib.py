# SPDX-License-Identifier: ISC

"""What the batteries against sandboxes of the daemon's share: a daemon that is
root's and makes them, and clients that are not."""

import json
import os
import pathlib
import shutil
import sys
import tempfile
import textwrap

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import backends  # noqa: E402
from daemon import Client, Daemon, alive, until  # noqa: E402
from procs import children, descriptors  # noqa: E402

# Two who have an entry in every Debian's /etc/passwd.
ALICE, BOB = 65534, 5           # nobody, games
if os.geteuid() != 0:
    print("skip all: a daemon that is not root has one user")
    sys.exit(0)


def same(have, want, why=""):
    assert have == want, f"{have!r}, expected {want!r} {why}"


class Attached(backends.Attached):
    """A connection to a sandbox."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Host(Daemon):
    """A daemon for everybody on the machine, in a process group of its own:
    what it does to that is not to reach the test."""

    def popen(self, **kwargs):
        return super().popen(start_new_session=True, **kwargs)

    def start(self):
        super().start()
        self.dir.chmod(0o755)
        self.socket.chmod(0o666)
        return self

    def begin(self, name, sandbox, **fields):
        answer = self.ask("session.start", session_id=name, sandbox=sandbox,
                          **fields)
        assert answer.get("ok"), answer
        return name

    def sessions(self):
        return {s["session_id"]: s
                for s in self.ask("session.list")["sessions"]}

    def gone(self, name):
        """Its session, and the engine of that."""
        until(f"{name} is over", lambda: name not in self.sessions() and
              f"egressd-tlsengine: {name}" not in
              children(self.process.pid).values())

    def stop_session(self, name):
        answer = self.ask("session.stop", session_id=name)
        assert answer.get("ok"), answer

    def boxes(self):
        """The first process of each sandbox."""
        return [pid for pid, name in children(self.process.pid).items()
                if name == "egressd-box"]

    def held(self):
        """What parent and controld have open, and the parent's children."""
        pids = self.processes()
        return (len(descriptors(pids["parent"])),
                len(descriptors(pids["controld"])),
                len(children(pids["parent"])))

    def idle(self):
        """Whether no session is there, nor any process of one."""
        return not self.sessions() and not [
            1 for name in children(self.process.pid).values()
            if name.startswith("egressd-box") or "engine" in name]

    def works(self):
        """It is there, all of it, and makes another sandbox."""
        assert self.process.poll() is None, f"it died: {self.log()[-800:]}"
        name = self.begin("works", "virtual")
        with Attached(self, name) as hands:
            same(hands.call("exec", command="echo here").out, b"here\n")
        self.stop_session(name)
        self.gone(name)


def inner_pid(pid):
    """The number of a process in its innermost namespace."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return [line for line in text.splitlines()
            if line.startswith("NSpid:")][0].split()[-1]


class Sandbox:
    """A session for one case, and a connection to it."""

    def __init__(self, host, backend, name="siege", **fields):
        known = set(host.boxes())
        self.host = host
        self.name = host.begin(name, backend, **fields)
        self.box, = set(host.boxes()) - known
        self.hands = Attached(host, name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.hands.close()
        self.host.ask("session.stop", session_id=self.name)
        self.host.gone(self.name)
        until("its box has ended", lambda: not alive(self.box))

    def sh(self, command, **members):
        return self.hands.call("exec", command=command, **members).out.decode()

    def python(self, code, **members):
        """The last line that a program inside prints, from JSON."""
        done = self.hands.call("exec", argv=[
            "/usr/bin/python3", "-c", textwrap.dedent(code)], **members)
        assert done.out, (done.result, done.err)
        return json.loads(done.out.splitlines()[-1])

    def hands_pid(self):
        """By the number that the host has for it."""
        first, = [p for p in children(self.box) if inner_pid(p) == "1"]
        pid, = children(first)
        return pid


class Place:
    """Directories of users, below one that everybody may pass."""

    def __init__(self):
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="egressd-siege."))
        self.top.chmod(0o755)

    def make(self, name, uid, mode=0o755):
        path = self.top / name
        path.mkdir(mode=mode, parents=True)
        path.chmod(mode)
        os.chown(path, uid, uid)
        return path

    def end(self):
        shutil.rmtree(self.top, ignore_errors=True)


def become(uid, gid, groups):
    os.setgroups(list(groups))
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def as_user(uid, function, *args, gid=None, groups=()):
    """What a function returns that another user runs, in a child."""
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(reads)
            become(uid, uid if gid is None else gid, groups)
            text = json.dumps(function(*args))
            with os.fdopen(writes, "w") as out:
                out.write(text)
            code = 0
        except BaseException as error:      # whatever: the parent tells it
            print(f"as {uid}: {error!r}", flush=True)
        finally:
            os._exit(code)
    os.close(writes)
    with os.fdopen(reads) as answers:
        text = answers.read()
    same(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, f"as {uid}")
    return json.loads(text)


def ask_as(uid, path, op, gid=None, groups=(), **fields):
    """One request of that user's."""
    def one():
        with Client(path) as client:
            return client.ask(op, **fields)
    return as_user(uid, one, gid=gid, groups=groups)


def error(answer):
    assert "error" in answer, answer
    return answer["error"]["code"], answer["error"]["message"]
