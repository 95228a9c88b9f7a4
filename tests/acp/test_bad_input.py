"""Clients that get it wrong are told so, clearly, and everything else goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.gateway_process import GatewayProcess, Start, agent
from support.rpc_peer import RpcFailure


async def still_works(client: GatewayProcess, session: str) -> None:
    assert (await client.prompt(session, "say still here")).texts == ["still here"]


@pytest.mark.rule("G-017")
@pytest.mark.parametrize(
    "line", [b"hello", b"{", b'{"a":', b"nul", b'{"jsonrpc":"2.0",}', b"\xff\xfe\x00"], ids=repr
)
async def test_a_line_that_is_not_json_is_a_parse_error(
    client: GatewayProcess, workspace: Path, line: bytes
) -> None:
    session = await client.new_session(workspace)
    client.send(line)
    answer = await client.response(None)
    assert answer["error"]["code"] == -32700
    await still_works(client, session)


@pytest.mark.rule("G-017")
@pytest.mark.parametrize("line", [b"42", b'"text"', b"null", b"true"], ids=repr)
async def test_json_that_is_no_object_is_an_invalid_request(client: GatewayProcess, line: bytes) -> None:
    client.send(line)
    assert (await client.response(None))["error"]["code"] == -32600
    assert await client.request("_echo", {"on": 1}) == {"on": 1}


@pytest.mark.rule("G-017")
async def test_invalid_utf8_inside_a_message_is_an_error_and_nothing_more(
    client: GatewayProcess, workspace: Path
) -> None:
    session = await client.new_session(workspace)
    prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "say BAD"}]}
    message = {"jsonrpc": "2.0", "id": "u", "method": "session/prompt", "params": prompt}
    client.send(json.dumps(message).encode().replace(b"BAD", b"\xff\xfe"))
    assert (await client.response(None))["error"]["code"] == -32700
    await still_works(client, session)


@pytest.mark.rule("G-016")
@pytest.mark.parametrize(
    "message",
    [
        {"id": 1, "method": "_echo", "params": {}},
        {"jsonrpc": "1.0", "id": 1, "method": "_echo", "params": {}},
        {"jsonrpc": 2.0, "id": 1, "method": "_echo", "params": {}},
        {"jsonrpc": "2.0", "id": 1, "method": 5},
        {"jsonrpc": "2.0", "id": 1},
    ],
    ids=["missing", "old", "number", "method is no string", "no method"],
)
async def test_a_message_that_is_not_json_rpc_is_an_invalid_request(dragoman: Start, message: Any) -> None:
    gateway = await dragoman()
    await gateway.request_raw("initialize", {"protocolVersion": 1}, id="i")
    gateway.send(message)
    answer = await gateway.next_message(lambda m: "error" in m)
    assert answer["error"]["code"] == -32600
    assert answer["id"] in (1, None)


@pytest.mark.rule("G-016")
@pytest.mark.parametrize("id", [{"a": 1}, [1], True], ids=str)
async def test_an_id_that_is_neither_number_nor_string_is_invalid(client: GatewayProcess, id: Any) -> None:
    client.send({"jsonrpc": "2.0", "id": id, "method": "_echo", "params": {}})
    assert (await client.next_message(lambda m: "error" in m))["error"]["code"] == -32600
    assert await client.request("_echo", {"on": 1}) == {"on": 1}


@pytest.mark.rule("G-058")
@pytest.mark.parametrize("prompt", [[], None, "text", {}], ids=str)
async def test_an_empty_prompt_is_refused(client: GatewayProcess, workspace: Path, prompt: Any) -> None:
    session = await client.new_session(workspace)
    response = await client.request_raw("session/prompt", {"sessionId": session, "prompt": prompt})
    assert response["error"]["code"] == -32602
    if prompt == []:
        assert response["error"]["data"]["reason"] == "empty_prompt"
    await still_works(client, session)


@pytest.mark.rule("G-058")
async def test_a_prompt_of_nothing_but_space_is_refused(client: GatewayProcess, workspace: Path) -> None:
    session = await client.new_session(workspace)
    for text in ("", " ", "\n\t \n"):
        turn = await client.prompt(session, text)
        assert turn.error and (turn.error.code, turn.error.data["reason"]) == (-32602, "empty_prompt")
    await still_works(client, session)


@pytest.mark.rule("G-058")
@pytest.mark.parametrize("params", [None, [], "x", {}, {"sessionId": 5}, {"sessionId": None}], ids=str)
async def test_a_prompt_with_broken_params_is_refused(client: GatewayProcess, params: Any) -> None:
    response = await client.request_raw("session/prompt", params)
    assert response["error"]["code"] == -32602
    assert await client.request("_echo", {"on": 1}) == {"on": 1}


@pytest.mark.rule("G-058")
async def test_a_prompt_over_the_configured_size_is_refused(dragoman: Start, workspace: Path) -> None:
    gateway = await dragoman(limits={"max_prompt_bytes": 1000})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    for exact in ("say " + "x" * 996, "say " + '"\n' * 498):
        assert (await gateway.prompt(session, exact)).error is None
        turn = await gateway.prompt(session, exact + "x")
        assert turn.error and turn.error.code == -32602
        assert turn.error.data["reason"] == "prompt_too_large"
    await still_works(gateway, session)


CONTENT: dict[str, dict[str, Any]] = {
    "image": {"type": "image", "data": "AAAA", "mimeType": "image/png"},
    "audio": {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
    "embeddedContext": {"type": "resource", "resource": {"uri": "file:///x", "text": "y"}},
}


@pytest.mark.rule("G-035", "G-058")
@pytest.mark.parametrize("capability", CONTENT)
async def test_content_that_the_agent_cannot_take_is_refused_by_name(
    dragoman: Start, workspace: Path, capability: str
) -> None:
    others = json.dumps({"promptCapabilities": {name: True for name in CONTENT if name != capability}})
    gateway = await dragoman(agents={"scripted": agent("--caps", others)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    turn = await gateway.prompt(session, [CONTENT[capability]])
    assert turn.error and turn.error.code == -32602
    assert turn.error.data["reason"] == "content_type"
    assert capability in json.dumps([turn.error.message, turn.error.data])
    rest = [block for name, block in CONTENT.items() if name != capability]
    assert (await gateway.prompt(session, rest)).stop_reason == "end_turn"


@pytest.mark.rule("G-143")
async def test_a_line_of_a_hundred_megabytes_is_refused_and_other_sessions_go_on(
    client: GatewayProcess, workspace: Path, tmp_path: Path
) -> None:
    running, idle = await client.new_session(workspace), await client.new_session(workspace)
    turn = client.start_prompt(running, f"wait-file {tmp_path / 'go'}\nsay finished")
    head = json.dumps({"jsonrpc": "2.0", "id": "huge", "method": "session/prompt"})[:-1].encode()
    client.send_bytes(head + b', "params": {"sessionId": "x", "prompt": "')
    for _ in range(100):
        client.send_bytes(b"x" * 1024 * 1024)
        await client.drain()
    client.send_bytes(b'"}}\n')
    assert (await client.response("huge"))["error"]["code"] == -32600
    (tmp_path / "go").touch()
    assert (await turn).texts == ["finished"]
    await still_works(client, idle)


@pytest.mark.rule("G-143")
async def test_the_size_limit_is_a_setting(dragoman: Start, workspace: Path) -> None:
    gateway = await dragoman(limits={"max_message_bytes": 100_000})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    response = await gateway.request_raw("_echo", {"filler": "x" * 200_000}, id="big")
    assert response["error"]["code"] == -32600
    assert await gateway.request("_echo", {"filler": "x" * 50_000}) == {"filler": "x" * 50_000}
    await still_works(gateway, session)


async def test_deeply_nested_json_ends_nothing(client: GatewayProcess, workspace: Path) -> None:
    session = await client.new_session(workspace)
    depth = 100_000
    nested = b"[" * depth + b"]" * depth
    client.send(b'{"jsonrpc":"2.0","id":"deep","method":"session/prompt","params":{"prompt":%s}}' % nested)
    assert (await client.response(None))["error"]["code"] == -32700
    await still_works(client, session)


@pytest.mark.rule("G-036")
async def test_a_session_for_an_unknown_agent_is_refused_with_the_nearest_names(
    dragoman: Start, workspace: Path
) -> None:
    gateway = await dragoman("acp", agents={"scripted": agent(), "other": agent()})
    await gateway.initialize()
    with pytest.raises(RpcFailure) as failure:
        await gateway.new_session(workspace, _meta={"dragoman": {"agent": "scirpted"}})
    assert failure.value.code == -32602
    assert "scirpted" in failure.value.message
    assert "scripted" in failure.value.message.replace("scirpted", "")
    assert await gateway.new_session(workspace)


async def test_an_unknown_agent_on_the_command_line_is_refused_with_the_nearest_names(
    dragoman: Start,
) -> None:
    gateway = await dragoman("acp", "scirpted")
    assert await gateway.wait_exit() == 2
    assert "scripted" in gateway.stderr.replace("scirpted", "")
    assert gateway.received == []


async def what_is_seen(gateway: GatewayProcess) -> str:
    """What a person or an editor learns from a gateway that cannot start its agent."""
    try:
        answer = await gateway.request_raw("initialize", {"protocolVersion": 1})
        assert answer["error"]["code"] == -32603
        return json.dumps(answer)
    except (ConnectionError, BrokenPipeError):
        assert await gateway.wait_exit() != 0
        return gateway.stderr


async def test_a_known_agent_that_is_not_installed_comes_with_its_install_line(
    dragoman: Start, tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    gateway = await dragoman("acp", "gemini", env={"PATH": str(empty)})
    seen = await what_is_seen(gateway)
    assert "gemini" in seen
    assert "npm install" in seen


async def test_a_configured_command_that_does_not_exist_is_named(dragoman: Start) -> None:
    agents = {"scripted": {"kind": "acp", "command": ["no-such-program-here", "--acp"]}}
    gateway = await dragoman(agents=agents)
    assert "no-such-program-here" in await what_is_seen(gateway)


async def test_an_agent_that_cannot_start_fails_only_its_own_sessions(
    dragoman: Start, workspace: Path
) -> None:
    broken = {"kind": "acp", "command": ["no-such-program-here"]}
    gateway = await dragoman("acp", agents={"good": agent(), "broken": broken})
    await gateway.initialize()
    with pytest.raises(RpcFailure) as failure:
        await gateway.new_session(workspace, _meta={"dragoman": {"agent": "broken"}})
    assert failure.value.code == -32603
    assert failure.value.data["reason"] == "agent_unavailable"
    await still_works(gateway, await gateway.new_session(workspace))


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ("[limits]\ncancel_timeuot = 3\n", ["config.toml", "cancel_timeuot"]),
        ('[limits]\ncancel_timeout = "soon"\n', ["config.toml", "cancel_timeout"]),
        ('[agents.scripted]\nkind = "acp"\ncommand = "gemini --acp"\n', ["config.toml", "command"]),
        ("[agents\n", ["config.toml"]),
    ],
    ids=["unknown key", "wrong type", "command is no list", "no TOML"],
)
async def test_a_mistake_in_the_configuration_is_named_with_file_and_key(
    tmp_path: Path, config: str, named: list[str]
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text(config)
    async with await GatewayProcess.start(home, "acp", "scripted") as gateway:
        assert await gateway.wait_exit() != 0
        assert [word for word in named if word not in gateway.stderr] == []
        assert "Traceback" not in gateway.stderr
        assert gateway.received == []


async def test_unknown_servers_for_an_agent_that_cannot_reach_them_are_named(
    dragoman: Start, workspace: Path
) -> None:
    gateway = await dragoman(agents={"scripted": agent("--caps", "{}")})
    await gateway.initialize()
    server = {"type": "http", "name": "weather", "url": "https://example.com/mcp", "headers": []}
    with pytest.raises(RpcFailure) as failure:
        await gateway.new_session(workspace, mcpServers=[server])
    assert failure.value.code == -32602
    assert "weather" in failure.value.message


@pytest.mark.parametrize("method", ["session/new", "session/load", "session/resume", "session/fork"])
async def test_a_bad_mcp_server_is_named_by_its_place(
    client: GatewayProcess, workspace: Path, method: str
) -> None:
    session = await client.new_session(workspace)
    params = {"sessionId": session, "cwd": str(workspace)}
    server = {"name": "clock", "command": "/bin/true", "args": [], "env": [{"name": "A"}]}
    with pytest.raises(RpcFailure) as failure:
        await client.request(method, {**params, "mcpServers": [server]})
    assert failure.value.code == -32602
    assert "mcpServers[0].env[0].value is required" in failure.value.message


async def test_a_wrong_option_is_a_usage_error(dragoman: Start) -> None:
    gateway = await dragoman("acp", "scripted", "--no-such-option")
    assert await gateway.wait_exit() == 2
    assert "--no-such-option" in gateway.stderr


async def test_a_first_prompt_with_a_number_beyond_every_range_does_not_wedge_the_session(
    client: GatewayProcess, workspace: Path
) -> None:
    session = await client.new_session(workspace)
    block = '{"type":"text","text":"say hello","annotations":{"priority":1e400}}'
    params = f'{{"sessionId":"{session}","prompt":[{block}]}}'
    client.send(f'{{"jsonrpc":"2.0","id":"p","method":"session/prompt","params":{params}}}'.encode())
    assert (await client.response("p"))["result"] == {"stopReason": "end_turn"}
    await still_works(client, session)


@pytest.mark.parametrize("cursor", [5, {}, ["x"], True], ids=str)
async def test_a_cursor_that_is_no_text_is_refused_by_name(client: GatewayProcess, cursor: Any) -> None:
    with pytest.raises(RpcFailure) as caught:
        await client.request("session/list", {"cursor": cursor})
    assert (caught.value.code, caught.value.data["reason"]) == (-32602, "cursor")


async def test_a_cwd_that_is_too_long_is_refused_by_name(client: GatewayProcess) -> None:
    with pytest.raises(RpcFailure) as caught:
        await client.new_session("/" + "x" * 5000)
    assert (caught.value.code, caught.value.data["reason"]) == (-32602, "cwd")
