"""The one ordered stream of a session towards its clients (G-005, G-080).

Everything that a client may see of a session passes through here: updates as bytes, and everything else (a prompt's
answer, a question) as a callback that runs when all that was published before it has been handed over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from dragoman.gateway.attachment import Attachment


class Feed(Protocol):
    attachments: list[Attachment]

    def publish(self, line: bytes) -> None:
        """Show one update to every attachment."""

    def then(self, action: Callable[[], None]) -> None:
        """Run `action` once everything published so far has been handed over."""


class DirectFeed:
    """Without a journal nothing has to be written first: what is published is sent."""

    def __init__(self) -> None:
        self.attachments: list[Attachment] = []

    def publish(self, line: bytes) -> None:
        for attachment in self.attachments:
            attachment.send(line)

    def then(self, action: Callable[[], None]) -> None:
        action()
