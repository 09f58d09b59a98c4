#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Regress of egressctl verify: chains that are whole, and every way to tamper.

The lines are written here as the recorder writes them; the program never
talks to a daemon.
"""

import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from case import Cases  # noqa: E402
from daemon import EGRESSCTL  # noqa: E402

LINE_MAX = 256 * 1024       # bytes of a line, newline included
INTACT, BROKEN, USAGE, UNREADABLE = 0, 1, 2, 3

cases = Cases()


def sha(line):
    return hashlib.sha256(line).hexdigest()


def encode(record):
    return json.dumps(record, separators=(",", ":"),
                      ensure_ascii=False).encode()


def line(seq, prev, kind="name_asked", **fields):
    return encode({"seq": seq, "kind": kind,
                   "at": "2026-01-02T03:04:05.678Z", "session_id": "job-42",
                   **fields, "prev": prev})


def chain(count, seq=1, prev=None):
    """Lines that follow each other, and what differs from line to line."""
    lines = []
    for n in range(seq, seq + count):
        lines.append(line(n, prev, note=f"h{n}.test é\\u001b\""))
        prev = sha(lines[-1])
    return lines


def gap(seq, prev, lost, /, **fields):
    return line(seq, prev, "gap", **{
        "reason": "audit_full", "lost": lost,
        "first_seq": seq - lost if lost else None,
        "last_seq": seq - 1 if lost else None,
        "lost_hash": "0" * 64 if lost else None, "lost_bytes": 0, **fields})


def text(lines):
    return b"".join(one + b"\n" for one in lines)


def verify(*files, words=(), stdin=None):
    """Runs it on files of these contents: status, output, errors."""
    with tempfile.TemporaryDirectory(prefix="verify.") as tmp:
        names = [f"f{n}" for n in range(len(files))]
        for name, content in zip(names, files):
            pathlib.Path(tmp, name).write_bytes(
                content if isinstance(content, bytes) else text(content))
        env = {k: v for k, v in os.environ.items() if "SAN" in k}
        done = subprocess.run(
            [EGRESSCTL, *words, "verify", *names,
             *(["-"] if stdin is not None else [])],
            cwd=tmp, input=stdin or b"", capture_output=True, timeout=60,
            env={**env, "LC_ALL": "C.UTF-8"})
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def want(got, status, out, err=""):
    assert got == (status, out, err), got


def breaks(files, place, what):
    """The first break is there, and nothing else is said but the sum."""
    status, out, err = verify(*files)
    said = out.splitlines()
    assert status == BROKEN and err == "", (status, out, err)
    assert said[-2].startswith(place + ": ") and what in said[-2], out
    assert said[-1].endswith((", chain broken", "nothing verified")), out


# What is whole.

@cases.case
def whole():
    want(verify(chain(1)), INTACT,
         "1 record, seq 1 to 1, 0 gaps, chain intact\n")
    want(verify(chain(1234)), INTACT,
         "1,234 records, seq 1 to 1234, 0 gaps, chain intact\n")


@cases.case
def standard_input():
    lines = chain(9)
    want(verify(stdin=text(lines)), INTACT,
         "9 records, seq 1 to 9, 0 gaps, chain intact\n")
    want(verify(lines[:4], stdin=text(lines[4:])), INTACT,
         "9 records, seq 1 to 9, 0 gaps, chain intact\n")


@cases.case
def trickling_input():
    """A line that comes byte by byte is one line."""
    lines = chain(3)
    process = subprocess.Popen([EGRESSCTL, "verify", "-"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    for byte in text(lines):
        process.stdin.write(bytes([byte]))
        process.stdin.flush()
    out, _ = process.communicate(timeout=60)
    assert out == b"3 records, seq 1 to 3, 0 gaps, chain intact\n", out


@cases.case
def rotated():
    lines = chain(30)
    want(verify(lines[:10], lines[10:20], b"", lines[20:]), INTACT,
         "30 records, seq 1 to 30, 0 gaps, chain intact\n")


@cases.case
def rotated_away():
    want(verify(chain(30)[10:]), INTACT,
         "f0:1: the chain begins in an earlier file, which ends with seq 10\n"
         "20 records, seq 11 to 30, 0 gaps, chain intact\n")


@cases.case
def nobody_listened():
    want(verify(chain(3, seq=5)), INTACT,
         "f0:1: the chain begins here: nothing was recorded before seq 5\n"
         "3 records, seq 5 to 7, 0 gaps, chain intact\n")


def with_gap(lost, /, **fields):
    before = chain(3)
    middle = gap(4 + lost, sha(before[-1]), lost, **fields)
    return [*before, middle, *chain(2, 5 + lost, sha(middle))]


@cases.case
def gaps():
    want(verify(with_gap(12)), INTACT,
         "f0:4: gap: 12 records lost, seq 4 to 15 (audit_full)\n"
         "6 records, seq 1 to 18, 1 gap (12 records lost), chain intact\n")
    want(verify(with_gap(0, lost_bytes=57, reason="torn_line")), INTACT,
         "f0:4: gap: no record lost, 57 bytes cut off (torn_line)\n"
         "6 records, seq 1 to 6, 1 gap, chain intact\n")
    want(verify(with_gap(0, reason="audit_switched")), INTACT,
         "f0:4: gap: no record lost (audit_switched)\n"
         "6 records, seq 1 to 6, 1 gap, chain intact\n")


@cases.case
def gap_at_the_beginning():
    """As after half a first line, or in a file that follows a full one."""
    want(verify([gap(1, None, 0, lost_bytes=5)]), INTACT,
         "f0:1: gap: no record lost, 5 bytes cut off (audit_full)\n"
         "1 record, seq 1 to 1, 1 gap, chain intact\n")
    want(verify(with_gap(2)[3:]), INTACT,
         "f0:1: the chain begins in an earlier file, which ends with seq 3\n"
         "f0:1: gap: 2 records lost, seq 4 to 5 (audit_full)\n"
         "3 records, seq 6 to 8, 1 gap (2 records lost), chain intact\n")
    want(verify(with_gap(2)[:3], with_gap(2)[3:]), INTACT,
         "f1:1: gap: 2 records lost, seq 4 to 5 (audit_full)\n"
         "6 records, seq 1 to 8, 1 gap (2 records lost), chain intact\n")


@cases.case
def longest_line():
    def padded(size):
        head = line(1, None, note="")
        return line(1, None, note="x" * (size - 1 - len(head)))
    first = padded(LINE_MAX)
    assert len(first) + 1 == LINE_MAX
    want(verify([first, *chain(2, 2, sha(first))]), INTACT,
         "3 records, seq 1 to 3, 0 gaps, chain intact\n")
    breaks([[padded(LINE_MAX + 1)]], "f0:1", "longer than any record")
    breaks([text(chain(2)) + b"x" * 5000000], "f0:3", "longer than any record")


@cases.case
def json_output():
    lines = with_gap(12)
    status, out, err = verify(lines, words=["-j"])
    found, total = [json.loads(one) for one in out.splitlines()]
    assert (status, err) == (INTACT, "")
    assert found == {
        "finding": "gap", "file": "f0", "line": 4, "message":
        "gap: 12 records lost, seq 4 to 15 (audit_full)", "seq": 16,
        "lost": 12, "reason": "audit_full"}, found
    assert total == {
        "records": 6, "first_seq": 1, "last_seq": 18, "gaps": 1, "lost": 12,
        "torn": 0, "broken": False, "last_hash": sha(lines[-1]),
        "intact": True}, total
    status, out, err = verify(lines[:2] + lines[3:], words=["-j"])
    found, total = [json.loads(one) for one in out.splitlines()]
    assert (status, err) == (BROKEN, "")
    assert (found["finding"], found["line"]) == ("break", 3), found
    assert total["intact"] is False and total["records"] == 2, total


# What was tampered with.

@cases.case
def changed_byte():
    """Whichever byte of a line it is, it is found there or one line on."""
    lines = chain(4)
    for at in range(len(lines[1])):
        changed = bytearray(lines[1])
        changed[at] ^= 1
        if changed[at] == ord("\n"):
            continue
        status, out, _ = verify([lines[0], bytes(changed), *lines[2:]])
        assert status == BROKEN, (at, out)
        assert out.startswith(("f0:2: ", "f0:3: ")), (at, out)


@cases.case
def changed_value():
    lines = chain(4)
    lines[1] = lines[1].replace(b"h2.test", b"h3.test")
    breaks([lines], "f0:3", "prev is not the hash of the line before")


@cases.case
def removed_line():
    lines = chain(5)
    breaks([lines[:2] + lines[3:]], "f0:3", "seq is 4 where 3 is due")
    breaks([lines[:2], lines[3:]], "f1:1", "this file goes on from seq 3, "
           "and the one before ends with seq 2: a file is missing")


@cases.case
def removed_and_renumbered():
    lines = chain(3)
    breaks([[lines[0], line(2, sha(lines[1]))]], "f0:2", "prev is not")


@cases.case
def swapped_lines():
    lines = chain(5)
    lines[1], lines[2] = lines[2], lines[1]
    breaks([lines], "f0:2", "seq is 3 where 2 is due")


@cases.case
def swapped_files():
    lines = chain(6)
    breaks([lines[3:], lines[:3]], "f1:1", "another chain begins here")
    breaks([lines[:2], lines[4:], lines[2:4]], "f1:1", "goes on from seq 4")


def opened(seq, prev, **fields):
    return line(seq, prev, "file_opened", **{
        "last_seq": seq - 1, "last_hash": prev, **fields})


def rotated(*counts):
    """Files that follow each other, as rotation leaves them."""
    files, last, seq = [chain(counts[0])], None, counts[0] + 1
    for count in counts[1:]:
        last = sha(files[-1][-1])
        first = opened(seq, last)
        files.append([first, *chain(count, seq + 1, sha(first))])
        seq += count + 1
    return files


@cases.case
def rotated_files():
    files = rotated(3, 2, 0, 4)
    want(verify(*files), INTACT,
         "12 records, seq 1 to 12, 0 gaps, chain intact\n")
    want(verify(stdin=b"".join(map(text, files))), INTACT,
         "12 records, seq 1 to 12, 0 gaps, chain intact\n")
    want(verify(*files[1:]), INTACT,
         "f0:1: the chain begins in an earlier file, which ends with seq 3\n"
         "9 records, seq 4 to 12, 0 gaps, chain intact\n")


@cases.case
def missing_file():
    """Wherever it was, and however they are given."""
    files = rotated(3, 2, 4, 1)
    breaks([files[0], *files[2:]], "f1:1", "this file goes on from seq 6, and "
           "the one before ends with seq 3: a file is missing or cut")
    breaks([files[0], files[1][:-1], files[2]], "f2:1", "ends with seq 5")
    breaks([files[1], files[0]], "f1:1", "another chain begins here")
    breaks([files[2], files[1]], "f1:1", "out of order")
    breaks([text(files[0]) + text(files[2])], "f0:4", "a file is missing")


@cases.case
def first_record_lies():
    first, second = rotated(3, 2)
    for fields in ({"last_seq": 2}, {"last_seq": None}, {"last_hash": None},
                   {"last_hash": "0" * 64}, {"last_hash": 3},
                   {"last_seq": "3"}, {"last_hash": sha(first[-1])[:-1]}):
        lie = opened(4, sha(first[-1]), **fields)
        breaks([first, [lie, *chain(2, 5, sha(lie))]], "f1:1",
               "names another line")


@cases.case
def inserted_line():
    lines = chain(4)
    forged = line(3, sha(lines[1]), note="forged")
    breaks([[*lines[:2], forged, *lines[2:]]], "f0:4", "seq is 3 where 4")
    breaks([[*lines[:2], forged, *lines[3:]]], "f0:4", "prev is not")
    breaks([[*lines[:2], b"", *lines[2:]]], "f0:3", "no JSON at byte 1")


@cases.case
def doubled_line():
    lines = chain(3)
    breaks([lines + lines[-1:]], "f0:4", "seq is 3 where 4 is due")


@cases.case
def truncated():
    """Half a line is told; what is whole before it still counts."""
    lines = chain(3)
    for left in (1, 7, len(lines[2]) - 1, len(lines[2])):
        cut = text(lines[:2]) + lines[2][:left]
        want(verify(cut), BROKEN,
             f"f0:3: torn: the last {left} byte{'s' * (left > 1)}, no "
             "newline\n2 records, seq 1 to 2, 0 gaps, chain torn\n")
    want(verify(lines[0][:9]), BROKEN,
         "f0:1: torn: the last 9 bytes, no newline\n"
         "0 records, nothing verified\n")


@cases.case
def truncated_before_another():
    """The next file goes on after the last whole line, or it does not."""
    lines = with_gap(2)
    want(verify(text(lines[:3]) + b'{"seq":4', lines[3:]), BROKEN,
         "f0:4: torn: the last 8 bytes, no newline\n"
         "f1:1: gap: 2 records lost, seq 4 to 5 (audit_full)\n"
         "6 records, seq 1 to 8, 1 gap (2 records lost), chain torn\n")
    lines = chain(4)
    breaks([text(lines[:2]) + lines[2], lines[3:]], "f1:1",
           "goes on from seq 3")


@cases.case
def wrong_seq():
    lines = chain(2)
    for seq in (1, 2, 4, 5):
        breaks([[*lines, line(seq, sha(lines[1]))]], "f0:3",
               f"seq is {seq} where 3 is due")
    for seq in (0, -3, 3.5, "3", None, 2 ** 53, 10 ** 30, [3]):
        breaks([[*lines, line(seq, sha(lines[1]))]], "f0:3",
               "seq is not a number from 1 to 9007199254740991")


@cases.case
def wrong_prev():
    lines = chain(2)
    for prev in ("", "0" * 63, "0" * 65, "g" * 64, sha(lines[1]).upper(), 3,
                 [], False):
        breaks([[*lines, line(3, prev)]], "f0:3", "prev is neither null nor")
    breaks([[*lines, line(3, None)]], "f0:3", "another chain begins here")
    breaks([[*lines, line(3, sha(lines[0]))]], "f0:3", "prev is not the hash")
    breaks([[line(1, "0" * 64)]], "f0:1", "nothing can be before seq 1")


@cases.case
def wrong_members():
    for record, what in (
            ({"kind": "x", "seq": 1, "prev": None}, "seq is not the first"),
            ({"seq": 1, "prev": None, "kind": "x"}, "prev is not the last"),
            ({"seq": 1, "kind": "x"}, "prev is not the last"),
            ({"seq": 1, "prev": None}, "there is no kind"),
            ({"seq": 1, "kind": 3, "prev": None}, "kind is not one string"),
            ({"prev": None}, "seq is not the first")):
        breaks([[encode(record)]], "f0:1", what)
    for raw, what in (
            (b'{"seq":1,"kind":"x","seq":1,"prev":null}', "seq is not"),
            (b'{"seq":1,"kind":"x","kind":"gap","prev":null}', "kind is not"),
            (b'{"seq":1,"kind":"x","prev":null,"prev":null}', "prev is not")):
        breaks([[raw]], "f0:1", what)


@cases.case
def wrong_gap():
    for fields in ({"lost": 3}, {"lost": -1}, {"lost": None}, {"lost": 2.5},
                   {"lost": "2"}, {"lost": 1e30}, {"lost": 6},
                   {"first_seq": 3}, {"last_seq": 6}, {"first_seq": None}):
        lines = with_gap(2, **fields)
        breaks([lines], "f0:4", "a gap whose numbers do not fit together")
    # It may not account for more, or less, than the file lacks.
    lines = chain(3)
    for seq, lost in ((7, 2), (6, 1), (5, 0), (3, 0), (6, 4)):
        breaks([[*lines, gap(seq, sha(lines[-1]), lost)]], "f0:4", "is due")


@cases.case
def not_json():
    head, tail = b'{"seq":1,"kind":"x","v":', b',"prev":null}'
    for value in (b"", b"01", b"+1", b"1.", b".5", b"1e", b"-", b"0x1",
                  b"NaN", b"nul", b"True", b"'a'", b'"a', b'"\\x"', b'"\\u12"',
                  b'"\\', b'"\x01"', b'"\t"', b'"\0"', b'"\xff"', b'"\xc0\xaf"',
                  b'"\xed\xa0\x80"', b'"\xf4\x90\x80\x80"', b'"\xe4\xb8"',
                  b"[1,]", b"[,1]", b"[1 2]", b"[1", b"{1:2}", b'{"a"}',
                  b'{"a":1,}', b"[}", b"1 ", b" 1", b"[" * 40 + b"]" * 40,
                  b"[" * 100000, b"\xef\xbb\xbf1"):
        breaks([[head + value + tail]], "f0:1", "no JSON at byte ")
    for raw in (b"{}", b"[]", b"null", b"hello", b" ", b"\0", b"{",
                b'{"seq":1,"kind":"x","prev":null} ',
                b'{"seq":1,"kind":"x","prev":null}{}',
                b'{"seq":1,"kind":"x","prev":null}\r',
                b'{"seq":1,"kind":"x","prev":null'):
        breaks([[raw]], "f0:1", "no JSON at byte ")
    for value in (b"0", b"-0.5e+10", b"1E3", b'"\\ud800\\/\xc3\xa9\x7f"', b"[]",
                  b"{}", b'[true,false,null,{"a":[]}]',
                  b"[" * 31 + b"]" * 31):
        assert verify([head + value + tail])[0] == INTACT, value


@cases.case
def empty():
    """A file that was emptied is not one that is in order."""
    want(verify(b""), BROKEN, "0 records, nothing verified\n")
    want(verify(b"", b""), BROKEN, "0 records, nothing verified\n")


@cases.case
def hostile_strings_are_tamed():
    status, out, _ = verify(with_gap(2, reason="\033[2J\u202e" + "x" * 900))
    assert status == INTACT and "\\033[2J\\342\\200\\256xx" in out, out
    assert all(c.isprintable() or c == "\n" for c in out), out


# What cannot be read, and the command line.

@cases.case
def unreadable():
    for path, why in (("/nonexistent/f", "No such file or directory"),
                      ("/", "Is a directory")):
        done = subprocess.run([EGRESSCTL, "verify", path], timeout=60,
                              capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (UNREADABLE, ""), done
        assert f"{path}: {why}" in done.stderr, done


@cases.case
def usage():
    done = subprocess.run([EGRESSCTL, "verify"], capture_output=True,
                          text=True)
    assert done.returncode == USAGE, done
    assert "usage: egressctl verify FILE ..." in done.stderr, done


@cases.case
def bounded_memory():
    """A file much larger than what it may use."""
    lines, prev = [], None
    for seq in range(1, 401):
        lines.append(encode({"seq": seq, "kind": "x", "v": "y" * 200000,
                             "prev": prev}))
        prev = sha(lines[-1])
    # Sanitizers want the address space to themselves.
    limit = [] if os.environ.get("SAN") else ["prlimit", f"--as={64 << 20}"]
    done = subprocess.run([*limit, EGRESSCTL, "verify", "-"], timeout=60,
                          input=text(lines), capture_output=True, check=True)
    assert done.stdout.startswith(b"400 records, seq 1 to 400,"), done


if __name__ == "__main__":
    cases.main()
