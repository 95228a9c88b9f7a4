"""`dragoman sessions attach`: a session in the terminal, whichever process owns it.

history ──► live events; a typed line is a prompt, or the answer to a question
            Ctrl-C: cancel the turn, twice: leave; Ctrl-D: leave, and let a turn of another process go on
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections import deque

from dragoman.cli.compose import first_of, gateway, run_loop
from dragoman.cli.exec.approval import ask_person
from dragoman.cli.in_process import open_gateway
from dragoman.cli.sessions.find import find
from dragoman.cli.terminal.keyboard import Keyboard
from dragoman.cli.terminal.narrator import Narrator
from dragoman.cli.terminal.screen import Screen
from dragoman.client.connection import CAPABILITIES
from dragoman.client.errors import DragomanError, RequestRefused
from dragoman.client.events import Event, TurnEnded, UserMessage
from dragoman.client.gateway import Gateway as ClientGateway
from dragoman.client.question import Question
from dragoman.client.session import Session
from dragoman.config.errors import ConfigError
from dragoman.config.model import Config
from dragoman.config.paths import Paths
from dragoman.gateway.access.client import Terms
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.json_types import JsonObject
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
        async with await open_gateway(
            running, Terms(start_ahead=False, leave_turns=True), CAPABILITIES
        ) as connected:
            return await TerminalView(running, connected, record).run()


class TerminalView:
    """One user's view of one session, until the user leaves."""

    def __init__(self, running: Gateway, connected: ClientGateway, record: SessionRecord) -> None:
        self._running = running
        self._connected = connected
        self._record = record
        self._session: Session = connected.session(record.id, record.cwd)
        self._events = self._session.events()
        self._screen = Screen(sys.stdout, sys.stdout)
        self._narrator = Narrator(self._screen, prompts=True)
        self._keyboard = Keyboard()
        self._left = asyncio.Event()
        self._typed: deque[str] = deque()
        self._held: list[str] = []
        """Lines typed before a turn was cancelled; sent only if the user confirms."""
        self._waiting: list[Question] = []
        self._prompting: asyncio.Task[None] | None = None
        self._others_turn = False
        self._leaving = False
        self._cancelled = False

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._left.set)
        record, closed = self._record, self._connected.connection.closed
        reading = loop.create_task(self._read())
        await self._connected.load(self._session)
        self._show_arrived()
        facts = self._session.facts
        self._others_turn = facts.get("state") in RUNNING_STATES
        self._screen.end_line()
        if self._keyboard.terminal:
            state = str(facts.get("state") or "attached").replace("_", " ")
            self._narrator.say(
                f"{record.agent} in {record.cwd}: {state}. Type a prompt; Ctrl-D leaves.", dim=True
            )
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
            self._question(event)
        elif isinstance(event, TurnEnded):
            if not event.own:  # `_prompt` has the others
                self._others_turn = self._cancelled = False
                self._turn_ended(event)
                self._send_next()
        else:
            if isinstance(event, UserMessage) and self._prompting is None:
                self._others_turn = True
            self._narrator.tell(dict(event.raw))

    def _turn_ended(self, ended: TurnEnded) -> None:
        error = {"error": {"message": ended.error}} if ended.error is not None else {}
        facts = {"stopReason": ended.stop_reason, **error}
        self._narrator.turn_ended(facts)
        self._hold_if_stopped(facts)

    def _question(self, question: Question) -> None:
        self._waiting.append(question)
        if len(self._waiting) == 1:
            self._ask_next()

    def _ask_next(self) -> None:
        while self._waiting and not self._waiting[0].open:
            self._waiting.pop(0)
        if not self._waiting:
            return
        if self._keyboard.terminal:
            ask_person(self._waiting[0], self._narrator, self._keyboard, self._ask_next, enter=True)
        else:  # the question stays open for a client with a keyboard
            self._narrator.ask(self._waiting[0])

    # -- from the user

    def _line(self, line: str | None) -> None:
        if line is None:
            self._leave()
        elif line.strip():
            self._typed.append(line)
            self._send_next()
        elif self._held:
            self._typed.extend(self._held)
            self._held.clear()
            self._send_next()

    def _send_next(self) -> None:
        if self._typed and self._prompting is None and not self._others_turn:
            self._prompting = asyncio.get_running_loop().create_task(self._prompt(self._typed.popleft()))
        elif self._typed and self._keyboard.terminal:
            self._narrator.say("(waits until this turn ends)", dim=True)

    async def _prompt(self, text: str) -> None:
        if not self._keyboard.terminal:
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
        self._cancelled = False
        self._send_next()
        if self._leaving and self._prompting is None and not self._typed:
            self._left.set()

    def _hold_if_stopped(self, ended: JsonObject) -> None:
        """Hold back the lines that wait for the end of a turn if the turn was cancelled."""
        if ended.get("stopReason") != "cancelled" or not self._typed or not self._keyboard.terminal:
            return
        self._held.extend(self._typed)
        self._typed.clear()
        what = "1 line is" if len(self._held) == 1 else f"{len(self._held)} lines are"
        self._narrator.say(f"{what} not sent: Enter alone sends what waits.", fg="yellow")

    def _leave(self) -> None:
        """Leave; warn once if that ends a turn of ours in this process. Input from a pipe waits for its answers."""
        mine = self._prompting is not None or bool(self._typed)
        if not self._keyboard.terminal and mine:
            self._leaving = True
        elif mine and self._lives_here() and not self._leaving:
            self._leaving = True
            self._narrator.say(
                "Your turn still runs, and ends if you leave: Ctrl-D again leaves.", fg="yellow"
            )
        else:
            self._left.set()

    def _lives_here(self) -> bool:
        session = self._running.sessions.get(self._record.id)
        return session is not None and session.journal is not None

    def _cancelling(self) -> str:
        session = self._running.sessions.get(self._record.id)
        if session is None or not session.can_cancel:
            return "not cancelled: the process that has this session cannot be reached"
        return "cancelling"

    def _interrupt(self) -> None:
        if self._cancelled:
            self._left.set()
        elif self._prompting is not None or self._others_turn:
            self._cancelled = True
            self._session.cancel()
            self._narrator.say(f"{self._cancelling()}; Ctrl-C again leaves", dim=True)
        else:
            self._narrator.say("Nothing is running: Ctrl-D leaves.", dim=True)
