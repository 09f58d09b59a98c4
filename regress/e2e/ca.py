#!/usr/bin/python3
# SPDX-License-Identifier: ISC

"""The CA of a session: how long it and its leaves last, what its end and a
new one look like to clients, records, log and status."""

import contextlib
import datetime
import hashlib
import os
import pathlib
import signal
import ssl
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from case import Cases  # noqa: E402
from daemon import SANITIZED, Daemon, until  # noqa: E402
from gate import GOOD, Gate, get  # noqa: E402
from origin import Authority  # noqa: E402

cases = Cases()

DAY_S = 86400
SHORT_S = 15 if SANITIZED else 6    # enough to start and shake hands once

SIGNING = """[ca]
default_ca = it
[it]
database = {0}/index
new_certs_dir = {0}
default_md = sha256
policy = any
rand_serial = yes
x509_extensions = authority
[any]
commonName = supplied
[authority]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign
subjectKeyIdentifier = hash
"""


def same(have, want, why=""):
    assert have == want, f"{have!r}, expected {want!r} {why}"


def make_ca(directory, name, seconds):
    """(certificate, key) of a CA that ends in so many seconds."""
    cert, key, request = (directory / f"{name}.{kind}"
                          for kind in ("pem", "key", "csr"))
    conf = directory / f"{name}.conf"
    conf.write_text(SIGNING.format(directory))
    (directory / "index").write_text("")
    Authority.openssl("req", "-new", *Authority.fresh(key), "-subj",
                      f"/CN=regress {name}", "-out", request)
    now = datetime.datetime.now(datetime.timezone.utc)
    dates = [(now + datetime.timedelta(seconds=s)).strftime("%Y%m%d%H%M%SZ")
             for s in (-3600, seconds)]
    Authority.openssl("ca", "-batch", "-notext", "-selfsign", "-config", conf,
                      "-keyfile", key, "-in", request, "-out", cert,
                      "-startdate", dates[0], "-enddate", dates[1])
    return cert, key


def given(cert, key):
    return f'127.0.0.1 port 15001\nca certificate "{cert}" key "{key}"'


def until_end(certificate):
    return ssl.cert_time_to_seconds(certificate["notAfter"]) - time.time()


def answered(gate):
    """The policy denies it, over TLS that the client has verified."""
    with gate.tls() as wire:
        same(wire.ask(get()).status, 403)
        return wire.sock.getpeercert()


def fingerprint(gate):
    der = ssl.PEM_cert_to_DER_cert(gate.ca.read_text())
    return hashlib.sha256(der).hexdigest()


def status(gate):
    return gate.ask("status")["sessions"][0]


def started(gate):
    return [r["ca_sha256"] for r in gate.records()
            if r["kind"] == "session_started"]


def restart_engine(gate):
    os.kill(gate.engine(), signal.SIGKILL)
    until("its end is known", lambda: status(gate)["restarts"] == 1)
    gate.settle()


@cases.case
def made():
    """No session outlives it; leaves are short, and long enough."""
    with Gate("") as gate:
        leaf = answered(gate)
        ca = gate.context().get_ca_certs()[0]
        assert until_end(ca) > 9 * 365 * DAY_S, ca
        assert 6 * DAY_S < until_end(leaf) < 8 * DAY_S, leaf
        have = status(gate)["ca"]
        same((have["sha256"], have["changes"]), (fingerprint(gate), 0))
        same(have["not_after"][:4], ca["notAfter"].split()[3])
        same(started(gate), [fingerprint(gate)])
        assert "CA" not in gate.ctl("status").stdout, gate.ctl("status")


@cases.case
def from_operator():
    """Leaves of a given CA last longer than hours; its last month is worth a
    warning, and an engine that starts again keeps it."""
    gate = Gate("")
    gate.listen = given(*make_ca(gate.dir, "month", 20.5 * DAY_S))
    gate.policy("")
    with gate:
        assert until_end(answered(gate)) > 6 * DAY_S
        assert "session edge: CA expires in 20 days, at " in gate.log()
        text = gate.ctl("status").stdout
        assert "\nsession edge: CA EXPIRES at 20" in text, text
        restart_engine(gate)
        answered(gate)
        same(status(gate)["ca"]["changes"], 0)
        same(started(gate), [fingerprint(gate)] * 2)
        assert "new CA" not in gate.log()


