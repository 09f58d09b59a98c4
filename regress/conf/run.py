#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# egressd.conf: what parses, how it is printed, and what is refused.
#
#   in/NAME.conf   with ok/NAME.conf, what egressd -nv prints of it
#   err/NAME.conf  with err/NAME.err, what it is refused with
#
# The cases run from a copy, as egressd refuses files that the group of a
# checkout may write to.  EGRESSD names the program.

import glob
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
EGRESSD = os.path.abspath(os.environ.get(
    "EGRESSD", os.path.join(os.environ.get("B", os.path.join(TREE, "build")),
                            "egressd")))

failed = 0


def report(name, why):
    global failed
    if why is None:
        print(f"ok {name}")
    else:
        failed += 1
        print(f"not ok {name}: {why}")


def skip(name, why):
    print(f"skip {name}: {why}")


def egressd(flags, conf, cwd):
    return subprocess.run([EGRESSD, flags, "-f", conf], cwd=cwd,
                          stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=60)


def difference(got, want):
    if got == want:
        return None
    got, want = got.splitlines(), want.splitlines()
    for n, line in enumerate(want):
        if n >= len(got) or got[n] != line:
            other = got[n] if n < len(got) else b"nothing"
            return f"line {n + 1} is {other!r}, not {line!r}"
    return f"unexpected line {got[len(want)]!r}"


def write(path, text, mode=0o600):
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


def read(path):
    with open(path, "rb") as f:
        return f.read()


def accepted(tmp, path):
    """Prints as expected, and what was printed prints as itself."""
    conf = os.path.basename(path)
    first = egressd("-nv", conf, os.path.join(tmp, "in"))
    if first.returncode != 0:
        return f"refused: {first.stderr.decode(errors='replace')}"
    why = difference(first.stdout, read(os.path.join(HERE, "ok", conf)))
    if why is not None:
        return why
    again = os.path.join(tmp, "again.conf")
    with open(again, "wb") as f:
        f.write(first.stdout)
    os.chmod(again, 0o600)
    second = egressd("-nv", again, tmp)
    if second.returncode != 0:
        return f"its print is refused: {second.stderr!r}"
    why = difference(second.stdout, first.stdout)
    return why if why is None else f"its print is not stable: {why}"


def refused(tmp, path):
    conf = os.path.basename(path)
    got = egressd("-nv", conf, os.path.join(tmp, "err"))
    if got.returncode != 1:
        return f"exit status {got.returncode}"
    if got.stdout != b"":
        return "printed a configuration that it refused"
    return difference(got.stderr, read(path[:-len(".conf")] + ".err"))


def refusal(path, want):
    """The first message, when the file is made by the test itself."""
    got = egressd("-n", path, os.path.dirname(path))
    first = got.stderr.decode(errors="replace").split("\n")[0]
    if got.returncode != 1:
        return f"exit status {got.returncode}"
    return None if first == want else f"said {first!r}, not {want!r}"


def permissions(tmp):
    for mode, name in ((0o620, "group"), (0o602, "others")):
        path = write(f"{tmp}/{name}.conf", "log level info\n", mode)
        report(f"writable by {name}", refusal(
            path, f"{path}: writable by group or others"))
        outer = write(f"{tmp}/outer-{name}.conf", f'include "{path}"\n')
        report(f"include writable by {name}", refusal(
            outer, f'{outer}:1: include "{path}": '
            "writable by group or others"))

    path = write(f"{tmp}/owner.conf", "log level info\n", 0o644)
    if os.geteuid() != 0:
        skip("owned by another", "only root can give a file away")
    else:
        os.chown(path, 4242, -1)
        report("owned by another", refusal(
            path, f"{path}: owned by neither root nor the user "
            "running egressd"))


def secrets(tmp):
    """A check alone opens no key, and yet says which would be refused."""
    key = write(f"{tmp}/key", "secret\n", 0o644)
    path = write(f"{tmp}/keys.conf", f"""
decider "a" webhook {{ url "https://x.test/" key file "{key}" }}
decider "b" webhook {{ url "https://x.test/" key file "/usr/bin/env" }}
decider "c" webhook {{ url "https://x.test/" key file "/nonexistent" }}
""")
    for mode, wanted in ((0o644, 3), (0o600, 2)):
        os.chmod(key, mode)
        got = egressd("-n", path, tmp)
        said = got.stderr.decode().splitlines()
        report(f"key of mode {mode:o}", None if got.returncode == 0 and
               said[-1] == "configuration OK" and len(said) == wanted + 1 and
               (mode == 0o600 or f"{path}:2: {key}: holds a secret, and its "
                "mode 0644 gives others rights" in said[0]) and
               said[-2] == f"egressd: {path}:3: /usr/bin/env: holds a "
               "secret, and every sandbox is shown /usr" else repr(said))


