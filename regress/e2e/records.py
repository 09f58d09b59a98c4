#!/usr/bin/env python3
#
# Copyright (c) 2026 The egressd authors
#
# Permission to use, copy, modify, and distribute this software for any
# purpose with or without fee is hereby granted, provided that the above
# copyright notice and this permission notice appear in all copies.
#
# THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES
# WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF
# MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR
# ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES
# WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
# ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF
# OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
#

"""The audit file: a chain that holds, whatever happened to its daemon."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases, Skip  # noqa: E402
from daemon import POLICY, Daemon, alive, until, verify  # noqa: E402

cases = Cases()

ROOM = 64 * 1024


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
        daemon.audit.write_text('{"seq":1,"ki')
        again(daemon)
        records = daemon.verified()
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
        daemon.write(POLICY)
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
            for conf in (sessions, POLICY):
                daemon.write(conf)
                answer = daemon.ask("reload")
                assert answer.get("ok"), answer
                daemon.settle()
            assert "records are lost" in daemon.log(), daemon.log()
            status = daemon.ask("status")
            held = verify(daemon.audit.read_text().splitlines())[-1]["seq"]
            assert 2 <= held < status["audit"]["seq"] == 82, status
            assert len(status["processes"]) == 8, status
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


def many(count):
    return POLICY + "".join(
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
            daemon.write(POLICY)
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
        assert [r["seq"] for r in records] == [5, 6], records


cases.main()
