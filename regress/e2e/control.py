#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""The control socket of a running daemon, as egressd.sock(5) has it."""

import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases  # noqa: E402
from daemon import POLICY, WAIT_S, Client, Daemon, until, verify  # noqa: E402

cases = Cases()

MANY = 40
BIG = 2 ** 53 - 1


def follow(daemon, client, **fields):
    """Returns once the recorder has the follower."""
    count = followers(daemon)
    answer = client.ask("events.follow", **fields)
    assert answer == {"id": 1, "ok": True}, answer
    until("the follower is served", lambda: followers(daemon) == count + 1)


def followers(daemon):
    return daemon.ask("status")["audit"]["followers"]


def hung_up(client):
    """Nothing more comes, and then the end."""
    return client.read() is None


@cases.case
def status():
    """Every member that the manual page names, of the type it names."""
    with Daemon() as daemon:
        daemon.settle()
        answer = daemon.ask("status")
        assert answer["id"] == 1 and answer["ok"] is True, answer
        kinds = {"version": str, "generation": int, "started_at": str,
                 "configuration": str, "configuration_sha256": str,
                 "privileged": bool, "log_level": str, "clients": int,
                 "processes": list, "sessions": list, "policies": list,
                 "audit": dict}
        for name, kind in kinds.items():
            assert type(answer[name]) is kind, f"{name}: {answer[name]}"
        assert answer["generation"] == 1 and answer["clients"] == 1, answer
        assert answer["configuration"] == str(daemon.conf), answer
        assert answer["privileged"] == (os.geteuid() == 0), answer
        assert answer["audit"] == {"file": str(daemon.audit), "seq": 2,
                                   "followers": 0, "full": False}, answer
        assert [p["role"] for p in answer["processes"]] == [
            "parent", "controld", "policyd", "recorder", "dialer", "deciderd",
            "k8sd", "podd", "tlsengine", "tlsengine"], answer["processes"]
        assert [(s["session_id"], s["kind"], s["policy"], s["state"],
                 s["restarts"]) for s in answer["sessions"]] == [
            ("edge", "fixed", "open", "running", 0),
            ("other", "fixed", "open", "running", 0)], answer["sessions"]


# A line, the code that it is answered with, whether that ends it all.
REFUSALS = {
    "no_json": (b"status", "bad_json", True),
    "half": (b'{"op":"status"', "bad_json", True),
    "two": (b'{"op":"status"}{"op":"status"}', "bad_json", True),
    "empty": (b"", "bad_json", True),
    "nul": (b'{"op":"sta\0tus"}', "bad_json", True),
    "escaped_nul": (b'{"op":"status\\u0000x"}', "bad_json", True),
    "no_op": (b'{"id":7}', "bad_request", False),
    "op_twice": (b'{"op":"status","op":"reload"}', "bad_request", False),
    "op_number": (b'{"op":1}', "bad_request", False),
    "id_text": (b'{"id":"1","op":"status"}', "bad_request", False),
    "id_fraction": (b'{"id":1.5,"op":"status"}', "bad_request", False),
    "id_large": (b'{"id":9007199254740992,"op":"status"}', "bad_request",
                 False),
    "stray": (b'{"op":"status","sesion_id":"edge"}', "bad_request", False),
    "not_its": (b'{"op":"status","level":"info"}', "bad_request", False),
    "no_level": (b'{"op":"log.level"}', "bad_request", False),
    "bad_level": (b'{"op":"log.level","level":"loud"}', "bad_request", False),
    "bad_kind": (b'{"op":"events.follow","kinds":["x"]}', "bad_request",
                 False),
    "no_kind": (b'{"op":"events.follow","kinds":[]}', "bad_request", False),
    "bad_session": (b'{"op":"events.follow","session_id":"-a"}',
                    "bad_request", False),
    "unknown": (b'{"op":"stop"}', "unknown_op", False),
    "case": (b'{"op":"Status"}', "unknown_op", False),
}


