# SPDX-License-Identifier: ISC

"""The message table for tests in Python, read from common/msg_*.h.

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
    """A header without comments."""
    text = (COMMON / name).read_text().replace("\\\n", " ")
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return re.sub(r"[ \t]+", " ", text)


def read_table():
    """All rows and lists, in the order of their numbers."""
    text = read_header("msg_rows.h")
    return re.sub(r'#include "(\w+\.h)"', lambda m: read_header(m[1]), text)


def read_enums(*headers):
    """Name of an enum to {constant: value}."""
    enums = {}
    for text in map(read_header, headers):
        lists = {name: " ".join(re.findall(r"W\((\w+),", body)) for name, body
                 in re.findall(r"#define (\w+)\(W\)(.*)", text)}
        for name, body in re.findall(r"enum (\w+) \{([^}]*)\}", text):
            body = re.sub(r"(\w+)\(WORD_CONSTANT\)",
                          lambda m: lists[m[1]], body)
            enums[name] = {word: i for i, word in
                           enumerate(re.findall(r"\w+", body))}
    return enums


def read_options(header, what):
    """Kinds of condition, and places of the options that somebody is told."""
    rows = re.findall(rf"^{what}_(\w+)\((.*?)\)$",
                      read_header(header).replace("\n ", " "), flags=re.M)
    conditions = [f"COND_{row.split(',')[0]}" for form, row in rows
                  if form in ("CONDITION", "READS")]
    return conditions, {row.split(",")[1].strip(): i
                        for i, (form, row) in enumerate(rows)
                        if form == "OPTION" and
                        (what == "RULE" or " R_" in row)}


def read_lists(text, limits):
    lists = {}
    for name, body in re.findall(
            r"^FIELDS\((\w+),((?:\s*\w+\([^)]*\))*)\)", text, flags=re.M):
        lists[name] = [
            (kind, field, limits.get(most) or int(most or 0))
            for kind, field, most in
            re.findall(r"(\w+)\((\w+)(?:, (\w+))?\)", body)]
    assert len(lists) == len(re.findall("^FIELDS", text, flags=re.M)), \
        "a list of another form"
    return lists


def read_rows(text, lists):
    text = re.sub(r"\s+", " ", re.sub(r"^#.*$", "", text, flags=re.M))
    found = re.findall(
        r"\bMSG\((\w+), (\w+), ([^,]+), ([^,]+), (\w+), ([^,)]+)\)", text)
    assert len(found) == text.count("MSG("), "a row of another form"
    return {name: Row(name, i + 1, lists[x], sender, receiver, fd, states)
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


ENUMS = read_enums("role.h", "words.h", "option.h")
POLICY_OPTIONS = read_options("policy_rows.h", "POLICY")[1]
CONDITIONS, RULE_OPTIONS = read_options("policy_rows.h", "RULE")
DECIDER_OPTIONS = read_options("decider_rows.h", "DECIDER")[1]
ENUMS["cond_kind"] = {word: i for i, word in enumerate(CONDITIONS)}
ROLES, FILES = ENUMS["role"], ENUMS["file_kind"]
LIMITS = {name: int(value) for name, value in re.findall(
    r"#define (\w+_LEN)\s+(\d+)", read_header("role.h"))}
TABLE = read_rows(read_table(), read_lists(read_table(), LIMITS))


def options(of, rows, values):
    """The fields of a CONF_OPTION for each of these values."""
    return [{"of": ENUMS["option_object"][f"OPTION_OF_{of}"],
             "row": rows[name],
             "text" if isinstance(value, str) else "number": value}
            for name, value in values.items()]


NAMES = {row.number: row for row in TABLE.values()}
# What the programs of this tree call themselves.
VERSION = "egressd " + re.search(
    r"^VERSION =\s*(\S+)", (COMMON.parent / "GNUmakefile").read_text(),
    re.M)[1]


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
