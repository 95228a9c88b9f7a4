"""One prompt at a time, and the ways in which it can be stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.agents.agent_log import AgentLog
from support.clients.sample_answers import ALLOW, CANCELLED, EVERYTHING
from support.gateway_process import GatewayProcess, Start, agent
from support.rpc_peer import is_request


@pytest.mark.rule("G-090", "G-058")
async def test_a_second_prompt_is_refused_and_the_first_goes_on(
    client: GatewayProcess, workspace: Path
) -> None:
    session = await client.new_session(workspace)
    first = client.start_prompt(session, "sleep-until-cancel")
    await client.text(session, "sleeping")
    second = await client.prompt(session, "say no")
    assert second.error and second.error.code == -32600
    assert second.error.data["reason"] == "prompt_in_flight"
    client.cancel(session)
    assert (await first).stop_reason == "cancelled"
    assert (await client.prompt(session, "say next")).texts == ["next"]


@pytest.mark.rule("G-090", "G-084")
async def test_prompts_of_two_sessions_run_at_once(
    client: GatewayProcess, workspace: Path, tmp_path: Path
) -> None:
    one, two = await client.new_session(workspace), await client.new_session(workspace)
    first = client.start_prompt(one, f"wait-file {tmp_path / 'go'}")
    second = await client.prompt(two, f"touch {tmp_path / 'go'}")
    assert second.stop_reason == "end_turn"
    assert (await first).stop_reason == "end_turn"


@pytest.mark.rule("G-059", "G-043", "G-092")
async def test_a_cancel_reaches_the_agent_and_ends_the_turn(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    gateway = await dragoman(agents={"scripted": agent(*heard.flags)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    turn = gateway.start_prompt(session, "sleep-until-cancel\nsay last words")
    await gateway.text(session, "sleeping")
    gateway.cancel(session)
    ended = await turn
    assert ended.stop_reason == "cancelled"
    assert ended.texts == ["sleeping", "last words"]
    assert heard.params("session/cancel") == [{"sessionId": "s1"}]


@pytest.mark.rule("G-091")
async def test_a_cancel_answers_the_open_question_at_once_and_withdraws_it(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    gateway = await dragoman(agents={"scripted": agent(*heard.flags)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    turn = gateway.start_prompt(session, "permission")
    asked = await gateway.next_message("session/request_permission")
    gateway.cancel(session)
    ended = await turn
    assert ended.stop_reason == "cancelled"
    assert ended.report("permission") == {"result": CANCELLED}
    withdrawn = await gateway.next_message("$/cancel_request")
    assert withdrawn["params"]["requestId"] == asked["id"]
    methods = heard.methods
    assert methods.index("session/cancel") < methods.index("response")


@pytest.mark.rule("G-091", "G-013")
async def test_an_answer_that_comes_after_the_cancel_is_dropped(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    gateway = await dragoman(agents={"scripted": agent(*heard.flags)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    turn = gateway.start_prompt(session, "permission")
    asked = await gateway.next_message("session/request_permission")
    gateway.cancel(session)
    gateway.reply(asked, ALLOW)
    assert (await turn).report("permission") == {"result": CANCELLED}
    await gateway.prompt(session, "say settled")
    assert [m for m in heard.messages if m.get("result") == ALLOW] == []
    assert heard.methods.count("response") == 1


@pytest.mark.rule("G-091")
async def test_an_answer_that_came_before_the_cancel_counts(client: GatewayProcess, workspace: Path) -> None:
    session = await client.new_session(workspace)
    turn = client.start_prompt(session, "permission\nsleep-until-cancel")
    asked = await client.next_message("session/request_permission")
    client.reply(asked, ALLOW)
    client.cancel(session)
    assert (await turn).report("permission") == {"result": ALLOW}


@pytest.mark.rule("G-091")
async def test_a_cancel_answers_every_question_of_its_session_and_no_other(
    client: GatewayProcess, workspace: Path
) -> None:
    mine, other = await client.new_session(workspace), await client.new_session(workspace)
    turn = client.start_prompt(mine, "permission-nowait\npermission-nowait\npermission")
    asked_mine = [await client.next_message("session/request_permission") for _ in range(3)]
    kept = client.start_prompt(other, "permission")
    asked_other = await client.next_message("session/request_permission")
    client.cancel(mine)
    assert (await turn).stop_reason == "cancelled"
    client.reply(asked_other, ALLOW)
    assert (await kept).report("permission") == {"result": ALLOW}
    withdrawn = [m["params"]["requestId"] for m in client.received if m.get("method") == "$/cancel_request"]
    assert sorted(withdrawn) == sorted(request["id"] for request in asked_mine)


@pytest.mark.rule("G-091")
async def test_a_cancel_answers_an_open_elicitation(dragoman: Start, workspace: Path) -> None:
    gateway = await dragoman()
    await gateway.initialize(clientCapabilities=EVERYTHING)
    session = await gateway.new_session(workspace)
    turn = gateway.start_prompt(session, "elicit")
    asked = await gateway.next_message("elicitation/create")
    gateway.cancel(session)
    ended = await turn
    assert ended.report("elicit") == {"result": {"action": "cancel"}}
    assert (await gateway.next_message("$/cancel_request"))["params"]["requestId"] == asked["id"]


@pytest.mark.rule("G-091")
async def test_a_cancel_leaves_file_requests_to_the_agent(dragoman: Start, workspace: Path) -> None:
    gateway = await dragoman()
    await gateway.initialize(clientCapabilities=EVERYTHING)
    session = await gateway.new_session(workspace)
    turn = gateway.start_prompt(session, f"fsread {workspace}/a")
    asked = await gateway.next_message("fs/read_text_file")
    gateway.cancel(session)
    gateway.reply(asked, {"content": "still"})
    assert (await turn).report("fsread") == {"result": {"content": "still"}}


@pytest.mark.rule("G-092")
async def test_updates_flow_until_the_cancelled_turn_ends(
    client: GatewayProcess, workspace: Path, tmp_path: Path
) -> None:
    session = await client.new_session(workspace)
    turn = client.start_prompt(session, f"cancel-then-release {tmp_path / 'go'}")
    await client.text(session, "sleeping")
    client.cancel(session)
    (tmp_path / "go").touch()
    ended = await turn
    assert (ended.texts[-1], ended.stop_reason) == ("after the cancel", "cancelled")


@pytest.mark.rule("G-092")
async def test_an_error_after_a_cancel_is_a_cancelled_turn(client: GatewayProcess, workspace: Path) -> None:
    session = await client.new_session(workspace)
    turn = client.start_prompt(session, "cancel-error")
    await client.text(session, "sleeping")
    client.cancel(session)
    assert (await turn).stop_reason == "cancelled"


@pytest.mark.rule("G-092")
async def test_a_turn_that_was_finished_anyway_keeps_its_reason(
    client: GatewayProcess, workspace: Path
) -> None:
    session = await client.new_session(workspace)
    turn = client.start_prompt(session, "cancel-endturn")
    await client.text(session, "sleeping")
    client.cancel(session)
    assert (await turn).stop_reason == "end_turn"


@pytest.mark.rule("G-093")
@pytest.mark.parametrize("script", ["ignore-cancel", "hang"])
async def test_an_agent_that_ignores_the_cancel_is_answered_for(
    dragoman: Start, workspace: Path, script: str
) -> None:
    gateway = await dragoman(limits={"cancel_timeout": 1})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    turn = gateway.start_prompt(session, script)
    await gateway.text(session, {"ignore-cancel": "ignoring", "hang": "hanging"}[script])
    gateway.cancel(session)
    assert (await turn).stop_reason == "cancelled"
    gateway.end_agents()


@pytest.mark.rule("G-093")
async def test_output_of_a_turn_that_was_given_up_does_not_leak_into_the_next(
    dragoman: Start, workspace: Path, tmp_path: Path
) -> None:
    gateway = await dragoman(agents={"scripted": agent("--no-cancel-answer")}, limits={"cancel_timeout": 1})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    given_up = gateway.start_prompt(session, f"say started\nwait-file {tmp_path / 'go'}\nsay stale")
    await gateway.text(session, "started")
    gateway.cancel(session)
    assert (await given_up).stop_reason == "cancelled"
    (tmp_path / "go").touch()
    turn = await gateway.prompt(session, "say fresh")
    assert turn.texts == ["fresh"]
    assert turn.stop_reason == "end_turn"


@pytest.mark.rule("G-094")
async def test_a_cancel_without_a_turn_is_silent(client: GatewayProcess, workspace: Path) -> None:
    session = await client.new_session(workspace)
    known = len(client.received)
    client.cancel(session)
    client.cancel("dgm_nobody")
    client.notify("session/cancel", {})
    turn = await client.prompt(session, "say on")
    assert turn.texts == ["on"]
    assert turn.stop_reason == "end_turn"
    assert len(client.received) == known + 2


@pytest.mark.rule("G-015")
async def test_cancel_as_a_request_is_done_and_answered(client: GatewayProcess, workspace: Path) -> None:
    session = await client.new_session(workspace)
    turn = client.start_prompt(session, "sleep-until-cancel")
    await client.text(session, "sleeping")
    assert await client.request("session/cancel", {"sessionId": session}) == {}
    assert (await turn).stop_reason == "cancelled"
    assert await client.request("session/cancel", {"sessionId": "dgm_nobody"}) == {}


def answers_to(client: GatewayProcess, id: object) -> list[dict[str, object]]:
    return [m for m in client.received if "method" not in m and m.get("id") == id]


@pytest.mark.rule("G-095", "G-067")
@pytest.mark.parametrize("flags", [(), ("--honour-cancel-request",)], ids=["unsupported", "supported"])
async def test_cancelling_the_prompt_request_ends_it_once(
    dragoman: Start, workspace: Path, flags: tuple[str, ...]
) -> None:
    gateway = await dragoman(agents={"scripted": agent(*flags)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "sleep-until-cancel"}]}
    id = gateway.start_request("session/prompt", prompt, id="p")
    await gateway.text(session, "sleeping")
    gateway.notify("$/cancel_request", {"requestId": "p"})
    answer = await gateway.response(id)
    cancelled = answer.get("result", {}).get("stopReason") == "cancelled"
    assert cancelled or answer["error"]["code"] == -32800
    await gateway.prompt(session, "say next")
    assert len(answers_to(gateway, "p")) == 1


@pytest.mark.rule("G-067")
async def test_cancelling_a_request_reaches_the_agent_with_its_own_id(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    gateway = await dragoman(agents={"scripted": agent("--new-hang", *heard.flags)})
    await gateway.initialize()
    params = {"cwd": str(workspace), "mcpServers": []}
    id = gateway.start_request("session/new", params, id="wanted")
    await heard.until_method("session/new")
    gateway.notify("$/cancel_request", {"requestId": id})
    told = await heard.until_method("$/cancel_request")
    sent = next(m for m in heard.messages if m.get("method") == "session/new")
    assert told["requestId"] == sent["id"]


@pytest.mark.rule("G-067")
async def test_cancelling_a_request_that_does_not_exist_does_nothing(
    client: GatewayProcess, workspace: Path
) -> None:
    session = await client.new_session(workspace)
    known = len(client.received)
    for id in (4711, "x", None):
        client.notify("$/cancel_request", {"requestId": id})
    client.notify("$/cancel_request", {})
    assert (await client.prompt(session, "say on")).texts == ["on"]
    assert len(client.received) == known + 2


@pytest.mark.rule("G-067", "G-096")
async def test_an_agent_that_withdraws_its_question_is_heard_by_the_client(
    client: GatewayProcess, workspace: Path, tmp_path: Path
) -> None:
    session = await client.new_session(workspace)
    turn = client.start_prompt(session, f"cancel-request {tmp_path / 'seen'}")
    asked = await client.next_message(is_request("session/request_permission"))
    (tmp_path / "seen").touch()
    withdrawn = await client.next_message("$/cancel_request")
    assert withdrawn["params"]["requestId"] == asked["id"]
    client.reply_error(asked, -32800, "Request cancelled")
    assert (await turn).report("cancel-request") == {"result": CANCELLED}


@pytest.mark.rule("G-067", "G-096")
async def test_a_question_that_is_withdrawn_at_once_is_answered_once(
    client: GatewayProcess, workspace: Path
) -> None:
    """Whether the client ever sees it is the gateway's choice; if so, it sees the end of it too."""
    session = await client.new_session(workspace)
    turn = await client.prompt(session, "cancel-request")
    assert turn.report("cancel-request") == {"result": CANCELLED}
    asked = [m["id"] for m in client.received if m.get("method") == "session/request_permission"]
    withdrawn = [m["params"]["requestId"] for m in client.received if m.get("method") == "$/cancel_request"]
    assert asked == withdrawn
