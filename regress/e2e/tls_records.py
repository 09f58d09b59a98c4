#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""TLS from a client that divides what it says into records as it likes, by
way of GnuTLS, which also sends empty ones."""

import ctypes
import pathlib
import socket
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from case import Cases, Skip
from daemon import WAIT_S
from gate import GOOD, pair

CLIENT, CERTIFICATE, DNS, AGAIN = 2, 1, 1, -28
SIZE = 1 << 16

cases = Cases()


def library():
    try:
        lib = ctypes.CDLL("libgnutls.so.30")
    except OSError as error:
        raise Skip(str(error)) from None
    sized = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
    lib.gnutls_record_recv.argtypes = sized
    lib.gnutls_record_send2.argtypes = [*sized, ctypes.c_size_t,
                                        ctypes.c_uint]
    for function in (lib.gnutls_record_recv, lib.gnutls_record_send2):
        function.restype = ctypes.c_ssize_t
    return lib


class Client:
    """A connection that holds back what it sends until it is to go."""

    def __init__(self, address):
        self.lib = library()
        self.sock = socket.create_connection(address)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO,
                             struct.pack("ll", WAIT_S, 0))
        self.session = ctypes.c_void_p()
        trust = ctypes.c_void_p()
        self.call("init", ctypes.byref(self.session), CLIENT)
        self.call("certificate_allocate_credentials", ctypes.byref(trust))
        self.call("credentials_set", self.session, CERTIFICATE, trust)
        self.call("priority_set_direct", self.session,
                  b"NORMAL:-VERS-ALL:+VERS-TLS1.3", None)
        self.call("server_name_set", self.session, DNS, GOOD.encode(),
                  ctypes.c_size_t(len(GOOD)))
        self.lib.gnutls_transport_set_int2(self.session, self.sock.fileno(),
                                           self.sock.fileno())
        self.call("handshake", self.session)

    def call(self, name, *args):
        code = getattr(self.lib, f"gnutls_{name}")(*args)
        assert code >= 0, f"gnutls_{name}: {code}"
        return code

    def hold(self, yes):
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, int(yes))

    def send(self, data):
        """A record; an empty one has to have padding."""
        self.call("record_send2", self.session, data, len(data), 1, 0)

    def receive(self):
        """What comes next; AGAIN may be a ticket, or that nothing came."""
        buffer = ctypes.create_string_buffer(SIZE)
        end = time.monotonic() + WAIT_S
        count = AGAIN
        while count == AGAIN and time.monotonic() < end:
            count = self.lib.gnutls_record_recv(self.session, buffer, SIZE)
        assert count > 0, f"gnutls_record_recv: {count}"
        return buffer.raw[:count]


@cases.case
def empty_records():
    """Between parts of a head that have come together: nobody has to send
    more for the rest to be read."""
    with pair() as both:
        client = Client(("127.0.0.1", both.gate.port(15001)))
        for path in (b"/1", b"/2"):
            head = both.get(path.decode())
            client.hold(True)
            for part in (b"", head[:7], b"", b"", head[7:], b""):
                client.send(part)
            client.hold(False)
            got = client.receive()
            assert got.startswith(b"HTTP/1.1 200 "), got
        client.sock.close()


cases.main()
