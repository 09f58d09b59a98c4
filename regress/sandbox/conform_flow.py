#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Conformance of every backend: frames, credit, many requests at once, and what
is refused."""

import hashlib
import json
import os
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from backends import MIB, Conformance, same  # noqa: E402
from daemon import until  # noqa: E402
from hands import (CALL, CANCEL, CREDIT, DATA, END, FRAME_MAX,  # noqa: E402
                   HEADER, NOTE, RESULT, WINDOW, HandsError, frame)

cases = Conformance()
KNOWN = {"read", "write", "edit", "exec", "glob", "grep", "list", "stat",
         "mkdir", "remove", "mount", "forward"}
# An operation with all that it must have.
LEAST = {
    "read": {"path": "a"}, "write": {"path": "a"},
    "edit": {"path": "a", "old": "x", "new": "y"}, "exec": {"argv": ["true"]},
    "glob": {"pattern": "*"}, "grep": {"pattern": "x"}, "list": {},
    "stat": {"path": "a"}, "mkdir": {"path": "a"}, "remove": {"path": "a"},
}
# A member that is wrong, for operations that must have others.
WRONG = {
    "read": [("path", 5), ("path", None), ("path", ["a"]), ("offset", "1"),
             ("offset", -1), ("offset", 1.5), ("length", True)],
    "write": [("path", {}), ("mode", "0644"), ("mode", -1)],
    "edit": [("old", 1), ("new", None)],
    "glob": [("pattern", 1), ("cwd", 1), ("limit", "5"), ("limit", -1)],
    "grep": [("pattern", None), ("case_sensitive", 1), ("limit", 0.5)],
    "list": [("path", 1), ("limit", "all")],
    "stat": [("follow", "yes")],
    "mkdir": [("mode", "x")],
    "remove": [("recursive", 1)],
    "exec": [("cwd", 1), ("stdin", "yes"), ("tty", True), ("merge", 1),
             ("env", ["A=B"]), ("tty", {"rows": "x", "columns": 80})],
}


# ---- what is said first -----------------------------------------------------

@cases.everywhere
def hello(box):
    have = box.hands.hello
    same(have["protocol"], 1)
    assert isinstance(have["version"], str) and have["version"], have
    assert have["cwd"].startswith("/"), have
    assert set(have["operations"]) <= KNOWN, have
    assert {"read", "write", "edit", "list", "stat"} <= box.operations, have
    same(len(have["operations"]), len(box.operations), "none twice")
    limits = have["limits"]
    same((limits["frame"], limits["credit"]), (FRAME_MAX, WINDOW))
    assert limits["requests"] >= 32, have


@cases.everywhere
def an_operation_that_is_none(box):
    """And one that this kind of sandbox does not have."""
    for op in ("fly", "", "READ", "mount"):
        if op in box.operations:
            continue
        try:
            answer = box.hands.call(op, **(
                {"source": "/", "path": "a"} if op == "mount" else {}))
            raise AssertionError(f"{op}: {answer}")
        except HandsError as error:
            allowed = ("not_supported",) if op == "mount" else (
                "not_supported", "bad_request")
            assert error.code in allowed, f"{op}: {error}"
    same(box.names(), [])


@cases.each_everywhere(LEAST)
def unknown_member(op, box):
    """Refused by name, and nothing is done: it may be a word misspelt."""
    error = box.refused("bad_request", op, **LEAST[op], colour="red")
    assert "colour" in error.message, error
    same(box.names(), [])


@cases.each_everywhere([op for op in LEAST if LEAST[op]])
def missing_member(op, box):
    for name in LEAST[op]:
        rest = {k: v for k, v in LEAST[op].items() if k != name}
        error = box.refused("bad_request", op, **rest)
        assert name in error.message, error
    same(box.names(), [])


@cases.each_everywhere(WRONG)
def wrong_member(op, box):
    for name, value in WRONG[op]:
        error = box.refused("bad_request", op, **{**LEAST[op], name: value})
        assert name in error.message, f"{value}: {error}"
    same(box.names(), [])


@cases.everywhere
def a_refused_write_takes_what_follows(box):
    """The client may have sent all of it before it hears of the refusal."""
    box.call("mkdir", path="d")
    for path in ("d", "d/x/" * 3000):
        request = box.start("write", path=path)
        request.send(os.urandom(3 * WINDOW))
        request.end()
        try:
            raise AssertionError(request.wait())
        except HandsError as error:
            assert error.code in ("wrong_type", "failed",
                                  "bad_request"), error
    same(box.names(), ["d"])


# ---- many at once -----------------------------------------------------------

@cases.everywhere
def a_thousand_reads(box):
    for number in range(10):
        box.write(f"f{number}", b"text %d" % number)
    for number in range(1000):
        same(box.read(f"f{number % 10}"), b"text %d" % (number % 10))


@cases.everywhere
def thirty_two_at_once(box):
    data = [os.urandom(400000) for _ in range(32)]
    writes = [box.start("write", path=f"f{i}") for i in range(32)]
    for part in range(0, 400000, 50000):
        for request, each in zip(writes, data):
            request.send(each[part:part + 50000])
    for request in writes:
        request.end()
    for request in writes:
        same(request.wait().result, {"bytes": 400000, "created": True})
    reads = [box.start("read", path=f"f{i}") for i in range(32)]
    for request, each in zip(reads, data):
        same(hashlib.sha256(request.wait().out).hexdigest(),
             hashlib.sha256(each).hexdigest())


@cases.everywhere
def thirty_two_commands_at_once(box):
    """Each waits for a word that only comes when all of them run."""
    commands = [box.start("exec", command=f"echo ready; read -r a; "
                          f"echo \"$a\"; exit {i}", stdin=True)
                for i in range(32)]
    for request in commands:
        assert request.until(lambda r: r.out == b"ready\n"), request.answer()
    for number, request in enumerate(commands):
        request.send(b"word %d\n" % number)
        request.end()
    for number, request in enumerate(commands):
        answer = request.wait()
        same((answer.out, answer.result),
             (b"ready\nword %d\n" % number, {"exit_code": number}))


@cases.everywhere
def of_every_kind_at_once(box):
    box.write("large", os.urandom(MIB))
    held = box.start("read", path="large", hold=True)
    write = box.start("write", path="new")
    write.send(b"half")
    names = ("stat", "list", "glob", "grep", "exec", "edit")
    others = {op: box.start(op, **LEAST[op]) for op in names
              if op in box.operations and op not in ("edit", "stat")}
    others["edit"] = box.start("edit", path="none", old="x", new="y")
    others["stat"] = box.start("stat", path="large")
    for op, request in others.items():
        try:
            request.wait()
        except HandsError as error:
            same((op, error.code), ("edit", "not_found"))
    write.send(b" and half")
    write.end()
    same(write.wait().result["bytes"], 13)
    held.grant(2 * MIB)
    same(held.wait().result, {"bytes": MIB})


@cases.everywhere
def too_many_at_once(box):
    limit = box.hands.hello["limits"]["requests"]
    open_ones = [box.start("write", path=f"f{i}") for i in range(limit)]
    error = box.refused("too_many", "stat", path=".")
    assert error.message, error
    open_ones.pop().end()
    same(box.hands.broken, None)
    for request in open_ones:
        request.end()
    for request in open_ones:
        same(request.wait().result["bytes"], 0)
    same(box.call("stat", path=".").result["type"], "directory")


@cases.everywhere
def two_connections(box):
    box.write("a", b"from one")
    with box.another() as other:
        same(other.read("a"), b"from one")
        other.write("b", b"from the other")
    with box.another() as other:
        same(other.read("b"), b"from the other")


# ---- credit -----------------------------------------------------------------

@cases.everywhere
def credit_is_obeyed(box):
    """Not a byte more than was permitted comes, however long one waits."""
    data = os.urandom(2 * MIB)
    box.write("a", data)
    request = box.start("read", path="a", hold=True)
    assert request.until(lambda r: len(r.out) == WINDOW)
    for more in (1, 1000, FRAME_MAX, WINDOW):
        # What was answered after it would have come behind it.
        before = len(request.out)
        box.call("stat", path="a")
        same(len(request.out), before)
        request.grant(more)
        assert request.until(lambda r: len(r.out) >= before + more)
        same(len(request.out), before + more)
    request.grant(4 * MIB)
    answer = request.wait()
    assert answer.out == data


@cases.everywhere
def credit_for_items(box):
    for number in range(80):
        box.call("mkdir", path=f"{number}/" + f"{'d' * 250}/" * 14 + "leaf")
    request = box.start("glob", pattern="**/leaf", hold=True)
    assert request.until(lambda r: len(r.items) > 60)
    box.call("stat", path=".")
    taken = sum(len(json.dumps(item, separators=(",", ":")))
                for item in request.items)
    assert taken <= WINDOW and not request.over(), taken
    request.grant(WINDOW)
    same(request.wait().result, {"count": 80, "truncated": False})


@cases.everywhere
def a_stuck_request_stops_no_other(box):
    box.write("large", os.urandom(2 * MIB))
    stuck = [box.start("read", path="large", hold=True) for _ in range(16)]
    for request in stuck:
        assert request.until(lambda r: len(r.out) == WINDOW)
    same(len(box.read("large")), 2 * MIB)
    for request in stuck:
        request.cancel()


@cases.everywhere
def credit_is_granted(box):
    """A write of many windows goes on by what the sandbox grants."""
    request = box.start("write", path="a")
    request.send(os.urandom(20 * WINDOW + 5), timeout=60)
    request.end()
    same(request.wait().result["bytes"], 20 * WINDOW + 5)


@cases.everywhere
def a_client_without_credit(box):
    """Who sends more than was granted is cut off, and what ran for it ends."""
    with box.another() as other:
        request = other.start("exec", command="echo $$ > pid; exec sleep 1000",
                              stdin=True)
        until("it runs", lambda: "pid" in box.names() and box.read("pid"))
        for _ in range(6 * MIB // FRAME_MAX):
            other.hands.send(request.number, DATA, bytes(FRAME_MAX))
        other.hands.wait_closed()
        box.gone(int(box.read("pid")))


# ---- frames that are none ---------------------------------------------------

def call(**members):
    return json.dumps({"op": "stat", "path": ".", **members}).encode()


BAD = {
    "unknown_kind": HEADER.pack(0, 7, 77, bytes(3)),
    "kind_zero": HEADER.pack(0, 7, 0, bytes(3)),
    "kind_of_the_box": frame(7, RESULT, {}),
    "reserved_bytes": HEADER.pack(0, 7, END, b"\0\0\1"),
    "too_long": HEADER.pack(FRAME_MAX + 1, 7, CALL, bytes(3)),
    "longest_of_all": HEADER.pack(0xffffffff, 7, CALL, bytes(3)),
    "call_of_the_connection": frame(0, CALL, call()),
    "not_json": frame(7, CALL, b"stat"),
    "half_json": frame(7, CALL, b'{"op":"stat"'),
    "no_object": frame(7, CALL, b'["stat"]'),
    "empty_call": frame(7, CALL),
    "half_a_character": frame(7, CALL, b'{"op":"stat","path":"\\ud800"}'),
    "not_utf8": frame(7, CALL, b'{"op":"stat","path":"\xff"}'),
    "id_in_use": frame(7, CALL, {"op": "write", "path": "b"}) * 2,
}


@cases.each_everywhere(BAD)
def bad_frame(what, box):
    """The connection that sent it is told why and ends; no other does."""
    with box.another() as other:
        same(other.call("stat", path=".").result["type"], "directory")
        other.hands.send_raw(BAD[what])
        other.hands.wait_closed()
        same((other.hands.refusal or {}).get("code"), "bad_request")
        assert other.hands.refusal["message"], other.hands.refusal
    same(box.names(), [])


@cases.everywhere
def frames_that_crossed(box):
    """For requests that are over or never were: ignored."""
    request = box.start("stat", path=".")
    request.wait()
    for number in (request.number, 0xffffffff):
        for kind, body in ((DATA, b"x" * 1000), (END, b""), (CANCEL, b""),
                           (CREDIT, struct.pack(">I", 5)),
                           (NOTE, {"signal": "KILL"})):
            box.hands.send(number, kind, body)
    same(box.call("stat", path=".").result["type"], "directory")


@cases.everywhere
def an_end_that_nobody_needs(box):
    """Of a request that takes no data."""
    data = os.urandom(2 * MIB)
    box.write("a", data)
    request = box.start("read", path="a", hold=True)
    assert request.until(lambda r: len(r.out) == WINDOW)
    request.end()
    request.grant(2 * MIB)
    assert request.wait().out == data


def error_of(box, members):
    request = box.expect()
    box.hands.send(request.number, CALL, members)
    try:
        raise AssertionError(f"{members}: {request.wait()}")
    except HandsError as error:
        return error


@cases.everywhere
def a_nul_in_any_string(box):
    """Refused by itself, with the member's name, and nothing is done."""
    for member, members in (
            ("path", {"op": "mkdir", "path": "a\0b"}),
            ("path", {"op": "mkdir", "path\0": "a"}),
            ("", {"op": "mkdir\0", "path": "a"}),
            ("stray", {"op": "mkdir", "path": "a", "stray": [{"x": "\0"}]})):
        error = error_of(box, members)
        assert error.code in ("bad_request", "not_supported"), error
        assert error.message.startswith(member), error
    if "exec" in box.operations:
        for member, value in (("argv", ["touch", "a\0"]),
                              ("env", {"A": "\0"}), ("env", {"A\0": ""})):
            error = error_of(box, {"op": "exec", "argv": ["touch", "a"],
                                   member: value})
            same(error.code, "bad_request")
            assert error.message.startswith(f"{member}: "), error
    same(box.names(), [])


