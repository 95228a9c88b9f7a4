"""Runs `dragoman exec`: one prompt in a new or an earlier session, until it ends or is stopped.

talking ──Ctrl-C, time over──► cancelling ──the turn ends, Ctrl-C again──► ended
"""

from __future__ import annotations

import asyncio
import signal
from dataclasses import dataclass

from dragoman.agents.known import KNOWN, find_agent
from dragoman.cli.acp.start import check_sandbox
from dragoman.cli.compose import gateway, run_loop
from dragoman.cli.exec.approval import Approve, ask_person, decide, refusal
from dragoman.cli.exec.behind import Behind, Lines, waiting_line
from dragoman.cli.exec.output import Outcome, Output
from dragoman.cli.in_process import open_gateway
from dragoman.cli.sessions.find import find
from dragoman.cli.steering.options import set_options
from dragoman.cli.terminal.keyboard import Keyboard
from dragoman.client.connection import CAPABILITIES
from dragoman.client.errors import DragomanError, LoginRequired, RequestRefused
from dragoman.client.events import Event, Notice, TurnEnded
from dragoman.client.gateway import Gateway as ClientGateway
from dragoman.client.question import Question
from dragoman.client.session import Session
from dragoman.client.turn import Turn
from dragoman.config.errors import ConfigError
from dragoman.config.model import Config
from dragoman.config.paths import Paths
from dragoman.gateway.access.client import Terms
from dragoman.gateway.delivery.decisions import decisions_of
from dragoman.gateway.delivery.transcript import lost_notice
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.json_types import JsonObject, as_object, own_meta
from dragoman.gateway.ports.checkpoints import CheckpointError
from dragoman.gateway.ports.store import StoreError
from dragoman.gateway.ports.worktrees import WorktreeWish
from dragoman.gateway.rewriting.updates import update_line
from dragoman.gateway.session.open_tools import OpenTools
from dragoman.gateway.session.policy.setup_question import NAME as SETUP
from dragoman.gateway.session.policy.verdict import choose_option
from dragoman.wire.errors import INTERNAL_ERROR

DONE, FAILED, USAGE, REFUSED, TIME_LIMIT, CANCELLED = 0, 1, 2, 3, 124, 130
STOP_REASONS = {"end_turn": DONE, "refusal": REFUSED, "cancelled": CANCELLED}
# Updates without numbers: --json prints messages as any client gets them.
SHOWN: JsonObject = {**CAPABILITIES, "_meta": {"dragoman": {"turnEnds": True, "remembering": True}}}
GRACE = 5.0
"""Seconds that a turn has to end after `--timeout`."""


@dataclass(frozen=True, slots=True)
class ExecOptions:
    """What the command line asked for."""

    prompt: str
    cwd: str
    cwd_given: bool = False
    agent: str | None = None
    session: str | None = None
    last: bool = False
    """Continue the last session in the folder."""
    name: str | None = None
    settings: tuple[tuple[str, str], ...] = ()
    """Options of the agent, by id or as `mode` and `model`."""
    approve: Approve | None = None
    """None: the user is asked on a terminal, else nothing is approved."""
    timeout: float | None = None
    sandbox: str | None = None
    worktree: WorktreeWish | None = None
    content: tuple[JsonObject, ...] = ()
    """Sent in place of `prompt`, if it is more than text."""


def run(options: ExecOptions, config: Config, paths: Paths, make_output: type[Output]) -> int:
    """Returns the exit code."""
    if options.agent is not None:
        find_agent(config, options.agent)
    check_sandbox(config, options.sandbox)
    return run_loop(_run(options, config, paths, make_output))


async def _run(options: ExecOptions, config: Config, paths: Paths, make_output: type[Output]) -> int:
    async with gateway(config, paths, sandbox=options.sandbox) as running:
        return await Execution(running, options, make_output()).run()


