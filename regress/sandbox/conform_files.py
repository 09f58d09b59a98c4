#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Conformance of every backend: read and write."""

import hashlib
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from backends import MIB, Conformance, same  # noqa: E402
from case import Skip  # noqa: E402
from hands import CALL, FRAME_MAX, WINDOW, HandsError  # noqa: E402

cases = Conformance()
ALL_BYTES = bytes(range(256)) * 3
# Names that tools trip over; what is not UTF-8 is spelt as os.fsdecode() does.
ODD_NAMES = ["a\nb", "a:b:1:", "-rf", "--", "*", "[a]", "{a,b}", " ", "a b ",
             "$(touch x)", "`touch x`", "\\", "'", '"', ";", ".hidden", "...",
             "\x01\x7f", "\u00e9", "\ud55c", "\U0001f600", "\udcff\udcfe",
             "a\udc80b", "\uef80", "\u202e", "n" * 255]


def digest(data):
    return hashlib.sha256(data).hexdigest()


def round_trip(box, data, path="file"):
    same(box.write(path, data)["bytes"], len(data))
    answer = box.call("read", path=path)
    same(answer.result, {"bytes": len(data)})
    same(digest(answer.out), digest(data))


@cases.everywhere
def binary_round_trip(box):
    round_trip(box, ALL_BYTES)
    round_trip(box, ALL_BYTES[::-1])


@cases.everywhere
def sizes_around_a_frame(box):
    for size in (1, FRAME_MAX - 1, FRAME_MAX, FRAME_MAX + 1):
        round_trip(box, os.urandom(size))


@cases.everywhere
def sizes_around_the_credit(box):
    for size in (WINDOW - 1, WINDOW, WINDOW + 1):
        round_trip(box, os.urandom(size))


@cases.everywhere
def sixty_four_mib(box):
    round_trip(box, os.urandom(64 * MIB))


@cases.everywhere
def empty_file(box):
    same(box.write("empty", b""), {"bytes": 0, "created": True})
    same(box.call("read", path="empty")[:2], ({"bytes": 0}, b""))
    same(box.call("stat", path="empty").result["size"], 0)


@cases.everywhere
def created_or_replaced(box):
    same(box.write("a", b"long before"), {"bytes": 11, "created": True})
    same(box.write("a", b"short"), {"bytes": 5, "created": False})
    same(box.read("a"), b"short")
    same(box.names(), ["a"])


@cases.everywhere
def parents_are_made(box):
    box.write("one/two/three/file", b"deep")
    same(box.read("one/two/three/file"), b"deep")
    same(box.names("one/two"), ["three"])
    same(box.call("stat", path="one").result["mode"], 0o755)


@cases.everywhere
def a_file_is_no_parent(box):
    box.write("file", b"x")
    error = box.refused("wrong_type", "write", b"y", path="file/below")
    assert "file" in error.message, error
    same(box.read("file"), b"x")


@cases.everywhere
def mode_by_default(box):
    box.write("a")
    same(box.call("stat", path="a").result["mode"], 0o644)


@cases.everywhere
def mode_given(box):
    for mode in (0o755, 0o600, 0o400):
        box.write(f"a{mode}", b"x", mode=mode)
        same(box.call("stat", path=f"a{mode}").result["mode"], mode)


@cases.everywhere
def mode_kept(box):
    box.write("a", b"#!/bin/sh\n", mode=0o750)
    box.write("a", b"#!/bin/sh\nexit 3\n")
    same(box.call("stat", path="a").result["mode"], 0o750)
    box.write("a", b"#!/bin/sh\nexit 4\n", mode=0o600)
    same(box.call("stat", path="a").result["mode"], 0o750, "not a new file")
    same(box.call("exec", argv=["./a"]).result, {"exit_code": 4})


@cases.everywhere
def write_through_a_link(box):
    box.write("there/real", b"before", mode=0o600)
    box.sh("ln -s there/real link; ln -s link second")
    same(box.write("second", b"after")["created"], False)
    same(box.read("there/real"), b"after")
    same(box.read("link"), b"after")
    same(box.call("stat", path="there/real").result["mode"], 0o600)
    for link in ("link", "second"):
        same(box.call("stat", path=link, follow=False).result["type"], "link")
    same(box.names("there"), ["real"])


@cases.everywhere
def write_where_a_link_leads(box):
    """To a file that is not there yet."""
    box.write("there/other")
    box.sh("ln -s there/new link")
    same(box.write("link", b"x")["created"], True)
    same(box.read("there/new"), b"x")
    same(box.call("stat", path="link", follow=False).result["type"], "link")


@cases.everywhere
def write_to_a_directory(box):
    box.write("d/file", b"kept")
    for path in ("d", "d/", "."):
        error = box.refused("wrong_type", "write", b"x", path=path)
        assert path.rstrip("/") in error.message, error
    same((box.names("."), box.names("d"), box.read("d/file")),
         (["d"], ["file"], b"kept"))


@cases.everywhere
def interrupted_write(box):
    """Cancelled before its end: nothing has changed."""
    box.write("old", b"as it was")
    for path in ("old", "new"):
        with box.start("write", path=path) as request:
            request.send(os.urandom(MIB))
            request.cancel()
            try:
                raise AssertionError(request.wait())
            except HandsError as error:
                same(error.code, "cancelled")
    same(box.names(), ["old"])
    same(box.read("old"), b"as it was")


