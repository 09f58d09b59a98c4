# SPDX-License-Identifier: ISC

"""The words that reasons begin with, from common/reasons.h."""

import pathlib
import re

HEADER = pathlib.Path(__file__).resolve().parents[2] / "common" / "reasons.h"
REASONS = set(re.findall(r'#define REASON_\w+\s+"(\w+)"',
                         HEADER.read_text()))


def known(record):
    """The record, whose reason is one that programs can know."""
    word = (record.get("reason") or "").split(":")[0]
    assert not word or word in REASONS, f"reason of {record}"
    return record
