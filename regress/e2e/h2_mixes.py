#!/usr/bin/python3
# SPDX-License-Identifier: ISC

"""Every mixture of versions: a client of HTTP/1 or 2, an origin of HTTP/1 or
2.  The programs are those of the world where they can be made to do it, else
stand-ins.  Bodies are the same to the byte, and each request has its one
record."""

import contextlib
import pathlib
import re
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases, Skip, run  # noqa: E402
from check import (MIB, broken, digest, noise, one_final_each,  # noqa: E402
                   stands)
from daemon import SANITIZED, WAIT_S, until  # noqa: E402
from gate import GOOD, Broken, Gate  # noqa: E402
from origin import Nginx, authority  # noqa: E402
from origin_h2 import Nghttpd, Node, httpx_client  # noqa: E402
from standin_any import MIXES, mixed  # noqa: E402

cases = Cases()
PROTOCOL = {"h1": "http/1.1", "h2": "h2"}
SERVED = {"h1": "HTTP/1.1", "h2": "HTTP/2.0"}
BIG = 64 * MIB


def checked(gate, path, version, status=200, **more):
    """The one final record of a request that went well."""
    record = gate.final(path=path, **more)
    request = record["request"]
    assert (record["kind"], request["protocol"],
            request["response_status"]) == (
        "request_closed", PROTOCOL[version], status), record
    return record


# ---- programs of the world --------------------------------------------------

class Real:
    """A gate before an origin that is a program, at its port."""

    def __init__(self, origin, port):
        self.origin, self.port = origin, port
        self.gate = Gate(f'allow host "{GOOD}" port {port}',
                         authority().cert)

    def __enter__(self):
        self.gate.__enter__()
        return self

    def __exit__(self, *why):
        self.gate.__exit__(*why)

    def url(self, path):
        return f"https://{GOOD}:{self.port}{path}"

    def curl(self, version, path, *args, fails=False):
        """The body and the status; with fails its exit status."""
        out = self.gate.dir / "out"
        out.write_bytes(b"")
        flag = {"h1": "--http1.1", "h2": "--http2"}[version]
        result = run(["curl", "-sS", flag, "--cacert", self.gate.ca,
                      "--noproxy", "*", "--connect-to",
                      f"::127.0.0.1:{self.gate.port(15001)}", "-o", out,
                      "-w", "%{http_code} %{http_version}", *args,
                      self.url(path)])
        if fails:
            return out.read_bytes(), result.returncode
        assert result.returncode == 0, result.stdout
        status, spoken = result.stdout.split()
        assert spoken == {"h1": "1.1", "h2": "2"}[version], result.stdout
        return out.read_bytes(), int(status)

    def nghttp(self, path, *args):
        """nghttp's own account of what came, and the body."""
        base = ["nghttp", "-t", str(WAIT_S), "-H",
                f":authority: {GOOD}:{self.port}"]
        url = f"https://127.0.0.1:{self.gate.port(15001)}{path}"
        result = subprocess.run(base + [*map(str, args), url], check=True,
                                capture_output=True, timeout=2 * WAIT_S)
        return result.stdout


@contextlib.contextmanager
def before_nginx(version, **how):
    with Nginx(*authority().leaf(GOOD), h2=version == "h2", **how) as nginx:
        with Real(nginx, nginx.tls) as real:
            yield real


@contextlib.contextmanager
def before(server):
    with server as origin, Real(origin, origin.port) as real:
        yield real


def nghttpd(*args):
    return Nghttpd(*authority().leaf(GOOD), *args)


@cases.each(MIXES)
def nginx_answers(mix):
    """GET, HEAD and statuses with and without a body; curl."""
    client, server = mix.split("-")
    with before_nginx(server) as real:
        (real.origin.root / "a.txt").write_bytes(b"A" * 1000)
        for path, args, want in (
                ("/a.txt", [], (b"A" * 1000, 200)),
                ("/a.txt?head", ["-I"], (None, 200)),
                ("/a.txt?part", ["-r", "10-19"], (b"A" * 10, 206)),
                ("/a.txt?old", ["-H", "If-Modified-Since: "
                                "Fri, 01 Jan 2100 00:00:00 GMT"], (b"", 304)),
                ("/none", [], (b"", 204)), ("/no.txt", [], (None, 404))):
            body, status = real.curl(client, path, *args)
            assert status == want[1], f"{path}: {status}"
            assert want[0] in (None, body), f"{path}: {body[:100]}"
            record = checked(real.gate, path, client, status)
            got = record["request"]["response_body"]
            assert (got or {"bytes": 0})["bytes"] == \
                (0 if "-I" in args else len(body)), record
        one_final_each(real.gate, 6)
        assert {line[5] for line in real.origin.served()} == {SERVED[server]}


