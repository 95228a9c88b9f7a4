"""The parameters of an adapter for an agent with its own protocol."""

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
    """The environment of the program outside of a box."""
    boxed: bool
    other: Native | None = None
    """The other kind of agent, if installed: the guest of a duet."""
    state: Path | None = None
    """Folder for the user's choices."""
