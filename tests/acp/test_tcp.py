"""`dragoman acp AGENT --port N`: several clients over TCP."""

from __future__ import annotations

import asyncio
import re
import socket
from pathlib import Path
from typing import Any

import pytest

from support.clients.sample_answers import ALLOW, EVERYTHING, REJECT
from support.gateway_process import GatewayProcess, Start, agent
from support.rpc_peer import HeaderFraming
from support.session_client import free_port


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
async def listening(dragoman: Start, port: int) -> GatewayProcess:
    return await dragoman("acp", "scripted", "--port", str(port))


async def test_a_client_over_tcp_does_a_whole_turn(
    listening: GatewayProcess, port: int, workspace: Path
) -> None:
    client = await listening.connect(port)
    client.on("session/request_permission", ALLOW)
    await client.initialize()
    session = await client.new_session(workspace)
    turn = await client.prompt(session, "say over tcp\npermission")
    assert turn.texts[0] == "over tcp"
    assert turn.report("permission") == {"result": ALLOW}


@pytest.mark.rule("G-010", "G-011")
async def test_two_clients_with_the_same_ids_keep_apart(
    listening: GatewayProcess, port: int, workspace: Path
) -> None:
    clients = [await listening.connect(port) for _ in range(2)]
    for client, answer in zip(clients, (ALLOW, REJECT), strict=True):
        client.on("session/request_permission", answer)
        await client.initialize()
    sessions = [await client.new_session(workspace) for client in clients]
    assert sessions[0] != sessions[1]
    turns = [
        client.start_prompt(session, "permission\nsay done")
        for client, session in zip(clients, sessions, strict=True)
    ]
    first, second = await asyncio.gather(*turns)
    assert first.report("permission") == {"result": ALLOW}
    assert second.report("permission") == {"result": REJECT}


@pytest.mark.rule("G-046")
async def test_a_client_cannot_reach_the_sessions_of_another(
    listening: GatewayProcess, port: int, workspace: Path
) -> None:
    owner, stranger = await listening.connect(port), await listening.connect(port)
    await owner.initialize()
    await stranger.initialize()
    session = await owner.new_session(workspace)
    turn = owner.start_prompt(session, "sleep-until-cancel")
    await owner.text(session, "sleeping")
    stranger.cancel(session)
    refused = await stranger.prompt(session, "say mine")
    assert refused.error and refused.error.code == -32002
    assert stranger.of(session) == []
    owner.cancel(session)
    assert (await turn).stop_reason == "cancelled"


@pytest.mark.rule("G-069")
async def test_terminals_of_two_clients_with_the_same_id_keep_apart(
    dragoman: Start, port: int, workspace: Path
) -> None:
    agents = {"scripted": agent(share="all")}
    gateway = await dragoman("acp", "scripted", "--port", str(port), agents=agents)
    for number in range(2):
        client = await gateway.connect(port)
        client.on("terminal/create", {"terminalId": "t1"})
        client.on("terminal/wait_for_exit", {"exitCode": number})
        client.on("terminal/output", {"output": f"client {number}", "truncated": False})
        client.on("terminal/release", {})
        await client.initialize(clientCapabilities=EVERYTHING)
    sessions = [await client.new_session(workspace) for client in gateway.connections]
    turns = [
        client.start_prompt(session, "terminal true")
        for client, session in zip(gateway.connections, sessions, strict=True)
    ]
    for number, turn in enumerate(await asyncio.gather(*turns)):
        assert turn.report("terminal/output")["result"]["output"] == f"client {number}"
        told = await gateway.connections[number].next_message("terminal/release")
        assert told["params"]["terminalId"] == "t1"


@pytest.mark.rule("G-017")
@pytest.mark.parametrize(
    "greeting",
    [b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"POST /acp HTTP/1.1\r\n\r\n{}", b"\x16\x03\x01", b"hi\n"],
    ids=["GET", "POST", "TLS", "text"],
)
async def test_whoever_does_not_start_like_a_client_is_cut_off_at_once(
    listening: GatewayProcess, port: int, workspace: Path, greeting: bytes
) -> None:
    reader, writer = await listening.open(port)
    writer.write(greeting)
    async with asyncio.timeout(20):
        try:
            assert await reader.read() == b""
        except ConnectionResetError:
            pass  # closed with our bytes unread: just as well
    writer.close()
    client = await listening.connect(port)
    await client.initialize()


