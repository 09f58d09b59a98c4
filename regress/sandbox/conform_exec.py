#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Conformance of every backend: exec, what a command gets and gives."""

import hashlib
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from backends import MIB, Conformance, same  # noqa: E402
from hands import WINDOW, HandsError  # noqa: E402

cases = Conformance()
# What any one process that serves may have, whatever passes through it.
MEMORY_MAX = 64 * MIB
# 32 and 33: posix_spawn(3), and so make(1), leaves them ignored.
SIGNALS_OF_LIBC = 3 << 31
ODD_ARGUMENTS = ["", " ", "a b", "$(touch x)", "`touch x`", "-n", "--", "*",
                 "~", "a\nb", "'\"\\", "$HOME", "\u00e9", "\udcff", "\uef80"]


def run(box, command, **members):
    return box.call("exec", command=command, **members)


# ---- how it ends ------------------------------------------------------------

@cases.everywhere
def exit_codes(box):
    requests = {}
    for first in range(0, 256, 16):
        for code in range(first, first + 16):
            requests[code] = box.start("exec", command=f"exit {code}")
        for code in range(first, first + 16):
            same(requests[code].wait().result, {"exit_code": code})


@cases.everywhere
def signals(box):
    for name, number in (("KILL", 9), ("TERM", 15), ("INT", 2), ("HUP", 1),
                         ("PIPE", 13), ("ABRT", 6), ("SEGV", 11)):
        same(run(box, f"ulimit -c 0; kill -{name} $$").result,
             {"signal": name, "signal_number": number})


@cases.everywhere
def a_command_that_is_none(box):
    same(run(box, "no-such-command-here").result, {"exit_code": 127})
    same(run(box, "if then").result, {"exit_code": 2})
    # A directory of the PATH that may not be read would be another error.
    error = box.refused("not_found", "exec", argv=["no-such-command-here"],
                        env={"PATH": "/usr/bin:/bin"})
    assert "no-such-command-here" in error.message, error
    box.write("plain", b"text")
    error = box.refused("denied", "exec", argv=["./plain"])
    assert "./plain" in error.message, error


@cases.everywhere
def either_command_or_argv(box):
    for members in ({}, {"command": "true", "argv": ["true"]}, {"argv": []},
                    {"argv": "true"}, {"argv": ["echo", 1]}, {"command": 1},
                    {"command": ["true"]}):
        error = box.refused("bad_request", "exec", **members)
        assert "argv" in error.message or "command" in error.message, error


# ---- what it writes ---------------------------------------------------------

@cases.everywhere
def output_apart(box):
    answer = run(box, "echo one; echo two >&2; echo three")
    same((answer.out, answer.err), (b"one\nthree\n", b"two\n"))


@cases.everywhere
def output_merged_in_order(box):
    answer = run(box, "i=0; while [ $i -lt 500 ]; do echo out $i; "
                 "echo err $i >&2; i=$((i + 1)); done", merge=True)
    same(answer.err, b"")
    same(answer.out, b"".join(b"out %d\nerr %d\n" % (i, i)
                              for i in range(500)))


@cases.everywhere
def output_of_all_bytes(box):
    box.write("bytes", bytes(range(256)))
    answer = run(box, "cat bytes; cat bytes >&2")
    same((answer.out, answer.err), (bytes(range(256)),) * 2)


@cases.everywhere
def output_before_the_end(box):
    """It comes as it is written, not when the command has ended."""
    with box.start("exec", command="echo first; cat", stdin=True) as request:
        assert request.until(lambda r: r.out == b"first\n"), request.answer()
        request.end()
        same(request.wait().result, {"exit_code": 0})


@cases.everywhere
def much_output_is_whole(box):
    """On both streams at once, and the last of it when it has ended."""
    data = os.urandom(4 * MIB)
    box.write("data", data)
    answer = run(box, "cat data & cat data >&2; wait; printf end")
    digest = hashlib.sha256(data).hexdigest()
    same(answer.out[-3:], b"end")
    same(hashlib.sha256(answer.out[:-3]).hexdigest(), digest)
    same(hashlib.sha256(answer.err).hexdigest(), digest)


@cases.everywhere
def much_output_to_a_slow_reader(box):
    """100 MiB are with nobody but the command that has to wait."""
    total, granted = 100 * MIB, WINDOW
    with box.start("exec", command=f"head -c {total} /dev/zero",
                   hold=True) as request:
        largest = 0
        while granted < total + MIB:
            assert request.until(lambda r: len(r.out) >= min(granted, total))
            assert len(request.out) <= granted, "more than was permitted"
            largest = max(largest, box.memory() or 0)
            request.grant(MIB)
            granted += MIB
        answer = request.wait()
    same((len(answer.out), answer.result), (total, {"exit_code": 0}))
    assert largest < MEMORY_MAX, f"{largest >> 20} MiB in memory"


