#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Sessions whose sandbox is a pod, as clients of the control socket and the
audit file see them: a whole daemon, but for k8sd, which we are.  No cluster is
there; what k8sd makes of a cluster is regress/k8s."""

import contextlib
import hashlib
import json
import os
import pathlib
import socket
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases, Skip  # noqa: E402
from channel import C  # noqa: E402
from daemon import WAIT_S, Client, until  # noqa: E402
from standin_k8sd import ERROR, ROOT, STANDIN, Pods  # noqa: E402
from standin_program import directory, mount_standin  # noqa: E402

cases = Cases()
ALL = 0xffffffff
NOBODY, GAMES = 65534, 5        # in every Debian's /etc/passwd
TOKEN = directory() / "token"
TOKEN.write_text("none")
TOKEN.chmod(0o600)
CONF = f"""
policy "one" {{ allow host "a.test" }}
policy "two" {{ }}
cluster "far" {{ server "https://127.0.0.1:9" token file "{TOKEN}" }}
sandbox "pod" kubernetes {{ policy "one" image "x" cluster "far" cwd "/w"
	ungated }}
sandbox "hers" kubernetes {{ policy "one" image "x" cluster "far" ungated
	for user "nobody" }}
sandbox "local" custom "/bin/cat" {{ policy "one" ungated
	{'user "nobody"' if ROOT else ""} }}
"""


def same(have, want):
    assert have == want, f"{have!r}, expected {want!r}"


@contextlib.contextmanager
def pods(conf=CONF):
    with Pods(conf) as d:
        yield d
        if d.process.poll() is None:
            d.k8sd.silent()
            same(d.stop(), 0)
            warned = [line for line in d.log().splitlines()
                      if "killed" in line or "bad message" in line]
            assert not warned, warned


class Asking(Client):
    """A client whose answer is read when it is due."""

    def __init__(self, d, op, **fields):
        super().__init__(d.socket)
        self.send({"id": 7, "op": op, **fields})

    def error(self):
        answer = self.read()
        assert answer is not None and "error" in answer, answer
        return answer["error"]["code"], answer["error"]["message"]

    def ok(self):
        answer = self.read()
        assert answer is not None and answer.get("ok"), answer
        return answer


def start(d, name="work", sandbox="pod", **fields):
    """Whoever has asked, and what k8sd was told."""
    if name is not None:
        fields["session_id"] = name
    client = Asking(d, "session.start", sandbox=sandbox, **fields)
    return client, d.k8sd.expect("POD_START")


def run(d, name="work", **fields):
    """A session whose pod runs; what k8sd was told."""
    client, told = start(d, name, **fields)
    with client:
        d.k8sd.runs(told)
        client.ok()
    return told


def refused(d, op, **fields):
    with Asking(d, op, **fields) as client:
        return client.error()


def recorded(d, name, kind):
    def found():
        return [r for r in d.records() if r["session_id"] == name and
                r["kind"] == kind]
    until(f"{kind} of {name}", found)
    return found()[-1]


def as_user(uid, function):
    """What a function returns in a process of another user's."""
    if not ROOT:
        raise Skip("a daemon that is not root has one user")
    ours, theirs = socket.socketpair()
    if (pid := os.fork()) == 0:
        with contextlib.suppress(BaseException):
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            theirs.sendall(json.dumps(function()).encode())
        os._exit(0)
    theirs.close()
    with ours, ours.makefile() as file:
        text = file.read()
    os.waitpid(pid, 0)
    assert text, "it has failed"
    return json.loads(text)


def ask_as(d, uid, op, **fields):
    def ask():
        with Client(d.socket) as client:
            return client.ask(op, **fields)
    return as_user(uid, ask)


# ---- start ----

