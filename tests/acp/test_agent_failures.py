"""Agents that die, babble or choke, and what their sessions' clients see of it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from support.agents.agent_log import AgentLog
from support.clients.sample_answers import EVERYTHING
from support.gateway_process import GatewayProcess, Start, agent, gone, is_alive
from support.rpc_peer import is_request


@pytest.mark.rule("G-110", "G-112")
async def test_a_crash_in_a_turn_is_an_error_with_code_and_last_words(
    client: GatewayProcess, workspace: Path
) -> None:
    session = await client.new_session(workspace)
    turn = await client.prompt(session, "say so far\ncrash 3")
    assert turn.texts == ["so far"]
    assert turn.error and turn.error.code == -32603
    assert turn.error.data["reason"] == "agent_exited"
    assert turn.error.data["exitCode"] == 3
    assert "crashes as told" in json.dumps(turn.error.data["stderrTail"])


@pytest.mark.rule("G-110")
async def test_an_agent_killed_by_a_signal_is_reported_with_it(
    client: GatewayProcess, workspace: Path
) -> None:
    session = await client.new_session(workspace)
    turn = await client.prompt(session, "kill KILL")
    assert turn.error and turn.error.data["reason"] == "agent_exited"
    assert "KILL" in str(turn.error.data["signal"])


@pytest.mark.rule("G-110")
@pytest.mark.parametrize("script", ["exit-clean", "close-stdout", "half-line\nexit-clean"])
async def test_a_turn_whose_agent_leaves_or_falls_silent_for_good_fails(
    client: GatewayProcess, workspace: Path, script: str
) -> None:
    session = await client.new_session(workspace)
    turn = await client.prompt(session, script)
    assert turn.error and turn.error.code == -32603
    assert turn.error.data["reason"] == "agent_exited"


@pytest.mark.rule("G-110")
async def test_open_tool_calls_of_a_dead_agent_are_marked_failed(
    client: GatewayProcess, workspace: Path
) -> None:
    session = await client.new_session(workspace)
    turn = await client.prompt(session, "tool done\ntoolopen one\ntoolopen two\ncrash")
    failed = [u["toolCallId"] for u in turn.updates if u.get("status") == "failed"]
    assert sorted(failed) == ["one", "two"]


@pytest.mark.rule("G-110")
async def test_questions_of_a_dead_agent_are_withdrawn(
    client: GatewayProcess, workspace: Path, tmp_path: Path
) -> None:
    session = await client.new_session(workspace)
    turn = client.start_prompt(session, f"permission-nowait\nwait-file {tmp_path / 'go'}\ncrash")
    asked = await client.next_message("session/request_permission")
    (tmp_path / "go").touch()
    assert (await turn).error
    assert (await client.next_message("$/cancel_request"))["params"]["requestId"] == asked["id"]


@pytest.mark.rule("G-110")
async def test_terminals_of_a_dead_agent_are_released(dragoman: Start, workspace: Path) -> None:
    gateway = await dragoman()
    gateway.on("terminal/create", {"terminalId": "t1"})
    await gateway.initialize(clientCapabilities=EVERYTHING)
    session = await gateway.new_session(workspace)
    await gateway.prompt(session, "terminal-keep\ncrash")
    released = await gateway.next_message(is_request("terminal/release"))
    assert released["params"] == {"sessionId": session, "terminalId": "t1"}


@pytest.mark.rule("G-110", "G-092")
async def test_a_crash_after_a_cancel_is_a_cancelled_turn(
    client: GatewayProcess, workspace: Path, tmp_path: Path
) -> None:
    session = await client.new_session(workspace)
    turn = client.start_prompt(session, "sleep-until-cancel\ncrash")
    await client.text(session, "sleeping")
    client.cancel(session)
    assert (await turn).stop_reason == "cancelled"


@pytest.mark.rule("G-110")
async def test_every_pending_request_of_a_dead_agent_fails(
    dragoman: Start, workspace: Path, tmp_path: Path
) -> None:
    gateway = await dragoman(agents={"scripted": agent(share="all")})
    await gateway.initialize()
    one, two = await gateway.new_session(workspace), await gateway.new_session(workspace)
    waiting = gateway.start_prompt(one, "ignore-cancel")
    await gateway.text(one, "ignoring")
    crashed = gateway.start_prompt(two, "crash 5")
    for turn in await asyncio.gather(waiting, crashed):
        assert turn.error and turn.error.code == -32603
        assert turn.error.data["exitCode"] == 5


@pytest.mark.rule("G-110")
async def test_a_death_touches_no_other_session(
    client: GatewayProcess, workspace: Path, tmp_path: Path
) -> None:
    healthy, doomed = await client.new_session(workspace), await client.new_session(workspace)
    turn = client.start_prompt(healthy, f"wait-file {tmp_path / 'go'}\nsay survived")
    assert (await client.prompt(doomed, "crash")).error
    (tmp_path / "go").touch()
    ended = await turn
    assert (ended.texts, ended.stop_reason) == (["survived"], "end_turn")


@pytest.mark.rule("G-110")
async def test_the_next_prompt_brings_a_dead_agent_back(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    gateway = await dragoman(agents={"scripted": agent("--load-replay", "3", *heard.flags)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    assert (await gateway.prompt(session, "crash")).error
    turn = await gateway.prompt(session, "say back")
    assert turn.texts == ["back"]
    came_back = [*heard.params("session/load"), *heard.params("session/resume")]
    assert [params["sessionId"] for params in came_back] == ["s1"]
    assert came_back[0]["cwd"] == str(workspace)


@pytest.mark.rule("G-110")
async def test_the_session_of_a_dead_agent_that_cannot_load_is_gone(dragoman: Start, workspace: Path) -> None:
    gateway = await dragoman(agents={"scripted": agent("--caps", "{}")}, sessions={"journal": False})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    assert (await gateway.prompt(session, "crash")).error
    turn = await gateway.prompt(session, "say back")
    assert turn.error and turn.error.code == -32002
    assert turn.error.data["sessionId"] == session
    other = await gateway.new_session(workspace)
    assert (await gateway.prompt(other, "say new")).texts == ["new"]


@pytest.mark.rule("G-040", "G-110")
async def test_a_session_made_after_a_crash_is_not_mistaken_for_the_old_one(
    dragoman: Start, workspace: Path
) -> None:
    gateway = await dragoman(agents={"scripted": agent(share="all")})
    await gateway.initialize()
    old = await gateway.new_session(workspace)
    await gateway.prompt(old, "crash")
    new = await gateway.new_session(workspace)
    assert new != old
    turn = await gateway.prompt(new, "say new")
    assert turn.texts == ["new"]
    assert "new" not in json.dumps(gateway.of(old))


@pytest.mark.rule("G-110")
async def test_nothing_of_a_crashed_agents_tree_stays(client: GatewayProcess, workspace: Path) -> None:
    session = await client.new_session(workspace)
    turn = await client.prompt(session, "child\norphan\ncrash")
    pids = [turn.report("child"), turn.report("orphan")]
    await gone(lambda: [pid for pid in pids if is_alive(pid)])


@pytest.mark.rule("G-111")
async def test_lines_that_are_not_json_are_skipped(client: GatewayProcess, workspace: Path) -> None:
    session = await client.new_session(workspace)
    turn = await client.prompt(session, "say one\ngarbage 5\nraw \nraw 42\nraw []\nsay two")
    assert (turn.texts, turn.stop_reason) == (["one", "two"], "end_turn")


@pytest.mark.rule("G-111")
async def test_an_agent_that_only_babbles_is_ended(client: GatewayProcess, workspace: Path) -> None:
    session = await client.new_session(workspace)
    turn = await client.prompt(session, "garbage 100000\nignore-cancel")
    assert turn.error and turn.error.code == -32603
    assert (await client.prompt(await client.new_session(workspace), "say new")).texts == ["new"]


@pytest.mark.rule("G-111")
async def test_an_update_that_is_not_utf8_hurts_nothing_else(client: GatewayProcess, workspace: Path) -> None:
    session = await client.new_session(workspace)
    turn = await client.prompt(session, "say one\nbadutf8\nsay two")
    assert turn.stop_reason == "end_turn"
    assert [text for text in turn.texts if text in ("one", "two")] == ["one", "two"]


@pytest.mark.rule("G-112")
async def test_a_flood_on_stderr_does_not_block_the_agent(client: GatewayProcess, workspace: Path) -> None:
    session = await client.new_session(workspace)
    turn = await client.prompt(session, "stderr 5000000\nsay through")
    assert turn.texts == ["through"]


@pytest.mark.rule("G-112")
async def test_the_end_of_stderr_is_what_is_shown(client: GatewayProcess, workspace: Path) -> None:
    session = await client.new_session(workspace)
    turn = await client.prompt(session, "stderr 1000000\ncrash")
    assert turn.error
    tail = json.dumps(turn.error.data["stderrTail"])
    assert "last words on stderr" in tail
    assert len(tail) < 100_000


@pytest.mark.rule("G-143")
async def test_a_line_of_five_megabytes_passes(client: GatewayProcess, workspace: Path) -> None:
    session = await client.new_session(workspace)
    turn = await client.prompt(session, f"big {5 * 1024 * 1024}\nsay after")
    assert [len(text) for text in turn.texts] == [5 * 1024 * 1024, 5]


@pytest.mark.rule("G-143", "G-111")
async def test_an_agents_oversize_line_hurts_nothing_else(dragoman: Start, workspace: Path) -> None:
    gateway = await dragoman(limits={"max_message_bytes": 1_000_000})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    turn = await gateway.prompt(session, "say one\nbig 3000000\nsay two")
    assert (turn.texts, turn.stop_reason) == (["one", "two"], "end_turn")


async def test_an_agent_that_answers_initialize_with_garbage_is_given_up(dragoman: Start) -> None:
    gateway = await dragoman(agents={"scripted": agent("--init-garbage")}, limits={"start_timeout": 2})
    response = await gateway.request_raw("initialize", {"protocolVersion": 1})
    assert response["error"]["code"] == -32603


async def test_an_agent_that_relaunches_itself_works_and_ends(dragoman: Start, workspace: Path) -> None:
    gateway = await dragoman(agents={"scripted": agent("--spawn-child")})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    pid = (await gateway.prompt(session, "pid")).report("pid")
    await gateway.request("session/close", {"sessionId": session})
    await gone(lambda: is_alive(pid))


@pytest.mark.parametrize("error", ['"boom"', '{"code":-32603,"message":"boom","data":1e400}', "[]"])
async def test_a_prompt_answered_with_an_error_that_cannot_be_read_fails(
    client: GatewayProcess, workspace: Path, error: str
) -> None:
    session = await client.new_session(workspace)
    turn = await client.prompt(session, 'raw {"jsonrpc":"2.0","id":{id},"error":' + error + "}")
    assert turn.error and turn.error.code == -32603
    assert f"no error object: {error}" in turn.error.message
    assert (await client.prompt(session, "say on")).texts == ["on"]


@pytest.mark.parametrize("result", ["[]", '"done"', "1e400"])
async def test_an_option_set_with_a_strange_result_is_answered(
    dragoman: Start, workspace: Path, result: str
) -> None:
    odd = agent("--config-options", "--answer", "session/set_config_option", f'"result":{result}')
    client = await dragoman(agents={"scripted": odd})
    await client.initialize()
    session = await client.new_session(workspace)
    params = {"sessionId": session, "configId": "model", "value": "large"}
    answer = await client.request_raw("session/set_config_option", params)
    assert answer["result"] == json.loads(result)


async def test_a_load_answered_with_something_else_than_an_object_fails(
    dragoman: Start, workspace: Path
) -> None:
    odd = agent("--answer", "session/load", '"result":[]')
    client = await dragoman(agents={"scripted": odd}, sessions={"journal": False})
    await client.initialize()
    session = await client.new_session(workspace)
    params = {"sessionId": session, "cwd": str(workspace), "mcpServers": []}
    assert "expected an object" in (await client.request_raw("session/load", params))["error"]["message"]


async def test_terminal_output_of_a_strange_shape_reaches_the_agent(dragoman: Start, workspace: Path) -> None:
    client = await dragoman()
    await client.initialize(clientCapabilities=EVERYTHING)
    client.on("terminal/create", {"terminalId": "t1"})
    for method in ("terminal/output", "terminal/wait_for_exit", "terminal/release"):
        client.on(method, ["odd"])
    session = await client.new_session(workspace)
    assert (await client.prompt(session, "terminal ls")).report("terminal/output") == {"result": ["odd"]}


async def test_an_agent_that_answers_initialize_with_a_list_is_refused_and_ended(dragoman: Start) -> None:
    client = await dragoman(agents={"scripted": agent("--answer", "initialize", '"result":[]')})
    answer = await client.request_raw("initialize", {"protocolVersion": 1})
    assert answer["error"]["data"]["reason"] == "agent_unavailable"
    assert "initialize with something that is not an object" in answer["error"]["message"]
    await gone(lambda: [each for each in client.processes().values() if "scripted_agent" in each])


async def test_initialize_is_tried_anew_after_an_agent_that_did_not_start(
    dragoman: Start, tmp_path: Path
) -> None:
    program = tmp_path / "agent"
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o755)
    client = await dragoman(agents={"scripted": {"kind": "acp", "command": [str(program)]}})
    assert "error" in await client.request_raw("initialize", {"protocolVersion": 1})
    words = " ".join(f"'{word}'" for word in agent()["command"])
    program.write_text(f"#!/bin/sh\nexec {words}\n")
    assert (await client.initialize())["protocolVersion"] == 1


async def test_what_an_agent_refuses_is_logged_without_its_secrets(dragoman: Start, workspace: Path) -> None:
    error = {
        "code": -32603,
        "message": "Internal error: api_key=hunter2-hunter2",
        "data": {
            "details": "login failed",
            "headers": {"Authorization": "Bearer hunter3"},
            "junk": "x" * 9000,
        },
    }
    flags = ("--answer", "session/new", f'"error":{json.dumps(error)}')
    gateway = await dragoman(agents={"scripted": agent(*flags)})
    await gateway.initialize()
    response = await gateway.request_raw("session/new", {"cwd": str(workspace), "mcpServers": []})
    assert response["error"]["data"]["headers"] == {"Authorization": "Bearer hunter3"}, (
        "who asked is told all"
    )
    line = (await gateway.logged(r"[^\n]*the agent refused session/new[^\n]*\n"))[0]
    assert "login failed" in line and "Internal error" in line
    assert "hunter" not in line and len(line) < 5000
