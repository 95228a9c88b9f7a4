"""What the gateway needs to search in what was said."""

from __future__ import annotations

from typing import Annotated, Protocol

from msgspec import Meta, Struct

MOST_HITS = 200
"""Most hits of one search."""


class BadQuery(ValueError):
    """There is nothing to search for in the text; the message says what would be."""


class SearchUnavailable(Exception):
    """The index cannot be read or made; the message says why."""


class Wanted(Struct, frozen=True):
    text: str
    """Words, "phrases in quotation marks" and beginnings of words*, all of which must occur in one message."""
    agent: str | None = None
    cwd: str | None = None
    """A folder; sessions in folders below it count too."""
    since: int | None = None
    """Milliseconds since 1970."""
    best: bool = False
    """The best match first instead of the newest."""
    limit: int = 20


class Hit(Struct, frozen=True, rename="camel"):
    """A place where the words were found."""

    session_id: str
    agent: str
    cwd: str
    title: str | None
    event: Annotated[int, Meta(description="The number of the event in the session's journal.")]
    by: Annotated[str, Meta(description="`user`, `agent`, `thought` or `tool`.")]
    at: Annotated[str, Meta(description="ISO 8601, UTC.")]
    text: Annotated[str, Meta(description="The text around the first match.")]
    matches: Annotated[list[tuple[int, int]], Meta(description="Beginnings and ends of matches in `text`.")]
    only_agent: Annotated[
        bool, Meta(description="Only the agent's own history has this session; `event` counts in that.")
    ] = False
    undone: Annotated[bool, Meta(description="A rewind of the conversation undid it.")] = False


class Found(Struct, frozen=True):
    hits: list[Hit]
    behind: Annotated[int, Meta(description="Sessions that are not read to their end yet.")] = 0


class Search(Protocol):
    async def find(self, wanted: Wanted) -> Found:
        """Search in all sessions; raises `BadQuery` or `SearchUnavailable`."""

    def catch_up(self) -> None:
        """Begin to read what is new, in the background."""
