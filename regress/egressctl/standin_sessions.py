# SPDX-License-Identifier: ISC

"""A stand-in for egressd with sessions: session.start, attach, refusals and
wait on a control socket; behind attach either the real `egressd-box hands', or
frames by a script of the test's own, which may be quite unlike egressd-box(5).
"""

import json
import os
import pathlib
import socket
import struct
import subprocess
import threading

TOP = pathlib.Path(__file__).resolve().parents[2]
BOX = pathlib.Path(os.environ.get("B", TOP / "build")) / "libexec/egressd-box"

(CALL, RESULT, ERROR, DATA, DATA_ERR, END, CREDIT, CANCEL, NOTE,
 ITEM) = range(1, 11)
HEAD = struct.Struct(">IIB3x")
OPERATIONS = ["read", "write", "edit", "exec", "glob", "grep", "list", "stat",
              "mkdir", "remove", "forward"]
SESSION = "s-standin"


class Frames:
    """Box's end of a connection, for scripts."""

    def __init__(self, sock, operations=OPERATIONS, cwd="/work"):
        self.sock = sock
        self.file = sock.makefile("rb")
        self.lock = threading.Lock()
        self.send(0, RESULT, {
            "protocol": 1, "version": "0.1", "operations": operations,
            "cwd": cwd, "limits": {"requests": 64, "frame": 65536,
                                   "credit": 262144}})

    def send(self, number, kind, body=b""):
        if isinstance(body, dict):
            body = json.dumps(body).encode()
        with self.lock:
            self.sock.sendall(HEAD.pack(len(body), number, kind) + body)

    def __iter__(self):
        """Each frame of the client's; a call's body is parsed."""
        while len(head := self.file.read(HEAD.size)) == HEAD.size:
            length, number, kind = HEAD.unpack(head)
            body = self.file.read(length)
            yield number, kind, json.loads(body) if kind in (CALL, NOTE) \
                else body


class Sessions:
    """Serves a socket in threads.  script(Frames) is run for every attach;
    without one it is the real box, in the directory work."""

    def __init__(self, path, work, script=None, operations=OPERATIONS):
        self.path, self.work = str(path), work
        self.script, self.operations = script, operations
        self.lock = threading.Condition()
        self.refusals = []          # [host, reason, count]
        self.more = 0               # refused, and not kept
        self.requests, self.starts = [], []
        self.boxes, self.waiting, self.attached = [], [], []
        self.over = threading.Event()       # an owner has left
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(8)
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        self.end("stopped")
        os.unlink(self.path)

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,),
                             daemon=True).start()

    def refuse(self, host, reason, count=1):
        with self.lock:
            for row in self.refusals:
                if row[:2] == [host, reason]:
                    row[2] += count
                    return
            self.refusals.append([host, reason, count])

    def end(self, reason):
        """The session ends: who waits is told, then the sandbox goes."""
        with self.lock:
            for connection, number in self.waiting:
                self.say(connection, id=number, ok=True, session_id=SESSION,
                         policy="p", reason=reason)
            self.waiting.clear()
        for box in self.boxes:
            if box.poll() is None:
                box.kill()
            box.wait()
        for sock in self.attached:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    @staticmethod
    def say(connection, **answer):
        try:
            connection.sendall(json.dumps(answer).encode() + b"\n")
        except OSError:
            pass

    def serve(self, connection):
        owner = False
        try:
            # Unbuffered: what follows session.attach is not ours to read.
            for line in connection.makefile("rb", buffering=0):
                request = json.loads(line)
                self.requests.append(request)
                if request["op"] == "session.attach":
                    self.attach(connection, request)
                    return
                owner |= request["op"] == "session.start"
                self.answer(connection, request)
        except OSError:
            pass
        if owner:
            self.over.set()

    def answer(self, connection, request):
        number, op = request["id"], request["op"]
        if op == "session.start":
            self.starts.append(request)
            if request["sandbox"] == "none":
                self.say(connection, id=number, error={
                    "code": "unknown_sandbox", "message": "no such sandbox"})
            else:
                self.say(connection, id=number, ok=True, session_id=SESSION,
                         sandbox=request["sandbox"], backend="local",
                         policy="p", cwd=request.get("cwd"))
        elif op == "session.refusals":
            with self.lock:
                rows = [dict(zip(("host", "reason", "count"), row))
                        for row in self.refusals]
                total = sum(row["count"] for row in rows) + self.more
            self.say(connection, id=number, ok=True, total=total,
                     refusals=rows)
        elif op == "session.wait":
            with self.lock:
                self.waiting.append((connection, number))
        else:
            self.say(connection, id=number, error={
                "code": "unknown_op", "message": "unknown op"})

    def attach(self, connection, request):
        if request["session_id"] != SESSION:
            self.say(connection, id=request["id"], error={
                "code": "unknown_session", "message": "no such session"})
            connection.close()
            return
        self.say(connection, id=request["id"], ok=True, session_id=SESSION)
        self.attached.append(connection)
        if self.script is not None:
            try:
                self.script(Frames(connection, self.operations))
            except OSError:
                pass
            connection.close()
            return
        self.boxes.append(subprocess.Popen(
            [BOX, "hands", "-d", self.work], stdin=connection,
            stdout=connection, start_new_session=True))
        connection.close()
