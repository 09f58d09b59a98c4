#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""How the sandbox behaves as a job: exit codes, signals, terminal."""

import fcntl
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from boxlib import (PYTHON, Place, Sandbox, identity,  # noqa: E402
                    run_box, same)
from case import Cases  # noqa: E402
from standin_engine import Engine  # noqa: E402

cases = Cases()
place = Place()
WHO = ("user", "root-r")
PATIENCE_S = 20


@cases.each([0, 1, 3, 124, 125, 200, 255])
def exit_code(code):
    done = run_box(place, "user", "/bin/sh", "-c", f"exit {code}")
    same((done.rc, done.err), (code, ""))


@cases.case
def not_found():
    for argv in (["no-such-command"], ["/no/such/command"]):
        done = run_box(place, "user", *argv)
        same(done.rc, 127)
        assert "No such file" in done.err, done.err


@cases.case
def not_executable():
    path = place.work("user") / "script"
    path.write_text("text")
    path.chmod(0o644)
    same(run_box(place, "user", path).rc, 126)
    same(run_box(place, "user", "/etc").rc, 126)


@cases.each(["HUP", "INT", "QUIT", "KILL", "TERM", "SEGV", "PIPE", "USR1"])
def killed_by(name):
    """A command that dies of a signal makes box die of it."""
    done = run_box(place, "user", "/bin/sh", "-c", f"kill -{name} $$")
    same(done.rc, -getattr(signal, "SIG" + name))


@cases.case
def usage():
    for argv in ([], ["-e", "2"], ["-e", "x"], ["-e", "77", "--", "true"],
                 ["-z"]):
        done = subprocess.run([place.box, *argv], capture_output=True)
        same(done.returncode, 125)
        assert done.stderr, argv


@cases.case
def output_streams():
    done = run_box(place, "user", "/bin/sh", "-c", "echo out; echo err >&2")
    same((done.out, done.err), ("out\n", "err\n"))
    box = Sandbox(place, "user", ["/bin/cat"])
    same(box.finish(b"x" * 300000).out, "x" * 300000)


@cases.each(["HUP", "INT", "QUIT", "TERM", "USR1", "USR2"])
def forwarded(name):
    """What is sent to box reaches the command, which may handle it."""
    box = Sandbox(place, "user", ["/bin/sh", "-c", f"trap 'exit 7' {name}; "
                                  "echo up; while :; do sleep 0.05; done"])
    same(box.proc.stdout.readline(), b"up\n")
    box.proc.send_signal(getattr(signal, "SIG" + name))
    same(box.finish().rc, 7)


@cases.each(WHO)
def box_is_killed(who):
    """Everything in the sandbox goes with it, daemons too."""
    box = Sandbox(place, who, ["/bin/sh", "-c", "trap '' HUP TERM; "
                               "setsid sleep 1000 & echo up; sleep 1000"])
    same(box.proc.stdout.readline(), b"up\n")
    box.proc.kill()
    # The pipe ends when the last process that holds it has ended.
    same(box.finish(timeout=PATIENCE_S).out, "")
    same(box.rc, -signal.SIGKILL)


@cases.case
def daemons_end():
    """What the command leaves behind does not outlive it."""
    done = run_box(place, "user", "/bin/sh", "-c",
                   "setsid sleep 1000 & exit 5")
    same(done.rc, 5)


@cases.case
def orphans_are_reaped():
    done = run_box(place, "user", "/bin/sh", "-c",
                   "for i in 1 2 3 4 5; do (sleep 0.01 &); done; sleep 0.3; "
                   "grep -l '^State:.Z' /proc/[0-9]*/status; echo end")
    same(done.out, "end\n")


@cases.case
def inherited_dispositions():
    """nohup means it, and the mask is the caller's."""
    done = run_box(place, "user", "/bin/grep", "-E", "^Sig(Ign|Blk|Cgt)",
                   "/proc/self/status", wrap=["nohup"])
    masks = dict(line.split(":\t") for line in done.out.splitlines())
    same({k: int(v, 16) & 1 for k, v in masks.items()},
         {"SigBlk": 0, "SigIgn": 1, "SigCgt": 0})


