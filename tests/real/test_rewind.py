"""Real agents whose conversation goes back: what was undone does not reach the model any more."""

from __future__ import annotations

import json
from pathlib import Path

from real.agents import RealAgent
from real.client import STARTING, said
from real.conftest import Begin
from real.model_server import ModelServer

KEPT, UNDONE = "tamarind", "persimmon"
BY_ITSELF = {"claude", "codex"}


async def test_a_rewound_conversation_has_no_undone_words(
    begin: Begin, real: RealAgent, workspace: Path, model: ModelServer
) -> None:
    gateway = await begin()
    session = await gateway.open_session(workspace)
    for word in (KEPT, UNDONE):
        assert (await gateway.prompt(session, f"remember {word}")).stop_reason == "end_turn"
    wish = {"sessionId": session, "to": 2}
    result = await gateway.request("_dragoman/rewind", wish, STARTING)
    assert result["agent"] == ("rewind" if real.name in BY_ITSELF else "seed")
    model.heard.clear()
    turn = await gateway.prompt(session, "and now?")
    assert "You said: and now?" in said(turn.updates)
    asked = json.dumps(model.heard)
    assert KEPT in asked and UNDONE not in asked
    result = await gateway.request("_dragoman/rewind", {"sessionId": session, "undo": True}, STARTING)
    assert result["undone"] == 1
    model.heard.clear()
    await gateway.prompt(session, "once more")
    asked = json.dumps(model.heard)
    assert KEPT in asked and UNDONE in asked and "and now?" not in asked


async def test_a_fork_at_a_message_has_no_later_words(
    begin: Begin, real: RealAgent, workspace: Path, model: ModelServer
) -> None:
    gateway = await begin()
    session = await gateway.open_session(workspace)
    for word in (KEPT, UNDONE):
        await gateway.prompt(session, f"remember {word}")
    params = {"sessionId": session, "cwd": str(workspace), "_meta": {"dragoman": {"at": 2}}}
    made = await gateway.request("session/fork", params, STARTING)
    model.heard.clear()
    await gateway.prompt(made["sessionId"], "and now?")
    asked = json.dumps(model.heard)
    assert KEPT in asked and UNDONE not in asked
    model.heard.clear()
    await gateway.prompt(session, "and here?")
    assert UNDONE in json.dumps(model.heard)


async def test_a_fork_of_the_whole_has_its_history_once(
    begin: Begin, real: RealAgent, workspace: Path, model: ModelServer
) -> None:
    gateway = await begin()
    session = await gateway.open_session(workspace)
    await gateway.prompt(session, f"remember {KEPT}")
    params = {"sessionId": session, "cwd": str(workspace), "mcpServers": []}
    made = await gateway.request("session/fork", params, STARTING)
    model.heard.clear()
    await gateway.prompt(made["sessionId"], "and now?")
    assert KEPT in json.dumps(model.heard)
    begun = len(gateway.of(made["sessionId"]))
    await gateway.request("session/load", {**params, "sessionId": made["sessionId"]}, STARTING)
    replay = gateway.of(made["sessionId"])[begun:]
    assert said(replay, "user_message_chunk") == f"remember {KEPT}and now?"
