"""The agents in custody: every agent's process tree ends with the agent, and all trees with the gateway."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path

from dragoman import machine
from dragoman.agents.custody import marks, records, table
from dragoman.agents.custody.children import Child, Launch, OwnChild, WatchedChild, WatcherLost
from dragoman.agents.custody.lifeline import CustodyError, Lifeline
from dragoman.agents.custody.tree import MARKER_VARIABLE, SIGNALS, Step, Tree, escalate

logger = logging.getLogger(__name__)

WATCHER_ATTEMPTS = 3
"""Attempts with a new watcher before a spawn is refused: something on this machine kills them."""

SETTLED = 1.0
"""Seconds after which a gateway has answered its first client, and other work may use the processor."""

WATCHER_REST = 1.0
"""Minimum seconds between automatic starts of a watcher; a spawn starts one at once."""

_KILLED = "The watcher process that ends agents after a crash keeps being killed."

WATCHER_PATIENCE = 5.0
"""Seconds for the watcher to end the processes that we could not, before it is killed."""


class Ward:
    """One agent or command in custody: its marker, and the tree of its processes."""

    def __init__(self, token: str | None = None) -> None:
        """`token` is the gateway's; the markers of all its wards begin with it."""
        self.marker = (token or new_token()) + new_token()
        self.tree = Tree(self.marker)
        self.line = f"+ {self.marker}"
        """The line that registers the ward with the watcher."""
        self._pid: int | None = None

    def mark(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The environment with this ward's marker; markers of gateways above us stay, since these may outlive us."""
        above = os.environ.get(MARKER_VARIABLE)
        chain = f"{above},{self.marker}" if above else self.marker
        return {**environment, MARKER_VARIABLE: chain}

    def started(self, pid: int) -> None:
        start = table.start_of(pid)
        self._pid = pid
        self.tree.root(pid, start)
        self.line = f"+ {self.marker} {pid} {start}"

    def others(self) -> list[table.Process]:
        """The agent's present processes, without the agent itself."""
        return [process for process in self.tree.members(table.snapshot()) if process.pid != self._pid]


def new_token() -> str:
    return secrets.token_hex(marks.TOKEN_DIGITS // 2)


class Custody:
    """All agents of one gateway: `launch` them, and later `end` them.

    A process that is started by other means must be started between `admit` and `started`.
    """

    def __init__(self, folder: Path | None = None) -> None:
        """`folder` holds the records of gateways, by which the next one ends what a dead one left (`records`)."""
        self._token = new_token()
        self._folder = folder
        self._record = -1
        self._wards: dict[str, Ward] = {}
        self._lifeline: Lifeline | None = None
        self._restart: asyncio.TimerHandle | None = None
        self._soon: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def watcher_pid(self) -> int | None:
        return self._lifeline.pid if self._lifeline is not None and self._lifeline.alive else None

    def start(self) -> None:
        """Start the watcher now rather than with the first agent."""
        if self._closed:
            raise CustodyError("The gateway is shutting down.")
        if self._lifeline is not None and self._lifeline.alive:
            return
        if self._record < 0 and self._folder is not None:
            self._record = records.make(str(self._folder), self._token)
        lines = [ward.line for ward in self._wards.values()]
        self._lifeline = Lifeline(self._watcher_died, lines, self._record)

    def start_soon(self) -> None:
        """Start the watcher later, to end what a dead gateway left; now a client waits for its first answer."""
        self._soon = asyncio.get_running_loop().call_later(SETTLED, self._start_again)

    async def launch(self, launch: Launch) -> tuple[Ward, Child]:
        """Start a program in custody; raises `OSError` if the system refuses, `CustodyError` if custody does."""
        for _ in range(WATCHER_ATTEMPTS):
            ward = self.admit()
            assert self._lifeline is not None
            watcher, env = self._lifeline, ward.mark(launch.env)
            try:
                child: Child
                if watcher.requests is None:
                    child = OwnChild(launch, env)
                else:
                    child = await WatchedChild.start(watcher.requests, launch, ward.marker, env)
            except WatcherLost:  # the program may run nevertheless
                watcher.kill()
                await self.end(ward)
                continue
            except OSError:
                self.release(ward)
                raise
            self.started(ward, child.pid)
            return ward, child
        raise CustodyError(_KILLED)

    def admit(self) -> Ward:
        """Register an agent before its start, so that it is ended even if we die during the start."""
        ward = Ward(self._token)
        for _ in range(WATCHER_ATTEMPTS):
            self.start()
            if self._tell(ward.line):
                self._wards[ward.marker] = ward
                return ward
        raise CustodyError(_KILLED)

    def started(self, ward: Ward, pid: int) -> None:
        """Register the process of an admitted agent."""
        machine.restore_file_limit(pid)
        marks.apply(ward.marker, pid)
        ward.started(pid)
        self._tell(ward.line)

    async def look(self, ward: Ward) -> None:
        """Record the agent's present processes."""
        await asyncio.to_thread(lambda: ward.tree.members(table.snapshot()))

    async def has_process_since(self, ward: Ward, moment: float) -> bool:
        """Whether a process that the agent started after `moment` still runs."""
        others = await asyncio.to_thread(ward.others)
        return any(table.started_after(process, moment) for process in others)

    async def end(self, ward: Ward, signals: Sequence[Step] = SIGNALS) -> None:
        """End an agent's remaining processes and release it; bounded by the patience of the steps."""
        await _run([ward], signals)
        if ward.tree.remaining:
            pids = sorted(process.pid for process in ward.tree.remaining)
            logger.warning("processes %s survived SIGKILL; the watcher will try again", pids)
            return
        self.release(ward)

    def release(self, ward: Ward) -> None:
        """Remove an agent that has no processes left."""
        if self._wards.pop(ward.marker, None) is not None:
            self._tell(f"- {ward.marker}")

    async def close(self) -> None:
        """End all agents and the watcher; nothing can be admitted afterwards."""
        self._closed = True
        for timer in (self._restart, self._soon):
            if timer is not None:
                timer.cancel()
        wards = list(self._wards.values())
        if wards:
            await _run(wards, SIGNALS)
        for ward in wards:
            if not ward.tree.remaining:
                self.release(ward)
        if self._lifeline is not None:
            await _hang_up(self._lifeline)
        if self._record >= 0:
            if not self._wards:
                records.remove(self._record)
            os.close(self._record)
            self._record = -1

    def _tell(self, line: str) -> bool:
        return self._lifeline is not None and self._lifeline.tell(line)

    def _watcher_died(self, lifeline: Lifeline) -> None:
        if self._closed or lifeline is not self._lifeline:
            return
        logger.warning("the watcher process %s died and is started again", lifeline.pid)
        self._lifeline = None
        if self._restart is not None:
            self._restart.cancel()
            self._restart = asyncio.get_running_loop().call_later(WATCHER_REST, self._start_again)
        else:
            self._start_again()

    def _start_again(self) -> None:
        # Delays the start after another death: a watcher that dies at once must not make us fork in a tight loop.
        self._restart = asyncio.get_running_loop().call_later(WATCHER_REST, self._rested)
        try:
            self.start()
        except (CustodyError, OSError) as error:
            logger.error(
                "the watcher cannot be started: %s; if the gateway is killed now, its agents go on", error
            )

    def _rested(self) -> None:
        self._restart = None


async def _run(wards: Sequence[Ward], signals: Sequence[Step]) -> None:
    pauses = escalate([ward.tree for ward in wards], table, signals)
    # Reading the process table takes milliseconds: in a thread, so that the loop is not blocked.
    while (pause := await asyncio.to_thread(next, pauses, None)) is not None:  # noqa: ASYNC110 no event to wait for
        await asyncio.sleep(pause)


async def _hang_up(lifeline: Lifeline) -> None:
    if not lifeline.alive:
        return
    lifeline.hang_up()
    try:
        async with asyncio.timeout(WATCHER_PATIENCE):
            await lifeline.wait_gone()
    except TimeoutError:
        lifeline.kill()
        await lifeline.wait_gone()
