"""Agents that behave differently on the wire, and clients that do not notice."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from support.agents.agent_log import AgentLog
from support.clients.sample_answers import ALLOW, REJECT
from support.gateway_process import SCRIPTED_AGENT, GatewayProcess, Start, agent
from support.rpc_peer import Message, RpcFailure, text_of
from support.waiting import runs

QUESTION = {
    "toolCall": {"toolCallId": "shell__1", "title": "make", "kind": "execute"},
    "options": [
        {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
        {"optionId": "no", "name": "No", "kind": "reject_once"},
    ],
}


MODE_OPTION = {
    "configOptions": [
        {
            "id": "mode",
            "name": "Mode",
            "category": "mode",
            "type": "select",
            "currentValue": "ask",
            "options": [{"value": "ask", "name": "Ask"}, {"value": "code", "name": "Code"}],
        }
    ]
}


def update(**members: Any) -> str:
    return "update " + json.dumps(members)


async def test_a_tool_call_exists_before_its_question(client: GatewayProcess, workspace: Path) -> None:
    client.on("session/request_permission", ALLOW)
    session = await client.new_session(workspace)
    done = update(sessionUpdate="tool_call_update", toolCallId="shell__1", status="completed")
    turn = await client.prompt(session, f"permission {json.dumps(QUESTION)}\n{done}")
    tools = [each for each in turn.updates if each["sessionUpdate"].startswith("tool_call")]
    assert [(each["sessionUpdate"], each["status"]) for each in tools] == [
        ("tool_call", "pending"),
        ("tool_call_update", "completed"),
    ]
    assert tools[0]["title"] == "make"
    methods = [message.get("method") for message in client.received]
    assert methods.index("session/update") < methods.index("session/request_permission")


async def test_a_tool_call_that_was_told_is_not_told_again(client: GatewayProcess, workspace: Path) -> None:
    client.on("session/request_permission", ALLOW)
    call = update(sessionUpdate="tool_call", toolCallId="shell__1", title="make", status="pending")
    turn = await client.prompt(
        await client.new_session(workspace), f"{call}\npermission {json.dumps(QUESTION)}"
    )
    assert [each["sessionUpdate"] for each in turn.updates].count("tool_call") == 1


@pytest.mark.parametrize("reads_meta", [True, False])
async def test_clients_that_read_terminals_from_meta_keep_them(
    dragoman: Start, workspace: Path, reads_meta: bool
) -> None:
    client = await dragoman("acp", "scripted")
    await client.initialize(clientCapabilities={"_meta": {"terminal_output": reads_meta}})
    call = {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "shell__1",
        "locations": [{"path": "made.txt"}],
        "content": [{"type": "terminal", "terminalId": "shell__1"}],
        "_meta": {"terminal_output": {"data": "built"}},
    }
    turn = await client.prompt(await client.new_session(workspace), update(**call))
    (shown,) = [each for each in turn.updates if each["sessionUpdate"] == "tool_call_update"][:1]
    text = {"type": "text", "text": "```console\nbuilt\n```"}
    assert shown["content"] == (call["content"] if reads_meta else [{"type": "content", "content": text}])
    assert shown["locations"] == [{"path": str(workspace / "made.txt")}]


async def test_no_tool_call_is_left_open_when_the_turn_ends(client: GatewayProcess, workspace: Path) -> None:
    client.on("session/request_permission", REJECT)
    turn = await client.prompt(await client.new_session(workspace), f"permission {json.dumps(QUESTION)}")
    last = [each for each in turn.updates if each["sessionUpdate"].startswith("tool_call")][-1]
    assert (last["toolCallId"], last["status"]) == ("shell__1", "failed")


async def test_a_mode_that_is_said_in_the_chat_becomes_a_mode_update(
    client: GatewayProcess, workspace: Path
) -> None:
    turn = await client.prompt(await client.new_session(workspace), "say [MODE_UPDATE] yolo\nsay hello")
    assert turn.texts == ["hello"]
    modes = [each["currentModeId"] for each in turn.updates if each["sessionUpdate"] == "current_mode_update"]
    assert modes == ["yolo"]


async def test_a_command_that_runs_on_after_cancel_ends_with_its_agent(
    dragoman: Start, workspace: Path
) -> None:
    gateway = await dragoman(agents={"scripted": agent()})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    call = update(sessionUpdate="tool_call", toolCallId="t", title="x", kind="execute", status="in_progress")
    running = gateway.start_prompt(session, f"{call}\norphan\nsleep-until-cancel")
    await gateway.text(session, "sleeping")
    (pid,) = (int(text_of(each).split()[1]) for each in gateway.of(session) if "orphan" in text_of(each))
    gateway.cancel(session)
    turn = await running
    assert turn.stop_reason == "cancelled"
    again = await gateway.prompt(session, "say back again")  # at once: it waits for the look at the command
    assert again.texts == ["back again"]
    assert not runs(pid)


async def test_an_agent_whose_commands_end_with_the_turn_stays(
    client: GatewayProcess, workspace: Path
) -> None:
    session = await client.new_session(workspace)
    call = update(sessionUpdate="tool_call", toolCallId="t", title="x", kind="execute", status="in_progress")
    running = client.start_prompt(session, f"{call}\nsleep-until-cancel")
    await client.text(session, "sleeping")
    agents = [pid for pid, line in client.processes().items() if "scripted_agent" in line]
    client.cancel(session)
    await running
    await client.prompt(session, "say still here")
    assert [pid for pid, line in client.processes().items() if "scripted_agent" in line] == agents


async def test_a_failure_that_was_said_in_the_chat_is_the_errors_words(
    client: GatewayProcess, workspace: Path
) -> None:
    status = {"codex": {"threadStatus": {"type": "systemError"}}}
    failed = update(sessionUpdate="session_info_update", _meta=status)
    turn = await client.prompt(await client.new_session(workspace), f"{failed}\nsay The model said 400")
    assert turn.error is not None
    assert "The model said 400" in turn.error.message


async def test_a_question_that_is_left_open_is_withdrawn(client: GatewayProcess, workspace: Path) -> None:
    session = await client.new_session(workspace)
    running = client.start_prompt(session, f"permission-nowait {json.dumps(QUESTION)}\nsleep-until-cancel")
    question = await client.next_message("session/request_permission")
    client.cancel(session)
    assert (await running).stop_reason == "cancelled"
    withdrawn = await client.next_message("$/cancel_request")
    assert withdrawn["params"]["requestId"] == question["id"]


async def test_an_agent_that_waits_for_an_answer_gets_one_at_cancel(
    client: GatewayProcess, workspace: Path
) -> None:
    session = await client.new_session(workspace)
    running = client.start_prompt(session, f"permission {json.dumps(QUESTION)}")
    await client.next_message("session/request_permission")
    client.cancel(session)
    assert (await running).stop_reason == "cancelled"


async def test_a_second_prompt_is_refused_and_the_first_goes_on(
    client: GatewayProcess, workspace: Path
) -> None:
    session = await client.new_session(workspace)
    running = client.start_prompt(session, "sleep-until-cancel")
    await client.text(session, "sleeping")
    second = await client.prompt(session, "say hello")
    assert second.error is not None
    assert second.error.data["reason"] == "prompt_in_flight"
    client.cancel(session)
    assert (await running).stop_reason == "cancelled"


async def test_modes_models_and_options_are_told_in_all_words(dragoman: Start, workspace: Path) -> None:
    for flags in (("--modes",), ("--config-options",), ("--models",)):
        gateway = await dragoman(agents={"scripted": agent(*flags)})
        await gateway.initialize(clientCapabilities={"_meta": {"dragoman": {"models": True}}})
        told = await gateway.request("session/new", {"cwd": str(workspace), "mcpServers": []})
        categories = {each["category"]: each["currentValue"] for each in told["configOptions"]}
        older = {"mode": told.get("modes", {}).get("currentModeId")}
        older["model"] = told.get("models", {}).get("currentModelId")
        assert categories == {name: value for name, value in older.items() if value is not None}


@pytest.mark.parametrize(
    "flags", [("--modes",), ("--config-options", "--new-extra", json.dumps(MODE_OPTION))]
)
async def test_a_mode_that_is_not_offered_is_refused_here(
    dragoman: Start, heard: AgentLog, workspace: Path, flags: tuple[str, ...]
) -> None:
    gateway = await dragoman(agents={"scripted": agent(*flags, *heard.flags)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    option = {"sessionId": session, "configId": "mode", "value": "turbo"}
    for method, params in (
        ("session/set_mode", {"sessionId": session, "modeId": "turbo"}),
        ("session/set_config_option", option),
    ):
        with pytest.raises(RpcFailure, match="'turbo' is not offered") as failure:
            await gateway.request(method, params)
        assert failure.value.code == -32602
        assert heard.params(method) == []


async def test_a_failure_that_is_said_and_answered_is_one_error(
    client: GatewayProcess, workspace: Path
) -> None:
    script = "say API Error: 400\nerror -32603 API Error: 400"
    turn = await client.prompt(await client.new_session(workspace), script)
    assert turn.texts == ["API Error: 400"]
    assert turn.error is not None
    assert turn.error.message == "API Error: 400"


async def test_text_that_is_said_again_is_shown_again(client: GatewayProcess, workspace: Path) -> None:
    turn = await client.prompt(await client.new_session(workspace), "say Half an\nsay Half an answer.")
    assert turn.texts == ["Half an", "Half an answer."]
    assert turn.stop_reason == "end_turn"


async def test_the_variables_of_an_agent_are_the_configurations(dragoman: Start, workspace: Path) -> None:
    gateway = await dragoman(agents={"scripted": agent(env={"IS_SANDBOX": "1"})})
    await gateway.initialize()
    turn = await gateway.prompt(await gateway.new_session(workspace), "env IS_SANDBOX")
    assert "1" in "".join(turn.texts)


async def test_fs_is_not_offered_to_an_agent_that_does_not_survive_it(
    dragoman: Start, heard: AgentLog, tmp_path: Path
) -> None:
    script = tmp_path / "gemini.py"
    script.symlink_to(SCRIPTED_AGENT)
    command = [sys.executable, str(script), *heard.flags]
    gateway = await dragoman(agents={"scripted": {"kind": "acp", "command": command}})
    offered = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}
    await gateway.initialize(clientCapabilities=offered)
    (told,) = heard.params("initialize")
    assert told["clientCapabilities"] == {"terminal": True}


async def test_silence_is_shown_as_such(dragoman: Start, workspace: Path) -> None:
    gateway = await dragoman(agents={"scripted": agent()}, sessions={"silent_after": 0.2})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    running = gateway.start_prompt(session, "sleep-until-cancel")

    def silent(message: Message) -> bool:
        update = message.get("params", {}).get("update", {})
        return bool(update.get("_meta", {}).get("dragoman", {}).get("state") == "silent")

    await gateway.next_message(silent)
    gateway.cancel(session)
    assert (await running).stop_reason == "cancelled"


RELAUNCHING = """
import json, os, signal, sys

