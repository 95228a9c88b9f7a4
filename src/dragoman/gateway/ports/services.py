"""`fs/*` and `terminal/*` answered by the gateway itself, for clients that do not offer them."""

from __future__ import annotations

from typing import Protocol

from dragoman.gateway.ports.sandbox import Box
from dragoman.rpc.request import Request


class LocalServices(Protocol):
    """Serves one session inside its workspace."""

    def serve(self, request: Request) -> None:
        """Answer the request, now or later; `RpcError` for what is not allowed."""

    def terminal_output(self, terminal: str) -> bytes | None:
        """What `terminal/output` would answer now; None when there is no such terminal."""

    async def close(self) -> None:
        """End what is still running."""


class ServicesFactory(Protocol):
    def open(self, roots: list[str], cwd: str, box: Box | None = None) -> LocalServices:
        """Serve these folders; where the agent runs in a box, as that box allows and with commands inside it."""
