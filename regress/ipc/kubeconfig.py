#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Clusters, from the file that names them to what k8sd is told: a whole daemon
but for k8sd, whose place we take."""

import base64
import ctypes
import json
import os
import pathlib
import pwd
import socket
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from case import Cases, Skip  # noqa: E402
from channel import C  # noqa: E402
from daemon import WAIT_S  # noqa: E402
from standin_program import directory  # noqa: E402
from standin_roles import ROOT, Whole  # noqa: E402

SERVER = "https://192.0.2.1:6443"
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
EXEC = "client.authentication.k8s.io/v1"

cases = Cases()

for variable in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST",
                 "KUBERNETES_SERVICE_PORT"):
    os.environ.pop(variable, None)


def b64(text):
    return base64.b64encode(text.encode()).decode()


def put(path, text, mode=0o600, owner=None):
    path.write_text(text)
    path.chmod(mode)
    if owner:
        os.chown(path, owner.pw_uid, owner.pw_gid)
    return path


def config(user, cluster="", context=""):
    """A kubeconfig; its parts are lines of YAML."""
    def lines(text):
        return "".join(f"    {line}\n" for line in text.splitlines())
    return ("apiVersion: v1\nkind: Config\npreferences: {}\n"
            "current-context: here\n"
            "contexts:\n- name: here\n  context:\n    cluster: one\n"
            f"    user: me\n{lines(context)}"
            f"clusters:\n- cluster:\n    server: {SERVER}\n{lines(cluster)}"
            "  name: one\n"
            f"users:\n- name: me\n  user:\n{lines(user)}")


def sandbox(block, more=""):
    return (f'cluster "one" {{ {block} }}\n'
            f'sandbox "s" kubernetes {{ policy "none" ungated '
            f'cluster "one" {more} }}\n')


def told(daemon):
    """What k8sd knows of the cluster: the message, its files by their kind."""
    found, files = None, {}
    for message, content in daemon.k8sd.slice:
        if message.type == "CONF_CLUSTER":
            assert found is None and message.name == "one", message
            found = message
        elif message.type == "CONF_FILE" and message.what != MERGE:
            files[message.what] = content.decode(errors="replace")
    assert found is not None, "nothing"
    return found, files


def refusal(conf):
    """What a daemon says that does not start."""
    daemon = Whole(conf)
    try:
        daemon.popen(env=dict(os.environ))
        assert daemon.wait() == 1, daemon.log()
        return daemon.log()
    finally:
        daemon.end()


# ---- forms ----

TRUST, TOKEN, CERTIFICATE, KEY, PASSWORD, MERGE = (
    C[f"FILE_{word}"] for word in ("TRUST", "TOKEN", "CERTIFICATE", "KEY",
                                   "PASSWORD", "MERGE"))

# What the file says; what k8sd is told, and what is in the files it gets.
FORMS = {
    "token": (config("token: t0ken"), "AUTH_TOKEN", {}, {TOKEN: "t0ken"}),
    "token_quoted": (config('token: "true"'), "AUTH_TOKEN", {},
                     {TOKEN: "true"}),
    "token_file": (config("tokenFile: sub/tok"), "AUTH_TOKEN_FILE", {},
                   {TOKEN: "from a file"}),
    "token_file_first": (config("token: old\ntokenFile: sub/tok"),
                         "AUTH_TOKEN_FILE", {}, {TOKEN: "from a file"}),
    "certificate": (config("client-certificate: crt\nclient-key: key"),
                    "AUTH_NONE", {}, {CERTIFICATE: "CRT", KEY: "KEY"}),
    "certificate_data": (
        config(f"client-certificate-data: {b64('crt data')}\n"
               f"client-key-data: {b64('key data')}\nclient-key: none"),
        "AUTH_NONE", {}, {CERTIFICATE: "crt data", KEY: "key data"}),
    "certificate_and_token": (
        config("client-certificate: crt\nclient-key: key\ntoken: x"),
        "AUTH_TOKEN", {}, {CERTIFICATE: "CRT", KEY: "KEY", TOKEN: "x"}),
    "basic": (config("username: me\npassword: 's3cret: #x'"), "AUTH_BASIC",
              {"user": "me"}, {PASSWORD: "s3cret: #x"}),
    "nobody": (config("{}").replace("    user: me\n", ""), "AUTH_NONE", {},
               {}),
    "cluster": (config("token: x",
                       "certificate-authority-data: " + b64("CA") +
                       "\ntls-server-name: k.test\n"
                       "proxy-url: http://192.0.2.9:3128"), "AUTH_TOKEN",
                {"tls_name": "k.test", "proxy": "http://192.0.2.9:3128"},
                {TRUST: "CA", TOKEN: "x"}),
    "ca_file": (config("token: x", "certificate-authority: ./ca"),
                "AUTH_TOKEN", {}, {TRUST: "CA of a file", TOKEN: "x"}),
    "namespace": (config("token: x", context="namespace: team-a"),
                  "AUTH_TOKEN", {"space": "team-a"}, {TOKEN: "x"}),
    "json": (json.dumps({
        "current-context": "c", "contexts": [
            {"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": SERVER + "/p/q"}}],
        "users": [{"name": "u", "user": {"token": "x", "as": None}}]}),
        "AUTH_TOKEN", {"server": SERVER + "/p/q"}, {TOKEN: "x"}),
}


def place(text, owner=None, mode=0o600):
    """A directory with a kubeconfig and what it may name."""
    where = directory()
    (where / "sub").mkdir()
    put(where / "sub" / "tok", "from a file", owner=owner)
    put(where / "crt", "CRT", owner=owner)
    put(where / "key", "KEY", owner=owner)
    put(where / "ca", "CA of a file", owner=owner)
    return put(where / "config", text, mode, owner)


@cases.each(FORMS)
def form(which):
    text, auth, fields, files = FORMS[which]
    with Whole(sandbox(f'kubeconfig "{place(text)}"')) as d:
        message, have = told(d)
        assert message.auth == C[auth], message
        for name, value in {"server": SERVER, **fields}.items():
            assert getattr(message, name) == value, message
        for what, content in files.items():
            assert have.get(what) == content, (what, have.get(what))
        extra = set(have) - set(files) - {TRUST}
        assert not extra, extra
        assert TRUST in files or "BEGIN CERTIFICATE" in have[TRUST]


@cases.case
def block_goes_first():
    text = config("token: x", "tls-server-name: a.test", "namespace: a")
    with Whole(sandbox(f'kubeconfig "{place(text)}" namespace "b" '
                       'tls-server-name "b.test"')) as d:
        message, _ = told(d)
        assert (message.space, message.tls_name) == ("b", "b.test"), message


@cases.case
def other_context():
    text = config("token: x").replace(
        "clusters:\n", "- name: there\n  context: {cluster: two}\nclusters:\n"
        "- {name: two, cluster: {server: 'https://192.0.2.2'}}\n")
    with Whole(sandbox(f'kubeconfig "{place(text)}" context "there"')) as d:
        message, files = told(d)
        assert message.server == "https://192.0.2.2", message
        assert TOKEN not in files, files


@cases.case
def several_files():
    """Of each name the first file that has it counts, and those that are
    missing do not."""
    first = place("current-context: there\nusers:\n- name: me\n"
                  "  user: {token: first}\n")
    second = place(config("token: second").replace(
        "clusters:\n",
        "- name: there\n  context: {cluster: one, user: me}\nclusters:\n"))
    os.environ["KUBECONFIG"] = f"/nonexistent/x:{first}::{second}"
    try:
        with Whole(sandbox("")) as d:
            message, files = told(d)
            assert message.server == SERVER, message
            assert files[TOKEN] == "first", files
    finally:
        del os.environ["KUBECONFIG"]


@cases.case
def explicit():
    where = place("").parent
    with Whole(sandbox(f'server "{SERVER}" ca file "{where}/ca" '
                       f'user "me" password file "{where}/key"')) as d:
        message, files = told(d)
        assert message.auth == C["AUTH_BASIC"] and message.user == "me"
        assert files == {TRUST: "CA of a file", PASSWORD: "KEY"}, files


@cases.case
def unused():
    """Nothing is looked at that no sandbox needs."""
    with Whole('cluster "one" { kubeconfig "/nonexistent/x" }\n') as d:
        names = {m.type for m, _ in d.k8sd.slice}
        assert "CONF_CLUSTER" not in names, names


@cases.case
def in_cluster():
    """Our own pod's service account, whose token is replaced."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"none", b"/run", b"tmpfs", 0, None) == -1:
        raise Skip("no file system can be mounted here")
    where = pathlib.Path(ACCOUNT).resolve()
    where.mkdir(parents=True)
    put(where / "token", "first", 0o644)
    put(where / "ca.crt", "CA", 0o644)
    put(where / "namespace", "mine", 0o644)
    os.environ["KUBERNETES_SERVICE_HOST"] = "2001:db8::1"
    os.environ["KUBERNETES_SERVICE_PORT"] = "6443"
    try:
        with Whole(sandbox("")) as d:
            message, files = told(d)
            assert message.server == "https://[2001:db8::1]:6443", message
            assert message.space == "mine", message
            assert files == {TRUST: "CA", TOKEN: "first"}, files
            put(where / "new", "second", 0o644).rename(where / "token")
            assert d.k8sd.opens("OPEN_CLUSTER_TOKEN", "one") == "second"
    finally:
        del os.environ["KUBERNETES_SERVICE_HOST"]
        del os.environ["KUBERNETES_SERVICE_PORT"]
        libc.umount2(b"/run", 2)


