# SPDX-License-Identifier: ISC
"""A stand-in for box in a sandbox that was taken over: it greets, waits for
requests and answers with whatever a case would have it say.

    with LyingBox(path, lambda box, number, call: box.result(number, {})):
"""

import json
import pathlib
import struct
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from standin_attach import StandinAttach  # noqa: E402

(CALL, RESULT, ERROR, DATA, DATA_ERR, END, CREDIT, CANCEL, NOTE,
 ITEM) = range(1, 11)
HEAD = struct.Struct(">IIB3s")
FRAME_MAX = 65536
WINDOW = 262144
HELLO = {"protocol": 1, "version": "0.1", "cwd": "/work",
         "operations": ["read", "write", "exec", "forward"],
         "limits": {"requests": 64, "frame": 65536, "credit": 262144}}


def frame(number, kind, body=b"", length=None, reserved=bytes(3)):
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    return HEAD.pack(len(body) if length is None else length, number, kind,
                     reserved) + body


class LyingBox(StandinAttach):
    """answer(box, number, call) for each request; box.send() and others tell
    what it likes.  Returning False hangs up.  With deaf, nothing is read
    after the first request."""

    def __init__(self, path, answer=None, hello=frame(0, RESULT, HELLO),
                 deaf=False):
        super().__init__(path, serve=self.lie)
        self.answer, self.hello, self.deaf = answer, hello, deaf
        self.calls = []
        self.input = {}         # DATA of each request
        self.others = []        # kinds and bodies of all other frames

    def lie(self, connection, answer):
        self.connection = connection
        # In one piece: what is behind the newline are frames.
        connection.sendall(answer + self.hello)
        self.file = connection.makefile("rb")
        while head := self.file.read(HEAD.size):
            length, number, kind, _ = HEAD.unpack(head)
            body = self.file.read(length)
            if kind == CALL:
                self.calls.append(json.loads(body))
                if self.answer(self, number, self.calls[-1]) is False:
                    return
            elif kind == DATA:
                self.input[number] = self.input.get(number, b"") + body
            else:
                self.others.append((number, kind, body))

    def send(self, *frames):
        self.connection.sendall(b"".join(frames))

    def result(self, number, body=None, *before):
        self.send(*before, frame(number, RESULT, body or {}))

    def until_gone(self):
        """Read, and throw away, until it hangs up."""
        while self.file.read(65536):
            pass
