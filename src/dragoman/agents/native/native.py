"""What an adapter gets to work with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dragoman.agents.adapter import Spawn
from dragoman.config.model import AgentConfig


@dataclass(frozen=True, slots=True)
class Native:
    name: str
    config: AgentConfig
    spawn: Spawn
    environ: Mapping[str, str]
    """What the program starts with, where it runs beside the gateway."""
    boxed: bool
    other: Native | None = None
    """The other kind of agent, where it is installed: for a duet."""
    state: Path | None = None
    """Where choices of people are kept."""
