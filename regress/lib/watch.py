# SPDX-License-Identifier: ISC

"""A session that does nothing out of the ordinary, in a process of its own:
request after request over one connection of HTTP/1, and how long each took.

	watch.py ca port host

prints milliseconds, a line each, until its standard input ends."""

import pathlib
import select
import socket
import ssl
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from gate import GOOD, Wire, get  # noqa: E402

PAUSE_S = 0.002


def main(ca, port, host):
    context = ssl.create_default_context(cafile=ca)
    context.set_alpn_protocols(["http/1.1"])
    sock = socket.create_connection(("127.0.0.1", int(port)), 20)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    wire = Wire(context.wrap_socket(sock, server_hostname=GOOD))
    while not select.select([sys.stdin], [], [], PAUSE_S)[0]:
        begin = time.monotonic()
        status = wire.ask(get("/other.txt", host)).status
        assert status == 200, status
        print((time.monotonic() - begin) * 1000, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
