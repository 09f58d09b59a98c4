#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Words that others depend on: each is spelt once, and documented."""

import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from case import Cases  # noqa: E402
from msgtab import read_header  # noqa: E402
from reasons import HEADER, REASONS  # noqa: E402

CODES_H = TOP / "common" / "codes.h"
CODES = set(re.findall(r'#define CODE_\w+\s+"(\w+)"', CODES_H.read_text()))

cases = Cases()
# Functions and members that take a reason.
TAKES = re.compile(
    r"\b(?:exchange_(?:fail|up_lost|client_gone|no_upstream)|refuse|raw_refuse|"
    r"raw_open|raw_gave_up|conn_not_http|conn_report|report_other|"
    r"up_fail|up_lost|upstream_h2_lost|verdict_deny|deny|session_forget|"
    r"session_lose_engine|audit_break)\(([^;{]*)\);|"
    r"(?:pv_reason|ga_reason|th_reason|cn_mismatch|up_why|mismatch|"
    r"\.reason) = ([^;{]*)[;}]")

# What follows is the code of an error on the control socket.
FAILS = re.compile(r"\b(?:(?:request_fail|waiter_error)\(\w[^,;]*,|"
                   r"(?:answer|reload)_error\(|rq_code = )\s*([^,;]*)")


def sources():
    """Name and text of each source of the product, without comments."""
    for path in sorted(TOP.glob("*/**/*.[ch]")):
        name = path.relative_to(TOP)
        if name.parts[0] not in ("build", "regress"):
            yield str(name), re.sub(r"/\*.*?\*/", " ", path.read_text(),
                                    flags=re.S)


def documented(begin):
    """The words that egressd.sock(5) lists behind this."""
    page, = TOP.glob("*/egressd.sock.5")
    text = page.read_text()
    text = text[text.index(begin):]
    items = re.findall(r"^\.It (?:Cm (.*)|Xo\n((?:\.Cm .*\n)+)\.Xc)$",
                       text[:text.index("\n.El\n")], flags=re.M)
    return re.findall(r"[a-z_]+", " ".join(
        one or more.replace(".Cm", "") for one, more in items))


@cases.case
def reasons_documented():
    """Each once, and none that does not exist."""
    found = documented("The first word of a\n.Cm reason\n")
    assert sorted(found) == sorted(REASONS), set(found) ^ REASONS


@cases.case
def reasons_spelt_once():
    """Whoever gives a reason gives one of the list."""
    for name, text in sources():
        # k8sd has codes of the control socket, and no reasons.
        if name == str(HEADER.relative_to(TOP)) or name.startswith("k8sd/"):
            continue
        for first, second in TAKES.findall(text):
            word = re.search(r'"[a-z_]+[":]', first or second)
            assert not word, f"{name}: {word[0]}"
        for word in REASONS - CODES:
            assert "_" not in word or not re.search(
                rf'"{word}[":]', text), f"{name}: \"{word}\""


@cases.case
def reasons_used():
    """Each is one that something gives."""
    given = set()
    for name, text in sources():
        if name != str(HEADER.relative_to(TOP)):
            given |= set(re.findall(r"\bREASON_(\w+)\b", text))
    assert not {word.upper() for word in REASONS} - given


@cases.case
def codes_documented():
    """Each once, and none that does not exist."""
    found = documented("\n.Ss Error codes\n")
    assert sorted(found) == sorted(CODES), set(found) ^ CODES


@cases.case
def codes_spelt_once():
    """What control clients are told, and what egressctl says to it."""
    for name, text in sources():
        # egressd-box(5) has codes of its own, and not_supported too.
        if name == str(CODES_H.relative_to(TOP)) or \
                name.startswith(("box/hands/", "egressctl/hands/",
                                 "egressctl/mcp/")):
            continue
        for call in FAILS.findall(text):
            assert re.match(r"CODE_|code\b|codes\[|rq->rq_code\b|const ",
                            call), f"{name}: {call}"
        for word in CODES - REASONS:
            assert "_" not in word or not re.search(
                rf'"{word}\\?"', text), f"{name}: \"{word}\""


@cases.case
def codes_used():
    """Each is one that controld gives, some of them on k8sd's word."""
    given = set()
    for name, text in sources():
        if name.startswith("controld/") or name == "common/words.h":
            given |= set(re.findall(r"\bCODE_(\w+)\b", text))
    assert given == {word.upper() for word in CODES}


@cases.case
def words_spelt_once():
    """A constant that has a word has it from common/words.h."""
    constants = re.findall(r'W\((\w+), "', read_header("words.h"))
    assert "URL_HTTP" in constants and "RECORD_GAP" in constants
    for name, text in sources():
        for constant in re.findall(r'\[(\w+)\] = "', text):
            assert constant not in constants, f"{name}: a word for {constant}"


cases.main()
