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
import signal
import socket
import subprocess
import sys
import tempfile
import threading

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from channel import C  # noqa: E402
from child import Child  # noqa: E402
from daemon import WAIT_S  # noqa: E402

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


class Deciderd(Child):
    """With deciders: [dict(name=..., kind=..., ...)] with files as key=,
    prompt= and trust=, a program as command= and a socket as path=."""

    def __init__(self, *deciders, resolvers=()):
        self.last = 0
        self.helpers = {}
        self.asked = queue.Queue()      # names of helpers
        self.done = queue.Queue()       # cookies
        super().__init__("deciderd", UID)
        self.conf(*deciders, resolvers=resolvers)

    def close(self):
        super().close()
        for program in self.helpers.values():
            program.kill()

    def complaints(self):
        """All but what it says of a decider, which is a case's to read."""
        return "".join(
            line for line in self.log().splitlines(keepends=True)
            if not line.startswith('deciderd: decider "'))

    # ---- what the parent does ----

    def serve(self, message):
        if message.name == "HELPER_ASK":
            self.help(message)
        elif message.name == "HELPER_DONE":
            if message.cookie in self.helpers:
                self.helpers.pop(message.cookie).kill()
            self.done.put(message.cookie)
        else:
            return False
        return True

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

    def send_file(self, what, content):
        with tempfile.TemporaryFile() as file:
            file.write(content if isinstance(content, bytes) else
                       content.encode())
            file.seek(0)
            self.send("CONF_FILE", fd=file.fileno(), what=C[what])

    def send_slice(self, *deciders):
        self.deciders = {d["name"]: d for d in deciders}
        for decider in deciders:
            values = {k: v for k, v in decider.items() if k in (
                "name", "url", "model", "persistent", "max_tokens",
                "effort", "key_header")}
            self.send("CONF_DECIDER", **values, kind=C[decider["kind"]],
                      api=C[decider.get("api", "API_ANTHROPIC")],
                      form=C[decider.get("form", "FORM_AUTO")],
                      temperature=decider.get("temperature", 0xffffffff),
                      timeout_ms=5000, concurrency=8)
            for name, value in decider.get("headers", ()):
                self.send("CONF_HEADER", name=name, value=value)
            for what in ("key", "prompt", "trust"):
                if what in decider:
                    self.send_file(f"FILE_{what.upper()}", decider[what])

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
