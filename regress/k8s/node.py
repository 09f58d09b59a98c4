# SPDX-License-Identifier: ISC

"""One node of Kubernetes, with all that a cluster has, in namespaces of its
own: processes, mounts, network, name.  Killing its first process is the end
of all of it.

    machine                          node: own pid, mnt, net, uts, ipc
    +----------------+               +--------------------------------+
    | tests, egressd |--veth, /30----| etcd, API server, controllers, |
    +----------------+               | kubelet, containerd, pods      |
                                     +--------------------------------+

There is no route further: no packet of a pod leaves the machine.  The parts
are started again when they die, so that a test can kill one."""

import ctypes
import fcntl
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

import images
import mkimage
import pki
from build import BIN, CACHE
from kube import Kube

NODE = CACHE / "node"                   # all of one life
RUNNING = pathlib.Path("/run/egressd-k8s.pid")
LOCK = pathlib.Path("/run/egressd-k8s.lock")
INSIDE = pathlib.Path("/run/k8s")       # CACHE, as the node sees it
NAME = "node"
LINK = "egk8s0"
NET, HOST, ADDRESS = "10.250.9.0/30", "10.250.9.1", "10.250.9.2"
SERVICES, SERVICE = "10.96.0.0/16", "10.96.0.1"
PODS = "10.244.0.0/24"
CGROUP = "egressd-k8s"
CGROUPS = pathlib.Path("/sys/fs/cgroup")
PAUSE = "localhost/egressd-test-pause:1"
BOX = pathlib.Path(os.environ.get("B", images.TOP / "build")) / \
    "libexec" / "egressd-box"
WAIT_S = 180
AGAIN_S = 1             # before a part that has died is started again

# The kubelet sets these where they differ, and they are the machine's.
SYSCTLS = {"vm/overcommit_memory": 1, "vm/panic_on_oom": 0,
           "kernel/panic": 10, "kernel/panic_on_oops": 1,
           "kernel/keys/root_maxkeys": 1000000,
           "kernel/keys/root_maxbytes": 25000000}


class Failed(Exception):
    """The node is not to be had; the text says why."""


def sh(*argv, **kwargs):
    return subprocess.run([str(a) for a in argv], check=True, **kwargs)


