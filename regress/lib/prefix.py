# SPDX-License-Identifier: ISC

"""egressd installed where every user can read and run it."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from case import run
from daemon import BUILD, TOP, WAIT_S, Daemon

# Of the build tree, what `make install` starts from.
BUILT = ("obj", "libexec", "egressd", "egressctl", "probes.mk")


class Prefix:
    """A PREFIX of its own with everything else below it.  What is built
    already is copied first, since other tests use the build tree too."""

    def __init__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="egressd-prefix."))
        self.dir.chmod(0o755)
        self.program = self.dir / "sbin" / "egressd"
        try:
            self.install()
        except BaseException:
            self.end()
            raise

    def install(self):
        build = self.dir / "build"
        build.mkdir()
        for path in [*(BUILD / name for name in BUILT), *BUILD.glob("lib*.a")]:
            if path.is_dir():
                shutil.copytree(path, build / path.name)
            elif path.exists():
                shutil.copy2(path, build)
        done = run(["make", "-C", TOP, "--no-print-directory", f"B={build}",
                    f"PREFIX={self.dir}", f"SYSCONFDIR={self.dir}/etc",
                    f"RUNDIR={self.dir}/run", "DESTDIR=", "install"],
                   env={**os.environ, "LC_ALL": "C"})
        assert done.returncode == 0, done.stdout[-800:]
        shutil.rmtree(build)

    def end(self):
        shutil.rmtree(self.dir, ignore_errors=True)


class UserDaemon(Daemon):
    """An ordinary user's daemon.  It cannot look at processes of others, so
    it hangs up on them, root included: whoever asks it is that user too."""

    def __init__(self, prefix, user="nobody", **kwargs):
        super().__init__(user=user, program=prefix.program, **kwargs)

    def ctl(self, *args):
        return subprocess.run(
            [str(self.program.parent / "egressctl"), "-s", str(self.socket),
             *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, timeout=WAIT_S, cwd="/",
            user=self.owner.pw_uid, group=self.owner.pw_gid, extra_groups=[])

    def ask(self, op, **fields):
        assert not fields, fields
        done = self.ctl("-j", *op.split("."))
        assert done.stdout, done.stderr
        return json.loads(done.stdout)
