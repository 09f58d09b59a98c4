#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""The battery against sandboxes that a daemon makes, part one: two users of one
daemon, neither of whom it trusts.  What is the other's stays the other's, and
nobody has a directory, a user or a sandbox for having asked nicely."""

import atexit
import ctypes
import grp
import os
import pathlib
import pwd
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from boxedlib import (ALICE, BOB, Attached, Client, Host, Place,  # noqa: E402
                      as_user, ask_as, error, same, until)
from case import Cases, Skip  # noqa: E402

cases = Cases()
AT_FDCWD, RENAME_EXCHANGE = -100, 2
MAIL = 8            # whose home everybody may enter
OURS = 61290        # of the daemon's `uids', and no process has it
place = Place()
atexit.register(place.end)
alices = place.make("alice", ALICE)
bobs = place.make("bob", BOB)
closed = place.make("closed", BOB, 0o700)
block = place.make("block", ALICE)
CONF = f"""
policy "p" {{ }}
sandbox "virtual" virtual {{ policy "p" user "nobody" }}
sandbox "mine" local {{ policy "p" user caller }}
sandbox "vmine" virtual {{ policy "p" user caller }}
sandbox "cmine" custom "/bin/cat" {{ policy "p" user caller ungated }}
sandbox "block" local {{ policy "p" user "nobody" cwd "{block}" }}
sandbox "nowhere" local {{ policy "p" user "nobody" }}
sandbox "echo" custom "/bin/cat" {{ policy "p" user "nobody" ungated }}
sandbox "alices" virtual {{ policy "p" user "nobody" for user "nobody" }}
sandbox "calices" custom "/bin/cat" {{ policy "p" user "nobody" ungated
	for user "nobody" }}
sandbox "tapes" virtual {{ policy "p" user "nobody" for group "tape" }}
sandbox "number" virtual {{ policy "p" user "nobody"
	for user "{BOB}" group "4242" }}
