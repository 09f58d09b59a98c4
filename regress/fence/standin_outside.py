#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""The world outside of a pod: serves UDP and TCP on a few ports in both
families, and says on a line of JSON each what came, and what frame came that is
neither ARP nor about neighbours.

    standin_outside.py interface port ..."""

import json
import selectors
import socket
import struct
import sys

ETH_P_ALL, ETH_P_ARP, ETH_P_IPV6 = 3, 0x0806, 0x86dd
PACKET_OUTGOING = 4
NEIGHBOURS = range(133, 137)
chosen = selectors.DefaultSelector()


def say(*what):
    print(json.dumps(what), flush=True)


def udp(sock):
    data, peer = sock.recvfrom(65536)
    say("udp", peer[0], sock.getsockname()[1], data.decode())
    sock.sendto(b"echo " + data, peer)


def tcp(sock):
    peer, address = sock.accept()
    say("tcp", address[0], sock.getsockname()[1])
    chosen.register(peer, selectors.EVENT_READ, stream)


def stream(sock):
    try:
        data = sock.recv(65536)
    except OSError:
        data = b""
    if data:
        say("bytes", data.decode(errors="replace"))
        sock.sendall(b"echo " + data)
    else:
        chosen.unregister(sock)
        sock.close()


def is_quiet(frame):
    kind, = struct.unpack_from(">H", frame, 12)
    return kind == ETH_P_ARP or (
        kind == ETH_P_IPV6 and frame[20] == socket.IPPROTO_ICMPV6 and
        frame[54] in NEIGHBOURS)


def tap(sock):
    frame, address = sock.recvfrom(65536)
    if address[2] != PACKET_OUTGOING and not is_quiet(frame):
        say("frame", frame.hex())


def main():
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                         socket.htons(ETH_P_ALL))
    sock.bind((sys.argv[1], ETH_P_ALL))
    chosen.register(sock, selectors.EVENT_READ, tap)
    for port in map(int, sys.argv[2:]):
        for family, address in ((socket.AF_INET, "0.0.0.0"),
                                (socket.AF_INET6, "::")):
            for kind, serve in ((socket.SOCK_DGRAM, udp),
                                (socket.SOCK_STREAM, tcp)):
                sock = socket.socket(family, kind)
                if family == socket.AF_INET6:
                    sock.setsockopt(socket.IPPROTO_IPV6,
                                    socket.IPV6_V6ONLY, 1)
                sock.bind((address, port))
                if kind == socket.SOCK_STREAM:
                    sock.listen()
                chosen.register(sock, selectors.EVENT_READ, serve)
    say("ready")
    while True:
        for key, _ in chosen.select():
            key.data(key.fileobj)


main()
