# SPDX-License-Identifier: ISC

"""Where the conformance cases run: every kind of sandbox there is, each by a
class of its own.  A case is written once and knows of a sandbox only what
frames tell, so another kind is a subclass of Backend in BACKENDS.

    cases = Conformance()

    @cases.everywhere
    def empty_file(box):
        box.write("a", b"")
        same(box.read("a"), b"")

A backend may lack operations: hello does not list those, and the answer to
each is not_supported and nothing else.  A case that comes to one is over.  So
it is where there is no shell, which is not_found, and by its name."""

import atexit
import functools
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile

from case import Cases
from daemon import Daemon, until
from hands import BOX, TOP, WAIT_S, Hands, HandsError, Request
from procs import status

MIB = 1 << 20
ZIP_SANDBOX = TOP / "etc" / "examples" / "zip-sandbox"


def same(have, want, what=""):
    assert have == want, \
        f"{what}: {str(have)[:250]!r}, expected {str(want)[:250]!r}"


class Lacking(Exception):
    """The backend has no such operation, and said so as it should."""


class Connection(Hands):
    """A connection to a program that a test has started for it."""

    def __init__(self, reads, writes, proc):
        self.ours, self.proc = {reads, writes}, proc
        try:
            super().__init__(reads.fileno(), writes.fileno())
        except BaseException:
            self.proc.kill()
            self.close()
            raise

    def hang_up(self):
        """Both directions at once, as when the client has died."""
        with self.sending:
            for end in self.ours:
                if isinstance(end, socket.socket):
                    end.shutdown(socket.SHUT_RDWR)
                elif end.fileno() == self.write_fd:
                    end.close()

    def close(self):
        """Returns the program's exit status."""
        try:
            self.hang_up()
        except (OSError, ValueError):
            pass    # it was first
        try:
            code = self.proc.wait(WAIT_S)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.wait()
            raise
        if hasattr(self, "reader"):
            self.reader.join(WAIT_S)
        for end in self.ours:
            end.close()
        return code


class Backend:
    """A sandbox, empty at first, for one case."""

    name = None
    shell = True        # and the tools that one expects beside it

    def __init__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="egressd-conform."))

    def connect(self):
        """Another connection to the same sandbox."""
        raise NotImplementedError

    def memory(self, connection):
        """Bytes in memory of the process that serves; None: not to be seen."""
        return None

    def end(self):
        shutil.rmtree(self.dir, ignore_errors=True)


class Bare(Backend):
    """egressd-box hands where it stands, on a socket."""

    name = "bare"

    def connect(self):
        ours, theirs = socket.socketpair()
        with theirs:
            proc = subprocess.Popen(
                [str(BOX), "hands", "-d", str(self.dir)], stdin=theirs,
                stdout=theirs, cwd="/")
        return Connection(ours, ours, proc)

    def memory(self, connection):
        size = status(connection.proc.pid).get("VmRSS")
        return int(size.split()[0]) * 1024 if size else None


