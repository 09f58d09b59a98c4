#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""A configuration comes into force as a whole, or nothing changes."""

import grp
import json
import os
import pathlib
import signal
import socket
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases, Skip  # noqa: E402
from daemon import POLICY, Client, Daemon, alive, until, verify  # noqa: E402
from origin import authority  # noqa: E402

cases = Cases()

MORE = POLICY + """
policy "closed" { }
session "third" { listen on 127.0.0.1 port 15003 transparent policy "closed" }
"""
LESS = """
policy "open" { allow host "api.good.test" }
session "edge" { listen on 127.0.0.1 port 15001 transparent  policy "open" }
"""


def picture(daemon):
    """All that a refused configuration must leave as it was."""
    status = daemon.ask("status")
    return {name: status[name] for name in (
        "generation", "processes", "sessions", "policies", "log_level")}, \
        status["audit"]["file"]


def refused(daemon, code, *texts):
    """A reload that changes nothing, and says why."""
    daemon.settle()
    before = picture(daemon)
    answer = daemon.ask("reload")
    assert answer["error"]["code"] == code, answer
    for text in texts:
        assert text in answer["error"]["message"], answer
    assert picture(daemon) == before, f"{before} became {picture(daemon)}"
    return answer["error"]


def taken(daemon, generation):
    answer = daemon.ask("reload")
    assert answer.get("generation") == generation, answer
    return daemon.settle()


@cases.case
def bad_file():
    """Every mistake comes back as file:line: message."""
    with Daemon() as daemon:
        daemon.settle()
        before = picture(daemon)
        good = daemon.conf.read_text()
        lines = len(good.splitlines())
        daemon.conf.write_text(good + "bogus\n"
                               'policy "x" { allow host "*.com" }\n'
                               'session "y" { policy "nowhere" }\n')
        done = daemon.ctl("reload")
        assert done.returncode == 1 and done.stdout == "", done
        said = done.stderr.splitlines()
        for n in (1, 2, 3):
            start = f"{daemon.conf}:{lines + n}: "
            assert any(line.startswith(start) for line in said), said
        assert said[-1].endswith("nothing was changed"), said
        error = daemon.ask("reload")["error"]
        assert error["code"] == "bad_configuration", error
        assert error["errors"] == said[:-1], (error, said)
        assert picture(daemon) == before
        daemon.conf.write_text(good)
        taken(daemon, 2)


@cases.case
def bad_include():
    """The place is in the file that has it."""
    with Daemon() as daemon:
        part = daemon.dir / "part.conf"
        part.write_text("\n\nlimit clients 0\n")
        part.chmod(0o600)
        daemon.write(POLICY + f'include "{part}"\n')
        error = refused(daemon, "bad_configuration", f"{part}:3: ")
        assert len(error["errors"]) == 1, error
        part.chmod(0o660)
        refused(daemon, "bad_configuration", str(daemon.conf), str(part),
                "writable by group or others")
        part.unlink()
        refused(daemon, "bad_configuration", str(daemon.conf), str(part),
                "No such file")


@cases.case
def unreadable():
    with Daemon() as daemon:
        daemon.conf.chmod(0o620)
        refused(daemon, "bad_configuration", str(daemon.conf), "writable")
        daemon.conf.unlink()
        refused(daemon, "bad_configuration", str(daemon.conf), "No such file")
        daemon.write(POLICY)
        taken(daemon, 2)


@cases.case
def good_file():
    """New sessions start, removed ones end, the others do not notice."""
    with Daemon() as daemon:
        first = daemon.settle()
        daemon.write(MORE)
        done = daemon.ctl("reload")
        assert (done.returncode, done.stdout, done.stderr) == (
            0, "configuration loaded, generation 2\n", ""), done
        second = daemon.settle()
        assert {k: v for k, v in second.items() if k != "third"} == first
        assert daemon.ask("status")["policies"] == [
            {"name": "open", "rules": 1}, {"name": "closed", "rules": 0}]
        daemon.write(LESS)
        third = taken(daemon, 3)
        assert third == {k: v for k, v in first.items() if k != "other"}
        for name in ("other", "third"):
            until(f"{name}'s engine ends", lambda: not alive(second[name]))
        ends = {(r["session_id"], r["reason"]) for r in daemon.verified()
                if r["kind"] == "session_ended"}
        assert ends == {("other", "removed"), ("third", "removed")}, ends
        assert "starts again" not in daemon.log(), daemon.log()


