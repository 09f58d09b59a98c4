#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Profiles and homes of `egressctl run`: programs that live in their user's
home, and what is kept of what they write there."""

import atexit
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from runlib import WHO, identity, place  # noqa: E402
from case import Cases, Skip, run  # noqa: E402
from daemon import TOP  # noqa: E402

cases = Cases()
here = place()
atexit.register(here.end)

ME = "root" if os.getuid() == 0 else "user"
SHIPPED = sorted(p.name for p in (TOP / "etc" / "profiles").iterdir())


def same(have, want, why=""):
    assert have == want, f"{have!r}, expected {want!r} {why}"


def own(who, path):
    """All of this is that user's."""
    have = identity(who)
    for each in (path, *path.rglob("*")):
        if have:
            os.chown(each, have["user"], have["group"], follow_symlinks=False)
    return path


def home_with(who, profile=None, script="echo agent; cat ~/.agentrc"):
    """A home with a program where installers put it, and a profile."""
    home = here.fresh(who, "home")
    program = home / ".local" / "share" / "agent" / "7"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    (home / ".local" / "bin").mkdir()
    (home / ".local" / "bin" / "agent").symlink_to("../share/agent/7")
    (home / ".secret").write_text("not for the sandbox\n")
    if profile is not None:
        file = home / ".config" / "egressd" / "profiles" / "agent"
        file.parent.mkdir(parents=True)
        file.write_text(profile)
    return own(who, home)


def agent(who, home, *args, command=("agent",), **kwargs):
    conf, _ = here.conf(who)
    path = f"{home}/.local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return here.run(who, "run", "-f", conf, *args, "--", *command, home=home,
                    env={"PATH": path}, **kwargs)


PROFILE = """# of a test
command	agent
read	~/.local/bin ~/.local/share/agent ~/.missing
write	~/.agent/ ~/.agentrc ~/.agent.json
"""


# ---- a program in the home -------------------------------------------------

@cases.each(WHO)
def hidden(who):
    """Its user has it, the sandbox does not: say which option shows it."""
    home = home_with(who)
    done = agent(who, home)
    same((done.returncode, done.stdout), (127, ""), done.stderr)
    assert f"it is {home}/.local/bin/agent, which the sandbox does not " \
        "show" in done.stderr, done.stderr
    shown = [word for word in done.stderr.split()
             if word.startswith(str(home)) and not word.endswith(",")]
    same(shown, [f"{home}/.local/bin", f"{home}/.local/share/agent"])
    options = [o for path in shown for o in ("-x", path)]
    done = agent(who, home, *options)
    same(done.returncode != 127, True, done.stderr)
    assert done.stdout.startswith("agent\n"), done


@cases.case
def hidden_by_path():
    home = home_with(ME)
    done = agent(ME, home, command=[f"{home}/.local/share/agent/7"])
    same(done.returncode, 127, done.stderr)
    assert f"-x {home}/.local/share/agent" in done.stderr, done.stderr


@cases.case
def not_there_at_all():
    """What nobody has is still plainly not found."""
    done = agent(ME, home_with(ME), command=["no-such-program"])
    same(done.returncode, 127, done.stderr)
    assert "does not show" not in done.stderr, done.stderr


@cases.case
def another_is_shown():
    """A hidden one before it in PATH is passed over, as execvp does."""
    home = home_with(ME)
    (home / ".local" / "bin" / "true").symlink_to("../share/agent/7")
    done = agent(ME, home, command=["true"])
    same((done.returncode, done.stdout), (0, ""), done.stderr)


# ---- profiles --------------------------------------------------------------

@cases.each(WHO)
def by_the_command(who):
    home = home_with(who, PROFILE, "echo kept >> ~/.agentrc; "
                     "cat ~/.agent.json; ls -A ~; cat ~/.secret; "
                     "touch ~/.local/bin/x")
    done = agent(who, home)
    same(done.stdout.split(), ["{}", ".agent", ".agent.json", ".agentrc",
                               ".local", ".pki"], done.stderr)
    said, = [line for line in done.stderr.splitlines()
             if line.startswith("egressctl: profile")]
    same(said, "egressctl: profile agent: reads ~/.local/bin "
         "~/.local/share/agent; writes ~/.agent/ ~/.agentrc ~/.agent.json")
    assert "Read-only file system" in done.stderr, done.stderr
    same((home / ".agentrc").read_text(), "kept\n")
    same((home / ".agentrc").stat().st_mode & 0o777, 0o600)
    same((home / ".agent").is_dir(), True)
    same((home / ".missing").exists(), False)


@cases.case
def by_name():
    home = home_with(ME, PROFILE.replace("agent\n", "other\n", 1))
    same(agent(ME, home).returncode, 127)
    done = agent(ME, home, "-P", "agent")
    assert done.stdout.startswith("agent\n"), done
    same(agent(ME, home, "--profile", "none").returncode, 127)