@cases.everywhere
def members_of_odd_names(box):
    for name in ("self", "", "__class__", "data", "\u00e9", "a b"):
        error = error_of(box, {"op": "stat", "path": ".", name: "x"})
        same(error.code, "bad_request")
        assert name in error.message, error
    for op in (None, 5, ["stat"], {}):
        error = error_of(box, {"op": op, "path": "."})
        assert error.code in ("bad_request", "not_supported"), error


@cases.everywhere
def an_id_again(box):
    """A number is free once its request is over, and may be any."""
    for number in (1, 0xffffffff, 1, 0x80000000):
        box.hands.number = number - 1
        same(box.call("stat", path=".").result["type"], "directory")
    box.hands.number = 1000


@cases.everywhere
def frames_in_pieces(box):
    """However a stream cuts them."""
    box.write("a", b"text")
    request = box.expect()
    for byte in frame(request.number, CALL, {"op": "edit", "path": "a",
                                             "old": "text", "new": "new"}):
        box.hands.send_raw(bytes([byte]))
    same(request.wait().out, b"new")


@cases.everywhere
def frames_together(box):
    """All that a write needs in one piece, and another request behind it."""
    first, second = box.expect(), box.expect()
    box.hands.send_raw(
        frame(first.number, CALL, {"op": "write", "path": "a"}) +
        frame(first.number, DATA, b"one ") + frame(first.number, DATA) +
        frame(first.number, DATA, b"two") + frame(first.number, END) +
        frame(second.number, CALL, {"op": "mkdir", "path": "d"}))
    same(first.wait().result["bytes"], 7)
    second.wait()
    same((box.read("a"), box.names()), (b"one two", ["a", "d"]))


@cases.everywhere
def a_frame_that_does_not_come(box):
    """The client is gone in the middle of one."""
    for data in (frame(7, CALL, call())[:5], frame(7, CALL, call())[:-3]):
        with box.another() as other:
            other.hands.send_raw(data)
    same(box.names(), [])


cases.main()
