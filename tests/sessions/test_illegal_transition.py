"""A bug of ours in one session: it ends and says so, the other sessions go on."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from dragoman.cli import compose
from dragoman.cli.in_process import open_gateway
from dragoman.client import DragomanError, Notice
from dragoman.client.connection import CAPABILITIES
from dragoman.config.model import AgentConfig, Config
from dragoman.config.paths import Paths
from dragoman.gateway.access.client import Terms
from dragoman.gateway.session.states import IllegalTransition
from support.gateway_process import agent
from support.waiting import until


async def test_an_event_that_a_state_does_not_have_ends_that_session_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = Config(agents={"scripted": AgentConfig(kind="acp", command=agent()["command"])})
    paths = Paths(tmp_path / "config.toml", tmp_path / "state", tmp_path / "run", tmp_path / "cache")
    async with compose.gateway(config, paths) as running, asyncio.timeout(60):
        client = await open_gateway(running, Terms(agent="scripted"), CAPABILITIES)
        ours, others = [await client.new(cwd=tmp_path) for _ in range(2)]
        one, watched = ours.id, ours.events()
        session, used = running.sessions[one], running.sessions[one].agent
        asked = asyncio.create_task(ours.prompt("sleep-until-cancel").ended())
        await until(lambda: session.turn is not None and session.turn.call is not None)
        with caplog.at_level(logging.ERROR), pytest.raises(IllegalTransition, match=one):
            session.binding.held_elsewhere()
        with pytest.raises(DragomanError, match="error in Dragoman"):
            await asked
        titles = [event.text for event in watched.take() if isinstance(event, Notice)]
        assert any("error in Dragoman" in title for title in titles)
        with pytest.raises(DragomanError):
            await ours.prompt("say hello").ended()
        assert one not in running.sessions
        await until(lambda: used not in running.pool.running())
        assert (await others.prompt("say hello").ended()).stop_reason == "end_turn"
        await client.aclose()
    errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert [record.getMessage().partition(":")[0] for record in errors] == ["session ends"]
