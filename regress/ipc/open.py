#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""What the parent opens for its children, and what not: a whole daemon, but
for deciderd and k8sd, whose place we take.  How deciders' programs are run is
regress/deciders/started.py."""

import os
import pathlib
import socket
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from case import Cases, Skip  # noqa: E402
from channel import C  # noqa: E402
from daemon import WAIT_S, until  # noqa: E402
from standin_program import directory  # noqa: E402
from standin_roles import ROOT, Whole  # noqa: E402

TOKEN = "a token that is none"

cases = Cases()

def token_file(content=TOKEN):
    path = directory() / "token"
    path.write_text(content)
    path.chmod(0o600)
    return path


def cluster(path, name="one"):
    return (f'cluster "{name}" {{ server "https://10.0.0.1:6443" '
            f'token file "{path}" }}\n'
            f'sandbox "{name}" kubernetes {{ policy "none" ungated '
            f'cluster "{name}" }}\n')


# ---- files that rotate ----

@cases.case
def token():
    """Opened anew each time: what was put in its place is found."""
    path = token_file()
    other = token_file("another")
    with Whole(cluster(path) + cluster(other, "two")) as d:
        assert d.k8sd.opens("OPEN_CLUSTER_TOKEN", "one") == TOKEN
        assert d.k8sd.opens("OPEN_CLUSTER_TOKEN", "two", 7) == "another"
        token_file("replaced").rename(path)
        assert d.k8sd.opens("OPEN_CLUSTER_TOKEN", "one") == "replaced"
        d.k8sd.send("OPEN_DONE", cookie=1)
        d.k8sd.send("OPEN_DONE", cookie=99)
        assert d.k8sd.opens("OPEN_CLUSTER_TOKEN", "one") == "replaced"


def gone(path):
    path.unlink()


def readable(path):
    path.chmod(0o644)


def fifo(path):
    path.unlink()
    os.mkfifo(path, 0o600)


def strangers(path):
    os.chown(path, 61234, 61234)


def strangers_link(path):
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")
    os.chown(path, 61234, 61234, follow_symlinks=False)


CHANGES = {
    "gone": (gone, "No such file"),
    "readable": (readable, "holds a secret, and its mode 0644"),
    "fifo": (fifo, "not a regular file"),
    "strangers": (strangers, "belongs to uid 61234"),
    "strangers_link": (strangers_link, "a link of uid 61234 leads there"),
}


@cases.each(CHANGES)
def token_is_looked_at(which):
    """Each time as when it was loaded, and the daemon goes on."""
    change, why = CHANGES[which]
    if not ROOT and change in (strangers, strangers_link):
        raise Skip("only root gives files away")
    path = token_file()
    with Whole(cluster(path)) as d:
        assert d.k8sd.opens("OPEN_CLUSTER_TOKEN", "one") == TOKEN
        change(path)
        d.k8sd.fails("OPEN_CLUSTER_TOKEN", "one", str(path), why)
        path.unlink(missing_ok=True)
        token_file("mended").rename(path)
        assert d.k8sd.opens("OPEN_CLUSTER_TOKEN", "one") == "mended"


@cases.each(["nobody", "", "/etc/passwd", "in"])
def token_of_nobody(name):
    """A name, never a path; and one that has such a file."""
    conf = cluster(token_file()) + 'cluster "in" { in-cluster }\n'
    with Whole(conf) as d:
        d.k8sd.fails("OPEN_CLUSTER_TOKEN", name,
                     f"{name}: No such file or directory")


@cases.case
def token_of_another_generation():
    with Whole(cluster(token_file())) as d:
        before = d.log().count("generation")
        d.write('policy "none" { }\n')
        d.process.send_signal(1)
        until("it has reloaded", lambda: d.log().count("generation") > before)
        d.k8sd.fails("OPEN_CLUSTER_TOKEN", "one", "No such file")


# ---- who may ask for what ----

@cases.each([f"{role}_{kind}" for role, kind in (
    ("k8sd", "OPEN_DECIDER_PROGRAM"), ("k8sd", "OPEN_DECIDER_SOCKET"),
    ("k8sd", "200"), ("deciderd", "OPEN_CLUSTER_TOKEN"),
    ("deciderd", "OPEN_KIND_MAX"))])
def not_for(which):
    """Not of its own configuration, or of no kind at all."""
    role, _, kind = which.partition("_")
    number = C[kind] if kind in C else int(kind)
    conf = cluster(token_file()) + \
        'decider "one" exec { command { "/bin/cat" } }\n'
    with Whole(conf) as d:
        getattr(d, role).send("OPEN_ASK", cookie=1, kind=number,
                              object="one")
        d.ends(role, f"kind {number}")


@cases.case
def number_in_use():
    with Whole('decider "one" exec { command { "/bin/cat" } }\n') as d:
        message = d.deciderd.ask("OPEN_DECIDER_PROGRAM", "one")
        assert message.name == "OPENED", message
        d.deciderd.send("OPEN_ASK", cookie=1, object="one",
                        kind=C["OPEN_DECIDER_PROGRAM"])
        d.ends("deciderd", "number 1 is in use")


@cases.case
def numbers_are_a_childs_own():
    """What k8sd is done with is not deciderd's."""
    conf = cluster(token_file()) + \
        'decider "one" exec { command { "/bin/cat" } }\n'
    with Whole(conf) as d:
        message = d.deciderd.ask("OPEN_DECIDER_PROGRAM", "one")
        with socket.socket(fileno=message.fd) as program:
            d.k8sd.send("OPEN_DONE", cookie=1)
            assert d.k8sd.opens("OPEN_CLUSTER_TOKEN", "one") == TOKEN
            program.sendall(b"lives")
            assert program.recv(5) == b"lives"
            d.deciderd.send("OPEN_DONE", cookie=1)
            ended = d.deciderd.answers.get(timeout=WAIT_S)
            assert ended.name == "OPEN_ENDED" and "signal 9" in ended.why, \
                ended


@cases.case
def kind_of_a_decider():
    """A program is no socket."""
    conf = ('decider "one" exec { command { "/bin/cat" } }\n'
            'decider "two" socket { path "/nonexistent/s" }\n')
    with Whole(conf) as d:
        d.deciderd.fails("OPEN_DECIDER_SOCKET", "one", "one: No such file")
        d.deciderd.fails("OPEN_DECIDER_PROGRAM", "two", "two: No such file")
        d.deciderd.fails("OPEN_DECIDER_SOCKET", "two", "/nonexistent/s: ")


@cases.case
def who_does_not_read():
    """A child that asks without end does not fill the parent's table."""
    count = 10000
    with Whole(cluster(token_file())) as d:
        d.k8sd.reads.clear()
        for cookie in range(1, count + 1):
            d.k8sd.send("OPEN_ASK", cookie=cookie, object="one",
                        kind=C["OPEN_CLUSTER_TOKEN"])
        held = len(os.listdir(f"/proc/{d.process.pid}/fd"))
        assert held < 5000, held
        d.k8sd.reads.set()
        answers = []
        for _ in range(count):
            answers.append(d.k8sd.answers.get(timeout=WAIT_S))
            if answers[-1].fd is not None:
                os.close(answers[-1].fd)
        failed = [m for m in answers if m.name == "OPEN_FAILED"]
        assert failed and all("temporarily" in m.why for m in failed), \
            failed[:1]
        assert d.k8sd.opens("OPEN_CLUSTER_TOKEN", "one") == TOKEN


if __name__ == "__main__":
    Whole.standins("deciderd", "k8sd")
    cases.main()