@cases.case
def policy_of_session():
    """A session may change its policy and keep its engine."""
    with Daemon() as daemon:
        before = daemon.settle()
        daemon.write('policy "shut" { }\n' + POLICY.replace(
            'transparent  policy "open"', 'transparent  policy "shut"', 1))
        assert taken(daemon, 2) == before
        assert {s["session_id"]: s["policy"] for s in daemon.ask(
            "status")["sessions"]} == {"edge": "shut", "other": "open"}


@cases.case
def log_level():
    """What the file says counts when it changes, not at every reload."""
    with Daemon() as daemon:
        daemon.write("log level debug\n" + POLICY)
        taken(daemon, 2)
        assert daemon.ask("status")["log_level"] == "debug"
        assert daemon.ask("log.level", level="warn")["ok"]
        taken(daemon, 3)
        assert daemon.ask("status")["log_level"] == "warn"
        daemon.write("log level nonsense\n" + POLICY)
        refused(daemon, "bad_configuration", "nonsense")


@cases.case
def recorder_refuses():
    """One no is a no of all: not even what the others took comes in force."""
    with Daemon() as daemon:
        diary = daemon.dir / "diary"
        moved = daemon.dir / "moved.sock"
        diary.write_text("dear diary\n")
        daemon.audited = False
        daemon.write(f'audit file "{diary}"\ncontrol socket "{moved}" '
                     "read-only\n" + MORE)
        for _ in range(3):
            refused(daemon, "reload_refused", "recorder", str(diary),
                    "not a record")
            assert not moved.exists()
        assert diary.read_text() == "dear diary\n"
        done = daemon.ctl("reload")
        assert done.returncode == 1 and str(diary) in done.stderr, done
        daemon.audited = True
        daemon.write(MORE)
        assert "third" in taken(daemon, 2)
        daemon.verified()


@cases.case
def key_file():
    """A decider's key must be there, and must be a key."""
    with Daemon() as daemon:
        key = daemon.dir / "key"
        lines = len(daemon.conf.read_text().splitlines())
        daemon.write(POLICY + 'decider "hook" webhook {\n'
                     '\turl "https://judge.test/"\n'
                     f'\tkey file "{key}"\n}}\n')
        refused(daemon, "bad_configuration", f"{daemon.conf}:{lines + 1}: ",
                str(key), "No such file")
        key.write_text("")
        key.chmod(0o600)
        refused(daemon, "reload_refused", "deciderd", "key", "hook", "empty")
        key.write_text("secret-of-the-judge\n")
        taken(daemon, 2)
        key.unlink()
        refused(daemon, "bad_configuration", str(key))
        assert "secret-of-the-judge" not in daemon.log()
        assert "secret-of-the-judge" not in json.dumps(daemon.ask("status"))


KUBECONFIG = json.dumps({
    "apiVersion": "v1", "kind": "Config", "current-context": "x",
    "clusters": [{"name": "x", "cluster": {"server": "https://x.test"}}],
    "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
    "users": [{"name": "x", "user": {"token": "secret"}}]})
# A cluster that no sandbox is in is not looked at.
POD = ' sandbox "pod" kubernetes { policy "open" cluster "c" ungated }'
SECRETS = {
    "decider": 'decider "d" webhook { url "https://x.test/" key file "%s" }',
    "token": 'cluster "c" { server "https://x.test" token file "%s" }' +
             POD,
    "kubeconfig": 'cluster "c" { kubeconfig "%s" }' + POD,
    "password": 'cluster "c" { server "https://x.test" user "u" password file '
                '"%s" }' + POD,
    "ca": 'session "s" { listen on 127.0.0.1 port 15003 policy "open" ca '
          'certificate "{cert}" key "%s" }',
}


