"""Fill a Dragoman home with sessions: fill_store.py HOME COUNT."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from dragoman.gateway.ports.store import SessionRecord
from dragoman.store import FileStore


async def fill(home: Path, count: int) -> None:
    store = await FileStore.open(home / "dragoman.db", home / "run")
    for number in range(count):
        time = f"2026-01-01T{number // 3600 % 24:02d}:{number // 60 % 60:02d}:{number % 60:02d}.{number % 1000:03d}Z"
        record = SessionRecord(
            id=f"dgm_bench{number:019d}",
            agent="bench",
            cwd=f"/projects/{number % 50}",
            workspace=f"/projects/{number % 50}",
            title=f"Session number {number}",
            created_at=time,
            updated_at=time,
            state="parked",
        )
        await store.create(record)
    await store.close()


if __name__ == "__main__":
    home = Path(sys.argv[1])
    (home / "run").mkdir(mode=0o700, exist_ok=True)
    asyncio.run(fill(home, int(sys.argv[2])))
