"""Streamable HTTP as a client: messages are sent with POST and received with GET, on one stream for the connection and
one for each session (G-130).

A broken stream is continued with `Last-Event-ID` if the server numbers its events (`event_reader`); else the
connection is lost with it, because the missed events are unknown.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import deque
from functools import partial

import httpx2
import msgspec
from msgspec import Raw

from dragoman.agents.remote.address import Address
from dragoman.agents.remote.errors import CONNECT_TIMEOUT, RemoteError, not_acp, refused
from dragoman.agents.remote.event_reader import EventReader, NotYet, explained
from dragoman.rpc.call import happens
from dragoman.rpc.link import LinkHandler
from dragoman.wire import limits, message
from dragoman.wire.errors import Malformed, internal
from dragoman.wire.framing import single_line
from dragoman.wire.message import ABSENT

log = logging.getLogger(__name__)

CONNECTION = "Acp-Connection-Id"
SESSION = "Acp-Session-Id"
JSON = "application/json"
EVENTS = "text/event-stream"
UNKNOWN_SESSION = "unknown_session"
OPENS_STREAM = frozenset({"session/load", "session/resume"})
"""Methods before which the session's stream is opened, so that no part of their replay is missed."""

ANSWER_TIMEOUT = 60.0
"""Seconds to wait for the status of a POST; `initialize` may start an agent first."""
OPEN_TIMEOUT = 5.0
"""Seconds to wait for a session's stream before the session is loaded without it."""


class _Params(msgspec.Struct):
    sessionId: str | None = None  # noqa: N815 (the protocol's name)


class _Head(msgspec.Struct):
    id: Raw = ABSENT
    method: str = ""
    params: _Params | None = None
    result: _Params | None = None


class _Refusal(msgspec.Struct):
    code: str = ""


_head = msgspec.json.Decoder(_Head)
_refusal = msgspec.json.Decoder(_Refusal)


def http_client(
    address: Address, headers: dict[str, str], context: ssl.SSLContext | None
) -> httpx2.AsyncClient:
    """A client that shares cookies between all of an agent's connections (G-127); HTTP/2 if the server offers it."""
    return httpx2.AsyncClient(
        headers=headers,
        verify=context if context is not None else True,
        http2=address.secure,
        timeout=httpx2.Timeout(ANSWER_TIMEOUT, connect=CONNECT_TIMEOUT),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=8),
        trust_env=False,
    )


