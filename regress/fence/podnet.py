# SPDX-License-Identifier: ISC

"""The network of a pod, in a namespace, with a wire to another one that is the
world outside; and programs run in there with the capabilities of a workspace
or of a gate."""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import textwrap
import threading

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from case import Skip, run  # noqa: E402

BUILD = pathlib.Path(os.environ.get("B", TOP / "build"))
FENCE = BUILD / "libexec" / "egressd-fence"
PYTHON = "/usr/bin/python3"
WAIT_S = 60

TCP, DNS, GROUP, MARK = 15001, 15053, 45, 0x45475244
RULES = ["-p", "-t", TCP, "-d", DNS, "-g", GROUP, "-m", hex(MARK)]
POD = {4: "11.0.0.1", 6: "2a00:1::1"}
OUT = {4: "11.0.0.2", 6: "2a00:1::2"}
PORT = 9999                     # of the world outside, with those below
PORTS = (PORT, 53, 443)

PRELUDE = f"""
import contextlib, errno, json, os, socket, struct, sys
MARK, SO_MARK = {MARK}, 36

def say(value):
    print(json.dumps(value), flush=True)

def name(error):
    return errno.errorcode.get(error.errno, str(error))

def attempt(function, *args):
    try:
        return function(*args)
    except OSError as e:
        return name(e)

def make(host, kind, port=0, mark=0):
    s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET,
                      kind)
    s.settimeout({WAIT_S})
    if mark:
        s.setsockopt(socket.SOL_SOCKET, SO_MARK, struct.pack("I", mark))
    if port:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("", port))
    return s

def tcp(host, port, mark=0):
    try:
        with make(host, socket.SOCK_STREAM, 0, mark) as s:
            s.connect((host, port))
            if mark:
                s.sendall(b"hello")
            return s.recv(4096).decode().strip()
    except OSError as e:
        return name(e)

def udp(host, port, data=b"hello", source=0, mark=0):
    try:
        with make(host, socket.SOCK_DGRAM, source, mark) as s:
            s.connect((host, port))
            s.send(data)
            return s.recv(4096).decode()
    except OSError as e:
        return name(e)
"""


class Namespace:
    """A network namespace that lasts until this is closed."""

    def __init__(self):
        if os.geteuid() != 0:
            raise Skip("not root")
        self.proc = subprocess.Popen(["unshare", "--net", "cat"],
                                     stdin=subprocess.PIPE, text=True,
                                     stdout=subprocess.PIPE)
        self.proc.stdin.write("here\n")
        self.proc.stdin.flush()
        if self.proc.stdout.readline() != "here\n":
            self.close()
            raise Skip("no network namespace")

    def argv(self, *argv):
        return ["nsenter", "-t", str(self.proc.pid), "-n", "--",
                *map(str, argv)]

    def run(self, *argv, **kwargs):
        return run(self.argv(*argv), **kwargs)

    def do(self, *lines):
        for line in lines:
            done = self.run(*line.split())
            assert done.returncode == 0, f"{line}: {done.stdout}"

    def close(self):
        self.proc.kill()
        self.proc.wait()
        self.proc.stdin.close()
        self.proc.stdout.close()


class Standin:
    """A program of ours in a namespace; keeps the lines that it says."""

    def __init__(self, namespace, program, *args):
        self.lines, self.new = [], threading.Condition()
        self.proc = subprocess.Popen(
            namespace.argv(PYTHON, HERE / program, *args), text=True,
            stdout=subprocess.PIPE)
        assert "ready" in self.proc.stdout.readline(), program
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.proc.stdout:
            with self.new:
                self.lines.append(json.loads(line))
                self.new.notify_all()

    def wait(self, test):
        with self.new:
            assert self.new.wait_for(lambda: any(map(test, self.lines)),
                                     WAIT_S), self.lines[-20:]

    def close(self):
        self.proc.kill()
        self.proc.wait()
        self.thread.join()
        self.proc.stdout.close()


class Pod:
    """eth0 leads outside; lo is up.  No neighbour is known yet."""

    def __init__(self):
        with contextlib.ExitStack() as stack:
            self.net, self.far = self.added(stack, Namespace()), \
                self.added(stack, Namespace())
            self.connect()
            self.outside = self.added(stack, Standin(
                self.far, "standin_outside.py", "far", *PORTS))
            self.gate, self.count = None, 0
            self.stack = stack.pop_all()

    @staticmethod
    def added(stack, part):
        stack.callback(part.close)
        return part

    def connect(self):
        self.net.do("ip link add eth0 type veth peer name far netns "
                    f"{self.far.proc.pid}")
        for net, name, addresses in ((self.net, "eth0", POD),
                                     (self.far, "far", OUT)):
            net.do("sysctl -qw net.ipv6.conf.all.accept_dad=0 "
                   f"net.ipv6.conf.{name}.accept_dad=0",
                   "ip link set lo up", f"ip link set {name} up",
                   f"ip addr add {addresses[4]}/24 dev {name}",
                   f"ip addr add {addresses[6]}/64 dev {name} nodad")
        self.net.do(f"ip route add default via {OUT[4]}",
                    f"ip -6 route add default via {OUT[6]}")

    def serve(self):
        """As the gate will."""
        self.gate = self.added(self.stack, Standin(
            self.net, "standin_gate.py", TCP, DNS))

    def fence(self, *opts, wrap=(), **kwargs):
        return self.net.run(*wrap, FENCE, *RULES, *opts, **kwargs)

    def fenced(self, *opts):
        done = self.fence(*opts)
        assert (done.returncode, done.stdout) == (0, ""), done
        if not self.count:
            self.seen()         # what the kernel told the world before
        return self

    def python(self, code, wrap):
        done = self.net.run(*wrap, PYTHON, "-c",
                            PRELUDE + textwrap.dedent(code))
        assert done.returncode == 0 and done.stdout, done
        return json.loads(done.stdout.splitlines()[-1])

    def workspace(self, code, caps="-net_raw,-net_admin", wrap=()):
        """Root of a container, with nothing of the network's."""
        return self.python(code, ["setpriv", "--bounding-set", caps,
                                  "--inh-caps", "-all", *wrap])

    def as_gate(self, code):
        return self.python(code, [])

    def seen(self):
        """All that has come outside, up to something that is let out now: one
        wire keeps the order."""
        self.count += 1
        last = f"last {self.count}"
        self.as_gate(f"say(udp('{OUT[4]}', {PORT}, {last.encode()!r}, "
                     "mark=MARK))")
        self.outside.wait(lambda line: line[-1] == last)
        with self.outside.new:
            lines, self.outside.lines = self.outside.lines, []
        marks = ("last", "echo")
        return [line for line in lines if not str(line[-1]).startswith(marks)
                and not (line[0] == "frame" and
                         b"last".hex() in line[1])]

    def nothing_came(self):
        seen = self.seen()
        assert not seen, seen

    def counted(self, chain):
        """Packets by all counters of a chain."""
        done = self.net.run("nft", "-j", "list", "chain", "inet", "egressd",
                            chain)
        assert done.returncode == 0, done
        return sum(part["counter"]["packets"]
                   for item in json.loads(done.stdout)["nftables"]
                   for part in item.get("rule", {}).get("expr", [])
                   if "counter" in part)

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.stack.close()