@cases.case
def refusals():
    """Each bad line has its code; only what is not JSON ends the talk."""
    with Daemon() as daemon:
        for name, (line, code, ends) in REFUSALS.items():
            with daemon.client() as client:
                client.sock.sendall(line + b"\n")
                answer = client.read()
                assert answer["error"]["code"] == code, f"{name}: {answer}"
                assert answer["error"]["message"], f"{name}: {answer}"
                if ends:
                    assert hung_up(client), f"{name}: not hung up on"
                else:
                    assert client.ask("status")["ok"], name


@cases.case
def fields():
    """A field of another operation is told from one that there is not."""
    with Daemon() as daemon:
        for op, name, want in (
                ("status", "level", "level: not a field of status"),
                ("cache.list", "session", "session: no such field"),
                ("session.message", "session", "session: no such field"),
                ("status", "x" * 100, "x" * 64 + ": no such field")):
            answer = daemon.ask(op, **{name: "edge"})
            assert answer["error"] == {"code": "bad_request",
                                       "message": want}, answer


@cases.case
def ids():
    with Daemon() as daemon, daemon.client() as client:
        for number in (0, -1, BIG, -BIG):
            client.send({"op": "status", "id": number})
            answer = client.read()
            assert answer["id"] == number and answer["ok"], answer
            client.send({"op": "nothing", "id": number})
            answer = client.read()
            assert answer["id"] == number and "error" in answer, answer
        client.send({"op": "status"})
        answer = client.read()
        assert answer["id"] is None and answer["ok"], answer


@cases.case
def pipelining():
    """Fifty in one write: fifty answers, each to one of them."""
    with Daemon() as daemon, daemon.client() as client:
        ops = ["status", "nothing", "log.level", "status", "status"] * 10
        client.sock.sendall(b"".join(
            json.dumps({"id": n, "op": op, **(
                {"level": "info"} if op == "log.level" else {})}).encode() +
            b"\n" for n, op in enumerate(ops)))
        got = {}
        for _ in ops:
            answer = client.read()
            assert answer["id"] not in got, answer
            got[answer["id"]] = answer
        for n, op in enumerate(ops):
            assert ("ok" in got[n]) == (op != "nothing"), got[n]


@cases.case
def in_pieces():
    """A request may come byte by byte, and two may share a packet."""
    with Daemon() as daemon, daemon.client() as client:
        for byte in b'{"id":5,"op":"status"}\r':
            client.sock.sendall(bytes([byte]))
        client.sock.sendall(b'\n{"id":6,"op":"nothing"}\n{"id":7,')
        assert {client.read()["id"], client.read()["id"]} == {5, 6}
        client.sock.sendall(b'"op":"nothing"}\n')
        assert client.read()["id"] == 7


@cases.case
def outstanding():
    """The 65th request that waits for its answer is one too many."""
    with Daemon() as daemon, daemon.client() as other:
        recorder = daemon.processes()["recorder"]
        line = b'{"id":1,"op":"status"}\n'
        os.kill(recorder, signal.SIGSTOP)
        try:
            with daemon.client() as client:
                client.sock.sendall(line * 64)
                with daemon.client() as second:
                    second.sock.sendall(line * 65)
                    assert hung_up(second), "65 are borne"
                other.send({"id": 9, "op": "nothing"})
                assert other.read()["id"] == 9, "others wait too"
                os.kill(recorder, signal.SIGCONT)
                for _ in range(64):
                    assert client.read()["ok"], "64 are not borne"
        finally:
            os.kill(recorder, signal.SIGCONT)


@cases.case
def length():
    """65536 bytes are a request, one more is not."""
    with Daemon() as daemon:
        for size, ok in ((65536, True), (65537, False)):
            with daemon.client() as client:
                head = b'{"id":3,"op":"status"'
                line = head + b" " * (size - len(head) - 1) + b"}"
                assert len(line) == size
                client.sock.sendall(line + b"\n")
                answer = client.read()
                if ok:
                    assert answer["ok"] and answer["id"] == 3, answer
                    continue
                assert answer["error"]["code"] == "too_long", answer
                assert answer["id"] is None, answer
                assert hung_up(client), "not hung up on"


