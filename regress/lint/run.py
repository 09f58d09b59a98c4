#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""regress/lint/style: what it finds, where, and what it lets pass."""

import pathlib
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from case import Cases, run  # noqa: E402

C = "/* SPDX-License-Identifier: ISC */\n"
PY = "#!/usr/bin/env python3\n# SPDX-License-Identifier: ISC\n"

# A name; the file; the line of each finding and a word of it.
FILES = {
    "clean.c": (C + "\n/* system(3) and \"quotes' */\nint\tx;\n", []),
    "clean.py": (PY + "print('strcpy(')\n" + "#" * 99 + "\n", []),
    "columns.c": (C + "x" * 80 + "\n" + "x" * 81 + "\n", [(3, "81 col")]),
    "tabs.h": (C + "\t" * 9 + "x" * 8 + "\n" + "\t" * 9 + "x" * 9 + "\n",
               [(3, "81 columns")]),
    "grammar.y": (C + "%%\n" + "x" * 90 + "\n", [(3, "90 columns")]),
    "calls.c": (C + "a = strcpy(b, c);\n\nn = atoi (s);\n"
                "sprintf(b, \"gets(\");\n",
                [(2, "strcpy"), (4, "atoi"), (5, "sprintf")]),
    "others.c": (C + "snprintf(); my_system(); x->popen(); y.gets(); "
                 "strlcpy();\n/* popen() and\n * alloca() */\n"
                 "s = \"atoi(\"; c = '\"'; t = \"strtok(\";\n", []),
    "hidden.c": (C + "s = \"\\\"\"; system(s);\nc = '\\''; gets(c);\n",
                 [(2, "system"), (3, "gets")]),
    "white.c": (C + "int x; \n\t\n", [(2, "white"), (3, "white")]),
    "white.py": (PY + "x = 1\t\n", [(3, "white")]),
    "end.c": (C + "int x;", [(2, "newline")]),
    "licence.c": ("/* ours */\n" + C, [(1, "SPDX")]),
    "licence.py": ("#!/bin/sh\n\n# SPDX-License-Identifier: ISC\n",
                   [(1, "SPDX")]),
    "empty.h": ("", [(1, "SPDX")]),
}

cases = Cases()


@cases.each(FILES)
def style(name):
    text, expected = FILES[name]
    with tempfile.TemporaryDirectory(prefix="egressd-lint.") as tmp:
        path = pathlib.Path(tmp, name)
        path.write_text(text)
        done = run([TOP / "regress" / "lint" / "style", path])
    lines = done.stdout.splitlines()
    assert len(lines) == len(expected), done.stdout
    for line, (number, what) in zip(lines, expected):
        assert line.startswith(f"{path}:{number}: "), line
        assert what in line, line
    assert done.returncode == (1 if expected else 0), done


cases.main()
