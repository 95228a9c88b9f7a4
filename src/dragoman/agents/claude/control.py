"""The control protocol beside the conversation: our requests, which `claude` answers by id."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from dragoman.wire.errors import RpcError, internal
from dragoman.wire.json_types import JsonObject, as_object


class Control:
    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._asked: dict[str, asyncio.Future[JsonObject]] = {}
        self._count = 0

    def ask(self, subtype: str, **members: object) -> asyncio.Future[JsonObject]:
        """Send a request; the future raises `RpcError` if claude refuses it."""
        self._count += 1
        id = f"dragoman-{self._count}"
        future: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._asked[id] = future
        self.write({"type": "control_request", "request_id": id, "request": {"subtype": subtype, **members}})
        return future

    def answer(self, id: object, response: JsonObject) -> None:
        body = {"subtype": "success", "request_id": id, "response": response}
        self.write({"type": "control_response", "response": body})

    def refuse(self, id: object, why: str) -> None:
        body = {"subtype": "error", "request_id": id, "error": why}
        self.write({"type": "control_response", "response": body})

    def write(self, line: JsonObject) -> None:
        self._send(msgspec.json.encode(line))

    def answered(self, line: JsonObject) -> None:
        response = as_object(line.get("response"))
        future = self._asked.pop(str(response.get("request_id")), None)
        if future is None or future.done():
            return
        if response.get("subtype") == "error":
            future.set_exception(internal(f"Claude Code refused: {response.get('error')}", "agent_error"))
        else:
            future.set_result(as_object(response.get("response")))

    def closed(self, error: RpcError) -> None:
        """Fail all open requests."""
        asked, self._asked = self._asked, {}
        for future in asked.values():
            if not future.done():
                future.set_exception(error)
                future.exception()  # marks it as retrieved: a waiter is optional
