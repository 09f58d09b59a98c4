#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""What the program of a custom sandbox leaves behind, by however many forks
and sessions of its own: gone with the program, its session or the daemon."""

import atexit
import os
import pathlib
import shutil
import signal
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases  # noqa: E402
from daemon import Client, Daemon, alive, until  # noqa: E402

cases = Cases()
USER = 'user "nobody"' if os.geteuid() == 0 else ""
top = pathlib.Path(tempfile.mkdtemp(prefix="egressd-custom."))
top.chmod(0o755)
atexit.register(shutil.rmtree, top, ignore_errors=True)
program = top / "program"
# The shell's own pid comes first, then those that it has let go of.
program.write_text("""#!/bin/sh
echo $$
for i in 1 2 3; do
	setsid sh -c 'setsid sh -c "echo \\$\\$; exec sleep 9001" &'
done
sh -c 'trap "" TERM HUP INT; echo $$; exec sleep 9002' &
case $(head -c 1) in
k)	kill -9 $$ ;;
esac
exit 3
""")
program.chmod(0o755)
COUNT = 5
CONF = f"""
	policy "none" {{ }}
	sandbox "program" custom "{program}" {{ policy "none" {USER} ungated }}
"""


def started():
    daemon = Daemon(CONF)
    atexit.register(daemon.end)
    daemon.start()
    daemon.settle()
    return daemon


def attach(daemon):
    """A client, and the processes that its program tells of."""
    daemon.ask("session.start", session_id="s", sandbox="program")
    client = Client(daemon.socket)
    answer = client.ask("session.attach", session_id="s")
    assert answer.get("ok"), answer
    pids = [int(client.file.readline()) for _ in range(COUNT)]
    assert all(alive(pid) for pid in pids), pids
    return client, pids


def all_gone(pids):
    until("all are gone", lambda: not any(alive(pid) for pid in pids))


def ends(daemon, client, pids, how):
    if how == "program":
        client.sock.sendall(b"e")
    elif how == "killed":
        client.sock.sendall(b"k")
    elif how == "client":
        client.close()
    elif how == "session":
        assert daemon.ask("session.stop", session_id="s").get("ok")
    elif how == "stopped":
        daemon.stop()
    else:
        daemon.process.send_signal(signal.SIGKILL)
        daemon.process.wait()
    all_gone(pids)


@cases.each(("program", "killed", "client", "session", "stopped", "daemon"))
def ends_with_its(how):
    daemon = started()
    try:
        client, pids = attach(daemon)
        ends(daemon, client, pids, how)
        if how in ("program", "killed"):
            assert client.file.read() == b""
            said = "exited with status 3" if how == "program" else \
                "died of signal 9"
            until("it is told", lambda: said in daemon.log())
        client.close()
    finally:
        daemon.end()


@cases.case
def one_of_two():
    """The other connection's is another tree."""
    daemon = started()
    try:
        (one, ones), (two, twos) = attach(daemon), attach(daemon)
        one.close()
        all_gone(ones)
        assert all(alive(pid) for pid in twos)
        two.close()
        all_gone(twos)
    finally:
        daemon.end()


cases.main()