@cases.case
def read_only():
    """It permits looking; the full socket beside it permits all."""
    with Daemon(audit=True) as daemon:
        path = daemon.dir / "ro.sock"
        daemon.write(f'control socket "{path}" read-only mode 0666\n' + POLICY)
        assert daemon.ask("reload")["generation"] == 2
        assert path.stat().st_mode & 0o777 == 0o666
        with Client(path) as client:
            for op, more in (("reload", {}), ("log.level", {"level": "warn"}),
                             ("log.level", {})):
                answer = client.ask(op, **more)
                assert answer["error"]["code"] == "not_permitted", answer
            status = client.ask("status")
            assert status["generation"] == 2, status
            assert status["log_level"] == "info", status
            assert client.ask("nothing")["error"]["code"] == "unknown_op"
            follow(daemon, client)
            os.kill(daemon.settle()["edge"], signal.SIGKILL)
            assert client.read()["kind"] == "session_ended"
        assert daemon.ask("log.level", level="warn")["log_level"] == "warn"
        assert daemon.ask("reload")["ok"]


@cases.case
def read_only_crowd():
    """However many look, there is room for who may act."""
    with Daemon("limit clients 6\n" + POLICY) as daemon:
        path = daemon.dir / "ro.sock"
        daemon.write(f'limit clients 6\ncontrol socket "{path}" read-only\n' +
                     POLICY)
        assert daemon.ask("reload")["generation"] == 2
        until("nobody else", lambda: daemon.ask("status")["clients"] == 1)
        with contextlib.ExitStack() as stack:
            for _ in range(3):
                client = stack.enter_context(Client(path))
                assert client.ask("status")["ok"]
            with Client(path) as client:
                answer = client.read()
            assert answer["error"]["code"] == "too_many_clients", answer
            for _ in range(3):
                client = stack.enter_context(daemon.client())
                assert client.ask("status")["ok"]
            with daemon.client() as client:
                answer = client.read()
            assert answer["error"]["code"] == "too_many_clients", answer


@cases.case
def gone_while_waiting():
    """Who closes keeps no place, whatever it waits for; who only shuts its
    sending side down does, for the answer."""
    with Daemon() as daemon, daemon.client() as half:
        version = daemon.ask("pending.list")["version"]
        wait = {"id": 1, "op": "pending.wait", "version": version}
        half.send(wait)
        half.sock.shutdown(socket.SHUT_WR)
        for more in (), ({"id": 2, "op": "events.follow"},):
            for _ in range(3):
                with daemon.client() as client:
                    client.send({"id": 0, "op": "status"})
                    assert client.read()["ok"]
                    for request in (wait, *more):
                        client.send(request)
        until("all others are forgotten",
              lambda: daemon.ask("status")["clients"] == 2)
        half.sock.setblocking(False)
        try:
            got = half.sock.recv(1)
        except BlockingIOError:
            return
        raise AssertionError(f"the one that waits got {got}")


@cases.case
def log_level():
    """All processes take it: at debug each of them tells of a reload."""
    roles = ("controld", "policyd", "recorder", "dialer", "deciderd", "k8sd",
             "podd", "tlsengine")

    def told(generation):
        return {r for r in roles
                if f"{r}: generation {generation}\n" in daemon.log()}

    with Daemon() as daemon:
        daemon.settle()
        assert daemon.ask("reload")["generation"] == 2
        assert daemon.ask("log.level", level="debug")["log_level"] == "debug"
        assert daemon.ask("status")["log_level"] == "debug"
        assert daemon.ask("reload")["generation"] == 3
        until("debug lines of all", lambda: told(3) == set(roles))
        assert daemon.ctl("log", "level", "info").stdout == "log level info\n"
        assert daemon.ask("reload")["generation"] == 4
        daemon.settle()
        assert not told(2) and not told(4), daemon.log()


