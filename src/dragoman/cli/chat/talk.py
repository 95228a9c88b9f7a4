"""The conversation behind a chat's screen: connecting, prompts, events, questions, commands."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.cli.chat import questions
from dragoman.cli.chat.commands.commands import COMMANDS, Commands, with_agent_commands
from dragoman.cli.chat.commands.options import BUILTIN, NO_MODEL, find_option, lacks_model
from dragoman.cli.chat.lines.markdown import Line
from dragoman.cli.chat.lines.transcript import FAINT, Transcript, last_lines
from dragoman.cli.chat.opening import Opened, Wanted, open_session
from dragoman.cli.chat.prompts import Prompts
from dragoman.cli.chat.screen import ChatScreen
from dragoman.cli.chat.status import Status
from dragoman.client import (
    CaughtUp,
    CommandsChanged,
    DragomanError,
    Event,
    EventStream,
    Gateway,
    InfoChanged,
    Question,
    Session,
    Text,
    Thought,
    ToolStarted,
    TurnEnded,
    Usage,
    UserMessage,
    connect,
)
from dragoman.client.child import Child
from dragoman.gateway.rewriting.tool_text import ToolContents

if TYPE_CHECKING:
    from dragoman.config.model import Config

EVENTS_AT_ONCE = 64
SHORT_ID = 16
"""Characters of a session's id that name it well enough."""
RUNNING_STATES = frozenset({"working", "silent", "waiting_for_permission"})


