"""A server that is no Dragoman: the official Python SDK's, which numbers nothing and takes nothing up again."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

import pytest
from acp.http.asgi import create_asgi_app
from acp.schema import (
    AgentCapabilities,
    InitializeResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PermissionOption,
    PromptResponse,
    ToolCallUpdate,
)
from hypercorn.asyncio import serve
from hypercorn.config import Config

from acp import Agent, text_block, update_agent_message
from support.clients.tcp_proxy import TcpProxy
from support.gateway_process import GatewayProcess

from .conftest import Front

Event = MutableMapping[str, Any]


class Talker(Agent):
    """Says what it is told; asks, or waits for a cancel, if it is told to."""

    def __init__(self) -> None:
        self._cancelled = asyncio.Event()

    def on_connect(self, conn: Any) -> None:
        self._client = conn

    async def initialize(self, protocol_version: int, *_: Any, **__: Any) -> InitializeResponse:
        return InitializeResponse(protocol_version=1, agent_capabilities=AgentCapabilities(load_session=True))

    async def new_session(self, cwd: str, *_: Any, **__: Any) -> NewSessionResponse:
        return NewSessionResponse(session_id="their-session")

    async def load_session(self, cwd: str, session_id: str, *_: Any, **__: Any) -> LoadSessionResponse:
        await self._client.session_update(session_id, update_agent_message(text_block("as I said")))
        return LoadSessionResponse()

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> PromptResponse:
        said = prompt[-1].text
        if said == "ask":
            option = PermissionOption(option_id="yes", name="Yes", kind="allow_once")
            call = ToolCallUpdate(tool_call_id="call")
            answer = await self._client.request_permission(
                session_id=session_id, tool_call=call, options=[option]
            )
            said = answer.outcome.option_id
        await self._client.session_update(session_id, update_agent_message(text_block(said)))
        if said == "wait":
            await self._cancelled.wait()
            return PromptResponse(stop_reason="cancelled")
        return PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id: str, **_: Any) -> None:
        self._cancelled.set()


class Foreign:
    """The server, how to reach it, and the cookies that it was shown."""

    def __init__(self) -> None:
        self.cookies: list[str] = []
        self.proxy = TcpProxy(0)
        self._app = create_asgi_app(lambda conn: Talker())  # type: ignore[abstract]  # it can do a part of what agents can

    async def __call__(self, scope: Event, receive: Any, send: Callable[[Event], Awaitable[None]]) -> None:
        shown = dict(scope.get("headers", []))
        if scope["type"] in ("http", "websocket"):
            self.cookies.append(shown.get(b"cookie", b"").decode())

        async def with_cookie(event: Event) -> None:
            if event["type"] in ("http.response.start", "websocket.accept"):
                event["headers"] = [*event.get("headers", []), (b"set-cookie", b"lane=7; Path=/; HttpOnly")]
            await send(event)

        await self._app(scope, receive, with_cookie)  # type: ignore[arg-type]


@pytest.fixture
async def foreign() -> AsyncIterator[Foreign]:
    server, end = Foreign(), asyncio.Event()
    listening = socket.create_server(("127.0.0.1", 0))
    server.proxy.to = listening.getsockname()[1]
    config = Config()
    config.bind = [f"fd://{listening.detach()}"]  # hypercorn closes it
    config.graceful_timeout = 0.1
    running = asyncio.create_task(serve(server, config, shutdown_trigger=end.wait))  # type: ignore[arg-type]
    await server.proxy.listen()
    yield server
    await server.proxy.close()
    end.set()
    await asyncio.wait([running], timeout=5)


async def conversation(front: Front, foreign: Foreign, scheme: str, cwd: Path) -> tuple[GatewayProcess, str]:
    client = await front(f"{scheme}://127.0.0.1:{foreign.proxy.port}/acp")
    await client.initialize()
    return client, await client.new_session(cwd)


@pytest.mark.rule("G-127", "G-130")
async def test_a_turn_a_question_and_a_cancel(
    foreign: Foreign, front: Front, workspace: Path, scheme: str
) -> None:
    client, session = await conversation(front, foreign, scheme, workspace)
    client.on("session/request_permission", {"outcome": {"outcome": "selected", "optionId": "yes"}})
    assert (await client.prompt(session, "hello")).texts == ["hello"]
    assert (await client.prompt(session, "ask")).texts == ["yes"]
    turn = client.start_prompt(session, "wait")
    await client.text(session, "wait")
    client.cancel(session)
    assert (await turn).stop_reason == "cancelled"
    if scheme == "http":
        assert foreign.cookies[0] == "" and set(foreign.cookies[1:]) == {"lane=7"}


async def test_a_lost_connection_fails_the_turn_and_the_next_prompt_connects_anew(
    foreign: Foreign, front: Front, workspace: Path, scheme: str
) -> None:
    client, session = await conversation(front, foreign, scheme, workspace)
    turn = client.start_prompt(session, "wait")
    await client.text(session, "wait")
    foreign.proxy.cut()
    error = (await turn).error
    assert error is not None and error.message.startswith("The agent far ")
    assert f"127.0.0.1:{foreign.proxy.port}" in error.message
    again = await client.prompt(session, "hello again")
    if scheme == "ws":
        assert (again.stop_reason, again.texts) == ("end_turn", ["hello again"])
    else:  # this server does not know sessions that were loaded (agent-client-protocol 0.12)
        assert again.error is not None and "404" in again.error.message
