#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""The battery against mounts into sandboxes that a daemon of root's makes: what
a client names is opened with the client's rights, below what the block permits,
and by no spelling otherwise; a session's mounts are its owner's business."""

import atexit
import contextlib
import ctypes
import os
import pathlib
import signal
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from boxedlib import (ALICE, BOB, Attached, Client, Host, Place,  # noqa: E402
                      as_user, ask_as, error, same, until)
from case import Cases  # noqa: E402
from daemon import WAIT_S  # noqa: E402
from fuse import GETATTR, LOOKUP, OPEN, STATFS, Fuse  # noqa: E402
from procs import children  # noqa: E402

cases = Cases()
AT_FDCWD, RENAME_EXCHANGE = -100, 2
GROUP = 4242
SECRET = "nobody else's\n"
place = Place()
atexit.register(place.end)
alices = place.make("alice", ALICE)
bobs = place.make("bob", BOB)
closed = place.make("closed", BOB, 0o700)
roots = place.make("root", 0, 0o700)
groups = place.make("group", BOB, 0o770)
os.chown(groups, BOB, GROUP)
for directory in (alices, bobs, closed, roots, groups):
    (directory / "deep").mkdir()
    (directory / "file").write_text(SECRET if directory != alices else "hers")
    (directory / "file").chmod(0o644)
for name, leads in (("root", "/root"), ("up", "../bob"), ("magic",
                    "/proc/self/root"), ("fd", "/proc/self/fd/0"),
                    ("own", "deep"), ("abs", str(bobs))):
    (alices / name).symlink_to(leads)
host = Host(f"""
policy "p" {{ }}
sandbox "virtual" virtual {{ policy "p" user "daemon" }}
sandbox "narrow" virtual {{ policy "p" user "daemon"
	mount below "{alices}" read-write }}
sandbox "wide" virtual {{ policy "p" user "daemon"
	mount below "{place.top}" read-write
	mount below "/root"  mount below "/proc"  mount below "/dev" }}
sandbox "hers" virtual {{ policy "p" user caller mount below "{alices}" }}
sandbox "shelf" virtual {{ policy "p" user caller mount below "{roots}" }}
""")
atexit.register(host.end)
host.start()
host.settle()


def ask(uid, op, **fields):
    return ask_as(uid, host.socket, op, **fields)


def mount(uid, source, target="/m", groups=(), **fields):
    return ask(uid, "session.mount", session_id="s", source=str(source),
               target=target, groups=groups, **fields)


class Session:
    """Alice's."""

    def __init__(self, sandbox, uid=ALICE):
        self.sandbox, self.uid = sandbox, uid

    def __enter__(self):
        answer = ask(self.uid, "session.start", session_id="s",
                     sandbox=self.sandbox)
        assert answer.get("ok"), answer
        return self

    def __exit__(self, *_):
        host.stop_session("s")
        host.gone("s")

    def sh(self, command):
        with Attached(host, "s") as hands:
            return hands.call("exec", command=command).out.decode()


# ---- by every spelling ------------------------------------------------------------

def spellings():
    for victim in ("/root", str(bobs), str(closed)):
        yield from (victim, victim + "/", "/" + victim, "/." + victim,
                    "/proc/self/root" + victim, "/proc/1/root" + victim,
                    "/proc/thread-self/root" + victim,
                    "/proc/self/cwd/../.." + victim,
                    f"{alices}/../../.." + victim, f"{alices}/magic" + victim,
                    f"{alices}/deep/../.." + victim,
                    victim + "/../" + victim.split("/")[-1],
                    victim.upper(), victim.replace("/", "//"),
                    victim.replace("/", "/./"), victim[1:], "." + victim,
                    "file://" + victim, victim.replace("/", "%2f"),
                    f"{alices}\n{victim}", f"{alices}:{victim}",
                    f"{alices}\\..{victim}")
    yield from ("/", "//", "/.", "/..", "", ".", "..", "~", "~root", "/proc",
                "/proc/self/root", "/proc/1/root", "/proc/self/cwd",
                "/proc/self/exe", "/proc/self/fd/0", "/proc/self/fd/3",
                "/dev/fd/0", "/dev", "/dev/mem", "/sys", "/etc", "/etc/shadow",
                "/run", "/var", "/tmp", "/home", str(place.top),
                f"{alices}x", f"{alices}/..", f"{alices}/root",
                f"{alices}/up", f"{alices}/up/file", f"{alices}/magic",
                f"{alices}/magic/root", f"{alices}/fd", f"{alices}/abs",
                f"{alices}/abs/file", f"{alices}/own", f"{alices}/file/..",
                f"{alices}/.", f"{alices}/./deep", f"{alices}//deep")


