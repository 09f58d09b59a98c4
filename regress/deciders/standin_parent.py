#
# Copyright (c) 2026 The egressd authors
#
# Permission to use, copy, modify, and distribute this software for any
# purpose with or without fee is hereby granted, provided that the above
# copyright notice and this permission notice appear in all copies.
#
# THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES
# WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF
# MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR
# ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES
# WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
# ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF
# OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
#


"""A real egressd-deciderd; its parent and policyd are stand-ins."""

import json
import os
import pathlib
import queue
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / "regress" / "lib"), str(TOP / "regress" / "dialer")]
from case import Skip  # noqa: E402
from channel import C, Channel  # noqa: E402
from daemon import BUILD, WAIT_S, until  # noqa: E402

UID = 61291
QUESTION = {
    "session_id": "job-42",
    "recent_messages": [
        {"role": "user", "content": "update the changelog", "at": 1}],
    "request": {"scheme": "https", "host": "api.good.test", "port": 443,
                "method": "GET", "path": "/x", "body_bytes": 0},
    "metadata": {"tenant": "acme"},
}


def document(question=None):
    return json.dumps(question or QUESTION, ensure_ascii=False,
                      separators=(",", ":"))


def in_user_namespace():
    return pathlib.Path("/proc/self/uid_map").read_text().split() != \
        ["0", "0", "4294967295"]


class Program:
    """What the parent would start; its session is killed as a whole."""

    def __init__(self, argv):
        ours, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                argv, stdin=theirs, stdout=theirs, start_new_session=True)
        self.ours = ours

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


