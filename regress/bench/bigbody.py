# SPDX-License-Identifier: ISC

"""What the engine weighs while large bodies pass, up and down, for each
mixture of versions.

	B=build /usr/bin/python3 bench/bigbody.py [MiB]

Printed for people to compare; the issue wants less than 32 MiB for a GiB.
The exit status says whether that holds and whether the bytes were the same.
"""

import hashlib
import pathlib
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from check import MIB, noise  # noqa: E402
from gate import GOOD, Gate  # noqa: E402
from origin import Nginx, authority  # noqa: E402

MIXES = [(a, b) for a in ("h1", "h2") for b in ("h1", "h2")]
LIMIT_KIB = 32 * 1024


def make(path, size):
    """Holes with noise here and there."""
    with open(path, "wb") as file:
        for at in range(0, size, 16 * MIB):
            file.seek(at)
            file.write(noise(MIB))
        file.truncate(size)


def digest(file):
    made = hashlib.sha256()
    while data := file.read(MIB):
        made.update(data)
    return made.hexdigest()


def curl(gate, nginx, client, *args):
    return ["curl", "-sS", "-f", {"h1": "--http1.1", "h2": "--http2"}[client],
            "--cacert", str(gate.ca), "--connect-to",
            f"::127.0.0.1:{gate.port(15001)}", "-H", "Expect:", *args,
            f"https://{GOOD}:{nginx.tls}/put/big"]


def up_and_down(client, server, source, size):
    """Seconds up, seconds down, KiB at most, and whether all is well."""
    with Nginx(*authority().leaf(GOOD), h2=server == "h2") as nginx, \
            Gate(f'allow host "{GOOD}" port {nginx.tls}',
                 authority().cert) as gate:
        begin = time.monotonic()
        subprocess.run(curl(gate, nginx, client, "-T", str(source)),
                       check=True)
        middle = time.monotonic()
        with subprocess.Popen(curl(gate, nginx, client),
                              stdout=subprocess.PIPE) as down:
            got = digest(down.stdout)
        end = time.monotonic()
        with open(source, "rb") as file:
            same = got == digest(file)
        peak = gate.memory()
        print(f"{client}-{server} {size / (middle - begin) / MIB:>8.0f} "
              f"{size / (end - middle) / MIB:>8.0f} MiB/s {peak:>8} KiB  "
              f"{'the same' if same else 'NOT THE SAME'}", flush=True)
        return same and down.returncode == 0 and peak < LIMIT_KIB


def main():
    size = int(sys.argv[1] if len(sys.argv) > 1 else 1024) * MIB
    directory = authority().dir / "big"
    directory.mkdir()
    make(directory / "source", size)
    print(f"{size // MIB} MiB, client-origin: up, down, the engine's peak")
    try:
        good = [up_and_down(client, server, directory / "source", size)
                for client, server in MIXES]
    finally:
        shutil.rmtree(directory)
    sys.exit(0 if all(good) else 1)


main()