@cases.each(MIXES)
def nginx_upload(mix):
    """5 MiB up and down again, with a length and without one."""
    client, server = mix.split("-")
    body = noise(5 * MIB)
    with before_nginx(server) as real:
        source = real.gate.dir / "source"
        source.write_bytes(body)
        # Without a length nginx wants to be asked in HTTP/1.1's chunks.
        for name, more in (("length", []), ("none", [
                "-H", "Transfer-Encoding: chunked"])):
            path = f"/put/{name}.bin"
            _, status = real.curl(client, path, "-T", source, *more)
            assert status == 201, status
            assert digest((real.origin.root / path[1:]).read_bytes()) == \
                digest(body), name
            assert digest(real.curl(client, path)[0]) == digest(body), name
            record = checked(real.gate, path, client, 201, method="PUT")
            assert record["request"]["request_body"]["bytes"] == len(body)
            assert record["bytes_out"] > len(body), record["bytes_out"]
            record = checked(real.gate, path, client, method="GET")
            assert record["request"]["response_body"]["bytes"] == len(body)
            assert record["bytes_in"] > len(body), record["bytes_in"]
        one_final_each(real.gate, 4)


@cases.each(MIXES)
def node(mix):
    """A 5 MiB POST, a streamed answer, trailers, 404, and an answer that
    breaks off."""
    client, server = mix.split("-")
    with before(Node(*authority().leaf(GOOD), server)) as real:
        body = noise(5 * MIB)
        source = real.gate.dir / "source"
        source.write_bytes(body)
        got, status = real.curl(client, "/hash", "--data-binary",
                                f"@{source}", "-H", "Expect:")
        assert (got.decode(), status) == (digest(body), 200)
        got, status = real.curl(client, "/stream/20")
        assert (got, status) == (b"a" * 20000, 200)
        assert real.curl(client, "/trailers") == (b"hello", 200)
        assert real.curl(client, "/gone") == (b"gone", 404)
        got, code = real.curl(client, "/cut", fails=True)
        # An HTTP/2 stream's error, or an answer shorter than it said.
        assert code in (18, 56, 92), f"curl takes it for whole: {code}"
        assert b"half".startswith(got), got
        for path, status, count in (("/hash", 200, 64),
                                    ("/stream/20", 200, 20000),
                                    ("/trailers", 200, 5), ("/gone", 404, 4)):
            record = checked(real.gate, path, client, status)
            assert record["request"]["response_body"]["bytes"] == count
        headers = record["request"]["response_headers"]
        assert {n.lower(): v for n, v in headers.items()}["x-version"] == \
            {"h1": "1.1", "h2": "2.0"}[server], headers
        broken(real.gate.final(path="/cut"))
        one_final_each(real.gate, 5)


@cases.each(["h1", "h2"])
def nghttp_client(server):
    """nghttp: several at once, uploads with a trailer, with padding."""
    with before_nginx(server) as real:
        body = noise(MIB)
        (real.origin.root / "a.bin").write_bytes(body)
        assert digest(real.nghttp("/a.bin")) == digest(body)
        said = real.nghttp("/a.bin", "-ns", "-m", "20").decode()
        assert len(re.findall(r" 200 +1M /a.bin", said)) == 20, said
        source = real.gate.dir / "source"
        source.write_bytes(body)
        ways = [[], ["-b", "255"], ["--no-content-length"]]
        if server == "h1":      # nginx has none for trailers in HTTP/2
            ways.append(["--trailer", "x-sum: 1"])
        for more in ways:
            name = f"{len(more)}{len(''.join(more))}"
            real.nghttp(f"/put/{name}", "-H", ":method: PUT", "-d", source,
                        *more)
            assert (real.origin.root / "put" / name).read_bytes() == body, \
                more
        one_final_each(real.gate, 21 + len(ways))
        assert {r["kind"] for r in real.gate.finals()} == {"request_closed"}


