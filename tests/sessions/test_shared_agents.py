"""An agent that several sessions share, without a journal: a slow client pauses it while it has a session there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from dragoman.cli import compose
from dragoman.cli.in_process import open_gateway
from dragoman.client import Gateway as ClientGateway
from dragoman.client.connection import CAPABILITIES
from dragoman.config.model import AgentConfig, Config, SessionsConfig
from dragoman.config.paths import Paths
from dragoman.gateway.access.client import Terms
from dragoman.gateway.gateway import Gateway
from support.gateway_process import agent


@asynccontextmanager
async def running(folder: Path, agent_config: AgentConfig) -> AsyncIterator[tuple[Gateway, ClientGateway]]:
    config = Config(agents={"scripted": agent_config}, sessions=SessionsConfig(journal=False))
    paths = Paths(folder / "config.toml", folder / "state", folder / "run", folder / "cache")
    async with (
        compose.gateway(config, paths) as gateway,
        asyncio.timeout(30),
        await connected(gateway) as client,
    ):
        yield gateway, client


async def connected(gateway: Gateway) -> ClientGateway:
    return await open_gateway(gateway, Terms(agent="scripted", start_ahead=False), CAPABILITIES)


async def test_a_slow_client_does_not_hold_a_shared_agent_after_its_session_was_closed(
    tmp_path: Path,
) -> None:
    config = AgentConfig(kind="acp", command=agent()["command"], share="all")
    async with running(tmp_path, config) as (gateway, slow):
        other = await connected(gateway)
        one, two = await slow.new(cwd=tmp_path), await other.new(cwd=tmp_path)
        session = gateway.sessions[one.id]
        assert session.agent is gateway.sessions[two.id].agent
        attached = session.attachments[0].client
        attached.peer_writable(False)
        await gateway.end_session(session)
        assert (await two.prompt("say hello").ended()).stop_reason == "end_turn"
        attached.peer_writable(True)
        await other.aclose()


async def test_a_slow_client_that_leaves_one_session_still_holds_the_agent_for_another(
    tmp_path: Path,
) -> None:
    config = AgentConfig(kind="acp", command=agent()["command"], share="all")
    async with running(tmp_path, config) as (gateway, slow):
        one, two = [gateway.sessions[(await slow.new(cwd=tmp_path)).id] for _ in range(2)]
        shared, attached = two.agent, two.attachments[0].client
        assert shared is not None and one.agent is shared
        attached.peer_writable(False)
        await gateway.end_session(one)
        assert shared._holds == {attached}
        attached.peer_writable(True)
        assert not shared._holds
