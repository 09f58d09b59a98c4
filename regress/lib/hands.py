# SPDX-License-Identifier: ISC

"""A client of egressd-box(5): many requests at once over two descriptors.

    with Bare() as hands:
        hands.call("write", b"text", path="a")
        assert hands.call("read", path="a").out == b"text"
        with hands.start("exec", command="cat", stdin=True) as request:
            request.send(b"x")
            request.end()
            answer = request.wait()

Names that are no UTF-8 are str as os.fsdecode() makes them, or bytes."""

import collections
import json
import os
import pathlib
import re
import struct
import subprocess
import threading
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("B", TOP / "build"))
BOX = BUILD / "libexec" / "egressd-box"

(CALL, RESULT, ERROR, DATA, DATA_ERR, END, CREDIT, CANCEL, NOTE,
 ITEM) = range(1, 11)
HEADER = struct.Struct(">IIB3s")
FRAME_MAX = 65536
WINDOW = 262144
WAIT_S = 60

Answer = collections.namedtuple("Answer", "result out err items")
Frame = collections.namedtuple("Frame", "id kind body")


class HandsError(Exception):
    """An ERROR frame: its code, message and what else it says; what had come
    before it is in answer.  gone: the connection has ended."""

    def __init__(self, code, message, answer=None, **more):
        super().__init__(f"{code}: {message}")
        self.code, self.message, self.more = code, message, more
        self.answer = answer


