# SPDX-License-Identifier: ISC

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
from msgtab import DECIDER_OPTIONS, options  # noqa: E402

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
        self.programs = {}
        self.asked = queue.Queue()      # names of deciders
        self.done = queue.Queue()       # cookies
        super().__init__("deciderd", UID)
        self.conf(*deciders, resolvers=resolvers)

    def close(self):
        super().close()
        for program in self.programs.values():
            program.kill()

    def complaints(self):
        """All but what it says of a decider, which is a case's to read."""
        return "".join(
            line for line in self.log().splitlines(keepends=True)
            if not line.startswith('deciderd: decider "'))

    # ---- what the parent does ----

    def serve(self, message):
        if message.name == "OPEN_ASK":
            self.open(message)
        elif message.name == "OPEN_DONE":
            if message.cookie in self.programs:
                self.programs.pop(message.cookie).kill()
            self.done.put(message.cookie)
        else:
            return False
        return True

    def open(self, message):
        decider = self.deciders[message.object]
        self.asked.put(message.object)
        try:
            if "path" in decider:
                sock = socket.socket(socket.AF_UNIX)
                sock.connect(str(decider["path"]))
            else:
                program = Program(decider["command"])
                self.programs[message.cookie] = program
                sock = program.ours
        except OSError as error:
            self.send("OPEN_FAILED", cookie=message.cookie,
                      why=error.strerror)
            return
        with sock:
            self.send("OPENED", fd=sock.fileno(), cookie=message.cookie)
        if "command" in decider:
            threading.Thread(target=self.reap, daemon=True,
                             args=[message.cookie, program]).start()

    def reap(self, cookie, program):
        status = program.process.wait()
        program.kill()
        try:
            self.send("OPEN_ENDED", cookie=cookie,
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
            values = {k: C.get(v, v) for k, v in decider.items()
                      if k in DECIDER_OPTIONS}
            self.send("CONF_DECIDER", name=decider["name"],
                      kind=C[decider["kind"]])
            for option in options("DECIDER", DECIDER_OPTIONS, values):
                self.send("CONF_OPTION", **option)
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
