# SPDX-License-Identifier: ISC

"""A sandbox of your own: serve(operations, load, save) speaks the frames of
egressd-box(5) on the standard streams.  Operations are functions by name, with
parameters as the operation has members, of the same types; the first one is
the data that came, for a write.  They return what is sent before the result,
bytes or a list of objects, and the result.  Before each, load is called, and
save after those that change something."""

import errno
import fnmatch
import functools
import inspect
import json
import os
import re
import struct
import sys

CALL, RESULT, ERROR, DATA, _, END, CREDIT, CANCEL, NOTE, ITEM = range(1, 11)
HEAD, FRAME, CREDITS, REQUESTS = struct.Struct(">IIBBH"), 65536, 262144, 64
CODES = {errno.ENOENT: "not_found", errno.EEXIST: "exists",
         errno.EISDIR: "wrong_type", errno.ENOTDIR: "wrong_type",
         errno.EACCES: "denied", errno.ENOSPC: "no_space"}
CHANGES = ("write", "edit", "mkdir", "remove")
# U+EF80 to U+EFFF stand for a byte each, and for nothing else.
BYTES = {0xef00 + b: 0xdc00 + b for b in range(128, 256)}
SPELT = {v: k for k, v in BYTES.items()} | {
    k: "".join(chr(0xef00 + b) for b in chr(k).encode()) for k in BYTES}


class Refused(Exception):
    """The ERROR of a request, or of the connection."""


def check(good, code, message, **more):
    if not good:
        raise Refused({"code": code, "message": message, **more})


def raw(text):
    """The bytes that a string in a frame stands for."""
    return text.translate(BYTES).encode(errors="surrogateescape")


def spelt(data):
    """The only string that is ever sent for these bytes."""
    return data.decode(errors="surrogateescape").translate(SPELT)


def patterns(pattern):
    """What a pattern of glob with {a,b} stands for, cut at the slashes."""
    if not (found := re.search(r"\{([^{}]*)\}", pattern)):
        return [pattern.split("/")]
    return [p for word in found[1].split(",") for p in patterns(
        pattern[:found.start()] + word + pattern[found.end():])]


def matches(names, pattern):
    """Whether a path meets one of patterns(), both cut at the slashes."""
    if not names or not pattern:
        return not names and not pattern
    name, part = names[0], pattern[0]
    shown = not name.startswith(".") or part.startswith(".")
    if part == "**":
        return matches(names, pattern[1:]) or \
            shown and matches(names[1:], pattern)
    return shown and fnmatch.fnmatchcase(name, part) and \
        matches(names[1:], pattern[1:])


def many(items, limit):
    """The answer of glob or list."""
    return items[:limit], {"count": min(len(items), limit),
                           "truncated": len(items) > limit}


def send(number, kind, body):
    if isinstance(body, dict):
        body = json.dumps(body).encode()
    sys.stdout.buffer.write(HEAD.pack(len(body), number, kind, 0, 0) + body)
    sys.stdout.buffer.flush()


def parse(body):
    """The members of a CALL."""
    try:
        members = json.loads(body)
        json.dumps(members, ensure_ascii=False).encode()
    except ValueError:      # no JSON, or half a character
        members = None
    check(isinstance(members, dict), "bad_request", "not a JSON object")
    return members


def bind(function, members):
    """A function of the data, if the members are as they should be."""
    takes = dict(list(inspect.signature(function).parameters.items())[1:])
    for name, value in members.items():
        check(name in takes, "bad_request", f"{name}: unknown member")
        kind = takes[name].annotation
        check(type(value) is kind and "\0" not in str(value) and
              (kind is not int or value >= 0), "bad_request",
              f"{name}: not of type {kind.__name__}, or not a good one")
    for name in takes:
        check(name in members or takes[name].default is not takes[name].empty,
              "bad_request", f"{name}: missing")
    return functools.partial(function, **{
        name: spelt(raw(value)) if isinstance(value, str) else value
        for name, value in members.items()})


class Request:
    def __init__(self, sandbox, number, members):
        self.sandbox, self.number = sandbox, number
        self.op, self.members = members.pop("op", None), members
        self.data, self.credit, self.left = bytearray(), CREDITS, []

    def bound(self):
        operations = self.sandbox[0]
        check(isinstance(self.op, str) and self.op in operations,
              "not_supported", f"{self.op}: not an operation of this sandbox")
        return bind(operations[self.op], self.members)

    def perform(self):
        """The frames that are to be sent."""
        _, load, save = self.sandbox
        load()
        first, result = self.bound()(self.data)
        if self.op in CHANGES:
            save()
        if isinstance(first, list):
            first = [(ITEM, json.dumps(item).encode()) for item in first]
        else:
            first = [(DATA, first[i:i + FRAME])
                     for i in range(0, len(first), FRAME)]
        return [*first, (RESULT, result)]

    def answer(self, whole):
        try:
            return self.perform() if whole else self.bound() and []
        except Refused as error:
            return [(ERROR, error.args[0])]
        except OSError as error:
            return [(ERROR, {"code": CODES.get(error.errno, "failed"),
                             "message": f"{self.op}: {error.strerror}"})]

    def take(self, kind, body):
        """A frame from the client."""
        if kind == CALL:
            self.left = self.answer(self.op != "write")
        elif kind == DATA:
            self.data += body
            send(self.number, CREDIT, struct.pack(">I", len(body)))
        elif kind == END and self.op == "write":
            self.left = self.answer(True)
        elif kind == CREDIT:
            self.credit += int.from_bytes(body, "big")
        elif kind == CANCEL:
            self.left = [(ERROR, {"code": "cancelled", "message": "it was"})]

    def send(self):
        """What credit permits; true if that was all."""
        while self.left:
            kind, body = self.left[0]
            if kind in (RESULT, ERROR):
                send(self.number, kind, body)
                return True
            part = body[:self.credit] if kind == DATA else body
            if not part or len(part) > self.credit:
                return False
            send(self.number, kind, part)
            self.credit -= len(part)
            self.left[:1] = [(kind, body[len(part):])] * (part != body)
        return False


def frames():
    while len(head := sys.stdin.buffer.read(HEAD.size)) == HEAD.size:
        length, number, kind, *zero = HEAD.unpack(head)
        check(length <= FRAME and not any(zero) and kind in (
            CALL, DATA, END, CREDIT, CANCEL, NOTE), "bad_request", "no frame")
        yield number, kind, sys.stdin.buffer.read(length)


def take(requests, sandbox, number, kind, body):
    if kind == CALL:
        members = parse(body)
        check(0 < number not in requests, "bad_request", f"{number}: in use")
        if len(requests) == REQUESTS:
            send(number, ERROR, {"code": "too_many", "message": "64 run"})
        else:
            requests[number] = Request(sandbox, number, members)
    if number in requests:
        requests[number].take(kind, body)
        if requests[number].send():
            del requests[number]


def serve(*sandbox):
    """Operations, load and save, until the client hangs up."""
    send(0, RESULT, {"protocol": 1, "version": "0.1", "cwd": "/",
                     "operations": list(sandbox[0]), "limits": {
                         "requests": REQUESTS, "frame": FRAME,
                         "credit": CREDITS}})
    requests = {}
    try:
        for number, kind, body in frames():
            take(requests, sandbox, number, kind, body)
    except Refused as error:
        send(0, ERROR, error.args[0])
    except BrokenPipeError:
        os._exit(0)     # the client is gone, with frames under way
