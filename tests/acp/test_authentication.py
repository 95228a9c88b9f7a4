"""Logging in to agents, and out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.agents.agent_log import AgentLog
from support.gateway_process import Start, agent
from support.rpc_peer import RpcFailure


@pytest.mark.rule("G-050")
async def test_authenticate_reaches_the_agent_and_opens_it(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    flags = ("--auth", '[{"id": "key", "name": "Key"}]', "--auth-required")
    gateway = await dragoman(agents={"scripted": agent(*flags, *heard.flags, share="all")})
    await gateway.initialize()
    with pytest.raises(RpcFailure) as failure:
        await gateway.new_session(workspace)
    assert failure.value.code == -32000
    assert await gateway.request("authenticate", {"methodId": "key"}) == {}
    assert heard.params("authenticate") == [{"methodId": "key"}]
    assert await gateway.new_session(workspace)


@pytest.mark.rule("G-050")
async def test_an_unknown_authentication_method_is_invalid(dragoman: Start) -> None:
    gateway = await dragoman(agents={"scripted": agent("--auth", '[{"id": "key", "name": "Key"}]')})
    await gateway.initialize()
    with pytest.raises(RpcFailure) as failure:
        await gateway.request("authenticate", {"methodId": "other"})
    assert failure.value.code == -32602


@pytest.mark.parametrize("bound", [("acp", "scripted"), ("acp",)])
@pytest.mark.parametrize("flags", [(), ("--auth", "[]")])
async def test_authenticate_with_an_agent_without_methods_is_nothing_to_do(
    dragoman: Start, bound: tuple[str, ...], flags: tuple[str, ...], heard: AgentLog
) -> None:
    agents = {"scripted": agent(*flags, *heard.flags)}
    gateway = await dragoman(*bound, agents=agents, default_agent="scripted")
    assert (await gateway.initialize())["authMethods"] == []
    assert await gateway.request("authenticate", {"methodId": "none"}) == {}
    assert heard.params("authenticate") == []
    with pytest.raises(RpcFailure) as failure:
        await gateway.request("authenticate", {})
    assert failure.value.code == -32602


@pytest.mark.rule("G-050", "G-034")
async def test_authentication_methods_of_several_agents_keep_apart(dragoman: Start, tmp_path: Path) -> None:
    journals = {name: AgentLog(tmp_path / name) for name in ("one", "two")}
    agents = {
        name: agent("--auth", '[{"id": "key", "name": "Key"}]', *journal.flags)
        for name, journal in journals.items()
    }
    gateway = await dragoman("acp", agents=agents, default_agent="two")
    methods = [method["id"] for method in (await gateway.initialize())["authMethods"]]
    assert "two:key" in methods
    assert "key" not in methods
    await gateway.request("authenticate", {"methodId": "two:key"})
    assert journals["two"].params("authenticate") == [{"methodId": "key"}]
    assert journals["one"].params("authenticate") == []


@pytest.mark.rule("G-051")
async def test_logout_reaches_the_agent(dragoman: Start, workspace: Path, heard: AgentLog) -> None:
    caps = json.dumps({"auth": {"logout": {}}})
    gateway = await dragoman(agents={"scripted": agent("--caps", caps, *heard.flags)})
    await gateway.initialize()
    await gateway.new_session(workspace)
    assert await gateway.request("logout", {}) == {}
    assert "logout" in heard.methods