def spell(value):
    """What stands for these bytes in JSON: U+EFxx for each that is not
    UTF-8, and for each of a genuine U+EFxx."""
    if isinstance(value, str):
        value = value.encode(errors="surrogateescape")
    if isinstance(value, bytes):
        text = value.decode(errors="surrogateescape")
        text = re.sub("[\uef80-\uefff]", lambda m: "".join(
            chr(0xef00 | b) for b in m[0].encode()), text)
        return re.sub("[\udc80-\udcff]", lambda m: chr(
            ord(m[0]) - 0xdc00 + 0xef00), text)
    if isinstance(value, dict):
        return {spell(k): spell(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [spell(v) for v in value]
    return value


def unspell(value):
    if isinstance(value, str):
        parts = re.split("([\uef80-\uefff])", value)
        return b"".join(bytes([ord(p) & 0xff]) if i % 2 else p.encode()
                        for i, p in enumerate(parts)).decode(
                            errors="surrogateescape")
    if isinstance(value, dict):
        return {unspell(k): unspell(v) for k, v in value.items()}
    if isinstance(value, list):
        return [unspell(v) for v in value]
    return value


def frame(number, kind, body=b""):
    """The bytes of a frame; body may be an object."""
    if isinstance(body, dict):
        body = json.dumps(spell(body)).encode()
    return HEADER.pack(len(body), number, kind, bytes(3)) + body


class Request:
    """One call under way.  With hold, no credit is granted but by grant()."""

    def __init__(self, hands, number, hold):
        self.hands, self.number, self.hold = hands, number, hold
        self.out, self.err, self.items = bytearray(), bytearray(), []
        self.result = self.error = None
        self.ended = False          # the box has sent END
        self.credit = WINDOW        # what we may send
        self.eaten = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.result is None and self.error is None:
            self.cancel()

    def over(self):
        return self.result is not None or self.error is not None

    def answer(self):
        return Answer(self.result, bytes(self.out), bytes(self.err),
                      list(self.items))

    def _take(self, kind, body):
        """By the reader, with the lock held."""
        if kind == RESULT:
            self.result = unspell(json.loads(body))
        elif kind == ERROR:
            self.error = unspell(json.loads(body))
        elif kind == END:
            self.ended = True
        elif kind == CREDIT:
            self.credit += struct.unpack(">I", body)[0]
        elif kind == DATA:
            self.out += body
        elif kind == DATA_ERR:
            self.err += body
        elif kind == ITEM:
            self.items.append(unspell(json.loads(body)))
        else:
            raise AssertionError(f"a frame of kind {kind} from the box")
        if kind in (DATA, DATA_ERR, ITEM) and not self.hold:
            self.eaten += len(body)

    def until(self, condition, timeout=WAIT_S):
        """Wait for something of this request; condition(self)."""
        with self.hands.changed:
            if not self.hands.changed.wait_for(
                    lambda: condition(self) or self.over() or
                    self.hands.closed, timeout):
                raise TimeoutError(f"request {self.number}: nothing in "
                                   f"{timeout} s; so far {self.answer()}")
        return condition(self)

    def wait(self, timeout=WAIT_S):
        """The answer, or HandsError."""
        self.until(Request.over, timeout)
        if self.error is not None:
            raise HandsError(answer=self.answer(), **self.error)
        if self.result is None:
            raise HandsError("gone", "the connection has ended",
                             self.answer())
        return self.answer()

    def send(self, data, timeout=WAIT_S):
        """DATA, as credit permits."""
        view = memoryview(data)
        while view and not self.over():
            self.until(lambda r: r.credit > 0, timeout)
            with self.hands.changed:
                part = view[:min(len(view), self.credit, FRAME_MAX)]
                self.credit -= len(part)
            if not part:
                return
            self.hands.send(self.number, DATA, bytes(part))
            view = view[len(part):]

    def end(self):
        self.hands.send(self.number, END)

    def cancel(self):
        self.hands.send(self.number, CANCEL)

    def note(self, **members):
        self.hands.send(self.number, NOTE, members)

    def grant(self, size):
        self.hands.send(self.number, CREDIT, struct.pack(">I", size))


class Hands:
    """A connection.  raw: nothing is read but by frames()."""

    def __init__(self, read_fd, write_fd, raw=False, timeout=WAIT_S):
        self.read_fd, self.write_fd = read_fd, write_fd
        self.changed = threading.Condition()
        self.sending = threading.Lock()
        self.requests = {}
        self.number = 0
        self.closed = False
        self.hello = self.refusal = None    # what came for id 0
        self.broken = None                  # what the box did wrong
        if not raw:
            self.reader = threading.Thread(target=self._read, daemon=True)
            self.reader.start()
            with self.changed:
                if not self.changed.wait_for(
                        lambda: self.hello or self.closed, timeout):
                    raise TimeoutError("no hello")
            if self.hello is None:
                raise HandsError("gone", "no hello")

    def _exactly(self, size):
        data = bytearray()
        while len(data) < size:
            more = os.read(self.read_fd, size - len(data))
            if not more:
                return None
            data += more
        return bytes(data)

    def frames(self):
        """Each frame as it comes, until the connection ends."""
        while True:
            try:
                head = self._exactly(HEADER.size)
                if head is None:
                    return
                length, number, kind, zero = HEADER.unpack(head)
                assert length <= FRAME_MAX and zero == bytes(3), head
                body = self._exactly(length)
            except OSError:
                return
            if body is None:
                return
            yield Frame(number, kind, body)

    def _take(self, number, kind, body):
        """A frame; how much is to be granted for it."""
        if number == 0:
            value = unspell(json.loads(body))
            if kind == RESULT:
                self.hello = value
            else:
                self.refusal = value
            return 0
        request = self.requests.get(number)
        if request is None:
            raise AssertionError(f"frame for {number}, which is not there")
        request._take(kind, body)
        if request.over():
            del self.requests[number]
            return 0
        grant, request.eaten = request.eaten, 0
        return grant

    def _read(self):
        try:
            for number, kind, body in self.frames():
                with self.changed:
                    grant = self._take(number, kind, body)
                    self.changed.notify_all()
                if grant:
                    self.send(number, CREDIT, struct.pack(">I", grant))
        except Exception as error:
            self.broken = error
        with self.changed:
            self.closed = True
            self.changed.notify_all()

    def send_raw(self, data):
        """Bytes, as they are; a connection that has ended is not told."""
        view = memoryview(data)
        with self.sending:
            while view:
                try:
                    view = view[os.write(self.write_fd, view):]
                except (BrokenPipeError, ConnectionResetError):
                    return

    def send(self, number, kind, body=b""):
        self.send_raw(frame(number, kind, body))

    def start(self, op, data=None, hold=False, **members):
        """A request; data is sent and ended."""
        with self.changed:
            self.number += 1
            request = Request(self, self.number, hold)
            self.requests[self.number] = request
        self.send(request.number, CALL, {"op": op, **members})
        if data is not None:
            request.send(data)
            request.end()
        return request

    def call(self, op, data=None, timeout=WAIT_S, **members):
        return self.start(op, data, **members).wait(timeout)

    def wait_closed(self, timeout=WAIT_S):
        with self.changed:
            if not self.changed.wait_for(lambda: self.closed, timeout):
                raise TimeoutError("the connection goes on")

    def check(self):
        """Whether the box has kept to the protocol."""
        if self.broken is not None:
            raise self.broken


class Piped(Hands):
    """Hands at the standard streams of a program."""

    def __init__(self, argv, raw=False, **popen):
        popen.setdefault("stderr", None)
        self.proc = subprocess.Popen(argv, stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, **popen)
        super().__init__(self.proc.stdout.fileno(), self.proc.stdin.fileno(),
                         raw)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        code = self.close()
        if kind is None:
            self.check()
            assert code == 0 or self.refusal, f"hands ended with {code}"

    def hang_up(self):
        """End its input; it kills what it has started."""
        with self.sending:
            if not self.proc.stdin.closed:
                try:
                    self.proc.stdin.close()
                except BrokenPipeError:
                    pass

    def close(self, timeout=WAIT_S):
        self.hang_up()
        try:
            code = self.proc.wait(timeout)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            code = self.proc.wait()
        if hasattr(self, "reader"):
            self.reader.join(timeout)
        self.proc.stdout.close()
        return code


class Bare(Piped):
    """egressd-box hands, where we stand."""

    def __init__(self, *options, raw=False, box=BOX, **popen):
        super().__init__([str(box), "hands", *map(str, options)], raw,
                         **popen)


def within(seconds, condition, what="it"):
    """Wait for something outside of the connection."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.01)