class Terminal:
    """A person at an interactive shell that has the engine's channel."""

    def __init__(self, who="user"):
        self.engine = Engine()
        channel = self.engine.start()
        self.box = f"{place.box} -q -e {channel.fileno()} --"
        self.master, slave = pty.openpty()
        self.text = ""

        def own():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        env = {"PATH": os.environ["PATH"], "PS1": "@", "TERM": "dumb",
               "HOME": str(place.home(who)), "USER": "tester"}
        self.shell = subprocess.Popen(
            ["/bin/bash", "--norc", "--noprofile", "-i"], env=env,
            stdin=slave, stdout=slave, stderr=slave, preexec_fn=own,
            pass_fds=[channel.fileno()], cwd=place.work(who),
            **identity(who))
        os.close(slave)
        channel.close()
        self.expect("@")

    def expect(self, pattern):
        """Read until it appears; what came before is forgotten."""
        end = time.monotonic() + PATIENCE_S
        while True:
            found = re.search(pattern, self.text)
            if found:
                self.text = self.text[found.end():]
                return found
            left = end - time.monotonic()
            ready, _, _ = select.select([self.master], [], [], max(left, 0))
            if not ready:
                raise AssertionError(f"no {pattern!r} in {self.text!r}")
            self.text += os.read(self.master, 4096).decode(errors="replace")

    def type(self, keys):
        os.write(self.master, keys.encode())

    def close(self):
        self.shell.kill()
        self.shell.wait()
        os.close(self.master)
        self.engine.stop()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def python(code, who="user"):
    """As an argument of a shell's command line."""
    path = place.work(who) / f"{abs(hash(code))}.py"
    path.write_text(code)
    path.chmod(0o644)
    return f"{PYTHON} {path}"


@cases.each(WHO)
def interrupt_key(who):
    with Terminal(who) as t:
        t.type(f"{t.box} sh -c 'echo up; exec sleep 1000'\r")
        t.expect(r"\nup\r")
        t.type("\x03")
        t.expect("@")
        t.type("echo code $?\r")
        t.expect(r"\ncode 130\r")


@cases.case
def interrupt_is_not_for_us():
    """What makes the command's connections lives on if the command does."""
    code = python("""
import os, signal, socket
def connect(*_):
    s = socket.create_connection(("192.0.2.1", 443), 10)
    print("got", s.makefile().readline(), flush=True)
signal.signal(signal.SIGINT, connect)
os.write(1, b"up\\n")     # the handler may come before a print is done
while True:
    signal.pause()
""")
    with Terminal() as t:
        t.type(f"{t.box} {code}\r")
        t.expect(r"\nup\r")
        t.type("\x03")
        t.expect(r"got 192.0.2.1 443\r")


@cases.each(WHO)
def stop_key(who):
    """^Z stops the job, fg continues it with the terminal."""
    # It does not read meanwhile, or might get what is meant for the shell.
    code = python("""
import signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCONT])
print("up", flush=True)
signal.sigwait([signal.SIGCONT])
print("got", sys.stdin.readline(), flush=True)
""", who)
    with Terminal(who) as t:
        t.type(f"{t.box} {code}\r")
        t.expect(r"\nup\r")
        t.type("\x1a")
        t.expect(r"Stopped[^@]*@")
        t.type("echo shell is back\r")
        t.expect(r"\nshell is back\r\n@")
        t.type("fg\r")
        t.expect(r"python3")
        t.type("line\r")
        t.expect(r"\ngot line\r")


@cases.case
def editor_stops():
    """Programs in raw mode read ^Z and stop their group themselves."""
    code = python("""
import os, signal, sys
print("up", flush=True)
while True:
    line = sys.stdin.readline()
    if line == "stop\\n":
        os.kill(0, signal.SIGTSTP)
        print("again", flush=True)
    elif line == "end\\n":
        break
""")
    with Terminal() as t:
        t.type(f"{t.box} {code}\r")
        t.expect(r"\nup\r")
        for _ in range(3):
            t.type("stop\r")
            t.expect("Stopped[^@]*@")
            t.type("fg\r")
            t.expect(r"\nagain\r")
        t.type("end\r")
        t.expect("@")
        t.type("echo code $?\r")
        t.expect(r"\ncode 0\r")


