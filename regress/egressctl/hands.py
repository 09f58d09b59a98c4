#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Regress of the commands that reach into a sandbox: a real box behind a
stand-in for the daemon.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from case import Cases  # noqa: E402
from daemon import EGRESSCTL, until  # noqa: E402
from lying_box import DATA, LyingBox, frame  # noqa: E402
from standin_attach import SESSION, StandinAttach  # noqa: E402

ENV = {**{k: v for k, v in os.environ.items() if "SAN" in k},
       "LC_ALL": "C.UTF-8", "TERM": "xterm", "TZ": "UTC",
       "PATH": os.environ["PATH"]}
LIMIT = 60
HOSTILE = "e\033[31m‮\n\tx\\é"

cases = Cases()


class Started(subprocess.Popen):
    """Ended with the case, if not before."""

    def __exit__(self, *unused):
        self.kill()
        super().__exit__(*unused)


class Bench:
    """work is the sandbox's working directory, here is ours."""

    def __init__(self, *options):
        self.tmp = tempfile.TemporaryDirectory(prefix="hands.")
        self.dir = pathlib.Path(self.tmp.name)
        self.work, self.here = self.dir / "work", self.dir / "here"
        self.work.mkdir()
        self.here.mkdir()
        self.daemon = StandinAttach(self.dir / "s", self.work,
                                    options=options)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.daemon.__exit__()
        self.tmp.cleanup()
        if kind is None:
            assert not self.daemon.failures, self.daemon.failures

    def argv(self, *words):
        return [str(EGRESSCTL), "-s", self.daemon.path, *words]

    def start(self, *words, **options):
        return Started(self.argv(*words), cwd=self.here, **{
            "env": ENV, "stdin": subprocess.PIPE, "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE, **options})

    def raw(self, *words, stdin=b"", **options):
        with self.start(*words, **options) as process:
            out, err = process.communicate(stdin, timeout=LIMIT)
        return process.returncode, out, err

    def run(self, *words, **options):
        code, out, err = self.raw(*words, **options)
        return code, out.decode(), err.decode()

    def exec(self, *words, options=(), **more):
        return self.run("exec", *options, SESSION, "--", *words, **more)


class Terminal:
    """A command on a terminal of its own, as the foreground of a session."""

    def __init__(self, bench, *words, **options):
        self.out = b""
        self.master, slave = pty.openpty()
        self.resize(24, 80)
        self.before = termios.tcgetattr(self.master)
        self.process = Started(
            bench.argv(*words), env=ENV, cwd=bench.here, **{
                "stdin": slave, "stdout": slave, "stderr": slave, **options},
            preexec_fn=lambda: (os.setsid(), fcntl.ioctl(
                slave, termios.TIOCSCTTY, 0)))
        self.slave = slave      # kept, so that its state can be asked for

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.__exit__(*unused)
        os.close(self.master)
        os.close(self.slave)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ,
                    struct.pack("HHHH", rows, columns, 0, 0))

    def is_raw(self):
        return not termios.tcgetattr(self.master)[3] & (
            termios.ICANON | termios.ISIG)

    def until(self, pattern):
        """What it wrote up to this, which is then forgotten."""
        while (match := re.search(pattern.encode(), self.out)) is None:
            ready, _, _ = select.select([self.master], [], [], LIMIT)
            assert ready, f"nothing more after {self.out!r}"
            self.out += os.read(self.master, 65536)
        text, self.out = self.out[:match.end()], self.out[match.end():]
        return text.decode()

    def type(self, keys):
        os.write(self.master, keys.encode())

    def wait(self):
        """The status; what is written must not stop it."""
        def drain():
            ready, _, _ = select.select([self.master], [], [], 0)
            if ready:
                self.out += os.read(self.master, 65536)
            return self.process.poll() is not None
        until("it ends", drain)
        return self.process.returncode

    def restored(self):
        return termios.tcgetattr(self.master) == self.before


def harmless(text):
    return all(c in "\n\t" or c.isprintable() for c in text)


# ---- exec ------------------------------------------------------------------

@cases.case
def exec_streams():
    with Bench() as b:
        assert b.exec("sh", "-c", "echo out; echo err >&2; exit 7") == (
            7, "out\n", "err\n")
        assert b.exec("pwd") == (0, f"{b.work}\n", "")
        # Its own words, not a shell's; and no standard input of ours.
        assert b.exec("echo", "$HOME", "*", "") == (0, "$HOME * \n", "")
        assert b.exec("cat", stdin=b"x") == (0, "", "")


@cases.case
def exec_statuses():
    with Bench() as b:
        assert b.exec("sh", "-c", "kill -KILL $$") == (137, "", "")
        assert b.exec("false")[0] == 1
        code, _, err = b.exec("/nonexistent")
        assert code == 125 and "(not_found)" in err, err
        code, out, err = b.exec("sh", "-c", "echo before; sleep 60",
                                options=["-t", "1s"])
        assert (code, out) == (124, "before\n") and "(timeout)" in err, err


@cases.case
def exec_options():
    with Bench() as b:
        (b.work / "d").mkdir()
        assert b.exec("sh", "-c", 'pwd; echo "$A-$B"', options=[
            "-w", "d", "-e", "A=1 2", "-e", "B="]) == (
                0, f"{b.work}/d\n1 2-\n", "")
        # A name alone has the value that it has here.
        assert b.exec("sh", "-c", 'echo "$LANG"', options=["-e", "LANG"],
                      env=ENV | {"LANG": "from here"}) == (
                          0, "from here\n", "")
        # Between the session and the command, too.
        assert b.run("exec", SESSION, "-w", "d", "pwd") == (
            0, f"{b.work}/d\n", "")


@cases.each(["", "-e", "-e A", "-e 1=2", "-t 5", "-t 0s", "-x", "job",
             "job --"])
def exec_usage(words):
    with Bench() as b:
        code, out, err = b.run("exec", *words.split(), *(
            ["job", "--", "true"] if words[:1] == "-" and " " in words
            else []))
        assert (code, out) == (125, "") and err != "", (code, err)
        assert not b.daemon.requests


@cases.case
def exec_input():
    """More than all credit and all buffers, there and back."""
    data = os.urandom(3 << 20)
    with Bench() as b:
        code, out, err = b.raw("exec", "-i", SESSION, "--", "cat", stdin=data)
        assert (code, err) == (0, b"") and out == data
        # A command that does not read its input is none to wait for.
        assert b.exec("true", options=["-i"], stdin=data)[0] == 0


@cases.case
def exec_json():
    with Bench() as b:
        code, out, _ = b.exec("sh", "-c", r"printf 'a\377'; exit 3",
                              options=["-j"])
        lines = [json.loads(line) for line in out.splitlines()]
        assert code == 3 and "".join(
            line["stdout"] for line in lines[:-1]) == "a\uefff", out
        assert lines[-1] == {"exit_code": 3}, out
        code, out, _ = b.exec("sh", "-c", "echo e >&2", options=["-j"])
        assert out == '{"stderr":"e\\n"}\n{"exit_code":0}\n', out
        code, out, _ = b.exec("/nonexistent", options=["-j"])
        assert code == 125 and json.loads(
            out)["error"]["code"] == "not_found", out


@cases.case
def exec_signals():
    with Bench() as b:
        with b.start("exec", SESSION, "--", "sh", "-c",
                     "trap 'exit 3' TERM; echo up; while :; do sleep 0.1; "
                     "done") as p:
            assert p.stdout.readline() == b"up\n"
            p.send_signal(signal.SIGTERM)
            assert p.wait(LIMIT) == 3
        with b.start("exec", SESSION, "--", "sh", "-c",
                     "trap 'echo held' INT; echo up; while :; do sleep 0.1; "
                     "done") as p:
            assert p.stdout.readline() == b"up\n"
            p.send_signal(signal.SIGINT)
            assert p.stdout.readline() == b"held\n"
            p.send_signal(signal.SIGINT)
            assert p.wait(LIMIT) == -signal.SIGINT


@cases.case
def exec_reader_leaves():
    with Bench() as b:
        with b.start("exec", SESSION, "--", "yes") as p:
            assert p.stdout.read(2) == b"y\n"
            p.stdout.close()
            assert p.wait(LIMIT) == -signal.SIGPIPE
            assert p.stderr.read() == b""


@cases.case
def exec_output_full():
    with Bench() as b, open("/dev/full", "wb") as full:
        code, _, err = b.raw("exec", SESSION, "--", "yes", stdout=full)
        assert code == 125 and b"No space left" in err, err


@cases.case
def exec_at_a_terminal():
    """Without -T the command cannot drive it."""
    with Bench() as b, Terminal(
            b, "exec", SESSION, "--", "printf", "%s|\n", HOSTILE) as t:
        text = t.until(r"\|")
        assert "\\033[31m" in text and "\033" not in text, text
        assert "\tx\\é|" in text, text
        assert t.wait() == 0 and t.restored()


# ---- terminals -------------------------------------------------------------

@cases.case
def shell():
    with Bench() as b, Terminal(b, "shell", SESSION) as t:
        until("a raw terminal", t.is_raw)
        t.type("stty size; echo $TERM-$((40 + 2))\r")
        text = t.until("xterm-42")
        assert "24 80" in text, text
        t.resize(30, 100)
        t.type("stty size\r")
        t.until("30 100")
        t.type("exit 5\r")
        assert t.wait() == 5 and t.restored()


@cases.case
def shell_without_a_terminal():
    """A script, or nothing at all; either has an end."""
    with Bench() as b:
        code, out, _ = b.run("shell", SESSION, stdin=b"echo $((6 * 7))\n"
                             b"tty; exit 5\n")
        assert (code, out) == (5, "42\nnot a tty\n"), (code, out)
        code, out, _ = b.run("shell", SESSION, stdin=b"")
        assert (code, out) == (0, ""), (code, out)


@cases.case
def shell_keys():
    """What would be signals are keys of the shell's."""
    with Bench() as b, Terminal(
            b, "exec", "-T", SESSION, "--", "sh", "-c",
            "trap 'echo in''terrupted; cat; exit 4' INT; echo up; "
            "while :; do sleep 0.1; done") as t:
        t.until("up")
        t.type("\x03")
        t.until("interrupted")
        t.type("\x04")
        assert t.wait() == 4 and t.restored()


@cases.each(["TERM", "HUP", "INT", "ABRT", "SEGV"])
def shell_signal(name):
    """The shell is told, or we end: the terminal is as before."""
    number = getattr(signal, "SIG" + name)
    with Bench() as b, Terminal(
            b, "exec", "-T", SESSION, "--", "sh", "-c",
            f"trap '' {name}; echo up; sleep 60") as t:
        t.until("up")
        assert t.is_raw()
        t.process.send_signal(number)
        if name in ("ABRT", "SEGV"):
            assert t.wait() != 0 and t.restored()
            return
        # The second is for us; two at once may be one.
        until("it ends", lambda: t.process.poll() is not None or
              t.process.send_signal(number))
        assert t.wait() == -number and t.restored()


@cases.case
def shell_box_dies():
    with Bench() as b, Terminal(b, "exec", "-T", SESSION, "--", "sh", "-c",
                                "echo up; sleep 60") as t:
        t.until("up")
        until("its box is known", lambda: b.daemon.boxes)
        b.daemon.boxes[0].kill()
        t.until("the sandbox hung up")
        assert t.wait() == 125 and t.restored()


@cases.case
def shell_left():
    """A sandbox that does not end, nor listen, cannot keep the terminal."""
    with Bench() as b, Terminal(b, "exec", "-T", SESSION, "--", "sh", "-c",
                                "stty -echo; echo up; cat") as t:
        t.until("up")
        t.type("a\r~~b\r~c\r")
        assert "~~" not in t.until("~b[^~]*~c")
        t.type("\r~.")
        assert t.wait() == 125 and t.restored()
        t.until("left")


@cases.case
def shell_stopped():
    with Bench() as b, Terminal(b, "exec", "-T", SESSION, "--", "sh", "-c",
                                "echo up; cat; exit 6") as t:
        t.until("up")
        t.process.send_signal(signal.SIGTSTP)
        _, status = os.waitpid(t.process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status) and t.restored()
        t.process.send_signal(signal.SIGCONT)
        until("a raw terminal", t.is_raw)
        t.type("\x04")
        assert t.wait() == 6 and t.restored()


# ---- files -----------------------------------------------------------------

@cases.case
def read_and_write():
    data = os.urandom(2 << 20)
    with Bench() as b:
        assert b.raw("write", SESSION, "d/e/f", stdin=data) == (0, b"", b"")
        assert (b.work / "d/e/f").read_bytes() == data
        assert b.raw("read", SESSION, "d/e/f") == (0, data, b"")
        assert b.run("-j", "write", "-m", "700", SESSION, "g",
                     stdin=b"12") == (0, '{"bytes":2,"created":true}\n', "")
        assert (b.work / "g").stat().st_mode & 0o777 == 0o700
        assert b.run("-j", "read", SESSION, "g") == (
            0, '{"data":"12"}\n{"bytes":2}\n', "")
        assert b.run("write", SESSION, "empty") == (0, "", "")
        assert (b.work / "empty").read_bytes() == b""


@cases.case
def read_errors():
    with Bench() as b:
        (b.work / "d").mkdir()
        assert b.run("read", SESSION, "none") == (
            1, "", "egressctl: read: none: No such file or directory "
            "(not_found)\n")
        code, out, err = b.run("read", SESSION, "d")
        assert (code, out) == (1, "") and "(wrong_type)" in err, err
        code, out, err = b.run("-j", "read", SESSION, "d")
        assert (code, err) == (1, "")
        assert json.loads(out)["error"]["code"] == "wrong_type", out
        with open("/dev/full", "wb") as full:
            (b.work / "big").write_bytes(bytes(1 << 20))
            code, _, err = b.raw("read", SESSION, "big", stdout=full)
            assert code == 3 and b"No space left" in err, err


@cases.case
def read_at_a_terminal():
    with Bench() as b:
        (b.work / "f").write_text(HOSTILE + "|\n")
        with Terminal(b, "read", SESSION, "f") as t:
            text = t.until(r"\|")
            assert "\\033[31m" in text and "\033" not in text, text
            assert t.wait() == 0
        # A pipe gets what is there.
        assert b.run("read", SESSION, "f")[1] == HOSTILE + "|\n"


@cases.case
def write_interrupted():
    """Without the end of its input nothing is written."""
    with Bench() as b:
        (b.work / "f").write_text("before")
        with b.start("write", SESSION, "f") as p:
            p.stdin.write(bytes(200000))
            p.stdin.flush()
            until("box", lambda: b.daemon.boxes)
            p.kill()
            p.wait()
        until("box has ended", lambda: b.daemon.boxes[0].poll() is not None)
        assert [p.name for p in b.work.iterdir()] == ["f"]
        assert (b.work / "f").read_text() == "before"


@cases.case
def write_no_input():
    """A standard input that cannot be read is not an empty one."""
    with Bench() as b:
        (b.work / "f").write_text("before")
        directory = os.open(b.dir, os.O_RDONLY)
        done = subprocess.run(b.argv("write", SESSION, "f"), env=ENV,
                              stdin=directory, capture_output=True,
                              timeout=LIMIT)
        os.close(directory)
        assert done.returncode == 3 and b"Is a directory" in done.stderr, done
        assert (b.work / "f").read_text() == "before"


@cases.case
def edit():
    with Bench() as b:
        (b.work / "f").write_text("one two two")
        assert b.run("edit", SESSION, "f", "one", "1\n") == (0, "", "")
        assert (b.work / "f").read_text() == "1\n two two"
        code, out, err = b.run("edit", SESSION, "f", "two", "2")
        assert (code, out) == (1, "") and "(not_unique)" in err, err
        code, out, _ = b.run("-j", "edit", SESSION, "f", "two", "2")
        assert json.loads(out)["error"]["occurrences"] == 2, out
        assert (b.work / "f").read_text() == "1\n two two"
        # More than a frame holds is refused here.
        code, _, err = b.run("edit", SESSION, "f", "1", "x" * 70000)
        assert code == 3 and "more than 65536 bytes" in err, err


@cases.case
def lists():
    with Bench() as b:
        (b.work / "a").mkdir()
        (b.work / "a" / "x.c").write_text("one\n\ttwo\\\n")
        (b.work / "b.c").write_text("Two\n")
        (b.work / "bin").write_bytes(b"two\0")
        (b.work / "l").symlink_to("a")
        assert b.run("glob", SESSION, "**/*.c")[:2] == (0, "a/x.c\nb.c\n")
        assert b.run("glob", "-w", "a", SESSION, "*")[:2] == (0, "x.c\n")
        assert b.run("-j", "glob", SESSION, "b.c") == (
            0, '{"path":"b.c"}\n{"count":1,"truncated":false}\n', "")
        assert b.run("grep", SESSION, "two") == (
            0, "a/x.c:2:\ttwo\\\n", "egressctl: 1 binary, not searched\n")
        assert b.run("grep", "-i", "-g", "b*", SESSION, "two", ".")[1] == \
            "b.c:1:Two\n"
        lines = b.run("ls", SESSION)[1].splitlines()
        assert [line.split()[-1] for line in lines] == ["a", "b.c", "bin",
                                                        "l"], lines
        assert re.fullmatch(r"-rw-r--r-- +4 \d{4}-\d\d-\d\d \d\d:\d\d b\.c",
                            lines[1]), lines
        assert lines[0][0] == "d" and lines[3][0] == "l", lines
        assert b.run("ls", SESSION, "a")[1].endswith("x.c\n")
        assert b.run("ls", SESSION, "none")[0] == 1
        out = b.run("stat", SESSION, "l")[1]
        assert out.startswith("type      directory\n"), out
        out = b.run("stat", "-l", SESSION, "l")[1]
        assert out.startswith("type      link\n") and \
            out.endswith("target    a\n"), out


@cases.case
def names():
    """Of any bytes: shown so that they can be told apart, and copied."""
    odd = [b"a\n\033[31m", b"\xff\xfe", "\uef80".encode(), b"back\\slash",
           "é ".encode(), b"-r"]
    with Bench() as b:
        for name in odd:
            (b.work / os.fsdecode(name)).write_bytes(name)
            assert b.raw("read", SESSION, "--", name)[1] == name, name
        code, out, _ = b.run("glob", SESSION, "*")
        assert code == 0 and harmless(out), out
        assert sorted(out.splitlines()) == sorted([
            "a\\n\\033[31m", "\\377\\376", "\\356\\276\\200",
            "back\\\\slash", "é ", "-r"]), out
        assert b.run("cp", "-r", f"{SESSION}:.", "got")[0] == 0
        found = {p.name: p.read_bytes() for p in (b.here / "got").iterdir()}
        assert found == {os.fsdecode(n): n for n in odd}, found


@cases.case
def mkdir_and_rm():
    with Bench() as b:
        assert b.run("mkdir", "-m", "700", SESSION, "a/b") == (0, "", "")
        assert (b.work / "a/b").stat().st_mode & 0o777 == 0o700
        assert b.run("-j", "mkdir", SESSION, "a/b") == (
            0, '{"created":false}\n', "")
        code, _, err = b.run("rm", SESSION, "a")
        assert code == 1 and (b.work / "a/b").is_dir(), err
        assert b.run("rm", "-r", SESSION, "a") == (0, "", "")
        assert not (b.work / "a").exists()
        assert b.run("mkdir", "-m", "9", SESSION, "c")[0] == 2


# ---- cp --------------------------------------------------------------------

def tree(path):
    return {str(p.relative_to(path)): p.read_bytes() if p.is_file() else None
            for p in path.rglob("*")}


def plant(path):
    (path / "d" / "e").mkdir(parents=True)
    (path / "d" / "big").write_bytes(os.urandom(1 << 20))
    (path / "d" / "run").write_text("x")
    (path / "d" / "run").chmod(0o755)
    (path / "d" / "e" / "empty").write_text("")


@cases.case
def cp_to():
    with Bench() as b:
        plant(b.here)
        assert b.run("cp", "-r", "d", f"{SESSION}:t") == (0, "", "")
        assert tree(b.work / "t") == tree(b.here / "d")
        assert (b.work / "t" / "run").stat().st_mode & 0o777 == 0o755
        # Into a directory that is there.
        assert b.run("cp", "-r", "d/", f"{SESSION}:t") == (0, "", "")
        assert tree(b.work / "t" / "d") == tree(b.here / "d")
        code, out, _ = b.run("-j", "cp", "d/run", f"{SESSION}:")
        assert code == 0 and json.loads(out) == {
            "files": 1, "bytes": 1, "skipped": 0}, out
        assert (b.work / "run").read_text() == "x"


@cases.case
def cp_from():
    with Bench() as b:
        plant(b.work)
        assert b.run("cp", "-r", f"{SESSION}:d", "t") == (0, "", "")
        assert tree(b.here / "t") == tree(b.work / "d")
        assert (b.here / "t" / "run").stat().st_mode & 0o777 == 0o755
        assert b.run("cp", "-r", f"{SESSION}:d", ".") == (0, "", "")
        assert tree(b.here / "d") == tree(b.work / "d")
        assert b.run("cp", f"{SESSION}:d/run", "new") == (0, "", "")
        assert (b.here / "new").read_text() == "x"
        # A link of ours is followed; what is no file is written to.
        (b.here / "link").symlink_to("new")
        (b.work / "d" / "run").write_text("y")
        assert b.run("cp", f"{SESSION}:d/run", "link") == (0, "", "")
        assert (b.here / "new").read_text() == "y"
        assert b.run("cp", f"{SESSION}:d/run", "/dev/stdout") == (0, "y", "")
        assert b.run("cp", f"{SESSION}:d/run", "/dev/full")[0] == 3


@cases.case
def cp_mistakes():
    with Bench() as b:
        plant(b.here)
        plant(b.work)
        for words in (("a", "b"), (f"{SESSION}:a", f"{SESSION}:b"),
                      ("./job:a", "b")):
            assert b.run("cp", *words)[0] == 2, words
        for words in (("d", f"{SESSION}:x"), (f"{SESSION}:d", "x"),
                      (f"{SESSION}:d/run", "none/x"),
                      ("none", f"{SESSION}:x")):
            assert b.run("cp", *words)[0] == 3, words
        assert b.run("cp", f"{SESSION}:none", "x")[0] == 1
        assert sorted(p.name for p in b.here.iterdir()) == ["d"]


@cases.case
def cp_leaves_out_links():
    with Bench() as b:
        plant(b.here)
        (b.here / "d" / "l").symlink_to("/etc/passwd")
        code, _, err = b.run("cp", "-r", "d", f"{SESSION}:t")
        assert code == 0, err
        assert err == ("egressctl: cp: l: neither file nor directory, left "
                       "out\n"), err
        assert not os.path.lexists(b.work / "t" / "l")


@cases.case
def cp_progress():
    """On a terminal; the line is gone in the end."""
    shown = threading.Event()

    def answer(box, number, call):
        if call["op"] == "stat":
            box.result(number, {"type": "file", "size": 4 << 20,
                                "mode": 0o600})
            return
        box.send(*[frame(number, DATA, bytes(65536))] * 4)
        size = 4
        while not shown.wait(0.1) and size < 2000:
            box.send(frame(number, DATA, b"x"))
            size += 1
        box.result(number, {"bytes": 4 * 65536 + size - 4})

    with Bench() as b:
        b.daemon.__exit__()
        b.daemon = LyingBox(b.dir / "s", answer)
        with Terminal(b, "cp", f"{SESSION}:x", "y") as t:
            t.until(r"256k of 4096k +6%  x")
            shown.set()
            assert t.wait() == 0
            assert t.out.endswith(b"\r\033[K"), t.out


# ---- forward ---------------------------------------------------------------

class Echo:
    """A server inside: sends back, in capitals, when all has come."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,),
                             daemon=True).start()

    def serve(self, connection):
        with connection, contextlib.suppress(OSError):
            data = b""
            while piece := connection.recv(65536):
                data += piece
            connection.sendall(data.upper())


def through(port, data):
    """What comes back; a connection that is refused ends at once."""
    def send():
        with contextlib.suppress(OSError):
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)

    with socket.create_connection(("127.0.0.1", port), LIMIT) as s:
        sender = threading.Thread(target=send, daemon=True)
        sender.start()
        got = b""
        while piece := s.recv(65536):
            got += piece
        sender.join(LIMIT)
        return got


@contextlib.contextmanager
def forwarding(b, port):
    with b.start("forward", SESSION, f"0:{port}") as p:
        line = p.stdout.readline().decode()
        match = re.fullmatch(rf"127\.0\.0\.1:(\d+) leads to port {port} in "
                             r"there\n", line)
        assert match, (line, p.stderr.read() if not line else "")
        yield p, int(match[1])


@cases.case
def forward():
    data = b"abc" * 300000
    with Bench("-F") as b, Echo() as echo, forwarding(b, echo.port) as (
            p, port):
        assert through(port, b"hello") == b"HELLO"
        assert through(port, data) == data.upper()
        # Several at once, of which one has nothing to say.
        with socket.create_connection(("127.0.0.1", port)):
            assert through(port, data) == data.upper()
        assert through(port, b"") == b""
        p.send_signal(signal.SIGINT)
        assert p.wait(LIMIT) == -signal.SIGINT
        assert p.stderr.read() == b""


@cases.case
def forward_refused():
    with Bench("-F") as b, Echo() as echo:
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]
        with forwarding(b, port) as (p, here):
            assert through(here, b"") == b""
            line = p.stderr.readline().decode()
            assert f"forward: port {port}: Connection" in line and \
                "(not_found)" in line, line
            assert p.poll() is None
        before = len(b.daemon.boxes)
        with forwarding(b, echo.port) as (p, here):
            until("its box is known", lambda: len(b.daemon.boxes) > before)
            b.daemon.boxes[-1].kill()
            assert p.wait(LIMIT) == 3
            assert b"the sandbox hung up" in p.stderr.read()
    # Where it is not permitted, nobody is let connect in vain.
    with Bench() as b:
        code, out, err = b.run("forward", SESSION, f"0:{port}")
        assert (code, out) == (1, "") and "forward yes" in err, (out, err)
        code, out, _ = b.run("-j", "forward", SESSION, f"0:{port}")
        assert code == 1 and json.loads(out)["error"]["code"] == "denied", out


@cases.each(["0", "x", "1:0", "70000", ":80", "80:", "1:2:3", "-1:80"])
def forward_ports(ports):
    with Bench() as b:
        assert b.run("forward", SESSION, "--", ports)[0] == 2
        assert not b.daemon.requests


# ---- instructions ----------------------------------------------------------

@cases.case
def instructions():
    with Bench() as b:
        assert b.run("instructions", SESSION) == (0, "", "")
        (b.work / ".agents/skills/deploy").mkdir(parents=True)
        (b.work / ".agents/skills/deploy/SKILL.md").write_text("third\xff")
        (b.work / "AGENTS.md").write_text("first\n")
        (b.work / "CLAUDE.md").write_text("")
        (b.work / "README.md").write_text("none")
        code, out, err = b.run("instructions", SESSION)
        assert (code, err) == (0, ""), err
        parts = dict(re.findall(r"==> (\S+) <==\n(.*?)\n?(?=\n==>|\Z)", out,
                                re.S))
        assert parts == {"AGENTS.md": "first", "CLAUDE.md": "",
                         ".agents/skills/deploy/SKILL.md": "thirdÿ"}, out
        code, out, _ = b.run("-j", "instructions", SESSION)
        found = [json.loads(line) for line in out.splitlines()]
        assert {f["path"]: f["text"] for f in found} == {
            "AGENTS.md": "first\n", "CLAUDE.md": "",
            ".agents/skills/deploy/SKILL.md": "thirdÿ"}, out


cases.main()
