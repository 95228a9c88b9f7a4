"""Several clients on one session: what each of them sees, is asked and is spared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.clients.sample_answers import ALLOW, EVERYTHING, REJECT
from support.gateway_process import GatewayProcess, Start, agent
from support.rpc_peer import Message, RpcPeer, is_request, is_update
from support.session_client import Watch, by_agent, conversation, load, prompts, turn_end

PERMISSION = "session/request_permission"


async def watched(
    gateway: GatewayProcess, watch: Watch, workspace: Path, **capabilities: Any
) -> tuple[RpcPeer, str]:
    """A session of the gateway's own client and a second client that loaded it."""
    session = await gateway.new_session(workspace)
    other = await watch(gateway, **capabilities)
    await load(other, session, workspace)
    return other, session


async def test_a_prompt_of_one_client_is_a_user_message_to_the_others(
    gateway: GatewayProcess, watch: Watch, workspace: Path
) -> None:
    other, session = await watched(gateway, watch, workspace)
    turn = await gateway.prompt(session, "say answer")
    await turn_end(other, session)
    seen = conversation(other.of(session))
    assert [update["sessionUpdate"] for update in seen] == ["user_message_chunk", "agent_message_chunk"]
    assert prompts(seen) == ["say answer"]
    assert turn.texts == ["answer"]


async def test_a_client_is_not_shown_its_own_prompt(
    gateway: GatewayProcess, watch: Watch, workspace: Path
) -> None:
    other, session = await watched(gateway, watch, workspace)
    await gateway.prompt(session, "say one")
    await other.prompt(session, "say two")
    await turn_end(gateway, session)
    assert prompts(gateway.of(session)) == ["say two"]
    assert prompts(other.of(session)) == ["say one"]


async def test_every_block_of_a_prompt_reaches_the_others(
    gateway: GatewayProcess, watch: Watch, workspace: Path
) -> None:
    other, session = await watched(gateway, watch, workspace)
    blocks: list[Message] = [
        {"type": "text", "text": "say a"},
        {"type": "resource_link", "uri": "file:///x", "name": "x", "_meta": {"n": 2**60}},
    ]
    await gateway.prompt(session, blocks)
    await turn_end(other, session)
    shown = [u["content"] for u in other.of(session) if u["sessionUpdate"] == "user_message_chunk"]
    assert shown == blocks


async def test_the_end_of_a_turn_is_told_to_the_others(
    gateway: GatewayProcess, watch: Watch, workspace: Path
) -> None:
    other, session = await watched(gateway, watch, workspace)
    turn = await gateway.prompt(session, "stop max_tokens")
    assert turn.stop_reason == "max_tokens"
    assert await turn_end(other, session) == {"state": "idle", "stopReason": "max_tokens"}
    assert not [u for u in gateway.of(session) if u["sessionUpdate"] == "session_info_update"]


async def test_an_error_of_a_turn_is_told_to_the_others(
    gateway: GatewayProcess, watch: Watch, workspace: Path
) -> None:
    other, session = await watched(gateway, watch, workspace)
    turn = await gateway.prompt(session, "error 4711 it broke")
    assert turn.error and turn.error.code == 4711
    assert (await turn_end(other, session))["error"]["message"] == "it broke"


@pytest.mark.rule("G-005")
async def test_all_attachments_see_the_same_events_in_the_same_order(
    gateway: GatewayProcess, watch: Watch, workspace: Path
) -> None:
    other, session = await watched(gateway, watch, workspace)
    third = await watch(gateway)
    await load(third, session, workspace)
    script = "\n".join(f"say {n}\nthink {n}\ntool call{n}" for n in range(100))
    await gateway.prompt(session, script)
    await turn_end(other, session)
    await turn_end(third, session)
    assert other.of(session) == third.of(session)
    assert by_agent(other.of(session)) == by_agent(gateway.of(session))
    assert len(by_agent(other.of(session))) == 400


async def test_a_permission_question_goes_to_all_and_the_first_answer_wins(
    gateway: GatewayProcess, watch: Watch, workspace: Path
) -> None:
    other, session = await watched(gateway, watch, workspace)
    turn = gateway.start_prompt(session, "permission")
    mine = await gateway.next_message(is_request(PERMISSION))
    theirs = await other.next_message(is_request(PERMISSION))
    assert mine["params"] == theirs["params"]
    other.reply(theirs, REJECT)
    withdrawn = await gateway.next_message("$/cancel_request")
    assert withdrawn["params"] == {"requestId": mine["id"]}
    assert (await turn).report("permission") == {"result": REJECT}


