"""The ACP client as the agent uses it: session updates, permission questions, files and terminals."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman.rpc.peer import Peer
from dragoman.rpc.request import Reply
from dragoman.wire.errors import CANCELLED, INTERNAL_ERROR, RpcError

Json = dict[str, Any]


class Client:
    """The ACP client at the other end of the connection."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._writable = asyncio.Event()
        self._writable.set()
        self.capabilities: Json = {}

    # -- capabilities

    @property
    def reads_files(self) -> bool:
        return _object(self.capabilities.get("fs")).get("readTextFile") is True

    @property
    def writes_files(self) -> bool:
        return _object(self.capabilities.get("fs")).get("writeTextFile") is True

    @property
    def has_terminals(self) -> bool:
        return self.capabilities.get("terminal") is True

    # -- messages

    def update(self, session: str, update: Mapping[str, Any]) -> None:
        """Send one `session/update`; never blocks, see `wait_writable`."""
        self._peer.notify("session/update", msgspec.json.encode({"sessionId": session, "update": update}))

    def set_writable(self, writable: bool) -> None:
        if writable:
            self._writable.set()
        else:
            self._writable.clear()

    async def wait_writable(self) -> None:
        """Wait while the client reads more slowly than the agent writes, so that nothing piles up in memory."""
        if not self._writable.is_set():
            await self._writable.wait()

    async def request(self, method: str, params: Mapping[str, Any]) -> Any:
        """Send a request and wait for its result; cancelling the wait cancels the request."""
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

        def answered(reply: Reply) -> None:
            if not future.done():
                future.set_result(reply)

        call = self._peer.request(method, msgspec.json.encode(params), answered)
        try:
            reply = await future
        except asyncio.CancelledError:
            self._peer.cancel(call)
            self._peer.forget(call)
            raise
        if reply.ok:
            return msgspec.json.decode(reply.result)
        raise _error(reply.error)

    # -- questions, files, terminals

    async def ask(self, session: str, tool_call: Json, options: list[Json]) -> str | None:
        """The id of the chosen option; None when the question was cancelled."""
        params = {"sessionId": session, "toolCall": tool_call, "options": options}
        try:
            answer = await self.request("session/request_permission", params)
        except RpcError as error:
            if error.code == CANCELLED:
                return None
            raise
        outcome = _object(_object(answer).get("outcome"))
        return str(outcome.get("optionId")) if outcome.get("outcome") == "selected" else None

    async def read_text(self, session: str, path: str) -> str:
        answer = await self.request("fs/read_text_file", {"sessionId": session, "path": path})
        return str(_object(answer).get("content", ""))

    async def write_text(self, session: str, path: str, content: str) -> None:
        await self.request("fs/write_text_file", {"sessionId": session, "path": path, "content": content})


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _error(raw: bytes) -> RpcError:
    error = _object(msgspec.json.decode(raw))
    code = error.get("code")
    return RpcError(
        code if isinstance(code, int) else INTERNAL_ERROR,
        str(error.get("message", "unknown error")),
        error.get("data"),
    )
