#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""The fence of a pod, in the network of one: what the workspace tries, what the
gate may, and what the fence says of a place where it does not belong."""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from podnet import (DNS, FENCE, OUT, POD, PORT, PYTHON, RULES,  # noqa: E402
                    TCP, Namespace, Pod)
from case import Cases, Skip, run  # noqa: E402
from hands import WAIT_S, within  # noqa: E402

cases = Cases()
FAMILIES = (4, 6)
FIRST_ONLY = pathlib.Path("/proc/sys/net/core/netdev_max_backlog")


def same(have, want):
    assert have == want, f"{have!r}, expected {want!r}"


def refused(said):
    assert said in ("EPERM", "EACCES", "ECONNREFUSED", "EHOSTUNREACH"), said


# ---- what goes where --------------------------------------------------------

@cases.each(FAMILIES)
def wire_is_seen(family):
    """That all these could fail: without a fence everything gets out."""
    with Pod() as pod:
        same(pod.workspace(f"say(udp('{OUT[family]}', 443))"), "echo hello")
        assert ["udp", POD[family], 443, "hello"] in pod.seen()


@cases.each(FAMILIES)
def tcp_goes_to_the_gate(family):
    with Pod() as pod:
        pod.fenced().serve()
        for port in (80, 443, 22, 9, 65535):
            same(pod.workspace(f"say(tcp('{OUT[family]}', {port}))"),
                 f"gate {OUT[family]} {port}")
        # Its own address is no way round, and the gate's port there none.
        same(pod.workspace(f"say(tcp('{POD[family]}', {TCP}))"),
             f"gate {POD[family]} {TCP}")
        pod.nothing_came()


@cases.each(FAMILIES)
def names_go_to_the_gate(family):
    with Pod() as pod:
        pod.fenced().serve()
        same(pod.workspace(f"say([udp('{OUT[family]}', 53), "
                           f"tcp('{OUT[family]}', 53)])"),
             ["gate has hello", f"gate {OUT[family]} 53"])
        pod.nothing_came()


@cases.each(FAMILIES)
def without_gate_nothing(family):
    """The gate has died, or is not there yet."""
    with Pod() as pod:
        pod.fenced()
        for said in pod.workspace(
                f"say([tcp('{OUT[family]}', 443), tcp('{OUT[family]}', 53), "
                f"udp('{OUT[family]}', 53), udp('{OUT[family]}', 443)])"):
            refused(said)
        pod.nothing_came()


@cases.each(FAMILIES)
def gate_goes_out(family):
    """For IPv6 the neighbour has to be asked for first."""
    with Pod() as pod:
        pod.fenced()
        same(pod.as_gate(f"say([udp('{OUT[family]}', 53, mark=MARK), "
                         f"tcp('{OUT[family]}', 443, mark=MARK)])"),
             ["echo hello", "echo hello"])


@cases.each(FAMILIES)
def another_mark_does_not(family):
    with Pod() as pod:
        pod.fenced()
        for mark in ("1", "MARK ^ 1", "MARK | 0x80000000"):
            refused(pod.as_gate(f"say(udp('{OUT[family]}', {PORT}, "
                                f"mark={mark}))"))
        pod.nothing_came()


@cases.each(FAMILIES)
def neighbours_are_heard(family):
    """Who asks for our address is answered, after all is forgotten."""
    with Pod() as pod:
        pod.fenced()
        pod.far.do("ip neigh flush all")
        pod.net.do("ip neigh flush all")
        same(pod.as_gate(f"say(udp('{OUT[family]}', {PORT}, mark=MARK))"),
             "echo hello")


@cases.case
def loopback_is_the_workspaces():
    with Pod() as pod:
        pod.fenced()
        same(pod.workspace("""
            said = []
            for host in ("127.0.0.1", "127.9.8.7", "::1"):
                server = make(host, socket.SOCK_STREAM)
                server.bind((host, 0))
                server.listen()
                with make(host, socket.SOCK_STREAM) as client:
                    client.connect(server.getsockname()[:2])
                    server.accept()[0].sendall(b"hi")
                    said.append(client.recv(2).decode())
            say(said)"""), ["hi"] * 3)


# ---- what the workspace tries -----------------------------------------------

@cases.each(FAMILIES)
def other_protocols(family):
    """Refused at once, and counted."""
    with Pod() as pod:
        pod.fenced()
        done = pod.net.run("sysctl", "-qw", "net.ipv4.ping_group_range=0 9")
        same(done.returncode, 0)
        before = pod.counted("refuse")
        said = pod.workspace(f"""
            host = "{OUT[family]}"
            icmp, echo = (58, 128) if ":" in host else (1, 8)
            def ping():
                s = socket.socket(make(host, 2).family, socket.SOCK_DGRAM,
                                  icmp)
                s.connect((host, 0))
                s.send(struct.pack(">BBHHH", echo, 0, 0, 1, 1) + b"secret")
            attempt(ping)
            say([udp(host, 443), udp(host, 1), udp(host, 65535)])""")
        for each in said:
            refused(each)
        assert pod.counted("refuse") - before > len(said)
        pod.nothing_came()


@cases.each(FAMILIES)
def gate_ports_on_purpose(family):
    host = "127.0.0.1" if family == 4 else "::1"
    with Pod() as pod:
        pod.fenced().serve()
        before = pod.counted("refuse")
        same(pod.workspace(f"say([tcp('{host}', {TCP}), tcp('{host}', {DNS}), "
                           f"udp('{host}', {DNS})])"),
             ["ECONNREFUSED", "ECONNREFUSED", "EPERM"])
        assert pod.counted("refuse") - before >= 3


@cases.each(FAMILIES)
def riding_the_gates_udp(family):
    """Same addresses and ports as a query of the gate's that was answered: the
    connection is known, its packets still have no mark."""
    with Pod() as pod:
        pod.fenced()
        same(pod.as_gate(f"say([udp('{OUT[family]}', {PORT}, b'first', 40000, "
                         "MARK) for i in range(3)])"), ["echo first"] * 3)
        refused(pod.workspace(f"say(udp('{OUT[family]}', {PORT}, b'secret', "
                              "40000))"))
        assert not any("secret" in str(line) for line in pod.seen())


SAYS_MARK = """
    def by_option(host):
        return udp(host, {port}, b"secret", mark=MARK)
    def by_message(host):
        with make(host, socket.SOCK_DGRAM) as s:
            s.sendmsg([b"secret"], [(socket.SOL_SOCKET, SO_MARK,
                struct.pack("I", MARK))], 0, (host, {port}))
            return s.recv(4096).decode()
    say([attempt(f, h) for f in (by_option, by_message)
         for h in {hosts!r}])