@cases.case
def start_shows_progress():
    with pods() as d:
        client, told = start(d, env={"A": "secret"}, cwd="/w/x",
                             deadline=600, progress=True)
        same((told.session, told.sandbox, told.policy, told.owner,
              told.named, told.cwd, told.deadline_ms, told.variables),
             ("work", "pod", "one", os.geteuid(), 1, "/w/x", 600000,
              "A=secret\0"))
        with client:
            same(d.sessions()["work"]["state"], "starting")
            for text in ("asking", 'pulling "x"\n\x1b'):
                d.k8sd.send("POD_PROGRESS", number=told.number, text=text)
                same(client.read(), {"id": 7, "progress": text})
            d.k8sd.runs(told, "egressd-work-1")
            answer = client.ok()
            same({k: answer[k] for k in ("session_id", "sandbox", "backend",
                                         "policy", "cwd", "pod")},
                 {"session_id": "work", "sandbox": "pod", "policy": "one",
                  "backend": "kubernetes", "cwd": "/w/x",
                  "pod": "egressd-work-1"})
        have = d.ask("session.show", session_id="work")
        same((have["state"], have["pod"]), ("running", "egressd-work-1"))
        begun = recorded(d, "work", "session_started")
        same((begun["environment"], begun["ca_sha256"]), (["A"], None))
        assert "secret" not in d.audit.read_text() + json.dumps(have)
    same(d.process.returncode, 0)


@cases.case
def progress_only_for_who_asks():
    """Two wait for one pod; its name is no reason for a second."""
    with pods() as d:
        client, told = start(d)
        with client, Asking(d, "session.start", session_id="work",
                            sandbox="pod", progress=True) as other:
            until("it waits", lambda: d.ask("status")["clients"] == 3)
            d.k8sd.send("POD_PROGRESS", number=told.number, text="pulling")
            same(other.read()["progress"], "pulling")
            d.k8sd.runs(told)
            same(client.ok()["pod"], "pod-1")
            same(other.ok()["pod"], "pod-1")
        with Asking(d, "session.start", session_id="work",
                    sandbox="pod") as again:
            same(again.ok()["existed"], True)
        code, message = refused(d, "session.start", session_id="work",
                                sandbox="pod", policy="two")
        same((code, "policy is one" in message), ("session_exists", True))


@cases.each(sorted(set(ERROR) - {"POD_ERROR_NONE", "POD_ERROR_MAX"}))
def start_fails(error):
    """The code and the words are the cluster's; the record has them, and the
    name is free when they are told."""
    with pods() as d:
        client, told = start(d)
        with client:
            d.k8sd.fails(told, error, "what happened")
            code, message = client.error()
        same(message, "what happened")
        assert code != "internal", code
        assert "work" not in d.sessions()
        same(recorded(d, "work", "session_ended")["reason"],
             "sandbox_died: what happened")
        run(d)


@cases.case
def for_whom():
    """As for the other sandboxes, and k8sd hears of nobody else."""
    with pods() as d:
        answer = ask_as(d, GAMES, "session.start", sandbox="hers",
                        session_id="no")
        same(answer["error"]["code"], "not_permitted")
        assert f"not for user {GAMES}" in answer["error"]["message"], answer
        client, told = start(d, sandbox="hers")
        d.k8sd.runs(told)
        client.ok()
        client.close()
        # Nor do others ask about its pods.
        for op, fields in (
                ("pods.list", {"sandbox": "hers"}),
                ("session.list", {"sandbox": "hers"}),
                ("pods.reap", {"sandbox": "hers"}),
                ("cluster.check", {"name": "hers"}),
                ("cluster.check", {"name": "far"}),
                ("pods.terminate", {"session_id": "else", "sandbox": "hers"}),
                ("pods.terminate", {"session_id": "work"}),
                ("session.heartbeat", {"session_id": "work"}),
                ("session.stop", {"session_id": "work", "delete": True}),
                ("session.attach", {"session_id": "work"})):
            answer = ask_as(d, GAMES, op, **fields)
            same((op, answer["error"]["code"]), (op, "not_permitted"))


@cases.case
def of_another_user():
    """Who has started it, and for whom k8sd is asked."""
    with pods() as d:
        def begin():
            with Client(d.socket) as client:
                return client.ask("session.start", sandbox="hers",
                                  session_id="nobodys")
        got = []
        thread = threading.Thread(
            target=lambda: got.append(as_user(NOBODY, begin)))
        if not ROOT:
            raise Skip("a daemon that is not root has one user")
        thread.start()
        told = d.k8sd.expect("POD_START", owner=NOBODY)
        d.k8sd.runs(told)
        thread.join()
        assert got[0].get("ok"), got
        thread = threading.Thread(target=lambda: got.append(
            ask_as(d, NOBODY, "pods.reap", sandbox="hers")))
        thread.start()
        d.k8sd.answers(d.k8sd.expect("POD_ASK", uid=NOBODY))
        thread.join()
        same(got[1]["pods"], [])


