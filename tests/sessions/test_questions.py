"""Questions wait for people: over a disconnect, until a time limit, and not over a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.clients.sample_answers import ALLOW, CANCELLED, EVERYTHING, REJECT
from support.gateway_process import GatewayProcess, Start
from support.rpc_peer import RpcPeer, is_request, is_update, text_of
from support.session_client import (
    Watch,
    entry,
    free_port,
    listed,
    load,
    notices,
    resumable_agent,
    resume,
    turn_end,
)
from support.store.journal_reader import read_journal, records

PERMISSION = "session/request_permission"


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
async def listening(dragoman: Start, port: int) -> GatewayProcess:
    return await dragoman("acp", "scripted", "--port", str(port), agents={"scripted": resumable_agent()})


async def asked(
    gateway: GatewayProcess, port: int, workspace: Path, script: str = "permission\nsay done"
) -> str:
    """A session with an open question whose client has gone."""
    client = await gateway.connect(port)
    await client.initialize()
    session = await client.new_session(workspace)
    client.start_prompt(session, script)
    await client.next_message(is_request(PERMISSION))
    await client.close()
    return session


async def newcomer(gateway: GatewayProcess, port: int) -> RpcPeer:
    client = await gateway.connect(port)
    await client.initialize()
    return client


@pytest.mark.rule("G-103", "G-114")
async def test_a_question_survives_the_disconnect_and_is_asked_of_whoever_loads_next(
    listening: GatewayProcess, port: int, workspace: Path
) -> None:
    session = await asked(listening, port, workspace)
    client = await newcomer(listening, port)
    loaded = await load(client, session, workspace)
    assert loaded.facts["state"] == "waiting_for_permission"
    question = await client.next_message(is_request(PERMISSION))
    assert question["params"]["sessionId"] == session
    client.reply(question, ALLOW)
    assert await turn_end(client, session) == {"state": "idle", "stopReason": "end_turn"}
    await client.text(session, "done")


async def test_a_question_is_asked_again_of_whoever_resumes(
    listening: GatewayProcess, port: int, workspace: Path
) -> None:
    session = await asked(listening, port, workspace)
    client = await newcomer(listening, port)
    await resume(client, session, workspace)
    client.reply(await client.next_message(is_request(PERMISSION)), ALLOW)
    assert (await turn_end(client, session))["stopReason"] == "end_turn"


async def test_a_question_is_asked_after_the_answer_to_load(
    listening: GatewayProcess, port: int, workspace: Path
) -> None:
    session = await asked(listening, port, workspace)
    client = await newcomer(listening, port)
    await load(client, session, workspace)
    await client.next_message(is_request(PERMISSION))
    kinds = ["question" if m.get("method") == PERMISSION else "answer" if "result" in m else "" for m in
             client.received]  # fmt: skip
    assert [kind for kind in kinds if kind] == ["answer", "answer", "question"]


async def test_a_question_may_wait_for_several_newcomers(
    listening: GatewayProcess, port: int, workspace: Path
) -> None:
    session = await asked(listening, port, workspace)
    first, second = await newcomer(listening, port), await newcomer(listening, port)
    for client in (first, second):
        await load(client, session, workspace)
    question = await first.next_message(is_request(PERMISSION))
    other = await second.next_message(is_request(PERMISSION))
    first.reply(question, REJECT)
    assert (await second.next_message("$/cancel_request"))["params"] == {"requestId": other["id"]}
    await turn_end(second, session)


async def test_an_elicitation_waits_for_a_client_that_can_answer_it(
    listening: GatewayProcess, port: int, workspace: Path
) -> None:
    client = await listening.connect(port)
    await client.initialize(clientCapabilities=EVERYTHING)
    session = await client.new_session(workspace)
    client.start_prompt(session, "elicit")
    await client.next_message(is_request("elicitation/create"))
    await client.close()
    plain = await newcomer(listening, port)
    await load(plain, session, workspace)
    able = await listening.connect(port)
    await able.initialize(clientCapabilities=EVERYTHING)
    await load(able, session, workspace)
    answer = {"action": "accept", "content": {"name": "Ada"}}
    able.reply(await able.next_message(is_request("elicitation/create")), answer)
    await turn_end(able, session)
    assert not [m for m in plain.received if m.get("method") == "elicitation/create"]
    assert 'elicit {"result": {"action": "accept"' in "".join(
        u["content"]["text"] for u in plain.of(session) if u["sessionUpdate"] == "agent_message_chunk"
    )


async def test_a_waiting_session_says_so_in_the_list(
    listening: GatewayProcess, port: int, workspace: Path
) -> None:
    session = await asked(listening, port, workspace)
    client = await newcomer(listening, port)
    facts = (await listed(client))[0]["_meta"]["dragoman"]
    assert (facts["state"], facts["pending"], facts["live"]) == ("waiting_for_permission", True, True)
    await load(client, session, workspace)
    client.reply(await client.next_message(is_request(PERMISSION)), ALLOW)
    await turn_end(client, session)
    facts = (await listed(client))[0]["_meta"]["dragoman"]
    assert (facts["state"], facts["pending"], facts["live"]) == ("idle", False, True)


async def test_a_question_that_nobody_answers_in_time_is_denied_and_said_so(
    dragoman: Start, workspace: Path
) -> None:
    gateway = await dragoman(sessions={"question_timeout": 0.2})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    turn = await gateway.prompt(session, "permission")
    asked = await gateway.next_message(is_request(PERMISSION))
    assert turn.report("permission") == {"result": REJECT}
    assert "sessions.question_timeout" in notices(gateway, session)[0]
    withdrawn = await gateway.next_message("$/cancel_request")
    assert withdrawn["params"] == {"requestId": asked["id"]}


async def test_a_question_without_an_option_to_deny_is_cancelled_in_time(
    dragoman: Start, workspace: Path
) -> None:
    gateway = await dragoman(sessions={"question_timeout": 0.2})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    only = '{"options": [{"optionId": "yes", "name": "Allow", "kind": "allow_once"}]}'
    turn = await gateway.prompt(session, f"permission {only}")
    assert turn.report("permission") == {"result": CANCELLED}


async def test_a_time_limit_for_questions_holds_while_nobody_is_there(
    dragoman: Start, port: int, workspace: Path
) -> None:
    words = ("acp", "scripted", "--port", str(port))
    gateway = await dragoman(
        *words, agents={"scripted": resumable_agent()}, sessions={"question_timeout": 0.3}
    )
    session = await asked(gateway, port, workspace)
    client = await newcomer(gateway, port)
    await gateway.logged("by=timeout")
    loaded = await load(client, session, workspace)
    if loaded.facts["state"] != "idle":
        await turn_end(client, session)
    assert (await client.prompt(session, "say on")).texts[-1] == "on"  # the end of that turn may come first


async def test_after_a_restart_the_question_is_recorded_as_cancelled(
    dragoman: Start, home: Path, workspace: Path
) -> None:
    agents = {"scripted": resumable_agent()}
    first = await dragoman(agents=agents)
    await first.initialize()
    session = await first.new_session(workspace)
    first.start_prompt(session, "toolopen call-1\npermission")
    await first.next_message(is_request(PERMISSION))
    await first.kill()
    second = await dragoman(agents=agents)
    await second.initialize()
    loaded = await load(second, session, workspace)
    assert loaded.replay[-1]["toolCallId"] == "call-1"
    assert loaded.replay[-1]["status"] == "failed"
    question, decision = (records(home, session, kind)[-1] for kind in ("question", "decision"))
    assert decision["id"] == question["id"]
    assert (decision["outcome"], decision["by"]) == ({"outcome": "cancelled"}, "restart")
    assert records(home, session, "turn_ended")[-1]["error"]["message"]
    assert not [m for m in second.received if m.get("method") == PERMISSION]
    assert (await second.prompt(session, "say again")).texts == ["again"]


@pytest.mark.rule("G-104")
async def test_question_and_decision_are_journaled_in_their_place(
    gateway: GatewayProcess, home: Path, workspace: Path
) -> None:
    gateway.on(PERMISSION, ALLOW)
    session = await gateway.new_session(workspace)
    await gateway.prompt(session, "say before\npermission\nsay after")
    kinds = [
        event.body["dragoman"] if event.tag == "R" else event.body["params"]["update"]["sessionUpdate"]
        for event in read_journal(home, session)
    ]
    kinds = [kind for kind in kinds if kind not in ("session_info_update", "turn_started")]
    assert kinds == [
        "user_message_chunk",
        "agent_message_chunk",
        "tool_call",  # the agent asked without telling of it
        "question",
        "decision",
        "agent_message_chunk",  # the agent's report of the answer
        "agent_message_chunk",
        "tool_call_update",  # nor did it tell of its end
        "turn_ended",
    ]


async def test_cancelling_answers_a_question_that_nobody_watches(
    listening: GatewayProcess, port: int, workspace: Path
) -> None:
    session = await asked(listening, port, workspace)
    client = await newcomer(listening, port)
    await load(client, session, workspace)
    question = await client.next_message(is_request(PERMISSION))
    client.cancel(session)
    assert (await client.next_message("$/cancel_request"))["params"] == {"requestId": question["id"]}
    assert (await turn_end(client, session))["stopReason"] == "cancelled"


async def test_a_question_is_asked_again_over_the_owners_socket(
    gateway: GatewayProcess, watch: Watch, workspace: Path
) -> None:
    session = await gateway.new_session(workspace)
    turn = gateway.start_prompt(session, "permission")
    await gateway.next_message(is_request(PERMISSION))
    for _ in range(3):
        visitor = await watch(gateway)
        await load(visitor, session, workspace)
        await visitor.next_message(is_request(PERMISSION))
        await visitor.close()
    visitor = await watch(gateway)
    await load(visitor, session, workspace)
    visitor.reply(await visitor.next_message(is_request(PERMISSION)), ALLOW)
    assert (await turn).report("permission") == {"result": ALLOW}


@pytest.mark.rule("G-103")
async def test_an_elicitation_that_is_asked_while_nobody_is_there_waits(
    listening: GatewayProcess, port: int, workspace: Path, signal_file: Path
) -> None:
    client = await listening.connect(port)
    await client.initialize(clientCapabilities=EVERYTHING)
    session = await client.new_session(workspace)
    client.start_prompt(session, f"say begun\nwait-file {signal_file}\nelicit\nsay done")
    await client.next_message(is_update(session, "agent_message_chunk"))
    await client.close()
    other = await listening.connect(port)
    await other.initialize(clientCapabilities=EVERYTHING)
    signal_file.touch()
    while (await entry(other, session))["_meta"]["dragoman"]["state"] != "waiting_for_permission":
        pass  # each look is a round trip
    await load(other, session, workspace)
    question = await other.next_message(is_request("elicitation/create"))
    other.reply(question, {"action": "decline"})
    await turn_end(other, session)
    assert 'elicit {"result": {"action": "decline"}}' in [text_of(update) for update in other.of(session)]
