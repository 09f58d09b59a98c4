# SPDX-License-Identifier: ISC

"""A whole daemon, but for some of its processes, whose place we take."""

import os
import pwd
import queue
import re
import socket
import threading

from channel import C, Channel
from daemon import WAIT_S, Daemon
from standin_program import mount_standin

ROOT = os.geteuid() == 0

# Its channel to the parent is ours from the beginning.
STANDIN = """
socket.send_fds(relay, [sys.argv[0].rpartition("-")[2].encode()], [3])
relay.recv(1)
"""


class Standin(Channel):
    """A child to the parent: it accepts every generation."""

    def __init__(self, fd):
        super().__init__()
        self.sock.close()
        self.sock = socket.socket(fileno=fd)
        self.reads = threading.Event()
        self.reads.set()
        self.answers = queue.Queue()
        self.slice = []     # the last generation: messages, contents of files
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        kept = []       # channels to others, who would end without us
        try:
            while (m := self.read(None)) is not None:
                if m.type == "CONF_END":
                    self.send("CONF_ACK", generation=m.generation)
                elif m.type == "CONF_COMMIT":
                    self.send("CONF_DONE", generation=m.generation)
                elif m.type.startswith(("OPEN", "SESSION")):
                    self.answers.put(m)
                elif m.type == "CONF_BEGIN":
                    self.slice.clear()
                elif m.type == "CONF_FILE":
                    with open(m.fd, "rb") as file:
                        self.slice.append((m, file.read()))
                elif m.type.startswith("CONF_"):
                    self.slice.append((m, None))
                elif m.fd is not None:
                    kept.append(m.fd)
                self.reads.wait()
        except OSError:
            pass    # the daemon has ended
        for fd in kept:
            os.close(fd)

    def ask(self, kind, name, cookie=1):
        self.send("OPEN_ASK", cookie=cookie, object=name,
                  kind=C[kind] if isinstance(kind, str) else kind)
        return self.answers.get(timeout=WAIT_S)

    def opens(self, kind, name, cookie=1):
        """What can be read from what it has opened."""
        message = self.ask(kind, name, cookie)
        assert message.name == "OPENED" and message.cookie == cookie, message
        with open(message.fd, encoding="utf-8") as file:
            return file.read()

    def fails(self, kind, name, *why):
        message = self.ask(kind, name)
        assert message.name == "OPEN_FAILED" and message.cookie == 1, message
        for text in why:
            assert text in message.why, message.why


class Whole(Daemon):
    relay = None
    roles = ()

    @classmethod
    def standins(cls, *roles):
        """Before any case: these are ours."""
        cls.roles = roles
        cls.relay = mount_standin(STANDIN, *roles)

    def __init__(self, conf):
        super().__init__(conf + '\npolicy "none" { }\n',
                         user=None if ROOT else pwd.getpwuid(
                             os.getuid()).pw_name)
        self.owner = None
        self.relays = []

    def start(self):
        thread = threading.Thread(target=self.accept)
        thread.start()
        super().start()
        thread.join()
        return self

    def accept(self):
        for _ in self.roles:
            conn = self.relay.accept()[0]
            role, (fd,), _, _ = socket.recv_fds(conn, 16, 1)
            setattr(self, role.decode(), Standin(fd))
            self.relays.append(conn)

    def end(self):
        super().end()
        for conn in self.relays:
            conn.close()

    def ends(self, role, text):
        """As the child has said what a sound one would not."""
        assert self.wait() == 1, self.log()
        assert re.search(rf"{role}\[\d+\] is killed: OPEN_ASK: {text}\n",
                         self.log()), self.log()