# ---- attach ----

def attachments(d):
    """What is on record of who was attached, by its kinds."""
    return [r["kind"] for r in d.records() if "tached" in r["kind"]]


@cases.case
def attach():
    """The connection itself goes to k8sd, and no byte of it is ours."""
    with pods() as d:
        told = run(d)
        with Asking(d, "session.attach", session_id="work") as client:
            same(client.ok(), {"id": 7, "ok": True, "session_id": "work"})
            passed = d.k8sd.expect("POD_ATTACH", number=told.number)
            with socket.socket(fileno=passed.fd) as wire:
                client.sock.sendall(b"frames")
                same(wire.recv(6, socket.MSG_WAITALL), b"frames")
                wire.sendall(b"answer")
                same(client.sock.recv(6, socket.MSG_WAITALL), b"answer")
                until("attached", lambda: attachments(d) == [
                    "session_attached"])
                wire.shutdown(socket.SHUT_RDWR)
            same(client.sock.recv(1), b"")
        same(d.sessions()["work"]["attached"], 1)
        same(d.ask("session.show", session_id="work")["gated"], False)
        until("detached", lambda: attachments(d) == [
            "session_attached", "session_detached"])


@cases.case
def attach_too_early():
    with pods() as d:
        client, told = start(d)
        same(refused(d, "session.attach", session_id="work")[0], "busy")
        d.k8sd.runs(told)
        client.ok()
        client.close()


# ---- the end ----

STOPS = {"rule": ({}, "POD_FATE_RULE"),
         "delete": ({"delete": True}, "POD_FATE_DELETE"),
         "keep": ({"delete": False}, "POD_FATE_KEEP")}


@cases.each(STOPS)
def stop(how):
    fields, fate = STOPS[how]
    with pods() as d:
        told = run(d)
        with Asking(d, "session.stop", session_id="work",
                    **fields) as client, \
                Asking(d, "session.stop", session_id="work") as other:
            d.k8sd.expect("POD_STOP", number=told.number, fate=C[fate])
            same(d.sessions()["work"]["state"], "ending")
            d.k8sd.ended(told)
            same(client.ok()["reason"], "by_request")
            other.ok()
        same(recorded(d, "work", "session_ended")["reason"], "by_request")
        run(d)


@cases.case
def terminate_one_that_runs_here():
    with pods() as d:
        told = run(d)
        with Asking(d, "pods.terminate", session_id="work") as client:
            d.k8sd.expect("POD_STOP", fate=C["POD_FATE_DELETE"])
            d.k8sd.ended(told)
            same(client.ok()["reason"], "by_request")


@cases.case
def stop_of_another_kind():
    with pods() as d:
        d.ask("session.start", session_id="cat", sandbox="local")
        code, message = refused(d, "session.stop", session_id="cat",
                                delete=True)
        same((code, "has no pod" in message), ("not_supported", True))
        same(d.ask("session.list", sandbox="local")["sessions"][0][
            "session_id"], "cat")
        same(refused(d, "session.heartbeat", session_id="cat")[0],
             "not_supported")


@cases.case
def owner_leaves():
    """Without an id a session ends with its connection."""
    with pods() as d:
        client, told = start(d, None)
        same(told.named, 0)
        d.k8sd.runs(told)
        client.ok()
        client.close()
        d.k8sd.expect("POD_STOP", fate=C["POD_FATE_RULE"])
        d.k8sd.ended(told)
        same(recorded(d, told.session, "session_ended")["reason"],
             "owner_left")


@cases.case
def deadline():
    """What is left of it then is deleted, named or not."""
    with pods() as d:
        told = run(d, deadline=1)
        with Asking(d, "session.wait", session_id="work") as client:
            d.k8sd.expect("POD_STOP", fate=C["POD_FATE_DELETE"])
            d.k8sd.ended(told, text="it does not go")
            same(client.ok()["reason"], "deadline")
        assert "it does not go" in d.log(), d.log()


