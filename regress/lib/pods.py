# SPDX-License-Identifier: ISC

"""Pods as backends of the conformance cases: made by the tests themselves and
reached by an exec each, with no egressd on the way; or sessions of a daemon."""

import atexit
import functools
import os
import re
import time
import uuid

import images
from backends import Attached, Backend
from case import Skip
from daemon import Daemon
from hands import TOP, WAIT_S, Hands
from kube import Kube

VERSION = re.search(r"^VERSION =\t(\S+)", (TOP / "GNUmakefile").read_text(),
                    re.M)[1]
BOX_IMAGE = os.environ.get("K8S_BOX_IMAGE", f"localhost/egressd:{VERSION}")
CWD = "/workspace"
BIN = "/egressd/bin"
START_S = 180       # a pod's, on a busy machine


def manifest(name, kind):
    """A pod of this image, and box in it."""
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {
            "restartPolicy": "Always", "automountServiceAccountToken": False,
            "enableServiceLinks": False, "terminationGracePeriodSeconds": 5,
            "volumes": [{"name": "box", "emptyDir": {}},
                        {"name": "workspace", "emptyDir": {}}],
            "initContainers": [{
                "name": "box", "image": BOX_IMAGE,
                "command": ["egressd-box", "install", BIN],
                "volumeMounts": [{"name": "box", "mountPath": BIN}]}],
            "containers": [{
                "name": "workspace", "image": images.name(kind),
                "command": [f"{BIN}/egressd-box", "keep"], "workingDir": CWD,
                "volumeMounts": [
                    {"name": "box", "mountPath": BIN, "readOnly": True},
                    {"name": "workspace", "mountPath": CWD}],
                "securityContext": {"capabilities": {
                    "drop": ["NET_RAW"]}}}]}}


def is_ready(pod):
    return pod and any(c["type"] == "Ready" and c["status"] == "True"
                       for c in pod["status"].get("conditions", []))


@functools.cache
def cluster():
    """The cluster, and a namespace of it that goes when the test does."""
    if not os.environ.get("KUBECONFIG"):
        raise Skip("no KUBECONFIG; make check-k8s sets it")
    kube = Kube(os.environ["KUBECONFIG"])
    kube.space = f"egressd-test-{uuid.uuid4().hex[:10]}"
    kube.create("/api/v1/namespaces", {"metadata": {"name": kube.space}})
    atexit.register(kube.delete, f"/api/v1/namespaces/{kube.space}")
    kube.until(f"/api/v1/namespaces/{kube.space}/serviceaccounts", "default",
               bool)
    return kube


@functools.cache
def pod(kind):
    """The name of a pod of this image, for all cases of a file."""
    kube = cluster()
    path = f"/api/v1/namespaces/{kube.space}/pods"
    kube.create(path, manifest(kind, kind))
    kube.until(path, kind, is_ready)
    return kind


class Streamed(Hands):
    """A connection to hands that an exec has started."""

    def __init__(self, kube, name):
        self.stream = kube.exec(kube.space, name, "workspace", [
            f"{BIN}/egressd-box", "hands", "-k", "-d", CWD])
        end = self.stream.ours.fileno()
        try:
            super().__init__(end, end)
        except BaseException:
            self.stream.close()
            print(f"hands in {name}: {self.stream.status} "
                  f"{self.stream.stderr.decode(errors='replace')}")
            raise

    def hang_up(self):
        self.stream.close()

    def close(self):
        """v4 cannot end standard input: the end of the connection is told to
        the hands, and nothing of theirs to us."""
        begun = time.monotonic()
        code = self.stream.close()
        if hasattr(self, "reader"):
            self.reader.join(max(1, WAIT_S - (time.monotonic() - begun)))
        return code or 0


class Pod(Backend):
    """A pod by a raw exec."""

    kind = None

    def __init__(self):
        self.pod = pod(self.kind)

    def connect(self):
        return Streamed(cluster(), self.pod)

    def end(self):
        pass


class PodRoot(Pod):
    name, kind = "pod-by-exec-root", "root"


class PodUser(Pod):
    name, kind = "pod-by-exec-user", "user"


class PodBare(Pod):
    name, kind, shell = "pod-by-exec-no-shell", "bare", False


# ---- by egressd -------------------------------------------------------------

def block(kind):
    return f"""sandbox "pod-{kind}" kubernetes {{
        policy "none" ungated cluster "test" image "{images.name(kind)}"
        box-image "{BOX_IMAGE}" delete on stop yes }}"""


@functools.cache
def clustered():
    """A daemon that makes pods, for all cases of a file."""
    kube = cluster()
    daemon = Daemon(f"""
        policy "none" {{ }}
        cluster "test" {{ kubeconfig "{os.environ['KUBECONFIG']}"
            namespace "{kube.space}" }}
        {" ".join(block(kind) for kind in images.USERS)}
    """)
    atexit.register(daemon.end)
    daemon.start()
    daemon.settle()
    return daemon


@functools.cache
def session(kind):
    """The id of a session in a pod of this image, for all cases of a file.
    The pod goes with its namespace."""
    name = f"{cluster().space}-{kind}"
    with clustered().client() as client:
        client.sock.settimeout(START_S)
        answer = client.ask("session.start", session_id=name,
                            sandbox=f"pod-{kind}")
    assert answer.get("ok"), answer
    return name


class Session(Backend):
    """A pod of a session."""

    kind = None

    def __init__(self):
        self.session = session(self.kind)

    def connect(self):
        return Attached(clustered(), self.session)

    def end(self):
        pass


class SessionRoot(Session):
    name, kind = "pod-root", "root"


class SessionUser(Session):
    name, kind = "pod-user", "user"


class SessionBare(Session):
    name, kind, shell = "pod-no-shell", "bare", False


BY_EXEC = [PodRoot, PodUser, PodBare]
BY_EGRESSD = [SessionRoot, SessionUser, SessionBare]
