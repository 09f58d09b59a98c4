#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""The audit file: a chain that holds, whatever happened to its daemon."""

import contextlib
import json
import os
import pathlib
import signal
import stat
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases, Skip  # noqa: E402
from daemon import (  # noqa: E402
    EGRESSCTL, POLICY, WAIT_S, Daemon, alive, until, verify)

cases = Cases()

ROOM = 64 * 1024
# Nothing is set aside for records that may be lost.
LOSSY = "audit on full gap\n" + POLICY


def restart_engine(daemon, session="edge"):
    """Two records: a session ends and starts again."""
    before = daemon.settle()[session]
    os.kill(before, signal.SIGKILL)
    until(f"{session} runs again",
          lambda: daemon.settle()[session] != before)


def crash(daemon):
    """The parent is killed, and all die with it; what the file holds then.
    They may have had time for a last word."""
    pids = daemon.processes().values()
    daemon.process.kill()
    daemon.wait()
    for pid in pids:
        until(f"{pid} dies too", lambda: not alive(pid))
    return verify(daemon.audit.read_text().splitlines())


def again(daemon):
    """The same daemon, started once more."""
    daemon.start()
    daemon.settle()


@cases.case
def restarts():
    """One chain over many lives; each tells of its sessions from beginning
    to end."""
    with Daemon() as daemon:
        daemon.settle()
        for _ in range(3):
            assert daemon.stop() == 0
            assert not daemon.socket.exists()
            again(daemon)
        records = daemon.verified()
        assert [r["seq"] for r in records] == list(range(1, 15)), records
        life = ["session_started"] * 2 + ["session_ended"] * 2
        assert [r["kind"] for r in records] == life * 3 + life[:2], records
        assert {r["reason"] for r in records} == {None, "stopped"}
        mode = daemon.audit.stat().st_mode
        assert mode & 0o137 == 0, oct(mode)


@cases.case
def crashes():
    """Killed without a word: what was answered for is in the file."""
    with Daemon() as daemon:
        restart_engine(daemon)
        seq = daemon.ask("status")["audit"]["seq"]
        held = crash(daemon)
        assert len(held) >= seq, f"{len(held)} of {seq} records"
        again(daemon)
        records = daemon.verified()
        assert records[:len(held)] == held, records
        assert [r["seq"] for r in records] == list(range(1, len(held) + 3))


