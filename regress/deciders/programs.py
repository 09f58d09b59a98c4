#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""deciderd with programs and sockets: one process per question, one that is
kept, a server behind a Unix socket.  We are its parent and start them."""

import json
import pathlib
import socket
import sys
import tempfile
import threading
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / "regress" / "lib")]
from case import Cases  # noqa: E402
from daemon import WAIT_S, alive, until  # noqa: E402
from standin_parent import QUESTION, Deciderd, document  # noqa: E402

ALLOW = '{"decision":"allow","reason":"fine"}'

cases = Cases()


def shell(script):
    return {"name": "guard", "kind": "DECIDER_EXEC",
            "command": ["/bin/sh", "-c", script]}


def script(text, **more):
    return {"name": "guard", "kind": "DECIDER_EXEC",
            "command": [sys.executable, "-c", text], **more}


def kept(text):
    return script("import json, os, sys, time\n" + text, persistent=1)


# ---- one per question ----

ONCE = {
    "allow": (f"cat >/dev/null; echo '{ALLOW}'", "ALLOW", "fine"),
    "deny": ("cat >/dev/null; echo '{\"decision\":\"deny\"}'", "DENY", ""),
    "unread": (f"echo '{ALLOW}'", "ALLOW", "fine"),
    "no_newline": (f"cat >/dev/null; printf %s '{ALLOW}'", "ALLOW", "fine"),
    "exit_1": (f"cat >/dev/null; echo '{ALLOW}'; exit 1", "ERROR",
               "it exited with status 1"),
    "killed": (f"cat >/dev/null; echo '{ALLOW}'; kill -9 $$", "ERROR", None),
    "garbage": ("cat >/dev/null; echo allow", "BAD_RETURN", None),
    "echo": ("cat", "BAD_RETURN", None),
    "two_objects": (f"cat >/dev/null; echo '{ALLOW}'; echo '{ALLOW}'",
                    "BAD_RETURN", "there is more than one object"),
    "nothing": ("cat >/dev/null", "BAD_RETURN", "it wrote nothing"),
    "huge": ("cat >/dev/null; yes", "BAD_RETURN",
             "it wrote more than 65536 bytes"),
    "with_id": ("cat >/dev/null; echo '{\"id\":1,\"decision\":\"allow\"}'",
                "BAD_RETURN", None),
}


@cases.each(ONCE)
def once(name):
    text, word, reason = ONCE[name]
    with Deciderd(shell(text)) as d:
        d.gives("guard", word, reason)
        d.done.get(timeout=WAIT_S)


@cases.case
def once_hangs():
    """Late is late, and the parent is told to end it."""
    with Deciderd(shell(f"echo '{ALLOW}'; exec sleep 600")) as d:
        begin = time.monotonic()
        d.gives("guard", "TIMEOUT", timeout_ms=300)
        assert time.monotonic() - begin < 2
        d.done.get(timeout=WAIT_S)


@cases.case
def once_closes_and_stays():
    """Without an end that is good there is no answer."""
    with Deciderd(shell(f"echo '{ALLOW}'; exec >&- <&-; sleep 600")) as d:
        d.gives("guard", "TIMEOUT", timeout_ms=300)


@cases.case
def once_input():
    """The document and a newline, then the end of input."""
    text = ("import json, sys; t = sys.stdin.read();"
            "print(json.dumps({'decision': 'allow', 'reason': t[-40:]}))")
    with Deciderd(script(text)) as d:
        d.gives("guard", "ALLOW", (document() + " ")[-40:])


@cases.case
def once_large_question():
    """More than the kernel takes at once."""
    question = {**QUESTION, "metadata": {"x": "y" * 45000}}
    text = ("import sys, time; time.sleep(0.2); n = len(sys.stdin.read());"
            "print('{\"decision\":\"deny\",\"reason\":\"%d\"}' % n)")
    with Deciderd(script(text)) as d:
        d.gives("guard", "DENY", str(len(document(question)) + 1),
                question=question)


@cases.case
def once_many():
    """At the same time, each with its own."""
    text = ("import json, sys; q = json.load(sys.stdin);"
            "print(json.dumps({'decision': 'allow',"
            " 'reason': q['session_id']}))")
    with Deciderd(script(text)) as d:
        numbers = {d.put("guard", {**QUESTION, "session_id": f"s{i}"},
                         timeout_ms=60000): f"s{i}" for i in range(20)}
        for _ in range(20):
            message = d.answer(60)
            assert message.reason == numbers.pop(message.id), message
        assert not numbers


@cases.case
def not_to_be_started():
    with Deciderd({"name": "guard", "kind": "DECIDER_EXEC",
                   "command": ["/nonexistent"]}) as d:
        d.gives("guard", "ERROR", "No such file or directory")


# ---- one that is kept ----

ECHO = """
for line in sys.stdin:
    q = json.loads(line)
    assert list(q) == ["id", "question"], q
    print(json.dumps({"id": q["id"], "decision": "allow",
                      "reason": str(os.getpid())}), flush=True)