@cases.case
def log_level_trace():
    """Both ends of a channel name each message, but nothing that is in it."""
    roles = {"egressd", "controld", "policyd", "recorder", "dialer", "deciderd",
             "k8sd", "podd", "tlsengine"}
    line = re.compile(r"^(\w+): (to|from) ([\w :]+): ([A-Z_]+), (\d+) bytes"
                      r"(, a descriptor)?$")

    def traced():
        return [line.match(text) for text in daemon.log().splitlines()
                if re.match(r"\w+: (to|from) ", text)]

    def told(*wanted):
        return {m[1] for m in traced() if (m[2], m[4]) == wanted}

    with Daemon() as daemon:
        daemon.settle()
        assert daemon.ask("reload")["generation"] == 2
        assert not traced()
        assert daemon.ask("log.level", level="trace")["log_level"] == "trace"
        assert daemon.ask("reload")["generation"] == 3
        until("both ends", lambda: told("to", "CONF_DONE") ==
              roles - {"egressd"} and told("from", "CONF_END") ==
              roles - {"egressd"} and told("from", "CONF_DONE") == {"egressd"})
        assert all(traced()), daemon.log()
        sizes = {(m[4], m[5], m[6]) for m in traced()
                 if m[4] in ("RELOAD_ASK", "CONF_CONTROL")}
        assert len(sizes) == 2, sizes
        assert ("CONF_CONTROL", "1", ", a descriptor") in sizes, sizes


@cases.case
def events():
    """What a killed engine leaves behind, to all, by session and by kind."""
    with Daemon() as daemon, daemon.client() as everything, \
            daemon.client() as edge, daemon.client() as ends:
        pids = daemon.settle()
        follow(daemon, everything)
        follow(daemon, edge, session_id="edge")
        follow(daemon, ends, kinds=["session_ended", "gap"])
        for session in ("other", "edge"):
            os.kill(pids[session], signal.SIGKILL)
            until(f"{session} runs again", lambda: daemon.settle().get(
                session) not in (None, pids[session]))
        stream = [("session_ended", "other"), ("session_started", "other"),
                  ("session_ended", "edge"), ("session_started", "edge")]
        seen = [everything.read() for _ in stream]
        assert [(r["kind"], r["session_id"]) for r in seen] == stream, seen
        assert seen[0]["reason"] == "engine_died", seen[0]
        assert seen[0]["policy"] == "open", seen[0]
        assert seen[1]["reason"] is None, seen[1]
        assert [edge.read() for _ in range(2)] == seen[2:]
        assert [ends.read() for _ in range(2)] == [seen[0], seen[2]]
        assert daemon.records()[-4:] == seen
        restarts = {s["session_id"]: s["restarts"]
                    for s in daemon.ask("status")["sessions"]}
        assert restarts == {"edge": 1, "other": 1}, restarts


@cases.case
def events_without_file():
    """A stream has its own chain; what nobody saw is a hole at its start."""
    with Daemon(audit=False) as daemon, daemon.client() as client:
        pids = daemon.settle()
        assert daemon.ask("status")["audit"]["file"] is None
        follow(daemon, client)
        os.kill(pids["edge"], signal.SIGKILL)
        lines = [client.file.readline().decode().rstrip("\n")
                 for _ in range(2)]
        records = verify(lines)
        assert [r["seq"] for r in records] == [3, 4], records


@cases.case
def events_with_egressctl():
    with Daemon() as daemon, daemon.client() as client:
        follow(daemon, client, kinds=["session_ended"])
        process = daemon.spawn_ctl("-j", "events", "kind", "session_ended")
        try:
            until("a second follower", lambda: followers(daemon) == 2)
            os.kill(daemon.settle()["other"], signal.SIGKILL)
            record = json.loads(process.stdout.readline())
            assert record == client.read(), record
            assert daemon.stop() == 0
            assert process.wait(WAIT_S) == 3, process.returncode
            assert "hung up" in process.stderr.read()
        finally:
            process.kill()
            process.communicate()


def crowd(count):
    """A configuration with many sessions, whose records are long."""
    policy = "p" * 60
    return POLICY + f'policy "{policy}" {{ }}\n' + "".join(
        f'session "s{n:02}{"x" * 60}" {{ listen on 127.0.0.1 port {15100 + n} '
        f'transparent  policy "{policy}" }}\n' for n in range(count))


