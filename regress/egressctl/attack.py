#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Regress of egressctl attack: it finds what leaks where there is no gate, and
nothing in a sandbox behind one.
"""

import contextlib
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from case import Cases, Skip  # noqa: E402
from daemon import BUILD, EGRESSCTL, UIDS  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
EVIL = "203.0.113.9"
NET = ["unshare", "-n"] if os.getuid() == 0 else ["unshare", "-r", "-n"]

cases = Cases()


def run(argv, **options):
    return subprocess.run([str(a) for a in argv], capture_output=True,
                          text=True, timeout=200, **options)


def results(done):
    """Case to result, by the JSON; and the sum."""
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines and "blocked" in lines[-1], (done.stdout, done.stderr)
    return {one["case"]: one["result"] for one in lines[:-1]}, lines[-1]


def without_gate(*words, more=()):
    """Beside EVIL, with nothing in between."""
    if run([*NET, "true"]).returncode != 0:
        raise Skip("no network namespaces")
    return run([*NET, sys.executable, HERE / "standin_evil.py", EVIL, *more,
                "--", EGRESSCTL, *words])


@cases.case
def lists_cases():
    done = run([EGRESSCTL, "attack", "-l"])
    assert done.returncode == 0 and len(done.stdout.splitlines()) > 15, done
    names = [line.split()[0] for line in done.stdout.splitlines()]
    done = run([EGRESSCTL, "-j", "attack", "-l", *names[:2]])
    assert [json.loads(line)["case"]
            for line in done.stdout.splitlines()] == names[:2], done


@cases.case
def usage():
    for words, why in ((["nonsense\033"], 'unknown case "nonsense\\033"'),
                       (["-e", "evil.test"], "-e: must be"),
                       (["-e", "127.0.0.2"], "-e: must be"),
                       (["-e", "::1"], "-e: must be")):
        done = run([EGRESSCTL, "attack", *words])
        assert done.returncode == 2 and why in done.stderr, done


@cases.case
def not_without_a_fence():
    """What it sends stays in a sandbox, or is asked for."""
    done = without_gate("attack", "-e", EVIL)
    assert (done.returncode, done.stdout) == (2, ""), done
    assert "EGRESSD_SESSION is not set" in done.stderr, done


@cases.case
def leaks_without_a_gate():
    done = without_gate("-j", "attack", "-o", "-e", EVIL)
    found, total = results(done)
    for name in ("dns-udp", "dns-types", "tcp-ports", "udp", "mapped",
                 "host", "hello"):
        assert found[name] == "LEAKED", (name, found)
    assert total["leaked"] >= 7 and done.returncode == 1, total
    # The answer of one's own kernel is no leak, nor is lo a way out.
    assert found["icmp"] == found["packet"] == "blocked", found


@cases.case
def text_of_a_leak():
    done = without_gate("attack", "-o", "-e", EVIL, "tcp-ports", "control")
    said = done.stdout.splitlines()
    assert done.returncode == 1, done
    assert re.fullmatch(r"LEAKED   tcp-ports   .*: it came back from port 22",
                        said[0]), said
    assert re.match(r"blocked  control ", said[1]), said
    assert re.search(r"contains egress-attack-[0-9a-f]{16}$", said[2]), said
    assert said[3:] == ["1 blocked, 1 leaked, 0 skipped"], said


@cases.case
def frames_without_a_fence():
    done = without_gate("-j", "attack", "-o", "packet", more=["--wire"])
    found, _ = results(done)
    assert found == {"packet": "LEAKED"} and done.returncode == 1, done


@cases.case
def needs_an_address():
    done = without_gate("-j", "attack", "-o", "host", "udp")
    found, total = results(done)
    assert set(found.values()) == {"skipped"} and done.returncode == 0, done
    assert total == {"blocked": 0, "leaked": 0, "skipped": 2}, total


@contextlib.contextmanager
def unix_server(answer):
    """Someone who listens on a socket of the file system."""
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "s")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen()

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        yield path
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


@cases.case
def sockets_of_the_host():
    with unix_server(b"{}\n") as path:
        env = {"EGRESSD_SOCKET": path, "SSH_AUTH_SOCK": path}
        found, _ = results(run([EGRESSCTL, "-j", "attack", "-o", "control",
                                "neighbours"], env=env))
    assert found == {"control": "LEAKED", "neighbours": "LEAKED"}, found
    with unix_server(b"") as path:
        found, _ = results(run([EGRESSCTL, "-j", "attack", "-o", "control"],
                               env={"EGRESSD_SOCKET": path}))
    assert found == {"control": "blocked"}, found


@cases.each(["user", "root"])
def blocked_in_a_sandbox(who):
    """An ordinary user's, and with root inside."""
    with tempfile.TemporaryDirectory(prefix="attack.") as tmp:
        os.chmod(tmp, 0o755)
        conf = pathlib.Path(tmp, "conf")
        work = pathlib.Path(tmp, "work")
        work.mkdir()
        conf.write_text(
            (f"uids {UIDS}\n" if os.getuid() == 0 else "") +
            'policy "p" { allow host "api.good.test" }\n')
        done = run([EGRESSCTL, "run", "-q", "-f", conf, "-x", BUILD,
                    *(["-r"] if who == "root" else []), "--", EGRESSCTL, "-j",
                    "attack", "-e", EVIL, "-a", "api.good.test"], cwd=work)
    found, total = results(done)
    assert done.returncode == 0, (found, done.stderr)
    assert set(found.values()) == {"blocked"}, found
    assert total["leaked"] == 0 and total["blocked"] == len(found), total


if __name__ == "__main__":
    cases.main()
