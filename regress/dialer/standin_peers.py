# SPDX-License-Identifier: ISC

"""A real egressd-dialer; its parent, policyd and engines are stand-ins."""

import pathlib
import resource
import socket
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from channel import C, Channel  # noqa: E402
from child import Child  # noqa: E402
from daemon import WAIT_S  # noqa: E402

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
        if failure == "DIAL_ADDRESS_REFUSED":
            message.why = without_remedy(message.why)
        assert message.failure == C[failure] and message.why == why, message


def without_remedy(why):
    """Of a refused address: all but what could be done about it."""
    return why.partition(" (")[0]


class Dialer(Child):
    def __init__(self, hosts=(), resolvers=(), deny=(), timeout_ms=5000,
                 files=None, withhold=()):
        self.files = files
        self.withhold = set(withhold)
        self.withheld = []
        self.asked = dict.fromkeys(KINDS, 0)
        self.engines = []
        super().__init__("dialer", UID)
        self.conf(hosts, resolvers=resolvers, deny=deny,
                  timeout_ms=timeout_ms)

    def prepare_process(self):
        super().prepare_process()
        if self.files:
            resource.setrlimit(resource.RLIMIT_NOFILE,
                               (self.files, self.files))

    def finish(self):
        """It lives to the end, unless a case saw to that."""
        if self.process.poll() is None:
            super().finish()

    def close(self):
        super().close()
        for engine in self.engines:
            engine.channel.close()

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

    def serve(self, message):
        if message.name != "SOCKET_ASK":
            return False
        self.asked[message.kind] += 1
        if message.kind in self.withhold:
            self.withheld.append(message.kind)
        else:
            try:
                self.give(message.kind)
            except OSError:
                pass
        return True

    def send_slice(self, hosts=(), deny=(), timeout_ms=5000):
        self.send("CONF_DIAL", timeout_ms=timeout_ms)
        for name, where in hosts:
            self.send("CONF_HOST", name=name, address=where)
        for prefix in deny:
            self.send("CONF_DENY_NET", prefix=prefix)

    def engine(self):
        engine = Engine(self, len(self.engines) + 1)
        self.engines.append(engine)
        self.send("CHANNEL", fd=engine.channel.other.fileno(),
                  peer=C["ROLE_ENGINE"], instance=engine.instance,
                  session=f"s{engine.instance}")
        engine.channel.other.close()
        return engine

    def settle(self, engines):
        """Wait until it holds what it must hold and nothing else: standard
        descriptors, libevent's three, parent, policyd, engines, the stock."""
        super().settle(3 + 3 + 2 + engines + 8 * len(KINDS))
