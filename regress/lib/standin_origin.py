# SPDX-License-Identifier: ISC

"""A stand-in for an origin: keeps every byte that it gets, and says what a
case wants it to say, right or wrong."""

import socket
import ssl
import struct
import threading

from daemon import WAIT_S, until


class Closed(Exception):
    """The gate has closed its side."""


class Connection:
    """One connection of the gate's; got is all that it ever sent."""

    def __init__(self, sock):
        self.sock = sock
        self.got = bytearray()
        self.used = 0
        self.resumed = False
        self.ended = threading.Event()

    def more(self):
        try:
            data = self.sock.recv(65536)
        except OSError:
            data = b""
        if not data:
            raise Closed
        self.got += data

    def until(self, mark):
        """Bytes up to and with the mark."""
        while (at := self.got.find(mark, self.used)) == -1:
            self.more()
        return self.take(at + len(mark) - self.used)

    def take(self, count):
        while len(self.got) - self.used < count:
            self.more()
        data = bytes(self.got[self.used:self.used + count])
        self.used += count
        return data

    def body(self, head):
        """The decoded body that follows this head."""
        fields = fields_of(head)
        if fields.get(b"transfer-encoding") == b"chunked":
            body = b""
            while size := int(self.until(b"\r\n"), 16):
                body += self.take(size)
                assert self.take(2) == b"\r\n"
            assert self.until(b"\r\n") == b"\r\n"
            return body
        return self.take(int(fields.get(b"content-length", 0)))

    def request(self):
        """The next request: its head and its body."""
        head = self.until(b"\r\n\r\n")
        return head, self.body(head)

    def send(self, data):
        self.sock.sendall(data)

    def finish(self):
        """A clean end: close_notify, then the end of the stream."""
        try:
            if isinstance(self.sock, ssl.SSLSocket):
                self.sock.settimeout(0.1)
                self.sock.unwrap()
        except (OSError, ValueError):
            pass

    def reset(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                             struct.pack("ii", 1, 0))
        self.sock.close()


def fields_of(head):
    fields = {}
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        fields[name.lower()] = value.strip()
    return fields


def answer(body=b"ok", status=b"200 OK", extra=b""):
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n%s\r\n%s" % (
        status, len(body), extra, body)


def always(data):
    """Serves every request of a connection with these bytes."""
    def serve(connection):
        while True:
            connection.request()
            connection.send(data)
    return serve


def once(data, clean=True):
    """Serves one request with these bytes and closes."""
    def serve(connection):
        connection.request()
        connection.send(data)
        if clean:
            connection.finish()
    return serve


class StandinOrigin:
    """Calls serve(connection) in a thread for each connection; with a
    certificate and key it speaks TLS."""

    def __init__(self, serve=None, cert=None, address="127.0.0.1", port=0):
        self.serve = serve or always(answer())
        self.context = None
        if cert:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*cert)
            self.context.set_alpn_protocols(["http/1.1"])
        self.listener = socket.create_server((address, port), backlog=128)
        self.port = self.listener.getsockname()[1]
        self.accepted = []      # by whom
        self.own = set()        # of those, see visits()
        self.connections = []
        self.failed = []        # handshakes
        self.threads = []
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        if self.listener.fileno() != -1:
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self.connections:
            try:
                connection.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for thread in self.threads:
            thread.join(WAIT_S)

    def accept(self):
        while True:
            try:
                sock, peer = self.listener.accept()
            except OSError:
                return
            self.accepted.append(peer)
            thread = threading.Thread(target=self.run, args=(sock, peer),
                                      daemon=True)
            thread.start()
            self.threads.append(thread)

    def run(self, sock, peer):
        try:
            if self.context:
                sock.settimeout(WAIT_S)
                sock = self.context.wrap_socket(sock, server_side=True)
            sock.settimeout(None)
        except OSError as error:
            self.failed.append(error)
            sock.close()
            return
        connection = Connection(sock)
        connection.peer = peer
        if self.context:
            connection.resumed = sock.session_reused
        self.connections.append(connection)
        try:
            self.serve(connection)
        except (Closed, OSError, ValueError):
            pass
        finally:
            connection.sock.close()
            connection.ended.set()

    def visits(self):
        """How many had connected before this call, if only to be closed again:
        they are accepted in their order."""
        with socket.create_connection(self.listener.getsockname()) as mine:
            self.own.add(mine.getsockname())
            until("our own turn", lambda: mine.getsockname() in self.accepted)
            return self.accepted.index(mine.getsockname()) - len(self.own) + 1

    def others(self):
        """The connections of all who had connected before this call."""
        self.visits()
        until("all are known", lambda: len(self.connections) + len(
            self.failed) >= len(self.accepted))
        return [c for c in self.connections if c.peer not in self.own]

    def got(self):
        """All bytes that ever came, of all connections."""
        return b"".join(bytes(c.got) for c in self.connections)

    def wait(self, count, what="connections"):
        return until(f"{count} {what} at the origin",
                     lambda: len(self.connections) >= count)