class Talk:
    def __init__(self, screen: ChatScreen, options: Wanted) -> None:
        self._screen = screen
        self._options = options
        self._transcript = Transcript()
        self._contents = ToolContents()
        self.lives_on = False
        """The session goes on without this chat: a `serve` has it."""
        self.session: Session | None = None
        self.gateway: Gateway | None = None
        self._events: EventStream | None = None
        self._next: Wanted | None = None
        self._known: set[str] = set()
        self.agent = options.agent or ""
        self._prompts = Prompts(screen.editor, self._began, self.say)
        self._tasks: set[asyncio.Task[None]] = set()
        self._others_turn = False
        self._replaying = False
        self._cancelled = False
        self._warned = False
        self._offered = COMMANDS
        self._status = Status()
        self._commands = Commands(self, screen)
        self.failed = False
        screen.tail = self._transcript.tail
        screen.unfinished = self._transcript.finish
        screen.queued = self._prompts.queued
        screen.status = self._status_text
        screen.on_interrupt = self.interrupt
        screen.on_steer = self._steer
        screen.editor.completer.arguments = self._commands.arguments
        screen.editor.on_line = self.line
        screen.editor.on_recall = self._prompts.recall

    # -- opening

    async def run(self) -> None:
        """Connect and read events until the connection ends; a failure is shown, and ends the chat."""
        ticking = self.spawn(self._tick())
        self.spawn(self._configure())
        try:
            async with connect() as gateway:
                self.gateway = gateway
                self.lives_on = not isinstance(gateway.connection.channel, Child)
                await self._talk(gateway)
        except (DragomanError, LookupError) as error:
            self.say(f"! {error}", "ansired")
            self.failed = True
            self._screen.leave()
        finally:
            ticking.cancel()

    async def _configure(self) -> None:
        def read() -> Config | None:
            from dragoman.cli.chat.settings import settings_of

            return settings_of(self._options.folder)

        config = await asyncio.to_thread(read)
        if config is not None:
            self._screen.attention.when = config.chat.notify

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
        self.agent = opened.agent
        self._status.opened()
        self._prompts.open(session)
        self._screen.editor.completer.folder = Path(session.cwd)
        if opened.loaded:
            for event in events.take():
                self._event(event)
            self._caught_up(CaughtUp(str(session.facts.get("state"))))
        self.spawn(self._name_agent(gateway, session, new=not opened.replays))
        early, self._prompts.early = self._prompts.early, []
        for text in early:
            self._prompts.send(text, at_once=not self._others_turn)
        self._screen.refresh()

    async def _read(self) -> None:
        assert self._events is not None
        count = 0
        async for event in self._events:
            self._event(event)
            count += 1
            if count % EVENTS_AT_ONCE == 0:
                await asyncio.sleep(0)  # keys come first
            await self._screen.printed()

    def switch(self, wanted: Wanted) -> None:
        """Leave this session for another; a turn that runs in it goes on."""
        if self._events is not None and self.session is not None:
            self.say(f"leaving {self.session.id[:SHORT_ID]}: dragoman chat -s {self.session.id[:SHORT_ID]}")
            self._next = wanted
            self._tell_phase("leaving")
            self._screen.close_menus()
            self._events.close()

    def _tell_phase(self, phase: str) -> None:
        self._status.begin(phase)
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
            self._prompts.begin_next()
        if isinstance(event, Question):
            self._question(event)
            return
        if isinstance(event, Text | Thought | ToolStarted):
            self._status.goes_on()
        self._contents.see(dict(event.raw))
        if isinstance(event, CaughtUp):
            self._caught_up(event)
        elif isinstance(event, Usage):
            self._status.usage = event
        elif isinstance(event, InfoChanged):
            self._status.told(event)
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
        """Show the end of a turn and begin the next."""
        if not self._prompts.ended(event):
            self._screen.refresh()
            return
        self._others_turn = self._others_turn and event.own
        self._cancelled = False
        self._transcript.take(event)
        self._show()
        if event.stop_reason == "end_turn":
            self._prompts.begin_next()
        if not self.busy:
            self._screen.attention.call(f"{self.agent or 'The agent'} has ended its turn")

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

    def _question(self, question: Question) -> None:
        questions.ask(question, self._screen, self._transcript, self._contents, self._remark, self.line)
        self._screen.attention.call(f"{self.agent or 'The agent'} asks: {question.title}")
        self._show()

    def show(self, lines: Sequence[Line]) -> None:
        """Print lines of a command."""
        self._transcript.show(lines)
        self._show()

    def _remark(self, text: str, style: str) -> None:
        self.say(text, style or FAINT)

    # -- prompts

    def line(self, text: str) -> None:
        """Take what the user typed."""
        self._warned = False
        if text.startswith("!"):
            self.spawn(self._commands.shell(text[1:], self.folder))
        elif text.startswith("/") and self._commands.run(text):
            return
        elif self.session is None or self._status.phase:  # for the session that is being opened
            self._prompts.early.append(text)
        else:
            self._prompts.send(text, at_once=not self._others_turn)
        self._screen.refresh()

    def _steer(self, text: str) -> None:
        if text and (not self.busy or self.session is None or self._status.phase):
            self.line(text)
        else:
            self._prompts.steer(text)

    def _began(self, text: str, into_turn: bool) -> None:
        if not into_turn:
            self._status.begin()
        self._transcript.prompted(text, into_turn)
        self._show()

    @property
    def folder(self) -> str:
        return self.session.cwd if self.session is not None else str(self._options.folder)

    def commands(self) -> dict[str, str]:
        """All commands with their help: ours, then the agent's."""
        return self._offered

    def interrupt(self) -> None:
        if self.session is not None and self.busy and not self._cancelled:
            self._cancelled = True
            self.session.cancel()
            self.say("cancelling; Ctrl-C again leaves")
        elif self.busy or self._warned:
            self._screen.leave()
        else:
            self._warned = True
            self.say("Ctrl-C again leaves; Ctrl-D too")

    @property
    def busy(self) -> bool:
        """Whether a turn runs or a prompt waits."""
        return self._prompts.any or self._others_turn

    @property
    def last_message(self) -> str:
        return self._transcript.last_message

    # -- the rest

    def farewell(self) -> list[str]:
        """How to come back, for when the screen is gone."""
        if self.session is None:
            return []
        come_back = f"To continue: dragoman chat -s {self.session.id[:SHORT_ID]}"
        if self.busy and self.lives_on:
            return ["The turn goes on in dragoman serve.", come_back]
        return [come_back]

    def _status_text(self) -> str:
        options = self.session.options if self.session is not None else ()
        return self._status.text(self.agent, options, busy=self.busy, waiting=self._prompts.waiting)

    async def _tick(self) -> None:
        """Let the seconds in the status line go on, and see what others do with the queue."""
        while True:
            await asyncio.sleep(1)
            if self._prompts.waiting:
                await self._prompts.look()
            if self.busy or self._status.phase:
                self._screen.refresh()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
