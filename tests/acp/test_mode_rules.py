"""Switching to a mode is an act: rules decide about it, whether a client or the agent switches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.agents.agent_log import AgentLog
from support.clients.sample_answers import CANCELLED
from support.gateway_process import GatewayProcess, Start, agent
from support.rpc_peer import RpcFailure
from support.store.journal_reader import records

NO_CODE = {
    "name": "no code",
    "decision": "deny",
    "kind": ["switch_mode"],
    "mode": ["code"],
    "reason": "Not here.",
}
ASK_CODE = {"name": "see code", "decision": "ask", "mode": ["code"]}


async def begin(
    dragoman: Start, workspace: Path, rules: list[Any], *flags: str
) -> tuple[GatewayProcess, str]:
    gateway = await dragoman(agents={"scripted": agent(*flags)}, policy={"rules": rules})
    await gateway.initialize()
    return gateway, await gateway.new_session(workspace)


async def test_a_denied_mode_does_not_reach_the_agent_and_the_rule_is_named(
    dragoman: Start, workspace: Path, heard: AgentLog, home: Path
) -> None:
    gateway, session = await begin(dragoman, workspace, [NO_CODE], "--modes", *heard.flags)
    with pytest.raises(RpcFailure) as refused:
        await gateway.request("session/set_mode", {"sessionId": session, "modeId": "code"})
    assert refused.value.code == -32003 and "'no code': Not here." in str(refused.value)
    assert heard.params("session/set_mode") == []
    (record,) = records(home, session, "decision")
    assert (record["by"], record["act"]["kind"], record["act"]["mode"]) == ("no code", "switch_mode", "code")


async def test_a_mode_that_is_an_option_is_denied_the_same(dragoman: Start, workspace: Path) -> None:
    gateway, session = await begin(dragoman, workspace, [NO_CODE], "--modes")
    option = {"sessionId": session, "configId": "mode", "value": "code"}
    with pytest.raises(RpcFailure) as refused:
        await gateway.request("session/set_config_option", option)
    assert refused.value.code == -32003
    assert (await gateway.request("session/set_config_option", {**option, "value": "ask"}))["configOptions"]


async def test_a_rule_about_everything_means_calls_and_not_switches(dragoman: Start, workspace: Path) -> None:
    rules = [{"decision": "deny", "name": "nothing"}]
    gateway, session = await begin(dragoman, workspace, rules, "--modes")
    assert await gateway.request("session/set_mode", {"sessionId": session, "modeId": "code"}) == {}


async def test_a_rule_that_asks_about_a_mode_asks_between_two_turns(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    gateway, session = await begin(dragoman, workspace, [ASK_CODE], "--modes", *heard.flags)
    switch = {"sessionId": session, "modeId": "code"}
    gateway.on("session/request_permission", CANCELLED)
    with pytest.raises(RpcFailure) as refused:
        await gateway.request("session/set_mode", switch)
    assert refused.value.code == -32003 and heard.params("session/set_mode") == []

    def allow(params: Any) -> Any:
        assert params["toolCall"]["kind"] == "switch_mode"
        (once,) = (each["optionId"] for each in params["options"] if each["kind"] == "allow_once")
        return {"outcome": {"outcome": "selected", "optionId": once}}

    gateway.on("session/request_permission", allow)
    assert await gateway.request("session/set_mode", switch) == {}
    assert heard.params("session/set_mode") == [{"sessionId": "s1", "modeId": "code"}]


async def test_an_agent_that_switches_by_itself_is_switched_back(
    dragoman: Start, workspace: Path, heard: AgentLog, home: Path
) -> None:
    gateway, session = await begin(dragoman, workspace, [NO_CODE], "--modes", *heard.flags)
    switched = json.dumps({"sessionUpdate": "current_mode_update", "currentModeId": "code"})
    await gateway.prompt(session, f"update {switched}")
    back = {"sessionUpdate": "current_mode_update", "currentModeId": "ask"}
    await gateway.next_message(lambda m: m.get("params", {}).get("update") == back)
    assert heard.params("session/set_mode") == [{"sessionId": "s1", "modeId": "ask"}]
    assert [record["by"] for record in records(home, session, "decision")] == ["no code"]
    assert "no code" in str(records(home, session, "notice"))
