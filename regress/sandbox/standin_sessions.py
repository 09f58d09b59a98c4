# SPDX-License-Identifier: ISC

"""A stand-in for a daemon that makes sandboxes: a control socket that knows
session.start, session.attach and session.stop, and behind an attach the
hands of egressd-box(8) as they are.  What a client says is kept."""

import json
import pathlib
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] /
                       "egressctl"))
from hands import BOX  # noqa: E402
from standin_daemon import StandinDaemon, encode  # noqa: E402

SESSION = "s-0badcafe"


class StandinSessions(StandinDaemon):
    """The sandbox works in a directory, whatever cwd the client has."""

    def __init__(self, path, directory, refuse=()):
        self.directory, self.refuse = directory, refuse
        self.served = threading.Event()     # the sandbox's hands have ended
        super().__init__(path, self.sessions)

    def asked(self):
        return [json.loads(line) for line in self.requests]

    def sessions(self, connection, line):
        request = json.loads(line)
        head = {"id": request["id"]}
        if request["op"] in self.refuse:
            connection.sendall(encode({**head, "error": {
                "code": "not_permitted", "message": "not by a stand-in"}}))
            return True
        connection.sendall(encode({**head, "ok": True,
                                   "session_id": SESSION}))
        if request["op"] == "session.attach":
            subprocess.run([str(BOX), "hands", "-d", str(self.directory)],
                           stdin=connection, stdout=connection, timeout=60)
            self.served.set()
            return False
        return True
