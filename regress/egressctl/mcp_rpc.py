#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""egressctl mcp: the protocol itself, against a sandbox that does nothing:
versions, every method, every error, lines that are none."""

import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / "regress" / "lib"), str(TOP / "regress/egressctl")]
from case import Cases  # noqa: E402
from mcplib import (  # noqa: E402
    ENV, LEGACY, META, MODERN, WAIT_S, Place, same, text)
from standin_sessions import (  # noqa: E402
    CALL, CANCEL, ERROR, OPERATIONS, RESULT, SESSION)

cases = Cases()
TOOLS = [op for op in OPERATIONS if op != "forward"]
STAT = {"type": "file", "size": 1, "mode": 420, "mtime": 1.5, "uid": 0,
        "gid": 0}


def idle(frames):
    """Answers stat, and nothing else before it is cancelled."""
    waiting = set()
    for number, kind, body in frames:
        if kind == CALL and body["op"] == "stat":
            frames.send(number, RESULT, STAT)
        elif kind == CALL:
            waiting.add(number)
        elif kind == CANCEL and number in waiting:
            waiting.remove(number)
            frames.send(number, ERROR, {"code": "cancelled",
                                        "message": "cancelled"})


def place(**more):
    return Place(idle, **more)


def alive(client):
    """It still answers, and has said nothing else."""
    result = client.call("stat", path="x")
    same(client.notices, [])
    return result


# ---- versions ---------------------------------------------------------------

@cases.each(LEGACY)
def initialize(version):
    with place() as here:
        client = here.client(version)
        same(client.hello["protocolVersion"], version)
        same(client.hello["capabilities"], {"tools": {}, "resources": {}})
        same(client.hello["serverInfo"]["name"], "egressd")
        assert "/work" in client.hello["instructions"]
        assert "resultType" not in client.hello
        same(client.ask("ping"), {})
        assert "structuredContent" in alive(client) or version < "2025-06-18"
        same(client.end(), 0)


@cases.each(["1999-01-01", "2027-01-01", MODERN])
def initialize_another_version(version):
    """The newest with a handshake is offered instead."""
    with place() as here:
        client = here.client(None)
        result = client.ask("initialize", protocolVersion=version,
                            capabilities={}, clientInfo={})
        same(result["protocolVersion"], LEGACY[-1])
        client.version = LEGACY[-1]
        alive(client)


@cases.case
def initialize_once():
    with place() as here:
        client = here.client()
        same(client.fails("initialize", protocolVersion=LEGACY[0])[0], -32600)
        alive(client)


@cases.case
def before_initialize():
    with place() as here:
        client = here.client(None)
        same(client.ask("ping"), {})
        same(client.fails("tools/list")[0], -32602)
        same(client.fails("server/discover")[0], -32602)
        same(client.fails("initialize")[0], -32602)
        same(client.fails("initialize", protocolVersion=7)[0], -32602)


@cases.case
def without_a_handshake():
    with place() as here:
        client = here.client(MODERN)
        result = client.ask("server/discover")
        same(result["supportedVersions"], [MODERN, *LEGACY[::-1]])
        same(result["resultType"], "complete")
        same(result["capabilities"], {"tools": {}, "resources": {}})
        same(result["_meta"][META + "serverInfo"]["name"], "egressd")
        assert result["ttlMs"] >= 0 and result["cacheScope"] == "private"
        same(alive(client)["resultType"], "complete")
        for method in ("tools/list", "resources/templates/list"):
            result = client.ask(method)
            assert result["ttlMs"] >= 0, result
            same(result["cacheScope"], "private")
        for method in ("ping", "initialize", "logging/setLevel"):
            same(client.fails(method)[0], -32601)
        same(client.end(), 0)


@cases.case
def both_eras_at_once():
    with place() as here:
        client = here.client()
        result = client.ask("tools/list", {
            META + "protocolVersion": MODERN,
            META + "clientCapabilities": {}})
        same(result["resultType"], "complete")
        assert "resultType" not in client.ask("tools/list")


@cases.case
def version_of_a_request():
    with place() as here:
        client = here.client(MODERN)
        code, error = client.fails("tools/list", {
            META + "protocolVersion": "1900-01-01"})
        same(code, -32022)
        same(error["data"]["requested"], "1900-01-01")
        same(error["data"]["supported"][0], MODERN)
        for meta in ({META + "protocolVersion": LEGACY[0]},
                     {META + "protocolVersion": 5},
                     {META + "clientCapabilities": None}):
            same(client.fails("tools/list", meta)[0], -32602, meta)
        alive(client)


@cases.case
def subscription():
    """Nothing is ever told, until it is cancelled or we end."""
    with place() as here:
        client = here.client(MODERN)
        one = client.begin("subscriptions/listen", notifications={
            "toolsListChanged": True})
        two = client.begin("subscriptions/listen", notifications={})
        alive_id = client.begin("server/discover")
        client.answer(alive_id)
        same([n["method"] for n in client.notices],
             ["notifications/subscriptions/acknowledged"] * 2)
        same(client.notices[0]["params"], {
            "_meta": {META + "subscriptionId": one}, "notifications": {}})
        client.cancel(one)
        same(client.fails("subscriptions/listen")[0], -32602)
        client.proc.stdin.close()
        result = client.answer(two)["result"]
        same(result["_meta"][META + "subscriptionId"], two)
        same(client.next(), None)
        same(client.end(), 0)


# ---- lists ------------------------------------------------------------------

def check_schema(schema):
    same(schema["type"], "object")
    assert set(schema["required"]) <= set(schema["properties"]), schema
    for name, value in schema["properties"].items():
        assert value["type"] in ("string", "integer", "number", "boolean",
                                 "array", "object"), (name, value)
        if value["type"] == "array":
            assert "items" in value


@cases.each([*LEGACY, MODERN])
def tools_list(version):
    with place() as here:
        client = here.client(version)
        tools = client.ask("tools/list")["tools"]
        same([t["name"] for t in tools], TOOLS)
        for tool in tools:
            check_schema(tool["inputSchema"])
            same(tool["inputSchema"]["additionalProperties"], False)
            assert tool["description"]
            same("title" in tool, version >= "2025-06-18")
            same("outputSchema" in tool, version >= "2025-06-18")
            same("annotations" in tool, version >= "2025-03-26")
            if "outputSchema" in tool:
                check_schema(tool["outputSchema"])
            if "annotations" in tool:
                hints = tool["annotations"]
                same(set(hints), {"title", "readOnlyHint", "destructiveHint",
                                  "idempotentHint", "openWorldHint"})
                same(hints["openWorldHint"], tool["name"] == "exec")
                same(hints["readOnlyHint"], tool["name"] in (
                    "read", "glob", "grep", "list", "stat"))


@cases.case
def tools_that_the_sandbox_has():
    with place(operations=["read", "exec", "forward", "mount"]) as here:
        client = here.client()
        same([t["name"] for t in client.ask("tools/list")["tools"]],
             ["read", "exec"])
        for name in ("write", "mount", "forward", "nonsense", "", None, 7):
            same(client.fails("tools/call", name=name, arguments={})[0],
                 -32602, name)


@cases.case
def tools_of_a_mute_sandbox():
    with place(operations=[]) as here:
        client = here.client()
        same(client.hello["capabilities"], {"tools": {}})
        same(client.ask("tools/list")["tools"], [])


@cases.case
def cursor():
    with place() as here:
        client = here.client()
        for method in ("tools/list", "resources/list",
                       "resources/templates/list"):
            same(client.fails(method, cursor="x")[0], -32602, method)


@cases.case
def templates():
    with place() as here:
        one, = here.client().ask("resources/templates/list")[
            "resourceTemplates"]
        same(one["uriTemplate"], "file:///{+path}")


# ---- arguments --------------------------------------------------------------

WRONG = {
    "stat": [{}, {"path": ""}, {"path": 7}, {"path": None},
             {"path": "x", "follow": 1}, {"path": "x", "more": 1}],
    "read": [{"path": "x", "offset": -1}, {"path": "x", "offset": 1.5},
             {"path": "x", "length": 0}, {"path": "x", "length": 1 << 40},
             {"path": "x", "offset": 1e300}],
    "exec": [{}, {"command": "true", "argv": ["true"]}, {"argv": []},
             {"argv": [1]}, {"argv": "true"}, {"command": ["x"]},
             {"command": "x", "env": {"a": 1}}, {"command": "x", "env": []},
             {"command": "x", "timeout_ms": 0},
             {"command": "x", "stdin": True}],
    "write": [{"path": "x"}, {"path": "x", "content": 1},
              {"path": "x", "content": "?", "encoding": "base64"},
              {"path": "x", "content": "YQ", "encoding": "base64"},
              {"path": "x", "content": "YR==", "encoding": "base64"},
              {"path": "x", "content": "YQ==YQ==", "encoding": "base64"},
              {"path": "x", "content": "a", "encoding": "latin1"}],
}


@cases.each([*LEGACY, MODERN])
def wrong_arguments(version):
    """Newer clients have their model told, older ones get an error."""
    with place() as here:
        client = here.client(version)
        for tool, several in WRONG.items():
            for arguments in several:
                if version >= "2025-11-25":
                    code, result = client.wrong(tool, **arguments)
                    same(code, "bad_request", (tool, arguments))
                    assert "structuredContent" not in result
                else:
                    same(client.fails("tools/call", name=tool,
                                      arguments=arguments)[0], -32602)
        for arguments in ([], "x", 7):
            same(client.fails("tools/call", name="stat",
                              arguments=arguments)[0], -32602)
        alive(client)


@cases.case
def too_long_for_a_frame():
    with place() as here:
        code, result = here.client().wrong("stat", path="x" * 70000)
        same(code, "failed")
        assert "65536" in text(result), result


# ---- messages ---------------------------------------------------------------

@cases.each([*LEGACY, MODERN])
def unknown_methods(version):
    with place() as here:
        client = here.client(version)
        for method in ("", "x", "tools/Call", "prompts/list", "tasks/list",
                       "logging/setLevel", "completion/complete",
                       "resources/subscribe", "roots/list"):
            code, error = client.fails(method)
            same(code, -32601, method)
            same(error["data"], {"method": method})


NOT_JSON = [b"x", b"{", b"[", b'{"a":1}}', b"{}{}", b'"\xff"', b'"\xed\xa0\x80"',
            b"nul", b'{"a":"\x01"}', b"[" * 40 + b"]" * 40, b'"\\ud800"',
            b"[" + b"1," * 200000 + b"1]", b"\x00", b"{'a':1}"]


@cases.case
def not_json():
    with place() as here:
        client = here.client()
        for line in NOT_JSON:
            client.raw(line + b"\n")
            answer = client.next()
            same((answer["id"], answer["error"]["code"]), (None, -32700),
                 line[:40])
        client.raw(b"\n \t\n\r\n")
        alive(client)


NO_REQUEST = [
    (None, 1), (None, "x"), (None, None), (None, True), (None, {}),
    (None, {"jsonrpc": "1.0", "method": "ping"}),
    (3, {"jsonrpc": "1.0", "id": 3, "method": "ping"}),
    (3, {"id": 3, "method": "ping"}),
    (3, {"jsonrpc": "2.0", "id": 3}),
    (3, {"jsonrpc": "2.0", "id": 3, "method": 7}),
    ("a", {"jsonrpc": "2.0", "id": "a", "method": None}),
    (None, {"jsonrpc": "2.0", "id": None, "method": "ping"}),
    (None, {"jsonrpc": "2.0", "id": 1.5, "method": "ping"}),
    (None, {"jsonrpc": "2.0", "id": 1e300, "method": "ping"}),
    (None, {"jsonrpc": "2.0", "id": [1], "method": "ping"}),
    (None, {"jsonrpc": "2.0", "id": True, "method": "ping"}),
    (None, []),
]


@cases.case
def no_requests():
    with place() as here:
        client = here.client()
        for number, message in NO_REQUEST:
            client.send(message)
            answer = client.next()
            same((answer["id"], answer["error"]["code"]), (number, -32600),
                 message)
        alive(client)


@cases.case
def params():
    with place() as here:
        client = here.client()
        for wrong in ([], [1], "x", 7):
            client.send({"jsonrpc": "2.0", "id": "p", "method": "ping",
                         "params": wrong})
            same(client.next()["error"]["code"], -32602)
        client.raw(b'{"jsonrpc":"2.0","id":"n","method":"tools/call","params":'
                   b'{"name":"write","arguments":{"path":"x","content":"a'
                   b'\\u0000b"}}}\n')
        answer = client.next()
        same((answer["id"], answer["error"]["code"]), ("n", -32602))
        alive(client)


@cases.case
def ids():
    with place() as here:
        client = here.client()
        for number in (0, -1, 9007199254740991, "", "x" * 1000, "é\n", "7"):
            client.send({"jsonrpc": "2.0", "id": number, "method": "ping"})
            same(client.next()["id"], number)
        client.send({"jsonrpc": "2.0", "id": "7", "method": "tools/call",
                     "params": {"name": "read", "arguments": {"path": "x"}}})
        client.send({"jsonrpc": "2.0", "id": "7", "method": "ping"})
        answer = client.next()
        same((answer["id"], answer["error"]["code"]), ("7", -32600))
        client.send({"jsonrpc": "2.0", "id": 7, "method": "ping"})
        same(client.next(), {"jsonrpc": "2.0", "id": 7, "result": {}})


@cases.case
def nobody_answers_a_notification():
    with place() as here:
        client = here.client()
        for method in ("notifications/initialized", "notifications/x", "",
                       "tools/list", "notifications/cancelled"):
            for params in ({}, {"requestId": 999}, {"requestId": {}}, [], 7):
                client.send({"jsonrpc": "2.0", "method": method,
                             "params": params})
        client.send({"jsonrpc": "2.0", "id": 5, "result": {}})
        client.send({"jsonrpc": "2.0", "id": 5, "error": {}})
        alive(client)


@cases.case
def several_lines_in_one_write_and_one_in_several():
    with place() as here:
        client = here.client(None)
        line = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\r\n'
        client.raw(b"".join(line % n for n in range(50)))
        same([client.next()["id"] for _ in range(50)], list(range(50)))
        for byte in line % 7:
            client.raw(bytes([byte]))
        same(client.next()["id"], 7)


# ---- batches ----------------------------------------------------------------

@cases.case
def batch():
    with place() as here:
        client = here.client("2025-03-26")
        client.send([
            {"jsonrpc": "2.0", "id": 1, "method": "ping"},
            {"jsonrpc": "2.0", "method": "notifications/x"},
            {"jsonrpc": "2.0", "id": 2, "method": "nope"},
            {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
                "name": "stat", "arguments": {"path": "x"}}},
            {"jsonrpc": "2.0", "id": 4, "method": "initialize", "params": {}},
            7])
        answers = {a["id"]: a for a in client.next()}
        same(set(answers), {1, 2, 3, 4, None})
        same(answers[1]["result"], {})
        same(answers[2]["error"]["code"], -32601)
        same(answers[3]["result"]["isError"], False)
        same(answers[4]["error"]["code"], -32600)
        same(answers[None]["error"]["code"], -32600)
        alive(client)


@cases.case
def batch_of_nothing():
    with place() as here:
        client = here.client("2025-03-26")
        client.send([{"jsonrpc": "2.0", "method": "notifications/x"}] * 3)
        for wrong in ([], [7] * 257):
            client.send(wrong)
            same(client.next()["error"]["code"], -32600)
        client.send([{"jsonrpc": "2.0", "id": 9, "method": "tools/call",
                      "params": {"name": "read", "arguments": {"path": "x"}}},
                     {"jsonrpc": "2.0", "method": "notifications/cancelled",
                      "params": {"requestId": 9}}])
        alive(client)


@cases.each([v for v in [*LEGACY, MODERN] if v != "2025-03-26"])
def batches_of_other_versions(version):
    with place() as here:
        client = here.client(version)
        client.send([{"jsonrpc": "2.0", "id": 1, "method": "ping"}])
        answer = client.next()
        same((answer["id"], answer["error"]["code"]), (None, -32600))
        alive(client)


# ---- bounds and ends --------------------------------------------------------

@cases.case
def a_line_without_end():
    with place() as here:
        client = here.client()
        try:
            client.raw(b"x" * (5 << 20))
        except BrokenPipeError:
            pass
        answer = client.next()
        same((answer["id"], answer["error"]["code"]), (None, -32700))
        same(client.next(), None)
        same(client.end(), 1)


@cases.case
def a_line_of_four_megabytes():
    with place() as here:
        client = here.client()
        line = json.dumps({"jsonrpc": "2.0", "id": "long", "method": "ping",
                           "params": {"x": ""}}).encode()
        client.raw(line.replace(b'""', b'"%s"' % (
            b"y" * ((4 << 20) - len(line)))) + b"\n")
        same(client.next()["id"], "long")


@cases.case
def garbage():
    """Lines that are nearly right end nobody."""
    seed = random.SystemRandom().getrandbits(32)
    dice = random.Random(seed)
    good = [json.dumps(m).encode() for m in (
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "stat", "arguments": {"path": "x"}, "_meta": {
                "progressToken": "t"}}},
        {"jsonrpc": "2.0", "id": "a", "method": "resources/read",
         "params": {"uri": "file:///x%20y"}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled",
         "params": {"requestId": 1}},
        [{"jsonrpc": "2.0", "id": 2, "method": "tools/list"}] * 2)]
    with place() as here:
        client = here.client("2025-03-26")
        for _ in range(2000):
            line = bytearray(dice.choice(good))
            for _ in range(dice.randrange(1, 6)):
                at = dice.randrange(len(line))
                line[at:at + dice.randrange(3)] = bytes(
                    dice.choices(b'"{}[]:,\\u0\x00\xff 19ex', k=dice.randrange(
                        3)))
            client.raw(bytes(line).replace(b"\n", b"") + b"\n")
        client.send({"jsonrpc": "2.0", "id": "last", "method": "ping"})
        while (answer := client.next()) is not None and (
                not isinstance(answer, dict) or answer.get("id") != "last"):
            pass
        assert answer is not None, f"it ended, seed {seed}: {client.err!r}"


@cases.case
def too_many_calls():
    with place() as here:
        client = here.client()
        numbers = [client.start("read", path=str(n)) for n in range(70)]
        late = [client.answer(n)["result"] for n in numbers[64:]]
        same({r["_meta"]["egressd/error"] for r in late}, {"too_many"})
        for number in numbers[:64]:
            client.cancel(number)
        while client.ask("tools/call", name="stat",
                         arguments={"path": "x"})["isError"]:
            pass
        same(client.answers, {})


@cases.case
def end_of_input():
    """What is under way has a moment, and is then answered."""
    with place() as here:
        client = here.client()
        number = client.start("read", path="x")
        client.proc.stdin.close()
        same(client.answer(number)["result"]["_meta"]["egressd/error"], "gone")
        same(client.end(), 0)


@cases.case
def a_pipe():
    """Answers come although the input is over at once."""
    with place() as here:
        lines = [{"jsonrpc": "2.0", "id": 1, "method": "initialize",
                  "params": {"protocolVersion": LEGACY[0]}},
                 {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
                     "name": "stat", "arguments": {"path": "x"}}}]
        done = subprocess.run(
            here.argv(SESSION), env=ENV, timeout=WAIT_S, capture_output=True,
            input=b"\n".join(json.dumps(m).encode() for m in lines) + b"\n")
        same([json.loads(m)["id"] for m in done.stdout.splitlines()], [1, 2])
        same((done.returncode, done.stderr), (0, b""))


@cases.case
def a_client_that_does_not_read():
    """It is read all the same, as far as that is sensible."""
    with place() as here:
        proc = subprocess.Popen(here.argv(SESSION), stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, env=ENV)
        proc.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"initialize",'
                         b'"params":{"protocolVersion":"2025-11-25"}}\n')
        line = b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}\n'
        proc.stdin.write(line * 300)      # with answers of 4 MiB
        proc.stdin.close()
        same(len(proc.stdout.read().splitlines()), 301)
        same(proc.wait(WAIT_S), 0)
        proc.stdout.close()


@cases.each(["pipe", "socket"])
def a_client_that_has_left(kind):
    """Its end is noticed although its other end stays open."""
    with place() as here:
        ours, theirs = socket.socketpair() if kind == "socket" else \
            map(os.fdopen, os.pipe())
        proc = subprocess.Popen(here.argv(SESSION), stdin=subprocess.PIPE,
                                stdout=theirs, stderr=subprocess.PIPE, env=ENV)
        theirs.close()
        ours.close()
        assert proc.wait(WAIT_S) in (0, -signal.SIGPIPE), proc.returncode
        proc.stdin.close()
        proc.stderr.close()


# ---- the session ------------------------------------------------------------

@cases.case
def the_session_ends():
    with place() as here:
        client = here.client()
        number = client.start("read", path="x")
        listed = client.begin("resources/read", uri="file:///x")
        alive(client)
        here.egressd.end("deadline")
        result = client.answer(number)["result"]
        same(result["_meta"]["egressd/error"], "gone")
        assert "deadline" in text(result), result
        answer = client.answer(listed)["error"]
        same(answer["code"], -32603)
        assert "deadline" in answer["message"], answer
        same(client.next(), None)
        same(client.end(), 1)
        assert b"deadline" in client.err, client.err


@cases.case
def a_session_of_our_own():
    """It is started where we are, and ends with the connection."""
    with place() as here:
        client = here.client(words=("--sandbox", "coder", "-p", "p"))
        alive(client)
        request, = here.egressd.starts
        same((request["sandbox"], request["policy"], request["caller_cwd"]),
             ("coder", "p", os.getcwd()))
        assert "session_id" not in request
        assert not here.egressd.over.is_set()
        same(client.end(), 0)
        assert here.egressd.over.wait(WAIT_S)


@cases.each(["other", "none"])
def no_session(name):
    with place() as here:
        words = ["--sandbox", name] if name == "none" else [name]
        done = subprocess.run(here.argv("-s", here.egressd.path, *words),
                              env=ENV, timeout=WAIT_S, capture_output=True,
                              stdin=subprocess.DEVNULL)
        same((done.returncode, done.stdout), (1, b""))
        assert b"no such" in done.stderr, done.stderr


@cases.case
def usage():
    with place() as here:
        for words in ([], [SESSION, "x"], ["--sandbox", "x", SESSION],
                      ["-p", "p", SESSION], ["-w", "/", SESSION], [""],
                      ["--nonsense"], ["--sandbox"]):
            done = subprocess.run(here.argv(*words), env=ENV, timeout=WAIT_S,
                                  stdin=subprocess.DEVNULL,
                                  capture_output=True)
            same((done.returncode, done.stdout), (2, b""), words)


cases.main()
