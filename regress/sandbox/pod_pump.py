#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""A gate that is an egressd of its own, behind `egressctl pump', as in a pod:
its records and questions reach the control host, whatever is cut in between.
No cluster is there: the pump's streams are where k8sd's exec would be."""

import pathlib
import socket
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases  # noqa: E402
from daemon import BUILD, WAIT_S, until  # noqa: E402
from gateslib import (JUDGE, begin, daemon, lost, of_pod,  # noqa: E402
                      same, state, stop)
from standin_k8sd import STANDIN, Pods  # noqa: E402
from standin_program import mount_standin  # noqa: E402

cases = Cases()
# Rules and deciders as the control host has them.
POD = """
decider "who" control { timeout 10s }
decider "person" control { timeout 1m }
policy "one" { decide "who" host "a.test"
	decide "person" host "b.test"
	allow host "c.test" }
session "pod" { policy "one" listen on 127.0.0.1 port 15001 }
"""
GET = "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"


class Pod(Pods):
    """The egressd in a pod; its audit file is a spool."""

    def __init__(self):
        super().__init__(POD)

    def write(self, conf):
        super().write(conf)
        text = self.conf.read_text()
        self.conf.write_text(text.replace(
            f'audit file "{self.audit}"', f'audit file "{self.audit}" spool '
            "16M", 1))

    def get(self, host, path="/"):
        """The status that a client in the workspace gets."""
        with socket.create_connection(
                ("127.0.0.1", self.port(15001)), WAIT_S) as conn:
            conn.sendall(GET.format(host=host, path=path).encode())
            data = b""
            while piece := conn.recv(65536):
                data += piece
        return int(data.split()[1])


class Pump:
    """An exec: ours is what k8sd hands over."""

    def __init__(self, pod):
        self.ours, theirs = socket.socketpair()
        self.process = subprocess.Popen(
            [str(BUILD / "egressctl"), "-s", str(pod.socket), "pump"],
            stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL)
        theirs.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.cut()

    def cut(self):
        self.process.kill()
        self.process.wait()
        self.ours.close()


def acknowledged(pod):
    audit = pod.ask("status")["audit"]
    return audit["spool"]["acknowledged"] == audit["seq"]


@cases.case
def records():
    with Pod() as pod, daemon() as d, Pump(pod) as pump:
        pod.settle()
        told, dialled = begin(d)
        d.k8sd.opens(dialled, pump)
        state(d, "up")
        same(pod.get("x.test", "/secret"), 403)
        denied = until("a record", lambda: [
            r for r in of_pod(d) if r["kind"] == "request_denied"])[0]
        same((denied["request"]["host"], denied["request"]["path"],
              denied["reason"], denied["session_id"]),
             ("x.test", "/secret", "default_deny", "work"))
        until("all is acknowledged", lambda: acknowledged(pod))
        numbers = [r["origin_seq"] for r in of_pod(d)]
        same(numbers, list(range(1, len(numbers) + 1)))
        stop(d, told)


@cases.case
def questions():
    """The decider is the control host's; without a channel it is no."""
    with Pod() as pod, daemon() as d:
        pod.settle()
        told, dialled = begin(d)
        with Pump(pod) as pump:
            d.k8sd.opens(dialled, pump)
            state(d, "up")
            JUDGE.says({"decision": "deny", "reason": "not today"})
            same(pod.get("a.test", "/p"), 403)
            asked, = JUDGE.asked(1)
            same((asked["session_id"], asked["request"]["host"],
                  asked["request"]["path"]), ("work", "a.test", "/p"))
            denied = until("a record", lambda: [
                r for r in of_pod(d) if r["kind"] == "request_denied"])[0]
            same((denied["reason"], denied["decider"]["name"]),
                 ("decider: not today", "who"))
        # c.test is allowed by a rule, and is nowhere.
        assert pod.get("c.test") in (502, 504)
        stop(d, told)


# What is allowed is nowhere.
SAID = {"allow": {502, 504}, "deny": {403}}


def by_person(d, pod, word, remember):
    """A request that a person is asked about."""
    statuses = []
    client = threading.Thread(
        target=lambda: statuses.append(pod.get("b.test")))
    client.start()
    asked, = until("it is pending", lambda: d.ask("pending.list")["pending"])
    same(d.ask("pending.answer", pending=asked["id"], decision=word,
               remember=remember)["remembered"], remember)
    client.join()
    assert statuses and statuses[0] in SAID[word], statuses


@cases.each(SAID)
def person(word):
    """Asked each time, until they say that the answer is to be remembered."""
    with Pod() as pod, daemon() as d, Pump(pod) as pump:
        pod.settle()
        told, dialled = begin(d)
        d.k8sd.opens(dialled, pump)
        state(d, "up")
        by_person(d, pod, word, False)
        by_person(d, pod, word, False)
        same(pod.ask("cache.list")["cache"], [])
        by_person(d, pod, word, True)
        # It does not wait for anybody.
        assert pod.get("b.test") in SAID[word]
        kept, = pod.ask("cache.list")["cache"]
        same((kept["host"], kept["decision"]), ("b.test", word))
        stop(d, told)


@cases.case
def cuts():
    """However often the pump is killed under load, none is missing."""
    with Pod() as pod, daemon() as d:
        pod.settle()
        told, dialled = begin(d)
        for turn in range(4):
            with Pump(pod) as pump:
                d.k8sd.opens(dialled, pump)
                for n in range(20):
                    pod.get("x.test", f"/{turn}/{n}")
            pod.get("x.test", f"/{turn}/cut")
            dialled = d.k8sd.expect("POD_CHANNEL", number=told.number)
        with Pump(pod) as pump:
            d.k8sd.opens(dialled, pump)
            until("all is acknowledged", lambda: acknowledged(pod))
            found = of_pod(d)
            same([r["origin_seq"] for r in found],
                 list(range(1, len(found) + 1)))
            paths = [r["request"]["path"] for r in found
                     if r["kind"] == "request_denied"]
            same(paths, [f"/{turn}/{n}" for turn in range(4)
                         for n in [*range(20), "cut"]])
            stop(d, told)


@cases.case
def taken_over():
    """Another control host of a higher term has the gate; we are told."""
    with Pod() as pod, daemon() as d, Pump(pod) as pump, \
            pod.client() as other:
        pod.settle()
        told, dialled = begin(d)
        d.k8sd.opens(dialled, pump, term=1)
        state(d, "up")
        answer = other.ask("events.follow", **{"from": "acknowledged"},
                           term=2)
        assert answer["ok"], answer
        lost(d, "taken_over")
        stop(d, told)


if __name__ == "__main__":
    Pods.relay = mount_standin(STANDIN, "k8sd")
    cases.main()
