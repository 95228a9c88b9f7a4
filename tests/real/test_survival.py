"""Real agents that die, gateways that go, conversations that stay, and nothing that is left running."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable
from pathlib import Path

import pytest

from real.agents import RealAgent
from real.client import STARTING, RealGateway, said, tool_status
from real.conftest import Begin
from real.model_server import ModelServer
from support.rpc_peer import Message, Turn
from support.waiting import until

WORD = "tamarind"
AT_ONCE = 10.0
"""Seconds, on a busy machine; an agent that is waited for has thirty."""
ENDLESS = "run: touch ran.txt && tail -f /dev/null"


async def rung(gateway: RealGateway) -> str:
    """How the agent came back."""
    return (await gateway.logged(r'msg="session revived".*rung=(\w+)', STARTING))[1]


def ways_back(real: RealAgent) -> set[str]:
    found = real.does("ways back after a kill")
    assert isinstance(found, set)
    return found


@pytest.mark.behaviour("crash")
async def test_a_killed_agent_comes_back_and_knows_what_was_said(
    begin: Begin, real: RealAgent, workspace: Path, model: ModelServer
) -> None:
    gateway = await begin()
    session = await gateway.open_session(workspace)
    assert (await gateway.prompt(session, f"remember {WORD}")).stop_reason == "end_turn"
    running = gateway.start_prompt(session, "slow")
    await gateway.tick(session)
    gateway.kill_agent()
    broken = await running
    assert broken.error is not None
    model.heard.clear()
    turn = await gateway.prompt(session, "and now?")
    assert turn.stop_reason == "end_turn", turn.response
    assert "You said: and now?" in said(turn.updates)
    assert WORD in model.heard[-1]
    assert WORD not in said(turn.updates)
    assert {await rung(gateway)} <= ways_back(real)


@pytest.mark.behaviour("load")
async def test_another_gateway_loads_the_conversation_and_goes_on(
    begin: Begin, real: RealAgent, workspace: Path, model: ModelServer
) -> None:
    first = await begin()
    session = await first.open_session(workspace)
    await first.prompt(session, f"remember {WORD}")
    await first.stop()
    second = await begin()
    params = {"sessionId": session, "cwd": str(workspace), "mcpServers": []}
    await second.request("session/load", params, STARTING)
    told = second.of(session)
    assert said(told, "user_message_chunk") == f"remember {WORD}"
    assert f"You said: remember {WORD}" in said(told)
    turn = await second.prompt(session, "and now?")
    assert turn.stop_reason == "end_turn", turn.response
    assert "You said: and now?" in said(turn.updates)
    assert WORD in model.heard[-1]
    assert {await rung(second)} <= ways_back(real)


@pytest.mark.behaviour("load")
async def test_a_gateway_that_runs_elsewhere_lets_the_agent_remember(
    begin: Begin, real: RealAgent, workspace: Path, model: ModelServer
) -> None:
    """By the agent's own memory, never by a recap: its process must run in the session's folder for that."""
    first = await begin()
    session = await first.open_session(workspace)
    minute = time.time() // 60
    await first.prompt(session, f"remember {WORD}")
    await first.stop()
    if not real.does("loads a session in the minute of its beginning"):
        await until(lambda: time.time() // 60 > minute, 70)
    second = await begin()
    assert second.home != workspace  # where it runs
    params = {"sessionId": session, "cwd": str(workspace), "mcpServers": []}
    await second.request("session/load", params, STARTING)
    model.heard.clear()
    turn = await second.prompt(session, "and now?")
    assert turn.stop_reason == "end_turn", turn.response
    assert any(WORD in heard for heard in model.heard)  # opencode may ask for a title behind it
    assert await rung(second) in ("resume", "load")


@pytest.mark.behaviour("list", "load")
async def test_a_gateway_that_knows_nothing_finds_the_agents_own_sessions(
    begin: Begin, real: RealAgent, workspace: Path, model: ModelServer, tmp_path: Path
) -> None:
    first = await begin()
    await first.prompt(await first.open_session(workspace), f"remember {WORD}")
    await first.stop()
    empty = tmp_path / "empty"
    empty.mkdir()
    second = await begin(at=empty)
    listed = (await second.request("session/list", {"cwd": str(workspace)}, STARTING))["sessions"]
    assert bool(listed) is real.does("has a list of its sessions")
    if not listed:
        return
    params = {"sessionId": listed[0]["sessionId"], "cwd": str(workspace), "mcpServers": []}
    await second.request("session/load", params, STARTING)
    assert f"remember {WORD}" in said(second.of(params["sessionId"]), "user_message_chunk")
    turn = await second.prompt(params["sessionId"], "and now?")
    assert turn.stop_reason == "end_turn", turn.response
    assert WORD in model.heard[-1]


@pytest.mark.behaviour("list", "resume")
async def test_another_gateway_lists_and_resumes_the_conversation(
    begin: Begin, real: RealAgent, workspace: Path, model: ModelServer
) -> None:
    first = await begin()
    session = await first.open_session(workspace)
    await first.prompt(session, f"remember {WORD}")
    await first.stop()
    second = await begin()
    listed = (await second.request("session/list", {"cwd": str(workspace)}, STARTING))["sessions"]
    (found,) = (each for each in listed if each["sessionId"] == session)
    assert (found["cwd"], bool(found["title"])) == (str(workspace), True)
    params = {"sessionId": session, "cwd": str(workspace), "mcpServers": []}
    await second.request("session/resume", params, STARTING)
    assert not said(second.of(session), "user_message_chunk")
    turn = await second.prompt(session, "and now?")
    assert turn.stop_reason == "end_turn", turn.response
    assert WORD in model.heard[-1]
    assert {await rung(second)} <= ways_back(real)


def endless(gateway: RealGateway) -> bool:
    return any("tail -f" in line for line in gateway.processes().values())


async def running_tool(gateway: RealGateway, workspace: Path) -> tuple[str, Awaitable[Turn], Message]:
    """A session whose shell command does not end by itself."""
    session = await gateway.open_session(workspace)
    running = gateway.start_prompt(session, ENDLESS)
    question = await gateway.question()
    gateway.choose(question, "allow_once")
    await until(lambda: endless(gateway), STARTING)
    return session, running, question


@pytest.mark.behaviour("cancel in a running tool")
async def test_a_cancel_ends_the_command_that_runs(
    begin: Begin, real: RealAgent, workspace: Path, model: ModelServer
) -> None:
    gateway = await begin()
    session, running, question = await running_tool(gateway, workspace)
    gateway.cancel(session)
    async with asyncio.timeout(AT_ONCE):
        turn = await running
    assert turn.stop_reason == "cancelled", turn.response
    assert tool_status(turn, question) == real.does("status of a command that was cancelled")
    await until(lambda: not endless(gateway), AT_ONCE)
    again = await gateway.prompt(session, "and now?")
    assert "You said: and now?" in said(again.updates)
    assert "touch ran.txt" in model.heard[-1]


async def test_no_process_is_left_when_the_client_goes_while_a_tool_runs(
    begin: Begin, workspace: Path
) -> None:
    gateway = await begin()
    await running_tool(gateway, workspace)
    gateway.eof()
    assert await gateway.wait_exit() == 0
    await gateway.no_process_left()


async def test_no_process_is_left_when_the_gateway_is_killed_while_a_tool_runs(
    begin: Begin, workspace: Path
) -> None:
    gateway = await begin()
    await running_tool(gateway, workspace)
    os.kill(gateway.process.pid, signal.SIGKILL)
    await gateway.wait_exit()
    await gateway.no_process_left()
