#
# Copyright (c) 2026 The egressd authors
#
# Permission to use, copy, modify, and distribute this software for any
# purpose with or without fee is hereby granted, provided that the above
# copyright notice and this permission notice appear in all copies.
#
# THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES
# WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF
# MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR
# ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES
# WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
# ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF
# OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
#

"""Our processes' channels, spoken from Python: common/msgtab.h is the table."""

import pathlib
import re
import socket
import struct

TOP = pathlib.Path(__file__).resolve().parents[2]
FD_MARK = 0x80000000
NUMBERS = {"U8": "B", "U16": "H", "U32": "I", "U64": "Q"}


def read_table():
    """Name to (number, fields), number to name; enums by their constants."""
    text = (TOP / "common" / "msgtab.h").read_text().replace("\\\n", " ")
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    lists = {}
    for match in re.finditer(r"#define FIELDS_(\w+)\([^)]*\)(.*)", text):
        lists[match[1]] = re.findall(r"(U8|U16|U32|U64|STR|BYTES)\((\w+)",
                                     match[2])
    table = re.search(r"#define MSG_TABLE\(M\)(.*)", text)[1]
    rows = re.findall(r"M\((\w+),\s*(\w+),", table)
    types = {name: (number, lists[fields])
             for number, (name, fields) in enumerate(rows, 1)}
    constants = {}
    for body in re.findall(r"enum \w+ \{([^}]*)\}", text):
        for value, word in enumerate(re.findall(r"\w+", body)):
            constants[word] = value
    roles = (TOP / "common" / "role.h").read_text()
    for value, word in enumerate(re.findall(r"\b(ROLE_\w+)", re.search(
            r"enum role \{(.*?)\}", roles, re.S)[1])):
        constants[word] = value
    return types, {t[0]: n for n, t in types.items()}, constants


TYPES, NAMES, C = read_table()


def encode(name, values):
    number, fields = TYPES[name]
    data = b""
    for kind, field in fields:
        if kind in NUMBERS:
            data += struct.pack(">" + NUMBERS[kind], values.get(field, 0))
        else:
            text = values.get(field, "")
            text = text.encode() if isinstance(text, str) else text
            data += struct.pack(">H", len(text)) + text
            data += b"\0" if kind == "STR" else b""
    return number, data


def decode(number, data):
    name = NAMES[number]
    values = {}
    for kind, field in TYPES[name][1]:
        if kind in NUMBERS:
            code = ">" + NUMBERS[kind]
            values[field] = struct.unpack_from(code, data)[0]
            data = data[struct.calcsize(code):]
        else:
            size = struct.unpack_from(">H", data)[0]
            values[field] = data[2:2 + size].decode()
            data = data[2 + size + (kind == "STR"):]
    assert not data, f"{name}: {len(data)} bytes too many"
    return name, values


class Message:
    def __init__(self, name, values, fd):
        self.name = name
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
        number, data = encode(name, values)
        size = 12 + len(data) | (FD_MARK if fd is not None else 0)
        frame = struct.pack(">III", number, size, 0) + data
        if fd is None:
            self.sock.sendall(frame)
        else:
            socket.send_fds(self.sock, [frame], [fd])

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
