"""Limits on sessions and requests hold for what comes together: in one write, in one batch, on several fronts."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.server.auth.named_tokens import TokenFile
from support.clients.bridge_page import Page
from support.gateway_process import Start, agent
from support.rpc_peer import Message, RpcPeer
from support.serve_process import ServeProcess, Socket
from support.session_client import resumable_agent, setup

from .conftest import Serve

TOO_MANY = -32029
MANY = 6


@pytest.fixture
def tokens(home: Path) -> TokenFile:
    return TokenFile(home / "tokens.json")


def bearer(tokens: TokenFile, **quotas: int) -> dict[str, str]:
    """The header of a new token with these quotas."""
    _, secret = tokens.create("limited", "control", quotas=quotas)
    return {"Authorization": f"Bearer {secret}"}


async def limited_socket(serving: ServeProcess, tokens: TokenFile, **quotas: int) -> Socket:
    socket = await serving.socket(headers=bearer(tokens, **quotas))
    await socket.initialize()
    return socket


async def together(peer: RpcPeer, method: str, each: list[Message]) -> list[Message]:
    """The answers to requests that leave in one write."""
    with peer.in_one_write():
        ids = [peer.start_request(method, params) for params in each]
    return [await peer.response(id) for id in ids]


def refusals(answers: list[Message]) -> list[tuple[int, str]]:
    return [
        (answer["error"]["code"], answer["error"]["data"]["limit"]) for answer in answers if "error" in answer
    ]


def made(answers: list[Message]) -> list[str]:
    return [answer["result"]["sessionId"] for answer in answers if "result" in answer]


async def closed_sessions(serving: ServeProcess, workspace: Path, count: int) -> list[str]:
    """Sessions that only the store has."""
    socket = await serving.socket()
    await socket.initialize()
    found = []
    for _ in range(count):
        session = await socket.new_session(workspace)
        await socket.prompt(session, "say once")
        await socket.request("session/close", {"sessionId": session})
        found.append(session)
    await socket.close()
    return found


async def test_sessions_asked_for_in_one_write_count_each_other(
    serving: ServeProcess, tokens: TokenFile, workspace: Path
) -> None:
    socket = await limited_socket(serving, tokens, sessions=1)
    new: Message = {"cwd": str(workspace), "mcpServers": []}
    answers = await together(socket, "session/new", [new] * MANY)
    assert (len(made(answers)), refusals(answers)) == (1, [(TOO_MANY, "sessions")] * (MANY - 1))
    [session] = made(answers)
    await socket.request("session/close", {"sessionId": session})
    assert await socket.new_session(workspace)  # its place is free again


async def test_places_of_sessions_that_came_to_nothing_are_free(
    serve: Serve, tokens: TokenFile, workspace: Path
) -> None:
    serving = await serve("--agent", "good", agents={"good": agent(), "bad": agent("--new-error")})
    socket = await limited_socket(serving, tokens, sessions=1)
    new: Message = {"cwd": str(workspace), "mcpServers": []}
    for wrong in ({"cwd": "relative"}, {"cwd": str(workspace / "nowhere")}, {**new, "mcpServers": 5}):
        assert "error" in await socket.request_raw("session/new", wrong)
    assert await socket.new_session(workspace)


async def test_forks_asked_for_in_one_write_count_each_other(
    serving: ServeProcess, tokens: TokenFile, workspace: Path
) -> None:
    socket = await limited_socket(serving, tokens, sessions=2)
    session = await socket.new_session(workspace)
    fork = {"sessionId": session, "cwd": str(workspace)}
    answers = await together(socket, "session/fork", [fork] * MANY)
    assert (len(made(answers)), len(refusals(answers))) == (1, MANY - 1)


async def test_stored_sessions_brought_back_in_one_write_count_each_other(
    serve: Serve, tokens: TokenFile, workspace: Path
) -> None:
    serving = await serve(agents={"scripted": resumable_agent()})
    stored = await closed_sessions(serving, workspace, 4)
    socket = await limited_socket(serving, tokens, sessions=1)
    for method in ("session/load", "session/resume"):
        answers = await together(socket, method, [setup(each, workspace) for each in stored])
        assert refusals(answers) == [(TOO_MANY, "sessions")] * 3
        taken = [each for each, answer in zip(stored, answers, strict=True) if "result" in answer]
        for session in taken:
            await socket.request("session/close", {"sessionId": session})


async def test_one_stored_session_that_is_loaded_twice_has_one_place(
    serve: Serve, tokens: TokenFile, workspace: Path
) -> None:
    serving = await serve(agents={"scripted": resumable_agent()})
    [session] = await closed_sessions(serving, workspace, 1)
    socket = await limited_socket(serving, tokens, sessions=1)
    answers = await together(socket, "session/resume", [setup(session, workspace)] * 2)
    assert all("result" in answer for answer in answers)


async def test_a_batch_counts_as_what_is_in_it(
    serving: ServeProcess, tokens: TokenFile, workspace: Path
) -> None:
    """At `/acp/rpc`, where one POST holds many requests."""
    client = serving.http()
    client.headers.update(bearer(tokens, sessions=2))
    query = {"client_id": "me"}
    hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}
    assert (await client.post("/acp/rpc", params=query, json=hello)).status_code == 202
    new: Message = {"cwd": str(workspace), "mcpServers": []}
    batch = [{"jsonrpc": "2.0", "id": n, "method": "session/new", "params": new} for n in range(1, 101)]
    assert (await client.post("/acp/rpc", params=query, json=batch)).status_code == 202
    answers = await batch_answer(client, query)
    assert (len(made(answers)), len(refusals(answers))) == (2, 98)


async def batch_answer(client: Any, query: dict[str, str]) -> list[Message]:
    """The first event that is an array."""
    async with asyncio.timeout(20), client.stream("GET", "/acp/sse", params=query, timeout=None) as response:
        async for line in response.aiter_lines():
            if line.startswith("data: ["):
                found: list[Message] = json.loads(line[6:])
                return found
    raise AssertionError("no batch")


async def test_requests_of_a_batch_are_counted_one_by_one(serving: ServeProcess, tokens: TokenFile) -> None:
    client = serving.http()
    client.headers.update(bearer(tokens, requests_per_minute=20))
    query = {"client_id": "me"}
    batch = [{"jsonrpc": "2.0", "id": n, "method": "session/list", "params": {}} for n in range(30)]
    answer = await client.post("/acp/rpc", params=query, json=batch)
    assert (answer.status_code, answer.json()["code"]) == (429, "quota")
    assert int(answer.headers["retry-after"]) >= 1


async def test_rest_and_pages_count_what_is_on_its_way(
    serving: ServeProcess, tokens: TokenFile, workspace: Path
) -> None:
    headers = bearer(tokens, sessions=2)
    client = serving.http()
    client.headers.update(headers)
    page = await Page.open(serving, headers=headers)
    asked = asyncio.gather(*(client.post("/api/sessions", json={"cwd": str(workspace)}) for _ in range(3)))
    pages = asyncio.gather(*(page.ask("new_session", cwd=str(workspace)) for _ in range(3)))
    statuses = [answer.status_code for answer in await asked]
    types = [answer["type"] for answer in await pages]
    assert statuses.count(201) + types.count("ack") == 2
    assert statuses.count(429) + types.count("error") == 4


async def test_parked_sessions_that_wake_together_count_each_other(
    serve: Serve, tokens: TokenFile, workspace: Path
) -> None:
    """A page opens stored sessions without their agents; a message brings one back."""
    serving = await serve(agents={"scripted": resumable_agent()})
    stored = await closed_sessions(serving, workspace, 3)
    page = await Page.open(serving, headers=bearer(tokens, sessions=1))
    for session in stored:
        await page.load(session)
    answers = await asyncio.gather(
        *(page.ask("send_message", sessionId=session, content="sleep-until-cancel") for session in stored)
    )
    assert sorted(answer["type"] for answer in answers) == ["ack", "error", "error"]
    assert {answer["code"] for answer in answers if answer["type"] == "error"} == {"quota"}


async def test_the_limit_of_the_gateway_holds_for_what_comes_together(
    dragoman: Start, workspace: Path
) -> None:
    gateway = await dragoman(limits={"max_sessions": 2})
    await gateway.initialize()
    new: Message = {"cwd": str(workspace), "mcpServers": []}
    answers = await together(gateway, "session/new", [new] * MANY)
    assert len(made(answers)) == 2
    assert {a["error"]["data"]["reason"] for a in answers if "error" in a} == {"session_limit"}
    batch = [{"jsonrpc": "2.0", "id": f"b{n}", "method": "session/new", "params": new} for n in range(3)]
    await gateway.request("session/close", {"sessionId": made(answers)[0]})
    gateway.send(batch)
    assert len(made((await gateway.next_message(lambda m: "batch" in m))["batch"])) == 1
