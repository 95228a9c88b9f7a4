"""What a client is told when it says hello, and what its agent hears."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.agents.agent_log import AgentLog
from support.clients.sample_answers import EVERYTHING
from support.gateway_process import GatewayProcess, Start, agent
from support.rpc_peer import RpcFailure

GATEWAY_PROVIDES = ("list", "close", "delete")


@pytest.mark.rule("G-031")
async def test_version_one_is_answered_with_version_one(dragoman: Start) -> None:
    gateway = await dragoman()
    assert (await gateway.initialize())["protocolVersion"] == 1


@pytest.mark.rule("G-031")
@pytest.mark.parametrize("version", [0, 65535])
async def test_any_other_version_is_answered_with_our_own(dragoman: Start, version: int) -> None:
    gateway = await dragoman()
    assert (await gateway.initialize(protocolVersion=version))["protocolVersion"] == 1


@pytest.mark.rule("G-031")
@pytest.mark.parametrize("version", ["1", None, 1.5, -1, 65536, True, [1]])
async def test_a_version_that_is_no_small_integer_is_invalid(dragoman: Start, version: Any) -> None:
    gateway = await dragoman()
    with pytest.raises(RpcFailure) as failure:
        await gateway.initialize(protocolVersion=version)
    assert failure.value.code == -32602
    assert (await gateway.initialize())["protocolVersion"] == 1


@pytest.mark.rule("G-031")
async def test_a_missing_version_is_invalid(dragoman: Start) -> None:
    gateway = await dragoman()
    response = await gateway.request_raw("initialize", {"clientCapabilities": {}})
    assert response["error"]["code"] == -32602


@pytest.mark.rule("G-030")
@pytest.mark.parametrize(
    "method", ["session/new", "session/prompt", "session/list", "session/load", "authenticate", "logout"]
)
async def test_nothing_is_served_before_initialize(dragoman: Start, workspace: Path, method: str) -> None:
    gateway = await dragoman()
    params = {"cwd": str(workspace), "mcpServers": [], "sessionId": "x", "prompt": [], "methodId": "x"}
    response = await gateway.request_raw(method, params)
    assert response["error"]["code"] == -32600
    assert response["error"]["data"]["reason"] == "not_initialized"


@pytest.mark.rule("G-030")
async def test_a_second_initialize_is_answered_like_the_first(dragoman: Start, workspace: Path) -> None:
    gateway = await dragoman()
    first = await gateway.initialize()
    session = await gateway.new_session(workspace)
    assert await gateway.initialize() == first
    assert (await gateway.prompt(session, "say still here")).texts == ["still here"]


@pytest.mark.rule("G-033")
async def test_a_bound_connection_shows_what_the_agent_can_do(dragoman: Start) -> None:
    caps = {
        "promptCapabilities": {"image": True, "embeddedContext": True},
        "mcpCapabilities": {"http": True},
        "sessionCapabilities": {"fork": {}},
        "future": {"depth": [1, None]},
        "_meta": {"vendor": {"n": 1}},
    }
    gateway = await dragoman(agents={"scripted": agent("--caps", json.dumps(caps))})
    shown = (await gateway.initialize())["agentCapabilities"]
    assert shown["promptCapabilities"] == caps["promptCapabilities"]
    assert shown["mcpCapabilities"] == caps["mcpCapabilities"]
    assert shown["future"] == caps["future"]
    assert shown["_meta"]["vendor"] == {"n": 1}
    assert shown["sessionCapabilities"]["fork"] == {}


@pytest.mark.rule("G-033")
async def test_the_gateways_own_session_methods_are_shown_for_every_agent(dragoman: Start) -> None:
    gateway = await dragoman(agents={"scripted": agent("--caps", "{}")})
    shown = (await gateway.initialize())["agentCapabilities"]["sessionCapabilities"]
    assert {name: shown.get(name) for name in GATEWAY_PROVIDES} == {name: {} for name in GATEWAY_PROVIDES}


@pytest.mark.rule("G-033", "G-034")
@pytest.mark.parametrize("arguments", [("acp", "scripted"), ("acp",)], ids=["bound", "unbound"])
async def test_load_and_resume_are_offered_whatever_the_agent_can_do(
    dragoman: Start, arguments: tuple[str, ...]
) -> None:
    gateway = await dragoman(*arguments, agents={"scripted": agent("--caps", "{}")})
    shown = (await gateway.initialize())["agentCapabilities"]
    assert shown["loadSession"] is True
    assert shown["sessionCapabilities"]["resume"] == {}


@pytest.mark.rule("G-033", "G-050")
async def test_a_bound_agents_authentication_methods_are_shown(dragoman: Start) -> None:
    methods = [{"id": "login", "name": "Log in", "description": "with a key"}]
    gateway = await dragoman(agents={"scripted": agent("--auth", json.dumps(methods))})
    assert (await gateway.initialize())["authMethods"] == methods


@pytest.mark.rule("G-032")
async def test_the_agent_is_initialized_with_the_clients_capabilities(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    gateway = await dragoman(agents={"scripted": agent(*heard.flags)})
    caps = {**EVERYTHING, "_meta": {"editor": {"big": 2**60}}}
    await gateway.initialize(clientCapabilities=caps, clientInfo={"name": "test", "version": "9"})
    await gateway.new_session(workspace)
    last = heard.params("initialize")[-1]
    assert last["protocolVersion"] == 1
    assert last["clientCapabilities"]["fs"] == caps["fs"]
    assert last["clientCapabilities"]["terminal"] is True
    assert last["clientCapabilities"]["elicitation"] == caps["elicitation"]
    assert last["clientCapabilities"]["_meta"]["editor"] == {"big": 2**60}


@pytest.mark.rule("G-032")
async def test_the_agent_is_never_told_more_than_the_client_can_do(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    gateway = await dragoman(agents={"scripted": agent(*heard.flags)})
    await gateway.initialize(clientCapabilities={"fs": {"readTextFile": True}})
    await gateway.new_session(workspace)
    for params in heard.params("initialize"):
        told = params["clientCapabilities"]
        assert not told.get("terminal")
        assert not told.get("fs", {}).get("writeTextFile")
        assert not told.get("elicitation")


@pytest.mark.rule("G-034")
async def test_an_unbound_connection_introduces_the_gateway(dragoman: Start) -> None:
    gateway = await dragoman("acp", agents={"one": agent(), "two": agent()})
    answer = await gateway.initialize()
    assert answer["agentInfo"]["name"] == "dragoman"
    for name in GATEWAY_PROVIDES:
        assert answer["agentCapabilities"]["sessionCapabilities"][name] == {}


@pytest.mark.rule("G-034")
async def test_an_unbound_connection_shows_the_default_agents_prompt_capabilities(dragoman: Start) -> None:
    image = agent("--caps", '{"promptCapabilities": {"image": true}}')
    audio = agent("--caps", '{"promptCapabilities": {"audio": true}}')
    gateway = await dragoman("acp", agents={"one": image, "two": audio}, default_agent="one")
    shown = (await gateway.initialize())["agentCapabilities"].get("promptCapabilities", {})
    assert shown.get("image") is True
    assert not shown.get("audio")


@pytest.mark.rule("G-034")
@pytest.mark.parametrize(
    ("logout", "shown"), [({}, {"logout": {}}), (True, {"logout": {}}), (False, None), (None, None)]
)
async def test_an_unbound_connection_shows_whether_the_default_agent_can_log_out(
    dragoman: Start, logout: Any, shown: Any
) -> None:
    able = agent("--caps", json.dumps({"auth": {"logout": logout}}))
    gateway = await dragoman("acp", agents={"one": able, "two": agent()}, default_agent="one")
    assert (await gateway.initialize())["agentCapabilities"].get("auth") == shown
    if shown is not None:
        assert await gateway.request("logout", {}) == {}


@pytest.mark.parametrize(
    ("info", "words"),
    [
        ({"name": "zed", "version": "1.2.3", "title": "Zed"}, r'clientInfo="zed 1\.2\.3 \(Zed\)"'),
        ({"name": "a\x1b[2Jb\nlevel=error", "version": 7}, r'"a\\u001b\[2Jb\\nlevel=error"'),
        ({"name": "x" * 5000}, r"clientInfo=x{100}\s"),
        ("just text", r"unreadable: just text"),
    ],
    ids=["usual", "controls", "long", "no object"],
)
async def test_which_program_the_client_is_is_logged(dragoman: Start, info: Any, words: str) -> None:
    gateway = await dragoman()
    await gateway.initialize(clientInfo=info)
    await gateway.logged(r"level=info [^\n]*client initializes[^\n]*" + words)


@pytest.mark.rule("G-071")
async def test_an_agents_terminal_login_is_not_offered_as_if_it_were_the_gateways(dragoman: Start) -> None:
    methods = [{"type": "terminal", "id": "tty", "name": "Log in", "args": ["--login"]}]
    gateway = await dragoman(agents={"scripted": agent("--auth", json.dumps(methods))})
    shown = (await gateway.initialize(clientCapabilities={"auth": {"terminal": True}}))["authMethods"]
    assert methods[0] not in shown


@pytest.mark.rule("G-110")
async def test_an_agent_that_refuses_initialize_is_reported_with_its_words(dragoman: Start) -> None:
    gateway = await dragoman(agents={"scripted": agent("--init-error")})
    response = await gateway.request_raw("initialize", {"protocolVersion": 1})
    assert response["error"]["code"] == -32603
    assert "initialize refused by the script" in json.dumps(response["error"])


@pytest.mark.rule("G-110", "G-112")
async def test_an_agent_that_ends_at_its_start_is_reported_with_its_stderr(dragoman: Start) -> None:
    flags = ("--exit-on-start", "7", "--stderr-on-start", "no licence found\n")
    gateway = await dragoman(agents={"scripted": agent(*flags)})
    response = await gateway.request_raw("initialize", {"protocolVersion": 1})
    assert response["error"]["code"] == -32603
    assert "7" in response["error"]["message"]
    assert "no licence found" in json.dumps(response["error"])


async def test_a_known_agent_is_introduced_before_it_has_started(
    dragoman: Start, tmp_path: Path, workspace: Path
) -> None:
    """The second start answers from the cache: this agent would not answer at all."""
    command = agent("--caps", '{"promptCapabilities": {"audio": true}}')["command"]
    slow = tmp_path / "slow"
    launcher = [*command[:1], "-c", _WAITS_IF_THERE, str(slow), *command[1:]]
    agents = {"scripted": {"kind": "acp", "command": launcher}}
    first = await dragoman(agents=agents)
    answer = await first.initialize()
    first.eof()
    assert await first.wait_exit() == 0
    slow.touch()
    second = await dragoman(agents=agents)
    assert await second.initialize() == answer
    slow.unlink()
    session = await second.new_session(workspace)
    assert (await second.prompt(session, "say up")).texts == ["up"]


_WAITS_IF_THERE = """
import os, sys, time
while os.path.exists(sys.argv[1]): time.sleep(0.01)
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""


