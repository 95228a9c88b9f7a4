"""Closing, deleting and forking sessions that the gateway owns."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.agents.agent_log import AgentLog
from support.gateway_process import GatewayProcess, Start, gone, is_alive
from support.rpc_peer import RpcFailure, RpcPeer
from support.session_client import (
    NEITHER,
    Watch,
    by_agent,
    conversation,
    entry,
    listed,
    load,
    notice,
    prompts,
    resumable_agent,
    setup,
)
from support.store.journal_reader import folder_of, read_journal

FORKS = '{"sessionCapabilities": {"resume": {}, "fork": {}}}'


async def fork(peer: RpcPeer, session: str, workspace: Path) -> str:
    result = await peer.request("session/fork", setup(session, workspace))
    return str(result["sessionId"])


async def test_a_closed_session_is_kept_and_can_be_loaded(gateway: GatewayProcess, workspace: Path) -> None:
    session = await gateway.new_session(workspace)
    await gateway.prompt(session, "say before")
    await gateway.request("session/close", {"sessionId": session})
    assert (await entry(gateway, session))["_meta"]["dragoman"]["state"] == "closed"
    assert (await load(gateway, session, workspace)).texts == ["before"]
    assert (await gateway.prompt(session, "say after")).texts == ["after"]


async def test_closing_ends_the_agents_process(gateway: GatewayProcess, workspace: Path) -> None:
    session = await gateway.new_session(workspace)
    pid = (await gateway.prompt(session, "pid")).report("pid")
    await gateway.request("session/close", {"sessionId": session})
    await gone(lambda: is_alive(pid))


async def test_a_closed_session_takes_no_prompt(gateway: GatewayProcess, workspace: Path) -> None:
    session = await gateway.new_session(workspace)
    await gateway.request("session/close", {"sessionId": session})
    turn = await gateway.prompt(session, "say anything")
    assert turn.error and turn.error.code == -32002


async def test_closing_cancels_the_turn_first(gateway: GatewayProcess, workspace: Path) -> None:
    session = await gateway.new_session(workspace)
    turn = gateway.start_prompt(session, "sleep-until-cancel")
    await gateway.text(session, "sleeping")
    closing = gateway.start_request("session/close", {"sessionId": session})
    assert (await turn).stop_reason == "cancelled"
    assert "result" in await gateway.response(closing)


async def test_a_deleted_session_is_gone(gateway: GatewayProcess, workspace: Path) -> None:
    session = await gateway.new_session(workspace)
    await gateway.prompt(session, "say secret words")
    await gateway.request("session/close", {"sessionId": session})
    await gateway.request("session/delete", {"sessionId": session})
    assert await listed(gateway) == []
    with pytest.raises(RpcFailure) as failure:
        await load(gateway, session, workspace)
    assert failure.value.code == -32002
    assert failure.value.data["sessionId"] == session


async def test_a_live_session_can_be_deleted(gateway: GatewayProcess, workspace: Path) -> None:
    session, other = await gateway.new_session(workspace), await gateway.new_session(workspace)
    turn = gateway.start_prompt(session, "pid\nsleep-until-cancel")
    await gateway.text(session, "sleeping")
    await gateway.request("session/delete", {"sessionId": session})
    ended = await turn
    assert ended.stop_reason == "cancelled"
    await gone(lambda: is_alive(ended.report("pid")))
    assert [each["sessionId"] for each in await listed(gateway)] == [other]
    assert (await gateway.prompt(other, "say unharmed")).texts == ["unharmed"]


async def test_deleting_takes_the_words_out_of_the_file(
    gateway: GatewayProcess, home: Path, workspace: Path
) -> None:
    word = "xyzzy-delete-me"
    session = await gateway.new_session(workspace)
    await gateway.prompt(session, f"say {word}")
    await gateway.request("session/delete", {"sessionId": session})
    gateway.leave()
    await gateway.wait_exit()
    kept = [path.read_bytes() for path in home.rglob("*") if path.is_file() and path.suffix != ".toml"]
    assert word.encode() not in b"".join(kept)


async def test_deleting_twice_is_no_error(gateway: GatewayProcess, workspace: Path) -> None:
    session = await gateway.new_session(workspace)
    for _ in range(2):
        assert await gateway.request("session/delete", {"sessionId": session}) == {}
    assert await gateway.request("session/delete", {"sessionId": "dgm_never_was"}) == {}


async def test_a_session_that_others_watch_can_be_deleted(
    gateway: GatewayProcess, watch: Watch, workspace: Path
) -> None:
    session = await gateway.new_session(workspace)
    other = await watch(gateway)
    await load(other, session, workspace)
    await gateway.request("session/delete", {"sessionId": session})
    turn = await other.prompt(session, "say anything")
    assert turn.error and turn.error.code == -32002


async def test_a_fork_by_the_agent_has_its_own_future(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    gateway = await dragoman(agents={"scripted": resumable_agent(*heard.flags, caps=FORKS)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    await gateway.prompt(session, "say common")
    forked = await fork(gateway, session, workspace)
    assert forked != session
    assert len(heard.params("session/fork")) == 1
    assert (await gateway.prompt(forked, "say new")).texts == ["new"]
    assert (await gateway.prompt(session, "say old")).texts == ["old"]
    assert {each["sessionId"] for each in await listed(gateway)} == {session, forked}


async def test_a_fork_works_in_a_folder_that_exists(dragoman: Start, workspace: Path) -> None:
    gateway = await dragoman(agents={"scripted": resumable_agent(caps=FORKS)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    failure = (await gateway.request_raw("session/fork", setup(session, workspace / "gone")))["error"]
    assert (failure["code"], failure["data"]["reason"]) == (-32602, "cwd")
    assert await fork(gateway, session, workspace)


async def test_a_fork_by_the_agent_replays_the_common_past(
    dragoman: Start, watch: Watch, workspace: Path
) -> None:
    gateway = await dragoman(agents={"scripted": resumable_agent(caps=FORKS)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    await gateway.prompt(session, "say common")
    forked = await fork(gateway, session, workspace)
    await gateway.prompt(forked, "say new")
    other = await watch(gateway)
    assert (await load(other, forked, workspace)).texts == ["common", "new"]


async def test_a_fork_of_a_damaged_session_says_how_much_is_lost(
    dragoman: Start, watch: Watch, workspace: Path, home: Path
) -> None:
    gateway = await dragoman(agents={"scripted": resumable_agent(caps=FORKS)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    for word in ("first", "second", "third"):
        await gateway.prompt(session, f"say {word}")
    whole = len(read_journal(home, session))
    for file in folder_of(home, session).glob("*.log"):
        file.write_bytes(file.read_bytes().replace(b"second", b"SECOND"))
    forked = await fork(gateway, session, workspace)
    kept = read_journal(home, forked)
    lost = [event.body for event in kept if event.body.get("dragoman") == "unkept"]
    assert lost and all(record["damaged"] for record in lost)
    copied = [event for event in kept if event.body.get("dragoman") not in ("unkept", "notice")]
    assert whole - len(copied) == sum(record["events"] for record in lost)
    shown = (await load(await watch(gateway), forked, workspace)).texts
    told = next(index for index, text in enumerate(shown) if "events before this" in text)
    assert shown.index("first") < told < shown.index("third")


async def test_a_session_of_an_agent_without_fork_is_copied(
    dragoman: Start, watch: Watch, workspace: Path, heard: AgentLog
) -> None:
    gateway = await dragoman(agents={"scripted": resumable_agent(*heard.flags, caps=NEITHER)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    await gateway.prompt(session, "say common")
    result = await gateway.request("session/fork", setup(session, workspace))
    forked = result["sessionId"]
    assert result["_meta"]["dragoman"]["forkedFrom"] == session
    await gateway.prompt(forked, "say new")
    await gateway.prompt(session, "say old")
    transcript = heard.params("session/prompt")[1]["prompt"][0]["text"]
    assert "Assistant: common" in transcript
    other = await watch(gateway)
    mine = (await load(other, forked, workspace)).replay
    theirs = (await load(other, session, workspace)).replay
    assert prompts(mine) == ["say common", "say new"]
    assert prompts(theirs) == ["say common", "say old"]
    assert by_agent(mine)[0]["content"]["text"] == "common"


async def test_a_copy_says_that_the_agent_only_heard_of_the_past(dragoman: Start, workspace: Path) -> None:
    gateway = await dragoman(agents={"scripted": resumable_agent(caps=NEITHER)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    await gateway.prompt(session, "say common")
    forked = await fork(gateway, session, workspace)
    await gateway.prompt(forked, "say on")
    await notice(gateway, forked, "does not remember")


async def test_a_copy_survives_the_deletion_of_its_original(
    dragoman: Start, watch: Watch, workspace: Path
) -> None:
    gateway = await dragoman(agents={"scripted": resumable_agent(caps=NEITHER)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    await gateway.prompt(session, "say common")
    forked = await fork(gateway, session, workspace)
    await gateway.request("session/delete", {"sessionId": session})
    other = await watch(gateway)
    assert len(conversation((await load(other, forked, workspace)).replay)) == 2
