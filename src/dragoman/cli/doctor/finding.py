"""What a check of `dragoman doctor` is given, and what it finds."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from dragoman.config.load import Loaded
from dragoman.config.paths import Paths

Level = Literal["ok", "warning", "error", "fixed"]
Repair: TypeAlias = Callable[[], str | None]
"""Mends what was found; returns what was done, or None if the finding says that."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: what was looked at, how it is, and what to do about it."""

    level: Level
    about: str
    detail: str
    fix: str = ""
    """A command or a step; empty if there is nothing to do."""
    repair: Repair | None = None
    """Set if `--fix` may do it: it loses nothing that a person could still want."""


@dataclass(frozen=True, slots=True)
class Context:
    """What all checks share; none of them changes it."""

    paths: Paths
    loaded: Loaded
    """The configuration in force; the defaults if it is broken."""
    trouble: str | None = None
    """Why the configuration cannot be used."""
    workspace: Path | None = None
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    platform: str = sys.platform
    say: Callable[[str], object] = lambda text: None
    """Told what is going on."""


@dataclass(frozen=True, slots=True)
class Check:
    """One subject of `dragoman doctor`."""

    name: str
    looks_at: str
    """For the documentation."""
    run: Callable[[Context], Iterable[Finding]]
    seconds: float = 20.0
    """How long it may take; what it found until then is shown."""


@dataclass(frozen=True, slots=True)
class Reported:
    """A finding with the check that made it."""

    check: str
    finding: Finding

    def facts(self) -> dict[str, Any]:
        """The finding as `--json` prints it; docs/how-to/doctor.md describes the fields."""
        found = self.finding
        return {
            "check": self.check,
            "level": found.level,
            "about": found.about,
            "detail": found.detail,
            "fix": found.fix,
            "fixable": found.repair is not None,
        }


def sized(number: int) -> str:
    """A number of bytes for people."""
    for unit, size in (("GB", 2**30), ("MB", 2**20), ("KB", 2**10)):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number} bytes"


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
