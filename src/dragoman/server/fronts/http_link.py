"""What clients over plain HTTP share: a link that is read from event streams, and an end when nothing uses it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from dragoman.gateway.client import ClientConnection
from dragoman.rpc.link import Unpaused
from dragoman.server import limits
from dragoman.server.fronts.event_stream import EventStream
from dragoman.server.listen.token_shares import TokenShares

log = logging.getLogger(__name__)

SWEEP = 30.0
"""Seconds between checks for idle connections."""


class HttpLink(Unpaused):
    """A `Link` without `send`, which subclasses define."""

    def __init__(self, client: ClientConnection, on_end: Callable[[], None]) -> None:
        self.client = client
        self.backlog = 0
        self._on_end = on_end
        self._congested = False
        self._closing = False
        self._loop = asyncio.get_running_loop()
        self._last_use = self._loop.time()

    def streams(self) -> Iterable[EventStream]:
        raise NotImplementedError

    def touch(self) -> None:
        self._last_use = self._loop.time()

    @property
    def patience(self) -> float:
        """Seconds without a reader and without a request after which it is idle."""
        return limits.HTTP_IDLE

    @property
    def idle(self) -> bool:
        reading = any(stream.occupied for stream in self.streams())
        return not reading and self._loop.time() - self._last_use > self.patience

    def close(self) -> None:
        """End every stream once it is read, and close the connection."""
        if self._closing:
            return
        self._closing = True
        for stream in self.streams():
            stream.close()
        self._loop.call_soon(self.client.peer.link_closed, None)
        self._on_end()

    def _changed(self, size: int) -> None:
        self.backlog += size
        congested = self.backlog > limits.STREAM_BYTES
        if congested != self._congested:
            self._congested = congested
            self._loop.call_soon(self.client.peer.link_writable, not congested)
        if self.backlog > limits.MAX_UNREAD_BYTES and not self._closing:
            log.warning("http client reads nothing, closing", extra={"client": self.client.key})
            self._loop.call_soon(self.close)


Key = TypeVar("Key")
LinkType = TypeVar("LinkType", bound=HttpLink)


class HttpLinks(Generic[Key, LinkType]):
    """The links of one front; each token has a share of them, and idle ones are closed."""

    def __init__(self, name: str) -> None:
        self.shares = TokenShares(name, limits.MAX_HTTP_CONNECTIONS, limits.HTTP_CONNECTIONS_TOGETHER)
        self._links: dict[Key, LinkType] = {}
        self._sweeper: asyncio.TimerHandle | None = None

    def get(self, key: Key) -> LinkType | None:
        return self._links.get(key)

    def add(self, key: Key, link: LinkType) -> None:
        """Add a link for which a place was reserved in `shares`."""
        self._links[key] = link
        self._sweep_later()

    def ended(self, key: Key) -> None:
        link = self._links.pop(key, None)
        if link is not None:
            self.shares.give_back(link.client.terms.identity)

    def close(self) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
        for link in list(self._links.values()):
            link.close()

    def _sweep_later(self) -> None:
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().call_later(SWEEP, self._sweep)

    def _sweep(self) -> None:
        self._sweeper = None
        for link in list(self._links.values()):
            if link.idle:
                log.info("http client is gone", extra={"client": link.client.key})
                link.close()
        if self._links:
            self._sweep_later()
