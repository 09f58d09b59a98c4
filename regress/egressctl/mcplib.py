# SPDX-License-Identifier: ISC

"""What the tests of `egressctl mcp' share: a client of the protocol, as bare
as it can be, and a place with a stand-in for egressd."""

import json
import os
import pathlib
import queue
import shutil
import subprocess
import sys
import tempfile
import threading

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / "regress" / "lib"), str(TOP / "regress/egressctl")]
from case import Skip  # noqa: E402
from daemon import EGRESSCTL  # noqa: E402
from standin_sessions import BOX, OPERATIONS, SESSION, Sessions  # noqa: E402

LEGACY = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
WAIT_S = 60
ENV = {**{k: v for k, v in os.environ.items() if "SAN" in k},
       "LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]}


def same(have, want, why=""):
    assert have == want, f"{have!r}, expected {want!r} {why}"


def box_has_hands():
    done = subprocess.run([BOX, "hands"], stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=WAIT_S)
    return b'"operations"' in done.stdout


class Place:
    """A directory, in it a stand-in and the sandbox's working directory."""

    def __init__(self, script=None, operations=OPERATIONS):
        if script is None and not box_has_hands():
            raise Skip("egressd-box has no hands")
        self.top = tempfile.mkdtemp(prefix="mcp.")
        self.work = os.path.join(self.top, "work")
        os.mkdir(self.work)
        self.egressd = Sessions(os.path.join(self.top, "s"), self.work,
                                script, operations)
        self.clients = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for client in self.clients:
            client.end()
        self.egressd.__exit__()
        shutil.rmtree(self.top)

    def file(self, name, data=None):
        path = os.path.join(self.work, name)
        if data is not None:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            pathlib.Path(path).write_bytes(data)
        return path

    def argv(self, *words):
        return [EGRESSCTL, "-s", self.egressd.path, "mcp", *words]

    def client(self, version=LEGACY[-1], words=(SESSION,)):
        client = Client(self.argv(*words), version)
        self.clients.append(client)
        return client


class Client:
    """Answers are sorted by id as they come; what has none is in notices."""

    def __init__(self, argv, version):
        self.proc = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=ENV)
        self.lines = queue.Queue()
        self.answers, self.notices = {}, []
        self.number = 0
        self.version = version
        self.err = b""
        self.threads = [threading.Thread(target=self.read, daemon=True),
                        threading.Thread(target=self.read_err, daemon=True)]
        for thread in self.threads:
            thread.start()
        if version in LEGACY:
            self.hello = self.ask("initialize", protocolVersion=version,
                                  capabilities={}, clientInfo={
                                      "name": "regress", "version": "1"})
            self.send({"jsonrpc": "2.0",
                       "method": "notifications/initialized"})

    def read(self):
        for line in self.proc.stdout:
            self.lines.put(json.loads(line))
        self.lines.put(None)

    def read_err(self):
        self.err = self.proc.stderr.read()

    def end(self):
        """Hangs up; the exit status."""
        if not self.proc.stdin.closed:
            try:
                self.proc.stdin.close()
            except BrokenPipeError:
                pass
        status = self.proc.wait(WAIT_S)
        for thread in self.threads:
            thread.join()
        self.proc.stdout.close()
        self.proc.stderr.close()
        return status

    def raw(self, data):
        self.proc.stdin.write(data)
        self.proc.stdin.flush()

    def send(self, message):
        self.raw(json.dumps(message).encode() + b"\n")

    def next(self):
        """The next line, whatever it is; None at the end."""
        return self.lines.get(timeout=WAIT_S)

    def begin(self, method, meta=None, **params):
        """Sends a request; its id."""
        self.number += 1
        meta = dict(meta or {})
        if self.version == MODERN:
            meta = {META + "protocolVersion": MODERN,
                    META + "clientCapabilities": {},
                    META + "clientInfo": {"name": "r", "version": "1"}, **meta}
        if meta:
            params["_meta"] = meta
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method,
                   "params": params})
        return self.number

    def answer(self, number):
        """The answer to a request."""
        while number not in self.answers:
            message = self.next()
            assert message is not None, f"it ended: {self.err!r}"
            if isinstance(message, dict) and "method" not in message:
                self.answers[message["id"]] = message
            else:
                self.notices.append(message)
        return self.answers.pop(number)

    def ask(self, method, meta=None, **params):
        """The result."""
        answer = self.answer(self.begin(method, meta, **params))
        assert "result" in answer, answer
        return answer["result"]

    def fails(self, method, meta=None, **params):
        """The error: its code and the whole of it."""
        answer = self.answer(self.begin(method, meta, **params))
        assert "error" in answer, answer
        return answer["error"]["code"], answer["error"]

    def start(self, tool, meta=None, **arguments):
        return self.begin("tools/call", meta, name=tool, arguments=arguments)

    def call(self, tool, meta=None, **arguments):
        """The result of a tool that does well."""
        result = self.ask("tools/call", meta, name=tool, arguments=arguments)
        assert not result["isError"], result
        return result

    def wrong(self, tool, **arguments):
        """The code of a tool that does not, and the result."""
        result = self.ask("tools/call", name=tool, arguments=arguments)
        assert result["isError"], result
        return result["_meta"]["egressd/error"], result

    def cancel(self, number):
        self.send({"jsonrpc": "2.0", "method": "notifications/cancelled",
                   "params": {"requestId": number, "reason": "test"}})


def text(result):
    """All text of a result."""
    return "".join(c["text"] for c in result["content"]
                   if c["type"] == "text")


def values(result):
    return result["structuredContent"]
