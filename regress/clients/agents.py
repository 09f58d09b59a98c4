#!/usr/bin/env python3
# SPDX-License-Identifier: ISC

"""Coding agents as npm installs them, in a sandbox by the one line that the
README has, with a stand-in for the API that they ask.  Each answers a prompt
from its command line and in its terminal interface."""

import atexit
import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "lib"),
                str(HERE.parent / "sandbox")]
from case import Cases, Skip  # noqa: E402
from daemon import TOP, until  # noqa: E402
from origin import authority  # noqa: E402
from runlib import place, records  # noqa: E402
from standin_models import WORD, Models  # noqa: E402

cases = Cases()
here = place()
atexit.register(here.end)

WHO = "root" if os.getuid() == 0 else "user"
ADDRESS = "127.0.61.1"
PACKAGES = TOP / "build" / "npm"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SLOW_S = 60


def claude_settings(home, work):
    """What a person has answered the first time."""
    (home / ".claude.json").write_text(json.dumps({
        "hasCompletedOnboarding": True, "theme": "dark",
        "customApiKeyResponses": {"approved": ["sk-standin"],
                                  "rejected": []},
        "projects": {str(work): {"hasTrustDialogAccepted": True}}}))


def codex_settings(home, work):
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text(f"""
check_for_update_on_startup = false
model_provider = "standin"
[model_providers.standin]
name = "standin"
base_url = "https://api.openai.com/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
[projects."{work}"]
trust_level = "trusted"
""")


# With each: the host it asks, the path, and how it takes a prompt.
AGENTS = {
    "claude": ("api.anthropic.com", "/v1/messages", claude_settings,
               ["-p", "say pong"]),
    "codex": ("api.openai.com", "/v1/responses", codex_settings,
              ["exec", "--skip-git-repo-check", "say pong"]),
}


@functools.cache
def models():
    if os.getuid() != 0:
        raise Skip("not root: the stand-in listens on port 443")
    hosts = [host for host, *_ in AGENTS.values()]
    return Models(ADDRESS, *authority().leaf(*hosts))


def scene(agent):
    """A home as npm's own prefix leaves it, a project and a policy, which is
    what `egressctl profile` prints."""
    if not (PACKAGES / "bin" / agent).exists():
        raise Skip(f"{agent} is not installed")
    host, _, settings, _ = AGENTS[agent]
    models()
    home, work = here.fresh(WHO, "home"), here.fresh(WHO, "work")
    # By hard links: it is a large program, and nobody writes to it.
    try:
        shutil.copytree(PACKAGES, home / ".npm-global", symlinks=True,
                        copy_function=os.link)
    except OSError:
        shutil.rmtree(home / ".npm-global")
        shutil.copytree(PACKAGES, home / ".npm-global", symlinks=True)
    settings(home, work)
    policy = here.run(WHO, "profile", agent).stdout
    conf, log = here.conf(WHO, policy, f'hosts {{ "{host}" {ADDRESS} }}\n')
    env = {"PATH": f"{home}/.npm-global/bin:{PATH}", "TERM": "xterm-256color",
           "ANTHROPIC_API_KEY": "sk-standin", "OPENAI_API_KEY": "sk-standin"}
    return home, work, conf, log, env


def asked_through(log, agent):
    """The stand-in was asked, and by way of the gate."""
    host, path, *_ = AGENTS[agent]
    assert (host, path) in models().asked, models().asked
    found = [r for r in records(log) if r["kind"] == "request_closed" and
             r["request"]["path"].partition("?")[0] == path]
    assert found and {r["request"]["host"] for r in found} == {host}, found


@cases.each(AGENTS)
def prompt(agent):
    home, work, conf, log, env = scene(agent)
    models().asked.clear()
    done = here.run(WHO, "run", "-f", conf, "--", agent, *AGENTS[agent][3],
                    home=home, work=work, env=env)
    assert done.returncode == 0, (done.stdout[-400:], done.stderr[-800:])
    assert WORD in done.stdout, (done.stdout[-400:], done.stderr[-800:])
    assert f"profile {agent}" in done.stderr, done.stderr
    asked_through(log, agent)


class Terminal:
    """A terminal of tmux's own, with a server of its own."""

    def __init__(self, home):
        if shutil.which("tmux", path=PATH) is None:
            raise Skip("tmux is not installed")
        self.socket = str(home / "tmux")

    def tmux(self, *args, **kwargs):
        return subprocess.run(["tmux", "-S", self.socket, *args], check=True,
                              capture_output=True, text=True, **kwargs).stdout

    def start(self, command, work, env):
        # Without a configuration file, and with nothing of ours around it.
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", "100", "-y",
                  "30", "-c", str(work), *command, env=env)

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def end(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"],
                       capture_output=True, check=False)


@cases.each(AGENTS)
def terminal(agent):
    """The interface draws, takes a prompt, and shows the answer."""
    home, work, conf, log, env = scene(agent)
    models().asked.clear()
    term = Terminal(home)
    try:
        term.start([str(here.ctl), "run", "-q", "-f", str(conf), "--", agent],
                   work, {**env, "HOME": str(home), "LC_ALL": "C.UTF-8"})
        until("it draws", lambda: any(
            c in term.screen() for c in "\u276f\u203a"), SLOW_S)
        term.keys("-l", "say pong")
        until("it shows what is typed", lambda: "say pong" in term.screen(),
              SLOW_S)

        def answered():
            # Keys that come fast are a paste, where Enter is a new line.
            if not models().asked:
                term.keys("Enter")
            return WORD in term.screen()
        until("it shows the answer", answered, SLOW_S)
    finally:
        term.end()
    asked_through(log, agent)


cases.main()
