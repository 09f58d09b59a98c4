#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""What was built: libraries, hardening, compilers, pages, versions, licences."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from case import Cases, Skip, run  # noqa: E402

BUILD = pathlib.Path(os.environ.get("B", TOP / "build"))

# What each program may link, beyond libc; versions differ.
BASE = {"libc", "ld-linux-x86-64", "libbsd", "libmd"}
DAEMON = BASE | {"libevent_core-2.1", "libseccomp"}
ALLOWED = {
    "egressd": BASE | {"libevent_core-2.1"},
    "egressctl": BASE | {"libcjson"},
    "libexec/egressd-controld": DAEMON | {"libcjson"},
    "libexec/egressd-policyd": DAEMON,
    "libexec/egressd-recorder": DAEMON | {"libcrypto"},
    "libexec/egressd-dialer": DAEMON | {"libcares"},
    "libexec/egressd-deciderd": DAEMON | {
        "libcjson", "libcurl", "libcares", "libsodium",
        "libssl", "libcrypto"},
    "libexec/egressd-k8sd": DAEMON | {
        "libcjson", "libcurl", "libcares", "libsodium",
        "libssl", "libcrypto", "libwslay"},
    "libexec/egressd-podd": DAEMON,
    "libexec/egressd-tlsengine": DAEMON | {"libssl", "libcrypto"},
    "libexec/egressd-kubeconfig": BASE | {"libyaml-0", "libseccomp"},
    "libexec/egressd-fence": BASE | {"libnftnl", "libmnl"},
    "libexec/egressd-launch": BASE,
}

cases = Cases()


@cases.each(ALLOWED)
def needed(program):
    """It links only what its duty needs."""
    out = run(["readelf", "-d", BUILD / program]).stdout
    libs = set(re.findall(r"\(NEEDED\).*\[(.*)\.so\b.*\]", out))
    assert libs, "no NEEDED entry at all"
    extra = libs - ALLOWED[program]
    assert not extra, f"links {' '.join(sorted(extra))}"


@cases.each(["recorder", "deciderd", "k8sd", "tlsengine"])
def one_tls_library(name):
    """Never two of them in a process, whichever it was built with."""
    out = run(["ldd", BUILD / f"libexec/egressd-{name}"]).stdout
    for lib in ("libssl", "libcrypto"):
        found = set(re.findall(rf"\b({lib}\.so\.\S+) =>", out))
        assert len(found) <= 1, f"loads {' and '.join(sorted(found))}"


@cases.each(ALLOWED)
def hardened(program):
    """PIE, full RELRO, no executable stack, stack protector, fortify."""
    path = BUILD / program
    head = run(["readelf", "-h", "-l", "-d", "-W", path]).stdout
    symbols = run(["readelf", "--dyn-syms", "-W", path]).stdout
    assert re.search(r"Type:\s+DYN", head), "not position independent"
    assert "GNU_RELRO" in head, "no RELRO"
    assert "BIND_NOW" in head or "Flags: NOW" in head, "lazy binding"
    assert re.search(r"GNU_STACK.* RW +0x", head), "executable stack"
    assert "__stack_chk_fail" in symbols, "no stack protector"
    # fence calls nothing that could be.
    assert "_chk@" in symbols or "fence" in program, "not fortified"


@cases.case
def box_is_static():
    """box runs in pods of any make: no library, no interpreter."""
    path = BUILD / "libexec/egressd-box"
    head = run(["readelf", "-h", "-l", "-d", "-W", path]).stdout
    assert "NEEDED" not in head and "INTERP" not in head, head[-400:]
    assert re.search(r"Type:\s+DYN", head), "not position independent"
    assert "GNU_RELRO" in head, "no RELRO"
    assert re.search(r"GNU_STACK.* RW +0x", head), "executable stack"


@cases.case
def clang():
    """No warning under clang either."""
    with tempfile.TemporaryDirectory() as tmp:
        done = run(["make", "-C", TOP, "CC=clang", f"B={tmp}", "WERROR=1",
                    "-j2", "all"])
        assert done.returncode == 0, done.stdout[-800:]


@cases.each(["", "1"])
def warnings(errors):
    """Errors for us; whoever has another compiler can build all the same."""
    with tempfile.TemporaryDirectory() as tmp:
        done = run(["make", "-C", TOP, "-n", f"B={tmp}", f"WERROR={errors}",
                    "all"])
        lines = [line for line in done.stdout.splitlines() if " -Wall" in line]
        assert lines, done.stdout[-400:]
        for line in lines:
            assert (" -Werror" in line) == bool(errors), line


