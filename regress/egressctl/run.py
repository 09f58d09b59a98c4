#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Regress of egressctl against a stand-in for the daemon.

EGRESSCTL names the program to test; otherwise it is the one in the build
directory B, or else one is compiled for the occasion.
"""

import json
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from standin_daemon import StandinDaemon, answer, encode

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.join(HERE, "..", "..")
ACK = encode({"id": 1, "ok": True})
CASES = []
LIMIT = 20      # seconds for a case, twice the program's own time-out


class Skip(Exception):
    pass


def case(function):
    CASES.append(function)
    return function


class Result:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err


class Bench:
    """The program, a directory for sockets, and ways to run the one."""

    def __init__(self, directory):
        self.directory = directory
        os.chmod(directory, 0o755)
        self.count = 0
        self.processes = []
        built = os.path.join(os.environ.get("B", ""), "egressctl")
        self.program = os.environ.get("EGRESSCTL") or (
            built if os.path.isfile(built) else self.build())

    def build(self):
        """Its test command links the parser, so make knows better."""
        build = os.path.join(self.directory, "build")
        program = os.path.join(build, "egressctl")
        subprocess.run(["make", "-C", TREE, "B=" + build, program],
                       check=True, stdout=subprocess.DEVNULL)
        return program

    def path(self):
        self.count += 1
        return os.path.join(self.directory, "s%d" % self.count)

    def daemon(self, script=None, greet=None):
        return StandinDaemon(self.path(), script, greet)

    def environment(self, extra):
        env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8",
               "TERM": "xterm"}
        env.update({name: value for name, value in os.environ.items()
                    if name.endswith("SAN_OPTIONS")})
        env.update(extra)
        return env

    def start(self, *words, env=None, **options):
        options.setdefault("stdout", subprocess.PIPE)
        process = subprocess.Popen(
            ["egressctl", *words], executable=self.program,
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env=self.environment(env or {}), **options)
        self.processes.append(process)
        return process

    def close(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()

    def run(self, *words, **options):
        process = self.start(*words, **options)
        out, err = process.communicate()
        return Result(process.returncode, out, err.decode())

    def ask(self, script, *words, **options):
        """Runs a command against a stand-in that follows the script."""
        with self.daemon(script) as daemon:
            return self.run("-s", daemon.path, *words, **options)

    def terminal(self, *words, env=None):
        """Runs a command whose standard output is a terminal."""
        master, slave = pty.openpty()
        process = self.start(*words, env=env, stdout=slave)
        os.close(slave)
        out = b""
        while True:
            try:
                data = os.read(master, 65536)
            except OSError:
                break
            if not data:
                break
            out += data
        err = process.stderr.read()
        process.stderr.close()
        os.close(master)
        return Result(process.wait(), out.replace(b"\r\n", b"\n"),
                      err.decode())


def saying(*chunks):
    """A script that sends these bytes and hangs up."""
    def script(connection, line):
        for chunk in chunks:
            connection.sendall(chunk)
        return False
    return script


def streaming(*records):
    """A script that accepts a follower, sends records and hangs up."""
    return saying(ACK, *[r if isinstance(r, bytes) else encode(r)
                         for r in records])


def refusing(code, message, **more):
    return saying(encode({"id": 1, "error": {
        "code": code, "message": message, **more}}))


def want(result, status, out=None, err=None):
    """Compares; out and err are exact, or patterns if compiled."""
    assert result.status == status, "status %d, stderr %r" % (
        result.status, result.err)
    for name, got, expected in (("stdout", result.out.decode(), out),
                                ("stderr", result.err, err)):
        if expected is None:
            continue
        if isinstance(expected, re.Pattern):
            assert expected.search(got), "%s %r lacks %r" % (
                name, got, expected.pattern)
        else:
            assert got == expected, "%s is %r, not %r" % (
                name, got, expected)


def said(text):
    return re.compile(re.escape(text))


# The command line.

@case
def version(b):
    want(b.run("-V"), 0, re.compile(r"^egressctl [0-9]\S*\n$"), "")


@case
def help_lists_every_command(b):
    for words in (["help"], ["-h"], ["status", "-h"]):
        result = b.run(*words)
        want(result, 0, err="")
        for command in ("status ", "reload ", "log level ", "events ",
                        "pending ", "answer ", "watch ", "cache show ",
                        "cache clear ", "message ", "metadata ", "run ",
                        "test ", "replay ", "verify ", "attack ", "help "):
            assert b"\n  " + command.encode() in result.out, command


@case
def no_arguments_list_commands(b):
    want(b.run(), 2, "", said("\n  status "))


@case
def help_needs_no_daemon(b):
    want(b.run("-s", "/nonexistent/socket", "help"), 0, err="")


@case
def unknown_command_nearest(b):
    want(b.run("statsu"), 2, "", 'egressctl: unknown command "statsu", '
         'did you mean "status"?\n')


@case
def unknown_command_of_another_name(b):
    want(b.run("sessions"), 2, "", 'egressctl: unknown command "sessions", '
         'did you mean "status"?\n')


@case
def unknown_command_far(b):
    want(b.run("frobnicate"), 2, "", 'egressctl: unknown command '
         '"frobnicate", known are: status, reload, log, events, pending, '
         'answer, watch, ask, cache, message, metadata, session, reap, '
         'terminate, heartbeat, logs, cluster, pump, run, exec, shell, read, '
         'write, edit, glob, grep, ls, stat, mkdir, rm, cp, forward, '
         'mount, instructions, mcp, profile, test, replay, verify, attack, '
         'help\n')


@case
def unknown_command_long(b):
    want(b.run("x" * 5000), 2, "", said("known are: status"))


@case
def unknown_word_is_escaped(b):
    want(b.run("\033[2J"), 2, "", said('"\\033[2J"'))


@case
def unknown_option(b):
    want(b.run("-x", "status"), 2, "", said("usage: "))
    want(b.run("mount", "-x"), 2, "", said("usage: egressctl mount "))
    want(b.run("session", "start", "--wrong"), 2, "",
         said("unknown option --wrong\nusage: egressctl session start "))


@case
def empty_word(b):
    want(b.run(""), 2, "", said('unknown command ""'))


@case
def too_many_words(b):
    want(b.run("status", "now"), 2, "", 'egressctl: unknown argument '
         '"now": nothing follows "status"\n')


@case
def missing_word(b):
    want(b.run("log", "level"), 2, "",
         said('missing after "level": error, warn, info, debug, trace\n'))
    want(b.run("events", "session"), 2, "", said(": session ID\n"))
    want(b.run("-j"), 2, "", said("no command given"))


@case
def bad_level(b):
    want(b.run("log", "level", "debgu"), 2, "",
         said('did you mean "debug"?'))


@case
def ambiguous_word(b):
    want(b.run("events", "kind", "session"), 2, "",
         'egressctl: ambiguous argument "session", it may be: '
         'session_started, session_ended, session_attached, '
         'session_detached\n')


@case
def session_twice(b):
    want(b.run("events", "session", "a", "session", "b"), 2, "",
         said("more than one session"))


@case
def abbreviations(b):
    with b.daemon() as daemon:
        want(b.run("-s", daemon.path, "log", "l", "d"), 0,
             "log level debug\n", "")
    assert json.loads(daemon.requests[0]) == {
        "id": 1, "op": "log.level", "level": "debug"}


@case
def options_after_the_command(b):
    with b.daemon() as daemon:
        want(b.run("status", "-j", "-s", daemon.path), 0,
             answer({"id": 1, "op": "status"}).decode(), "")


@case
def options_end(b):
    with b.daemon() as daemon:
        want(b.run("-s", daemon.path, "--", "reload"), 0)
        want(b.run("-s", daemon.path, "reload", "--", "-j"), 2, "",
             said('unknown argument "-j"'))


@case
def run_hides_its_socket(b):
    """Of a directory that the sandbox would see nothing is asked more."""
    inside = os.path.join(b.directory, "inside")
    os.mkdir(inside)
    for words in (["-w", b.directory], ["-x", b.directory],
                  ["-X", inside], ["-x", "/", "-w", "/tmp"]):
        want(b.run("run", "-f", "/nonexistent", "-S", inside, *words, "--",
                   "true"), 125, "", said("would see the control socket"))
    want(b.run("run", "-f", "/nonexistent", "-S", ".", "--", "true",
               cwd=inside), 125, "", said("would see the control socket"))
    want(b.run("run", "-f", "/nonexistent", "-S", "/usr", "--", "true"),
         125, "", said("would see the control socket"))
    want(b.run("run", "-f", "/nonexistent", "-S", inside + "x", "--",
               "true"), 125, "", said("No such file"))


@case
def socket_from_environment(b):
    with b.daemon() as daemon:
        env = {"EGRESSD_SOCKET": daemon.path}
        want(b.run("reload", env=env), 0)
        want(b.run("-s", "/nonexistent", "reload", env=env), 3)


# Answers.

@case
def status_text(b):
    with b.daemon() as daemon:
        result = b.run("-s", daemon.path, "status")
    text = re.sub(rb" \(\d+d \d\dh \d\dm ago\)", b"", result.out)
    want(Result(result.status, text, result.err), 0, """\