"""
host = Host(CONF)
atexit.register(host.end)
host.start()
host.settle()


def ask(uid, op, **fields):
    return ask_as(uid, host.socket, op, **fields)


def start(uid, name, sandbox, **fields):
    return ask(uid, "session.start", session_id=name, sandbox=sandbox,
               **fields)


def refused(answer, *words):
    code, message = error(answer)
    assert code in ("start_failed", "not_permitted", "bad_request"), answer
    for word in words:
        assert word in message, answer


def not_permitted(answer, *words):
    same(error(answer)[0], "not_permitted")
    refused(answer, *words)


# ---- sessions of others -------------------------------------------------------

@cases.each(("virtual", "echo", "vmine", "cmine"))
def sessions_of_others(sandbox):
    """Not attached to, stopped, adopted, nor told about but that they are."""
    assert start(ALICE, "hers", sandbox).get("ok")
    try:
        for op in ("session.attach", "session.stop"):
            same(error(ask(BOB, op, session_id="hers"))[0], "not_permitted")
        for fields in ({}, {"policy": "p"}, {"env": {"A": "b"}},
                       {"cwd": str(bobs)}, {"deadline": 1}):
            code, message = error(start(BOB, "hers", sandbox, **fields))
            same(code, "session_exists")
            assert "another user's" in message, message
        code, message = error(start(BOB, "hers", "alices"))
        assert "another user's" in message and sandbox not in message, message
        same(host.sessions()["hers"]["owner"], ALICE)
        same(start(ALICE, "hers", sandbox).get("existed"), True)
    finally:
        host.stop_session("hers")


@cases.case
def a_name_that_was_anothers():
    """Who has it next has nothing of before; whoever attached is cut off."""
    def both():
        with Client(host.socket) as client:
            client.ask("session.start", session_id="name", sandbox="vmine")
            wire = Attached(host, "name")
            wire.call("write", b"secret", path="/work/secret")
            client.ask("session.stop", session_id="name")
            return wire.wait_closed()
    as_user(ALICE, both)
    assert start(BOB, "name", "vmine").get("ok")

    def look():
        with Attached(host, "name") as hands:
            return [i["name"] for i in hands.call("list", path="/work").items]
    same(as_user(BOB, look), [])
    same(error(ask(ALICE, "session.attach", session_id="name"))[0],
         "not_permitted")
    host.stop_session("name")


# ---- who may have what ----------------------------------------------------------

@cases.each(("alices", "calices"))
def for_user(sandbox):
    not_permitted(start(BOB, "no", sandbox), f"not for user {BOB}")
    assert "no" not in host.sessions()
    for uid in (ALICE, 0):
        assert start(uid, "yes", sandbox).get("ok")
        host.stop_session("yes")


@cases.case
def for_group():
    """By the group that the client connects with, or by the database; not by
    what it says."""
    tape = grp.getgrnam("tape").gr_gid
    fields = {"session_id": "yes", "sandbox": "tapes"}
    not_permitted(ask_as(BOB, host.socket, "session.start", **fields))
    # A supplementary group of a process is nothing that can be told.
    not_permitted(ask_as(BOB, host.socket, "session.start", groups=[tape],
                         **fields))
    assert ask_as(BOB, host.socket, "session.start", gid=tape,
                  **fields).get("ok")
    host.stop_session("yes")
    not_permitted(start(ALICE, "no", "number"))
    assert start(BOB, "yes", "number").get("ok")
    host.stop_session("yes")


@cases.each(("mine", "vmine", "cmine"))
def caller_is_never_root(sandbox):
    not_permitted(start(0, "no", sandbox, cwd=str(alices)),
                  "must not be root")


@cases.each(("mine", "vmine", "cmine"))
def caller_is_never_ours(sandbox):
    """Also a uid of ours that no process has just now."""
    try:
        answer = start(OURS, "no", sandbox, cwd=str(alices))
    except AssertionError as why:
        assert "as 61290" in str(why), why      # hung up on
        return
    not_permitted(answer, "daemon's own users")


@cases.case
def no_such_user():
    """A uid without an entry has no groups and no home to be given."""
    refused(start(59999, "no", "vmine"), "no such user")


@cases.case
def as_whom():
    """What runs is the caller, or who the block says, with nothing of root."""
    for uid, sandbox, want in ((ALICE, "vmine", ALICE), (BOB, "vmine", BOB),
                               (BOB, "virtual", ALICE)):
        def one(sandbox=sandbox):
            with Client(host.socket) as client:
                name = client.ask("session.start",
                                  sandbox=sandbox)["session_id"]
                with Attached(host, name) as hands:
                    return hands.call("exec", command="id -u; grep -E "
                                      "'^(Uid|Cap|NoNew|Groups)' "
                                      "/proc/self/status").out.decode()
        said = as_user(uid, one, groups=[0, 4, 6]).split("\n")
        same(said[0], str(want))
        facts = {line.split(":")[0]: line.split()[1:] for line in said[1:]
                 if ":" in line}
        same(set(facts["Uid"]), {str(want)})
        assert "0" not in facts["Groups"] and "6" not in facts["Groups"], facts
        for caps in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            same(int(facts[caps][0], 16), 0, caps)
        same(facts["NoNewPrivs"], ["1"])


# ---- directories ----------------------------------------------------------------

def spellings():
    """Of what no client may have, as (name, path)."""
    link = alices / "link"
    for name, target in (("root", "/root"), ("etc", "/etc"), ("slash", "/"),
                         ("proc", "/proc"), ("closed", closed),
                         ("self", "/proc/self/root"), ("run", "/run"),
                         ("loop", "loop"), ("gone", "/nonexistent")):
        os.symlink(target, f"{link}-{name}")
    (alices / "file").write_text("x")
    os.mkfifo(alices / "fifo")
    deleted = place.make("deleted", ALICE)
    deleted.rmdir()
    odd = place.make("odd\nname", BOB, 0o700)
    parent = os.getppid()
    return [
        "/root", "/root/", "//root", "/root/.", "/root/..", "/./root",
        "/root/.ssh", "/", "//", "///", "/.", "/..", "/../..", "/etc", "/etc/",
        "//etc//", "/etc/.", "/etc/ssl/..", "/etc/ssl", "/etc/ssl/private",
        "/proc", "/proc/self/root", "/proc/self/root/", "/proc/self/root/root",
        "/proc/self/cwd", "/proc/1/root", "/proc/1/cwd", "/proc/1/root/etc",
        f"/proc/{parent}/root", f"/proc/{host.process.pid}/root",
        f"/proc/{host.process.pid}/cwd", "/proc/self/fd", "/proc/self/fd/3",
        "/proc/thread-self/root/root", "/proc/self/task", "/dev/fd/0",
        "/dev", "/dev/shm", "/sys", "/sys/fs/cgroup", "/run", "/run/lock",
        "/var/run", "/tmp", "/tmp/", "/tmp/.", "/var", "/var/tmp",
        "/usr", "/usr/bin", "/usr/games", "/bin", "/lib", "/boot",
        f"{closed}", f"{closed}/", f"{closed}/x", f"{alices}/../closed",
        f"{alices}/../../..", f"{alices}/x/../../closed",
        *(f"{link}-{n}" for n in ("root", "etc", "slash", "proc", "closed",
                                  "self", "run", "loop", "gone")),
        f"{link}-slash/root", f"{link}-slash/etc/", f"{link}-self/etc",
        f"{alices}/file", f"{alices}/file/", f"{alices}/fifo",
        f"{deleted}", f"{odd}", f"{odd}/", f"{alices}/\nx", f"{alices}\n",
        f"{alices}/\x1b[31m", f"{alices}/%2e%2e", f"{alices}/-x", "/-W",
        f"{alices}/" + "a" * 300, "/" + "a/" * 500, f"{host.dir}/egressd.sock",
    ]


paths = spellings()


@cases.case
def directories_of_the_caller():
    """A block without a cwd: what the caller may enter, and of that no home,
    no system, nothing of the kernel's."""
    def each():
        had = []
        with Client(host.socket) as client:
            for path in paths:
                for field in ("cwd", "caller_cwd"):
                    answer = client.ask("session.start", sandbox="mine",
                                        **{field: path})
                    if answer.get("ok"):
                        had.append([field, path])
        return had
    assert len(paths) > 80
    same(as_user(ALICE, each), [])
    same([s for s in host.sessions() if s.startswith("s-")], [])


