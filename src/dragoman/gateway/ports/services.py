"""The interface of the services that answer `fs/*` and `terminal/*` for clients that do not offer them."""

from __future__ import annotations

from typing import Protocol

from dragoman.gateway.ports.sandbox import Box
from dragoman.rpc.request import Request


class LocalServices(Protocol):
    """Files and terminals of one session, inside its workspace."""

    def serve(self, request: Request) -> None:
        """Answer the request, now or later; raises `RpcError` if it is not allowed."""

    def terminal_output(self, terminal: str) -> bytes | None:
        """The result that `terminal/output` would have now; None if there is no such terminal."""

    async def close(self) -> None:
        """End all running commands."""


class ServicesFactory(Protocol):
    def open(self, roots: list[str], cwd: str, box: Box | None = None) -> LocalServices:
        """Serve these folders; with a sandbox, only what it allows, and with commands inside it."""
