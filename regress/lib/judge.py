# SPDX-License-Identifier: ISC

"""A decider on a socket that lives in the test: it keeps what it is asked,
checks that this is a question as documented, and says what a case wants it to
say, right or wrong.  And the gate that asks it."""

import atexit
import contextlib
import json
import os
import pathlib
import shutil
import socket
import tempfile
import threading

from daemon import TOP, until
from gate import EVIL, GOOD, Gate, Pair
from origin import authority
from schema import check
from standin_origin import StandinOrigin

ALLOW, DENY, UNSURE = ({"decision": word, "reason": f"so {word}"}
                       for word in ("allow", "deny", "unsure"))
SCHEMA = json.loads(
    (TOP / "regress" / "deciders" / "question.schema.json").read_text())


def directory():
    """One that everybody may look into, as deciderd is somebody else."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="egressd-judge."))
    path.chmod(0o755)
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


class Judge:
    """decide(question) gives an answer, a line as bytes, or None for silence;
    it may take its time, as each question has a thread."""

    def __init__(self, decide=ALLOW):
        self.path = directory() / "judge"
        self.questions, self.wrong, self.open = [], [], []
        self.listener = None
        self.says(decide)
        self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def says(self, decide):
        self.decide = decide if callable(decide) else lambda _: decide

    def start(self):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path))
        os.chmod(self.path, 0o777)
        self.listener.listen(128)
        threading.Thread(target=self.accept, args=[self.listener],
                         daemon=True).start()

    def stop(self):
        """It is dead: nobody listens, and who was connected is cut off."""
        if self.listener is None:
            return
        self.path.unlink()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.listener = None
        for conn in self.open:
            with contextlib.suppress(OSError):
                conn.shutdown(socket.SHUT_RDWR)
        self.open.clear()

    def accept(self, listener):
        with contextlib.suppress(OSError):
            while True:
                conn, _ = listener.accept()
                self.open.append(conn)
                threading.Thread(target=self.serve, args=[conn],
                                 daemon=True).start()

    def serve(self, conn):
        with contextlib.suppress(OSError), conn.makefile("rb") as file:
            for line in file:
                threading.Thread(target=self.answer, args=[conn, line],
                                 daemon=True).start()

    def answer(self, conn, line):
        asked = json.loads(line)
        question = asked["question"]
        self.wrong += check(question, SCHEMA)
        self.questions.append(question)
        said = self.decide(question)
        if isinstance(said, dict):
            said = json.dumps({"id": asked["id"], **said}).encode()
        if said is not None:
            with contextlib.suppress(OSError):
                conn.sendall(said + b"\n")

    def conf(self, name="judge", options=""):
        return (f'decider "{name}" socket {{ path "{self.path}"\n'
                f'{options}\n}}\n')

    def asked(self, count):
        """That many questions, none more, and all of them as documented."""
        until(f"{count} questions, not {len(self.questions)}",
              lambda: len(self.questions) >= count)
        assert len(self.questions) == count, self.questions[count:]
        assert not self.wrong, self.wrong
        return self.questions


class Judged(Pair):
    """A gate whose rules are about deciders, an origin, and requests."""

    def get(self, path="/", extra="", name=GOOD):
        """Its status; on a connection of its own."""
        return self.ask(super().get(path, extra, name), name).status

    def post(self, path, body):
        return self.ask(self.post_of(path, body)).status

    def post_of(self, path, body, method="POST"):
        return (f"{method} {path} HTTP/1.1\r\nHost: {self.host()}\r\n"
                f"Content-Length: {len(body)}\r\n\r\n").encode() + body

    def ask(self, request, name=GOOD):
        with self.open(name) as wire:
            return wire.ask(request)

    def arrived(self, words):
        return words in self.origin.got()


@contextlib.contextmanager
def judged(rules, conf, tls=False, names=(GOOD, EVIL)):
    """The rules, under a gate whose names all lead to one origin."""
    cert = authority().leaf(*names)
    with StandinOrigin(None, cert if tls else None) as origin, \
            Gate(rules, authority().cert, more=conf,
                 hosts={n: "127.0.0.1" for n in names}) as gate:
        yield Judged(origin, gate, tls)
