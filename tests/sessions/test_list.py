"""`session/list`: filters, order, pages, titles, states, and what only agents know."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from support.gateway_process import GatewayProcess, Start, agent
from support.rpc_peer import RpcFailure, is_request
from support.session_client import Watch, entry, listed, load, prompts, resumable_agent

PAGE = 50
OLD = [
    {"sessionId": "old1", "cwd": "/tmp", "title": "First", "updatedAt": "2026-01-01T00:00:00Z"},
    {"sessionId": "old2", "cwd": "/tmp", "title": "Second", "updatedAt": "2026-01-02T00:00:00Z"},
]
LISTS = '{"loadSession": true, "sessionCapabilities": {"list": {}}}'


def ids(sessions: list[dict[str, Any]]) -> list[str]:
    return [each["sessionId"] for each in sessions]


def folder(workspace: Path, name: str) -> Path:
    path = workspace / name
    path.mkdir()
    return path


async def test_the_newest_session_comes_first(gateway: GatewayProcess, workspace: Path) -> None:
    sessions = [await gateway.new_session(workspace) for _ in range(3)]
    for session in (sessions[1], sessions[0], sessions[2]):
        await gateway.prompt(session, "say touched")
        await asyncio.sleep(0.002)  # times are stored in milliseconds: within one there is no order
    assert ids(await listed(gateway)) == [sessions[2], sessions[0], sessions[1]]


async def test_the_list_is_filtered_by_cwd(gateway: GatewayProcess, workspace: Path) -> None:
    one, two = folder(workspace, "one"), folder(workspace, "two")
    first, second = await gateway.new_session(one), await gateway.new_session(two)
    assert ids(await listed(gateway, cwd=str(one))) == [first]
    assert ids(await listed(gateway, cwd=str(two))) == [second]
    assert await listed(gateway, cwd=str(workspace)) == []


async def test_the_first_prompt_is_the_title(gateway: GatewayProcess, workspace: Path) -> None:
    session = await gateway.new_session(workspace)
    assert "title" not in await entry(gateway, session)
    await gateway.prompt(session, "Mend the roof\nand the door")
    await gateway.prompt(session, "Something else")
    assert (await entry(gateway, session))["title"] == "Mend the roof"


async def test_a_long_first_prompt_is_cut(gateway: GatewayProcess, workspace: Path) -> None:
    session = await gateway.new_session(workspace)
    await gateway.prompt(session, "word " * 100)
    title = (await entry(gateway, session))["title"]
    assert len(title) <= 80
    assert title.endswith("…")


async def test_the_agents_title_is_better(gateway: GatewayProcess, workspace: Path) -> None:
    session = await gateway.new_session(workspace)
    update = json.dumps({"sessionUpdate": "session_info_update", "title": "Roof repair"})
    await gateway.prompt(session, f"update {update}")
    assert (await entry(gateway, session))["title"] == "Roof repair"


async def test_titles_survive_a_restart(dragoman: Start, workspace: Path) -> None:
    agents = {"scripted": resumable_agent()}
    for round in range(2):
        gateway = await dragoman(agents=agents)
        await gateway.initialize()
        if not round:
            await gateway.prompt(await gateway.new_session(workspace), "Mend the roof")
            gateway.leave()
            await gateway.wait_exit()
    assert [each["title"] for each in await listed(gateway)] == ["Mend the roof"]


async def test_updated_at_moves_with_each_turn(gateway: GatewayProcess, workspace: Path) -> None:
    session = await gateway.new_session(workspace)
    times = [(await entry(gateway, session))["updatedAt"]]
    for _ in range(2):
        await gateway.prompt(session, "say more")
        times.append((await entry(gateway, session))["updatedAt"])
    assert times == sorted(set(times))
    assert all(time.endswith("Z") for time in times)


async def test_the_state_of_a_session_is_told(
    gateway: GatewayProcess, workspace: Path, signal_file: Path
) -> None:
    session = await gateway.new_session(workspace)

    async def facts() -> tuple[str, bool, bool]:
        told = (await entry(gateway, session))["_meta"]["dragoman"]
        return told["state"], told["pending"], told["live"]

    assert await facts() == ("idle", False, True)
    turn = gateway.start_prompt(session, f"say working\nwait-file {signal_file}\npermission")
    await gateway.text(session, "working")
    assert await facts() == ("working", True, True)
    signal_file.touch()
    question = await gateway.next_message(is_request("session/request_permission"))
    assert await facts() == ("waiting_for_permission", True, True)
    gateway.reply(question, {"outcome": {"outcome": "cancelled"}})
    await turn
    assert await facts() == ("idle", False, True)
    await gateway.prompt(session, "crash")
    assert await facts() == ("agent_dead", False, True)
    await gateway.request("session/close", {"sessionId": session})
    assert await facts() == ("closed", False, False)


async def test_a_session_whose_process_was_killed_is_not_called_live(
    dragoman: Start, workspace: Path
) -> None:
    agents = {"scripted": resumable_agent()}
    first = await dragoman(agents=agents)
    await first.initialize()
    session = await first.new_session(workspace)
    first.start_request("session/prompt", {"sessionId": session, "prompt": [
        {"type": "text", "text": "sleep-until-cancel"}]})  # fmt: skip
    await first.text(session, "sleeping")
    await first.kill()
    second = await dragoman(agents=agents)
    await second.initialize()
    facts = (await entry(second, session))["_meta"]["dragoman"]
    assert (facts["state"], facts["pending"], facts["live"]) == ("interrupted", False, False)


# Pages


@pytest.fixture
async def long_list(dragoman: Start, workspace: Path) -> GatewayProcess:
    """A gateway that knows more sessions than fit on a page, all in one agent process."""
    gateway = await dragoman(agents={"scripted": agent("--caps", "{}", share="all")})
    await gateway.initialize()
    for _ in range(PAGE + 10):
        await gateway.new_session(workspace)
    return gateway


async def test_pages_give_every_session_once(long_list: GatewayProcess) -> None:
    first = await long_list.request("session/list", {})
    second = await long_list.request("session/list", {"cursor": first["nextCursor"]})
    assert "nextCursor" not in second
    pages = ids(first["sessions"]) + ids(second["sessions"])
    assert len(pages) == len(set(pages)) == PAGE + 10


async def test_sessions_made_between_pages_do_not_shift_them(
    long_list: GatewayProcess, workspace: Path
) -> None:
    whole = await long_list.request("session/list", {})
    rest = await long_list.request("session/list", {"cursor": whole["nextCursor"]})
    first = await long_list.request("session/list", {})
    for _ in range(5):
        await long_list.new_session(workspace)
    second = await long_list.request("session/list", {"cursor": first["nextCursor"]})
    assert ids(second["sessions"]) == ids(rest["sessions"])


async def test_a_session_used_between_pages_is_not_lost(long_list: GatewayProcess) -> None:
    """It moves to the front, so it may be missing on the second page, but then a new list has it first."""
    first = await long_list.request("session/list", {})
    rest = await long_list.request("session/list", {"cursor": first["nextCursor"]})
    moved = ids(rest["sessions"])[-1]
    await long_list.prompt(moved, "say used")
    second = await long_list.request("session/list", {"cursor": first["nextCursor"]})
    assert ids(second["sessions"]) == ids(rest["sessions"])[:-1]
    assert ids(await listed(long_list))[0] == moved


@pytest.mark.parametrize("cursor", ["nonsense", "", "AAAA", "é"])
async def test_a_cursor_that_was_never_given_out_is_refused(gateway: GatewayProcess, cursor: str) -> None:
    with pytest.raises(RpcFailure) as failure:
        await gateway.request("session/list", {"cursor": cursor})
    assert (failure.value.code, failure.value.data["reason"]) == (-32602, "cursor")


async def test_a_cursor_of_another_list_is_refused(long_list: GatewayProcess, workspace: Path) -> None:
    cursor = (await long_list.request("session/list", {}))["nextCursor"]
    with pytest.raises(RpcFailure) as failure:
        await long_list.request("session/list", {"cursor": cursor, "cwd": str(workspace)})
    assert failure.value.code == -32602
    assert "not from this list" in failure.value.message
    assert await listed(long_list, cwd=str(workspace))


# What only the agent knows


async def test_a_session_that_only_the_agent_knows_can_be_loaded_and_is_then_kept(
    dragoman: Start, watch: Watch
) -> None:
    knowing = agent("--caps", LISTS, "--list", json.dumps(OLD), "--load-replay", "3")
    gateway = await dragoman(agents={"scripted": knowing})
    await gateway.initialize()
    session = next(each["sessionId"] for each in await listed(gateway) if each["title"] == "First")
    loaded = await load(gateway, session, Path("/tmp"))
    assert loaded.texts == ["replay 0", "replay 1", "replay 2"]
    assert (await gateway.prompt(session, "say mine")).texts == ["mine"]
    other = await watch(gateway)
    again = await load(other, session, Path("/tmp"))
    assert again.texts == ["replay 0", "replay 1", "replay 2", "mine"]
    assert prompts(again.replay) == ["say mine"]


async def test_a_session_of_the_agents_is_read_from_the_journal_the_next_time(dragoman: Start) -> None:
    knowing = agent("--caps", LISTS, "--list", json.dumps(OLD), "--load-replay", "3")
    agents = {"scripted": knowing}
    first = await dragoman(agents=agents)
    await first.initialize()
    session = ids(await listed(first))[0]
    await load(first, session, Path("/tmp"))
    first.leave()
    await first.wait_exit()
    second = await dragoman(agents=agents)
    await second.initialize()
    assert session in ids(await listed(second))
    loaded = await load(second, session, Path("/tmp"))
    assert loaded.texts == ["replay 0", "replay 1", "replay 2"]
    assert loaded.facts["revived"] == "load"


async def test_sessions_of_ours_are_not_listed_twice_when_the_agent_lists_them_too(
    dragoman: Start, workspace: Path
) -> None:
    caps = '{"loadSession": true, "sessionCapabilities": {"list": {}, "resume": {}}}'
    gateway = await dragoman(agents={"scripted": resumable_agent(caps=caps)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    await gateway.prompt(session, "Mend the roof")
    found = await listed(gateway)
    assert ids(found) == [session]
    assert found[0]["title"] == "Mend the roof"


async def test_a_session_the_agent_refuses_to_load_is_an_error_that_says_so(dragoman: Start) -> None:
    gone = [{"sessionId": "gone-1", "cwd": "/tmp", "title": "Gone"}]
    gateway = await dragoman(agents={"scripted": agent("--caps", LISTS, "--list", json.dumps(gone))})
    await gateway.initialize()
    session = ids(await listed(gateway))[0]
    with pytest.raises(RpcFailure) as failure:
        await load(gateway, session, Path("/tmp"))
    assert failure.value.message == "no such session"
    assert ids(await listed(gateway)) == [session]


async def test_an_agents_session_is_listed_for_an_unbound_client_too(
    dragoman: Start, workspace: Path
) -> None:
    gateway = await dragoman("acp", agents={"scripted": agent("--caps", LISTS, "--list", json.dumps(OLD))})
    await gateway.initialize()
    mine = await gateway.new_session(workspace)
    assert [each.get("title") for each in await listed(gateway) if each["sessionId"] != mine] == [
        "Second",
        "First",
    ]