class Custom(Backend):
    """The example of a sandbox of one's own, on pipes."""

    name = "custom"

    def connect(self):
        proc = subprocess.Popen(
            [sys.executable, "-B", str(ZIP_SANDBOX), str(self.dir / "zip")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        return Connection(proc.stdout, proc.stdin, proc)


class Attached(Hands):
    """A connection to a sandbox that a daemon has made."""

    def __init__(self, daemon, name):
        self.sock = socket.socket(socket.AF_UNIX)
        try:
            self.sock.settimeout(WAIT_S)
            self.sock.connect(str(daemon.socket))
            self.attach(name)
            self.sock.settimeout(None)
            super().__init__(self.sock.fileno(), self.sock.fileno())
        except BaseException:
            self.sock.close()
            raise

    def attach(self, name):
        """Byte by byte, as what follows the answer are frames."""
        self.sock.sendall(json.dumps({"id": 1, "op": "session.attach",
                                      "session_id": name}).encode() + b"\n")
        line = b""
        while not line.endswith(b"\n"):
            piece = self.sock.recv(1)
            assert piece, f"attach to {name}: {line}"
            line += piece
        assert json.loads(line).get("ok"), line

    def hang_up(self):
        self.sock.shutdown(socket.SHUT_RDWR)

    def close(self):
        try:
            self.hang_up()
        except OSError:
            pass    # it was first
        if hasattr(self, "reader"):
            self.reader.join(WAIT_S)
        self.sock.close()
        return 0


@functools.cache
def boxing():
    """A daemon that makes sandboxes, for all cases of a file."""
    top = pathlib.Path(tempfile.mkdtemp(prefix="egressd-boxed."))
    top.chmod(0o755)
    root = os.geteuid() == 0
    user = 'user "nobody"' if root else ""
    daemon = Daemon(f"""
        default sandbox "virtual"
        policy "none" {{ }}
        sandbox "local" local {{ policy "none" {user} cwd "{top}" }}
        sandbox "virtual" virtual {{ policy "none" {user} size 1G }}
    """)
    atexit.register(shutil.rmtree, top, ignore_errors=True)
    atexit.register(daemon.end)
    daemon.start()
    daemon.settle()
    daemon.top = top
    return daemon


class Boxed(Backend):
    """A session of a daemon, and its sandbox."""

    def __init__(self):
        self.daemon = boxing()
        self.dir = pathlib.Path(tempfile.mkdtemp(dir=self.daemon.top))
        if os.geteuid() == 0:
            shutil.chown(self.dir, "nobody")
        self.session = self.dir.name
        answer = self.daemon.ask("session.start", session_id=self.session,
                                 sandbox=self.name, **self.wishes())
        assert answer.get("ok"), answer

    def wishes(self):
        return {}

    def connect(self):
        return Attached(self.daemon, self.session)

    def end(self):
        answer = self.daemon.ask("session.stop", session_id=self.session)
        assert answer.get("ok"), answer
        super().end()


class Local(Boxed):
    """Files of this machine."""

    name = "local"

    def wishes(self):
        return {"cwd": str(self.dir)}


class Virtual(Boxed):
    """Files in memory."""

    name = "virtual"


BACKENDS = [Bare, Local, Virtual, Custom]


class Box:
    """What a case gets: a connection to a sandbox, and shorthands."""

    def __init__(self, backend):
        self.backend = backend
        self.hands = backend.connect()
        self.cwd = self.hands.hello["cwd"]
        self.operations = set(self.hands.hello["operations"])

    def close(self):
        return self.hands.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def another(self):
        return Box(self.backend)

    def empty(self):
        """What is left of an earlier case in a sandbox that is kept."""
        for item in self.call("list").items:
            self.call("remove", path=item["name"], recursive=True)

    def need(self, op, **members):
        """Go on only if there is such an operation."""
        if op in self.operations:
            self.need_shell(op, **members)
            return
        try:
            self.hands.call(op, **members)
        except HandsError as error:
            same(error.code, "not_supported", f"{op}, which hello lacks")
            raise Lacking(op) from None
        raise AssertionError(f"{op}: done, but not in hello's operations")

    def need_shell(self, op, **members):
        """Calls that are wrong are refused as they are everywhere."""
        if op != "exec" or self.backend.shell:
            return
        words = members.get("argv") or ["/bin/sh"]
        try:
            self.hands.call(op, **members)
        except HandsError as error:
            if error.code == "not_found" and words[0] in error.message:
                raise Lacking(words[0]) from None
            return
        raise AssertionError(f"{members}: done, without a shell")

    def start(self, op, data=None, hold=False, **members):
        self.need(op, **members)
        return self.hands.start(op, data, hold=hold, **members)

    def call(self, op, data=None, **members):
        return self.start(op, data, **members).wait()

    def expect(self):
        """A request of a number of its own, of which nothing is sent yet."""
        with self.hands.changed:
            self.hands.number += 1
            request = Request(self.hands, self.hands.number, False)
            self.hands.requests[request.number] = request
        return request

    def refused(self, code, op, data=None, **members):
        """The error, which has to be of this code."""
        try:
            answer = self.call(op, data, **members)
        except HandsError as error:
            same(error.code, code, error.message)
            return error
        raise AssertionError(f"{op} {members}: {answer}, expected {code}")

    def write(self, path, data=b"", **members):
        return self.call("write", data, path=path, **members).result

    def read(self, path, **members):
        return self.call("read", path=path, **members).out

    def sh(self, command, **members):
        """A command that has to succeed; what it wrote, as text."""
        answer = self.call("exec", command=command, **members)
        same(answer.result, {"exit_code": 0}, f"{command}: {answer.err}")
        return answer.out.decode()

    def names(self, path="."):
        return [item["name"] for item in self.call("list", path=path).items]

    def globbed(self, pattern, **members):
        return [item["path"] for item in
                self.call("glob", pattern=pattern, **members).items]

    def alive(self, *pids):
        """Those of the processes in the sandbox that run, zombies not."""
        shown = self.call("exec", command="".join(
            f"echo; cat /proc/{pid}/status 2>/dev/null; " for pid in pids)
            + ":").out.decode().split("\n\n")
        return [pid for pid in pids for text in shown
                if f"\nPid:\t{pid}\n" in text and "\nState:\tZ" not in text
                and "\nState:\tX" not in text]

    def gone(self, *pids):
        until(f"processes {pids} have ended", lambda: not self.alive(*pids))

    def memory(self):
        return self.backend.memory(self.hands)


def run_on(kind, function):
    backend = kind()
    try:
        with Box(backend) as box:
            box.empty()
            try:
                function(box)
            except Lacking:
                pass
            box.hands.check()
            same(box.close(), 0, "exit status of the sandbox's program")
    finally:
        backend.end()


class Conformance(Cases):
    def everywhere(self, function):
        """A case for each backend: function[backend]."""
        for kind in BACKENDS:
            self.list.append((f"{function.__name__}[{kind.name}]",
                              functools.partial(run_on, kind, function)))
        return function

    def each_everywhere(self, values):
        """A case for each value: function_value[backend]."""
        def decorate(function):
            for value in values:
                bound = functools.partial(function, value)
                bound.__name__ = f"{function.__name__}_{value}"
                self.everywhere(bound)
            return function
        return decorate
