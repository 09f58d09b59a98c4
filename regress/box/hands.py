#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""The hands, bare: what breaks the protocol, credit, cancelling, and what is
left when a connection ends in the middle."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
sys.path.insert(0, str(TOP / "regress" / "box"))
from boxlib import PYTHON, WHO, Place, Sandbox, same  # noqa: E402
from case import Cases, Skip  # noqa: E402
from hands import (BOX, CALL, CANCEL, CREDIT, DATA, DATA_ERR,  # noqa: E402
                   END, ERROR, FRAME_MAX, HEADER, ITEM, NOTE, RESULT, WAIT_S,
                   WINDOW, Bare, Hands, HandsError, frame, within)

cases = Cases()
KILLED_S = 5            # a tree is, after its time; 1 if nobody else works
MEMORY_KIB = 8 * 1024   # what one connection may need
SANITIZED = bool(os.environ.get("SAN"))


@contextlib.contextmanager
def bare(*options, **popen):
    """Hands in a directory of their own."""
    with tempfile.TemporaryDirectory(prefix="egressd-hands.") as tmp:
        with Bare("-d", tmp, *options, **popen) as hands:
            hands.dir = pathlib.Path(tmp)
            yield hands


def refused(function, *args, **kwargs):
    """The code of the error that it raises."""
    try:
        answer = function(*args, **kwargs)
    except HandsError as error:
        return error.code
    raise AssertionError(f"no error, but {answer}")


