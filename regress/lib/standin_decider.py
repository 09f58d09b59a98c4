# SPDX-License-Identifier: ISC

"""A stand-in for what deciders are asked at: a language model's server of
either style, or a webhook.  It keeps what it is sent and says what a case
wants it to say, right or wrong."""

import http.server
import json
import socketserver
import ssl
import threading

from origin import authority

ALLOW = {"decision": "allow", "reason": "it fits"}


def anthropic(*blocks, stop="tool_use"):
    return {"id": "msg_1", "type": "message", "role": "assistant",
            "model": "stand-in", "content": list(blocks),
            "stop_reason": stop, "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1}}


def tool(given, name="decide"):
    return {"type": "tool_use", "id": "toolu_1", "name": name,
            "input": given}


def text(words):
    return {"type": "text", "text": words}


def call(arguments, name="decide"):
    """What a model of the other style calls a tool with."""
    return {"id": "call_1", "type": "function",
            "function": {"name": name, "arguments": arguments}}


def openai(content, finish="stop", refusal=None, choices=1, calls=None):
    message = {"role": "assistant", "content": content, "refusal": refusal}
    if calls is not None:
        message["tool_calls"] = calls
    return {"id": "c1", "object": "chat.completion", "choices": [
        {"index": i, "message": message, "finish_reason": finish}
        for i in range(choices)]}


class Request:
    def __init__(self, handler, body):
        self.path = handler.path
        self.headers = {k.lower(): v for k, v in handler.headers.items()}
        self.body = body
        self.peer = handler.client_address

    @property
    def json(self):
        return json.loads(self.body)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        size = int(self.headers.get("content-length", 0))
        request = Request(self, self.rfile.read(size))
        self.server.requests.append(request)
        status, headers, body = self.server.answer(request)
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class StandinDecider(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """answer(request) gives status, headers and body; the body is bytes or
    what is to become JSON."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, answer=None, names=("localhost", "127.0.0.1"),
                 signer="root", tls=True, days=10):
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests = []
        self.says(answer or ALLOW)
        self.port = self.server_address[1]
        self.scheme = "https" if tls else "http"
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*authority(signer).leaf(
                *names, days=days))
            self.socket = context.wrap_socket(
                self.socket, server_side=True, do_handshake_on_connect=False)

    def says(self, answer):
        """A function, or the body of a good answer."""
        self.answer = answer if callable(answer) else \
            lambda _: (200, {}, answer)

    def url(self, host="127.0.0.1", path="/v1"):
        return f"{self.scheme}://{host}:{self.port}{path}"

    def handle_error(self, request, client_address):
        pass    # who hangs up early, or trusts us not

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=[0.05],
                         daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()
