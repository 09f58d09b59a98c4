#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Conformance of every backend: glob and grep."""

import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from backends import Conformance, same  # noqa: E402

cases = Conformance()
TREE = ["a.c", "b.c", "b.h", "src/a.c", "src/x/a.c", "src/x/y/z.c", "src/x.d",
        ".dot/a.c", "src/.hid.c", "doc/readme", "Makefile"]
# A newline, colons as between fields, an option, a dot, no UTF-8, patterns.
ODD_NAMES = ["new\nline", "a:1:b", "-e", "--help", ".dot", "b\udcff\udcfe",
             "$(touch x)", "`touch x`", "sp ace", "*", "[z]", "\\", "\u00e9",
             "\uef80"]
HARMLESS = ["$(touch x)", "`touch x`", "'; touch x; '", "\"; touch x; \"",
            "| touch x", "-f /etc/passwd", "--pre=touch x", "\n touch x\n"]
LINE_MAX = 4096


def plant(box, paths, text=b"text\n"):
    for path in paths:
        box.write(path, text)


def found(box, pattern, **members):
    """Path and line number, in the order of the answer."""
    answer = box.call("grep", pattern=pattern, **members)
    same(answer.result["count"], len(answer.items))
    return [(clean(i["path"]), i["line_number"]) for i in answer.items]


def clean(path):
    return path[2:] if path.startswith("./") else path


def bytewise(paths):
    return sorted(paths, key=os.fsencode)


# ---- glob -------------------------------------------------------------------

@cases.everywhere
def glob_star(box):
    plant(box, TREE)
    answer = box.call("glob", pattern="*.c")
    same(answer.items, [{"path": "a.c"}, {"path": "b.c"}])
    same(answer.result, {"count": 2, "truncated": False})
    same(box.globbed("*/*.c"), ["src/a.c"])
    same(box.globbed("*"), ["Makefile", "a.c", "b.c", "b.h", "doc", "src"])
    same(box.globbed("Makefile"), ["Makefile"])


@cases.everywhere
def glob_two_stars(box):
    plant(box, TREE)
    same(sorted(box.globbed("**/a.c")), ["a.c", "src/a.c", "src/x/a.c"])
    same(sorted(box.globbed("src/**/*.c")),
         ["src/a.c", "src/x/a.c", "src/x/y/z.c"])
    same(sorted(box.globbed("**/x/**/*.c")), ["src/x/a.c", "src/x/y/z.c"])
    same(box.globbed("**/nothing"), [])


@cases.everywhere
def glob_characters(box):
    plant(box, ["a1", "a2", "b1", "c1", "a12", "a-", "a]"])
    same(box.globbed("?1"), ["a1", "b1", "c1"])
    same(box.globbed("[ab]1"), ["a1", "b1"])
    same(box.globbed("[!ab]1"), ["c1"])
    same(box.globbed("[a-c]1"), ["a1", "b1", "c1"])
    same(box.globbed("a[0-9]"), ["a1", "a2"])
    same(box.globbed("a[]]"), ["a]"])
    same(box.globbed("A1"), [])


@cases.everywhere
def glob_a_slash_only_by_itself(box):
    plant(box, ["d/e"])
    for pattern in ("d?e", "d*e", "d[/]e", "*e"):
        same(box.globbed(pattern), [], pattern)


@cases.everywhere
def glob_braces(box):
    plant(box, TREE)
    same(sorted(box.globbed("*.{c,h}")), ["a.c", "b.c", "b.h"])
    same(sorted(box.globbed("{src,doc}/*")),
         ["doc/readme", "src/a.c", "src/x", "src/x.d"])
    same(sorted(box.globbed("{src/{a,b}.c,Make*}")), ["Makefile", "src/a.c"])
    same(sorted(box.globbed("**/{a,z}.c")),
         ["a.c", "src/a.c", "src/x/a.c", "src/x/y/z.c"])
    same(box.globbed("a{,x}.c"), ["a.c"], "an empty alternative")


@cases.everywhere
def glob_once_each(box):
    """By however many ways a name is met."""
    plant(box, ["a/b/c"])
    same(box.globbed("{a,a}/**/**/c"), ["a/b/c"])


@cases.everywhere
def glob_dots(box):
    plant(box, TREE)
    same(box.globbed(".*/*.c"), [".dot/a.c"])
    same(box.globbed("src/.*.c"), ["src/.hid.c"])
    assert not [p for p in box.globbed("**/*") if "/." in "/" + p]


@cases.everywhere
def glob_odd_names(box):
    plant(box, [f"d/{name}" for name in ODD_NAMES])
    shown = [f"d/{name}" for name in ODD_NAMES if name[0] != "."]
    same(box.globbed("d/*"), bytewise(shown))
    same(box.globbed("d/-*"), ["d/--help", "d/-e"])
    same(box.globbed("d/[*]"), ["d/*"])
    same(box.globbed("d/new?line"), ["d/new\nline"])
    same(box.globbed("d/b??"), ["d/b\udcff\udcfe"])
    same(box.globbed("d/b\udcff*"), ["d/b\udcff\udcfe"])
    same(box.globbed("**/.dot"), ["d/.dot"])


