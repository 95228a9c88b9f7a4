"""The audit of a gateway: what may only happen once it is recorded waits while the record cannot be written."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from dragoman.audit.errors import AuditError
from dragoman.config.audit_model import AuditConfig
from dragoman.gateway.ports.audit import AnchorFigures, Audit, AuditFigures

if TYPE_CHECKING:
    from dragoman.audit.log import AuditLog

log = logging.getLogger(__name__)

START_TOLD = 1.0
RETRY = 1.0
"""Seconds between attempts."""
MOST_WAITING = 1000
PATIENCE = 60.0
"""Seconds, where the configuration says that the journal waits for ever."""


@dataclass(slots=True)
class _Waiting:
    kind: str
    facts: dict[str, Any]
    secrets: tuple[str, ...]
    then: Callable[[], None]
    refuse: Callable[[str], None]
    until: float


class GatewayAudit(Audit):
    """To be made in a running event loop."""

    def __init__(
        self, folder: Path, config: AuditConfig, patience: float, started: dict[str, Any] | None = None
    ) -> None:
        """`started` is told with the first record, or after a moment, so as not to slow the start."""
        self.folder = folder
        self._config = config
        self._hidden: list[str] = []
        self._files: dict[Path, None] = {}
        self._blocks = config.on_failure == "block"
        self._patience = patience or PATIENCE
        self.content = config.content
        self._waiting: list[_Waiting] = []
        self._timer: asyncio.TimerHandle | None = None
        self._started = started
        self._beginning = asyncio.get_running_loop().call_later(START_TOLD, self._begin)

    @property
    def ready(self) -> bool:
        return not self._blocks or (not self._waiting and self._log.failure is None)

    def stored(self, kind: str, facts: dict[str, Any], secrets: Iterable[str] = ()) -> bool:
        self._begin()
        if self._waiting:  # what waits is written first
            return False
        try:
            self._log.record(kind, facts, secrets, kept=self._blocks)
        except AuditError:
            return not self._blocks
        return True

    def wait(
        self,
        kind: str,
        facts: dict[str, Any],
        then: Callable[[], None],
        refuse: Callable[[str], None],
        secrets: Iterable[str] = (),
    ) -> None:
        if len(self._waiting) >= MOST_WAITING:
            self._log.lose()
            refuse(self._reason())
            return
        until = monotonic() + self._patience
        self._waiting.append(_Waiting(kind, facts, tuple(secrets), then, refuse, until))
        self._wait()

    def record(self, kind: str, facts: dict[str, Any], secrets: Iterable[str] = ()) -> None:
        self._begin()
        self._tell(kind, facts, secrets)

    def give_up(self, session: str, reason: str) -> None:
        for each in [one for one in self._waiting if one.facts.get("session") == session]:
            self._waiting.remove(each)
            self._refuse(each, reason)

    def hide(self, values: Iterable[str]) -> None:
        if "_log" in self.__dict__:
            self._log.hide(values)
        else:
            self._hidden += values

    def watch(self, files: Iterable[Path]) -> None:
        if "_log" in self.__dict__:
            self._log.watch(files)
        else:
            self._files.update(dict.fromkeys(files))

    def figures(self) -> AuditFigures:
        if "_log" not in self.__dict__:
            return AuditFigures()
        made = self._log
        anchors = [AnchorFigures(anchor.place, anchor.waiting, anchor.lag) for anchor in made.anchors]
        return AuditFigures(dict(made.written), dict(made.decided), made.failed, len(self._waiting), anchors)

    @cached_property
    def _log(self) -> AuditLog:
        """Opened, and imported, with the first record."""
        from dragoman.audit.log import AuditLog

        assert self.folder is not None
        made = AuditLog(self.folder, self._config, self._hidden)
        made.watch(self._files)
        return made

    async def close(self) -> None:
        """Refuse what waits, tell that the gateway stops, sign, and wait a moment for the anchors."""
        self._begin()
        if self._timer is not None:
            self._timer.cancel()
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            self._refuse(each, self._reason())
        self._tell("gateway_stopped", {"pid": os.getpid()})
        await asyncio.to_thread(self._log.close)

    def _begin(self) -> None:
        self._beginning.cancel()
        started, self._started = self._started, None
        if started is not None:
            from dragoman.audit.configuration import describe

            files = [describe(file) for file in self._files if file.exists()]
            self._tell("gateway_started", {**started, "configuration": files})

    def _tell(self, kind: str, facts: dict[str, Any], secrets: Iterable[str] = ()) -> None:
        with suppress(AuditError):  # logged, and counted in the next record
            self._log.record(kind, facts, secrets)

    def _wait(self) -> None:
        if self._timer is None and self._waiting:
            self._timer = asyncio.get_running_loop().call_later(RETRY, self._try_again)

    def _try_again(self) -> None:
        self._timer = None
        try:
            self._write_waiting()
        finally:
            now = monotonic()
            for each in [one for one in self._waiting if one.until <= now]:
                self._waiting.remove(each)
                self._refuse(each, self._reason())
            self._wait()

    def _write_waiting(self) -> None:
        while self._waiting:
            first = self._waiting[0]
            try:
                self._log.record(first.kind, first.facts, first.secrets, kept=True)
            except AuditError:
                return
            self._waiting.pop(0)
            _call(first.then)

    def _refuse(self, waiting: _Waiting, reason: str) -> None:
        self._log.lose()
        _call(lambda: waiting.refuse(reason))

    def _reason(self) -> str:
        why = self._log.failure or "The gateway is stopping."
        return f"Not done, since it could not be recorded. {why}"


def _call(act: Callable[[], None]) -> None:
    """One act that fails leaves the others that wait untouched."""
    try:
        act()
    except Exception:
        log.exception("what waited for the audit failed")
