# SPDX-License-Identifier: ISC

"""Plays the engine towards egressd-box: takes its listeners, gives it trust
files, and reports what arrives.  TCP connections are told their original
destination; every A and AAAA question gets the same synthetic address."""

import fcntl
import os
import selectors
import socket
import struct
import threading

from msgtab import ENUMS, FD_MARK, NAMES, TABLE

ANSWER4 = "198.18.0.77"
ANSWER6 = "fd00:18::77"
TRUST = [b"-----BEGIN CERTIFICATE-----\ndGhl\nIENB\n"
         b"-----END CERTIFICATE-----\n", b"the public bundle and the CA\n",
         b"a Java store\n", b"an NSS database\n", b"and its keys\n"]

SO_ORIGINAL_DST = 80
IP_PKTINFO = 8
NFULA_PAYLOAD = 9

TYPES = {name: row.number for name, row in TABLE.items()}
LISTEN = [word.removeprefix("LISTEN_") for word in ENUMS["listen_kind"]]


def sealed(data, seals=None):
    fd = os.memfd_create("trust", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.write(fd, data)
    if seals is None:
        seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


def original(conn):
    """Where the client meant to go, as the engine learns it."""
    try:
        if conn.family == socket.AF_INET:
            raw = conn.getsockopt(socket.SOL_IP, SO_ORIGINAL_DST, 16)
            port, addr = struct.unpack_from("!2xH4s", raw)
            return socket.inet_ntop(socket.AF_INET, addr), port
        raw = conn.getsockopt(socket.IPPROTO_IPV6, SO_ORIGINAL_DST, 28)
        port, addr = struct.unpack_from("!2xH4x16s", raw)
        return socket.inet_ntop(socket.AF_INET6, addr), port
    except OSError:
        return conn.getsockname()[:2]


def dns_answer(query):
    """The question back, with one address if it asked for one."""
    at = 12
    while query[at]:
        at += query[at] + 1
    kind, = struct.unpack_from("!H", query, at + 1)
    question = query[12:at + 5]
    data = {1: socket.inet_pton(socket.AF_INET, ANSWER4),
            28: socket.inet_pton(socket.AF_INET6, ANSWER6)}.get(kind)
    head = query[:2] + struct.pack("!HHHHH", 0x8180, 1, int(bool(data)), 0, 0)
    if not data:
        return head + question
    return (head + question +
            struct.pack("!HHHIH", 0xc00c, kind, 1, 60, len(data)) + data)


def packet(report):
    """Of an NFLOG message: protocol, destination, destination port."""
    at, end = 20, struct.unpack_from("=I", report)[0]
    while at + 4 <= end:
        size, kind = struct.unpack_from("=HH", report, at)
        if kind == NFULA_PAYLOAD:
            ip = report[at + 4:at + size]
            if ip[0] >> 4 == 4:
                proto, dst, rest = (ip[9], socket.inet_ntop(
                    socket.AF_INET, ip[16:20]), ip[(ip[0] & 15) * 4:])
            else:
                proto, dst, rest = (ip[6], socket.inet_ntop(
                    socket.AF_INET6, ip[24:40]), ip[40:])
            return proto, dst, struct.unpack_from("!2xH", rest)[0]
        at += size + 3 & ~3
    return None


class Engine:
    """Runs in a thread; what it saw is in its lists."""

    def __init__(self, script=None):
        self.ours, self.theirs = socket.socketpair()
        self.listeners = []
        self.redirect = None
        self.connections = []
        self.questions = []
        self.refused = []
        self.script = script or Engine.answer
        self.selector = selectors.DefaultSelector()
        self.wake, self.waker = socket.socketpair()
        self.dead = threading.Event()
        self.watch(self.wake, self.die)
        self.watch(self.ours, self.channel)
        self.buffer, self.fds = b"", []
        self.thread = threading.Thread(target=self.loop, daemon=True)

    def watch(self, sock, handler):
        self.selector.register(sock, selectors.EVENT_READ, (handler, sock))

    def loop(self):
        while not self.dead.is_set():
            for key, _ in self.selector.select():
                handler, sock = key.data
                handler(sock)
                if self.dead.is_set():
                    break

    def start(self):
        self.thread.start()
        return self.theirs

    def stop(self):
        """As if the process had died: every descriptor is closed."""
        self.waker.close()
        self.thread.join(10)

    def die(self, _=None):
        for key in list(self.selector.get_map().values()):
            handler, sock = key.data
            if handler == self.nflog:
                self.drain(sock)
            sock.close()
        self.dead.set()

    @staticmethod
    def frame(name, body=b"", mark=0):
        """Of a name in the table, or of any number."""
        return struct.pack("!III", TYPES.get(name, name),
                           12 + len(body) | mark, 0) + body

    def send(self, name, body=b"", fd=None):
        data = self.frame(name, body, 0 if fd is None else FD_MARK)
        if fd is None:
            self.ours.sendall(data)
        else:
            socket.send_fds(self.ours, [data], [fd])
            os.close(fd)

    def answer(self):
        for kind, data in enumerate(TRUST):
            self.send("BOX_TRUST", bytes([kind]), sealed(data))
        self.go()

    def go(self, session=b"job-42"):
        self.send("BOX_GO", struct.pack("!H", len(session)) + session + b"\0")

    def channel(self, sock):
        data, fds, _, _ = socket.recv_fds(sock, 65536, 8)
        if not data:
            self.selector.unregister(sock)
            return
        self.buffer += data
        self.fds += fds
        while len(self.buffer) >= 12:
            kind, size, _ = struct.unpack_from("!III", self.buffer)
            size &= ~FD_MARK
            if len(self.buffer) < size:
                return
            body, self.buffer = self.buffer[12:size], self.buffer[size:]
            self.message(NAMES[kind].name, body)

    def message(self, name, body):
        if name == "BOX_LISTEN":
            kind = LISTEN[body[0]]
            sock = socket.socket(fileno=self.fds.pop(0))
            self.listeners.append((kind, sock.family, sock.getsockname()))
            self.watch(sock, {"TCP": self.tcp, "DNS_UDP": self.dns_udp,
                              "DNS_TCP": self.dns_tcp,
                              "NFLOG": self.nflog}[kind])
        elif name == "BOX_READY":
            self.redirect = body[0]
            self.script(self)
        else:
            raise AssertionError(name)

    def tcp(self, sock):
        conn, _ = sock.accept()
        conn.setblocking(True)
        dest = original(conn)
        self.connections.append(dest)
        conn.sendall(f"{dest[0]} {dest[1]}\n".encode())
        conn.close()

    def dns_udp(self, sock):
        """The answer leaves from the address that was asked."""
        data, info, _, peer = sock.recvmsg(1500, 256)
        self.questions.append(("udp", data))
        level, kind, raw = info[0]
        if level == socket.SOL_IP:
            raw = struct.pack("@i4s4s", 0, raw[4:8], bytes(4))
        sock.sendmsg([dns_answer(data)], [(level, kind, raw)], 0, peer)

    def dns_tcp(self, sock):
        conn, _ = sock.accept()
        conn.setblocking(True)
        conn.settimeout(5)
        size, = struct.unpack("!H", conn.recv(2, socket.MSG_WAITALL))
        data = conn.recv(size, socket.MSG_WAITALL)
        self.questions.append(("tcp", data))
        answer = dns_answer(data)
        conn.sendall(struct.pack("!H", len(answer)) + answer)
        conn.close()

    def drain(self, sock):
        """What the kernel reported before the end, it reported."""
        try:
            while True:
                self.nflog(sock)
        except BlockingIOError:
            pass

    def nflog(self, sock):
        report = packet(sock.recv(8192))
        if report:
            self.refused.append(report)
