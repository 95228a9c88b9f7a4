"""A Streamable HTTP client that keeps everything it received, per stream."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from support.rpc_peer import PATIENCE, Message


@dataclass
class Event:
    id: str | None
    message: Message


@dataclass
class Stream:
    """One GET, until it ends or is left."""

    response: httpx.Response
    events: list[Event] = field(default_factory=list)
    comments: int = 0
    ended: bool = False
    failure: httpx.HTTPError | None = None
    """How it ended, if not in good order."""
    task: asyncio.Task[None] | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _taken: set[int] = field(default_factory=set)

    async def pump(self) -> None:
        current: dict[str, str] = {}
        try:
            async for line in self.response.aiter_lines():
                name, _, value = line.partition(": ")
                if line.startswith(":"):
                    self.comments += 1
                elif line:
                    assert name not in current, f"{name} twice in one event"
                    current[name] = value
                elif current:
                    self.events.append(Event(current.get("id"), json.loads(current["data"])))
                    current = {}
                self._changed.set()
        except httpx.HTTPError as error:
            self.failure = error  # the end of the stream either way
        finally:
            self.ended = True
            self._changed.set()

    async def next(self, matches: Callable[[Message], bool]) -> Event:
        """The first event that matches and was not handed out before."""
        start = 0
        async with asyncio.timeout(PATIENCE):
            while True:
                for index in range(start, len(self.events)):
                    if index not in self._taken and matches(self.events[index].message):
                        self._taken.add(index)
                        return self.events[index]
                start = len(self.events)
                if self.ended:
                    raise ConnectionError(f"the stream ended after {self.events[-3:]}")
                self._changed.clear()
                await self._changed.wait()

    async def commented(self, count: int) -> None:
        """Wait until that many comments came."""
        async with asyncio.timeout(PATIENCE):
            while self.comments < count:
                assert not self.ended
                self._changed.clear()
                await self._changed.wait()

    async def response_to(self, id: object) -> Message:
        return (await self.next(lambda m: "method" not in m and m.get("id") == id)).message

    async def text(self, text: str) -> Event:
        return await self.next(lambda m: _text(m) == text)

    @property
    def texts(self) -> list[str]:
        return [text for event in self.events if (text := _text(event.message))]

    async def leave(self) -> None:
        if self.task is not None:
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)
        await self.response.aclose()


def _text(message: Message) -> str:
    if message.get("method") != "session/update":
        return ""
    update = message["params"]["update"]
    content = update.get("content")
    if update.get("sessionUpdate") != "agent_message_chunk" or not isinstance(content, dict):
        return ""
    return str(content.get("text", ""))


class StreamableClient:
    """One connection, with its requests and streams."""

    def __init__(self, client: httpx.AsyncClient, path: str = "/acp") -> None:
        self.client = client
        self.path = path
        self.connection = ""
        self.streams: list[Stream] = []
        self._next_id = 0

    def headers(self, session: str | None = None, **more: str) -> dict[str, str]:
        named = {"Acp-Connection-Id": self.connection} if self.connection else {}
        if session is not None:
            named["Acp-Session-Id"] = session
        return {**named, **{name.replace("_", "-"): value for name, value in more.items()}}

    async def initialize(self, **params: Any) -> Message:
        body = {"protocolVersion": 1, "clientCapabilities": {}, **params}
        response = await self.client.post(
            self.path, json={"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": body}
        )
        assert response.status_code == 200, response.text
        self.connection = response.headers["acp-connection-id"]
        answer: Message = response.json()
        return answer

    async def post(self, message: Message, session: str | None = None) -> httpx.Response:
        return await self.client.post(
            self.path, json={"jsonrpc": "2.0", **message}, headers=self.headers(session)
        )

    async def ask(self, method: str, params: Message, session: str | None = None) -> int:
        """Send a request; returns its id."""
        self._next_id += 1
        response = await self.post({"id": self._next_id, "method": method, "params": params}, session)
        assert (response.status_code, response.content) == (202, b""), response.text
        return self._next_id

    async def prompt(self, session: str, script: str) -> int:
        prompt = [{"type": "text", "text": script}]
        return await self.ask("session/prompt", {"sessionId": session, "prompt": prompt}, session)

    async def listen(self, session: str | None = None, last_id: str | None = None) -> Stream:
        more = {"Last_Event_ID": last_id} if last_id is not None else {}
        request = self.client.build_request(
            "GET", self.path, headers=self.headers(session, Accept="text/event-stream", **more), timeout=None
        )
        response = await self.client.send(request, stream=True)
        assert response.status_code == 200, (response.status_code, await response.aread())
        stream = Stream(response)
        stream.task = asyncio.create_task(stream.pump())
        self.streams.append(stream)
        return stream

    async def new_session(self, cwd: object, events: Stream) -> str:
        id = await self.ask("session/new", {"cwd": str(cwd), "mcpServers": []})
        return str((await events.response_to(id))["result"]["sessionId"])

    async def close(self) -> None:
        for stream in self.streams:
            await stream.leave()
