#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Each process of a running daemon, looked at from outside: who it is, what
it may, what it holds.  What it tries and is not allowed is in t_try.c."""

import atexit
import contextlib
import ctypes
import errno
import fcntl
import functools
import json
import os
import pathlib
import platform
import pwd
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
from collections import Counter

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from case import Cases, Skip  # noqa: E402
from daemon import BUILD, POLICY, Daemon, until  # noqa: E402
from prefix import Prefix, UserDaemon  # noqa: E402
from procs import adopt, orphans, status  # noqa: E402
from procs import descriptors as descriptors_of  # noqa: E402

ROOT = os.geteuid() == 0
SHARED = ("controld", "policyd", "recorder", "dialer", "deciderd", "k8sd",
          "podd")
PORTS = {"edge": 15001, "other": 15002}
SESSIONS = tuple(PORTS)
STOCK_MAX = 32      # sockets that the dialer keeps ready
CHILDREN = SHARED + SESSIONS
# A child and how the daemon was started.
WHO = [f"{mode} {name}" for mode in ("root", "user") for name in CHILDREN]

cases = Cases()


# ---- daemons that several cases look at ----

@functools.cache
def prefix():
    installed = Prefix()
    atexit.register(installed.end)
    return installed


def new_daemon(mode, **kwargs):
    if mode == "root":
        if not ROOT:
            raise Skip("only root starts as root")
        return Daemon(**kwargs)
    return UserDaemon(prefix(), **kwargs) if ROOT else Daemon(**kwargs)


@functools.cache
def start_shared(mode):
    """The daemon, or why there is none: it is not tried for every case."""
    daemon = new_daemon(mode)
    atexit.register(daemon.end)
    try:
        daemon.start()
        daemon.pids = daemon.settle()
        return daemon
    except Exception as error:
        return error


def shared(who):
    """Of "user dialer": the daemon, and the pid of its dialer."""
    mode, *name = who.split()
    daemon = start_shared(mode)
    if isinstance(daemon, Exception):
        raise daemon
    assert set(daemon.pids) == {"parent", *CHILDREN}, daemon.pids
    return daemon, daemon.pids[name[0]] if name else None


# ---- reading /proc ----

def unix_sockets():
    """Inode to (is listening, inode of the peer), of this namespace."""
    found = {}
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4) as diag:
        request = struct.pack("=BBHIIIII", socket.AF_UNIX, 0, 0, 0xffffffff,
                              0, 4, 0xffffffff, 0xffffffff)
        diag.send(struct.pack("=IHHII", 16 + len(request), 20, 0x301, 1, 0) +
                  request)
        while True:
            data = diag.recv(1 << 20)
            while data:
                size, kind = struct.unpack_from("=IH", data)
                if kind == 3:
                    return found
                if kind == 2:
                    raise Skip("this kernel lacks CONFIG_UNIX_DIAG")
                state, inode = struct.unpack_from("=2xBxI", data, 16)
                peer, at = 0, 32
                while at + 4 <= size:
                    length, what = struct.unpack_from("=HH", data, at)
                    if what == 2:
                        peer, = struct.unpack_from("=I", data, at + 4)
                    at += (length + 3) & ~3
                found[inode] = (state == 10, peer)
                data = data[(size + 3) & ~3:]


def inet_sockets():
    """Inode to local port of the sockets that have one, of this namespace."""
    found = {}
    for name in ("tcp", "tcp6", "udp", "udp6"):
        path = pathlib.Path("/proc/net", name)
        lines = path.read_text().splitlines()[1:] if path.exists() else []
        for line in lines:
            fields = line.split()
            found[int(fields[9])] = int(fields[1].rsplit(":", 1)[1], 16)
    return found


def open_files(pid):
    """Descriptor to what it is; what is just going away is left out."""
    links = {}
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for fd in descriptors_of(pid):
            with contextlib.suppress(FileNotFoundError):
                links[fd] = os.readlink(f"/proc/{pid}/fd/{fd}")
    return links


class Holdings:
    """What every process of a daemon holds, in words: a socket by whom it
    leads to, a pipe by whether another process has it too."""

    def __init__(self, daemon, pids):
        tip = daemon.audit.with_name(daemon.audit.name + ".tip")
        self.files = {daemon.audit: "audit file", tip: "tip",
                      daemon.stderr: "log",
                      daemon.socket.with_suffix(".pid"): "pid file",
                      "/dev/null": "null",
                      "anon_inode:[eventpoll]": "epoll",
                      "anon_inode:[eventfd]": "libcurl's alarm"}
        self.ports = {port: f"listener {written}"
                      for written, port in daemon.ports.items()}
        self.links = {name: open_files(pid) for name, pid in pids.items()}
        self.sockets, self.bound = unix_sockets(), inet_sockets()
        self.holders = {}
        for name, links in self.links.items():
            for link in set(links.values()):
                self.holders.setdefault(link, []).append(name)

    def word(self, fd, link):
        for path, word in self.files.items():
            if link == str(path):
                return f"{fd} {word}" if fd < 3 else word
        if link.startswith("pipe:") and len(self.holders[link]) == 1:
            return "own pipe"
        number = re.fullmatch(r"socket:\[(\d+)\]", link)
        return self.socket_word(int(number[1]), link) if number else link

    def socket_word(self, number, link):
        if number in self.bound:
            return self.ports.get(self.bound[number],
                                  f"port {self.bound[number]}")
        if number not in self.sockets:
            return "unbound socket"
        listens, peer = self.sockets[number]
        if listens:
            return "control socket"
        if len(self.holders[link]) > 1:
            return f"channel shared by {' and '.join(self.holders[link])}"
        return " ".join(["to", *self.holders.get(f"socket:[{peer}]",
                                                 ["a stranger"])])

    def words(self):
        words = {name: Counter(self.word(fd, link)
                               for fd, link in links.items())
                 for name, links in self.links.items()}
        # libcurl wakes itself by a pair or, newer, by an event.
        for name in {"deciderd", "k8sd"} & set(words):
            pair = Counter({f"to {name}": 2})
            if pair <= words[name]:
                words[name] += Counter({"libcurl's alarm": 1})
                words[name] -= pair
        return words


def wired(sessions, controls=1, **more):
    """What they should hold: the picture of README.md, and an event loop each."""
    loop = ["epoll", "own pipe", "own pipe"]
    child = ["0 null", "1 null", "2 log", "to parent", *loop]
    serve = ["control socket"] * controls
    engines = [f"to {name}" for name in sessions]
    held = {
        "parent": ["0 null", "1 log", "2 log", "pid file", *loop, *serve,
                   *(f"to {name}" for name in SHARED), *engines,
                   *(f"listener {PORTS[name]}" for name in sessions)],
        "controld": [*child, *serve, "to policyd", "to recorder", "to k8sd",
                     "to podd"],
        "policyd": [*child, *engines, "to controld", "to recorder",
                    "to dialer", "to deciderd", "to podd"],
        "recorder": [*child, "audit file", "tip", "to policyd", "to controld",
                     "to podd", *engines],
        "dialer": [*child, "to policyd", *engines],
        "deciderd": [*child, "to policyd", "libcurl's alarm"],
        "k8sd": [*child, "to controld", "libcurl's alarm"],
        "podd": [*child, "to controld", "to policyd", "to recorder"],
        **{name: [*child, "to policyd", "to recorder", "to dialer",
                  f"listener {PORTS[name]}"] for name in sessions},
    }
    return {name: Counter(words + more.get(name, []))
            for name, words in held.items()}


def differences(have, want):
    """By process, what is there too much and what is missing."""
    texts = []
    for name in sorted(have):
        more, less = have[name] - want[name], want[name] - have[name]
        texts += [f"{name} has {sorted(more.elements())} too many"] * \
            bool(more) + [f"{name} lacks {sorted(less.elements())}"] * \
            bool(less)
    return "; ".join(texts)


def check_holdings(daemon, want, only=None):
    """A control connection or an engine may just be on its way out."""
    why = ""

    def same():
        nonlocal why
        have = Holdings(daemon, daemon.settle()).words()
        # The dialer's stock is smaller where there is no IPv6.
        have["dialer"] -= Counter({"unbound socket": STOCK_MAX})
        names = [only] if only else set(have) | set(want)
        why = differences({name: have.get(name, Counter()) for name in names},
                          {name: want.get(name, Counter()) for name in names})
        return not why
    try:
        until("descriptors", same, 10)
    except AssertionError:
        raise AssertionError(why) from None


# ---- who they are ----

@cases.each(WHO)
def identity(who):
    """As root a uid of its own, also in the chroot; else the user's."""
    daemon, pid = shared(who)
    ids = status(pid)
    uids, gids = set(ids["Uid"].split()), set(ids["Gid"].split())
    assert len(uids) == 1 and len(gids) == 1, (uids, gids)
    uid = int(uids.pop())
    if who.startswith("user"):
        want = daemon.owner.pw_uid if daemon.owner else os.geteuid()
        assert uid == want != 0, f"uid {uid}, not {want}"
        return
    gid = gids.pop()
    assert uid in range(61200, 61300) and int(gid) == uid, (uid, gid)
    assert ids["Groups"].split() == [gid], ids["Groups"]
    others = [int(status(p)["Uid"].split()[0])
              for p in daemon.pids.values() if p != pid]
    assert uid not in others, f"uid {uid} is not its own"


