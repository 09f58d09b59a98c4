#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""The local sandbox: network, names, file system, trust, environment."""

import os
import pathlib
import socket
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from boxlib import WHO, Place, Sandbox, probe, run_box, same  # noqa: E402
from case import Cases, Skip, run  # noqa: E402
from standin_engine import ANSWER4, ANSWER6, TRUST  # noqa: E402

cases = Cases()
place = Place()

DNS = """
def question(label):
    return (bytes.fromhex("1234 0100 0001 0000 0000 0000") +
            bytes([len(label)]) + label + bytes.fromhex("04") + b"test" +
            bytes.fromhex("00 0001 0001"))

def ask_udp(server, label=b"name"):
    s = socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET,
                      socket.SOCK_DGRAM)
    s.settimeout(5)
    s.connect((server, 53))        # an answer from elsewhere is not seen
    s.send(question(label))
    return socket.inet_ntoa(s.recv(512)[-4:])

def ask_tcp(server, label=b"name"):
    s = socket.create_connection((server, 53), 5)
    q = question(label)
    s.sendall(struct.pack("!H", len(q)) + q)
    return socket.inet_ntoa(s.recv(512)[-4:])
"""


@cases.each(WHO)
def tcp_arrives(who):
    """Any address, any port, both families, with the destination."""
    targets = [["192.0.2.1", 22], ["203.0.113.9", 443], ["198.18.5.5", 8443],
               ["2001:db8::1", 80], ["10.0.0.1", 65001], ["8.8.8.8", 1],
               ["169.254.169.254", 80], ["fd00:ec2::254", 80]]
    have, engine = probe(place, who, f"""
        say([tcp(h, p) for h, p in {targets}] + [tcp("::ffff:192.0.2.7", 25)])
    """)
    same(engine.redirect, 1)
    same(have, [f"{h} {p}" for h, p in targets] + ["192.0.2.7 25"])
    same(engine.connections, [tuple(t) for t in targets] +
         [("192.0.2.7", 25)])


@cases.case
def same_source_port():
    """Connections that differ in nothing but the destination."""
    have, _ = probe(place, "user", """
        hosts = [f"192.0.2.{i}" for i in range(1, 30)]
        say([tcp(h, 443, 40000) == f"{h} 443" for h in hosts])
    """)
    same(have, [True] * 29)


@cases.each(WHO)
def dns_any_server(who):
    have, engine = probe(place, who, DNS + """
say([ask_udp(s) for s in ("198.18.0.1", "8.8.8.8", "1.1.1.1",
                          "2001:4860:4860::8888")] +
    [ask_tcp(s) for s in ("9.9.9.9", "2620:fe::fe")])
""")
    same(have, [ANSWER4] * 6)
    same([kind for kind, _ in engine.questions], ["udp"] * 4 + ["tcp"] * 2)


@cases.each(("user", "root"))
def dns_resolver(who):
    """getaddrinfo, as programs use it, also with AI_ADDRCONFIG."""
    have, engine = probe(place, who, """
        say([sorted({a[4][0] for a in socket.getaddrinfo("a.b.test", 443,
                                                         flags=f)})
             for f in (0, socket.AI_ADDRCONFIG)]
            + [socket.gethostbyname("localhost"),
               socket.gethostbyname(socket.gethostname())])
    """)
    same(have, [sorted([ANSWER4, ANSWER6])] * 2 + ["127.0.0.1", "127.0.1.1"])
    asked = {data[12:].split(b"\0")[0] for _, data in engine.questions}
    same(asked, {b"\1a\1b\4test"})


@cases.each(WHO)
def others_refused(who):
    """UDP and ICMP fail at once and are reported; raw sockets are not had."""
    have, engine = probe(place, who, """
        def udp(host, port):
            s = socket.socket(socket.AF_INET6 if ":" in host else
                              socket.AF_INET, socket.SOCK_DGRAM)
            s.settimeout(5)
            s.connect((host, port))
            s.send(b"quic")
            return s.recv(10)
        def ping(host):
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM,
                              socket.IPPROTO_ICMP)
            s.settimeout(5)
            s.connect((host, 0))
            s.send(b"\\x08\\0\\0\\0\\0\\0\\0\\0")
            return s.recv(10)
        say([attempt(udp, "192.0.2.1", 443), attempt(udp, "2001:db8::1", 443),
             attempt(udp, "224.0.0.251", 5353), attempt(ping, "192.0.2.1"),
             attempt(socket.socket, socket.AF_INET, socket.SOCK_RAW, 1),
             attempt(socket.socket, socket.AF_INET, socket.SOCK_RAW, 255),
             attempt(socket.socket, socket.AF_INET6, socket.SOCK_RAW, 58),
             attempt(socket.socket, socket.AF_PACKET, socket.SOCK_RAW, 0)])
    """)
    same(have, ["EPERM"] * 7 + ["EAFNOSUPPORT"])
    for want in ((17, "192.0.2.1", 443), (17, "2001:db8::1", 443)):
        assert want in engine.refused, f"{want} not in {engine.refused}"
    assert any(r[:2] == (1, "192.0.2.1") for r in engine.refused)
    same(engine.connections, [])


