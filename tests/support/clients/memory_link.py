"""A link in memory and a receiver with a script: the two neighbours of a `Peer`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from dragoman.rpc.byte_budget import ByteBudget
from dragoman.rpc.peer import Peer
from dragoman.rpc.request import Request
from dragoman.wire.errors import Malformed, RpcError


class MemoryLink:
    """Keeps what is sent; after `close` it ignores more, as every link does."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.closed = False
        self.paused = False
        self.backlog = 0

    def send(self, message: bytes) -> None:
        assert b"\n" not in message
        if not self.closed:
            self.sent.append(message)

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False

    def close(self) -> None:
        self.closed = True

    def take(self) -> list[Any]:
        """What was sent since the last look, decoded."""
        sent, self.sent = self.sent, []
        return [json.loads(line) for line in sent]


class ScriptedReceiver:
    """Keeps what it is told; `on_request` and `on_notification` are called with it."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.notifications: list[tuple[str, bytes]] = []
        self.malformed: list[tuple[bytes, Malformed]] = []
        self.writable: list[bool] = []
        self.closings: list[str | None] = []
        self.on_request: Callable[[Request], None] = lambda request: None
        self.on_notification: Callable[[str, bytes], None] = lambda method, params: None
        self.tells_malformed = True
        self.closing_error: RpcError | None = None

    def peer_request(self, request: Request) -> None:
        self.requests.append(request)
        self.on_request(request)

    def peer_notification(self, method: str, params: bytes) -> None:
        self.notifications.append((method, params))
        self.on_notification(method, params)

    def peer_malformed(self, frame: bytes, error: Malformed) -> bool:
        self.malformed.append((frame, error))
        return self.tells_malformed

    def peer_writable(self, writable: bool) -> None:
        self.writable.append(writable)

    def peer_closed(self, reason: str | None) -> RpcError | None:
        self.closings.append(reason)
        return self.closing_error


class Wired:
    """A peer between a link in memory and a scripted receiver."""

    def __init__(
        self, *, strict: bool = True, accept_batches: bool = True, budget: ByteBudget | None = None
    ) -> None:
        self.receiver = ScriptedReceiver()
        self.peer = Peer(
            "the other side", self.receiver, strict=strict, accept_batches=accept_batches, budget=budget
        )
        self.link = MemoryLink()
        self.peer.link_opened(self.link)

    def hear(self, *lines: bytes) -> list[Any]:
        """Let the peer read lines; returns what it sent because of them."""
        self.peer.link_messages(list(lines))
        return self.link.take()


def request(id: bytes = b"1", method: str = "m", params: bytes = b"{}") -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"method":"%b","params":%b}' % (id, method.encode(), params)


def error_of(answer: dict[str, Any]) -> tuple[object, int]:
    return answer["id"], answer["error"]["code"]