@cases.case
def pod():
    """All of a sandbox arrives."""
    merge = put(directory() / "merge", '{"spec": {}}', 0o644)
    more = ('id "x" workspace size 10G labels { a b } pull-policy always '
            'tolerations { "gpu:NoExecute:300s" } run-as-user 0 '
            f'manifest merge file "{merge}" delete on stop no '
            'on stale recreate heartbeat off pull-secrets { one two }')
    path = place(config("token: x"))
    with Whole(sandbox(f'kubeconfig "{path}"', more)) as d:
        texts = {(m.what, m.key): m.value for m, _ in d.k8sd.slice
                 if m.type == "CONF_POD_TEXT"}
        for what, key, value in (
                ("IMAGE", "", "debian:bookworm-slim"), ("ID", "", "x"),
                ("CWD", "", "/workspace"), ("SIZE", "", "10Gi"),
                ("LABEL", "a", "b"), ("PULL_POLICY", "", "Always"),
                ("TOLERATION", "gpu:NoExecute:300s", ""),
                ("PULL_SECRET", "two", "")):
            assert texts[C[f"POD_TEXT_{what}"], key] == value, texts
        m, = [m for m, _ in d.k8sd.slice
              if m.type == "CONF_POD"]
        assert m.cluster == "one" and m.heartbeat_ms == 0, m
        assert (m.run_as_user, m.run_as_group) == (0, 2 ** 32 - 1), m
        assert m.recreate == 1 and m.delete == C["POD_DELETE_NO"], m
        assert b'{"spec": {}}' in [content for _, content in d.k8sd.slice]


