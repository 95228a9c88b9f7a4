"""The way to a gateway: what `connect` opens, and what the commands of Dragoman itself pass instead."""

from __future__ import annotations

from typing import Protocol

from dragoman.rpc.link import LinkHandler

MAX_MESSAGE_BYTES = 256 * 1024 * 1024
"""Larger messages of a gateway end in an error; its own limit is smaller by default."""


class Channel(Protocol):
    """A way to a gateway."""

    name: str
    """For messages: where the gateway is."""

    async def open(self, handler: LinkHandler) -> None:
        """Connect; `handler.link_opened` is called before this returns. Raises `CannotConnect`."""

    async def finish(self) -> None:
        """Release everything, after the link was closed; bounded."""
