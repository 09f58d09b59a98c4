# SPDX-License-Identifier: ISC

"""What the tests of `egressctl run` share: an installed egressd, an origin,
and runs of commands as root and as an ordinary user."""

import contextlib
import functools
import http.server
import json
import os
import pathlib
import pwd
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Skip  # noqa: E402
from daemon import UIDS, Daemon, verify  # noqa: E402
from origin import authority  # noqa: E402
from prefix import Prefix  # noqa: E402
from procs import status  # noqa: E402

WHO = ("root", "user")
ORIGIN = "origin.test"
PYTHON = "/usr/bin/python3"
PATIENCE_S = 200        # for a script that may build a program first


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.seen.append((self.headers["Host"], self.path))
        body = f"hello from {self.path}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Origin:
    """HTTPS for one name, in this process."""

    def __init__(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0),
                                                      Handler)
        self.server.daemon_threads = True
        self.server.seen = []
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*authority().leaf(ORIGIN))
        self.server.socket = context.wrap_socket(self.server.socket,
                                                 server_side=True)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever,
                         daemon=True).start()

    @property
    def seen(self):
        return self.server.seen


def identity(who):
    if who == "root":
        if os.getuid() != 0:
            raise Skip("not root")
        return {}
    if os.getuid() != 0:
        return {}
    user = pwd.getpwnam("nobody")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


class Place:
    """A prefix, an origin, and for each user a home, a work directory and one
    for what the sandbox is not to see."""

    def __init__(self):
        self.prefix = Prefix()
        self.origin = Origin()
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="egressd-run."))
        self.dir.chmod(0o755)
        (self.prefix.dir / "run").mkdir()
        self.ctl = self.prefix.dir / "sbin" / "egressctl"
        self.trust = self.dir / "root.pem"
        shutil.copy(authority().cert, self.trust)
        self.trust.chmod(0o644)
        self.count = 0

    def end(self):
        self.prefix.end()
        shutil.rmtree(self.dir, ignore_errors=True)

    def fresh(self, who, name):
        """A new directory of that user's."""
        self.count += 1
        path = self.dir / f"{self.count}-{name}"
        path.mkdir(mode=0o755)
        have = identity(who)
        if have:
            os.chown(path, have["user"], have["group"])
        return path

    def text(self, rules=None, more=""):
        if rules is None:
            rules = (f'policy "open" {{ allow host "{ORIGIN}" '
                     f'port {self.origin.port} }}\n')
        return (f'hosts {{ "{ORIGIN}" 127.0.0.1 }}\n'
                f'upstream trust file "{self.trust}"\n{more}{rules}')

    def conf(self, who, rules=None, more="", into=None):
        """A configuration file for a private daemon; (file, audit file)."""
        into = into or self.fresh(who, "conf")
        log = into / "audit.log"
        file = into / "egressd.conf"
        have = identity(who)
        head = f'audit file "{log}"\n'
        if not have and os.getuid() == 0:
            head += f"uids {UIDS}\n"
        file.write_text(head + self.text(rules, more))
        if have:
            os.chown(file, have["user"], have["group"])
        return file, log

    def spawn(self, who, *args, home=None, env=None, work=None, **kwargs):
        """egressctl with these arguments, for the caller to end."""
        home = home or self.fresh(who, "home")
        work = work or self.fresh(who, "work")
        kwargs.setdefault("stdin", subprocess.DEVNULL)
        kwargs.setdefault("stdout", subprocess.PIPE)
        kwargs.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen(
            [str(a) for a in (self.ctl, *args)], cwd=work,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(home),
                 "LC_ALL": "C.UTF-8", **(env or {})},
            **identity(who), **kwargs)

    def run(self, who, *args, data=None, **kwargs):
        """The same, to its end; text, unless data is bytes."""
        if data is not None:
            kwargs["stdin"] = subprocess.PIPE
        process = self.spawn(who, *args, **kwargs)
        try:
            out, err = process.communicate(data, timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
        return subprocess.CompletedProcess(
            args, process.returncode, out.decode(errors="replace"),
            err.decode(errors="replace"))

    def sh(self, who, conf, script, *args, **kwargs):
        """A shell script in a sandbox behind a private daemon."""
        return self.run(who, "run", "-q", "-f", conf, *args, "--", "sh", "-c",
                        script, **kwargs)

    @contextlib.contextmanager
    def daemon(self, who, rules=None, more=""):
        """A daemon on the installed default socket, as whoever it is."""
        socket = self.prefix.dir / "run" / "egressd.sock"
        mine = identity(who)
        if mine:
            os.chown(socket.parent, mine["user"], mine["group"])
        try:
            with Daemon(self.text(rules, more) +
                        f'control socket "{socket}"\n',
                        user="nobody" if mine else None, option=False,
                        program=self.prefix.program) as daemon:
                daemon.socket = socket
                yield daemon
        finally:
            os.chown(socket.parent, 0, 0)

    def ask(self, who, op, socket):
        """An answer of the daemon's, as that user."""
        done = self.run(who, "-j", "-s", socket, *op.split("."))
        assert done.stdout, done.stderr
        return json.loads(done.stdout)


@functools.cache
def place():
    return Place()


def records(log):
    """What was written, in a chain that holds."""
    return verify(log.read_text().splitlines())


def descendants(pid):
    """All processes below this one, by pid."""
    below = {}
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        have = status(path.name)
        if have:
            below.setdefault(int(have["PPid"]), []).append(int(path.name))
    found, todo = [], [pid]
    while todo:
        todo += (new := below.get(todo.pop(), []))
        found += new
    return found
