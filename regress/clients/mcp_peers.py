#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Clients of the Model Context Protocol as npm has them, with `egressctl mcp'
and the real box: each lists and calls every tool, and checks what it gets
against the schemas.  They have no network."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "lib"), str(HERE.parent / "egressctl")]
from case import Cases, Skip, run  # noqa: E402
from mcplib import ENV, Place, same  # noqa: E402
from standin_sessions import SESSION  # noqa: E402

cases = Cases()
PACKAGES = HERE.parents[1] / "build/npm"
MODULES = PACKAGES / "lib/node_modules"
OURS = "@modelcontextprotocol"
V1, V2 = f"{OURS}/sdk/dist/esm/client", f"{OURS}/client/dist"
SDKS = {
    "v1": (f"{V1}/index.js", f"{V1}/stdio.js"),
    "v2": (f"{V2}/index.mjs", f"{V2}/stdio.mjs"),
    "auto": (f"{V2}/index.mjs", f"{V2}/stdio.mjs"),
    "modern": (f"{V2}/index.mjs", f"{V2}/stdio.mjs"),
}
TOOLS = ["read", "write", "edit", "exec", "glob", "grep", "list", "stat",
         "mkdir", "remove"]
ALONE = ["unshare", "--user", "--map-root-user", "--net"]


def package(path):
    found = MODULES / path
    if not found.exists():
        raise Skip(f"{'/'.join(path.split('/')[:2])} is not installed")
    if run([*ALONE, "true"]).returncode != 0:
        raise Skip("no user namespaces here")
    return str(found)


def run_alone(here, *words):
    home = pathlib.Path(here.top) / "home"
    home.mkdir(exist_ok=True)
    return subprocess.run(
        [*ALONE, *words], cwd=here.top, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=200,
        env={**ENV, "HOME": str(home), "NO_COLOR": "1"})


def node(here, *words):
    return run_alone(here, shutil.which("node") or "node", *words)


@cases.each(SDKS)
def sdk(version):
    """The official one, of both generations and with both sorts of start."""
    index, stdio = (package(path) for path in SDKS[version])
    with Place() as here:
        done = node(here, str(HERE / "mcp_peer.mjs"), index, stdio, version,
                    *here.argv(SESSION))
        same(done.returncode, 0, done.stderr[-2000:])
        got = json.loads(done.stdout.splitlines()[-1])
        same(got["server"], "egressd")
        same(got["tools"], TOOLS)
        calls = got["calls"]
        same({name: calls[name][0] for name in calls},
             dict.fromkeys(calls, False))
        same(set(calls), set(TOOLS))
        same(calls["read"][1]["content"], "one 2\n")
        same((calls["exec"][1]["stdout"], calls["exec"][1]["stderr"],
              calls["exec"][1]["exit_code"]), ("one 2\n", "err\n", 0))
        same(calls["glob"][1]["paths"], ["a.txt", "d"])
        same(calls["grep"][1]["matches"][0]["line"], "one 2")
        same((got["failed"], got["cancelled"], got["unknown"]),
             (True, "yes", -32602))
        same((got["resources"], got["text"]), (1, "one 2\n"))
        assert got["progress"], got
        same(got["several"], [str(n) for n in range(20)])
        same(os.listdir(here.work), ["a.txt"])


CALLS = {
    "write": {"path": "a.txt", "content": "one two\n"},
    "edit": {"path": "a.txt", "old": "two", "new": "zwei"},
    "read": {"path": "a.txt", "length": "100"},
    "exec": {"command": "cat a.txt", "timeout_ms": "5000"},
    "mkdir": {"path": "d"},
    "glob": {"pattern": "*"},
    "grep": {"pattern": "one", "case_sensitive": "true"},
    "list": {},
    "stat": {"path": "a.txt"},
    "remove": {"path": "d", "recursive": "true"},
}


@cases.case
def inspector():
    cli = package(f"{OURS}/inspector/clients/launcher/build/index.js")
    with Place() as here:
        def ask(method, *more):
            done = node(here, cli, "--cli", *here.argv(SESSION), "--method",
                        method, *more)
            same(done.returncode, 0, done.stdout[-500:] + done.stderr[-2000:])
            return json.loads(done.stdout)
        tools = ask("tools/list", "--strict")["tools"]
        same([t["name"] for t in tools], TOOLS)
        same(set(CALLS), set(TOOLS))
        for name, arguments in CALLS.items():
            result = ask("tools/call", "--tool-name", name, *(
                word for key, value in arguments.items()
                for word in ("--tool-arg", f"{key}={value}")))
            same(result["isError"], False, (name, result))
            if name == "exec":
                same(result["structuredContent"]["stdout"], "one zwei\n")
        resources = ask("resources/list")["resources"]
        same([r["name"] for r in resources], ["a.txt"])
        got = ask("resources/read", "--uri", resources[0]["uri"])
        same(got["contents"][0]["text"], "one zwei\n")
        same(len(ask("resources/templates/list")["resourceTemplates"]), 1)


@cases.case
def claude():
    """As doc/agents.md says; it connects to tell how the server is."""
    package("@anthropic-ai/claude-code/package.json")
    program = PACKAGES / "bin/claude"
    with Place() as here:
        for words in (["add", "sandbox", "--", *map(str, here.argv(SESSION))],
                      ["list"]):
            done = run_alone(here, str(program), "mcp", *words)
            same(done.returncode, 0, done.stdout[-500:] + done.stderr[-500:])
        assert "Connected" in done.stdout, done.stdout
        assert any(r["op"] == "session.attach"
                   for r in here.egressd.requests)


cases.main()
