# SPDX-License-Identifier: ISC

"""Kubernetes for a node of the tests: built once from Debian 12's source
package, and kept.  etcd, containerd, runc and the network's plugins are
Debian's packages."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys

CACHE = pathlib.Path(os.environ.get("K8S_CACHE", "/var/cache/egressd-k8s"))
BIN = CACHE / "bin"
WORK = CACHE / "build"
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler",
            "kubelet")
DEBIAN = "12"
ELSEWHERE = ("k8s: only Debian 12 has the sources of Kubernetes; here, set "
             "KUBECONFIG to that of a cluster for tests")
POLICY = pathlib.Path("/usr/sbin/policy-rc.d")
POLICY_TEXT = "#!/bin/sh\n# For a moment, by egressd's make check-k8s.\nexit 101\n"
# A checkout has to be where Go looks for its packages.
IN_GOPATH = pathlib.Path("src/k8s.io/kubernetes")


def run(*argv, **kwargs):
    return subprocess.run([str(a) for a in argv], check=True, **kwargs)


def output(*argv):
    return run(*argv, stdout=subprocess.PIPE, text=True).stdout


# ---- packages ---------------------------------------------------------------

def is_installed(package):
    done = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status}",
                           package], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.DEVNULL)
    return done.stdout == "installed"


@contextlib.contextmanager
def services_stay_off():
    """The machine is to have the programs, and not to run them: etcd and
    containerd would start, now and at every boot."""
    if POLICY.exists() and POLICY.read_text() != POLICY_TEXT:
        yield
        return
    POLICY.write_text(POLICY_TEXT)
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink()


def disable(packages):
    for package in packages:
        for line in output("dpkg", "-L", package).splitlines():
            unit = pathlib.PurePath(line)
            if unit.suffix == ".service" and "@" not in unit.name:
                run("systemctl", "--quiet", "disable", unit.name)


def install(packages):
    """What is missing of them; what is there stays as it is."""
    missing = [p for p in packages if not is_installed(p)]
    if not missing:
        return
    print("installing", *missing, flush=True)
    with services_stay_off():
        run("apt-get", "update", "-qq")
        run("apt-get", "install", "-qq", "-y", "--no-install-recommends",
            "--no-upgrade", *missing, stdout=subprocess.DEVNULL,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    if shutil.which("systemctl"):
        disable(missing)


# ---- sources ----------------------------------------------------------------

def release():
    with open("/etc/os-release", encoding="utf-8") as file:
        have = dict(line.rstrip().split("=", 1) for line in file
                    if "=" in line)
    return have.get("ID"), have.get("VERSION_ID", "").strip('"')


def source_options():
    """apt with lists of its own, which has sources of wherever the machine
    has its packages from."""
    lists, sources = WORK / "lists", WORK / "sources.list"
    (lists / "partial").mkdir(parents=True)
    places = output("apt-get", "indextargets", "--format",
                    "$(REPO_URI) $(RELEASE) $(COMPONENT)",
                    "Identifier: Packages", "Origin: Debian")
    lines = sorted({f"deb-src {place}\n" for place in places.splitlines()})
    if not lines:
        sys.exit("k8s: apt knows no archive of Debian; apt-get update?")
    sources.write_text("".join(lines))
    return ["-qq", "-o", f"Dir::Etc::SourceList={sources}",
            "-o", "Dir::Etc::SourceParts=/dev/null",
            "-o", f"Dir::State::Lists={lists}",
            "-o", "APT::Sandbox::User=root"]


def unpack():
    options = source_options()
    run("apt-get", *options, "update")
    run("apt-get", *options, "source", "kubernetes", cwd=WORK)
    return next(p for p in WORK.glob("kubernetes-*") if p.is_dir())


# ---- programs ---------------------------------------------------------------

def compile_all(tree):
    """By its makefile, which generates sources that the package lacks."""
    gopath = WORK / "go"
    (gopath / IN_GOPATH).parent.mkdir(parents=True)
    (gopath / IN_GOPATH).symlink_to(tree)
    for folder in ("home", "tmp"):
        (WORK / folder).mkdir()
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "GOPATH": str(gopath),
           "HOME": str(WORK / "home"), "TMPDIR": str(WORK / "tmp"),
           "CGO_ENABLED": "0", "GOPROXY": "off", "GOFLAGS": ""}
    what = " ".join(f"cmd/{p}" for p in PROGRAMS)
    run("make", f"WHAT={what}", "GOLDFLAGS=-s -w", cwd=gopath / IN_GOPATH,
        env=env)
    return tree / "_output" / "bin"


def is_built():
    """The folder got its name when it was complete."""
    return all((BIN / p).exists() for p in PROGRAMS)


def build():
    if is_built():
        return
    if release() != ("debian", DEBIAN):
        sys.exit(ELSEWHERE)
    print(f"k8s: building Kubernetes into {BIN}, once; 10 minutes", flush=True)
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    made = compile_all(unpack())
    new = CACHE / "bin.new"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir()
    for program in PROGRAMS:
        shutil.copy(made / program, new)
    shutil.rmtree(BIN, ignore_errors=True)
    new.rename(BIN)
    shutil.rmtree(WORK)
