"""The git configuration of a repository and of the user, read as data: reading it runs nothing."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from dragoman.checkpoints.git import Program
from dragoman.gateway.ports.commits import CommitError

ASK_SECONDS = 10
USERS = frozenset({"system", "global"})


@dataclass(frozen=True)
class Settings:
    """Values by their keys, the last one first."""

    all: dict[str, list[str]] = field(default_factory=dict)
    users: dict[str, list[str]] = field(default_factory=dict)
    """Those that the repository does not set itself."""

    def get(self, key: str) -> str:
        """The value of a key; the name of a subsection in it is compared as it is written."""
        return next(iter(self.all.get(_folded(key), ())), "")

    def of_user(self, key: str) -> str:
        return next(iter(self.users.get(_folded(key), ())), "")

    def true(self, key: str, default: bool = False) -> bool:
        value = self.get(key).lower()
        return value in ("true", "yes", "on", "1") if value else default

    @property
    def author(self) -> tuple[str, str]:
        """Name and address that the user's commits have."""
        return self.get("user.name"), self.get("user.email")

    def names(self, section: str) -> list[str]:
        """The names of subsections, such as those of remotes."""
        found = {
            key[len(section) + 1 : key.rindex(".")]
            for key in self.all
            if key.startswith(section + ".") and key.count(".") > 1
        }
        return sorted(found)


def read_settings(program: Program, directory: Path) -> Settings:
    """The settings that hold in a git directory."""
    words = ["config", "--null", "--list", "--show-scope"]
    try:
        done = subprocess.run(
            [program.path, f"--git-dir={directory}", *words],
            env=user_environment(),
            cwd=directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=ASK_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CommitError(
            f"The git configuration of {directory} cannot be read: {error}", "bad_config"
        ) from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().removeprefix("fatal: ")
        raise CommitError(f"The git configuration of {directory} cannot be read: {said}", "bad_config")
    return _parsed(done.stdout)


def _parsed(printed: bytes) -> Settings:
    fields = printed.decode(errors="replace").split("\0")
    found = Settings()
    for scope, entry in zip(fields[::2], fields[1::2], strict=False):
        key, equals, value = entry.partition("\n")
        for values in (found.all, found.users) if scope in USERS else (found.all,):
            values.setdefault(_folded(key), []).insert(0, value if equals else "true")
    return found


def _folded(key: str) -> str:
    """A key with section and name in lower case; a subsection keeps its case."""
    section, _, rest = key.partition(".")
    inner, _, name = rest.rpartition(".")
    return f"{section.lower()}.{inner}.{name.lower()}" if inner else f"{section.lower()}.{name.lower()}"


def user_environment(more: Iterable[str] = ()) -> dict[str, str]:
    """The environment in which git finds the user's configuration, and the variables in `more`."""
    names = ("XDG_CONFIG_HOME", "TZ", *more)
    found = {name: os.environ[name] for name in names if name in os.environ}
    return {
        **found,
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "HOME": str(Path.home()),
        "GIT_TERMINAL_PROMPT": "0",
    }
