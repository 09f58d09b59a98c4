# SPDX-License-Identifier: ISC

"""A stand-in for the gate in a pod: `egressctl pump' and the egressd behind it,
at the other end of a socket.  It has records, which it sends from the first
that is not acknowledged, and questions.  It is honest, unless a case has it
say something else."""

import json
import queue
import socket
import threading

from daemon import WAIT_S

HASH = "0" * 64


def record(seq, kind="name_asked", session="pod", **members):
    return {"seq": seq, "kind": kind, "at": "2026-11-18T14:00:00.123Z",
            "session_id": session, **members, "prev": HASH if seq > 1 else None}


def document(**request):
    return {"session_id": "pod", "recent_messages": [],
            "request": {"scheme": "https", "host": "a.test", "port": 443,
                        "method": "GET", "path": "/x", "body_bytes": 0,
                        **request}, "metadata": {}}


class Spool:
    """What outlives the connection: records, and which are acknowledged."""

    def __init__(self):
        self.records, self.acked = [], 0

    def add(self, kind="name_asked", **members):
        self.records.append(record(len(self.records) + 1, kind, **members))

    def left(self):
        return [r for r in self.records if r["seq"] > self.acked]


class Gate:
    """ours is for whoever hears it; what it was told is in asked."""

    def __init__(self, spool=None, sha256="", follow=True):
        self.spool = spool or Spool()
        self.sha256, self.follow = sha256, follow
        self.ours, self.sock = socket.socketpair()
        self.sock.settimeout(WAIT_S)
        self.lock = threading.Lock()
        self.asked = queue.Queue()      # (letter, request), None at the end
        self.answers = queue.Queue()    # to questions
        self.acks = queue.Queue()
        self.serves = threading.Event()
        self.follows = threading.Event()
        self.reloads = 0
        self.deaf = False               # it acknowledges nothing
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.thread.join(WAIT_S)
        self.sock.close()
        self.ours.close()

    def cut(self):
        """The connection is lost in the middle of a line."""
        self.raw(b"b{\"seq\":")
        self.close()

    def raw(self, data):
        with self.lock:
            try:
                self.sock.sendall(data)
            except OSError:
                pass

    def say(self, letter, what):
        self.raw(letter.encode() + json.dumps(what).encode() + b"\n")

    def tell(self, kind="name_asked", **members):
        """One more record, now."""
        self.spool.add(kind, **members)
        self.say("b", self.spool.records[-1])

    def ask(self, number, decider="who", rule=0, timeout_ms=20000, **request):
        self.say("c", {"id": number, "decider": decider, "rule": rule,
                       "timeout_ms": timeout_ms,
                       "question": document(**request)})

    def answer(self):
        return self.answers.get(timeout=WAIT_S)

    def run(self):
        data = b""
        try:
            while True:
                piece = self.sock.recv(65536)
                if not piece:
                    break
                data += piece
                *lines, data = data.split(b"\n")
                for line in lines:
                    self.line(line.decode())
        except OSError:
            pass
        self.asked.put(None)

    def line(self, text):
        if not text:
            self.raw(b"\n")
            return
        letter, rest = text[0], text[1:]
        if not rest:
            self.asked.put((letter, None))
            return
        said = json.loads(rest)
        if letter == "c" and "op" not in said:
            self.answers.put(said)
            return
        self.asked.put((letter, said))
        getattr(self, "op_" + said["op"].replace(".", "_"))(letter, said)

    def ok(self, letter, said, **members):
        self.say(letter, {"id": said["id"], "ok": True, **members})

    def op_status(self, letter, said):
        self.ok(letter, said, configuration_sha256=self.sha256 or None)

    def op_reload(self, letter, said):
        self.reloads += 1
        self.ok(letter, said)

    def op_events_follow(self, letter, said):
        assert said["from"] == "acknowledged" and said["window"] > 0, said
        if not self.follow:
            return
        self.ok(letter, said)
        for one in self.spool.left():
            self.say("b", one)
        self.follows.set()

    def op_events_ack(self, letter, said):
        if self.deaf:
            return
        self.spool.acked = max(self.spool.acked, said["seq"])
        self.acks.put(said["seq"])
        self.ok(letter, said, acknowledged=said["seq"])

    def op_questions_serve(self, letter, said):
        self.ok(letter, said)
        self.serves.set()
