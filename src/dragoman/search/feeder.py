"""Starts the process that feeds the index (`__main__.py`), some time after the end of a turn, and searches in it.

Implements `Witness` and `Search`. Nothing is imported, opened or written here before the first turn has ended.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from dragoman.gateway.ports.search import Found, Wanted
from dragoman.gateway.ports.witness import UNOBSERVED, Observed

log = logging.getLogger(__name__)

PAUSE = 10.0
"""Seconds between the end of a turn and the feeding, which takes in all turns that end meanwhile."""
STOP_SECONDS = 2.0
FRESH_SECONDS = 1.0
"""Seconds that a search waits for what is new; what takes longer is found by a later one."""


class Feeder:
    def __init__(self, state: Path) -> None:
        self._state = state
        self._timer: asyncio.TimerHandle | None = None
        self._feeding: asyncio.Task[None] | None = None
        self._closed = False

    def feed(self) -> asyncio.Task[None]:
        """Read what is new in a process of its own; one at a time."""
        if self._feeding is None or self._feeding.done():
            self._feeding = asyncio.create_task(self._run())
        return self._feeding

    def catch_up(self) -> None:
        self.feed()

    async def find(self, wanted: Wanted) -> Found:
        from dragoman.search.lookup import check_query, look_up

        check_query(wanted)
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self.feed()), FRESH_SECONDS)
        return await asyncio.to_thread(look_up, self._state, wanted, log.warning)

    async def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._feeding is not None:
            self._feeding.cancel()
            await asyncio.wait({self._feeding})

    def _soon(self) -> None:
        if self._timer is None and not self._closed:
            self._timer = asyncio.get_running_loop().call_later(PAUSE, self._due)

    def _due(self) -> None:
        self._timer = None
        if self._feeding is not None and not self._feeding.done():
            self._soon()  # it may be past the session of this turn already
        elif not self._closed:
            self.feed()

    async def _run(self) -> None:
        command = [sys.executable, "-m", "dragoman.search", str(self._state)]
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            log.warning("what was said is not searched for now: %s", error)
            return
        try:
            _, told = await process.communicate()
        except asyncio.CancelledError:
            await _end(process)
            raise
        for line in told.decode(errors="replace").splitlines():
            log.warning("search: %s", line)

    # -- Witness

    def turn(self, session_id: str, agent: str, meta: Mapping[str, object]) -> Observed:
        return _Turn(self)

    def ended(self) -> None:
        self._soon()

    def start(self, agent: str) -> Observed:
        return UNOBSERVED

    def crash(self, agent: str) -> None:
        return

    def question(self, session_id: str, kind: str) -> Observed:
        return UNOBSERVED

    def request(self, method: str, failed: bool) -> None:
        return


class _Turn:
    """Implements `Observed`."""

    carried: Mapping[str, str] = {}

    def __init__(self, feeder: Feeder) -> None:
        self._feeder = feeder

    def first(self) -> None:
        return

    def end(self, outcome: str, error: str = "") -> None:
        self._feeder.ended()


async def _end(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), STOP_SECONDS)
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
