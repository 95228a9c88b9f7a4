"""What comes before what, and that waiting for one never holds another up."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from support.agents.agent_log import AgentLog
from support.clients.sample_answers import ALLOW
from support.gateway_process import GatewayProcess, Start, agent
from support.rpc_peer import PATIENCE, is_update, text_of
from support.waiting import StoppedWriting, until


@pytest.mark.rule("G-080", "G-004", "G-061")
async def test_every_update_comes_before_the_response_of_its_prompt(
    client: GatewayProcess, workspace: Path
) -> None:
    session = await client.new_session(workspace)
    turn = await client.prompt(session, "flood 5000 120")
    assert [int(text.split()[0]) for text in turn.texts] == list(range(5000))


@pytest.mark.rule("G-080", "G-084")
async def test_sessions_that_flood_at_once_each_stay_in_order(
    client: GatewayProcess, workspace: Path
) -> None:
    sessions = [await client.new_session(workspace) for _ in range(4)]
    turns = [client.start_prompt(session, "flood 1000 200") for session in sessions]
    for turn in await asyncio.gather(*turns):
        assert [int(text.split()[0]) for text in turn.texts] == list(range(1000))


@pytest.mark.rule("G-080", "G-061")
async def test_updates_after_the_response_still_arrive(client: GatewayProcess, workspace: Path) -> None:
    session = await client.new_session(workspace)
    turn = await client.prompt(session, "late-update afterthought")
    assert turn.texts == []
    await client.text(session, "afterthought")


@pytest.mark.rule("G-044", "G-082")
async def test_updates_that_run_ahead_of_their_session_wait_for_its_response(
    dragoman: Start, workspace: Path
) -> None:
    gateway = await dragoman(agents={"scripted": agent("--early-updates", "3", "--late-commands")})
    await gateway.initialize()
    id = gateway.start_request("session/new", {"cwd": str(workspace), "mcpServers": []})
    answer = await gateway.response(id)
    session = answer["result"]["sessionId"]
    await gateway.next_message(is_update(session, "available_commands_update"))
    told = [index for index, m in enumerate(gateway.received) if m.get("method") == "session/update"]
    assert min(told) > gateway.received.index(answer)
    texts = [text_of(update) for update in gateway.of(session)]
    assert texts == ["early 0", "early 1", "early 2", ""]


@pytest.mark.rule("G-082", "G-040")
async def test_early_updates_of_sessions_made_at_once_find_their_own(
    dragoman: Start, workspace: Path
) -> None:
    gateway = await dragoman(agents={"scripted": agent("--early-updates", "2", share="all")})
    await gateway.initialize()
    params = {"cwd": str(workspace), "mcpServers": []}
    ids = [gateway.start_request("session/new", params) for _ in range(5)]
    sessions = [(await gateway.response(id))["result"]["sessionId"] for id in ids]
    for session in sessions:
        await gateway.text(session, "early 1")
        assert [text_of(update) for update in gateway.of(session)] == ["early 0", "early 1"]


@pytest.mark.rule("G-083")
async def test_a_permission_request_keeps_its_place_among_the_updates(
    client: GatewayProcess, workspace: Path
) -> None:
    client.on("session/request_permission", ALLOW)
    session = await client.new_session(workspace)
    await client.prompt(session, "say before\ntoolopen call-1\npermission\nsay after")
    told = [
        m["params"].get("update", {}).get("sessionUpdate", m["method"])
        for m in client.received
        if "method" in m
    ]
    chunk = "agent_message_chunk"
    closing = "tool_call_update"  # the agent never ended the call
    assert told == [chunk, "tool_call", "session/request_permission", chunk, chunk, closing]


@pytest.mark.rule("G-083")
async def test_an_answer_reaches_the_agent_before_later_messages_of_its_session(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    gateway = await dragoman(agents={"scripted": agent("--modes", *heard.flags)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    turn = gateway.start_prompt(session, "permission\nsleep-until-cancel")
    asked = await gateway.next_message("session/request_permission")
    gateway.reply(asked, ALLOW)
    await gateway.request("session/set_mode", {"sessionId": session, "modeId": "code"})
    gateway.cancel(session)
    await turn
    assert heard.methods[-3:] == ["response", "session/set_mode", "session/cancel"]
    assert next(m for m in heard.messages if "result" in m)["result"] == ALLOW


@pytest.mark.rule("G-084")
async def test_a_session_that_waits_does_not_hold_another_up(client: GatewayProcess, workspace: Path) -> None:
    slow, quick = await client.new_session(workspace), await client.new_session(workspace)
    waiting = client.start_prompt(slow, "permission")
    asked = await client.next_message("session/request_permission")
    assert (await client.prompt(quick, "say quick")).texts == ["quick"]
    client.reply(asked, ALLOW)
    await waiting


@pytest.mark.rule("G-084")
async def test_an_agent_that_reads_nothing_does_not_hold_another_up(dragoman: Start, workspace: Path) -> None:
    gateway = await dragoman()
    await gateway.initialize()
    stuck, quick = await gateway.new_session(workspace), await gateway.new_session(workspace)
    gateway.start_prompt(stuck, "hang")
    await gateway.text(stuck, "hanging")
    for _ in range(40):
        gateway.notify("_note", {"sessionId": stuck, "filler": "x" * 100_000})
    assert (await gateway.prompt(quick, "say quick")).texts == ["quick"]
    gateway.end_agents()


@pytest.mark.rule("G-084", "G-052")
async def test_a_session_that_is_never_made_does_not_hold_another_up(
    dragoman: Start, workspace: Path
) -> None:
    gateway = await dragoman("acp", agents={"good": agent(), "bad": agent("--new-hang")})
    await gateway.initialize()
    params = {"cwd": str(workspace), "mcpServers": [], "_meta": {"dragoman": {"agent": "bad"}}}
    gateway.start_request("session/new", params)
    session = await gateway.new_session(workspace)
    assert (await gateway.prompt(session, "say hi")).texts == ["hi"]
    gateway.end_agents()


@pytest.mark.rule("G-086")
async def test_a_client_that_pauses_loses_nothing(
    client: GatewayProcess, workspace: Path, tmp_path: Path
) -> None:
    session = await client.new_session(workspace)
    client.pause()
    done = tmp_path / "done"
    turn = client.start_prompt(session, f"flood 20000 500\ntouch {done}")
    await until(done.exists, PATIENCE)  # all of it waits in the journal
    client.resume()
    numbers = [int(text.split()[0]) for text in (await turn).texts]
    assert numbers == list(range(20000))


@pytest.mark.rule("G-086")
async def test_a_client_that_reads_nothing_slows_the_agent_down(
    dragoman: Start, workspace: Path, tmp_path: Path
) -> None:
    """100 MB do not fit into any buffer: the agent must come to a halt in the middle of them."""
    gateway = await dragoman(sessions={"journal": False})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    halted = StoppedWriting((await gateway.prompt(session, "pid")).report("pid"))
    done = tmp_path / "done"
    gateway.pause()
    turn = gateway.start_prompt(session, f"flood 2000 50000\ntouch {done}")
    await until(halted, PATIENCE)
    assert not done.exists()
    gateway.resume()
    assert len((await turn).texts) == 2000
    assert done.exists()


@pytest.mark.rule("G-059", "G-084")
async def test_a_cancel_is_not_held_up_by_another_sessions_backlog(dragoman: Start, workspace: Path) -> None:
    gateway = await dragoman()
    await gateway.initialize()
    stuck, other = await gateway.new_session(workspace), await gateway.new_session(workspace)
    gateway.start_prompt(stuck, "hang")
    await gateway.text(stuck, "hanging")
    turn = gateway.start_prompt(other, "sleep-until-cancel")
    await gateway.text(other, "sleeping")
    for _ in range(20):
        gateway.notify("_note", {"sessionId": stuck, "filler": "x" * 100_000})
    gateway.cancel(other)
    assert (await turn).stop_reason == "cancelled"
    gateway.end_agents()
