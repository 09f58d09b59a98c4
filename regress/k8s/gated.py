#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Pods with a gate, in a real cluster: what is allowed passes, nothing else
leaves, the control host has every record and answers every question, whoever
dies meanwhile.  The origin is a pod, too."""

import contextlib
import functools
import json
import pathlib
import sys
import textwrap
import threading

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
import images  # noqa: E402
from case import Cases  # noqa: E402
from daemon import until, verify  # noqa: E402
from gate import FINAL  # noqa: E402
from kube import KubeError  # noqa: E402
from origin import authority  # noqa: E402
from pods import (AGAIN_S, BOX_IMAGE, START_S, attached, cluster,  # noqa: E402
                  daemon, found, gone, is_ready, node, pods_path, run)

cases = Cases()
PORT = 8443
SERVE = """
import http.server, os, ssl
class Origin(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = f"origin {self.path}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
for name in ("CERT", "KEY"):
    with open("/tmp/" + name, "w") as file:
        file.write(os.environ[name])
tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
tls.load_cert_chain("/tmp/CERT", "/tmp/KEY")
server = http.server.ThreadingHTTPServer(("", int(os.environ["PORT"])), Origin)
server.socket = tls.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


@functools.cache
def origin():
    """The address of a pod that serves origin.test and evil.test."""
    cert, key = authority().leaf("origin.test", "evil.test")
    env = {"CERT": cert.read_text(), "KEY": key.read_text(), "PORT": str(PORT)}
    cluster().create(pods_path(), {
        "metadata": {"name": "origin"},
        "spec": {"automountServiceAccountToken": False, "containers": [{
            "name": "origin", "image": images.name("client"),
            "command": [images.PYTHON, "-c", SERVE],
            "env": [{"name": n, "value": v} for n, v in env.items()]}]}})
    return cluster().until(pods_path(), "origin", is_ready)["status"]["podIP"]


def conf():
    block = f"""policy "gated" cluster "test" box-image "{BOX_IMAGE}"
        image "{images.name("client")}" gate-resolver 192.0.2.53"""
    return [textwrap.dedent(f"""
        upstream trust file "{authority().cert}"
        hosts {{ "origin.test" {origin()} "evil.test" {origin()} }}
        decider "person" operator
        policy "gated" {{
            allow host "origin.test" port {PORT} path "/ok/**" to private
            decide "person" host "origin.test" port {PORT} path "/ask/**" \
                timeout 1m cache off to private
        }}
        sandbox "root" kubernetes {{ {block} }}
        sandbox "user" kubernetes {{ {block} run-as-user 1000 }}""")]


@contextlib.contextmanager
def gated(name, sandbox="root"):
    """A daemon, and the pod of a session of it."""
    with daemon(*conf()) as d:
        pod = run(d, name, sandbox)
        until("the channel is up", lambda: channel(d, name) == "up", AGAIN_S)
        yield d, pod


def channel(d, name):
    return d.ask("session.show", session_id=name)["channel"]["state"]


def sh(d, name, script):
    with attached(d, name) as hands:
        answer = hands.call("exec", command=script)
        return answer.result.get("exit_code"), answer.out.decode()


def curl(d, name, path, more="", host="origin.test"):
    """Status and body."""
    code, out = sh(d, name, f"{more} curl -sS -m 60 -w ' %{{http_code}}' "
                   f"https://{host}:{PORT}{path} 2>&1")
    return (int(out.rsplit(" ", 1)[1]), out.rsplit(" ", 1)[0]) \
        if code == 0 else (None, out)


def of_pod(d, pod):
    """What the control host has of a pod, in order."""
    return [r for r in d.records() if r.get("pod") == pod]


def numbers(records):
    return [r["origin_seq"] for r in records]


def whole(records):
    """Each record of the gate is there, and is there once."""
    have = numbers(records)
    assert have == list(range(1, len(have) + 1)), have


def final(d, pod, path):
    return [r for r in of_pod(d, pod) if r["kind"] in FINAL and
            r["request"].get("path") == path]


# ---- requests ---------------------------------------------------------------

@cases.each({"root": None, "user": None})
def clients(who):
    """An image that knows nothing of us; with no variable set, too."""
    with gated(f"clients-{who}", who) as (d, pod):
        name = f"clients-{who}"
        assert sh(d, name, "id -u") == (0, "0\n" if who == "root" else "1000\n")
        assert curl(d, name, "/ok/1") == (200, "origin /ok/1")
        assert curl(d, name, "/ok/2", "env -i PATH=/usr/bin") == \
            (200, "origin /ok/2")
        assert sh(d, name, f"python3 -c 'import urllib.request as u; print("
                  f'u.urlopen("https://origin.test:{PORT}/ok/3").read().decode'
                  "())'") == (0, "origin /ok/3\n")
        assert curl(d, name, "/other")[0] == 403
        assert curl(d, name, "/ok/4", host="evil.test")[0] == 403
        status, body = curl(d, name, "/ok/5", host=origin())
        assert status != 200, body
        until("all records", lambda: final(d, pod, "/other"), AGAIN_S)
        one, = final(d, pod, "/ok/1")
        assert one["session_id"] == name and one["node"], one
        assert one["pod_uid"] == found(pod)["metadata"]["uid"], one
        assert one["matched_rule"]["index"] == 0, one
        assert one["request"]["method"] == "GET", one
        assert one["request"]["response_status"] == 200, one
        assert "user-agent" in {k.lower() for k in
                                one["request"]["request_headers"]}, one
        whole(of_pod(d, pod))
        verify(d.audit.read_text().splitlines())
        assert d.ask("session.show", session_id=name)["gated"] is True


TRIES = """
import errno, json, socket
SO_MARK, MARK = 36, 0x45475244
def attempt(function):
    try:
        return function()
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))
def raw():
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
def packet():
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
def vsock():
    socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)
def mark():
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, SO_MARK, MARK)
def udp(port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(2)
        sock.connect((ORIGIN, port))
        for _ in range(2):
            sock.send(b"out")
        return sock.recv(1).hex()
def tcp(address, port, data):
    with socket.create_connection((address, port), 10) as sock:
        sock.settimeout(10)
        sock.sendall(data)
        return sock.recv(4096).decode("latin-1")
HTTP = b"GET /ok/1 HTTP/1.1\\r\\nHost: origin.test:8443\\r\\n\\r\\n"
print(json.dumps({
    "raw": attempt(raw), "packet": attempt(packet), "vsock": attempt(vsock),
    "mark": attempt(mark), "udp": attempt(lambda: udp(443)),
    "dns": attempt(lambda: udp(53)),
    "direct": attempt(lambda: tcp(ORIGIN, 8443, HTTP)),
    "gate": attempt(lambda: tcp("127.0.0.1", 15001, HTTP)),
    "gate_dns": attempt(lambda: tcp("127.0.0.1", 15053, b"x")),
}))
"""


@cases.each({"root": None, "user": None})
def ways_round(who):
    with gated(f"round-{who}", who) as (d, pod):
        name = f"round-{who}"
        with attached(d, name) as hands:
            hands.call("write", (f"ORIGIN = {origin()!r}\n" + TRIES).encode(),
                       path="tries.py")
        code, out = sh(d, name, "python3 tries.py")
        assert code == 0, out
        have = json.loads(out)
        for key in ("raw", "packet", "mark"):
            assert have[key] in ("EPERM", "EACCES", "EAFNOSUPPORT"), have
        assert have["vsock"] in ("EPERM", "EACCES", "EAFNOSUPPORT"), have
        assert have["udp"] in ("EACCES", "EPERM", "EHOSTUNREACH",
                               "ECONNREFUSED"), have
        assert have["gate"] == "ECONNREFUSED", have
        assert have["gate_dns"] == "ECONNREFUSED", have
        assert "origin /ok/1" not in str(have), have
        # The gate's processes and files are another container's.
        code, out = sh(d, name, "cat /proc/[0-9]*/comm; ls /run /etc/egressd "
                       "2>&1; find / -xdev -name egressd.sock 2>/dev/null")
        assert "egressd.sock" not in out and "tlsengine" not in out, out
        until("the refusals", lambda: [
            r for r in of_pod(d, pod) if r["kind"] == "connection_refused" or
            r.get("reason") == "fence"], AGAIN_S)


# ---- questions --------------------------------------------------------------

def question(d, path):
    return next((q for q in d.ask("pending.list")["pending"]
                 if q["request"]["path"] == path), None)


def ask(d, name, path, **answer):
    """What a client gets for a request that a person decides."""
    got = []
    asking = threading.Thread(target=lambda: got.append(curl(d, name, path)))
    asking.start()
    try:
        one = until("the question", lambda: question(d, path), AGAIN_S)
        assert one["session_id"] == name, one
        done = d.ask("pending.answer", pending=one["id"], **answer)
        assert done.get("ok"), done
    finally:
        asking.join()
    return got[0]


@cases.case
def people_decide():
    with gated("people") as (d, _):
        assert ask(d, "people", "/ask/1", decision="allow") == \
            (200, "origin /ask/1")
        status, body = ask(d, "people", "/ask/2", decision="deny",
                           reason="not today")
        assert status == 403, (status, body)
        # Not remembered.
        assert ask(d, "people", "/ask/1", decision="deny")[0] == 403


# ---- whoever dies -----------------------------------------------------------

@cases.case
def another_control_host():
    """It goes on where the first one ended, which is killed."""
    with daemon(*conf()) as first:
        pod = run(first, "moved", "root")
        until("the channel is up", lambda: channel(first, "moved") == "up",
              AGAIN_S)
        for i in range(10):
            assert curl(first, "moved", f"/ok/{i}")[0] == 200
        first.process.kill()
        first.wait()
        old = of_pod(first, pod)
        with daemon(*conf()) as d:
            assert run(d, "moved", "root") == pod
            until("the channel is up", lambda: channel(d, "moved") == "up",
                  AGAIN_S)
            assert ask(d, "moved", "/ask/3", decision="allow")[0] == 200
            until("the last record", lambda: final(d, pod, "/ask/3"), AGAIN_S)
            new = of_pod(d, pod)
    # What the first one wrote and could not acknowledge comes again.
    have = set(numbers(old)) | set(numbers(new))
    assert have == set(range(1, max(have) + 1)), sorted(have)
    assert numbers(new) == list(range(min(numbers(new)), max(have) + 1)), new


@cases.case
def the_gate_is_killed():
    with gated("killed") as (d, pod):
        assert curl(d, "killed", "/ok/1")[0] == 200
        gate = next(c for c in found(pod)["status"]["containerStatuses"]
                    if c["name"] == "gate")
        node("enter", "ctr", "-n", "k8s.io", "tasks", "kill", "-s", "SIGKILL",
             gate["containerID"].removeprefix("containerd://"))

        def again():
            status, body = curl(d, "killed", "/ok/2")
            assert status in (None, 200, 502, 503), body
            return status == 200
        until("the gate is back", again, START_S)
        until("the channel is up", lambda: channel(d, "killed") == "up",
              AGAIN_S)
        until("the last record", lambda: final(d, pod, "/ok/2"), AGAIN_S)
        whole(of_pod(d, pod))


# ---- the end ----------------------------------------------------------------

def left(pod):
    """Objects of that name."""
    space = cluster().space
    have = []
    for path in (f"/api/v1/namespaces/{space}/secrets",
                 f"/apis/networking.k8s.io/v1/namespaces/{space}/"
                 "networkpolicies"):
        try:
            cluster().get(f"{path}/{pod}")
            have.append(path)
        except KubeError as error:
            assert error.status == 404, error
    return have


@cases.each({"terminate": None, "others": None})
def nothing_is_left(how):
    with gated(f"end-{how}") as (d, pod):
        assert len(left(pod)) == 2, left(pod)
        if how == "terminate":
            with d.client() as client:
                client.sock.settimeout(START_S)
                answer = client.ask("pods.terminate", sandbox="root",
                                    session_id=f"end-{how}")
                assert answer.get("ok"), answer
        else:
            cluster().delete(f"{pods_path()}/{pod}")
        gone(pod)
        until("nothing is left", lambda: not left(pod), AGAIN_S)


cases.main()
