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
from dragoman.cli.conversation import Conversation, Question
from dragoman.cli.exec.approval import ask_person
from dragoman.cli.sessions.find import find
from dragoman.cli.terminal.keyboard import Keyboard
from dragoman.cli.terminal.narrator import Narrator, turn_facts
from dragoman.cli.terminal.screen import Screen
from dragoman.config.errors import ConfigError
from dragoman.config.model import Config
from dragoman.config.paths import Paths
from dragoman.gateway.access.client import Terms
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.json_types import JsonObject, as_object, own_meta
from dragoman.gateway.ownership.entries import RUNNING_STATES
from dragoman.gateway.ports.store import SessionRecord
from dragoman.wire.errors import RpcError


def run(given: str, config: Config, paths: Paths) -> int:
    """Returns the exit code."""
    return run_loop(_run(given, config, paths))


async def _run(given: str, config: Config, paths: Paths) -> int:
    async with gateway(config, paths) as running:
        if running.store is None:
            raise ConfigError(running.trouble or "sessions are not saved: sessions.journal is false")
        record = await find(running.store, given)
        conversation = await Conversation.inside(running, Terms(start_ahead=False, leave_turns=True))
        try:
            return await TerminalView(running, conversation, record).run()
        finally:
            await conversation.disconnect()


class TerminalView:
    """One user's view of one session, until the user leaves."""

    def __init__(self, running: Gateway, conversation: Conversation, record: SessionRecord) -> None:
        self._running = running
        self._conversation = conversation
        self._record = record
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
        conversation = self._conversation
        conversation.on_update = self._update
        conversation.on_question = self._question
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._left.set)
        record = self._record
        params = {"sessionId": record.id, "cwd": record.cwd, "mcpServers": []}
        loaded = await conversation.result("session/load", params)
        self._others_turn = own_meta(loaded).get("state") in RUNNING_STATES
        self._screen.end_line()
        if self._keyboard.terminal:
            state = str(own_meta(loaded).get("state") or "attached").replace("_", " ")
            self._narrator.say(
                f"{record.agent} in {record.cwd}: {state}. Type a prompt; Ctrl-D leaves.", dim=True
            )
        self._keyboard.on_line = self._line
        self._keyboard.start()
        await first_of(self._left.wait(), self._screen.broken.wait(), conversation.closed.wait())
        self._keyboard.stop()
        if self._prompting is not None and not conversation.closed.is_set():
            self._prompting.cancel()  # the turn goes on elsewhere or ends with this process: neither is a failure
        self._screen.end_line()
        return 0

    # -- from the session

    def _update(self, update: JsonObject) -> None:
        ended = turn_facts(update)
        if ended is not None:  # of a turn that another client began
            self._others_turn = self._cancelled = False
            self._narrator.turn_ended(ended)
            self._hold_if_stopped(ended)
            self._send_next()
            return
        if update.get("sessionUpdate") == "user_message_chunk" and self._prompting is None:
            self._others_turn = True
        self._narrator.tell(update)

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
            result = await self._conversation.prompt(self._record.id, text)
            self._narrator.turn_ended(result)
            self._hold_if_stopped(result)
        except RpcError as error:
            if as_object(error.data).get("reason") == "prompt_in_flight":
                self._others_turn = True
                self._typed.appendleft(text)
            else:
                self._narrator.turn_ended({"error": {"message": error.message}})
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
            self._conversation.cancel(self._record.id)
            self._narrator.say(f"{self._cancelling()}; Ctrl-C again leaves", dim=True)
        else:
            self._narrator.say("Nothing is running: Ctrl-D leaves.", dim=True)
