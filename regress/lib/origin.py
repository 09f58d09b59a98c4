# SPDX-License-Identifier: ISC

"""Origins to reach through the gate: their certificates, and nginx."""

import atexit
import functools
import pathlib
import shutil
import socket
import subprocess
import tempfile

from case import Skip, run
from daemon import WAIT_S, free_port, until


class Authority:
    """A root that signs what a case wants, right or wrong."""

    def __init__(self, directory, name):
        self.dir = pathlib.Path(directory)
        self.name = name
        self.cert = self.dir / f"{name}.pem"
        self.key = self.dir / f"{name}.key"
        self.openssl("req", "-x509", *self.fresh(self.key), "-subj",
                     f"/CN=regress {name}", "-days", "30", "-addext",
                     "keyUsage=critical,keyCertSign", "-out", self.cert)

    @staticmethod
    def fresh(key):
        return ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                "-nodes", "-keyout", key)

    @staticmethod
    def openssl(*args):
        result = run(["openssl", *args])
        assert result.returncode == 0, result.stdout

    def leaf(self, *names, days=10):
        """A certificate for names or addresses; (certificate, key)."""
        cert, key, request, more = (
            self.dir / f"{self.name}-{'+'.join(names)}-{days}.{kind}"
            for kind in ("pem", "key", "csr", "ext"))
        if cert.exists():
            return cert, key
        more.write_text("subjectAltName=" + ",".join(
            ("IP:" if n.replace(".", "").isdigit() else "DNS:") + n
            for n in names))
        self.openssl("req", "-new", *self.fresh(key), "-subj", "/CN=regress",
                     "-out", request)
        if days < 0:
            self.sign_ended(request, more, cert)
            return cert, key
        self.openssl("x509", "-req", "-in", request, "-CA", self.cert,
                     "-CAkey", self.key, "-CAcreateserial", "-days", days,
                     "-extfile", more, "-out", cert)
        return cert, key

    def sign_ended(self, request, more, cert):
        """Of its commands only ca makes, in every version, what has ended."""
        conf, index = self.dir / "ca.conf", self.dir / "index"
        index.touch()
        conf.write_text(f"""[ca]
default_ca = here
[here]
database = {index}
new_certs_dir = {self.dir}
rand_serial = yes
default_md = sha256
policy = any
[any]
commonName = supplied
""")
        self.openssl("ca", "-batch", "-notext", "-config", conf, "-cert",
                     self.cert, "-keyfile", self.key, "-in", request,
                     "-extfile", more, "-startdate", "20200101000000Z",
                     "-enddate", "20200201000000Z", "-out", cert)


@functools.cache
def authority(name="root"):
    """Authorities of this run, by name; gone when it is over."""
    directory = tempfile.mkdtemp(prefix="egressd-pki.")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return Authority(directory, name)


def reachable(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Process:
    """A server that is a program of its own, on its port."""

    def __init__(self, name, prefix):
        self.program = shutil.which(name, path="/usr/sbin:/usr/bin:"
                                    "/usr/local/bin:/sbin:/bin")
        if self.program is None:
            raise Skip(f"{name} is not installed")
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix=prefix))
        self.port = free_port()

    def spawn(self, *argv):
        with open(self.dir / "log", "wb") as log:
            self.process = self.popen([self.program, *map(str, argv)], log)
        try:
            until(f"{self.program} listens", self.listens)
        except BaseException:
            self.end()
            raise

    def popen(self, argv, log):
        return subprocess.Popen(argv, stdout=log, stderr=log,
                                stdin=subprocess.DEVNULL)

    def listens(self):
        assert self.process.poll() is None, self.log()
        return reachable(self.port)

    def log(self):
        return (self.dir / "log").read_text(errors="replace")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(WAIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(WAIT_S)
        shutil.rmtree(self.dir, ignore_errors=True)


NGINX = """
daemon off;
master_process off;
pid {dir}/pid;
error_log {dir}/error.log;
events {{ worker_connections 512; }}
http {{
    types {{ text/plain txt; application/octet-stream bin; }}
    log_format regress '$connection $connection_requests '
        '$ssl_session_reused $request_method $uri $server_protocol';
    access_log {dir}/access.log regress;
    client_body_temp_path {dir}/body;
    proxy_temp_path {dir}/proxy;
    fastcgi_temp_path {dir}/fastcgi;
    uwsgi_temp_path {dir}/uwsgi;
    scgi_temp_path {dir}/scgi;
    client_max_body_size 0;
    if_modified_since before;
    keepalive_requests {requests};
    server {{
        listen 127.0.0.1:{port};
        listen 127.0.0.1:{tls} ssl{http2};
        ssl_certificate {cert};
        ssl_certificate_key {key};
        root {dir}/root;
        location /none {{ return 204; }}
        location /moved {{ return 302 https://evil.test/; }}
        location /gzip {{ gzip on; gzip_types text/plain; gzip_min_length 1;
            alias {dir}/root; }}
        location /put {{ dav_methods PUT DELETE;
            create_full_put_path on; }}
    }}
}}
"""


class Nginx(Process):
    """A real server, in the clear and with TLS."""

    def __init__(self, cert, key, requests=1000, h2=False):
        super().__init__("nginx", prefix="egressd-nginx.")
        self.root = self.dir / "root"
        self.root.mkdir()
        self.tls = free_port()
        conf = self.dir / "nginx.conf"
        conf.write_text(NGINX.format(dir=self.dir, port=self.port,
                                     tls=self.tls, cert=cert, key=key,
                                     http2=" http2" if h2 else "",
                                     requests=requests))
        self.spawn("-c", conf, "-p", self.dir)

    def listens(self):
        return super().listens() and reachable(self.tls)

    def served(self):
        """A line per request: connection, its number there, resumed (r or
        .), method, path, version."""
        path = self.dir / "access.log"
        return [line.split() for line in path.read_text().splitlines()]
