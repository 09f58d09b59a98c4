# SPDX-License-Identifier: ISC

"""Origins of the world that speak HTTP/2, and a client of Python's."""

import contextlib
import socket
import ssl
from unittest import mock

from case import Skip
from daemon import WAIT_S
from origin import Process

NODE = """
const crypto = require('crypto'), fs = require('fs');
const [version, port, cert, key] = process.argv.slice(2);
const tls = { cert: fs.readFileSync(cert), key: fs.readFileSync(key) };

function cut(res) {
    if (res.stream && res.stream.close)
        res.stream.close(2);
    else
        res.socket.destroy();
}

function handle(req, res) {
    const [, what, n] = req.url.split('/');
    res.setHeader('x-version', req.httpVersion);
    if (what === 'hash') {
        const hash = crypto.createHash('sha256');
        req.on('data', (data) => hash.update(data));
        req.on('end', () => res.end(hash.digest('hex')));
    } else if (what === 'stream') {
        let left = Number(n);
        const timer = setInterval(() => {
            res.write(Buffer.alloc(1000, 97));
            if (--left === 0) {
                clearInterval(timer);
                res.end();
            }
        }, 10);
    } else if (what === 'trailers') {
        res.setHeader('trailer', 'x-sum');
        res.write('hello');
        res.addTrailers({ 'x-sum': '5' });
        res.end();
    } else if (what === 'cut') {
        res.setHeader('content-length', '1000');
        res.write('half', () => setTimeout(() => cut(res), 50));
    } else {
        res.statusCode = what === 'ok' ? 200 : 404;
        res.end(what);
    }
}

const server = version === 'h2' ?
    require('http2').createSecureServer(tls, handle) :
    require('https').createServer(tls, handle);
server.listen(Number(port), '127.0.0.1');
"""


class Nghttpd(Process):
    """nghttp2's server: HTTP/2 only; files of root, uploads come back."""

    def __init__(self, cert, key, *more):
        super().__init__("nghttpd", prefix="egressd-nghttpd.")
        self.root = self.dir / "root"
        self.root.mkdir()
        self.spawn("-a", "127.0.0.1", "-v", "-d", self.root, "--echo-upload",
                   *more, self.port, key, cert)


class Node(Process):
    """Node's server of one version."""

    def __init__(self, cert, key, version):
        super().__init__("node", prefix="egressd-node.")
        script = self.dir / "origin.js"
        script.write_text(NODE)
        self.spawn(script, version, self.port, cert, key)


@contextlib.contextmanager
def httpx_client(gate, version):
    """httpx, which finds every name at the gate."""
    try:
        import httpx
    except ImportError:
        raise Skip("python3-httpx is not installed") from None
    real = socket.create_connection

    def connect(_, *args, **kwargs):
        return real(("127.0.0.1", gate.port(15001)), *args, **kwargs)

    with mock.patch("socket.create_connection", connect), httpx.Client(
            http2=version == "h2", http1=version == "h1", trust_env=False,
            timeout=WAIT_S,
            verify=ssl.create_default_context(cafile=str(gate.ca))) as client:
        yield client
