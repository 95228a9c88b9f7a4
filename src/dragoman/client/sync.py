"""The client library without async, for scripts and notebooks: `with connect() as gateway`.

One thread runs the event loop; calls wait for it. Events, questions and errors are those of `dragoman.client`.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from types import TracebackType
from typing import Any, TypeVar

from dragoman.client import connecting
from dragoman.client import gateway as aio_gateway
from dragoman.client import session as aio_session
from dragoman.client import stream as aio_stream
from dragoman.client import turn as aio_turn
from dragoman.client.errors import ConnectionLost
from dragoman.client.events import Event, TurnEnded
from dragoman.client.gateway import SessionInfo
from dragoman.client.history import Message, Rewound, SessionChanges, Shared, What
from dragoman.client.question import Question
from dragoman.client.session import Content, QueuedPrompt
from dragoman.wire.json_types import JsonObject

__all__ = ["EventStream", "Gateway", "Session", "Turn", "connect"]

T = TypeVar("T")
OnQuestion = Callable[[Question], None]


class _Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="dragoman-client", daemon=True)
        self._thread.start()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it there and wait for it; Ctrl-C cancels it."""
        if self._loop.is_closed():
            work.close()
            raise ConnectionLost("the connection is closed: connect again")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def run(self, call: Callable[[], T]) -> T:
        async def there() -> T:
            return call()

        return self.wait(there())

    def post(self, call: Callable[[], object]) -> None:
        """Run it there without waiting: from a finalizer, which may run in that thread itself."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call)

    def stop(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


def connect(
    to: str | os.PathLike[str] | None = None,
    *,
    token: str | None = None,
    ca: str | None = None,
    on_question: OnQuestion | None = None,
) -> Gateway:
    """As `dragoman.client.connect`; returns the connected gateway. `on_question` runs in the library's thread."""
    loop = _Loop()

    async def opened() -> aio_gateway.Gateway:
        return await connecting.connect(to, token=token, ca=ca, on_question=on_question)

    try:
        return Gateway(loop, loop.wait(opened()))
    except BaseException:
        loop.stop()
        raise


class Gateway:
    """As `dragoman.client.Gateway`."""

    def __init__(self, loop: _Loop, inner: aio_gateway.Gateway) -> None:
        self._loop = loop
        self._inner = inner

    def close(self) -> None:
        try:
            self._loop.wait(self._inner.aclose())
        finally:
            self._loop.stop()

    def __enter__(self) -> Gateway:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def new(
        self,
        agent: str | None = None,
        cwd: str | os.PathLike[str] | None = None,
        *,
        mcp_servers: Sequence[JsonObject] = (),
        sandbox: str | None = None,
    ) -> Session:
        made = self._inner.new(agent, cwd, mcp_servers=mcp_servers, sandbox=sandbox)
        return Session(self._loop, self._loop.wait(made))

    def resume(
        self, id: str, cwd: str | os.PathLike[str] | None = None, *, after: int | None = None
    ) -> Session:
        return Session(self._loop, self._loop.wait(self._inner.resume(id, cwd, after=after)))

    def fork(self, session: Session, *, agent: str | None = None) -> Session:
        return Session(self._loop, self._loop.wait(self._inner.fork(session.inner, agent=agent)))

    def sessions(self, cwd: str | os.PathLike[str] | None = None) -> list[SessionInfo]:
        async def listed() -> list[SessionInfo]:
            return [info async for info in self._inner.sessions(cwd)]

        return self._loop.wait(listed())

    def delete(self, id: str) -> None:
        self._loop.wait(self._inner.delete(id))


class Session:
    """As `dragoman.client.Session`."""

    def __init__(self, loop: _Loop, inner: aio_session.Session) -> None:
        self._loop = loop
        self.inner = inner
        self.id = inner.id
        self.cwd = inner.cwd

    @property
    def seq(self) -> int:
        return self.inner.seq

    @property
    def title(self) -> str | None:
        return self.inner.title

    @property
    def options(self) -> tuple[JsonObject, ...]:
        return self.inner.options

    def prompt(self, content: Content, *, steer: bool = False) -> Turn:
        return Turn(self._loop, self._loop.run(lambda: self.inner.prompt(content, steer=steer)))

    def events(self) -> EventStream:
        return EventStream(self._loop, self._loop.run(self.inner.events))

    def cancel(self) -> None:
        self._loop.run(self.inner.cancel)

    def queue(self) -> list[QueuedPrompt]:
        return self._loop.wait(self.inner.queue())

    def messages(self) -> list[Message]:
        return self._loop.wait(self.inner.messages())

    def rewind(self, to: int | str, what: What = "conversation", *, shared: Shared = "refuse") -> Rewound:
        return self._loop.wait(self.inner.rewind(to, what, shared=shared))

    def undo(self) -> Rewound:
        return self._loop.wait(self.inner.undo())

    def changes(self, turn: int | None = None, *, since: int | None = None) -> SessionChanges:
        return self._loop.wait(self.inner.changes(turn, since=since))

    def set_option(self, id: str, value: object) -> None:
        self._loop.wait(self.inner.set_option(id, value))

    def set_mode(self, mode: str) -> None:
        self._loop.wait(self.inner.set_mode(mode))

    def rename(self, title: str) -> None:
        self._loop.wait(self.inner.rename(title))

    def close(self) -> None:
        self._loop.wait(self.inner.close())


class EventStream:
    """As `dragoman.client.EventStream`."""

    def __init__(self, loop: _Loop, inner: aio_stream.EventStream) -> None:
        self._loop = loop
        self._inner = inner

    def close(self) -> None:
        self._loop.run(self._inner.close)

    def __iter__(self) -> Iterator[Event]:
        while (event := self._loop.wait(_next(self._inner))) is not None:
            yield _answerable(self._loop, event)


class Turn:
    """As `dragoman.client.Turn`."""

    def __init__(self, loop: _Loop, inner: aio_turn.Turn) -> None:
        self._loop = loop
        self._inner: aio_turn.Turn | None = inner

    def __iter__(self) -> Iterator[Event]:
        while (event := self._loop.wait(_next(self._turn))) is not None:
            yield _answerable(self._loop, event)

    @property
    def _turn(self) -> aio_turn.Turn:
        assert self._inner is not None
        return self._inner

    @property
    def end(self) -> TurnEnded | None:
        return self._turn.end

    def withdraw(self) -> None:
        self._loop.run(self._turn.withdraw)

    def ended(self) -> TurnEnded:
        return self._loop.wait(self._turn.ended())

    def text(self) -> str:
        return self._loop.wait(self._turn.text())

    def __del__(self) -> None:
        """Drop what is unread in the library's thread, where the stream belongs."""
        inner, self._inner = self._inner, None
        if inner is not None:
            self._loop.post(inner.drop)


async def _next(events: aio_turn.Turn | aio_stream.EventStream) -> Event | None:
    try:
        return await events.__anext__()
    except StopAsyncIteration:
        return None


def _answerable(loop: _Loop, event: Event) -> Event:
    if isinstance(event, Question):
        event.answered_in(loop.run)
    return event
