#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""What a daemon needs in a container beside what it gates, each part by
itself: marks, capabilities, control clients, listeners, standard output,
probes."""

import contextlib
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys

REGRESS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REGRESS / "lib"))
sys.path.insert(0, str(REGRESS / "gate"))
from case import Cases, run  # noqa: E402
from daemon import UIDS, Daemon, pids_of, until  # noqa: E402
from gate import Gate, get, pair  # noqa: E402
from podlib import GATE_CAPS, MARK, PYTHON, Contained  # noqa: E402

cases = Cases()
if os.geteuid() != 0:
    print("skip all: not root")
    sys.exit(0)

PLAIN = f"""
uids {UIDS}
policy "p" {{ }}
session "edge" {{ listen on 127.0.0.1 port 15001 policy "p" }}
"""
CLIENT = """
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.settimeout(60)
s.connect(sys.argv[1])
try:
    s.sendall(b'{"id":1,"op":"status"}\\n')
    print("served" if s.makefile().readline() else "hung up")
except (BrokenPipeError, ConnectionResetError):
    print("hung up")
"""


def refused(daemon, text):
    """It does not start, and says why."""
    daemon.popen()
    status = daemon.wait()
    assert status == 1 and text in daemon.log(), (status, daemon.log())


@contextlib.contextmanager
def contained(conf=PLAIN, caps=GATE_CAPS):
    """A daemon in a container, not yet started."""
    daemon = Contained(conf, caps=caps)
    try:
        yield daemon
    finally:
        daemon.end()


# ---- capabilities and marks -------------------------------------------------

@cases.each(("setuid", "setgid", "setpcap", "sys_chroot", "kill"))
def a_capability_is_lacking(name):
    with contained(caps=[c for c in GATE_CAPS if c != name]) as daemon:
        refused(daemon, "a daemon of root needs these capabilities and lacks "
                f"them: {name.upper()}\n")


@cases.case
def all_that_lack_are_named():
    with contained(caps=["net_admin"]) as daemon:
        refused(daemon, "lacks them: KILL SETGID SETUID SETPCAP SYS_CHROOT\n")


@cases.each(("dial_mark", "refused_group"))
def no_net_admin(word):
    conf = PLAIN + "dial mark 7\n" if word == "dial_mark" else \
        PLAIN.replace('policy "p" }', 'policy "p" refused group 4567 }')
    with contained(conf, [c for c in GATE_CAPS if c != "net_admin"]) as daemon:
        refused(daemon, "the daemon lacks the capability NET_ADMIN")
        assert word.replace("_", " ") in daemon.log(), daemon.log()


@cases.case
def a_group_of_others():
    """Of two daemons with one group the second says so, and does not start;
    when the first is gone it does, at once or as soon as the kernel lets go."""
    conf = PLAIN.replace('policy "p" }', 'policy "p" refused group 4568 }')
    with contained(conf) as first, contained(conf) as second:
        first.start()
        refused(second, "refused group 4568: another program has it")
        os.kill(first.pid(), signal.SIGKILL)
        second.start()


def marks(port):
    """Of connections to a port of ours, as the kernel has them."""
    out = run(["ss", "-tneH", "state", "established", f"dport = {port}"])
    return set(re.findall(r"fwmark:(0x[0-9a-f]+)", out.stdout))


@cases.case
def sockets_have_the_mark():
    """Those that are dialled with have the mark of the configuration that is
    in force, also of one that was loaded later."""
    with pair(tls=False, more=f"dial mark {MARK:#x}") as both:
        with both.open() as wire:
            assert wire.ask(both.get("/1")).status == 200
            assert marks(both.origin.port) == {hex(MARK)}
        both.gate.more = "dial mark 99"
        both.gate.reload(both.gate.rules)
        with both.open() as wire:
            assert wire.ask(both.get("/2")).status == 200
            until("the new mark", lambda: marks(both.origin.port) == {"0x63"})


# ---- control clients --------------------------------------------------------

@cases.case
def clients_of_our_container():
    """With own-container a client has our pid and mount namespaces, too."""
    def client(path, *before):
        return run([*before, PYTHON, "-c", CLIENT, path]).stdout.strip()

    with Daemon("", option=False) as daemon:
        other = daemon.dir / "other.sock"
        daemon.write(f'control socket "{daemon.socket}" own-container\n'
                     f'control socket "{other}" read-only\n')
        daemon.stop()
        daemon.start()
        assert client(daemon.socket) == client(other) == "served"
        for names in (("--mount",), ("--pid", "--fork", "--kill-child"),
                      ("--mount", "--pid", "--fork", "--kill-child")):
            said = client(daemon.socket, "unshare", *names)
            assert said == "hung up", (names, said)
            assert client(other, "unshare", *names) == "served", names
        assert "not in our container, hung up" in daemon.log(), daemon.log()


# ---- configuration ----------------------------------------------------------

@cases.case
def hash_of_the_configuration():
    """Of the bytes of all files, as they were read; that of a configuration
    which is refused does not count."""
    with Daemon() as daemon:
        first = daemon.conf.read_bytes()
        part = daemon.dir / "part.conf"
        part.write_text("log level info\n")
        part.chmod(0o600)

        def said():
            return daemon.ask("status")["configuration_sha256"]

        assert said() == hashlib.sha256(first).hexdigest()
        daemon.conf.write_bytes(first + b'include "part.conf"\n')
        assert daemon.ask("reload")["ok"]
        now = hashlib.sha256(daemon.conf.read_bytes() + part.read_bytes())
        assert said() == now.hexdigest()
        daemon.conf.write_bytes(b"nonsense\n")
        assert "error" in daemon.ask("reload")
        assert said() == now.hexdigest()
        assert now.hexdigest() in daemon.ctl("status").stdout


@cases.case
def path_as_given():
    """By way of a link, which leads elsewhere later; relative, too."""
    with Daemon() as daemon:
        text = daemon.conf.read_text()
        daemon.stop()
        link = daemon.dir / "..data"
        for name in ("one", "two"):
            (daemon.dir / name).mkdir(mode=0o755)
            (daemon.dir / name / "egressd.conf").write_text(
                text + f"# {name}\n")
            (daemon.dir / name / "egressd.conf").chmod(0o600)
        daemon.conf.unlink()
        daemon.conf.symlink_to("..data/egressd.conf")
        link.symlink_to("one")
        daemon.start()
        old = daemon.ask("status")
        assert old["configuration"] == str(daemon.conf), old
        link.unlink()
        link.symlink_to("two")
        shutil.rmtree(daemon.dir / "one")
        assert daemon.ask("reload")["ok"]
        new = daemon.ask("status")["configuration_sha256"]
        assert new != old["configuration_sha256"]


@cases.each(("optional", "required"))
def no_ipv6(word):
    """An optional listener is left out where its address is not."""
    more = " optional" if word == "optional" else ""
    conf = PLAIN.replace("policy \"p\" }", f"""
        listen on ::1 port 15002{more}
        dns on ::1 port 15003{more}
        policy "p" }}""")
    with contained(conf) as daemon:
        at = daemon.args.index("setpriv")
        daemon.args[at:at] = ["unshare", "--net", "sh", "-ec",
                              "echo 1 > /proc/sys/net/ipv6/conf/all/"
                              "disable_ipv6\n"
                              'ip link set lo up\nexec "$@"', "sh"]
        if word == "required":
            refused(daemon, "Cannot assign requested address")
            return
        daemon.start()
        assert daemon.log().count("is left out") == 2, daemon.log()
        assert daemon.stop() == 0, daemon.log()


@cases.case
def no_optional_for_what_is_taken():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with contained(PLAIN.replace("port 15001",
                                     f"port {port} optional")) as daemon:
            refused(daemon, f"port {port}: Address already in use")


# ---- trust ------------------------------------------------------------------

@cases.case
def trust_cannot_be_written():
    """A session whose clients would not find its CA does not run."""
    with Gate("") as gate:
        gate.stop()
        for name in ("ca.pem", "bundle.pem", "ca.jks"):
            (gate.trust / name).unlink()
        (gate.trust / "bundle.pem").mkdir()
        refused(gate, "its trust files cannot be written")
        (gate.trust / "bundle.pem").rmdir()
        gate.start()
        assert gate.ctl("status", "-q").returncode == 0


@cases.case
def trust_in_place():
    """Files that are there keep their inode, get the mode that everybody can
    read, and lose what is longer; others are made."""
    with Gate("") as gate:
        gate.stop()
        (gate.trust / "ca.pem").write_text("x" * 100000)
        (gate.trust / "ca.pem").chmod(0o600)
        (gate.trust / "bundle.pem").unlink()
        (gate.trust / "bundle.pem").symlink_to("/nowhere")
        (gate.trust / "ca.jks").unlink()
        inode = (gate.trust / "ca.pem").stat().st_ino
        gate.start()
        after = (gate.trust / "ca.pem").stat()
        assert (after.st_ino, after.st_mode & 0o777) == (inode, 0o644), after
        text = gate.ca.read_text()
        assert text.startswith("-----BEGIN") and "x" * 10 not in text
        assert not (gate.trust / "bundle.pem").is_symlink()
        assert (gate.trust / "bundle.pem").read_text().endswith(text)
        assert (gate.trust / "ca.jks").stat().st_size > 0
        assert not list(gate.trust.glob(".*")), "something is left"


# ---- probes -----------------------------------------------------------------

@cases.case
def probe():
    """Says no while the session has no engine, and without a daemon."""
    with Gate("") as gate:
        assert gate.ctl("status", "-q").returncode == 0
        os.kill(gate.engine(), signal.SIGKILL)

        def late():
            """The second start in a row waits half a second."""
            with contextlib.suppress(ProcessLookupError):
                engine = pids_of(gate.ask("status")).get("edge")
                if engine:
                    os.kill(engine, signal.SIGKILL)
            said = gate.ctl("status", "-q")
            assert said.stdout == "", said
            return said if said.returncode != 0 else None

        said = until("a probe that fails", late)
        assert said.returncode == 1, said
        assert said.stderr.startswith("egressctl: session edge: "), said
        until("a probe that does not",
              lambda: gate.ctl("status", "-q").returncode == 0)
        gate.stop()
        assert gate.ctl("status", "-q").returncode == 3


# ---- standard output --------------------------------------------------------

class Printing(Gate):
    """Its standard output is a pipe that is read when the case says so."""

    def __init__(self, rules=""):
        super().__init__(rules, more="audit stdout")

    def popen(self, **kwargs):
        with open(self.stderr, "ab") as log:
            self.process = subprocess.Popen(
                [str(self.program), *self.args], stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=log, cwd="/", **kwargs)
        return self.process

    def line(self):
        return json.loads(self.process.stdout.readline())


@cases.case
def records_on_standard_output():
    """The lines of the audit file, and nothing else."""
    with Printing() as gate:
        with gate.plain() as wire:
            assert wire.ask(get("/one")).status == 403
        gate.final(path="/one")
        gate.stop()
        out = gate.process.stdout.read().decode()
        assert out == gate.audit.read_text(), out


@cases.case
def a_reader_that_is_stuck():
    """It blocks nobody and costs a bounded queue; what it missed it is told."""
    path = "/" + "x" * 900
    with Printing() as gate, gate.plain() as wire:
        for _ in range(700):
            assert wire.ask(get(path)).status == 403
        until("all records", lambda: len(gate.finals()) == 700)
        count = gate.ask("status")["audit"]["seq"]
        seen, gap = 0, None
        while gap is None:
            line = gate.line()
            if line["kind"] == "gap":
                gap = line
            else:
                seen += 1
                assert line["seq"] == seen, line
        assert gap["reason"] == "slow_follower", gap
        assert gap["first_seq"] == seen + 1 and \
            seen + gap["lost"] == count, (gap, seen, count)
        assert wire.ask(get("/after")).status == 403
        line = gate.line()
        assert line["seq"] == count + 1, line


@cases.case
def a_reader_that_leaves():
    with Printing() as gate:
        gate.process.stdout.close()
        with gate.plain() as wire:
            assert wire.ask(get("/1")).status == 403
            until("a word of it", lambda: "no more records there" in
                  gate.log())
            assert wire.ask(get("/2")).status == 403


@cases.case
def none_in_the_background():
    with contained(PLAIN + "audit stdout\n") as daemon:
        daemon.args.remove("-d")
        refused(daemon, "audit stdout: a daemon in the background has none")


cases.main()
