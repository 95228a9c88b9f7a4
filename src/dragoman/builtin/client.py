"""The ACP client as the agent uses it: session updates, permission questions, files and terminals."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman.rpc.call import call
from dragoman.rpc.peer import Peer
from dragoman.wire.errors import CANCELLED, RpcError
from dragoman.wire.json_types import as_object, own_meta

Json = dict[str, Any]

ASK = "ask"
"""The answer of rules that leave it to a person."""


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
        return as_object(self.capabilities.get("fs")).get("readTextFile") is True

    @property
    def writes_files(self) -> bool:
        return as_object(self.capabilities.get("fs")).get("writeTextFile") is True

    @property
    def has_terminals(self) -> bool:
        return self.capabilities.get("terminal") is True

    @property
    def has_rules(self) -> bool:
        """Whether it wants to hear of every tool call before it runs, also of those that need no question."""
        own = as_object(as_object(self.capabilities.get("_meta")).get("dragoman"))
        return own.get("rules") is True

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
        return await call(self._peer, method, params, cancels=True)

    # -- questions, files, terminals

    async def ask_why(
        self, session: str, tool_call: Json, options: list[Json], *, unasked: bool | str = False
    ) -> tuple[str | None, str | None]:
        """The id of the chosen option, None when the question was cancelled, and the reason that a rule gave, if any.

        `unasked`: only rules are asked; where none is about the call, it is allowed. With "rules" no person is asked
        either: the answer is `ASK` where one has to be. With "first" it is so too where no rule is about the call.
        """
        params: Json = {"sessionId": session, "toolCall": tool_call, "options": options}
        if unasked:
            params["_meta"] = {"dragoman": {"unasked": unasked}}
        try:
            answer = await self.request("session/request_permission", params)
        except RpcError as error:
            if error.code == CANCELLED:
                return None, None
            raise
        outcome, own = as_object(as_object(answer).get("outcome")), own_meta(as_object(answer))
        if own.get("decision") == ASK:
            return ASK, None
        reason = own["reason"] if isinstance(own.get("reason"), str) else None
        return (str(outcome.get("optionId")) if outcome.get("outcome") == "selected" else None), reason

    async def read_text(self, session: str, path: str) -> str:
        answer = await self.request("fs/read_text_file", {"sessionId": session, "path": path})
        return str(as_object(answer).get("content", ""))

    async def write_text(self, session: str, path: str, content: str) -> None:
        await self.request("fs/write_text_file", {"sessionId": session, "path": path, "content": content})