@cases.each(SECRETS)
def secret_of_others(what):
    """As ssh: what others may read is no secret, what they own no better."""
    root = authority()
    with Daemon() as daemon:
        key = daemon.dir / "secret"
        key.write_text({"ca": root.key.read_text(), "kubeconfig": KUBECONFIG}
                       .get(what, "secret\n"))
        line = len(daemon.conf.read_text().splitlines()) + 1
        daemon.write(POLICY + SECRETS[what].replace(
            "{cert}", str(root.cert)) % key + "\n")
        mine = os.geteuid() == 0
        for mode in (0o644, 0o604, 0o660, 0o620, 0o602, 0o601, 0o610):
            key.chmod(mode)
            refused(daemon, "bad_configuration", f"{daemon.conf}:{line}: ",
                    f"{key}: holds a secret, and its mode {mode:04o} gives")
        if mine and what != "kubeconfig":   # which is read as its owner's
            key.chmod(0o600)
            os.chown(key, 4242, -1)
            refused(daemon, "bad_configuration", "belongs to uid 4242")
            os.chown(key, 0, -1)
        key.chmod(0o640)
        if not mine:
            refused(daemon, "bad_configuration", "its mode 0640 gives")
            key.chmod(0o600)
        taken(daemon, 2)


@cases.case
def secret_that_is_shown():
    """What a sandbox could read is warned of, and is the operator's choice."""
    with Daemon() as daemon:
        if os.geteuid() != 0:
            raise Skip("only root can write there")
        with tempfile.TemporaryDirectory(dir="/usr/local/share") as folder:
            key = pathlib.Path(folder) / "key"
            key.write_text("secret\n")
            key.chmod(0o600)
            daemon.write(POLICY + SECRETS["decider"] % key + "\n")
            taken(daemon, 2)
            assert (f"{key}: holds a secret, and every sandbox is shown /usr"
                    in daemon.log()), daemon.log()


@cases.each(["cert", "key", "trust", "directory"])
def session_file(what):
    """Also what an engine will need must be there."""
    root = authority()
    with Daemon() as daemon:
        missing = daemon.dir / "none" / "file"
        path = {"cert": root.cert, "key": root.key, "trust": root.cert,
                "directory": daemon.dir / "trust"}
        line = len(daemon.conf.read_text().splitlines()) + 1
        for paths in ({**path, what: missing}, path):
            daemon.write(POLICY + """session "new" {{ policy "open"
                listen on 127.0.0.1 port 15003
                ca certificate "{cert}" key "{key}"
                upstream trust file "{trust}"
                trust directory "{directory}" }}\n""".format(**paths))
            if paths is not path:
                refused(daemon, "bad_configuration", f"{daemon.conf}:{line}: ",
                        str(missing.parent), "No such file")
        assert "new" in taken(daemon, 2)


# What is wrong with a CA, and what is said of it.
GARBAGE = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
BAD_CA = {
    "mismatch": "CA key does not belong to the CA certificate",
    "garbage_cert": "CA certificate is not valid PEM",
    "garbage_key": "CA key is not valid PEM without a passphrase",
    "no_ca": "certificate is not that of a CA for servers",
    "empty_key": "it is empty",
}


def bad_ca(daemon, what):
    """(certificate, key)."""
    root, other = authority(), authority("another")
    if what == "no_ca":
        return root.leaf("leaf.test")
    empty = daemon.dir / "text"
    empty.write_text(GARBAGE if what == "garbage_cert" else
                     "no key\n" if what == "garbage_key" else "")
    empty.chmod(0o600)
    return {"mismatch": (root.cert, other.key),
            "garbage_cert": (empty, root.key)}.get(what, (root.cert, empty))


def with_ca(cert, key, name="new"):
    return POLICY + (f'session "{name}" {{ policy "open"\n'
                     'listen on 127.0.0.1 port 15003\n'
                     f'ca certificate "{cert}" key "{key}" }}\n')


