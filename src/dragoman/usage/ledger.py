"""The ledger: what turns used, in the table `usage`, which outlives the sessions.

An agent tells the cost of a session so far, not of a turn. The difference is made here, in the transaction that writes
the entry: the ledger has what was told last, also if another process wrote it, or the agent was restarted since.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import secrets
import sqlite3
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from dragoman.gateway.ports.store import StoreClosed
from dragoman.gateway.ports.usage import Entry, Money, Report, UsageFigures, Wanted
from dragoman.usage.report import report
from dragoman.usage.table import COLUMNS

log = logging.getLogger(__name__)

MOST_WAITING = 10_000
"""Entries that wait in memory while the database cannot be written; the oldest are dropped first."""
MOST_SERIES = 100
"""Most agents and currencies in `/metrics`: an agent may name any currency."""

T = TypeVar("T")
Read = Callable[[Callable[[sqlite3.Connection], Report]], Awaitable[Report]]
"""Reads the database after everything that `Writer.soon` holds back was written."""

_INSERT = f"INSERT OR IGNORE INTO usage ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"
_TOLD = "SELECT told FROM usage WHERE session = ? AND agent = ? AND told_currency = ? ORDER BY n DESC LIMIT 1"
_ESTIMATED = "SELECT sum(amount) FROM usage WHERE session = ? AND agent = ? AND currency = ? AND estimated"


class Writer(Protocol):
    """The thread that writes to the database."""

    def run(self, work: Callable[[sqlite3.Connection], T]) -> asyncio.Future[T]: ...

    def soon(self, key: object, write: Callable[[], object]) -> None: ...


class UsageLedger:
    """Implements `dragoman.gateway.ports.usage.Ledger`."""

    def __init__(self, writer: Writer, read: Read, *, writable: bool) -> None:
        self.figures = UsageFigures()
        self._writer = writer
        self._read = read
        self._writable = writable
        self._waiting: dict[tuple[str, int], Entry] = {}
        """Not in the database yet, by turn and part; written within a second, later if writing fails."""
        self._fails = False
        self._prefix = secrets.token_hex(8)
        self._turns = itertools.count(1)

    def new_turn(self) -> str:
        return f"{self._prefix}-{next(self._turns)}"

    def add(self, entries: list[Entry]) -> None:
        if not self._writable:
            return
        for entry in entries:
            self._waiting.setdefault((entry.turn, entry.part), entry)
        while len(self._waiting) > MOST_WAITING:
            del self._waiting[next(iter(self._waiting))]
            self.figures.lost += 1
        self._writer.soon(self, self._write)

    async def report(self, wanted: Wanted) -> Report:
        return await self._read(lambda connection: report(connection, wanted))

    def close(self) -> None:
        """Called after the last write."""
        if self._waiting:
            log.error("the usage of turns is lost, it could not be written: %d", len(self._waiting))

    def _write(self) -> None:
        """Write all that waits. If an earlier write is not done yet, its entries are found written already."""
        entries = list(self._waiting.values())
        try:
            writing = self._writer.run(lambda connection: write(connection, entries))
        except StoreClosed:
            self.close()
            return
        writing.add_done_callback(lambda written: self._written(entries, written))

    def _written(self, entries: list[Entry], written: asyncio.Future[list[Priced]]) -> None:
        error = written.exception()
        if error is not None:
            if not self._fails:
                log.error("the usage of turns is not written yet, and tried again: %s", error)
            self._fails = True
            self._writer.soon(self, self._write)
            return
        self._fails = False
        for entry in entries:
            self._waiting.pop((entry.turn, entry.part), None)
        for entry, cost, estimated in written.result():
            self._count(entry, cost, estimated)

    def _count(self, entry: Entry, cost: Money | None, estimated: bool) -> None:
        figures = self.figures
        if entry.tokens is None and cost is None:
            figures.unknown[entry.agent] += 1
        if entry.tokens is not None:
            for kind in ("input", "output", "cache_read", "cache_write"):
                figures.tokens[entry.agent, kind] += getattr(entry.tokens, kind)
        if cost is not None:
            key = (entry.agent, cost.currency, estimated)
            if key in figures.cost or len(figures.cost) < MOST_SERIES:
                figures.cost[key] += cost.amount


Priced = tuple[Entry, Money | None, bool]


def write(connection: sqlite3.Connection, entries: list[Entry]) -> list[Priced]:
    """Write entries, and return those that were new with their costs and whether these are estimated."""
    done: list[Priced] = []
    for entry in entries:
        cost, estimated = cost_of(connection, entry)
        if connection.execute(_INSERT, _row(entry, cost, estimated)).rowcount > 0:
            done.append((entry, cost, estimated))
    return done


def cost_of(connection: sqlite3.Connection, entry: Entry) -> tuple[Money | None, bool]:
    """The cost of an entry, and whether it is an estimate: as told for the turn, else for the session, else by price."""
    if entry.cost is not None:
        return entry.cost, False
    if entry.told is not None:
        spent = _difference(connection, entry, entry.told)
        if spent is not None:
            return Money(spent, entry.told.currency), False
    elif _tells_costs(connection, entry):
        return None, False
    return entry.estimate, entry.estimate is not None


def _difference(connection: sqlite3.Connection, entry: Entry, told: Money) -> int | None:
    """What was spent since the ledger's last entry of the session; None if it is not known what was before.

    A lower amount than the one before is a count that began again from zero.
    """
    steps = [told.amount]
    if entry.before is not None and entry.before.currency in (told.currency, ""):
        steps.insert(0, entry.before.amount)
    former = _told_before(connection, entry, told.currency)
    if former is not None:
        unspent = entry.before is not None and not entry.before.currency
        steps = [former, told.amount] if unspent else [former, *steps]
    elif len(steps) > 1:  # the agent's first figure has the turns in it that were estimated
        estimated = connection.execute(_ESTIMATED, (entry.session, entry.agent, told.currency)).fetchone()[0]
        steps[0] = min(told.amount, steps[0] + (estimated or 0))
    if len(steps) < 2:
        return None
    return sum(later - earlier if later >= earlier else later for earlier, later in itertools.pairwise(steps))


def _told_before(connection: sqlite3.Connection, entry: Entry, currency: str) -> int | None:
    """What was told last in this session; in its first turn, in the session that it was forked from."""
    found = connection.execute(_TOLD, (entry.session, entry.agent, currency)).fetchone()
    if found is None:
        query = "SELECT forked_from FROM directory WHERE id = ?"
        parent = (connection.execute(query, (entry.session,)).fetchone() or (None,))[0]
        if parent is not None:
            found = connection.execute(_TOLD, (parent, entry.agent, currency)).fetchone()
    return int(found[0]) if found is not None else None


def _tells_costs(connection: sqlite3.Connection, entry: Entry) -> bool:
    """Whether the agent told costs in this session before: then this turn's is in what it tells next."""
    query = "SELECT 1 FROM usage WHERE session = ? AND agent = ? AND told IS NOT NULL LIMIT 1"
    return connection.execute(query, (entry.session, entry.agent)).fetchone() is not None


def _row(entry: Entry, cost: Money | None, estimated: bool) -> list[Any]:
    used, told = entry.tokens, entry.told
    tokens = (
        (used.input, used.output, used.cache_read, used.cache_write, used.thought) if used else (None,) * 5
    )
    return [
        *(getattr(entry, name) for name in COLUMNS[:10]),
        *tokens,
        *((cost.amount, cost.currency) if cost is not None else (None, None)),
        int(estimated),
        *((told.amount, told.currency) if told is not None else (None, None)),
    ]
