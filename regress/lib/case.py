# SPDX-License-Identifier: ISC

"""The harness of Python tests: a line per case, nothing shared between them."""

import atexit
import functools
import os
import signal
import subprocess
import sys
import traceback

# A shell lets what it runs in the background ignore these, and whatever that
# starts; a script that a case runs could then not even catch them.
for number in (signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)


class Skip(Exception):
    """This machine cannot run the case; the text says why."""


def run(argv, **kwargs):
    """A command with both outputs as one text, bounded in time."""
    kwargs.setdefault("timeout", 240)
    return subprocess.run([str(a) for a in argv], text=True, errors="replace",
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **kwargs)


ended = []      # with this status, if all cases were run


@atexit.register
def leave():
    """The last of what is done at the end.  Python would go on and take the
    libraries away from threads that are in the middle of TLS, and at times die
    of that."""
    if ended:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ended[0])


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
        ended.append(1 if failed else 0)
        sys.exit(ended[0])