@cases.each(BAD_CA)
def ca_that_cannot_be_used(what):
    """It is weighed before anything changes, of a new session as of one that
    runs; the good one after it is taken."""
    good = authority().cert, authority().key
    with Daemon() as daemon:
        cert, key = bad_ca(daemon, what)
        daemon.write(with_ca(cert, key))
        said = [BAD_CA[what]]
        if what != "empty_key":
            said += ["session new: ", f"{cert}, {key}"]
        refused(daemon, "reload_refused", *said)
        daemon.write(with_ca(*good))
        assert "new" in taken(daemon, 2)
        daemon.write(with_ca(cert, key))
        refused(daemon, "reload_refused", *said)
        # The others' are weighed with it.
        daemon.write(with_ca(*good) + with_ca(cert, key, "more").removeprefix(
            POLICY).replace("15003", "15004"))
        refused(daemon, "reload_refused", BAD_CA[what], "more")


@cases.case
def ca_unread():
    """A key that others may read is refused as at the start."""
    with Daemon() as daemon:
        key = daemon.dir / "key"
        key.write_text(authority().key.read_text())
        key.chmod(0o644)
        daemon.write(with_ca(authority().cert, key))
        refused(daemon, "bad_configuration", f"{key}: holds a secret")
        key.chmod(0o600)
        assert "new" in taken(daemon, 2)


@cases.case
def lost_ca():
    """A session whose CA has gone waits for it and makes no other."""
    root = authority()
    with Daemon() as daemon:
        cert = daemon.dir / "cert"
        cert.write_text(root.cert.read_text())
        trust = daemon.dir / "trust"
        daemon.write(POLICY.replace(
            "15001 transparent", f'15001\nca certificate "{cert}" key '
            f'"{root.key}"\ntrust directory "{trust}"\n'))
        edge = taken(daemon, 2)["edge"]
        daemon.process.send_signal(signal.SIGSTOP)
        cert.rename(daemon.dir / "away")
        os.kill(edge, signal.SIGKILL)
        daemon.process.send_signal(signal.SIGCONT)
        until("it cannot start", lambda: "cannot have all" in daemon.log())
        (daemon.dir / "away").rename(cert)
        assert until("edge runs", daemon.settle)["edge"] != edge
        assert (trust / "ca.pem").read_text() == root.cert.read_text()


@cases.case
def control_replaced():
    """The mode is the socket's, not that of what a link leads to."""
    with Daemon() as daemon, daemon.client() as client:
        secret = daemon.dir / "secret"
        secret.write_text("")
        secret.chmod(0o600)
        daemon.socket.unlink()
        daemon.socket.symlink_to(secret)
        assert client.ask("reload")["ok"]
        assert secret.stat().st_mode & 0o777 == 0o600, secret.stat()


@cases.case
def control_moves():
    """A new path serves, the old one is gone, nobody is hung up on."""
    daemon = Daemon(option=False)
    old, new = daemon.socket, daemon.dir / "new.sock"
    daemon.write(f'control socket "{old}"\n' + POLICY)
    with daemon, daemon.client() as client:
        assert client.ask("status")["generation"] == 1
        pids = daemon.settle()
        daemon.write(f'control socket "{new}" mode 0600\n' + POLICY)
        assert client.ask("reload")["generation"] == 2
        assert not old.exists() and new.stat().st_mode & 0o777 == 0o600
        assert client.ask("status")["generation"] == 2
        daemon.socket = new
        assert daemon.settle() == pids
        assert daemon.stop() == 0
        assert not new.exists()


