"""When a session's project is recorded: as a turn begins and after it ended.

If the project certainly did not change since the session's last checkpoint, that one's tree is recorded again and
nothing waits. Otherwise the prompt waits for the first checkpoint, `checkpoints.patience` at most. Then the agent gets
it, the checkpoint is marked late, and what the gateway does for the agent waits in its place: answers to questions,
files and commands.
Nothing is recorded for a session that another process owns, or whose files are on another machine.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol

from dragoman.gateway.ports.checkpoints import Checkpoint, CheckpointError, Mark
from dragoman.wire.errors import invalid_request

if TYPE_CHECKING:
    from dragoman.config.model import AgentConfig
    from dragoman.gateway.ports.sandbox import Box
    from dragoman.gateway.runtime import Runtime

log = logging.getLogger(__name__)

PREPARE_AFTER = 0.3
"""Seconds after a session got its agent: a script that prompts at once does not wait for it."""
EXPECTED = frozenset({"no_git", "no_project", "checkpoints_off", "state_folder"})
"""Reasons that the user is told otherwise, or need not know before asking for changes: they are only logged."""


class _Boxed(Protocol):
    @property
    def box(self) -> Box | None: ...


class Recorded(Protocol):
    """The part of a session that is looked at here."""

    id: str
    workspace: str

    @property
    def gateway(self) -> Runtime: ...

    @property
    def agent(self) -> _Boxed | None: ...

    @property
    def agent_config(self) -> AgentConfig: ...

    @property
    def turn(self) -> Any: ...

    @property
    def feed(self) -> Any: ...

    @property
    def follows(self) -> bool: ...

    @property
    def cancelling(self) -> bool: ...

    @property
    def closed(self) -> bool: ...

    def notice(self, title: str, severity: str = ...) -> None: ...


class Checkpointing:
    def __init__(self, session: Recorded) -> None:
        self._session = session
        self._waiting: list[Callable[[], None]] | None = None
        """What waits for a checkpoint that is being made; None if none is."""
        self._owes_end = False
        self._told: set[str] = set()

    @property
    def wanted(self) -> bool:
        """Whether the beginning of a turn is recorded."""
        session = self._session
        if not session.gateway.checkpoints.records(session.workspace):
            return False
        if session.follows or session.agent_config.kind == "remote":
            return False
        box = session.agent.box if session.agent is not None else None
        return box is None or not box.elsewhere

    def prepare(self) -> None:
        """Have the project read soon, while the person still writes the first prompt."""
        if self.wanted:
            asyncio.get_running_loop().call_later(PREPARE_AFTER, self._prepare)

    def _prepare(self) -> None:
        session = self._session
        if session.turn is None and not session.closed and not session.gateway.closing and self.wanted:
            session.gateway.spawn(self._prepared())

    async def _prepared(self) -> None:
        session = self._session
        try:
            await session.gateway.checkpoints.prepare(session.id, session.workspace)
        except CheckpointError as error:
            log.debug("project is not prepared: %s", error, extra={"session": session.id})

    def begin_at_once(self, title: Callable[[], str]) -> bool:
        """Record the beginning of a turn if nothing changed; False: call `begin` and wait."""
        session = self._session
        if session.gateway.checkpoints.restoring(session.id):
            return False
        if not self.wanted:
            return True
        self.end()  # of the turn before, if its answer is still on its way
        self._owes_end = self._record_unchanged(self._beginning(title))
        return self._owes_end

    async def begin(self, title: Callable[[], str]) -> None:
        """Record the beginning of a turn; returns when that is done, or has taken too long."""
        session = self._session
        if session.gateway.checkpoints.restoring(session.id):
            raise invalid_request(
                "Files of this session are being restored: send the prompt again in a moment", "restoring"
            )
        if not self.wanted:
            return
        self.end()  # of the turn before, if its answer is still on its way
        self._owes_end = True
        self._waiting = []
        mark = self._beginning(title)
        recording = self._record(mark)
        recording.add_done_callback(lambda _: self.give_up())
        done, _ = await asyncio.wait({recording}, timeout=session.gateway.config.checkpoints.patience)
        mark.late = not done

    def _beginning(self, title: Callable[[], str]) -> Mark:
        return Mark("begin", title, after=self._session.feed.delivered)

    def after(self, then: Callable[[], None]) -> None:
        """Call `then` once the beginning of the turn is recorded, or the turn is cancelled: what was answered counts."""
        if self._waiting is None:
            then()
        else:
            self._waiting.append(then)

    def give_up(self) -> None:
        """Let nothing wait any longer: the checkpoint is made, or the turn was cancelled."""
        waiting, self._waiting = self._waiting or [], None
        for then in waiting:
            then()

    def give_up_turn(self) -> None:
        """End all waits for a record, the audit's too: the turn was cancelled, or ends."""
        self._session.gateway.audit.give_up(self._session.id, "The turn was cancelled.")
        self.give_up()

    def end(self) -> None:
        """Record the end of the turn whose beginning was recorded."""
        if self._owes_end:
            self._owes_end = False
            mark = Mark("end")
            if not self._record_unchanged(mark):
                self._record(mark)

    def catch_up(self) -> None:
        """Record the end of a turn that is answered, if the next one, which records it too, has not begun yet."""
        if self._session.turn is None:
            self.end()

    def _record_unchanged(self, mark: Mark) -> bool:
        session = self._session
        return session.gateway.checkpoints.record_unchanged(session.id, session.workspace, mark, self._tell)

    def _record(self, mark: Mark) -> asyncio.Task[None]:
        """Record the project, after what was recorded before; the task ends when that is done or has failed."""
        session = self._session
        made = session.gateway.checkpoints.record(session.id, session.workspace, mark)
        return session.gateway.spawn(self._finish(made))

    async def _finish(self, recording: Awaitable[Checkpoint]) -> None:
        session = self._session
        try:
            made = await recording
        except CheckpointError as error:
            self._tell(error)
            return
        if made.late:
            log.info("checkpoint is late", extra={"session": session.id, "turn": made.turn})

    def _tell(self, error: CheckpointError) -> None:
        """Say once in a session why it has no checkpoints."""
        log.info("no checkpoint: %s", error, extra={"session": self._session.id})
        if error.code not in EXPECTED and str(error) not in self._told and not self._session.closed:
            self._told.add(str(error))
            self._session.notice(f"The files of this turn are not recorded: {error}", "info")
