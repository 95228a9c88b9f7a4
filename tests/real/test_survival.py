"""Real agents that die, gateways that go, conversations that stay, and nothing that is left running."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from real.agents import RealAgent
from real.client import STARTING, RealGateway, said
from real.conftest import Begin
from real.model_server import ModelServer
from support.waiting import until

WORD = "tamarind"
ENDLESS = "run: touch ran.txt && tail -f /dev/null"


async def rung(gateway: RealGateway) -> str:
    """How the agent came back."""
    return (await gateway.logged(r'msg="session revived".*rung=(\w+)', STARTING))[1]


def ways_back(real: RealAgent) -> set[str]:
    found = real.does("ways back after a kill")
    assert isinstance(found, set)
    return found


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


async def test_another_gateway_loads_the_conversation_and_goes_on(
    begin: Begin, workspace: Path, model: ModelServer
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


async def running_tool(gateway: RealGateway, workspace: Path) -> None:
    """A session whose shell command does not end by itself."""
    session = await gateway.open_session(workspace)
    gateway.start_prompt(session, ENDLESS)
    gateway.choose(await gateway.question(), "allow_once")
    await until(lambda: any("tail -f" in line for line in gateway.processes().values()), STARTING)


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
