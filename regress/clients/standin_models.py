#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""A stand-in for two model APIs: it says the same word to whoever asks."""

import http.server
import json
import ssl
import threading

WORD = "PONG-FROM-THE-STANDIN"


def sse(events):
    return "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n"
                   for e in events).encode()


def anthropic(question):
    """Messages: an answer in pieces, or whole."""
    whole = {"id": "msg_1", "type": "message", "role": "assistant",
             "model": question.get("model"), "stop_reason": "end_turn",
             "content": [{"type": "text", "text": WORD}],
             "stop_sequence": None,
             "usage": {"input_tokens": 1, "output_tokens": 1}}
    if not question.get("stream"):
        return "application/json", json.dumps(whole).encode()
    return "text/event-stream", sse((
        {"type": "message_start",
         "message": {**whole, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0,
         "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0,
         "delta": {"type": "text_delta", "text": WORD}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "usage": {"output_tokens": 5},
         "delta": {"stop_reason": "end_turn", "stop_sequence": None}},
        {"type": "message_stop"}))


def openai(_):
    """Responses, always in pieces."""
    item = {"type": "message", "id": "m1", "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": WORD,
                         "annotations": []}]}
    done = {"id": "r1", "object": "response", "status": "completed",
            "model": "standin", "output": [item],
            "usage": {"input_tokens": 1, "output_tokens": 1,
                      "total_tokens": 2,
                      "input_tokens_details": {"cached_tokens": 0},
                      "output_tokens_details": {"reasoning_tokens": 0}}}
    return "text/event-stream", sse((
        {"type": "response.created",
         "response": {**done, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0,
         "item": {**item, "content": []}},
        {"type": "response.output_text.delta", "item_id": "m1",
         "output_index": 0, "content_index": 0, "delta": WORD},
        {"type": "response.output_item.done", "output_index": 0,
         "item": item},
        {"type": "response.completed", "response": done}))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def body(self):
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers["Content-Length"] or 0))
        data = b""
        while size := int(self.rfile.readline(), 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data

    def answer(self, kind, data, status=200):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def do_GET(self):
        """Settings, of which there are none; no WebSocket either."""
        self.answer("application/json", b'{"data":[],"models":[]}',
                    426 if "Upgrade" in self.headers else 200)

    do_HEAD = do_GET

    def do_POST(self):
        data = self.body()
        path = self.path.partition("?")[0]
        make = {"/v1/messages": anthropic, "/v1/responses": openai}.get(path)
        if make is None:
            self.answer("application/json", b"{}")
            return
        self.server.asked.append((self.headers["Host"], path))
        plain = self.headers.get("Content-Encoding") is None
        self.answer(*make(json.loads(data) if plain else {}))


class Models:
    """HTTPS on an address of its own, as these APIs have it."""

    def __init__(self, address, cert, key):
        self.server = http.server.ThreadingHTTPServer((address, 443), Handler)
        self.server.daemon_threads = True
        self.server.asked = []
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        self.server.socket = context.wrap_socket(self.server.socket,
                                                 server_side=True)
        threading.Thread(target=self.server.serve_forever,
                         daemon=True).start()

    @property
    def asked(self):
        return self.server.asked
