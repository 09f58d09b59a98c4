# SPDX-License-Identifier: ISC

"""A real child of egressd; its parent and policyd are stand-ins."""

import os
import pathlib
import queue
import shutil
import socket
import subprocess
import tempfile
import threading

from case import Skip
from channel import C, Channel
from daemon import BUILD, WAIT_S, until
from msgtab import VERSION


def in_user_namespace():
    return pathlib.Path("/proc/self/uid_map").read_text().split() != \
        ["0", "0", "4294967295"]


class Child:
    """Started and confined; conf() loads a generation.

    A role says what else the parent sends (send_slice) and which of the
    child's messages it deals with (serve); the others wait for expect().
    """

    def __init__(self, role, uid):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix=f"egressd-{role}."))
        self.role = role
        self.generation = 0
        self.quiet = True               # it has nothing to warn of
        self.messages = queue.Queue()
        self.parent, self.policyd = Channel(), Channel()
        self.lock = threading.Lock()
        self.errors = open(self.dir / "stderr", "w+")
        self.process = subprocess.Popen(
            [str(BUILD / "libexec" / f"egressd-{role}")], close_fds=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=self.errors, env={}, preexec_fn=self.prepare_process)
        self.parent.other.close()
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()
        self.boot(uid)

    def prepare_process(self):
        os.dup2(self.parent.other.fileno(), 3)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self.finish()
        finally:
            self.close()

    def finish(self):
        """It lives to the end; quiet, unless a case says otherwise."""
        assert self.process.poll() is None, self.log()
        self.parent.sock.shutdown(socket.SHUT_RDWR)
        assert self.process.wait(WAIT_S) == 0, self.log()
        assert not self.quiet or self.complaints() == "", self.log()

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.thread.join()
        self.policyd.close()
        self.parent.close()
        self.errors.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    def complaints(self):
        """What it should not have had to say."""
        return self.log()

    def log(self):
        return (self.dir / "stderr").read_text(errors="replace")

    def boot(self, uid):
        root = self.dir / "root"
        root.mkdir(mode=0o555)
        self.dir.chmod(0o755)
        if os.geteuid() != 0 or in_user_namespace():
            uid = 0
        self.send("BOOT", version=VERSION, log_level=2,
                  role=C[f"ROLE_{self.role.upper()}"], uid=uid, gid=uid,
                  chroot=str(root) if uid else "")
        self.send("CHANNEL", fd=self.policyd.other.fileno(),
                  peer=C["ROLE_POLICYD"])

    def send(self, name, /, fd=None, **values):
        with self.lock:
            self.parent.send(name, fd, **values)

    def read(self):
        while True:
            try:
                message = self.parent.read(None)
            except OSError:
                message = None
            if message is None or not self.serve(message):
                self.messages.put(message)
            if message is None:
                return

    def serve(self, message):
        """Is this a message that somebody has dealt with?"""
        return False

    def expect(self, name):
        message = self.messages.get(timeout=WAIT_S)
        assert message is not None and message.name == name, \
            f"{message} instead of {name}: {self.log()}"
        return message

    def prepare(self, *args, resolvers=(), **kwargs):
        self.generation += 1
        self.send("CONF_BEGIN", generation=self.generation)
        for server in resolvers:
            self.send("CONF_RESOLVER", address=server.host, port=server.port)
        self.send_slice(*args, **kwargs)
        self.send("CONF_END", generation=self.generation)

    def commit(self):
        self.send("CONF_COMMIT", generation=self.generation)
        self.expect("CONF_DONE")

    def conf(self, *args, **kwargs):
        self.prepare(*args, **kwargs)
        self.expect("CONF_ACK")
        self.commit()

    def descriptors(self):
        try:
            return len(os.listdir(f"/proc/{self.process.pid}/fd"))
        except PermissionError:
            raise Skip("only root sees what it holds") from None

    def settle(self, count):
        until(f"{count} descriptors", lambda: self.descriptors() == count)