ENDS = {"evicted": ("CAUSE_SANDBOX", "Evicted: memory",
                    "sandbox_died: Evicted: memory"),
        "silent": ("CAUSE_NONE", "", "sandbox_died"),
        "deadline": ("CAUSE_DEADLINE", "DeadlineExceeded",
                     "deadline: DeadlineExceeded")}


@cases.each(ENDS)
def pod_ends(which):
    """By itself, or by somebody else: who waits is told, and the record."""
    cause, text, reason = ENDS[which]
    with pods() as d:
        told = run(d)
        with Asking(d, "session.wait", session_id="work") as client:
            until("it waits", lambda: d.ask("status")["clients"] == 2)
            d.k8sd.ended(told, cause, text)
            same(client.ok()["reason"], reason)
        same(recorded(d, "work", "session_ended")["reason"], reason)


CROSSINGS = {
    "ended": lambda k8sd, told: k8sd.ended(told),
    "ready": lambda k8sd, told: (k8sd.runs(told), k8sd.ended(told)),
    "failed": lambda k8sd, told: k8sd.fails(told, "POD_ERROR_READY", "late"),
    "progress": lambda k8sd, told: (
        k8sd.send("POD_PROGRESS", number=told.number, text="x"),
        k8sd.ended(told)),
}


@cases.each(CROSSINGS)
def stop_while_it_starts(which):
    """Whatever was on its way when k8sd was told."""
    with pods() as d:
        client, told = start(d)
        with client, Asking(d, "session.stop", session_id="work") as stopper:
            d.k8sd.expect("POD_STOP", number=told.number)
            CROSSINGS[which](d.k8sd, told)
            same(client.error(), ("start_failed",
                                  "it was stopped before it began"))
            same(stopper.ok()["reason"], "by_request")
        run(d)


@cases.case
def stop_before_it_is_asked_for():
    """The parent may still be looking at the client, or just be done."""
    with pods() as d:
        def serve():
            while (message := d.k8sd.messages.get()) is not None:
                if message.name == "POD_STOP":
                    d.k8sd.ended(message)
        threading.Thread(target=serve, daemon=True).start()
        for _ in range(10):
            with Client(d.socket) as client:
                for number, op in enumerate(("session.start",
                                             "session.stop")):
                    client.send({"id": number, "op": op, "session_id": "work",
                                 **({} if number else {"sandbox": "pod"})})
                answers = {a["id"]: a for a in (client.read(), client.read())}
            same(answers[0]["error"]["code"], "start_failed")
            assert answers[1].get("ok"), answers


@cases.case
def policy_goes():
    """With the policy goes the session, and then what it had of a pod."""
    with pods() as d:
        told = run(d)
        d.write('policy "two" { }\n')
        with Asking(d, "session.wait", session_id="work") as client:
            assert d.ask("reload").get("ok")
            d.k8sd.expect("POD_STOP", number=told.number)
            same(d.sessions()["work"]["state"], "ending")
            d.k8sd.ended(told)
            same(client.ok()["reason"], "removed")
        same(recorded(d, "work", "session_ended")["reason"], "removed")


@cases.case
def daemon_ends():
    """What is in the cluster stays there; the record says what ended."""
    with pods() as d:
        run(d)
        same(d.stop(), 0)
        same(recorded(d, "work", "session_ended")["reason"], "stopped")


# ---- questions ----

@cases.case
def lists():
    with pods() as d:
        run(d)
        with Asking(d, "pods.list", sandbox="pod") as client:
            asked = d.k8sd.expect("POD_ASK", sandbox="pod", uid=ALL,
                                  what=C["POD_ASK_LIST"])
            d.k8sd.item(asked, "pod-1", "POD_RUNNING", session="work",
                        owner=7, age_s=3)
            d.k8sd.item(asked, "pod-2", "POD_FAILED", session="a/b:c",
                        owner=ALL, text="Evicted")
            d.k8sd.answers(asked)
            same(client.ok()["pods"], [
                {"session_id": "work", "pod": "pod-1", "state": "running",
                 "owner": 7, "age": 3, "text": None},
                {"session_id": "a/b:c", "pod": "pod-2", "state": "failed",
                 "age": 0, "text": "Evicted"}])
        with Asking(d, "session.list", sandbox="pod") as client:
            asked = d.k8sd.expect("POD_ASK", what=C["POD_ASK_LIST"])
            d.k8sd.item(asked, "pod-2", "POD_PENDING")
            d.k8sd.answers(asked)
            answer = client.ok()
            same([s["session_id"] for s in answer["sessions"]], ["work"])
            same([p["pod"] for p in answer["pods"]], ["pod-2"])


