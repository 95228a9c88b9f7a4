"""What a tool may use while it works."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dragoman.builtin.files.workspace import Workspace
from dragoman.builtin.modes import Mode
from dragoman.builtin.running_commands import Commands
from dragoman.builtin.sandbox.box import Box
from dragoman.builtin.tools.tool import Json


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The session as one call of a tool sees it."""

    mode: Mode
    workspace: Workspace
    """The files that the mode works on: those in its box, if it has one."""
    box: Box
    roots: Sequence[str]
    """The folders of the session, as they are outside of any box."""
    commands: Commands
    show: Callable[[Sequence[Json]], None]
    """Replace what the client shows for this call, while it runs."""
    set_plan: Callable[[list[Json]], None]