@cases.each(("user", "root-r"))
def own_ports_refused(who):
    """The gate's listeners, asked for directly, on any loopback address."""
    have, engine = probe(place, who, """
        def udp(host):
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            s.settimeout(5)
            s.connect((host, 65053))
            s.send(b"x")
            return s.recv(10)
        say([tcp("127.0.0.1", 65001), tcp("127.0.0.2", 65001),
             tcp("::1", 65001), tcp("127.0.0.1", 65053), tcp("0.0.0.0", 65001),
             tcp("::", 65001), attempt(udp, "127.0.0.1")])
    """)
    same(have, ["ECONNREFUSED"] * 6 + ["EPERM"])
    same(engine.connections + engine.questions, [])
    assert (6, "127.0.0.1", 65001) in engine.refused, engine.refused


@cases.each(WHO)
def loopback_is_its_own(who):
    """Servers in the sandbox, also on low ports, are reached by loopback."""
    have, engine = probe(place, who, """
        def serve(family, host, port):
            s = socket.socket(family)
            s.bind((host, port))
            s.listen()
            c = socket.create_connection(s.getsockname()[:2], 5)
            a, _ = s.accept()
            a.sendall(b"mine")
            return c.recv(4).decode()
        say([serve(socket.AF_INET, "127.0.0.1", 8080),
             serve(socket.AF_INET, "127.0.0.1", 80),
             serve(socket.AF_INET6, "::1", 8080)])
    """)
    same(have, ["mine"] * 3)
    same(engine.connections, [])


@cases.each(WHO)
def file_system(who):
    secret = place.home(who) / "secret"
    secret.write_text("x")
    have, _ = probe(place, who, """
        def write(path):
            with open(path, "w") as f:
                f.write("x")
            return "written"
        mounts = [l.split() for l in open("/proc/self/mounts")]
        say({
            "top": sorted(os.listdir("/")),
            "home": os.listdir(os.environ["HOME"]),
            "run": sorted(os.listdir("/run")),
            "tmp": os.listdir("/tmp"),
            "dev": sorted(os.listdir("/dev")),
            "gone": [p for p in ("/etc/shadow", "/etc/ssh", "/etc/sudoers",
                     "/etc/ssl/private", "/root/.ssh", "/var/run/docker.sock",
                     "/.host", "/sys/kernel", "/sys/fs", "/etc/egressd.conf",
                     "/var/log/dpkg.log", "/home") if os.path.exists(p)],
            "ro": [attempt(write, p) for p in ("/x", "/usr/x", "/etc/x",
                   "/etc/resolv.conf", "/etc/passwd", "/opt/x",
                   "/proc/sys/kernel/core_pattern",
                   "/proc/sys/net/ipv4/ip_forward", "/etc/ssl/x")],
            "rw": [attempt(write, p) for p in ("/tmp/x", "/run/x", "/var/tmp/x",
                   os.environ["HOME"] + "/x", "made", "/dev/shm/x",
                   "/dev/null")],
            "suid": [m[1] for m in mounts if "nosuid" not in m[3].split(",")],
            "masked": [attempt(lambda: len(open(p, "rb").read(8)))
                       for p in ("/proc/timer_list", "/proc/keys",
                       "/proc/sysrq-trigger", "/proc/kpagecount",
                       "/proc/kpageflags", "/proc/kpagecgroup")
                       if os.path.exists(p)],
        })
    """)
    assert set(have["top"]) <= {
        "bin", "dev", "etc", "gnu", "lib", "lib32", "lib64", "libx32", "nix",
        "opt", "proc", "root", "run", "sbin", "sys", "tmp", "usr",
        "var"}, have["top"]
    same(have["home"], [".pki"])
    same(have["run"], ["lock"])
    same(have["tmp"], [place.dir.name])
    same(have["gone"], [])
    assert set(have["ro"]) <= {"EROFS", "EACCES"}, have["ro"]
    assert "EACCES" not in have["ro"] or not who.startswith("root"), have["ro"]
    same(have["rw"], ["written"] * 7)
    same(have["suid"], [])
    assert not any(have["masked"]), have["masked"]
    made = place.work(who) / "made"
    same(made.stat().st_uid, place.work(who).stat().st_uid)
    made.unlink()
    same(secret.read_text(), "x")