@cases.case
def list_is_bounded():
    with pods() as d:
        with Asking(d, "pods.list", sandbox="pod") as client:
            asked = d.k8sd.expect("POD_ASK")
            for i in range(2000):
                d.k8sd.item(asked, f"pod-{i}", "POD_RUNNING", text="x" * 900)
            d.k8sd.answers(asked)
            answer = client.ok()
        assert answer["truncated"] and 500 < len(answer["pods"]) < 1000, \
            len(answer["pods"])
        # Items for a client that has gone are for nobody.
        Asking(d, "pods.list", sandbox="pod").close()
        asked = d.k8sd.expect("POD_ASK")
        until("it has gone", lambda: d.ask("status")["clients"] == 1)
        d.k8sd.item(asked, "pod", "POD_RUNNING")
        d.k8sd.answers(asked)


@cases.case
def crowd():
    """So many questions are under way, whether their clients wait or not."""
    with pods() as d:
        with Asking(d, "pods.list", sandbox="pod") as first:
            asked = d.k8sd.expect("POD_ASK")
            for _ in range(31):
                Asking(d, "pods.list", sandbox="pod").close()
                d.k8sd.expect("POD_ASK")
            same(refused(d, "pods.list", sandbox="pod")[0], "busy")
            d.k8sd.refuses(asked, "POD_ERROR_UNREACHABLE", "no route")
            same(first.error(), ("cluster_unreachable", "no route"))
        with Asking(d, "pods.list", sandbox="pod") as client:
            d.k8sd.refuses(d.k8sd.expect("POD_ASK"), "POD_ERROR_UNREACHABLE",
                           "no route")
            same(client.error(), ("cluster_unreachable", "no route"))


@cases.case
def reap():
    with pods() as d:
        for fields, want in (
                ({}, (900, 0, "")),
                ({"age": 60, "dry_run": True, "selector": "a=b,c!=d"},
                 (60, 1, "a=b,c!=d"))):
            with Asking(d, "pods.reap", sandbox="pod", **fields) as client:
                asked = d.k8sd.expect("POD_ASK", what=C["POD_ASK_REAP"],
                                      uid=ALL)
                same((asked.age_s, asked.dry_run, asked.selector), want)
                d.k8sd.item(asked, "pod-9", "POD_DELETED", session="old",
                            age_s=1000)
                d.k8sd.answers(asked)
                same(client.ok()["pods"][0]["state"], "deleted")


@cases.case
def of_another_daemon():
    """Sessions that do not run here: the cluster is asked."""
    with pods() as d:
        for op, what in (("pods.terminate", "POD_ASK_TERMINATE"),
                         ("session.heartbeat", "POD_ASK_HEARTBEAT")):
            code, message = refused(d, op, session_id="old")
            same(code, "unknown_session")
            assert '"sandbox"' in message, message
            with Asking(d, op, session_id="old", sandbox="pod") as client:
                asked = d.k8sd.expect("POD_ASK", session="old",
                                      sandbox="pod", what=C[what])
                d.k8sd.refuses(asked, "POD_ERROR_UNKNOWN", "no pod of old")
                same(client.error(), ("unknown_session", "no pod of old"))


@cases.case
def heartbeat():
    with pods() as d:
        run(d)
        with Asking(d, "session.heartbeat", session_id="work") as client:
            asked = d.k8sd.expect("POD_ASK", session="work", sandbox="pod",
                                  what=C["POD_ASK_HEARTBEAT"])
            d.k8sd.refuses(asked, "POD_ERROR_HEARTBEAT", "not a time: x")
            same(client.error(), ("bad_heartbeat", "not a time: x"))


