"""Older and foreign shapes that agents and clients send, and the ACP that comes out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.agents.agent_log import AgentLog
from support.gateway_process import GatewayProcess, Start, agent

TEXT = {"type": "text", "text": "x"}


async def update_seen(client: GatewayProcess, workspace: Path, update: dict[str, Any]) -> dict[str, Any]:
    turn = await client.prompt(await client.new_session(workspace), "update " + json.dumps(update))
    return dict(turn.updates[0])  # a tool call that is left open is closed after it


UPDATES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "D-60 thought_chunk": (
        {"sessionUpdate": "thought_chunk", "content": TEXT},
        {"sessionUpdate": "agent_thought_chunk", "content": TEXT},
    ),
    "D-60 thinking_chunk": (
        {"sessionUpdate": "thinking_chunk", "content": TEXT},
        {"sessionUpdate": "agent_thought_chunk", "content": TEXT},
    ),
    "D-61 user_message": (
        {"sessionUpdate": "user_message", "content": TEXT},
        {"sessionUpdate": "user_message_chunk", "content": TEXT},
    ),
    "D-63 bare content block": (
        {"sessionUpdate": "tool_call_update", "toolCallId": "t", "content": [TEXT]},
        {
            "sessionUpdate": "tool_call_update",
            "toolCallId": "t",
            "content": [{"type": "content", "content": TEXT}],
        },
    ),
    "D-63 untyped diff": (
        {"sessionUpdate": "tool_call_update", "toolCallId": "t", "content": [{"path": "/a", "newText": "b"}]},
        {
            "sessionUpdate": "tool_call_update",
            "toolCallId": "t",
            "content": [{"type": "diff", "path": "/a", "newText": "b"}],
        },
    ),
    "D-64 executing": (
        {"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "executing"},
        {"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "in_progress"},
    ),
    "D-64 error": (
        {"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "error"},
        {"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "failed"},
    ),
    "D-64 success": (
        {"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "success"},
        {"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed"},
    ),
    "D-65 write": (
        {"sessionUpdate": "tool_call_update", "toolCallId": "t", "kind": "write"},
        {"sessionUpdate": "tool_call_update", "toolCallId": "t", "kind": "edit"},
    ),
    "D-65 unknown kind": (
        {"sessionUpdate": "tool_call_update", "toolCallId": "t", "kind": "dance"},
        {"sessionUpdate": "tool_call_update", "toolCallId": "t", "kind": "dance"},
    ),
    "D-67 available_commands": (
        {"sessionUpdate": "available_commands", "availableCommands": []},
        {"sessionUpdate": "available_commands_update", "availableCommands": []},
    ),
    "D-68 unstructured hint": (
        {
            "sessionUpdate": "available_commands_update",
            "availableCommands": [
                {"name": "a", "description": "b", "input": {"unstructured": {"hint": "c"}}},
            ],
        },
        {
            "sessionUpdate": "available_commands_update",
            "availableCommands": [{"name": "a", "description": "b", "input": {"hint": "c"}}],
        },
    ),
    "D-69 currentMode": (
        {"sessionUpdate": "current_mode_update", "currentMode": "code"},
        {"sessionUpdate": "current_mode_update", "currentModeId": "code"},
    ),
    "D-120 modeId": (
        {"sessionUpdate": "current_mode_update", "modeId": "code"},
        {"sessionUpdate": "current_mode_update", "currentModeId": "code"},
    ),
}


@pytest.mark.rule("G-061")
@pytest.mark.parametrize("row", UPDATES)
async def test_an_old_update_arrives_in_todays_shape(
    client: GatewayProcess, workspace: Path, row: str
) -> None:
    sent, wanted = UPDATES[row]
    assert await update_seen(client, workspace, sent) == wanted


async def test_a_nested_tool_call_arrives_flat(client: GatewayProcess, workspace: Path) -> None:
    call = {"toolCallId": "t", "toolName": "grep", "arguments": {"n": 2**60}, "status": "executing"}
    seen = await update_seen(client, workspace, {"sessionUpdate": "tool_call", "toolCall": call})
    assert (seen["toolCallId"], seen["title"], seen["status"]) == ("t", "grep", "in_progress")
    assert seen["rawInput"] == {"n": 2**60}
    assert not {"toolCall", "toolName", "arguments"} & seen.keys()


async def test_a_plan_of_steps_arrives_as_entries(client: GatewayProcess, workspace: Path) -> None:
    steps = [{"id": "1", "description": "first"}]
    seen = await update_seen(client, workspace, {"sessionUpdate": "plan", "steps": steps})
    (entry,) = seen["entries"]
    assert (entry["content"], entry["priority"], entry["status"]) == ("first", "medium", "pending")


async def test_a_plan_entry_without_priority_gets_one(client: GatewayProcess, workspace: Path) -> None:
    entries = [{"id": "7", "content": "do", "status": "completed"}]
    seen = await update_seen(client, workspace, {"sessionUpdate": "plan", "entries": entries})
    (entry,) = seen["entries"]
    assert (entry["content"], entry["priority"], entry["status"]) == ("do", "medium", "completed")


@pytest.mark.parametrize("reason", ["tool_use", "max_turns", "who_knows"])
async def test_a_foreign_stop_reason_ends_the_turn_normally(
    client: GatewayProcess, workspace: Path, reason: str
) -> None:
    turn = await client.prompt(await client.new_session(workspace), f"stop {reason}")
    assert turn.stop_reason == "end_turn"
    assert reason in json.dumps(turn.response["result"]["_meta"]["dragoman"])


async def test_the_stop_reason_error_is_an_error(client: GatewayProcess, workspace: Path) -> None:
    turn = await client.prompt(await client.new_session(workspace), "stop error")
    assert turn.error and turn.error.code == -32603


@pytest.mark.parametrize("reason", ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"])
async def test_the_five_stop_reasons_pass(client: GatewayProcess, workspace: Path, reason: str) -> None:
    turn = await client.prompt(await client.new_session(workspace), f"stop {reason}")
    assert turn.response["result"] == {"stopReason": reason}


@pytest.mark.parametrize("code", [-32001, -32602, -32000])
async def test_an_agents_own_code_for_a_lost_session_becomes_not_found(
    client: GatewayProcess, workspace: Path, code: int
) -> None:
    turn = await client.prompt(await client.new_session(workspace), f"error {code} Session not found")
    assert turn.error and turn.error.code == -32002
    assert str(code) in json.dumps(turn.error.data)


async def test_a_demand_for_login_stays_one(client: GatewayProcess, workspace: Path) -> None:
    turn = await client.prompt(await client.new_session(workspace), "error -32000 Authentication required")
    assert turn.error and turn.error.code == -32000


@pytest.mark.rule("G-116")
async def test_session_end_is_session_close(dragoman: Start, workspace: Path, heard: AgentLog) -> None:
    gateway = await dragoman(agents={"scripted": agent(*heard.flags)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    assert await gateway.request("session/end", {"sessionId": session}) == {}
    assert heard.params("session/close") == [{"sessionId": "s1"}]
    assert "session/end" not in heard.methods
    turn = await gateway.prompt(session, "say x")
    assert turn.error and turn.error.code == -32002


async def test_set_model_becomes_the_model_option(dragoman: Start, workspace: Path, heard: AgentLog) -> None:
    gateway = await dragoman(agents={"scripted": agent("--config-options", *heard.flags)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    await gateway.request("session/set_model", {"sessionId": session, "modelId": "large"})
    (params,) = heard.params("session/set_config_option")
    assert (params["configId"], params["value"]) == ("model", "large")


async def test_models_of_an_old_agent_become_a_config_option(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    gateway = await dragoman(agents={"scripted": agent("--models", *heard.flags)})
    await gateway.initialize()
    answer = await gateway.request("session/new", {"cwd": str(workspace), "mcpServers": []})
    (option,) = [entry for entry in answer["configOptions"] if entry.get("category") == "model"]
    assert (option["type"], option["currentValue"]) == ("select", "small")
    assert [choice["value"] for choice in option["options"]] == ["small", "large"]
    params = {"sessionId": answer["sessionId"], "configId": option["id"], "value": "large"}
    (changed,) = (await gateway.request("session/set_config_option", params))["configOptions"]
    assert changed["currentValue"] == "large"
    assert heard.params("session/set_model") == [{"sessionId": "s1", "modelId": "large"}]


async def test_modes_with_an_old_key_arrive_with_todays(dragoman: Start, workspace: Path) -> None:
    old = {"modes": {"currentMode": "ask", "availableModes": [{"id": "ask", "name": "Ask"}]}}
    gateway = await dragoman(agents={"scripted": agent("--new-extra", json.dumps(old))})
    await gateway.initialize()
    answer = await gateway.request("session/new", {"cwd": str(workspace), "mcpServers": []})
    assert answer["modes"]["currentModeId"] == "ask"


async def test_config_options_with_values_arrive_with_options(dragoman: Start, workspace: Path) -> None:
    option = {"id": "m", "name": "M", "currentValue": "a", "values": [{"id": "a", "name": "A"}]}
    extra = json.dumps({"configOptions": [option]})
    gateway = await dragoman(agents={"scripted": agent("--new-extra", extra)})
    await gateway.initialize()
    answer = await gateway.request("session/new", {"cwd": str(workspace), "mcpServers": []})
    (seen,) = answer["configOptions"]
    assert (seen["type"], seen["options"]) == ("select", [{"value": "a", "name": "A"}])


async def test_capabilities_that_are_true_arrive_as_objects(dragoman: Start) -> None:
    caps = json.dumps({"sessionCapabilities": {"additionalDirectories": True, "fork": True}})
    gateway = await dragoman(agents={"scripted": agent("--caps", caps)})
    shown = (await gateway.initialize())["agentCapabilities"]["sessionCapabilities"]
    assert (shown["additionalDirectories"], shown["fork"]) == ({}, {})


SERVERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "typed": (
        {"type": "stdio", "name": "s", "command": "/bin/s", "args": ["-x"], "env": []},
        {"name": "s", "command": "/bin/s", "args": ["-x"], "env": []},
    ),
    "bare": (
        {"name": "s", "command": "/bin/s"},
        {"name": "s", "command": "/bin/s", "args": [], "env": []},
    ),
    "env map": (
        {"name": "s", "command": "/bin/s", "args": [], "env": {"K": "v"}},
        {"name": "s", "command": "/bin/s", "args": [], "env": [{"name": "K", "value": "v"}]},
    ),
}


@pytest.mark.rule("G-052")
@pytest.mark.parametrize("row", SERVERS)
async def test_a_server_in_an_old_shape_reaches_the_agent_in_todays(
    dragoman: Start, workspace: Path, heard: AgentLog, row: str
) -> None:
    sent, wanted = SERVERS[row]
    gateway = await dragoman(agents={"scripted": agent(*heard.flags)})
    await gateway.initialize()
    await gateway.new_session(workspace, mcpServers=[sent])
    assert heard.params("session/new")[-1]["mcpServers"] == [wanted]


async def test_a_link_without_a_name_gets_its_last_segment(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    gateway = await dragoman(agents={"scripted": agent(*heard.flags)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    await gateway.prompt(session, [{"type": "resource_link", "uri": "file:///a/b.txt"}])
    (block,) = heard.params("session/prompt")[-1]["prompt"]
    assert block["name"] == "b.txt"


async def test_permission_options_in_an_old_shape_arrive_in_todays(
    client: GatewayProcess, workspace: Path
) -> None:
    options = [
        {"optionId": "allow", "title": "Allow", "description": "do it"},
        {"optionId": "deny", "title": "Deny"},
        {"optionId": "perhaps", "title": "Perhaps"},
    ]
    session = await client.new_session(workspace)
    turn = client.start_prompt(session, "permission " + json.dumps({"options": options}))
    asked = await client.next_message("session/request_permission")
    seen = {option["optionId"]: option for option in asked["params"]["options"]}
    assert [option["name"] for option in seen.values()] == ["Allow", "Deny", "Perhaps"]
    assert seen["allow"]["kind"].startswith("allow_")
    assert seen["deny"]["kind"].startswith("reject_")
    assert seen["perhaps"]["kind"] == "reject_once"
    client.reply(asked, {"outcome": {"outcome": "selected", "optionId": "allow"}})
    await turn
