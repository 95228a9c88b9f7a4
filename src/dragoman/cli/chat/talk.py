"""The conversation behind a chat's screen: connecting, prompts, events, questions, commands."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.cli.chat.commands import COMMANDS, Commands, with_agent_commands
from dragoman.cli.chat.content import blocks_of, edited_text
from dragoman.cli.chat.menu import Choice, Menu
from dragoman.cli.chat.opening import Opened, Wanted, open_session
from dragoman.cli.chat.screen import ChatScreen
from dragoman.cli.chat.settings import BUILTIN, NO_MODEL, find_option, lacks_model
from dragoman.cli.chat.transcript import FAINT, Transcript, last_lines
from dragoman.cli.terminal.approvals import approval_lines
from dragoman.cli.terminal.narrator import question_lines
from dragoman.client import (
    CaughtUp,
    CommandsChanged,
    DragomanError,
    Event,
    EventStream,
    Gateway,
    Question,
    Session,
    Text,
    Thought,
    ToolStarted,
    Turn,
    TurnEnded,
    Usage,
    UserMessage,
    connect,
)
from dragoman.client.child import Child
from dragoman.gateway.rewriting.tool_text import ToolContents
from dragoman.wire.json_types import as_object, own_meta

EVENTS_AT_ONCE = 64
SHORT_ID = 16
"""Characters of a session's id that name it well enough."""
SLOW_START = 1.0
"""Seconds after which a start is told."""
RUNNING_STATES = frozenset({"working", "silent", "waiting_for_permission"})


@dataclass(slots=True, eq=False)
class Sent:
    text: str
    turn: Turn
    begun: bool = False
    """Its turn runs, and it was printed."""


