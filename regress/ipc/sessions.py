#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""How many sessions the parent lets controld have: a whole daemon, but for
controld, whose place we take as somebody would who has taken it over."""

import os
import pathlib
import pwd
import re
import socket
import sys
import threading

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from case import Cases  # noqa: E402
from daemon import WAIT_S, Daemon  # noqa: E402
from standin_program import mount_standin  # noqa: E402
from standin_roles import ROOT, STANDIN, Standin  # noqa: E402

LIMIT = 2
MARGIN = 4096           # more than any limit permits, in a row
CONF = f"""
limit sessions {LIMIT}
policy "one" {{ }}
"""

cases = Cases()


class Taken(Daemon):
    """The daemon, and controld's channel to the parent."""

    def __init__(self):
        super().__init__(CONF, user=None if ROOT else pwd.getpwuid(
            os.getuid()).pw_name)
        self.owner = None
        self.boxes = []

    def start(self):
        thread = threading.Thread(target=self.accept)
        thread.start()
        super().start()
        thread.join()
        return self

    def accept(self):
        self.relay = relay.accept()[0]
        _, (fd,), _, _ = socket.recv_fds(self.relay, 16, 1)
        self.controld = Standin(fd)

    def end(self):
        super().end()
        self.relay.close()
        for box in self.boxes:
            box.close()

    def ask(self, number):
        ours, theirs = socket.socketpair()
        with theirs:
            self.controld.send("SESSION_ASK", theirs.fileno(), number=number,
                               session=f"s{number}", policy="one")
        self.boxes.append(ours)

    def told(self):
        return self.controld.answers.get(timeout=WAIT_S)


@cases.case
def beyond_the_limit():
    """It is refused, and the sessions go on; when one has ended there is room
    again."""
    with Taken() as d:
        for number in range(1, 2 * LIMIT + 1):
            d.ask(number)
            assert d.told().ok == 1
        d.ask(99)
        refused = d.told()
        assert (refused.number, refused.ok) == (99, 0), refused
        assert "'limit sessions'" in refused.text, refused
        d.controld.send("SESSION_STOP", number=1, cause=1)
        d.ask(100)
        assert d.told().ok == 1


@cases.case
def far_beyond():
    """No controld of ours asks so often: it is killed, and all ends."""
    with Taken() as d:
        for number in range(1, 2 * LIMIT + 1):
            d.ask(number)
            assert d.told().ok == 1
        for number in range(1, MARGIN + 1):
            d.ask(1000 + number)
            assert d.told().ok == 0
            d.boxes.pop().close()
        assert d.process.poll() is None, d.log()
        d.ask(99)
        assert d.wait() == 1, d.log()
        assert re.search(r"controld\[\d+\] is killed: SESSION_ASK: .*"
                         rf"{MARGIN + 1} beyond the limit", d.log()), d.log()


@cases.case
def a_client_that_is_none():
    """Who a sandbox is for is seen by the parent, and not told: without the
    connection of a client there is none."""
    with Taken() as d:
        ends = os.pipe()
        try:
            d.controld.send("SANDBOX_ASK", ends[0], number=7, session="s7",
                            policy="one", sandbox="", cwd="/",
                            variables=b"")
            refused = d.told()
        finally:
            for end in ends:
                os.close(end)
        assert (refused.number, refused.ok) == (7, 0), refused
        assert "cannot be told" in refused.text, refused


UNSOUND = {
    "no end": b"r/a", "no target": b"r/a\0", "no end of the target":
    b"r/a\0/b", "a mode": b"x/a\0/b\0", "one begun": b"r/a\0/b\0r",
    "nothing": b"\0\0\0\0", "many": b"r/a\0/b\0" * 65,
}


@cases.each(UNSOUND)
def mounts_that_are_not_sound(name):
    """No controld of ours sends them."""
    with Taken() as d:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            d.controld.send("SANDBOX_ASK", theirs.fileno(), number=7,
                            session="s7", policy="one", sandbox="", cwd="/",
                            variables=b"", mounts=UNSOUND[name])
        assert d.wait() == 1, d.log()
        assert re.search(r"controld\[\d+\] is killed: SANDBOX_ASK", d.log())


@cases.case
def a_mount_for_nobody():
    """A session that is not there, and a client that is none."""
    with Taken() as d:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            for fd in (theirs.fileno(), 0):
                d.controld.send("SESSION_MOUNT", fd, cookie=5, number=7,
                                source="/srv", target="/m", write=0)
                told = d.told()
                assert (told.cookie, told.result) == (5, 1), told
            d.controld.send("SESSION_MOUNT", theirs.fileno(), cookie=0,
                            number=7, source="/srv", target="/m", write=0)
        assert d.wait() == 1, d.log()


if __name__ == "__main__":
    relay = mount_standin(STANDIN, "controld")
    cases.main()