version        0.1
started        2026-01-02T03:04:05.678Z
configuration  /etc/egressd.conf
sha256         0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
generation     3
privileged     yes
log level      info
clients        2
audit          /var/log/egressd/audit.log, record 41, followers 1

PROCESS    PID   SESSION
parent     1     -
policyd    21    -
tlsengine  4242  edge

SESSION  KIND   POLICY  STATE    STARTED                   RESTARTS
edge     fixed  coding  running  2026-01-02T03:04:06.001Z  0
""", "")
    assert daemon.requests == [b'{"id":1,"op":"status"}\n']


@case
def status_of_a_full_disk(b):
    for full, expected in ((True, 1), (False, 0), ("yes", 0)):
        script = saying(encode({"id": 1, "ok": True, "audit": {
            "file": "/a", "seq": 365, "followers": 0, "full": full}}))
        result = b.ask(script, "status")
        want(result, 0, said("/a, record 365"), "")
        for words in (b"CANNOT BE WRITTEN", b"requests are refused",
                      b"records are lost"):
            assert result.out.count(words) == expected, result.out


@case
def status_uptime(b):
    started = time.strftime("%Y-%m-%dT%H:%M:%S.000Z",
                            time.gmtime(time.time() - 90061 - 5))
    script = saying(encode({"id": 1, "ok": True, "started_at": started}))
    want(b.ask(script, "status"), 0, said("(1d 01h 01m ago)"), "")


@case
def status_with_little_in_it(b):
    result = b.ask(saying(ACK), "status")
    want(result, 0, said("generation     -\n"), "")
    assert b"PROCESS" not in result.out


@case
def status_with_wrong_types(b):
    script = saying(encode({
        "id": 1, "ok": True, "version": ["x"], "clients": {"a": 1},
        "processes": [3, None, {"role": 1.5, "pid": "x"}],
        "sessions": {"session_id": "y"}, "audit": "none"}))
    want(b.ask(script, "status"), 0, said("1.5"), "")


@case
def status_wide_characters_align(b):
    script = saying(encode({"id": 1, "ok": True, "processes": [
        {"role": "中文", "pid": 1}, {"role": "abcdefgh", "pid": 2}]}))
    want(b.ask(script, "status"), 0,
         said("PROCESS   PID  SESSION\n中文      1    -\n"
              "abcdefgh  2    -\n"), "")


@case
def reload_text(b):
    with b.daemon() as daemon:
        want(b.run("-s", daemon.path, "reload"), 0,
             "configuration loaded, generation 4\n", "")
    assert daemon.requests == [b'{"id":1,"op":"reload"}\n']


@case
def reload_errors_each_on_its_line(b):
    errors = ['/etc/egressd.conf:7: unknown policy "x"',
              "/etc/egressd.conf:9: syntax error\033[2J"]
    script = refusing("bad_configuration", errors[0], errors=errors)
    want(b.ask(script, "reload"), 1, "",
         '/etc/egressd.conf:7: unknown policy "x"\n'
         "/etc/egressd.conf:9: syntax error\\033[2J\n"
         "egressctl: reload: refused (bad_configuration), "
         "nothing was changed\n")


@case
def refusal_json(b):
    line = (b'{"id":1,"error":{"code":"busy","message":"m" , '
            b'"errors":[]}}\n')
    want(b.ask(saying(line), "-j", "reload"), 1, line.decode(), "")


@case
def refusal_text(b):
    want(b.ask(refusing("reload_refused", "recorder refused"), "reload"),
         1, "", "egressctl: reload: recorder refused (reload_refused)\n")


@case
def refusal_hint(b):
    want(b.ask(refusing("not_permitted", "not on a read-only socket"),
               "reload"), 1, "",
         said("not on a read-only socket (not_permitted)\n"
              "egressctl: a read-only socket"))


@case
def refusal_before_the_request(b):
    greet = encode({"id": None, "error": {
        "code": "too_many_clients", "message": "64 clients"}})
    with b.daemon(greet=greet) as daemon:
        want(b.run("-s", daemon.path, "status"), 1, "",
             said("64 clients (too_many_clients)"))


@case
def refusal_of_events(b):
    want(b.ask(refusing("bad_request", "kinds: unknown"), "events"), 1,
         "", said("kinds: unknown (bad_request)"))


# A daemon that is not there, or not well.

@case
def no_socket(b):
    path = b.path()
    want(b.run("-s", path, "status"), 3, "",
         re.compile(re.escape(path) + ": no such socket.*-s"))


@case
def stale_socket(b):
    path = b.path()
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(path)
    want(b.run("-s", path, "status"), 3, "",
         said(path + ": nobody listens on this socket"))


@case
def not_a_socket(b):
    path = b.path()
    open(path, "w").close()
    want(b.run("-s", path, "status"), 3, "", said(path + ": not a socket"))


@case
def no_permission(b):
    options = {"user": 65534, "group": 65534,
               "extra_groups": []} if os.getuid() == 0 else {}
    with b.daemon() as daemon:
        os.chmod(daemon.path, 0o040)
        result = b.run("-s", daemon.path, "status", **options)
    want(result, 3, "", re.compile(
        r"permission denied: the socket has mode 0040, owner \S+ "
        r"\(%d\), group \S+ \(%d\)" % (os.getuid(), os.getgid())))


@case
def path_too_long(b):
    want(b.run("-s", "/" + "x" * 200, "status"), 3, "",
         said("socket path too long: 201 bytes (at most 107)"))


@case
def hung_up_before_an_answer(b):
    want(b.ask(saying(), "status"), 3, "", said("lives in a sandbox"))
    with b.daemon(greet=b"") as daemon:
        want(b.run("-s", daemon.path, "status"), 3, "",
             said("hung up without an answer"))


@case
def hung_up_after_an_answer(b):
    """The daemon ends while a session is waited for: nobody was refused."""
    def script(connection, line):
        if b"session.wait" in line:
            return False
        connection.sendall(encode({"id": 1, "ok": True, "session_id": "s"}))
        return True
    want(b.ask(script, "session", "start"), 3, "s\n",
         said("it has stopped or restarted"))


@case
def hung_up_in_a_line(b):
    want(b.ask(saying(b'{"id":1,'), "status"), 3, "",
         said("hung up in the middle of a line"))


@case
def answer_not_json(b):
    for line in (b"\n", b"hello\n", b"[]\n", b"3\n", b'{"id":1,"ok":true\n',
                 b'{"id":1,"ok":true} {}\n',
                 b'{"id":1,"ok":true,"x":"\x01"}\n',
                 b'{"id":1,"ok":true}\0\n', b'{"id":1,"ok":true,"\\\n'):
        for words in (["status"], ["-j", "status"]):
            want(b.ask(saying(line), *words), 3, "",
                 said("the answer is not JSON"))


@case
def answer_does_not_fit(b):
    for message in ({"id": 2, "ok": True}, {"ok": True},
                    {"id": "1", "ok": True}, {"id": 1}, {"id": 1, "ok": 1},
                    {"id": 1, "ok": False}, {"id": 1, "error": "x"},
                    {"id": 1, "error": {"code": "x"}},
                    {"id": 1, "error": {"code": 1, "message": "x"}}):
        want(b.ask(saying(encode(message)), "status"), 3, "",
             said("does not fit the request"))


@case
def answer_in_pieces(b):
    line = answer({"id": 1, "op": "reload"})
    script = saying(*[line[i:i + 1] for i in range(len(line))])
    want(b.ask(script, "-j", "reload"), 0, line.decode(), "")


def padded(size):
    head, tail = b'{"id":1,"ok":true,"x":"', b'"}\n'
    return head + b"a" * (size - len(head) - len(tail)) + tail


@case
def answer_of_greatest_length(b):
    line = padded(1 << 20)
    want(b.ask(saying(line), "-j", "reload"), 0, line.decode(), "")


@case
def answer_too_long(b):
    want(b.ask(saying(padded((1 << 20) + 1)), "reload"), 3, "",
         said("answer too long: more than 1048576 bytes"))


@case
def answer_deep(b):
    def nested(depth):
        return b'{"id":1,"ok":true,"generation":%s%s}\n' % (
            b"[" * (depth - 1), b"]" * (depth - 1))
    want(b.ask(saying(nested(32)), "reload"), 0, err="")
    want(b.ask(saying(nested(33)), "reload"), 3, "", said("not JSON"))
    want(b.ask(saying(nested(500000)), "reload"), 3, "", said("not JSON"))


@case
def brackets_in_strings_are_not_depth(b):
    line = encode({"id": 1, "ok": True, "log_level": '[{"\\' * 100})
    want(b.ask(saying(line), "log", "level", "warn"), 0, err="")


@case
def request_too_long(b):
    room = 65536 - len('{"id":1,"op":"events.follow","session_id":""}')
    with b.daemon(streaming()) as daemon:
        words = ("-s", daemon.path, "events", "session")
        want(b.run(*words, "x" * (room + 1)), 3, "",
             said("request too long: 65537 bytes (at most 65536)"))
        assert daemon.requests == []
        want(b.run(*words, "x" * room), 3, "", said("hung up"))
        assert len(daemon.requests[0]) == 65537


@case
def output_cannot_be_written(b):
    with b.daemon() as daemon, open("/dev/full", "wb") as full:
        result = b.run("-s", daemon.path, "status", stdout=full)
    assert result.status == 3, result.status
    assert "write failed" in result.err, result.err


# Waiting: these run beside the others, for they take ten seconds.

class Waiting:
    def __init__(self, b):
        self.silent = b.daemon(lambda connection, line: True)
        self.drip = b.daemon(self.dribble)
        self.full, self.fillers = self.stuffed(b.path())
        self.follower = following(b)
        self.began = time.monotonic()
        self.processes = {
            name: b.start("-s", path, "status") for name, path in (
                ("silent", self.silent.path), ("drip", self.drip.path),
                ("backlog", self.full.getsockname()))}

    def dribble(self, connection, line):
        while not self.drip.gone.wait(0.2):
            connection.sendall(b" ")
        return False

    @staticmethod
    def stuffed(path):
        listener, fillers = socket.socket(socket.AF_UNIX), []
        listener.bind(path)
        listener.listen(0)
        while True:
            filler = socket.socket(socket.AF_UNIX)
            filler.setblocking(False)
            fillers.append(filler)
            try:
                filler.connect(path)
            except BlockingIOError:
                return listener, fillers

    def result(self, name):
        process = self.processes[name]
        out, err = process.communicate()
        took = time.monotonic() - self.began
        assert took > 9, "gave up after %.1f s" % took
        return Result(process.returncode, out, err.decode())


@case
def no_answer_in_time(b):
    want(b.waiting.result("silent"), 3, "",
         said("no answer after 10 seconds"))


@case
def bytes_now_and_then_do_not_prolong(b):
    want(b.waiting.result("drip"), 3, "",
         said("no answer after 10 seconds"))


@case
def nobody_accepts(b):
    want(b.waiting.result("backlog"), 3, "",
         said("does not accept connections"))


# Records.

def record(kind, seq=7, session="job-42", **fields):
    return {"seq": seq, "kind": kind, "at": "2026-01-02T03:04:05.678Z",
            "session_id": session, **fields}


def request(**fields):
    return {"id": "r1", "host": "api.github.com", "port": 443,
            "scheme": "https", "protocol": "h2", "method": "GET",
            "path": "/x?y", "request_headers": {"a": "b"}, **fields}


def shown(b, *records, words=(), env=None):
    """The part of each line after its columns."""
    result = b.ask(streaming(*records), "events", *words, env=env)
    want(result, 3, err=said("hung up"))
    return [re.sub(r"^\S+ +\S+ +\S+ +\S+ *", "", line)
            for line in result.out.decode().splitlines()]


@case
def events_request(b):
    with b.daemon(streaming()) as daemon:
        want(b.run("-s", daemon.path, "events"), 3, "", said("hung up"))
        want(b.run("-s", daemon.path, "events", "kind", "gap",
                   "request_d", "gap", "session", "edge"), 3)
        want(b.run("-s", daemon.path, "ev", "s", "-", "k", "name"), 3)
    assert [json.loads(line) for line in daemon.requests] == [
        {"id": 1, "op": "events.follow"},
        {"id": 1, "op": "events.follow", "session_id": "edge",
         "kinds": ["gap", "request_denied"]},
        {"id": 1, "op": "events.follow", "session_id": "-",
         "kinds": ["name_asked"]}]


@case
def events_text(b):
    at = "2026-01-02T03:04:05.678Z  "
    want(b.ask(streaming(
        record("session_started", 1, "edge", policy="coding"),
        record("request_closed", request=request(response_status=200),
               bytes_in=1234, bytes_out=56, reason=None,
               matched_rule={"index": 1, "kind": "allow"}, prev="00"),
        record("request_denied", 1234567, request=request(
            host="evil.test", scheme="http", port=8080, method="POST"),
            reason="default_deny", matched_rule=None),
        record("connection_refused", 9, "a-long-name-of-a-session",
               reason="quota", port=22)), "events"), 3,
        at + "     1  edge              started  policy=coding\n" +
        at + "     7  job-42            closed   "
        "GET     https://api.github.com/x?y               200 "
        "in=1234 out=56 rule=1/allow\n" +
        at + "1234567  job-42            denied   "
        "POST    http://evil.test:8080/x?y                "
        "reason=default_deny\n" +
        at + "     9  a-long-name-of-a-session  refused  "
        "reason=quota port=22\n", "egressctl: egressd hung up: it has "
        "stopped or restarted\n")


@case
def events_json(b):
    lines = b'{"kind" : "x\\u001b", "z":"y"}\n'
    lines += encode(record("gap"))
    want(b.ask(streaming(lines), "-j", "events"), 3, lines.decode())


@case
def events_request_without_its_parts(b):
    assert shown(
        b, record("request_failed", request={}, reason="no_engine"),
        record("request_opened", request=request(
            host="2001:db8::1", port=8443, method=None, path=None)),
        record("request_opened", request=None, reason=None)) == [
            "-       -" + " " * 40 + "reason=no_engine",
            "-       https://[2001:db8::1]:8443", ""]


def ended_request(**fields):
    """As the recorder writes it when a request is over."""
    return request(**{
        "response_status": 200, "response_headers": {},
        "request_body": {"bytes": 0}, "response_body": {"bytes": 9},
        "started_at": "2026-01-02T23:59:59.900Z",
        "finished_at": "2026-01-03T00:00:00.012Z",
        "address": "192.0.2.1", **fields})


@case
def events_bad_request(b):
    """What is known of it, also how it was spoken."""
    never = {"host": "a.test", "port": 443, "protocol": "h2", "method": None}
    assert shown(
        b, record("request_denied", request=ended_request(
            response_status=None, started_at="x"), bytes_in=0, bytes_out=0,
            reason="bad_request", matched_rule=None),
        record("request_denied", request=never, reason="bad_request",
               matched_rule=None)) == [
                   "GET     https://api.github.com/x?y".ljust(49)
                   + "-   reason=bad_request protocol=h2",
                   "h2      a.test:443".ljust(49) + "reason=bad_request"]


@case
def events_way_of_a_request(b):
    rule = {"index": 0, "kind": "allow"}
    url = "GET     https://api.github.com/x?y"
    assert shown(
        b, record("request_opened", request=request()),
        record("request_allowed", request=request(), matched_rule=rule),
        record("request_closed", request=ended_request(), bytes_in=80,
               bytes_out=50123456, reason=None, matched_rule=rule),
        record("request_denied", request=ended_request(
            response_status=None, started_at="x"), bytes_in=0, bytes_out=0,
            reason="default_deny", matched_rule=None)) == [
                url, url.ljust(49) + "rule=0/allow",
                url.ljust(49) + "200 in=80 out=50.1M 112ms rule=0/allow",
                url.ljust(49) + "-   reason=default_deny"]


@case
def events_durations(b):
    def took(finished):
        line, = shown(b, record("request_closed", request=ended_request(
            started_at="2026-01-02T03:00:00.000Z", finished_at=finished)))
        return line[53:]
    assert took("2026-01-02T03:00:09.999Z") == "9999ms"
    assert took("2026-01-02T03:01:00.040Z") == "60.0s"
    for finished in ("2026-01-02T03:00:00.000Z", "2026-01-02T02:59:59.999Z",
                     "2026-01-02", "2026-01-02T03:00:00Z", "", None, 3):
        assert took(finished) == "", finished


@case
def events_counts_of_bytes(b):
    for n, text in ((1, "1"), (9999, "9999"), (10000, "10.0k"),
                    (999949, "999.9k"), (999950, "1.0M"),
                    (2 ** 53, "9.0P"), (1e30, "1000000000000000.0P")):
        line, = shown(b, record("request_closed", request=request(),
                                bytes_in=n))
        assert line.endswith(" in=" + text), line


@case
def events_of_what_is_no_request(b):
    """Names, ports and broken handshakes have a protocol, not a scheme."""
    other = {"host": "evil.test", "port": 53, "protocol": "udp",
             "method": None}
    assert shown(
        b, record("name_asked", request=other),
        record("connection_refused", request={
            **other, "host": "192.0.2.1", "port": 22, "protocol": "tcp"},
            reason="no_rule")) == [
                "udp     evil.test:53",
                "tcp     192.0.2.1:22" + " " * 29 + "reason=no_rule"]


@case
def events_unknown_kind(b):
    assert shown(b, record("moon_phase", phase=0.5, names=["a b", 1],
                           full=True, nothing=None, note="two words",
                           empty="")) == [
        'phase=0.5 names=["a b",1] full=yes note="two words" empty=""']
    want(b.ask(streaming({}), "events"), 3, re.compile(
        r"^- +-  - +- +\n$"))


@case
def events_fields_cannot_be_faked(b):
    assert shown(b, record(
        "request_denied", request=request(path="/ reason=ok rule=1/allow"),
        reason='decider: "no" rule=1/allow', **{"x y": 1})) == [
            "GET     "
            "https://api.github.com/\\040reason=ok\\040rule=1/allow "
            'reason="decider: \\042no\\042 rule=1/allow" x\\040y=1']
    assert shown(b, record("gap", reason="a\u00a0rule=1/allow",
                           request=request(path="/\u3000in=1"))) == [
        r"GET     https://api.github.com/\343\200\200in=1  "
        r'reason="a\302\240rule=1/allow"']


HOSTILE = "\033]0;x\a\r\n\t\x7f\x9b2J\u202eabc\u200b\u2028\\é中"
TAMED = (r"\033]0;x\007\r\n\t\177\302\2332J\342\200\256abc\342\200\213"
         r"\342\200\250" + "\\\\")


@case
def events_escape(b):
    assert shown(b, record("gap", reason=HOSTILE)) == [
        'reason="' + TAMED + 'é中"']
    assert shown(b, record("request_opened", request=request(
        path="/" + HOSTILE))) == [
            "GET     https://api.github.com/" + TAMED +
            r"\303\251\344\270\255"]
    fields = {key: HOSTILE for key in (
        "at", "kind", "session_id", "reason", "seq", "extra", HOSTILE)}
    fields["request"] = {key: HOSTILE for key in (
        "host", "port", "scheme", "method", "path", "response_status")}
    fields["matched_rule"] = {"index": HOSTILE, "kind": HOSTILE}
    fields["tree"] = [HOSTILE]
    out = b.ask(streaming(fields), "events").out.decode()
    assert out.count("\n") == 1
    assert all(c.isprintable() for c in out[:-1]), repr(out)


UNSEEN = ("\u00a0", "\u00ad", "\u034f", "\u115f", "\u180e", "\u200b",
          "\u2028", "\u202e", "\u2060", "\u2066", "\u2800", "\u3000",
          "\u3164", "\ue000", "\ufe0f", "\ufeff", "\uffa0", "\ufff9",
          "\U0001d173", "\U000e0041", "\U000e0100", "\U000f0000")


@case
def events_unseen(b):
    """What a person does not see is shown, in words and in text."""
    for c in UNSEEN:
        seen = "".join(f"\\{byte:03o}" for byte in c.encode())
        line = shown(b, record("gap", reason=f"a{c}b c",
                               request=request(path="/" + c)))
        assert line[0].split() == [
            "GET", f"https://api.github.com/{seen}", f'reason="a{seen}b',
            'c"'], (hex(ord(c)), line)


@case
def events_escape_without_utf8(b):
    assert shown(b, record("gap", reason="é"), env={"LC_ALL": "C"}) == [
        r'reason="\303\251"']


@case
def events_escape_bad_utf8(b):
    line = (b'{"kind":"gap","reason":"\xff\xc0\xaf\xed\xa0\x80'
            b'\xf4\x90\x80\x80\xe4\xb8"}\n')
    assert shown(b, line) == ['reason="%s"' % "".join(
        "\\%03o" % byte for byte in b"\xff\xc0\xaf\xed\xa0\x80"
        b"\xf4\x90\x80\x80\xe4\xb8")]


@case
def events_nul_hides_nothing(b):
    assert shown(b, rb'{"kind":"gap","reason":"a\u0000b","x":"\\u0000"}'
                 b"\n") == ['reason="a\u2400b" x=\\\\u0000']


@case
def events_cut_is_announced(b):
    assert shown(b, record("gap", reason="x" * 5000)) == [
        "reason=" + "x" * 512 + "[+4488 bytes]"]


@case
def events_not_a_record(b):
    result = b.ask(streaming(b"\033[2Jrubbish\n", record("gap", x=1)),
                   "events")
    want(result, 3, re.compile(r"gap +x=1\n$"),
         said("egressctl: not a record: \\033[2Jrubbish\n"))


@case
def events_too_long(b):
    want(b.ask(streaming(record("gap"), b"x" * (1 << 20) + b"\n"),
               "events"), 3, said(" gap "), said("answer too long"))


@case
def events_slow_follower(b):
    want(b.ask(streaming(record("gap", reason="slow_follower")),
               "events"), 3, said("reason=slow_follower"),
         said("not read as fast as they came"))


@case
def events_many(b):
    lines = [encode(record("name_asked", n, name="h%d.test" % n))
             for n in range(20000)]
    result = b.ask(streaming(b"".join(lines)), "-j", "events")
    want(result, 3, b"".join(lines).decode())
    assert len(shown(b, b"".join(lines))) == 20000


def one_record(connection, line):
    connection.sendall(ACK + encode(record("gap", reason="first")))
    return True


def following(b):
    """A follower that has got one record and waits for the next."""
    daemon = b.daemon(one_record)
    process = b.start("-s", daemon.path, "events")
    assert b"reason=first" in process.stdout.readline()
    return daemon, process


def ended(daemon, process):
    err = process.stderr.read()
    process.stdout.close()
    process.stderr.close()
    status = process.wait()
    daemon.__exit__()
    return status, err


@case
def events_are_shown_at_once(b):
    daemon, process = following(b)
    daemon.connections[0].sendall(encode(record("gap", reason="second")))
    assert b"reason=second" in process.stdout.readline()
    process.kill()
    ended(daemon, process)


@case
def events_interrupted_quietly(b):
    daemon, process = following(b)
    process.send_signal(signal.SIGINT)
    assert ended(daemon, process) == (-signal.SIGINT, b"")


@case
def events_end_with_their_reader(b):
    daemon, process = following(b)
    process.stdout.close()      # no further record comes
    assert ended(daemon, process) == (-signal.SIGPIPE, b"")
    assert daemon.gone.wait(LIMIT)


@case
def events_with_no_time_limit(b):
    daemon, process = b.waiting.follower
    assert b.waiting.processes["silent"].wait() == 3
    daemon.connections[0].sendall(encode(record("gap", reason="late")))
    assert b"reason=late" in process.stdout.readline()
    process.kill()
    ended(daemon, process)


# Terminals.

@case
def colour_on_a_terminal(b):
    with b.daemon(streaming(record("request_denied"),
                            record("moon_phase"))) as daemon:
        words = ("-s", daemon.path, "events")
        out = b.terminal(*words).out
        assert b"\033[31mdenied \033[0m" in out, out
        assert out.count(b"\033") == 2, out
        for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            out = b.terminal(*words, env=env).out
            assert b"denied" in out and b"\033" not in out, out
        assert b"\033" not in b.run(*words).out


@case
def json_on_a_terminal(b):
    message = record("gap", reason=HOSTILE + "\U000e0041")
    line = json.dumps(message, ensure_ascii=False).encode() + b"\n"
    with b.daemon(streaming(line)) as daemon:
        out = b.terminal("-s", daemon.path, "-j", "events").out
        assert b.run("-s", daemon.path, "-j", "events").out == line
    assert all(c.isprintable() for c in out.decode()[:-1]), out
    assert json.loads(out) == message, out
    assert "é中" in out.decode()


# Manual pages.

MANUALS = [os.path.join(HERE, "..", "..", *name) for name in (
    ("egressctl", "egressctl.8"), ("controld", "egressd.sock.5"))]


@case
def manuals_are_clean(b):
    if shutil.which("mandoc") is None:
        raise Skip("no mandoc")
    lint = subprocess.run(
        ["mandoc", "-T", "lint", "-W", "warning", *MANUALS],
        capture_output=True, text=True)
    assert lint.returncode == 0, lint.stdout + lint.stderr


def manual_example(path):
    """The Python program of egressd.sock(5), for this socket."""
    with open(MANUALS[1]) as manual:
        displays = re.findall(r"^\.Bd[^\n]*\n(.*?)^\.Ed", manual.read(),
                              re.M | re.S)
    program, = [text for text in displays if text.startswith("import")]
    return program.replace("\\e", "\\").replace("/run/egressd.sock", path)


@case
def manual_example_works(b):
    denied = record("request_denied", request=request(),
                    reason="default_deny")

    def script(connection, line):
        connection.sendall(answer(json.loads(line)))
        if b"events.follow" not in line:
            return True
        connection.sendall(encode(denied))
        return False

    with b.daemon(script) as daemon:
        example = subprocess.run(
            [sys.executable, "-c", manual_example(daemon.path)],
            capture_output=True, text=True)
    assert example.returncode == 0, example.stderr
    assert example.stdout == ("generation 4\n"
                              "job-42 'api.github.com' 'default_deny'\n")
    assert json.loads(daemon.requests[1])["kinds"] == ["request_denied"]


@case
def manual_names_every_kind(b):
    kinds = b.run("events", "kind").err.splitlines()[0].split(": ")[-1]
    for path in MANUALS:
        with open(path) as manual:
            text = manual.read()
        for kind in kinds.split(", "):
            assert re.search(r"Cm %s\b" % kind, text), (path, kind)


def overdue(*unused):
    raise TimeoutError("still waiting after %d seconds" % LIMIT)


def attempt(function, bench):
    name = function.__name__
    signal.alarm(LIMIT)
    try:
        function(bench)
        print("ok", name, flush=True)
        return True
    except Skip as reason:
        print("skip %s: %s" % (name, reason), flush=True)
        return True
    except Exception as error:
        why = str(error).replace("\n", "\\n") or type(error).__name__
        print("not ok %s: %s" % (name, why), flush=True)
        return False
    finally:
        signal.alarm(0)


def start_waiting(bench):
    bench.waiting = Waiting(bench)


def main():
    signal.signal(signal.SIGALRM, overdue)
    slow = (no_answer_in_time, bytes_now_and_then_do_not_prolong,
            nobody_accepts, events_with_no_time_limit)
    cases = [start_waiting, *sorted(CASES, key=lambda f: f in slow)]
    with tempfile.TemporaryDirectory(prefix="egressctl.") as directory:
        bench = Bench(directory)
        try:
            results = [attempt(function, bench) for function in cases]
        finally:
            bench.close()
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
