"""Fixtures for two gateways in a row: a client, the one in front, the one behind, a scripted agent."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from support.clients.tcp_proxy import TcpProxy
from support.gateway_process import GatewayProcess, Start, agent
from support.serve_process import ServeProcess, UrlFraming

TOKEN = "a-token-for-tests-only"

Behind = Callable[..., Awaitable[ServeProcess]]
Front = Callable[..., Awaitable[GatewayProcess]]
ProxyTo = Callable[[ServeProcess], Awaitable[TcpProxy]]


@pytest.fixture
async def behind() -> AsyncIterator[Behind]:
    """Start the gateway that has the agent: `await behind(port=..., agents={...})`; always in the same home."""
    started: list[ServeProcess] = []
    with tempfile.TemporaryDirectory(prefix="dgm-b-") as folder:

        async def start(*arguments: str, port: int = 0, **sections: Any) -> ServeProcess:
            framing = UrlFraming()
            agents = sections.pop("agents", None) or {"scripted": agent()}
            serve = {"auth_token": TOKEN, **sections.pop("serve", {})}
            config = {"default_agent": next(iter(agents)), "serve": serve, **sections, "agents": agents}
            words = ("serve", "--port", str(port), *arguments)
            gateway = await GatewayProcess.start(Path(folder), *words, config=config, framing=framing)
            serving = ServeProcess(gateway, await framing.url())
            started.append(serving)
            return serving

        yield start
        for serving in started:
            await serving.close()
            await serving.gateway.stop(expect_clean=False)


@pytest.fixture
async def proxy_to() -> AsyncIterator[ProxyTo]:
    """Proxies that last longer than the gateway in front."""
    laid: list[TcpProxy] = []

    async def lay(serving: ServeProcess) -> TcpProxy:
        proxy = TcpProxy(serving.port)
        await proxy.listen()
        laid.append(proxy)
        return proxy

    yield lay
    for proxy in laid:
        await proxy.close()


@pytest.fixture
def front(proxy_to: ProxyTo, behind: Behind, dragoman: Start) -> Front:
    """Start the gateway that the client speaks to: `await front("ws://127.0.0.1:1/acp")`."""

    async def start(url: str, *arguments: str, **settings: Any) -> GatewayProcess:
        far = {"kind": "remote", "url": url, "token": "env:FAR_TOKEN", **settings}
        words = arguments or ("acp", "far")
        return await dragoman(*words, agents={"far": far}, env={"FAR_TOKEN": TOKEN})

    return start


@pytest.fixture(params=["ws", "http"])
def scheme(request: pytest.FixtureRequest) -> str:
    return str(request.param)