class Talk:
    def __init__(self, screen: ChatScreen, options: Wanted) -> None:
        self._screen = screen
        self._options = options
        self._transcript = Transcript()
        self._contents = ToolContents()
        self._lives_on = False
        self.session: Session | None = None
        self._events: EventStream | None = None
        self._next: Wanted | None = None
        self._known: set[str] = set()
        self.agent = options.agent or ""
        self._early: list[str] = []
        """Lines typed before there was a session."""
        self._sent: list[Sent] = []
        self._recalled: list[Sent] = []
        """Taken back for editing; the gateway has not answered yet."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._others_turn = False
        self._replaying = False
        self._since = time.monotonic()
        self._cancelled = False
        self._warned = False
        self._usage: Usage | None = None
        self._offered = COMMANDS
        self._phase = "starting"
        self._commands = Commands(self, screen)
        self.failed = False
        screen.tail = self._transcript.tail
        screen.unfinished = self._transcript.finish
        screen.queued = self._queued
        screen.status = self._status
        screen.on_line = self.line
        screen.on_interrupt = self.interrupt
        screen.on_recall = self._recall

    # -- opening

    async def run(self) -> None:
        """Connect and read events until the connection ends; a failure is shown, and ends the chat."""
        ticking = self.spawn(self._tick())
        try:
            async with connect() as gateway:
                self._lives_on = not isinstance(gateway.connection.channel, Child)
                await self._talk(gateway)
        except (DragomanError, LookupError) as error:
            self.say(f"! {error}", "ansired")
            self.failed = True
            self._screen.leave()
        finally:
            ticking.cancel()

    async def _talk(self, gateway: Gateway) -> None:
        """Read the events of one session after another, as the user switches."""
        wanted: Wanted | None = self._options
        while wanted is not None:
            try:
                opened = await open_session(gateway, wanted, self._screen, self._tell_phase, self._known)
            except (DragomanError, LookupError) as error:
                if self.session is None:
                    raise
                self.say(f"! {error}", "ansired")
                opened = await open_session(gateway, self._back(self.session), self._screen, self._tell_phase)
            self._opened(gateway, opened)
            if self._next is None:  # else another one was chosen while this one was opened
                await self._read()
            wanted, self._next = self._next, None

    def _back(self, session: Session) -> Wanted:
        """The session that was left for one that cannot be opened, from its last event on."""
        return Wanted(self._options.folder, session=session.id, after=session.seq)

    def _opened(self, gateway: Gateway, opened: Opened) -> None:
        session = self.session = opened.session
        self._known.add(session.id)
        events = self._events = session.events()
        self._replaying = opened.replays
        self._others_turn = session.facts.get("state") in RUNNING_STATES
        self.agent, self._phase, self._usage = opened.agent, "", None
        self._sent.clear()
        self._recalled.clear()
        if opened.loaded:
            for event in events.take():
                self._event(event)
            self._caught_up(CaughtUp(str(session.facts.get("state"))))
        self.spawn(self._name_agent(gateway, session, new=not opened.replays))
        early, self._early = self._early, []
        for text in early:
            self._send(text)
        self._screen.refresh()

    async def _read(self) -> None:
        assert self._events is not None
        count = 0
        async for event in self._events:
            self._event(event)
            count += 1
            if count % EVENTS_AT_ONCE == 0:
                await asyncio.sleep(0)  # keys come first

    def switch(self, wanted: Wanted) -> None:
        """Leave this session for another; a turn that runs in it goes on."""
        if self._events is not None and self.session is not None:
            self.say(f"leaving {self.session.id[:SHORT_ID]}: dragoman chat -s {self.session.id[:SHORT_ID]}")
            self._next = wanted
            self._tell_phase("leaving")
            self._screen.close_menus()
            self._events.close()

    def _tell_phase(self, phase: str) -> None:
        self._phase, self._since = phase, time.monotonic()
        self._screen.refresh()

    async def _name_agent(self, gateway: Gateway, session: Session, *, new: bool) -> None:
        """Learn which agent the default is, for the status line, and say how a new session gets a model."""
        if not self.agent:
            try:
                self.agent = (await gateway.find(session.id)).agent
            except (DragomanError, LookupError):
                return
            self._screen.refresh()
        option = find_option(session.options, "model")
        if new and self.agent == BUILTIN and option is not None and lacks_model(option):
            self.say(NO_MODEL)

    # -- events

    def _event(self, event: Event) -> None:
        if isinstance(event, Question | Text | Thought | ToolStarted) and not self._others_turn:
            self._begin_next()
        if isinstance(event, Question):
            self._question(event)
            return
        self._contents.see(dict(event.raw))
        if isinstance(event, CaughtUp):
            self._caught_up(event)
        elif isinstance(event, Usage):
            self._usage = event
        elif isinstance(event, CommandsChanged):
            self._offered = with_agent_commands(dict(event.raw))
        elif isinstance(event, TurnEnded):
            self._turn_ended(event)
            return
        elif isinstance(event, UserMessage) and not self._replaying:
            self._others_turn = True  # own prompts are not repeated to us
        self._transcript.take(event)
        self._show()

    def _turn_ended(self, event: TurnEnded) -> None:
        """Show the end of a turn and begin the next; a queued prompt that was dropped goes back to the editor."""
        sent = next((sent for sent in self._sent if sent.turn.end is event), None)
        edited = edited_text(dict(event.raw))
        if event.own and sent is None:
            self._taken_back(event, edited)
            return
        if sent is not None:
            if event.stop_reason == "end_turn":
                self._begin_next()
            self._sent.remove(sent)
            if not sent.begun:
                self._screen.put(edited or sent.text)
                return
        self._others_turn = self._others_turn and event.own
        self._cancelled = False
        self._transcript.take(event)
        self._show()
        if event.stop_reason == "end_turn":
            self._begin_next()

    def _caught_up(self, event: CaughtUp) -> None:
        """Print the end of the conversation so far."""
        self._replaying = False
        self._others_turn = event.state in RUNNING_STATES
        self._transcript.say("")
        assert self.session is not None
        self._screen.show(last_lines(self._transcript.take_finished(), self.session.id))

    def _show(self) -> None:
        if not self._replaying:
            self._screen.show(self._transcript.take_finished())
        self._screen.refresh()

    def say(self, text: str, style: str = FAINT) -> None:
        self._transcript.say(text, style)
        self._show()

    # -- questions

    def _question(self, question: Question) -> None:
        tool = dict(question.tool)
        shown = list(question_lines(tool, self._contents))
        facts = own_meta(dict(question.raw))
        why = as_object(facts.get("policy")).get("why")
        notes = [*([str(why)] if why else []), *approval_lines(as_object(facts.get("approval")))]
        self._transcript.asked(question.title, str(tool.get("toolCallId")), shown, notes)
        choices = [Choice(option.name or option.id, option.lasting) for option in question.options]

        def chosen(index: int) -> None:
            self._screen.close_menu(menu)
            question.choose(question.options[index])
            self.say(f"  {choices[index].label}", "bold")

        def withdrawn() -> None:
            self._screen.close_menu(menu)
            self.say("  answered elsewhere, or no longer asked")

        menu = Menu([], choices, chosen)
        question.on_withdrawn(withdrawn)
        self._screen.ask(menu)
        self._show()

    # -- prompts

    def line(self, text: str) -> None:
        """Take what the user typed."""
        self._warned = False
        if text.startswith("!"):
            self.spawn(self._commands.shell(text[1:], self.folder))
        elif text.startswith("/") and self._commands.run(text):
            return
        elif self.session is None or self._phase:  # for the session that is being opened
            self._early.append(text)
            self._screen.refresh()
        else:
            self._send(text)

    @property
    def folder(self) -> str:
        return self.session.cwd if self.session is not None else str(self._options.folder)

    def commands(self) -> dict[str, str]:
        """All commands with their help: ours, then the agent's."""
        return self._offered

    def _send(self, text: str) -> None:
        assert self.session is not None
        sent = Sent(text, self.session.send(blocks_of(text, Path(self.session.cwd))))
        self._sent.append(sent)
        if len(self._sent) == 1 and not self._others_turn:
            self._begin_next()
        self._screen.refresh()

    def _begin_next(self) -> None:
        """Print the prompt whose turn runs now, unless it was printed."""
        if self._sent and not self._sent[0].begun:
            self._sent[0].begun = True
            self._since = time.monotonic()
            self._transcript.prompted(self._sent[0].text)
            self._show()

    def _queued(self) -> Sequence[str]:
        return [*(sent.text for sent in self._sent if not sent.begun), *self._early]

    def _recall(self) -> str | None:
        """Take the last queued prompt back for editing."""
        if self._early:
            return self._early.pop()
        if self._sent and not self._sent[-1].begun:
            sent = self._sent.pop()
            self._recalled.append(sent)
            sent.turn.withdraw()
            return sent.text
        return None

    def _taken_back(self, event: TurnEnded, edited: str | None) -> None:
        """A recalled prompt is out of the queue; what another client made of it replaces what was sent."""
        recalled = next((sent for sent in self._recalled if sent.turn.end is event), None)
        if recalled is not None:
            self._recalled.remove(recalled)
            if edited is not None and not self._screen.replace(recalled.text, edited):
                self.say(f"this message had been changed to: {edited}")

    def interrupt(self) -> None:
        if self.session is not None and self._busy and not self._cancelled:
            self._cancelled = True
            self.session.cancel()
            self.say("cancelling; Ctrl-C again leaves")
        elif self._busy or self._warned:
            self._screen.leave()
        else:
            self._warned = True
            self.say("Ctrl-C again leaves; Ctrl-D too")

    @property
    def _busy(self) -> bool:
        return bool(self._sent) or self._others_turn

    # -- the rest

    def farewell(self) -> list[str]:
        """How to come back, for when the screen is gone."""
        if self.session is None:
            return []
        come_back = f"To continue: dragoman chat -s {self.session.id[:SHORT_ID]}"
        if self._busy and self._lives_on:
            return ["The turn goes on in dragoman serve.", come_back]
        return [come_back]

    def _status(self) -> str:
        if self._phase:
            seconds = time.monotonic() - self._since
            return f"{self._phase}…" + (f" {seconds:.0f} s" if seconds >= SLOW_START else "")
        parts = [self.agent or "session"]
        option = find_option(self.session.options, "model") if self.session is not None else None
        if option is not None:
            parts.append("no model" if lacks_model(option) else str(option.get("currentValue")))
        if self._usage is not None and self._usage.used and self._usage.size:
            parts.append(f"{100 * self._usage.used // self._usage.size} % of context")
        if self._usage is not None and self._usage.cost:
            parts.append(f"${self._usage.cost:.2f}")
        if self._busy:
            parts.append(f"working {time.monotonic() - self._since:.0f} s, Ctrl-C cancels")
        else:
            parts.append("Enter sends, /help")
        return " · ".join(parts)

    async def _tick(self) -> None:
        """Let the seconds in the status line go on."""
        while True:
            await asyncio.sleep(1)
            if self._busy or self._phase:
                self._screen.refresh()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
