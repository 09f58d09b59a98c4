#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Deciders of the kind control, as clients of the gate meet them: a control
client answers, and may come, go and be replaced."""

import json
import pathlib
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases  # noqa: E402
from daemon import until  # noqa: E402
from gate import GOOD  # noqa: E402
from judge import SCHEMA, judged  # noqa: E402
from schema import check  # noqa: E402

cases = Cases()

CONF = 'decider "judge" control { timeout 10s  concurrency 16 }\n'
RULES = f'decide "judge" host "{GOOD}" cache off'


def serve(gate, term=0):
    client = gate.client()
    answer = client.ask("questions.serve", term=term)
    assert answer.get("ok"), answer
    return client


def answer(server, decision="allow"):
    """One question, answered; the line."""
    line = server.read()
    assert not check(line["question"], SCHEMA), line
    server.send({"id": line["id"], "decision": decision, "reason": "so"})
    return line


class Later:
    """A request whose answer is waited for elsewhere."""

    def __init__(self, pair, path):
        self.status = None
        self.thread = threading.Thread(target=self.run, args=[pair, path])
        self.thread.start()

    def run(self, pair, path):
        self.status = pair.get(path)

    def get(self):
        self.thread.join()
        return self.status


@cases.case
def answered():
    """The request is held until it is, and the record says by whom."""
    with judged(RULES, CONF) as pair, serve(pair.gate) as server:
        for decision, status in (("allow", 200), ("deny", 403),
                                 ("unsure", 403)):
            request = Later(pair, f"/{decision}")
            line = answer(server, decision)
            assert request.get() == status, request.status
            assert (line["decider"], line["rule"]) == ("judge", 0), line
            assert line["question"]["request"]["path"] == f"/{decision}"
        final = pair.gate.final(path="/allow")
        assert final["decider"]["name"] == "judge", final


@cases.case
def cut_off_and_back():
    """Without a server a request is denied in time, and as soon as there is
    one all is well, however often that was."""
    rules = f'{RULES} timeout 4s'
    with judged(rules, CONF) as pair:
        for request in [Later(pair, f"/lost{n}") for n in range(8)]:
            assert request.get() == 403, request.status
        until("they are recorded", lambda: len(pair.gate.finals()) == 8)
        reasons = {r["reason"] for r in pair.gate.finals()}
        assert "decider_timeout" in reasons, reasons
        state, = pair.gate.ask("status")["deciders"]
        assert (state["kind"], state["breaker"]) == ("control", "open"), state
        with serve(pair.gate) as server:
            until("it is asked again", lambda: pair.gate.ask("status")[
                "deciders"][0]["breaker"] == "closed")
            request = Later(pair, "/back")
            answer(server)
            assert request.get() == 200, request.status


@cases.case
def replaced():
    """A question that one server has got is put to the next."""
    with judged(RULES, CONF) as pair, serve(pair.gate, 7) as old:
        request = Later(pair, "/moved")
        first = old.read()
        with serve(pair.gate, 6) as low:
            assert low.read()["error"]["code"] == "taken_over"
        with serve(pair.gate, 7) as new:
            assert answer(new)["id"] == first["id"]
            assert request.get() == 200, request.status
            assert old.read()["error"]["code"] == "taken_over"


@cases.case
def reloaded():
    """The server stays, and a decider that comes is asked through it."""
    with judged("", CONF) as pair, serve(pair.gate) as server:
        pair.gate.more = CONF + 'decider "two" control\n'
        pair.gate.reload(f'decide "two" host "{GOOD}"')
        request = Later(pair, "/two")
        assert answer(server)["decider"] == "two"
        assert request.get() == 200, request.status


@cases.case
def asked_for_it():
    with judged(RULES, CONF) as pair:
        with pair.gate.client() as client:
            for fields in ({"term": -1}, {"term": "x"}, {"window": 1}):
                code = client.ask("questions.serve", **fields)["error"]["code"]
                assert code == "bad_request", fields
            client.sock.sendall(b'{"id":1,"op":"questions.serve"}\n'
                                b'{"id":1,"decision":"allow"}\n')
            assert client.read()["error"]["code"] == "bad_request"
        answer = pair.gate.ask("decider.ask", decider="judge", scheme="https",
                               host=GOOD, port=443, method="GET", path="/")
        assert "only rules" in json.dumps(answer), answer


cases.main()
