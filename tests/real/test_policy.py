"""Rules on facts decide about what real agents ask, in their own shapes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from real.agents import RealAgent
from real.client import STARTING, chosen, said
from real.conftest import Begin
from real.install import installed
from real.model_server import ModelServer
from support.store.journal_reader import records

RULES = [
    {"name": "ran", "decision": "allow", "command": [["touch", "ran.txt"]]},
    {"name": "no other", "decision": "deny", "command": [["touch", "other.txt"]], "reason": "Use ran.txt."},
]


async def test_rules_decide_about_the_commands_of_an_agent(
    begin: Begin, real: RealAgent, workspace: Path, home: Path
) -> None:
    gateway = await begin(policy={"rules": RULES})
    asked: list[str] = []

    def ask(params: dict[str, object]) -> object:
        asked.append(str(params))
        return chosen(params, "reject_once")

    gateway.on("session/request_permission", ask)
    session = await gateway.open_session(workspace)
    turn = await gateway.prompt(session, "run: touch ran.txt")
    assert "The tool said:" in said(turn.updates)
    assert (workspace / "ran.txt").exists()
    await gateway.prompt(session, "run: touch other.txt")
    assert not (workspace / "other.txt").exists()
    assert not asked
    decided = [(record["by"], record["act"]["kind"]) for record in records(home, session, "decision")]
    assert decided == [("ran", "execute"), ("no other", "execute")]
    await gateway.prompt(session, "run: touch third.txt")
    assert len(asked) == 1 and not (workspace / "third.txt").exists()


SECRETS = [{"name": "secrets", "decision": "deny", "paths": ["**/secret.txt"], "reason": "Ask for it."}]


async def test_a_rule_on_reading_holds_for_an_agent_that_never_asks_about_reads(
    begin: Begin, real: RealAgent, workspace: Path, home: Path
) -> None:
    if not real.does("rules see reads"):
        pytest.skip("only what it asks reaches the rules")
    (workspace / "secret.txt").write_text("the cat is grey\n")
    (workspace / "plain.txt").write_text("the dog is brown\n")
    gateway = await begin(policy={"rules": SECRETS})
    asked: list[str] = []

    def ask(params: dict[str, object]) -> object:
        asked.append(str(params))
        return chosen(params, "reject_once")

    gateway.on("session/request_permission", ask)
    session = await gateway.open_session(workspace)
    turn = await gateway.prompt(session, f"read: {workspace}/plain.txt")
    assert "the dog is brown" in said(turn.updates)
    assert not asked, "without a rule there are no more questions than before"
    assert "unmediated" not in str(turn.updates)
    turn = await gateway.prompt(session, f"read: {workspace}/secret.txt")
    assert "grey" not in said(turn.updates) and "Ask for it." in said(turn.updates)
    decided = [(record["by"], record["decision"]) for record in records(home, session, "decision")]
    assert decided == [("secrets", "deny")] and not asked


async def test_rules_hold_in_the_mode_of_claude_that_never_asks(
    begin: Begin, real: RealAgent, model: ModelServer, agent_home: Path, workspace: Path, home: Path
) -> None:
    if real.name != "claude":
        pytest.skip("the mode is claude's")
    table = real.table(installed(real.name), agent_home, model.url)
    command, env = [*table["command"], "--dangerously-skip-permissions"], {**table["env"], "IS_SANDBOX": "1"}
    gateway = await begin(policy={"rules": RULES}, command=command, env=env)
    session = await gateway.open_session(workspace)
    await gateway.prompt(session, "run: touch third.txt")
    assert (workspace / "third.txt").exists(), "it does not ask in this mode"
    await gateway.prompt(session, "run: touch other.txt")
    assert not (workspace / "other.txt").exists()
    assert [record["by"] for record in records(home, session, "decision")] == ["no other"]


ASKS_NOTHING = {
    "codex": "full-access",
    "codex-acp": "agent-full-access",
    "qwen": "yolo",
    "claude-agent-acp": "bypassPermissions",
    "opencode": None,
}
"""By agent with hooks: its mode that never asks; OpenCode has settings instead."""


async def test_rules_hold_for_an_agent_with_hooks_where_it_never_asks(
    begin: Begin, real: RealAgent, model: ModelServer, agent_home: Path, workspace: Path, home: Path
) -> None:
    if real.name not in ASKS_NOTHING:
        pytest.skip("it has no hooks of ours")
    table = real.table(installed(real.name), agent_home, model.url)
    own = {"permission": {"bash": "allow", "edit": "allow"}}  # which our hook is added to
    env = {**table["env"], "IS_SANDBOX": "1", "OPENCODE_CONFIG_CONTENT": json.dumps(own)}
    required = {"require": "full"} if real.does("mediation") == "full" else {}
    gateway = await begin(policy={"rules": [*RULES, *SECRETS], **required}, env=env)
    session = await gateway.open_session(workspace)
    if (mode := ASKS_NOTHING[real.name]) is not None:
        await gateway.request("session/set_mode", {"sessionId": session, "modeId": mode}, STARTING)
    turn = await gateway.prompt(session, "do: touch third.txt")
    assert (workspace / "third.txt").exists(), "it does not ask"
    assert "unmediated" not in str(turn.updates)
    await gateway.prompt(session, "do: touch other.txt")
    assert not (workspace / "other.txt").exists()
    (workspace / "secret.txt").write_text("the cat is grey\n")
    turn = await gateway.prompt(session, f"read: {workspace}/secret.txt")
    assert "grey" not in said(turn.updates) and "Ask for it." in said(turn.updates)
    decided = [record["by"] for record in records(home, session, "decision")]
    assert decided == ["no other", "secrets"]
