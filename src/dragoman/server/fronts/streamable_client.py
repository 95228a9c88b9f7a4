"""One Streamable HTTP client: its requests and streams form one connection to the gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import msgspec
from msgspec import Raw

from dragoman.gateway.client import ClientConnection
from dragoman.gateway.rewriting.rewrite import session_of, with_members, with_own_params
from dragoman.rpc.peer import CANCEL_REQUEST
from dragoman.server import limits
from dragoman.server.asgi import HttpError
from dragoman.server.fronts.event_stream import EventStream
from dragoman.server.fronts.http_link import HttpLink
from dragoman.wire import message
from dragoman.wire.message import ABSENT

LOAD = "session/load"
RESUME = "session/resume"
MAKES_STREAM = frozenset({"session/new", "session/fork", LOAD, RESUME})
ON_CONNECTION_STREAM = frozenset({"session/new", LOAD})
"""Methods whose responses come on the connection's stream, even with a session header (G-123)."""


class _Head(msgspec.Struct):
    """The parts of a message that decide where it goes; params are the agent's, of any shape."""

    id: Raw = ABSENT
    method: str = ""
    params: Raw = ABSENT


_head = msgspec.json.Decoder(_Head)


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """An unanswered request."""

    method: str
    header: str | None = None
    """The session in the header `Acp-Session-Id`."""
    session_id: str | None = None
    """The session in the params."""


class StreamableClient(HttpLink):
    """Implements `Link` and `SplitLink`."""

    def __init__(self, id: str, client: ClientConnection, path: str, on_end: Callable[[], None]) -> None:
        super().__init__(client, on_end)
        self.id = id
        self.path = path
        self.initialized: asyncio.Future[bytes] = self._loop.create_future()
        self._used = False
        self._stream = EventStream(self._changed)
        self._sessions: dict[str, EventStream] = {}
        self._open_requests: dict[bytes, OpenRequest] = {}
        self._last_seen: dict[str, int] = {}
        """The last event that a reader has, for streams whose sessions are not resumed yet."""
        client.peer.link_opened(self)

    def streams(self) -> Iterable[EventStream]:
        return (self._stream, *self._sessions.values())

    @property
    def patience(self) -> float:
        return limits.HTTP_IDLE if self._used else limits.HTTP_UNUSED

    # -- requests

    def receive(self, id: Raw, request: OpenRequest, body: bytes) -> None:
        """Pass one message to the gateway; raises `HttpError` if it would need one stream too many."""
        if request.method in MAKES_STREAM and request.session_id not in self._sessions:
            self._check_room()
        if request.method and id is not ABSENT:
            self._open_requests.setdefault(
                bytes(id), request
            )  # a reused id is refused by the peer; the first request keeps its entry
        if request.method == RESUME and request.session_id in self._last_seen:
            body = with_own_params(body, afterSeq=self._last_seen.pop(request.session_id))
        self.client.peer.link_messages([body])

    def touch(self) -> None:
        self._used = True
        super().touch()

    def knows(self, session_id: str) -> bool:
        return session_id in self.client.attachments

    # -- streams

    def stream(self, session_id: str | None) -> EventStream:
        if session_id is None:
            return self._stream
        if session_id not in self._sessions:
            self._check_room()
        return self.outlet(session_id)

    def outlet(self, session_id: str) -> EventStream:
        """The session's stream; its room was checked when the session was requested."""
        stream = self._sessions.get(session_id)
        if stream is None:
            stream = self._sessions[session_id] = EventStream(self._changed)
            stream.on_detached = lambda: self.tidy(session_id)
        return stream

    def _check_room(self) -> None:
        coming = sum(request.method in MAKES_STREAM for request in self._open_requests.values())
        if len(self._sessions) + coming < limits.MAX_STREAMS:
            return
        for session_id in list(self._sessions):
            self.tidy(session_id, unread=True)
        if len(self._sessions) + coming >= limits.MAX_STREAMS:
            raise HttpError(
                429,
                "This connection has too many sessions: close some of them, or open another connection.",
                [("retry-after", "60")],
            )

    def tidy(self, session_id: str, *, unread: bool = False) -> None:
        """Drop the stream of a detached session, once it was read (or `unread`) and no response is due on it."""
        stream = self._sessions.get(session_id)
        if stream is None or stream.occupied or session_id in self.client.attachments:
            return
        due = any(request.header == session_id for request in self._open_requests.values())
        if not due and (unread or not stream.backlog):
            del self._sessions[session_id]
            stream.drop()

    def _where(self, session_id: str) -> EventStream:
        """The stream for messages about a session; the connection's stream if the session has none."""
        return self._sessions.get(session_id, self._stream)

    def rewind(self, session_id: str | None, last_id: str) -> None:
        """Send again what a reader that reconnects has missed."""
        stream = self.stream(session_id)
        missed = stream.missed(last_id)
        if missed is None or (session_id is None and not stream.sent(last_id)):
            return  # not an id of this stream: continue with the queue
        position, kept = missed
        attachment = self.client.attachments.get(session_id or "")
        journal = attachment.session.journal if attachment is not None else None
        if attachment is not None and journal is not None:
            if position > journal.delivered:
                return  # of another journal, or invented: events up to that number would be hidden
            stream.drop()
            attachment.rewind(position, [(each.after, partial(stream.send_again, each)) for each in kept])
        elif session_id is None:
            stream.drop()
            for each in kept:
                stream.send_again(each)
        elif attachment is None:  # after a restart of the gateway the stream may be opened before the resume
            self._last_seen[session_id] = position

    # -- Link

    def send(self, line: bytes) -> None:
        if self._closing:
            return
        head = _head.decode(line)
        if not head.method:
            self._answer(bytes(head.id), line)
            return
        session_id = session_of(bytes(head.params)) if head.method != CANCEL_REQUEST else None
        (self._stream if session_id is None else self._where(session_id)).send(line)

    def close(self) -> None:
        self.initialized.cancel()
        super().close()

    def _answer(self, id: bytes, line: bytes) -> None:
        request = self._open_requests.pop(id, OpenRequest(""))
        if request.method == "initialize" and not self.initialized.done():
            self.initialized.set_result(line)
        elif request.header is None:
            comes_back = request.method in (LOAD, RESUME) and request.session_id is not None
            self._stream.send(with_session_id(line, request.session_id or "") if comes_back else line)
        elif request.method == LOAD:
            self._after_replay(self._where(request.header), line)
        elif request.method in ON_CONNECTION_STREAM:
            self._stream.send(line)
        else:
            self._where(request.header).send(line)

    def _after_replay(self, stream: EventStream, line: bytes) -> None:
        """Send the response after the replay on the other stream was read, or after a timeout (G-085)."""
        sent = False

        def go() -> None:
            nonlocal sent
            if not sent:
                sent = True
                timer.cancel()
                self._stream.send(line)

        timer = self._loop.call_later(limits.HAND_OVER_TIMEOUT, go)
        stream.when_taken(go)


def with_session_id(line: bytes, session_id: str) -> bytes:
    """Add the session id to a load or resume result.

    The Python SDK 0.12 sends no session header here, and opens a session's stream when a message names the session.
    """
    members = message.members(line)
    if "result" not in members:
        return line
    return with_members(line, result=Raw(with_members(bytes(members["result"]), sessionId=session_id)))