def is_running(pid):
    """Neither gone nor a zombie that nobody has waited for."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def pids_of(path, count):
    """The numbers that commands have written, when all are there."""
    def there():
        return path.exists() and len(path.read_text().split()) >= count
    within(WAIT_S, there, path.name)
    return [int(word) for word in path.read_text().split()]


# A shell, one in its session, one that was forked twice into another session.
TREE = ("echo $$ >>pids; (sleep 1000 & echo $! >>pids); "
        "setsid sh -c 'echo $$ >>pids; sleep 1000 & echo $! >>pids; wait' & "
        "setsid -f sh -c 'trap \"\" HUP TERM INT; echo $$ >>pids; "
        "sleep 1000' </dev/null >/dev/null 2>&1; ")
TREE_SIZE = 5


# ---- what breaks the protocol ----------------------------------------------

SLEEP = frame(7, CALL, {"op": "exec", "argv": ["sleep", "1000"]})
FED = frame(7, CALL, {"op": "exec", "argv": ["sleep", "1000"], "stdin": True})
BROKEN = {
    "longer_than_a_frame": HEADER.pack(FRAME_MAX + 1, 1, CALL, bytes(3)),
    "as_long_as_can_be": HEADER.pack(0xffffffff, 1, CALL, bytes(3)),
    "byte_9": HEADER.pack(0, 1, CANCEL, b"\1\0\0"),
    "byte_11": HEADER.pack(0, 1, CANCEL, b"\0\0\1"),
    "kind_0": frame(1, 0),
    "kind_11": frame(1, 11),
    "kind_255": frame(1, 255),
    "result": frame(1, RESULT, b"{}"),
    "error": frame(1, ERROR, b"{}"),
    "data_err": frame(1, DATA_ERR, b"x"),
    "item": frame(1, ITEM, b"{}"),
    "call_of_id_0": frame(0, CALL, b'{"op":"list"}'),
    "cancel_of_id_0": frame(0, CANCEL),
    "end_with_body": frame(1, END, b"x"),
    "cancel_with_body": frame(1, CANCEL, b"x"),
    "credit_of_3_bytes": frame(1, CREDIT, b"123"),
    "credit_of_5_bytes": frame(1, CREDIT, b"12345"),
    "call_empty": frame(1, CALL),
    "call_garbage": frame(1, CALL, b"\xff\0{"),
    "call_array": frame(1, CALL, b'["op"]'),
    "call_string": frame(1, CALL, b'"list"'),
    "call_cut": frame(1, CALL, b'{"op":"list"'),
    "call_twice": frame(1, CALL, b'{"op":"list"}{"op":"list"}'),
    "name_twice": frame(1, CALL, b'{"op":"list","op":"list"}'),
    "not_utf8": frame(1, CALL, b'{"op":"read","path":"\xff"}'),
    "deep": frame(1, CALL, b'{"op":' + b"[" * 1000 + b"]" * 1000 + b"}"),
    "id_in_use": SLEEP + SLEEP,
    "note_garbage": SLEEP + frame(7, NOTE, b"["),
    "note_array": SLEEP + frame(7, NOTE, b"[]"),
    "data_after_end": SLEEP + frame(7, END) + frame(7, DATA, b"x"),
    "credit_overdrawn": FED + frame(7, DATA, bytes(FRAME_MAX)) * 100,
}


@cases.each(BROKEN)
def broken(what):
    """It is told once, for the connection, and hung up on."""
    with bare(raw=True) as hands:
        hands.send_raw(BROKEN[what])
        frames = [f for f in hands.frames() if f.kind != CREDIT]
        assert [(f.id, f.kind) for f in frames] == [(0, RESULT),
                                                    (0, ERROR)], frames
        error = json.loads(frames[1].body)
        assert error["code"] == "bad_request" and error["message"], error
        hands.refusal = error
        code = hands.proc.wait(WAIT_S)
        assert code == 1, code


@cases.case
def credit_of_a_write_that_waits():
    """What the hands have not taken may not be more than they allowed."""
    with bare() as hands:
        command = hands.start("exec", command="read x; sleep 1000",
                              stdin=True)
        command.send(bytes(WINDOW))     # the pipe takes 64 KiB of it
        hands.send(command.number, DATA, bytes(FRAME_MAX))
        hands.send(command.number, DATA, bytes(FRAME_MAX))
        hands.wait_closed()
        assert hands.refusal["message"] == "DATA without credit", hands.refusal


@cases.case
def a_byte_at_a_time():
    with bare(raw=True) as hands:
        text = frame(5, CALL, {"op": "write", "path": "a"}) + frame(
            5, DATA, b"one") + frame(5, DATA) + frame(5, END)
        for byte in text:
            hands.send_raw(bytes([byte]))
        seen = hands.frames()
        next(seen)
        answer = next(seen)
        assert (answer.id, answer.kind) == (5, RESULT), answer
        assert (hands.dir / "a").read_bytes() == b"one"


@cases.case
def all_at_once():
    """Answers come in the order of calls that do not wait."""
    count = 2000
    with bare(raw=True) as hands:
        (hands.dir / "f").write_bytes(b"text")
        calls = b"".join(frame(i, CALL, {"op": "read", "path": "f"})
                         for i in range(1, count + 1))
        threading.Thread(target=hands.send_raw, args=(calls,),
                         daemon=True).start()
        seen = hands.frames()
        next(seen)
        for i in range(1, count + 1):
            data, result = next(seen), next(seen)
            assert data == (i, DATA, b"text"), data
            assert result == (i, RESULT, b'{"bytes":4}'), result


@cases.case
def end_in_the_middle_of_a_frame():
    with bare(raw=True) as hands:
        hands.send_raw(frame(1, CALL, {"op": "list"})[:-3])
        hands.hang_up()
        assert [f.id for f in hands.frames()] == [0]
        assert hands.proc.wait(WAIT_S) == 0


@cases.case
def what_was_answered_is_sent():
    """Also if the input ends right behind the call."""
    with bare(raw=True) as hands:
        hands.send_raw(frame(1, CALL, {"op": "mkdir", "path": "a"}))
        hands.hang_up()
        assert [(f.id, f.kind) for f in hands.frames()] == [
            (0, RESULT), (1, RESULT)]


@cases.case
def ids_that_are_not_there():
    """Frames that may have crossed the answer are dropped."""
    with bare() as hands:
        for kind, body in ((DATA, bytes(FRAME_MAX)), (END, b""), (CANCEL, b""),
                           (CREDIT, struct.pack(">I", 0xffffffff)),
                           (NOTE, b"no JSON")):
            for _ in range(20):
                hands.send(99, kind, body)
        assert hands.call("list").result["count"] == 0


@cases.case
def an_id_can_be_used_again():
    with bare(raw=True) as hands:
        seen = hands.frames()
        next(seen)
        for _ in range(3):
            hands.send(3, CALL, {"op": "mkdir", "path": "a"})
            assert next(seen)[:2] == (3, RESULT)


@cases.case
def too_many_requests():
    """The 65th is refused, the 64 go on, and then there is room again."""
    with bare() as hands:
        writes = [hands.start("write", path=f"f{i}") for i in range(64)]
        assert refused(hands.call, "list") == "too_many"
        for request in writes:
            request.send(b"x")
            request.end()
        assert all(w.wait().result["created"] for w in writes)
        assert hands.call("list").result["count"] == 64


@cases.case
def members():
    """Unknown, missing, of a wrong type or out of range: named."""
    wrong = [({}, "path"), ({"path": 1}, "path"), ({"path": None}, "path"),
             ({"path": "a", "offset": -1}, "offset"),
             ({"path": "a", "offset": "1"}, "offset"),
             ({"path": "a", "offset": 1.5}, "offset"),
             ({"path": "a", "offset": 2 ** 53 + 1}, "offset"),
             ({"path": "a", "length": True}, "length"),
             ({"path": "a", "colour": "red"}, "colour")]
    with bare() as hands:
        for given, name in wrong:
            try:
                hands.call("read", **given)
                raise AssertionError(f"read {given}")
            except HandsError as error:
                assert error.code == "bad_request", error
                assert error.message.startswith(name + ":"), error
        assert refused(hands.call, "dance") == "not_supported"
        assert refused(hands.call, 7) == "bad_request"


@cases.case
def mount_is_not_supported():
    with bare() as hands:
        assert "mount" not in hands.hello["operations"]
        assert refused(hands.call, "mount", source="/", path="/x") == \
            "not_supported"


# ---- credit ----------------------------------------------------------------

def memory(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file
                    if line.startswith("VmRSS"))


@cases.case
def a_slow_reader_waits_alone():
    with bare() as hands:
        data = os.urandom(4 << 20)
        (hands.dir / "big").write_bytes(data)
        slow = hands.start("read", path="big", hold=True)
        slow.until(lambda r: len(r.out) >= WINDOW)
        assert hands.call("read", path="big").out == data
        assert len(slow.out) == WINDOW, len(slow.out)
        slow.grant(1)
        slow.until(lambda r: len(r.out) > WINDOW)
        assert hands.call("list").result["count"] == 1
        assert len(slow.out) == WINDOW + 1
        slow.grant(len(data))
        assert slow.wait().out == data


CROWD = 1300            # files; to name them takes more than there is credit


def crowd(path):
    for i in range(CROWD):
        with open(path / f"{i:04}{'x' * 240}", "x", encoding="ascii") as file:
            file.write("line\n")


@cases.case
def items_count():
    """Against credit; each waits until there is enough for all of it."""
    with bare() as hands:
        crowd(hands.dir)
        for op, more in (("list", {}), ("glob", {"pattern": "*"}),
                         ("grep", {"pattern": "line"})):
            slow = hands.start(op, hold=True, **more)
            slow.until(lambda r: len(r.items) > 100)
            hands.call("stat", path=".")
            size = sum(len(json.dumps(i, separators=(",", ":")))
                       for i in slow.items)
            assert size <= WINDOW + CROWD, f"{op}: {size}"
            for _ in range(100):
                if slow.over():
                    break
                slow.grant(10000)
                hands.call("stat", path=".")
            answer = slow.wait()
            assert answer.result["count"] == len(answer.items) == CROWD, op


@cases.case
def output_that_nobody_reads():
    """100 MiB of it are not in memory, and all arrive at last."""
    size = 100 << 20
    with bare() as hands:
        before = memory(hands.proc.pid)
        slow = hands.start("exec", hold=True,
                           command=f"head -c {size} /dev/zero")
        slow.until(lambda r: len(r.out) >= WINDOW)
        for _ in range(10):
            hands.call("stat", path=".")
        assert len(slow.out) == WINDOW
        if not SANITIZED:
            more = memory(hands.proc.pid) - before
            assert more < MEMORY_KIB, f"{more} KiB more"
        slow.grant(size)
        slow.hold = False
        answer = slow.wait(120)
        assert len(answer.out) == size and answer.result == {"exit_code": 0}


@cases.case
def a_client_that_does_not_read():
    """Its answers are bounded: the hands stop to hear it."""
    with bare(raw=True) as hands:
        before = memory(hands.proc.pid)
        call = frame(1, CALL, {"op": "stat", "path": "."})
        sent = threading.Thread(target=hands.send_raw, args=(call * 100000,),
                                daemon=True)
        sent.start()
        sent.join(2)
        assert sent.is_alive(), "all calls were taken"
        if not SANITIZED:
            more = memory(hands.proc.pid) - before
            assert more < MEMORY_KIB, f"{more} KiB more"
        count = 0
        for got in hands.frames():
            count += got.kind == RESULT
            if count == 100001:
                break
        sent.join(WAIT_S)


@cases.case
def a_client_that_reads_late():
    """All of its calls are answered, though it sends no more."""
    with bare(raw=True) as hands:
        call = frame(1, CALL, {"op": "stat", "path": "x" * 3000})
        sent = threading.Thread(target=hands.send_raw, args=(call * 1500,),
                                daemon=True)
        sent.start()
        sent.join(1)
        errors = 0
        for got in hands.frames():
            errors += got.kind == ERROR
            if errors == 1500:
                break
        assert errors == 1500, errors


@cases.case
def input_that_nobody_reads():
    """It waits, is dropped when the command ends, and holds up nobody."""
    with bare() as hands:
        request = hands.start("exec", command="read line; echo $line",
                              stdin=True)
        sent = threading.Thread(target=request.send, daemon=True,
                                args=(b"first\n" + bytes(3 << 20),))
        sent.start()
        assert request.wait().out == b"first\n"
        sent.join(WAIT_S)
        assert not sent.is_alive()
        assert hands.call("list").result["count"] == 0


@cases.case
def input_after_it_was_closed():
    with bare() as hands:
        request = hands.start("exec", stdin=True,
                              command="exec <&-; echo closed; sleep 0.3; "
                              "echo end")
        request.until(lambda r: r.out)
        request.send(bytes(2 << 20))
        assert request.wait().out == b"closed\nend\n"


# ---- cancel, time, and who is left -----------------------------------------

@cases.each(["read", "write", "edit", "exec", "glob", "grep", "list",
             "forward"])
def cancel(op):
    """It is answered, and a second one of it is dropped."""
    with bare("-F") as hands, socket.create_server(("127.0.0.1", 0)) as port:
        (hands.dir / "big").write_bytes(b"a\n" * (4 << 20) + b"b")
        if op in ("glob", "list"):
            crowd(hands.dir)
        call = {
            "read": {"path": "big"}, "write": {"path": "new"},
            "edit": {"path": "big", "old": "b", "new": "c"},
            "exec": {"command": "sleep 1000"}, "glob": {"pattern": "**"},
            "grep": {"pattern": "a", "limit": 1 << 30}, "list": {},
            "forward": {"port": port.getsockname()[1]}}[op]
        request = hands.start(op, hold=True, **call)
        if op == "write":
            request.send(bytes(WINDOW))
        request.cancel()
        request.cancel()
        try:
            answer = request.wait()
            # A cancel that comes too late: the file is changed.
            assert op == "edit" and answer.result["occurrences"] == 1, answer
        except HandsError as error:
            assert error.code == "cancelled", error
        assert not (hands.dir / "new").exists()
        assert not list(hands.dir.glob(".egressd*"))
        hands.call("stat", path="big")


@cases.case
def a_cancel_among_many():
    """32 operations that are never done, and each is ended when asked."""
    with bare() as hands:
        for i in range(300):
            (hands.dir / f"d{i}").mkdir()
        (hands.dir / "big").write_bytes(b"text\n" * (1 << 20))
        many = []
        for i in range(8):
            many += [hands.start("exec", command="while :; do echo x; done",
                                 hold=True),
                     hands.start("grep", pattern="e.*t", limit=1 << 40,
                                 hold=True),
                     hands.start("read", path="big", hold=True),
                     hands.start("glob", pattern="/usr/**/*", hold=True)]
        hands.call("stat", path="big", timeout=20)
        for request in many:
            request.cancel()
        assert {refused(r.wait) for r in many} == {"cancelled"}


@cases.each(["timeout", "cancel", "hang_up", "term", "kill"])
def a_tree_is_killed(how):
    """Forked twice or in a session of their own: all of them, in time."""
    with bare() as hands:
        more = {"timeout_ms": 700} if how == "timeout" else {}
        request = hands.start("exec", command=TREE + "sleep 1000", **more)
        pids = pids_of(hands.dir / "pids", TREE_SIZE)
        if how == "timeout":
            assert refused(request.wait) == "timeout"
        elif how == "cancel":
            assert all(map(is_running, pids))
            request.cancel()
            assert refused(request.wait) == "cancelled"
        elif how == "hang_up":
            hands.hang_up()
            assert hands.proc.wait(WAIT_S) == 0
        else:
            hands.proc.send_signal(signal.SIGTERM if how == "term" else
                                   signal.SIGKILL)
            hands.proc.wait(WAIT_S)
            hands.refusal = how
        within(KILLED_S, lambda: not any(map(is_running, pids)),
               "the end of the tree")


@cases.case
def a_timeout_tells_what_was_said():
    with bare() as hands:
        start = time.monotonic()
        try:
            hands.call("exec", command="echo out; echo err >&2; sleep 1000",
                       timeout_ms=300)
            raise AssertionError("no timeout")
        except HandsError as error:
            assert error.code == "timeout", error
            assert (error.answer.out, error.answer.err) == (
                b"out\n", b"err\n"), error.answer
        assert 0.3 <= time.monotonic() - start < 0.3 + KILLED_S


@cases.case
def left_behind():
    """It lives on after the answer, may go on writing, and ends with us."""
    with bare() as hands:
        answer = hands.call("exec", command=(
            "(while :; do echo noise; date +%s%N >beat; sleep 0.02; done) & "
            "echo $! >pids; echo said"))
        assert b"said\n" in answer.out and answer.result == {"exit_code": 0}
        pid, = pids_of(hands.dir / "pids", 1)
        beat = hands.dir / "beat"
        within(WAIT_S, beat.exists)
        old = beat.read_text()
        within(WAIT_S, lambda: beat.read_text() not in ("", old), "a beat")
        assert is_running(pid)
        hands.hang_up()
        hands.proc.wait(WAIT_S)
        within(KILLED_S, lambda: not is_running(pid), "its end")


@cases.case
def left_behind_without_end():
    """Who writes for ever does not hold up the answer."""
    with bare() as hands:
        answer = hands.call("exec", command="yes & echo $! >pids; exit 7")
        assert answer.result == {"exit_code": 7}
        for _ in range(20):
            hands.call("stat", path=".", timeout=20)


@cases.each(["write", "edit"])
def hung_up_in_the_middle(op):
    """Nothing has changed, and no temporary file is there."""
    with bare() as hands:
        (hands.dir / "file").write_bytes(b"old" + bytes(1 << 20))
        if op == "write":
            request = hands.start("write", path="file")
            request.send(bytes(1 << 20))
            other = hands.start("write", path="new/dir/file")
            other.send(b"x")
            hands.call("stat", path="file")
        else:
            hands.start("edit", path="file", old="nowhere", new="x")
        hands.hang_up()
        assert hands.proc.wait(WAIT_S) == 0
        assert os.listdir(hands.dir) == ["file"]
        assert (hands.dir / "file").read_bytes()[:3] == b"old"


@cases.case
def killed_in_the_middle():
    """Not even SIGKILL leaves a temporary file."""
    with bare() as hands:
        request = hands.start("write", path="new")
        request.send(bytes(1 << 20))
        hands.call("stat", path=".")
        hands.proc.kill()
        hands.proc.wait(WAIT_S)
        hands.refusal = "killed"
        assert os.listdir(hands.dir) == []


@cases.case
def nothing_of_ours_is_a_commands():
    """Descriptors 0 to 2, signals at their default, a session of its own."""
    with bare() as hands:
        hands.start("exec", command="sleep 1000", stdin=True)
        hands.start("write", path="new")
        answer = hands.call("exec", command=(
            "ls /proc/self/fd; grep -E '^Sig(Blk|Ign)' /proc/self/status; "
            "ps -o pid=,sid= -p $$"))
        words = answer.out.split()
        assert words[:4] == [b"0", b"1", b"2", b"3"], answer     # ls's own
        # Signals 32 and 33 are libc's: posix_spawn(3) ignores them.
        assert (words[4], words[6]) == (b"SigBlk:", b"SigIgn:"), answer
        assert not (int(words[5], 16) | int(words[7], 16)) & ~(3 << 31), answer
        assert words[8] == words[9], answer
        status = pathlib.Path(f"/proc/{hands.proc.pid}").stat()
        assert status.st_uid == 0, "it can be traced"


@cases.case
def expressions_that_explode():
    """One that takes all time or memory is its own request's trouble."""
    with bare() as hands:
        (hands.dir / "f").write_text("a" * 3000 + "\n")
        worst = hands.start("grep", pattern=r"(a*)*\1(a*)*\2(a*)*\3b")
        huge = hands.start(
            "grep", pattern="((((a{1,200}){1,200}){1,200}){1,200}){1,200}")
        for _ in range(20):
            hands.call("stat", path="f", timeout=20)
        for request in (worst, huge):
            request.cancel()
            try:
                request.wait()
            except HandsError as error:
                assert error.code in ("cancelled", "bad_request",
                                      "failed"), error


