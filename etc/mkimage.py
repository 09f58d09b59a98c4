#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Make a container image, an OCI archive, of single files; no engine needed.

    mkimage.py [-l] [-u user] [-w directory] [-e word ...] -o archive
        name:tag entry ...

An entry is a path in the image and what is there:

    usr/bin/app=FILE        a copy of a file, mode 755 if that can be run
    tmp/                    a directory; tmp/,1777 with another mode
    bin/sh@busybox          a symbolic link

With -l the shared libraries that its programs need are in it, too, as this
machine has them; /lib leads to /usr/lib as on any Debian.

The same words and files make the same bytes, wherever and whenever: no owner,
no time and no order of a directory goes in."""

import argparse
import hashlib
import io
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import tarfile

MACHINES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm"}
OCI = "application/vnd.oci.image."
NAME = re.compile(r"[a-z0-9][a-z0-9._/:-]*:[A-Za-z0-9_][A-Za-z0-9._-]*")


def member(path, mode, kind=tarfile.REGTYPE):
    """All that differs between machines is left at nothing."""
    info = tarfile.TarInfo(path)
    info.mode, info.type = mode, kind
    return info


def add_bytes(tar, path, data, mode=0o644):
    info = member(path, mode)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))


def read_entry(text):
    """Path, member and contents of an entry of the command line."""
    path, sign, what = re.match(r"([^=@]*)([=@]?)(.*)", text, re.S).groups()
    path, _, mode = path.partition(",")
    clean = path.strip("/")
    if not clean or ".." in clean.split("/"):
        raise ValueError(f"{text}: no path of an image")
    if sign == "@":
        info = member(clean, 0o777, tarfile.SYMTYPE)
        info.linkname = what
        return clean, info, None
    if sign == "=":
        can_run = os.access(what, os.X_OK)
        info = member(clean, int(mode, 8) if mode else
                      0o755 if can_run else 0o644)
        data = pathlib.Path(what).read_bytes()
        info.size = len(data)
        return clean, info, data
    if not path.endswith("/"):
        raise ValueError(f"{text}: neither a file, a directory nor a link")
    return clean, member(clean, int(mode or "755", 8), tarfile.DIRTYPE), None


def needed(path):
    """Libraries of a program and its loader; none of a static one."""
    with open(path, "rb") as file:
        if file.read(4) != b"\x7fELF":
            return []
    done = subprocess.run(["ldd", path], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.DEVNULL, check=False)
    if "not found" in done.stdout:
        raise ValueError(f"{path}: {done.stdout}")
    return re.findall(r"(?:^|=>)\s*(/\S+)", done.stdout, re.M)


def with_libraries(entries):
    """Each where the loader looks for it, below the directory's real name."""
    found = {}
    for text in entries:
        sign = re.match(r"[^=@]*([=@]?)(.*)", text, re.S)
        for library in needed(sign[2]) if sign[1] == "=" else []:
            folder, name = os.path.split(library)
            found[os.path.join(os.path.realpath(folder), name)] = library
    links = {f"{top}@usr/{top}" for top in ("lib", "lib64")
             if any(path.startswith(f"/usr/{top}/") for path in found)}
    return [*entries, *sorted(links),
            *(f"{path[1:]},755={library}"
              for path, library in sorted(found.items()))]


def with_parents(entries):
    """By path, and the directories that nobody has named."""
    found = {}
    for path, info, data in entries:
        if path in found:
            raise ValueError(f"{path}: twice")
        found[path] = info, data
    for path in list(found):
        for parent in pathlib.PurePosixPath(path).parents:
            if str(parent) != ".":
                found.setdefault(str(parent), (
                    member(str(parent), 0o755, tarfile.DIRTYPE), None))
    return sorted(found.items())


def make_layer(entries):
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w",
                      format=tarfile.PAX_FORMAT) as tar:
        for _, (info, data) in with_parents(map(read_entry, entries)):
            tar.addfile(info, None if data is None else io.BytesIO(data))
    return layer.getvalue()


def full_name(name):
    """As engines complete it: a registry, and a folder in the first one."""
    first, slash, _ = name.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return name
    return "docker.io/" + (name if slash else "library/" + name)


class Archive:
    """An OCI image layout in a tar."""

    def __init__(self):
        self.blobs = {}

    def blob(self, kind, data, **more):
        """Descriptor of a blob that is new."""
        if not isinstance(data, bytes):
            data = json.dumps(data, sort_keys=True).encode()
        digest = hashlib.sha256(data).hexdigest()
        self.blobs[f"blobs/sha256/{digest}"] = data
        return {"mediaType": OCI + kind, "digest": f"sha256:{digest}",
                "size": len(data), **more}

    def write(self, to, index):
        with tarfile.open(fileobj=to, mode="w",
                          format=tarfile.PAX_FORMAT) as tar:
            add_bytes(tar, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
            add_bytes(tar, "index.json",
                      json.dumps(index, sort_keys=True).encode())
            for path in sorted(self.blobs):
                add_bytes(tar, path, self.blobs[path])


def make(to, name, entries, user="", cwd="/", entrypoint=(),
         machine=platform.machine()):
    """Write the archive to a binary file."""
    archive = Archive()
    layer = make_layer(entries)
    config = archive.blob("config.v1+json", {
        "architecture": MACHINES.get(machine, machine), "os": "linux",
        "config": {
            "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:"
                    "/sbin:/bin"],
            "User": user, "WorkingDir": cwd,
            **({"Entrypoint": list(entrypoint)} if entrypoint else {})},
        "rootfs": {"type": "layers", "diff_ids": [
            "sha256:" + hashlib.sha256(layer).hexdigest()]}})
    manifest = archive.blob("manifest.v1+json", {
        "schemaVersion": 2, "mediaType": OCI + "manifest.v1+json",
        "config": config,
        "layers": [archive.blob("layer.v1.tar", layer)]}, annotations={
            "org.opencontainers.image.ref.name": name,
            "io.containerd.image.name": full_name(name)})
    archive.write(to, {"schemaVersion": 2, "manifests": [manifest]})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-l", action="store_true")
    parser.add_argument("-u", metavar="user", default="")
    parser.add_argument("-w", metavar="directory", default="/")
    parser.add_argument("-e", metavar="word", action="append", default=[])
    parser.add_argument("-o", metavar="archive", required=True)
    parser.add_argument("name")
    parser.add_argument("entries", nargs="+")
    args = parser.parse_args()
    if not NAME.fullmatch(args.name):
        sys.exit(f"mkimage: {args.name}: not a name:tag")
    buf = io.BytesIO()
    try:
        entries = with_libraries(args.entries) if args.l else args.entries
        make(buf, args.name, entries, args.u, args.w, args.e)
        pathlib.Path(args.o).write_bytes(buf.getvalue())
    except (OSError, ValueError) as error:
        sys.exit(f"mkimage: {error}")


if __name__ == "__main__":
    main()
