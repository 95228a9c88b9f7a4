"""`policy.require` refuses agents and modes of which too little reaches the rules."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from dragoman.agents.known import KNOWN
from dragoman.config.model import AgentConfig
from dragoman.gateway.access.mediation import check_level, mediation_of
from dragoman.wire.errors import RpcError
from support.command_line import CommandLine
from support.gateway_process import Start, agent
from support.rpc_peer import RpcFailure

SCRIPTED_CODEX = Path(__file__).parents[1] / "support" / "agents" / "scripted_codex.py"


@pytest.mark.parametrize(
    ("command", "level"),
    [
        (["gemini", "--acp"], "asking"),
        (["/opt/bin/opencode", "acp"], "full"),
        (["node", "/x/node_modules/@google/gemini-cli/bundle/gemini.js"], "asking"),
        (["node", "/x/node_modules/@agentclientprotocol/codex-acp/dist/index.js"], "asking"),
        (["node", "/x/node_modules/@qwen-code/qwen-code/cli.js"], "full"),
        (["mine", "--acp"], "none"),
        ([], "none"),
    ],
)
def test_an_agent_is_known_by_its_program(command: list[str], level: str) -> None:
    assert mediation_of(AgentConfig(command=command)).level == level


def test_known_agents_that_were_not_tested_have_no_level() -> None:
    levels = {
        name: mediation_of(AgentConfig(kind=known.kind, command=list(known.command)))  # type: ignore[arg-type]
        for name, known in KNOWN.items()
    }
    full = [name for name, mediation in levels.items() if mediation.level == "full"]
    assert full == ["builtin", "claude", "claude-acp", "opencode", "qwen"]
    assert levels["goose"].level == "none" and all(mediation.why for mediation in levels.values())


def test_an_agent_with_hooks_has_none_in_a_sandbox() -> None:
    qwen = AgentConfig(command=["qwen", "--acp"])
    check_level("full", "q", qwen, "yolo")
    with pytest.raises(RpcError) as refused:
        check_level("full", "q", qwen, boxed=True)
    assert "The agent q in a sandbox" in refused.value.message


def test_a_mode_that_never_asks_is_below_every_level() -> None:
    gemini = AgentConfig(command=["gemini", "--acp"])
    check_level("asking", "g", gemini, "default")
    check_level(None, "g", gemini, "yolo")
    with pytest.raises(RpcError) as refused:
        check_level("asking", "g", gemini, "yolo")
    assert "The mode 'yolo' of the agent g" in refused.value.message
    with pytest.raises(RpcError) as refused:
        check_level("full", "g", gemini)
    assert '"asking"' in refused.value.message and "policy.require" in refused.value.message


async def test_an_agent_below_the_required_level_gets_no_session(dragoman: Start, workspace: Path) -> None:
    gateway = await dragoman(
        "acp",
        "scripted",
        agents={"scripted": agent(), "builtin": {"kind": "builtin"}},
        policy={"require": "full"},
    )
    with pytest.raises(RpcFailure) as refused:
        await gateway.initialize()
        await gateway.new_session(workspace)
    assert "The agent scripted" in str(refused.value) and "`dragoman agents list`" in str(refused.value)


async def test_a_mode_below_the_required_level_is_not_switched_to(
    dragoman: Start, workspace: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-S", "-E", str(SCRIPTED_CODEX)]
    codex = {"kind": "codex", "command": command, "env": {"CODEX_HOME": str(tmp_path / "codex")}}
    gateway = await dragoman("acp", "codex", agents={"codex": codex}, policy={"require": "asking"})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    with pytest.raises(RpcFailure) as refused:
        await gateway.request("session/set_mode", {"sessionId": session, "modeId": "full-access"})
    assert refused.value.code == -32003 and "The mode 'full-access' of the agent codex" in str(refused.value)
    await gateway.request("session/set_mode", {"sessionId": session, "modeId": "read-only"})


def test_levels_are_listed(home: Path, workspace: Path) -> None:
    shell = CommandLine(home, workspace)
    rows = {row["name"]: row for row in json.loads(shell.run("agents", "list", "--json").stdout)}
    assert rows["claude"]["mediation"] == "full" and rows["gemini"]["neverAsks"] == ["yolo"]
    assert "MEDIATION" in shell.run("agents", "list").stdout
