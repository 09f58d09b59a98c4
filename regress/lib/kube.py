# SPDX-License-Identifier: ISC

"""A small client of a Kubernetes API server, for tests that look at a cluster
beside egressd, or make pods without it.

    kube = Kube(path_of_kubeconfig)
    kube.create("/api/v1/namespaces/x/pods", {...})
    kube.until("/api/v1/namespaces/x/pods", "name", ready)
    with kube.exec("x", "name", "workspace", ["/bin/true"]) as stream:
        stream.ours     # a socket: standard input and output"""

import base64
import http.client
import json
import os
import pathlib
import select
import socket
import ssl
import struct
import tempfile
import threading
import time
import urllib.parse

WAIT_S = 120
CALL_S = 30
FRAME = 32768           # of what is sent in one message
HELD = 4 * FRAME        # in either direction, before a side is not read
STDIN, STDOUT, STDERR, STATUS = range(4)
BINARY, CLOSE, PING, PONG = 2, 8, 9, 10


class KubeError(Exception):
    """An answer that is none of the good ones."""

    def __init__(self, status, body):
        reason = body.get("reason", "") if isinstance(body, dict) else ""
        text = body.get("message", body) if isinstance(body, dict) else body
        super().__init__(f"{status} {reason}: {str(text)[:500]}")
        self.status, self.reason = status, reason


def read_kubeconfig(path):
    text = pathlib.Path(path).read_text(encoding="utf-8")
    try:
        return json.loads(text)
    except ValueError:
        import yaml     # python3-yaml; ours are JSON
        return yaml.safe_load(text)


def named(items, name, kind):
    return next(i[kind] for i in items if i["name"] == name)


class Kube:
    """The cluster of the current context."""

    def __init__(self, path):
        config = read_kubeconfig(path)
        context = named(config["contexts"], config["current-context"],
                        "context")
        cluster = named(config["clusters"], context["cluster"], "cluster")
        user = named(config["users"], context["user"], "user")
        url = urllib.parse.urlsplit(cluster["server"])
        self.host, self.port = url.hostname, url.port or 443
        self.prefix = url.path.rstrip("/")
        self.name = cluster.get("tls-server-name", self.host)
        self.headers = {}
        if "token" in user:
            self.headers["Authorization"] = f"Bearer {user['token']}"
        self.tls = self._tls(cluster, user, pathlib.Path(path).parent)

    @staticmethod
    def _data(of, name, folder):
        """A member that is inline, or in a file."""
        if f"{name}-data" in of:
            return base64.b64decode(of[f"{name}-data"])
        return (folder / of[name]).read_bytes() if name in of else None

    def _tls(self, cluster, user, folder):
        trust = self._data(cluster, "certificate-authority", folder)
        tls = ssl.create_default_context(
            cadata=trust.decode() if trust else None)
        if cluster.get("insecure-skip-tls-verify"):
            tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        certificate = self._data(user, "client-certificate", folder)
        if certificate:
            key = self._data(user, "client-key", folder)
            with tempfile.NamedTemporaryFile() as file:
                file.write(certificate + b"\n" + key)
                file.flush()
                tls.load_cert_chain(file.name)
        return tls

    def connect(self):
        """A TLS connection; no HTTP/2, which nobody here speaks."""
        plain = socket.create_connection((self.host, self.port), CALL_S)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            return self.tls.wrap_socket(plain, server_hostname=self.name)
        except BaseException:
            plain.close()
            raise

    def request(self, method, path, body=None, kind="application/json",
                timeout=CALL_S):
        """The connection and its answer, unread."""
        conn = http.client.HTTPConnection(self.host, self.port,
                                          timeout=timeout)
        conn.sock = self.connect()
        conn.sock.settimeout(timeout)
        data = None if body is None else json.dumps(body)
        conn.request(method, self.prefix + path, data, {
            **self.headers, "Accept": "application/json",
            **({"Content-Type": kind} if data else {})})
        return conn, conn.getresponse()

    def call(self, method, path, body=None, **kwargs):
        """What was answered, an object."""
        conn, answer = self.request(method, path, body, **kwargs)
        try:
            text = answer.read()
        finally:
            conn.close()
        try:
            value = json.loads(text)
        except ValueError:
            value = text.decode(errors="replace")
        if answer.status >= 300:
            raise KubeError(answer.status, value)
        return value

    def get(self, path):
        return self.call("GET", path)

    def create(self, path, what):
        return self.call("POST", path, what)

    def delete(self, path, seconds=None):
        """It may be gone already."""
        options = {} if seconds is None else {"gracePeriodSeconds": seconds}
        try:
            return self.call("DELETE", path, options)
        except KubeError as error:
            if error.status != 404:
                raise
            return None

    def watch(self, path, name, version, timeout):
        """Objects of this name as they change; None: it was deleted."""
        query = urllib.parse.urlencode({
            "watch": 1, "resourceVersion": version,
            "fieldSelector": f"metadata.name={name}",
            "timeoutSeconds": max(1, int(timeout))})
        conn, answer = self.request("GET", f"{path}?{query}",
                                    timeout=timeout + CALL_S)
        try:
            if answer.status != 200:
                raise KubeError(answer.status, answer.read().decode())
            for line in answer:
                event = json.loads(line)
                yield None if event["type"] == "DELETED" else event["object"]
        finally:
            conn.close()

    def until(self, path, name, condition, timeout=WAIT_S):
        """The object, when condition(object) is true; None is no object."""
        end = time.monotonic() + timeout
        seen = None
        while time.monotonic() < end:
            listed = self.get(f"{path}?fieldSelector=metadata.name%3D{name}")
            seen = next(iter(listed["items"]), None)
            if condition(seen):
                return seen
            for seen in self.watch(path, name,
                                   listed["metadata"]["resourceVersion"],
                                   end - time.monotonic()):
                if condition(seen):
                    return seen
        raise TimeoutError(f"{path}/{name} after {timeout} s: "
                           f"{json.dumps((seen or {}).get('status'))}")

    def exec(self, namespace, pod, container, command):
        return Exec(self, namespace, pod, container, command)


