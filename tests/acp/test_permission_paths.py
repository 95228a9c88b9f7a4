"""The ways that a permission question goes, with the agent's own answers and with ours, which are the default."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from support.clients.sample_answers import CANCELLED
from support.command_line import CommandLine
from support.gateway_process import GatewayProcess, Start
from support.rpc_peer import RpcPeer, is_request
from support.session_client import free_port, load, turn_end

PERMISSION = "session/request_permission"
TOOL = {"toolCallId": "c1", "kind": "execute", "title": "make test", "rawInput": {"command": "make test"}}
ASK = "permission " + json.dumps({"toolCall": TOOL})


@pytest.fixture(params=["agent", "gateway"])
def policy(request: pytest.FixtureRequest) -> dict[str, str]:
    return {"remember": request.param}


@pytest.fixture
def shell(home: Path, workspace: Path) -> CommandLine:
    return CommandLine(home, workspace)


def by_kind(question: dict[str, Any], kind: str) -> dict[str, Any]:
    """The answer of a client that picks the first option of a kind, whatever its id, as acpx does."""
    option = next(option for option in question["options"] if option["kind"] == kind)
    return {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}


async def start(dragoman: Start, policy: dict[str, str], **more: Any) -> GatewayProcess:
    gateway = await dragoman(policy=policy, **more)
    await gateway.initialize()
    return gateway


def heard(option: str) -> dict[str, Any]:
    return {"result": {"outcome": {"outcome": "selected", "optionId": option}}}


@pytest.mark.parametrize(("kind", "told"), [("allow_once", "yes"), ("reject_once", "no")])
async def test_a_client_that_picks_by_kind_is_understood(
    dragoman: Start, policy: dict[str, str], workspace: Path, kind: str, told: str
) -> None:
    gateway = await start(dragoman, policy)
    gateway.on(PERMISSION, lambda question: by_kind(question, kind))
    session = await gateway.new_session(workspace)
    turns = [(await gateway.prompt(session, ASK)).report("permission") for _ in range(2)]
    assert turns == [heard(told)] * 2
    assert len([m for m in gateway.received if m.get("method") == PERMISSION]) == 2


async def test_always_by_kind_is_the_agents_always_or_ours_for_the_session(
    dragoman: Start, policy: dict[str, str], workspace: Path
) -> None:
    gateway = await start(dragoman, policy)
    gateway.on(PERMISSION, lambda question: by_kind(question, "allow_always"))
    ours = policy["remember"] == "gateway"
    session, other = await gateway.new_session(workspace), await gateway.new_session(workspace)
    for where in (session, session, other):
        told = (await gateway.prompt(where, ASK)).report("permission")
        assert told == heard("yes" if ours else "always")
    asked = [m["params"]["sessionId"] for m in gateway.received if m.get("method") == PERMISSION]
    assert asked == ([session, other] if ours else [session, session, other])


async def test_a_cancelled_turn_cancels_its_question(
    dragoman: Start, policy: dict[str, str], workspace: Path
) -> None:
    gateway = await start(dragoman, policy)
    session = await gateway.new_session(workspace)
    turn = gateway.start_prompt(session, ASK)
    await gateway.next_message(is_request(PERMISSION))
    gateway.cancel(session)
    ended = await turn
    assert ended.report("permission") == {"result": CANCELLED}


async def test_no_answer_in_time_is_a_no(dragoman: Start, policy: dict[str, str], workspace: Path) -> None:
    gateway = await start(dragoman, policy, sessions={"question_timeout": 0.2})
    turn = gateway.start_prompt(await gateway.new_session(workspace), ASK)
    await gateway.next_message(is_request(PERMISSION))
    assert (await turn).report("permission") == heard("no")


async def clients(gateway: GatewayProcess, port: int, number: int) -> list[RpcPeer]:
    made = [await gateway.connect(port) for _ in range(number)]
    for client in made:
        await client.initialize()
    return made


async def test_a_question_is_asked_again_after_a_disconnect(
    dragoman: Start, policy: dict[str, str], workspace: Path
) -> None:
    port = free_port()
    gateway = await dragoman("acp", "scripted", "--port", str(port), policy=policy)
    first, second = await clients(gateway, port, 2)
    session = await first.new_session(workspace)
    first.start_prompt(session, f"{ASK}\nsay done")
    before = await first.next_message(is_request(PERMISSION))
    await first.close()
    await load(second, session, workspace)
    again = await second.next_message(is_request(PERMISSION))
    assert again["params"]["options"] == before["params"]["options"]
    second.reply(again, by_kind(again["params"], "allow_once"))
    assert (await turn_end(second, session))["stopReason"] == "end_turn"
    await second.text(session, "done")


async def test_the_first_of_two_clients_answers(
    dragoman: Start, policy: dict[str, str], workspace: Path
) -> None:
    port = free_port()
    gateway = await dragoman("acp", "scripted", "--port", str(port), policy=policy)
    first, second = await clients(gateway, port, 2)
    session = await first.new_session(workspace)
    await load(second, session, workspace)
    turn = first.start_prompt(session, ASK)
    mine = await first.next_message(is_request(PERMISSION))
    theirs = await second.next_message(is_request(PERMISSION))
    second.reply(theirs, by_kind(theirs["params"], "reject_once"))
    assert (await turn).report("permission") == heard("no")
    first.reply(mine, by_kind(mine["params"], "allow_once"))
    assert (await first.prompt(session, "say on")).texts == ["on"], "a late answer changes nothing"


@pytest.mark.parametrize(("approve", "option"), [("all", "yes"), ("none", "no")])
async def test_exec_without_a_terminal_answers_once(
    shell: CommandLine, policy: dict[str, str], approve: str, option: str
) -> None:
    shell.configure(policy=policy)
    done = await asyncio.to_thread(shell.run, "exec", "--approve", approve, ASK)
    assert f'"optionId": "{option}"' in done.stdout.replace('":"', '": "'), done.stdout
    assert not (shell.home / "remembered.json").exists()


async def test_exec_runs_the_built_in_agent(shell: CommandLine, policy: dict[str, str]) -> None:
    shell.configure(policy=policy, agents={"builtin": {"kind": "builtin"}})
    run = ("exec", "-a", "builtin", "--approve")
    refused = await asyncio.to_thread(shell.run, *run, "none", "/run touch made")
    assert not (shell.folder / "made").exists() and refused.returncode != 0
    done = await asyncio.to_thread(shell.run, *run, "all", "/run touch made")
    assert (done.returncode, (shell.folder / "made").exists()) == (0, True)