@cases.case
def no_spelling_leads_out():
    """At run time and with the start, for reading and for writing."""
    tried = set(spellings())
    assert len(tried) >= 90, len(tried)
    with Session("narrow") as session:
        def all_of_them():
            with Client(host.socket) as client:
                return [[s, w, client.ask("session.mount", session_id="s",
                                          source=s, target="/m", write=w)]
                        for s in tried for w in (False, True)]
        for source, _, answer in as_user(ALICE, all_of_them):
            assert error(answer)[0] in ("not_permitted", "mount_failed",
                                        "bad_request"), (source, answer)
        same(session.sh("ls /m 2>/dev/null; grep -c ' /m ' "
                        "/proc/self/mountinfo"), "0\n")

    def starts():
        with Client(host.socket) as client:
            return [client.ask("session.start", session_id="t",
                               sandbox="narrow", mounts=[
                                   {"source": s, "target": "/m"}])
                    for s in sorted(tried)[::6]]
    for answer in as_user(ALICE, starts):
        assert error(answer)[0] in ("start_failed", "bad_request"), answer
    host.gone("t")


@cases.case
def what_no_block_can_permit():
    """The kernel's file systems and the like, though a block names them."""
    with Session("wide", 0) as session:
        for source in ("/proc", "/proc/self/root", "/proc/1/root", "/dev",
                       "/proc/sys", "/dev/null", "/proc/1/ns/mnt"):
            same(error(mount(0, source))[0], "not_permitted", source)
        same(session.sh("ls -d /m 2>/dev/null; true"), "")


# ---- with the client's own rights -----------------------------------------------------

@cases.case
def the_clients_rights_decide():
    """Not the sandbox's user's, which could read less or more, and not ours."""
    with Session("wide") as session:
        for source in (closed, closed / "deep", closed / "file", roots,
                       roots / "file", groups, groups / "file"):
            code, message = error(mount(ALICE, source))
            same((code, "denied" in message), ("mount_failed", True), message)
        # It can be read by her, and written to by its owner only.
        code, message = error(mount(ALICE, bobs, write=True))
        same((code, "denied" in message), ("mount_failed", True), message)
        same(session.sh("ls /m 2>/dev/null; true"), "")
        assert mount(ALICE, bobs).get("ok")
        same(session.sh("cat /m/file"), SECRET)
        # Her groups are those that she has, whatever the database says.
        assert mount(ALICE, groups, "/g", groups=(GROUP,)).get("ok")
        # What lies there has its owners, and inside is another user.
        same(session.sh("cat /g/file 2>/dev/null; true"), "")
        assert mount(ALICE, alices, "/w", write=True).get("ok")
        same(session.sh("cat /w/file; touch /w/x 2>/dev/null; true"), "hers")


@cases.case
def a_client_that_is_root():
    """Has what root owns; a right to override others' modes is not lent."""
    with Session("wide", 0) as session:
        assert mount(0, roots, "/r").get("ok")
        same(session.sh("cat /r/file 2>/dev/null; true"), "")
        same(error(mount(0, closed))[0], "mount_failed")


@cases.case
def a_sandbox_that_runs_as_its_caller():
    with Session("hers") as session:
        assert mount(ALICE, alices).get("ok")
        same(session.sh("cat /m/file; touch /m/x 2>&1 | grep -c ead-only"),
             "hers1\n")
        same((alices / "x").exists(), False)


# ---- who ---------------------------------------------------------------------------------

@cases.case
def sessions_of_others():
    with Session("wide") as session:
        for uid in (BOB, 1, 8):
            same(error(mount(uid, bobs))[0], "not_permitted")
            same(error(mount(uid, bobs, write=True))[0], "not_permitted")
        same(session.sh("ls /m 2>/dev/null; true"), "")
        code, message = error(ask(BOB, "session.start", session_id="s",
                                  sandbox="wide", mounts=[{
                                      "source": str(bobs), "target": "/m"}]))
        same((code, "another" in message), ("session_exists", True))
        same(session.sh("ls /m 2>/dev/null; true"), "")
        assert mount(0, bobs).get("ok")     # root may
        same(session.sh("cat /m/file"), SECRET)


# ---- races ---------------------------------------------------------------------------------

@cases.case
def a_source_that_moves():
    """She exchanges a directory for a link all the time, and has what she named
    or nothing."""
    (alices / "a").mkdir()
    (alices / "a" / "file").write_text("hers")
    (alices / "b").symlink_to(bobs)
    for path in (alices / "a", alices / "a" / "file"):
        os.chown(path, ALICE, ALICE)
    libc = ctypes.CDLL(None)
    stop = threading.Event()

    def spin():
        here = [os.fsencode(alices / n) for n in "ab"]
        while not stop.is_set():
            libc.renameat2(AT_FDCWD, here[0], AT_FDCWD, here[1],
                           RENAME_EXCHANGE)
    spinner = threading.Thread(target=spin)
    with Session("wide") as session:
        spinner.start()
        try:
            done = [i for i in range(40)
                    if mount(ALICE, alices / "a", f"/m{i}").get("ok")]
        finally:
            stop.set()
            spinner.join()
        same(session.sh("cat /m*/file 2>/dev/null; true"), "hers" * len(done))


