"""New sessions that begin where the last one of their workspace ended."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.native.doubles import claude, codex
from support.gateway_process import Start


@pytest.mark.parametrize(("name", "double"), [("claude", claude), ("codex", codex)])
async def test_a_choice_holds_for_the_next_run_in_that_workspace(
    dragoman: Start, tmp_path: Path, workspace: Path, name: str, double: Callable[[Path], dict[str, Any]]
) -> None:
    first = await dragoman("acp", name, agents={name: double(tmp_path)})
    await first.initialize()
    session = await first.new_session(workspace)
    await first.prompt(session, "remember")
    chosen = {"sessionId": session, "configId": "auto_resume", "value": "true"}
    options = (await first.request("session/set_config_option", chosen))["configOptions"]
    assert {each["id"]: each["currentValue"] for each in options}["auto_resume"] == "true"
    await first.stop()
    second = await dragoman("acp", name, agents={name: double(tmp_path)})
    await second.initialize()
    params = {"cwd": str(workspace), "mcpServers": []}
    created = await second.request("session/new", params)
    assert created["_meta"]["dragoman"]["resumedFrom"]
    assert created["sessionId"] != session
    assert "".join((await second.prompt(created["sessionId"], "go on")).texts) == "go on"
    assert "remember" in "".join((await second.prompt(created["sessionId"], "recall")).texts)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    other = await second.request("session/new", {**params, "cwd": str(elsewhere)})
    assert "resumedFrom" not in other.get("_meta", {}).get("dragoman", {})