async def test_a_late_answer_is_harmless(gateway: GatewayProcess, watch: Watch, workspace: Path) -> None:
    other, session = await watched(gateway, watch, workspace)
    turn = gateway.start_prompt(session, "permission\nsay between\npermission")
    mine = await gateway.next_message(is_request(PERMISSION))
    theirs = await other.next_message(is_request(PERMISSION))
    gateway.reply(mine, ALLOW)
    await other.next_message("$/cancel_request")
    second = await gateway.next_message(is_request(PERMISSION))
    other.reply(theirs, REJECT)
    other.reply_error(theirs, -32800, "Request cancelled")
    gateway.reply(second, ALLOW)
    assert (await turn).reports("permission") == [{"result": ALLOW}, {"result": ALLOW}]
    await turn_end(other, session)
    assert (await other.prompt(session, "say fine")).texts == ["fine"]


async def test_only_one_of_two_answers_that_cross_reaches_the_agent(
    gateway: GatewayProcess, watch: Watch, workspace: Path
) -> None:
    other, session = await watched(gateway, watch, workspace)
    gateway.on(PERMISSION, ALLOW)
    other.on(PERMISSION, REJECT)
    turn = await gateway.prompt(session, "\n".join(["permission"] * 20))
    answers = turn.reports("permission")
    assert len(answers) == 20
    assert all(answer in ({"result": ALLOW}, {"result": REJECT}) for answer in answers)


async def test_a_question_that_one_client_cannot_answer_stays_with_the_others(
    gateway: GatewayProcess, watch: Watch, workspace: Path
) -> None:
    other, session = await watched(gateway, watch, workspace)
    turn = gateway.start_prompt(session, "permission")
    gateway.reply_error(await gateway.next_message(is_request(PERMISSION)), -32601, "Method not found")
    other.reply(await other.next_message(is_request(PERMISSION)), ALLOW)
    assert (await turn).report("permission") == {"result": ALLOW}


async def test_files_are_read_by_the_client_that_prompted(
    gateway: GatewayProcess, watch: Watch, workspace: Path
) -> None:
    other, session = await watched(gateway, watch, workspace, **EVERYTHING)
    other.on("fs/read_text_file", {"content": "the other's"})
    turn = await other.prompt(session, f"fsread {workspace}/x")
    assert turn.report("fsread") == {"result": {"content": "the other's"}}
    assert not [m for m in gateway.received if m.get("method") == "fs/read_text_file"]


async def test_files_go_to_each_prompts_own_author(dragoman: Start, watch: Watch, workspace: Path) -> None:
    gateway = await dragoman()
    await gateway.initialize(clientCapabilities=EVERYTHING)
    other, session = await watched(gateway, watch, workspace, **EVERYTHING)
    for peer, content in ((gateway, "first"), (other, "second")):
        peer.on("fs/read_text_file", {"content": content})
    for peer, content in ((gateway, "first"), (other, "second"), (gateway, "first")):
        turn = await peer.prompt(session, f"fsread {workspace}/x")
        assert turn.report("fsread")["result"]["content"] == content
        await turn_end(other if peer is gateway else gateway, session)


async def test_a_client_that_stops_reading_does_not_slow_the_others_and_gets_everything_later(
    gateway: GatewayProcess, watch: Watch, workspace: Path
) -> None:
    slow, session = await watched(gateway, watch, workspace)
    slow.pause()
    turn = await gateway.prompt(session, "flood 3000 2000\nsay last")
    assert turn.texts[-1] == "last"
    slow.resume()
    await turn_end(slow, session)
    assert by_agent(slow.of(session)) == turn.updates
    assert prompts(slow.of(session)) == ["flood 3000 2000\nsay last"]


