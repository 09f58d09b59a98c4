#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""What a user of egressctl sees of a pod: exit codes, files, logs, and an API
server that dies; and what nobody sees, the credentials."""

import hashlib
import os
import pathlib
import re
import ssl
import statistics
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
import images  # noqa: E402
from case import Cases, Skip  # noqa: E402
from daemon import Daemon  # noqa: E402
from hands import within  # noqa: E402
from pods import (AGAIN_S, START_S, attached, block, cluster,  # noqa: E402
                  clustered, node, pods_path, run, session, sh, works_again)
from procs import status  # noqa: E402

cases = Cases()
MIB = 1 << 20


def ctl(*words, daemon=None):
    """egressctl to its end, which may take as long as a pod."""
    process = (daemon or clustered()).spawn_ctl(*words)
    try:
        out, err = process.communicate(timeout=START_S)
    finally:
        process.kill()
        process.wait()
    return process.returncode, out, err


def script(text):
    return ctl("exec", session("root"), "--", "sh", "-c", text)


# ---- commands ---------------------------------------------------------------

@cases.case
def exit_codes():
    for code in (0, 1, 3, 124, 125, 126, 127, 255):
        assert script(f"exit {code}")[0] == code, code
    assert script("echo exit code 0; echo exit code 0 >&2; exit 3") == \
        (3, "exit code 0\n", "exit code 0\n")
    assert script("kill -KILL $$")[0] == 137
    assert script("kill -TERM $$")[0] == 143


@cases.case
def much_in_and_out():
    """64 MiB, hashed on both sides."""
    name = session("root")
    data = os.urandom(MIB) * 64
    with tempfile.TemporaryDirectory() as tmp:
        here, back = pathlib.Path(tmp) / "here", pathlib.Path(tmp) / "back"
        here.write_bytes(data)
        assert ctl("cp", "-n", name, str(here), ":big")[0] == 0
        digest = hashlib.sha256(data).hexdigest()
        assert script("sha256sum <big")[1].split()[0] == digest
        assert ctl("cp", "-n", name, ":big", str(back))[0] == 0
        assert back.read_bytes() == data
    script("rm big")


@cases.case
def a_slow_reader():
    """Nobody keeps for a client what it does not read."""
    daemon = clustered()
    with attached(daemon, session("root")) as hands:
        request = hands.start("exec", hold=True,
                              command="head -c 67108864 /dev/zero; echo end >&2")
        request.until(lambda r: len(r.out) >= 262144)
        # Others are served meanwhile, and k8sd is as small as it was.
        assert sh(hands, "echo other") == "other\n"
        pid = daemon.processes()["k8sd"]
        before = int(status(pid)["VmRSS"].split()[0])
        assert before < 64 * 1024, f"{before} KiB"
        while not request.over():
            have = len(request.out)
            request.grant(MIB)
            request.until(lambda r: len(r.out) > have or r.over())
        answer = request.wait()
        assert len(answer.out) == 64 * MIB, len(answer.out)
        assert answer.err == b"end\n"
        after = int(status(pid)["VmRSS"].split()[0])
        assert after < before + 16 * 1024, f"{before}, then {after} KiB"


@cases.each(["kube-apiserver", "kubelet"])
def a_part_dies_under_a_command(part):
    """It is told, the status is none of the command's, and the next command
    is served as soon as the part is back."""
    name = session("root")
    script("rm -f runs")
    process = clustered().spawn_ctl("exec", name, "--", "sh", "-c",
                                    "echo $$ >runs; sleep 1000")
    try:
        with attached(clustered(), name) as hands:
            within(AGAIN_S, lambda: "runs" in [
                i["name"] for i in hands.call("list").items], "it runs")
        node("kill", part)
        out, err = process.communicate(timeout=AGAIN_S)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 125 and out == "", (process.returncode, out)
    assert "the connection to its pod is lost" in err, err
    works_again(clustered(), name)
    assert script("echo again") == (0, "again\n", "")


@cases.case
def a_log_is_followed():
    name = session("root")
    script("echo before >/proc/1/fd/1")
    process = clustered().spawn_ctl("logs", "-f", "-n", "1", name)
    try:
        assert process.stdout.readline() == "before\n"
        script("echo later >/proc/1/fd/1")
        assert process.stdout.readline() == "later\n"
    finally:
        process.kill()
        process.communicate()
    assert ctl("logs", "-n", "1", name) == (0, "later\n", "")


@cases.case
def several_sessions_in_one_command():
    ids = [f"many-{n}" for n in range(8)]
    code, out, err = ctl("session", "start", *(
        word for i in ids for word in ("-n", i)), "pod-user")
    assert code == 0 and sorted(out.split()) == ids, (code, out, err)
    assert all(f"egressctl: {i}: " in err for i in ids), err
    for i in ids:
        assert clustered().ask("session.stop", session_id=i,
                               delete=False).get("ok")


@cases.case
def a_small_read_is_no_dearer_than_a_call():
    """bench/pods.py measures it; here it is not out of all bounds."""
    name = session("root")
    kube = cluster()
    script("echo small >small")
    calls, reads = [], []
    with attached(clustered(), name) as hands:
        for _ in range(20):
            begin = time.monotonic()
            kube.get(pods_path())
            between = time.monotonic()
            hands.call("read", path="small")
            calls.append(between - begin)
            reads.append(time.monotonic() - between)
    call, read = statistics.median(calls), statistics.median(reads)
    assert read < 3 * call + 0.1, (call, read)


# ---- credentials ------------------------------------------------------------

def token_of(account):
    """Of a service account that may do everything here."""
    kube, space = cluster(), cluster().space
    core = f"/api/v1/namespaces/{space}"
    kube.create(f"{core}/serviceaccounts", {"metadata": {"name": account}})
    kube.create(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{space}"
                "/rolebindings", {
                    "metadata": {"name": account},
                    "roleRef": {"apiGroup": "rbac.authorization.k8s.io",
                                "kind": "ClusterRole", "name": "admin"},
                    "subjects": [{"kind": "ServiceAccount", "name": account,
                                  "namespace": space}]})
    review = kube.create(f"{core}/serviceaccounts/{account}/token", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"audiences": ["https://kubernetes.default.svc"]}})
    return review["status"]["token"]


def memory_has(pid, needle):
    """Whether it is anywhere in the memory of a process."""
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps, \
            open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in maps:
            begin, end, kind = re.match(r"(\w+)-(\w+) (\S+)", line).groups()
            if kind[0] != "r" or "[v" in line:
                continue
            try:
                mem.seek(int(begin, 16))
                data = mem.read(int(end, 16) - int(begin, 16))
            except (OSError, OverflowError, ValueError):
                continue
            if needle in data:
                return True
    return False


@cases.case
def credentials_are_in_k8sd_alone():
    """Not in arguments, environments, logs, records or another process, and
    what has them leaves no core."""
    if os.geteuid() != 0:
        raise Skip("only root reads others' memory")
    token = token_of("holder")
    kube = cluster()
    with tempfile.TemporaryDirectory() as tmp:
        path = pathlib.Path(tmp) / "token"
        path.write_text(token)
        path.chmod(0o600)
        trust = pathlib.Path(tmp) / "ca.pem"
        trust.write_text("".join(ssl.DER_cert_to_PEM_cert(one) for one in
                                 kube.tls.get_ca_certs(True)))
        conf = f"""policy "none" {{ }}
            cluster "test" {{ server "https://{kube.host}:{kube.port}"
                ca file "{trust}" token file "{path}"
                namespace "{kube.space}" }}
            {block("pod", images.name("root"))}"""
        with Daemon(conf) as d:
            d.settle()
            run(d, "secret", "pod")
            assert ctl("exec", "secret", "--", "true", daemon=d)[0] == 0
            own = token.encode().rpartition(b".")[2]
            pids = d.processes()
            assert memory_has(pids["k8sd"], own)
            for role, pid in pids.items():
                proc = pathlib.Path(f"/proc/{pid}")
                for file in ("cmdline", "environ"):
                    assert own not in (proc / file).read_bytes(), role
                if role != "k8sd":
                    assert not memory_has(pid, own), role
            limits = pathlib.Path(f"/proc/{pids['k8sd']}/limits").read_text()
            core = re.search(r"Max core file size +(\d+) +(\d+)", limits)
            assert core.groups() == ("0", "0"), core[0]
            for file in (d.stderr, d.audit):
                assert own not in file.read_bytes(), file


cases.main()