@cases.case
def check():
    with pods() as d:
        for name in ("pod", "far"):
            with Asking(d, "cluster.check", name=name) as client:
                asked = d.k8sd.expect("POD_ASK", sandbox=name,
                                      what=C["POD_ASK_CHECK"])
                d.k8sd.item(asked, "version", "POD_OK", text="1.20.2")
                d.k8sd.item(asked, "create pods", "POD_NOT", text="role")
                d.k8sd.answers(asked)
                same(client.ok()["checks"], [
                    {"what": "version", "state": "ok", "text": "1.20.2"},
                    {"what": "create pods", "state": "not", "text": "role"}])


WRONG = {
    "no_sandbox": ("pods.list", {"sandbox": "nope"}, "unknown_sandbox"),
    "no_pods": ("pods.reap", {"sandbox": "local"}, "not_supported"),
    "check_other": ("cluster.check", {"name": "local"}, "not_supported"),
    "list_none": ("session.list", {"sandbox": "nope"}, "unknown_sandbox"),
    "age": ("pods.reap", {"sandbox": "pod", "age": -1}, "bad_request"),
    "selector": ("pods.reap", {"sandbox": "pod", "selector": "x" * 1024},
                 "bad_request"),
    "container": ("session.logs", {"session_id": "x", "sandbox": "pod",
                                   "container": "init"}, "bad_request"),
    "no_descriptor": ("session.logs", {"session_id": "x", "sandbox": "pod"},
                      "bad_request"),
    "tail": ("session.logs", {"session_id": "x", "sandbox": "pod",
                              "tail": -1}, "bad_request"),
}


@cases.case
def wrong():
    with pods() as d:
        for name, (op, fields, code) in WRONG.items():
            same((name, refused(d, op, **fields)[0]), (name, code))


@cases.case
def logs():
    """To the descriptor that the client has passed; the answer comes when
    there is no more."""
    with pods() as d:
        run(d)
        for fields, want in (
                ({}, ("POD_WORKSPACE", 0, 0)),
                ({"container": "gate", "follow": True, "tail": 5},
                 ("POD_GATE", 1, 5))):
            source, sink = os.pipe()
            with Client(d.socket) as client, open(source, "rb") as file:
                socket.send_fds(client.sock, [json.dumps(
                    {"id": 1, "op": "session.logs", "session_id": "work",
                     **fields}).encode() + b"\n"], [sink])
                os.close(sink)
                asked = d.k8sd.expect("POD_LOGS", session="work",
                                      sandbox="pod")
                same((asked.container, asked.follow, asked.tail),
                     (C[want[0]], *want[1:]))
                os.write(asked.fd, b"lines\n")
                os.close(asked.fd)
                same(file.read(), b"lines\n")
                d.k8sd.answers(asked)
                same(client.read(), {"id": 1, "ok": True})


# ---- egressctl ----

class Typed:
    """egressctl in the background; what it has said when it has ended."""

    def __init__(self, d, *words):
        self.process = d.spawn_ctl(*words)

    def ended(self, status=0):
        out, errors = self.process.communicate(timeout=WAIT_S)
        same((self.process.returncode, errors if status == 0 else ""),
             (status, ""))
        return out + errors


@cases.case
def typed_session():
    """Started with progress, listed with what the cluster has, stopped."""
    with pods() as d:
        typed = Typed(d, "session", "start", "-n", "work", "pod")
        told = d.k8sd.expect("POD_START", session="work")
        d.k8sd.send("POD_PROGRESS", number=told.number,
                    text="pulling \x1b[31m")
        d.k8sd.runs(told)
        out, errors = typed.process.communicate(timeout=WAIT_S)
        same((typed.process.returncode, out), (0, "work\n"))
        assert errors.startswith("egressctl: pulling ") and \
            "\x1b" not in errors, errors
        typed = Typed(d, "session", "list", "-c", "pod")
        asked = d.k8sd.expect("POD_ASK", what=C["POD_ASK_LIST"])
        d.k8sd.item(asked, "pod-8", "POD_RUNNING", session="elsewhere")
        d.k8sd.answers(asked)
        out = typed.ended()
        assert "work" in out and "pod-8" in out and "elsewhere" in out, out
        typed = Typed(d, "session", "stop", "-k", "work")
        d.k8sd.ended(d.k8sd.expect("POD_STOP", fate=C["POD_FATE_KEEP"]))
        same(typed.ended(), "work stopped\n")
        typed = Typed(d, "session", "start", "-n", "work", "pod")
        d.k8sd.fails(d.k8sd.expect("POD_START"), "POD_ERROR_FAILED",
                     "ErrImagePull: x")
        assert "ErrImagePull: x" in typed.ended(1)
        assert "exclude" in Typed(d, "session", "stop", "-dk",
                                  "work").ended(2)


