#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""The battery against sandboxes that a daemon makes, part five: users whose
sandboxes are pods share a k8sd, and users whose kubeconfigs are used say what
else is read.  None of them holds up the others.  The cluster is a stand-in."""

import contextlib
import fcntl
import json
import os
import pathlib
import socket
import struct
import sys
import termios

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from boxedlib import (ALICE, BOB, Client, Host, Place, ask_as,  # noqa: E402
                      error, same, until)
from case import Cases  # noqa: E402
from daemon import WAIT_S  # noqa: E402
from fuse import OPEN, READ, Fuse  # noqa: E402
from standin_kube import Kube  # noqa: E402

cases = Cases()
LOG = b"x" * 900000         # more than any socket or pipe holds


@contextlib.contextmanager
def cluster(block):
    """A daemon whose pods are in a stand-in for a cluster."""
    with contextlib.ExitStack() as stack:
        place, kube = Place(), Kube()
        stack.callback(place.end)
        kube.print(LOG)
        host = Host(f"""
policy "p" {{ }}
cluster "k" {{ {block(place, kube.url)} }}
sandbox "pod" kubernetes {{ policy "p" image "x" cluster "k" ungated }}
sandbox "virtual" virtual {{ policy "p" user "nobody" }}
""")
        stack.callback(host.end)
        host.place = place
        yield host


def with_token(place, url):
    token = place.top / "token"
    token.write_text("token")
    token.chmod(0o600)
    return f'server "{url}" token file "{token}"'


def start(host, uid, name):
    answer = ask_as(uid, host.socket, "session.start", session_id=name,
                    sandbox="pod")
    assert answer.get("ok"), answer


def pair(stack):
    ends = [stack.enter_context(end) for end in socket.socketpair()]
    ends[0].settimeout(WAIT_S)
    return ends


class Logs(Client):
    """Alice wants the log of her pod; she keeps both ends."""

    def __init__(self, host, ends):
        os.seteuid(ALICE)
        try:
            super().__init__(host.socket)
        finally:
            os.seteuid(0)
        self.ends = ends
        socket.send_fds(self.sock, [json.dumps(
            {"id": 1, "op": "session.logs",
             "session_id": "hers"}).encode() + b"\n"], [ends[1].fileno()])


# ---- k8sd -------------------------------------------------------------------------

@cases.case
def a_log_that_is_not_read():
    """Whether a descriptor blocks is a flag that she can change at any time."""
    with cluster(with_token) as host, contextlib.ExitStack() as stack:
        host.start()
        start(host, ALICE, "hers")
        start(host, BOB, "his")
        ends = pair(stack)
        with Logs(host, ends):
            same(ends[0].recv(1, socket.MSG_PEEK), LOG[:1])
            until("k8sd has filled it", lambda: not writable(ends[1]))
            ends[1].setblocking(True)
            drain(ends[0])          # there is room again
            answer = ask_as(BOB, host.socket, "pods.list", sandbox="pod")
            same(sorted(p["session_id"] for p in answer["pods"]),
                 ["hers", "his"])
            assert host.ask("reload").get("ok")
            same(os.waitid(os.P_PID, host.process.pid, os.WEXITED |
                           os.WNOHANG | os.WNOWAIT), None)


def drain(sock):
    """What is in there now, and not what comes then."""
    left = struct.unpack("i", fcntl.ioctl(sock, termios.FIONREAD, bytes(4)))[0]
    while left > 0:
        left -= len(sock.recv(left))


def writable(sock):
    try:
        sock.send(b"x", socket.MSG_DONTWAIT)
        return True
    except BlockingIOError:
        return False


@cases.case
def a_log_that_is_read():
    with cluster(with_token) as host, contextlib.ExitStack() as stack:
        host.start()
        start(host, ALICE, "hers")
        ends = pair(stack)
        with Logs(host, ends) as client:
            ends[1].close()
            got = b""
            while piece := ends[0].recv(1 << 20):
                got += piece
            assert got == LOG, len(got)
            assert client.read().get("ok")


@cases.case
def a_log_for_anything_else():
    """What could hold k8sd up by itself, or by a flag."""
    with cluster(with_token) as host, contextlib.ExitStack() as stack:
        host.start()
        start(host, ALICE, "hers")
        reads, writes = os.pipe()
        pipe = [stack.enter_context(open(reads, "rb")),
                stack.enter_context(open(writes, "wb"))]
        fcntl.fcntl(writes, fcntl.F_SETFL, 0)
        file = stack.enter_context(open(host.dir / "log", "wb"))
        for ends in (pipe, [file, file]):
            with Logs(host, ends) as client:
                same(error(client.read())[0], "not_supported")


# ---- files of a kubeconfig --------------------------------------------------------

def with_kubeconfig(place, url):
    """Alice's, and the token is in a directory of hers."""
    home = place.make("alice", ALICE)
    tokens = place.make("alice/tokens", ALICE)
    config = home / "config"
    config.write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {
            "tokenFile": str(tokens / "file")}}]}))
    config.chmod(0o600)
    os.chown(config, ALICE, ALICE)
    (tokens / "file").write_text("token")
    (tokens / "file").chmod(0o600)
    os.chown(tokens / "file", ALICE, ALICE)
    return f'kubeconfig "{config}"'


@cases.each(("open", "read"))
def a_token_that_never_comes(operation):
    """She serves the file system with her token, and no longer answers: the
    daemon keeps what it has, and works."""
    with cluster(with_kubeconfig) as host:
        host.start()
        with Fuse(host.place.top / "alice/tokens", ALICE, True) as server:
            answer = host.ask("reload")
            assert answer.get("ok"), answer
            server.hang({"open": OPEN, "read": READ}[operation])
            same(error(host.ask("reload"))[0], "bad_configuration")
            server.waiting(1, WAIT_S)
            host.works()
            # It is not asked again for as long as the first one waits.
            same(error(host.ask("reload"))[0], "bad_configuration")
            assert not server.asked.acquire(blocking=False)
            host.works()
        until("it is asked again", lambda: host.ask("reload").get("ok"))
        same(host.stop(), 0)


cases.main()