# ---- refusals ----

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [" + ",".join([f"*{chr(97 + i)}"] * 9) +
    "]\n" for i in range(9))

REFUSED = {
    "bomb": (BOMB, ":1: anchors and aliases are not taken"),
    "merge_key": (config("<<: *x"), ": anchors and aliases are not taken"),
    "huge": (config("token: x") + "#" * 1024 * 1024, ": larger than 1 MiB"),
    "deep": (config("token: x") + "x: " + "[" * 100 + "]" * 100,
             ": more than 32 deep"),
    "wide": ("".join(f"k{i}: 1\n" for i in range(600)),
             ":513: more than 512 keys in a map"),
    "many": ("x: [" + "1," * 70000 + "1]", ": more than 65536 values"),
    "not_yaml": ("a: [\n", ": not YAML: "),
    "binary": ("\x01\x02", ": not YAML: "),
    "list": ("- 1\n", ":1: not a kubeconfig"),
    "empty": ("", ": no current-context, and no context was asked for"),
    "two": (config("token: x") + "---\na: b\n", ": more than one document"),
    "twice": (config("token: x\ntoken: y"), ": token is given twice"),
    "types": (config("token: x").replace("contexts:\n- ", "contexts:\n  "),
              ":5: contexts: must be a list"),
    "type_of_token": (config("token: [x]"), ":17: token: must be text"),
    "type_of_boolean": (config("token: x", "insecure-skip-tls-verify: 'no'"),
                        ":13: insecure-skip-tls-verify: must be true or "
                        "false"),
    "no_cluster": (config("token: x").replace("    cluster: one\n", ""),
                   ": context: has no cluster"),
    "no_server": (config("token: x").replace(f"    server: {SERVER}\n",
                                             "    x: y\n"),
                  ": cluster: has no server"),
    "no_such_user": (config("token: x").replace("name: me", "name: you"),
                     ':9: user "me" is not in the file'),
    "no_such_file": (config("tokenFile: none"),
                     ": tokenFile: /"),
    "not_base64": (config("client-certificate-data: '*'\nclient-key: key"),
                   ":17: client-certificate-data: not base64"),
    "half_a_pair": (config("client-key: key"),
                    ": user: client-certificate and client-key go together"),
    "two_ways": (config("token: x\nusername: y\npassword: z"),
                 ": user: more than one of token, username and exec"),
    "half_basic": (config("username: y"),
                   ": user: username and password go together"),
    "another": (config("token: x\nas: root"), ":18: as: not supported"),
    "provider": (config("auth-provider: {name: gcp}"),
                 ":17: auth-provider: not supported"),
    "insecure": (config("token: x", "insecure-skip-tls-verify: true"),
                 ": insecure-skip-tls-verify: the cluster block does not say "
                 "insecure"),
    "clear": (config("token: x").replace(SERVER, "http://192.0.2.1"),
              ": server: http:// is for loopback only"),
    "proxy": (config("token: x", "proxy-url: socks5://192.0.2.1"),
              ": proxy-url: must begin with https://"),
    "namespace": (config("token: x", context="namespace: A_b"),
                  ": namespace: must be of lower-case letters"),
    "exec_version": (config(
        "exec: {command: x, apiVersion: client.authentication.k8s.io/v1alpha1"
        "}"), ": exec: apiVersion must be " + EXEC),
    "exec_terminal": (config(
        f"exec: {{command: x, apiVersion: {EXEC}, interactiveMode: Always}}"),
        ": exec: interactiveMode Always: a daemon has no terminal"),
}


