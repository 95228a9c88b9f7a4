"""Fixtures for two gateways in a row: a client, the one in front, the one behind, a scripted agent."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from support.cable import Cable
from support.gateway import Dragoman, Start, agent
from support.serving import Serving, UrlFraming

TOKEN = "a-token-for-tests-only"

Behind = Callable[..., Awaitable[Serving]]
Front = Callable[..., Awaitable[Dragoman]]
CableTo = Callable[[Serving], Awaitable[Cable]]


@pytest.fixture
async def behind() -> AsyncIterator[Behind]:
    """Start the gateway that has the agent: `await behind(port=..., agents={...})`; always in the same home."""
    started: list[Serving] = []
    with tempfile.TemporaryDirectory(prefix="dgm-b-") as folder:

        async def start(*arguments: str, port: int = 0, **sections: Any) -> Serving:
            framing = UrlFraming()
            agents = sections.pop("agents", None) or {"scripted": agent()}
            serve = {"auth_token": TOKEN, **sections.pop("serve", {})}
            config = {"default_agent": next(iter(agents)), "serve": serve, **sections, "agents": agents}
            words = ("serve", "--port", str(port), *arguments)
            gateway = await Dragoman.start(Path(folder), *words, config=config, framing=framing)
            serving = Serving(gateway, await framing.url())
            started.append(serving)
            return serving

        yield start
        for serving in started:
            await serving.close()
            await serving.gateway.stop(expect_clean=False)


@pytest.fixture
async def cable_to() -> AsyncIterator[CableTo]:
    """Cables that last longer than the gateway in front."""
    laid: list[Cable] = []

    async def lay(serving: Serving) -> Cable:
        cable = Cable(serving.port)
        await cable.plug_in()
        laid.append(cable)
        return cable

    yield lay
    for cable in laid:
        await cable.close()


@pytest.fixture
def front(cable_to: CableTo, behind: Behind, dragoman: Start) -> Front:
    """Start the gateway that the client speaks to: `await front("ws://127.0.0.1:1/acp")`."""

    async def start(url: str, *arguments: str, **settings: Any) -> Dragoman:
        far = {"kind": "remote", "url": url, "token": "env:FAR_TOKEN", **settings}
        words = arguments or ("acp", "far")
        return await dragoman(*words, agents={"far": far}, env={"FAR_TOKEN": TOKEN})

    return start


@pytest.fixture(params=["ws", "http"])
def scheme(request: pytest.FixtureRequest) -> str:
    return str(request.param)