@cases.everywhere
def glob_is_sorted(box):
    names = ["b", "a", "B", "10", "9", "a.b", "\u00e9", "\udcff", "_"]
    plant(box, [f"{d}/{name}" for d in ("y", "x") for name in names])
    have = box.globbed("*/*")
    same(have, [f"{d}/{n}" for d in ("x", "y") for n in bytewise(names)])


@cases.everywhere
def glob_with_a_limit(box):
    plant(box, "abcde")
    for limit, truncated in ((1, True), (4, True), (5, False), (6, False)):
        answer = box.call("glob", pattern="*", limit=limit)
        same(answer.result, {"count": min(limit, 5), "truncated": truncated})
        same([i["path"] for i in answer.items], list("abcde")[:limit])


@cases.everywhere
def glob_elsewhere(box):
    plant(box, TREE)
    same(box.globbed("*.c", cwd="src"), ["a.c"])
    same(box.globbed("**/*.c", cwd="src/x"), ["a.c", "y/z.c"])
    error = box.refused("not_found", "glob", pattern="*", cwd="none")
    assert "none" in error.message, error
    error = box.refused("wrong_type", "glob", pattern="*", cwd="a.c")
    assert "a.c" in error.message, error


@cases.everywhere
def glob_does_not_follow(box):
    """Two stars go through no link, so there is an end to them."""
    plant(box, ["d/file"])
    box.sh("ln -s .. d/up; ln -s d link")
    same(sorted(box.globbed("**/file")), ["d/file"])
    same(box.globbed("link/*"), ["link/file", "link/up"])
    assert "link" in box.globbed("*"), "a link is a name like others"


@cases.everywhere
def glob_is_no_command(box):
    plant(box, ["d/file"])
    for text in HARMLESS:
        for pattern in (text, f"*{text}", f"{{{text},d}}"):
            box.call("glob", pattern=pattern)
    same(box.names(), ["d"])


@cases.everywhere
def glob_of_much_work(box):
    """A pattern that a naive matcher would not end with."""
    plant(box, ["a" * 200])
    same(box.globbed("*a" * 40 + "*b"), [])
    same(box.globbed("*a" * 40 + "*"), ["a" * 200])


@cases.everywhere
def glob_thousands(box):
    """More than credit permits at once."""
    box.sh("mkdir d && cd d && seq 5000 | sed s/^/a-file-with-a-name-of-"
           "which-many-are-more-than-one-window-/ | xargs touch")
    answer = box.call("glob", pattern="d/*")
    same(answer.result, {"count": 5000, "truncated": False})
    same(len({i["path"] for i in answer.items}), 5000)


# ---- grep -------------------------------------------------------------------

@cases.everywhere
def grep_lines(box):
    box.write("f", b"one\ntwo\nthree\n\ntwo again")
    answer = box.call("grep", pattern="two")
    for item in answer.items:
        item["path"] = clean(item["path"])
    same(answer.items, [{"path": "f", "line_number": 2, "line": "two"},
                        {"path": "f", "line_number": 5, "line": "two again"}])
    same(answer.result, {"count": 2, "truncated": False, "binary_skipped": 0,
                         "unreadable": 0})
    same(found(box, "no such"), [])


@cases.everywhere
def grep_expressions(box):
    box.write("f", b"abc\nabbc\nac\na.c\nA\n")
    for pattern, lines in (
            ("ab+c", [1, 2]), ("a(b|\\.)c", [1, 4]), ("^a.?c$", [1, 3, 4]),
            ("[[:upper:]]", [5]), ("b{2}", [2]), ("^$", []), ("a\\.c", [4]),
            ("x*", [1, 2, 3, 4, 5])):
        same([n for _, n in found(box, pattern)], lines, pattern)


@cases.everywhere
def grep_case(box):
    box.write("f", b"Word\nword\nWORD\n")
    same(len(found(box, "word")), 1)
    same(len(found(box, "word", case_sensitive=True)), 1)
    same(len(found(box, "word", case_sensitive=False)), 3)


@cases.everywhere
def grep_where(box):
    plant(box, TREE)
    same(sorted(p for p, _ in found(box, "text")), sorted(TREE),
         "names with a dot are searched as well")
    same(found(box, "text", path="src/a.c"), [("src/a.c", 1)])
    same(sorted(p for p, _ in found(box, "text", path="src/x")),
         ["src/x/a.c", "src/x/y/z.c"])
    error = box.refused("not_found", "grep", pattern="text", path="none")
    assert "none" in error.message, error


@cases.everywhere
def grep_some_names(box):
    plant(box, TREE)
    same(sorted(p for p, _ in found(box, "text", glob="*.h")), ["b.h"])
    same({p.rsplit(".")[-1] for p, _ in found(box, "text", glob="*.{h,d}")},
         {"h", "d"})
    assert ("src/x/y/z.c", 1) in found(box, "text", glob="**/*.c")