@cases.each(WHO)
def capabilities(who):
    """None.  Only root can empty the bounding set, which without any other
    and with no_new_privs gives nothing."""
    sets = ["CapInh", "CapPrm", "CapEff", "CapAmb"]
    sets += ["CapBnd"] if who.startswith("root") else []
    have = status(shared(who)[1])
    for name in sets:
        assert int(have[name], 16) == 0, f"{name} is {have[name]}"


@cases.each(WHO)
def filtered(who):
    have = status(shared(who)[1])
    assert have["Seccomp"] == "2", f"Seccomp is {have['Seccomp']}"
    assert have["NoNewPrivs"] == "1", f"NoNewPrivs is {have['NoNewPrivs']}"
    assert have["Threads"] == "1", f"Threads is {have['Threads']}"


@cases.each([who for who in WHO if who.startswith("root")])
def chrooted(who):
    """Its root is an empty directory that it cannot write to."""
    daemon, pid = shared(who)
    roots = {name: os.readlink(f"/proc/{p}/root")
             for name, p in daemon.pids.items()}
    name = who.split()[1]
    root = pathlib.Path(roots[name])
    assert root != pathlib.Path("/") and roots["parent"] == "/", roots
    assert os.readlink(f"/proc/{pid}/cwd") == str(root)
    have = os.stat(f"/proc/{pid}/root")
    assert have.st_uid == 0 and stat.S_IMODE(have.st_mode) == 0o555, \
        f"{root}: uid {have.st_uid}, mode {have.st_mode:o}"
    assert not os.listdir(f"/proc/{pid}/root"), f"{root} is not empty"
    if name in SHARED:
        assert Counter(roots.values())[str(root)] == 1, roots