# ---- what it gets -----------------------------------------------------------

@cases.everywhere
def arguments_as_they_are(box):
    box.write("show", b'#!/bin/sh\nfor a; do printf "%s\\0" "$a"; done\n',
              mode=0o755)
    answer = box.call("exec", argv=["./show", *ODD_ARGUMENTS])
    same(answer.out.split(b"\0")[:-1], [os.fsencode(a) for a in ODD_ARGUMENTS])
    same(box.names(), ["show"], "no argument was taken for a command")


@cases.everywhere
def a_long_command(box):
    text = "x" * 50000
    same(box.sh(f"cat << 'EOF'\n{text}\nEOF\n"), text + "\n")
    same(len(box.call("exec", argv=["printf", "%s", text]).out), 50000)


@cases.everywhere
def a_command_in_other_bytes(box):
    same(run(box, "printf '%s' '\udcff\uef80\u00e9'").out,
         "\udcff\uef80\u00e9".encode(errors="surrogateescape"))


@cases.everywhere
def nothing_carried_over(box):
    box.call("mkdir", path="d")
    box.sh("cd d; export CARRIED=yes; umask 077; f() { :; }; set -e")
    same(box.sh("pwd -P; echo \"${CARRIED-no}\"; umask"),
         f"{box.cwd}\nno\n0022\n")
    same(run(box, "f").result, {"exit_code": 127})


@cases.everywhere
def environment_on_top(box):
    base = dict(line.partition("=")[::2]
                for line in box.sh("env").splitlines())
    assert base.get("PATH"), base
    have = box.sh("env", env={"ADDED": "a=b c", "EMPTY": "", "HOME": "/new"})
    have = dict(line.partition("=")[::2] for line in have.splitlines())
    same({k: v for k, v in have.items() if k not in base},
         {"ADDED": "a=b c", "EMPTY": ""})
    same((have["HOME"], have["PATH"]), ("/new", base["PATH"]))
    assert "ADDED" not in box.sh("env")


@cases.everywhere
def environment_of_odd_values(box):
    for value in ODD_ARGUMENTS:
        answer = run(box, "printf '%s' \"$ODD\"", env={"ODD": value})
        same(answer.out, os.fsencode(value))
    for name in ("", "A=B"):
        error = box.refused("bad_request", "exec", command="true",
                            env={name: "x"})
        assert "env" in error.message, error
    box.refused("bad_request", "exec", command="true", env={"A": 1})


@cases.everywhere
def another_directory(box):
    box.call("mkdir", path="d/e")
    here = box.cwd.rstrip("/")
    for cwd in ("d/e", "./d/../d/e", f"{here}/d/e"):
        same(box.sh("pwd -P", cwd=cwd), f"{here}/d/e\n")
    box.write("d/run", b"#!/bin/sh\necho here\n", mode=0o755)
    same(box.call("exec", argv=["./run"], cwd="d").out, b"here\n")


@cases.everywhere
def a_directory_that_is_none(box):
    box.write("file")
    error = box.refused("not_found", "exec", command="touch x", cwd="none")
    assert "none" in error.message, error
    error = box.refused("wrong_type", "exec", command="touch x", cwd="file")
    assert "file" in error.message, error
    same(box.names(), ["file"])


@cases.everywhere
def a_process_like_any_other(box):
    """No signal ignored or blocked, no descriptors but three, and a session
    of its own."""
    # No shell: that of busybox ignores SIGQUIT for what it runs.
    shown = box.call("exec", argv=["cat", "/proc/self/status"]).out.decode()
    have = dict(line.split(":\t") for line in shown.splitlines())
    same([int(have[k], 16) & ~SIGNALS_OF_LIBC for k in ("SigIgn", "SigBlk")],
         [0, 0])
    # The last is the shell's own, of the directory that it lists.
    same(box.sh("echo /proc/self/fd/*").split(),
         [f"/proc/self/fd/{i}" for i in range(4)])
    stat = box.sh("cat /proc/$$/stat").rsplit(")", 1)[1].split()
    same(stat[2], stat[3], "its group is its session")


# ---- standard input ---------------------------------------------------------

