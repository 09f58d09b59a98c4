#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""The cases of sandbox/conform_life.py on pods."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from conform import on_pods  # noqa: E402

on_pods("conform_life.py")
