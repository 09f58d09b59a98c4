#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Where a gate would listen in its pod: says to each TCP connection where it
was going, and to each datagram that it is the gate.

    standin_gate.py tcp dns"""

import contextlib
import selectors
import socket
import struct
import sys

ORIGINAL_DST = 80
chosen = selectors.DefaultSelector()


def meant(sock):
    if sock.family == socket.AF_INET:
        raw = sock.getsockopt(socket.SOL_IP, ORIGINAL_DST, 16)
        where = socket.inet_ntop(socket.AF_INET, raw[4:8])
    else:
        raw = sock.getsockopt(socket.IPPROTO_IPV6, ORIGINAL_DST, 28)
        where = socket.inet_ntop(socket.AF_INET6, raw[8:24])
    return f"{where} {struct.unpack_from('>H', raw, 2)[0]}"


def tcp(sock):
    peer, _ = sock.accept()
    with contextlib.suppress(OSError):
        peer.sendall(f"gate {meant(peer)}\n".encode())
    chosen.register(peer, selectors.EVENT_READ, stream)


def stream(sock):
    try:
        data = sock.recv(65536)
    except OSError:
        data = b""
    if data:
        sock.sendall(b"gate has " + data)
    else:
        chosen.unregister(sock)
        sock.close()


def udp(sock):
    data, peer = sock.recvfrom(65536)
    sock.sendto(b"gate has " + data, peer)


def main():
    wanted, dns = map(int, sys.argv[1:])
    for family, address in ((socket.AF_INET, "127.0.0.1"),
                            (socket.AF_INET6, "::1")):
        for kind, port, serve in ((socket.SOCK_STREAM, wanted, tcp),
                                  (socket.SOCK_STREAM, dns, tcp),
                                  (socket.SOCK_DGRAM, dns, udp)):
            sock = socket.socket(family, kind)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                sock.bind((address, port))
            except OSError:         # there may be no IPv6
                if family == socket.AF_INET:
                    raise
                continue
            if kind == socket.SOCK_STREAM:
                sock.listen()
            chosen.register(sock, selectors.EVENT_READ, serve)
    print("ready", flush=True)
    while True:
        for key, _ in chosen.select():
            key.data(key.fileobj)


main()
