#
# Copyright (c) 2026 The egressd authors
#
# Permission to use, copy, modify, and distribute this software for any
# purpose with or without fee is hereby granted, provided that the above
# copyright notice and this permission notice appear in all copies.
#
# THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES
# WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF
# MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR
# ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES
# WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
# ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF
# OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
#

"""A real egressd-dialer; its parent, policyd and engines are stand-ins."""

import os
import pathlib
import queue
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from channel import C, Channel  # noqa: E402
from daemon import BUILD, SANITIZED, WAIT_S, until  # noqa: E402

KINDS = {
    C["SOCKET_TCP4"]: (socket.AF_INET, socket.SOCK_STREAM),
    C["SOCKET_TCP6"]: (socket.AF_INET6, socket.SOCK_STREAM),
    C["SOCKET_UDP4"]: (socket.AF_INET, socket.SOCK_DGRAM),
    C["SOCKET_UDP6"]: (socket.AF_INET6, socket.SOCK_DGRAM),
}
UID = 61290


class Engine:
    def __init__(self, dialer, instance):
        self.dialer = dialer
        self.instance = instance
        self.channel = Channel()
        self.dials = 0

    def grant(self, host, port, **values):
        self.dials += 1
        self.dialer.policyd.send("GRANT", instance=self.instance,
                                 dial=self.dials, host=host, port=port,
                                 **values)
        return self.dials

    def answer(self, timeout=WAIT_S):
        """The next answer; its socket, if any, in .sock."""
        message = self.channel.read(timeout)
        assert message is not None, f"hung up: {self.dialer.log()}"
        message.sock = None
        if message.fd is not None:
            message.sock = socket.socket(fileno=message.fd)
        return message

    def dial(self, host, port, **values):
        number = self.grant(host, port, **values)
        message = self.answer()
        assert message.dial == number, message
        return message

    def connects(self, host, port, where, **values):
        """It must get through to this address and nowhere else."""
        message = self.dial(host, port, **values)
        assert message.name == "DIALED" and message.address == where, message
        assert message.sock.getpeername()[:2] == (where, port), message
        message.sock.close()

    def fails(self, host, port, failure, why, **values):
        message = self.dial(host, port, **values)
        assert message.name == "DIAL_FAILED", message
        assert message.failure == C[failure] and message.why == why, message


class Dialer:
    """Started, confined and configured; conf() loads another generation."""

    def __init__(self, hosts=(), resolvers=(), deny=(), timeout_ms=5000,
                 files=None, withhold=()):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="egressd-dialer."))
        self.withhold = set(withhold)
        self.withheld = []
        self.asked = dict.fromkeys(KINDS, 0)
        self.messages = queue.Queue()
        self.engines = []
        self.generation = 0
        self.parent = Channel()
        self.policyd = Channel()
        self.errors = open(self.dir / "stderr", "w+")
        self.process = subprocess.Popen(
            [str(BUILD / "libexec" / "egressd-dialer")], close_fds=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=self.errors, env={},
            preexec_fn=lambda: self.child(files))
        self.parent.other.close()
        self.lock = threading.Lock()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()
        self.boot()
        self.conf(hosts, resolvers, deny, timeout_ms)

    def child(self, files):
        os.dup2(self.parent.other.fileno(), 3)
        if files:
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        """It lives to the end and says nothing, unless a case saw to that."""
        try:
            if kind is None and self.process.poll() is None:
                self.parent.sock.shutdown(socket.SHUT_RDWR)
                assert self.process.wait(WAIT_S) == 0, self.log()
                assert self.log() == "", self.log()
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self.thread.join()
            for channel in [self.policyd, self.parent] + \
                    [e.channel for e in self.engines]:
                channel.close()
            self.errors.close()
            shutil.rmtree(self.dir, ignore_errors=True)

    def log(self):
        return (self.dir / "stderr").read_text(errors="replace")

    def boot(self):
        root = self.dir / "root"
        root.mkdir(mode=0o555)
        self.dir.chmod(0o755)
        uid = UID if os.geteuid() == 0 and not in_user_namespace() else 0
        self.send("BOOT", role=C["ROLE_DIALER"], log_level=2, uid=uid,
                  gid=uid, chroot=str(root) if uid else "")
        self.send("CHANNEL", fd=self.policyd.other.fileno(),
                  peer=C["ROLE_POLICYD"])

    def send(self, name, /, fd=None, **values):
        with self.lock:
            self.parent.send(name, fd, **values)

    def give(self, kind):
        """What the parent does; a socket's options are its affair."""
        with socket.socket(*KINDS[kind]) as sock:
            sock.setblocking(False)
            self.send("SOCKET", fd=sock.fileno(), kind=kind)

    def release(self):
        """Give what was withheld, and withhold no more."""
        self.withhold = set()
        for kind in self.withheld:
            self.give(kind)

    def serve(self):
        while True:
            try:
                message = self.parent.read(None)
            except OSError:
                message = None
            if message is None:
                self.messages.put(None)
                return
            if message.name != "SOCKET_ASK":
                self.messages.put(message)
                continue
            self.asked[message.kind] += 1
            if message.kind in self.withhold:
                self.withheld.append(message.kind)
            else:
                try:
                    self.give(message.kind)
                except OSError:
                    pass

    def expect(self, name):
        message = self.messages.get(timeout=WAIT_S)
        assert message is not None and message.name == name, \
            f"{message} instead of {name}: {self.log()}"
        return message

    def prepare(self, hosts=(), resolvers=(), deny=(), timeout_ms=5000):
        self.generation += 1
        self.send("CONF_BEGIN", generation=self.generation)
        self.send("CONF_DIAL", timeout_ms=timeout_ms)
        for name, where in hosts:
            self.send("CONF_HOST", name=name, address=where)
        for server in resolvers:
            self.send("CONF_RESOLVER", address=server.host, port=server.port)
        for prefix in deny:
            self.send("CONF_DENY_NET", prefix=prefix)
        self.send("CONF_END", generation=self.generation)

    def conf(self, *args, **kwargs):
        self.prepare(*args, **kwargs)
        self.expect("CONF_ACK")
        self.send("CONF_COMMIT", generation=self.generation)
        self.expect("CONF_DONE")

    def engine(self):
        engine = Engine(self, len(self.engines) + 1)
        self.engines.append(engine)
        self.send("CHANNEL", fd=engine.channel.other.fileno(),
                  peer=C["ROLE_ENGINE"], instance=engine.instance,
                  session=f"s{engine.instance}")
        engine.channel.other.close()
        return engine

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def settle(self, engines):
        """Wait until it holds what it must hold and nothing else: standard
        descriptors, libevent's three, parent, policyd, engines, the stock."""
        count = 3 + 3 + 2 + engines + 8 * len(KINDS)
        until(f"{count} descriptors", lambda: self.descriptors() == count)


def in_user_namespace():
    return pathlib.Path("/proc/self/uid_map").read_text().split() != \
        ["0", "0", "4294967295"]