@cases.each(WHO)
def environment(who):
    """Empty, and arguments say no more than the name."""
    if not ROOT:
        raise Skip("only root sees into the processes")
    _, pid = shared(who)
    name = who.split()[1]
    assert pathlib.Path(f"/proc/{pid}/environ").read_bytes() == b""
    title = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    want = name if name in SHARED else f"tlsengine: {name}"
    assert title == f"egressd-{want}\0".encode(), title


@cases.each(WHO)
def limits(who):
    """No core file, no process, no more descriptors than it is known for."""
    text = pathlib.Path(f"/proc/{shared(who)[1]}/limits").read_text()
    found = dict(re.findall(r"^(Max [a-z ]+?) {2,}(\S+ +\S+)", text, re.M))
    for name in ("Max core file size", "Max processes"):
        assert found[name].split() == ["0", "0"], f"{name}: {found[name]}"
    soft, hard = found["Max open files"].split()
    assert soft == hard and int(hard) <= 16384, found["Max open files"]


# ---- what others see of them ----

def as_user(uid, gid, look):
    """The answer of a function in a process of that user."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(gid, gid, gid)
            os.setresuid(uid, uid, uid)
            os.write(writing, json.dumps(look()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    return json.loads(text)


def openings(pid):
    """What of a process is open to us, and should not be."""
    libc = ctypes.CDLL(None, use_errno=True)
    found = []
    for name in ("mem", "environ", "maps", "auxv", "stack"):
        try:
            with open(f"/proc/{pid}/{name}", "rb") as file:
                file.read(1)
            found.append(name)
        except OSError as error:
            found += [name] if error.errno == errno.EIO else []
    for name in ("root", "cwd", "exe", "fd/3"):
        try:
            os.readlink(f"/proc/{pid}/{name}")
            found.append(name)
        except OSError:
            pass
    ptrace_seize, ptrace_detach = 0x4206, 17
    if libc.ptrace(ptrace_seize, pid, None, None) == 0:
        libc.ptrace(ptrace_detach, pid, None, None)
        found.append("ptrace")
    return found


@cases.each(WHO)
def closed_to_users(who):
    """Not dumpable: not even its own user sees into it."""
    if not ROOT:
        raise Skip("only root can become another user")
    daemon, pid = shared(who)
    owner = os.stat(f"/proc/{pid}/status")
    assert owner.st_uid == 0, f"dumpable: /proc/{pid} is {owner.st_uid}'s"
    nobody = pwd.getpwnam("nobody")
    users = {(nobody.pw_uid, nobody.pw_gid),
             tuple(int(status(pid)[key].split()[0]) for key in ("Uid", "Gid"))}
    for uid, gid in users:
        found = as_user(uid, gid, lambda: openings(pid))
        assert not found, f"uid {uid} gets at {found}"


@cases.case
def open_to_users():
    """The look of the case above does see into a process that has no fence."""
    if not ROOT:
        raise Skip("only root can become another user")
    nobody = pwd.getpwnam("nobody")
    with subprocess.Popen(["sleep", "60"], user=nobody.pw_uid,
                          group=nobody.pw_gid, extra_groups=[]) as sleep:
        try:
            found = as_user(nobody.pw_uid, nobody.pw_gid,
                            lambda: openings(sleep.pid))
        finally:
            sleep.kill()
    assert {"environ", "maps", "exe"} <= set(found), found


# ---- what they hold ----

@cases.each([f"{mode} {name}" for mode in ("root", "user")
             for name in ("parent", *CHILDREN)])
def descriptors(who):
    daemon, _ = shared(who)
    check_holdings(daemon, wired(SESSIONS), only=who.split()[1])


@cases.each(["root", "user"])
def descriptors_after_changes(mode):
    """Reloads, sessions that come and go, refusals, an engine's death."""
    want = wired(SESSIONS)
    with new_daemon(mode) as daemon:
        check_holdings(daemon, want)
        for _ in range(3):
            assert daemon.ask("reload").get("ok")
        check_holdings(daemon, want)
        daemon.write(POLICY.replace('policy "open" {', 'policy "shut" {'))
        assert daemon.ask("reload")["error"]["code"] == "bad_configuration"
        check_holdings(daemon, want)
        daemon.write(POLICY.split("session \"other\"")[0])
        assert daemon.ask("reload").get("ok")
        check_holdings(daemon, wired(["edge"]))
        daemon.write(POLICY)
        assert daemon.ask("reload").get("ok")
        check_holdings(daemon, want)
        os.kill(daemon.settle()["edge"], signal.SIGKILL)
        check_holdings(daemon, want)


