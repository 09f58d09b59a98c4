# SPDX-License-Identifier: ISC

"""Images of the tests, made of Debian's static programs by etc/mkimage.py.

    root    a shell and tools, as root
    user    the same, as a user
    bare    one static program and no shell, as many images of servers are
    client  as root, with Debian's curl and Python and the public bundle"""

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
CURL, PYTHON = "/usr/bin/curl", "/usr/bin/python3"
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
PREFIX = os.environ.get("K8S_IMAGES", "localhost")
USERS = {"root": "", "user": "1000:1000", "bare": "65532:65532"}
ALL = (*USERS, "client")
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


def python():
    """Entries of Debian's Python and what comes with it."""
    folder = pathlib.Path(subprocess.run(
        [PYTHON, "-c", "import os; print(os.path.dirname(os.__file__))"],
        check=True, text=True, stdout=subprocess.PIPE).stdout.strip())
    files = [path for path in sorted(folder.rglob("*"))
             if path.suffix in (".py", ".so") and path.is_file() and
             not {"test", "tests", "idlelib", "lib2to3"} & set(path.parts)]
    return [f"{PYTHON[1:]}={os.path.realpath(PYTHON)}",
            *(f"{str(path)[1:]}={path}" for path in files)]


def client():
    """Entries of clients as a Debian image has them."""
    return mkimage.with_libraries([
        f"{CURL[1:]}={CURL}", *python(), f"{BUNDLE[1:]}={BUNDLE}"])


def entries(kind, passwd):
    if kind == "bare":
        return [f"{PROGRAM.lstrip('/')}={STATIC}", "tmp/,1777"]
    return [*tools(), f"etc/passwd={passwd}",
            *(client() if kind == "client" else [])]


def make(kind):
    """The bytes of the archive."""
    archive = io.BytesIO()
    with tempfile.NamedTemporaryFile("w", suffix=".passwd") as passwd:
        passwd.write(PASSWD)
        passwd.flush()
        mkimage.make(archive, name(kind), entries(kind, passwd.name),
                     user=USERS.get(kind, ""))
    return archive.getvalue()