def patiently(what, condition, seconds=WAIT_S):
    """For what tells nobody when it is there."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > end:
            raise Failed(f"{what}: not within {seconds} s; see {NODE}/log")
        time.sleep(0.1)
    return found


# ---- configuration ----------------------------------------------------------

def containerd_conf():
    return f"""version = 2
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{PAUSE}"
# A root without CAP_SYS_RESOURCE may not lower it, and runc dies of that.
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "{INSIDE}/node/etc/cni"
"""


def network_conf():
    return {"cniVersion": "0.4.0", "name": "pods", "plugins": [
        {"type": "bridge", "bridge": "pods0", "isDefaultGateway": True,
         "ipMasq": True, "hairpinMode": True, "ipam": {
             "type": "host-local", "dataDir": "/run/cni",
             "ranges": [[{"subnet": PODS}]]}}]}


def kubelet_conf():
    keys = f"{INSIDE}/node/pki"
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration", "address": ADDRESS,
        "authentication": {"anonymous": {"enabled": False},
                           "webhook": {"enabled": True},
                           "x509": {"clientCAFile": f"{keys}/ca.crt"}},
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": f"{keys}/kubelet.crt",
        "tlsPrivateKeyFile": f"{keys}/kubelet.key",
        "cgroupDriver": "cgroupfs", "cgroupRoot": f"/{CGROUP}",
        "failSwapOn": False,
        "volumePluginDir": "/var/lib/kubelet/plugins-volume",
        "clusterDNS": [HOST], "clusterDomain": "cluster.local",
        "resolvConf": f"{INSIDE}/node/etc/resolv.conf",
        # A disk that others fill is no reason to evict.
        "evictionHard": {"nodefs.available": "1%", "imagefs.available": "1%",
                         "memory.available": "64Mi"},
        "imageGCHighThresholdPercent": 100,
        "maxPods": 250,
        # Ready is told with the next of these.
        "nodeStatusUpdateFrequency": "1s"}


def parts():
    """Programs of the node and their words, in the order of their start."""
    keys = f"{INSIDE}/node/pki"
    programs = INSIDE / "bin"

    def client(name):
        path = f"{keys}/{name}.kubeconfig"
        return [f"--kubeconfig={path}", f"--authentication-kubeconfig={path}",
                f"--authorization-kubeconfig={path}", "--leader-elect=false",
                "--bind-address=127.0.0.1"]
    return {
        "etcd": [
            "etcd", "--data-dir=/var/lib/etcd", "--unsafe-no-fsync",
            "--listen-client-urls=http://127.0.0.1:2379",
            "--advertise-client-urls=http://127.0.0.1:2379",
            "--listen-peer-urls=http://127.0.0.1:2380"],
        "containerd": [
            "containerd", "-c", f"{INSIDE}/node/etc/containerd.toml"],
        "kube-apiserver": [
            programs / "kube-apiserver", "--secure-port=6443",
            "--bind-address=0.0.0.0", f"--advertise-address={ADDRESS}",
            "--etcd-servers=http://127.0.0.1:2379", "--allow-privileged",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            f"--service-cluster-ip-range={SERVICES}",
            f"--client-ca-file={keys}/ca.crt",
            f"--tls-cert-file={keys}/apiserver.crt",
            f"--tls-private-key-file={keys}/apiserver.key",
            f"--kubelet-certificate-authority={keys}/ca.crt",
            f"--kubelet-client-certificate={keys}/admin.crt",
            f"--kubelet-client-key={keys}/admin.key",
            "--kubelet-preferred-address-types=InternalIP",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={keys}/account.pub",
            f"--service-account-signing-key-file={keys}/account.key"],
        "kube-controller-manager": [
            programs / "kube-controller-manager", *client("controller"),
            "--use-service-account-credentials",
            f"--root-ca-file={keys}/ca.crt",
            f"--service-account-private-key-file={keys}/account.key",
            f"--service-cluster-ip-range={SERVICES}",
            "--flex-volume-plugin-dir=/var/lib/kubelet/plugins-volume"],
        "kube-scheduler": [
            programs / "kube-scheduler", *client("scheduler")],
        "kubelet": [
            programs / "kubelet",
            f"--config={INSIDE}/node/etc/kubelet.json",
            f"--kubeconfig={keys}/kubelet.kubeconfig",
            f"--hostname-override={NAME}", f"--node-ip={ADDRESS}",
            "--container-runtime=remote", "--container-runtime-endpoint="
            "unix:///run/containerd/containerd.sock"],
    }


def prepare():
    """Every life begins with nothing."""
    shutil.rmtree(NODE, ignore_errors=True)
    for folder in ("etc/cni", "log", "images", "var/lib/etcd", "var/tmp",
                   "var/log", "var/cache"):
        (NODE / folder).mkdir(parents=True)
    (NODE / "var/lib/etcd").chmod(0o700)
    (NODE / "var/run").symlink_to("/run")
    (NODE / "etc/containerd.toml").write_text(containerd_conf())
    (NODE / "etc/cni/pods.conflist").write_text(json.dumps(network_conf()))
    (NODE / "etc/kubelet.json").write_text(json.dumps(kubelet_conf()))
    (NODE / "etc/resolv.conf").write_text(f"nameserver {HOST}\n")
    pki.make(NODE / "pki", NAME, ADDRESS, SERVICE)
    with open(NODE / "images/pause.tar", "wb") as file:
        mkimage.make(file, PAUSE, [f"box={BOX}"],
                     entrypoint=["/box", "keep", "-u"])


# ---- inside -----------------------------------------------------------------

def mounts():
    """What the parts write elsewhere than in CACHE is in a /run and a /var of
    the node's own."""
    sh("mount", "-t", "tmpfs", "tmpfs", "/run")
    for folder in (INSIDE, "/run/lock", "/run/sysctl"):
        os.makedirs(folder)
    sh("mount", "--bind", CACHE, INSIDE)
    sh("mount", "--bind", INSIDE / "node/var", "/var")
    for name, value in SYSCTLS.items():
        stand = pathlib.Path("/run/sysctl") / name.replace("/", ".")
        stand.write_text(f"{value}\n")
        sh("mount", "--bind", stand, f"/proc/sys/{name}")
    # Volumes reach containers by propagation.
    sh("mount", "--make-rshared", "/")