@cases.case
def descriptors_of_clients():
    """Followers and other clients leave nothing behind."""
    with new_daemon("root") as daemon:
        daemon.settle()
        clients = [daemon.client() for _ in range(8)]
        for client in clients[:4]:
            assert client.ask("events.follow").get("ok")
        for client in clients[4:]:
            assert client.ask("status").get("ok")
        until("followers", lambda: daemon.ask("status")["audit"]["followers"]
              == 4)
        for client in clients:
            client.close()
        check_holdings(daemon, wired(SESSIONS))


@cases.case
def descriptors_of_two_sockets():
    with new_daemon("root") as daemon:
        read_only = daemon.dir / "ro.sock"
        daemon.write(f'control socket "{read_only}" read-only\n' + POLICY)
        assert daemon.ask("reload").get("ok")
        check_holdings(daemon, wired(SESSIONS, controls=2))
        daemon.write(POLICY)
        assert daemon.ask("reload").get("ok")
        check_holdings(daemon, wired(SESSIONS))
        assert not read_only.exists()


@cases.case
def descriptors_of_secrets():
    """Files of deciders and clusters are read and closed."""
    with new_daemon("root") as daemon:
        for name in ("key", "prompt", "token"):
            path = daemon.dir / name
            path.write_text("secret\n")
            path.chmod(0o600)
        daemon.write(POLICY + f"""
decider "guard" agent {{
        api anthropic
        url "https://127.0.0.1:1/v1/messages"
        model "small"
        key file "{daemon.dir}/key"
        prompt file "{daemon.dir}/prompt"
}}
cluster "lab" {{
        server "https://127.0.0.1:1"
        token file "{daemon.dir}/token"
}}
""")
        for _ in range(2):
            answer = daemon.ask("reload")
            assert answer.get("ok"), answer
        check_holdings(daemon, wired(SESSIONS))


