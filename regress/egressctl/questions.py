#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Regress of what egressctl does for deciders, against a stand-in for the
daemon: questions, answers, what is remembered, context.
"""

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

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from case import Cases  # noqa: E402
from daemon import EGRESSCTL  # noqa: E402
from standin_daemon import StandinDaemon, encode  # noqa: E402
from standin_questions import StandinQuestions  # noqa: E402

HOSTILE = "/\033]0;x\007\033[2J‮​\n7  job  people  0s  1s  GET x é"
ENV = {**{k: v for k, v in os.environ.items() if "SAN" in k},
       "LC_ALL": "C.UTF-8", "TERM": "xterm"}
LIMIT = 20

cases = Cases()


class Bench:
    def __init__(self):
        self.tmp = tempfile.TemporaryDirectory(prefix="questions.")
        self.daemon = StandinQuestions(os.path.join(self.tmp.name, "s"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.daemon.__exit__()
        self.tmp.cleanup()

    def argv(self, *words):
        return [EGRESSCTL, "-s", self.daemon.path, *words]

    def run(self, *words, stdin=b""):
        done = subprocess.run(self.argv(*words), input=stdin, env=ENV,
                              capture_output=True, timeout=LIMIT)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def last(self):
        return json.loads(self.daemon.requests[-1])


class Piped:
    """watch with pipes."""

    def __init__(self, bench, *words):
        self.out = b""
        self.process = subprocess.Popen(
            bench.argv(*words, "watch"), env=ENV, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def say(self, text):
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    def read(self):
        """The next line, in time."""
        while b"\n" not in self.out:
            ready, _, _ = select.select([self.process.stdout], [], [], LIMIT)
            assert ready, f"no line, but {self.out!r}"
            data = os.read(self.process.stdout.fileno(), 65536)
            assert data, f"it ended after {self.out!r}"
            self.out += data
        line, self.out = self.out.split(b"\n", 1)
        return line.decode() + "\n"

    def end(self):
        out, _ = self.process.communicate(timeout=LIMIT)
        return self.process.returncode, (self.out + out).decode()


class Terminal:
    """watch on a terminal of its own, as the foreground of a session."""

    def __init__(self, bench, *words, columns=80, **options):
        self.out = b""
        self.master, slave = pty.openpty()
        self.resize(columns)
        self.before = termios.tcgetattr(self.master)
        self.process = subprocess.Popen(
            bench.argv(*words, "watch"), env=ENV, stdin=slave,
            stderr=slave, **{"stdout": slave, **options},
            preexec_fn=lambda: (os.setsid(),
                                fcntl.ioctl(0, termios.TIOCSCTTY, 0)))
        self.slave = slave      # kept, so that its state can be asked for

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)

    def resize(self, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ,
                    struct.pack("HHHH", 24, columns, 0, 0))

    def is_raw(self):
        return not termios.tcgetattr(self.master)[3] & termios.ICANON

    def more(self):
        ready, _, _ = select.select([self.master], [], [], LIMIT)
        assert ready, f"nothing more after {self.out!r}"
        self.out += os.read(self.master, 65536)

    def until(self, pattern):
        """What it wrote up to this, which is then forgotten."""
        while (match := re.search(pattern.encode(), self.out)) is None:
            self.more()
        text, self.out = self.out[:match.end()], self.out[match.end():]
        return text.decode()

    def press(self, keys):
        os.write(self.master, keys.encode())

    def wait(self):
        return self.process.wait(timeout=LIMIT)

    def stopped(self):
        _, status = os.waitpid(self.process.pid, os.WUNTRACED)
        return os.WIFSTOPPED(status)

    def restored(self):
        return termios.tcgetattr(self.master) == self.before


def no_control(text):
    return all(c == "\n" or c.isprintable() for c in text)


# pending and answer.

@cases.case
def pending_table():
    with Bench() as b:
        assert b.run("pending") == (0, "no question is waiting\n", "")
        b.daemon.ask("7", 30)
        b.daemon.ask("12", 700, session="j", scheme="tcp", host="::1",
                     port=22, method=None, path=None)
        status, out, err = b.run("pending")
    assert (status, err) == (0, ""), err
    assert re.fullmatch(
        r"ID  SESSION  DECIDER  WAITED  LEFT  REQUEST\n"
        r"7   job-42   people   0\.\ds    30s   "
        r"POST https://api\.example\.com:443/v1/x\?y=z\n"
        r"12  j        people   0\.\ds    12m   - tcp://\[::1\]:22\n",
        out), out


@cases.case
def pending_json():
    with Bench() as b:
        b.daemon.ask("7", path=HOSTILE)
        status, out, _ = b.run("-j", "pending")
    assert status == 0
    assert json.loads(out)["pending"][0]["request"]["path"] == HOSTILE


@cases.case
def pending_hostile_text():
    with Bench() as b:
        b.daemon.ask("7", path=HOSTILE, host="e\033[1mvil.test",
                     method="G\rT")
        b.daemon.ask("8", path="/" + "x" * 100000)
        status, out, _ = b.run("pending")
    assert status == 0 and no_control(out), out
    lines = out.splitlines()
    assert len(lines) == 3, out
    assert "G\\rT https://e\\033[1mvil.test:443/\\033]0;x\\007" in out
    # Six words, and nothing in the last can pass for a seventh.
    assert len(lines[1].split()) == 7, out
    assert lines[2].endswith("[+99489 bytes]"), out


@cases.case
def pending_of_wrong_types():
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "s")
        line = encode({"id": 1, "ok": True, "pending": [
            3, None, {"id": 4, "request": "x", "left_ms": "y"},
            {"request": {"port": "22", "host": 5, "path": []}}]})
        with StandinDaemon(path, lambda c, _: c.sendall(line)):
            done = subprocess.run([EGRESSCTL, "-s", path, "pending"], env=ENV,
                                  capture_output=True, timeout=LIMIT)
    assert done.returncode == 0 and b"- -://-:-\n" in done.stdout, done


@cases.case
def answer_forms():
    with Bench() as b:
        for ident in "123":
            b.daemon.ask(ident)
        assert b.run("answer", "1", "allow") == (0, "answered\n", "")
        assert b.last() == {"id": 1, "op": "pending.answer", "pending": "1",
                            "decision": "allow"}
        assert b.run("answer", "-c", "2", "d", "not you") == (
            0, "answered, remembered\n", "")
        assert b.run("answer", "3", "allow", "why not", "-c")[0] == 0
        assert b.daemon.answers == [("1", "allow", False, None),
                                    ("2", "deny", True, "not you"),
                                    ("3", "allow", True, "why not")]


@cases.case
def answer_late():
    with Bench() as b:
        status, out, err = b.run("answer", "1\033", "allow")
        assert (status, out) == (1, ""), out
        assert "no such question: 1\\033 (no_such_question)\n" in err, err
        assert "answered already or has timed out" in err, err
        assert b.run("-j", "answer", "1", "allow")[0] == 1


@cases.case
def answer_usage():
    with Bench() as b:
        for words in (["answer"], ["answer", "1"], ["answer", "1", "maybe"],
                      ["answer", "1", "allow", "a", "b"], ["-c", "pending"],
                      ["pending", "-c"]):
            assert b.run(*words)[0] == 2, words
        assert b.daemon.requests == []


# What is remembered, and context.

@cases.case
def cache_table():
    with Bench() as b:
        status, out, _ = b.run("cache", "show")
        assert status == 0 and out == (
            "SESSION  DECIDER  AGE   DECISION  REQUEST\n"
            "job-42   people   1.5s  allow     - https://h.test:443 (fine)\n"
            "j        people   120m  deny      GET https://h.test:443"
            "/\\033[2Jx\n"), out
        assert b.last() == {"id": 1, "op": "cache.list"}
        b.run("cache", "show", "job-42")
        assert b.last()["session_id"] == "job-42"


@cases.case
def cache_clear():
    with Bench() as b:
        for words, fields in (
                ([], {}), (["job"], {"session_id": "job"}),
                (["job", "h.test"], {"session_id": "job", "host": "h.test"}),
                (["-", "h.test"], {"host": "h.test"})):
            assert b.run("cache", "clear", *words) == (0, "3 forgotten\n", "")
            assert b.last() == {"id": 1, "op": "cache.clear", **fields}


@cases.case
def message_and_metadata():
    with Bench() as b:
        def sent(*words, **options):
            assert b.run(*words, **options) == (0, "", ""), words
            return {k: v for k, v in b.last().items() if k not in "id op"}
        assert sent("message", "s", "user", "fetch é") == {
            "session_id": "s", "role": "user", "content": "fetch é"}
        text = 'two\nlines "\033\n'
        assert sent("message", "s", "user", "-",
                    stdin=text.encode())["content"] == text[:-1]
        assert sent("message", "s", "user", "--", "-x")["content"] == "-x"
        assert sent("metadata", "s", "a=b=c", "d=") == {
            "session_id": "s", "metadata": {"a": "b=c", "d": ""}}


@cases.case
def context_refused_here():
    with Bench() as b:
        for words, stdin in (
                (["message", "s", "user", "-"], b"x\xff"),
                (["message", "s", "user", "-"], b"x\0y"),
                (["message", "s", "user", "-"], b"x" * 70000),
                (["message", "s", "user"], b""),
                (["metadata", "s"], b""), (["metadata", "s", "x"], b""),
                (["metadata", "s", "=x"], b""),
                (["metadata", "s", "a=1", "a=2"], b"")):
            status, out, err = b.run(*words, stdin=stdin)
            assert status == 2 and err, words
        # What escapes make too long is found when it is sent.
        assert b.run("message", "s", "user", "-", stdin=b"\1" * 60000)[0] == 3
        assert b.daemon.requests == []


# watch with pipes.

@cases.case
def watch_lines():
    with Bench() as b:
        for ident in "123456":
            b.daemon.ask(ident)
        status, out, err = b.run("watch", stdin=b"a\nD\ns\nA 4\r\nd\n")
        assert (status, err) == (0, ""), err
        assert b.daemon.answers == [
            ("1", "allow", False, None), ("2", "deny", True, None),
            ("4", "allow", True, None), ("5", "deny", False, None)]
    assert "question 1: session job-42, decider people, rule 2, 60s left\n" \
        "  POST https://api.example.com:443/v1/x?y=z\n" \
        "question 1: allowed\n" in out, out
    for line in ("question 2: denied: remembered\n", "question 3: skipped\n",
                 "question 4: allowed: remembered\n"):
        assert line in out, out


@cases.case
def watch_shows_what_comes():
    with Bench() as b, Piped(b) as w:
        b.daemon.until_watched()
        b.daemon.ask("1")
        assert w.read().startswith("question 1: session")
        assert w.read().startswith("  POST")
        b.daemon.ask("2")
        w.say("a\n")
        assert w.read() == "question 1: allowed\n"
        assert w.read().startswith("question 2: session")
        assert w.read().startswith("  POST")
        w.say("q\n")
        assert w.end() == (0, "")
        assert len(b.daemon.answers) == 1


@cases.case
def watch_line_for_another_question():
    """A line that was meant for a question that has gone in the meantime."""
    with Bench() as b:
        b.daemon.ask("2")
        status, out, err = b.run("watch", stdin=b"a 1\nx\n\nad\nd 2")
        assert status == 0
        assert "question 1: not answered: it is not the one" in out, out
        assert err.count("standard input: a line is one of") == 3, err
        assert b.daemon.answers == [("2", "deny", False, None)]


@cases.case
def watch_cuts_nothing():
    """A long path does not hide its end."""
    path = "/" + "x" * 8000 + "\033/the/end"
    with Bench() as b:
        b.daemon.ask("1", path=path)
        status, out, err = b.run("watch", stdin=b"d\n")
    assert (status, err) == (0, ""), err
    text = "".join(line[2:] for line in out.splitlines()
                   if line.startswith("  "))
    assert text == ("POST https://api.example.com:443" +
                    path.replace("\033", "\\033")), text


@cases.case
def watch_hung_up():
    """Before the first answer for a reason, later because it has ended."""
    with Bench() as b, Piped(b) as w:
        b.daemon.until_watched()
        b.daemon.connections[0].shutdown(socket.SHUT_RDWR)
        assert w.read() == ("egressctl: egressd hung up: it has stopped or "
                            "restarted\n")
        assert w.process.wait(LIMIT) == 3
    with Bench() as b:
        b.daemon.op_pending_list = lambda *_: False
        with Piped(b) as w:
            said = w.read()
            assert "lives in a sandbox" in said, said
            assert w.process.wait(LIMIT) == 3


@cases.case
def watch_gone():
    with Bench() as b, Piped(b) as w:
        b.daemon.ask("1")
        w.read(), w.read()
        b.daemon.withdraw("1")
        assert w.read() == ("question 1: gone: it was answered elsewhere, "
                            "or its session is over\n")
        b.daemon.ask("2", seconds=0.3)
        w.read(), w.read()
        b.daemon.withdraw("2")
        assert w.read() == "question 2: gone: it has timed out\n"


@cases.case
def watch_late_answer():
    with Bench() as b, Piped(b) as w:
        b.daemon.before_answer = lambda r: b.daemon.withdraw(r["pending"])
        b.daemon.ask("1")
        w.read(), w.read()
        w.say("a\n")
        assert w.read() == ("question 1: not answered: no such question: "
                            "1\n")
        b.daemon.before_answer = None
        b.daemon.ask("2")
        assert w.read().startswith("question 2: session")


@cases.case
def watch_json():
    with Bench() as b:
        b.daemon.ask("1", path=HOSTILE)
        status, out, _ = b.run("-j", "watch", stdin=b"A\n")
    assert status == 0
    question, answered = [json.loads(line) for line in out.splitlines()]
    assert question["event"] == "question"
    assert question["question"]["request"]["path"] == HOSTILE
    assert answered == {"event": "allowed", "id": "1",
                        "message": "remembered"}


@cases.case
def watch_not_remembered():
    with Bench() as b:
        b.daemon.keeps = False
        b.daemon.ask("1")
        status, out, _ = b.run("watch", stdin=b"A\n")
        assert b.daemon.answers == [("1", "allow", True, None)]
    assert "1: allowed: the rule says not to remember\n" in out, out


@cases.case
def watch_ends_with_its_input():
    with Bench() as b:
        assert b.run("watch") == (0, "", "")


@cases.case
def watch_refused():
    with tempfile.TemporaryDirectory() as tmp:
        for line, status, text in (
                (encode({"id": 1, "error": {"code": "not_permitted",
                                            "message": "read-only"}}), 1,
                 b"read-only (not_permitted)"),
                (b"x\n", 3, b"not JSON"),
                (encode({"id": 1, "ok": True}), 3, b"does not fit"),
                (encode({"id": 2, "ok": True}), 3, b"does not fit"),
                (encode({"id": 1, "error": 7}), 3, b"does not fit"),
                (b"", 3, b"hung up")):
            path = os.path.join(tmp, "s")
            with StandinDaemon(path, lambda c, _: c.sendall(line)):
                done = subprocess.Popen(
                    [EGRESSCTL, "-s", path, "watch"], env=ENV,
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE)
                err = done.stderr.read()
                assert done.wait(LIMIT) == status and text in err, (line, err)
                done.stdin.close()
                done.stdout.close()
                done.stderr.close()


@cases.case
def watch_of_wrong_types():
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "s")
        line = encode({"id": 1, "ok": True, "version": "v", "pending": [
            3, None, {"id": 4}, {"id": "x" * 70}, {"id": "5"}]})
        sent = []

        def script(connection, _):
            if not sent:
                connection.sendall(line)
            sent.append(1)
            return True

        with StandinDaemon(path, script) as daemon:
            done = subprocess.run([EGRESSCTL, "-s", path, "watch"], env=ENV,
                                  input=b"q\n", capture_output=True,
                                  timeout=LIMIT)
    assert done.returncode == 0, done
    assert done.stdout.decode() == (
        "question 5: session -, decider -, rule -, - left\n  - -://-:-\n"
    ) or done.stdout == b"", done
    assert len(daemon.requests) <= 2


# watch on a terminal.

@cases.case
def terminal_keys():
    with Bench() as b, Terminal(b) as t:
        t.until("no question is waiting, q to quit")
        assert t.is_raw()
        for ident, key in zip("12345", "aAdDs"):
            b.daemon.ask(ident)
            text = t.until(r"remember > ")
            assert f"question {ident}: session" in text, text
            t.press("zx" + key)
            t.until(f"question {ident}: \\w+")
        assert b.daemon.answers == [
            ("1", "allow", False, None), ("2", "allow", True, None),
            ("3", "deny", False, None), ("4", "deny", True, None)]
        t.press("q")
        assert t.wait() == 0 and t.restored()


@cases.case
def terminal_no_typing_ahead():
    """A second press must not allow the next question, unseen."""
    with Bench() as b, Terminal(b) as t:
        t.until("q to quit")
        t.press("aaaa")
        b.daemon.ask("1")
        b.daemon.ask("2")
        t.until("question 1: session")
        t.until("remember > ")
        t.press("daaaaaaaa")
        t.until("question 2: session")
        t.until("remember > ")
        t.press("s")
        t.until("question 2: skipped")
        assert b.daemon.answers == [("1", "deny", False, None)]


@cases.case
def terminal_key_for_what_is_gone():
    """Nor may a key that was for one question allow the one after it."""
    with Bench() as b, Terminal(b) as t:
        b.daemon.ask("1")
        t.until("remember > ")
        os.kill(t.process.pid, signal.SIGSTOP)
        assert t.stopped()
        b.daemon.ask("2", instead_of="1")
        t.press("a")
        os.kill(t.process.pid, signal.SIGCONT)
        t.until("question 2: session")
        t.until("remember > ")
        t.press("s")
        t.until("question 2: skipped")
        assert b.daemon.answers == []


@cases.case
def terminal_hostile_text():
    with Bench() as b, Terminal(b, columns=40) as t:
        b.daemon.ask("1", path=HOSTILE + "z" * 300, host="e\033[2J.test")
        text = t.until("remember > |s skip, q q")
        text = text.replace("\r\033[K", "\n").replace("\r\n", "\n")
        assert no_control(text), text
        assert all(len(line) <= 40 for line in text.split("\n")
                   if not line.startswith("question")), text
        body = "".join(line[2:] for line in text.split("\n")
                       if line.startswith("  "))
        assert body.endswith("z" * 300) and "e\\033[2J.test" in body, text


@cases.case
def terminal_resize():
    with Bench() as b, Terminal(b, columns=200) as t:
        b.daemon.ask("1")
        t.until("remember > ")
        t.resize(30)
        t.process.send_signal(signal.SIGWINCH)
        while not (last := t.until("\r\033\\[K[^\r]{20,29}")):
            pass
        t.press("a")
        out = t.until("question 1: allowed")
        prompts = re.findall(r"\r\x1b\[K([^\r\n]*)", last + out)
        assert all(len(prompt) < 30 for prompt in prompts), (last, out)


@cases.each(["INT", "TERM", "HUP", "QUIT"])
def terminal_signal(name):
    number = getattr(signal, "SIG" + name)
    with Bench() as b, Terminal(b) as t:
        b.daemon.ask("1")
        t.until("remember > ")
        assert t.is_raw()
        t.process.send_signal(number)
        assert t.wait() == -number and t.restored()
        assert b.daemon.answers == []


@cases.case
def terminal_interrupt_key():
    with Bench() as b, Terminal(b) as t:
        b.daemon.ask("1")
        t.until("remember > ")
        t.press("\003")
        assert t.wait() == -signal.SIGINT and t.restored()


@cases.case
def terminal_stop():
    with Bench() as b, Terminal(b) as t:
        b.daemon.ask("1")
        t.until("remember > ")
        # The kernel does not stop the orphan that we are by the key.
        for _ in range(2):
            os.kill(t.process.pid, signal.SIGSTOP)
            assert t.stopped()
            termios.tcsetattr(t.slave, termios.TCSANOW, t.before)
            os.kill(t.process.pid, signal.SIGCONT)
            t.until("remember > ")
            while not t.is_raw():
                t.until("remember > ")
        t.press("a")
        t.until("question 1: allowed")
        t.press("q")
        assert t.wait() == 0 and t.restored()


@cases.case
def terminal_stop_key():
    """In a process group whose session leader waits, as under a shell."""
    shell = ("import os,sys,termios\n"
             "pid=os.fork()\n"
             "if pid==0:\n"
             "  os.setpgid(0,0)\n"
             "  import signal\n"
             "  signal.signal(signal.SIGTTOU, signal.SIG_IGN)\n"
             "  os.tcsetpgrp(0,os.getpid())\n"
             "  signal.signal(signal.SIGTTOU, signal.SIG_DFL)\n"
             "  os.execv(sys.argv[1],sys.argv[1:])\n"
             "import signal\n"
             "signal.signal(signal.SIGTTOU, signal.SIG_IGN)\n"
             "_,s=os.waitpid(pid,os.WUNTRACED)\n"
             "os.tcsetpgrp(0,os.getpgrp())\n"
             "cooked=bool(termios.tcgetattr(0)[3]&termios.ICANON)\n"
             "print('stopped',os.WIFSTOPPED(s),cooked,flush=True)\n"
             "os.tcsetpgrp(0,pid)\n"
             "os.kill(pid,signal.SIGCONT)\n"
             "_,s=os.waitpid(pid,0)\n"
             "os.tcsetpgrp(0,os.getpgrp())\n"
             "print('ended',s,flush=True)\n")
    with Bench() as b:
        argv = b.argv
        b.argv = lambda *words: [sys.executable, "-c", shell, *argv(*words)]
        with Terminal(b) as t:
            b.daemon.ask("1")
            t.until("remember > ")
            t.press("\032")
            assert "stopped True True" in t.until("stopped.*\n")
            t.until("remember > ")
            assert t.is_raw()
            t.press("d")
            t.until("question 1: denied")
            t.press("q")
            assert "ended 0" in t.until("ended.*\n")
            assert t.wait() == 0 and t.restored()


@cases.case
def terminal_reader_gone():
    """Output into a pipe that nobody reads: the terminal is left in order."""
    with Bench() as b:
        read, write = os.pipe()
        with Terminal(b, stdout=write) as t:
            os.close(write)
            b.daemon.until_watched()
            while not t.is_raw():
                pass
            os.close(read)
            b.daemon.ask("1")
            assert t.wait() == -signal.SIGPIPE and t.restored()


@cases.case
def terminal_daemon_gone():
    with Bench() as b, Terminal(b) as t:
        b.daemon.until_watched()
        t.until("q to quit")
        for connection in b.daemon.connections:
            connection.shutdown(2)
        t.until("hung up")
        assert t.wait() == 3 and t.restored()


if __name__ == "__main__":
    cases.main()
