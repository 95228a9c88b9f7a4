"""Leaving: the client goes, the gateway is told to go, or it is killed. Nothing stays behind."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path

import pytest

from support.agents.agent_log import AgentLog
from support.clients.sample_answers import CANCELLED
from support.gateway_process import GatewayProcess, Start, agent, gone, is_alive


@pytest.mark.rule("G-113")
async def test_a_client_that_leaves_ends_the_gateway(dragoman: Start) -> None:
    gateway = await dragoman()
    gateway.eof()
    assert await gateway.wait_exit() == 0
    assert gateway.received == []


@pytest.mark.rule("G-113")
async def test_every_process_ends_when_the_client_leaves(client: GatewayProcess, workspace: Path) -> None:
    for _ in range(3):
        session = await client.new_session(workspace)
        await client.prompt(session, "child\norphan")
    client.eof()
    assert await client.wait_exit() == 0
    await client.no_process_left()


@pytest.mark.rule("G-113", "G-092")
async def test_a_running_turn_is_cancelled_and_answered_when_the_client_leaves(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    gateway = await dragoman(agents={"scripted": agent(*heard.flags)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    turn = gateway.start_prompt(session, "sleep-until-cancel")
    await gateway.text(session, "sleeping")
    gateway.eof()
    assert await gateway.wait_exit() == 0
    assert (await turn).stop_reason == "cancelled"
    assert heard.params("session/cancel") == [{"sessionId": "s1"}]
    assert heard.params("session/close") == [{"sessionId": "s1"}]


@pytest.mark.rule("G-113")
async def test_an_open_question_is_answered_when_the_client_leaves(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    gateway = await dragoman(agents={"scripted": agent(*heard.flags)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    turn = gateway.start_prompt(session, "permission")
    await gateway.next_message("session/request_permission")
    gateway.eof()
    assert await gateway.wait_exit() == 0
    assert (await turn).stop_reason == "cancelled"
    assert CANCELLED in [message.get("result") for message in heard.messages]


@pytest.mark.rule("G-113")
async def test_what_was_sent_before_the_client_left_is_still_done(dragoman: Start, workspace: Path) -> None:
    gateway = await dragoman()
    gateway.start_request("initialize", {"protocolVersion": 1}, id="hello")
    gateway.eof()
    assert await gateway.wait_exit() == 0
    assert (await gateway.response("hello"))["result"]["protocolVersion"] == 1


@pytest.mark.rule("G-113")
async def test_an_agent_that_ignores_everything_is_killed(dragoman: Start, workspace: Path) -> None:
    flags = ("--ignore-eof", "--ignore-term", "--no-cancel-answer")
    gateway = await dragoman(agents={"scripted": agent(*flags)}, limits={"cancel_timeout": 1})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    pid = (await gateway.prompt(session, "pid")).report("pid")
    gateway.start_prompt(session, "ignore-cancel")
    await gateway.text(session, "ignoring")
    gateway.eof()
    await gateway.wait_exit(timeout=40)
    assert not is_alive(pid)
    await gateway.no_process_left()


@pytest.mark.rule("G-115")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
async def test_a_gateway_told_to_end_answers_its_prompts(
    client: GatewayProcess, workspace: Path, name: str
) -> None:
    session = await client.new_session(workspace)
    turn = client.start_prompt(session, "sleep-until-cancel\norphan")
    await client.text(session, "sleeping")
    client.process.send_signal(getattr(signal, name))
    ended = await turn
    assert ended.error and ended.error.code == -32603
    assert ended.error.data["reason"] == "shutdown"
    await client.wait_exit()
    await client.no_process_left()


@pytest.mark.rule("G-113")
@pytest.mark.parametrize("flags", [(), ("--spawn-child",), ("--ignore-eof", "--ignore-term")], ids=str)
async def test_nothing_outlives_a_gateway_that_is_killed(
    dragoman: Start, workspace: Path, flags: tuple[str, ...]
) -> None:
    gateway = await dragoman(agents={"scripted": agent(*flags)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    turn = await gateway.prompt(session, "pid\nchild\norphan")
    pids = [turn.report(name) for name in ("pid", "child", "orphan")]
    gateway.process.kill()
    await gateway.wait_exit()
    await gone(lambda: [pid for pid in pids if is_alive(pid)])
    await gateway.no_process_left()


@pytest.mark.rule("G-113")
async def test_a_client_that_stops_reading_and_leaves_does_not_keep_the_gateway(
    client: GatewayProcess, workspace: Path
) -> None:
    session = await client.new_session(workspace)
    client.pause()
    turn = client.start_prompt(session, "flood 2000 50000")
    client.eof()
    try:
        # Not wait(): that also waits for the pipe, which nobody reads.
        await gone(lambda: client.process.returncode is None, timeout=40)
    finally:
        client.resume()
        await asyncio.gather(turn, return_exceptions=True)
    await client.no_process_left()


@pytest.mark.rule("G-006")
async def test_agents_are_told_to_keep_quiet(client: GatewayProcess, workspace: Path) -> None:
    session = await client.new_session(workspace)
    turn = await client.prompt(session, "env CAI_NO_UPDATE_CHECK")
    assert turn.report("env") == "1"


async def test_agents_get_their_configured_environment(dragoman: Start, workspace: Path) -> None:
    gateway = await dragoman(agents={"scripted": agent(env={"COLOUR": "blue"})}, env={"INHERITED": "yes"})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    turn = await gateway.prompt(session, "env COLOUR\nenv INHERITED")
    assert turn.reports("env") == ["blue", "yes"]
    assert json.dumps(turn.response["result"]) == '{"stopReason": "end_turn"}'