@cases.case
def by_file():
    home = home_with(ME)
    file = here.fresh(ME, "profile") / "mine"
    file.write_text(PROFILE)
    done = agent(ME, home, "-P", file)
    assert done.stdout.startswith("agent\n"), done


@cases.case
def included():
    home = home_with(ME, "include base\ncommand agent\n")
    base = home / ".config" / "egressd" / "profiles" / "base"
    base.write_text(PROFILE.replace("command\tagent", "command\tanother"))
    assert agent(ME, home).stdout.startswith("agent\n")


@cases.case
def quiet():
    home = home_with(ME, PROFILE)
    done = agent(ME, home, "-q")
    same((done.returncode, done.stderr), (0, ""))


WRONG = {
    "word": ("colour ~/x", ":1: unknown word colour"),
    "path": ("# a\nread relative/path", ":2: neither ~/... nor an absolute "
             "path: relative/path"),
    "variable": ("pass A=b", ":1: not the name of a variable: A=b"),
    "include": ("include ../x", ":1: not the name of a profile: ../x"),
    "loop": ("include agent", ":1: nested too deep: agent"),
    "missing": ("include nobody", "there is no profile nobody, known are: "
                "none, agent, "),
    "included": ("# a\ninclude nobody", ":2: from here: nobody"),
    "pattern": ("pass A-B", ":1: not the name of a variable: A-B"),
}


@cases.each(WRONG)
def wrong(what):
    text, why = WRONG[what]
    home = home_with(ME, text + "\n")
    done = agent(ME, home, "-P", "agent")
    same((done.returncode, done.stdout), (125, ""), done.stderr)
    assert why in done.stderr, done.stderr


@cases.case
def broken_one_of_another():
    """It is told, and stops nobody who does not need it."""
    home = home_with(ME, PROFILE)
    (home / ".config" / "egressd" / "profiles" / "aaa").write_text("huh\n")
    done = agent(ME, home)
    assert done.stdout.startswith("agent\n"), done
    assert "profiles/aaa:1: unknown word huh" in done.stderr, done.stderr


@cases.each(SHIPPED)
def shipped(name):
    """Each is read, and the policy that it prints is one."""
    done = here.run(ME, "profile", name)
    same((done.returncode, done.stderr), (0, ""))
    file = here.fresh(ME, "conf") / "egressd.conf"
    file.write_text(done.stdout)
    checked = run([here.prefix.program, "-n", "-f", file])
    same(checked.returncode, 0, checked.stdout)
    assert "allow host" in done.stdout, done.stdout
    assert name in here.run(ME, "profile").stdout.split()


@cases.case
def example_without_configuration():
    """Who has no configuration yet sees one for this program."""
    if os.getuid() != 0:
        raise Skip("not root: the installed configuration is readable")
    home = home_with("user", PROFILE + "host api.agent.test\n")
    path = f"{home}/.local/bin:/usr/bin:/bin"
    done = here.run("user", "run", "--", "agent", home=home,
                    env={"PATH": path})
    same(done.returncode, 125)
    assert 'policy "agent" {\n\tallow host "api.agent.test"\n}' in \
        done.stderr, done.stderr


# ---- homes -----------------------------------------------------------------

@cases.each(WHO)
def lost(who):
    """A private home is gone at the end, and that is said by name."""
    home = home_with(who, PROFILE, "touch ~/.login ~/'a\033[1mb' ~/.agentrc")
    done = agent(who, home)
    same(done.returncode, 0, done.stderr)
    said, = [line for line in done.stderr.splitlines() if "gone" in line]
    assert "\033" not in said and ".login" in said, said
    for kept in (".local", ".agentrc", ".agent"):
        assert kept not in said, said
    same((home / ".login").exists(), False)
    done = agent(who, home, command=["true"])
    assert "gone" not in done.stderr, done.stderr


@cases.each(WHO)
def kept(who):
    """A home for sandboxes alone: the caller's stays as it was."""
    home = home_with(who, PROFILE, "date >> ~/.agentrc; date >> ~/.login; "
                     "wc -l < ~/.login; cat ~/.secret")
    mine = here.fresh(who, "kept")
    for count in (1, 2):
        done = agent(who, home, "--home", mine)
        same(done.stdout, f"{count}\n", done.stderr)
        assert "gone" not in done.stderr, done.stderr
    same(len((mine / ".agentrc").read_text().splitlines()), 2)
    same((home / ".agentrc").exists(), False)
    same((home / ".login").exists(), False)


@cases.each(WHO)
def planted(who):
    """A link that an earlier sandbox has left in a kept home makes nothing
    anywhere else."""
    home = home_with(who, PROFILE)
    mine, target = here.fresh(who, "kept"), here.fresh(who, "target")
    (mine / ".local").symlink_to(target)
    own(who, mine)
    done = agent(who, home, "--home", mine)
    same(done.returncode, 125, done.stderr)
    assert "no place for" in done.stderr, done.stderr
    same(list(target.iterdir()), [])