@cases.case
def who_opens_is_hers_to_kill():
    """It has her user: she may, and gains nothing."""
    with Session("narrow") as session:
        known = set(children(host.process.pid))
        stop = threading.Event()
        failed = []

        def kill():
            """As she may: what has her user."""
            while not stop.is_set():
                for pid in set(children(host.process.pid)) - known:
                    try:
                        with open(f"/proc/{pid}/status",
                                  encoding="ascii") as f:
                            uids = [line.split()[1:] for line in f
                                    if line.startswith("Uid:")][0]
                        if uids == [str(ALICE)] * 4:
                            os.kill(pid, 9)
                    except (OSError, IndexError):
                        pass
        killer = threading.Thread(target=kill)
        killer.start()
        try:
            for i in range(20):
                answer = mount(ALICE, alices, f"/k{i}")
                if "error" in answer:
                    failed.append(error(answer)[0])
        finally:
            stop.set()
            killer.join()
        assert set(failed) <= {"mount_failed"}, failed
        assert mount(ALICE, alices, "/last").get("ok")
        same(session.sh("cat /last/file"), "hers")
    until("no process is left", host.idle)


PIDFD_GETFD = 438
RUNNING = 8         # mounts that are made for one user at once


def take_from(pid):
    """Whether a descriptor of another process could be had."""
    libc = ctypes.CDLL(None, use_errno=True)
    pidfd = os.pidfd_open(pid)
    try:
        os.kill(pid, signal.SIGSTOP)
        return max(libc.syscall(PIDFD_GETFD, pidfd, fd, 0)
                   for fd in (3, 4)) >= 0
    finally:
        signal.pidfd_send_signal(pidfd, signal.SIGCONT)
        os.close(pidfd)


def new_children(known):
    parent = host.process.pid
    path = pathlib.Path(f"/proc/{parent}/task/{parent}/children")
    return {int(word) for word in path.read_text().split()} - known


@cases.case
def who_mounts_is_not_hers_to_look_into():
    """root has something mounted in her session, for reading.  What does that
    has her user, and what it holds is more than she was given."""
    known = set()
    ready, told = os.pipe()
    stop, stopping = os.pipe()

    def thief():
        taken = 0
        os.set_blocking(stop, False)
        os.close(stopping)
        os.write(told, b"x")
        while True:
            try:
                os.read(stop, 1)
                return taken
            except BlockingIOError:
                pass
            for pid in new_children(known):
                with contextlib.suppress(OSError):
                    taken += take_from(pid)

    with Session("shelf"):
        known |= new_children(known)
        results = []
        thread = threading.Thread(
            target=lambda: results.append(as_user(ALICE, thief)))
        thread.start()
        os.read(ready, 1)
        for i in range(40):
            answer = mount(0, roots / "deep", f"/t{i}")
            assert answer.get("ok"), answer
        os.close(stopping)
        thread.join()
    for fd in (ready, told, stop):
        os.close(fd)
    same(results, [0], "were taken")


@cases.case
def a_source_that_never_answers():
    """Alice serves a file system herself: her mounts of it are not made, and
    nobody else waits for that."""
    fuse = place.make("alice/fuse", ALICE)
    answers = []
    with Fuse(fuse, ALICE) as server, Session("wide"):
        server.hang(GETATTR, LOOKUP, OPEN, STATFS)
        threads = [threading.Thread(target=lambda i=i: answers.append(
            mount(ALICE, fuse, f"/f{i}"))) for i in range(RUNNING)]
        for thread in threads:
            thread.start()
        server.waiting(RUNNING, WAIT_S)
        same(error(mount(ALICE, alices, "/more"))[0], "busy")
        for i in range(3):
            assert mount(0, alices, f"/root{i}").get("ok")
    for thread in threads:
        thread.join(WAIT_S)
    same({error(answer)[0] for answer in answers}, {"mount_failed"})
    fuse.rmdir()
    until("no process is left", host.idle)


@cases.case
def the_daemon_works_on():
    host.works()
    same(sorted(p.name for p in place.top.iterdir()),
         ["alice", "bob", "closed", "group", "root"])
    same(sorted(p.name for p in bobs.iterdir()), ["deep", "file"])


cases.main()
