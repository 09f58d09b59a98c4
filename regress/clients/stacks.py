#!/usr/bin/python3
# SPDX-License-Identifier: ISC

"""More programs as they are, in a sandbox behind the gate: compilers that fetch
what they build, runtimes from npm, gRPC with TLS and in the clear, images, and
a database whose connection is forwarded unread."""

import os
import pathlib
import pwd
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from clientlib import (ORIGIN, PACKAGES, WHO, fetch_and_send,  # noqa: E402
                       need, of_npm, origin, run_through, same, through,
                       work_for)
from case import Cases, Skip, run  # noqa: E402
from gate import FINAL  # noqa: E402
from origin import Process, authority  # noqa: E402
from origins import (MIB, crate_registry, digest, go_proxy,  # noqa: E402
                     image_registry)
from programs import PYTHON, program  # noqa: E402

cases = Cases()


# ---- Go and Rust ------------------------------------------------------------

GO = """
cat >client.go <<'END'
package main

import (
	"io"
	"net/http"
	"os"
)

func save(name string, answer *http.Response, err error) {
	if err != nil || answer.StatusCode != 200 {
		panic(name)
	}
	file, _ := os.Create(name)
	if _, err := io.Copy(file, answer.Body); err != nil {
		panic(err)
	}
}

func main() {
	answer, err := http.Get(os.Getenv("GET"))
	save("got", answer, err)
	body, _ := os.Open("body")
	answer, err = http.Post(os.Getenv("POST"), "application/octet-stream",
	    body)
	save("reply", answer, err)
}
END
go run client.go
"""


@cases.case
def go_http():
    need(program("go"))
    fetch_and_send("go", WHO, GO)


@cases.case
def go_module():
    """From a proxy of modules."""
    need(program("go"))
    web, payload = origin(), os.urandom(5 * MIB)
    go_proxy(web, payload)
    work = work_for(WHO)
    through(WHO, """
export GOFLAGS=-modcacherw GONOSUMDB='*' GOSUMDB=off GOPATH=$PWD/go
printf 'module x\\n\\nrequire standin.test/m v1.0.0\\n' >go.mod
go mod download standin.test/m
""", work, (), (), GOPROXY=web.url("/go"))
    same(digest((work / "go/pkg/mod/standin.test/m@v1.0.0/payload")
                .read_bytes()), digest(payload))


@cases.case
def rust_cargo():
    """An index by git and a crate by HTTP, built and run."""
    need(program("cargo"), program("rustc"), program("git"))
    web, payload = origin(), os.urandom(5 * MIB)
    crate_registry(web, payload)
    work = work_for(WHO)
    through(WHO, """
mkdir -p src .cargo
printf '[registries.standin]\\nindex = "%s"\\n' "$URL" >.cargo/config.toml
cat >Cargo.toml <<'END'
[package]
name = "client"
version = "0.1.0"
[dependencies]
standin = { version = "1.0", registry = "standin" }
END
cat >src/main.rs <<'END'
fn main() {
    std::fs::write("got", standin::DATA).unwrap();
}
END
export CARGO_HOME=$PWD/home
cargo run -q
""", work, (), (), URL=web.url("/git/index.git"))
    same(digest((work / "got").read_bytes()), digest(payload))


# ---- runtimes of JavaScript, from npm ---------------------------------------

FETCH = """
cat >client.mjs <<'END'
import fs from "node:fs";
import process from "node:process";
async function save(name, url, options) {
	const answer = await fetch(url, options);
	if (!answer.ok)
		throw new Error(`${name}: ${answer.status}`);
	fs.writeFileSync(name, Buffer.from(await answer.arrayBuffer()));
}
await save("got", process.env.GET);
await save("reply", process.env.POST,
    { method: "POST", body: fs.readFileSync("body") });
END
sed -i '1i import { Buffer } from "node:buffer";' client.mjs
"""
RUNTIMES = {
    "bun": ("bun/node_modules/@oven/*/bin/bun", ""),
    # It looks for a newer one of itself, if it lives long enough.
    "deno": ("deno/node_modules/@deno/*/deno", "run -A --no-remote"),
}


@cases.each(RUNTIMES)
def runtime(name):
    pattern, options = RUNTIMES[name]
    path = of_npm(pattern)
    fetch_and_send(name, WHO, FETCH + "DENO_NO_UPDATE_CHECK=1 "
                   f'"$RUNTIME" {options} client.mjs',
                   f"-x{PACKAGES}", RUNTIME=str(path))


# ---- gRPC -------------------------------------------------------------------

def grpc_server(tls):
    """An echo; (its port, an end for it)."""
    try:
        import grpc
    except ImportError:
        raise Skip("grpc for Python is not installed") from None
    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(
        "standin.Echo", {
            "Say": grpc.unary_unary_rpc_method_handler(lambda r, _: r),
            "Talk": grpc.stream_stream_rpc_method_handler(lambda r, _: r)})])
    if tls:
        cert, key = (p.read_bytes() for p in authority().leaf(ORIGIN))
        port = server.add_secure_port(
            "127.0.0.1:0", grpc.ssl_server_credentials([(key, cert)]))
    else:
        port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return port, server