"""


@cases.case
def kept_stays():
    """One process for all questions."""
    with Deciderd(kept(ECHO)) as d:
        pids = {d.gives("guard", "ALLOW").reason for _ in range(10)}
        assert len(pids) == 1, pids
        assert d.asked.qsize() == 1


REVERSED = """
questions = [json.loads(sys.stdin.readline()) for _ in range(10)]
print(json.dumps({"id": 4711, "decision": "allow"}))
for q in reversed(questions):
    print(json.dumps({"id": q["id"], "decision": "deny",
                      "reason": q["question"]["session_id"]}), flush=True)
    print(json.dumps({"id": q["id"], "decision": "allow"}), flush=True)
sys.stdin.read()
"""


@cases.case
def kept_out_of_order():
    """Answers find their questions; those to none are of no interest, also
    to one that is answered already."""
    with Deciderd(kept(REVERSED)) as d:
        numbers = {d.put("guard", {**QUESTION, "session_id": f"s{i}"}):
                   f"s{i}" for i in range(10)}
        for _ in range(10):
            message = d.answer()
            assert message.word == "DENY", message
            assert message.reason == numbers.pop(message.id), message


MORTAL = """
for line in sys.stdin:
    q = json.loads(line)
    if q["question"]["session_id"] == "die":
        os._exit(3)
    if q["question"]["session_id"] != "wait":
        print(json.dumps({"id": q["id"], "decision": "allow"}), flush=True)
"""


@cases.case
def kept_dies():
    """Those who wait hear of it, and the next starts another."""
    with Deciderd(kept(MORTAL)) as d:
        d.quiet = False
        d.gives("guard", "ALLOW")
        waits = d.put("guard", {**QUESTION, "session_id": "wait"})
        dies = d.put("guard", {**QUESTION, "session_id": "die"})
        for _ in range(2):
            message = d.answer()
            assert message.id in (waits, dies), message
            assert message.word == "ERROR", message
        d.gives("guard", "ALLOW")
        assert d.asked.qsize() == 2


@cases.case
def kept_backs_off():
    """It is not started without end, and questions do not wait for long."""
    with Deciderd(shell("exit 1") | {"persistent": 1}) as d:
        d.quiet = False
        begin = time.monotonic()
        while time.monotonic() - begin < 1.5:
            d.gives("guard", "ERROR", timeout_ms=2000)
        assert d.asked.qsize() <= 6, d.asked.qsize()
        message = d.gives("guard", "ERROR", timeout_ms=100)
        assert "not opened again" in message.reason, message


BAD_LINES = {
    "garbage": "print('allow', flush=True)",
    "no_id": "print('{\"decision\":\"allow\"}', flush=True)",
    "id_text": "print('{\"id\":\"1\",\"decision\":\"allow\"}', flush=True)",
    "id_0": "print('{\"id\":0,\"decision\":\"allow\"}', flush=True)",
    "empty_line": "print('', flush=True)",
    "long": "print('{\"id\":1,\"decision\":\"allow\",\"reason\":\"' + "
            "'x' * 70000, flush=True, end='')",
}


@cases.each(BAD_LINES)
def kept_bad_line(name):
    """What is no answer at all ends it, and all that waits for it."""
    text = f"sys.stdin.readline(); sys.stdin.readline()\n{BAD_LINES[name]}\n" \
        "sys.stdin.read()"
    with Deciderd(kept(text)) as d:
        d.quiet = False
        d.put("guard")
        d.put("guard")
        assert [d.answer().word for _ in range(2)] == ["BAD_RETURN"] * 2
        d.done.get(timeout=WAIT_S)


BAD_ANSWERS = """
for line in sys.stdin:
    q = json.loads(line)
    bad = q["question"]["session_id"] == "bad"
    print(json.dumps({"id": q["id"], "decision": "allow",
                      **({"certain": True} if bad else {})}), flush=True)
