#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Browsers as they are, in a sandbox behind the gate.  They have roots of their
own, and trust the session's CA by the policies and the database that the
sandbox has.  What they ask of their makers is denied, and nobody misses it."""

import functools
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from clientlib import (ORIGIN, PACKAGES, here, need, of_npm,  # noqa: E402
                       origin, run_through, same, work_for)
from case import Cases, Skip, run  # noqa: E402
from gate import FINAL  # noqa: E402
from origins import digest  # noqa: E402
from programs import program  # noqa: E402

cases = Cases()

# A page with a script that posts before the page is complete, and has the
# answer as its title.
PAGE = """<!DOCTYPE html><title>none</title><link rel=icon href="data:,">
<script>
const request = new XMLHttpRequest();
request.open("POST", "PLACE", false);
request.send("hello");
document.title = request.responseText;
</script>
"""


def browse(browser, who, script, *options, **env):
    """What a browser says, when the origin has served its page and what the
    page's script has posted; each has its record."""
    if who == "root" and os.getuid() != 0:
        raise Skip("not root")
    web = origin()
    page, post = f"/{browser}-{who}.html", f"/hash/{browser}-{who}"
    (web.root / page[1:]).write_text(PAGE.replace("PLACE", post))
    out, written = run_through(who, script, work_for(who), None, options,
                               URL=web.url(page), **env)
    same(web.posted(post), (5, digest(b"hello")))
    finals = [r for r in written if r["kind"] in FINAL and
              r["request"]["host"] == ORIGIN and r["request"].get("path")]
    same(sorted((r["kind"], r["request"]["path"]) for r in finals),
         sorted(("request_closed", path) for path in (page, post)))
    others = {(r["kind"], r["request"]["host"]) for r in written
              if r["kind"] in FINAL and r["request"]["host"] != ORIGIN}
    assert not [o for o in others if o[0] == "request_closed"], others
    return out


@cases.each(["root", "user"])
def chromium(who):
    """With its own sandbox in ours, which only root must forgo."""
    need(program("chromium"))
    out = browse("chromium", who, f"""
chromium --headless --disable-gpu --virtual-time-budget=10000 --dump-dom \\
    {"--no-sandbox" if who == "root" else ""} "$URL" 2>/dev/null
""")
    assert f"<title>{digest(b'hello')}</title>" in out, out


@cases.each(["root", "user"])
def firefox(who):
    need(program("firefox-esr"))
    browse("firefox", who, """
mkdir profile
firefox-esr --headless --no-remote --profile profile \\
    --screenshot "$PWD/page.png" "$URL" 2>/dev/null
test -s page.png
""")


@functools.cache
def headless_shell():
    """A Chromium that reads no policy; npm's package has it compressed."""
    path = of_npm("@sparticuz/chromium/bin/chromium.br")
    into = here.fresh("root", "shell") / "headless_shell"
    done = run(["node", "-e", """
const [from, into] = process.argv.slice(1);
fs.writeFileSync(into, zlib.brotliDecompressSync(fs.readFileSync(from)),
    { mode: 0o755 });
""", path, into])
    same(done.returncode, 0, done.stderr)
    return into


def by_playwright(name, who, browser, *options):
    """npm's package drives it."""
    need(program("node"))
    path = of_npm("playwright-core/index.mjs")
    out = browse(name, who, """
cat >page.mjs <<'END'
const { chromium } = await import(process.env.PLAYWRIGHT);
const browser = await chromium.launch({ executablePath: process.env.BROWSER });
const page = await browser.newPage();
await page.goto(process.env.URL);
console.log(await page.title());
await browser.close();
END
node page.mjs
""", f"-x{PACKAGES}", *options, PLAYWRIGHT=str(path), BROWSER=str(browser))
    same(out.strip(), digest(b"hello"))


@cases.case
def playwright():
    """With Debian's Chromium."""
    need(program("chromium"))
    by_playwright("playwright", "user", "/usr/bin/chromium")


@cases.each(["root", "user"])
def shell(who):
    """It trusts what the NSS database in its home says."""
    path = headless_shell()
    by_playwright("shell", who, path, f"-x{path.parent}")


@cases.each(["root", "user"])
def certutil(who):
    """NSS itself verifies what the gate shows, also after the database has got
    a password, with which it signs what it trusts."""
    need(program("certutil"), program("openssl"))
    web = origin()
    out, _ = run_through(who, """
db=sql:$HOME/.pki/nssdb
certutil -L -d $db
openssl s_client -connect $TO -servername ${TO%:*} </dev/null 2>/dev/null |
    openssl x509 >leaf.pem
certutil -A -d $db -n leaf -t ,, -i leaf.pem
certutil -L -d $db
certutil -V -d $db -n leaf -u V -e
""", work_for(who), TO=f"{ORIGIN}:{web.tls}")
    same([line.split() for line in out.splitlines() if "egressd " in line],
         [["egressd", "C,,"]] * 2)
    assert "certificate is valid" in out, out


cases.main()