def cgroup_roots():
    """A folder for us in each hierarchy, of version 1 or 2."""
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS / CGROUP]
    return [path / CGROUP for path in CGROUPS.iterdir()
            if path.is_dir() and not path.is_symlink()]


def network():
    sh("ip", "link", "set", "lo", "up")
    sh("ip", "address", "add", f"{ADDRESS}/30", "dev", "eth0")
    sh("ip", "link", "set", "eth0", "up")
    pathlib.Path("/proc/sys/net/ipv4/ip_forward").write_text("1\n")
    # In place of kube-proxy: pods find the API server by its service.
    sh("iptables", "-t", "nat", "-A", "PREROUTING", "-p", "tcp",
       "-d", SERVICE, "--dport", "443", "-j", "DNAT",
       "--to-destination", f"{ADDRESS}:6443")


def is_listening(path):
    with socket.socket(socket.AF_UNIX) as sock:
        return sock.connect_ex(path) == 0


def launch(name, running):
    """The process is kept: one that is forgotten is waited for by whoever
    starts the next."""
    # A kubelet asks a cloud for credentials, and waits for it; these do.
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/run",
           "AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none"}
    with open(INSIDE / "node/log" / f"{name}.log", "ab") as log:
        proc = subprocess.Popen([str(a) for a in parts()[name]], cwd="/",
                                stdin=subprocess.DEVNULL, stdout=log,
                                stderr=log, env=env)
    running[proc.pid] = name, proc
    (INSIDE / "node" / f"{name}.pid").write_text(f"{proc.pid}\n")


def supervise(running):
    """What pid 1 does: wait for everybody, and start again who is ours."""
    while True:
        pid, status = os.wait()
        if pid in running:
            name, _ = running.pop(pid)
            print(f"{name} ended, {status}; again", flush=True)
            time.sleep(AGAIN_S)
            launch(name, running)


def init():
    """The node's first process; its standard input tells when the link is
    there."""
    os.chdir("/")
    if not sys.stdin.readline():
        sys.exit("k8s: whoever made the node is gone")
    ctypes.CDLL(None).sethostname(NAME.encode(), len(NAME))
    mounts()
    for path in cgroup_roots():
        path.mkdir(exist_ok=True)
    network()
    running = {}
    for name in parts():
        launch(name, running)
        if name == "containerd":
            patiently("containerd", lambda: is_listening(
                "/run/containerd/containerd.sock"))
            for path in sorted((INSIDE / "node/images").iterdir()):
                sh("ctr", "-n", "k8s.io", "images", "import", path)
    supervise(running)


# ---- outside ----------------------------------------------------------------

