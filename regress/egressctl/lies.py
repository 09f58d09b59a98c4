#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Regress of the commands that reach into a sandbox, against a box that was
taken over: whatever it sends, they end with one clear error, in bounded
memory, and neither the terminal nor the caller's files are its to change.
"""

import contextlib
import json
import os
import pathlib
import resource
import socket
import struct
import subprocess
import sys
import tempfile
import threading

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from case import Cases  # noqa: E402
from daemon import EGRESSCTL, SANITIZED  # noqa: E402
from lying_box import (  # noqa: E402
    CALL, CANCEL, CREDIT, DATA, DATA_ERR, END, ERROR, FRAME_MAX, HELLO, ITEM,
    NOTE, RESULT, LyingBox, frame)
from standin_attach import SESSION  # noqa: E402

ENV = {**{k: v for k, v in os.environ.items() if "SAN" in k},
       "LC_ALL": "C.UTF-8", "TERM": "xterm", "TZ": "UTC"}
LIMIT = 60
MEMORY_MAX = 32 << 20
HOSTILE = "\033]0;x\007\033[2J‮​\n7 é"
BREACH = "the sandbox does not keep to the protocol: "

cases = Cases()


class Started(subprocess.Popen):
    """Ended with the case, if not before."""

    def __exit__(self, *unused):
        self.kill()
        super().__exit__(*unused)


class Bench:
    """A box that lies, and egressctl to be lied to."""

    def __init__(self, answer=None, **options):
        self.tmp = tempfile.TemporaryDirectory(prefix="lies.")
        self.dir = pathlib.Path(self.tmp.name)
        self.box = LyingBox(self.dir / "s", answer, **options)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.box.__exit__()
        self.tmp.cleanup()
        if kind is None:
            assert not self.box.failures, self.box.failures

    def argv(self, *words):
        return [str(EGRESSCTL), "-s", self.box.path, *words]

    def run(self, *words, **options):
        """Status, output, errors; in little memory."""
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        with Started(self.argv(*words), env=ENV, cwd=self.dir,
                     stderr=subprocess.PIPE, **options) as process:
            out, err = process.communicate(timeout=LIMIT)
        # The largest of all children so far: a bound on this one.
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        assert SANITIZED or peak * 1024 < MEMORY_MAX, f"{peak} KiB"
        return process.returncode, (out or b"").decode(), err.decode()


def harmless(text):
    return all(c in "\n\t" or c.isprintable() for c in text)


def breach(b, *words, status=3, says=BREACH, **options):
    """It ends with this error, in one line."""
    code, out, err = b.run(*words, **options)
    assert code == status, f"{code}: {out!r} {err!r}"
    assert says in err, err
    assert err.count("\n") == 1 and harmless(err), err
    return out


# ---- the greeting ----------------------------------------------------------

GREETINGS = {
    "none": (b"", "serves 32 clients already"),
    "of version 2": (frame(0, RESULT, {**HELLO, "protocol": 2}),
                     "speaks version 2 of the protocol, egressctl version 1"),
    "of no version": (frame(0, RESULT, {"cwd": "/", "operations": []}),
                      BREACH + "its greeting names no version"),
    "of version text": (frame(0, RESULT, {**HELLO, "protocol": "1"}),
                        BREACH + "its greeting names no version"),
    "without cwd": (frame(0, RESULT, {"protocol": 1}), BREACH),
    "not JSON": (frame(0, RESULT, b"hello"), BREACH),
    "empty": (frame(0, RESULT), BREACH),
    "as data": (frame(0, DATA, b"hello"), BREACH),
    "twice": (2 * frame(0, RESULT, HELLO), BREACH),
    "of HTTP": (b"HTTP/1.1 400 Bad Request\r\n\r\n", BREACH),
    "huge": (frame(0, RESULT, b"{", length=0xffffffff), BREACH),
    "cut": (frame(0, RESULT, HELLO)[:-1], "in the middle of a frame"),
    "for a request": (frame(1, RESULT, {}), BREACH + "it does not begin"),
    "refusal": (frame(0, ERROR, {"code": "bad_request", "message": HOSTILE}),
                "the sandbox hung up: \\033]0;x"),
    "refusal of wrong types": (
        frame(0, ERROR, {"code": 1, "message": []}), "no message (no code)"),
}


@cases.each(sorted(GREETINGS))
def greeting(which):
    hello, says = GREETINGS[which]

    def hang_up(self, connection, answer):
        connection.sendall(answer + hello)

    with Bench() as b:
        b.box.serve = lambda *args: hang_up(b.box, *args)
        breach(b, "stat", SESSION, "x", says=says)
        breach(b, "exec", SESSION, "--", "x", status=125, says=says)


@cases.case
def greeting_missing():
    with Bench(hello=b"") as b:
        breach(b, "stat", SESSION, "x", says="the sandbox does not greet")


# ---- frames ----------------------------------------------------------------

DEEP = b'{"a":' * 40 + b"1" + b"}" * 40


def error(**members):
    return frame(1, ERROR, members)


# What follows the request 1, of a command that may get DATA.
FRAMES = {
    "result for another": frame(2, RESULT, {}),
    "result for the highest": frame(0xffffffff, RESULT, {}),
    "data for another": frame(2, DATA, b"x"),
    "credit for another": frame(2, CREDIT, bytes(4)),
    "length above": frame(1, DATA, b"", length=FRAME_MAX + 1),
    "length huge": frame(1, DATA, b"", length=0xffffffff),
    "length huge, result": frame(1, RESULT, b"{}", length=0x80000000),
    "reserved": frame(1, DATA, b"x", reserved=b"\0\0\1"),
    "kind 0": frame(1, 0),
    "kind 11": frame(1, 11, b"{}"),
    "kind 255": frame(1, 255, b"{}"),
    "call": frame(1, CALL, {"op": "read"}),
    "cancel": frame(1, CANCEL),
    "note": frame(1, NOTE, {"signal": "KILL"}),
    "item": frame(1, ITEM, {"path": "x"}),
    "data_err": frame(1, DATA_ERR, b"x"),
    "end with a body": frame(1, END, b"x"),
    "end twice": 2 * frame(1, END),
    "data after end": frame(1, END) + frame(1, DATA, b"x"),
    "credit of 3 bytes": frame(1, CREDIT, bytes(3)),
    "credit of 5 bytes": frame(1, CREDIT, bytes(5)),
    "data of nobody": frame(0, DATA, b"x"),
    "result of nobody": frame(0, RESULT, HELLO),
    "result twice": 2 * frame(1, RESULT, {"bytes": 0}),
    "data after the result": frame(1, RESULT, {"bytes": 0}) +
    frame(1, DATA, b"x"),
    "result: empty": frame(1, RESULT),
    "result: no JSON": frame(1, RESULT, b"\x7fELF"),
    "result: array": frame(1, RESULT, b"[]"),
    "result: null": frame(1, RESULT, b"null"),
    "result: two": frame(1, RESULT, b"{}{}"),
    "result: open": frame(1, RESULT, b'{"a":1'),
    "result: deep": frame(1, RESULT, DEEP),
    "result: very deep": frame(1, RESULT, b'{"a":' + b"[" * 60000),
    "result: no UTF-8": frame(1, RESULT, b'{"a":"\xff"}'),
    "result: NUL": frame(1, RESULT, b'{"a":"\0"}'),
    "result: escaped NUL": frame(1, RESULT, b'{"a":"\\u0000"}'),
    "result: control": frame(1, RESULT, b'{"a":"\033"}'),
    "result: lone surrogate": frame(1, RESULT, b'{"a":"\\ud800"}'),
    "result: newline": frame(1, RESULT, b'{"a":\n1}'),
    "error: empty": error(),
    "error: no message": error(code="denied"),
    "error: no code": error(message="x"),
    "error: hostile code": error(code=HOSTILE, message="x"),
    "error: long code": error(code="a" * 100, message="x"),
    "error: number": error(code=1, message="x"),
}


@cases.each(sorted(FRAMES))
def frames(which):
    with Bench(lambda box, *_: box.send(FRAMES[which])) as b:
        breach(b, "read", SESSION, "x")


@cases.each(["data", "errors", "end"])
def frames_of_others(which):
    """stat gets a result and nothing else."""
    sent = {"data": frame(1, DATA, b"x"), "errors": frame(1, DATA_ERR, b"x"),
            "end": frame(1, END)}[which]
    with Bench(lambda box, *_: box.send(sent)) as b:
        breach(b, "stat", SESSION, "x")


@cases.case
def frames_in_crumbs():
    """A byte at a time is slow, and no error."""
    def crumbs(box, number, call):
        data = frame(number, DATA, b"text") + frame(number, RESULT,
                                                    {"bytes": 4})
        for i in range(len(data)):
            box.send(data[i:i + 1])

    with Bench(crumbs) as b:
        assert b.run("read", SESSION, "x") == (0, "text", "")


@cases.case
def hang_up():
    for sent, says in ((b"", "the sandbox hung up: it has ended"),
                       (frame(1, RESULT, {})[:-1], "in the middle of a frame"),
                       (frame(1, DATA, b"x")[:5], "in the middle of a frame")):
        def leave(box, *_):
            box.send(sent)
            return False

        with Bench(leave) as b:
            breach(b, "read", SESSION, "x", says=says)
            breach(b, "exec", SESSION, "--", "x", status=125, says=says)
            breach(b, "cp", f"{SESSION}:x", "y", says=says)
            breach(b, "-j", "ls", SESSION, says=says)
            assert not (b.dir / "y").exists()


@cases.each([{}, {"exit_code": 256}, {"exit_code": -1}, {"exit_code": 1.5},
             {"exit_code": "0"}, {"exit_code": None}, {"signal": "KILL"},
             {"signal_number": 0}, {"signal_number": 65}])
def exec_status(result):
    with Bench(lambda box, number, _: box.result(number, result)) as b:
        breach(b, "exec", SESSION, "--", "x", status=125)


# ---- strings ---------------------------------------------------------------

@cases.case
def hostile_message():
    with Bench(lambda box, *_: box.send(error(
            code="denied", message=HOSTILE))) as b:
        for words in (("read", SESSION, "x"), ("ls", SESSION),
                      ("rm", SESSION, "x"), ("cp", f"{SESSION}:x", "y")):
            code, out, err = b.run(*words)
            assert (code, out) == (1, "") and harmless(err), err
            assert err.endswith("\\n7 é (denied)\n"), err
            assert err.count("\n") == 1, err
        code, out, err = b.run("-j", "read", SESSION, "x")
        assert (code, err) == (1, "")
        assert json.loads(out) == {
            "error": {"code": "denied", "message": HOSTILE}}, out


@cases.case
def hostile_names():
    entry = {"name": HOSTILE, "path": HOSTILE, "type": HOSTILE,
             "line_number": HOSTILE, "line": "a\tb\\" + HOSTILE,
             "size": -1, "mode": 1e300, "mtime": 1e300}

    def answer(box, number, call):
        box.result(number, {"count": HOSTILE, "truncated": True,
                            "type": HOSTILE, "target": HOSTILE,
                            "mtime": HOSTILE},
                   frame(number, ITEM, entry) if call["op"] != "stat" else b"")

    with Bench(answer) as b:
        for words, lines in ((("glob", SESSION, "*"), 1),
                             (("grep", SESSION, "x"), 1),
                             (("ls", SESSION), 1), (("stat", SESSION, "x"), 3)):
            code, out, err = b.run(*words)
            assert code == 0 and harmless(out) and harmless(err), out + err
            assert out.count("\n") == lines, out
        code, out, _ = b.run("-j", "glob", SESSION, "*")
        assert json.loads(out.splitlines()[0]) == entry, out


@cases.case
def wrong_types():
    items = [{}, {"name": 5, "path": [], "line": {}}, {"name": None},
             {"path": "p", "line": "l"}, {"name": "n", "mtime": "x"},
             {"name": "n", "mtime": -1e10, "size": 1e400}]

    def answer(box, number, call):
        box.result(number, {"truncated": 1, "mode": "x"},
                   *(frame(number, ITEM, i) for i in items))

    with Bench(answer) as b:
        for words in (("glob", SESSION, "*"), ("grep", SESSION, "x"),
                      ("ls", SESSION), ("instructions", SESSION)):
            # In instructions a read gets items, which is a breach.
            assert b.run(*words)[0] in (0, 3), words


# ---- too much --------------------------------------------------------------

def endless(kind, body):
    """Frames until it hangs up; no credit is waited for."""
    def answer(box, number, call):
        part = frame(number, kind, body) * max(1, FRAME_MAX // len(body))
        with contextlib.suppress(OSError):
            for _ in range(1000):
                box.send(part)
            box.result(number, {"bytes": 0})
        return False
    return answer


@cases.case
def endless_output():
    """It is written as it comes, or is a breach; it does not pile up."""
    with Bench(endless(DATA, bytes(FRAME_MAX))) as b:
        for words in (("exec", SESSION, "--", "x"), ("read", SESSION, "x"),
                      ("edit", SESSION, "x", "a", "b")):
            b.run(*words, stdout=subprocess.DEVNULL)


@cases.case
def endless_items():
    with Bench(endless(ITEM, b'{"path":"x","name":"x","line":"x"}')) as b:
        for words in (("glob", SESSION, "x"), ("ls", SESSION),
                      ("grep", SESSION, "x")):
            b.run(*words, stdout=subprocess.DEVNULL)


@cases.case
def endless_frames_of_nothing():
    with Bench(endless(CREDIT, bytes(4))) as b:
        b.run("read", SESSION, "x", stdout=subprocess.DEVNULL)
    with Bench(lambda box, number, _: box.result(
            number, {"bytes": 0}, frame(number, DATA) * 10000)) as b:
        assert b.run("read", SESSION, "x") == (0, "", "")


@cases.case
def unread_request():
    """A box that gives credit without end, and does not read."""
    taken = threading.Event()

    def answer(box, number, call):
        box.send(*[frame(number, CREDIT, b"\xff" * 4)] * 100)
        taken.wait(LIMIT)
        return False

    r, w = os.pipe()
    os.set_blocking(w, False)
    sent = idle = 0
    with Bench(answer) as b, Started(b.argv("write", SESSION, "x"), stdin=r,
                                     env=ENV, stderr=subprocess.PIPE) as p:
        os.close(r)
        # It takes what fits into its queue and the socket, then waits.
        while idle < 20:
            try:
                sent += os.write(w, bytes(65536))
                idle = 0
            except BlockingIOError:
                idle += 1
                threading.Event().wait(0.05)
            assert sent < 16 << 20, sent
        taken.set()
        os.close(w)
        _, err = p.communicate(timeout=LIMIT)
    assert p.returncode == 3 and b"hung up" in err, err


@cases.case
def forward_beyond_credit():
    """The program here does not read, and box does not stop."""
    with Bench(endless(DATA, bytes(FRAME_MAX))) as b:
        with Started(b.argv("forward", SESSION, "0:80", "-j"), env=ENV,
                     stdout=subprocess.PIPE,
                     stderr=subprocess.PIPE) as process:
            port = json.loads(process.stdout.readline())["port"]
            with socket.create_connection(("127.0.0.1", port)):
                _, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 3, err
    assert (BREACH + "more bytes than it was permitted to send").encode() in \
        err and err.count(b"\n") == 1, err


@cases.case
def credit_is_granted():
    """What is consumed may be sent again, and only that."""
    seen = []

    def answer(box, number, call):
        box.send(*[frame(number, DATA, bytes(FRAME_MAX))] * 4)
        while sum(seen) < 4 * FRAME_MAX - FRAME_MAX:
            length, who, kind, _ = struct.unpack(">IIB3s", box.file.read(12))
            assert (length, who, kind) == (4, number, CREDIT)
            seen.extend(struct.unpack(">I", box.file.read(4)))
        box.result(number, {"bytes": 4 * FRAME_MAX})

    with Bench(answer) as b:
        code, out, err = b.run("read", SESSION, "x")
    assert (code, len(out), err) == (0, 4 * FRAME_MAX, ""), (code, err)
    assert sum(seen) <= 4 * FRAME_MAX, seen


# ---- cp --------------------------------------------------------------------

class Tree:
    """A directory over there, by what list says; all files hold text."""

    def __init__(self, entries):
        self.entries = entries

    def __call__(self, box, number, call):
        if call["op"] == "stat":
            box.result(number, {"type": "directory", "mode": 0o755, "size": 0})
        elif call["op"] == "list":
            box.result(number, {"count": 1}, *(
                frame(number, ITEM, e) for e in self.entries))
        elif call["op"] == "read":
            box.result(number, {"bytes": 4}, frame(number, DATA, b"evil"))


def entry(name, kind="file", **more):
    return {"name": name, "type": kind, "size": 4, "mode": 0o644, **more}


@cases.each(["..", ".", "", "/etc/passwd", "../x", "a/b", "a/", "x" * 256])
def cp_names(name):
    with Bench(Tree([entry("good"), entry(name)])) as b:
        (b.dir / "in").mkdir()
        breach(b, "cp", "-r", f"{SESSION}:t", "in/t",
               says=BREACH + "an entry that is no name")
        found = sorted(p.name for p in b.dir.rglob("*"))
    assert found == ["in", "s", "t"], found


@cases.case
def cp_through_links():
    """A link that stands in the way is not followed, nor is one made."""
    with Bench(Tree([entry("l", "link"), entry("out", "directory"),
                     entry("f")])) as b:
        (b.dir / "elsewhere").mkdir()
        (b.dir / "t").mkdir()
        (b.dir / "t" / "out").symlink_to(b.dir / "elsewhere")
        (b.dir / "t" / "f").symlink_to(b.dir / "elsewhere" / "f")
        code, _, err = b.run("cp", "-r", f"{SESSION}:t", ".")
        assert code == 3, err
        assert "t/l: neither file nor directory, left out" in err, err
        assert not list((b.dir / "elsewhere").iterdir())
        assert not (b.dir / "t" / "f").is_symlink()
        assert (b.dir / "t" / "f").read_text() == "evil"
        assert not os.path.lexists(b.dir / "t" / "l")


@cases.case
def cp_modes():
    with Bench(Tree([entry("f", mode=0o106777), entry("g", mode="x")])) as b:
        assert b.run("cp", "-r", f"{SESSION}:t", "t")[0] == 0
        assert (b.dir / "t" / "f").stat().st_mode & 0o7000 == 0


@cases.case
def cp_directories_without_end():
    with Bench(Tree([entry("d", "directory")])) as b:
        code, _, err = b.run("cp", "-r", f"{SESSION}:t", "t")
        assert code == 3 and "too many directories" in err, err
        assert harmless(err)


@cases.case
def cp_bytes_that_are_not_there():
    def answer(box, number, call):
        if call["op"] == "stat":
            box.result(number, {"type": "file", "size": 10, "mode": 0o600})
        else:
            box.result(number, {"bytes": 10}, frame(number, DATA, b"short"))

    with Bench(answer) as b:
        (b.dir / "y").write_text("as it was")
        breach(b, "cp", f"{SESSION}:x", "y")
        assert (b.dir / "y").read_text() == "as it was"
        assert sorted(p.name for p in b.dir.iterdir()) == ["s", "y"]


@cases.case
def cp_type_changes():
    """What was a file is a directory when it is read, and says so."""
    def answer(box, number, call):
        if call["op"] == "stat":
            box.result(number, {"type": "file", "size": 1, "mode": 0o600})
        else:
            box.send(error(code="wrong_type", message="a directory")
                     [:4] + struct.pack(">I", number) +
                     error(code="wrong_type", message="a directory")[8:])

    with Bench(answer) as b:
        code, _, err = b.run("cp", f"{SESSION}:x", "y")
        assert code == 1 and "a directory (wrong_type)" in err, err
        assert sorted(p.name for p in b.dir.iterdir()) == ["s"]


# ---- the rest --------------------------------------------------------------

@cases.case
def instructions_long():
    """A file without an end is cut."""
    def answer(box, number, call):
        if call["op"] == "glob":
            box.result(number, {"count": 1}, frame(
                number, ITEM, {"path": "AGENTS.md"}))
            return True
        endless(DATA, b"x" * FRAME_MAX)(box, number, call)
        return False

    with Bench(answer) as b:
        b.run("instructions", SESSION, stdout=subprocess.DEVNULL)


@cases.case
def attach_refused():
    with Bench() as b:
        code, out, err = b.run("read", "other", "x")
        assert (code, out) == (1, ""), err
        assert err == ("egressctl: session.attach: there is no such session "
                       "(no_such_session)\n"), err
        code, out, err = b.run("-j", "read", "other", "x")
        assert code == 1 and json.loads(out)["error"]["code"] == \
            "no_such_session" and err == "", out
        assert b.run("exec", "other", "--", "x")[0] == 125
    assert b.box.requests[0] == {"id": 1, "op": "session.attach",
                                 "session_id": "other"}


cases.main()
