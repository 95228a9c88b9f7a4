"""Several Dragoman processes on one machine share the sessions of one user."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from support.clients.sample_answers import ALLOW, CANCELLED, EVERYTHING
from support.gateway_process import GatewayProcess, Start, Table
from support.rpc_peer import RpcFailure, is_request
from support.session_client import (
    SEQ,
    by_agent,
    conversation,
    entry,
    free_port,
    load,
    prompts,
    resumable_agent,
    resume,
    turn_end,
)
from support.store.journal_reader import read_journal, records

AGENTS: Table = {"scripted": resumable_agent()}
PERMISSION = "session/request_permission"


async def started(dragoman: Start, **capabilities: object) -> GatewayProcess:
    gateway = await dragoman(agents=AGENTS)
    await gateway.initialize(clientCapabilities=capabilities)
    return gateway


async def two(dragoman: Start) -> tuple[GatewayProcess, GatewayProcess]:
    return await started(dragoman), await started(dragoman)


async def test_a_session_of_one_process_is_listed_by_another(dragoman: Start, workspace: Path) -> None:
    one, other = await two(dragoman)
    session = await one.new_session(workspace)
    turn = one.start_prompt(session, "permission")
    question = await one.next_message(is_request(PERMISSION))
    async with asyncio.timeout(30):
        # The directory is written in a thread; each request gives it a moment.
        while not (facts := (await entry(other, session))["_meta"]["dragoman"])["pending"]:
            pass
    assert facts["live"] is True
    one.reply(question, ALLOW)
    await turn


async def test_a_session_of_one_process_is_watched_from_another(dragoman: Start, workspace: Path) -> None:
    one, other = await two(dragoman)
    session = await one.new_session(workspace)
    await one.prompt(session, "say before")
    loaded = await load(other, session, workspace)
    assert (loaded.texts, loaded.facts["revived"]) == (["before"], "live")
    await one.prompt(session, "say after")
    await turn_end(other, session)
    assert by_agent(other.of(session)) == by_agent(one.of(session))
    assert prompts(other.of(session)) == ["say before", "say after"]


async def test_a_question_of_one_process_is_answered_from_another(dragoman: Start, workspace: Path) -> None:
    one, other = await two(dragoman)
    session = await one.new_session(workspace)
    turn = one.start_prompt(session, "permission")
    mine = await one.next_message(is_request(PERMISSION))
    await load(other, session, workspace)
    other.reply(await other.next_message(is_request(PERMISSION)), ALLOW)
    assert (await turn).report("permission") == {"result": ALLOW}
    assert (await one.next_message("$/cancel_request"))["params"] == {"requestId": mine["id"]}


async def test_a_question_answered_at_home_is_withdrawn_in_the_other_process(
    dragoman: Start, workspace: Path
) -> None:
    one, other = await two(dragoman)
    session = await one.new_session(workspace)
    turn = one.start_prompt(session, "permission")
    mine = await one.next_message(is_request(PERMISSION))
    await load(other, session, workspace)
    theirs = await other.next_message(is_request(PERMISSION))
    one.reply(mine, ALLOW)
    assert (await other.next_message("$/cancel_request"))["params"] == {"requestId": theirs["id"]}
    await turn


async def test_a_session_of_one_process_is_continued_from_another(dragoman: Start, workspace: Path) -> None:
    one, other = await two(dragoman)
    session = await one.new_session(workspace)
    await load(other, session, workspace)
    turn = await other.prompt(session, "say from elsewhere")
    assert turn.texts == ["from elsewhere"]
    assert (await turn_end(one, session))["stopReason"] == "end_turn"
    assert prompts(one.of(session)) == ["say from elsewhere"]


async def test_a_prompt_from_elsewhere_is_cancelled_from_elsewhere(dragoman: Start, workspace: Path) -> None:
    one, other = await two(dragoman)
    session = await one.new_session(workspace)
    await load(other, session, workspace)
    turn = other.start_prompt(session, "sleep-until-cancel")
    await one.text(session, "sleeping")
    other.cancel(session)
    assert (await turn).stop_reason == "cancelled"


async def test_a_prompt_of_the_owner_s_client_is_cancelled_from_elsewhere(
    dragoman: Start, workspace: Path
) -> None:
    one, other = await two(dragoman)
    session = await one.new_session(workspace)
    await load(other, session, workspace)
    for how in ("notification", "request"):
        turn = one.start_prompt(session, f"sleep-until-cancel {how}")
        await other.text(session, how)
        if how == "notification":
            other.cancel(session)
        else:
            assert await other.request("session/cancel", {"sessionId": session}) == {}
        assert (await turn).stop_reason == "cancelled"
        assert (await turn_end(other, session))["stopReason"] == "cancelled"


async def test_files_of_a_client_elsewhere_are_used_for_its_own_prompts(
    dragoman: Start, workspace: Path
) -> None:
    one, other = await started(dragoman), await started(dragoman, **EVERYTHING)
    other.on("fs/read_text_file", {"content": "elsewhere"})
    session = await one.new_session(workspace)
    await load(other, session, workspace)
    turn = await other.prompt(session, f"fsread {workspace}/x")
    assert turn.report("fsread") == {"result": {"content": "elsewhere"}}


async def test_resume_from_another_process_sends_no_history(dragoman: Start, workspace: Path) -> None:
    one, other = await two(dragoman)
    session = await one.new_session(workspace)
    await one.prompt(session, "say before")
    await resume(other, session, workspace)
    await one.prompt(session, "say after")
    await turn_end(other, session)
    assert [u["content"]["text"] for u in conversation(other.of(session))] == ["say after", "after"]


async def test_a_client_elsewhere_is_told_what_it_missed(dragoman: Start, workspace: Path) -> None:
    one, other = await started(dragoman), await started(dragoman, **SEQ)
    session = await one.new_session(workspace)
    await one.prompt(session, "say one\nsay two")
    journal = read_journal(one.home, session)
    position = next(e.seq for e in journal if e.tag == "U")
    await resume(other, session, workspace, after=position)
    await other.text(session, "two")
    assert [u["content"]["text"] for u in by_agent(other.of(session))] == ["two"]


async def test_the_session_outlives_the_client_of_its_owner(dragoman: Start, workspace: Path) -> None:
    one, other = await two(dragoman)
    session = await one.new_session(workspace)
    await load(other, session, workspace)
    one.leave()
    await one.ended()
    assert (await other.prompt(session, "say still here")).texts == ["still here"]


async def test_a_session_whose_owner_left_is_taken_over(dragoman: Start, workspace: Path) -> None:
    one, other = await two(dragoman)
    session = await one.new_session(workspace)
    await one.prompt(session, "say before")
    one.leave()
    await one.wait_exit()
    loaded = await load(other, session, workspace)
    assert (loaded.texts, loaded.facts["revived"]) == (["before"], "resume")
    assert (await other.prompt(session, "say after")).texts == ["after"]


async def test_a_session_whose_owner_was_killed_is_taken_over_with_its_turn_ended(
    dragoman: Start, home: Path, workspace: Path
) -> None:
    one, other = await two(dragoman)
    session = await one.new_session(workspace)
    blocks = [{"type": "text", "text": "toolopen a\nsleep-until-cancel"}]
    one.start_request("session/prompt", {"sessionId": session, "prompt": blocks})
    await one.text(session, "sleeping")
    await one.kill()
    loaded = await load(other, session, workspace)
    assert [(u["toolCallId"], u["status"]) for u in loaded.replay if "toolCallId" in u] == [
        ("a", "in_progress"),
        ("a", "failed"),
    ]
    assert "was interrupted" in records(home, session, "turn_ended")[-1]["error"]["message"]
    assert (await other.prompt(session, "say after")).texts == ["after"]


async def test_a_watcher_whose_owner_is_killed_is_told_and_comes_back_with_its_next_load(
    dragoman: Start, workspace: Path
) -> None:
    one, other = await two(dragoman)
    session = await one.new_session(workspace)
    await load(other, session, workspace)
    turn = other.start_prompt(session, "sleep-until-cancel")
    await one.text(session, "sleeping")
    await one.kill()
    assert (await turn).error
    await other.text(session, "sleeping")  # also if it was only stored by then
    loaded = await load(other, session, workspace)
    assert loaded.texts == ["sleeping"]
    assert (await other.prompt(session, "say again")).texts[-1] == "again"


async def test_a_watcher_whose_owner_is_killed_may_simply_prompt_again(
    dragoman: Start, home: Path, workspace: Path
) -> None:
    one, other = await two(dragoman)
    session = await one.new_session(workspace)
    await one.prompt(session, "say before")
    await load(other, session, workspace)
    await one.kill()
    await other.logged("agent ended")
    turn = await other.prompt(session, "say again")
    assert turn.texts[-1:] == ["again"], turn.response
    texts = [
        e.body["params"]["update"]["content"]["text"] for e in read_journal(home, session) if e.tag == "U"
    ]
    assert texts == ["before", "again"]
    assert [each["rung"] for each in records(home, session, "revived")] == ["resume"]


async def test_of_two_processes_that_race_for_a_session_one_owns_it_and_both_work(
    dragoman: Start, home: Path, workspace: Path
) -> None:
    first = await started(dragoman)
    session = await first.new_session(workspace)
    await first.prompt(session, "say before")
    await first.kill()
    one, other = await two(dragoman)
    loads = await asyncio.gather(load(one, session, workspace), load(other, session, workspace))
    assert [loaded.texts for loaded in loads] == [["before"], ["before"]]
    assert sorted(loaded.facts["revived"] for loaded in loads) in (["live", "resume"], ["resume", "resume"])
    await one.prompt(session, "say one")
    await turn_end(other, session)
    await other.prompt(session, "say two")
    await turn_end(one, session)
    assert by_agent(one.of(session)) == by_agent(other.of(session))
    texts = [
        e.body["params"]["update"]["content"]["text"] for e in read_journal(home, session) if e.tag == "U"
    ]
    assert texts == ["before", "one", "two"]


async def test_two_clients_of_one_process_that_race_for_an_interrupted_session_share_it(
    dragoman: Start, home: Path, workspace: Path
) -> None:
    first = await started(dragoman)
    session = await first.new_session(workspace)
    blocks = [{"type": "text", "text": "toolopen a\nsleep-until-cancel"}]
    first.start_request("session/prompt", {"sessionId": session, "prompt": blocks})
    await first.text(session, "sleeping")
    await first.kill()
    port = free_port()
    gateway = await dragoman("acp", "scripted", "--port", str(port), agents=AGENTS)
    clients = [await gateway.connect(port) for _ in range(3)]
    for client in clients:
        await client.initialize()
    loads = await asyncio.gather(*(load(client, session, workspace) for client in clients))
    assert [[u.get("status") for u in loaded.replay if "toolCallId" in u] for loaded in loads] == [
        ["in_progress", "failed"]
    ] * 3
    for number, client in enumerate(clients):
        assert (await client.prompt(session, f"say {number}")).texts[-1] == str(number)
        for other in clients:
            if other is not client:
                await turn_end(other, session)
    assert len(records(home, session, "revived")) == 1
    assert len(records(home, session, "turn_ended")) == 4


async def test_two_watchers_whose_owner_is_killed_go_on_together(
    dragoman: Start, home: Path, workspace: Path
) -> None:
    one, other = await two(dragoman)
    third = await started(dragoman)
    session = await one.new_session(workspace)
    for watcher in (other, third):
        await load(watcher, session, workspace)
    await one.kill()
    for watcher in (other, third):
        await watcher.logged("agent ended")
    assert (await other.prompt(session, "say from two")).texts[-1:] == ["from two"]
    assert (await third.prompt(session, "say from three")).texts[-1:] == ["from three"]
    await turn_end(other, session)
    texts = [
        e.body["params"]["update"]["content"]["text"] for e in read_journal(home, session) if e.tag == "U"
    ]
    assert texts == ["from two", "from three"]


async def test_a_watcher_that_leaves_does_not_answer_the_question(dragoman: Start, workspace: Path) -> None:
    one, other = await two(dragoman)
    session = await one.new_session(workspace)
    turn = one.start_prompt(session, "permission")
    mine = await one.next_message(is_request(PERMISSION))
    await load(other, session, workspace)
    await other.next_message(is_request(PERMISSION))
    other.leave()
    await other.wait_exit()
    one.reply(mine, ALLOW)
    assert (await turn).report("permission") == {"result": ALLOW}


async def test_a_watcher_that_loads_again_is_asked_again(dragoman: Start, workspace: Path) -> None:
    one, other = await two(dragoman)
    session = await one.new_session(workspace)
    turn = one.start_prompt(session, "permission")
    await one.next_message(is_request(PERMISSION))
    for _ in range(2):
        await load(other, session, workspace)
        question = await other.next_message(is_request(PERMISSION))
    other.reply(question, ALLOW)
    assert (await turn).report("permission") == {"result": ALLOW}


async def test_a_session_that_is_live_elsewhere_cannot_be_deleted_from_here(
    dragoman: Start, workspace: Path
) -> None:
    one, other = await two(dragoman)
    session = await one.new_session(workspace)
    with pytest.raises(RpcFailure) as failure:
        await other.request("session/delete", {"sessionId": session})
    assert failure.value.data["reason"] == "session_held"
    assert (await one.prompt(session, "say alive")).texts == ["alive"]


async def test_closing_elsewhere_ends_the_session_for_its_owner_too(dragoman: Start, workspace: Path) -> None:
    one, other = await two(dragoman)
    session = await one.new_session(workspace)
    await one.prompt(session, "say before")
    await load(other, session, workspace)
    await other.request("session/close", {"sessionId": session})
    facts = (await entry(one, session))["_meta"]["dragoman"]
    assert (facts["live"], facts["state"]) == (False, "closed")
    assert (await load(one, session, workspace)).texts == ["before"]


async def test_a_question_that_the_owners_rules_left_to_a_user_is_not_decided_by_the_other_process(
    dragoman: Start, workspace: Path
) -> None:
    """The other process does not know who sent the prompt, nor what the agent said about the call before."""
    rules = [
        {"name": "ask", "decision": "ask", "kind": ["read"], "prompted_by": ["local"]},
        {"name": "reading", "decision": "allow", "kind": ["read"]},
    ]
    one, other = [await dragoman(agents=AGENTS, policy={"rules": rules}) for _ in range(2)]
    for gateway in (one, other):
        await gateway.initialize()
    session = await one.new_session(workspace)
    await load(other, session, workspace)
    asked = {"toolCall": {"toolCallId": "c1", "kind": "read", "title": "Read a file"}}
    turn = one.start_prompt(session, f"permission {json.dumps(asked)}")
    await other.next_message(is_request(PERMISSION))
    one.reply(await one.next_message(is_request(PERMISSION)), CANCELLED)
    assert (await turn).report("permission") == {"result": CANCELLED}