"""
SAYS_MARK = SAYS_MARK.format(port=PORT, hosts=list(OUT.values()))


@cases.each(["root", "user_namespace", "nobody"])
def the_gates_mark(who):
    """By option and by control message; rights in a user namespace of one's
    own are none in the pod's network."""
    wrap = {"root": [], "user_namespace": ["unshare", "--user",
                                           "--map-root-user"],
            "nobody": ["setpriv", "--reuid", "65534", "--regid", "65534",
                       "--clear-groups"]}[who]
    with Pod() as pod:
        pod.fenced()
        same(pod.workspace(SAYS_MARK, wrap=wrap), ["EPERM"] * 4)
        pod.nothing_came()


@cases.case
def the_gates_mark_with_net_raw():
    """Why box refuses to start with it: the fence cannot tell."""
    with Pod() as pod:
        pod.fenced()
        said = pod.workspace(SAYS_MARK, caps="-net_admin")
        if said[0] == "EPERM":
            raise Skip("a kernel where NET_RAW marks nothing")
        same(said, ["echo secret"] * 4)


@cases.each(FAMILIES)
def groups_are_not_told(family):
    """A report to the neighbours that a group is joined has the group in it:
    as good as a message."""
    with Pod() as pod:
        pod.fenced()
        before = pod.counted("refuse")
        pod.workspace(f"""
            s = make("{OUT[family]}", socket.SOCK_DGRAM)
            if {family} == 6:
                group = socket.inet_pton(socket.AF_INET6,
                                         "ff15::7365:6372:6574")
                s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP,
                             group + struct.pack(
                                 "I", socket.if_nametoindex("eth0")))
            else:
                s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP,
                             socket.inet_aton("239.115.101.99") +
                             socket.inet_aton("{POD[4]}"))
            with open("/proc/net/" + ("igmp6" if {family} == 6 else
                                      "igmp")) as f:
                say(f.read())""")
        # The kernel tells after a while, and when the group is left.
        within(WAIT_S, lambda: pod.counted("refuse") > before, "a report")
        pod.nothing_came()


