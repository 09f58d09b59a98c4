#!/usr/bin/env python3
#
# Copyright (c) 2026 The egressd authors
#
# Permission to use, copy, modify, and distribute this software for any
# purpose with or without fee is hereby granted, provided that the above
# copyright notice and this permission notice appear in all copies.
#
# THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES
# WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF
# MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR
# ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES
# WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
# ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF
# OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
#

"""Browsers as they are, in a sandbox behind the gate.  They have roots of their
own, and trust the session's CA by the policies that the sandbox has.  What
they ask of their makers is denied, and nobody misses it."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from clientlib import (ORIGIN, PACKAGES, need, of_npm, origin,  # noqa: E402
                       run_through, same, work_for)
from case import Cases, Skip  # noqa: E402
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


@cases.case
def playwright():
    """npm's package, with Debian's Chromium."""
    need(program("chromium"), program("node"))
    path = of_npm("playwright-core/index.mjs")
    out = browse("playwright", "user", """
cat >page.mjs <<'END'
const { chromium } = await import(process.env.PLAYWRIGHT);
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium" });
const page = await browser.newPage();
await page.goto(process.env.URL);
console.log(await page.title());
await browser.close();
END
node page.mjs
""", f"-x{PACKAGES}", PLAYWRIGHT=str(path))
    same(out.strip(), digest(b"hello"))


cases.main()