# ---- files -----------------------------------------------------------------

def paths(hands, pattern):
    return [i["path"] for i in hands.call("glob", pattern=pattern).items]


@cases.case
def alternatives():
    """Each path once, however many of them have it."""
    with bare() as hands:
        for name in ("g/a/x.c", "g/b/x.c", "g/z"):
            hands.call("write", b"", path=name)
        for pattern, want in (
                ("g/{a,b}/*.{c,h}", ["g/a/x.c", "g/b/x.c"]),
                ("{g,g/a,g}/{x.c,z,*}", ["g/a", "g/a/x.c", "g/b", "g/z"]),
                ("**/{x.c,a/x.c}", ["g/a/x.c", "g/b/x.c"]),
                ("g/{a/,b}", ["g/a/", "g/b"])):
            found = paths(hands, pattern)
            assert found == want, f"{pattern}: {found}"


@cases.case
def patterns_that_explode():
    with bare() as hands:
        hands.call("write", b"", path="a" * 200)
        assert paths(hands, "*a" * 60 + "*b") == []
        assert len(paths(hands, "*a" * 60 + "*")) == 1
        assert paths(hands, "**/" * 100 + "b") == []
        for pattern in ("{a,b}" * 30, "{" * 60000, "{a," * 15000 + "}" * 15000,
                        "a/" * 30000, "", "/", "{/a,b}"):
            assert refused(hands.call, "glob", pattern=pattern) == \
                "bad_request", pattern[:20]


