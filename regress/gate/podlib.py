# SPDX-License-Identifier: ISC

"""A pod by hand: the gate and a workspace as containers that share a network
namespace, and the world outside at the other end of its one wire."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap

REGRESS = pathlib.Path(__file__).resolve().parents[1]
for part in ("lib", "dialer"):
    sys.path.insert(0, str(REGRESS / part))
from case import Skip, run  # noqa: E402
from daemon import BUILD, EGRESSCTL, WAIT_S, Daemon, until  # noqa: E402
from gate import EVIL, GOOD  # noqa: E402
from origin import authority  # noqa: E402
from outside import (DNS_ADDRESS, EVIL_ADDRESS, GOOD_ADDRESS,  # noqa: E402
                     METADATA, Evil, Outside)
from procs import children  # noqa: E402
from standin_dns import Server, static  # noqa: E402
from standin_origin import StandinOrigin, answer  # noqa: E402

TCP, DNS, GROUP, MARK = 15001, 15053, 45, 0x45475244
# What the gate's container has, and no more.
GATE_CAPS = ("setuid", "setgid", "setpcap", "sys_chroot", "kill", "net_admin")
# What a container has that nobody has thought about, without net_raw.
WORK_CAPS = ("chown", "dac_override", "fowner", "fsetid", "kill", "setgid",
             "setuid", "setpcap", "net_bind_service", "sys_chroot",
             "audit_write", "setfcap")
PYTHON = "/usr/bin/python3"
FENCE = BUILD / "libexec/egressd-fence"
UIDS = "64000 - 64031"


def setpriv(caps, *more):
    return ["setpriv", "--no-new-privs", *more, "--bounding-set",
            "-all," + ",".join(f"+{c}" for c in caps)]


def container(*mounts):
    """The beginning of a command: namespaces of its own, but for network."""
    lines = ["mount -t proc proc /proc", *mounts, 'exec "$@"']
    return ["unshare", "--pid", "--mount", "--ipc", "--uts", "--fork",
            "--kill-child", "sh", "-ec", "\n".join(lines), "sh"]


class Contained(Daemon):
    """The daemon as the first process of a container."""

    def __init__(self, conf, caps=GATE_CAPS, **kwargs):
        super().__init__(conf, head=False, **kwargs)
        self.args = [*container()[1:], *setpriv(caps),
                     str(BUILD / "egressd"), *self.args]
        self.program = "unshare"
        self.dir.chmod(0o755)

    def pid(self):
        """Of the daemon itself, as we see it."""
        return next(iter(children(self.process.pid)), None)

    def find(self, name):
        """The pid of a process of the daemon's by a part of its title."""
        return next((pid for pid, said in children(self.pid()).items()
                     if name in said), None)

    def exec(self, *argv, **kwargs):
        """Run in its container, as a probe is, or the channel of a pod."""
        return run(["nsenter", "-t", str(self.pid()), "-p", "-m", "-i", "-u",
                    *setpriv(GATE_CAPS), *argv], **kwargs)

    def ctl(self, *args):
        return self.exec(EGRESSCTL, "-s", self.socket, *args)

    def ask(self, op, **fields):
        """By one line on standard input of a client in its container."""
        line = json.dumps({"id": 1, "op": op, **fields})
        out = self.exec(PYTHON, "-c", textwrap.dedent("""
            import socket, sys
            s = socket.socket(socket.AF_UNIX)
            s.settimeout(60)
            s.connect(sys.argv[1])
            s.sendall(sys.argv[2].encode() + b"\\n")
            sys.stdout.write(s.makefile().readline())
        """), self.socket, line).stdout
        assert out.startswith("{"), f"{op}: {out!r}"
        return json.loads(out)

    def stop(self):
        os.kill(self.pid(), signal.SIGTERM)
        return self.wait()

    def end(self):
        """unshare(1) does not end of a signal that is for its child."""
        if self.process is not None and self.process.poll() is None:
            pid = self.pid()
            if pid is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.process.kill()
            self.process.wait(WAIT_S)
        shutil.rmtree(self.dir, ignore_errors=True)