class Files:
    """The audit file of a daemon and those that were rotated, oldest first."""

    def __init__(self, daemon):
        self.daemon, self.old = daemon, []
        self.tip = daemon.audit.with_name("audit.log.tip")

    def rotate(self):
        self.old.append(self.daemon.audit.with_name(f"old.{len(self.old)}"))
        self.daemon.audit.rename(self.old[-1])

    def copy_truncate(self):
        self.daemon.ask("status")
        self.old.append(self.daemon.dir / f"old.{len(self.old)}")
        self.old[-1].write_bytes(self.daemon.audit.read_bytes())
        os.truncate(self.daemon.audit, 0)

    def verify(self, *words, files=None):
        if self.daemon.process.poll() is None:
            self.daemon.ask("status")
        done = subprocess.run(
            [EGRESSCTL, *words, "verify",
             *map(str, files or [*self.old, self.daemon.audit])],
            capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout

    def intact(self):
        status, said = self.verify()
        assert status == 0 and "chain intact" in said, said
        return said


def act(daemon, files, what):
    if what == "stop":
        assert daemon.stop() == 0
    elif what == "crash":
        kill_all(daemon)
    elif what == "start":
        again(daemon)
    elif what == "reload":
        assert daemon.ask("reload")["ok"]
    elif what == "records":
        restart_engine(daemon)
    else:
        files.rotate()


def kill_all(daemon):
    """All at once: nobody has time for a last word."""
    pids = daemon.processes().values()
    for pid in (daemon.process.pid, *pids):
        os.kill(pid, signal.SIGSTOP)
    for pid in (daemon.process.pid, *pids):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    daemon.wait()
    for pid in pids:
        until(f"{pid} dies too", lambda: not alive(pid))


@cases.each([
    "rotate reload records stop start",         # as logrotate does
    "rotate stop start",                        # a restart takes it up
    "rotate reload stop start rotate reload crash start",
    "rotate crash start",
    "rotate reload crash start",
    "records crash rotate start",
    "stop rotate start rotate reload records",
    "stop rotate start stop rotate start crash rotate start",
    "rotate reload rotate reload rotate stop start",
])
def rotated(order):
    """One chain over all files, whatever came in which order."""
    with Daemon() as daemon:
        files = Files(daemon)
        daemon.settle()
        for what in order.split():
            act(daemon, files, what)
        said = files.intact()
        assert "gap" not in said.replace("0 gaps", ""), said
        for file in [*files.old[1:], daemon.audit]:
            first = json.loads(file.read_text().splitlines()[0])
            assert first["kind"] == "file_opened", first
            assert first["last_hash"] == first["prev"], first
            assert first["last_seq"] == first["seq"] - 1, first
        assert stat.S_IMODE(files.tip.stat().st_mode) == \
            stat.S_IMODE(daemon.audit.stat().st_mode)


@cases.case
def file_of_a_chain_missing():
    with Daemon() as daemon:
        files = Files(daemon)
        daemon.settle()
        for what in "rotate stop start rotate reload records".split():
            act(daemon, files, what)
        status, said = files.verify(files=[files.old[0], daemon.audit])
        assert status == 1 and "a file is missing" in said, said
        status, said = files.verify(files=files.old[::-1])
        assert status == 1, said


@cases.case
def copied_and_truncated():
    """As logrotate's copytruncate: it is noticed, logged and recorded."""
    with Daemon() as daemon:
        files = Files(daemon)
        daemon.settle()
        files.copy_truncate()
        restart_engine(daemon)
        said = files.intact()
        assert "(file_cut)" in said, said
        assert "another program has cut off" in daemon.log(), daemon.log()


@cases.each(["gone", "empty", "torn", "else", "older", "directory", "link"])
def tip_not_as_left(what):
    """It starts all the same and says so in a record; only what is no file of
    ours is refused."""
    with Daemon() as daemon:
        files = Files(daemon)
        daemon.settle()
        until("a tip", files.tip.read_bytes)
        older = files.tip.read_bytes()
        restart_engine(daemon)
        assert daemon.stop() == 0
        last = files.tip.read_bytes()
        files.tip.unlink()
        if what in ("directory", "link"):
            (files.tip.mkdir if what == "directory" else
             lambda: files.tip.symlink_to("target"))()
            daemon.popen()
            assert daemon.wait() == 1
            assert str(files.tip) in daemon.log(), daemon.log()
            assert not (daemon.dir / "target").exists()
            return
        left = {"empty": b"", "torn": last[:40] + older[40:],
                "else": b"x" * len(last), "older": older}
        if what in left:
            files.tip.write_bytes(left[what])
        again(daemon)
        said = files.intact()
        reason = {"gone": "tip_missing", "empty": "tip_missing",
                  "older": None}.get(what, "tip_unreadable")
        assert reason is None or f"gap: no record lost ({reason})" in said
        assert said.count("gap:") == (reason is not None), said


@cases.case
def tip_that_cannot_be_made():
    """The directory is not the daemon's: it says so, and does without."""
    if os.geteuid() != 0:
        raise Skip("only root can make a file for another")
    daemon = Daemon(user="nobody")
    try:
        made = daemon.dir / "made"
        made.mkdir(mode=0o755)
        daemon.audit = made / "audit.log"
        daemon.audit.touch()
        os.chown(daemon.audit, daemon.owner.pw_uid, daemon.owner.pw_gid)
        daemon.write(POLICY)
        files = Files(daemon)
        daemon.start()
        until("a record", lambda: daemon.audit.stat().st_size > 0)
        assert f"{files.tip}: Permission denied" in daemon.log()
        assert daemon.stop() == 0
        daemon.start()
        files.tip.touch()
        os.chown(files.tip, daemon.owner.pw_uid, daemon.owner.pw_gid)
        reload = daemon.spawn_ctl("reload")
        assert reload.wait(WAIT_S) == 0, reload.communicate()
        assert daemon.stop() == 0
        daemon.start()
        assert daemon.stop() == 0
        said = files.intact()
        assert said.count("(tip_missing)") == 1, said
    finally:
        daemon.end()


@cases.case
def tail_cut_off():
    """Lines that were there when it was stopped and are not when it starts."""
    with Daemon() as daemon:
        files = Files(daemon)
        restart_engine(daemon)
        assert daemon.stop() == 0
        lines = daemon.audit.read_text().splitlines(keepends=True)
        daemon.audit.write_text("".join(lines[:-2]))
        again(daemon)
        said = files.intact()
        count = len(lines)
        assert f"2 records lost, seq {count - 1} to {count} (tail_lost)" in \
            said, said


@cases.case
def torn_line():
    """Half a line is cut off, and a gap says how much was lost."""
    with Daemon() as daemon:
        daemon.settle()
        held = len(crash(daemon))
        torn = '{"seq":3,"kind":"half_of_a'
        with open(daemon.audit, "a") as file:
            file.write(torn)
        again(daemon)
        records = daemon.verified()
        gap = records[held]
        assert (gap["kind"], gap["reason"], gap["seq"], gap["lost"],
                gap["lost_bytes"], gap["session_id"]) == (
            "gap", "torn_line", held + 1, 0, len(torn), None), gap
        assert [r["kind"] for r in records[held + 1:]] == [
            "session_started"] * 2, records
        assert torn not in daemon.audit.read_text()
        assert daemon.stop() == 0
        again(daemon)
        assert [r["kind"] for r in daemon.verified()].count("gap") == 1


@cases.case
def torn_first_line():
    """A file that holds nothing but half of the first line."""
    with Daemon() as daemon:
        daemon.settle()
        assert daemon.stop() == 0
        last = daemon.audit.read_text().splitlines()[-1]
        daemon.audit.write_text('{"seq":1,"ki')
        again(daemon)
        daemon.ask("status")
        records = verify(daemon.audit.read_text().splitlines(), last)
        assert [r["kind"] for r in records] == [
            "gap", "session_started", "session_started"], records
        assert records[0]["lost_bytes"] == 12, records[0]


@cases.each(["text", "binary", "cut", "directory", "fifo", "symlink"])
def not_an_audit_file(what):
    """What is not ours is refused at start, by name, and left alone."""
    daemon = Daemon()
    target = daemon.dir / "target"
    contents = {"text": b"precious\n", "binary": b"\x7fELF" * 1000,
                "cut": b'{"seq":1,"kind":"gap"}\n'}
    try:
        if what in contents:
            daemon.audit.write_bytes(contents[what])
        elif what == "directory":
            daemon.audit.mkdir()
        elif what == "fifo":
            os.mkfifo(daemon.audit)
        else:
            target.write_text("")
            daemon.audit.symlink_to(target)
        daemon.popen()
        assert daemon.wait() == 1
        assert str(daemon.audit) in daemon.log(), daemon.log()
        if what in contents:
            assert daemon.audit.read_bytes() == contents[what]
        assert not daemon.socket.exists()
    finally:
        daemon.end()


@contextlib.contextmanager
def small_disk(daemon):
    """The audit file stands on a file system of its own."""
    if os.geteuid() != 0:
        raise Skip("only root can mount")
    disk = daemon.dir / "disk"
    disk.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={ROOM}",
                           "tmpfs", str(disk)], capture_output=True, text=True)
    if done.returncode != 0:
        raise Skip(f"no tmpfs: {done.stderr.strip()}")
    try:
        daemon.audit = disk / "audit.log"
        daemon.write(LOSSY)
        yield disk
    finally:
        if daemon.process is not None and daemon.process.poll() is None:
            daemon.stop()
        subprocess.run(["umount", str(disk)], check=True)