@cases.case
def written_in_place():
    """In a directory that is not ours, and still only as a whole."""
    if os.getuid() != 0:
        raise Skip("not root")
    place = Place()
    try:
        file = place.work("root") / "file"
        file.write_bytes(b"old and long")
        os.chown(file, 65534, 65534)
        inode = file.stat().st_ino
        with Bare("-d", place.dir, box=place.box, user=65534, group=65534,
                  extra_groups=[]) as hands:
            name = "work-root/file"
            request = hands.start("write", path=name)
            request.send(b"half")
            request.cancel()
            same(refused(request.wait), "cancelled")
            same(file.read_bytes(), b"old and long")
            same(hands.call("write", b"short", path=name).result,
                 {"bytes": 5, "created": False})
            same(hands.call("edit", path=name, old="sh", new="SH").out,
                 b"SHort")
            data = os.urandom(1 << 20)
            hands.call("write", data, path=name)
            same(hands.call("read", path=name).out == data, True)
            same(refused(hands.call, "write", b"", path="work-root/new"),
                 "denied")
        same(file.stat().st_ino, inode)
        same(os.listdir(place.work("root")), ["file"])
    finally:
        place.remove()


@cases.case
def removed_however_deep():
    """Deeper than a path can be long; a link is not followed."""
    with bare() as hands:
        (hands.dir / "kept").mkdir()
        (hands.dir / "kept" / "file").touch()
        hands.call("exec", argv=[PYTHON, "-c", "import os\n"
                                 "os.mkdir('top'); os.chdir('top')\n"
                                 "os.symlink('../kept', 'link')\n"
                                 "for i in range(999):\n"
                                 "    os.mkdir('d' * 10); os.chdir('d' * 10)"])
        assert refused(hands.call, "remove", path="top") == "failed"
        answer = hands.call("remove", path="top", recursive=True)
        assert answer.result == {"removed": 1001}, answer
        assert (hands.dir / "kept" / "file").exists()


