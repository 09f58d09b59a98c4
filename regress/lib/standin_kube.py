# SPDX-License-Identifier: ISC

"""A stand-in for a Kubernetes API server: pods and Leases in memory, lists in
pages, watches with bookmarks, preconditions, merge patches.  It has no node: a
case says what becomes of a pod.  It can also misbehave, as servers do under
load (429, 5xx, lost connections, expired versions) and as only an enemy does
(bodies without end, lines without end)."""

import copy
import email.utils
import http.server
import json
import re
import socket
import socketserver
import threading
import time
import urllib.parse
import uuid

PATH = re.compile(r"^/(?:api/v1|apis/(?:coordination|networking)\.k8s\.io/v1)"
                  r"/namespaces/([^/]+)/(pods|leases|events|secrets|"
                  r"networkpolicies)(?:/([^/]+))?(?:/([^/]+))?$")
KINDS = {"pods": "Pod", "leases": "Lease", "events": "Event",
         "secrets": "Secret", "networkpolicies": "NetworkPolicy"}


def stamp(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def merge(target, patch):
    """RFC 7386."""
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict):
            if not isinstance(target.get(key), dict):
                target[key] = {}
            merge(target[key], value)
        else:
            target[key] = value


def workspace(state, restarts=0, last=None):
    return {"name": "workspace", "restartCount": restarts, "state": state,
            "lastState": {"terminated": last} if last else {}}


def waiting(reason, message=""):
    return {"waiting": {"reason": reason, "message": message}}


RUNNING = {"phase": "Running",
           "containerStatuses": [workspace({"running": {}})]}


class Refusal(Exception):
    def __init__(self, code, reason, message, headers=None):
        super().__init__(message)
        self.code, self.reason, self.headers = code, reason, headers or {}


class Raw(Exception):
    """Bytes to send as they are, in pieces; then the connection ends."""

    def __init__(self, pieces):
        super().__init__()
        self.pieces = pieces


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def date_time_string(self, timestamp=None):
        return email.utils.formatdate(self.server.kube.now(), usegmt=True)

    def send(self, code, body, headers=None):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(code)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def refuse(self, why):
        self.send(why.code, {
            "kind": "Status", "apiVersion": "v1", "status": "Failure",
            "message": str(why), "reason": why.reason, "code": why.code},
            why.headers)

    def serve(self):
        kube = self.server.kube
        size = int(self.headers.get("content-length") or 0)
        body = json.loads(self.rfile.read(size)) if size else None
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        try:
            kube.called(self.command, url.path, query, body)
            if url.path.endswith("/log"):
                kube.log(self, "follow" in query)
            elif query.get("watch"):
                kube.watch(self, url.path, query)
            else:
                self.send(*kube.answer(self.command, url.path, query, body))
        except Refusal as why:
            self.refuse(why)
        except Raw as raw:
            for piece in raw.pieces:
                self.wfile.write(piece)
            self.close_connection = True

    def handle_one_request(self):
        try:
            super().handle_one_request()
        except (ConnectionError, BrokenPipeError, TimeoutError):
            self.close_connection = True

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = serve


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, *_):
        pass


