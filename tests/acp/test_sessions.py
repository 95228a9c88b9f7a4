"""Making, listing, loading, closing and configuring sessions."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from support.agents.agent_log import AgentLog
from support.gateway_process import GatewayProcess, Start, agent, gone, is_alive
from support.rpc_peer import RpcFailure, text_of

OLD = [
    {"sessionId": "old1", "cwd": "/tmp", "title": "First", "updatedAt": "2026-01-01T00:00:00Z", "x": None},
    {"sessionId": "old2", "cwd": "/tmp", "title": "Second", "updatedAt": "2026-01-02T00:00:00Z"},
]


def listing(*more: str) -> dict[str, Any]:
    return agent("--list", json.dumps(OLD), *more)


async def failure_of(gateway: GatewayProcess, method: str, params: Any) -> RpcFailure:
    with pytest.raises(RpcFailure) as failure:
        await gateway.request(method, params)
    return failure.value


@pytest.mark.rule("G-040")
async def test_two_agents_with_the_same_ids_give_two_sessions(dragoman: Start, workspace: Path) -> None:
    gateway = await dragoman("acp", agents={"one": agent(), "two": agent()})
    await gateway.initialize()
    ids = [
        await gateway.new_session(workspace, _meta={"dragoman": {"agent": name}})
        for name in ("one", "two", "one", "two")
    ]
    assert len(set(ids)) == 4


@pytest.mark.rule("G-040")
async def test_ids_are_not_repeated_after_a_restart(dragoman: Start, workspace: Path) -> None:
    ids = set()
    for _ in range(2):
        gateway = await dragoman()
        await gateway.initialize()
        ids.add(await gateway.new_session(workspace))
        gateway.eof()
        await gateway.wait_exit()
    assert len(ids) == 2


@pytest.mark.rule("G-041")
async def test_session_ids_are_safe_in_a_header(dragoman: Start, workspace: Path) -> None:
    gateway = await dragoman(agents={"scripted": agent("--session-ids", "Sitzung ü\n")})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    assert re.fullmatch(r"dgm_[!-~]{1,1020}", session)
    assert (await gateway.prompt(session, "say works")).texts == ["works"]


@pytest.mark.rule("G-052")
@pytest.mark.parametrize("cwd", ["relative/path", "", None, 7, "./here"])
async def test_a_cwd_that_is_not_absolute_is_refused(client: GatewayProcess, cwd: Any) -> None:
    failure = await failure_of(client, "session/new", {"cwd": cwd, "mcpServers": []})
    assert failure.code == -32602
    assert failure.data["reason"] == "cwd"
    assert "cwd" in failure.message


@pytest.mark.rule("G-052")
async def test_a_missing_cwd_is_refused(client: GatewayProcess) -> None:
    failure = await failure_of(client, "session/new", {"mcpServers": []})
    assert (failure.code, failure.data["reason"]) == (-32602, "cwd")


@pytest.mark.rule("G-052")
@pytest.mark.parametrize("params", [{}, {"mcpServers": None}], ids=["missing", "null"])
async def test_absent_mcp_servers_become_an_empty_list(
    dragoman: Start, workspace: Path, heard: AgentLog, params: dict[str, Any]
) -> None:
    gateway = await dragoman(agents={"scripted": agent(*heard.flags)})
    await gateway.initialize()
    await gateway.request("session/new", {"cwd": str(workspace), **params})
    assert heard.params("session/new")[-1]["mcpServers"] == []


@pytest.mark.rule("G-052")
async def test_the_agent_gets_the_cwd_as_given(dragoman: Start, workspace: Path, heard: AgentLog) -> None:
    (workspace / ".git").mkdir()
    below = workspace / "a" / "b"
    below.mkdir(parents=True)
    gateway = await dragoman(agents={"scripted": agent(*heard.flags)})
    await gateway.initialize()
    await gateway.new_session(below)
    assert heard.params("session/new")[-1]["cwd"] == str(below)


@pytest.mark.rule("G-052")
async def test_the_session_limit_is_an_error_with_a_reason(dragoman: Start, workspace: Path) -> None:
    gateway = await dragoman(limits={"max_sessions": 2})
    await gateway.initialize()
    first = await gateway.new_session(workspace)
    await gateway.new_session(workspace)
    params = {"cwd": str(workspace), "mcpServers": []}
    failure = await failure_of(gateway, "session/new", params)
    assert (failure.code, failure.data["reason"]) == (-32603, "session_limit")
    await gateway.request("session/close", {"sessionId": first})
    assert await gateway.new_session(workspace)


@pytest.mark.rule("G-020", "G-052")
async def test_an_agents_refusal_of_a_session_passes_unchanged(dragoman: Start, workspace: Path) -> None:
    gateway = await dragoman(agents={"scripted": agent("--new-error")})
    await gateway.initialize()
    response = await gateway.request_raw("session/new", {"cwd": str(workspace), "mcpServers": []})
    assert response["error"] == {
        "code": 4242,
        "message": "session/new refused by the script",
        "data": {"why": "new-error", "big": 2**60},
    }


@pytest.mark.rule("G-042", "G-055")
async def test_sessions_that_only_the_agent_knows_are_listed_with_ids_that_stay(dragoman: Start) -> None:
    gateway = await dragoman(agents={"scripted": listing()})
    await gateway.initialize()
    first = (await gateway.request("session/list", {}))["sessions"]
    second = (await gateway.request("session/list", {}))["sessions"]
    assert {entry["title"] for entry in first} == {"First", "Second"}
    assert all(entry["sessionId"].startswith("dgm_") for entry in first)
    assert first == second


@pytest.mark.rule("G-055")
async def test_a_list_of_several_agents_has_the_newest_first(dragoman: Start, workspace: Path) -> None:
    other = [{"sessionId": "old1", "cwd": "/tmp", "title": "Third", "updatedAt": "2026-01-03T00:00:00Z"}]
    agents = {"one": listing(), "two": agent("--list", json.dumps(other))}
    gateway = await dragoman("acp", agents=agents)
    await gateway.initialize()
    for name in agents:
        await gateway.new_session(workspace, _meta={"dragoman": {"agent": name}})
    listed = (await gateway.request("session/list", {"cwd": "/tmp"}))["sessions"]
    assert [entry.get("title") for entry in listed] == ["Third", "Second", "First"]
    assert len({entry["sessionId"] for entry in listed}) == 3


@pytest.mark.rule("G-055")
async def test_an_agent_without_a_list_does_not_spoil_it(dragoman: Start, workspace: Path) -> None:
    agents = {"one": listing(), "two": agent("--caps", "{}")}
    gateway = await dragoman("acp", agents=agents)
    await gateway.initialize()
    for name in agents:
        await gateway.new_session(workspace, _meta={"dragoman": {"agent": name}})
    titles = {entry.get("title") for entry in (await gateway.request("session/list", {}))["sessions"]}
    assert {"First", "Second"} <= titles


@pytest.mark.rule("G-055")
async def test_a_relative_cwd_in_a_list_is_refused(client: GatewayProcess) -> None:
    failure = await failure_of(client, "session/list", {"cwd": "here"})
    assert (failure.code, failure.data["reason"]) == (-32602, "cwd")


async def old_session(gateway: GatewayProcess, title: str = "First") -> str:
    listed = (await gateway.request("session/list", {}))["sessions"]
    return next(str(entry["sessionId"]) for entry in listed if entry["title"] == title)


def where(session: str) -> dict[str, Any]:
    return {"sessionId": session, "cwd": "/tmp", "mcpServers": []}


@pytest.mark.rule("G-053", "G-081", "G-044")
async def test_a_loaded_session_is_replayed_before_the_response(dragoman: Start) -> None:
    gateway = await dragoman(agents={"scripted": listing("--load-replay", "20")})
    await gateway.initialize()
    session = await old_session(gateway)
    answer = await gateway.request_raw("session/load", where(session))
    before = gateway.received[: gateway.received.index(answer)]
    replay = [text_of(m["params"]["update"]) for m in before if m.get("method") == "session/update"]
    assert replay == [f"replay {number}" for number in range(20)]
    assert {m["params"]["sessionId"] for m in before if m.get("method") == "session/update"} == {session}


@pytest.mark.rule("G-053")
async def test_a_loaded_session_can_be_prompted(dragoman: Start, heard: AgentLog) -> None:
    gateway = await dragoman(agents={"scripted": listing("--load-replay", "1", *heard.flags)})
    await gateway.initialize()
    session = await old_session(gateway)
    await gateway.request("session/load", where(session))
    assert (await gateway.prompt(session, "say again")).texts == ["again"]
    assert heard.params("session/load")[-1]["sessionId"] == "old1"
    assert heard.params("session/prompt")[-1]["sessionId"] == "old1"


@pytest.mark.rule("G-044")
async def test_updates_right_after_a_load_follow_its_response(dragoman: Start) -> None:
    gateway = await dragoman(agents={"scripted": listing("--load-replay", "2", "--load-late", "1")})
    await gateway.initialize()
    session = await old_session(gateway)
    answer = await gateway.request_raw("session/load", where(session))
    late = await gateway.text(session, "late 0")
    assert gateway.received.index(late) > gateway.received.index(answer)


@pytest.mark.rule("G-054", "G-081")
async def test_a_resumed_session_has_no_history_and_goes_on(dragoman: Start) -> None:
    gateway = await dragoman(agents={"scripted": listing("--load-replay", "5")})
    await gateway.initialize()
    session = await old_session(gateway, "Second")
    await gateway.request("session/resume", where(session))
    assert gateway.of(session) == []
    assert (await gateway.prompt(session, "say on")).texts == ["on"]


@pytest.mark.rule("G-054")
@pytest.mark.parametrize("flags", [(), ("--no-resume-method",)], ids=["not advertised", "advertised in vain"])
async def test_resume_is_made_of_load_when_the_agent_has_no_resume(
    dragoman: Start, flags: tuple[str, ...], heard: AgentLog
) -> None:
    capabilities: dict[str, Any] = {"loadSession": True, "sessionCapabilities": {"list": {}}}
    if flags:
        capabilities["sessionCapabilities"]["resume"] = {}
    caps = ("--caps", json.dumps(capabilities), "--load-replay", "5", *heard.flags)
    gateway = await dragoman(agents={"scripted": listing(*caps, *flags)})
    await gateway.initialize()
    session = await old_session(gateway)
    await gateway.request("session/resume", where(session))
    assert heard.params("session/load")
    assert gateway.of(session) == []
    assert (await gateway.prompt(session, "say on")).texts == ["on"]


@pytest.mark.rule("G-045", "G-053")
@pytest.mark.parametrize("method", ["session/load", "session/resume"])
async def test_loading_a_session_that_nobody_knows_is_not_found(client: GatewayProcess, method: str) -> None:
    failure = await failure_of(client, method, where("dgm_nobody"))
    assert (failure.code, failure.data["sessionId"]) == (-32002, "dgm_nobody")


@pytest.mark.rule("G-056")
async def test_deleting_an_unknown_session_succeeds(client: GatewayProcess) -> None:
    assert await client.request("session/delete", {"sessionId": "dgm_nobody"}) == {}


@pytest.mark.rule("G-056")
async def test_a_deleted_session_is_gone_for_the_agent_too(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    gateway = await dragoman(agents={"scripted": agent(*heard.flags)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    assert await gateway.request("session/delete", {"sessionId": session}) == {}
    assert heard.params("session/delete") == [{"sessionId": "s1"}]
    prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "say x"}]}
    assert (await failure_of(gateway, "session/prompt", prompt)).code == -32002


@pytest.mark.rule("G-057", "G-045")
async def test_a_closed_session_is_gone(client: GatewayProcess, workspace: Path) -> None:
    session = await client.new_session(workspace)
    assert await client.request("session/close", {"sessionId": session}) == {}
    turn = await client.prompt(session, "say x")
    assert turn.error and turn.error.code == -32002
    assert turn.error.data["sessionId"] == session


@pytest.mark.rule("G-057")
async def test_closing_ends_the_turn_first(client: GatewayProcess, workspace: Path) -> None:
    session = await client.new_session(workspace)
    turn = client.start_prompt(session, "sleep-until-cancel")
    await client.text(session, "sleeping")
    closed = await client.request_raw("session/close", {"sessionId": session})
    ended = await turn
    assert ended.stop_reason == "cancelled"
    assert client.received.index(ended.response) < client.received.index(closed)


@pytest.mark.rule("G-057", "G-091")
async def test_closing_answers_what_the_agent_still_asks(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    gateway = await dragoman(agents={"scripted": agent(*heard.flags)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    turn = gateway.start_prompt(session, "permission")
    await gateway.next_message("session/request_permission")
    await gateway.request("session/close", {"sessionId": session})
    assert (await turn).stop_reason == "cancelled"
    answers = [m["result"] for m in heard.messages if "result" in m]
    assert {"outcome": {"outcome": "cancelled"}} in answers


@pytest.mark.rule("G-057")
async def test_closing_works_for_an_agent_that_cannot_close(dragoman: Start, workspace: Path) -> None:
    gateway = await dragoman(agents={"scripted": agent("--caps", "{}")})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    turn = gateway.start_prompt(session, "sleep-until-cancel")
    await gateway.text(session, "sleeping")
    assert await gateway.request("session/close", {"sessionId": session}) == {}
    assert (await turn).stop_reason == "cancelled"


@pytest.mark.rule("G-057")
async def test_the_process_of_a_closed_session_ends(client: GatewayProcess, workspace: Path) -> None:
    keep, session = await client.new_session(workspace), await client.new_session(workspace)
    pid = (await client.prompt(session, "pid")).report("pid")
    await client.request("session/close", {"sessionId": session})
    await gone(lambda: is_alive(pid))
    assert (await client.prompt(keep, "say alive")).texts == ["alive"]
