# SPDX-License-Identifier: ISC

"""Our processes' channels, spoken from Python."""

import socket
import struct

from msgtab import ENUMS, FD_MARK, NAMES, TABLE, frame

# Constants of all enums.
C = {word: value for enum in ENUMS.values() for word, value in enum.items()}


def decode(number, data):
    row = NAMES[number]
    return row.name, {
        field: value if isinstance(value, int) else value.decode()
        for field, value in row.decode(data).items()}


class Message:
    def __init__(self, name, values, fd):
        self.type = self.name = name    # unless a field is called name
        self.fd = fd
        self.__dict__.update(values)

    def __repr__(self):
        return repr(self.__dict__)


class Channel:
    """One end of a pair.  The other is for somebody else to take."""

    def __init__(self):
        self.sock, self.other = socket.socketpair()
        self.buffer = b""
        self.fds = []

    def send(self, name, /, fd=None, **values):
        row = TABLE[name]
        message = frame(row.number, row.encode(**values), fd is not None)
        if fd is None:
            self.sock.sendall(message)
        else:
            socket.send_fds(self.sock, [message], [fd])

    def read(self, timeout):
        """The next message; None at the end, TimeoutError if none comes."""
        self.sock.settimeout(timeout)
        while True:
            if len(self.buffer) >= 12:
                number, size, _ = struct.unpack_from(">III", self.buffer)
                marked, size = size & FD_MARK, size & ~FD_MARK
                if len(self.buffer) >= size:
                    data = self.buffer[12:size]
                    self.buffer = self.buffer[size:]
                    fd = self.fds.pop(0) if marked else None
                    return Message(*decode(number, data), fd)
            try:
                data, fds, _, _ = socket.recv_fds(self.sock, 65536, 8)
            except ConnectionResetError:
                data = b""
            if not data:
                return None
            self.buffer += data
            self.fds += fds

    def close(self):
        self.sock.close()
        self.other.close()