@cases.each(REFUSED)
def refused(which):
    """The message names the file and where in it; nothing of it is used."""
    text, why = REFUSED[which]
    path = place(text)
    log = refusal(sandbox(f'kubeconfig "{path}"'))
    assert str(path) in log and why in log, log
    assert "s3cret" not in log, log


@cases.case
def refused_context():
    path = place(config("token: x"))
    log = refusal(sandbox(f'kubeconfig "{path}" context "there"'))
    assert f'{path}: context "there" is not in the file' in log, log


@cases.case
def refused_mode():
    path = place(config("token: x"), mode=0o644)
    log = refusal(sandbox(f'kubeconfig "{path}"'))
    assert f"{path}: holds a secret, and its mode 0644" in log, log


@cases.case
def refused_nothing():
    os.environ["HOME"], home = "/nonexistent", os.environ.get("HOME", "/")
    try:
        log = refusal('sandbox "s" kubernetes { policy "none" ungated }\n')
    finally:
        os.environ["HOME"] = home
    assert "no cluster: this is no pod" in log, log


@cases.case
def reload_keeps_what_was():
    """A kubeconfig that was spoilt since changes nothing."""
    path = place(config("tokenFile: sub/tok"))
    with Whole(sandbox(f'kubeconfig "{path}"')) as d:
        path.write_text("a: [")
        answer = d.ask("reload")
        assert "not YAML" in answer["error"]["message"], answer
        assert d.k8sd.opens("OPEN_CLUSTER_TOKEN", "one") == "from a file"


# ---- rights ----

@cases.each(["/etc/shadow", "/proc/self/environ", "/proc/self/fd/3", "secret",
             "fifo", "/dev/zero"])
def not_with_our_rights(which):
    """A user's kubeconfig reads what that user can read, and no more."""
    if not ROOT:
        raise Skip("only root has rights to lend")
    nobody = pwd.getpwnam("nobody")
    path = place(config(f"tokenFile: {which}"), nobody)
    put(path.parent / "secret", "root's")
    os.mkfifo(path.parent / "fifo", 0o666)
    log = refusal(sandbox(f'kubeconfig "{path}"'))
    assert f"{path}: tokenFile: " in log and (
        f"for uid {nobody.pw_uid}" in log or "not a regular file" in log), log
    assert "root's" not in log, log


