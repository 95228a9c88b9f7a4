"""Commands of claude and codex in terminals of the client: a client that really runs what it is asked to."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from support.gateway_process import GatewayProcess, Start, agent
from support.rpc_peer import PATIENCE, Turn, is_update

SUPPORT = Path(__file__).parents[2] / "support" / "agents"
KINDS = ("claude", "codex")


def native(kind: str, tmp_path: Path) -> dict[str, Any]:
    command = [sys.executable, "-S", "-E", str(SUPPORT / f"scripted_{kind}.py")]
    homes = {"CLAUDE_CONFIG_DIR": str(tmp_path / "claude"), "CODEX_HOME": str(tmp_path / "codex")}
    return {"kind": kind, "command": command, "env": {**homes, "TEST_CWD": str(tmp_path / "workspace")}}


class Terminals:
    """A client's terminals, run as an editor runs them."""

    def __init__(self, client: GatewayProcess) -> None:
        self.asked: list[dict[str, Any]] = []
        self.running: dict[str, asyncio.Task[tuple[int, bytes]]] = {}
        client.on("terminal/create", self.create)

    def create(self, params: dict[str, Any]) -> dict[str, str]:
        self.asked.append(params)
        name = f"term-{len(self.asked)}"
        self.running[name] = asyncio.ensure_future(_run(params))
        return {"terminalId": name}

    async def shown(self, terminal: str) -> tuple[int, str]:
        """Exit code and output, once the terminal's command has ended."""
        async with asyncio.timeout(PATIENCE):
            code, output = await self.running[terminal]
        return code, output.decode()