def start_with(daemon, **kwargs):
    """Started by somebody who leaves things lying about."""
    daemon.popen = functools.partial(daemon.popen, **kwargs)
    return daemon


@cases.each(["root", "user"])
def descriptors_of_starter(mode):
    """What the starter left open goes no further than the parent."""
    with open(os.devnull, "rb") as null:
        left = fcntl.fcntl(null, fcntl.F_DUPFD, 100)
    try:
        with start_with(new_daemon(mode), pass_fds=[left]) as daemon:
            check_holdings(daemon, wired(SESSIONS))
    finally:
        os.close(left)


@cases.case
def descriptors_without_standard():
    """Started with 0, 1 and 2 closed: nothing else takes their place."""
    def close_standard():
        for fd in range(3):
            os.close(fd)
    want = {name: Counter(word.replace("log", "null")
                          for word in words.elements())
            for name, words in wired(SESSIONS).items()}
    with start_with(new_daemon("root"), preexec_fn=close_standard) as daemon:
        check_holdings(daemon, want)


@cases.case
def groups_of_starter():
    with start_with(new_daemon("root"), extra_groups=[4, 24, 27]) as daemon:
        for name, pid in daemon.settle().items():
            have = status(pid)
            if name != "parent":
                assert have["Groups"].split() == [have["Gid"].split()[0]], \
                    f"{name}: {have['Groups']}"


# ---- the way in ----

def owner_and_mode(path):
    have = path.stat()
    return have.st_uid, have.st_gid, stat.S_IMODE(have.st_mode)


@cases.case
def socket_mode():
    with new_daemon("root") as daemon:
        assert owner_and_mode(daemon.socket) == (0, 0, 0o660)


@cases.case
def socket_mode_of_user():
    daemon, _ = shared("user")
    assert owner_and_mode(daemon.socket)[2] == 0o660
    assert daemon.socket.stat().st_uid == daemon.dir.stat().st_uid


@cases.case
def socket_mode_by_configuration():
    """Each socket's own, from the start and changed by a reload."""
    daemon = new_daemon("root", option=False)
    full, read_only = daemon.socket, daemon.dir / "ro.sock"
    daemon.dir.chmod(0o755)

    def control(mode, ro_mode, owner):
        return f"""
control socket "{full}" mode {mode} owner "{owner}" group "nogroup"
control socket "{read_only}" read-only mode {ro_mode}
""" + POLICY
    nogroup = pathlib.Path("/etc/group").read_text()
    gid = int(re.search(r"^nogroup:[^:]*:(\d+)", nogroup, re.M)[1])
    daemon.write(control("0600", "0666", "nobody"))
    with daemon:
        nobody = pwd.getpwnam("nobody").pw_uid
        assert owner_and_mode(full) == (nobody, gid, 0o600)
        assert owner_and_mode(read_only) == (0, 0, 0o666)
        daemon.write(control("0660", "0640", "root"))
        assert daemon.ask("reload").get("ok")
        assert owner_and_mode(full) == (0, gid, 0o660)
        assert owner_and_mode(read_only) == (0, 0, 0o640)


