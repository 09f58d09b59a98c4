#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""egressctl mcp with a whole egressd: sandboxes that the daemon makes, what
their gate refuses, and how both end."""

import atexit
import os
import pathlib
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "lib"), str(HERE.parent / "egressctl")]
from case import Cases, run  # noqa: E402
from daemon import EGRESSCTL, Daemon, until  # noqa: E402
from mcplib import MODERN, Client, same, text, values  # noqa: E402

cases = Cases()
VERSION = "2025-11-25"
USER = 'user "nobody"' if os.geteuid() == 0 else ""
top = pathlib.Path(tempfile.mkdtemp(prefix="egressd-mcp."))
top.chmod(0o755)
atexit.register(shutil.rmtree, top, ignore_errors=True)
daemon = Daemon(f"""
	policy "none" {{ }}
	sandbox "local" local {{ policy "none" {USER} cwd "{top}" }}
	sandbox "virtual" virtual {{ policy "none" {USER} size 64M }}
	sandbox "mounts" virtual {{ policy "none" {USER} size 64M
		mount below "{top}" read-write }}
""")
atexit.register(daemon.end)


def started():
    if daemon.process is None:
        daemon.start()
        daemon.settle()


def work():
    directory = pathlib.Path(tempfile.mkdtemp(dir=top))
    if os.geteuid() == 0:
        shutil.chown(directory, "nobody")
    return directory


def argv(*words):
    return [EGRESSCTL, "-s", str(daemon.socket), "mcp", *words]


def sessions():
    return {s["session_id"] for s in daemon.ask("session.list")["sessions"]}


def own(sandbox, version=VERSION):
    """A client with a session of its own, and where that is on this side."""
    started()
    directory = work()
    words = ["-w", str(directory)] if sandbox == "local" else []
    return Client(argv("--sandbox", sandbox, *words), version), directory


@cases.each(["local", "virtual"])
def a_sandbox_of_its_own(sandbox):
    """Every tool, the gate's refusals, and the end of all with the client."""
    client, directory = own(sandbox)
    session, = sessions()
    client.call("write", path="a.txt", content="one two\n")
    same((directory / "a.txt").exists(), sandbox == "local")
    client.call("edit", path="a.txt", old="two", new="2")
    same(values(client.call("read", path="a.txt"))["content"], "one 2\n")
    same(values(client.call("glob", pattern="*.txt"))["paths"], ["a.txt"])
    same(values(client.call("grep", pattern="2"))["count"], 1)
    result = client.call(
        "exec", command="curl -sS -o /dev/null -w '%{http_code}' "
        "--max-time 20 https://evil.example/x")
    same((values(result)["stdout"], values(result)["refused"]), ("403", 1))
    same(values(result)["refusals"], [{
        "host": "evil.example", "reason": "default_deny", "count": 1}])
    assert "The gate refused 1 request during this call: evil.example " \
        "default_deny (1)" in text(result), result
    same(values(client.call("exec", command="true"))["refused"], 0)
    same(client.end(), 0)
    until("the session is over", lambda: session not in sessions())


@cases.case
def where_the_sandbox_says():
    """Not where its client happens to stand, which nobody has asked for."""
    started()
    client = Client(argv("--sandbox", "local"), VERSION)
    same(values(client.call("exec", command="pwd"))["stdout"], f"{top}\n")
    same(client.end(), 0)


@cases.case
def a_session_that_is_there():
    """Two clients, of which none ends it; then it is stopped."""
    started()
    directory = work()
    assert daemon.ask("session.start", session_id="kept", sandbox="local",
                      cwd=str(directory)).get("ok")
    first = Client(argv("kept"), VERSION)
    second = Client(argv("kept"), MODERN)
    first.call("write", path="x", content="seen")
    same(values(second.call("read", path="x"))["content"], "seen")
    same(first.end(), 0)
    number = second.start("exec", command="echo x >y; sleep 600")
    until("it runs", (directory / "y").exists)
    assert daemon.ask("session.stop", session_id="kept").get("ok")
    result = second.answer(number)["result"]
    same(result["_meta"]["egressd/error"], "gone")
    assert "the session kept has ended (" in text(result), result
    same(second.end(), 1)


@cases.case
def a_session_that_is_not():
    started()
    for words, op in ((["nobody-s"], "session.attach"),
                      (["--sandbox", "nonsense"], "session.start")):
        done = run(argv(*words))
        same(done.returncode, 1, done.stdout)
        assert op in done.stdout, done.stdout


@cases.case
def a_directory_that_only_the_sandbox_has():
    started()
    client = Client(argv("--sandbox", "virtual", "-w", "/only/in/there"),
                    VERSION)
    same(values(client.call("exec", command="pwd"))["stdout"],
         "/only/in/there\n")
    same(client.end(), 0)


@cases.case
def mounts_of_nothing():
    started()
    done = run(argv("--allow-mount", f"{top}/none", "--sandbox", "virtual"))
    same(done.returncode, 2)
    assert f"--allow-mount {top}/none: No such file" in done.stdout
    done = run(argv("--allow-mount", str(top), "--sandbox", "virtual"))
    same(done.returncode, 0)
    assert "takes no mounts" in done.stdout, done.stdout


def tools(client):
    return [t["name"] for t in client.ask("tools/list")["tools"]]


@cases.case
def mount():
    """What the user has named, and the sandbox's block permits."""
    started()
    given, kept = work(), work()
    for directory in (given, kept):
        directory.chmod(0o777)
        (directory / "file").write_text("from outside")
    (given / "in").mkdir()
    (given / "out").symlink_to(kept)
    client = Client(argv("--sandbox", "mounts", "--allow-mount", str(given)),
                    VERSION)
    assert "mount" in tools(client)
    client.call("mount", source=str(given), path="/data")
    same(values(client.call("read", path="/data/file"))["content"],
         "from outside")
    same(values(client.call("exec", command="touch /data/x"))["exit_code"], 1)
    client.call("mount", source=f"{given}/in/..", path="here/", write=True)
    client.call("write", path="here/new", content="from inside")
    same((given / "new").read_text(), "from inside")
    for source in (kept, given / "out", given / "none", top, "/", "/root"):
        same(client.wrong("mount", source=str(source), path="/m")[0],
             "bad_request", source)
    same(client.wrong("mount", source=str(given), path="/proc/x")[0],
         "mount_failed")
    same(client.end(), 0)


@cases.each(["mounts", "virtual", "local"])
def no_mount(sandbox):
    """Neither where nobody permits it nor where it does not work."""
    started()
    words = [] if sandbox == "mounts" else ["--allow-mount", str(top)]
    client = Client(argv("--sandbox", sandbox, *words), VERSION)
    assert "mount" not in tools(client)
    same(client.fails("tools/call", name="mount", arguments={
        "source": str(top), "path": "/m"})[0], -32602)
    same(client.end(), 0)


@cases.case
def what_the_block_does_not_permit():
    """Whatever the user has named."""
    started()
    client = Client(argv("--sandbox", "mounts", "--allow-mount", "/"), VERSION)
    for source in ("/etc", "/usr/share", "/root"):
        same(client.wrong("mount", source=source, path="/m")[0],
             "not_permitted", source)
    same(client.end(), 0)


cases.main()
