# SPDX-License-Identifier: ISC

"""The world outside, in a network namespace of its own, at the other end of
the one wire that leaves ours: whatever leaves is seen on it."""

import contextlib
import ctypes
import os
import pathlib
import socket
import struct
import subprocess
import threading

from case import Skip

CLONE_NEWNET = 0x40000000
ETH_P_ALL, ETH_P_IPV6 = 3, 0x86dd
PACKET_OUTGOING = 4
SOL_PACKET, PACKET_STATISTICS = 263, 6
MLD_AND_ROUTERS = (130, 131, 132, 133, 143)     # of ICMPv6: the kernel's own

# Public addresses: our host's, the good origin's, the attacker's, and of a
# name server.
OURS, GOOD_ADDRESS, EVIL_ADDRESS, DNS_ADDRESS = (
    f"11.0.0.{n}" for n in (1, 2, 3, 53))
OURS6, EVIL_ADDRESS6 = "2a00:1::1", "2a00:1::3"
METADATA = "169.254.169.254"


def run(*lines):
    for line in lines:
        subprocess.run(line.split(), check=True)


def own_namespace():
    """For this thread and all that it starts."""
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() != 0 or libc.unshare(CLONE_NEWNET) != 0:
        raise Skip("no network namespace for us")
    run("ip link set lo up")


def set_ipv6(name):
    """Its addresses are those that it is given."""
    conf = pathlib.Path("/proc/sys/net/ipv6/conf") / name
    (conf / "addr_gen_mode").write_text("1")
    (conf / "accept_dad").write_text("0")


class Outside:
    """Made once, by the thread from which daemons will be started."""

    def __init__(self):
        own_namespace()
        run("ip link add wire type veth peer name far")
        self.ready, self.moved = threading.Event(), threading.Event()
        self.todo, self.done = [], threading.Event()
        self.thread = threading.Thread(target=self.live, daemon=True)
        self.thread.start()
        assert self.ready.wait(10), "no second namespace"
        run(f"ip link set far netns {self.thread.native_id}")
        set_ipv6("wire")
        run("ip link set wire address 02:00:00:00:00:01",
            f"ip addr add {OURS}/24 dev wire",
            f"ip addr add {OURS6}/64 dev wire nodad", "ip link set wire up",
            "ip route add default dev wire", "ip -6 route add default dev wire")
        self.do(self.furnish)
        self.know("wire", 2, GOOD_ADDRESS, EVIL_ADDRESS, DNS_ADDRESS,
                  METADATA, EVIL_ADDRESS6)
        self.tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                                 socket.htons(ETH_P_ALL))
        self.tap.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self.tap.bind(("wire", ETH_P_ALL))
        self.tap.setblocking(False)

    def live(self):
        """A thread that stays outside and does there what it is given."""
        own_namespace()
        self.ready.set()
        while True:
            self.moved.wait()
            self.moved.clear()
            function, args, answer = self.todo.pop()
            try:
                answer.append(function(*args))
            finally:
                self.done.set()

    def do(self, function, *args):
        """Sockets that it makes are outside, whoever uses them later."""
        answer = []
        self.done.clear()
        self.todo.append((function, args, answer))
        self.moved.set()
        assert self.done.wait(20) and answer, "it failed outside"
        return answer[0]

    def furnish(self):
        set_ipv6("far")
        run("ip link set far address 02:00:00:00:00:02",
            *(f"ip addr add {a}/24 dev far" for a in (
                GOOD_ADDRESS, EVIL_ADDRESS, DNS_ADDRESS)),
            f"ip addr add {METADATA}/32 dev far",
            f"ip addr add {EVIL_ADDRESS6}/64 dev far nodad",
            "ip link set far up")
        self.know("far", 1, OURS, OURS6)

    @staticmethod
    def know(name, end, *addresses):
        """Nobody has to ask who has an address."""
        run(*(f"ip neigh replace {a} lladdr 02:00:00:00:00:0{end} dev {name} "
              "nud permanent" for a in addresses))

    def sent(self):
        """Frames that have left since this was asked last."""
        frames = []
        with contextlib.suppress(BlockingIOError):
            while True:
                data, address = self.tap.recvfrom(65536)
                if address[2] == PACKET_OUTGOING and not own_of_kernel(data):
                    frames.append(data)
        _, drops = struct.unpack("II", self.tap.getsockopt(
            SOL_PACKET, PACKET_STATISTICS, 8))
        assert drops == 0, f"{drops} frames were not seen"
        return frames


def own_of_kernel(frame):
    kind, = struct.unpack_from(">H", frame, 12)
    if kind != ETH_P_IPV6:
        return False
    after = 8 if frame[20] == 0 else 0          # hop-by-hop options
    return (frame[54] if after else frame[20]) == 58 and \
        frame[54 + after] in MLD_AND_ROUTERS


class Evil:
    """Listens outside, in the clear, on many ports and in both families; keeps
    whatever comes."""

    PORTS = (22, 53, 80, 443, 853, 5432, 8080, 8443, 65001)

    def __init__(self, outside):
        self.got, self.visits, self.socks = [], 0, []
        outside.do(self.listen)

    def listen(self):
        for address, family in ((EVIL_ADDRESS, socket.AF_INET),
                                (METADATA, socket.AF_INET),
                                (EVIL_ADDRESS6, socket.AF_INET6)):
            for port in self.PORTS:
                sock = socket.socket(family)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                sock.bind((address, port))
                sock.listen()
                self.socks.append(sock)
                threading.Thread(target=self.serve, args=(sock,),
                                 daemon=True).start()
        return True

    def serve(self, sock):
        with contextlib.suppress(OSError):
            while True:
                peer, _ = sock.accept()
                self.visits += 1
                threading.Thread(target=self.read, args=(peer,),
                                 daemon=True).start()

    def read(self, peer):
        with peer, contextlib.suppress(OSError):
            peer.sendall(b"SSH-2.0-evil\r\n")
            while data := peer.recv(65536):
                self.got.append(data)
