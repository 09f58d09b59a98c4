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

"""What ends requests beside rules: a full audit file, the session's quota."""

import contextlib
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases, Skip  # noqa: E402
from daemon import until, verify  # noqa: E402
from gate import Broken, Gate, get, pair  # noqa: E402

cases = Cases()

ROOM = 64 * 1024
# Denied requests make records without any origin.
DENY = 'deny host "**"'


def fill(path):
    with open(path, "wb", buffering=0) as file:
        for size in (4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"x" * size)


@contextlib.contextmanager
def full_disk(settings=""):
    """A gate whose audit file stands on a file system of its own, full."""
    if os.geteuid() != 0:
        raise Skip("only root can mount")
    gate = Gate(f"{DENY}\n{settings}")
    disk = gate.dir / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs",
                    str(disk)], check=True)
    try:
        gate.audit = disk / "audit.log"
        gate.policy(gate.rules)
        with gate:
            assert status(gate) == 403
            fill(disk / "filler")
            yield gate, disk / "filler"
            gate.stop()
    finally:
        subprocess.run(["umount", str(disk)], check=True)
        gate.end()


def status(gate):
    with gate.plain() as wire:
        return wire.ask(get()).status


@cases.case
def audit_on_full_deny():
    """Nothing passes that nobody can account for, until there is room."""
    with full_disk() as (gate, filler):
        until("refused for want of records", lambda: status(gate) == 503)
        with gate.plain() as wire:
            answer = wire.ask(get())
            assert answer.get("egress-decision") == "refuse, audit_full", \
                answer
        filler.unlink()
        until("served again", lambda: status(gate) == 403)
        gate.ask("status")
        records = verify(gate.audit.read_text().splitlines())
        assert any(r["kind"] == "gap" and r["reason"] == "audit_full"
                   for r in records), records


@cases.case
def audit_on_full_gap():
    """The operator may prefer to go on; then the loss is a record."""
    with full_disk("audit on full gap") as (gate, filler):
        until("records are lost",
              lambda: status(gate) == 403 and "are lost" in gate.log())
        for _ in range(20):
            assert status(gate) == 403
        filler.unlink()
        until("the gap is written", lambda: any(
            r["kind"] == "gap" for r in gate.records()))


@cases.case
def quota_out():
    """What a session may send in all is one sum for all its requests."""
    with pair(settings="quota out 100K") as both:
        with both.open() as wire:
            assert wire.ask(both.post("/1", b"x" * 60000)).status == 200
            assert wire.ask(both.post("/2", b"x" * 42400)).status == 200
            assert wire.ask(both.get("/3")).status == 403
        record = both.gate.final(path="/3")
        assert (record["kind"], record["reason"]) == (
            "request_denied", "quota"), record


@cases.case
def quota_out_within_a_body():
    with pair(settings="quota out 100K") as both, both.open() as wire:
        assert wire.ask(both.post("/1", b"x" * 60000)).status == 200
        wire.send(both.post("/2", b"x" * 60000))
        assert wire.answer().status == 413
        record = both.gate.final(path="/2")
        assert (record["kind"], record["reason"]) == (
            "request_failed", "quota"), record


@cases.each(("no answer", "half an answer"))
def total_time(what):
    """A request ends after so long, even while something comes."""
    def serve(connection):
        connection.request()
        if what == "half an answer":
            connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
            connection.send(b"half")
        connection.more()

    with pair(serve, more="timeout total 500ms") as both, both.open() as wire:
        wire.send(both.get("/slow"))
        if what == "no answer":
            got = wire.answer()
            assert (got.status, got.get("egress-decision")) == (
                504, "refuse, total_time"), got
        else:
            try:
                raise AssertionError(f"it looks whole: {wire.answer()}")
            except Broken:
                pass
        record = both.gate.final(path="/slow")
        assert (record["kind"], record["reason"]) == (
            "request_failed", "total_time"), record


cases.main()
