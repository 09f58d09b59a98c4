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

"""The message table for tests in Python, read from common/msgtab.h.

Run as a program it writes what fuzz_msg and fuzz_imsg start from into folders
of these names: python3 msgtab.py ../fuzz/corpus
"""

import pathlib
import re
import struct
import sys

COMMON = pathlib.Path(__file__).resolve().parents[2] / "common"
FD_MARK = 0x80000000
HEADER = struct.Struct(">III")
NUMBERS = {"U8": ">B", "U16": ">H", "U32": ">I", "U64": ">Q"}


def read_header(name):
    """A header without comments, each macro on one line."""
    text = (COMMON / name).read_text().replace("\\\n", " ")
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return re.sub(r"[ \t]+", " ", text)


def read_enum(text, first):
    body = text[text.index(first):].split("}", 1)[0]
    return {name: i for i, name in enumerate(re.findall(r"\w+", body))}


def read_fields(text, limits):
    lists = {}
    for name, body in re.findall(r"#define FIELDS_(\w+)\([^)]*\)(.*)", text):
        lists[name] = [
            (kind, field, limits.get(most) or int(most or 0))
            for kind, field, most in
            re.findall(r"(\w+)\((\w+)(?:, (\w+))?\)", body)]
    return lists


def read_rows(text, fields):
    body = re.search(r"#define MSG_TABLE\(M\)(.*)", text).group(1)
    found = re.findall(
        r"M\((\w+), (\w+), ([^,]+), ([^,]+), (\w+), ([^,)]+)\)", body)
    assert len(found) == body.count("M("), "a row of another form"
    return {name: Row(name, i + 1, fields[x], sender, receiver, fd, states)
            for i, (name, x, sender, receiver, fd, states)
            in enumerate(found)}


class Row:
    def __init__(self, name, number, fields, sender, receiver, fd, states):
        self.name, self.number, self.fields = name, number, fields
        self.senders = set(re.findall(r"\w+", sender))
        self.receivers = set(re.findall(r"\w+", receiver))
        self.states = set(re.findall(r"\w+", states))
        self.must = fd == "FD_MUST"

    def encode(self, **values):
        """The data; what is not given is 0 or empty."""
        out = b""
        for kind, field, _ in self.fields:
            if kind in NUMBERS:
                out += struct.pack(NUMBERS[kind], values.pop(field, 0))
            else:
                data = values.pop(field, b"")
                data = data.encode() if isinstance(data, str) else data
                out += struct.pack(">H", len(data)) + data
                out += b"\0" if kind == "STR" else b""
        assert not values, f"{self.name} has no {values}"
        return out

    def decode(self, data):
        values = {}
        for kind, field, _ in self.fields:
            if kind in NUMBERS:
                size = struct.calcsize(NUMBERS[kind])
                values[field], = struct.unpack(NUMBERS[kind], data[:size])
            else:
                size = 2 + struct.unpack(">H", data[:2])[0]
                values[field] = data[2:size]
                size += kind == "STR"
            data = data[size:]
        assert not data, f"{self.name} has {data!r} left"
        return values

    def most(self):
        """The longest data there is."""
        return self.encode(**{
            field: (1 << 8 * struct.calcsize(NUMBERS[kind])) - 1
            if kind in NUMBERS else b"x" * limit
            for kind, field, limit in self.fields})


def frame(number, data, marked=False, length=None):
    """A message; its length may be made to lie."""
    if length is None:
        length = HEADER.size + len(data)
    return HEADER.pack(number, length | (FD_MARK if marked else 0), 0) + data


ROLES = read_enum(read_header("role.h"), "ROLE_PARENT")
LIMITS = {name: int(value) for name, value in re.findall(
    r"#define (\w+_LEN)\s+(\d+)", read_header("role.h"))}
TABLE = read_rows(read_header("msgtab.h"),
                  read_fields(read_header("msgtab.h"), LIMITS))
FILES = read_enum(read_header("msgtab.h"), "FILE_KEY")
NAMES = {row.number: row for row in TABLE.values()}


def write_messages(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for row in TABLE.values():
        some = {field: 0x41 if kind in NUMBERS else "text"
                for kind, field, _ in row.fields}
        (folder / row.name.lower()).write_bytes(row.encode(**some))


def write_framing(folder):
    """Chunks: descriptors and length, then the bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    plain, marked = frame(1, b"data"), frame(2, b"data", True)
    for name, chunks in {
            "one": [(0, plain)],
            "two": [(0, plain + plain)],
            "marked": [(1, marked)],
            "mixed": [(0, plain), (1, marked + plain), (1, marked)],
            "split": [(1, marked[:5]), (0, marked[5:] + plain[:13]),
                      (0, plain[13:])],
            "overlap": [(1, marked[:14]), (0, marked[14:]), (1, marked)],
            "two_descriptors": [(2, marked)],
            "hidden": [(1, plain)]}.items():
        (folder / name).write_bytes(b"".join(
            struct.pack(">H", fds << 14 | len(data)) + data
            for fds, data in chunks))


if __name__ == "__main__":
    write_messages(pathlib.Path(sys.argv[1]) / "fuzz_msg")
    write_framing(pathlib.Path(sys.argv[1]) / "fuzz_imsg")
