# SPDX-License-Identifier: ISC

"""Images of the tests, made of Debian's static programs by etc/mkimage.py.

    root    a shell and tools, as root
    user    the same, as a user
    bare    one static program and no shell, as many images of servers are"""

import io
import os
import pathlib
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "etc"))
import mkimage  # noqa: E402

BUSYBOX = "/bin/busybox"        # of busybox-static
STATIC = "/sbin/ldconfig"       # any static program; every Debian has this
PROGRAM = "/app/program"        # it, in the image
PREFIX = os.environ.get("K8S_IMAGES", "localhost")
USERS = {"root": "", "user": "1000:1000", "bare": "65532:65532"}
PASSWD = ("root:x:0:0:root:/root:/bin/sh\n"
          "agent:x:1000:1000:agent:/home/agent:/bin/sh\n")


def name(kind):
    return f"{PREFIX}/egressd-test-{kind}:1"


def tools():
    """Entries of an image with a shell."""
    listed = subprocess.run([BUSYBOX, "--list"], check=True, text=True,
                            stdout=subprocess.PIPE).stdout.split()
    return [f"bin/busybox={BUSYBOX}", "tmp/,1777", "root/,700",
            *(f"bin/{tool}@busybox" for tool in listed if tool != "busybox")]


def entries(kind, passwd):
    if kind == "bare":
        return [f"{PROGRAM.lstrip('/')}={STATIC}", "tmp/,1777"]
    return [*tools(), f"etc/passwd={passwd}"]


def make(kind):
    """The bytes of the archive."""
    archive = io.BytesIO()
    with tempfile.NamedTemporaryFile("w", suffix=".passwd") as passwd:
        passwd.write(PASSWD)
        passwd.flush()
        mkimage.make(archive, name(kind), entries(kind, passwd.name),
                     user=USERS[kind])
    return archive.getvalue()