@cases.case
def slow_follower():
    """One that stops reading is cut, with a last line; others miss nothing."""
    with Daemon() as daemon, daemon.client() as slow, \
            daemon.client() as quick:
        daemon.settle()
        before = daemon.audit.read_text().splitlines()
        for client in (slow, quick):
            follow(daemon, client)
        lines = []

        def drain():
            last = daemon.ask("status")["audit"]["seq"]
            while len(before) + len(lines) < last:
                lines.append(quick.file.readline().decode().rstrip("\n"))

        for _ in range(100):
            for conf in (crowd(MANY), POLICY):
                daemon.write(conf)
                assert daemon.ask("reload")["ok"]
                daemon.settle()
                drain()
            if "too slow" in daemon.log():
                break
        assert "too slow" in daemon.log(), f"{len(lines)} records are borne"
        until("one follower", lambda: followers(daemon) == 1)
        drain()
        verify(lines, before[-1])
        assert daemon.audit.read_text().splitlines() == before + lines
        got = slow.file.read().decode().splitlines()
        gap = json.loads(got.pop())
        assert got == lines[:len(got)], "what it got first is wrong"
        assert (gap["kind"], gap["reason"], gap["session_id"]) == (
            "gap", "slow_follower", None), gap
        assert gap["first_seq"] == json.loads(lines[len(got)])["seq"], gap


@cases.case
def follower_may_not_talk():
    """What it sends is thrown away, and it goes on."""
    with Daemon() as daemon, daemon.client() as client:
        pids = daemon.settle()
        follow(daemon, client)
        client.sock.sendall(b'{"id":2,"op":"reload"}\n' * 40000)
        os.kill(pids["edge"], signal.SIGKILL)
        assert client.read()["kind"] == "session_ended"
        assert daemon.ask("status")["generation"] == 1


@cases.case
def too_many_followers():
    with Daemon("limit clients 128\n" + POLICY) as daemon:
        pids = daemon.settle()
        clients = [daemon.client() for _ in range(65)]
        try:
            for client in clients[:-1]:
                assert client.ask("events.follow")["ok"]
            until("64 followers", lambda: followers(daemon) == 64)
            assert clients[-1].ask("events.follow")["ok"]
            answer = clients[-1].read()
            assert answer["error"]["code"] == "too_many_followers", answer
            assert hung_up(clients[-1])
            os.kill(pids["edge"], signal.SIGKILL)
            for client in clients[:-1]:
                assert client.read()["kind"] == "session_ended"
        finally:
            for client in clients:
                client.close()
        until("no follower", lambda: followers(daemon) == 0)


def connections(daemon):
    """To its control socket, accepted or not."""
    lines = pathlib.Path("/proc/net/unix").read_text().splitlines()
    return sum(line.endswith(f" {daemon.socket}") for line in lines) - 1


@cases.case
def stopping():
    """Whoever waits for an answer is told that none will come, and whoever
    comes then finds no socket, though not all have ended yet."""
    with Daemon() as daemon:
        pids = daemon.settle()
        # Once one is left of ours, controld has closed the others.
        with daemon.client() as client:
            until("no others", lambda: client.ask("status")["clients"] == 1)
            os.kill(pids["controld"], signal.SIGSTOP)
            waits = daemon.spawn_ctl("status")
        try:
            until("it has connected", lambda: connections(daemon) == 2)
            os.kill(pids["recorder"], signal.SIGSTOP)
            daemon.process.send_signal(signal.SIGTERM)
            until("the socket is gone", lambda: not daemon.socket.exists())
            late = daemon.ctl("status")
            assert late.returncode == 3 and \
                "egressd is not running" in late.stderr, late
            _, said = waits.communicate(timeout=WAIT_S)
            assert waits.returncode == 3 and \
                "without an answer: it is stopping" in said, said
        finally:
            waits.kill()
            waits.communicate()
        assert daemon.wait() == 0



cases.main()
