#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""What a sandbox has in /etc and /var besides the host's: policies that make
browsers trust the session's CA, and apt's lists, which it may renew."""

import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from boxlib import WHO, Place, Sandbox, probe, same  # noqa: E402
from case import Cases, Skip  # noqa: E402

cases = Cases()
place = Place()

FILE = "/policies/managed/zz-egressd.json"
CHROMIUM = [f"/etc/{name}{FILE}" for name in (
    "chromium", "chromium-browser", "opt/chrome", "opt/chrome_for_testing",
    "opt/edge", "brave")]
FIREFOX = "/etc/firefox/policies/policies.json"
CA = {"CACertificates": ["dGhlIENB"]}       # as the stand-in engine has it
INSTALL = {"policies": {"Certificates": {
    "Install": ["/etc/egressd-trust/ca.pem"]}}}
READ = """
        def read(path):
            with open(path) as file:
                return json.load(file)
"""


@cases.each(WHO)
def policies(who):
    """A file for each browser, which the command cannot change."""
    have, _ = probe(place, who, READ + f"""
        paths = {CHROMIUM + [FIREFOX]}
        say([[read(path) for path in paths],
             [attempt(os.open, path, os.O_WRONLY) for path in paths],
             [attempt(os.unlink, path) for path in paths]])
    """)
    same(have[0], [CA] * len(CHROMIUM) + [INSTALL])
    assert set(have[1] + have[2]) <= {"EROFS", "EACCES"}, have


# Policies of the host's own, and links and files where directories should be.
HOST = """
work=$PWD etc=$1 && shift && mount -t tmpfs none $etc &&
cp -a /etc/. $etc && cd $etc && mkdir -p firefox/policies opt/edge apt/x \\
    chromium/policies/managed chromium/policies/recommended &&
rm -rf opt/chrome brave chromium-browser &&
echo '{"A":1}' >chromium/policies/managed/a.json &&
echo '{"A":2}' >chromium/policies/managed/zz-egressd.json &&
echo '{"A":3}' >chromium/policies/recommended/b.json &&
echo '{"A":4}' >firefox/policies/policies.json &&
echo '{"A":5}' >firefox/policies/other.json &&
ln -s /usr/share opt/chrome && ln -s /nowhere brave && echo >chromium-browser &&
cd "$work" && mount --move $etc /etc && exec "$@"
"""


@cases.case
def policies_of_the_host():
    """They stay, but for those in our place.  Where the host has a link, we
    add nothing, and the sandbox is made all the same."""
    if os.getuid() != 0:
        raise Skip("not root")
    code = f"""
import json, os
def read(path):
    try:
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError):
        return None
have = "/etc/chromium/policies/"
print(json.dumps([[read(p) for p in (
    have + "managed/a.json", have + "managed/zz-egressd.json",
    have + "recommended/b.json", "{FIREFOX}",
    "/etc/firefox/policies/other.json",
    "/etc/opt/chrome{FILE}", "/etc/brave{FILE}", "/etc/chromium-browser{FILE}",
    "/etc/opt/edge{FILE}")], os.readlink("/etc/opt/chrome"),
    os.readlink("/etc/brave"), os.path.isfile("/etc/chromium-browser")]))
"""
    etc = place.dir / "etc"
    etc.mkdir()
    box = Sandbox(place, "root", ["/usr/bin/python3", "-c", code],
                  wrap=["unshare", "-m", "sh", "-c", HOST, "x", etc]).finish()
    same((box.rc, box.err), (0, ""))
    same(json.loads(box.out), [
        [{"A": 1}, CA, {"A": 3}, INSTALL, {"A": 5}, None, None, None, CA],
        "/usr/share", "/nowhere", True])


@cases.each(WHO)
def apt_lists(who):
    """The host's are seen and stay as they are; new ones can take their
    place, and what apt fetches has room."""
    host = pathlib.Path("/var/lib/apt/lists")
    if not host.is_dir():
        raise Skip("this machine has no apt")
    before = sorted(os.listdir(host))
    lists = [p.name for p in sorted(host.iterdir())
             if p.is_file() and p.name != "lock" and p.stat().st_mode & 4]
    have, _ = probe(place, who, f"""
        os.chdir("/var/lib/apt/lists")
        def replace(name):
            with open("partial/" + name, "w") as file:
                file.write("new")
            os.rename("partial/" + name, name)
            return open(name).read()
        names = sorted(n for n in os.listdir(".") if os.path.isfile(n))
        size = [os.stat(n).st_size for n in names]
        say([names, size, [attempt(os.open, n, os.O_WRONLY) for n in names],
             [replace(n) for n in ["lock", *names]],
             os.access("/var/cache/apt/archives/partial", os.W_OK),
             os.access("/var/lib/apt/mirrors/partial", os.W_OK)])
    """)
    same(have[:2], [lists, [(host / n).stat().st_size for n in lists]])
    assert set(have[2]) <= {"EROFS", "EACCES"}, have[2]
    same(have[3:], [["new"] * (len(lists) + 1), True, True])
    same(sorted(os.listdir(host)), before)


if __name__ == "__main__":
    try:
        cases.main()
    finally:
        place.remove()
