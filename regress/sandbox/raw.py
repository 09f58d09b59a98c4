#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""`egressctl run`: connections that leave a sandbox unread."""

import atexit
import pathlib
import socket
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from runlib import ORIGIN, WHO, place, records  # noqa: E402
from case import Cases  # noqa: E402

cases = Cases()
here = place()
atexit.register(here.end)
PORT = here.origin.port


def final(log):
    found = [r for r in records(log) if r["kind"] in (
        "request_closed", "request_failed", "request_denied")]
    assert len(found) == 1, found
    return found[0]


def greeter():
    """Speaks first, says what it got and ends; its port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            sock, _ = listener.accept()
            with sock:
                sock.sendall(b"220 ready\r\n")
                data = b""
                while more := sock.recv(4096):
                    data += more
                sock.sendall(data[::-1])
    threading.Thread(target=serve, daemon=True).start()
    return listener.getsockname()[1]


@cases.each(WHO)
def tcp(who):
    port = greeter()
    conf, log = here.conf(who, f'policy "open" {{ allow tcp host "{ORIGIN}" '
                          f'port {port} }}\n')
    done = here.sh(who, conf, f"""
        /usr/bin/python3 - <<END
import socket
s = socket.create_connection(("{ORIGIN}", {port}), 10)
print(s.recv(100))
s.sendall(b"abc")
s.shutdown(socket.SHUT_WR)
print(s.recv(100), s.recv(100))
END
""")
    assert done.stdout == "b'220 ready\\r\\n'\nb'cba' b''\n", done
    record = final(log)
    request = record["request"]
    assert (record["kind"], record["bytes_in"], record["bytes_out"],
            request["scheme"], request["inspected"]) == (
                "request_closed", 14, 3, "tcp", False), record


@cases.each(WHO)
def passes(who):
    """The client sees the origin's own certificate, and no other."""
    conf, log = here.conf(who, f'policy "open" {{ pass host "{ORIGIN}" '
                          f'port {PORT} }}\n')
    work = here.fresh(who, "work")
    (work / "root.pem").write_text(here.trust.read_text())
    done = here.sh(who, conf, "curl -sSv --cacert root.pem "
                   f"https://{ORIGIN}:{PORT}/p", work=work)
    assert done.stdout == "hello from /p\n", done
    assert "issuer: CN=regress root" in done.stderr, done
    record = final(log)
    request = record["request"]
    assert (record["kind"], request["scheme"], request["protocol"],
            request["method"], request["inspected"]) == (
                "request_closed", "https", "tls", None, False), record


cases.main()