@cases.everywhere
def abandoned_write(box):
    """The client is gone before the end: nothing has changed."""
    box.write("old", b"as it was")
    with box.another() as other:
        for path in ("old", "new"):
            other.start("write", path=path).send(os.urandom(MIB))
    with box.another() as after:
        same(after.names(), ["old"])
        same(after.read("old"), b"as it was")


@cases.everywhere
def writes_beside_each_other(box):
    """Two at a time to one file: it is one or the other."""
    texts = [b"a" * MIB, b"b" * MIB]
    requests = [box.start("write", path="a") for _ in texts]
    for request, text in zip(requests, texts):
        request.send(text[:MIB // 2])
    for request, text in zip(requests, texts):
        request.send(text[MIB // 2:])
        request.end()
    for request in requests:
        same(request.wait().result["bytes"], MIB)
    assert box.read("a") in texts
    same(box.names(), ["a"])


@cases.everywhere
def ranges(box):
    box.write("a", b"0123456789")
    for offset, length, want in (
            (0, 3, b"012"), (3, 4, b"3456"), (8, 9, b"89"), (10, 1, b""),
            (99, 1, b""), (2, 0, b""), (2 ** 40, 5, b"")):
        answer = box.call("read", path="a", offset=offset, length=length)
        same((answer.out, answer.result), (want, {"bytes": len(want)}))
    same(box.read("a", offset=7), b"789")
    same(box.read("a", length=2), b"01")


@cases.everywhere
def a_range_of_a_large_file(box):
    data = os.urandom(3 * MIB)
    box.write("a", data)
    same(digest(box.read("a", offset=MIB - 7, length=MIB + 9)),
         digest(data[MIB - 7:2 * MIB + 2]))


@cases.everywhere
def read_what_is_not_there(box):
    error = box.refused("not_found", "read", path="no/such file")
    assert "no/such file" in error.message, error


@cases.everywhere
def read_a_directory(box):
    box.call("mkdir", path="folder")
    error = box.refused("wrong_type", "read", path="folder")
    assert "folder" in error.message, error


@cases.everywhere
def read_what_never_ends(box):
    """Devices and named pipes are not read, nor waited for."""
    box.sh("mkfifo pipe")
    for path in ("pipe", "/dev/zero"):
        error = box.refused("wrong_type", "read", path=path)
        assert path in error.message, error
        box.refused("wrong_type", "edit", path=path, old="a", new="b")


@cases.everywhere
def read_files_of_the_kernel(box):
    """They say that they are empty."""
    text = box.sh("cat /proc/version")
    same(box.read("/proc/version").decode(), text)


@cases.everywhere
def a_file_that_may_not_be_read(box):
    box.write("secret", b"x", mode=0)
    if box.sh("id -u") == "0\n":
        raise Skip("root may read everything")
    error = box.refused("denied", "read", path="secret")
    assert "secret" in error.message, error


@cases.everywhere
def write_below_what_may_not_be_written(box):
    """In place, as there can be no new file beside it."""
    box.write("d/file", b"before")
    box.sh("chmod 555 d")
    try:
        box.write("d/file", b"after")
        same(box.read("d/file"), b"after")
        if box.sh("id -u") != "0\n":
            error = box.refused("denied", "write", b"x", path="d/new")
            assert "d/new" in error.message, error
    finally:
        box.sh("chmod 755 d")
    same([n for n in box.names("d") if n != "new"], ["file"])


@cases.everywhere
def odd_names(box):
    for name in ODD_NAMES:
        box.write(f"d/{name}", name.encode(errors="surrogateescape"))
    want = sorted(ODD_NAMES, key=os.fsencode)
    same(box.names("d"), want)
    for name in ODD_NAMES:
        same(box.read(f"d/{name}"), name.encode(errors="surrogateescape"))
        same(box.call("stat", path=f"d/{name}").result["type"], "file")
        box.call("edit", path=f"d/{name}", old=name, new="edited")
        same(box.read(f"d/{name}"), b"edited")
    for name in ODD_NAMES:
        same(box.call("remove", path=f"d/{name}").result, {"removed": 1})
    same(box.names("d"), [])
    same(box.names("."), ["d"], "no name was taken for a command")


@cases.everywhere
def names_by_bytes(box):
    """UTF-8 that is spelt byte by byte is the same name."""
    box.write("\u00e9", b"x")
    request = box.expect()
    box.hands.send(request.number, CALL,
                   b'{"op":"read","path":"\\uefc3\\uefa9"}')
    same(request.wait().out, b"x")


@cases.everywhere
def relative_paths(box):
    box.write("d/e/file", b"here")
    for path in ("./d/e/file", "d/./e//file", "d/e/../e/file",
                 f"{box.cwd.rstrip('/')}/d/e/file"):
        same(box.read(path), b"here", path)
    same(box.names(box.cwd), ["d"])
    error = box.refused("not_found", "read", path="~/file")
    assert "~/file" in error.message, error


@cases.everywhere
def a_path_that_is_empty(box):
    for op in ("read", "stat", "mkdir", "remove"):
        try:
            raise AssertionError(box.call(op, path=""))
        except HandsError as error:
            assert error.code in ("bad_request", "not_found"), error
    same(box.names(), [])


@cases.everywhere
def a_path_with_a_nul(box):
    """Refused by itself, with the member's name; never cut."""
    box.write("a", b"kept")
    with box.another() as other:
        for op in ("read", "stat", "mkdir", "remove"):
            try:
                raise AssertionError(other.call(op, path="a\0b"))
            except HandsError as error:
                same(error.code, "bad_request")
                assert error.message.startswith("path: "), error
            same(other.read("a"), b"kept")


cases.main()
