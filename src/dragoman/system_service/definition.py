"""What a service manager has to know: the command, its environment, and where its file is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

KEPT = ("DRAGOMAN_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
"""Variables that decide where sessions and settings are: the service uses the same as the terminal."""
ARGUMENTS = ("serve", "--log-format", "json")


@dataclass(frozen=True, slots=True)
class Definition:
    """The command of the service and its environment."""

    program: Path
    path: str
    environ: Mapping[str, str] = field(default_factory=dict)

    @property
    def command(self) -> list[str]:
        return [str(self.program), *ARGUMENTS]

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: self.environ[name] for name in KEPT if self.environ.get(name, "").startswith("/")}
        return {"PATH": self.path, **kept}


@dataclass(frozen=True, slots=True)
class Status:
    """Whether the service runs, and starts by itself, in the words of its manager."""

    active: str
    enabled: str

    @property
    def runs(self) -> bool:
        return self.active == "active"


class Manager(Protocol):
    """A service manager of a user."""

    @property
    def name(self) -> str: ...

    @property
    def file(self) -> Path: ...

    def render(self, definition: Definition) -> bytes: ...

    def is_ours(self, content: bytes) -> bool:
        """Whether we wrote the file."""

    def program_in(self, content: bytes) -> str | None:
        """The program that the file starts."""

    def unavailable(self) -> str:
        """Why the manager cannot be used here; empty if it can."""

    def start_commands(self) -> Sequence[Sequence[str]]:
        """What starts the service now and at each login, also after its file changed."""

    def stop_commands(self) -> Sequence[Sequence[str]]:
        """What stops it before its file is removed."""

    def forget_commands(self) -> Sequence[Sequence[str]]:
        """What makes the manager forget it after its file was removed."""

    def status(self) -> Status: ...

    def hints(self) -> Sequence[str]:
        """What to know about logs and logging out."""