"""


@cases.case
def kept_bad_answer():
    """One that has its id harms nobody else."""
    with Deciderd(kept(BAD_ANSWERS)) as d:
        d.gives("guard", "BAD_RETURN",
                question={**QUESTION, "session_id": "bad"})
        d.gives("guard", "ALLOW")
        assert d.asked.qsize() == 1


@cases.case
def kept_hangs():
    """One that answers nothing any more is replaced."""
    with Deciderd(kept("time.sleep(600)")) as d:
        d.quiet = False
        for _ in range(3):
            d.gives("guard", "TIMEOUT", timeout_ms=150)
        d.done.get(timeout=WAIT_S)
        d.gives("guard", "TIMEOUT", timeout_ms=500)
        assert d.asked.qsize() == 2


@cases.case
def kept_does_not_read():
    """What it leaves unread is bounded."""
    question = {**QUESTION, "metadata": {"x": "y" * 45000}}
    with Deciderd(kept("time.sleep(600)")) as d:
        d.quiet = False
        for _ in range(150):
            d.put("guard", question, timeout_ms=60000)
        message = d.answer()
        assert message.reason == "it does not read its questions", message


@cases.case
def kept_slow_ones_delay_nobody():
    text = """
for line in sys.stdin:
    q = json.loads(line)
    if q["question"]["session_id"] != "slow":
        print(json.dumps({"id": q["id"], "decision": "allow"}), flush=True)
"""
    with Deciderd(kept(text)) as d:
        for _ in range(100):
            d.put("guard", {**QUESTION, "session_id": "slow"},
                  timeout_ms=60000)
        begin = time.monotonic()
        d.gives("guard", "ALLOW")
        assert time.monotonic() - begin < 5


@cases.case
def kept_over_reload():
    """Its question is answered, then it ends; the new one is another."""
    text = """
for line in sys.stdin:
    q = json.loads(line)
    if q["question"]["session_id"] == "slow":
        time.sleep(1)
    print(json.dumps({"id": q["id"], "decision": "allow",
                      "reason": str(os.getpid())}), flush=True)
"""
    with Deciderd(kept(text)) as d:
        old = int(d.gives("guard", "ALLOW").reason)
        number = d.put("guard", {**QUESTION, "session_id": "slow"})
        d.conf(kept(text))
        new = d.put("guard")
        answers = {m.id: m for m in (d.answer(), d.answer())}
        assert int(answers[number].reason) == old
        assert int(answers[new].reason) != old
        d.done.get(timeout=WAIT_S)
        until("the old one has ended", lambda: not alive(old))


# ---- a server behind a socket ----

class Server:
    """One thread per connection; serve(file) has a file to read and write."""

    def __init__(self, serve):
        self.dir = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.dir.name) / "judge.sock"
        self.serve = serve
        self.count = 0
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path))
        self.listener.listen()

    def __enter__(self):
        threading.Thread(target=self.run, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.dir.cleanup()

    def run(self):
        while True:
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            self.count += 1
            with conn, conn.makefile("rw") as file:
                try:
                    self.serve(file)
                except OSError:
                    pass

    def decider(self):
        return {"name": "guard", "kind": "DECIDER_SOCKET",
                "path": str(self.path)}


def say(file, **answer):
    file.write(json.dumps(answer) + "\n")
    file.flush()


@cases.case
def socket_answers():
    def serve(file):
        for line in file:
            say(file, id=json.loads(line)["id"], decision="deny", reason="no")

    with Server(serve) as server, Deciderd(server.decider()) as d:
        for _ in range(5):
            d.gives("guard", "DENY", "no")
        assert server.count == 1, server.count


@cases.case
def socket_closes():
    """After each answer: it is connected again, for the next question."""
    def serve(file):
        say(file, id=json.loads(file.readline())["id"], decision="allow")

    with Server(serve) as server, Deciderd(server.decider()) as d:
        d.quiet = False
        for i in range(3):
            d.gives("guard", "ALLOW")
            until("it knows", lambda n=i: d.log().count("closed") > n)
        assert server.count == 3, server.count


@cases.case
def socket_closes_early():
    with Server(lambda file: file.readline()) as server, \
            Deciderd(server.decider()) as d:
        d.quiet = False
        d.gives("guard", "ERROR", "it has closed")


@cases.case
def socket_absent():
    with Deciderd({"name": "guard", "kind": "DECIDER_SOCKET",
                   "path": "/nonexistent/sock"}) as d:
        d.quiet = False
        d.gives("guard", "ERROR", "No such file or directory")


@cases.case
def nothing_is_left():
    with Deciderd(shell(f"cat >/dev/null; echo '{ALLOW}'")) as d:
        count = d.descriptors()
        for _ in range(20):
            d.gives("guard", "ALLOW")
        d.settle(count)


if __name__ == "__main__":
    cases.main()