class Execution:
    def __init__(self, running: Gateway, options: ExecOptions, output: Output) -> None:
        self._running = running
        self._options = options
        self._output = output
        self._lines = Lines(output.message)
        self._behind = Behind()
        self._calls = OpenTools()
        self._keyboard = Keyboard()
        self._waiting: list[Question] = []
        self._gateway: ClientGateway | None = None
        self._session: Session | None = None
        self._session_id: str | None = None
        self._resumed = False
        self._agent = options.agent or ""
        self._result: JsonObject = {}
        """The answer to the prompt."""
        self._changes: list[JsonObject] = []
        self._turn: Turn | None = None
        self._did_something = False
        self._denied: str | None = None
        """What denied a call of the turn without a question."""
        self._questions: list[Question] = []
        self._verdict: int | None = None
        self._work: asyncio.Task[Outcome] | None = None

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        self._work = loop.create_task(self._talk())
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._interrupt)
        if self._options.timeout is not None:
            loop.call_later(self._options.timeout, self._time_over)
        broken = loop.create_task(self._stop_when_unread())
        try:
            outcome = await self._work
        except asyncio.CancelledError:
            outcome = self._stopped("cancelled before it ended")
        except DragomanError as error:
            outcome = self._failed(error)
        except (ConfigError, StoreError) as error:
            outcome = self._outcome(USAGE, None, {"message": str(error)})
        finally:
            broken.cancel()
            self._keyboard.stop()
        self._lines.end()
        self._output.finish(outcome)
        if self._gateway is not None and not self._work.cancelled():
            await self._gateway.aclose()
        unread = self._output.narrator.screen.broken.is_set()  # checked after the last write
        return FAILED if unread and outcome.exit_code == DONE else outcome.exit_code

    # -- the conversation

    async def _talk(self) -> Outcome:
        options = self._options
        given = options.session
        if options.last:
            given = await self._last()
        if given is None:
            self._agent = options.agent or self._running.agent_for(options.cwd, None)
            find_agent(self._running.config, self._agent)
            terms = Terms(agent=self._agent, start_ahead=False, worktree=self._worktree(options))
            await self._connect(terms)  # `session/new` starts the agent
            await self._begin()
        else:
            await self._resume_session(given)
        assert self._session is not None
        await set_options(self._session, options.settings)
        if options.name is not None:
            await self._session.rename(options.name)
        before = await self._last_seq()
        result = dict((await self._prompt(self._session)).raw)
        self._result = result
        self._changes = await self._changed() if self._output.tells_changes else []
        if own_meta(result).get("unanswered") is not None and self._verdict is None:
            message = f"the agent {self._agent} has no language model that could answer"
            return self._outcome(FAILED, str(result.get("stopReason")), {"message": message})
        self._denied = await self._denied_since(before)
        return self._ended(str(result.get("stopReason")))

    async def _last(self) -> str:
        from dragoman.cli.exec.hand_over import last_in

        store = self._running.store
        if store is None:
            raise ConfigError("no session can be continued: sessions.journal is false")
        return await last_in(store, self._options.cwd, self._options.agent)

    async def _changed(self) -> list[JsonObject]:
        """The files that this turn changed; none where they are not recorded."""
        try:
            recorded = await self._running.checkpoints.checkpoints(str(self._session_id))
            turn = max((checkpoint.turn for checkpoint in recorded), default=0)
            files = (
                (await self._running.checkpoints.changes(str(self._session_id), turn)).files if turn else []
            )
        except CheckpointError:
            return []
        return [
            {"path": file.path, "status": file.status, "added": file.added, "removed": file.removed}
            for file in files
        ]

    async def _prompt(self, session: Session) -> TurnEnded:
        """Send the prompt and show what comes of it; what came before, only if it is a notice."""
        early = session.events()
        notices, questions = [], 0
        for event in early.take():
            self._calls.see(dict(event.raw))
            questions += isinstance(event, Question) and event.open
            if isinstance(event, Notice):
                notices.append(event)
                self._output.update(dict(event.raw))
        early.close()
        turn = self._turn = session.prompt(self._options.content or self._options.prompt, wait=False)
        if self._resumed:
            await self._behind.look(session)
        self._lines.let_go(self._behind.waits)
        if self._behind.waits:
            for notice in notices:
                self._lines.event(session.id, notice)
            self._output.narrator.say(waiting_line(session.id, questions), dim=True)
        async for event in self._behind.own_events(session, turn, self._output.narrator.say):
            self._show(event)
        self._lines.end()
        return await turn.ended()

    def _show(self, event: Event) -> None:
        self._lines.event(str(self._session_id), event)
        if isinstance(event, Question):
            self._question(event)
        elif not isinstance(event, TurnEnded) or not event.own:
            self._update(dict(event.raw))

    async def _last_seq(self) -> int:
        store = self._running.store
        return await store.last_seq(str(self._session_id)) if store is not None else 0

    async def _denied_since(self, seq: int) -> str | None:
        """The rule that denied a call of this turn: it is not asked about, so only the journal has it."""
        store = self._running.store
        if store is None or self._did_something:
            return None
        try:
            found = await decisions_of(store, str(self._session_id), after=seq)
        except StoreError:
            return None
        return next((one.by for one in reversed(found) if one.word == "denied"), None)

    async def _connect(self, terms: Terms) -> None:
        self._gateway = await open_gateway(self._running, terms, SHOWN, self._lines.message)

    async def _begin(self) -> None:
        assert self._gateway is not None
        with self._output.starting(self._agent):
            session = self._session = await self._gateway.new(cwd=self._options.cwd, watch=True)
        self._session_id = session.id
        made = as_object(session.facts.get("worktree"))
        if made:
            self._output.note(
                f"worktree {made.get('name')} in {made.get('folder')}, branch {made.get('branch')}"
            )

    def _worktree(self, options: ExecOptions) -> WorktreeWish | None:
        """What was asked for; where the settings give each session a worktree, it has its name from the prompt."""
        known = self._running.worktrees
        if options.worktree is None and known is not None and known.wanted(options.cwd):
            return WorktreeWish(title=options.prompt)
        return options.worktree

    async def _resume_session(self, given: str) -> None:
        """Resume a session without a replay: a script wants the answer to its own prompt only."""
        store = self._running.store
        if store is None:
            why = self._running.trouble or "sessions are not saved: sessions.journal is false"
            raise ConfigError(f"session {given} cannot be continued: {why}")
        record = await find(store, given)
        self._agent = record.agent
        if self._options.agent not in (None, record.agent):
            raise ConfigError(f"session {record.id} belongs to the agent {record.agent}: leave out --agent")
        self._session_id = record.id
        await self._connect(Terms(start_ahead=False))
        assert self._gateway is not None
        cwd = self._options.cwd if self._options.cwd_given else record.cwd
        self._resumed = True
        self._lines.hold()
        lost, self._session = await asyncio.gather(
            lost_notice(store, record.id), self._gateway.resume(record.id, cwd, watch=True)
        )
        if lost is not None:  # a resume replays no history, so the gateway does not report them
            self._warn(lost)

    def _warn(self, title: str) -> None:
        """Show a notice as if the gateway had sent it."""
        update = {"sessionUpdate": "notice", "severity": "error", "title": title}
        self._output.message(update_line(str(self._session_id), update))
        self._output.update(update)

    def _update(self, update: JsonObject) -> None:
        self._calls.see(update)
        if update.get("status") == "completed" and "toolCallId" in update:
            self._did_something = True
        self._output.update(update)

    # -- questions

    def _question(self, question: Question) -> None:
        """Answer by the rule, or ask the user, one at a time."""
        approve = self._options.approve
        asks = approve is None and self._keyboard.terminal and self._output.narrator.screen.terminal
        if not asks and question.tool.get("name") == SETUP:
            question.choose(choose_option("deny", question.raw.get("options")), rule="--setup")
            self._output.note("the commands of worktrees.setup are not run; --setup approves them")
            return
        self._questions.append(question)
        if asks:
            self._waiting.append(question)
            if len(self._waiting) == 1:
                self._ask_next()
            return
        if not decide(approve or "none", question, self._calls):
            self._output.note(refusal(question, approve or "none", self._calls))

    def _ask_next(self) -> None:
        self._keyboard.stop()
        while self._waiting and not self._waiting[0].open:
            self._waiting.pop(0)
        if self._waiting:
            self._keyboard.start()
            ask_person(self._waiting[0], self._output.narrator, self._keyboard, self._ask_next)

    # -- the end

    def _interrupt(self) -> None:
        if self._verdict is None and self._turn is not None:
            self._output.note("cancelling; Ctrl-C again ends at once")
        self._stop(CANCELLED)

    def _stop(self, verdict: int) -> None:
        """The first time cancel the turn, the second time end at once."""
        again = self._verdict is not None
        self._verdict = verdict if self._verdict is None else self._verdict
        if self._turn is not None and not again and self._session is not None:
            if self._behind.waits:
                self._turn.withdraw()  # the turn of the other client goes on
            else:
                self._session.cancel()
        elif self._work is not None:
            self._work.cancel()

    def _time_over(self) -> None:
        self._stop(TIME_LIMIT)
        asyncio.get_running_loop().call_later(GRACE, self._stop, TIME_LIMIT)

    async def _stop_when_unread(self) -> None:
        await self._output.narrator.screen.broken.wait()
        self._stop(FAILED)

    def _ended(self, reason: str) -> Outcome:
        if self._verdict is not None:
            return self._stopped("cancelled", reason)
        code = STOP_REASONS.get(reason, FAILED)
        error = None
        if code == DONE and self._all_refused():
            why = "every permission that the agent asked for was refused"
            if not self._questions:
                why = f"it was denied by {self._denied}"
            return self._outcome(REFUSED, reason, {"message": f"nothing was done: {why}"})
        if code == REFUSED:
            error = {"message": f"the agent {self._agent} refused to go on (stop reason refusal)"}
        elif code == FAILED:
            error = {"message": f"the agent {self._agent} stopped early (stop reason {reason})"}
        return self._outcome(code, reason, error)

    def _all_refused(self) -> bool:
        """Whether every permission was refused and no tool call was completed without one."""
        asked = bool(self._questions) or self._denied is not None
        refused = asked and all(question.allowed is False for question in self._questions)
        return refused and not self._did_something

    def _stopped(self, how: str, reason: str | None = None) -> Outcome:
        code = CANCELLED if self._verdict is None else self._verdict
        if code == TIME_LIMIT:
            how = f"no end within {self._options.timeout:g} s (--timeout): cancelled"
        return self._outcome(code, reason or "cancelled", None if code == FAILED else {"message": how})

    def _failed(self, error: DragomanError) -> Outcome:
        if self._verdict is not None:
            return self._stopped("cancelled")
        message = str(error)
        if isinstance(error, LoginRequired):
            known = KNOWN.get(self._agent)
            login = known.login if known is not None else ""
            message = f"the agent {self._agent} wants you to log in first" + (f": {login}" if login else "")
        if isinstance(error, RequestRefused) and error.reason == "prompt_in_flight":
            message += f": wait for its end, or end it with `dragoman cancel {self._session_id}`"
        code = error.code if isinstance(error, RequestRefused) else INTERNAL_ERROR
        return self._outcome(FAILED, None, {"code": code, "message": message})

    def _outcome(self, code: int, reason: str | None, error: JsonObject | None) -> Outcome:
        return Outcome(
            code,
            self._session_id,
            reason,
            error,
            kept=self._running.journaling,
            usage=as_object(self._result.get("usage")),
            changes=self._changes,
        )
