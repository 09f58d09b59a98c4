#
# Copyright (c) 2026 The egressd authors
#
# Permission to use, copy, modify, and distribute this software for any
# purpose with or without fee is hereby granted, provided that the above
# copyright notice and this permission notice appear in all copies.
#
# THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES
# WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF
# MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR
# ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES
# WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
# ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF
# OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
#

"""What the clients reach through the gate: nginx with files, packages and
indexes, and behind it a handler that hashes what was posted, and git."""

import base64
import hashlib
import http.server
import io
import json
import os
import subprocess
import tarfile
import threading
import zipfile

from case import run
from origin import Process, authority
from programs import PATH

MIB = 1 << 20

CONF = """
daemon off;
master_process off;
pid {dir}/pid;
error_log {dir}/error.log;
events {{ worker_connections 512; }}
http {{
    types {{ text/html html; application/octet-stream bin whl tgz deb; }}
    log_format regress '$request_method $request_uri $status';
    access_log {dir}/access.log regress;
    client_body_temp_path {dir}/body;
    proxy_temp_path {dir}/proxy;
    fastcgi_temp_path {dir}/fastcgi;
    uwsgi_temp_path {dir}/uwsgi;
    scgi_temp_path {dir}/scgi;
    client_max_body_size 64m;
    server {{
        listen 127.0.0.1:{tls} ssl;
        ssl_certificate {cert};
        ssl_certificate_key {key};
        root {dir}/root;
        location /npm/ {{ default_type application/json; }}
        location /hash/ {{ proxy_pass http://127.0.0.1:{behind}; }}
        location /git/ {{ proxy_pass http://127.0.0.1:{behind}; }}
    }}
}}
"""


def digest(data):
    return hashlib.sha256(data).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    """Speaks to nginx only, which gives each body a length."""

    def do_GET(self):
        self.git(b"")

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path.startswith("/git/"):
            self.git(body)
            return
        self.server.posted[self.path] = (len(body), digest(body))
        self.answer(200, [], digest(body).encode())

    def answer(self, status, fields, body):
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def git(self, body):
        """git's own server, a CGI program."""
        path, _, query = self.path.partition("?")
        done = subprocess.run(
            ["git", "http-backend"], input=body,
            stdout=subprocess.PIPE, check=True, env={
                "PATH": PATH, "HOME": "/nonexistent",
                "GIT_PROJECT_ROOT": str(self.server.repositories),
                "GIT_HTTP_EXPORT_ALL": "1", "REMOTE_USER": "regress",
                "PATH_INFO": path.removeprefix("/git"),
                "QUERY_STRING": query, "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING":
                    self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", "")})
        head, _, rest = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1)
                      for line in head.decode().split("\r\n"))
        status = int(fields.pop("Status", "200").split()[0])
        self.answer(status, fields.items(), rest)

    def log_message(self, *_):
        pass


class Web(Process):
    """nginx, TLS only; what it hands on, a thread of this process takes."""

    def __init__(self, name):
        super().__init__("nginx", "egressd-clients.")
        self.name, self.tls = name, self.port
        self.root = self.dir / "root"
        self.root.mkdir()
        self.data = os.urandom(MIB)
        (self.root / "data.bin").write_bytes(self.data)
        self.behind = http.server.ThreadingHTTPServer(("127.0.0.1", 0),
                                                      Handler)
        self.behind.posted = {}
        self.behind.repositories = self.dir / "git"
        threading.Thread(target=self.behind.serve_forever,
                         daemon=True).start()
        cert, key = authority().leaf(name)
        conf = self.dir / "nginx.conf"
        conf.write_text(CONF.format(dir=self.dir, tls=self.tls, cert=cert,
                                    key=key, behind=self.behind.server_port))
        self.spawn("-c", conf, "-p", self.dir)

    def end(self):
        super().end()
        self.behind.shutdown()
        self.behind.server_close()

    def url(self, path):
        return f"https://{self.name}:{self.tls}{path}"

    def posted(self, path):
        """Length and hash of what was posted there; None if nothing was."""
        return self.behind.posted.get(path)

    def log(self):
        """(method, path, status) of every request so far."""
        path = self.dir / "access.log"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(m, p, int(s)) for m, p, s in map(str.split, lines)]


# ---- packages, each with a payload that does not shrink ---------------------

def git_repository(web):
    """An empty one that takes pushes."""
    path = web.dir / "git" / "standin.git"
    done = run(["git", "init", "-q", "--bare", "-b", "main", path])
    assert done.returncode == 0, done.stdout
    return path


def wheel(web, payload):
    """An index in the simple form, with one wheel."""
    name, info = "standin-1.0-py3-none-any.whl", "standin-1.0.dist-info"
    files = {
        "standin/__init__.py": b"",
        "standin/payload": payload,
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: standin\n"
                            b"Version: 1.0\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: regress\n"
                         b"Root-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{n},,\n" for n in [*files, f"{info}/RECORD"])
    index = web.root / "simple" / "standin"
    index.mkdir(parents=True)
    with zipfile.ZipFile(index / name, "w") as archive:
        for path, data in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(path, data)
    have = digest((index / name).read_bytes())
    (index / "index.html").write_text(
        f'<!DOCTYPE html><a href="{name}#sha256={have}">{name}</a>\n')


def npm_registry(web, payload):
    """A stand-in for a registry: one document, one tarball."""
    package = {"name": "standin", "version": "1.0.0"}
    place = web.root / "npm"
    (place / "-").mkdir(parents=True)
    tarball = place / "-" / "standin-1.0.0.tgz"
    with tarfile.open(tarball, "w:gz", compresslevel=1) as archive:
        for name, data in {"package.json": json.dumps(package).encode(),
                           "payload": payload}.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    integrity = base64.b64encode(
        hashlib.sha512(tarball.read_bytes()).digest()).decode()
    (place / "standin").write_text(json.dumps({
        "name": "standin", "dist-tags": {"latest": "1.0.0"},
        "versions": {"1.0.0": {**package, "dist": {
            "tarball": web.url("/npm/-/standin-1.0.0.tgz"),
            "integrity": f"sha512-{integrity}"}}}}))


def apt_repository(web, path, payload):
    """A flat one, unsigned, with one package."""
    control = ("Package: standin\nVersion: 1.0\nArchitecture: all\n"
               "Maintainer: regress <regress@origin.test>\n"
               "Description: a payload\n")
    tree = web.dir / "deb" / path[1:]
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN" / "control").write_text(control)
    (tree / "payload").write_bytes(payload)
    place = web.root / path[1:]
    place.mkdir()
    package = place / "standin_1.0_all.deb"
    done = run(["dpkg-deb", "--root-owner-group", "-Znone", "-b", tree,
                package])
    assert done.returncode == 0, done.stdout
    data = package.read_bytes()
    index = (f"{control}Filename: {package.name}\nSize: {len(data)}\n"
             f"SHA256: {digest(data)}\n").encode()
    (place / "Packages").write_bytes(index)
    (place / "Release").write_text(
        "Date: Mon, 05 Jan 2026 00:00:00 UTC\n"
        f"SHA256:\n {digest(index)} {len(index)} Packages\n")
