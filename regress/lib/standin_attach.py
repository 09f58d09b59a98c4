# SPDX-License-Identifier: ISC
"""A stand-in for egressd's control socket that knows session.attach only.

The sandbox is `egressd-box hands` without one, in a directory of the test;
or whatever a script makes of the connection after the answer.
"""

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import threading

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("B", TOP / "build"))
BOX = BUILD / "libexec" / "egressd-box"
SESSION = "job"


def encode(message):
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


class StandinAttach:
    """Serves one socket in threads until it is closed.

    serve(connection, answer) sends the answer and whatever follows, and
    returns when the connection is to be closed; without it, box serves.
    """

    def __init__(self, path, directory=None, serve=None, options=()):
        self.path = str(path)
        self.directory = directory
        self.serve = serve or self.run_box
        self.options = options
        self.requests = []
        self.failures = []      # of serve, for the test to look at
        self.boxes = []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(8)
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for box in self.boxes:
            box.kill()
            box.wait()
        os.unlink(self.path)

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.talk, args=(connection,),
                             daemon=True).start()

    def talk(self, connection):
        try:
            self.attach(connection)
        except (BrokenPipeError, ConnectionResetError):
            pass
        except Exception as error:
            self.failures.append(error)
        # Also if a file was made of it.
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        connection.close()

    def attach(self, connection):
        line = b""
        while not line.endswith(b"\n"):
            data = connection.recv(65536)
            if not data:
                return
            line += data
        request = json.loads(line)
        self.requests.append(request)
        number = request["id"]
        if request["op"] != "session.attach" or \
                request["session_id"] != SESSION:
            connection.sendall(encode({"id": number, "error": {
                "code": "no_such_session",
                "message": "there is no such session"}}))
            return
        self.serve(connection, encode({"id": number, "ok": True,
                                       "session_id": SESSION}))

    def run_box(self, connection, answer):
        """The connection is box's own, as it is in a sandbox."""
        connection.sendall(answer)
        box = subprocess.Popen(
            [str(BOX), "hands", *self.options, "-d", str(self.directory)],
            stdin=connection, stdout=connection)
        self.boxes.append(box)
        box.wait()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: standin_attach.py socket directory")
    with StandinAttach(sys.argv[1], sys.argv[2], options=["-F"]):
        print("stand-in listens on", sys.argv[1], "session", SESSION,
              flush=True)
        sys.stdin.read()