def fill(path):
    """Take all the room that is left."""
    with open(path, "wb", buffering=0) as file:
        with contextlib.suppress(OSError):
            while True:
                file.write(b"x" * 4096)
    with open(path, "ab", buffering=0) as file:
        with contextlib.suppress(OSError):
            while True:
                file.write(b"x")


@cases.case
def full_disk():
    """Records that do not fit are counted; when there is room a gap says
    which are missing, the chain holds, and followers missed nothing."""
    daemon = Daemon()
    try:
        with small_disk(daemon) as disk, daemon.start().client() as client:
            daemon.settle()
            assert client.ask("events.follow")["ok"]
            until("a follower", lambda: daemon.ask(
                "status")["audit"]["followers"] == 1)
            fill(disk / "filler")
            sessions = many(40)
            # Starting and ending forty sessions is more than a page.
            for conf in (sessions, LOSSY):
                daemon.write(conf)
                answer = daemon.ask("reload")
                assert answer.get("ok"), answer
                daemon.settle()
            assert "records are lost" in daemon.log(), daemon.log()
            status = daemon.ask("status")
            held = verify(daemon.audit.read_text().splitlines())[-1]["seq"]
            assert 2 <= held < status["audit"]["seq"] == 82, status
            assert len(status["processes"]) == 10, status
            assert status["audit"]["full"] is True, status
            (disk / "filler").unlink()
            until("the gap is written", lambda: any(
                r["kind"] == "gap" for r in daemon.records()))
            gap = daemon.verified()[-1]
            assert (gap["reason"], gap["first_seq"], gap["last_seq"],
                    gap["lost"]) == ("audit_full", held + 1, 82,
                                     82 - held), gap
            assert daemon.ask("status")["audit"]["full"] is False
            restart_engine(daemon)
            records = daemon.verified()
            assert records[-1]["seq"] == 85, records[-1]
            seen = [client.read() for _ in range(83)]
            assert [r["seq"] for r in seen] == list(range(3, 86))
            assert seen[-3:] == records[-3:]
            assert daemon.stop() == 0
            verify(daemon.audit.read_text().splitlines())
    finally:
        daemon.end()


