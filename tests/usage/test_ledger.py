"""The ledger in the database: upgrades, several writers, retries."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from dragoman.gateway.ports.usage import UNIT, Entry, Money, Tokens, Wanted
from dragoman.store import FileStore, database


def entry(turn: str, told: float | None = None, session: str = "s", **members: object) -> Entry:
    money = Money(round(told * UNIT), "USD") if told is not None else None
    facts = {"agent": "a", "model": "m", "workspace": "/w", "identity": "local", "outcome": "end_turn"}
    known = {"at": "2026-11-18T08:00:00.000Z", "seconds": 1.0, "before": Money(0, ""), **facts, **members}
    return Entry(turn=turn, session=session, told=money, **known)  # type: ignore[arg-type]


async def total(store: FileStore) -> tuple[int, list[float]]:
    found = (await store.usage.report(Wanted())).total
    return found.turns, [cost.amount for cost in found.costs]


async def test_a_database_of_the_version_before_is_read_and_upgraded(tmp_path: Path) -> None:
    path = tmp_path / "dragoman.db"
    await (await FileStore.open(path, tmp_path / "run")).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE usage")
        connection.execute("PRAGMA user_version = 3")
        connection.commit()
    reader = await FileStore.open(path, tmp_path / "run", mode="ro")
    assert await total(reader) == (0, [])
    await reader.close()
    store = await FileStore.open(path, tmp_path / "run")
    store.usage.add([entry("t1", 0.5)])
    assert await total(store) == (1, [0.5])
    await store.close()
    with closing(sqlite3.connect(path)) as connection:
        assert database.version(connection) == database.VERSION


async def test_two_stores_write_at_once_and_an_entry_counts_once(tmp_path: Path) -> None:
    stores = [await FileStore.open(tmp_path / "dragoman.db", tmp_path / "run") for _ in range(2)]
    for number in range(50):
        for name, store in zip("ab", stores, strict=True):
            store.usage.add([entry(f"{name}{number}", 0.01 * (number + 1), name)])
    stores[0].usage.add([entry("a0", 9.0, "a")])
    await asyncio.gather(*(store.close() for store in stores))
    store = await FileStore.open(tmp_path / "dragoman.db", tmp_path / "run")
    assert await total(store) == (100, [1.0])
    await store.close()


async def test_a_conversation_from_elsewhere_does_not_bring_its_former_cost(tmp_path: Path) -> None:
    store = await FileStore.open(tmp_path / "dragoman.db", tmp_path / "run")
    store.usage.add([entry("t1", 5.0, before=None, tokens=Tokens(1, 1))])
    store.usage.add([entry("t2", 5.5, before=Money(5 * UNIT, "USD"))])
    assert await total(store) == (2, [0.5])
    await store.close()