@cases.case
def shell_inside():
    """Job control of a shell in the sandbox, which can also be suspended."""
    with Terminal() as t:
        t.type(f"{t.box} env PS1='in:' bash --norc -i\r")
        t.expect("\nin:")
        t.type("sh -c 'echo up; exec sleep 1000'\r")
        t.expect(r"\nup\r")
        t.type("\x1a")
        t.expect("Stopped[^:]*in:")
        t.type("kill -9 %1; wait %1; echo a$((1+1))\r")
        t.expect(r"(?s)\na2\r.*?in:")
        t.type("suspend\r")
        t.expect("Stopped[^@]*@")
        t.type("echo out$((1+1))\r")
        t.expect(r"\nout2\r\n@")
        t.type("fg\r")
        t.expect("bash --norc")
        t.type("echo in$((1+1))\r")
        t.expect(r"\nin2\r")
        t.type("exit 9\r")
        t.expect("@")
        t.type("echo code $?\r")
        t.expect(r"\ncode 9\r")


@cases.case
def terminal_comes_back():
    """To a script, too, which does not take it as a shell would."""
    with Terminal() as t:
        t.type(f"bash -c \"{t.box} env PS1=in: bash --norc -i; "
               "echo asks; read a; echo script got \\$a\"\r")
        t.expect("\nin:")
        t.type("exit\r")
        t.expect(r"\nasks\r")
        t.type("word\r")
        t.expect(r"\nscript got word\r")


@cases.case
def background():
    """Started with &, it is stopped when it reads, and fg brings it back."""
    with Terminal() as t:
        t.type(f"{t.box} sh -c 'read a; echo got $a' &\r")
        t.expect(r"\[1\][^@]*@")
        t.type("until jobs | grep -q Stopped; do sleep 0.05; done; "
               "echo it stop''ped\r")
        t.expect(r"\nit stopped\r\n@")
        t.type("fg\r")
        t.expect("sh -c")
        t.type("line\r")
        t.expect(r"\ngot line\r")


@cases.case
def pipeline():
    """Neighbours in a pipeline keep the terminal: pagers work."""
    with Terminal() as t:
        t.type(f"{t.box} sh -c 'echo one; echo two' | (read a; read b; "
               "echo asks >&2; read c < /dev/tty; echo $a $b $c)\r")
        t.expect(r"\nasks\r")
        t.type("three\r")
        t.expect(r"\none two three\r")


@cases.case
def window_size():
    code = python("""
import os, signal
signal.signal(signal.SIGWINCH, lambda *_: os.write(
    1, b"size %d %d\\n" % os.get_terminal_size()))
os.write(1, b"up\\n")
while True:
    signal.pause()
""")
    with Terminal() as t:
        t.type(f"{t.box} {code}\r")
        t.expect(r"\nup\r")
        fcntl.ioctl(t.master, termios.TIOCSWINSZ,
                    struct.pack("HHHH", 33, 77, 0, 0))
        t.expect(r"\nsize 77 33\r")


@cases.case
def hangup():
    """The terminal goes away: so does the command."""
    with Terminal() as t:
        t.type(f"{t.box} sh -c 'echo up $$; exec sleep 1000'\r")
        t.expect(r"\nup \d+\r")
        pid = int(subprocess.run(
            ["pgrep", "-s", str(t.shell.pid), "-x", "egressd-box"],
            capture_output=True, text=True).stdout.split()[0])
        watch = os.pidfd_open(pid)
        os.close(t.master)
        ready, _, _ = select.select([watch], [], [], PATIENCE_S)
        t.master = os.open("/dev/null", os.O_RDONLY)
        assert ready, "still there"


@cases.case
def terminal_inside():
    """It has a name there, and cannot be typed into."""
    code = python("""
import fcntl, os, sys, termios
def ioctl(request):
    try:
        fcntl.ioctl(0, request, b"x")
        return "typed"
    except OSError as e:
        return e.errno
print("name", os.ttyname(0), os.isatty(1), flush=True)
print("sti", ioctl(termios.TIOCSTI), ioctl(0x5412 + (1 << 31)), flush=True)
fd = os.open("/dev/tty", os.O_RDWR)
master, slave = os.openpty()
print("pty", os.ttyname(slave), flush=True)
""")
    with Terminal() as t:
        t.type(f"{t.box} {code}\r")
        t.expect(r"\nname /dev/console True\r")
        t.expect(r"\nsti 1 ")
        t.expect(r"\npty /dev/pts/0\r")


if __name__ == "__main__":
    try:
        cases.main()
    finally:
        place.remove()