class HttpChannel:
    """Implements `Link`."""

    def __init__(
        self, address: Address, client: httpx2.AsyncClient, handler: LinkHandler, max_bytes: int
    ) -> None:
        self._address = address
        self._client = client
        self._handler = handler
        self._max_bytes = max_bytes
        self._loop = asyncio.get_running_loop()
        self._connection_id = ""
        self._queue: deque[bytes] = deque()
        self._wake = asyncio.Event()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._streams: dict[str | None, tuple[asyncio.Task[None], EventReader]] = {}
        self._asked_about: dict[bytes, str] = {}
        self._closed = False
        self._congested = False
        self.backlog = 0
        self.trouble: RemoteError | None = None
        """Why the channel ended."""
        handler.link_opened(self)
        self._sender: asyncio.Task[None] = self._loop.create_task(self._send_all())

    # -- Link

    def send(self, message: bytes) -> None:
        if self._closed:
            return
        self._queue.append(message)
        self.backlog += len(message)
        self._wake.set()
        if self.backlog > limits.WRITE_HIGH_WATER and not self._congested:
            self._congested = True
            self._handler.link_writable(False)

    def pause(self) -> None:
        self._flowing.clear()

    def resume(self) -> None:
        self._flowing.set()

    def close(self) -> None:
        """Send queued messages, delete the connection at the server, and end."""
        if not self._closed:
            self._closed = True
            self._wake.set()
            self._loop.create_task(self._leave())

    # -- sending

    async def _send_all(self) -> None:
        """Send messages one at a time, so that they arrive in order."""
        try:
            while self._queue or not self._closed:
                if not self._queue:
                    self._wake.clear()
                    await self._wake.wait()
                    continue
                line = self._queue.popleft()
                await self._post(line)
                self._taken(len(line))
        except RemoteError as trouble:
            self._lost(trouble)
        except httpx2.HTTPError as error:
            self._lost(explained(self._address, error))

    def _taken(self, size: int) -> None:
        self.backlog -= size
        if self._congested and self.backlog < limits.WRITE_LOW_WATER:
            self._congested = False
            self._handler.link_writable(True)

    async def _post(self, line: bytes) -> None:
        head = _head.decode(line)
        if head.method == "initialize":
            await self._initialize(line)
            return
        session_id = self._session_of(head)
        if head.method in OPENS_STREAM and session_id is not None:
            await self._open_first(session_id)
        answer = await self._request(line, session_id)
        if answer.status_code in (400, 404) and head.method in OPENS_STREAM:
            answer = await self._request(line, None)  # the Python SDK's server accepts this header only later
        if head.method in OPENS_STREAM and session_id is not None:
            self._listen(session_id)  # if the server did not know the session before
        if answer.status_code in (200, 202):
            if answer.content:
                self._handler.link_messages([_one_line(answer.content)])
        elif answer.status_code == 404 and head.method not in OPENS_STREAM and not _is_request(head):
            log.info("message refused (404)", extra={"url": str(self._address)})
        else:
            self._refused(head, answer)

    async def _initialize(self, line: bytes) -> None:
        answer = await self._client.post(self._address.url, content=line, headers={"Content-Type": JSON})
        if answer.status_code != 200:
            raise refused(self._address, answer.status_code)
        body = _one_line(answer.content)
        try:
            envelope = message.decode(body)
        except Malformed as error:
            raise not_acp(self._address, "its answer is no JSON-RPC message") from error
        self._connection_id = answer.headers.get(CONNECTION, "")
        if not self._connection_id and envelope.error is ABSENT:
            raise not_acp(self._address, f"no {CONNECTION} in its answer")
        if self._connection_id:
            self._listen(None)
        self._handler.link_messages([body])

    async def _request(self, line: bytes, session_id: str | None) -> httpx2.Response:
        return await self._client.post(self._address.url, content=line, headers=self._headers(session_id))

    def _headers(self, session_id: str | None, accept: str = JSON) -> dict[str, str]:
        headers = {"Content-Type": JSON, "Accept": accept, CONNECTION: self._connection_id}
        return headers if session_id is None else {**headers, SESSION: session_id}

    def _session_of(self, head: _Head) -> str | None:
        if head.method:
            return head.params.sessionId if head.params is not None else None
        return self._asked_about.pop(bytes(head.id), None)

    def _refused(self, head: _Head, answer: httpx2.Response) -> None:
        """Answer a refused request with an error; raises if the server refuses the whole connection."""
        if answer.status_code in (401, 403) or (answer.status_code == 404 and not _is_session_error(answer)):
            raise refused(self._address, answer.status_code)
        log.info("message refused (%d)", answer.status_code, extra={"url": str(self._address)})
        if _is_request(head):
            error = internal(f"{self._address} refused {head.method} with status {answer.status_code}")
            self._handler.link_messages([message.failure(bytes(head.id), error.encode())])

    async def _open_first(self, session_id: str) -> None:
        reader = self._listen(session_id, early=True)
        if not await happens(reader.settled, OPEN_TIMEOUT):
            log.info("session stream is not open yet", extra={"url": str(self._address)})

    # -- receiving

    def _listen(self, session_id: str | None, *, early: bool = False) -> EventReader:
        """Read a stream, unless it is being read; the server may refuse an `early` one."""
        task, reader = self._streams.get(session_id, (None, None))
        if reader is None or (task is not None and task.done()):
            reader = EventReader(
                self._address,
                self._client,
                self._headers(session_id, EVENTS),
                self._max_bytes,
                partial(self._received_lines, session_id),
                self._flowing,
            )
            self._streams[session_id] = self._loop.create_task(self._read(reader, early)), reader
        return reader

    async def _read(self, reader: EventReader, early: bool) -> None:
        try:
            self._lost(await reader.run())
        except NotYet:
            if not early:
                self._lost(refused(self._address, 404))

    def _received_lines(self, session_id: str | None, lines: list[bytes]) -> None:
        for line in lines:
            try:
                head = _head.decode(line)
            except msgspec.DecodeError:
                continue  # the gateway reports the error
            if _is_request(head) and session_id is not None:
                self._asked_about[bytes(head.id)] = session_id
            elif not head.method and head.result is not None and head.result.sessionId is not None:
                self._listen(head.result.sessionId)
        self._handler.link_messages([*lines])

    # -- ending

    def _lost(self, trouble: RemoteError) -> None:
        if self._closed:
            return
        self._closed = True
        self.trouble = trouble
        self._stop_tasks()
        self._handler.link_closed(str(trouble))

    async def _leave(self) -> None:
        try:
            async with asyncio.timeout(OPEN_TIMEOUT):
                await asyncio.wait([self._sender])
                if self._connection_id:
                    await self._client.delete(self._address.url, headers=self._headers(None))
        except (httpx2.HTTPError, TimeoutError) as error:
            log.debug("the server did not receive the end of the connection: %s", error)
        self._stop_tasks()
        self._handler.link_closed(None)

    def _stop_tasks(self) -> None:
        current = asyncio.current_task()
        for task in (self._sender, *(task for task, _ in self._streams.values())):
            if task is not current:
                task.cancel()


def _is_request(head: _Head) -> bool:
    return bool(head.method) and head.id is not ABSENT


def _is_session_error(answer: httpx2.Response) -> bool:
    """Whether a 404 is about the session, not the connection: by Dragoman's code, else by the word "session"."""
    try:
        code = _refusal.decode(answer.content).code
    except msgspec.DecodeError:
        code = ""
    return code == UNKNOWN_SESSION if code else b"session" in answer.content.lower()


def _one_line(body: bytes) -> bytes:
    return single_line(body).strip()
