# SPDX-License-Identifier: ISC

"""Keys, certificates and kubeconfigs of a node that lives for one test."""

import base64
import json
import subprocess

CONFIG = "[req]\ndistinguished_name = dn\n[dn]\n"
EC = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
# Who may do all: the tests, and the API server at the kubelet.
ALL = "/O=system:masters"


class Authority:
    """In a folder: NAME.key and NAME.crt of each."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(mode=0o700)
        (folder / "openssl.cnf").write_text(CONFIG)
        self._make("ca", "/CN=egressd test", [
            "basicConstraints=critical,CA:TRUE",
            "keyUsage=critical,keyCertSign,cRLSign"], [])

    def _make(self, name, subject, extensions, by):
        subprocess.run(
            ["openssl", "req", "-x509", "-nodes", *EC, "-days", "7",
             "-config", "openssl.cnf", "-keyout", f"{name}.key",
             "-out", f"{name}.crt", "-subj", subject, *by,
             *(word for e in extensions for word in ("-addext", e))],
            cwd=self.folder, check=True, stderr=subprocess.DEVNULL)

    def leaf(self, name, subject, names=()):
        """For a server if it has names, for a client in any case."""
        use = "serverAuth,clientAuth" if names else "clientAuth"
        extensions = ["keyUsage=critical,digitalSignature",
                      f"extendedKeyUsage={use}"]
        if names:
            extensions.append(f"subjectAltName={','.join(names)}")
        self._make(name, subject, extensions,
                   ["-CA", "ca.crt", "-CAkey", "ca.key"])

    def signer(self, name):
        """A pair of keys without a certificate, for tokens."""
        private = self.folder / f"{name}.key"
        subprocess.run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-out", private],
                       check=True, stderr=subprocess.DEVNULL)
        subprocess.run(["openssl", "pkey", "-in", private, "-pubout",
                        "-out", self.folder / f"{name}.pub"], check=True)

    def _inline(self, name):
        data = (self.folder / name).read_bytes()
        return base64.b64encode(data).decode()

    def kubeconfig(self, name, server):
        """JSON is YAML too."""
        path = self.folder / f"{name}.kubeconfig"
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {
                "server": server,
                "certificate-authority-data": self._inline("ca.crt")}}],
            "users": [{"name": name, "user": {
                "client-certificate-data": self._inline(f"{name}.crt"),
                "client-key-data": self._inline(f"{name}.key")}}],
            "contexts": [{"name": "test", "context": {
                "cluster": "test", "user": name}}]}, indent=1))
        path.chmod(0o600)


def make(folder, node, address, service):
    """All that one node needs."""
    ca = Authority(folder)
    ca.leaf("apiserver", "/CN=kube-apiserver", [
        "DNS:kubernetes", "DNS:kubernetes.default",
        "DNS:kubernetes.default.svc", f"IP:{service}", f"IP:{address}",
        "IP:127.0.0.1"])
    ca.leaf("kubelet", f"/O=system:nodes/CN=system:node:{node}",
            [f"DNS:{node}", f"IP:{address}"])
    ca.leaf("controller", "/CN=system:kube-controller-manager")
    ca.leaf("scheduler", "/CN=system:kube-scheduler")
    ca.leaf("admin", f"{ALL}/CN=admin")
    ca.signer("account")
    for name in ("kubelet", "controller", "scheduler", "admin"):
        ca.kubeconfig(name, f"https://{address}:6443")