@cases.case
def a_terminal_loses_nothing():
    """Of what was written just before the end, to a slow reader."""
    with bare() as hands:
        request = hands.start("exec", command="seq 1 50000", tty={},
                              hold=True)
        request.until(lambda r: len(r.out) >= WINDOW)
        request.hold = False
        request.grant(WINDOW)
        answer = request.wait()
        assert answer.out.split() == [b"%d" % i for i in range(1, 50001)]


# ---- how they are started --------------------------------------------------

@cases.case
def usage():
    for wrong in (["-x"], ["extra"], ["-d"]):
        done = subprocess.run([BOX, "hands", *wrong], capture_output=True,
                              stdin=subprocess.DEVNULL)
        assert done.returncode == 125 and b"usage:" in done.stderr, done
    done = subprocess.run([BOX, "hands", "-d", "/nowhere"],
                          stdin=subprocess.DEVNULL, capture_output=True)
    assert done.returncode == 125 and b"/nowhere" in done.stderr, done


@cases.case
def over_a_socket():
    """One descriptor for both ways."""
    ours, theirs = socket.socketpair()
    with ours, tempfile.TemporaryDirectory() as tmp:
        proc = subprocess.Popen([BOX, "hands", "-d", tmp], stdin=theirs,
                                stdout=theirs)
        theirs.close()
        hands = Hands(ours.fileno(), ours.fileno())
        data = os.urandom(3 << 20)
        hands.call("write", data, path="f")
        assert hands.call("read", path="f").out == data
        ours.shutdown(socket.SHUT_WR)
        assert proc.wait(WAIT_S) == 0
        hands.check()