@cases.each(["h1", "h2"])
def nghttpd_origin(client):
    """nghttpd: files, trailers, uploads that come back as they arrive."""
    body = noise(5 * MIB)
    with before(nghttpd("--trailer", "x-sum: 17", "--no-content-length",
                        "--early-response")) as real:
        (real.origin.root / "a.bin").write_bytes(body)
        assert digest(real.curl(client, "/a.bin")[0]) == digest(body)
        assert real.curl(client, "/no")[1] == 404
        assert real.curl(client, "/a.bin?head", "-I")[1] == 200
        source = real.gate.dir / "source"
        source.write_bytes(body)
        got, status = real.curl(client, "/up", "--data-binary", f"@{source}")
        assert (digest(got), status) == (digest(body), 200)
        if client == "h2":
            # With a head of several frames.
            said = real.nghttp("/a.bin?t", "-v", "-n", "--continuation"
                               ).decode(errors="replace")
            assert "x-sum: 17" in said, said[-800:]
        else:
            with real.gate.tls() as wire:
                wire.send(f"GET /a.bin?t HTTP/1.1\r\nHost: {GOOD}:"
                          f"{real.port}\r\nTE: trailers\r\n\r\n".encode())
                assert digest(wire.answer().body) == digest(body)
                assert wire.trailers.lower() == b"x-sum: 17\r\n", \
                    wire.trailers
        for path, status in (("/a.bin", 200), ("/no", 404), ("/up", 200),
                             ("/a.bin?head", 200), ("/a.bin?t", 200)):
            checked(real.gate, path, client, status)
        one_final_each(real.gate, 5)


@cases.each(["h1", "h2"])
def h2load(server):
    """Thousands of requests over a few connections, each with its record."""
    count = 300 if SANITIZED else 3000
    with before_nginx(server, requests=100000) as real:
        (real.origin.root / "a.txt").write_bytes(b"A" * 100)
        result = run(["h2load", "-n", str(count), "-c", "4", "-m", "25",
                      "--connect-to", f"127.0.0.1:{real.gate.port(15001)}",
                      real.url("/a.txt")])
        assert f"{count} succeeded, 0 failed, 0 errored" in result.stdout, \
            result.stdout
        one_final_each(real.gate, count)
        assert {(r["kind"], r["request"]["protocol"],
                 r["request"]["response_body"]["bytes"])
                for r in real.gate.finals()} == {("request_closed", "h2",
                                                  100)}
        connections = {line[0] for line in real.origin.served()}
        print(f"# {count} requests over {len(connections)} connections to "
              "the origin")
        assert len(connections) <= 110, len(connections)


@cases.each(MIXES)
def httpx(mix):
    """Python's client: GET, HEAD, POST, a streamed upload and answer."""
    client, server = mix.split("-")
    body = noise(5 * MIB)

    def serve(stream):
        got = stream.body()
        stream.answer(200, [("x-method", stream.method)],
                      end=stream.method == "HEAD")
        if stream.method == "HEAD":
            return
        for at in range(0, len(got), 100000):
            stream.send(got[at:at + 100000])
        stream.end()

    with mixed(mix, serve) as both, \
            httpx_client(both.gate, client) as asker:
        url = f"https://{both.host()}"
        pieces = (body[at:at + 70000] for at in range(0, len(body), 70000))
        for how, method, content in (
                ("get", "GET", None), ("head", "HEAD", None),
                ("post", "POST", body), ("put", "PUT", pieces)):
            got = asker.request(method, f"{url}/{how}", content=content)
            assert got.status_code == 200, got
            assert got.http_version == {"h1": "HTTP/1.1",
                                        "h2": "HTTP/2"}[client], got
            assert got.headers["x-method"] == method
            assert digest(got.content) == digest(body if content else b"")
            record = checked(both.gate, f"/{how}", client)
            assert record["request"]["request_body"]["bytes"] == (
                len(body) if content else 0), record
        one_final_each(both.gate, 4)


# ---- what the world's programs cannot be made to do -------------------------

def echo(stream):
    """The body back, and its length and the trailers after it."""
    body = stream.body()
    sums = [("x-sum", str(len(body))), *(
        (f"x-got-{n}", v) for n, v in stream.trailers)]
    stream.answer(200, [("trailer", ", ".join(n for n, _ in sums))])
    stream.send(body)
    stream.end(sums)


@cases.each(MIXES)
def trailers(mix):
    """Up and down; with much, with little and with nothing before them."""
    with mixed(mix, echo) as both, both.connect() as client:
        for size in (0, 5, 100000, 3 * MIB):
            body = noise(size)
            stream = client.request(f"/{size}", method="POST", end=False,
                                    fields=[("te", "trailers")])
            stream.send(body)
            stream.end([("x-up", f"u{size}")])
            assert stream.head() == 200
            assert digest(stream.body()) == digest(body), size
            assert dict(stream.trailers) == {
                "x-sum": str(size), "x-got-x-up": f"u{size}"}, stream.trailers
            checked(both.gate, f"/{size}", both.client)


