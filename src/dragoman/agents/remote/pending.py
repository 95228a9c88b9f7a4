"""Open requests of both sides, and the sessions in use."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from msgspec import Raw


@dataclass(slots=True)
class Asked:
    """A request of the gateway that is not answered yet."""

    method: str
    session_id: str | None
    line: bytes
    connection: int
    """Number of the connection on which the request was last sent."""
    seen: bool = False
    """Whether the server certainly has this prompt."""
    cancelled: bool = False
    echoes: list[Any] = field(default_factory=list)
    """Blocks of a prompt that the server will send back to us after a reconnect, as to any other client."""


@dataclass(slots=True)
class Question:
    """A request of the server that is not answered yet."""

    method: str
    params: bytes
    session_id: str | None
    remote: bytes | None
    """The server's id of the request; None once its connection was lost."""
    answer: bytes | None = None
    """The answer, given but not known to have arrived."""


@dataclass(slots=True)
class Known:
    """A session in use."""

    setup: dict[str, Raw]
    seq: int = 0
    returning: bool = False
    """Whether missed updates are still to come."""
    prompt: bytes | None = None
    """The id of the prompt in flight."""
