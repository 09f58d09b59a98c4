#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""The parent as deciderd's hand: how programs of deciders are run, and how
they end.  A whole daemon, but for policyd: a stand-in takes its place, which
hands its channel to deciderd over to us."""

import json
import os
import pathlib
import pwd
import socket
import sys
import threading

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / "regress" / "lib"), str(TOP / "regress" / "dialer")]
from case import Cases, Skip  # noqa: E402
from channel import C, Channel  # noqa: E402
from daemon import WAIT_S, Daemon, alive, until  # noqa: E402
from standin_parent import document  # noqa: E402
from standin_program import directory, mount_standin  # noqa: E402

ROOT = os.geteuid() == 0

cases = Cases()

# It acknowledges every generation and keeps whatever it is given.
STANDIN = """
parent, kept = Channel(), []
parent.sock = socket.socket(fileno=3)
while (m := parent.read(None)) is not None:
    if m.name == "CHANNEL" and m.peer == C["ROLE_DECIDERD"]:
        socket.send_fds(relay, [b"x"], [m.fd])
    elif m.name == "CONF_END":
        parent.send("CONF_ACK", generation=m.generation)
    elif m.name == "CONF_COMMIT":
        parent.send("CONF_DONE", generation=m.generation)
    kept.append(m.fd)
"""

# Says who and what it is; bounded, as a reason is.
WHO = """
import json, os, sys
status = dict(l.split(":\\t", 1) for l in open("/proc/self/status"))
fds = [int(f) for f in os.listdir("/proc/self/fd")]
me = dict(uid=os.getresuid(), gid=os.getresgid(), groups=os.getgroups(),
    env=dict(os.environ), cwd=os.getcwd(), fds=len(fds), sid=os.getsid(0) ==
    os.getpid(), nnp=status["NoNewPrivs"].strip(), eff=int(status["CapEff"],
    16), blk=int(status["SigBlk"], 16))
print(json.dumps({"decision": "allow", "reason": json.dumps(me)}))
"""


class Whole(Daemon):
    """The daemon, and a channel to its deciderd."""

    def __init__(self, conf):
        super().__init__(conf + '\npolicy "none" { }\n',
                         user=None if ROOT else pwd.getpwuid(
                             os.getuid()).pw_name)
        self.owner = None
        self.last = 0

    def start(self):
        accepted = []
        thread = threading.Thread(
            target=lambda: accepted.append(relay.accept()[0]))
        thread.start()
        super().start()
        thread.join()
        with accepted[0]:
            _, (fd,), _, _ = socket.recv_fds(accepted[0], 1, 1)
        self.channel = Channel()
        self.channel.sock.close()
        self.channel.sock = socket.socket(fileno=fd)
        return self

    def end(self):
        super().end()
        if self.process is not None and hasattr(self, "channel"):
            self.channel.close()

    def put(self, decider="guard", timeout_ms=10000):
        self.last += 1
        self.channel.send("QUESTION", id=self.last, timeout_ms=timeout_ms,
                          decider=decider, document=document())
        return self.last

    def answer(self):
        message = self.channel.read(WAIT_S)
        assert message is not None, self.log()
        return message

    def gives(self, result, reason=None, **kwargs):
        self.put(**kwargs)
        message = self.answer()
        assert message.result == C[f"ANSWER_{result}"], \
            f"{message.result}: {message.reason}; {self.log()}"
        assert reason is None or message.reason == reason, message.reason
        return message

    def reload(self, conf):
        before = self.log().count("generation")
        self.write(conf + '\npolicy "none" { }\n')
        self.process.send_signal(1)
        until("it has reloaded",
              lambda: self.log().count("generation") > before)


def program(text, options=""):
    """A decider that runs this; shell words are quoted for the parser."""
    path = directory() / "decider"
    path.write_text(text)
    path.chmod(0o755)
    return f'decider "guard" exec {{ command {{ "{path}" }}\n{options}\n}}\n'


def python(text, options=""):
    """With an interpreter that every user can run."""
    return program(f"#!/usr/bin/python3\n{text}", options)


def shell(text, options=""):
    return program(f"#!/bin/sh\n{text}", options)


def children(pid):
    return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


# ---- how they are run ----

@cases.case
def who_it_is():
    with Whole(python(WHO)) as d:
        before = len(children(d.process.pid))
        me = json.loads(d.gives("ALLOW").reason)
        uids, gids = set(me["uid"]), set(me["gid"])
        if ROOT:
            # The range that the test gives: deciderd's own.
            want = 61200 + C["ROLE_DECIDERD"]
            assert uids == gids == {want} and me["groups"] == [want], me
        else:
            assert uids == {os.getuid()}, me
        env = {k: v for k, v in me["env"].items() if k != "LC_CTYPE"}
        assert env == {"PATH": "/usr/bin:/bin"}, env
        assert me["cwd"] == "/" and me["sid"], me
        assert me["fds"] == 4, me   # three, and the listing's own
        assert me["nnp"] == "1" and me["eff"] == me["blk"] == 0, me
        until("it is reaped", lambda: len(children(d.process.pid)) == before)


@cases.case
def as_a_user():
    if not ROOT:
        raise Skip("only root changes users")
    with Whole(python(WHO, 'user "nobody"')) as d:
        me = json.loads(d.gives("ALLOW").reason)
        nobody = pwd.getpwnam("nobody")
        assert set(me["uid"]) == {nobody.pw_uid}, me
        assert set(me["gid"]) == {nobody.pw_gid}, me


@cases.each(["root", "no-such-user"])
def not_as(user):
    """Never as root, whoever says so; the log says why."""
    with Whole(python(WHO, f'user "{user}"')) as d:
        d.gives("ERROR", "it exited with status 127")
        until("it is logged", lambda: "[decider: guard]" in d.log())


@cases.case
def arguments():
    """Words as they are written: no shell takes part."""
    conf = shell('printf \'{"decision":"deny","reason":"%s"}\' "$#$1$2"')
    conf = conf.replace('decider" }', 'decider" "$HOME" "a  b;c" }')
    with Whole(conf) as d:
        d.gives("DENY", "2$HOMEa  b;c")


@cases.case
def not_there():
    with Whole('decider "guard" exec { command { "/nonexistent" } }') as d:
        d.gives("ERROR", "it exited with status 127")
        until("it is logged",
              lambda: "/nonexistent: No such file" in d.log())


@cases.case
def errors_are_logged():
    """Line by line, under its name, with nothing that moves a cursor."""
    text = "cat >/dev/null; printf 'one\\033[2J\\ntwo\\n' >&2; exit 1"
    with Whole(shell(text)) as d:
        d.gives("ERROR", "it exited with status 1")
        until("it is logged", lambda: "[decider: guard] two" in d.log())
        assert "[decider: guard] one^[[2J" in d.log(), d.log()


# ---- how they end ----

LINGER = """
import os, subprocess, sys, time
child = subprocess.Popen(["/bin/sleep", "600"])
open({path!r}, "w").write(f"{{os.getpid()}} {{child.pid}}")
{then}
"""


def lingering(then, options=""):
    """A program that starts another; both by their pids, in a file."""
    path = directory(0o777) / "pids"
    conf = python(LINGER.format(path=str(path), then=then), options)
    return conf, lambda: [int(p) for p in until(
        "it runs", lambda: path.exists() and path.read_text().split())]


def gone(pids):
    until("both have ended", lambda: not any(alive(p) for p in pids))


@cases.case
def killed_when_late():
    """With what it started, and nothing of it is left to reap."""
    conf, pids = lingering("time.sleep(600)")
    with Whole(conf) as d:
        before = children(d.process.pid)
        number = d.put(timeout_ms=3000)
        both = pids()
        message = d.answer()
        assert message.id == number and \
            message.result == C["ANSWER_TIMEOUT"], message
        gone(both)
        until("it is reaped", lambda: children(d.process.pid) == before)


@cases.case
def leaves_nothing_behind():
    """What it leaves running does not hold its answer back."""
    conf, pids = lingering('print(\'{"decision":"allow"}\')')
    with Whole(conf) as d:
        d.gives("ALLOW")
        gone(pids())


@cases.case
def dropped():
    conf, pids = lingering("time.sleep(600)")
    with Whole(conf) as d:
        number = d.put()
        both = pids()
        d.channel.send("QUESTION_DROP", cookie=number)
        gone(both)


KEPT = """
import json, os, sys
for line in sys.stdin:
    print(json.dumps({"id": json.loads(line)["id"], "decision": "allow",
                      "reason": str(os.getpid())}), flush=True)
