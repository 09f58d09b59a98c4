# SPDX-License-Identifier: ISC

"""k8sd's pods without a daemon, as regress/k8sd/drive_pods.c serves them."""

import json
import os
import pathlib
import queue
import subprocess
import threading

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("B", TOP / "build"))
LIMIT_S = 60


class Driver:
    """One life of a control host.  A case ends it, or its own end does."""

    def __init__(self, server, **conf):
        self.said = queue.Queue()
        self.heard = []
        self.proc = subprocess.Popen(
            [str(BUILD / "regress" / "k8sd" / "drive_pods")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self.read, daemon=True).start()
        self.conf = {"server": server, **conf}
        self.send("conf", **self.conf)

    def read(self):
        for line in self.proc.stdout:
            self.said.put(json.loads(line))
        self.said.put(None)

    def send(self, op, number=0, **rest):
        self.proc.stdin.write(json.dumps(
            {"op": op, "number": number, **rest}) + "\n")
        self.proc.stdin.flush()

    def reconfigure(self, **conf):
        self.send("conf", **{**self.conf, **conf})

    def until(self, *events, number=None, text=""):
        """The next of these events; all that came before it is in heard."""
        while True:
            one = self.said.get(timeout=LIMIT_S)
            assert one is not None, f"it ended after {self.heard[-5:]}"
            self.heard.append(one)
            if one["event"] in events and text in one["text"] and \
                    number in (None, one["number"]):
                return one

    def start(self, session="s", number=1, **rest):
        self.send("start", number, session=session, **rest)
        return self.until("ready", "failed", number=number)

    def ready(self, session="s", number=1, **rest):
        one = self.start(session, number, **rest)
        assert one["event"] == "ready", one
        return one["pod"]

    def fails(self, code, session="s", number=1, **rest):
        one = self.start(session, number, **rest)
        assert one["event"] == "failed" and one["code"] == code, one
        return one["text"]

    def stop(self, number=1, how=2):
        self.send("stop", number, how=how)
        return self.until("ended", number=number)

    def ask(self, op, **rest):
        """Items, as (pod, session, state, age, text), and the end."""
        self.send(op, 4000, **rest)
        begin = len(self.heard)
        over = self.until("over", number=4000)
        items = [(e["pod"], *e["text"].split("|", 3))
                 for e in self.heard[begin:] if e["event"] == "item"]
        return items, over

    def progress(self):
        return [e["text"] for e in self.heard if e["event"] == "progress"]

    def kill(self):
        self.proc.kill()
        self.proc.wait()

    def end(self):
        self.proc.stdin.close()
        assert self.proc.wait(LIMIT_S) == 0, self.proc.returncode

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None and self.proc.poll() is None:
            self.end()
        elif self.proc.poll() is None:
            self.kill()