@cases.everywhere
def no_input(box):
    answer = run(box, "cat; echo end")
    same(answer.out, b"end\n")
    answer = run(box, "cat; echo end", stdin=False)
    same(answer.out, b"end\n")


@cases.everywhere
def input_streamed(box):
    data = os.urandom(5 * MIB)
    answer = box.call("exec", data, command="cat", stdin=True)
    same(hashlib.sha256(answer.out).hexdigest(),
         hashlib.sha256(data).hexdigest())


@cases.everywhere
def input_by_and_by(box):
    """As in a conversation."""
    with box.start("exec", command="while read -r a; do echo \"<$a>\"; done",
                   stdin=True) as request:
        for number in range(20):
            request.send(b"line %d\n" % number)
            want = b"<line %d>\n" % number
            assert request.until(lambda r: r.out.endswith(want)), \
                request.answer()
        request.end()
        same(request.wait().result, {"exit_code": 0})


@cases.everywhere
def input_that_nobody_reads(box):
    """The command ends all the same, and so does the request."""
    request = box.start("exec", command="head -c 3", stdin=True)
    request.send(b"abc" + bytes(4 * MIB))
    answer = request.wait()
    same((answer.out, answer.result), (b"abc", {"exit_code": 0}))
    request.end()
    same(box.sh("echo on"), "on\n")


@cases.everywhere
def input_that_is_closed(box):
    with box.start("exec", command="exec 0<&-; echo closed; "
                   "while [ ! -e go ]; do sleep 0.05; done",
                   stdin=True) as request:
        assert request.until(lambda r: r.out == b"closed\n")
        request.send(bytes(MIB))
        box.write("go")
        same(request.wait().result, {"exit_code": 0})


@cases.everywhere
def input_that_is_not_wanted(box):
    """DATA for an exec without stdin is dropped or an error, no harm."""
    request = box.start("exec", command="cat; echo end")
    request.send(b"x" * 1000)
    request.end()
    try:
        same(request.wait().out, b"end\n")
    except HandsError as error:
        same(error.code, "bad_request")
    same(box.sh("echo on"), "on\n")


# ---- terminal ---------------------------------------------------------------

TTY = {"rows": 24, "columns": 80}


@cases.everywhere
def terminal(box):
    answer = run(box, "test -t 0 && test -t 1 && test -t 2 && stty size; "
                 "echo error >&2; tty", tty=TTY)
    lines = answer.out.decode().split("\r\n")
    same((lines[:2], answer.err), (["24 80", "error"], b""))
    assert lines[2].startswith("/dev/"), lines
    same(answer.result, {"exit_code": 0})


@cases.everywhere
def no_terminal(box):
    for number in range(3):
        same(run(box, f"test -t {number}").result, {"exit_code": 1})


@cases.everywhere
def terminal_of_another_size(box):
    with box.start("exec", command="trap 'stty size; exit 5' WINCH; "
                   "stty size; echo ready; i=0; while [ $i -lt 600 ]; "
                   "do sleep 0.1; i=$((i + 1)); done",
                   tty={"rows": 10, "columns": 20}) as request:
        assert request.until(lambda r: b"ready" in r.out), request.answer()
        request.note(rows=33, columns=144)
        answer = request.wait()
    same(answer.out.split(b"\r\n")[:3], [b"10 20", b"ready", b"33 144"])
    same(answer.result, {"exit_code": 5})


@cases.everywhere
def terminal_interrupt(box):
    with box.start("exec", command="echo ready; exec cat", tty=TTY) as request:
        assert request.until(lambda r: b"ready" in r.out)
        request.send(b"\x03")
        same(request.wait().result, {"signal": "INT", "signal_number": 2})


@cases.everywhere
def terminal_end_of_input(box):
    with box.start("exec", command="stty -echo; echo ready; cat; echo end",
                   tty=TTY) as request:
        assert request.until(lambda r: b"ready" in r.out)
        request.send(b"typed\n\x04")
        answer = request.wait()
    same(answer.out, b"ready\r\ntyped\r\nend\r\n")


@cases.everywhere
def signal_by_note(box):
    with box.start("exec", command="trap 'echo caught; exit 7' USR1; "
                   "echo ready; i=0; while [ $i -lt 600 ]; do sleep 0.1; "
                   "i=$((i + 1)); done") as request:
        assert request.until(lambda r: r.out == b"ready\n")
        request.note(signal="USR1")
        answer = request.wait()
    same((answer.out, answer.result), (b"ready\ncaught\n", {"exit_code": 7}))


cases.main()
