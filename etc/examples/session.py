#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""A sandbox of egressd without a library: start it, write a file, run a
command, print what it says, stop it.  JSON in lines, egressd.sock(5), then
frames, egressd-box(5).  The socket is the first argument, or EGRESSD_SOCKET."""

import json, os, socket, struct, sys  # noqa: E401

CALL, RESULT, ERROR, DATA, DATA_ERR, END, CREDIT = range(1, 8)
HEAD = struct.Struct(">IIB3x")
PATH = sys.argv[1] if sys.argv[1:] else os.environ.get(
    "EGRESSD_SOCKET", "/run/egressd.sock")


class Connection:
    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(PATH)
        self.file = self.socket.makefile("rb")

    def ask(self, op, **members):
        request = {"id": 1, "op": op, **members}
        self.socket.sendall(json.dumps(request).encode() + b"\n")
        answer = json.loads(self.file.readline() or "{}")
        if not answer.get("ok"):
            sys.exit(f"{op}: {answer.get('error', 'hung up')}")
        return answer

    def send(self, kind, body, number=1):
        self.socket.sendall(HEAD.pack(len(body), number, kind) + body)

    def call(self, op, data=None, **members):
        """An operation of the sandbox, to its end."""
        self.send(CALL, json.dumps({"op": op, **members}).encode())
        if data is not None:    # up to 65536 bytes a frame
            self.send(DATA, data)
            self.send(END, b"")
        while True:
            length, number, kind = HEAD.unpack(self.file.read(HEAD.size))
            body = self.file.read(length)
            if kind in (DATA, DATA_ERR):
                sys.stdout.buffer.write(body)
                self.send(CREDIT, struct.pack(">I", length))
            elif kind == ERROR:
                sys.exit(f"{op}: {body.decode()}")
            elif kind == RESULT and number != 0:    # 0: of the connection
                return json.loads(body)


control, sandbox = Connection(), Connection()
session = control.ask("session.start",
                      caller_cwd=os.getcwd())["session_id"]
sandbox.ask("session.attach", session_id=session)
sandbox.call("write", b"hello from the sandbox\n", path="hello.txt")
result = sandbox.call("exec", command="cat hello.txt; rm hello.txt")
control.ask("session.stop", session_id=session)
sys.exit(result.get("exit_code", 1))
