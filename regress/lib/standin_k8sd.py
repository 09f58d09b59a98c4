# SPDX-License-Identifier: ISC

"""A whole daemon, but for k8sd, whose place the test takes: no cluster is
needed to see what controld and the parent make of pods."""

import os
import pwd
import queue
import socket
import threading

from channel import C, Channel
from daemon import WAIT_S, Daemon

ROOT = os.geteuid() == 0
ERROR = {word: number for word, number in C.items()
         if word.startswith("POD_ERROR_")}
# Its channel to the parent is the test's from the beginning.
STANDIN = """
socket.send_fds(relay, [b"k8sd"], [3])
relay.recv(1)
"""


class End(Channel):
    """Our end of a channel that another has made."""

    def __init__(self, fd):
        super().__init__()
        self.sock.close()
        self.sock = socket.socket(fileno=fd)
        self.messages = queue.Queue()

    def begin(self):
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            while (message := self.read(None)) is not None:
                self.heard(message)
        except OSError:
            pass    # the daemon has ended
        self.finished()

    def finished(self):
        self.messages.put(None)

    def heard(self, message):
        self.messages.put(message)


class Control(End):
    """What k8sd says to controld, and hears."""

    def expect(self, name, **values):
        message = self.messages.get(timeout=WAIT_S)
        assert message is not None and message.name == name, \
            f"{message}, not {name}"
        for field, value in values.items():
            have = getattr(message, field)
            assert have == value, f"{name}: {field} {have!r}, not {value!r}"
        return message

    def silent(self):
        """Nothing has come that was not expected."""
        assert self.messages.empty(), self.messages.get()

    def runs(self, message, pod="pod-1", gated=0):
        self.send("POD_DONE", number=message.number, ok=1, pod=pod,
                  gated=gated)

    def opens(self, message, gate, **values):
        """The other end of a channel is the gate's."""
        with gate.ours:
            self.send("POD_CHANNEL_OPENED", fd=gate.ours.fileno(),
                      channel=message.channel,
                      **{"uid": "uid-1", "node": "node-1", **values})

    def fails(self, message, error, text):
        self.send("POD_DONE", number=message.number, code=ERROR[error],
                  text=text)

    def ended(self, message, cause="CAUSE_NONE", text=""):
        self.send("POD_ENDED", number=message.number, cause=C[cause],
                  text=text)

    def item(self, message, pod, state, **values):
        self.send("POD_ITEM", ticket=message.ticket, pod=pod, state=C[state],
                  **values)

    def answers(self, message):
        self.send("POD_ANSWER", ticket=message.ticket, ok=1)

    def refuses(self, message, error, text):
        self.send("POD_ANSWER", ticket=message.ticket, code=ERROR[error],
                  text=text)


class Parental(End):
    """k8sd to the parent: it accepts every generation.  With the channel ends
    the process that is there for it, which reads from conn."""

    def __init__(self, fd, conn):
        super().__init__(fd)
        self.conn = conn
        self.control = queue.Queue()
        self.begin()

    def finished(self):
        self.conn.close()

    def heard(self, message):
        if message.name == "CONF_END":
            self.send("CONF_ACK", generation=message.generation)
        elif message.name == "CONF_COMMIT":
            self.send("CONF_DONE", generation=message.generation)
        elif message.name == "CHANNEL":
            control = Control(message.fd)
            control.begin()
            self.control.put(control)
        elif message.fd is not None:
            os.close(message.fd)


class Pods(Daemon):
    """The daemon; self.k8sd is k8sd's end of its channel to controld.  relay
    is what mount_standin(STANDIN, "k8sd") gives."""

    relay = None

    def __init__(self, conf):
        super().__init__(conf, user=None if ROOT else pwd.getpwuid(
            os.getuid()).pw_name)
        self.owner = None

    def start(self):
        thread = threading.Thread(target=self.accept)
        thread.start()
        super().start()
        thread.join()
        self.k8sd = self.parental.control.get(timeout=WAIT_S)
        self.dir.chmod(0o755)
        self.socket.chmod(0o666)
        return self

    def accept(self):
        conn = self.relay.accept()[0]
        _, (fd,), _, _ = socket.recv_fds(conn, 16, 1)
        self.parental = Parental(fd, conn)

    def sessions(self):
        return {s["session_id"]: s
                for s in self.ask("session.list")["sessions"]}
