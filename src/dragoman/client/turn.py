"""One prompt until its stop reason."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dragoman.client.errors import DragomanError
from dragoman.client.events import Event, Text, ToolStarted, TurnEnded
from dragoman.client.question import Question
from dragoman.client.stream import EventStream, Flow


class Prompting:
    """A prompt until its answer, as its session sees it; it outlives a `Turn` that is not used any more."""

    def __init__(self, flow: Flow, stream: EventStream | None, *, may_wait: bool) -> None:
        self.stream = stream
        self.may_wait = may_wait
        self.on_withdraw: Callable[[], None] | None = None
        self.withdrawn = False
        self.end: TurnEnded | None = None
        self._flow = flow
        self._error: DragomanError | None = None
        self._over = asyncio.Event()

    def settle(self, end: TurnEnded, error: DragomanError | None = None) -> None:
        """Take the end of the turn; its iterator ends with `error` instead of `end`, if there is one."""
        self.end, self._error = end, error
        if self.stream is not None:
            if error is None:
                self.stream.put(end, 0)
            self.stream.end(error)
        self._over.set()

    async def wait(self) -> TurnEnded:
        """Wait for the end; raises the error of the turn."""
        self._flow.awaited(1)
        try:
            await self._over.wait()
        finally:
            self._flow.awaited(-1)
        if self._error is not None:
            raise self._error
        assert self.end is not None
        return self.end

    def withdraw(self) -> None:
        if self.on_withdraw is not None and not self._over.is_set():
            self.withdrawn = True
            self.on_withdraw()


class Turn:
    """An async iterator of the turn's events, the last of which is `TurnEnded`.

    It raises the turn's error after its last event. Leaving the loop does not end the turn: `Session.cancel` does.
    """

    def __init__(self, prompting: Prompting) -> None:
        self._prompting = prompting
        self._question: Question | None = None

    @property
    def end(self) -> TurnEnded | None:
        """How it ended; None while it runs."""
        return self._prompting.end

    def withdraw(self) -> None:
        """Take the prompt back: out of the queue, or cancel it if it runs."""
        self._prompting.withdraw()

    def __aiter__(self) -> Turn:
        return self

    async def __anext__(self) -> Event:
        stream = self._prompting.stream
        if stream is None:
            raise RuntimeError("this turn was begun with `send`: read its events from `Session.events`")
        if self._question is not None:
            self._question.left_behind()
            self._question = None
        event = await stream.__anext__()
        if isinstance(event, Question):
            self._question = event
        return event

    async def ended(self) -> TurnEnded:
        """Wait for the end; raises the turn's error. Questions are refused, unless `send` began the turn."""
        if self._prompting.stream is not None:
            async for _ in self:
                pass
        return await self._prompting.wait()

    async def text(self) -> str:
        """Wait for the end and return the agent's last message: what it said after its last tool call."""
        parts: list[str] = []
        async for event in self:
            if isinstance(event, Text):
                parts.append(event.text)
            elif isinstance(event, ToolStarted) or (isinstance(event, TurnEnded) and not event.own):
                parts.clear()
        return "".join(parts)

    def drop(self) -> None:
        """Drop what is unread: nothing more is read of this turn."""
        stream = self._prompting.stream
        if stream is not None:
            stream.close()

    def __del__(self) -> None:
        """A loop that was left must not stop the connection."""
        self.drop()