def sandbox_users(tmp):
    """Root lends no sandbox its own identity, nor that of its children."""
    block = 'uids 60000 - 65535\npolicy "p" {{ }}\nsandbox "s" {} {{ ' \
        'policy "p" {} }}\n'
    required = 'user is required as the daemon runs as root: user "name", ' \
        "or user caller"
    path = f"{tmp}/user.conf"
    for kind, user, why in (
            ("local", "", required),
            ("virtual", "", required),
            ('custom "/x"', "ungated", required),
            ("local", 'user "root"', 'user "root": must not be root'),
            ("local", 'user "caller"', 'user "caller": does not exist'),
            ("local", 'user "nobody"', 'user "nobody": must not be one of '
             "the daemon's own"),
            ("local", "user caller", None),
            ("local", 'user "daemon"', None),
            ("kubernetes", "ungated", None)):
        name = f"sandbox {kind} {user}"
        write(path, block.format(kind, user))
        if os.geteuid() != 0:
            skip(name, "only root has to give up what it is")
        elif why is None:
            report(name, None if egressd("-n", path, tmp).returncode == 0
                   else "refused")
        else:
            report(name, refusal(path, f'{path}:3: sandbox "s": {why}'))
    if os.geteuid() != 0:
        write(path, block.format("local", ""))
        report("sandbox without user", None if egressd(
            "-n", path, tmp).returncode == 0 else "refused")


def odd_files(tmp):
    os.mkdir(f"{tmp}/dir")
    os.mkfifo(f"{tmp}/fifo", 0o600)
    report("directory", refusal(
        f"{tmp}/dir", f"{tmp}/dir: not a regular file"))
    report("fifo", refusal(f"{tmp}/fifo", f"{tmp}/fifo: not a regular file"))
    report("missing", refusal(
        f"{tmp}/none", f"{tmp}/none: No such file or directory"))
    path = write(f"{tmp}/large.conf", "#" * (1024 * 1024) + "\n")
    report("large", refusal(path, f"{path}: larger than 1M"))
    path = f"{tmp}/nul.conf"
    with open(path, "wb") as f:
        f.write(b"log level info\n\0policy\n")
    os.chmod(path, 0o600)
    report("nul", refusal(path, f"{path}:2: unexpected character"))


def include_bounds(tmp):
    for n in range(20):
        write(f"{tmp}/deep{n}.conf", f'include "deep{n + 1}.conf"\n')
    write(f"{tmp}/deep20.conf", "")
    report("include 16 deep", None if egressd(
        "-n", f"{tmp}/deep4.conf", tmp).returncode == 0 else "refused")
    report("include 17 deep", refusal(
        f"{tmp}/deep3.conf", f'{tmp}/deep19.conf:1: include "deep20.conf": '
        "more than 16 files deep"))

    write(f"{tmp}/a.conf", 'include "b.conf"\n')
    write(f"{tmp}/b.conf", 'include "c.conf"\n')
    write(f"{tmp}/c.conf", 'include "a.conf"\n')
    report("include loop", refusal(
        f"{tmp}/a.conf", f'{tmp}/c.conf:1: include "{tmp}/a.conf": '
        "file includes itself"))

    for n in range(10):
        write(f"{tmp}/wide{n}.conf", f'include "wide{n + 1}.conf"\n' * 2)
    write(f"{tmp}/wide10.conf", "")
    got = egressd("-n", f"{tmp}/wide0.conf", tmp)
    report("include fan-out", None if got.returncode == 1 and
           b"more than 256 files in all" in got.stderr else "not bounded")


def many_errors(tmp):
    path = write(f"{tmp}/many.conf", "bogus\n" * 100)
    lines = egressd("-n", path, tmp).stderr.decode().splitlines()
    want = [f'{path}:{n}: unknown keyword "bogus"' for n in range(1, 33)]
    report("many errors are bounded", None if lines[:32] == want and
           len(lines) == 33 and "68 more errors" in lines[32]
           else f"{len(lines)} lines")


def long_path(tmp):
    """As long as what carries it to policyd, and not longer."""
    rule = 'policy "p" {{\n\tallow path "/{}"\n}}\n'
    path = write(f"{tmp}/path.conf", rule.format("x" * 1023))
    report("path of 1024 bytes", None if egressd(
        "-n", path, tmp).returncode == 0 else "refused")
    path = write(f"{tmp}/longer.conf", rule.format("x" * 1024))
    report("path of 1025 bytes", refusal(
        path, f'{path}:2: path "/{"x" * 1024}": '
        "must have at most 1024 bytes"))


def example(tmp):
    path = f"{tmp}/egressd.conf"
    shutil.copyfile(f"{TREE}/etc/egressd.conf", path)
    os.chmod(path, 0o644)
    got = egressd("-n", path, tmp)
    report("etc/egressd.conf", None if got.returncode == 0 and
           got.stderr == b"configuration OK\n" else repr(got.stderr))


def main():
    if not os.access(EGRESSD, os.X_OK):
        report("conf", f"no program {EGRESSD}")
        return 1
    with tempfile.TemporaryDirectory(prefix="egressd-conf.") as tmp:
        for sub in ("in", "err"):
            shutil.copytree(f"{HERE}/{sub}", f"{tmp}/{sub}")
            for top, dirs, files in os.walk(f"{tmp}/{sub}"):
                os.chmod(top, 0o700)
                for name in files:
                    os.chmod(os.path.join(top, name), 0o600)
        for path in sorted(glob.glob(f"{HERE}/in/*.conf")):
            report("in/" + os.path.basename(path), accepted(tmp, path))
        for path in sorted(glob.glob(f"{HERE}/err/*.conf")):
            report("err/" + os.path.basename(path), refused(tmp, path))
        permissions(tmp)
        secrets(tmp)
        sandbox_users(tmp)
        odd_files(tmp)
        include_bounds(tmp)
        many_errors(tmp)
        long_path(tmp)
        example(tmp)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
