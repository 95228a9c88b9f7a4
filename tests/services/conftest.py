"""An agent's side of a connection whose requests the workspace services answer."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.agents.custody import Custody
from dragoman.gateway.ports.services import LocalServices
from dragoman.rpc.peer import Peer
from dragoman.rpc.request import Request
from dragoman.services import WorkspaceServices
from dragoman.wire.errors import Malformed, RpcError

PATIENCE = 20.0


class Agent:
    """Sends requests through a real `Peer`; is link and receiver to it."""

    backlog = 0

    def __init__(self, services: LocalServices) -> None:
        self.services = services
        self.answered: list[int] = []
        self._ids = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._peer = Peer("agent", self)
        self._peer.link = self

    def ask(self, method: str, **params: object) -> int:
        """Send a request; its id."""
        id = next(self._ids)
        self._answers[id] = asyncio.get_running_loop().create_future()
        self._receive({"id": id, "method": method, "params": params})
        return id

    async def answer(self, id: int) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE):
            return await self._answers[id]

    async def call(self, method: str, **params: object) -> Any:
        answer = await self.answer(self.ask(method, **params))
        assert "result" in answer, answer
        return answer["result"]

    async def refused(self, method: str, **params: object) -> dict[str, Any]:
        answer = await self.answer(self.ask(method, **params))
        assert "error" in answer, answer
        error: dict[str, Any] = answer["error"]
        return error

    def cancel(self, id: int) -> None:
        self._receive({"method": "$/cancel_request", "params": {"requestId": id}})

    def _receive(self, message: dict[str, Any]) -> None:
        self._peer.receive(json.dumps({"jsonrpc": "2.0", **message}).encode())

    # -- Link

    def send(self, message: bytes) -> None:
        answer = json.loads(message)
        self.answered.append(answer["id"])
        self._answers[answer["id"]].set_result(answer)

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def close(self) -> None: ...

    # -- Receiver

    def peer_request(self, request: Request) -> None:
        self.services.serve(request)

    def peer_notification(self, method: str, params: bytes) -> None: ...

    def peer_malformed(self, frame: bytes, error: Malformed) -> bool:
        return True

    def peer_writable(self, writable: bool) -> None: ...

    def peer_closed(self, reason: str | None) -> RpcError | None:
        return None


Open = Callable[..., Agent]


@pytest.fixture
async def custody() -> AsyncIterator[Custody]:
    custody = Custody()
    yield custody
    await custody.close()


@pytest.fixture
async def open_agent(custody: Custody) -> AsyncIterator[Open]:
    """Open the services for `open_agent(root, ..., cwd=...)`; closed at the end."""
    opened: list[LocalServices] = []

    def open_agent(*roots: Path, cwd: Path | None = None, environment: dict[str, str] | None = None) -> Agent:
        factory = WorkspaceServices(custody, environment=environment or dict(os.environ))
        services = factory.open([str(root) for root in roots], str(cwd or roots[0]))
        opened.append(services)
        return Agent(services)

    yield open_agent
    for services in opened:
        await services.close()


@pytest.fixture
async def agent(open_agent: Open, workspace: Path) -> Agent:
    return open_agent(workspace)