@cases.case
def directories_below_a_block():
    """A block with a cwd: that, or what is beneath; by its real name."""
    (block / "sub").mkdir(exist_ok=True)
    place.make("block2", ALICE)
    place.make("blocks/sub", ALICE)
    for name, target in (("out", alices), ("up", ".."), ("in", "sub"),
                         ("top", "/")):
        if not os.path.lexists(block / name):
            os.symlink(target, block / name)
    more = [str(alices), f"{block}/..", f"{block}/../alice", f"{block}2",
            f"{block}s", f"{block}s/sub", f"{block}/sub/../..",
            f"{block}/out", f"{block}/out/", f"{block}/up", f"{block}/up/alice",
            f"{block}/top/tmp", f"{block}/in/../../alice", f"{block}/none",
            f"{place.top}", f"{block}/sub/../../block2",
            f"/proc/self/root{alices}", f"/proc/self/cwd{alices}"]
    good = [str(block), f"{block}/", f"/{block}", f"{block}/sub",
            f"{block}/./sub/", f"{block}/sub/..", f"{alices}/../block/sub",
            f"/proc/self/root{block}"]

    def each():
        had = []
        with Client(host.socket) as client:
            for path in paths + more:
                if client.ask("session.start", sandbox="block",
                              cwd=path).get("ok"):
                    had.append(path)
            missed = [p for p in good if not client.ask(
                "session.start", sandbox="block", cwd=p).get("ok")]
        return [had, missed]
    same(as_user(BOB, each), [[], []])


@cases.case
def a_block_without_a_directory():
    """One user's rights are not for another to spend."""
    for path in (str(alices), str(bobs), "/tmp", "/srv"):
        refused(start(BOB, "no", "nowhere", cwd=path), "no cwd")
    refused(start(ALICE, "no", "nowhere", cwd=str(alices)), "no cwd")
    refused(start(ALICE, "no", "nowhere"), "cwd is wanted")
    refused(start(ALICE, "no", "mine"), "cwd is wanted")


