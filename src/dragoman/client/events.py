"""What happens in a session, as typed events.

Every event has `raw`, the message as it came, and `seq`, its number in the session's journal; an update that this
version does not know is an `Unknown`, so nothing is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Anything that happens in a session."""

    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """The message as it came, decoded."""
    seq: int | None = None
    """Its number in the journal; None for what is not stored."""


@dataclass(frozen=True, slots=True)
class Text(Event):
    """A piece of the agent's answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Thought(Event):
    """A piece of the agent's reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class UserMessage(Event):
    """A piece of a prompt: an earlier one, or one of another client."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolStarted(Event):
    """A tool call began."""

    id: str
    title: str
    kind: str = ""
    """`read`, `edit`, `execute`, …; empty if the agent does not say."""
    status: str = "pending"


@dataclass(frozen=True, slots=True)
class ToolUpdated(Event):
    """A tool call goes on or ended; what is None did not change."""

    id: str
    title: str | None = None
    status: str | None = None
    """`pending`, `in_progress`, `completed` or `failed`."""

    @property
    def ended(self) -> bool:
        return self.status in ("completed", "failed")


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One step of a plan."""

    content: str
    status: str
    """`pending`, `in_progress` or `completed`."""


@dataclass(frozen=True, slots=True)
class Plan(Event):
    """The agent's plan, whole each time."""

    steps: tuple[PlanStep, ...]


@dataclass(frozen=True, slots=True)
class Usage(Event):
    """How full the agent's context is."""

    used: int | None
    size: int | None
    cost: float | None = None
    """What the session cost so far, if the agent says it."""


@dataclass(frozen=True, slots=True)
class Notice(Event):
    """A remark of the gateway."""

    text: str
    severity: str = "info"
    """`info`, `warning` or `error`."""


@dataclass(frozen=True, slots=True)
class ModeChanged(Event):
    """The session's mode is another now."""

    mode: str


@dataclass(frozen=True, slots=True)
class OptionsChanged(Event):
    """The session's options, such as its model, with their present values."""

    options: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class CommandsChanged(Event):
    """The names of the agent's slash commands."""

    commands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InfoChanged(Event):
    """The session's title or state changed; what is None did not."""

    title: str | None = None
    state: str | None = None


@dataclass(frozen=True, slots=True)
class CaughtUp(Event):
    """The last missed event was before this one: what follows happens now."""

    state: str = ""


@dataclass(frozen=True, slots=True)
class TurnEnded(Event):
    """A turn ended: the last event of `Session.prompt`, or the end of another client's turn."""

    stop_reason: str
    """`end_turn`, `cancelled`, `refusal`, `max_tokens`, …; `error` if the turn failed."""
    error: str | None = None
    own: bool = True
    """Whether this client began the turn."""


@dataclass(frozen=True, slots=True)
class Unknown(Event):
    """An update of a kind that this version does not know; `raw` has it."""

    kind: str
