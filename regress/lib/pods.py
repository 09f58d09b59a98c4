# SPDX-License-Identifier: ISC

"""Sessions in pods of a real cluster, by a daemon of the tests; also as
backends of the conformance cases."""

import atexit
import contextlib
import functools
import os
import re
import subprocess
import time
import uuid

import images
from backends import Attached, Backend
from case import Skip
from daemon import Daemon
from hands import TOP, HandsError, within
from kube import Kube, KubeError

VERSION = re.search(r"^VERSION =\t(\S+)", (TOP / "GNUmakefile").read_text(),
                    re.M)[1]
BOX_IMAGE = os.environ.get("K8S_BOX_IMAGE", f"localhost/egressd:{VERSION}")
CWD = "/workspace"
MERGE = "application/merge-patch+json"
START_S = 180       # a pod's, on a busy machine
AGAIN_S = 120       # for the cluster to be itself again


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


def block(name, image, more=""):
    """A sandbox of pods."""
    return f"""sandbox "{name}" kubernetes {{
        policy "none" ungated cluster "test" image "{image}"
        box-image "{BOX_IMAGE}" {more} }}"""


def conf(*blocks):
    """A configuration that has them, in the cluster of the tests."""
    return f"""
        policy "none" {{ }}
        cluster "test" {{ kubeconfig "{os.environ['KUBECONFIG']}"
            namespace "{cluster().space}" }}
        {" ".join(blocks)}"""


@functools.cache
def clustered():
    """A daemon that makes pods, for all cases of a file."""
    cluster()
    daemon = Daemon(conf(*(block(f"pod-{kind}", images.name(kind),
                                 "delete on stop yes")
                           for kind in images.USERS)))
    atexit.register(daemon.end)
    daemon.start()
    daemon.settle()
    return daemon


def start(daemon, name, sandbox, **more):
    """The answer, of whatever kind; a pod takes its time."""
    with daemon.client() as client:
        client.sock.settimeout(START_S)
        return client.ask("session.start", session_id=name, sandbox=sandbox,
                          **more)


def run(daemon, name, sandbox, **more):
    """The name of the pod, which runs."""
    answer = start(daemon, name, sandbox, **more)
    assert answer.get("ok"), answer
    return answer["pod"]


@contextlib.contextmanager
def attached(daemon, name):
    """Hands in a session's pod."""
    hands = Attached(daemon, name)
    try:
        yield hands
    finally:
        hands.close()


@contextlib.contextmanager
def daemon(*blocks):
    """One of these sandboxes, for a case."""
    cluster()
    with Daemon(conf(*blocks)) as one:
        one.settle()
        yield one


def refused(answer, code):
    """Why."""
    assert answer.get("error", {}).get("code") == code, answer
    return answer["error"]["message"]


def write(d, name, data):
    """A file of the session."""
    with attached(d, name) as hands:
        hands.call("write", data, path="file")


def read(d, name):
    with attached(d, name) as hands:
        return hands.call("read", path="file").out


def works_again(daemon, name):
    """A new client, as soon as the cluster lets it."""
    def greeted():
        try:
            with attached(daemon, name) as hands:
                return bool(hands.call("stat", path="."))
        except (OSError, HandsError):
            return time.sleep(0.5)
    within(AGAIN_S, greeted, "a connection")


def sh(hands, command):
    answer = hands.call("exec", command=command)
    assert answer.result == {"exit_code": 0}, answer
    return answer.out.decode()


def size(hands, path):
    try:
        return hands.call("stat", path=path).result["size"]
    except HandsError:
        return 0


def pods_path():
    return f"/api/v1/namespaces/{cluster().space}/pods"


def found(pod):
    """As the API server has it, or None."""
    try:
        return cluster().get(f"{pods_path()}/{pod}")
    except KubeError as error:
        assert error.status == 404, error
        return None


def gone(pod):
    cluster().until(pods_path(), pod, lambda one: one is None)


def patch(pod, **meta):
    cluster().call("PATCH", f"{pods_path()}/{pod}", {"metadata": meta},
                   kind=MERGE)


def container(pod):
    """Of the workspace, as containerd knows it."""
    found = cluster().get(f"{pods_path()}/{pod}")
    one = next(c for c in found["status"]["containerStatuses"]
               if c["name"] == "workspace")
    return one["containerID"].removeprefix("containerd://")


def node(*words):
    """Do something to the node, where it is the tests' own."""
    if not os.environ.get("K8S_NODE"):
        raise Skip("the cluster is not the tests' own")
    subprocess.run([TOP / "regress" / "k8s" / "cluster", *words], check=True,
                   stdout=subprocess.DEVNULL)


@functools.cache
def session(kind):
    """The id of a session in a pod of this image, for all cases of a file.
    The pod goes with its namespace."""
    name = f"{cluster().space}-{kind}"
    run(clustered(), name, f"pod-{kind}")
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


SESSIONS = [SessionRoot, SessionUser, SessionBare]
