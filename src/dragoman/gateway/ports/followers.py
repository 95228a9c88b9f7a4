"""Followers: small programs of ours that a client runs in its terminal, to show the output of an agent's command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Follower(Protocol):
    """The program that shows the output of one command."""

    @property
    def command(self) -> str:
        """The program that the client runs, with `args`."""

    @property
    def args(self) -> Sequence[str]: ...

    @property
    def connected(self) -> bool:
        """Whether the client has started the follower."""

    def write(self, text: str) -> None:
        """Show more of the command's output."""

    def end(self, code: int) -> None:
        """End the follower with the exit code of the command."""


class Followers(Protocol):
    def open(self) -> Follower | None:
        """A follower for one command; None if none is available."""

    async def close(self) -> None:
        """End all followers."""