class Deciderd:
    """Started, confined and configured; conf() loads another generation.

    deciders: [dict(name=..., kind=..., ...)] with files as key=, prompt= and
    trust=, a program as command= and a socket as path=.
    """

    def __init__(self, *deciders, resolvers=()):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="egressd-deciderd."))
        self.generation = self.last = 0
        self.helpers = {}
        self.asked = queue.Queue()      # names of helpers
        self.done = queue.Queue()       # cookies
        self.messages = queue.Queue()
        self.quiet = True               # it has nothing to warn of
        self.parent, self.policyd = Channel(), Channel()
        self.lock = threading.Lock()
        self.errors = open(self.dir / "stderr", "w+")
        self.process = subprocess.Popen(
            [str(BUILD / "libexec" / "egressd-deciderd")], close_fds=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=self.errors, env={},
            preexec_fn=lambda: os.dup2(self.parent.other.fileno(), 3))
        self.parent.other.close()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()
        self.boot()
        self.conf(*deciders, resolvers=resolvers)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        """It lives to the end; quiet, unless a case says otherwise."""
        try:
            if kind is None:
                assert self.process.poll() is None, self.log()
                self.parent.sock.shutdown(socket.SHUT_RDWR)
                assert self.process.wait(WAIT_S) == 0, self.log()
                assert not self.quiet or self.log() == "", self.log()
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self.thread.join()
            for program in self.helpers.values():
                program.kill()
            self.policyd.close()
            self.parent.close()
            self.errors.close()
            shutil.rmtree(self.dir, ignore_errors=True)

    def log(self):
        return (self.dir / "stderr").read_text(errors="replace")

    def boot(self):
        root = self.dir / "root"
        root.mkdir(mode=0o555)
        self.dir.chmod(0o755)
        uid = UID if os.geteuid() == 0 and not in_user_namespace() else 0
        self.send("BOOT", role=C["ROLE_DECIDERD"], log_level=2, uid=uid,
                  gid=uid, chroot=str(root) if uid else "")
        self.send("CHANNEL", fd=self.policyd.other.fileno(),
                  peer=C["ROLE_POLICYD"])

    def send(self, name, /, fd=None, **values):
        with self.lock:
            self.parent.send(name, fd, **values)

    # ---- what the parent does ----

    def serve(self):
        while True:
            try:
                message = self.parent.read(None)
            except OSError:
                message = None
            if message is None:
                self.messages.put(None)
                return
            if message.name == "HELPER_ASK":
                self.help(message)
            elif message.name == "HELPER_DONE":
                if message.cookie in self.helpers:
                    self.helpers.pop(message.cookie).kill()
                self.done.put(message.cookie)
            else:
                self.messages.put(message)

    def help(self, message):
        decider = self.deciders[message.decider]
        self.asked.put(message.decider)
        try:
            if "path" in decider:
                sock = socket.socket(socket.AF_UNIX)
                sock.connect(str(decider["path"]))
            else:
                program = Program(decider["command"])
                self.helpers[message.cookie] = program
                sock = program.ours
        except OSError as error:
            self.send("HELPER_FAILED", cookie=message.cookie,
                      why=error.strerror)
            return
        with sock:
            self.send("HELPER", fd=sock.fileno(), cookie=message.cookie)
        if "command" in decider:
            threading.Thread(target=self.reap, daemon=True,
                             args=[message.cookie, program]).start()

    def reap(self, cookie, program):
        status = program.process.wait()
        program.kill()
        try:
            self.send("HELPER_EXITED", cookie=cookie,
                      why=f"it exited with status {status}" if status else "")
        except OSError:
            pass    # it has ended before its program

    def expect(self, name):
        message = self.messages.get(timeout=WAIT_S)
        assert message is not None and message.name == name, \
            f"{message} instead of {name}: {self.log()}"
        return message

    def send_file(self, what, content):
        with tempfile.TemporaryFile() as file:
            file.write(content if isinstance(content, bytes) else
                       content.encode())
            file.seek(0)
            self.send("CONF_FILE", fd=file.fileno(), what=C[what])

    def prepare(self, *deciders, resolvers=()):
        self.generation += 1
        self.deciders = {d["name"]: d for d in deciders}
        self.send("CONF_BEGIN", generation=self.generation)
        for server in resolvers:
            self.send("CONF_RESOLVER", address=server.host, port=server.port)
        for decider in deciders:
            values = {k: v for k, v in decider.items() if k in (
                "name", "url", "model", "persistent")}
            self.send("CONF_DECIDER", **values, kind=C[decider["kind"]],
                      api=C[decider.get("api", "API_ANTHROPIC")],
                      timeout_ms=5000, concurrency=8)
            for what in ("key", "prompt", "trust"):
                if what in decider:
                    self.send_file(f"FILE_{what.upper()}", decider[what])
        self.send("CONF_END", generation=self.generation)

    def commit(self):
        self.send("CONF_COMMIT", generation=self.generation)
        self.expect("CONF_DONE")

    def conf(self, *deciders, resolvers=()):
        self.prepare(*deciders, resolvers=resolvers)
        self.expect("CONF_ACK")
        self.commit()

    # ---- what policyd does ----

    def put(self, decider, question=None, timeout_ms=10000):
        """Ask; the number of the question."""
        self.last += 1
        self.policyd.send("QUESTION", id=self.last, timeout_ms=timeout_ms,
                          decider=decider, document=document(question))
        return self.last

    def answer(self, timeout=WAIT_S):
        message = self.policyd.read(timeout)
        assert message is not None, f"hung up: {self.log()}"
        message.word = next(
            w for w in ("ALLOW", "DENY", "UNSURE", "TIMEOUT", "ERROR",
                        "BAD_RETURN") if C[f"ANSWER_{w}"] == message.result)
        return message

    def ask(self, decider, question=None, timeout_ms=10000):
        number = self.put(decider, question, timeout_ms)
        message = self.answer()
        assert message.id == number, message
        return message

    def gives(self, decider, word, reason=None, **kwargs):
        """One question has to end so."""
        message = self.ask(decider, **kwargs)
        assert message.word == word, f"{message.word}: {message.reason}"
        if reason is not None:
            assert message.reason == reason, message.reason
        return message

    def descriptors(self):
        try:
            return len(os.listdir(f"/proc/{self.process.pid}/fd"))
        except PermissionError:
            raise Skip("only root sees what it holds") from None

    def settle(self, count):
        until(f"{count} descriptors", lambda: self.descriptors() == count)
