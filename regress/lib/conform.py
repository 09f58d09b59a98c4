# SPDX-License-Identifier: ISC

"""Runs a file of conformance cases on pods instead of the usual backends: on
pods by a raw exec, or with K8S_BY=egressd on those of sessions."""

import os
import runpy

import backends
from hands import TOP
from pods import BY_EGRESSD, BY_EXEC

KINDS = {"exec": BY_EXEC, "egressd": BY_EGRESSD}


def on_pods(name):
    backends.BACKENDS[:] = KINDS[os.environ.get("K8S_BY", "exec")]
    runpy.run_path(str(TOP / "regress" / "sandbox" / name),
                   run_name="__main__")
