#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""A stand-in for egressd's control socket, for the tests of egressctl.

It speaks the protocol of egressd.sock(5) with made-up answers, or does
what a script tells it, which may be quite unlike the protocol.
"""

import json
import os
import socket
import sys
import threading

STATUS = {
    "version": "0.1", "generation": 3,
    "started_at": "2026-01-02T03:04:05.678Z",
    "configuration": "/etc/egressd.conf",
    "configuration_sha256": "0123456789abcdef" * 4, "privileged": True,
    "log_level": "info", "clients": 2,
    "processes": [
        {"role": "parent", "pid": 1},
        {"role": "policyd", "pid": 21},
        {"role": "tlsengine", "pid": 4242, "session_id": "edge"}],
    "sessions": [
        {"session_id": "edge", "kind": "fixed", "policy": "coding",
         "state": "running", "started_at": "2026-01-02T03:04:06.001Z",
         "restarts": 0}],
    "audit": {"file": "/var/log/egressd/audit.log", "seq": 41,
              "followers": 1},
}


def encode(message):
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def answer(request):
    """The bytes that egressd would send for a request that is in order."""
    head = {"id": request.get("id")}
    op = request.get("op")
    if op == "status":
        return encode({**head, "ok": True, **STATUS})
    if op == "reload":
        return encode({**head, "ok": True, "generation": 4})
    if op == "log.level":
        return encode({**head, "ok": True, "log_level": request["level"]})
    if op == "events.follow":
        return encode({**head, "ok": True})
    return encode({**head, "error": {"code": "unknown_op",
                                     "message": "unknown op"}})


class StandinDaemon:
    """Serves one socket in threads until it is closed.

    script(connection, line) is called for each request line; it sends
    what it likes and returns True to go on with the connection.  greet
    is sent to every connection before anything is read from it.
    """

    def __init__(self, path, script=None, greet=None):
        self.path = path
        self.script = script or self.obey
        self.greet = greet
        self.requests = []
        self.connections = []
        self.gone = threading.Event()       # a client has hung up
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(8)
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        os.unlink(self.path)

    def obey(self, connection, line):
        connection.sendall(answer(json.loads(line)))
        return True

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections.append(connection)
            threading.Thread(target=self.serve, args=(connection,),
                             daemon=True).start()

    def serve(self, connection):
        try:
            with connection:
                if self.greet is not None:
                    connection.sendall(self.greet)
                    return
                for line in connection.makefile("rb"):
                    self.requests.append(line)
                    if not self.script(connection, line):
                        return
                self.gone.set()
        except OSError:
            self.gone.set()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: standin_daemon.py socket")
    with StandinDaemon(sys.argv[1]):
        print("stand-in listens on", sys.argv[1], flush=True)
        sys.stdin.read()
