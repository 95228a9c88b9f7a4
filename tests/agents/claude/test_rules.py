"""Every tool call of Claude Code reaches the rules through its hooks, also one that it does not ask about."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from dragoman.audit.read import Query, query
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


def audited(home: Path, session: str) -> list[Any]:
    return list(query(home / "audit", Query(session=session, kind="decision")))


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
    (record,) = audited(home, session)
    assert (record["by"], record["decision"], "again" in record) == ("git", "allow", False)


async def test_a_call_that_claude_asks_about_after_its_hook_has_one_decision_that_holds(
    dragoman: Start, tmp_path: Path, workspace: Path, home: Path
) -> None:
    gateway, session = await begin(dragoman, tmp_path, workspace)
    gateway.on("session/request_permission", CANCELLED)
    for _ in range(2):
        await gateway.prompt(session, "bash make")
    found = [(record["call"], record["decision"], record.get("again")) for record in audited(home, session)]
    calls = list(dict.fromkeys(call for call, *_ in found))
    assert len(calls) == 2
    expected = [("allow", None), ("ask", True)]
    assert found == [(call, *decided) for call in calls for decided in expected]
    answers = query(home / "audit", Query(session=session, kind="answer"))
    assert [answer["call"] for answer in answers] == calls
