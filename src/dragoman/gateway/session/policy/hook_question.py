"""A tool call that an agent's hook tells before it runs, as a permission question whose answer goes to the hook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.rpc.request import OnReply, Reply, Request
from dragoman.wire.errors import RpcError

if TYPE_CHECKING:
    from dragoman.rpc.peer import Peer

_ID = b'"hook"'


class HookQuestion(Request):
    __slots__ = ("_told",)

    def __init__(self, peer: Peer, params: bytes, answered: OnReply) -> None:
        super().__init__(peer, _ID, (str, "hook"), "session/request_permission", params, None)
        self._told = answered

    def reply(self, result: bytes) -> None:
        self._end(Reply(result=result))

    def fail(self, error: RpcError | bytes) -> None:
        self._end(Reply(error=error if isinstance(error, bytes) else error.encode()))

    def abandon(self) -> None:
        self.answered = True

    def cancel(self) -> None:
        """The hook waits no longer."""
        if self.on_cancel is not None and not self.answered:
            self.on_cancel()

    def _end(self, reply: Reply) -> None:
        if not self.answered:
            self.answered = True
            self._told(reply)
