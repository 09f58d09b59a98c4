#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Our image for pods: an archive that other tools read, the same bytes of the
same input, and nothing in it but what is named."""

import hashlib
import io
import json
import os
import pathlib
import shutil
import sys
import tarfile
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from case import Cases, Skip, run  # noqa: E402

cases = Cases()
BUILD = pathlib.Path(os.environ.get("B", TOP / "build"))
MKIMAGE = TOP / "etc" / "mkimage.py"
IN_IMAGE = "usr/local/libexec/egressd-box"


def make(to, name, *entries, options=(), **kwargs):
    done = run([MKIMAGE, *options, "-o", to, name, *entries], **kwargs)
    assert done.returncode == 0, done.stdout
    return to.read_bytes()


def layer(archive):
    """Members of the only layer, each digest on the way as it should be."""
    with tarfile.open(archive) as tar:
        def blob(descriptor):
            digest = descriptor["digest"].removeprefix("sha256:")
            data = tar.extractfile(f"blobs/sha256/{digest}").read()
            assert hashlib.sha256(data).hexdigest() == digest
            assert len(data) == descriptor["size"]
            return data
        index = json.load(tar.extractfile("index.json"))
        manifest, = index["manifests"]
        manifest = json.loads(blob(manifest))
        blob(manifest["config"])
        only, = manifest["layers"]
        data = blob(only)
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {m.name: (m, tar.extractfile(m).read() if m.isreg() else None)
                for m in tar}


def runs_in(found, root):
    """All of them find their libraries in the image."""
    if os.geteuid() != 0:
        return
    for name, (member, data) in found.items():
        path = root / name
        if member.isdir():
            path.mkdir(parents=True, exist_ok=True)
        elif member.issym():
            path.symlink_to(member.linkname)
        else:
            path.write_bytes(data)
            path.chmod(member.mode)
    for name in found:
        if name.startswith(("usr/local/libexec/", "usr/local/sbin/")):
            done = run(["chroot", root, f"/{name}", "-?"])
            assert "shared libraries" not in done.stdout, (name, done.stdout)
            assert "chroot:" not in done.stdout, (name, done.stdout)


@cases.case
def ours():
    """As make image leaves it: our programs, which run in it with what they
    need and nothing of this machine; box even without that."""
    if os.environ.get("SAN"):
        raise Skip("box of a sanitized build has libraries")
    with tempfile.TemporaryDirectory() as tmp:
        done = run(["make", "-C", TOP, f"B={BUILD}", "image"])
        assert done.returncode == 0, done.stdout[-800:]
        found = layer(BUILD / "egressd-image.tar")
        ours = {n for n, (m, _) in found.items() if m.isreg() and
                n.startswith("usr/local/")}
        programs = {f"usr/local/libexec/{p.name}" for p in
                    (BUILD / "libexec").iterdir() if os.access(p, os.X_OK)}
        assert ours == {*programs, "usr/local/sbin/egressd",
                        "usr/local/sbin/egressctl"}, ours ^ programs
        program = pathlib.Path(tmp) / "program"
        program.write_bytes(found[IN_IMAGE][1])
        program.chmod(0o755)
        done = run([program, "keep"])
        assert done.returncode == 125 and "first process" in done.stdout, done
        runs_in(found, pathlib.Path(tmp) / "root")


@cases.case
def same_bytes():
    """Whenever, wherever, whoever, and in whatever order."""
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        (tmp / "a").write_bytes(b"text")
        (tmp / "b").write_bytes(b"text")
        os.utime(tmp / "b", (1, 1))
        if os.geteuid() == 0:
            os.chown(tmp / "b", 1, 1)
        first = make(tmp / "1", "x:1", f"d/f={tmp}/a", "tmp/,1777")
        later = make(tmp / "2", "x:1", "tmp/,1777", "d/f=b", cwd=tmp,
                     umask=0o077)
        assert first == later
        (tmp / "b").write_bytes(b"texT")
        assert first != make(tmp / "3", "x:1", "tmp/,1777", f"d/f={tmp}/b")


@cases.case
def what_is_in_it():
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        (tmp / "run").write_bytes(b"#!")
        (tmp / "run").chmod(0o700)
        (tmp / "plain").write_bytes(b"text")
        (tmp / "plain").chmod(0o600)
        make(tmp / "out", "x:1", f"a/b/run={tmp}/run", f"plain={tmp}/plain",
             f"secret,400={tmp}/plain", "tmp/,1777", "bin/sh@../a/b/run")
        found = layer(tmp / "out")
        assert {n: (m.mode, m.type, m.linkname, data)
                for n, (m, data) in found.items()} == {
            "a": (0o755, tarfile.DIRTYPE, "", None),
            "a/b": (0o755, tarfile.DIRTYPE, "", None),
            "a/b/run": (0o755, tarfile.REGTYPE, "", b"#!"),
            "bin": (0o755, tarfile.DIRTYPE, "", None),
            "bin/sh": (0o777, tarfile.SYMTYPE, "../a/b/run", None),
            "plain": (0o644, tarfile.REGTYPE, "", b"text"),
            "secret": (0o400, tarfile.REGTYPE, "", b"text"),
            "tmp": (0o1777, tarfile.DIRTYPE, "", None)}, found
        assert all((m.uid, m.gid, m.mtime) == (0, 0, 0)
                   for m, _ in found.values())


@cases.case
def skopeo_reads_it():
    if not shutil.which("skopeo"):
        raise Skip("no skopeo")
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        make(tmp / "out.tar", "localhost/x:1", f"f={MKIMAGE}",
             options=["-u", "1000", "-w", "/work", "-e", "/f", "-e=-x"])
        here = f"oci-archive:{tmp}/out.tar:localhost/x:1"
        done = run(["skopeo", "inspect", "--config", here])
        assert done.returncode == 0, done.stdout
        config = json.loads(done.stdout)
        assert config["os"] == "linux", config
        assert {k: v for k, v in config["config"].items() if k != "Env"} == {
            "User": "1000", "WorkingDir": "/work",
            "Entrypoint": ["/f", "-x"]}, config
        done = run(["skopeo", "--insecure-policy", "copy", here,
                    f"oci:{tmp}/copy:1"])
        assert done.returncode == 0, done.stdout


@cases.case
def what_is_none():
    with tempfile.TemporaryDirectory() as tmp:
        for words in (["x", "a/"], ["X:1", "a/"], ["x:1", "../a/"],
                      ["x:1", "/"], ["x:1", "a"], ["x:1", "a=/none"],
                      ["x:1", "a/", "a/"], ["x:1"], ["x:1", "a/,9"]):
            done = run([MKIMAGE, "-o", f"{tmp}/out", *words])
            assert done.returncode != 0 and done.stdout, words
            assert "Traceback" not in done.stdout, done.stdout
        assert os.listdir(tmp) == []


cases.main()
