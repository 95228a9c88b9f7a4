"""What all editors have in common: the command that they start, and what can be done with their settings."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dragoman.edited_file import Change

ENV = "/usr/bin/env"
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


@dataclass(frozen=True, slots=True)
class Launch:
    """The command that an editor starts, and the name under which it offers it."""

    name: str
    program: str
    agent: str | None = None
    sandbox: str | None = None
    path: str | None = None
    """The PATH of the program; None leaves the editor's own."""

    @property
    def args(self) -> list[str]:
        agent = [self.agent] if self.agent is not None else []
        sandbox = ["--sandbox", self.sandbox] if self.sandbox is not None else []
        return ["acp", *agent, *sandbox]

    @property
    def env(self) -> dict[str, str]:
        return {"PATH": self.path} if self.path is not None else {}

    @property
    def words(self) -> list[str]:
        """The whole command with its PATH, for settings that have no environment of their own."""
        before = [ENV, f"PATH={self.path}"] if self.path is not None else []
        return [*before, self.program, *self.args]

    @property
    def id(self) -> str:
        """The name in the form of an identifier."""
        return re.sub(r"[^a-z0-9]+", "_", self.name.lower()).strip("_") or "dragoman"


def default_name(agent: str | None, sandbox: str | None) -> str:
    inside = f" in {sandbox}" if sandbox is not None else ""
    return f"Dragoman{f' {agent}' if agent is not None else ''}{inside}"


@dataclass(frozen=True, slots=True)
class Machine:
    """The folders in which editors look for their settings."""

    home: Path
    config: Path
    """`XDG_CONFIG_HOME`, which most editors obey on Linux."""
    environ: Mapping[str, str]
    is_mac: bool = sys.platform == "darwin"

    @classmethod
    def this(cls, environ: Mapping[str, str]) -> Machine:
        home = Path(environ.get("HOME") or Path.home())
        xdg = environ.get("XDG_CONFIG_HOME", "")
        return cls(home, Path(xdg) if xdg.startswith("/") else home / ".config", environ)

    @property
    def support(self) -> Path:
        """Where desktop programs have their settings."""
        return self.home / "Library" / "Application Support" if self.is_mac else self.config


@dataclass(frozen=True, slots=True)
class Found:
    """An entry in the settings of an editor that starts Dragoman."""

    name: str
    program: str
    file: Path


class Editor(Protocol):
    """One editor, or one plugin of an editor."""

    @property
    def title(self) -> str: ...

    @property
    def note(self) -> str:
        """What a person does before or after; one sentence."""

    @property
    def by_hand(self) -> bool:
        """Whether its settings are only shown."""

    def file(self, machine: Machine) -> Path | None:
        """The file that is changed; None if the machine does not tell which one it is."""

    def show(self, launch: Launch) -> str:
        """The settings as text."""

    def install(self, launch: Launch, file: Path) -> list[Change]: ...

    def find(self, file: Path) -> list[Found]: ...

    def remove(self, name: str, file: Path) -> list[Change]: ...


def program_in(words: Sequence[str]) -> str | None:
    """The program of a command that starts Dragoman for an editor; None for any other command."""
    rest = list(words)
    if rest and rest[0].rpartition("/")[2] == "env":
        rest = rest[1:]
        while rest and _ASSIGNMENT.match(rest[0]):
            rest = rest[1:]
    if len(rest) > 1 and rest[0].rpartition("/")[2] == "dragoman" and rest[1] in ("acp", "--acp"):
        return rest[0]
    return None


def split(command: str) -> list[str]:
    """The words of a command line; none if its quotes do not match."""
    try:
        return shlex.split(command)
    except ValueError:
        return []