SERVER = """
import socket
with socket.create_server(("127.0.0.1", 0)) as server:
    print(server.getsockname()[1], flush=True)
    peer = server.accept()[0]
    peer.sendall(b"hello ")
    peer.sendall(peer.recv(100).upper())
"""


@cases.each(WHO)
def in_a_sandbox(who):
    """Files, commands, a terminal; and forward, past a broker of connections
    that may not look into the hands."""
    place = Place()
    try:
        box = Sandbox(place, who, [place.box, "hands", "-F"],
                      opts=["-x", place.dir / "bin"])
        hands = Hands(box.proc.stdout.fileno(), box.proc.stdin.fileno())
        same(hands.hello["cwd"], str(place.work(who)))
        hands.call("write", b"text", path="new/file")
        same((place.work(who) / "new" / "file").read_bytes(), b"text")
        same(hands.call("exec", command="cat new/file").out, b"text")
        same(hands.call("exec", command="tty && stty size",
                        tty={"rows": 9}).out.split()[1:], [b"9", b"80"])
        server = hands.start("exec", argv=[PYTHON, "-c", SERVER])
        server.until(lambda r: r.out.endswith(b"\n"))
        stream = hands.start("forward", port=int(server.out))
        stream.until(lambda r: r.out == b"hello ")
        stream.send(b"world")
        stream.end()
        same(stream.wait()[:2], ({"bytes_in": 5, "bytes_out": 11},
                                 b"hello WORLD"))
        same(server.wait().result, {"exit_code": 0})
        hands.check()
    finally:
        box.finish()
        place.remove()


@cases.case
def the_example():
    """Of the manual page, as it stands there."""
    page = (TOP / "box" / "egressd-box.5").read_text()
    text = page.split(".Sh EXAMPLES")[1].split(
        ".Bd -literal -offset indent\n")[1].split("\n.Ed\n")[0]
    text = text.replace("/usr/local/libexec/egressd-box", str(BOX))
    done = subprocess.run([sys.executable, "-c", text], capture_output=True,
                          text=True, timeout=WAIT_S)
    assert done.stdout.splitlines() == [os.uname().sysname,
                                        "{'exit_code': 0}"], done


if __name__ == "__main__":
    cases.main()