@cases.case
def libbsd_headers():
    """They are where pkg-config says."""
    with tempfile.TemporaryDirectory() as tmp:
        pathlib.Path(tmp, "libbsd-overlay.pc").write_text(
            "Name: libbsd-overlay\nVersion: 1\nDescription: elsewhere\n"
            "Cflags: -isystem /elsewhere/bsd\n")
        done = run(["make", "-C", TOP, "-n", f"B={tmp}/build", "all"],
                   env={**os.environ, "PKG_CONFIG_PATH": tmp})
        assert "-isystem /elsewhere/bsd " in done.stdout, done.stdout[-400:]
        assert "/usr/include/bsd" not in done.stdout, done.stdout[-400:]


@cases.case
def libbsd_not_there_yet():
    """That is not remembered: it may be installed next."""
    with tempfile.TemporaryDirectory() as tmp:
        away = {**os.environ, "PKG_CONFIG_LIBDIR": tmp}
        make = ["make", "-C", TOP, "-n", f"B={tmp}/build", "all"]
        assert "LIBBSD_OVERLAY" not in run(make, env=away).stdout
        assert "LIBBSD_OVERLAY" in run(make).stdout


@cases.each(["tls", "both"])
def prefixes(given):
    """Who is built with what of a prefix: box, above all, with nothing."""
    curl = ["CURL_PREFIX=/curl"] if given == "both" else []
    want = {"tlsengine": "tls", "recorder": "tls",
            "deciderd": "curl tls" if curl else "", "box": "", "policyd": ""}
    with tempfile.TemporaryDirectory() as tmp:
        out = run(["make", "-C", TOP, "-n", f"B={tmp}", "TLS_PREFIX=/tls",
                   *curl, "all"]).stdout
    for name, prefix in want.items():
        for word in (f"-c -o {tmp}/obj/{name}/",
                     f"-o {tmp}/libexec/egressd-{name} "):
            lines = [line for line in out.splitlines() if word in line]
            assert lines, f"no {word}"
            for line in lines:
                found = set(re.findall(r"-[IL]/(tls|curl)/", line))
                assert " ".join(sorted(found)) == prefix, line


@cases.case
def manual_pages():
    pages = [str(p) for p in TOP.glob("*/*.[1-9]")]
    assert len(pages) >= 4, pages
    done = run(["mandoc", "-T", "lint", "-W", "warning", *pages])
    assert done.returncode == 0, done.stdout


@cases.each(["egressd", "egressctl"])
def version(program):
    """It is in one place, from where the programs have it."""
    text = (TOP / "GNUmakefile").read_text()
    number, = re.findall(r"^VERSION =\s+(\S+)$", text, re.M)
    done = run([BUILD / program, "-V"])
    assert done.returncode == 0, done
    assert done.stdout == f"{program} {number}\n", done.stdout


@cases.case
def licences():
    """Every file of ours says under which licence it stands."""
    done = run(["git", "-C", TOP, "ls-files", "-co", "--exclude-standard"])
    names = [n for n in done.stdout.split("\n") if n]
    assert names, "git lists no file"
    kinds = (".c", ".h", ".y", ".py", ".5", ".8", ".in")
    for name in names:
        path = TOP / name
        ours = path.suffix in kinds or name in ("GNUmakefile", ".ci/run",
                                                "regress/run")
        if ours and path.exists():
            head = path.read_text(errors="replace").split("\n")[:2]
            assert any("SPDX-License-Identifier: ISC" in line
                       for line in head), name


def install(root, *before):
    """Everything, under a directory of the case."""
    done = run([*before, "make", "-C", TOP, f"B={BUILD}", f"DESTDIR={root}",
                "PREFIX=/opt/egressd", "install"])
    assert done.returncode == 0, done.stdout[-800:]
    return pathlib.Path(root)