@cases.each(("user", "root"))
def exposed_paths(who):
    """-x is read-only, -X is not, whatever their order; -w is both."""
    base = place.work(who)
    for part in ("a/b", "c"):
        (base / part).mkdir(parents=True, exist_ok=True)
    for path in (base / "a", base / "a/b", base / "c"):
        os.chown(path, base.stat().st_uid, base.stat().st_gid)
    (base / "c" / "file").write_text("text")
    have, _ = probe(place, who, f"""
        def write(path):
            with open(path, "w") as f:
                f.write("x")
            return "written"
        say([attempt(write, "{base}/a/x"), attempt(write, "{base}/a/b/x"),
             attempt(write, "{base}/c/file"), open("{base}/c/file").read(),
             os.getcwd(), attempt(os.listdir, "{base}")])
    """, cwd="/", opts=["-X", base / "a/b", "-x", base / "a", "-x",
                        base / "c/file", "-w", base / "a/b"])
    same(have[:5], ["EROFS", "written", "EROFS", "text", str(base / "a/b")])
    same(sorted(have[5]), ["a", "c"])


@cases.each(["/", "/proc", "/proc/1", "/run", "/run/lock", "/dev/null", "/etc",
             "/sys", "/tmp", "/var", "/var/run", "/nonexistent"])
def exposure_refused(path):
    for option in ("-x", "-X", "-w"):
        done = run_box(place, "user", "/bin/true", opts=[option, path])
        same(done.rc, 125)
        assert f"cannot expose {path.replace('/var/run', '/run')}" in done.err


@cases.each(WHO)
def home_is_not_given_away(who):
    """Standing in the home directory, or above it, does not expose it."""
    home = place.home(who)
    (home / "secret").write_text("x")
    for cwd in (home, "/", "/etc", home.parent):
        done = run_box(place, who, "/bin/sh", "-c", f"pwd; ls -a $HOME {home};"
                       f"echo x > {home}/made", cwd=cwd)
        assert done.rc in (0, 2), done.err
        assert "secret" not in done.out, done.out
        assert not (home / "made").exists()
        assert f"{cwd} is not exposed" in done.err, done.err
        quiet = run_box(place, who, "/bin/true", cwd=cwd, opts=["-q"])
        same((quiet.rc, quiet.err), (0, ""))


@cases.each(("user-r", "root-r"))
def home_in_sight(who):
    """One in a directory of the system, when the command's is another."""
    if os.getuid() != 0:
        raise Skip("not root")
    with tempfile.TemporaryDirectory(prefix="egressd-", dir="/opt") as home:
        os.chmod(home, 0o755)
        work = pathlib.Path(home) / "work"
        work.mkdir()
        (work.parent / "secret").write_text("x")
        have, _ = probe(place, who, f"""
            say([os.getcwd(), os.listdir("{home}")])
        """, env={"HOME": home}, cwd=work)
    same(have, [str(work), ["work"]])


@cases.each(["/usr/sbin", "/bin", "/usr"])
def home_of_the_system(home):
    """As daemons have: it is not covered."""
    have, _ = probe(place, "user", f"""
        say([sorted(os.listdir("{home}")), os.environ["HOME"]])
    """, env={"HOME": home})
    same(have, [sorted(os.listdir(home)), home])


@cases.each(("user", "root-r"))
def trust_files(who):
    have, _ = probe(place, who, """
        base = "/etc/egressd-trust/"
        say([open(p).read() for p in (base + "ca.pem", base + "bundle.pem",
             base + "ca.jks", "/etc/ssl/cert.pem")] +
            [open(p).read() for p in ("/etc/ssl/certs/ca-certificates.crt",
             "/usr/lib/ssl/cert.pem") if os.path.exists(p)])
    """)
    ca, bundle, java = (data.decode() for data in TRUST[:3])
    same(have[:4], [ca, bundle, java, bundle])
    same(set(have[3:]), {bundle})