@cases.case
def new_one():
    """A fixed session whose engine died has another: it is said."""
    with Gate("") as gate:
        old, context = fingerprint(gate), gate.context()
        restart_engine(gate)
        until("the new CA", lambda: fingerprint(gate) != old)
        new = fingerprint(gate)
        have = status(gate)["ca"]
        same((have["sha256"], have["changes"]), (new, 1))
        same(started(gate), [old, new])
        assert f"session edge: new CA {new}: clients" in gate.log()
        text = gate.ctl("status").stdout
        assert "\nsession edge: NEW CA, clients must load it again" in text
        try:
            gate.tls(context=context).close()
            raise AssertionError("the old CA still verifies")
        except ssl.SSLCertVerificationError:
            pass
        answered(gate)


@cases.each(["made", "given"])
def restart(whose):
    """The directory is still there when the daemon starts again, and is the
    same for who holds on to it; the log tells a new CA from the old."""
    gate = Gate("")
    if whose == "given":
        gate.listen = given(*make_ca(gate.dir, "ca", 90 * DAY_S))
        gate.policy("")
    with gate:
        old, inode = fingerprint(gate), gate.trust.stat().st_ino
        same(gate.stop(), 0)
        same(fingerprint(gate), old)
        assert "new CA" not in gate.log()
        gate.start()
        answered(gate)
        same(gate.trust.stat().st_ino, inode)
        new = f"session edge: new CA in {gate.trust}: clients" in gate.log()
        same((fingerprint(gate) != old, new), (whose == "made",) * 2)


def refused(gate):
    """TLS is, with an alert that says it."""
    try:
        gate.tls().close()
    except ssl.SSLError as error:
        assert "CERTIFICATE_EXPIRED" in error.reason, error
        return
    raise AssertionError("TLS goes on")


@cases.case
def ends():
    """At the end of a given CA its connections go on, new ones are refused
    legibly and recorded as what they are; a reload brings the next CA."""
    gate = Gate("")
    gate.listen = given(*make_ca(gate.dir, "short", SHORT_S))
    gate.policy("")
    with contextlib.ExitStack() as stack:
        stack.enter_context(gate)
        assert until_end(answered(gate)) <= SHORT_S
        assert "session edge: CA expires in 0 minutes, at " in gate.log()
        wire = stack.enter_context(gate.tls())
        until("its end", lambda: "CA has expired" in gate.log())
        same(wire.ask(get()).status, 403)
        refused(gate)
        record = until("a record", lambda: gate.finals(
            host=GOOD, protocol="tls"))[0]
        same((record["kind"], record["reason"]),
             ("request_failed", "ca_expired"))
        with gate.plain() as plain:
            same(plain.ask(get()).status, 403)
        assert "CA HAS EXPIRED" in gate.ctl("status").stdout
        # One that has ended as well is no better.
        engine = gate.engine()
        cert, key = make_ca(gate.dir, "short", -60)
        error = gate.ask("reload")["error"]
        same(error["code"], "reload_refused")
        assert ("session edge: CA: CA certificate has expired: "
                f"{cert}, {key}") in error["message"], error
        refused(gate)
        make_ca(gate.dir, "short", 40 * DAY_S)
        gate.reload("")
        until("the next CA", lambda: status(gate)["ca"]["changes"] == 1)
        assert until_end(answered(gate)) > 6 * DAY_S
        same(gate.engine(), engine)


@cases.case
def ended():
    """Nobody starts with one that has ended."""
    daemon = Daemon("")
    try:
        cert, key = make_ca(daemon.dir, "old", -60)
        daemon.write(f'policy "p" {{ }}\nsession "edge" {{ policy "p"\n'
                     f'listen on {given(cert, key)} }}\n')
        daemon.popen()
        assert daemon.wait() != 0
        assert "session edge: CA: CA certificate has expired" in daemon.log()
    finally:
        daemon.end()


cases.main()