@cases.case
def typed_questions():
    with pods() as d:
        run(d)
        for words, name, want, more in (
                (("reap", "-n", "-t", "1h", "-l", "a=b", "pod"), "POD_ASK",
                 {"age_s": 3600, "dry_run": 1, "selector": "a=b"}, "gone-1"),
                (("heartbeat", "work"), "POD_ASK", {"session": "work"}, ""),
                (("terminate", "old", "pod"), "POD_ASK",
                 {"session": "old", "sandbox": "pod"}, "gone-1"),
                (("cluster", "check", "far"), "POD_ASK",
                 {"sandbox": "far"}, "gone-1")):
            typed = Typed(d, *words)
            asked = d.k8sd.expect(name, **want)
            d.k8sd.item(asked, "gone-1", "POD_DELETED")
            d.k8sd.answers(asked)
            out = typed.ended()
            assert more in out, out
        typed = Typed(d, "terminate", "work")
        d.k8sd.ended(d.k8sd.expect("POD_STOP", fate=C["POD_FATE_DELETE"]))
        same(typed.ended(), "work terminated\n")


@cases.case
def typed_start_of_several():
    """More than the daemon takes of a client at once."""
    ids = [f"s{n}" for n in range(80)]
    with pods() as d:
        typed = Typed(d, "session", "start",
                      *(word for i in ids for word in ("-n", i)), "pod")
        for _ in ids:
            asked = d.k8sd.expect("POD_START")
            if asked.session == "s3":
                d.k8sd.send("POD_PROGRESS", number=asked.number,
                            text="pulls the image")
            if asked.session == "s5":
                d.k8sd.fails(asked, "POD_ERROR_FAILED", "no node")
            else:
                d.k8sd.runs(asked)
        out = typed.ended(1)
        assert "egressctl: s3: pulls the image\n" in out, out
        assert "egressctl: s5: no node\n" in out, out
        same({line for line in out.splitlines() if ":" not in line},
             {*ids} - {"s5"})
        same(set(d.sessions()), {*ids} - {"s5"})
        for i in ids:
            if i != "s5":
                stopped = Asking(d, "session.stop", session_id=i)
                with stopped:
                    d.k8sd.ended(d.k8sd.expect("POD_STOP"))
                    stopped.ok()


@cases.case
def typed_logs():
    with pods() as d:
        run(d)
        typed = Typed(d, "logs", "-n", "5", "work", "gate")
        asked = d.k8sd.expect("POD_LOGS", container=C["POD_GATE"], tail=5)
        os.write(asked.fd, b"one\ntwo\n")
        os.close(asked.fd)
        d.k8sd.answers(asked)
        same(typed.ended(), "one\ntwo\n")
        typed = Typed(d, "logs", "-f", "work")
        asked = d.k8sd.expect("POD_LOGS", container=C["POD_WORKSPACE"],
                              follow=1)
        os.close(asked.fd)
        d.k8sd.refuses(asked, "POD_ERROR_REFUSED", "pods/log: get")
        assert "pods/log: get" in typed.ended(1)
        assert "no session nobody" in Typed(d, "logs", "nobody").ended(1)
        assert "1 to 1000000" in Typed(d, "logs", "-n", "x",
                                       "work").ended(2)


@cases.case
def typed_rbac():
    """Without the daemon; only what is needed."""
    with pods(CONF.replace('image "x"', 'image "x" namespace "agents"',
                           1)) as d:
        out = Typed(d, "cluster", "rbac").ended()
        assert "namespace: default" in out and '["get", "create"]' in out, out
        assert '"*"' not in out, out
        out = Typed(d, "-f", str(d.conf), "cluster", "rbac", "pod").ended()
        same(out.count("namespace: agents"), 3)
        for name in ("local", "nope"):
            assert name in Typed(d, "-f", str(d.conf), "cluster", "rbac",
                                 name).ended(1)