@cases.case
def homes_and_keys():
    """What `egressctl run' does not take for a project."""
    mine = place.make("alice/project", ALICE)
    assert start(ALICE, "yes", "mine", cwd=str(mine)).get("ok")
    host.stop_session("yes")
    home = pwd.getpwuid(MAIL).pw_dir
    for field in ("cwd", "caller_cwd"):
        refused(start(MAIL, "no", "mine", **{field: home}), "home directory")


@cases.case
def a_bind_mount():
    """Of a directory that the user may not enter by its own name."""
    target = place.make("bound", ALICE)
    (closed / "secret").write_text("x")
    if subprocess.run(["mount", "--bind", closed, target],
                      capture_output=True).returncode != 0:
        raise Skip("no bind mounts here")
    try:
        refused(start(ALICE, "no", "mine", cwd=str(target)))
        refused(start(ALICE, "no", "mine", cwd=f"{target}/"))
    finally:
        subprocess.run(["umount", target], check=True)


def exchange(a, b):
    """Two names, at one moment."""
    libc = ctypes.CDLL(None, use_errno=True)
    same(libc.renameat2(AT_FDCWD, os.fsencode(a), AT_FDCWD, os.fsencode(b),
                        RENAME_EXCHANGE), 0)


@cases.case
def swapped_during_the_start():
    """A name that is a directory, then a link, then a directory again, while
    sandboxes are made: each is refused or has the directory."""
    name, link = block / "swapped", block / "swapped-link"
    name.mkdir()
    os.symlink(alices, link)
    (alices / "marker").write_text("x")
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            exchange(name, link)
            stop.wait(0.001)
    thread = threading.Thread(target=swap, daemon=True)
    thread.start()
    seen = {True: 0, False: 0}
    try:
        for _ in range(100):
            if min(seen.values()) >= 5:
                break
            with host.client() as client:
                answer = client.ask("session.start", sandbox="block",
                                    cwd=str(name))
                seen[bool(answer.get("ok"))] += 1
                if not answer.get("ok"):
                    continue
                with Attached(host, answer["session_id"]) as hands:
                    names = [i["name"] for i in hands.call("list").items]
                    assert "marker" not in names, names
                    same(hands.hello["cwd"], str(name))
    finally:
        stop.set()
        thread.join(10)


@cases.case
def in_memory_any_name():
    """A virtual sandbox has no files of the machine under whatever name."""
    def each():
        bad = []
        for path in ("/root", "/home/x", str(closed), str(alices), "/tmp/x",
                     "/srv", "/root/.ssh", "/a" * 60, "/x\ny"):
            with Client(host.socket) as client:
                answer = client.ask("session.start", sandbox="vmine", cwd=path)
                if not answer.get("ok"):
                    bad.append([path, answer])
                    continue
                with Attached(host, answer["session_id"]) as hands:
                    if hands.call("list", path=path).items:
                        bad.append(path)
        return bad
    same(as_user(ALICE, each), [])
    for path in ("/etc/../x", "/x/./y", "/..", "/proc/1/x", "/usr/x"):
        refused(start(ALICE, "no", "vmine", cwd=path))


# ---- what one user can take from another ---------------------------------------

@cases.case
def programs_of_others():
    """Connections to a custom sandbox are programs; one user's are not all
    that there are."""
    def many():
        with Client(host.socket) as client:
            client.ask("session.start", session_id="many", sandbox="cmine")
            wires, served = [], 0
            for _ in range(120):
                wire = Client(host.socket)
                wires.append(wire)
                assert wire.ask("session.attach", session_id="many").get("ok")
            for wire in wires:
                try:
                    wire.sock.sendall(b"x")
                    served += wire.sock.recv(1) == b"x"
                except OSError:
                    pass
            client.ask("session.stop", session_id="many")
            return served
    served = as_user(ALICE, many)
    assert 1 <= served <= 32, served
    until("their programs end", lambda: not [
        1 for p in pathlib.Path("/proc").glob("[0-9]*/stat")
        if p.parent.stat().st_uid == ALICE and "(cat)" in p.read_text()])


cases.main()
