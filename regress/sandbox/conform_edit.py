#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Conformance of every backend: edit, list, stat, mkdir, remove."""

import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from backends import MIB, Conformance, same  # noqa: E402

cases = Conformance()
EDIT_MAX = 16 * MIB


def edited(box, before, old, new, after):
    """It is made, and the answer has what the file has then."""
    box.write("file", before)
    answer = box.call("edit", path="file", old=old, new=new)
    same(answer.result, {"occurrences": 1, "bytes": len(after)})
    same(answer.out, after)
    same(box.read("file"), after)
    same(box.names(), ["file"])


def not_unique(box, before, old, count):
    box.write("file", before)
    error = box.refused("not_unique", "edit", path="file", old=old, new="new")
    same(error.more, {"occurrences": count})
    assert "file" in error.message, error
    same(error.answer.out, b"", "nothing is after what was not done")
    same(box.read("file"), before)


# ---- edit -------------------------------------------------------------------

@cases.everywhere
def edit_none(box):
    not_unique(box, b"one two", "three", 0)
    not_unique(box, b"", "three", 0)
    not_unique(box, b"tw", "two", 0)


@cases.everywhere
def edit_one(box):
    edited(box, b"one two three", "two", "zwei", b"one zwei three")
    edited(box, b"one two three", " two", "", b"one three")
    edited(box, b"one", "one", "one one", b"one one")
    edited(box, b"a\r\nb\n", "a\r\n", "c\n", b"c\nb\n")


@cases.everywhere
def edit_many(box):
    not_unique(box, b"two two", "two", 2)
    not_unique(box, b"x" * 1000, "x", 1000)


@cases.everywhere
def edit_overlapping(box):
    """One after the other, as a replacement of all would have it."""
    edited(box, b"aaa", "aa", "b", b"ba")
    not_unique(box, b"aaaa", "aa", 2)


@cases.everywhere
def edit_at_the_edges(box):
    edited(box, b"first, last", "first", "f", b"f, last")
    edited(box, b"first, last", "last", "l", b"first, l")
    edited(box, b"first, last", "first, last", "whole", b"whole")
    edited(box, b"first, last", "first, last", "", b"")


@cases.everywhere
def edit_empty_old(box):
    box.write("file", b"text")
    error = box.refused("bad_request", "edit", path="file", old="", new="x")
    assert "old" in error.message, error
    same(box.read("file"), b"text")


@cases.everywhere
def edit_bytes(box):
    """Text around bytes that are none, and such bytes themselves."""
    edited(box, b"\xff\x00one\xfe", "one", "two", b"\xff\x00two\xfe")
    edited(box, b"a\xff\xfeb", os.fsdecode(b"\xff\xfe"),
           os.fsdecode(b"\xc3\x28"), b"a\xc3\x28b")
    edited(box, "a\uef80".encode(), "\uef80", "\u00e9", "a\u00e9".encode())
    not_unique(box, "a\uef80".encode(), os.fsdecode(b"\x81"), 0)


@cases.everywhere
def edit_is_literal(box):
    edited(box, b"a.*b axxb", "a.*b", "&\\1$x", b"&\\1$x axxb")


@cases.everywhere
def edit_keeps_the_mode(box):
    box.write("file", b"one", mode=0o750)
    box.call("edit", path="file", old="one", new="two")
    same(box.call("stat", path="file").result["mode"], 0o750)


@cases.everywhere
def edit_through_a_link(box):
    box.write("d/real", b"one")
    box.sh("ln -s d/real link")
    same(box.call("edit", path="link", old="one", new="two").out, b"two")
    same(box.read("d/real"), b"two")
    same(box.call("stat", path="link", follow=False).result["type"], "link")
    same(box.names("d"), ["real"])


@cases.everywhere
def edit_at_the_limit(box):
    before = b"a" * (EDIT_MAX - 3) + b"end"
    box.write("file", before)
    answer = box.call("edit", path="file", old="end", new="END")
    same(answer.result["bytes"], EDIT_MAX)
    assert answer.out == before[:-3] + b"END"


@cases.everywhere
def edit_too_large(box):
    before = b"one" + bytes(EDIT_MAX - 2)
    box.write("file", before)
    error = box.refused("too_large", "edit", path="file", old="one", new="x")
    assert "file" in error.message, error
    assert box.read("file") == before


@cases.everywhere
def edit_what_is_no_file(box):
    box.call("mkdir", path="d")
    for path, code in (("d", "wrong_type"), ("none", "not_found")):
        error = box.refused(code, "edit", path=path, old="a", new="b")
        assert path in error.message, error
    same(box.names(), ["d"])


# ---- list and stat ----------------------------------------------------------

@cases.everywhere
def list_a_directory(box):
    box.write("file", b"12345", mode=0o640)
    box.write(".hidden")
    box.call("mkdir", path="folder", mode=0o700)
    answer = box.call("list")
    same(answer.result, {"count": 3, "truncated": False})
    have = [(i["name"], i["type"], i["mode"]) for i in answer.items]
    same(have, [(".hidden", "file", 0o644), ("file", "file", 0o640),
                ("folder", "directory", 0o700)])
    same(answer.items[1]["size"], 5)
    for item in answer.items:
        assert abs(item["mtime"] - time.time()) < 3600, item


@cases.everywhere
def list_links_and_others(box):
    box.write("dir/file", b"12345")
    box.sh("ln -s dir link; ln -s nowhere dangling; mkfifo pipe")
    have = {i["name"]: i["type"] for i in box.call("list").items}
    same(have, {"dir": "directory", "link": "link", "dangling": "link",
                "pipe": "other"})
    same(box.names("link"), ["file"], "a link to a directory")