@cases.case
def with_its_owners_rights():
    """As do the files that are read again later."""
    if not ROOT:
        raise Skip("only root has rights to lend")
    nobody = pwd.getpwnam("nobody")
    path = place(config("tokenFile: sub/tok"), nobody)
    with Whole(sandbox(f'kubeconfig "{path}"')) as d:
        assert told(d)[1][TOKEN] == "from a file"
        put(path.parent / "sub" / "tok", "renewed", owner=nobody)
        assert d.k8sd.opens("OPEN_CLUSTER_TOKEN", "one") == "renewed"
        put(path.parent / "secret", "root's")
        (path.parent / "sub" / "tok").unlink()
        (path.parent / "sub" / "tok").symlink_to("../secret")
        d.k8sd.fails("OPEN_CLUSTER_TOKEN", "one", "Permission denied")


# ---- plugins ----

PLUGIN = """#!/bin/sh
echo "$(id -u) $*"
env
"""


def plugin_says(daemon):
    """The output of a plugin that was run, until it ended."""
    message = daemon.k8sd.ask("OPEN_CLUSTER_PLUGIN", "one")
    assert message.name == "OPENED", message
    with socket.socket(fileno=message.fd) as sock:
        sock.settimeout(WAIT_S)
        text = b""
        while data := sock.recv(65536):
            text += data
    ended = daemon.k8sd.answers.get(timeout=WAIT_S)
    assert ended.name == "OPEN_ENDED", ended
    return text.decode(), ended.why


@cases.each(["beside", "path"])
def plugin(which):
    """Runs as the owner, with what it has to know and nothing of ours."""
    owner = pwd.getpwnam("nobody") if ROOT else pwd.getpwuid(os.getuid())
    command = "./plugin" if which == "beside" else "sh"
    args = "[get, token]" if which == "beside" else \
        "['-c', 'echo \"$(id -u) get token\"; env']"
    path = place(config(
        f"exec:\n  command: {command}\n  apiVersion: {EXEC}beta1\n"
        f"  args: {args}\n  provideClusterInfo: true\n  env:\n"
        "  - {name: REGION, value: eu}\n  - {name: USER, value: other}",
        f"certificate-authority-data: {b64('CA')}"), owner)
    put(path.parent / "plugin", PLUGIN, 0o755, owner)
    os.environ["EGRESSD_SECRET"] = "not for plugins"
    with Whole(sandbox(f'kubeconfig "{path}"')) as d:
        assert told(d)[0].auth == C["AUTH_PLUGIN"]
        text, why = plugin_says(d)
    del os.environ["EGRESSD_SECRET"]
    first, *env = text.splitlines()
    assert why == "" and first == f"{owner.pw_uid} get token", (why, text)
    env = dict(line.split("=", 1) for line in env)
    assert env["REGION"] == "eu" and env["USER"] == "other", env
    assert env["HOME"] == owner.pw_dir and "EGRESSD_SECRET" not in env, env
    info = json.loads(env["KUBERNETES_EXEC_INFO"])
    assert info == {
        "apiVersion": EXEC + "beta1", "kind": "ExecCredential", "spec": {
            "cluster": {"server": SERVER,
                        "certificate-authority-data": b64("CA")},
            "interactive": False}}, info


@cases.case
def plugin_of_root():
    """Never as root, and as somebody else only if the block says so."""
    if not ROOT:
        raise Skip("only root's kubeconfig is root's")
    path = place(config(f"exec: {{command: ./plugin, apiVersion: {EXEC}}}"))
    put(path.parent / "plugin", PLUGIN, 0o755)
    log = refusal(sandbox(f'kubeconfig "{path}"'))
    assert "a plugin does not run as root" in log, log
    with Whole(sandbox(f'kubeconfig "{path}" user "nobody"')) as d:
        text, _ = plugin_says(d)
    assert text.split()[0] == str(pwd.getpwnam("nobody").pw_uid), text


@cases.case
def plugin_that_fails():
    path = place(config("token: x")).parent / "plugin"
    put(path, "#!/bin/sh\nexit 3\n", 0o755)
    with Whole(sandbox(f'server "{SERVER}" exec "{path}"')) as d:
        assert plugin_says(d) == ("", "it exited with status 3")
        put(path, "#!/bin/sh\nexec sleep 1000\n", 0o755)
        message = d.k8sd.ask("OPEN_CLUSTER_PLUGIN", "one", 2)
        with socket.socket(fileno=message.fd):
            d.k8sd.send("OPEN_DONE", cookie=2)
            ended = d.k8sd.answers.get(timeout=WAIT_S)
        assert "signal 9" in ended.why, ended


if __name__ == "__main__":
    Whole.standins("k8sd")
    cases.main()