@cases.case
def typed_manifest():
    """Without the daemon: what there would be, with a gate and without."""
    conf = CONF + '''sandbox "gated" kubernetes {
	policy "one" image "y" cluster "far" namespace "agents" workspace size 1G
	gate-resolver 10.96.0.10 tolerations "gpu:NoSchedule" }
sandbox "nobody" kubernetes {
	policy "one" image "y" cluster "far" namespace "agents" }
'''
    with pods(conf) as d:
        def items(*words):
            out = Typed(d, "-f", str(d.conf), "cluster", "manifest",
                        *words).ended()
            return json.loads(out)["items"]

        (pod,) = items("pod")
        same(len(pod["spec"]["containers"]), 1)
        pod, secret, network = items("-n", "work", "gated")
        same(pod["metadata"]["annotations"]["egressd.io/session-id"], "work")
        same([c["name"] for c in pod["spec"]["initContainers"]],
             ["fence", "gate"])
        same(pod["spec"]["volumes"][0]["emptyDir"]["sizeLimit"], "1Gi")
        same(pod["spec"]["tolerations"][0]["key"], "gpu")
        told = secret["stringData"]["egressd.conf"]
        assert 'resolver { 10.96.0.10 }' in told, told
        same(pod["metadata"]["annotations"]["egressd.io/configuration"],
             hashlib.sha256(told.encode()).hexdigest())
        same(network["spec"]["policyTypes"], ["Ingress", "Egress"])
        same({i["metadata"]["name"] for i in (pod, secret, network)},
             {pod["metadata"]["name"]})
        # No name server is known here: only the cluster's own.
        done = d.ctl("-f", str(d.conf), "cluster", "manifest", "nobody")
        assert "no gate-resolver" in done.stderr, done
        network = json.loads(done.stdout)["items"][2]
        same([list(to) for to in network["spec"]["egress"][0]["to"]],
             [["namespaceSelector", "podSelector"]])
        (old, *_) = items("-o", "gated")
        same([c["name"] for c in old["spec"]["containers"]],
             ["gate", "workspace"])
        assert "nope" in Typed(d, "-f", str(d.conf), "cluster", "manifest",
                               "nope").ended(1)


@cases.case
def typed_status_waits():
    """For a daemon that is not there yet, and not for ever."""
    with pods() as d:
        same(Typed(d, "status", "-t", "9s").ended(), "")
    begin = time.monotonic()
    Typed(d, "status", "-t", "1s").ended(3)
    assert time.monotonic() - begin >= 1


# ---- what k8sd may not say ----

LIES = {
    "start_of_nobody": ("POD_DONE", {"number": 99, "ok": 1}, "pod 99 done"),
    "end_of_nobody": ("POD_ENDED", {"number": 99}, "pod 99 ended"),
    "progress_of_nobody": ("POD_PROGRESS", {"number": 99}, "progress of 99"),
    "ok_with_code": ("POD_DONE", {"ok": 1, "code": 1}, "code 1"),
    "error_without": ("POD_DONE", {}, "code 0"),
    "code": ("POD_DONE", {"code": 200}, "code 200"),
    "ended_unready": ("POD_ENDED", {}, "ended, cause 0"),
    "item_of_nobody": ("POD_ITEM", {"ticket": 12345}, "ticket 12345"),
    "answer_to_nobody": ("POD_ANSWER", {"ticket": 12345, "ok": 1},
                         "ticket 12345"),
}


@cases.each(LIES)
def k8sd_lies(which):
    """The daemon does not go on with such a k8sd."""
    name, values, text = LIES[which]
    with pods() as d:
        client, told = start(d)
        with client:
            if name.startswith(("POD_DONE", "POD_ENDED", "POD_PROGRESS")):
                values = {"number": told.number, **values}
            d.k8sd.send(name, **values)
            same(d.wait(WAIT_S), 1)
        assert text in d.log(), d.log()


if __name__ == "__main__":
    Pods.relay = mount_standin(STANDIN, "k8sd")
    cases.main()
