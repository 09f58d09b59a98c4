#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""A pod's first process puts the gate's CA where programs of the image look,
and another CA in its place.  /etc is the test's own here, and /usr is not to be
written to but for a part of it."""

import contextlib
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from podlib import Container  # noqa: E402
from case import Cases  # noqa: E402
from hands import WAIT_S, within  # noqa: E402

cases = Cases()
BUNDLE = "ssl/certs/ca-certificates.crt"
LOCAL = "ca-certificates/egressd.crt"


def content(path):
    return path.read_text() if path.exists() else ""


def pem(text):
    return ("-----BEGIN CERTIFICATE-----\n" + text +
            "\n-----END CERTIFICATE-----\n")


PUBLIC, OLD, NEW = pem("public"), pem("old"), pem("new")


class Image:
    """A workspace whose /etc and /usr/local/share are directories here."""

    def __init__(self, tmp):
        self.top = pathlib.Path(tmp)
        for name in ("etc/ssl/certs", "share", "trust"):
            (self.top / name).mkdir(parents=True)
        self.etc, self.share, self.trust = (
            self.top / name for name in ("etc", "share", "trust"))
        self.bundle, self.local = self.etc / BUNDLE, self.share / LOCAL
        self.bundle.write_text(PUBLIC)
        self.renew(OLD)

    def renew(self, text):
        """As the gate does it: in place."""
        fd = os.open(self.trust / "ca.pem", os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            os.write(fd, text.encode())
            os.ftruncate(fd, len(text))
        finally:
            os.close(fd)

    def mounts(self, read_only):
        word = "ro" if read_only else "rw"
        return ["mount --bind /usr /usr", "mount -o remount,bind,ro /usr",
                f"mount --bind {self.share} /usr/local/share",
                f"mount --bind {self.etc} /etc",
                f"mount -o remount,bind,{word} /usr/local/share",
                f"mount -o remount,bind,{word} /etc"]

    def has(self, ca):
        return content(self.bundle).count(ca) == 1 and \
            content(self.local) == ca

    def wait(self, ca):
        within(WAIT_S, lambda: self.has(ca), "the CA in its places")


@contextlib.contextmanager
def image():
    with tempfile.TemporaryDirectory(prefix="egressd-image.") as tmp:
        os.chmod(tmp, 0o755)
        yield Image(tmp)


@contextlib.contextmanager
def begun(of, read_only=False, user=()):
    with tempfile.TemporaryDirectory(prefix="egressd-pod.") as tmp:
        pod = Container(tmp, "-t", of.trust, mounts=of.mounts(read_only),
                        user=user)
        try:
            yield pod
        finally:
            pod.close()


@cases.case
def added():
    with image() as of, begun(of) as pod:
        of.wait(OLD)
        text = of.bundle.read_text()
        assert text.startswith(PUBLIC) and text.count("BEGIN") == 2, text
        assert of.bundle.stat().st_mode & 0o7777 == 0o644
        assert os.listdir(of.bundle.parent) == [of.bundle.name]
        assert pod.end() == 0


@cases.case
def another_ca():
    """In place of the one before, as often as it comes."""
    with image() as of, begun(of):
        of.wait(OLD)
        for ca in (NEW, OLD, pem("x" * 3000), NEW):
            of.renew(ca)
            of.wait(ca)
        text = of.bundle.read_text()
        assert text.startswith(PUBLIC) and text.count("BEGIN") == 2, text


@cases.case
def renamed_ca():
    with image() as of, begun(of):
        of.wait(OLD)
        (of.trust / "part").write_text(NEW)
        (of.trust / "part").rename(of.trust / "ca.pem")
        of.wait(NEW)


@cases.case
def late_ca():
    """The gate had none yet; then half of one."""
    with image() as of:
        of.renew("")
        with begun(of) as pod, pod.hands() as hands:
            hands.call("stat", path="/")
            assert of.bundle.read_text() == PUBLIC
            of.renew(NEW[:-5])
            of.renew(NEW)
            of.wait(NEW)
            assert of.bundle.read_text().count("BEGIN") == 2


@cases.case
def no_bundle():
    """An image without any: the place where most look."""
    with image() as of:
        of.bundle.unlink()
        of.bundle.parent.rmdir()
        with begun(of):
            of.wait(OLD)
            of.renew(NEW)
            of.wait(NEW)
            assert of.bundle.read_text().count("BEGIN") == 1


@cases.case
def linked_bundle():
    """The link stays, its target has it once, by whatever name."""
    with image() as of:
        real = of.etc / "pki.pem"
        of.bundle.rename(real)
        of.bundle.symlink_to("/etc/pki.pem")
        (of.etc / "ssl/ca-bundle.pem").symlink_to("../pki.pem")
        with begun(of):
            within(WAIT_S, lambda: real.read_text().count(OLD) == 1 and
                   of.local.exists())
            of.renew(NEW)
            within(WAIT_S, lambda: real.read_text().count(NEW) == 1 and
                   content(of.local) == NEW)
            assert real.read_text().count("BEGIN") == 2
            assert of.bundle.is_symlink()


@cases.case
def made_again_by_the_image():
    """update-ca-certificates(8) finds ours and leaves our words out."""
    with image() as of, begun(of):
        of.wait(OLD)
        of.bundle.write_text(PUBLIC + OLD)
        of.renew(NEW)
        of.wait(NEW)
        of.bundle.write_text(PUBLIC + NEW)
        of.renew(NEW + "\n")
        within(WAIT_S, lambda: content(of.local) == NEW + "\n")


@cases.each(["pipe", "directory", "huge", "binary", "nowhere"])
def strange_bundle(what):
    """Left alone, and nothing waits for it."""
    with image() as of:
        of.bundle.unlink()
        if what == "pipe":
            os.mkfifo(of.bundle)
        elif what == "directory":
            of.bundle.mkdir()
        elif what == "nowhere":
            of.bundle.symlink_to("/none/at/all")
        else:
            of.bundle.write_bytes(b"a\0b")
            if what == "huge":
                os.truncate(of.bundle, 1 << 40)
        other = of.etc / "ssl/ca-bundle.pem"
        other.write_text(PUBLIC)
        with begun(of) as pod:
            within(WAIT_S, lambda: of.local.exists())
            of.renew(NEW)
            within(WAIT_S, lambda: content(of.local) == NEW)
            assert other.read_text().count(NEW) == 1
            assert pod.end() == 0


@cases.case
def read_only_image():
    with image() as of:
        with begun(of, read_only=True) as pod:
            of.renew(NEW)
            assert pod.end() == 0
            assert pod.proc.stderr.read() == ""
        assert of.bundle.read_text() == PUBLIC


@cases.case
def not_root():
    with image() as of:
        user = ["--reuid", "65534", "--regid", "65534", "--clear-groups"]
        with begun(of, user=user) as pod:
            assert pod.end() == 0
        assert of.bundle.read_text() == PUBLIC and not of.local.exists()


@cases.case
def signal_from_inside():
    """It is only a look, and finds nothing."""
    with image() as of, begun(of) as pod, pod.hands() as hands:
        of.wait(OLD)
        answer = hands.call("exec", command="for i in 1 2 3 4 5 6 7 8 9; do "
                            "kill -IO 1; done; echo on")
        assert answer.out == b"on\n", answer
        of.renew(NEW)
        of.wait(NEW)
        assert pod.end() == 0


cases.main()
