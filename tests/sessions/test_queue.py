"""Prompts that wait for the end of a turn (`sessions.queue`): order, limits, edits, cancels, clients that leave."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from support.gateway_process import GatewayProcess, Start, Table
from support.rpc_peer import RpcFailure, RpcPeer
from support.session_client import Watch, load, prompts, resumable_agent, resume, turn_end

AGENTS: Table = {"scripted": resumable_agent()}


@pytest.fixture
async def gateway(dragoman: Start) -> GatewayProcess:
    started = await dragoman(agents=AGENTS, sessions={"queue": 2})
    await started.initialize()
    return started


async def busy(peer: RpcPeer, session: str, signal_file: Path) -> asyncio.Future[Any]:
    """A turn that runs until `signal_file` exists."""
    turn = peer.start_prompt(session, f"say started\nwait-file {signal_file}\nsay finished")
    await peer.text(session, "started")
    return turn


async def queue(peer: RpcPeer, session: str) -> list[dict[str, Any]]:
    return list((await peer.request("_dragoman/queue", {"sessionId": session}))["queue"])


def text(said: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": said}]


async def test_queued_prompts_start_in_their_order_and_each_is_answered_at_the_end_of_its_own_turn(
    gateway: GatewayProcess, workspace: Path, signal_file: Path
) -> None:
    session = await gateway.new_session(workspace)
    first = await busy(gateway, session, signal_file)
    second = gateway.start_prompt(session, "say two\nstop max_tokens")
    third = gateway.start_prompt(session, "say three")
    waiting = await queue(gateway, session)
    assert [each["prompt"] for each in waiting] == [text("say two\nstop max_tokens"), text("say three")]
    assert {(each["promptedBy"], each["own"], each["edited"]) for each in waiting} == {("local", True, False)}
    signal_file.touch()
    assert (await first).stop_reason == "end_turn"
    assert (await second).stop_reason == "max_tokens"
    assert (await third).stop_reason == "end_turn"
    said = [update["content"]["text"] for update in gateway.of(session) if "content" in update]
    assert said == ["started", "finished", "two", "three"]
    assert await queue(gateway, session) == []


async def test_one_prompt_too_many_is_refused_and_the_others_go_on(
    gateway: GatewayProcess, workspace: Path, signal_file: Path
) -> None:
    session = await gateway.new_session(workspace)
    turns = [await busy(gateway, session, signal_file)]
    turns += [gateway.start_prompt(session, f"say {number}") for number in (2, 3)]
    refused = await gateway.prompt(session, "say 4")
    assert refused.error and refused.error.code == -32600
    assert refused.error.data["reason"] == "queue_full"
    assert "sessions.queue = 2" in refused.error.message
    signal_file.touch()
    assert [(await turn).stop_reason for turn in turns] == ["end_turn"] * 3


async def test_a_queued_prompt_can_be_edited_and_withdrawn(
    gateway: GatewayProcess, watch: Watch, workspace: Path, signal_file: Path
) -> None:
    session = await gateway.new_session(workspace)
    other = await watch(gateway)
    await load(other, session, workspace)
    first = await busy(gateway, session, signal_file)
    second, third = (gateway.start_prompt(session, f"say {number}") for number in (2, 3))
    ids = [each["id"] for each in await queue(other, session)]
    assert [each["own"] for each in await queue(other, session)] == [False, False]
    edit = {"sessionId": session, "id": ids[0], "prompt": text("say other words")}
    assert await other.request("_dragoman/queue/edit", edit) == {}
    assert (await queue(gateway, session))[0]["edited"] is True
    await other.request("_dragoman/queue/withdraw", {"sessionId": session, "id": ids[1]})
    assert (await third).stop_reason == "cancelled"
    with pytest.raises(RpcFailure, match="does not wait any more"):
        await other.request("_dragoman/queue/withdraw", {"sessionId": session, "id": ids[1]})
    with pytest.raises(RpcFailure, match="empty"):
        await other.request("_dragoman/queue/edit", {**edit, "prompt": text(" ")})
    signal_file.touch()
    await first
    assert (await second).texts[-1] == "other words"
    assert prompts(gateway.of(session)) == ["say other words"]  # it did not write it like this


async def test_a_cancel_ends_the_turn_and_answers_what_waits_with_cancelled(
    gateway: GatewayProcess, workspace: Path
) -> None:
    session = await gateway.new_session(workspace)
    first = gateway.start_prompt(session, "sleep-until-cancel")
    await gateway.text(session, "sleeping")
    second = gateway.start_prompt(session, "say never")
    gateway.cancel(session)
    assert (await second).stop_reason == "cancelled"
    assert (await first).stop_reason == "cancelled"
    assert (await gateway.prompt(session, "say after")).texts == ["after"]


async def test_a_cancelled_request_withdraws_that_prompt_alone(
    gateway: GatewayProcess, workspace: Path, signal_file: Path
) -> None:
    session = await gateway.new_session(workspace)
    first = await busy(gateway, session, signal_file)
    params = {"sessionId": session, "prompt": text("say never")}
    number = gateway.start_request("session/prompt", params)
    third = gateway.start_prompt(session, "say three")
    gateway.notify("$/cancel_request", {"requestId": number})
    assert (await gateway.response(number))["result"] == {"stopReason": "cancelled"}
    signal_file.touch()
    assert (await first).stop_reason == "end_turn"
    assert (await third).texts[-1] == "three"


async def test_what_waits_for_a_turn_that_fails_is_not_sent(
    gateway: GatewayProcess, workspace: Path, signal_file: Path
) -> None:
    session = await gateway.new_session(workspace)
    first = gateway.start_prompt(session, f"say started\nwait-file {signal_file}\ncrash")
    await gateway.text(session, "started")
    second = gateway.start_prompt(session, "say never")
    await queue(gateway, session)
    signal_file.touch()
    assert (await first).error
    failed = await second
    assert failed.error and failed.error.data["reason"] == "turn_before_failed"
    assert (await gateway.prompt(session, "say after")).texts[-1] == "after"


async def test_a_client_that_leaves_takes_its_queued_prompts_along(
    gateway: GatewayProcess, watch: Watch, workspace: Path, signal_file: Path
) -> None:
    session = await gateway.new_session(workspace)
    other = await watch(gateway)
    await load(other, session, workspace)
    first = await busy(other, session, signal_file)
    gateway.start_prompt(session, "say never")
    third = other.start_prompt(session, "say three")
    assert len(await queue(other, session)) == 2
    gateway.leave()
    await gateway.ended()
    assert [each["prompt"] for each in await queue(other, session)] == [text("say three")]
    signal_file.touch()
    assert (await first).stop_reason == "end_turn"
    assert (await third).texts[-1] == "three"
    await other.close()
    await gateway.wait_exit()


async def test_a_client_of_another_process_queues_at_the_owner(
    dragoman: Start, gateway: GatewayProcess, workspace: Path, signal_file: Path
) -> None:
    session = await gateway.new_session(workspace)
    follower = await dragoman(agents=AGENTS)
    await follower.initialize()
    await resume(follower, session, workspace)
    first = await busy(gateway, session, signal_file)
    second, third = (follower.start_prompt(session, f"say {number}") for number in ("two", "three"))
    assert [each["prompt"] for each in await queue(follower, session)] == [text("say two"), text("say three")]
    assert await queue(gateway, session) != []
    signal_file.touch()
    assert (await first).stop_reason == "end_turn"
    assert (await second).stop_reason == "end_turn"
    assert (await third).texts[-1] == "three"
    assert prompts(follower.of(session)) == [f"say started\nwait-file {signal_file}\nsay finished"]
    for _ in range(2):  # of the second and of the third
        await turn_end(gateway, session)
    assert prompts(gateway.of(session)) == ["say two", "say three"]


async def test_a_follower_withdraws_its_own_prompt_and_leaves_the_owners_turn_alone(
    dragoman: Start, gateway: GatewayProcess, workspace: Path, signal_file: Path
) -> None:
    session = await gateway.new_session(workspace)
    follower = await dragoman(agents=AGENTS)
    await follower.initialize()
    await resume(follower, session, workspace)
    first = await busy(gateway, session, signal_file)
    follower.start_prompt(session, "say never")
    follower.start_prompt(session, "say never either")
    assert len(await queue(follower, session)) == 2
    follower.leave()
    await follower.ended()
    assert await queue(gateway, session) == []
    signal_file.touch()
    assert (await first).stop_reason == "end_turn"


async def test_a_steer_that_the_agent_cannot_take_is_queued_and_that_is_told(
    gateway: GatewayProcess, workspace: Path, signal_file: Path
) -> None:
    session = await gateway.new_session(workspace)
    first = await busy(gateway, session, signal_file)
    params = {"sessionId": session, "prompt": text("say two"), "_meta": {"dragoman": {"steer": True}}}
    steered = asyncio.ensure_future(gateway.request("session/prompt", params))
    await gateway.next_message(lambda m: "takes no message in mid-turn" in str(m.get("params")))
    signal_file.touch()
    await first
    assert await steered == {"stopReason": "end_turn", "_meta": {"dragoman": {"steer": "queued"}}}


async def test_without_a_queue_a_steer_that_cannot_be_is_refused_with_the_reason(
    dragoman: Start, workspace: Path, signal_file: Path
) -> None:
    gateway = await dragoman(agents=AGENTS)
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    first = await busy(gateway, session, signal_file)
    params = {"sessionId": session, "prompt": text("say two"), "_meta": {"dragoman": {"steer": True}}}
    with pytest.raises(RpcFailure, match=r"takes no message in mid-turn, and prompts are not queued"):
        await gateway.request("session/prompt", params)
    signal_file.touch()
    assert (await first).stop_reason == "end_turn"