FORBIDDEN = ("host", "content-length", "transfer-encoding", "authorization",
             "cookie", "connection", "te", "trailer", "content-type",
             "x-original-url", "forwarded", ":path", ":status")


@cases.each(MIXES)
def trailers_that_are_none(mix):
    """What would change the meaning of what was judged is no trailer, in
    neither direction."""
    names = [n for n in FORBIDDEN if n[0] != ":"]

    def serve(stream):
        stream.body()
        stream.answer(200)
        stream.send(b"hello")
        stream.end([(n, "1") for n in names] + [("x-good", "1")])

    with mixed(mix, serve) as both, both.connect() as client:
        for number in range(2):
            stream = client.request(f"/{number}", method="POST", end=False)
            stream.send(b"hi")
            bad = names if number else names[:1]
            with contextlib.suppress(Broken):
                stream.end([(n, "1") for n in bad] + [("x-good", "1")])
                assert stream.head() in (200, 400)
                if stream.status == 200:
                    assert stream.body() == b"hello"
                    assert {n for n, _ in stream.trailers} <= {"x-good"}, \
                        stream.trailers
            if both.client == "h1":
                break       # the connection may be gone
        for asked in both.asked():
            assert {n for n, _ in asked.trailers} <= {"x-good"}, \
                asked.trailers


@cases.each(MIXES)
def streamed(mix):
    """Each piece of an answer is there before the next one is sent, and each
    piece of a request."""
    turn = threading.Semaphore(0)

    def serve(stream):
        stream.answer(200)
        while data := stream.read():
            assert turn.acquire(timeout=WAIT_S)
            stream.send(data.upper())
        stream.end()

    with mixed(mix, serve) as both, both.connect() as client:
        stream = client.request("/s", method="POST", end=False)
        assert stream.head() == 200
        for number in range(50):
            piece = f"piece {number} ".encode() * (1 + number)
            stream.send(piece)
            turn.release()
            got = b""
            while len(got) < len(piece):
                turn.release()
                got += stream.read()
            assert got == piece.upper(), got
        for _ in range(10):
            turn.release()
        stream.end()
        assert stream.body() == b""
        record = checked(both.gate, "/s", both.client)
        assert record["request"]["request_body"]["bytes"] == \
            record["request"]["response_body"]["bytes"], record


@cases.each(MIXES)
def interim(mix):
    """Early hints come early; 100 when it is the origin's to give."""
    go = threading.Event()

    def serve(stream):
        if stream.get("expect"):
            stream.answer(100)
            body = stream.body()
        else:
            stream.answer(103)
            assert go.wait(WAIT_S)
            body = stream.body()
        stream.answer(200)
        stream.send(body, True)

    with mixed(mix, serve) as both, both.connect() as client:
        stream = client.request("/hints")
        if both.client == "h2":
            client.wait("the hints", lambda: stream.interim == [103])
        go.set()
        assert stream.head() == 200 and stream.interim == [103]
        stream.body()
        stream = client.request("/expect", method="POST", end=False,
                                fields=[("expect", "100-continue"),
                                        ("content-length", "5")])
        if both.client == "h2":
            client.wait("100", lambda: stream.interim == [100])
        stream.send(b"hello", True)
        assert stream.head() == 200 and stream.body() == b"hello"
        assert stream.interim == [100], stream.interim
        one_final_each(both.gate, 2)


@cases.each(MIXES)
def early_answer(mix):
    """An answer to a request that is not all there: the client has it, and
    the next request is served."""
    def serve(stream):
        if stream.path == "/early":
            stream.answer(413, [("content-length", "4")])
            stream.send(b"much", True)
        else:
            stream.body()
            stream.answer(200, [("content-length", "2")])
            stream.send(b"ok", True)

    with mixed(mix, serve) as both:
        with both.connect() as client:
            stream = client.request("/early", method="POST", end=False)
            with contextlib.suppress(Broken):
                stream.send(b"x" * 10000)
            assert stream.head() == 413 and stream.body() == b"much"
            if both.client == "h2":
                assert client.fetch("/next").whole == b"ok"
        with both.connect() as client:
            assert client.fetch("/other").whole == b"ok"
        assert both.gate.final(path="/early")["request"][
            "response_status"] == 413