@cases.case
def moved():
    """A copy of the tree runs its own programs: the original is hidden."""
    if os.geteuid() != 0:
        raise Skip("only root can mount")
    with tempfile.TemporaryDirectory(prefix="egressd-moved.") as tmp:
        tree = pathlib.Path(tmp, "first")
        tree.mkdir()
        run(["cp", "-a", *(BUILD / name for name in
                           ("egressd", "egressctl", "libexec")), tree])
        tree = tree.rename(tree.with_name("second"))
        conf = pathlib.Path(tmp, "conf")
        conf.write_text('uids 61200 - 61299\naudit file '
                        f'"{tmp}/audit"\npolicy "none" {{ }}\n')
        conf.chmod(0o600)
        done = run(["unshare", "--mount", "sh", "-c",
                    'mount -t tmpfs tmpfs "$0" && exec "$@"', BUILD,
                    tree / "egressctl", "run", "-f", conf, "-p", "none", "--",
                    "echo", "in the sandbox"], cwd=tmp)
        assert "in the sandbox" in done.stdout.splitlines(), done.stdout


@cases.case
def installed():
    """What `make install` puts under DESTDIR runs from PREFIX."""
    with tempfile.TemporaryDirectory() as tmp:
        root = install(tmp)
        for name in ("opt/egressd/sbin/egressd", "opt/egressd/sbin/egressctl",
                     "opt/egressd/libexec/egressd-controld",
                     "opt/egressd/libexec/egressd-policyd",
                     "opt/egressd/share/man/man8/egressd.8",
                     "opt/egressd/share/man/man5/egressd.conf.5",
                     "etc/egressd.conf"):
            assert (root / name).exists(), name
        program = root / "opt/egressd/sbin/egressd"
        assert b"/opt/egressd/libexec" in program.read_bytes()
        assert str(TOP).encode() + b"/build" not in program.read_bytes()
        assert b"/proc/self/exe" not in program.read_bytes()
        done = run([program, "-n", "-f", root / "etc/egressd.conf"])
        assert done.stdout.strip() == "configuration OK", done.stdout


@cases.case
def installed_modes():
    """Who installs may keep files to himself; these are for all to read."""
    with tempfile.TemporaryDirectory() as tmp:
        top = pathlib.Path(tmp, "top")
        install(top, "sh", "-c", 'umask 077 && exec "$@"', "sh")
        assert next(top.rglob("egressd.service"), None), "no unit"
        for path in top.rglob("*"):
            mode = path.stat().st_mode & 0o777
            want = {0o755} if path.is_dir() else {0o600} if \
                path == top / "etc/egressd.conf" else {0o644, 0o755}
            assert mode in want, f"{path}: {mode:o}"


@cases.case
def unit():
    """It starts again for ever, and keeps what clients hold on to."""
    with tempfile.TemporaryDirectory() as tmp:
        root = install(tmp)
        path = next(root.rglob("egressd.service"))
        lines = path.read_text().splitlines()
        head, service = lines.index("[Unit]"), lines.index("[Service]")
        assert head < lines.index("StartLimitIntervalSec=0") < service
        for line in ("Restart=on-failure", "RuntimeDirectoryPreserve=yes",
                     "ExecStart=/opt/egressd/sbin/egressd -d"):
            assert lines.index(line) > service, line
        if shutil.which("systemd-analyze") is None:
            raise Skip("there is no systemd-analyze")
        # It also misses the programs and pages, which are not at PREFIX.
        units = sorted(path.parent.glob("egressd*"))
        assert len(units) == 3, units
        said = run(["systemd-analyze", "verify", *units]).stdout
        wrong = [line for line in said.splitlines()
                 if str(path.parent) in line]
        assert not wrong, wrong


@cases.case
def unit_security():
    """Sandboxes that start elsewhere have cost the daemon's unit nothing."""
    if shutil.which("systemd-analyze") is None:
        raise Skip("there is no systemd-analyze")
    with tempfile.TemporaryDirectory() as tmp:
        path = next(install(tmp).rglob("egressd.service"))
        text = path.read_text()
        for line in ("RestrictNamespaces=yes", "MemoryDenyWriteExecute=yes",
                     "RestrictSUIDSGID=yes", "ProtectSystem=strict"):
            assert f"\n{line}\n" in text, line
        done = run(["systemd-analyze", "security", "--offline=yes",
                    "--threshold=39", path])
        if "offline" in done.stdout and done.returncode == 1:
            raise Skip(done.stdout)
        assert done.returncode == 0, done.stdout[-200:]
        # What would be in the way of programs in there is not in its unit.
        text = next(path.parent.glob("*@.service")).read_text()
        for word in ("MemoryDenyWriteExecute", "RestrictSUIDSGID",
                     "RestrictNamespaces", "ProtectHome", "PrivateTmp"):
            assert f"\n{word}=" not in text, word


cases.main()