# ---- who comes in -----------------------------------------------------------

@cases.each(FAMILIES)
def nobody_comes_in(family):
    """Neither to a server of the workspace nor, by mistake, of the gate."""
    with Pod() as pod:
        pod.fenced()
        server = subprocess.Popen(pod.net.argv(PYTHON, "-c", f"""if True:
            import socket
            s = socket.create_server(("{'' if family == 4 else '::'}", 8080),
                family={'socket.AF_INET' if family == 4 else
                        'socket.AF_INET6'})
            print("ready", flush=True)
            print("came", s.accept()[1], flush=True)"""),
            stdout=subprocess.PIPE, text=True)
        try:
            same(server.stdout.readline(), "ready\n")
            before = pod.counted("receive")
            done = pod.far.run(PYTHON, "-c", f"""if True:
                import socket
                s = socket.socket(socket.{'AF_INET' if family == 4 else
                                          'AF_INET6'})
                s.settimeout(2)
                try:
                    s.connect(("{POD[family]}", 8080))
                    print("in")
                except TimeoutError:
                    print("out")""")
            same(done.stdout, "out\n")
            assert pod.counted("receive") > before
            assert server.poll() is None
        finally:
            server.kill()
            rest, _ = server.communicate()
        same(rest, "")


# ---- run again --------------------------------------------------------------

