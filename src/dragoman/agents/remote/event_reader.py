"""Reads one event stream of a server, with as many requests as needed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TypeVar

import httpx2

from dragoman.agents.remote.address import Address
from dragoman.agents.remote.backoff import Backoff
from dragoman.agents.remote.errors import CONNECT_TIMEOUT, RemoteError, refused, unreachable
from dragoman.agents.remote.sse import EventDecoder, TooLong

T = TypeVar("T")

SILENCE = 90.0
"""Seconds without a byte after which a stream counts as half-open, if its server sends comments (G-125: every 15)."""


class NotYet(Exception):
    """The server does not know the session of this stream."""


class EventReader:
    """Continues a broken stream if the server numbers its events; else the connection ends with the stream."""

    def __init__(
        self,
        address: Address,
        client: httpx2.AsyncClient,
        headers: Mapping[str, str],
        max_bytes: int,
        heard: Callable[[list[bytes]], None],
        flowing: asyncio.Event,
    ) -> None:
        self._address = address
        self._client = client
        self._headers = headers
        self._max_bytes = max_bytes
        self._heard = heard
        self._flowing = flowing
        self._last_id: str | None = None
        self._beats = False
        """Whether the server sends comments, so that silence means that it is gone."""
        self.settled = asyncio.Event()
        """Set once the stream is open, or cannot be opened."""

    async def run(self) -> RemoteError:
        """Read until the stream ends for good; returns the reason. Raises `NotYet`."""
        backoff = Backoff()
        try:
            while True:
                try:
                    if await self._read():
                        backoff = Backoff()
                    ended = RemoteError(f"{self._address} ended the stream of events")
                except RemoteError as trouble:
                    ended = trouble
                except TooLong as error:
                    ended = RemoteError(f"{self._address}: {error}", lasting=True)
                except httpx2.HTTPError as error:
                    ended = explained(self._address, error)
                if ended.lasting or self._last_id is None or backoff.over:
                    return ended
                await backoff.wait()
        finally:
            self.settled.set()

    async def _read(self) -> bool:
        """Make one request and read it to its end; returns whether any event came."""
        headers = dict(self._headers)
        if self._last_id is not None:
            headers["Last-Event-ID"] = self._last_id
        timeout = httpx2.Timeout(None, connect=CONNECT_TIMEOUT)
        request = self._client.build_request("GET", self._address.url, headers=headers, timeout=timeout)
        response = await self._bounded(self._client.send(request, stream=True))
        try:
            if response.status_code in (400, 404) and not self.settled.is_set():
                raise NotYet
            if response.status_code != 200:
                raise refused(self._address, response.status_code)
            self.settled.set()
            return await self._read_chunks(response.aiter_raw())
        finally:
            await response.aclose()

    async def _read_chunks(self, chunks: AsyncIterator[bytes]) -> bool:
        decoder = EventDecoder(self._max_bytes)
        anything = False
        while (chunk := await self._bounded(anext(chunks, None))) is not None:
            events = decoder.feed(chunk)
            self._beats = self._beats or decoder.comments > 0
            if events:
                anything = True
                self._last_id = events[-1].id or self._last_id
                self._heard([event.data for event in events])
            await self._flowing.wait()
        return anything

    async def _bounded(self, reading: Awaitable[T]) -> T:
        """Limit the wait for one piece, since any connection may become half-open."""
        try:
            async with asyncio.timeout(SILENCE if self._beats else None):
                return await reading
        except TimeoutError as error:
            raise RemoteError(f"{self._address} was silent for {SILENCE:g} s") from error


def explained(address: Address, error: httpx2.HTTPError) -> RemoteError:
    """The error for an httpx error; the OS error is among its causes, since httpx tries several addresses."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        if isinstance(cause, OSError) and (cause.errno is not None or isinstance(cause, TimeoutError)):
            return unreachable(address, cause)
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, httpx2.TimeoutException):
        return unreachable(address, TimeoutError())
    return RemoteError(f"the connection to {address} broke: {error or type(error).__name__}")