if "child" not in sys.argv:
    child = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, "-S", "-E", __file__, "child"])
    os.waitpid(child, 0)
    sys.exit()


def say(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
    sys.stdout.flush()


def end(*_):
    say({"id": prompt, "result": {"stopReason": "cancelled"}})
    os._exit(0)


signal.signal(signal.SIGTERM, end)
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        say({"id": asked["id"], "result": {"protocolVersion": 1, "agentCapabilities": {}}})
    elif asked.get("method") == "session/new":
        say({"id": asked["id"], "result": {"sessionId": "s"}})
    elif asked.get("method") == "session/prompt":
        prompt = asked["id"]
        os.kill(os.getppid(), signal.SIGKILL)
signal.pause()
"""


async def test_a_killed_agent_is_an_error_whatever_its_child_says(
    dragoman: Start, workspace: Path, tmp_path: Path
) -> None:
    program = tmp_path / "relaunching.py"
    program.write_text(RELAUNCHING)
    command = [sys.executable, "-S", "-E", str(program)]
    gateway = await dragoman("acp", "twofold", agents={"twofold": {"kind": "acp", "command": command}})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    for _ in range(2):  # the second one brings the agent back, whose child kills it again
        turn = await gateway.prompt(session, "go")
        assert turn.error is not None
        assert "was ended by SIGKILL" in turn.error.message
    assert len(re.findall("agent started", gateway.stderr)) == 2