"""


@cases.case
def kept_over_questions():
    """One process; a reload brings another, and the end ends it."""
    with Whole(python(KEPT, "persistent")) as d:
        first = int(d.gives("ALLOW").reason)
        assert int(d.gives("ALLOW").reason) == first
        d.reload(python(KEPT, "persistent"))
        second = int(d.gives("ALLOW").reason)
        assert second != first
        until("the old one has ended", lambda: not alive(first))
        assert d.stop() == 0, d.log()
        until("the new one has ended", lambda: not alive(second))


@cases.case
def kept_and_killed():
    with Whole(python(KEPT, "persistent")) as d:
        first = int(d.gives("ALLOW").reason)
        os.kill(first, 9)
        until("deciderd knows", lambda: "it has closed" in d.log())
        assert int(d.gives("ALLOW").reason) != first


@cases.case
def ends_with_the_parent():
    """Even if that is killed."""
    conf, pids = lingering("time.sleep(600)")
    with Whole(conf) as d:
        d.put()
        first, second = pids()
        d.process.kill()
        d.wait()
        until("it has ended", lambda: not alive(first))
        os.kill(second, 9)


@cases.case
def removed():
    with Whole(python(KEPT)) as d:
        d.reload("")
        d.gives("ERROR", "it is not in the configuration")


# ---- sockets ----

@cases.case
def socket_of_a_server():
    def serve(listener):
        conn, _ = listener.accept()
        with conn, conn.makefile("rw") as file:
            for line in file:
                number = json.loads(line)["id"]
                file.write(json.dumps({"id": number, "decision": "deny"}) +
                           "\n")
                file.flush()

    path = str(directory() / "judge")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        thread = threading.Thread(target=serve, args=[listener])
        thread.start()
        with Whole(f'decider "guard" socket {{ path "{path}" }}') as d:
            d.gives("DENY")
            d.gives("DENY")
        thread.join()


@cases.case
def socket_absent():
    with Whole('decider "guard" socket { path "/nonexistent/s" }') as d:
        d.gives("ERROR", "/nonexistent/s: No such file or directory")


if __name__ == "__main__":
    relay = mount_standin(STANDIN, "policyd")
    cases.main()
