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

"""The harness of Python tests: a line per case, nothing shared between them."""

import functools
import subprocess
import sys
import traceback


class Skip(Exception):
    """This machine cannot run the case; the text says why."""


def run(argv, **kwargs):
    """A command with both outputs as one text, bounded in time."""
    kwargs.setdefault("timeout", 240)
    return subprocess.run([str(a) for a in argv], text=True, errors="replace",
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **kwargs)


class Cases:
    def __init__(self):
        self.list = []

    def case(self, function):
        self.list.append((function.__name__, function))
        return function

    def each(self, values):
        """One case for each value, named function[value]."""
        def decorate(function):
            for value in values:
                name = f"{function.__name__}[{value}]".replace(" ", "_")
                self.list.append((name, functools.partial(function, value)))
            return function
        return decorate

    def main(self):
        failed = 0
        only = sys.argv[1:]
        for name, function in self.list:
            if only and not any(word in name for word in only):
                continue
            try:
                function()
                print(f"ok {name}", flush=True)
            except Skip as why:
                print(f"skip {name}: {why}", flush=True)
            except Exception as error:
                failed += 1
                text = " ".join(str(error).split()) or type(error).__name__
                print(f"not ok {name}: {text[:600]}", flush=True)
                traceback.print_exc(file=sys.stdout)
        sys.exit(1 if failed else 0)
