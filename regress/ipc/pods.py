#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""k8sd alone, with us for controld: what it answers where no cluster has to be
asked, and what it does not take."""

import os
import pathlib
import socket
import sys

sys.dont_write_bytecode = True
TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from case import Cases  # noqa: E402
from channel import C  # noqa: E402
from children import CHILD_FD, Child  # noqa: E402

cases = Cases()


def same(have, want):
    assert have == want, f"{have!r}, expected {want!r}"


@cases.case
def unknown_sandbox():
    """Each has its one answer, and the number is free again."""
    with Child("k8sd") as child:
        control = child.run()
        for _ in range(2):
            control.send("POD_START", number=7, session="s", sandbox="none",
                         variables=b"A=b\0C=\0")
            have = control.receive("POD_DONE")
            same((have["number"], have["ok"], have["code"]),
                 (7, 0, C["POD_ERROR_SANDBOX"]))
            assert b"none" in have["text"], have
        for what in ("LIST", "REAP", "TERMINATE", "HEARTBEAT"):
            control.send("POD_ASK", ticket=9, what=C[f"POD_ASK_{what}"],
                         sandbox="none", session="s")
            have = control.receive("POD_ANSWER")
            same((have["ticket"], have["ok"], have["code"]),
                 (9, 0, C["POD_ERROR_SANDBOX"]))
        control.send("POD_ASK", ticket=10, what=C["POD_ASK_CHECK"],
                     sandbox="none")
        same(control.receive("POD_ANSWER")["code"], C["POD_ERROR_CLUSTER"])


@cases.case
def crossed():
    """Sessions that are over when the message comes."""
    with Child("k8sd") as child:
        control = child.run()
        control.send("POD_STOP", number=7)
        ours, theirs = os.pipe()
        control.send("POD_ATTACH", theirs, number=7)
        os.close(theirs)
        with open(ours, "rb") as file:
            same(file.read(), b"")
        control.send("POD_CHANNEL", number=7, channel=9)
        same(control.receive("POD_CHANNEL_ENDED")["channel"], 9)


@cases.case
def logs():
    with Child("k8sd") as child:
        control = child.run()
        for kind, values, code in (
                ("socket", {}, "POD_ERROR_SANDBOX"),
                ("socket", {"follow": 1}, "POD_ERROR_SANDBOX"),
                ("socket", {"container": 1}, "POD_ERROR_SANDBOX"),
                ("pipe", {}, "POD_ERROR_SUPPORT"),
                ("file", {}, "POD_ERROR_SUPPORT")):
            passed = {"socket": [end.detach() for end in socket.socketpair()],
                      "pipe": os.pipe(),
                      "file": [os.open(os.devnull, os.O_RDONLY),
                               os.open(os.devnull, os.O_WRONLY)]}
            ours, theirs = passed[kind]
            control.send("POD_LOGS", theirs, ticket=3, sandbox="none",
                         session="s", **values)
            same(control.receive("POD_ANSWER")["code"], C[code])
            for pair in passed.values():
                os.close(pair[1])
            with open(ours, "rb") as file:
                same(file.read(), b"")
            for pair in passed.values():
                if pair[0] != ours:
                    os.close(pair[0])


BAD = {
    "number": ("POD_START", {}, "pod 0"),
    "named": ("POD_START", {"number": 1, "named": 2}, "named 2"),
    "open_variables": ("POD_START", {"number": 1, "variables": b"A=b"},
                       "pod 1"),
    "variables": ("POD_START", {"number": 1, "variables": b"A\0"}, "pod 1"),
    "fate": ("POD_STOP", {"fate": 3}, "fate 3"),
    "what": ("POD_ASK", {"what": 5}, "question 5"),
    "dry_run": ("POD_ASK", {"dry_run": 2}, "dry run 2"),
}


@cases.each(BAD)
def bad(which):
    name, values, text = BAD[which]
    with Child("k8sd") as child:
        control = child.run()
        control.send(name, **values)
        child.end(1, text)


# Nothing of ours may be in the way of a child's descriptor.
while os.open(os.devnull, os.O_RDWR) < CHILD_FD:
    pass
cases.main()
