"""Programs of ours that a client runs in a terminal of its own, to show what a command elsewhere prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Follower(Protocol):
    """One command as its terminal shows it."""

    @property
    def command(self) -> str:
        """What the client runs, with `args`."""

    @property
    def args(self) -> Sequence[str]: ...

    @property
    def connected(self) -> bool:
        """The client has started it."""

    def write(self, text: str) -> None:
        """More of the command's output."""

    def end(self, code: int) -> None:
        """The command has ended: the follower exits with the same code."""


class Followers(Protocol):
    def open(self) -> Follower | None:
        """A follower for one command; None where none can be had."""

    async def close(self) -> None:
        """End them all."""
