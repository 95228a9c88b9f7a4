"""A tool call that ran without reaching the rules is marked, once, where the agent is known to ask."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.clients.sample_answers import ALLOW
from support.gateway_process import GatewayProcess, Start, agent
from support.rpc_peer import Turn

READ = {
    "sessionUpdate": "tool_call",
    "toolCallId": "c1",
    "title": "Read a",
    "kind": "read",
    "status": "pending",
}
DONE = {"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "completed"}


async def begin(dragoman: Start, workspace: Path, tmp_path: Path, name: str) -> tuple[GatewayProcess, str]:
    """A scripted agent whose program has this name."""
    table = agent()
    program = tmp_path / name
    program.write_text('#!/bin/sh\nexec "$@"\n')
    program.chmod(0o755)
    named = {**table, "command": [str(program), *table["command"]]}
    gateway = await dragoman("acp", "mine", agents={"mine": named})
    await gateway.initialize()
    gateway.on("session/request_permission", ALLOW)
    return gateway, await gateway.new_session(workspace)


def marks(turn: Turn) -> list[Any]:
    updates = [update for update in turn.updates if update.get("toolCallId") == "c1"]
    return [update.get("_meta", {}).get("dragoman", {}).get("unmediated") for update in updates]


def script(*lines: tuple[str, Any]) -> str:
    return "\n".join(f"{directive} {json.dumps(value)}" for directive, value in lines)


async def test_a_call_that_the_agent_did_not_ask_about_is_marked_when_it_ends(
    dragoman: Start, workspace: Path, tmp_path: Path
) -> None:
    gateway, session = await begin(dragoman, workspace, tmp_path, "gemini")
    running = {**DONE, "status": "in_progress"}
    turn = await gateway.prompt(session, script(("update", READ), ("update", running), ("update", DONE)))
    assert marks(turn) == [None, None, True]
    asked = {"toolCall": {"toolCallId": "c1", "title": "Read a", "kind": "read"}}
    turn = await gateway.prompt(session, script(("update", READ), ("ask", asked), ("update", DONE)))
    assert marks(turn) == [None, None]
    failed = {**DONE, "status": "failed"}
    assert marks(await gateway.prompt(session, script(("update", READ), ("update", failed)))) == [None, None]


@pytest.mark.parametrize("name", ["unheard-of"])
async def test_an_agent_of_which_nothing_is_known_is_not_marked(
    dragoman: Start, workspace: Path, tmp_path: Path, name: str
) -> None:
    gateway, session = await begin(dragoman, workspace, tmp_path, name)
    turn = await gateway.prompt(session, script(("update", READ), ("update", DONE)))
    assert marks(turn) == [None, None]
