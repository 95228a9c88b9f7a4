"""MCP servers of a session."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from support.agents.builtin_process import Builtin, calls, said, shown, updates
from support.agents.fake_llm import FakeLlm, call, text
from support.waiting import until

SERVER = Path(__file__).parents[1] / "support" / "agents" / "mcp_server.py"
STDIO: dict[str, Any] = {
    "name": "calc",
    "command": sys.executable,
    "args": [str(SERVER)],
    "env": [{"name": "FLAVOUR", "value": "vanilla"}],
}


@asynccontextmanager
async def network_server(transport: str) -> AsyncIterator[int]:
    """The same server over HTTP, on a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    words = [sys.executable, str(SERVER), transport, str(port)]
    server = await asyncio.create_subprocess_exec(*words, stderr=asyncio.subprocess.DEVNULL)
    try:
        await until(lambda: _answers(port), timeout=30)
        yield port
    finally:
        server.kill()
        await server.wait()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def test_tools_of_a_server_are_named_and_asked_about(
    openai: Builtin, llm: FakeLlm, workspace: Path
) -> None:
    llm.tell(
        call("mcp__calc__add", {"a": 20, "b": 22}),
        call("mcp__calc__environment", {"name": "FLAVOUR"}),
        text("42"),
    )
    session = await openai.new_session(workspace, mcpServers=[STDIO])
    turn = await openai.prompt(session, "add")
    add, environment = calls(turn)
    assert add["title"] == "calc: add"
    assert (add["status"], shown(add)) == ("completed", "42")
    assert shown(environment) == "vanilla"
    assert len(openai.questions) == 2
    offered = [tool["function"]["name"] for tool in llm.requests[0]["tools"]]
    assert "mcp__calc__add" in offered


async def test_a_server_that_others_wrote_is_used(openai: Builtin, llm: FakeLlm, workspace: Path) -> None:
    clock = {
        "name": "time",
        "command": sys.executable,
        "args": ["-m", "mcp_server_time", "--local-timezone", "UTC"],
        "env": [],
    }
    noon = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    llm.tell(call("mcp__time__convert_time", noon), text("Nine in the evening."))
    session = await openai.new_session(workspace, mcpServers=[clock])
    [converted] = calls(await openai.prompt(session, "noon in Tokyo?"))
    assert (converted["title"], converted["status"]) == ("time: convert_time", "completed")
    assert "T21:00:00+09:00" in shown(converted)
    assert "T21:00:00+09:00" in llm.tool_results()[0]


@pytest.mark.parametrize(
    ("kind", "transport", "path"), [("http", "streamable-http", "mcp"), ("sse", "sse", "sse")]
)
async def test_a_server_on_the_network_is_used(
    openai: Builtin, llm: FakeLlm, workspace: Path, kind: str, transport: str, path: str
) -> None:
    async with network_server(transport) as port:
        url = f"http://127.0.0.1:{port}/{path}"
        server = {"type": kind, "name": "calc", "url": url, "headers": [{"name": "X-Who", "value": "me"}]}
        llm.tell(call("mcp__calc__add", {"a": 1, "b": 2}), text("3"))
        session = await openai.new_session(workspace, mcpServers=[server])
        [add] = calls(await openai.prompt(session, "add"))
        assert (add["title"], add["status"], shown(add)) == ("calc: add", "completed", "3")


async def test_a_server_that_dies_is_survived(openai: Builtin, llm: FakeLlm, workspace: Path) -> None:
    llm.tell(call("mcp__calc__die", {}), text("It died."))
    session = await openai.new_session(workspace, mcpServers=[STDIO])
    turn = await openai.prompt(session, "die")
    assert turn.stop_reason == "end_turn"
    assert calls(turn)[0]["status"] == "failed"
    assert said(turn) == "It died."


async def test_servers_that_fail_are_reported_once(openai: Builtin, llm: FakeLlm, workspace: Path) -> None:
    broken = [
        {"name": "missing", "command": "/no/such/program", "args": [], "env": []},
        {"type": "http", "name": "down", "url": "http://127.0.0.1:9/mcp", "headers": []},
        {"type": "sse", "name": "quiet", "url": "http://127.0.0.1:9/sse", "headers": []},
        STDIO,
    ]
    llm.tell(text("one"), text("two"))
    session = await openai.new_session(workspace, mcpServers=broken)
    first = await openai.prompt(session, "hi")
    thoughts = "".join(each["content"]["text"] for each in updates(first, "agent_thought_chunk"))
    for name in ("missing", "down", "quiet"):
        assert f"'{name}' is not available" in thoughts
    assert said(first) == "one"
    assert not updates(await openai.prompt(session, "again"), "agent_thought_chunk")


async def test_servers_are_listed_without_a_model(agent: Builtin, workspace: Path) -> None:
    session = await agent.new_session(workspace, mcpServers=[STDIO])
    assert "calc: mcp__calc__add" in said(await agent.prompt(session, "/mcp"))
