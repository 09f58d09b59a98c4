# SPDX-License-Identifier: ISC

"""A stand-in for a name server: it says what a case wants, true or not."""

import ipaddress
import select
import socket
import struct
import threading

A, CNAME, AAAA, OPT = 1, 5, 28, 41


def pack_name(name):
    return b"".join(bytes([len(label)]) + label.encode()
                    for label in name.split(".")) + b"\0"


def unpack_name(data, at):
    labels = []
    while data[at]:
        labels.append(data[at + 1:at + 1 + data[at]].decode())
        at += 1 + data[at]
    return ".".join(labels), at + 1


class Question:
    def __init__(self, data, tcp):
        self.tcp = tcp
        self.id, = struct.unpack_from(">H", data)
        self.name, at = unpack_name(data, 12)
        self.type, _ = struct.unpack_from(">HH", data, at)
        self.section = data[12:at + 4]


def address(name, text, ttl=60):
    ip = ipaddress.ip_address(text)
    return name, A if ip.version == 4 else AAAA, ttl, ip.packed


def alias(name, target, ttl=60):
    return name, CNAME, ttl, pack_name(target)


def reply(question, records=(), rcode=0, truncated=False, ident=None):
    flags = 0x8180 | rcode | (0x0200 if truncated else 0)
    data = struct.pack(">HHHHHH", question.id if ident is None else ident,
                       flags, 1, len(records), 0, 0) + question.section
    for name, kind, ttl, rdata in records:
        data += pack_name(name) + struct.pack(">HHIH", kind, 1, ttl,
                                              len(rdata)) + rdata
    return data


def static(*records, ttl=60):
    """Addresses, or ("alias", target) first: those of the type asked for."""
    def serve(question, _):
        name, answer = question.name, []
        for record in records:
            if isinstance(record, tuple):
                answer.append(alias(name, record[1], ttl))
                name = record[1]
            else:
                entry = address(name, record, ttl)
                if entry[1] == question.type:
                    answer.append(entry)
        return reply(question, answer)
    return serve


class Server:
    """zone: name to serve(question, how many came before) -> bytes, a list
    of them, or None for silence.  A name that it lacks does not exist."""

    def __init__(self, host="127.0.0.1", zone=None):
        self.zone = zone or {}
        self.questions = []
        self.changed = threading.Condition()
        for _ in range(20):
            self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.udp.bind((host, 0))
            self.host, self.port = self.udp.getsockname()
            self.tcp = socket.socket()
            try:
                self.tcp.bind((host, self.port))
                break
            except OSError:
                self.udp.close()
                self.tcp.close()
        self.tcp.listen(16)
        self.stop, self.stopped = socket.socketpair()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop.close()
        self.thread.join()
        for sock in (self.udp, self.tcp, self.stopped):
            sock.close()

    def count(self, name):
        return sum(q.name == name for q in self.questions)

    def wait(self, name, count, seconds):
        with self.changed:
            assert self.changed.wait_for(lambda: self.count(name) >= count,
                                         seconds), f"{name}: not asked"

    def answers(self, data, tcp):
        question = Question(data, tcp)
        with self.changed:
            before = sum(q.name == question.name and q.type == question.type
                         for q in self.questions)
            self.questions.append(question)
            self.changed.notify_all()
        serve = self.zone.get(question.name)
        out = serve(question, before) if serve else reply(question, rcode=3)
        return out if isinstance(out, list) else [out] if out else []

    def serve_udp(self, data, peer):
        try:
            for out in self.answers(data, False):
                self.udp.sendto(out, peer)
        except OSError:
            pass        # the case has ended meanwhile

    def serve_tcp(self, conn):
        with conn, conn.makefile("rb") as file:
            conn.settimeout(5)
            head = file.read(2)
            while len(head) == 2:
                data = file.read(struct.unpack(">H", head)[0])
                for out in self.answers(data, True):
                    conn.sendall(struct.pack(">H", len(out)) + out)
                head = file.read(2)

    def run(self):
        while True:
            ready, _, _ = select.select([self.udp, self.tcp, self.stopped],
                                        [], [])
            if self.stopped in ready:
                return
            if self.tcp in ready:
                threading.Thread(target=self.serve_tcp, daemon=True,
                                 args=[self.tcp.accept()[0]]).start()
            if self.udp in ready:
                threading.Thread(target=self.serve_udp, daemon=True,
                                 args=self.udp.recvfrom(4096)).start()
