"""What waits for an answer, and the sessions that it belongs to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from msgspec import Raw


@dataclass(slots=True)
class Asked:
    """A request of the gateway's that is not answered yet."""

    method: str
    session_id: str | None
    line: bytes
    connection: int
    """The connection that it was last sent on."""
    seen: bool = False
    """A prompt that the server surely has."""
    cancelled: bool = False
    echoes: list[Any] = field(default_factory=list)
    """The blocks of a prompt, which a returning client is shown like anybody's."""


@dataclass(slots=True)
class Question:
    """A request of the server's that is not answered yet."""

    method: str
    params: bytes
    session_id: str | None
    remote: bytes | None
    """The id that the server knows it by; None since its connection was lost."""
    answer: bytes | None = None
    """Given, but not known to have arrived."""


@dataclass(slots=True)
class Known:
    """A session in use."""

    setup: dict[str, Raw]
    seq: int = 0
    returning: bool = False
    """What was missed is still to come."""
    prompt: bytes | None = None
    """The id of the prompt in flight."""