@cases.case
def full_disk_rotated():
    """Rotated, stopped and started on a disk that is full, without room for a
    tip: a gap follows, and the files are one chain."""
    daemon = Daemon()
    try:
        with small_disk(daemon) as disk:
            daemon.start()
            files = Files(daemon)
            daemon.settle()
            fill(disk / "filler")
            files.rotate()
            assert daemon.ask("reload")["ok"]
            daemon.settle()
            daemon.write(many(40))
            assert daemon.ask("reload")["ok"]
            daemon.settle()
            assert daemon.ask("status")["audit"]["full"] is True
            (disk / "filler").unlink()
            until("the gap is written", lambda: any(
                r["kind"] == "gap" for r in daemon.records()))
            assert "(audit_full)" in files.intact()
            assert daemon.stop() == 0
            files.tip.unlink()
            fill(disk / "filler")
            daemon.write(LOSSY)
            again(daemon)
            assert "audit.log.tip: " in daemon.log() or \
                daemon.ask("status")["audit"]["full"] is True, daemon.log()
            (disk / "filler").unlink()
            until("room again", lambda:
                  daemon.ask("status")["audit"]["full"] is False)
            restart_engine(daemon)
            assert daemon.stop() == 0
            files.rotate()
            again(daemon)
            files.intact()
            assert daemon.stop() == 0
    finally:
        daemon.end()


def many(count):
    return LOSSY + "".join(
        f'session "s{n:02}" {{ listen on 127.0.0.1 port {15100 + n} '
        'transparent  policy "open" }\n' for n in range(count))


@cases.case
def full_disk_at_the_end():
    """Stopped while the disk is full: the next life begins with the gap, or
    goes on where the file ended, and the chain holds."""
    daemon = Daemon()
    try:
        with small_disk(daemon) as disk:
            daemon.start()
            daemon.settle()
            fill(disk / "filler")
            daemon.write(many(40))
            assert daemon.ask("reload")["ok"]
            daemon.settle()
            assert daemon.stop() == 0
            verify(daemon.audit.read_text().splitlines())
            assert "what it lacks" in daemon.log(), daemon.log()[-1000:]
            (disk / "filler").unlink()
            daemon.write(LOSSY)
            again(daemon)
            daemon.verified()
    finally:
        daemon.end()


@cases.case
def lines():
    """Lines are what they seem: one object each, ASCII, nothing to escape
    from; a name that could do harm does not get into the configuration."""
    with Daemon() as daemon:
        restart_engine(daemon)
        data = daemon.audit.read_bytes()
        assert data.endswith(b"\n")
        for line in data[:-1].split(b"\n"):
            assert all(0x20 <= byte < 0x7f for byte in line), line
            assert json.dumps(json.loads(line),
                              separators=(",", ":")).encode() == line
        for name in ("a b", "a\\nb", "a;b", "a/../b", "\x1b[2J", "é", "a" * 65):
            daemon.write(POLICY + f'session "{name}" {{ listen on 127.0.0.1 '
                         'port 15100 transparent  policy "open" }\n')
            answer = daemon.ask("reload")
            assert answer["error"]["code"] == "bad_configuration", answer
            text = answer["error"]["message"]
            assert text.isprintable(), repr(text)


@cases.case
def without_file():
    """The numbers advance although nobody writes them down."""
    with Daemon(audit=False) as daemon:
        restart_engine(daemon)
        audit = daemon.ask("status")["audit"]
        assert audit == {"file": None, "seq": 4, "followers": 0,
                         "full": False}, audit
        daemon.audited = True
        daemon.write(POLICY)
        assert daemon.ask("reload")["ok"]
        restart_engine(daemon)
        records = daemon.verified()
        assert [r["seq"] for r in records] == [5, 6, 7], records
        assert (records[0]["kind"], records[0]["last_seq"],
                records[0]["last_hash"]) == ("file_opened", 4, None), records


cases.main()