@cases.everywhere
def grep_with_a_limit(box):
    box.write("f", b"line\n" * 5)
    for limit, truncated in ((1, True), (4, True), (5, False), (6, False)):
        answer = box.call("grep", pattern="line", limit=limit)
        same((answer.result["count"], answer.result["truncated"]),
             (min(limit, 5), truncated))
        same([i["line_number"] for i in answer.items],
             list(range(1, min(limit, 5) + 1)))


@cases.everywhere
def grep_bad_expression(box):
    box.write("f", b"text\n")
    for pattern in ("(", "[a", "a{2,1}", "\\"):
        error = box.refused("bad_request", "grep", pattern=pattern)
        assert "pattern" in error.message or pattern in error.message, error


@cases.everywhere
def grep_is_no_command(box):
    box.write("f", b"$(touch x)\n`touch x`\n")
    for text in HARMLESS:
        box.call("grep", pattern=re.escape(text))
        box.call("grep", pattern="touch", glob=text)
    same(found(box, "\\$\\(touch x\\)"), [("f", 1)])
    same(found(box, "`touch x`"), [("f", 2)])
    same(found(box, "touch", glob="$(touch x)"), [])
    box.refused("not_found", "grep", pattern="a", path="`touch x`")
    same(box.names(), ["f"])


@cases.everywhere
def grep_leading_dash(box):
    box.write("f", b"-e\n--help\n")
    same(found(box, "-e"), [("f", 1)])
    same(found(box, "--help"), [("f", 2)])


@cases.everywhere
def grep_binary(box):
    """Not searched, and counted; text with odd bytes is text."""
    box.write("binary", b"text\0text\n")
    box.write("late", b"text\n" + b"x" * 10000 + b"\0text\n")
    box.write("latin", b"caf\xe9 text\n")
    answer = box.call("grep", pattern="text")
    have = {clean(i["path"]) for i in answer.items}
    assert "binary" not in have and "latin" in have, have
    assert answer.result["binary_skipped"] == 1, answer.result
    assert ("late", 1) in found(box, "text"), "a NUL behind 8 KiB"


@cases.everywhere
def grep_bytes(box):
    box.write("f", b"caf\xe9 one\ncaf\xc3\xa9 two\n\xee\xbe\x80 three\n")
    answer = box.call("grep", pattern="one|two|three")
    same([i["line"] for i in answer.items],
         ["caf\udce9 one", "caf\u00e9 two", "\uef80 three"])


@cases.everywhere
def grep_long_lines(box):
    box.write("f", b"x" * (LINE_MAX - 1) + b"\n" + b"y" * LINE_MAX + b"\n" +
              b"z" * (LINE_MAX + 1) + b"\n" + b"w" * 100000 + b"end\nlast\n")
    answer = box.call("grep", pattern="x|y|z|end|last")
    same([(i["line_number"], len(i["line"]), i.get("cut", False))
          for i in answer.items],
         [(1, LINE_MAX - 1, False), (2, LINE_MAX, False), (3, LINE_MAX, True),
          (4, LINE_MAX, True), (5, 4, False)])


@cases.everywhere
def grep_ends_of_lines(box):
    box.write("f", b"\n\r\none\r\nlast")
    same([n for _, n in found(box, "one")], [3])
    same([n for _, n in found(box, "last$")], [4])
    box.write("f", b"")
    same(found(box, ".*"), [])


@cases.everywhere
def grep_odd_names(box):
    plant(box, [f"d/{name}" for name in ODD_NAMES])
    same(bytewise(p for p, _ in found(box, "text")),
         bytewise(f"d/{name}" for name in ODD_NAMES))
    for name in ODD_NAMES:
        same(found(box, "text", path=f"d/{name}"), [(f"d/{name}", 1)])


@cases.everywhere
def grep_does_not_follow(box):
    plant(box, ["d/file"])
    box.sh("ln -s .. d/up; ln -s d link; ln -s d/file alias; ln -s no dead")
    same(found(box, "text"), [("d/file", 1)])


@cases.everywhere
def grep_what_is_no_file(box):
    """A named pipe is not opened, which would wait for a writer."""
    plant(box, ["file"])
    box.sh("mkfifo pipe")
    same(found(box, "text"), [("file", 1)])


@cases.everywhere
def grep_what_may_not_be_read(box):
    plant(box, ["file", "secret"])
    box.sh("chmod 0 secret")
    answer = box.call("grep", pattern="text")
    unreadable = 0 if box.sh("id -u") == "0\n" else 1
    same((answer.result["count"], answer.result["unreadable"]),
         (2 - unreadable, unreadable))


@cases.everywhere
def grep_thousands(box):
    """More than credit permits at once."""
    box.write("f", b"".join(b"the line of number %d\n" % i
                            for i in range(8000)))
    answer = box.call("grep", pattern="line")
    same(answer.result["count"], 8000)
    same([i["line_number"] for i in answer.items], list(range(1, 8001)))
    same(answer.items[-1]["line"], "the line of number 7999")


cases.main()