def started_at(pid):
    """When a process was started, which its number alone does not tell."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]


def first_process():
    """Its pid out here, or None.  Link and addresses are the machine's: there
    is one node on it, of whatever K8S_CACHE."""
    try:
        pid, start, cache = RUNNING.read_text().rstrip("\n").split(" ", 2)
    except (FileNotFoundError, ValueError):
        return None
    if started_at(pid) != start:
        return None
    if cache != str(CACHE):
        raise Failed(f"a node runs already, of K8S_CACHE={cache}")
    return int(pid)


def lock():
    file = open(LOCK, "w", encoding="ascii")
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def children(pid):
    path = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
    return path.read_text().split() if path.exists() else []


def make_namespaces(script):
    """The first process, which waits for its link."""
    with open(NODE / "log/node.log", "wb") as log:
        proc = subprocess.Popen(
            ["unshare", "--pid", "--mount", "--net", "--uts", "--ipc",
             "--fork", "--kill-child", "--mount-proc", "--propagation",
             "private", sys.executable, "-B", script, "init"],
            stdin=subprocess.PIPE, stdout=log, stderr=log,
            start_new_session=True)
    first = patiently("namespaces", lambda: proc.poll() is not None or
                      children(proc.pid))
    if first is True:
        raise Failed((NODE / "log/node.log").read_text())
    RUNNING.write_text(f"{first[0]} {started_at(first[0])} {CACHE}\n")
    return proc, first[0]


def make_link(first):
    """A client that still looks for a node that is gone shall find nothing:
    hence the second route."""
    ours = os.readlink("/proc/self/ns/net")
    patiently("network", lambda: os.readlink(
        f"/proc/{first}/ns/net") != ours)
    sh("ip", "route", "replace", "blackhole", NET, "metric", "4000")
    sh("ip", "link", "add", LINK, "type", "veth", "peer", "name", "eth0",
       "netns", first)
    sh("ip", "address", "add", f"{HOST}/30", "dev", LINK)
    sh("ip", "link", "set", LINK, "up")


def answers(proc):
    if proc.poll() is not None:
        raise Failed((NODE / "log/node.log").read_text()[-2000:])
    try:
        return Kube(kubeconfig()).get("/api/v1/nodes")["items"]
    except (OSError, ValueError, RuntimeError):
        return None
    except Exception as error:
        # The API server refuses everybody until it knows its roles.
        if getattr(error, "status", 0) in (401, 403, 404, 429, 500, 503):
            return None
        raise


def is_ready(node):
    return node and any(c["type"] == "Ready" and c["status"] == "True"
                        for c in node["status"].get("conditions", []))


def start(script):
    """Until it takes pods."""
    with lock():
        if first_process():
            return
        clean()
        prepare()
        proc, first = make_namespaces(script)
        try:
            make_link(first)
            proc.stdin.write(b"go\n")
            proc.stdin.close()
            patiently("API server", lambda: answers(proc))
            kube = Kube(kubeconfig())
            kube.until("/api/v1/nodes", NAME, is_ready)
            kube.until("/api/v1/namespaces/default/serviceaccounts",
                       "default", bool)
        except BaseException:
            os.kill(int(first), signal.SIGKILL)
            raise


def remove_cgroups():
    """They can go once the kernel is done with who was in them."""
    left = False
    for root in cgroup_roots():
        for path, _, _ in os.walk(root, topdown=False):
            try:
                os.rmdir(path)
            except FileNotFoundError:
                pass
            except OSError:
                left = True
    return not left


def clean():
    """What a node leaves that did not end by stop()."""
    for argv in (["ip", "link", "delete", LINK],
                 ["ip", "route", "delete", "blackhole", NET]):
        subprocess.run(argv, stderr=subprocess.DEVNULL)
    patiently("end of the cgroups", remove_cgroups, 30)


def stop():
    with lock():
        pid = first_process()
        if pid:
            os.kill(pid, signal.SIGKILL)
            patiently("end of the node", lambda: not first_process(), 30)
        clean()


def kubeconfig():
    return NODE / "pki/admin.kubeconfig"


def enter(*argv, **kwargs):
    """A command in the node."""
    pid = first_process()
    if pid is None:
        raise Failed("no node runs")
    return sh("nsenter", "-t", pid, "-m", "-n", "-p", "-u", "-i", "--", *argv,
              **kwargs)


def load(archive):
    """An image, from its bytes."""
    enter("ctr", "-n", "k8s.io", "images", "import", "-", input=archive,
          stdout=subprocess.DEVNULL)


def kill(name):
    """One of the parts, which is started again."""
    pid = (NODE / f"{name}.pid").read_text().strip()
    enter("kill", "-KILL", pid)