# ---- users by name ----

class Users:
    """A copy of the user database, seen by a program that is started in a
    mount namespace of its own."""

    def __init__(self, users):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="egressd-users."))
        self.dir.chmod(0o755)
        for name in ("passwd", "group"):
            kept = [line for line in
                    pathlib.Path("/etc", name).read_text().splitlines()
                    if not line.startswith("_egressd-")]
            for user, uid in users.items():
                kept.append(f"{user}:x:{uid}:" + (
                    f"{uid}::/nonexistent:/bin/false" if name == "passwd"
                    else ""))
            (self.dir / name).write_text("\n".join(kept) + "\n")
        self.program = self.dir / "egressd"
        self.program.write_text(f"""#!/bin/sh
exec unshare --mount sh -c '
        mount --bind {self.dir}/passwd /etc/passwd &&
        mount --bind {self.dir}/group /etc/group &&
        exec {BUILD}/egressd "$@"' egressd "$@"
""")
        self.program.chmod(0o755)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.dir, ignore_errors=True)


ROLES = (*SHARED, "tlsengine")
NAMED = {f"_egressd-{role}": 61400 + i for i, role in enumerate(ROLES)}


def need_mounts():
    if not ROOT:
        raise Skip("only root can mount")
    done = subprocess.run(["unshare", "--mount", "mount", "--bind",
                           "/etc/passwd", "/etc/passwd"],
                          stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Skip(f"no mount namespaces here: {done.stderr.strip()}")


@cases.case
def named_users():
    need_mounts()
    with Users(NAMED) as users, \
            Daemon(head=False, program=users.program) as daemon:
        pids = daemon.settle()
        for name in CHILDREN:
            have = status(pids[name])
            role = name if name in SHARED else "tlsengine"
            uid = str(NAMED[f"_egressd-{role}"])
            assert set(have["Uid"].split()) == {uid}, (name, have["Uid"])
            assert set(have["Gid"].split()) == {uid}, (name, have["Gid"])
            assert have["Groups"].split() == [uid], (name, have["Groups"])


def refuses(daemon, *words, **kwargs):
    """It exits with an error that has these words, and leaves nothing."""
    try:
        daemon.popen(**kwargs)
        code = daemon.wait()
        text = daemon.log()
        assert code == 1, f"exit status {code}: {text}"
        assert not daemon.socket.exists(), "the socket is left"
        for word in words:
            assert word in text, f"does not say {word}: {text}"
        until("nobody is left", lambda: not orphans())
    finally:
        daemon.end()


@cases.each(ROLES)
def missing_user(role):
    need_mounts()
    name = f"_egressd-{role}"
    rest = {user: uid for user, uid in NAMED.items() if user != name}
    with Users(rest) as users:
        refuses(Daemon(head=False, program=users.program), name,
                "does not exist")


@cases.case
def user_that_is_root():
    need_mounts()
    with Users({**NAMED, "_egressd-dialer": 0}) as users:
        refuses(Daemon(head=False, program=users.program),
                "_egressd-dialer", "root")


# ---- a kernel that lacks something ----

CALLS = {
    "x86_64": {"prctl": 157, "setrlimit": 160, "chroot": 161, "seccomp": 317,
               "setresuid": 117, "setresgid": 119, "setgroups": 116,
               "capset": 126, "prlimit64": 302},
    "aarch64": {"prctl": 167, "setrlimit": 164, "chroot": 51, "seccomp": 277,
                "setresuid": 147, "setresgid": 149, "setgroups": 159,
                "capset": 91, "prlimit64": 261},
}.get(platform.machine(), {})
CALLS |= {"landlock_create_ruleset": 444, "landlock_restrict_self": 446}

# What is refused (a call, perhaps only with this first argument), with which
# error, and what egressd says then.
LACKING = {
    "landlock_disabled": (("landlock_create_ruleset", None),
                          errno.EOPNOTSUPP, "this kernel lacks Landlock"),
    "landlock_refused": (("landlock_create_ruleset", None), errno.EPERM,
                         "has Landlock, but a seccomp filter refuses it"),
    "landlock_rules": (("landlock_restrict_self", None), errno.EPERM,
                       "Landlock: cannot enter"),
    "seccomp": (("seccomp", None), errno.EACCES, "seccomp: "),
    "no_new_privs": (("prctl", 38), errno.EINVAL, "no_new_privs"),
    "parent_death": (("prctl", 1), errno.EINVAL, "parent-death signal"),
    "dumpable": (("prctl", 4), errno.EINVAL, "dumpable"),
    "ambient": (("prctl", 47), errno.EINVAL, "ambient capabilities"),
    "bounding": (("prctl", 24), errno.EPERM, "capability"),
    "capset": (("capset", None), errno.EPERM, "capabilities"),
    "chroot": (("chroot", None), errno.EPERM, "chroot"),
    "setgroups": (("setgroups", None), errno.EPERM, "cannot change to it"),
    "setresgid": (("setresgid", None), errno.EPERM, "cannot change to it"),
    "setresuid": (("setresuid", None), errno.EPERM, "cannot change to it"),
}
# Not called by a child of an ordinary user.
AS_ROOT = ("bounding", "chroot", "setgroups", "setresgid", "setresuid")


def refuse_call(number, argument, error):
    """A filter of this process and of those that it starts."""
    def op(code, true, false, value):
        return struct.pack("=HBBI", code, true, false, value)
    load, equal, done = 0x20, 0x15, 0x06
    rest = [op(done, 0, 0, 0x00050000 | error), op(done, 0, 0, 0x7fff0000)]
    if argument is not None:
        rest = [op(load, 0, 0, 16), op(equal, 0, 1, argument)] + rest
    code = [op(load, 0, 0, 0), op(equal, 0, len(rest) - 1, number)] + rest
    text = ctypes.create_string_buffer(b"".join(code))
    program = ctypes.create_string_buffer(
        struct.pack("@HP", len(code), ctypes.addressof(text)))
    libc = ctypes.CDLL(None, use_errno=True)
    pr_set_no_new_privs, pr_set_seccomp = 38, 22
    if os.geteuid() != 0:
        libc.prctl(pr_set_no_new_privs, 1, 0, 0, 0)
    if libc.prctl(pr_set_seccomp, 2, program, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


@cases.each([f"root {what}" for what in LACKING] +
            [f"user {what}" for what in LACKING if what not in AS_ROOT])
def lacking(what):
    """No confinement, no start, and it says what is missing."""
    mode, what = what.split()
    (call, argument), error, words = LACKING[what]
    if call not in CALLS:
        raise Skip(f"the number of {call} on {platform.machine()} is unknown")
    refuses(new_daemon(mode), words, preexec_fn=lambda: refuse_call(
        CALLS[call], argument, error))


# What the kernel lists, the error of the call, and what egressd says then: it
# is another matter for whoever has to change something.
LISTED = {
    "without": ("capability,yama", errno.ENOSYS, "this kernel lacks Landlock"),
    "refused": ("capability,landlock,yama", errno.ENOSYS,
                "has Landlock, but a seccomp filter refuses it"),
    "other_name": ("capability,landlocked", errno.EPERM,
                   "this kernel lacks Landlock"),
    "unknown": (None, errno.ENOSYS, "Landlock is missing: a seccomp filter"),
    "unknown_refused": (None, errno.EACCES, "has Landlock, but a seccomp"),
}


@cases.each(LISTED)
def landlock_listed(what):
    """A container that refuses Landlock is told from a kernel without."""
    need_mounts()
    listed, error, words = LISTED[what]
    with tempfile.TemporaryDirectory(prefix="egressd-lsm.") as tmp:
        program = pathlib.Path(tmp, "egressd")
        program.write_text(f"""#!/bin/sh
exec unshare --mount sh -c '
        mount -t tmpfs tmpfs /sys/kernel/security &&
        {f'echo {listed} > /sys/kernel/security/lsm' if listed else ':'} &&
        exec {BUILD}/egressd "$@"' egressd "$@"
""")
        program.chmod(0o755)
        refuses(Daemon(program=program), words, preexec_fn=lambda: refuse_call(
            CALLS["landlock_create_ruleset"], None, error))


adopt()
cases.main()
