"""A request of a peer, answered exactly once, a batch of them, and the reply to one of ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from dragoman.wire import message
from dragoman.wire.errors import INTERNAL_ERROR, RpcError
from dragoman.wire.message import IdKey

if TYPE_CHECKING:
    from dragoman.rpc.peer import Peer


class Batch:
    """Collects the replies to one JSON-RPC batch and sends them as one array when all are there (G-018)."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._answers: list[bytes] = []
        self._waiting = 0
        self._open = True

    def expect(self) -> None:
        """Wait for one more reply."""
        self._waiting += 1

    def add(self, answer: bytes) -> None:
        self._waiting -= 1
        self._answers.append(answer)
        self._finish()

    def close(self) -> None:
        """Mark all entries as read; a batch of notifications alone gets no reply."""
        self._open = False
        self._finish()

    def _finish(self) -> None:
        if not self._open and self._waiting == 0 and self._answers:
            self._send(b"[" + b",".join(self._answers) + b"]")
            self._answers = []


class Reply(msgspec.Struct, frozen=True, gc=False):
    """The response to an outgoing request: a raw result, or a raw error object."""

    result: bytes = b""
    error: bytes = b""

    @property
    def ok(self) -> bool:
        return not self.error

    @classmethod
    def failed(cls, error: RpcError) -> Reply:
        return cls(error=error.encode())

    def as_error(self) -> RpcError:
        """The error as an exception; some peers send a code that is no integer."""
        error = msgspec.json.decode(self.error, type=dict[str, Any])
        code = error.get("code")
        return RpcError(
            code if isinstance(code, int) else INTERNAL_ERROR, str(error.get("message")), error.get("data")
        )


OnReply = Callable[[Reply], None]


class Request:
    """A request of the peer; answered exactly once, a second answer is ignored."""

    __slots__ = (
        "_batch",
        "_members",
        "_peer",
        "answered",
        "id",
        "key",
        "method",
        "on_cancel",
        "on_result",
        "params",
        "size",
    )

    def __init__(
        self, peer: Peer, id: bytes, key: IdKey, method: str, params: bytes, batch: Batch | None
    ) -> None:
        self._peer = peer
        self._batch = batch
        self._members: dict[str, Raw] | None = None
        self.id = id
        self.key = key
        self.method = method
        self.params = params
        self.size = len(id) + len(params)
        """Bytes of the id and the params."""
        self.answered = False
        self.on_cancel: Callable[[], object] | None = None
        """Called when the peer sends `$/cancel_request` for this request."""
        self.on_result: Callable[[bytes], None] | None = None
        """Called with the result before it is sent to the peer."""

    @property
    def label(self) -> str:
        """The id as log lines show it."""
        return self.id.decode().strip('"')

    @property
    def members(self) -> Mapping[str, Raw]:
        """The params, one level decoded on first access; raises `Malformed` if they are no object."""
        if self._members is None:
            self._members = message.members(self.params)
        return self._members

    def reply(self, result: bytes) -> None:
        if self.on_result is not None and not self.answered:
            self.on_result(result)
        self._answer(message.response(self.id, result), failed=False)

    def fail(self, error: RpcError | bytes) -> None:
        raw = error if isinstance(error, bytes) else error.encode()
        self._answer(message.failure(self.id, raw), failed=True)

    @property
    def peer(self) -> Peer:
        """The peer that sent the request."""
        return self._peer

    def abandon(self) -> None:
        """Send no answer from here: another part of this side answers the request."""
        self.answered = True
        self._peer.settled(self)

    def answer(self, reply: Reply) -> None:
        """Forward the reply of another peer."""
        if reply.ok:
            self.reply(reply.result)
        else:
            self.fail(reply.error)

    def _answer(self, line: bytes, *, failed: bool) -> None:
        if self.answered:
            return
        self.answered = True
        self._peer.settled(self)
        if self._peer.on_answer is not None:
            self._peer.on_answer(self.method, failed)
        if self._batch is not None:
            self._batch.add(line)
        else:
            self._peer.link.send(line)