async def test_a_client_that_is_behind_is_asked_in_the_right_place(
    gateway: GatewayProcess, watch: Watch, workspace: Path
) -> None:
    slow, session = await watched(gateway, watch, workspace)
    slow.pause()
    turn = gateway.start_prompt(session, "flood 3000 2000\nsay before\npermission")
    await gateway.next_message(is_request(PERMISSION))
    slow.resume()
    question = await slow.next_message(is_request(PERMISSION))
    position = next(i for i, message in enumerate(slow.received) if message is question)
    seen = [m for m in slow.received[:position] if is_update(session, "agent_message_chunk")(m)]
    assert len(seen) == 3001
    slow.reply(question, ALLOW)
    assert (await turn).report("permission") == {"result": ALLOW}


async def test_a_client_that_leaves_in_mid_turn_does_not_end_the_turn_of_another(
    gateway: GatewayProcess, watch: Watch, workspace: Path, signal_file: Path
) -> None:
    other, session = await watched(gateway, watch, workspace)
    turn = gateway.start_prompt(session, f"say started\nwait-file {signal_file}\nsay finished")
    await other.text(session, "started")
    await other.close()
    signal_file.touch()
    assert (await turn).texts == ["started", "finished"]


async def test_the_end_of_stdin_leaves_a_session_to_whoever_still_watches_it(
    gateway: GatewayProcess, watch: Watch, workspace: Path
) -> None:
    other, session = await watched(gateway, watch, workspace)
    await gateway.prompt(session, "say before")
    gateway.leave()
    await gateway.ended()
    assert (await other.prompt(session, "say after")).texts == ["after"]
    await other.close()
    await gateway.wait_exit()


async def test_a_prompt_while_another_clients_runs_is_refused(
    gateway: GatewayProcess, watch: Watch, workspace: Path, signal_file: Path
) -> None:
    other, session = await watched(gateway, watch, workspace)
    turn = gateway.start_prompt(session, f"say started\nwait-file {signal_file}")
    await other.text(session, "started")
    refused = await other.prompt(session, "say me too")
    assert refused.error and refused.error.data["reason"] == "prompt_in_flight"
    signal_file.touch()
    assert (await turn).stop_reason == "end_turn"


async def test_a_watcher_may_cancel_the_turn_of_another(
    gateway: GatewayProcess, watch: Watch, workspace: Path
) -> None:
    other, session = await watched(gateway, watch, workspace)
    turn = gateway.start_prompt(session, "sleep-until-cancel")
    await other.text(session, "sleeping")
    other.cancel(session)
    assert (await turn).stop_reason == "cancelled"
    assert (await turn_end(other, session))["stopReason"] == "cancelled"


async def test_a_mode_that_one_client_sets_is_seen_by_the_others(
    dragoman: Start, watch: Watch, workspace: Path
) -> None:
    gateway = await dragoman(agents={"scripted": agent("--modes")})
    await gateway.initialize()
    other, session = await watched(gateway, watch, workspace)
    await gateway.request("session/set_mode", {"sessionId": session, "modeId": "code"})
    update = await other.next_message(is_update(session, "current_mode_update"))
    assert update["params"]["update"]["currentModeId"] == "code"


@pytest.mark.rule("G-069")
async def test_terminals_of_two_clients_with_the_same_id_keep_apart(
    dragoman: Start, watch: Watch, workspace: Path
) -> None:
    """Each client issues its ids by itself (G-069)."""
    gateway = await dragoman(agents={"scripted": agent()})
    await gateway.initialize(clientCapabilities=EVERYTHING)
    other, session = await watched(gateway, watch, workspace, **EVERYTHING)
    for peer, output in ((gateway, "mine"), (other, "theirs")):
        peer.on("terminal/create", {"terminalId": "t1"})
        peer.on("terminal/output", {"output": output, "truncated": False})
        peer.on("terminal/release", {})
    turn = await gateway.prompt(session, "terminal-keep")
    await other.text(session, turn.texts[-1])  # it watched that turn, which is not one of its own
    first = turn.report("terminal/create")["result"]["terminalId"]
    second = (await other.prompt(session, "terminal-keep")).report("terminal/create")["result"]["terminalId"]
    assert first != second
    outputs = []
    for terminal in (first, second):
        asked = 'request terminal/output {"sessionId":"{sid}","terminalId":"' + terminal + '"}'
        outputs.append((await gateway.prompt(session, asked)).report("request")["result"]["output"])
    assert outputs == ["mine", "theirs"]