@cases.everywhere
def list_is_sorted_by_bytes(box):
    names = ["b", "B", "a", "10", "9", "\u00e9", "z", "_", "\udcff", "a.b"]
    for name in names:
        box.write(name)
    same(box.names(), sorted(names, key=os.fsencode))


@cases.everywhere
def list_with_a_limit(box):
    for name in "abcde":
        box.write(name)
    for limit, truncated in ((1, True), (4, True), (5, False), (6, False)):
        answer = box.call("list", limit=limit)
        same(answer.result, {"count": min(limit, 5), "truncated": truncated})
        same([i["name"] for i in answer.items], list("abcde")[:limit])


@cases.everywhere
def list_nothing(box):
    box.call("mkdir", path="empty")
    box.write("file")
    answer = box.call("list", path="empty")
    same((answer.result, answer.items), ({"count": 0, "truncated": False}, []))
    for path, code in (("file", "wrong_type"), ("none", "not_found")):
        error = box.refused(code, "list", path=path)
        assert path in error.message, error


@cases.everywhere
def list_thousands(box):
    """More than credit permits at once."""
    box.sh("mkdir d && cd d && seq 5000 | "
           "sed s/^/a-file-with-a-rather-long-name-/ | xargs touch")
    answer = box.call("list", path="d")
    same(answer.result, {"count": 5000, "truncated": False})
    same([i["name"] for i in answer.items],
         sorted(f"a-file-with-a-rather-long-name-{i}"
                for i in range(1, 5001)))


@cases.everywhere
def stat_of_each_kind(box):
    box.write("file", b"123", mode=0o600)
    box.call("mkdir", path="dir")
    have = box.call("stat", path="file").result
    same((have["type"], have["size"], have["mode"]), ("file", 3, 0o600))
    assert abs(have["mtime"] - time.time()) < 3600, have
    assert isinstance(have["uid"], int) and isinstance(have["gid"], int), have
    same(box.call("stat", path="dir").result["type"], "directory")
    same(box.call("stat", path=".").result["type"], "directory")
    error = box.refused("not_found", "stat", path="none")
    assert "none" in error.message, error


@cases.everywhere
def stat_of_links(box):
    box.write("file", b"123")
    box.sh("ln -s file link; ln -s nowhere dangling; ln -s loop loop")
    same(box.call("stat", path="link").result["type"], "file")
    have = box.call("stat", path="link", follow=False).result
    same((have["type"], have["target"]), ("link", "file"))
    have = box.call("stat", path="dangling", follow=False).result
    same((have["type"], have["target"]), ("link", "nowhere"))
    error = box.refused("not_found", "stat", path="dangling")
    assert "dangling" in error.message, error
    error = box.refused("failed", "stat", path="loop")
    assert "loop" in error.message, error


# ---- mkdir and remove -------------------------------------------------------

@cases.everywhere
def mkdir_with_parents(box):
    same(box.call("mkdir", path="a/b/c").result, {"created": True})
    same(box.call("mkdir", path="a/b/c").result, {"created": False})
    same(box.call("mkdir", path="a/b/d", mode=0o700).result,
         {"created": True})
    same(box.names("a/b"), ["c", "d"])
    same([box.call("stat", path=p).result["mode"]
          for p in ("a", "a/b/c", "a/b/d")], [0o755, 0o755, 0o700])


@cases.everywhere
def mkdir_where_something_is(box):
    box.write("file", b"x")
    error = box.refused("exists", "mkdir", path="file")
    assert "file" in error.message, error
    error = box.refused("wrong_type", "mkdir", path="file/below")
    assert "file" in error.message, error
    same(box.read("file"), b"x")


@cases.everywhere
def remove_one(box):
    box.write("file")
    box.call("mkdir", path="empty")
    same(box.call("remove", path="file").result, {"removed": 1})
    same(box.call("remove", path="empty").result, {"removed": 1})
    same(box.names(), [])
    error = box.refused("not_found", "remove", path="file")
    assert "file" in error.message, error


@cases.everywhere
def remove_what_is_not_empty(box):
    box.write("d/file", b"x")
    error = box.refused("failed", "remove", path="d")
    assert "d" in error.message, error
    same(box.read("d/file"), b"x")


@cases.everywhere
def remove_all_of_it(box):
    for path in ("d/a", "d/b/c", "d/b/.e", "d/b/f/g", "d.txt", "dd/x"):
        box.write(path)
    same(box.call("remove", path="d", recursive=True).result,
         {"removed": 7})
    same(box.names(), ["d.txt", "dd"])
    same(box.call("remove", path="d.txt", recursive=True).result,
         {"removed": 1})


@cases.everywhere
def remove_does_not_follow(box):
    box.write("kept/file", b"x")
    box.write("d/file")
    box.sh("ln -s ../kept d/link; ln -s kept link; ln -s nowhere dangling")
    same(box.call("remove", path="link", recursive=True).result,
         {"removed": 1})
    same(box.call("remove", path="dangling").result, {"removed": 1})
    same(box.call("remove", path="d", recursive=True).result, {"removed": 3})
    same(box.names(), ["kept"])
    same(box.read("kept/file"), b"x")


@cases.everywhere
def remove_deep(box):
    """Deeper than a path may be long."""
    box.call("mkdir", path="ten-bytes/" * 300)
    box.call("mkdir", path="moved/" + "ten-bytes/" * 299)
    box.sh(f"mv moved {'ten-bytes/' * 300}")
    same(box.call("remove", path="ten-bytes", recursive=True).result,
         {"removed": 600})
    same(box.names(), [])


cases.main()