class Kube:
    def __init__(self):
        self.changed = threading.Condition()
        self.objects = {}       # (namespace, kind, name)
        self.version = 100
        self.history = []       # (version, type, kind, object)
        self.expired = 0        # versions up to this one are 410
        self.skew = 0           # of its clock, in seconds
        self.minor = 20         # of its version
        self.calls = []         # (method, path, query, body, time)
        self.faults = []        # functions of a call; see fault()
        self.on_create = self.run
        self.on_delete = self.remove
        self.bookmarks = True
        self.printed = []       # by any container
        self.watches = []       # sockets of those that are under way
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.kube = self
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever,
                         daemon=True).start()

    def now(self):
        return time.time() + self.skew

    # ---- what a case says ----

    def run(self, pod):
        """What a node does at best: the pod runs at once."""
        self.status(pod["metadata"]["name"], RUNNING)

    def stay(self, pod):
        """Nothing becomes of it."""

    def status(self, name, status, namespace="default"):
        def change(pod):
            pod["status"] = copy.deepcopy(status)
        self.change(name, change, namespace)

    def change(self, name, how, namespace="default", kind="pods"):
        with self.changed:
            thing = self.objects[namespace, kind, name]
            how(thing)
            self.tell("MODIFIED", kind, thing)

    def plant(self, thing, namespace="default", kind="pods"):
        """As somebody else would create it."""
        with self.changed:
            return self.create(namespace, kind, copy.deepcopy(thing))

    def remove(self, pod):
        """What a kubelet does when it has stopped everything."""
        meta = pod["metadata"]
        with self.changed:
            thing = self.objects.pop((meta["namespace"], "pods",
                                      meta["name"]), None)
            if thing is not None:
                self.tell("DELETED", "pods", thing)

    def get(self, name, namespace="default", kind="pods"):
        with self.changed:
            return copy.deepcopy(self.objects.get((namespace, kind, name)))

    def names(self, kind="pods"):
        with self.changed:
            return sorted(k[2] for k in self.objects if k[1] == kind)

    def count(self, method, end="", **query):
        with self.changed:
            return sum(m == method and p.endswith(end) and
                       all(q.get(k) == v for k, v in query.items())
                       for m, p, q, _, _ in self.calls)

    def wait(self, condition, seconds=60):
        with self.changed:
            assert self.changed.wait_for(condition, seconds), "it never came"

    def fault(self, times, does, method="", end=""):
        """The next calls of this method, to a path of this end, fail so."""
        left = [times]

        def one(m, p, q):
            if left[0] > 0 and method in ("", m) and p.endswith(end):
                left[0] -= 1
                return does
            return None
        with self.changed:
            self.faults.append(one)

    def cut_watches(self):
        with self.changed:
            for one in self.watches:
                try:
                    one.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def forget_history(self):
        """Versions until now have expired."""
        with self.changed:
            self.expired = self.version
            self.history.clear()

    # ---- what is asked ----

    def called(self, method, path, query, body):
        with self.changed:
            self.calls.append((method, path, query, body, time.monotonic()))
            self.changed.notify_all()
            does = next((d for d in (f(method, path, query)
                                     for f in self.faults) if d), None)
        if does is not None:
            raise does

    def tell(self, kind_of_event, kind, thing):
        self.version += 1
        thing["metadata"]["resourceVersion"] = str(self.version)
        self.history.append((self.version, kind_of_event, kind,
                             copy.deepcopy(thing)))
        self.changed.notify_all()

    def create(self, namespace, kind, thing):
        meta = thing.setdefault("metadata", {})
        key = namespace, kind, meta["name"]
        if key in self.objects:
            raise Refusal(409, "AlreadyExists",
                          f'{kind} "{meta["name"]}" already exists')
        meta.setdefault("uid", str(uuid.uuid4()))
        meta["namespace"] = namespace
        meta.setdefault("creationTimestamp", stamp(self.now()))
        if kind == "pods":
            thing.setdefault("status", {"phase": "Pending"})
        self.objects[key] = thing
        self.tell("ADDED", kind, thing)
        return thing

    def precondition(self, thing, wanted):
        for member in ("uid", "resourceVersion"):
            if wanted.get(member, thing["metadata"][member]) != \
                    thing["metadata"][member]:
                raise Refusal(409, "Conflict", f"{member} is another")

    def delete(self, key, body):
        thing = self.objects[key]
        self.precondition(thing, (body or {}).get("preconditions", {}))
        if key[1] != "pods":
            del self.objects[key]
        elif "deletionTimestamp" not in thing["metadata"]:
            thing["metadata"]["deletionTimestamp"] = stamp(self.now())
            self.tell("MODIFIED", key[1], thing)
        return copy.deepcopy(thing)

    def patch(self, key, body):
        thing = self.objects[key]
        self.precondition(thing, body.get("metadata", {}))
        merge(thing, body)
        self.tell("MODIFIED", key[1], thing)
        return copy.deepcopy(thing)

    def replace(self, key, body):
        self.precondition(self.objects[key], {
            "resourceVersion": body["metadata"]["resourceVersion"]})
        body["metadata"]["uid"] = self.objects[key]["metadata"]["uid"]
        self.objects[key] = copy.deepcopy(body)
        self.tell("MODIFIED", key[1], self.objects[key])
        return body

    def selected(self, namespace, kind, query):
        wanted = dict(one.split("=") for one in
                      query.get("labelSelector", "").split(",") if one)
        about = dict(one.split("=") for one in
                     query.get("fieldSelector", "").split(",") if one)
        return [copy.deepcopy(thing) for key, thing in
                sorted(self.objects.items()) if key[:2] == (namespace, kind)
                and self.matches(thing, wanted)
                and about.get("involvedObject.name") in (
                    None, thing.get("involvedObject", {}).get("name"))]

    @staticmethod
    def matches(thing, wanted):
        labels = thing["metadata"].get("labels", {})
        return all(labels.get(k) == v for k, v in wanted.items())

    def list(self, namespace, kind, query):
        things = self.selected(namespace, kind, query)
        begin = int(query.get("continue") or 0)
        end = begin + int(query.get("limit") or len(things) or 1)
        meta = {"resourceVersion": str(self.version)}
        if end < len(things):
            meta["continue"] = str(end)
        return {"kind": KINDS[kind] + "List", "apiVersion": "v1",
                "metadata": meta, "items": things[begin:end]}

    def answer(self, method, path, query, body):
        if path == "/version":
            return 200, {"major": "1", "minor": str(self.minor),
                         "gitVersion": f"v1.{self.minor}.2-standin"}
        if path.endswith("/selfsubjectaccessreviews"):
            of = body["spec"]["resourceAttributes"]
            return 201, {"status": {"allowed": of["resource"] == "pods",
                                    "reason": ""}}
        found = PATH.match(path)
        if not found:
            raise Refusal(404, "NotFound", "no such path")
        namespace, kind, name, _ = found.groups()
        created = deleted = None
        with self.changed:
            key = namespace, kind, name
            if method == "POST":
                created = copy.deepcopy(self.create(namespace, kind, body))
            elif name is None:
                return 200, self.list(namespace, kind, query)
            elif key not in self.objects:
                raise Refusal(404, "NotFound", f'{kind} "{name}" not found')
            elif method == "DELETE":
                deleted = self.delete(key, body)
            elif method == "PATCH":
                return 200, self.patch(key, body)
            elif method == "PUT":
                return 200, self.replace(key, body)
            else:
                return 200, copy.deepcopy(self.objects[key])
        if created is not None:
            if kind == "pods":
                self.on_create(created)
            return 201, created
        if kind == "pods":
            self.on_delete(deleted)
        return 200, deleted

    def log(self, handler, follow):
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        sent = 0
        while True:
            with self.changed:
                news, sent = self.printed[sent:], len(self.printed)
            for data in news:
                handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            if not follow:
                break
            with self.changed:
                self.changed.wait_for(lambda: len(self.printed) > sent, 1)
        handler.wfile.write(b"0\r\n\r\n")

    def print(self, data):
        with self.changed:
            self.printed.append(data)
            self.changed.notify_all()

    # ---- watches ----

    def watch(self, handler, path, query):
        namespace, kind = PATH.match(path).group(1, 2)
        seen = int(query["resourceVersion"])
        wanted = dict(one.split("=") for one in
                      query.get("labelSelector", "").split(",") if one)
        if seen < self.expired:
            raise Refusal(410, "Expired", "too old resource version")
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        with self.changed:
            self.watches.append(handler.connection)
            self.changed.notify_all()
        until = time.monotonic() + float(query.get("timeoutSeconds", 300))
        try:
            while time.monotonic() < until:
                seen = self.watch_on(handler, seen, namespace, kind, wanted)
            handler.wfile.write(b"0\r\n\r\n")
        finally:
            with self.changed:
                self.watches.remove(handler.connection)

    def watch_on(self, handler, seen, namespace, kind, wanted):
        with self.changed:
            self.changed.wait_for(lambda: self.version > seen, 1)
            expired = seen < self.expired
            news = [one for one in self.history if one[0] > seen]
            now = self.version
        if expired:
            self.chunk(handler, {"type": "ERROR", "object": {
                "kind": "Status", "code": 410, "reason": "Expired"}})
            raise ConnectionError
        for version, what, of, thing in news:
            if of == kind and thing["metadata"]["namespace"] == namespace \
                    and self.matches(thing, wanted):
                self.chunk(handler, {"type": what, "object": thing})
        if self.bookmarks and now > seen:
            self.chunk(handler, {"type": "BOOKMARK", "object": {
                "kind": "Pod", "metadata": {"resourceVersion": str(now)}}})
        return now

    @staticmethod
    def chunk(handler, thing):
        data = json.dumps(thing).encode() + b"\n"
        handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        handler.wfile.flush()
