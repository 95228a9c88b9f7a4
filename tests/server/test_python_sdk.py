"""`dragoman serve` with the official Python SDK as its client, over both transports."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from acp.http.client import create_http_stream
from acp.schema import AllowedOutcome, RequestPermissionResponse
from acp.ws.client import create_websocket_stream

from acp import PROTOCOL_VERSION, connect_to_agent, text_block
from support.rpc_peer import PATIENCE
from support.serve_process import ServeProcess


class Person:
    """Allows everything once and remembers what it was told."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.questions = 0
        self._told = asyncio.Event()

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        if update.session_update == "agent_message_chunk":
            self.texts.append(update.content.text)
            self._told.set()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **kwargs: Any
    ) -> RequestPermissionResponse:
        self.questions += 1
        outcome = AllowedOutcome(outcome="selected", option_id=options[0].option_id)
        return RequestPermissionResponse(outcome=outcome)

    def on_connect(self, conn: Any) -> None: ...

    async def told(self, text: str) -> None:
        async with asyncio.timeout(PATIENCE):
            while text not in self.texts:
                self._told.clear()
                await self._told.wait()


class Clients:
    def __init__(self, serving: ServeProcess, transport: str) -> None:
        self._serving = serving
        self._transport = transport
        self._open: list[Any] = []

    async def connect(self) -> tuple[Any, Person]:
        person = Person()
        if self._transport == "websocket":
            url = f"ws://127.0.0.1:{self._serving.port}/acp"
            stream = await create_websocket_stream(url, headers=self._serving.bearer)
        else:
            stream = create_http_stream(f"{self._serving.base}/acp", headers=self._serving.bearer)
        connection = connect_to_agent(person, stream)  # type: ignore[arg-type]
        self._open.append(connection)
        await connection.initialize(protocol_version=PROTOCOL_VERSION)
        return connection, person

    async def close(self) -> None:
        for connection in self._open:
            await connection.close()


@pytest.fixture(params=["websocket", "http"])
async def clients(serving: ServeProcess, request: pytest.FixtureRequest) -> AsyncIterator[Clients]:
    clients = Clients(serving, request.param)
    yield clients
    await clients.close()


async def test_a_whole_conversation_with_permission_cancel_and_load(
    clients: Clients, workspace: Path
) -> None:
    async with asyncio.timeout(3 * PATIENCE):
        agent, person = await clients.connect()
        session = (await agent.new_session(cwd=str(workspace), mcp_servers=[])).session_id
        done = await agent.prompt(session_id=session, prompt=[text_block("say hello\npermission")])
        assert (done.stop_reason, person.questions) == ("end_turn", 1)
        await person.told("hello")
        turn = asyncio.ensure_future(
            agent.prompt(session_id=session, prompt=[text_block("say waiting\nsleep-until-cancel")])
        )
        await person.told("waiting")
        await agent.cancel(session_id=session)
        assert (await turn).stop_reason == "cancelled"

        agent, person = await clients.connect()
        await agent.load_session(session_id=session, cwd=str(workspace), mcp_servers=[])
        await person.told("waiting")
        assert person.texts[0] == "hello"
        done = await agent.prompt(session_id=session, prompt=[text_block("say more")])
        assert done.stop_reason == "end_turn"
        await person.told("more")
