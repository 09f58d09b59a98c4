# SPDX-License-Identifier: ISC

"""What cases check again and again."""

import hashlib
import os
import statistics
import threading

from daemon import until
from gate import FINAL

MIB = 1 << 20


def digest(data):
    return hashlib.sha256(data).hexdigest()


def noise(count):
    return os.urandom(count)


def stands(value, seconds=0.5):
    """It does not change for so long."""
    before = value()
    threading.Event().wait(seconds)
    return value() == before


def one_final_each(gate, count):
    """Each request was opened, then ruled on, and ends in one record."""
    until(f"{count} final records", lambda: len(gate.finals()) >= count)
    stations = {}
    for record in gate.verified():
        if "id" in record.get("request", {}):
            stations.setdefault(record["request"]["id"], []).append(
                record["kind"])
    assert len(stations) == count, f"{len(stations)}, not {count}"
    for kinds in stations.values():
        assert kinds[0] == "request_opened" and kinds[-1] in FINAL and \
            sum(k in FINAL for k in kinds) == 1, kinds
        assert ("request_allowed" in kinds) == (
            kinds[-1] != "request_denied") or kinds == [
                "request_opened", "request_failed"], kinds


def broken(record, reason="stream_broken"):
    assert (record["kind"], record["reason"]) == (
        "request_failed", reason), record


def figures(samples):
    """Median and 99th percentile."""
    samples = sorted(samples)
    return statistics.median(samples), samples[len(samples) * 99 // 100]