@cases.case
def control_mode():
    """Owner, group and mode of a socket that stays change with the file."""
    if os.geteuid() != 0:
        raise Skip("only root can give a socket away")
    group = grp.getgrnam("daemon")
    daemon = Daemon(option=False)
    daemon.write(f'control socket "{daemon.socket}"\n' + POLICY)
    with daemon, daemon.client() as client:
        mode = daemon.socket.stat()
        assert (mode.st_mode & 0o777, mode.st_uid, mode.st_gid) == (
            0o660, 0, 0), mode
        daemon.write(f'control socket "{daemon.socket}" mode 0620 '
                     f'group "daemon" owner "61250"\n' + POLICY)
        taken(daemon, 2)
        mode = daemon.socket.stat()
        assert (mode.st_mode & 0o777, mode.st_uid, mode.st_gid) == (
            0o620, 61250, group.gr_gid), mode
        assert client.ask("status")["ok"]
        daemon.write(f'control socket "{daemon.socket}" mode 0600 '
                     f'group "no-such-group"\n' + POLICY)
        refused(daemon, "bad_configuration", f"{daemon.conf}:",
                "no-such-group")
        assert daemon.socket.stat().st_mode & 0o777 == 0o620


@cases.case
def path_in_use():
    """A socket that another program serves is left alone, also when its
    queue is full and connecting to it would wait."""
    with Daemon() as daemon:
        path = daemon.dir / "theirs"
        with socket.socket(socket.AF_UNIX) as theirs, \
                socket.socket(socket.AF_UNIX) as waits:
            theirs.bind(str(path))
            theirs.listen(0)
            waits.connect(str(path))
            daemon.write(f'control socket "{path}" read-only\n' + POLICY)
            refused(daemon, "bad_configuration", str(path), "serves it")
            assert theirs.accept()
        refused_path = daemon.dir / "file"
        refused_path.write_text("precious")
        daemon.write(f'control socket "{refused_path}" read-only\n' + POLICY)
        refused(daemon, "bad_configuration", "not a socket")
        assert refused_path.read_text() == "precious"
        daemon.write(f'control socket "{path}" read-only\n' + POLICY)
        taken(daemon, 2)
        with Client(path) as client:
            assert client.ask("status")["generation"] == 2


@cases.case
def rotation():
    """Rename, reload: the new file carries on where the old one ended."""
    with Daemon() as daemon:
        pids = daemon.settle()
        old = daemon.dir / "audit.log.1"
        daemon.audit.rename(old)
        os.kill(pids["edge"], signal.SIGKILL)
        until("edge runs again", lambda: daemon.settle()["edge"] !=
              pids["edge"])
        assert not daemon.audit.exists()
        pids = taken(daemon, 2)
        os.kill(pids["other"], signal.SIGKILL)
        until("other runs again", lambda: daemon.settle()["other"] !=
              pids["other"])
        assert daemon.stop() == 0
        first = old.read_text().splitlines()
        second = daemon.audit.read_text().splitlines()
        assert len(first) == 4 and len(second) == 5, (first, second)
        verify(first)
        records = verify(second, first[-1])
        assert [r["seq"] for r in records] == [5, 6, 7, 8, 9], records
        assert (records[0]["kind"], records[0]["last_seq"],
                records[0]["last_hash"]) == (
            "file_opened", 4, records[0]["prev"]), records


@cases.case
def back_to_an_old_file():
    """The chain of a file that ended earlier goes on behind a gap."""
    with Daemon() as daemon:
        pids = daemon.settle()
        first, second = daemon.audit, daemon.dir / "second.log"
        daemon.audit = second
        daemon.write(POLICY)
        taken(daemon, 2)
        os.kill(pids["edge"], signal.SIGKILL)
        until("edge runs again", lambda: daemon.settle()["edge"] !=
              pids["edge"])
        daemon.audit = first
        daemon.write(POLICY)
        taken(daemon, 3)
        gap = daemon.verified()[-1]
        assert (gap["kind"], gap["reason"], gap["lost"]) == (
            "gap", "audit_switched", 3), gap
        verify(second.read_text().splitlines(),
               first.read_text().splitlines()[1])


@cases.case
def second_daemon():
    """Neither the socket nor the audit file has two masters."""
    with Daemon() as daemon:
        daemon.settle()
        before = picture(daemon)
        for name in ("socket", "audit"):
            other = Daemon()
            setattr(other, name, getattr(daemon, name))
            other.args[other.args.index("-s") + 1] = str(other.socket)
            other.write(POLICY)
            try:
                other.popen()
                assert other.wait() == 1
                said = other.log()
            finally:
                other.end()
            assert str(getattr(daemon, name)) in said, said
            assert ("another egressd serves it" if name == "socket" else
                    "another process writes it") in said, said
        assert picture(daemon) == before
        taken(daemon, 2)