GRPC = f"""
{PYTHON} - <<'END'
import os, grpc
with (grpc.secure_channel(os.environ["TO"], grpc.ssl_channel_credentials())
      if os.environ["TLS"] else grpc.insecure_channel(os.environ["TO"])) as c:
    said = c.unary_unary("/standin.Echo/Say")(b"x" * 1000000, timeout=30)
    talked = c.stream_stream("/standin.Echo/Talk")(
        iter([b"one", b"two", b"three"]), timeout=30)
    print(len(said), b" ".join(talked).decode())
    try:
        c.unary_unary("/standin.Other/Say")(b"x", timeout=30)
    except grpc.RpcError as error:
        print(error.code().name)
END
"""


@cases.each(["tls", "insecure"])
def grpc_python(name):
    """Also in the clear each call is judged: another service is denied."""
    tls = name == "tls"
    port, server = grpc_server(tls)
    try:
        out, written = run_through(
            WHO, GRPC, work_for(WHO), f'allow host "{ORIGIN}" port {port} '
            'path "/standin.Echo/*"', TO=f"{ORIGIN}:{port}",
            TLS="yes" if tls else "")
    finally:
        server.stop(None).wait(10)
    same(out.split("\n")[:2], ["1000000 one two three", "PERMISSION_DENIED"])
    same(sorted((r["kind"], r["request"]["path"], r["request"]["scheme"],
                 r["request"]["protocol"]) for r in written
                if r["kind"] in FINAL), [
        (kind, f"/standin.{path}", "https" if tls else "http", "h2")
        for kind, path in (("request_closed", "Echo/Say"),
                           ("request_closed", "Echo/Talk"),
                           ("request_denied", "Other/Say"))])


# ---- images -----------------------------------------------------------------

@cases.case
def skopeo_standin_registry():
    """An image of one layer.  What the host says of images and registries is
    not shown to a sandbox: the policy is on the command line."""
    need(program("skopeo"))
    payload = os.urandom(5 * MIB)
    image_registry(origin(), payload)
    work = work_for(WHO)
    through(WHO, """
skopeo --insecure-policy copy -q "docker://$HOST/standin:latest" dir:into
tar -xzf "$(ls -S into/* | head -n 1)"
""", work, (), (), HOST=f"{ORIGIN}:{origin().tls}")
    same(digest((work / "payload").read_bytes()), digest(payload))


# ---- a database -------------------------------------------------------------

class Postgres(Process):
    """A server of its own, with TLS; not root's, who may not run one."""

    def __init__(self):
        found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))
        if not found:
            raise Skip("postgresql is not installed")
        super().__init__("true", "egressd-postgres.")
        self.program = found[-1] / "postgres"
        data = self.dir / "data"
        self.who = {}
        if os.getuid() == 0:
            user = pwd.getpwnam("nobody")
            self.who = {"user": user.pw_uid, "group": user.pw_gid,
                        "extra_groups": []}
            os.chown(self.dir, user.pw_uid, user.pw_gid)
        done = run([found[-1] / "initdb", "-A", "trust", "-U", "regress",
                    "--no-sync", "-D", data], **self.who)
        assert done.returncode == 0, done.stdout
        for path, name in zip(authority().leaf(ORIGIN), ("crt", "key")):
            shutil.copy(path, data / f"server.{name}")
            (data / f"server.{name}").chmod(0o600)
            if self.who:
                os.chown(data / f"server.{name}", self.who["user"],
                         self.who["group"])
        self.spawn("-D", data, "-k", self.dir, "-h", "127.0.0.1", "-p",
                   self.port, "-c", "ssl=on", "-c", "fsync=off")

    def popen(self, argv, log):
        return subprocess.Popen(argv, stdout=log, stderr=log,
                                stdin=subprocess.DEVNULL, **self.who)


@cases.each(["tls", "plain"])
def psql(name):
    """Forwarded unread, since its TLS begins in the middle; ended by the client
    as it likes to, which is no failure."""
    need(program("psql"))
    with Postgres() as server:
        for _ in range(3):
            psql_once(name, server)


def psql_once(name, server):
    """Over TLS the server resets, as it does not read the end of TLS, and on
    a busy machine that is here before the client's own end."""
    out, written = run_through(
        WHO, """
psql -Atc "select repeat('x', 100000), ssl from pg_stat_ssl
    where pid = pg_backend_pid()" "$TO" | tail -c 4
""", work_for(WHO, **{"root.pem": authority().cert.read_bytes()}),
        f'allow tcp host "{ORIGIN}" port {server.port}',
        TO=f"host={ORIGIN} port={server.port} user=regress "
        "dbname=postgres sslrootcert=root.pem sslmode=" +
        ("verify-full" if name == "tls" else "disable"))
    same(out, "x|t\n" if name == "tls" else "x|f\n")
    final, = [r for r in written if r["kind"] in FINAL]
    same((final["kind"], final["reason"], final["request"]["host"],
          final["request"]["port"]),
         ("request_closed", None, ORIGIN, server.port))
    assert final["bytes_in"] > 100000, final


cases.main()