@cases.each(FAMILIES)
def twice_under_a_connection(family):
    """What goes on goes on."""
    with Pod() as pod:
        pod.fenced().serve()
        client = subprocess.Popen(pod.net.argv(PYTHON, "-c", f"""if True:
            import socket, sys
            s = socket.create_connection(("{OUT[family]}", 443), 60)
            print(s.recv(100).decode().strip(), flush=True)
            sys.stdin.readline()
            s.sendall(b"more")
            print(s.recv(100).decode(), flush=True)"""),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            same(client.stdout.readline(), f"gate {OUT[family]} 443\n")
            for _ in range(5):
                pod.fenced()
            out, _ = client.communicate("go\n", 60)
        finally:
            client.kill()
            client.wait()
        same(out, "gate has more\n")
        pod.nothing_came()


@cases.case
def many_at_once():
    """They take turns; each finds what it wants."""
    with Pod() as pod:
        fences = [subprocess.Popen(pod.net.argv(FENCE, *RULES),
                                   stderr=subprocess.PIPE, text=True)
                  for _ in range(8)]
        for fence in fences:
            _, said = fence.communicate(timeout=60)
            same((fence.returncode, said), (0, ""))
        pod.fenced("-n")


@cases.case
def stale_table():
    """Of another version, or of somebody who likes its name."""
    with Pod() as pod:
        pod.net.do("nft add table inet egressd { chain refuse { type filter "
                   "hook output priority -5 ; policy accept ; accept ; } ; "
                   "chain x { type route hook output priority -150 ; "
                   "meta mark set 0x45475244 ; } ; set s { type "
                   "ipv4_addr ; } ; }")
        pod.fenced()
        refused(pod.workspace(f"say(udp('{OUT[4]}', {PORT}))"))
        pod.nothing_came()


PLANTED = {
    "rule": "nft insert rule inet egressd refuse accept",
    "last_rule": "nft add rule inet egressd receive accept",
    "none": "nft flush chain inet egressd refuse",
    "chain": "nft add chain inet egressd extra",
    "hook": "nft add chain inet egressd x { type route hook output priority "
            "-200 ; }",
    "policy": "nft add chain inet egressd refuse { policy accept ; }",
    "asleep": "nft add table inet egressd { flags dormant ; }",
    "table": "nft add table ip another",
    "gone": "nft delete table inet egressd",
}


@cases.each(PLANTED)
def read_back(what):
    with Pod() as pod:
        pod.fenced().fenced("-n")
        pod.net.do(PLANTED[what])
        done = pod.fence("-n")
        assert done.returncode == 1 and done.stdout, done
        # To look changes nothing; to set it puts it right, if it is ours.
        same(pod.fence("-n").returncode, 1)
        same(pod.fence().returncode, 1 if what == "table" else 0)
        if what == "table":
            assert "table another" in pod.fence().stdout


@cases.case
def anothers_rules_and_closed():
    """Refused, but what is ours is in place."""
    with Pod() as pod:
        pod.net.do("nft add table ip nat { chain o { type nat hook output "
                   "priority -150 ; } ; }")
        done = pod.fence()
        same((done.returncode, done.stdout), (
            1, "egressd-fence: table nat: another's rules are in this "
            "namespace\n"))
        refused(pod.workspace(f"say(udp('{OUT[4]}', {PORT}))"))


# ---- where ------------------------------------------------------------------

@cases.case
def not_on_a_machine():
    """With -n: if it were wrong, this machine would not be cut off."""
    if not FIRST_ONLY.exists():
        raise Skip("the machine's own network namespace is not to be seen")
    done = run([FENCE, *RULES, "-n"])
    same((done.returncode, done.stdout), (
        1, "egressd-fence: this is the machine's network, not that of a "
        "pod\n"))


@cases.each(["0.0.0.0", "::", POD[4], POD[6]])
def not_where_somebody_serves(address):
    """A machine that is a container itself."""
    with Pod() as pod:
        server = subprocess.Popen(pod.net.argv(PYTHON, "-c", f"""if True:
            import socket
            s = socket.create_server(("{address}", 10250), family=socket.{
                'AF_INET6' if ':' in address else 'AF_INET'})
            print("ready", flush=True)
            s.accept()"""), stdout=subprocess.PIPE, text=True)
        try:
            same(server.stdout.readline(), "ready\n")
            done = pod.fence()
            same((done.returncode, done.stdout), (
                1, "egressd-fence: somebody serves port 10250: not the "
                "network of a new pod\n"))
            # In a pod that has the fence already that is the workspace.
            pod.net.do("nft add table inet egressd")
            pod.fenced()
        finally:
            server.kill()
            server.communicate()


@cases.case
def loopback_servers_are_none():
    with Pod() as pod:
        pod.serve()
        pod.fenced()


@cases.case
def without_ipv6():
    with Pod() as pod:
        pod.net.do("sysctl -qw net.ipv6.conf.all.disable_ipv6=1")
        pod.fenced().serve()
        same(pod.workspace(f"say([tcp('{OUT[4]}', 443), udp('{OUT[4]}', 53)])"),
             [f"gate {OUT[4]} 443", "gate has hello"])
        same(pod.as_gate(f"say(udp('{OUT[4]}', {PORT}, mark=MARK))"),
             "echo hello")


@cases.case
def rights():
    """NET_ADMIN, and none but that."""
    only = ["setpriv", "--inh-caps", "-all", "--bounding-set"]
    with Pod() as pod:
        done = pod.fence(wrap=[*only, "-all,+net_admin"])
        same((done.returncode, done.stdout), (0, ""))
        pod.net.do("nft delete table inet egressd")
        done = pod.fence(wrap=[*only, "-all"])
        assert done.returncode == 1 and "not permitted" in done.stdout, done


@cases.case
def usage():
    net = Namespace()
    try:
        for args in ([], RULES[:-2], RULES[1:], [*RULES, "x"],
                     [*RULES, "-n", "-v", "/tmp"], [*RULES[:-1], "0"],
                     [*RULES[:-1], "x"], [*RULES[:-1], "0x100000000"],
                     [*RULES[:-1], "-1"], [*RULES, "-t", "0"]):
            done = net.run(FENCE, *args)
            assert done.returncode == 1 and done.stdout, (args, done)
        same(net.run("nft", "list", "ruleset").stdout, "")
    finally:
        net.close()


cases.main()
