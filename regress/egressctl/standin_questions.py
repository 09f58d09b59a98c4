# SPDX-License-Identifier: ISC
"""A stand-in for the part of egressd that holds questions, for egressctl.

It keeps questions and remembered answers as egressd.sock(5) has them, and
nothing is decided by it: a test asks, and looks at what was answered.
"""

import json
import threading
import time

from standin_daemon import StandinDaemon, encode

REQUEST = {"scheme": "https", "host": "api.example.com", "port": 443,
           "method": "POST", "path": "/v1/x?y=z"}


class StandinQuestions(StandinDaemon):
    def __init__(self, path):
        self.lock = threading.Condition()
        self.version = 1
        self.questions = []
        self.answers = []           # (id, decision, remember, reason)
        self.waiters = []           # (connection, request id, version)
        self.lists = 0              # given out
        self.keeps = True           # what is to be remembered
        self.before_answer = None   # called with the request
        super().__init__(path, self.serve_line)

    def listing(self, ident):
        now = time.monotonic()
        self.lists += 1
        self.lock.notify_all()
        return encode({"id": ident, "ok": True, "version": self.version,
                       "pending": [
                           {**fields, "waiting_ms": int((now - since) * 1e3),
                            "left_ms": int((end - now) * 1e3)}
                           for fields, since, end in self.questions]})

    def changed(self):
        self.version += 1
        waiting, self.waiters = self.waiters, []
        for connection, ident, _ in waiting:
            try:
                connection.sendall(self.listing(ident))
            except OSError:
                pass                # it has gone, as it may

    def ask(self, ident, seconds=60, session="job-42", instead_of=None,
            **request):
        now = time.monotonic()
        with self.lock:
            self.questions = [q for q in self.questions
                              if q[0]["id"] != instead_of]
            self.questions.append((
                {"id": ident, "session_id": session, "decider": "people",
                 "rule": 2, "request": {**REQUEST, **request}},
                now, now + seconds))
            self.changed()

    def withdraw(self, ident):
        """As when it was answered elsewhere or has timed out."""
        with self.lock:
            before = len(self.questions)
            self.questions = [q for q in self.questions
                              if q[0]["id"] != ident]
            if len(self.questions) == before:
                return False
            self.changed()
            return True

    def answered(self, count):
        """Waits until so many answers were taken."""
        with self.lock:
            assert self.lock.wait_for(lambda: len(self.answers) >= count, 20)
            return list(self.answers)

    def until_watched(self):
        with self.lock:
            assert self.lock.wait_for(lambda: self.waiters, 20)

    def serve_line(self, connection, line):
        request = json.loads(line)
        op = request["op"].replace(".", "_")
        return getattr(self, "op_" + op)(connection, request)

    def say(self, connection, request, **fields):
        connection.sendall(encode({"id": request["id"], "ok": True,
                                   **fields}))
        return True

    def op_pending_list(self, connection, request):
        with self.lock:
            connection.sendall(self.listing(request["id"]))
        return True

    def op_pending_wait(self, connection, request):
        with self.lock:
            if request["version"] != self.version:
                connection.sendall(self.listing(request["id"]))
            else:
                self.waiters.append((connection, request["id"],
                                     request["version"]))
                self.lock.notify_all()
        return True

    def op_pending_answer(self, connection, request):
        if self.before_answer is not None:
            self.before_answer(request)
        if not self.withdraw(request["pending"]):
            connection.sendall(encode({"id": request["id"], "error": {
                "code": "no_such_question",
                "message": "no such question: " + request["pending"]}}))
            return True
        with self.lock:
            self.answers.append((request["pending"], request["decision"],
                                 request.get("remember", False),
                                 request.get("reason")))
            self.lock.notify_all()
        return self.say(connection, request, remembered=self.keeps and
                        request.get("remember", False))

    def op_cache_list(self, connection, request):
        entry = {"decider": "people", "scheme": "https", "host": "h.test",
                 "port": 443, "decision": "allow", "reason": "fine",
                 "age_ms": 1500}
        return self.say(connection, request, cache=[
            {**entry, "session_id": "job-42"},
            {**entry, "session_id": "j", "decision": "deny", "reason": "",
             "method": "GET", "path": "/\033[2Jx", "age_ms": 7200000}])

    def op_cache_clear(self, connection, request):
        return self.say(connection, request, cleared=3)

    def op_session_message(self, connection, request):
        return self.say(connection, request)

    op_session_metadata = op_session_message