async def _run(params: dict[str, Any]) -> tuple[int, bytes]:
    process = await asyncio.create_subprocess_exec(
        params["command"], *params["args"], cwd=params["cwd"], stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    return process.returncode or 0, output


async def editor(
    dragoman: Start, kind: str, tmp_path: Path, *options: str, answer: str = "accept", **capabilities: Any
) -> GatewayProcess:
    client = await dragoman("acp", kind, *options, agents={kind: native(kind, tmp_path)})
    await client.initialize(clientCapabilities={"terminal": True, **capabilities})
    option = {"claude": {"accept": "allow", "decline": "reject"}, "codex": {}}[kind].get(answer, answer)
    client.on("session/request_permission", {"outcome": {"outcome": "selected", "optionId": option}})
    return client


def contents(turn: Turn) -> list[Any]:
    """What the tool call showed, each time that it was told."""
    return [each["content"] for each in turn.updates if isinstance(each.get("content"), list)]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_command_runs_in_a_terminal_that_is_linked_to_its_tool_call(
    dragoman: Start, tmp_path: Path, workspace: Path, kind: str
) -> None:
    client = await editor(dragoman, kind, tmp_path)
    terminals = Terminals(client)
    session = await client.new_session(workspace)
    turn = await client.prompt(session, "bash make")
    assert contents(turn)[-1] == [{"type": "terminal", "terminalId": "term-1"}]
    assert "```console" not in str(contents(turn))
    (asked,) = terminals.asked
    assert asked["sessionId"] == session
    assert await terminals.shown("term-1") == (0, {"claude": "ran make", "codex": '"accept"\n'}[kind])


async def test_a_terminal_prints_as_the_command_does_and_exits_with_its_code(
    dragoman: Start, tmp_path: Path, workspace: Path
) -> None:
    client = await editor(dragoman, "codex", tmp_path)
    heard = asyncio.get_running_loop().create_future()

    async def watch(params: dict[str, Any]) -> tuple[int, bytes]:
        process = await asyncio.create_subprocess_exec(
            params["command"], *params["args"], stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        heard.set_result(await process.stdout.readline())
        return await process.wait(), await process.stdout.read()

    running: list[asyncio.Task[tuple[int, bytes]]] = []

    def create(params: dict[str, Any]) -> dict[str, str]:
        running.append(asyncio.ensure_future(watch(params)))
        return {"terminalId": "t"}

    client.on("terminal/create", create)
    session = await client.new_session(workspace)
    gate = tmp_path / "gate"
    turn = client.start_prompt(session, f"stepwise {gate}")
    async with asyncio.timeout(PATIENCE):
        assert await heard == b"first\n"
    gate.touch()
    shown = await turn
    async with asyncio.timeout(PATIENCE):
        assert await running[0] == (3, b"second\n")
    assert contents(shown)[-1] == [{"type": "terminal", "terminalId": "t"}]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_client_that_makes_no_terminal_gets_text(
    dragoman: Start, tmp_path: Path, workspace: Path, kind: str
) -> None:
    client = await editor(dragoman, kind, tmp_path)  # it answers that it does not know the method
    session = await client.new_session(workspace)
    for _ in range(2):
        turn = await client.prompt(session, "bash make")
        assert "```console" in contents(turn)[-1][-1]["content"]["text"]
    asked = [each for each in client.received if each.get("method") == "terminal/create"]
    assert len(asked) == 1


async def test_a_client_that_draws_terminals_is_not_asked_for_one(
    dragoman: Start, tmp_path: Path, workspace: Path
) -> None:
    client = await editor(dragoman, "codex", tmp_path, _meta={"terminal_output": True})
    terminals = Terminals(client)
    turn = await client.prompt(await client.new_session(workspace), "bash make")
    assert not terminals.asked
    last = [each for each in turn.updates if each.get("status") == "completed"][-1]
    assert contents(turn)[-1] == [{"type": "terminal", "terminalId": last["toolCallId"]}]


async def test_a_client_at_a_port_gets_text(dragoman: Start, tmp_path: Path, workspace: Path) -> None:
    gateway = await dragoman("acp", "codex", "--port", "0", agents={"codex": native("codex", tmp_path)})
    port = int((await gateway.logged(r"Listening on \S+:(\d+)"))[1])
    client = await gateway.connect(port)
    await client.initialize(clientCapabilities={"terminal": True})
    client.on("session/request_permission", {"outcome": {"outcome": "selected", "optionId": "accept"}})
    turn = await client.prompt(await client.new_session(workspace), "bash make")
    assert "```console" in contents(turn)[-1][-1]["content"]["text"]


async def test_a_command_that_is_not_allowed_has_no_terminal(
    dragoman: Start, tmp_path: Path, workspace: Path
) -> None:
    client = await editor(dragoman, "claude", tmp_path, answer="decline")
    terminals = Terminals(client)
    turn = await client.prompt(await client.new_session(workspace), "bash make")
    assert not terminals.asked
    assert any(each.get("status") == "failed" for each in turn.updates)


async def test_a_cancelled_command_ends_in_its_terminal_too(
    dragoman: Start, tmp_path: Path, workspace: Path
) -> None:
    client = await editor(dragoman, "codex", tmp_path)
    terminals = Terminals(client)
    session = await client.new_session(workspace)
    turn = client.start_prompt(session, f"stepwise {tmp_path / 'never'}")
    await client.next_message(
        lambda each: is_update(session, "tool_call_update")(each) and "term-1" in str(each)
    )
    client.notify("session/cancel", {"sessionId": session})
    assert (await turn).stop_reason == "cancelled"
    code, output = await terminals.shown("term-1")
    assert code == 130
    assert output == "first\n"


async def test_what_is_loaded_again_is_text(dragoman: Start, tmp_path: Path, workspace: Path) -> None:
    first = await editor(dragoman, "codex", tmp_path)
    Terminals(first)
    session = await first.new_session(workspace)
    await first.prompt(session, "bash make")
    await first.stop()
    second = await editor(dragoman, "codex", tmp_path)
    terminals = Terminals(second)
    await second.request("session/load", {"sessionId": session, "cwd": str(workspace), "mcpServers": []})
    assert not terminals.asked
    last = [each for each in second.of(session) if each.get("status") == "completed"][-1]
    assert last["content"][0]["content"]["text"] == '```console\n"accept"\n```'


async def test_an_agent_that_asks_for_terminals_itself_is_not_mirrored(
    dragoman: Start, workspace: Path
) -> None:
    client = await dragoman("acp", "scripted", agents={"scripted": agent()})
    await client.initialize(clientCapabilities={"terminal": True})
    client.on("terminal/create", {"terminalId": "own"})
    client.on("terminal/wait_for_exit", {"exitCode": 0})
    client.on("terminal/output", {"output": "hi", "truncated": False})
    client.on("terminal/release", {})
    await client.prompt(await client.new_session(workspace), "terminal echo hi")
    (created,) = [each for each in client.received if each.get("method") == "terminal/create"]
    assert created["params"]["command"] == "echo"


async def test_a_session_that_is_not_kept_has_terminals_too(
    dragoman: Start, tmp_path: Path, workspace: Path
) -> None:
    agents = {"codex": native("codex", tmp_path)}
    client = await dragoman("acp", "codex", agents=agents, sessions={"journal": False})
    await client.initialize(clientCapabilities={"terminal": True})
    client.on("session/request_permission", {"outcome": {"outcome": "selected", "optionId": "accept"}})
    terminals = Terminals(client)
    turn = await client.prompt(await client.new_session(workspace), "bash make")
    assert contents(turn)[-1] == [{"type": "terminal", "terminalId": "term-1"}]
    assert (await terminals.shown("term-1"))[0] == 0


async def test_an_editor_has_terminals_in_a_session_that_another_process_has(
    dragoman: Start, tmp_path: Path, workspace: Path
) -> None:
    owner = await editor(dragoman, "codex", tmp_path)
    owner_terminals = Terminals(owner)
    session = await owner.new_session(workspace)
    await owner.prompt(session, "hello")
    client = await editor(dragoman, "codex", tmp_path)
    terminals = Terminals(client)
    await client.request("session/load", {"sessionId": session, "cwd": str(workspace), "mcpServers": []})
    turn = await client.prompt(session, "bash make")
    assert contents(turn)[-1] == [{"type": "terminal", "terminalId": "term-1"}]
    assert await terminals.shown("term-1") == (0, '"accept"\n')
    for terminal in owner_terminals.running:  # the owner's editor looks on, in a terminal of its own
        assert (await owner_terminals.shown(terminal))[0] == 0