@cases.each(MIXES)
def origin_resets(mix):
    """In the middle of its answer: the client does not take the half for the
    whole.  Before it: 502."""
    sent = threading.Event()

    def serve(stream):
        stream.body()
        if stream.path == "/early":
            stream.reset(2)
        stream.answer(200)
        stream.send(b"half")
        assert sent.wait(WAIT_S)
        stream.reset(2)

    with mixed(mix, serve) as both:
        with both.connect() as client:
            stream = client.request("/within")
            assert stream.head() == 200 and stream.read() == b"half"
            sent.set()
            try:
                rest = stream.body()
                raise AssertionError(f"it looks whole: {rest}")
            except Broken:
                pass
            record = both.gate.final(path="/within")
            broken(record)
            assert record["request"]["response_body"]["bytes"] == 4, record
            assert record["request"]["response_status"] == 200, record
        with both.connect() as client:
            stream = client.fetch("/early", method="POST")
            assert stream.status == 502, stream.status
            record = both.gate.final(path="/early")
            assert record["kind"] == "request_failed", record
            assert record["reason"].split(":")[0] in (
                "stream_broken", "upstream_unreachable"), record
        one_final_each(both.gate, 2)


@cases.each(MIXES)
def client_resets(mix):
    """In the middle of its request, of the wait, and of the answer: the
    origin notices, and each is one failed request."""
    lost = {}
    noticed = threading.Semaphore(0)

    def serve(stream):
        try:
            if stream.path == "/request":
                stream.body()
            elif stream.path == "/wait":
                while True:
                    noticed_by_reading(stream)
            else:
                stream.answer(200)
                while True:
                    stream.send(bytes(65536))
        except (Broken, OSError) as error:
            lost[stream.path] = error
            noticed.release()
            raise

    # One who has asked in HTTP/1 and waits is not read from.
    paths = ["/request", "/answer"] + ["/wait"] * (mix[:2] == "h2")
    with mixed(mix, serve) as both:
        for path in paths:
            with both.connect() as client:
                stream = client.request(
                    path, method="POST" if path == "/request" else "GET",
                    end=path != "/request")
                if path == "/request":
                    stream.send(b"x" * 1000)
                until("the origin has it", lambda: any(
                    s.path == path for s in both.asked()))
                if path == "/answer":
                    assert stream.head() == 200 and stream.read()
                stream.reset(8)
                broken(both.gate.final(path=path))
            assert noticed.acquire(timeout=WAIT_S), f"{path}: not noticed"
        assert set(lost) == set(paths)
        one_final_each(both.gate, len(paths))


def noticed_by_reading(stream):
    """Wait for the end of one who has asked and says no more."""
    if hasattr(stream, "peer"):
        stream.gone()
        stream.fail()
    stream.until(b"never")


