"""A real agent in a box: it edits the workspace, and the client sees its own paths."""

from __future__ import annotations

from pathlib import Path

import pytest

from real.agents import AGENTS, RealAgent
from real.client import chosen, said, tool_status
from real.conftest import Begin
from real.model_script import WRITTEN
from support.sandboxes import sandbox_kinds
from support.sandboxes.sandbox_kinds import INSIDE

OPENCODE = next(agent for agent in AGENTS if agent.name == "opencode")


@pytest.mark.parametrize("real", [OPENCODE], indirect=True, ids=["opencode"])
async def test_an_agent_in_bubblewrap_edits_a_file_of_the_workspace(
    begin: Begin, real: RealAgent, workspace: Path, agent_home: Path
) -> None:
    sandbox_kinds.bubblewrap()
    # Its home is empty inside, so its settings are shown; it finds its program and what that needs by itself.
    box = {
        "kind": "bubblewrap",
        "workspace": INSIDE,
        "read_only": [str(agent_home / "config" / "opencode" / "opencode.json")],
        "mounts": [str(agent_home / "tmp")],
    }
    secret = agent_home / "secret.txt"
    secret.write_text("a secret")
    gateway = await begin(sandbox="box", sandboxes={"box": box})
    session = await gateway.open_session(workspace)
    running = gateway.start_prompt(session, f"write: {INSIDE}/made.txt")
    question = await gateway.question()
    gateway.choose(question, "allow_once")
    turn = await running
    assert turn.stop_reason == "end_turn", turn.response
    assert (workspace / "made.txt").read_text() == WRITTEN
    assert tool_status(turn, question) == "completed"
    places = [each["path"] for update in turn.updates for each in update.get("locations") or []]
    diffs = [
        each["path"]
        for update in turn.updates
        for each in update.get("content") or []
        if isinstance(each, dict) and each.get("type") == "diff"
    ]
    assert {*places, *diffs} == {str(workspace / "made.txt")}
    gateway.on("session/request_permission", lambda params: chosen(params, "allow_once"))
    answer = said((await gateway.prompt(session, f"run: cat {secret}")).updates)
    assert "No such file" in answer
