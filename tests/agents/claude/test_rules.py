"""Every tool call of Claude Code reaches the rules through its hooks, also one that it does not ask about."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from support.clients.sample_answers import CANCELLED
from support.gateway_process import GatewayProcess, Start
from support.rpc_peer import Turn
from support.store.journal_reader import records

SCRIPTED = Path(__file__).parents[2] / "support" / "agents" / "scripted_claude.py"
RULES = [
    {"name": "no b", "decision": "deny", "paths": ["**/b.txt"], "reason": "Use a.txt."},
    {"name": "see c", "decision": "ask", "paths": ["**/c.txt"]},
    {"name": "git", "decision": "allow", "command": [["git", "status"]]},
]


async def begin(dragoman: Start, tmp_path: Path, workspace: Path) -> tuple[GatewayProcess, str]:
    command = [sys.executable, "-S", "-E", str(SCRIPTED)]
    agent = {"kind": "claude", "command": command, "env": {"CLAUDE_CONFIG_DIR": str(tmp_path / "claude")}}
    gateway = await dragoman("acp", "claude", agents={"claude": agent}, policy={"rules": RULES})
    await gateway.initialize()
    return gateway, await gateway.new_session(workspace)


def status(turn: Turn) -> Any:
    return [update["status"] for update in turn.updates if update.get("status")][-1]


async def test_rules_hold_for_calls_that_claude_does_not_ask_about(
    dragoman: Start, tmp_path: Path, workspace: Path, home: Path
) -> None:
    gateway, session = await begin(dragoman, tmp_path, workspace)
    questions: list[Any] = []

    def answer(params: Any) -> Any:
        questions.append(params)
        return CANCELLED

    gateway.on("session/request_permission", answer)
    assert status(await gateway.prompt(session, f"edit {workspace}/a.txt")) == "completed"
    denied = await gateway.prompt(session, f"edit {workspace}/b.txt")
    assert status(denied) == "failed" and "A rule does not allow this: Use a.txt." in str(denied.updates)
    assert not questions
    assert [record["by"] for record in records(home, session, "decision")] == ["no b"]
    assert status(await gateway.prompt(session, f"edit {workspace}/c.txt")) == "failed"
    assert len(questions) == 1, "claude asks when the hook says so"


async def test_a_call_that_a_rule_allows_is_decided_once(
    dragoman: Start, tmp_path: Path, workspace: Path, home: Path
) -> None:
    gateway, session = await begin(dragoman, tmp_path, workspace)
    assert status(await gateway.prompt(session, "bash git status")) == "completed"
    decided = [(record["by"], record["decision"]) for record in records(home, session, "decision")]
    assert decided == [("git", "allow")]
