#!/usr/bin/python3
# SPDX-License-Identifier: ISC

"""A daemon that runs in a pod itself, by our image: it finds the cluster by its
service account, and gets by with the Role that egressctl prints."""

import base64
import functools
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

import yaml     # python3-yaml

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
import images  # noqa: E402
from case import Cases  # noqa: E402
from daemon import EGRESSCTL, until  # noqa: E402
from pods import BOX_IMAGE, START_S, cluster, is_ready, pods_path  # noqa: E402

cases = Cases()
NAME = "egressd"
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
CAPABILITIES = ["SETUID", "SETGID", "SETPCAP", "SYS_CHROOT", "KILL"]


def conf():
    return f"""
uids 64000 - 64031
audit file "/run/audit.log"
policy "none" {{ }}
sandbox "pod" kubernetes {{ policy "none" ungated
    namespace "{cluster().space}" image "{images.name('root')}"
    box-image "{BOX_IMAGE}" }}
"""


def daemon_pod():
    return {"metadata": {"name": NAME}, "spec": {
        "serviceAccountName": NAME, "enableServiceLinks": False,
        "containers": [{
            "name": NAME, "image": BOX_IMAGE,
            "args": ["-d", "-f", "/etc/egressd/egressd.conf"],
            "securityContext": {
                "capabilities": {"drop": ["ALL"], "add": CAPABILITIES},
                "allowPrivilegeEscalation": False},
            "readinessProbe": {"exec": {"command": [
                "egressctl", "status"]}, "timeoutSeconds": 10},
            "volumeMounts": [{"name": "conf", "mountPath": "/etc/egressd"}]}],
        "volumes": [{"name": "conf", "secret": {
            "secretName": NAME, "defaultMode": 0o400}}]}}


def printed(path):
    """What egressctl says that the daemon needs."""
    done = subprocess.run([EGRESSCTL, "-f", path, "cluster", "rbac", "pod"],
                          check=True, stdout=subprocess.PIPE, text=True)
    return list(yaml.safe_load_all(done.stdout))


def died(pod):
    return any(one.get("restartCount") or "terminated" in one["state"]
               for one in pod["status"].get("containerStatuses", []))


@functools.cache
def running():
    """The pod, ready; and the rules of its Role."""
    kube, space = cluster(), cluster().space
    core = f"/api/v1/namespaces/{space}"
    kube.create(f"{core}/serviceaccounts", {"metadata": {"name": NAME}})
    kube.create(f"{core}/secrets", {"metadata": {"name": NAME}, "data": {
        "egressd.conf": base64.b64encode(conf().encode()).decode()}})
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.write(conf())
        file.flush()
        role, binding = printed(file.name)
    assert role["metadata"]["namespace"] == space, role
    kube.create(f"{RBAC}/{space}/roles", role)
    kube.create(f"{RBAC}/{space}/rolebindings", binding)
    # A token is made for the account, some time after it.
    kube.until(f"{core}/serviceaccounts", NAME,
               lambda account: account and account.get("secrets"))
    kube.create(pods_path(), daemon_pod())
    pod = kube.until(pods_path(), NAME, lambda one: is_ready(one) or
                     died(one), START_S)
    assert not died(pod), kube.get(f"{pods_path()}/{NAME}/log")
    return role["rules"]


def ctl(*words):
    """egressctl beside the daemon; what it printed."""
    with cluster().exec(cluster().space, NAME, NAME,
                        ["egressctl", *words]) as stream:
        stream.ours.settimeout(START_S)
        out = b""
        while piece := stream.ours.recv(65536):
            out += piece
        stream.thread.join(START_S)
        assert stream.code() == 0, (words, stream.status, out,
                                    bytes(stream.stderr))
    return out.decode()


@cases.case
def a_session_from_inside():
    running()
    assert ctl("session", "start", "-n", "inside", "pod") == "inside\n"
    said = ctl("exec", "inside", "--", "sh", "-c", "echo $PPID; id -u; pwd")
    assert said.endswith("0\n/workspace\n"), said
    assert "inside" in ctl("session", "list", "-c", "pod")
    assert ctl("session", "stop", "-k", "inside")
    # What it has left is found again, and goes when it is told to.
    assert ctl("session", "start", "-n", "inside", "pod") == "inside\n"
    ctl("session", "stop", "-d", "inside")
    left = [p["metadata"]["name"] for p in cluster().get(pods_path())["items"]]
    assert left == [NAME], left


@cases.case
def all_that_it_needs():
    running()
    answer = json.loads(ctl("-j", "cluster", "check", "pod"))
    assert all(one["state"] == "ok" for one in answer["checks"]), answer


def allowed(verb, group, resource, namespace):
    name, _, part = resource.partition("/")
    review = cluster().create(REVIEWS, {"spec": {
        "user": f"system:serviceaccount:{cluster().space}:{NAME}",
        "groups": ["system:serviceaccounts", "system:authenticated",
                   f"system:serviceaccounts:{cluster().space}"],
        "resourceAttributes": {
            "namespace": namespace, "verb": verb, "group": group,
            "resource": name, "subresource": part}}})
    return review["status"]["allowed"]


@cases.case
def and_nothing_more():
    """Of what there is in a namespace, of another one, and of the cluster."""
    rules = running()
    granted = {(verb, group, resource) for rule in rules
               for verb in rule["verbs"] for group in rule["apiGroups"]
               for resource in rule["resources"]}
    assert not any("*" in words for words in granted), granted
    verbs = ("get", "list", "watch", "create", "update", "patch", "delete",
             "deletecollection")
    things = [("", r) for r in (
        "pods", "pods/exec", "pods/log", "pods/attach", "pods/portforward",
        "pods/ephemeralcontainers", "secrets", "configmaps", "events",
        "serviceaccounts", "serviceaccounts/token", "services", "nodes")] + [
        ("coordination.k8s.io", "leases"), ("apps", "deployments"),
        ("rbac.authorization.k8s.io", "roles")]
    for verb, (group, resource) in itertools.product(verbs, things):
        here = allowed(verb, group, resource, cluster().space)
        assert here == ((verb, group, resource) in granted), \
            f"{verb} {group} {resource}: {here}"
    for verb, group, resource in granted:
        assert not allowed(verb, group, resource, "kube-system"), resource
        assert not allowed(verb, group, resource, ""), resource


@cases.case
def its_token_is_nobody_elses():
    """The workspace of a session has none of its own, either."""
    running()
    ctl("session", "start", "-n", "bare", "pod")
    said = ctl("exec", "bare", "--", "sh", "-c",
               "ls /var/run/secrets/kubernetes.io 2>&1; "
               "env | grep -ci token; :")
    assert "No such file" in said and said.endswith("\n0\n"), said
    ctl("session", "stop", "-d", "bare")
    until("no pod is left", lambda: len(
        cluster().get(pods_path())["items"]) == 1)


cases.main()
