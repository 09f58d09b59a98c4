#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""What the fence makes of a pod's volumes, in the network of one, with no
capability but NET_ADMIN."""

import contextlib
import os
import pathlib
import stat
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from podnet import BUILD, FENCE, RULES, Namespace  # noqa: E402
from case import Cases, Skip  # noqa: E402

cases = Cases()
BOX = BUILD / "libexec" / "egressd-box"
FILES = ["bundle.pem", "ca.jks", "ca.pem"]
ONLY = ["setpriv", "--inh-caps", "-all", "--bounding-set", "-all,+net_admin"]


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


class Volumes:
    """As the kubelet makes them."""

    def __init__(self, tmp, net):
        self.top, self.net = pathlib.Path(tmp), net
        for name in ("trust", "run", "spool", "bin"):
            (self.top / name).mkdir()
            (self.top / name).chmod(0o777)

    def __getattr__(self, name):
        return self.top / name

    def fence(self, *opts):
        return self.net.run(*ONLY, FENCE, *RULES, *opts, umask=0o077)

    def all(self):
        return self.fence("-T", self.trust, "-v", self.run, "-v", self.spool,
                          "-b", self.bin)

    def check(self):
        for name in ("trust", "run", "spool", "bin", "trust/pod"):
            assert mode(self.top / name) == 0o755, name
        assert sorted(os.listdir(self.trust / "pod")) == FILES
        for name in FILES:
            assert mode(self.trust / "pod" / name) == 0o644, name
            assert (self.trust / "pod" / name).is_file()
        assert (self.bin / "egressd-box").read_bytes() == BOX.read_bytes()
        assert mode(self.bin / "egressd-box") == 0o755


@contextlib.contextmanager
def volumes():
    with tempfile.TemporaryDirectory(prefix="egressd-volumes.") as tmp:
        net = Namespace()
        try:
            yield Volumes(tmp, net)
        finally:
            net.close()


def good(done):
    assert (done.returncode, done.stdout) == (0, ""), done


@cases.case
def made_fit():
    with volumes() as v:
        good(v.all())
        v.check()
        assert not list((v.trust / "pod").glob("[!bc]*"))
        assert all(not (v.trust / "pod" / name).read_bytes()
                   for name in FILES)


@cases.case
def again_in_a_new_network():
    """The pause container died: another namespace, the same volumes, and a
    gate whose files are in use."""
    with volumes() as v:
        good(v.all())
        ca = v.trust / "pod" / "ca.pem"
        ca.write_text("a certificate")
        (v.run / "egressd.sock").write_text("")
        inode = ca.stat().st_ino
        v.run.chmod(0o777)
        v.net.close()
        v.net = Namespace()
        good(v.all())
        good(v.all())
        v.check()
        assert ca.read_text() == "a certificate"
        assert ca.stat().st_ino == inode
        assert (v.run / "egressd.sock").exists()


@cases.case
def directory_in_place_of_a_file():
    """As a kubelet makes them that mounts a file which is not there."""
    with volumes() as v:
        for name in FILES:
            (v.trust / "pod" / name).mkdir(parents=True)
        good(v.all())
        v.check()


@cases.case
def one_file_is_missing():
    with volumes() as v:
        good(v.all())
        (v.trust / "pod" / "ca.jks").unlink()
        (v.trust / "pod" / "bundle.pem").write_text("kept")
        good(v.all())
        v.check()
        assert (v.trust / "pod" / "bundle.pem").read_text() == "kept"


@cases.case
def volume_of_a_group():
    """With fsGroup the kubelet sets these bits."""
    with volumes() as v:
        v.trust.chmod(0o2777)
        v.run.chmod(0o3777)
        good(v.all())
        v.check()


@cases.each(["missing", "a_file", "a_link", "full_directory", "fifo",
             "link_inside"])
def not_fit(how):
    """Named; and the network is closed all the same."""
    with volumes() as v:
        pod = v.trust / "pod"
        if how == "missing":
            done = v.fence("-v", v.top / "none")
        elif how == "a_file":
            (v.top / "file").write_text("")
            done = v.fence("-v", v.top / "file")
        elif how == "a_link":
            (v.top / "link").symlink_to(v.run)
            done = v.fence("-v", v.top / "link")
        else:
            pod.mkdir()
            if how == "full_directory":
                (pod / "ca.pem" / "x").mkdir(parents=True)
            elif how == "fifo":
                os.mkfifo(pod / "ca.pem")
            else:
                (v.top / "elsewhere").write_text("x")
                (pod / "ca.pem").symlink_to(v.top / "elsewhere")
            done = v.all()
            assert "ca.pem" in done.stdout, done
        assert done.returncode == 1 and done.stdout, done
        done = v.fence("-n")
        assert done.returncode == 0, done


@cases.case
def volume_of_another():
    """Without the capability to, nothing of another's is changed."""
    if os.geteuid() != 0:
        raise Skip("not root")
    with volumes() as v:
        os.chown(v.run, 65534, 65534)
        done = v.all()
        assert done.returncode == 1 and str(v.run) in done.stdout, done
        assert mode(v.run) == 0o777


cases.main()
