#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""What `egressctl run' makes of how it is called: a connection as its standard
streams, and a HOME that does not say where the home is."""

import os
import pathlib
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from runlib import WHO, identity, place  # noqa: E402
from case import Cases, Skip  # noqa: E402
from daemon import WAIT_S  # noqa: E402

cases = Cases()
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


@cases.each(WHO)
def connection(who):
    """As `</dev/tcp/...' and socket units give it: the command reads and
    writes what the peer does, and has no socket."""
    here = place()
    conf, _ = here.conf(who)
    script = (f"exec {here.ctl} run -q -f {conf} -- sh -c 'read a; echo got $a;"
              " read a || echo end; for i in 0 1 2; do test -S /dev/fd/$i && "
              "echo socket; done; echo error >&2; exit 5' "
              "<>/dev/tcp/127.0.0.1/$PORT >&0 2>&1")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(WAIT_S)
        process = subprocess.Popen(
            ["/bin/bash", "-c", script], cwd=here.fresh(who, "work"),
            env={"PATH": PATH, "HOME": str(here.fresh(who, "home")),
                 "PORT": str(server.getsockname()[1])}, **identity(who))
        try:
            peer = server.accept()[0]
            peer.settimeout(WAIT_S)
            peer.sendall(b"word\n")
            assert peer.recv(100) == b"got word\n"
            peer.shutdown(socket.SHUT_WR)
            text = peer.makefile().read()
            assert text == "end\nerror\n", text
            assert process.wait(WAIT_S) == 5
        finally:
            process.kill()
            process.wait()


@cases.each(WHO)
def home_by_database(who):
    """With HOME unset, `/', missing or another's, the home that the user
    database has is not shown because the caller stands in it."""
    if os.getuid() != 0:
        raise Skip("not root: it is the test that changes /etc/passwd")
    here = place()
    conf, _ = here.conf(who)
    home = here.fresh(who, "home")
    (home / "secret").write_text("x")
    uid = identity(who).get("user", 0)
    passwd = here.dir / f"passwd-{who}"
    passwd.write_text(f"someone:x:{uid}:{uid}::{home}:/bin/sh\n")
    drop = f"setpriv --reuid {uid} --regid {uid} --clear-groups" if uid else ""
    for says in (None, "/", f"{here.dir}/missing", str(here.dir)):
        env = {"PATH": PATH, **({"HOME": says} if says else {})}
        done = subprocess.run(
            ["unshare", "-m", "sh", "-c", f"mount --bind {passwd} /etc/passwd "
             f'&& exec {drop} "$@"', "x", here.ctl, "run", "-f", conf, "--",
             "sh", "-c", f"ls -a {home}; echo x > {home}/made; echo x > made; "
             "echo $HOME"], cwd=home, env=env, capture_output=True, text=True,
            timeout=WAIT_S * 2)
        assert f"{home} is not exposed" in done.stderr, (says, done)
        assert "secret" not in done.stdout, (says, done)
        assert not (home / "made").exists(), says
        want = says if says and len(says) > 1 else str(home)
        assert done.stdout.splitlines()[-1] == want, (says, done)


@cases.each(WHO)
def host_socket(who):
    """In the working directory: out of reach, unless it is asked for."""
    here = place()
    conf, _ = here.conf(who)
    work = here.fresh(who, "work")
    code = ("import socket; s = socket.socket(socket.AF_UNIX); "
            "s.connect('agent'); print(s.recv(9).decode())")
    with socket.socket(socket.AF_UNIX) as host:
        host.bind(str(work / "agent"))
        os.chmod(work / "agent", 0o777)
        host.listen()
        host.setblocking(False)
        done = here.run(who, "run", "-q", "-f", conf, "--", "python3", "-c",
                        code, work=work)
        assert "PermissionError" in done.stderr, done
        try:
            host.accept()
            raise AssertionError("it was reached")
        except BlockingIOError:
            pass
        host.settimeout(WAIT_S)
        process = here.spawn(who, "run", "-q", "-U", "-f", conf, "--",
                             "python3", "-c", code, work=work)
        with host.accept()[0] as peer:
            peer.sendall(b"word")
        assert process.communicate(timeout=WAIT_S)[0] == b"word\n"


if __name__ == "__main__":
    try:
        cases.main()
    finally:
        place().end()
