#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Clusters in a whole daemon: what k8sd refuses of what it was sent, and where
credentials are not."""

import os
import pathlib
import pwd
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from case import Cases, Skip, run  # noqa: E402
from daemon import Daemon  # noqa: E402

SECRETS = ("t0ken-s3cret", "passw0rd-s3cret")
CONFIG = """\
current-context: a
contexts:
- {name: a, context: {cluster: c, user: t}}
- {name: b, context: {cluster: c, user: p}}
clusters:
- {name: c, cluster: {server: 'https://192.0.2.1', certificate-authority: ca}}
users:
- {name: t, user: {token: t0ken-s3cret}}
- {name: p, user: {username: me, password: passw0rd-s3cret}}
"""
BLOCKS = """\
policy "p" {{ }}
cluster "a" {{ kubeconfig "{where}/config" }}
cluster "b" {{ kubeconfig "{where}/config" context "b" }}
sandbox "a" kubernetes {{ policy "p" ungated cluster "a" {more} }}
sandbox "b" kubernetes {{ policy "p" ungated cluster "b" }}
"""

cases = Cases()


def put(path, text):
    path.write_text(text)
    path.chmod(0o600)


def daemon(more="", ca=None, merge=None, args=()):
    """With its kubeconfig beside its configuration."""
    d = Daemon("", user=None if os.geteuid() == 0 else
               pwd.getpwuid(os.getuid()).pw_name, args=args)
    d.owner = None
    put(d.dir / "config", CONFIG)
    done = run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=ca",
                "-keyout", "/dev/null", "-out", d.dir / "ca"])
    if done.returncode != 0:
        raise Skip("openssl makes no certificate")
    if ca is not None:
        put(d.dir / "ca", ca)
    if merge is not None:
        put(d.dir / "merge", merge)
        more += f'manifest merge file "{d.dir}/merge"'
    d.write(BLOCKS.format(where=d.dir, more=more))
    return d


@cases.case
def secrets():
    """In no argument, environment or log."""
    with daemon(args=["-v", "-v"]) as d:
        pids = {d.process.pid, *d.processes().values()}
        for pid in pids:
            for name in ("cmdline", "environ"):
                text = pathlib.Path(f"/proc/{pid}/{name}").read_bytes() \
                    if os.geteuid() == 0 else b""
                for secret in SECRETS:
                    assert secret.encode() not in text, (pid, name)
        d.ask("reload")
        for secret in SECRETS:
            assert secret not in d.log()


def refusal(**kwargs):
    d = daemon(**kwargs)
    try:
        d.popen(env=dict(os.environ))
        try:
            assert d.wait() == 1, d.log()
        except subprocess.TimeoutExpired:
            raise AssertionError("it runs") from None
        return d.log()
    finally:
        d.end()


@cases.case
def authority():
    log = refusal(ca="not PEM")
    assert 'cluster "a": its authority is not certificates in PEM form' \
        in log, log


@cases.each(["spec", "list", "other", "text"])
def merge(which):
    """The manifest of a pod is merged with what says where it runs, and
    nothing that says what it is."""
    text = {"spec": '{"spec": {"hostNetwork": true}}', "list": "[]",
            "other": '{"kind": "Job"}', "text": "{"}[which]
    log = refusal(merge=text)
    assert 'manifest merge file of "a": ' in log, log


@cases.case
def merge_permitted():
    with daemon(merge='{"spec": {"priorityClassName": "low"}}') as d:
        assert d.ask("status")["generation"] == 1


if __name__ == "__main__":
    cases.main()