@pytest.mark.rule("G-017")
async def test_a_bad_line_after_a_good_one_is_an_error_only(listening: GatewayProcess, port: int) -> None:
    client = await listening.connect(port)
    await client.initialize()
    client.send(b"oops")
    assert (await client.response(None))["error"]["code"] == -32700
    assert await client.request("_echo", {"on": 1}) == {"on": 1}


@pytest.mark.rule("G-141")
async def test_each_connection_has_its_own_framing(listening: GatewayProcess, port: int) -> None:
    lines, headers = await listening.connect(port), await listening.connect(port, HeaderFraming())
    for client in (lines, headers):
        await client.initialize()
        assert await client.request("_echo", {"on": 1}) == {"on": 1}


async def test_a_client_that_disconnects_takes_nobody_along(
    listening: GatewayProcess, port: int, workspace: Path
) -> None:
    leaving, staying = await listening.connect(port), await listening.connect(port)
    await leaving.initialize()
    await staying.initialize()
    session = await leaving.new_session(workspace)
    leaving.start_prompt(session, "ignore-cancel")
    await leaving.text(session, "ignoring")
    kept = await staying.new_session(workspace)
    await leaving.close()
    assert (await staying.prompt(kept, "say here")).texts == ["here"]
    fresh = await listening.connect(port)
    assert (await fresh.initialize())["protocolVersion"] == 1


async def test_only_loopback_is_listened_on(listening: GatewayProcess, port: int) -> None:
    await (await listening.connect(port)).initialize()
    sockets = Path("/proc/net/tcp").read_text().splitlines()[1:]
    listeners = [line.split()[1] for line in sockets if line.split()[3] == "0A"]
    assert [entry for entry in listeners if entry.endswith(f":{port:04X}")] == [f"0100007F:{port:04X}"]


async def test_another_address_without_a_token_is_refused(dragoman: Start, port: int) -> None:
    gateway = await dragoman("acp", "scripted", "--host", "0.0.0.0", "--port", str(port))
    assert await gateway.wait_exit() == 2
    assert "token" in gateway.stderr


async def test_a_token_is_demanded_at_initialize(dragoman: Start, port: int) -> None:
    gateway = await dragoman("acp", "scripted", "--port", str(port), "--token", "sesame")
    for meta, accepted in (
        ({}, False),
        ({"dragoman": {"token": "x"}}, False),
        ({"dragoman": {"token": "sesame"}}, True),
    ):
        client = await gateway.connect(port)
        response = await client.request_raw("initialize", {"protocolVersion": 1, "_meta": meta})
        assert ("result" in response) is accepted


async def test_a_short_token_is_not_enough_for_other_machines(dragoman: Start, port: int) -> None:
    gateway = await dragoman("acp", "scripted", "--host", "0.0.0.0", "--port", str(port), "--token", "short")
    assert await gateway.wait_exit() == 2
    assert "at least 16" in gateway.stderr


@pytest.mark.parametrize(
    ("settings", "token", "accepted"),
    [
        ({"deny_by_default": True}, "sesame", False),
        ({"deny_by_default": True}, None, False),
        ({"allow_from": ["alice"]}, "sesame", False),
        ({"allow_from": ["alice"]}, None, False),
        ({"allow_from": ["admin"], "deny_by_default": True}, "sesame", True),
        ({"allow_from": ["local"]}, None, True),
        ({"allow_from": ["local"]}, "sesame", False),
    ],
    ids=str,
)
async def test_allow_from_and_deny_by_default_hold_at_the_port(
    dragoman: Start, port: int, settings: dict[str, Any], token: str | None, accepted: bool
) -> None:
    options = ("--token", token) if token else ()
    gateway = await dragoman("acp", "scripted", "--port", str(port), *options, serve=settings)
    client = await gateway.connect(port)
    meta = {"dragoman": {"token": token}} if token else {}
    response = await client.request_raw("initialize", {"protocolVersion": 1, "_meta": meta})
    assert ("result" in response) is accepted
    if not accepted:
        assert "serve." in response["error"]["message"]
        assert response["error"]["data"]["reason"] == "allow_from"
        await client.ended()


async def test_a_port_in_use_is_said_plainly(dragoman: Start) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        gateway = await dragoman("acp", "scripted", "--port", str(number))
        assert await gateway.wait_exit() != 0
    assert str(number) in gateway.stderr
    assert re.search(r"in use|already", gateway.stderr)
    assert "Traceback" not in gateway.stderr
