# SPDX-License-Identifier: ISC
"""A stand-in for an attacker's host, and for a network without a gate.

In a network namespace of its own it has an address on which everything is
sent back, TCP and UDP, and runs a command there: whose status is its own.

	standin_evil.py address [--wire] -- command [argument ...]
"""

import os
import socket
import subprocess
import sys
import threading

TCP = (22, 80, 443)
UDP = (53, 443)


def echo(connection):
    with connection:
        while data := connection.recv(65536):
            connection.sendall(data)


def accept(listener):
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=echo, args=(connection,),
                         daemon=True).start()


def echo_datagrams(sock):
    while True:
        data, peer = sock.recvfrom(65536)
        sock.sendto(data, peer)


def serve(address):
    for port in TCP:
        listener = socket.create_server((address, port))
        threading.Thread(target=accept, args=(listener,),
                         daemon=True).start()
    for port in UDP:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.bind((address, port))
        threading.Thread(target=echo_datagrams, args=(sock,),
                         daemon=True).start()


def main():
    split = sys.argv.index("--")
    address, command = sys.argv[1], sys.argv[split + 1:]
    ip = [["link", "set", "lo", "up"],
          ["addr", "add", address + "/32", "dev", "lo"]]
    if "--wire" in sys.argv[:split]:
        ip += [["link", "add", "wire0", "type", "veth", "peer", "wire1"],
               ["link", "set", "wire0", "up"], ["link", "set", "wire1", "up"]]
    for words in ip:
        subprocess.run(["ip", *words], check=True)
    serve(address)
    return subprocess.run(command, env=os.environ).returncode


if __name__ == "__main__":
    sys.exit(main())
