"""Whose message it is: ids, sessions and agents that look alike and must not mix."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from support.agents.agent_log import AgentLog
from support.clients.sample_answers import ALLOW, REJECT
from support.gateway_process import GatewayProcess, Start, agent
from support.rpc_peer import is_request


@pytest.mark.rule("G-010", "G-012", "G-062")
async def test_two_agents_that_ask_with_the_same_id_get_their_own_answers(
    dragoman: Start, workspace: Path
) -> None:
    gateway = await dragoman("acp", agents={"one": agent(), "two": agent()})
    await gateway.initialize()
    one = await gateway.new_session(workspace, _meta={"dragoman": {"agent": "one"}})
    two = await gateway.new_session(workspace, _meta={"dragoman": {"agent": "two"}})
    turns = [gateway.start_prompt(session, "permission") for session in (one, two)]
    asked = [await gateway.next_message("session/request_permission") for _ in turns]
    assert asked[0]["id"] != asked[1]["id"]
    answers = {one: ALLOW, two: REJECT}
    for request in reversed(asked):
        gateway.reply(request, answers[request["params"]["sessionId"]])
    first, second = await asyncio.gather(*turns)
    assert first.report("permission") == {"result": ALLOW}
    assert second.report("permission") == {"result": REJECT}


@pytest.mark.rule("G-011")
async def test_ids_that_differ_only_in_type_are_different(client: GatewayProcess) -> None:
    ids = [1, "1", None, 0, "", -5, 2**53 + 1, "ü \n"]
    for number, id in enumerate(ids):
        client.start_request("_echo", {"number": number}, id=id)
    for number, id in enumerate(ids):
        assert (await client.response(id))["result"] == {"number": number}


@pytest.mark.rule("G-011")
@pytest.mark.parametrize("style", ["string", "big"])
async def test_an_agent_gets_its_own_id_back(
    dragoman: Start, workspace: Path, heard: AgentLog, style: str
) -> None:
    gateway = await dragoman(agents={"scripted": agent("--request-ids", style, *heard.flags)})
    gateway.on("session/request_permission", ALLOW)
    await gateway.initialize()
    await gateway.prompt(await gateway.new_session(workspace), "permission")
    answered = [message["id"] for message in heard.messages if message.get("result") == ALLOW]
    assert answered == [{"string": "ask-0", "big": 2**60}[style]]


@pytest.mark.rule("G-012")
async def test_one_number_may_be_outstanding_both_ways(client: GatewayProcess, workspace: Path) -> None:
    session = await client.new_session(workspace)
    turn = client.start_prompt(session, "permission")
    asked = await client.next_message("session/request_permission")
    answer = await client.request_raw("_echo", {"mine": True}, id=asked["id"])
    assert answer["result"] == {"mine": True}
    client.reply(asked, ALLOW)
    assert (await turn).report("permission") == {"result": ALLOW}


@pytest.mark.rule("G-013")
async def test_answers_that_nobody_asked_for_are_dropped(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    gateway = await dragoman(agents={"scripted": agent(*heard.flags)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    known = len(gateway.received)
    for id in (0, 1, "0", None, 99):
        gateway.send({"jsonrpc": "2.0", "id": id, "result": {"stray": True}})
        gateway.send({"jsonrpc": "2.0", "id": id, "error": {"code": 1, "message": "stray"}})
    turn = await gateway.prompt(session, "say fine")
    assert turn.texts == ["fine"]
    assert len(gateway.received) == known + 2
    assert "response" not in heard.methods


@pytest.mark.rule("G-013")
async def test_a_second_answer_to_one_question_is_dropped(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    gateway = await dragoman(agents={"scripted": agent(*heard.flags)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    turn = gateway.start_prompt(session, "permission")
    asked = await gateway.next_message("session/request_permission")
    gateway.reply(asked, ALLOW)
    gateway.reply(asked, REJECT)
    assert (await turn).report("permission") == {"result": ALLOW}
    await gateway.prompt(session, "say settled")
    assert heard.methods.count("response") == 1


@pytest.mark.rule("G-013", "G-110")
async def test_an_agents_answer_that_nobody_asked_for_is_dropped(
    client: GatewayProcess, workspace: Path
) -> None:
    session = await client.new_session(workspace)
    known = len(client.received)
    stray = '{"jsonrpc":"2.0","id":%s,"result":{"stray":true}}'
    turn = await client.prompt(session, f"raw {stray % 4711}\nraw {stray % 'null'}\nsay fine")
    assert turn.texts == ["fine"]
    assert len(client.received) == known + 2


@pytest.mark.rule("G-014")
async def test_an_id_in_flight_cannot_be_used_again(client: GatewayProcess, workspace: Path) -> None:
    session = await client.new_session(workspace)
    prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "sleep-until-cancel"}]}
    client.start_request("session/prompt", prompt, id="same")
    await client.text(session, "sleeping")
    client.start_request("_echo", {}, id="same")
    refused = await client.response("same")
    assert refused["error"]["code"] == -32600
    assert refused["error"]["data"]["reason"] == "duplicate_id"
    client.cancel(session)
    assert (await client.response("same"))["result"] == {"stopReason": "cancelled"}
    assert (await client.request_raw("_echo", {"again": 1}, id="same"))["result"] == {"again": 1}


@pytest.mark.rule("G-036")
async def test_the_default_agent_serves_a_session_that_names_none(
    dragoman: Start, workspace: Path, tmp_path: Path
) -> None:
    journals = {name: AgentLog(tmp_path / name) for name in ("one", "two")}
    agents = {name: agent(*journal.flags) for name, journal in journals.items()}
    gateway = await dragoman("acp", agents=agents, default_agent="two")
    await gateway.initialize()
    await gateway.new_session(workspace)
    assert journals["two"].params("session/new")
    assert not journals["one"].params("session/new")


@pytest.mark.rule("G-036")
async def test_a_workspace_rule_goes_before_the_default_agent(
    dragoman: Start, workspace: Path, tmp_path: Path
) -> None:
    journals = {name: AgentLog(tmp_path / name) for name in ("one", "two")}
    agents = {name: agent(*journal.flags) for name, journal in journals.items()}
    rules = [{"path": str(workspace), "agent": "two"}]
    gateway = await dragoman("acp", agents=agents, workspaces=rules)
    await gateway.initialize()
    await gateway.new_session(workspace)
    await gateway.new_session(tmp_path)
    assert [params["cwd"] for params in journals["two"].params("session/new")] == [str(workspace)]
    assert [params["cwd"] for params in journals["one"].params("session/new")] == [str(tmp_path)]


@pytest.mark.rule("G-036")
async def test_a_workspace_rule_holds_for_a_link_to_its_folder_too(
    dragoman: Start, workspace: Path, tmp_path: Path
) -> None:
    journals = {name: AgentLog(tmp_path / name) for name in ("one", "two")}
    agents = {name: agent(*journal.flags) for name, journal in journals.items()}
    link = tmp_path / "link"
    link.symlink_to(workspace)
    gateway = await dragoman("acp", agents=agents, workspaces=[{"path": str(workspace), "agent": "two"}])
    await gateway.initialize()
    await gateway.new_session(link)
    assert journals["two"].params("session/new") and not journals["one"].params("session/new")


@pytest.mark.rule("G-036", "G-043")
async def test_a_session_picks_its_agent_by_meta(dragoman: Start, workspace: Path, tmp_path: Path) -> None:
    journals = {name: AgentLog(tmp_path / name) for name in ("one", "two")}
    agents = {name: agent(*journal.flags) for name, journal in journals.items()}
    gateway = await dragoman("acp", agents=agents)
    await gateway.initialize()
    session = await gateway.new_session(workspace, _meta={"dragoman": {"agent": "two"}})
    assert (await gateway.prompt(session, "say two")).texts == ["two"]
    assert journals["two"].params("session/prompt")[0]["sessionId"] == "s1"
    assert not journals["one"].params("session/new")


@pytest.mark.rule("G-019")
async def test_an_unknown_method_of_an_unbound_connection_has_nowhere_to_go(dragoman: Start) -> None:
    gateway = await dragoman("acp", agents={"one": agent(), "two": agent()})
    await gateway.initialize()
    response = await gateway.request_raw("_echo", {"x": 1})
    assert response["error"]["code"] == -32601


@pytest.mark.rule("G-019", "G-043", "G-068")
async def test_an_unknown_method_goes_to_the_agent_of_its_session(dragoman: Start, workspace: Path) -> None:
    gateway = await dragoman("acp", agents={"one": agent(), "two": agent()})
    await gateway.initialize()
    session = await gateway.new_session(workspace, _meta={"dragoman": {"agent": "two"}})
    answer = await gateway.request("_echo", {"sessionId": session, "x": 1})
    assert answer == {"sessionId": session, "x": 1}


@pytest.mark.rule("G-015", "G-019")
async def test_an_unknown_notification_is_passed_on_and_never_answered(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    gateway = await dragoman(agents={"scripted": agent(*heard.flags)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    known = len(gateway.received)
    gateway.notify("_note", {"sessionId": session, "x": [None]})
    gateway.notify("future/thing", {"sessionId": session})
    gateway.notify("session/no_such", {"sessionId": "dgm_nobody"})
    await gateway.prompt(session, "say done")
    assert heard.params("_note") == [{"sessionId": "s1", "x": [None]}]
    assert heard.params("future/thing") == [{"sessionId": "s1"}]
    assert len(gateway.received) == known + 2


@pytest.mark.rule("G-015", "G-090")
async def test_a_request_sent_as_a_notification_starts_nothing(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    gateway = await dragoman(agents={"scripted": agent(*heard.flags)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    known = len(gateway.received)
    prompt = [{"type": "text", "text": "say unasked"}]
    gateway.notify("session/prompt", {"sessionId": session, "prompt": prompt})
    gateway.notify("session/new", {"cwd": str(workspace), "mcpServers": []})
    assert (await gateway.prompt(session, "say asked")).texts == ["asked"]
    assert len(gateway.received) == known + 2
    assert heard.methods.count("session/prompt") == 1


@pytest.mark.rule("G-045")
@pytest.mark.parametrize(
    "method", ["session/prompt", "session/set_mode", "session/set_config_option", "_echo"]
)
async def test_a_request_for_an_unknown_session_is_not_found(client: GatewayProcess, method: str) -> None:
    params = {"sessionId": "dgm_nobody", "prompt": [{"type": "text", "text": "x"}], "modeId": "m"}
    response = await client.request_raw(method, {**params, "configId": "c", "value": "v"})
    assert response["error"]["code"] == -32002
    assert response["error"]["data"] == {"sessionId": "dgm_nobody"}


@pytest.mark.rule("G-045")
async def test_an_agents_own_session_id_is_unknown_to_the_client(
    client: GatewayProcess, workspace: Path
) -> None:
    await client.new_session(workspace)
    turn = await client.prompt("s1", "say x")
    assert turn.error and turn.error.code == -32002


@pytest.mark.rule("G-044", "G-045")
async def test_updates_for_sessions_that_do_not_exist_are_dropped(
    client: GatewayProcess, workspace: Path
) -> None:
    session = await client.new_session(workspace)
    known = len(client.received)
    stray = (
        '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"zzz",'
        '"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}}}'
    )
    await client.prompt(session, f"raw {stray}\nsay done")
    assert len(client.received) == known + 2


@pytest.mark.rule("G-043", "G-020")
async def test_an_error_of_the_agent_names_the_clients_session(
    client: GatewayProcess, workspace: Path
) -> None:
    session = await client.new_session(workspace)
    turn = await client.prompt(session, "error 1234 out of luck")
    assert turn.response["error"] == {
        "code": 1234,
        "message": "out of luck",
        "data": {"from": "script", "sessionId": session, "big": 2**60},
    }


@pytest.mark.rule("G-020")
async def test_method_not_found_from_the_agent_passes_unchanged(client: GatewayProcess) -> None:
    response = await client.request_raw("_no_such", {"a": 1})
    error = {"code": -32601, "message": "Method not found", "data": {"method": "_no_such"}}
    assert response["error"] == error


@pytest.mark.rule("G-043", "G-068")
async def test_a_forked_session_gets_an_id_of_its_own(client: GatewayProcess, workspace: Path) -> None:
    session = await client.new_session(workspace)
    fork = await client.request("session/fork", {"sessionId": session, "cwd": str(workspace)})
    assert fork["sessionId"].startswith("dgm_")
    assert fork["sessionId"] != session
    assert (await client.prompt(fork["sessionId"], "say fork")).texts == ["fork"]
    assert (await client.prompt(session, "say trunk")).texts == ["trunk"]


@pytest.mark.rule("G-019")
async def test_an_agents_unknown_request_reaches_the_client_and_its_answer_the_agent(
    client: GatewayProcess, workspace: Path
) -> None:
    client.on("_ask/anything", lambda params: {"heard": params, "n": 2**60})
    session = await client.new_session(workspace)
    turn = await client.prompt(session, 'request _ask/anything {"sessionId":"{sid}","x":null}')
    asked = await client.next_message(is_request("_ask/anything"))
    assert asked["params"] == {"sessionId": session, "x": None}
    answer = turn.report("request")["result"]
    assert answer["n"] == 2**60
    assert answer["heard"]["x"] is None


@pytest.mark.rule("G-019")
async def test_an_agents_unknown_notification_reaches_the_client(
    client: GatewayProcess, workspace: Path
) -> None:
    session = await client.new_session(workspace)
    await client.prompt(
        session, 'notify _news {"sessionId":"{sid}","x":[1,null]}\nnotify future/news {"y":1}'
    )
    assert (await client.next_message("_news"))["params"] == {"sessionId": session, "x": [1, None]}
    assert (await client.next_message("future/news"))["params"] == {"y": 1}


async def test_two_sessions_share_a_process_when_the_agent_holds_several(
    dragoman: Start, workspace: Path
) -> None:
    gateway = await dragoman(agents={"scripted": agent(share="all")})
    await gateway.initialize()
    sessions = [await gateway.new_session(workspace) for _ in range(3)]
    pids = {(await gateway.prompt(session, "pid")).report("pid") for session in sessions}
    assert len(pids) == 1


async def test_each_session_has_its_own_process_by_default(client: GatewayProcess, workspace: Path) -> None:
    sessions = [await client.new_session(workspace) for _ in range(3)]
    pids = {(await client.prompt(session, "pid")).report("pid") for session in sessions}
    assert len(pids) == 3
