"""A bug of ours in one session: it ends and says so, the other sessions go on."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from dragoman.cli import compose
from dragoman.cli.conversation import Conversation
from dragoman.config.model import AgentConfig, Config
from dragoman.config.paths import Paths
from dragoman.gateway.access.client import Terms
from dragoman.gateway.session.states import IllegalTransition
from dragoman.wire.errors import RpcError
from support.gateway_process import agent
from support.waiting import until


async def test_an_event_that_a_state_does_not_have_ends_that_session_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = Config(agents={"scripted": AgentConfig(kind="acp", command=agent()["command"])})
    paths = Paths(tmp_path / "config.toml", tmp_path / "state", tmp_path / "run", tmp_path / "cache")
    titles: list[object] = []
    async with compose.gateway(config, paths) as running, asyncio.timeout(60):
        client = await Conversation.inside(running, Terms(agent="scripted"))
        client.on_update = lambda update: titles.append(update.get("title"))
        one, other = [
            str((await client.result("session/new", {"cwd": str(tmp_path), "mcpServers": []}))["sessionId"])
            for _ in range(2)
        ]
        session, used = running.sessions[one], running.sessions[one].agent
        asked = asyncio.create_task(client.prompt(one, "sleep-until-cancel"))
        await until(lambda: session.turn is not None and session.turn.call is not None)
        with caplog.at_level(logging.ERROR), pytest.raises(IllegalTransition, match=one):
            session.binding.held_elsewhere()
        with pytest.raises(RpcError, match="error in Dragoman"):
            await asked
        assert any("error in Dragoman" in str(title) for title in titles)
        with pytest.raises(RpcError):
            await client.prompt(one, "say hello")
        assert one not in running.sessions
        await until(lambda: used not in running.pool.running())
        assert (await client.prompt(other, "say hello"))["stopReason"] == "end_turn"
        await client.disconnect()
    errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert [record.getMessage().partition(":")[0] for record in errors] == ["session ends"]
