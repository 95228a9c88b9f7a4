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
from support.session_client import resumable_agent
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


def allow_once(params: Any) -> Any:
    (once,) = (each["optionId"] for each in params["options"] if each["kind"] == "allow_once")
    return {"outcome": {"outcome": "selected", "optionId": once}}


@pytest.mark.parametrize("way", ["session/set_mode", "session/set_config_option"])
async def test_a_restarted_agent_is_not_switched_to_a_mode_that_a_rule_asks_about(
    dragoman: Start, workspace: Path, heard: AgentLog, home: Path, way: str
) -> None:
    agents = {"scripted": resumable_agent(*heard.flags, "--modes")}
    gateway = await dragoman(agents=agents, policy={"rules": [ASK_CODE]})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    gateway.on("session/request_permission", allow_once)
    told = {"modeId": "code"} if way == "session/set_mode" else {"configId": "mode", "value": "code"}
    await gateway.request(way, {"sessionId": session, **told})
    assert len(heard.params("session/set_mode")) == 1
    await gateway.prompt(session, "crash 3")
    assert (await gateway.prompt(session, "say after")).texts[-1] == "after"
    assert len(heard.params("session/resume")) == 1
    assert len(heard.params("session/set_mode")) == 1, "it is in its first mode"
    assert "started anew without the mode 'code': the rule 'see code' asks" in str(
        records(home, session, "notice")
    )
    await gateway.request("session/set_mode", {"sessionId": session, "modeId": "code"})
    assert len(heard.params("session/set_mode")) == 2


async def test_a_restarted_agent_is_switched_to_a_mode_that_no_rule_is_about(
    dragoman: Start, workspace: Path, heard: AgentLog, home: Path
) -> None:
    other = {"name": "no yolo", "decision": "deny", "mode": ["yolo"], "kind": ["switch_mode"]}
    agents = {"scripted": resumable_agent(*heard.flags, "--modes")}
    gateway = await dragoman(agents=agents, policy={"rules": [other]})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    await gateway.request("session/set_mode", {"sessionId": session, "modeId": "code"})
    await gateway.prompt(session, "crash 3")
    await gateway.prompt(session, "say after")
    assert len(heard.params("session/set_mode")) == 2
    assert records(home, session, "notice") == []


async def test_an_agent_that_comes_back_in_a_denied_mode_is_switched_to_an_allowed_one(
    dragoman: Start, workspace: Path, heard: AgentLog, home: Path
) -> None:
    no_ask = {"name": "no ask", "decision": "deny", "kind": ["switch_mode"], "mode": ["ask"]}
    agents = {"scripted": resumable_agent(*heard.flags, "--modes")}
    gateway = await dragoman(agents=agents, policy={"rules": [no_ask]})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    await gateway.prompt(session, "crash 3")
    await gateway.prompt(session, "say after")
    assert [one["modeId"] for one in heard.params("session/set_mode")] == ["code"]
    assert "came back in the mode 'ask'" in str(records(home, session, "notice"))