# ---- exec by WebSocket ------------------------------------------------------

def ws_frame(kind, data=b""):
    """From a client: masked, by a key of zeroes, which changes nothing."""
    size = len(data)
    head = bytes([0x80 | kind])
    if size < 126:
        head += bytes([0x80 | size])
    elif size < 65536:
        head += struct.pack(">BH", 0x80 | 126, size)
    else:
        head += struct.pack(">BQ", 0x80 | 127, size)
    return head + bytes(4) + data


def ws_take(buf):
    """The first frame of what a server sent: whether it is the last of its
    message, kind, body; None if it is not all there."""
    if len(buf) < 2:
        return None
    size, at = buf[1] & 0x7f, 2
    if size == 126:
        size, at = int.from_bytes(buf[2:4], "big"), 4
    elif size == 127:
        size, at = int.from_bytes(buf[2:10], "big"), 10
    if len(buf) < at + size:
        return None
    frame = bool(buf[0] & 0x80), buf[0] & 0x0f, bytes(buf[at:at + size])
    del buf[:at + size]
    return frame


class Exec:
    """A command in a container: its standard input and output are the other
    end of the socket ours, its standard error is kept.  One thread does all
    of TLS; neither side is read while the other does not take."""

    def __init__(self, kube, namespace, pod, container, command):
        query = urllib.parse.urlencode(
            [("container", container), ("stdin", 1), ("stdout", 1),
             ("stderr", 1), *(("command", word) for word in command)])
        self.path = (f"{kube.prefix}/api/v1/namespaces/{namespace}/pods/{pod}"
                     f"/exec?{query}")
        self.ours, self.theirs = socket.socketpair()
        self.stderr, self.status = bytearray(), None
        self.channel = None         # of a message of several frames
        self.to_ws, self.from_ws, self.to_ours = (bytearray()
                                                  for _ in range(3))
        self.ws = kube.connect()
        try:
            self._upgrade(kube)
        except BaseException:
            self._close()
            self.ours.close()
            raise
        self.thread = threading.Thread(target=self._pump, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _upgrade(self, kube):
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [f"GET {self.path} HTTP/1.1", f"Host: {kube.host}:{kube.port}",
                 "Connection: Upgrade", "Upgrade: websocket",
                 "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}",
                 "Sec-WebSocket-Protocol: v4.channel.k8s.io",
                 *(f"{k}: {v}" for k, v in kube.headers.items())]
        self.ws.sendall("\r\n".join([*lines, "", ""]).encode())
        data = bytearray()
        while b"\r\n\r\n" not in data:
            piece = self.ws.recv(4096)
            if not piece:
                raise KubeError(0, f"no answer to exec: {bytes(data)!r}")
            data += piece
        head, _, rest = bytes(data).partition(b"\r\n\r\n")
        status = int(head.split()[1])
        if status != 101:
            raise KubeError(status, (head + rest).decode(errors="replace"))
        self.from_ws += rest
        self.ws.setblocking(False)
        self.theirs.setblocking(False)

    def _message(self, data):
        """A piece of a channel."""
        if self.channel == STDOUT:
            self.to_ours += data
        elif self.channel == STDERR:
            self.stderr += data
        elif self.channel == STATUS:
            self.status = (self.status or b"") + data

    def _frames(self):
        """What has come; False once the server has closed."""
        while (frame := ws_take(self.from_ws)) is not None:
            _, kind, body = frame
            if kind == CLOSE:
                return False
            if kind == PING:
                self.to_ws += ws_frame(PONG, body)
            elif kind != PONG and body:
                if kind == 0:       # more of the last message
                    self._message(body)
                else:
                    self.channel = body[0]
                    self._message(body[1:])
        return True

    def _read_ws(self):
        """False at the end."""
        try:
            data = self.ws.recv(65536)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return True
        self.from_ws += data
        return self._frames() and bool(data)

    def _write_ws(self):
        try:
            del self.to_ws[:self.ws.send(self.to_ws[:65536])]
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass

    def _read_ours(self):
        data = self.theirs.recv(FRAME)
        if data:
            self.to_ws += ws_frame(BINARY, bytes([STDIN]) + data)
        return bool(data)

    def _turn(self):
        """False when either side is done."""
        take = len(self.to_ours) < HELD
        give = len(self.to_ws) < HELD
        at_once = take and self.ws.pending() > 0
        reads, writes, _ = select.select(
            [s for s, on in ((self.ws, take), (self.theirs, give)) if on],
            [s for s, on in ((self.ws, self.to_ws),
                             (self.theirs, self.to_ours)) if on],
            [], 0 if at_once else None)
        if self.theirs in writes:
            del self.to_ours[:self.theirs.send(self.to_ours)]
        if self.ws in writes:
            self._write_ws()
        if self.theirs in reads and not self._read_ours():
            return False
        return not (at_once or self.ws in reads) or self._read_ws()

    def _pump(self):
        try:
            self._frames()
            while self._turn():
                pass
            self.theirs.settimeout(CALL_S)
            self.theirs.sendall(self.to_ours)
        except OSError:
            pass
        finally:
            self._close()

    def _close(self):
        try:
            self.ws.settimeout(1)
            self.ws.sendall(ws_frame(CLOSE, b"\x03\xe8"))
        except OSError:
            pass
        self.ws.close()
        self.theirs.close()

    def close(self):
        """Ends the connection; the exit code, None if nobody told."""
        try:
            self.ours.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.thread.join(WAIT_S)
        self.ours.close()
        return self.code()

    def code(self):
        """By the Status object, and by nothing else."""
        if not self.status:
            return None
        status = json.loads(self.status)
        if status["status"] == "Success":
            return 0
        return next((int(c["message"]) for c in
                     status.get("details", {}).get("causes", [])
                     if c["reason"] == "ExitCode"), None)
