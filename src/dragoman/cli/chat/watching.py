"""A chat that only shows: the events of a session's journal, without taking part in the session."""

from __future__ import annotations

import asyncio
from typing import Any

from dragoman.cli.chat.lines.markdown import Line
from dragoman.cli.chat.lines.transcript import FAINT, Transcript, last_lines
from dragoman.cli.chat.screen import ChatScreen
from dragoman.cli.sessions.find import find, reading
from dragoman.cli.sessions.watch import Watch
from dragoman.client.events import TurnEnded
from dragoman.client.reading import read_update
from dragoman.config.errors import ConfigError
from dragoman.config.paths import Paths
from dragoman.gateway.ports.store import StoreUnavailable
from dragoman.wire.json_types import JsonObject, as_object

COLOURS = {"red": "ansired", "yellow": "ansiyellow"}
FIRST_LOOK = 0.3
"""Seconds without a new event after which the earlier conversation is complete, and its end is printed."""


class Watching:
    """Implements `Teller`; `farewell` and `failed` are as those of `Talk`."""

    def __init__(self, screen: ChatScreen, session: str, paths: Paths) -> None:
        self._screen = screen
        self._session = session
        self._paths = paths
        self._transcript = Transcript()
        self._caught_up = False
        self._first_look: asyncio.TimerHandle | None = None
        self._words = "opening…"
        self.failed = False
        screen.tail = self._transcript.tail
        screen.unfinished = self._finish
        screen.status = lambda: self._words

    async def run(self) -> None:
        """Show events until the session has no owner; a failure ends the chat."""
        try:
            async with reading(self._paths) as store:
                record = await find(store, self._session)
                self._words = f"watching {record.agent} in {record.cwd} · q leaves"
                self._show()
                await Watch(store, record, self, asyncio.Event()).run()
                self._words = f"{record.agent} in {record.cwd} · q leaves"
        except (ConfigError, StoreUnavailable) as error:
            self.say(f"! {error}", fg="red")
            self.failed = True
        if self.failed:
            self._screen.leave()

    def farewell(self) -> list[str]:
        return []

    # -- Teller

    def tell(self, update: JsonObject, *, reported: bool = False) -> None:
        self._transcript.take(read_update(update, None))
        self._show()

    def turn_ended(self, result: JsonObject) -> None:
        error = as_object(result.get("error")).get("message")
        self._transcript.take(TurnEnded(str(result.get("stopReason")), str(error) if error else None))
        self._show()

    def say(self, text: str, **how: Any) -> None:
        self._transcript.say(text, COLOURS.get(str(how.get("fg")), FAINT))
        self._show()

    # -- showing

    def _show(self) -> None:
        if self._caught_up:
            self._screen.show(self._transcript.take_finished())
        else:
            if self._first_look is not None:
                self._first_look.cancel()
            self._first_look = asyncio.get_running_loop().call_later(FIRST_LOOK, self._look_over)
        self._screen.refresh()

    def _look_over(self) -> None:
        """Print the end of what was said so far."""
        self._caught_up = True
        self._screen.show(last_lines(self._transcript.take_finished(), self._session))

    def _finish(self) -> list[Line]:
        left = self._transcript.finish()
        return left if self._caught_up else last_lines(left, self._session)
