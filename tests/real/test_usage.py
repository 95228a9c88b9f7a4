"""What real agents say that turns used is what the model told them, and a message steers a turn that runs."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from real.agents import AGENTS, RealAgent
from real.conftest import Begin
from real.model_server import ModelServer
from support.command_line import CommandLine

INPUT, OUTPUT = 100, 20
COUNTING = [agent for agent in AGENTS if agent.name in ("claude", "codex", "opencode")]
STEERED = [agent for agent in AGENTS if agent.name in ("claude", "codex")]


def named(agent: RealAgent) -> str:
    return f"{agent.name}-{agent.version}"


@pytest.mark.parametrize("real", COUNTING, indirect=True, ids=named)
async def test_the_ledger_has_what_the_model_told(
    begin: Begin, real: RealAgent, workspace: Path, home: Path, model: ModelServer
) -> None:
    gateway = await begin()
    session = await gateway.open_session(workspace)
    await gateway.prompt(session, "hello there")
    running = gateway.start_prompt(session, "run: touch ran.txt")
    gateway.choose(await gateway.question(), "allow_once")
    await running
    await gateway.stop()
    done = await asyncio.to_thread(CommandLine(home, workspace).run, "usage", "--by", "turn", "--json")
    turns: list[dict[str, Any]] = json.loads(done.stdout)["groups"]
    # OpenCode tells the tokens of a turn's last request, and none of those that find a title.
    counted = [1, 1] if real.name == "opencode" else [1, model.answers.total() - 1]
    assert [turn["tokens"]["input"] for turn in turns] == [INPUT * answers for answers in counted]
    assert [turn["tokens"]["output"] for turn in turns] == [OUTPUT * answers for answers in counted]


@pytest.mark.parametrize("real", STEERED, indirect=True, ids=named)
async def test_a_message_in_mid_turn_reaches_the_model(
    begin: Begin, workspace: Path, model: ModelServer
) -> None:
    gateway = await begin()
    session = await gateway.open_session(workspace)
    running = gateway.start_prompt(session, "run: touch ran.txt")
    question = await gateway.question()
    steered = asyncio.create_task(
        gateway.request(
            "session/prompt",
            {
                "sessionId": session,
                "prompt": [{"type": "text", "text": "and a pinch of salt"}],
                "_meta": {"dragoman": {"steer": True}},
            },
        )
    )
    await gateway.request("session/list", {})  # the message was handed over before this was answered
    gateway.choose(question, "allow_once")
    turn = await running
    assert turn.stop_reason == "end_turn", turn.response
    assert (await steered)["_meta"]["dragoman"]["steer"] == "sent"
    assert "and a pinch of salt" in model.heard[-1]