@cases.each(MIXES)
def slow_reader(mix):
    """Who does not read holds the origin up, and nobody else; in the end all
    of it is there."""
    total, piece = 40 * MIB, noise(MIB)
    sent = [0]

    def serve(stream):
        stream.answer(200, [("content-length", "2" if stream.path == "/other"
                                                else str(total))])
        if stream.path == "/other":
            stream.send(b"ok", True)
            return
        for _ in range(total // len(piece)):
            stream.send(piece)
            sent[0] += len(piece)
        stream.end()

    with mixed(mix, serve) as both, both.connect() as client:
        stream = client.request("/large")
        assert stream.head() == 200
        until("the origin is held up", lambda: stands(lambda: sent[0]))
        assert sent[0] < 16 * MIB, f"{sent[0]} bytes are somewhere"
        if both.client == "h2":
            assert client.fetch("/other").whole == b"ok", "the same client"
        with both.connect() as second:
            assert second.fetch("/other?2").status == 200
        assert digest(stream.body()) == digest(piece * (total // len(piece)))
        record = checked(both.gate, "/large", both.client)
        assert record["request"]["response_body"]["bytes"] == total
        peak = both.gate.memory()
        print(f"# {mix}: {peak} KiB at its largest")
        assert peak < 32 * 1024, f"{peak} KiB at its largest"


@cases.each(MIXES)
def slow_origin(mix):
    """The same the other way: an origin that does not read an upload."""
    total, piece = 40 * MIB, noise(MIB)
    go = threading.Event()

    def serve(stream):
        assert go.wait(WAIT_S)
        stream.answer(200)
        stream.send(digest(stream.body()).encode(), True)

    with mixed(mix, serve) as both, both.connect() as client:
        stream = client.request("/up", method="POST", end=False,
                                fields=[("content-length", str(total))])
        sent = [0]

        def upload():
            for _ in range(total // len(piece)):
                stream.send(piece)
                sent[0] += len(piece)
            stream.end()

        thread = threading.Thread(target=upload, daemon=True)
        thread.start()
        until("the client is held up", lambda: stands(lambda: sent[0]))
        assert sent[0] < 20 * MIB, f"{sent[0]} bytes are somewhere"
        go.set()
        thread.join(WAIT_S)
        assert stream.head() == 200
        assert stream.body().decode() == digest(
            piece * (total // len(piece)))
        assert both.gate.memory() < 32 * 1024


@cases.each(MIXES)
def big_bodies(mix):
    """64 MiB up and down: the engine stays small.  regress/bench/bigbody.py
    does it with a gibibyte."""
    if SANITIZED:
        raise Skip("sanitizers keep memory")
    client, server = mix.split("-")
    with before_nginx(server) as real:
        source = real.gate.dir / "source"
        with open(source, "wb") as file:
            for _ in range(BIG // MIB):
                file.write(noise(MIB))
        want = digest(source.read_bytes())
        assert real.curl(client, "/put/big", "-T", source)[1] == 201
        assert digest(real.curl(client, "/put/big")[0]) == want
        peak = real.gate.memory()
        print(f"# {mix}: {peak} KiB at its largest")
        assert peak < 32 * 1024, f"{peak} KiB at its largest"
        one_final_each(real.gate, 2)


@cases.each(MIXES)
def body_limit(mix):
    """413 and a record; beyond the limit not a byte reaches the origin."""
    def serve(stream):
        stream.total = 0
        while data := stream.read():
            stream.total += len(data)
        stream.answer(200, end=True)

    with mixed(mix, serve, rule="body 1M") as both:
        for path, size, length, want in (
                ("/fits", MIB, True, 200), ("/over", MIB + 1, True, 413),
                ("/more", 2 * MIB, False, 413)):
            with both.connect() as client:
                stream = client.request(
                    path, method="POST", end=False, fields=[
                        ("content-length", str(size))] if length else [])
                with contextlib.suppress(Broken):
                    stream.send(bytes(size), True)
                assert stream.head() == want, f"{path}: {stream.status}"
            record = both.gate.final(path=path)
            if want == 413:
                broken(record, "body_limit")
        asked = {s.path: s for s in both.asked()}
        assert "/over" not in asked, "the origin has heard of it"
        assert asked["/fits"].total == MIB
        # It may have been cut before the origin had read its head, or any
        # of its body.
        more = asked.get("/more")
        assert more is None or (getattr(more, "total", 0) <= MIB and
                                not more.ended)
        one_final_each(both.gate, 3)


@cases.each(MIXES)
def heads(mix):
    """Fields arrive as they were: cookies in crumbs, the same name twice,
    bytes of every kind, long ones; but for those that name another method,
    path or host."""
    odd = "".join(chr(c) for c in range(0x21, 0x100) if c not in (0x7f,))
    fields = [("x-two", "1"), ("x-two", "2"), ("x-odd", odd),
              ("x-long", "l" * 8000), ("x-empty", ""),
              ("accept", "text/plain")]
    cookies = [("cookie", "a=1"), ("x-between", "1"), ("cookie", "b=2"),
               ("cookie", "c=3")]
    others = [("x-http-method-override", "PUT"), ("x-original-url", "/x"),
              ("x-forwarded-host", "evil.test"), ("forwarded", "host=x")]

    def serve(stream):
        stream.answer(200, [*fields, ("set-cookie", "a=1"),
                            ("set-cookie", "b=2")], end=True)

    with mixed(mix, serve) as both, both.connect() as client:
        more = cookies if both.client == "h2" else [
            ("cookie", "a=1; b=2; c=3"), ("x-between", "1")]
        stream = client.fetch("/", fields=[*fields, *others, *more])
        asked, = both.asked()
        assert not set(others) & set(asked.fields), asked.fields
        for name, value in fields:
            assert (name, value) in asked.fields, f"{name}: {asked.fields}"
            assert (name, value) in stream.fields, f"{name}: {stream.fields}"
        crumbs = "; ".join(v for n, v in asked.fields if n == "cookie")
        assert crumbs == "a=1; b=2; c=3", crumbs
        assert [v for n, v in stream.fields if n == "set-cookie"] == [
            "a=1", "b=2"], stream.fields
        assert asked.get("x-two") == "1, 2", asked.fields


cases.main()
