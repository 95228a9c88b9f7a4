"""`dragoman` commands with scripted agents, run to their end or step by step."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.fork_server import run_forked
from support.gateway_process import agent, clean_environment, toml, with_test_defaults
from support.pseudo_terminal import Terminal

LIMIT = 60


class CommandLine:
    """A home with a configuration, a folder to stand in, and commands that are run there."""

    def __init__(self, home: Path, folder: Path) -> None:
        self.home = home
        self.folder = folder
        self.env = {**clean_environment(), "DRAGOMAN_HOME": str(home)}
        self.configure()

    def configure(self, *flags: str, **sections: Any) -> None:
        """One scripted agent that starts with `flags`, and any other section."""
        agents = {"scripted": agent(*flags), **sections.pop("agents", {})}
        config = {"default_agent": "scripted", **sections, "agents": agents}
        (self.home / "config.toml").write_text(toml(with_test_defaults(config)))

    def run(self, *arguments: str, stdin: str | bytes | None = None) -> subprocess.CompletedProcess[str]:
        """Run to its end; it has loaded its modules before (`nursery.py`), which `start` and `terminal` do not."""
        given = stdin.encode() if isinstance(stdin, str) else stdin
        done = run_forked("gateway", arguments, self.env, self.folder, given, LIMIT)
        out, err = done.stdout.decode(), done.stderr.decode()
        assert "Traceback (most" not in err, err
        return subprocess.CompletedProcess(done.args, done.returncode, out, err)

    @contextmanager
    def start(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """A command that runs meanwhile."""
        process = subprocess.Popen(
            [sys.executable, "-m", "dragoman", *arguments],
            env=self.env,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.kill()

    def terminal(self, *arguments: str) -> Terminal:
        return Terminal(*arguments, env=self.env, cwd=self.folder)

    def session(self, prompt: str = "hello") -> str:
        """The id of a session that said hello and was left."""
        done = self.run("exec", prompt)
        assert done.returncode == 0, done.stderr
        return done.stderr.strip().splitlines()[-1].removeprefix("session ")
