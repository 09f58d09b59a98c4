# SPDX-License-Identifier: ISC

"""Runs a file of conformance cases on pods instead of the usual backends."""

import runpy

import backends
from hands import TOP
from pods import SESSIONS


def on_pods(name):
    backends.BACKENDS[:] = SESSIONS
    runpy.run_path(str(TOP / "regress" / "sandbox" / name),
                   run_name="__main__")