@cases.each(("user", "user-r"))
def environment(who):
    given = {"KEPT": "yes", "JAVA_TOOL_OPTIONS": "-Xmx1g",
             "SSL_CERT_FILE": "x", "EGRESSD_SESSION": "x", "PWD": "x"}
    have, _ = probe(place, who, "say(dict(os.environ))", env=given)
    same(have["KEPT"], "yes")
    assert have["PWD"] != "x", have
    java = have["JAVA_TOOL_OPTIONS"]
    assert java.startswith("-Xmx1g -Djavax.net.ssl.trustStore=/etc/"), java
    for name in ("SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE",
                 "PIP_CERT", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO",
                 "AWS_CA_BUNDLE", "HTTPLIB2_CA_CERTS", "HEX_CACERTS_PATH",
                 "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "NIX_SSL_CERT_FILE",
                 "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE"):
        same(have[name], "/etc/egressd-trust/bundle.pem")
    for name in ("NODE_EXTRA_CA_CERTS", "DENO_CERT"):
        same(have[name], "/etc/egressd-trust/ca.pem")
    same(have["EGRESSD_SESSION"], "job-42")
    same(have["HOME"], "/root" if who == "user-r" else str(place.home(who)))


@cases.each(WHO)
def identity_inside(who):
    have, _ = probe(place, who, """
        status = dict(l.split(":\\t", 1) for l in open("/proc/self/status")
                      if ":\\t" in l)
        say([os.getuid(), os.getgid(), os.stat(".").st_uid,
             status["NoNewPrivs"].strip(), status["CapEff"].strip(),
             os.path.basename(os.getcwd())])
    """)
    uid = 0 if who != "user" else place.work(who).stat().st_uid
    same(have[:4], [uid, uid, uid, "1"])
    same(int(have[4], 16) == 0, who == "user" and uid != 0)
    same(have[5], place.work(who).name)


@cases.case
def unknown_user_has_a_name():
    """A user that /etc/passwd does not know, as from a directory service."""
    if os.getuid() != 0:
        raise Skip("not root")
    box = Sandbox(place, "root", ["/usr/bin/id", "-un"], env={"USER": "ldap"},
                  user=54321, group=54321, extra_groups=[], cwd="/")
    same((box.finish().rc, box.out), (0, "ldap\n"))


def fake_fence(code):
    path = place.dir / f"fence-{code}"
    path.write_text(f"#!/bin/sh\necho lacking >&2\nexit {code}\n")
    path.chmod(0o755)
    return path


@cases.each(("user", "root"))
def poor_kernel(who):
    """Without redirection: well-known ports, and a notice."""
    have, engine = probe(place, who, DNS + """
say([tcp("192.0.2.1", 443), tcp("2001:db8::1", 80), tcp("192.0.2.1", 5432),
     ask_udp("8.8.8.8"), ask_udp("2001:db8::53"), ask_tcp("8.8.8.8"),
     socket.getaddrinfo("x.test", 80, socket.AF_INET)[0][4][0]])
""", opts=["-f", fake_fence(2)])
    same(engine.redirect, 0)
    same(have, ["192.0.2.1 443", "2001:db8::1 80", "ECONNREFUSED",
                ANSWER4, ANSWER4, ANSWER4, ANSWER4])
    done = run_box(place, who, "/bin/true", opts=["-f", fake_fence(2)])
    assert "no redirection on this kernel" in done.err, done.err


@cases.each([1, 3, "missing"])
def fence_fails(how):
    """Anything else than a poor kernel: no sandbox."""
    fence = "/nonexistent" if how == "missing" else fake_fence(how)
    done = run_box(place, "user", "/bin/echo", "ran", opts=["-f", fence])
    same((done.rc, done.out), (125, ""))
    assert "the fence failed" in done.err, done.err


@cases.case
def fence_alone():
    """A second go, and a namespace whose interface is up, are refused."""
    fence = f"{place.fence} -t 65001 -d 65053 -g 1"
    done = run(["unshare", "-rn", "sh", "-c", f"{fence}; echo $?; {fence}; "
                "echo $?; ip link add v0 type veth peer name v1 && "
                f"ip link set v0 up && {fence}; echo $?"])
    same(done.stdout, "0\negressd-fence: table: File exists\n1\n"
         "egressd-fence: v0 is up: not the namespace of a sandbox\n1\n")


@cases.case
def starts_fast():
    times = []
    for _ in range(7):
        began = time.monotonic()
        same(run_box(place, "user", "/bin/true").rc, 0)
        times.append((time.monotonic() - began) * 1000)
    print(f"# start to end: {min(times):.0f} ms at best, "
          f"{statistics.median(times):.0f} ms in the middle")
    assert min(times) < 250, times


if __name__ == "__main__":
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        cases.main()
    finally:
        place.remove()
