# SPDX-License-Identifier: ISC

"""What the clients reach through the gate: nginx with files, packages and
indexes, and behind it a handler that hashes what was posted, and git."""

import base64
import gzip
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
MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"

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
        location = /v2/ {{ return 200; }}
        location /v2/ {{ default_type {manifest}; }}
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
                                    key=key, behind=self.behind.server_port,
                                    manifest=MANIFEST))
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

def tarball(path, files):
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def git_repository(web, name="standin"):
    """An empty one that takes pushes."""
    path = web.dir / "git" / f"{name}.git"
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
    packed = place / "-" / "standin-1.0.0.tgz"
    tarball(packed, {"package/package.json": json.dumps(package).encode(),
                     "package/payload": payload})
    integrity = base64.b64encode(
        hashlib.sha512(packed.read_bytes()).digest()).decode()
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


def go_proxy(web, payload):
    """A module as the proxies of Go have it, by static files."""
    place = web.root / "go" / "standin.test" / "m" / "@v"
    place.mkdir(parents=True)
    module = b"module standin.test/m\n\ngo 1.19\n"
    (place / "list").write_text("v1.0.0\n")
    (place / "v1.0.0.info").write_text(
        '{"Version":"v1.0.0","Time":"2026-01-05T00:00:00Z"}')
    (place / "v1.0.0.mod").write_bytes(module)
    with zipfile.ZipFile(place / "v1.0.0.zip", "w") as archive:
        for name, data in {"go.mod": module, "m.go": b"package m\n",
                           "payload": payload}.items():
            archive.writestr(f"standin.test/m@v1.0.0/{name}", data)


def crate_registry(web, payload):
    """An index that is a git repository, and one crate."""
    place = web.root / "crates"
    place.mkdir()
    crate = place / "standin-1.0.0.crate"
    tarball(crate, {
        "standin-1.0.0/Cargo.toml":
            b'[package]\nname = "standin"\nversion = "1.0.0"\n',
        "standin-1.0.0/src/lib.rs":
            b'pub static DATA: &[u8] = include_bytes!("payload");\n',
        "standin-1.0.0/src/payload": payload})
    tree = web.dir / "index"
    (tree / "st" / "an").mkdir(parents=True)
    (tree / "config.json").write_text(json.dumps({
        "dl": web.url("/crates/{crate}-{version}.crate")}))
    (tree / "st" / "an" / "standin").write_text(json.dumps({
        "name": "standin", "vers": "1.0.0", "deps": [], "features": {},
        "cksum": digest(crate.read_bytes()), "yanked": False}) + "\n")
    bare = git_repository(web, "index")
    for line in ("init -q -b main", "add .", "-c user.name=regress "
                 "-c user.email=regress@origin.test commit -q -m 1",
                 f"push -q {bare} main"):
        done = run(["git", "-C", tree, *line.split()])
        assert done.returncode == 0, done.stdout


def image_registry(web, payload):
    """A stand-in for a registry of images: one of one layer."""
    place = web.root / "v2" / "standin"
    for part in "manifests", "blobs":
        (place / part).mkdir(parents=True)
    layer = place / "blobs" / "layer"
    tarball(layer, {"payload": payload})
    config = json.dumps({
        "architecture": "amd64", "os": "linux", "config": {},
        "rootfs": {"type": "layers", "diff_ids": [
            f"sha256:{digest(gzip.decompress(layer.read_bytes()))}"]}})
    (place / "blobs" / "config").write_text(config)

    def blob(name, kind):
        data = (place / "blobs" / name).read_bytes()
        (place / "blobs" / name).rename(
            place / "blobs" / f"sha256:{digest(data)}")
        return {"mediaType": f"application/vnd.docker.{kind}",
                "size": len(data), "digest": f"sha256:{digest(data)}"}

    (place / "manifests" / "latest").write_text(json.dumps({
        "schemaVersion": 2, "mediaType": MANIFEST,
        "config": blob("config", "container.image.v1+json"),
        "layers": [blob("layer", "image.rootfs.diff.tar.gzip")]}))
