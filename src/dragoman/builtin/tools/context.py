"""What a tool may use while it works."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dragoman.builtin.modes import Mode
from dragoman.builtin.running import Commands
from dragoman.builtin.tools.tool import Json
from dragoman.builtin.workspace import Workspace


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The session as one call of a tool sees it."""

    mode: Mode
    workspace: Workspace
    commands: Commands
    show: Callable[[Sequence[Json]], None]
    """Replace what the client shows for this call, while it runs."""
    set_plan: Callable[[list[Json]], None]
