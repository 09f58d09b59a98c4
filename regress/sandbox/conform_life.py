#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Conformance of every backend: how long things live.  Timeouts, children that
are left behind, what is cancelled, and clients that are gone."""

import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from backends import MIB, Conformance, same  # noqa: E402
from daemon import SANITIZED, until  # noqa: E402
from hands import WINDOW, HandsError  # noqa: E402

cases = Conformance()
TIMEOUT_MS = 1500
# After a timeout all is dead within a second.  That is the promise; the rest
# is for a machine that is busy with other tests.
KILLED_S = 1.0
LOAD_S = 20 if SANITIZED else 4

# What a command may leave: each adds its pid to a file and then waits, by the
# file that it has open and not by what its parents do.
WAIT = "echo $$ >> pids; while :; do sleep 0.2; done"
LEFT = {
    "child": f"sh -c '{WAIT}' &",
    "double_fork": f"(sh -c '{WAIT}' &) &",
    "session": f"setsid sh -c '{WAIT}' &",
    "session_double_fork": f"(setsid sh -c 'sh -c \"$0\" & ' '{WAIT}' &) &",
    "ignores_signals":
        f"sh -c 'trap \"\" TERM INT HUP QUIT PIPE; {WAIT}' &",
    "stopped": "sh -c 'echo $$ >> pids; kill -STOP $$' &",
}


def pids(box, count=1, path="pids"):
    """Of what a command has left, once they are all there."""
    def written():
        try:
            lines = box.read(path).decode().split("\n")
        except HandsError:
            return None
        return [int(p) for p in lines[:-1]] if len(lines) > count else None
    return until(f"{count} processes", written)


def cancelled(request, perhaps=False):
    try:
        answer = request.wait()
        assert perhaps, f"not cancelled: {str(answer)[:200]}"
    except HandsError as error:
        same(error.code, "cancelled", error.message)


def out_of_time(request):
    """The error, and when it came."""
    try:
        raise AssertionError(f"no timeout: {str(request.wait())[:200]}")
    except HandsError as error:
        same(error.code, "timeout", error.message)
        return error, time.monotonic()


# ---- timeouts ---------------------------------------------------------------

@cases.everywhere
def timeout_with_output_so_far(box):
    begun = time.monotonic()
    error, over = out_of_time(box.start(
        "exec", command="echo out; echo err >&2; exec sleep 1000",
        timeout_ms=TIMEOUT_MS))
    same((error.answer.out, error.answer.err), (b"out\n", b"err\n"))
    assert TIMEOUT_MS / 1000 <= over - begun < \
        TIMEOUT_MS / 1000 + KILLED_S + LOAD_S, over - begun


@cases.everywhere
def timeout_kills_all(box):
    """The whole tree, dead by the time of the answer or soon."""
    requests = {}
    for what, command in LEFT.items():
        box.call("mkdir", path=what)
        requests[what] = box.start(
            "exec", command=f"{command} until [ -s pids ]; do sleep 0.05; "
            "done; echo $$ >> pids; exec sleep 1000", cwd=what,
            timeout_ms=6 * TIMEOUT_MS)
    trees = {what: pids(box, 2, f"{what}/pids") for what in LEFT}
    for what, tree in trees.items():
        same(sorted(box.alive(*tree)), sorted(tree), what)
    for what, request in requests.items():
        _, over = out_of_time(request)
        until(f"{what} has ended", lambda: not box.alive(*trees[what]),
              KILLED_S + LOAD_S)
        assert time.monotonic() - over < KILLED_S + LOAD_S, what


@cases.everywhere
def timeout_of_a_command_that_ignores_it(box):
    error, _ = out_of_time(box.start(
        "exec", command="trap '' TERM INT HUP QUIT; echo $$; "
        "while :; do sleep 0.1; done", timeout_ms=TIMEOUT_MS))
    box.gone(int(error.answer.out))


@cases.everywhere
def timeout_of_many_children(box):
    """While they make more of them."""
    request = box.start("exec", command="f() { i=0; while [ $i -lt 200 ]; do "
                        "setsid sleep 1000 & i=$((i + 1)); "
                        "[ $i -gt 20 ] && sleep 0.05; done; }; "
                        "echo $$ >> pids; f; wait", timeout_ms=TIMEOUT_MS)
    shell = pids(box)
    out_of_time(request)
    box.gone(*shell)
    until("nothing sleeps", lambda: "sleep\0001000\0" not in box.sh(
        "for p in /proc/[0-9]*; do [ $(readlink $p/cwd) = $PWD ] && "
        "cat $p/cmdline; done 2>/dev/null; :"))


@cases.everywhere
def timeout_while_nobody_reads(box):
    """A client that grants nothing cannot keep a command alive."""
    request = box.start("exec", command="echo $$ > pids; exec cat /dev/zero",
                        timeout_ms=TIMEOUT_MS, hold=True)
    command = pids(box)
    box.gone(*command)
    assert request.until(lambda r: len(r.out) == WINDOW)
    request.grant(64 * MIB)
    out_of_time(request)


@cases.everywhere
def timeout_that_is_not_needed(box):
    answer = box.call("exec", command="echo done", timeout_ms=3600 * 1000)
    same((answer.out, answer.result), (b"done\n", {"exit_code": 0}))
    for value in (-1, 1.5, "1"):
        error = box.refused("bad_request", "exec", command="touch x",
                            timeout_ms=value)
        assert "timeout_ms" in error.message, error
    same(box.names(), [])


# ---- children that are left -------------------------------------------------

@cases.everywhere
def children_left_behind(box):
    """They live on, and do not hold up the answer by the pipes they have."""
    answer = box.call("exec", command="sh -c 'echo $$ > pids; trap \"\" PIPE; "
                      "until [ -e go ]; do sleep 0.05; done; echo late; "
                      "echo late >&2; echo lived > sign; exec sleep 1000' & "
                      "until [ -s pids ]; do sleep 0.05; done; echo done")
    same((answer.out, answer.err, answer.result),
         (b"done\n", b"", {"exit_code": 0}))
    child = pids(box)
    try:
        same(box.alive(*child), child)
        box.write("go")
        until("it went on", lambda: "sign" in box.names() and
              box.read("sign") == b"lived\n")
    finally:
        box.sh(f"kill -KILL {child[0]}")
    box.gone(*child)


@cases.everywhere
def a_server_left_behind(box):
    """Without a pipe of ours, as agents start them; later commands find it."""
    box.sh("mkfifo door; setsid sh -c 'echo $$ > pids; read -r a < door; "
           "echo \"heard $a\" > heard' > log 2>&1 < /dev/null & "
           "until [ -s pids ]; do sleep 0.05; done")
    server = pids(box)
    box.sh("echo knock > door")
    until("it heard", lambda: "heard" in box.names() and
          box.read("heard") == b"heard knock\n")
    box.gone(*server)


# ---- cancelled, abandoned ---------------------------------------------------

def stuck_read(box):
    box.write("large", bytes(2 * MIB))
    return "read", {"path": "large"}, lambda r: len(r.out) == WINDOW


def stuck_write(box):
    return "write", {"path": "target"}, lambda r: True


def stuck_edit(box):
    """The answer is stuck, so the edit is made."""
    box.write("large", b"one" + bytes(2 * MIB))
    return "edit", {"path": "large", "old": "one", "new": "two"}, \
        lambda r: len(r.out) == WINDOW


def stuck_exec(box):
    return "exec", {"command": f"{LEFT['session']} {LEFT['child']} {WAIT}"}, \
        lambda r: True


def stuck_items(box):
    """More than credit permits."""
    box.sh("mkdir d && cd d && seq 3000 | sed s/^/a-name-of-which-many-are-"
           "more-than-credit-permits-and-which-therefore-is-long-/ | "
           "xargs touch")
    return lambda r: len(r.items) > 100


def stuck_glob(box):
    return "glob", {"pattern": "d/*"}, stuck_items(box)


def stuck_grep(box):
    box.write("large", b"a line of which many are\n" * 9000)
    return "grep", {"pattern": "line"}, lambda r: len(r.items) > 100


def stuck_list(box):
    return "list", {"path": "d"}, stuck_items(box)


STUCK = {"read": stuck_read, "write": stuck_write, "edit": stuck_edit,
         "exec": stuck_exec, "glob": stuck_glob, "grep": stuck_grep,
         "list": stuck_list}


def stick(op, box, other):
    """The request on another connection, which cannot go on by itself; what
    of it runs."""
    op, members, condition = STUCK[op](box)
    request = other.start(op, hold=True, **members)
    if op == "write":
        request.send(bytes(MIB))
    assert request.until(condition), str(request.answer())[:200]
    return request, pids(box, 3) if op == "exec" else []


def nothing_is_left(op, box, processes):
    """What a request that came to nothing may not leave."""
    if processes:
        box.gone(*processes)
    known = {"large", "d", "pids"}
    until("no other files", lambda: set(box.names()) <= known)
    if op == "edit":
        same(box.read("large", length=3), b"two")


@cases.each_everywhere(STUCK)
def cancel(op, box):
    with box.another() as other:
        request, processes = stick(op, box, other)
        request.cancel()
        # An edit is made already, and its answer may say so.
        cancelled(request, perhaps=op == "edit")
        nothing_is_left(op, box, processes)
        same(other.call("stat", path=".").result["type"], "directory")


@cases.each_everywhere(STUCK)
def disconnect(op, box):
    other = box.another()
    _, processes = stick(op, box, other)
    other.close()
    with box.another() as after:
        nothing_is_left(op, after, processes)


@cases.everywhere
def disconnect_in_the_middle_of_many(box):
    other = box.another()
    for number in range(20):
        other.start("write", path=f"target{number}").send(bytes(100000))
        if "exec" in box.operations:
            other.start("exec", command=WAIT)
    processes = pids(box, 20) if "exec" in box.operations else []
    other.close()
    with box.another() as after:
        nothing_is_left("exec", after, processes)


@cases.everywhere
def cancel_twice_and_too_late(box):
    box.write("a", b"text")
    request = box.start("read", path="a")
    same(request.wait().out, b"text")
    request.cancel()
    request.grant(5)
    held = box.start("write", path="b")
    held.cancel()
    held.cancel()
    cancelled(held)
    held.cancel()
    same(box.read("a"), b"text")
    same(box.names(), ["a"])


@cases.everywhere
def cancel_one_of_two(box):
    data = os.urandom(2 * MIB)
    box.write("large", data)
    first = box.start("read", path="large", hold=True)
    second = box.start("read", path="large", hold=True)
    for request in (first, second):
        assert request.until(lambda r: len(r.out) == WINDOW)
    first.cancel()
    cancelled(first)
    second.grant(4 * MIB)
    assert second.wait().out == data


cases.main()
