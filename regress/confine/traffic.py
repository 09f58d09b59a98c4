#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""k8sd at work, looked at from outside: it is confined as it was at rest, and
holds connections to its API server and nothing else that is new."""

import os
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from case import Cases, Skip  # noqa: E402
from daemon import Daemon  # noqa: E402
from procs import descriptors, status  # noqa: E402
from standin_kube import Kube  # noqa: E402

cases = Cases()
ROOT = os.geteuid() == 0
SESSIONS = 20
PERMITTED = re.compile(r"/dev/null|pipe:.*|socket:.*|anon_inode:\[event.*\]")


def new_daemon(kube):
    daemon = Daemon("")
    token = daemon.dir / "token"
    token.write_text("none")
    token.chmod(0o600)
    daemon.write(f"""policy "none" {{ }}
        cluster "c" {{ server "{kube.url}" token file "{token}" }}
        sandbox "pod" kubernetes {{ policy "none" ungated cluster "c"
            image "x" heartbeat 1s }}
    """)
    return daemon


def remote_ports(pid):
    """Of its TCP connections."""
    inodes = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in descriptors(pid)}
    found = set()
    for name in ("tcp", "tcp6"):
        path = pathlib.Path(f"/proc/{pid}/net/{name}")
        for line in path.read_text().splitlines()[1:] if path.exists() else []:
            fields = line.split()
            if f"socket:[{fields[9]}]" in inodes:
                found.add(int(fields[2].rsplit(":", 1)[1], 16))
    return found


def use(daemon):
    """All that k8sd can be asked for, and things that fail."""
    for n in range(SESSIONS):
        answer = daemon.ask("session.start", session_id=f"s{n}",
                            sandbox="pod")
        assert answer.get("ok"), answer
    for op, fields in (("pods.list", {"sandbox": "pod"}),
                       ("pods.reap", {"sandbox": "pod"}),
                       ("session.heartbeat", {"session_id": "s1"}),
                       ("cluster.check", {"name": "pod"}),
                       ("pods.terminate", {"session_id": "s2"}),
                       ("session.stop", {"session_id": "s3"}),
                       ("session.stop", {"session_id": "s4",
                                         "delete": True})):
        answer = daemon.ask(op, **fields)
        assert answer.get("ok"), (op, answer)
    # There is no exec here: the client is hung up on.
    with daemon.client() as client:
        client.ask("session.attach", session_id="s5")
        client.sock.recv(1)


@cases.case
def k8sd_under_traffic():
    if not ROOT:
        raise Skip("only root sees what k8sd holds")
    kube = Kube()
    with new_daemon(kube) as daemon:
        pid = daemon.processes()["k8sd"]
        before = status(pid)
        use(daemon)
        kube.wait(lambda: sum(c[0] == "PATCH" for c in kube.calls) > SESSIONS)
        assert daemon.processes()["k8sd"] == pid, daemon.log()
        now = status(pid)
        for name in ("Uid", "Gid", "Groups", "Seccomp", "NoNewPrivs",
                     "CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb"):
            assert now[name] == before[name], (name, now[name])
        assert now["Seccomp"] == "2" and now["NoNewPrivs"] == "1", now
        assert int(now["CapEff"], 16) == 0, now["CapEff"]
        links = {os.readlink(f"/proc/{pid}/fd/{fd}")
                 for fd in descriptors(pid)}
        links -= {str(daemon.stderr)}
        assert all(PERMITTED.fullmatch(link) for link in links), links
        assert remote_ports(pid) <= {kube.server.server_port}, \
            remote_ports(pid)
        assert "killed" not in daemon.log(), daemon.log()


cases.main()