class World:
    """Names are resolved outside, origins live there, and so does EVIL."""

    def __init__(self):
        self.outside = Outside()
        self.zone = {GOOD: static(GOOD_ADDRESS), EVIL: static(EVIL_ADDRESS)}
        self.dns = self.outside.do(Server, DNS_ADDRESS, self.zone)
        self.serve = answer()
        self.tls, self.clear = (
            self.outside.do(StandinOrigin, self.good, cert, GOOD_ADDRESS, port)
            for cert, port in ((authority().leaf(GOOD), 443), (None, 80)))
        self.evil = Evil(self.outside)

    def good(self, connection):
        while True:
            connection.request()
            connection.send(self.serve)

    def forget(self):
        self.outside.sent()
        del self.dns.questions[:], self.evil.got[:]
        self.evil.visits = 0

    def no_evil(self):
        """EVIL had no visit, and no frame went there."""
        packed = [bytes(map(int, a.split(".")))
                  for a in (EVIL_ADDRESS, METADATA)]
        frames = [f for f in self.outside.sent()
                  if f[12:14] == b"\x86\xdd" or f[30:34] in packed]
        assert not frames, f"{len(frames)} to EVIL, as {frames[0].hex()}"
        assert not self.evil.visits and not self.evil.got, (
            self.evil.visits, self.evil.got)
        assert EVIL not in {q.name for q in self.dns.questions}


def fence():
    """As the init container does it."""
    if " -p " not in run([FENCE]).stdout:
        raise Skip("this fence has no mode for pods")
    done = run([*setpriv(("net_admin",)), FENCE, "-p", "-t", TCP, "-d", DNS,
                "-g", GROUP, "-m", hex(MARK)])
    assert done.returncode == 0, done.stdout


class Pod(Contained):
    """The gate of a pod, with the volumes that a pod has."""

    def __init__(self, world, rules=f'allow host "{GOOD}"'):
        self.world, self.rules = world, rules
        self.volume = pathlib.Path(tempfile.mkdtemp(prefix="egressd-pod."))
        self.volume.chmod(0o755)
        self.trust = self.volume / "pod"
        self.trust.mkdir()
        for name in ("ca.pem", "bundle.pem", "ca.jks"):
            (self.trust / name).touch()
        self.resolv = self.volume / "resolv.conf"
        self.resolv.write_text("nameserver 198.18.0.1\noptions ndots:1\n")
        super().__init__("", option=False)
        # A Secret: its files are links by way of one that is swapped.
        self.secret = self.dir / "secret"
        self.secret.mkdir()
        self.link = self.secret / "egressd.conf"
        self.link.symlink_to("..data/egressd.conf")
        self.args[self.args.index(str(self.conf))] = str(self.link)
        self.versions = 0
        self.swap(rules)

    def port(self, written):
        """Nobody else is in this network namespace."""
        return written

    def text(self, rules):
        return textwrap.dedent(f"""\
            control socket "{self.socket}" own-container mode 0600
            audit file "{self.audit}"
            audit stdout
            uids {UIDS}
            resolver {DNS_ADDRESS} port {self.world.dns.port}
            dial mark {MARK:#x}
            upstream trust file "{authority().cert}"
            policy "p" {{
                {rules}
                default deny
            }}
            session "pod" {{
                listen on 127.0.0.1 port {TCP} transparent
                listen on ::1 port {TCP} transparent optional
                dns on 127.0.0.1 port {DNS}
                dns on ::1 port {DNS} optional
                refused group {GROUP}
                policy "p"
                trust directory "{self.trust}"
            }}
            """)

    def swap(self, rules):
        """As a kubelet puts a new version of a Secret in place."""
        self.versions += 1
        data, link = self.secret / "..data", self.secret / "..new"
        old = data.resolve() if data.is_symlink() else None
        new = self.secret / f"..{self.versions}"
        new.mkdir()
        (new / "egressd.conf").write_text(self.text(rules))
        (new / "egressd.conf").chmod(0o400)
        link.symlink_to(new.name)
        link.rename(data)
        if old is not None:
            shutil.rmtree(old)

    def start(self):
        super().start()
        until("the probe", lambda: self.ctl("status", "-q").returncode == 0)
        return self

    def end(self):
        super().end()
        shutil.rmtree(self.volume, ignore_errors=True)

    def records(self):
        """Those that are whole, the chain of them checked."""
        return [json.loads(line)
                for line in self.audit.read_text().split("\n")[:-1]]

    def has(self, kind, **want):
        """A record of the kind, about such a request, when it is there."""
        return until(f"{kind} of {want}", lambda: [
            r for r in self.records() if r["kind"] == kind and all(
                (r.get("request") or {}).get(k) == v
                for k, v in want.items())])

    def workspace(self, who, *argv, **kwargs):
        """A command in the workspace, as root or as a user."""
        them = [] if who == "root" else \
            ["--reuid=1000", "--regid=1000", "--clear-groups"]
        bundle = "/etc/ssl/certs/ca-certificates.crt"
        return run([*container(
            f"mount -t tmpfs none {self.dir}",
            f"mount --bind {self.resolv} /etc/resolv.conf",
            f"mount --bind {self.trust}/bundle.pem {bundle}",
            f"mount -o remount,ro,bind {bundle}"),
            *setpriv(WORK_CAPS, *them), *argv], **kwargs)
