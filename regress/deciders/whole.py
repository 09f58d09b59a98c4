#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Every shape of decider, asked by a whole daemon about real requests: what
it allows arrives, what it denies is refused and recorded with its reason."""

import atexit
import json
import pathlib
import shutil
import socket
import sys
import tempfile
import threading

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / "regress" / "lib")]
from case import Cases  # noqa: E402
from gate import GOOD, Gate, Pair  # noqa: E402
from origin import authority  # noqa: E402
from standin_decider import (StandinDecider, anthropic, openai,  # noqa: E402
                             tool)
from standin_origin import StandinOrigin, always, answer  # noqa: E402

cases = Cases()

DECIDE = """
def decide(q):
    good = q["request"]["path"].startswith("/good")
    return {"decision": "allow" if good else "deny", "reason": "by its path"}
"""
ONCE = "import json, sys\n" + DECIDE + \
    "print(json.dumps(decide(json.load(sys.stdin))))\n"
KEPT = "import json, sys\n" + DECIDE + """
for line in sys.stdin:
    q = json.loads(line)
    print(json.dumps({"id": q["id"], **decide(q["question"])}), flush=True)
"""
exec(DECIDE)


def directory():
    path = pathlib.Path(tempfile.mkdtemp(prefix="egressd-deciders."))
    path.chmod(0o755)
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def program(text, options=""):
    path = directory() / "decider"
    path.write_text(f"#!/usr/bin/python3\n{text}")
    path.chmod(0o755)
    return f'exec {{ command {{ "{path}" }}\n{options}\n}}'


def over_http(kind, wrap, read, options=""):
    """A server that decides as the programs do, on TLS."""
    server = StandinDecider(
        lambda request: (200, {}, wrap(decide(read(request.json)))))
    server.__enter__()
    atexit.register(server.__exit__)
    trust = authority("root").cert
    return (f'{kind} {{ url "{server.url()}"\ntrust file "{trust}"\n'
            f'{options}\n}}')


def over_socket():
    def serve(conn):
        with conn, conn.makefile("rw") as file:
            for line in file:
                q = json.loads(line)
                file.write(json.dumps({"id": q["id"],
                                       **decide(q["question"])}) + "\n")
                file.flush()

    def accept():
        while True:
            threading.Thread(target=serve, args=[listener.accept()[0]],
                             daemon=True).start()

    path = directory() / "judge"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    threading.Thread(target=accept, daemon=True).start()
    return f'socket {{ path "{path}" }}'


SHAPES = {
    "exec": lambda: program(ONCE),
    "persistent": lambda: program(KEPT, "persistent"),
    "socket": over_socket,
    "webhook": lambda: over_http("webhook", dict, lambda q: q),
    "anthropic": lambda: over_http(
        "agent", lambda a: anthropic(tool(a)),
        lambda q: json.loads(q["messages"][0]["content"]),
        'api anthropic\nmodel "m"'),
    "openai": lambda: over_http(
        "agent", lambda a: openai(json.dumps(a)),
        lambda q: json.loads(q["messages"][1]["content"]),
        'api openai\nmodel "m"'),
}


@cases.each(SHAPES)
def decides(shape):
    cert = authority().leaf(GOOD)
    with StandinOrigin(always(answer()), cert) as origin:
        rules = f'decide "guard" host "{GOOD}" port {origin.port} cache off'
        with Gate(rules, authority().cert,
                  more=f'decider "guard" {SHAPES[shape]()}\n') as gate:
            pair = Pair(origin, gate, True)
            with pair.open() as wire:
                assert wire.ask(pair.get("/good")).status == 200
                refused = wire.ask(pair.get("/evil"))
            assert refused.status == 403, refused
            record = gate.final(path="/evil")
            assert record["kind"] == "request_denied", record
            assert record["reason"] == "decider: by its path", record
            assert gate.final(path="/good")["kind"] == "request_closed"


if __name__ == "__main__":
    cases.main()
