"""`dragoman sessions attach` without a terminal: a session as plain text, and lines of stdin as prompts.

On a terminal it is `dragoman chat -s ID`.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections import deque

from dragoman.cli.compose import first_of, gateway, run_loop
from dragoman.cli.in_process import open_gateway
from dragoman.cli.sessions.find import find
from dragoman.cli.terminal.keyboard import Keyboard
from dragoman.cli.terminal.narrator import Narrator
from dragoman.cli.terminal.screen import Screen
from dragoman.client.connection import CAPABILITIES
from dragoman.client.errors import DragomanError, RequestRefused
from dragoman.client.events import Event, TurnEnded, UserMessage
from dragoman.client.gateway import Gateway
from dragoman.client.question import Question
from dragoman.client.session import Session
from dragoman.config.errors import ConfigError
from dragoman.config.model import Config
from dragoman.config.paths import Paths
from dragoman.gateway.access.client import Terms
from dragoman.gateway.ownership.entries import RUNNING_STATES
from dragoman.gateway.ports.store import SessionRecord


def run(given: str, config: Config, paths: Paths) -> int:
    """Returns the exit code."""
    return run_loop(_run(given, config, paths))


async def _run(given: str, config: Config, paths: Paths) -> int:
    async with gateway(config, paths) as running:
        if running.store is None:
            raise ConfigError(running.trouble or "sessions are not saved: sessions.journal is false")
        record = await find(running.store, given)
        async with await open_gateway(running, Terms(start_ahead=False), CAPABILITIES) as connected:
            return await PlainView(connected, record).run()


class PlainView:
    """Prints a session and sends lines, one after another, until the input ends and they are answered."""

    def __init__(self, connected: Gateway, record: SessionRecord) -> None:
        self._connected = connected
        self._session: Session = connected.session(record.id, record.cwd)
        self._events = self._session.events()
        self._screen = Screen(sys.stdout, sys.stdout)
        self._narrator = Narrator(self._screen, prompts=True)
        self._keyboard = Keyboard()
        self._left = asyncio.Event()
        self._typed: deque[str] = deque()
        self._prompting: asyncio.Task[None] | None = None
        self._others_turn = False
        self._leaving = False
        """The input has ended."""

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._left.set)
        closed = self._connected.connection.closed
        reading = loop.create_task(self._read())
        await self._connected.load(self._session)
        self._show_arrived()
        self._others_turn = self._session.facts.get("state") in RUNNING_STATES
        self._screen.end_line()
        self._keyboard.on_line = self._line
        self._keyboard.start()
        await first_of(self._left.wait(), self._screen.broken.wait(), closed.wait())
        self._keyboard.stop()
        reading.cancel()
        if self._prompting is not None and not closed.is_set():
            self._prompting.cancel()  # the turn goes on elsewhere or ends with this process: neither is a failure
        self._screen.end_line()
        return 0

    # -- from the session

    async def _read(self) -> None:
        try:
            async for event in self._events:
                self._event(event)
        except DragomanError:
            pass  # the connection ended, which `run` waits for

    def _show_arrived(self) -> None:
        """Show what arrived already, before something that comes after it."""
        for event in self._events.take():
            self._event(event)

    def _event(self, event: Event) -> None:
        if isinstance(event, Question):
            self._narrator.ask(event)  # it stays open for a client that can answer
        elif isinstance(event, TurnEnded):
            if not event.own:  # `_prompt` has the others
                self._others_turn = False
                self._turn_ended(event)
                self._send_next()
        else:
            if isinstance(event, UserMessage) and self._prompting is None:
                self._others_turn = True
            self._narrator.tell(dict(event.raw))

    def _turn_ended(self, ended: TurnEnded) -> None:
        error = {"error": {"message": ended.error}} if ended.error is not None else {}
        self._narrator.turn_ended({"stopReason": ended.stop_reason, **error})

    # -- from the input

    def _line(self, line: str | None) -> None:
        if line is None:
            self._leaving = True
        elif line.strip():
            self._typed.append(line)
        self._send_next()

    def _send_next(self) -> None:
        if self._prompting is not None:
            return
        if self._typed and not self._others_turn:
            self._prompting = asyncio.get_running_loop().create_task(self._prompt(self._typed.popleft()))
        elif self._leaving and not self._typed:
            self._left.set()

    async def _prompt(self, text: str) -> None:
        self._narrator.say(f"> {text}", bold=True)
        try:
            ended = await self._session.send(text, wait=False).ended()
            self._show_arrived()
            self._turn_ended(ended)
        except DragomanError as error:
            self._show_arrived()
            if isinstance(error, RequestRefused) and error.reason == "prompt_in_flight":
                self._others_turn = True
                self._typed.appendleft(text)
            else:
                self._narrator.turn_ended({"error": {"message": str(error)}})
        self._prompting = None
        self._send_next()
