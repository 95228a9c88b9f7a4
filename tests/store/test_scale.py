"""A store with a hundred thousand sessions, and one with a journal of four gigabytes."""

from __future__ import annotations

import asyncio
import functools
import shutil
import sqlite3
import statistics
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from dragoman.gateway.ports.store import Lease
from dragoman.store import FileStore, limits
from support.store.store_process import append, begin, read_all, record

SESSIONS, FEW = 100_000, 100
JOURNAL_BYTES = 4 * 2**30
EVENT = b"U" + b"x" * 65_535
EVENTS_EACH = 64
ROOM = 3
"""How much more something may cost that should not depend on the size: times of a few milliseconds vary."""
IO = Path("/proc/self/io")

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]


class Cost(NamedTuple):
    """What something costs this process, whatever else the machine is busy with."""

    seconds: float
    """Of processors, in all threads."""
    bytes: float
    """Read from files, also from those that the system has in memory."""

    def is_within(self, other: Cost, seconds: float, bytes: float) -> bool:
        return self.seconds < ROOM * other.seconds + seconds and self.bytes < ROOM * other.bytes + bytes


async def cost(work: Callable[[], Awaitable[object]]) -> Cost:
    taken = []
    for _ in range(5):
        started, before = time.process_time(), bytes_read()
        await work()
        taken.append(Cost(time.process_time() - started, bytes_read() - before))
    return Cost(*map(statistics.median, zip(*taken, strict=True)))


def bytes_read() -> int:
    return int(IO.read_text().split()[1]) if IO.exists() else 0


async def filled(path: Path, runtime: Path, count: int) -> FileStore:
    """The first session has a journal; rows of the others are made at once, as nothing else is to be seen here."""
    store = await FileStore.open(path, runtime)
    session = await begin(store)
    assert await append(store, session, 1, [b"U{}"]) is None
    await store.create(record("old0", minute=0))
    await store.close()
    with closing(sqlite3.connect(path)) as connection:
        names = [
            row[1] for row in connection.execute("PRAGMA table_info(directory)") if row[1] not in ("n", "id")
        ]
        columns = ", ".join(names)
        connection.executemany(
            f"INSERT INTO directory (id, {columns}) SELECT ?, {columns} FROM directory WHERE id = 'dgm_old0'",
            ((f"dgm_old{number}",) for number in range(1, count)),
        )
        connection.commit()
    return await FileStore.open(path, runtime)


async def test_a_hundred_thousand_sessions_cost_a_start_and_a_page_no_more_than_a_hundred(
    tmp_path: Path,
) -> None:
    taken = {}
    for count in (FEW, SESSIONS):
        folder = tmp_path / str(count)
        store = await filled(folder / "dragoman.db", tmp_path / "run", count)

        async def start(folder: Path = folder) -> None:
            other = await FileStore.open(folder / "dragoman.db", tmp_path / "run")
            await other.close()

        async def work(store: FileStore = store) -> None:
            lease = await store.acquire("dgm_one")
            assert isinstance(lease, Lease)
            await store.release("dgm_one", lease.epoch)

        taken[count] = [
            await cost(start),
            await cost(functools.partial(store.list, limit=50)),
            await cost(work),
        ]
        await store.close()
    for few, many in zip(taken[FEW], taken[SESSIONS], strict=True):
        assert many.is_within(few, seconds=0.02, bytes=2**20), taken


async def test_a_journal_of_four_gigabytes_is_read_from_any_place_at_once(tmp_path: Path) -> None:
    if shutil.disk_usage(tmp_path).free < 2 * JOURNAL_BYTES:
        pytest.skip("needs 8 GB of disk")
    store = await FileStore.open(tmp_path / "dragoman.db", tmp_path / "run")
    session = await begin(store)
    assert await append(store, session, 1, [b"U{}"]) is None
    taken = [await positions(store, session, 1)]
    last = 1
    while last * len(EVENT) < JOURNAL_BYTES:
        assert await append(store, session, last + 1, [EVENT] * EVENTS_EACH) is None
        last += EVENTS_EACH
    taken.append(await positions(store, session, last))
    for small, large in zip(*taken, strict=True):
        assert large.is_within(small, seconds=0.1, bytes=2 * limits.SEGMENT_BYTES), taken
    await store.close()
    again = await FileStore.open(tmp_path / "dragoman.db", tmp_path / "run")
    lease = await asyncio.wait_for(again.acquire(session), 5)
    assert isinstance(lease, Lease) and lease.last_seq == last
    assert await append(again, session, last + 1, [b"U{}"], lease.epoch) is None
    assert [row.last_seq for row in await read_all(again, session, last)] == [last + 1]
    await again.release(session, lease.epoch)
    assert await again.delete(session)
    await again.close()
    assert sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file()) < 2**20


async def positions(store: FileStore, session: str, last: int) -> list[Cost]:
    """The beginning, the middle, the end, the last page, and where it ends."""
    return [
        await cost(lambda: store.read(session, 0, 1)),
        await cost(lambda: store.read(session, last // 2, 1)),
        await cost(lambda: store.read(session, last - 1, 1)),
        await cost(lambda: store.read_before(session, last + 1, 1)),
        await cost(lambda: store.last_seq(session)),
    ]
