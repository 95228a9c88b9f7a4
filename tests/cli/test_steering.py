"""`dragoman ps`, `cancel`, `sessions rename` and `sessions set`, beside a process that has the session."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from support.agents.agent_log import AgentLog
from support.command_line import CommandLine
from support.gateway_process import GatewayProcess, Start, agent
from support.rpc_peer import is_request, is_update


@pytest.fixture
def shell(client: GatewayProcess, home: Path, workspace: Path) -> CommandLine:
    """Commands over the state of the gateway that `client` is connected to."""
    return CommandLine(home, workspace)


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("h")


async def run(shell: CommandLine, *arguments: str) -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(shell.run, *arguments)


async def test_sessions_that_wait_for_a_person_come_first(
    shell: CommandLine, client: GatewayProcess, workspace: Path
) -> None:
    idle, busy, asking = [await client.new_session(workspace) for _ in range(3)]
    await client.prompt(idle, "hello")
    client.start_prompt(busy, "say one\nsleep-until-cancel")
    await client.next_message(is_update(busy, "agent_message_chunk"))
    client.start_prompt(asking, "ask")
    await client.next_message(is_request("session/request_permission"))
    shown = json.loads((await run(shell, "ps", "--json")).stdout)
    assert [(row["id"], row["state"]) for row in shown] == [
        (asking, "waiting_for_permission"),
        (busy, "working"),
        (idle, "idle"),
    ]
    assert (shown[2]["turns"], shown[2]["costs"]) == (1, [])
    lines = (await run(shell, "ps")).stdout.splitlines()
    assert lines[0].split() == ["ID", "STATE", "SINCE", "AGENT", "COST", "TITLE"]
    assert "waiting for permission" in lines[1]
    client.cancel(asking)
    client.cancel(busy)


async def test_a_turn_of_another_process_is_cancelled(
    shell: CommandLine, client: GatewayProcess, workspace: Path
) -> None:
    session = await client.new_session(workspace)
    turn = client.start_prompt(session, "say one\nsleep-until-cancel")
    await client.next_message(is_update(session, "agent_message_chunk"))
    done = await run(shell, "cancel", session)
    assert (done.returncode, done.stdout) == (0, f"cancelled the turn of {session}\n"), done.stderr
    assert (await turn).stop_reason == "cancelled"
    assert "no turn is running" in (await run(shell, "cancel", session)).stderr
    assert (await run(shell, "cancel", "dgm_nothere")).returncode == 2


async def test_waiting_prompts_of_another_process_are_listed_edited_and_withdrawn(
    dragoman: Start, home: Path, workspace: Path, tmp_path: Path
) -> None:
    client = await dragoman(agents={"scripted": agent()}, sessions={"queue": 5})
    await client.initialize()
    shell = CommandLine(home, workspace)
    session, go = await client.new_session(workspace), tmp_path / "go"
    running = client.start_prompt(session, f"say one\nwait-file {go}")
    await client.next_message(is_update(session, "agent_message_chunk"))
    first, second = (client.start_prompt(session, f"say {word}\n\x1b[2J") for word in ("two", "three"))
    listed = (await run(shell, "queue", session)).stdout.splitlines()
    assert listed[0].split() == ["PROMPT", "FROM", "TEXT"]
    names = [line.split()[0] for line in listed[1:]]
    assert [line.split()[1:4] for line in listed[1:]] == [["local", "say", "two"], ["local", "say", "three"]]
    assert not any("\x1b" in line for line in listed)
    assert (await run(shell, "queue", session, "edit", names[0], "say changed")).returncode == 0
    assert (await run(shell, "queue", session, "withdraw", names[1])).stdout.endswith(": 1 waiting\n")
    (left,) = json.loads((await run(shell, "queue", session, "--json")).stdout)
    assert (left["edited"], left["prompt"][0]["text"]) == (True, "say changed")
    gone = await run(shell, "queue", session, "withdraw", names[1])
    assert (gone.returncode, "does not wait any more" in gone.stderr) == (2, True)
    assert "takes PROMPT and TEXT" in (await run(shell, "queue", session, "edit", names[0])).stderr
    go.touch()
    await running
    assert (await second).stop_reason == "cancelled"
    assert (await first).texts[-1] == "changed"
    assert "no prompt waits" in (await run(shell, "queue", session)).stderr


async def test_a_session_is_renamed_wherever_it_is(
    shell: CommandLine, client: GatewayProcess, workspace: Path
) -> None:
    session = await client.new_session(workspace)
    await client.prompt(session, "hello")
    done = await run(shell, "sessions", "rename", session, "Fix  the login")
    assert done.returncode == 0, done.stderr
    told = await client.next_message(is_update(session, "session_info_update"))
    assert told["params"]["update"]["title"] == "Fix the login"
    assert (await run(shell, "sessions", "rename", session, " ")).returncode == 2
    (row,) = json.loads((await run(shell, "ps", "--json")).stdout)
    assert row["title"] == "Fix the login"


async def test_options_are_set_and_what_there_is_is_named(
    dragoman: Start, home: Path, workspace: Path, heard: AgentLog
) -> None:
    client = await dragoman(agents={"scripted": agent("--config-options", *heard.flags)})
    await client.initialize()
    session = await client.new_session(workspace)
    await client.prompt(session, "hello")
    shell = CommandLine(home, workspace)
    for given, message in [
        ("colour=red", 'no option "colour"; it has: model'),
        ("model=largo", 'did you mean "large"?; it has: small, large'),
        ("model", 'expected NAME=VALUE, not "model"'),
    ]:
        refused = await run(shell, "sessions", "set", session, given)
        assert (refused.returncode, message in refused.stderr) == (2, True), refused.stderr
    done = await run(shell, "sessions", "set", session, "model=large")
    assert (done.returncode, done.stdout) == (0, f"{session}: model=large\n"), done.stderr
    (told,) = heard.params("session/set_config_option")
    assert (told["configId"], told["value"]) == ("model", "large")


async def test_the_list_is_watched_and_left_with_a_key(
    shell: CommandLine, client: GatewayProcess, workspace: Path
) -> None:
    session = await client.new_session(workspace)
    await client.prompt(session, "say \x1b]0;owned")

    def look() -> tuple[int, str]:
        with shell.terminal("ps", "--watch") as terminal:
            terminal.until(f"> {session[:12]}")
            terminal.type("q")
            return terminal.end(), terminal.raw

    code, raw = await asyncio.to_thread(look)
    assert code == 0
    assert "\x1b]0;" not in raw
