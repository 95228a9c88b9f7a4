"""MCP servers of the configuration: which sessions get them, and in which form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.agents.agent_log import AgentLog
from support.gateway_process import Start, agent
from support.session_client import RESUME, load, resumable_agent

HTTP = '{"mcpCapabilities": {"http": true}}'
FILES = {"command": ["files-server", "--root", "/x"], "env": {"A": "1"}}
AS_SENT = {
    "name": "files",
    "command": "files-server",
    "args": ["--root", "/x"],
    "env": [{"name": "A", "value": "1"}],
}


def servers(heard: AgentLog, method: str = "session/new") -> list[list[dict[str, Any]]]:
    return [params["mcpServers"] for params in heard.params(method)]


async def test_a_session_gets_the_configured_servers_beside_the_clients(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    agents = {"scripted": agent("--caps", HTTP, *heard.flags)}
    remote = {
        "url": "https://mcp.example/",
        "headers": {"X-Team": "a"},
        "secrets": {"Authorization": "env:KEY"},
    }
    env = {"KEY": "Bearer s3cret-value"}
    gateway = await dragoman(agents=agents, mcp={"files": FILES, "team": remote}, env=env)
    await gateway.initialize()
    own = {"name": "own", "command": "/bin/own", "args": [], "env": []}
    await gateway.new_session(workspace, mcpServers=[own])
    headers = [{"name": "X-Team", "value": "a"}, {"name": "Authorization", "value": "Bearer s3cret-value"}]
    team = {"type": "http", "name": "team", "url": "https://mcp.example/", "headers": headers}
    assert servers(heard) == [[own, AS_SENT, team]]


async def test_of_two_servers_with_one_name_the_clients_is_taken(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    gateway = await dragoman(agents={"scripted": agent(*heard.flags)}, mcp={"files": FILES})
    await gateway.initialize()
    own = {"name": "files", "command": "/bin/own", "args": [], "env": []}
    await gateway.new_session(workspace, mcpServers=[own])
    assert servers(heard) == [[own]]


async def test_a_server_is_for_the_agents_and_folders_that_it_names(
    dragoman: Start, workspace: Path, tmp_path: Path
) -> None:
    logs = {name: AgentLog(tmp_path / name) for name in ("one", "two")}
    mcp = {
        "for-two": {**FILES, "agents": ["two"]},
        "for-here": {**FILES, "workspaces": [str(workspace)]},
        "off": {**FILES, "enabled": False},
    }
    gateway = await dragoman("acp", agents={name: agent(*log.flags) for name, log in logs.items()}, mcp=mcp)
    await gateway.initialize()
    link = tmp_path / "link"
    link.symlink_to(workspace)
    for name in logs:
        for folder in (workspace, link, tmp_path):
            await gateway.new_session(folder, _meta={"dragoman": {"agent": name}})
    named = {name: [[each["name"] for each in given] for given in servers(log)] for name, log in logs.items()}
    assert named["one"] == [["for-here"], ["for-here"], []]
    assert named["two"] == [["for-two", "for-here"], ["for-two", "for-here"], ["for-two"]]


async def test_a_server_that_the_agent_cannot_reach_is_left_out_and_said(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    mcp = {"far": {"url": "https://mcp.example/", "transport": "sse"}}
    gateway = await dragoman(agents={"scripted": agent("--caps", HTTP, *heard.flags)}, mcp=mcp)
    await gateway.initialize()
    await gateway.new_session(workspace)
    assert servers(heard) == [[]]
    assert "left out the MCP server far: the agent does not support sse servers" in gateway.stderr


async def test_a_secret_that_cannot_be_read_is_an_error_that_names_it(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    mcp = {"files": {**FILES, "secrets": {"TOKEN": "env:NOT_THERE"}}}
    gateway = await dragoman(agents={"scripted": agent(*heard.flags)}, mcp=mcp)
    await gateway.initialize()
    response = await gateway.request_raw("session/new", {"cwd": str(workspace), "mcpServers": []})
    assert "The MCP server files lacks a secret" in response["error"]["message"]
    assert "NOT_THERE, which is not set" in response["error"]["message"]
    assert not servers(heard)


async def test_a_session_that_comes_back_has_them_too(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    agents = {"scripted": resumable_agent(*heard.flags, caps=RESUME)}
    first = await dragoman(agents=agents, mcp={"files": FILES})
    await first.initialize()
    session = await first.new_session(workspace)
    await first.prompt(session, "say before")
    first.leave()
    await first.wait_exit()
    second = await dragoman(agents=agents, mcp={"files": FILES})
    await second.initialize()
    await load(second, session, workspace)
    assert servers(heard, "session/resume") == [[AS_SENT]]


async def test_a_fork_has_them_too(dragoman: Start, workspace: Path, heard: AgentLog) -> None:
    caps = '{"sessionCapabilities": {"fork": {}}}'
    gateway = await dragoman(agents={"scripted": agent("--caps", caps, *heard.flags)}, mcp={"files": FILES})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    forked = await gateway.request_raw(
        "session/fork", {"sessionId": session, "cwd": str(workspace), "mcpServers": []}
    )
    assert "result" in forked, forked
    assert servers(heard, "session/fork") == [[AS_SENT]]