# How a home has a database of NSS before, and whose a sandbox sees then.
NSS = {
    "private": "ours", "kept": "ours", "kept_empty": "ours",
    "kept_own": "theirs", "kept_link": "none", "kept_deep_link": "none",
    "exposed": "theirs", "exposed_empty": "none", "exposed_file": "none",
    "kept_exposed": "none",
}


def nss_of(home):
    """What it has there, with the text of what is a file."""
    return sorted((str(path.relative_to(home)),
                   path.read_text() if path.is_file() else None)
                  for path in home.rglob("*") if ".pki" in path.parts)


@cases.each([f"{who}-{how}" for who in WHO for how in NSS])
def nss(name):
    """The session's is never left behind, and never in another's place."""
    who, _, how = name.partition("-")
    home, mine = home_with(who, PROFILE), here.fresh(who, "kept")
    target = here.fresh(who, "target")
    base = home if how.startswith("exposed") else mine
    # A path below the database: it is in the home that egressctl sees.
    below = home / ".pki" / "nssdb" / "key4.db"
    if how in ("exposed_file", "kept_exposed"):
        below.parent.mkdir(parents=True)
        below.write_text("their keys")
        own(who, home)
    if how in ("kept_own", "exposed", "exposed_empty", "kept_empty"):
        (base / ".pki" / "nssdb").mkdir(parents=True)
    if NSS[how] == "theirs":
        (base / ".pki" / "nssdb" / "cert9.db").write_text("theirs")
    if how == "kept_link":
        (mine / ".pki").symlink_to(target)
    if how == "kept_deep_link":
        (mine / ".pki").mkdir()
        (mine / ".pki" / "nssdb").symlink_to(target)
    own(who, base)
    options = (["--home", mine] if how.startswith("kept") else
               ["-X", home / ".pki"] if base == home else [])
    if below.exists():
        options = [*options[:2 * (base == mine)], "-X", below]
    have = nss_of(base)
    for _ in range(2):
        done = agent(who, home, *options, command=["sh", "-c", """
cd ~/.pki/nssdb && test -e cert9.db || { echo none; exit; }
cmp -s cert9.db /etc/egressd-trust/cert9.db || { cat cert9.db; exit; }
cmp key4.db /etc/egressd-trust/key4.db &&
    echo ours && echo more | tee new >>cert9.db
"""])
        same((done.returncode, done.stdout.strip()), (0, NSS[how]),
             done.stderr)
        same("has no place for .pki/nssdb" in done.stderr,
             how.endswith("link"))
    if how in ("kept", "kept_exposed"):
        have = [(".pki", None), (".pki/nssdb", None)]
    if how == "kept_exposed":
        have.append((".pki/nssdb/key4.db", ""))     # to mount on
    same(nss_of(base), have)
    same(list(target.iterdir()), [])


@cases.each(WHO)
def link_of_an_earlier_run(who):
    """What one sandbox has put where it may write opens nothing to the next:
    a path of a profile, a home, a path of an option."""
    home = home_with(who, PROFILE + "read ~/.agent/local\n",
                     "ln -s ~/.local/../.ssh ~/.agent/local; "
                     "ln -s ~/.ssh link; cat ~/.ssh/id link/id ~/id")
    (home / ".ssh").mkdir()
    (home / ".ssh" / "id").write_text("secret key")
    own(who, home)
    work = here.fresh(who, "work")
    for count in (1, 2):
        done = agent(who, home, work=work)
        same((done.returncode, done.stdout), (1, ""), done.stderr)
    assert "is a link, or behind one: not shown" in done.stderr, done.stderr
    for options in (["--home", "link"], ["-x", "link"], ["-X", "./link"],
                    ["-x", f"{home}/.agent/../.agent/local"]):
        done = agent(who, home, *options, work=work)
        same((done.returncode, done.stdout), (125, ""), (options, done))
        assert "is a link, and the sandbox may write where it is" in \
            done.stderr, done.stderr
    # The user's own link, where no sandbox writes, is followed.
    (home / "mine").symlink_to(".ssh")
    done = agent(who, home, "-x", home / "mine", work=work,
                 command=["cat", home / ".ssh" / "id"])
    same(done.stdout, "secret key", done.stderr)


@cases.case
def project_of_that_name():
    """A file of a project is not the program that its name says."""
    home = home_with(ME, PROFILE)
    work = here.fresh(ME, "work")
    (work / "agent").write_text("#!/bin/sh\nls -A ~\n")
    (work / "agent").chmod(0o755)
    done = agent(ME, home, command=["./agent"], work=work)
    same(done.stdout.split(), [".pki"], done.stderr)


@cases.case
def no_such_home():
    home = home_with(ME, PROFILE)
    done = agent(ME, home, "--home", home / "nowhere")
    same(done.returncode, 125, done.stderr)
    assert "nowhere" in done.stderr, done.stderr


cases.main()