@cases.case
def hangup_signal():
    with Daemon() as daemon:
        pids = daemon.settle()
        daemon.write(MORE)
        daemon.process.send_signal(signal.SIGHUP)
        until("generation 2", lambda: "in force, generation 2" in daemon.log())
        daemon.settle()
        daemon.conf.write_text("bogus\n")
        daemon.process.send_signal(signal.SIGHUP)
        until("the refusal is in the log", lambda: f"{daemon.conf}:1: " in
              daemon.log())
        now = daemon.processes()
        assert now.pop("third") and now == pids
        assert daemon.ask("status")["generation"] == 2


@cases.case
def two_at_once():
    """One of them may be told to come again; none is left waiting."""
    with Daemon() as daemon, daemon.client() as one, daemon.client() as two:
        pids, done = daemon.settle(), 1
        for _ in range(10):
            one.send({"id": 1, "op": "reload"})
            two.send({"id": 2, "op": "reload"})
            answers = [one.read(), two.read()]
            assert [a["id"] for a in answers] == [1, 2], answers
            good = sorted(a["generation"] for a in answers if "ok" in a)
            codes = [a["error"]["code"] for a in answers if "error" in a]
            assert good and set(codes) <= {"busy"}, answers
            assert good == list(range(done + 1, done + 1 + len(good)))
            done = good[-1]
        one.sock.sendall(b'{"id":1,"op":"reload"}\n' * 60)
        answers = [one.read() for _ in range(60)]
        done += sum("ok" in a for a in answers)
        assert daemon.ask("status")["generation"] == done
        assert daemon.settle() == pids, "an engine was lost on the way"


@cases.case
def silent_engine():
    """An engine has no vote: one that does not answer is started again."""
    with Daemon() as daemon:
        pids = daemon.settle()
        os.kill(pids["edge"], signal.SIGSTOP)
        answer = daemon.ask("reload")
        assert answer.get("generation") == 2, answer
        until("edge runs again", lambda: daemon.settle()["edge"] !=
              pids["edge"])
        assert not alive(pids["edge"])
        now = daemon.processes()
        assert {**now, "edge": 0} == {**pids, "edge": 0}


@cases.case
def client_leaves():
    """Whoever asked may be gone when the answer comes."""
    with Daemon() as daemon:
        pids = daemon.settle()
        for _ in range(20):
            client = daemon.client()
            client.send({"id": 1, "op": "reload"})
            client.close()
        until("a reload of their own", lambda: "ok" in daemon.ask("reload"))
        assert daemon.ask("status")["generation"] > 2
        assert daemon.settle() == pids


@cases.case
def under_load():
    """Fifty clients that never stop asking see one generation after another,
    and every answer is whole."""
    with Daemon("limit clients 100\n" + POLICY) as daemon:
        pids = daemon.settle()
        stop, wrong, served = threading.Event(), [], [0] * 50

        def ask(n):
            try:
                with daemon.client() as client:
                    last = 0
                    while not stop.is_set():
                        status = client.ask("status")
                        assert status["generation"] >= last, status
                        last = status["generation"]
                        names = {s["session_id"] for s in status["sessions"]}
                        assert names in ({"edge", "other"}, {
                            "edge", "other", "third"}), names
                        served[n] += 1
            except Exception as error:
                wrong.append(error)

        threads = [threading.Thread(target=ask, args=(n,)) for n in range(50)]
        for thread in threads:
            thread.start()
        try:
            for generation in range(2, 12):
                daemon.write("limit clients 100\n" +
                             (MORE if generation % 2 == 0 else POLICY))
                answer = daemon.ask("reload")
                assert answer.get("generation") == generation, answer
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert not wrong, wrong[0]
        assert min(served) > 0, served
        assert daemon.settle() == pids


cases.main()