@pytest.mark.rule("G-006")
async def test_stdout_carries_nothing_but_messages(dragoman: Start, workspace: Path) -> None:
    """The harness decodes every line of stdout and fails on any that is not JSON."""
    gateway = await dragoman(
        "acp", "scripted", "--log-level", "debug", agents={"scripted": agent("--chatter", "3")}
    )
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    await gateway.prompt(session, "stderr 1000\nsay done")
    assert all(message.get("jsonrpc") == "2.0" for message in gateway.received)


async def test_the_old_flag_starts_the_same_front(dragoman: Start, workspace: Path) -> None:
    gateway: GatewayProcess = await dragoman("--acp", "scripted")
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    assert (await gateway.prompt(session, "say hi")).texts == ["hi"]


async def test_a_changed_agent_corrects_what_was_remembered_of_it(
    dragoman: Start, workspace: Path, tmp_path: Path
) -> None:
    """The program is the same file as before, but what it runs is not."""
    program, version = tmp_path / "agent", tmp_path / "version"
    words = " ".join(f"'{word}'" for word in agent()["command"])
    program.write_text(f"#!/bin/sh\nexec {words} --version $(cat {version})\n")
    program.chmod(0o755)
    told = []
    for number in ("1.0", "2.0", "2.0"):
        version.write_text(number)
        gateway = await dragoman(agents={"scripted": {"kind": "acp", "command": [str(program)]}})
        told.append((await gateway.initialize())["agentInfo"]["version"])
        await gateway.new_session(workspace)
        gateway.leave()
        await gateway.wait_exit()
    assert told == ["1.0", "1.0", "2.0"]
