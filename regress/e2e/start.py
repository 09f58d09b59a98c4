#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""How egressd is started, what it says when it cannot, how it stops."""

import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases, Skip  # noqa: E402
from daemon import (BUILD, POLICY, TOP, WAIT_S, Daemon, alive,  # noqa: E402
                    until)
from msgtab import VERSION  # noqa: E402
from origin import authority  # noqa: E402

cases = Cases()

FIVE = """policy "p" {
	alow host "a.example.com"
	allow host "*.com"
	allow host "a.example.com" port 0
	allow host "a.example.com" method get
	decide "nobody"
}
"""


def egressd(*args, **kwargs):
    """Run to its end: status, standard output, standard error."""
    kwargs = {"cwd": "/", "timeout": WAIT_S, "stdin": subprocess.DEVNULL,
              **kwargs}
    done = subprocess.run([str(BUILD / "egressd"), *map(str, args)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, **kwargs)
    return done.returncode, done.stdout, done.stderr


@contextlib.contextmanager
def prepared(conf=POLICY, **kwargs):
    """A daemon's directory; nothing is started, all is ended."""
    daemon = Daemon(conf, **kwargs)
    try:
        yield daemon
    finally:
        end(daemon)


def pid_file(daemon):
    return daemon.dir / "egressd.pid"


def end(daemon):
    """Also one that left the terminal, which only its pid file knows."""
    with contextlib.suppress(OSError, ValueError):
        pid = int(pid_file(daemon).read_text())
        link = os.readlink(f"/proc/{pid}/exe")
        if link == str(BUILD / "egressd"):
            os.kill(pid, signal.SIGTERM)
            until("it stops", lambda: not alive(pid))
    daemon.end()


def background(daemon, *args, **kwargs):
    """Start it as an operator does, without -d."""
    return egressd("-f", daemon.conf, "-s", daemon.socket, *args, **kwargs)


@cases.case
def check():
    """-n reports all mistakes; -nv prints what parses to the same print."""
    with tempfile.TemporaryDirectory() as tmp:
        path = pathlib.Path(tmp) / "egressd.conf"
        path.write_text(FIVE)
        path.chmod(0o600)
        status, out, err = egressd("-n", "-f", path)
        lines = err.splitlines()
        assert (status, out, len(lines)) == (1, "", 5), (status, out, err)
        for n, line in enumerate(lines):
            assert line.startswith(f"{path}:{n + 2}: "), line
        shutil.copyfile(TOP / "etc/egressd.conf", path)
        assert egressd("-n", "-f", path) == (0, "", "configuration OK\n")
        status, first, err = egressd("-nv", "-f", path)
        assert (status, err) == (0, "") and first, err
        path.write_text(first)
        assert egressd("-nv", "-f", path) == (0, first, "")
        assert sorted(p.name for p in path.parent.iterdir()) == [path.name]


@cases.each(["-x", "-f", "-s", "word", "-n word", "-d -- word"])
def usage(args):
    status, out, err = egressd(*args.split())
    assert (status, out) == (2, ""), (status, out, err)
    assert "usage: egressd" in err, err


@cases.case
def relative_socket():
    with prepared() as daemon:
        status, _, err = egressd("-d", "-f", daemon.conf, "-s", "x.sock")
        assert status == 2 and "x.sock: not an absolute path" in err, err


def refused(daemon, *texts):
    """In the foreground and in the background: status 1, and why."""
    for flags in (("-d",), ()):
        status, out, err = background(daemon, *flags)
        assert (status, out) == (1, ""), (flags, status, out, err)
        for text in texts:
            assert str(text) in err, (flags, text, err)
        assert not daemon.socket.exists() and not pid_file(daemon).exists()


@cases.case
def missing_configuration():
    with prepared() as daemon:
        daemon.conf.unlink()
        refused(daemon, daemon.conf, "No such file or directory")


@cases.case
def bad_configuration():
    with prepared() as daemon:
        daemon.conf.write_text("bogus\nlog level none\n")
        refused(daemon, f"{daemon.conf}:1: ", f"{daemon.conf}:2: ")


@cases.case
def writable_configuration():
    with prepared() as daemon:
        for mode in (0o620, 0o602):
            daemon.conf.chmod(mode)
            refused(daemon, daemon.conf, "writable by group or others")


@cases.case
def unreadable_configuration():
    """root reads everything; anybody else is told."""
    with tempfile.TemporaryDirectory() as tmp:
        them = {}
        if os.geteuid() == 0:
            them = {"user": 65534, "group": 65534, "extra_groups": []}
            os.chmod(tmp, 0o755)
            if not runs_as(them):
                raise Skip("the build tree is closed to other users")
        path = pathlib.Path(tmp) / "egressd.conf"
        path.write_text(POLICY)
        path.chmod(0o000)
        status, _, err = egressd("-n", "-f", path, **them)
        assert status == 1 and f"{path}: Permission denied" in err, err


def runs_as(them):
    try:
        return egressd("-x", **them)[0] == 2
    except PermissionError:
        return False


@cases.case
def included():
    """A file beside the configuration is part of it, errors too."""
    with prepared('include "part.conf"\n') as daemon:
        part = daemon.dir / "part.conf"
        part.write_text(POLICY)
        part.chmod(0o600)
        daemon.start()
        assert set(daemon.settle()) >= {"edge", "other"}
        assert daemon.stop() == 0
        part.write_text("\nbogus\n")
        refused(daemon, f"{part}:2: ")


@cases.case
def bad_audit_file():
    """What only a child finds out is told as well, whatever the log level."""
    for head in ("", "log level error\n"):
        with prepared(head + POLICY) as daemon:
            daemon.audit.write_text("precious\n")
            refused(daemon, "recorder", daemon.audit,
                    "last line is not a record")
            assert daemon.audit.read_text() == "precious\n"


@cases.case
def missing_key():
    with prepared(POLICY + 'decider "d" webhook { url "https://x.test/" '
                  'key file "/nonexistent/key" }\n') as daemon:
        lines = len(daemon.conf.read_text().splitlines())
        refused(daemon, f"{daemon.conf}:{lines}: ", "/nonexistent/key",
                "No such file")


def with_files(daemon, **given):
    """A session with all the files that one can have, some of them given."""
    root = authority()
    path = {"all": root.cert, "trust": root.cert, "cert": root.cert,
            "key": root.key, "directory": daemon.dir / "trust", **given}
    daemon.write(f"""upstream trust file "{path['all']}"
policy "p" {{ }}
session "edge" {{ listen on 127.0.0.1 port 15001  policy "p"
    ca certificate "{path['cert']}" key "{path['key']}"
    upstream trust file "{path['trust']}"
    trust directory "{path['directory']}" }}
""")
    lines = daemon.conf.read_text().splitlines()
    return lines.index('policy "p" { }')


@cases.each(["all", "trust", "cert", "key", "directory"])
def missing_of_session(what):
    """Nobody starts with a CA or a trust that is not the one written."""
    with prepared() as daemon:
        missing = daemon.dir / "none" / "file"
        line = with_files(daemon, **{what: missing})
        line += 0 if what == "all" else 2
        refused(daemon, f"{daemon.conf}:{line}: ", missing.parent,
                "No such file")
        with_files(daemon)
        daemon.start()
        ca = (daemon.dir / "trust" / "ca.pem").read_text()
        assert ca == authority().cert.read_text(), ca


@cases.case
def engine_does_not_start():
    """It is not ready for ever after, and says why."""
    with prepared() as daemon:
        with_files(daemon, key=authority("other").key)
        refused(daemon, "session edge: CA: CA key does not belong to the CA ",
                str(authority("other").key))


@contextlib.contextmanager
def own_programs():
    """A copy of the programs, for a case that replaces some of them."""
    with tempfile.TemporaryDirectory(prefix="egressd-own.") as tmp:
        tree = pathlib.Path(tmp)
        tree.chmod(0o755)
        for name in ("egressd", "egressctl"):
            shutil.copy2(BUILD / name, tree)
        shutil.copytree(BUILD / "libexec", tree / "libexec")
        yield tree


def upgrade(tree, name):
    """The same program, of another version."""
    path = tree / "libexec" / f"egressd-{name}"
    new = path.read_bytes().replace(VERSION.encode(), b"egressd 9.9")
    assert new != path.read_bytes() and len(VERSION) == len("egressd 9.9")
    path.with_suffix(".new").write_bytes(new)
    path.with_suffix(".new").chmod(0o755)
    path.with_suffix(".new").rename(path)


@cases.case
def other_version():
    """A child of another version does not come up, and says why."""
    with own_programs() as tree:
        upgrade(tree, "recorder")
        with prepared(program=tree / "egressd") as daemon:
            daemon.popen()
            assert daemon.wait() == 1
            assert "recorder: this program is of egressd 9.9, and who " \
                f"started it of {VERSION}: restart the daemon" in \
                daemon.log(), daemon.log()


@cases.case
def upgraded_under_way():
    """Engines of another version: nobody has a session by one, whoever wants
    one is told why, and what ran before goes on."""
    with own_programs() as tree, \
            prepared(program=tree / "egressd") as daemon:
        before = daemon.start().settle()
        upgrade(tree, "tlsengine")
        done = subprocess.run(
            [tree / "egressctl", "-s", daemon.socket, "run", "--", "true"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=WAIT_S, cwd=tree)
        assert done.returncode == 125 and "the engine is of another version " \
            "than the running egressd: restart the daemon" in done.stderr, done
        os.kill(before["edge"], signal.SIGKILL)
        until("the log tells", lambda: "tlsengine: this program is of egressd "
              "9.9" in daemon.log())
        after = daemon.processes()
        assert {name: pid for name, pid in after.items() if name != "edge"} \
            == {name: pid for name, pid in before.items() if name != "edge"}


@cases.each(["dies", "is_silent"])
def weigher(how):
    """Nobody says whether the CA of a new session is good: then it is not, in
    time, and what ran before goes on."""
    with own_programs() as tree, \
            prepared(program=tree / "egressd") as daemon:
        with_files(daemon)
        before = daemon.start().settle()
        new = tree / "new"
        new.write_text("#!/bin/sh\n" + ("exit 3\n" if how == "dies" else
                                       "exec sleep 60\n"))
        new.chmod(0o755)
        new.rename(tree / "libexec" / "egressd-tlsengine")
        answer = daemon.ask("reload")
        assert answer["error"]["code"] == "reload_refused" and \
            "could not be weighed" in answer["error"]["message"], answer
        assert daemon.settle() == before
        assert daemon.ask("status")["generation"] == 1


NOBODY = 65534


def for_root():
    if os.geteuid() != 0:
        raise Skip("only root has to be careful")


@cases.case
def fewest_uids():
    """As many as egressd.conf(5) asks for."""
    for_root()
    with Daemon("uids 61200 - 61209\n" + POLICY, head=False) as daemon:
        daemon.settle()
        assert daemon.stop() == 0


@cases.each(["symbolic", "hard"])
def pid_file_elsewhere(kind):
    """What stands in the place of the pid file is left as it is."""
    with prepared() as daemon:
        precious = daemon.dir / "precious"
        precious.write_text("precious")
        if kind == "symbolic":
            pid_file(daemon).symlink_to(precious)
        else:
            pid_file(daemon).hardlink_to(precious)
        for flags in (("-d",), ()):
            status, _, err = background(daemon, *flags)
            assert status == 1 and f"{pid_file(daemon)}: " in err, err
            assert precious.read_text() == "precious"
            assert pid_file(daemon).is_symlink() == (kind == "symbolic")
            assert not daemon.socket.exists()


def unsafe(daemon, kind):
    """A directory to which somebody else can lead root."""
    place = daemon.dir / kind
    place.mkdir()
    inner = place / "inner"
    if kind == "owned":
        inner.mkdir()
        os.chown(inner, NOBODY, NOBODY)
        return inner, inner
    if kind == "above":
        inner.mkdir()
        os.chown(place, NOBODY, NOBODY)
        return inner, place
    if kind == "writable":
        place.chmod(0o777)
        return place, place
    place.chmod(0o1777)
    target = daemon.dir / "target"
    target.mkdir()
    inner.symlink_to(target)
    os.chown(inner, NOBODY, NOBODY, follow_symlinks=False)
    return inner, inner


@cases.each(["owned", "above", "writable", "link"])
def unsafe_place(kind):
    """Root puts no socket, no trust and no records where others have their
    hands."""
    for_root()
    with prepared() as daemon:
        place, named = unsafe(daemon, kind)
        with_files(daemon, directory=place)
        refused(daemon, f"{daemon.conf}:", f"{named}: ", "root leaves no")
        with_files(daemon, directory=place / "trust")
        refused(daemon, f"{daemon.conf}:", f"{named}: ", "root leaves no")
        with_files(daemon)
        safe, daemon.socket = daemon.socket, place / "egressd.sock"
        refused(daemon, daemon.socket, f"{named}: ", "root leaves no")
        daemon.socket = safe
        daemon.audit = place / "audit.log"
        with_files(daemon)
        refused(daemon, f"audit file {daemon.audit}: {named}: ",
                "root leaves no")
        assert list(place.iterdir()) == []


@cases.each(["theirs", "hard", "symbolic"])
def audit_file_put_there(kind):
    """In a directory where all make files, one that is not root's own."""
    for_root()
    with prepared() as daemon:
        common, target = daemon.dir / "common", daemon.dir / "target"
        common.mkdir()
        common.chmod(0o1777)
        target.write_text("")
        daemon.audit = common / "audit.log"
        if kind == "theirs":
            daemon.audit.write_text("")
            os.chown(daemon.audit, NOBODY, NOBODY)
        elif kind == "hard":
            daemon.audit.hardlink_to(target)
        else:
            daemon.audit.symlink_to(target)
        daemon.write(POLICY)
        refused(daemon, f"audit file {daemon.audit}: ")
        assert target.read_text() == ""
        daemon.audit.unlink()
        daemon.start()
        daemon.verified()
        assert daemon.stop() == 0


DECIDER = """decider "d" webhook {{ url "https://x.example/" key file "{}" }}
policy "open" {{ decide "d" timeout 1s }}
session "edge" {{ listen on 127.0.0.1 port 15001 policy "open" }}
"""


@cases.each(["all", "trust", "cert", "key", "decider"])
def file_by_a_link(what):
    """A link of another user's does not lead root to a file of root's; to one
    of that user's it does, and so does a link of root's.  A secret is root's
    own, whatever leads to it."""
    for_root()

    def name(path):
        if what == "decider":
            daemon.write(DECIDER.format(path))
        else:
            with_files(daemon, **{what: path})

    with prepared() as daemon:
        root = authority()
        home, theirs = daemon.dir / "home", daemon.dir / "home" / "theirs"
        link, target = home / "link", daemon.dir / "target"
        home.mkdir()
        text = "sesame\n" if what == "decider" else \
            (root.key if what == "key" else root.cert).read_text()
        for copy in (theirs, target):
            copy.write_text(text)
            copy.chmod(0o600)
        os.chown(theirs, NOBODY, NOBODY)
        for at in (target, "../target", daemon.dir / "home" / ".." / "target"):
            link.symlink_to(at)
            os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
            name(link)
            refused(daemon, f"{daemon.conf}:", f"{link}: ",
                    f"a link of uid {NOBODY}")
            link.unlink()
        for owner, at in ((NOBODY, theirs), (0, target)):
            link.symlink_to(at)
            os.chown(link, owner, owner, follow_symlinks=False)
            name(link)
            if owner != 0 and what in ("key", "decider"):
                refused(daemon, f"{daemon.conf}:", f"{link}: ",
                        f"belongs to uid {NOBODY}")
            else:
                daemon.start()
                assert daemon.stop() == 0
            link.unlink()


@cases.case
def safe_place():
    """A link of root's own, and a directory that is everybody's and sticky."""
    for_root()
    with prepared() as daemon:
        common, link = daemon.dir / "common", daemon.dir / "link"
        common.mkdir()
        common.chmod(0o1777)
        link.symlink_to("common/../common")
        with_files(daemon, directory=f"{link}/trust//")
        daemon.args[daemon.args.index("-s") + 1] = f"{link}/egressd.sock"
        daemon.start()
        assert (common / "trust" / "ca.pem").exists()
        assert (common / "egressd.pid").exists()
        assert daemon.stop() == 0
        assert not (common / "egressd.pid").exists()


@cases.case
def started_at_once():
    """Whoever starts has the lock first; nobody else clears the socket."""
    with prepared() as daemon, open(pid_file(daemon), "w",
                                    encoding="ascii") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(str(daemon.socket))
        status, _, err = background(daemon, "-d")
        assert status == 1 and "another egressd serves it" in err, err
        assert daemon.socket.exists() and pid_file(daemon).exists()


@cases.case
def inherited_descriptors():
    """A lock that the caller holds is not held by the daemon too."""
    with prepared() as daemon, notified(daemon) as (sock, env):
        with open(daemon.dir / "lock", "w", encoding="ascii") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            daemon.popen(pass_fds=[held.fileno()], env=env)
            assert sock.recv(64) == b"READY=1"
        with open(daemon.dir / "lock", "w", encoding="ascii") as free:
            fcntl.flock(free, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert daemon.stop() == 0


@cases.case
def no_place_for_the_socket():
    with prepared() as daemon:
        daemon.socket = daemon.dir / "none" / "egressd.sock"
        refused(daemon, daemon.socket, "No such file or directory")


@cases.case
def stale_socket():
    """What a crash left behind is in nobody's way."""
    with prepared() as daemon:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(str(daemon.socket))
        daemon.start()
        assert daemon.ask("status")["ok"]
        assert daemon.stop() == 0


WAITER = """
import errno, os, socket, sys
print("waiting", flush=True)
while True:
    with socket.socket(socket.AF_UNIX) as sock:
        error = sock.connect_ex(sys.argv[1])
    if error not in (errno.ENOENT, errno.ECONNREFUSED):
        break
sys.exit(os.strerror(error) if error else 0)
"""


@cases.case
def waited_for():
    """Whoever waits for the socket finds none, or nobody who serves it, until
    it is served: never one that is not yet its own."""
    with prepared(user="nobody") as daemon:
        for _ in range(8):
            waiter = subprocess.Popen(
                ["/usr/bin/python3", "-c", WAITER, str(daemon.socket)],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True,
                user="nobody", extra_groups=[])
            try:
                assert waiter.stdout.readline()
                daemon.start()
                said = waiter.communicate(timeout=WAIT_S)[1]
                assert waiter.returncode == 0, said
            finally:
                waiter.kill()
                waiter.communicate()
            assert daemon.stop() == 0


@cases.case
def in_the_background():
    """Status 0 once it is ready, not before: it answers at once."""
    with prepared() as daemon:
        status, out, err = background(daemon)
        assert (status, out, err) == (0, "", ""), (status, out, err)
        pids = daemon.processes()
        assert pid_file(daemon).read_text().strip() == str(pids["parent"])
        assert os.readlink(f"/proc/{pids['parent']}/cwd") == "/"
        for fd in (0, 1, 2):
            assert os.readlink(
                f"/proc/{pids['parent']}/fd/{fd}") == "/dev/null"
        assert os.getsid(pids["parent"]) == pids["parent"]
        status, _, err = background(daemon)
        assert status == 1 and "another egressd serves it" in err, err
        assert daemon.settle()["parent"] == pids["parent"]
        os.kill(pids["parent"], signal.SIGTERM)
        for name, pid in pids.items():
            until(f"{name} ends", lambda: not alive(pid))
        assert not daemon.socket.exists() and not pid_file(daemon).exists()


@cases.case
def standard_error_closes():
    """Whoever reads what the command says sees the end of it."""
    with prepared() as daemon:
        process = subprocess.Popen(
            [str(BUILD / "egressd"), "-f", str(daemon.conf), "-s",
             str(daemon.socket)], stdin=subprocess.DEVNULL, cwd="/",
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said, _ = process.communicate(timeout=WAIT_S)
        assert (process.returncode, said) == (0, b""), said
        assert daemon.ask("status")["ok"]


@cases.each(["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def closed(what):
    """Started with standard descriptors closed, in both ways."""
    with prepared() as daemon:
        for flags in ("", "-d"):
            program = subprocess.Popen(
                ["/bin/sh", "-c", f'exec "$@" {what}', "sh",
                 str(BUILD / "egressd"), "-f", str(daemon.conf), "-s",
                 str(daemon.socket), *flags.split()],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, cwd="/")
            until("pid file", lambda: pid_file(daemon).exists() and
                  pid_file(daemon).read_text().strip())
            pids = daemon.settle()
            if flags == "":
                assert program.wait(WAIT_S) == 0
            os.kill(pids["parent"], signal.SIGTERM)
            assert program.wait(WAIT_S) == 0
            until("it ends", lambda: not alive(pids["parent"]))


@contextlib.contextmanager
def notified(daemon):
    path = daemon.dir / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(path))
        path.chmod(0o666)
        sock.settimeout(WAIT_S)
        yield sock, {**os.environ, "NOTIFY_SOCKET": str(path)}


@cases.case
def systemd():
    """READY=1 when it serves, STOPPING=1 when it goes, nothing else."""
    with prepared() as daemon, notified(daemon) as (sock, env):
        daemon.popen(env=env)
        assert sock.recv(64) == b"READY=1"
        assert daemon.ask("status")["ok"]
        for name, pid in daemon.settle().items():
            with contextlib.suppress(PermissionError):
                text = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
                assert name == "parent" or text == b"", (name, text)
        assert daemon.stop() == 0
        assert sock.recv(64) == b"STOPPING=1"
        sock.settimeout(0)
        try:
            raise AssertionError(sock.recv(64))
        except BlockingIOError:
            pass


@cases.case
def systemd_is_not_told_of_failures():
    with prepared() as daemon, notified(daemon) as (sock, env):
        daemon.audit.write_text("precious\n")
        daemon.popen(env=env)
        assert daemon.wait() == 1
        sock.settimeout(0)
        said = []
        with contextlib.suppress(BlockingIOError):
            while True:
                said.append(sock.recv(64))
        assert b"READY=1" not in said, said


@cases.each(["relative", "missing", "abstract", "long"])
def bad_notify_socket(what):
    """It is worth a warning and nothing more."""
    path = {"relative": "notify", "missing": "/nonexistent/notify",
            "abstract": "@egressd-test-nobody", "long": "/" + "x" * 200}[what]
    with prepared() as daemon:
        daemon.popen(env={**os.environ, "NOTIFY_SOCKET": path})
        until("ready", lambda: "ready, generation 1" in daemon.log())
        assert daemon.ask("status")["ok"]
        assert daemon.stop() == 0
        assert "NOTIFY_SOCKET" in daemon.log() or \
            "systemd notification" in daemon.log(), daemon.log()


# In a mount namespace of its own: a /dev with a log socket that is ours,
# egressd in the background, what arrives at the socket as JSON.
SYSLOG = r"""
import json, os, pathlib, signal, socket, subprocess, sys
dev, egressd, conf, sock = sys.argv[1:]

def mount(*args):
    subprocess.run(["mount", *args], check=True)

for name in ("null", "zero", "full", "random", "urandom"):
    pathlib.Path(dev, name).touch()
    mount("--bind", f"/dev/{name}", f"{dev}/{name}")
mount("--rbind", dev, "/dev")
log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
log.bind("/dev/log")
log.settimeout(20)
lines = []

def read_until(text):
    while not lines or text not in lines[-1]:
        lines.append(log.recv(8192).decode(errors="replace").rstrip("\0"))

# It is not done before somebody reads what it logs.
start = subprocess.Popen([egressd, "-f", conf, "-s", sock, "-vv"], cwd="/",
                         stdin=subprocess.DEVNULL, stderr=2)
read_until("ready, generation 1")
assert start.wait(20) == 0
pid = int(pathlib.Path(sock[:-5] + ".pid").read_text())
try:
    os.kill(pid, signal.SIGHUP)
    read_until("in force, generation 2")
finally:
    os.kill(pid, signal.SIGTERM)
read_until("stopped")
print(json.dumps(lines))
"""


@cases.case
def syslog():
    """In the background every process logs to syslog, under its name."""
    if os.geteuid() != 0:
        raise Skip("only root can give it a /dev of its own")
    done = subprocess.run(["unshare", "-m", "true"], capture_output=True)
    if done.returncode != 0:
        raise Skip("no mount namespaces here")
    with prepared() as daemon:
        dev = daemon.dir / "dev"
        dev.mkdir()
        done = subprocess.run(
            ["unshare", "-m", "--propagation", "private", sys.executable,
             "-c", SYSLOG, str(dev), str(BUILD / "egressd"),
             str(daemon.conf), str(daemon.socket)],
            capture_output=True, text=True, timeout=WAIT_S * 2)
        assert done.returncode == 0, done.stderr
        lines = json.loads(done.stdout)
        for line in lines:
            assert line.startswith("<") and " egressd[" in line, line
        said = [line.split(" egressd[", 1)[1].split("]: ", 1)[1]
                for line in lines]
        assert "parent: ready, generation 1" in said, said
        for name in ("controld", "policyd", "recorder", "dialer", "deciderd",
                     "k8sd", "podd", "tlsengine: edge"):
            assert any(line.startswith(f"[{name}] ") and "generation" in line
                       for line in said), (name, said)


@cases.case
def unprivileged():
    """Anybody can run one; it says that it has no privileges."""
    if os.geteuid() == 0 and not runs_as({
            "user": 65534, "group": 65534, "extra_groups": []}):
        raise Skip("the build tree is closed to other users")
    user = "nobody" if os.geteuid() == 0 else None
    with Daemon(user=user) as daemon:
        status = json.loads(daemon.ctl("-j", "status").stdout)
        assert status["privileged"] is False, status
        assert len(status["sessions"]) == 2, status
        if user:
            with daemon.client() as client:
                client.send({"id": 1, "op": "status"})
                assert client.read() is None
            assert "it is another user's, hung up" in daemon.log()
        assert daemon.stop() == 0


@cases.case
def unprivileged_default():
    """Where it may not make the usual socket it says what helps."""
    them = {}
    if os.geteuid() == 0:
        them = {"user": 65534, "group": 65534, "extra_groups": []}
        if not runs_as(them):
            raise Skip("the build tree is closed to other users")
    with prepared(user="nobody" if them else None) as daemon:
        status, _, err = egressd("-d", "-f", daemon.conf, **them)
        assert status == 1 and "Permission denied (-s names" in err, err


cases.main()
