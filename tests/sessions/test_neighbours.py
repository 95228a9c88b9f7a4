"""Several clients of a process that does not have the session: one's replay is not the others' business."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from support.clients.joining_clients import assert_same
from support.clients.random_clients import RandomClients
from support.clients.sample_answers import EVERYTHING
from support.gateway_process import GatewayProcess, Start
from support.rpc_peer import Message, RpcFailure, RpcPeer, is_update, text_of
from support.session_client import (
    LOAD,
    SEQ,
    Watch,
    by_agent,
    free_port,
    load,
    resumable_agent,
    resume,
    setup,
    turn_end,
)

FLOOD = "flood 3000 100"


async def processes(dragoman: Start, count: int) -> list[GatewayProcess]:
    """Each with a client."""
    gateways = [await dragoman(agents={"scripted": resumable_agent()}) for _ in range(count)]
    for gateway in gateways:
        await gateway.initialize()
    return gateways


def numbered(peer: RpcPeer, session: str) -> dict[int, Message]:
    """The updates that it saw, by their numbers; nothing has a number twice."""
    found: dict[int, Message] = {}
    for params in (message["params"] for message in peer.received if is_update(session)(message)):
        seq = ((params.get("_meta") or {}).get("dragoman") or {}).get("seq")
        if seq is not None:
            assert seq not in found, f"event {seq} came twice"
            found[seq] = params["update"]
    return found


async def test_a_load_that_fails_costs_the_other_clients_nothing(
    dragoman: Start, watch: Watch, workspace: Path
) -> None:
    one, other = await processes(dragoman, 2)
    session = await one.new_session(workspace)
    await load(other, session, workspace)
    third = await watch(other)
    with pytest.raises(RpcFailure) as failed:
        await resume(third, session, workspace, after=-1)
    assert failed.value.code == -32602
    await one.prompt(session, "say still here")
    await turn_end(other, session)
    assert [text_of(update) for update in by_agent(other.of(session))] == ["still here"]
    assert (await other.prompt(session, "say and able")).texts == ["and able"]
    assert not third.of(session)


async def test_a_load_in_another_process_hides_nothing_from_its_other_clients(
    dragoman: Start, watch: Watch, workspace: Path
) -> None:
    """Each sees everything once, whenever its neighbour loads."""
    one, other = await processes(dragoman, 2)
    session = await one.new_session(workspace)
    await load(other, session, workspace)
    third = await watch(other)
    turn = one.start_prompt(session, "flood 3000 100")
    for _ in range(5):
        await load(third, session, workspace)
    await turn
    await one.prompt(session, "say settled")
    await other.text(session, "settled")
    await third.text(session, "settled")
    said = by_agent(one.of(session))
    assert by_agent(other.of(session)) == said
    assert by_agent(third.of(session))[-10:] == said[-10:]


async def test_a_load_that_the_agent_cannot_do_costs_the_other_clients_nothing(
    dragoman: Start, workspace: Path
) -> None:
    port = free_port()
    server = await dragoman(
        "acp", "scripted", "--port", str(port),
        agents={"scripted": resumable_agent(caps="{}")}, sessions={"journal": False},
    )  # fmt: skip
    one, other = await server.connect(port), await server.connect(port)
    await one.initialize()
    await other.initialize()
    session = await one.new_session(workspace)
    with pytest.raises(RpcFailure) as failed:
        await load(other, session, workspace)
    assert failed.value.code == -32601
    assert (await one.prompt(session, "say still here")).texts == ["still here"]


async def test_a_load_without_a_journal_takes_nothing_from_a_turn_that_runs(
    dragoman: Start, workspace: Path, tmp_path: Path
) -> None:
    port = free_port()
    server = await dragoman(
        "acp", "scripted", "--port", str(port),
        agents={"scripted": resumable_agent(caps=LOAD)}, sessions={"journal": False},
    )  # fmt: skip
    one, other = await server.connect(port), await server.connect(port)
    await one.initialize()
    await other.initialize()
    session = await one.new_session(workspace)
    turn = one.start_prompt(session, f"say begun\nwait-file {tmp_path / 'go'}\nflood 500 100")
    await one.next_message(is_update(session))
    loading = asyncio.ensure_future(load(other, session, workspace))
    await other.request("_echo", {})  # it was read after the load
    (tmp_path / "go").touch()
    assert len((await turn).texts) == 501
    assert (await loading).texts[-1] == "replay 0"


async def test_clients_that_come_to_another_process_see_everything_once(
    dragoman: Start, watch: Watch, workspace: Path
) -> None:
    """What their neighbours are shown before a replay begins is in it."""
    one, other = await processes(dragoman, 2)
    session = await one.new_session(workspace)
    await load(other, session, workspace)
    turn = one.start_prompt(session, FLOOD)
    comers = []
    for _ in range(4):
        comers.append(await watch(other, **SEQ))
        await load(comers[-1], session, workspace)
    await turn
    await one.prompt(session, "say settled")
    for comer in (other, *comers):
        await comer.text(session, "settled")
        assert_same(
            by_agent(comer.of(session)),
            by_agent(one.of(session)),
            "who was there before" if comer is other else f"comer {comers.index(comer)}",
        )


async def test_a_resume_in_another_process_shows_nobody_anything_twice(
    dragoman: Start, watch: Watch, workspace: Path
) -> None:
    """Whoever comes back gets what it missed, numbered; its neighbours have it already."""
    one, other = await processes(dragoman, 2)
    session = await one.new_session(workspace)
    await load(other, session, workspace)
    third = await watch(other, **SEQ)
    await load(third, session, workspace)
    turn = one.start_prompt(session, FLOOD)
    seen: dict[int, Message] = {}
    for _ in range(5):
        await third.next_message(is_update(session, "agent_message_chunk"))
        await third.close()
        before = numbered(third, session)
        assert not seen.keys() & before.keys()
        seen |= before
        third = await watch(other, **SEQ)
        await resume(third, session, workspace, after=max(seen))
    await turn
    await one.prompt(session, "say settled")
    await other.text(session, "settled")
    await third.text(session, "settled")
    seen |= numbered(third, session)
    said = by_agent(one.of(session))
    assert by_agent(other.of(session)) == said
    assert list(seen) == sorted(seen)
    assert by_agent(list(seen.values())) == said


async def test_a_resume_without_a_position_takes_nothing_from_its_neighbours(
    dragoman: Start, watch: Watch, workspace: Path
) -> None:
    one, other = await processes(dragoman, 2)
    session = await one.new_session(workspace)
    await load(other, session, workspace)
    turn = one.start_prompt(session, FLOOD)
    for _ in range(5):
        await resume(await watch(other), session, workspace)
    await turn
    await turn_end(other, session)
    assert by_agent(other.of(session)) == by_agent(one.of(session))


async def test_a_client_that_leaves_in_its_replay_leaves_none_of_it_to_its_neighbours(
    dragoman: Start, watch: Watch, workspace: Path
) -> None:
    one, other = await processes(dragoman, 2)
    session = await one.new_session(workspace)
    await one.prompt(session, "flood 20000 100")
    await load(other, session, workspace)
    before = len(other.of(session))
    for _ in range(3):
        third = await watch(other)
        third.start_request("session/load", setup(session, workspace))
        await third.next_message(is_update(session, "agent_message_chunk"))
        await third.close()
    await load(await watch(other), session, workspace)  # behind whatever was left of the others
    await one.prompt(session, "say done")
    await turn_end(other, session)
    assert [text_of(update) for update in by_agent(other.of(session)[before:])] == ["done"]


async def test_terminals_of_a_client_outlive_its_neighbours_load(
    dragoman: Start, watch: Watch, workspace: Path
) -> None:
    one = (await processes(dragoman, 1))[0]
    other = await dragoman(agents={"scripted": resumable_agent()})
    await other.initialize(clientCapabilities=EVERYTHING)
    other.on("terminal/create", {"terminalId": "t1"})
    other.on("terminal/output", {"output": "still here", "truncated": False})
    session = await one.new_session(workspace)
    await load(other, session, workspace)
    terminal = (await other.prompt(session, "terminal-keep")).report("terminal/create")["result"][
        "terminalId"
    ]
    await load(await watch(other), session, workspace)
    asked = 'request terminal/output {"sessionId":"{sid}","terminalId":"' + terminal + '"}'
    assert (await other.prompt(session, asked)).report("request")["result"]["output"] == "still here"


async def test_watchers_go_on_when_the_process_that_had_the_session_ends(
    dragoman: Start, workspace: Path
) -> None:
    """It is theirs then, or that of whoever was faster; nobody has to do anything."""
    one, other, third = await processes(dragoman, 3)
    session = await one.new_session(workspace)
    await load(other, session, workspace)
    one.process.send_signal(signal.SIGTERM)
    await one.wait_exit()
    await load(third, session, workspace)
    assert (await third.prompt(session, "say on")).texts == ["on"]
    await other.text(session, "on")
    assert (await other.prompt(session, "say and on")).texts == ["and on"]
    await third.text(session, "and on")


async def test_watchers_see_what_was_stored_last_before_their_process_was_killed(
    dragoman: Start, watch: Watch, workspace: Path
) -> None:
    one, other, third = await processes(dragoman, 3)
    company = RandomClients([one, other, third], await one.new_session(workspace), workspace, watch, seed=7)
    await company.live(moments=10)
    await company.kill_owner()
    await company.live(moments=10)
    await company.check()


async def test_whoever_comes_goes_and_comes_back_in_three_processes_sees_everything_once(
    dragoman: Start, watch: Watch, workspace: Path
) -> None:
    gateways = await processes(dragoman, 3)
    company = RandomClients(gateways, await gateways[0].new_session(workspace), workspace, watch, seed=1)
    await company.live(moments=40)
    assert len(await company.check()) > 1000


async def test_a_cancel_that_the_agent_ignores_costs_the_neighbours_nothing(
    dragoman: Start, watch: Watch, workspace: Path
) -> None:
    """Its process sees to the agent; whoever watches goes on watching, and sees nothing twice."""
    impatient = {"limits": {"cancel_timeout": 0.3}}
    one = await dragoman(agents={"scripted": resumable_agent()}, **impatient)
    await one.initialize()
    other = await dragoman(agents={"scripted": resumable_agent()}, **impatient)
    await other.initialize()
    session = await one.new_session(workspace)
    await one.prompt(session, "say before")
    await load(other, session, workspace)
    third = await watch(other)
    await load(third, session, workspace)
    turn = other.start_prompt(session, "say begun\nignore-cancel")
    await third.text(session, "begun")
    other.cancel(session)
    assert (await turn).stop_reason == "cancelled"
    await turn_end(third, session)
    assert (await one.prompt(session, "say after")).texts[-1] == "after"
    for peer in (other, third):
        await peer.text(session, "after")
        assert [text_of(update) for update in by_agent(peer.of(session))] == [
            "before",
            "begun",
            "ignoring",
            "after",
        ]


async def test_a_load_that_is_cancelled_on_its_way_leaves_the_session_to_the_next(
    dragoman: Start, workspace: Path
) -> None:
    one, other = await processes(dragoman, 2)
    session = await one.new_session(workspace)
    await one.prompt(session, "say hello")
    one.process.send_signal(signal.SIGSTOP)  # nobody gets there now
    given_up = other.start_request("session/load", setup(session, workspace))
    wanted = other.start_request("session/load", setup(session, workspace))
    await other.request("session/list", {})  # both are on their way
    other.notify("$/cancel_request", {"requestId": given_up})
    assert (await other.response(given_up))["error"]["code"] == -32800
    one.process.send_signal(signal.SIGCONT)
    assert "result" in await other.response(wanted)
    assert "done" in (await other.prompt(session, "say done")).texts


async def test_a_load_that_is_cancelled_in_its_replay_may_be_tried_again(
    dragoman: Start, workspace: Path
) -> None:
    one, other = await processes(dragoman, 2)
    session = await one.new_session(workspace)
    await one.prompt(session, "flood 20000 100")
    for _ in range(3):
        id = other.start_request("session/load", setup(session, workspace))
        await other.next_message(is_update(session, "agent_message_chunk"))
        other.notify("$/cancel_request", {"requestId": id})
        await other.response(id)
    loaded = await load(other, session, workspace)
    assert len(by_agent(loaded.replay)) >= 20000
    assert (await other.prompt(session, "say on")).texts == ["on"]
    assert (
        other.stderr.count("updates for an unknown session dropped") <= 3
    )  # one line each, however many came


async def test_clients_that_leave_while_their_session_is_taken_over_leave_it_to_others(
    dragoman: Start, watch: Watch, workspace: Path
) -> None:
    one, other, third = await processes(dragoman, 3)
    session = await one.new_session(workspace)
    await one.prompt(session, "say before")
    for gateway in (other, third):
        await load(await watch(gateway), session, workspace)
    last = await watch(other)
    await load(last, session, workspace)
    await one.kill()
    last.notify("session/cancel", {"sessionId": session})
    await last.close()
    late = await watch(third)
    assert (await load(late, session, workspace)).texts == ["before"]
    assert (await late.prompt(session, "say after")).texts == ["after"]
