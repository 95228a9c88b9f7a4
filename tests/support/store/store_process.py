"""What tests of the store have in common: records, appends that are waited for, and store processes."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from dragoman.gateway.ports.store import Row, SessionRecord, Store, StoreError

PEER = str(Path(__file__).with_name("store_program.py"))
BOUND = 30.0


def record(name: str = "one", minute: int = 0, **fields: Any) -> SessionRecord:
    stamp = f"2026-01-01T{minute // 60:02d}:{minute % 60:02d}:00.000Z"
    defaults: dict[str, Any] = {
        "agent": "scripted",
        "cwd": "/project",
        "workspace": "/project",
        "state": "idle",
    }
    return SessionRecord(id=f"dgm_{name}", created_at=stamp, updated_at=stamp, **{**defaults, **fields})


async def begin(store: Store, name: str = "one", **fields: Any) -> str:
    """A session that this store owns from birth, at epoch 1."""
    made = record(name, owner=store.owner.id, epoch=1, **fields)
    await store.create(made)
    return made.id


async def append(
    store: Store, session: str, first_seq: int, events: list[bytes], epoch: int = 1
) -> StoreError | None:
    outcome: asyncio.Future[StoreError | None] = asyncio.get_running_loop().create_future()
    store.append(session, epoch, first_seq, events, outcome.set_result)
    return await asyncio.wait_for(outcome, BOUND)


async def read_all(store: Store, session: str, after: int = 0, max_bytes: int = 1 << 20) -> list[Row]:
    rows: list[Row] = []
    while part := await store.read(session, after, max_bytes):
        rows += part
        after = part[-1].last_seq
    return rows


def numbered(rows: list[Row]) -> dict[int, bytes]:
    """The events by number; fails if a number comes twice or rows disagree with their count."""
    found: dict[int, bytes] = {}
    for row in rows:
        events = row.events()
        assert len(events) == row.count
        for seq, event in enumerate(events, row.first_seq):
            assert seq not in found, f"event {seq} is doubled"
            found[seq] = event
    return found


class StoreProcess:
    """Another process that has the same store open, told what to do line by line."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    @classmethod
    async def start(
        cls, path: Path, runtime: Path, *, prefix: tuple[str, ...] = (), **options: Any
    ) -> StoreProcess:
        process = await asyncio.create_subprocess_exec(
            *prefix,
            sys.executable,
            PEER,
            str(path),
            str(runtime),
            json.dumps(options),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=1 << 24,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        )
        return cls(process)

    async def ask(self, do: str, *arguments: Any) -> Any:
        """The answer, which is `{"error": code, "text": sentence}` when it was refused."""
        self.tell(do, *arguments)
        return await self.hear()

    def tell(self, do: str, *arguments: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([do, *arguments]).encode() + b"\n")

    async def hear(self) -> Any:
        assert self.process.stdout is not None
        line = await asyncio.wait_for(self.process.stdout.readline(), BOUND)
        return json.loads(line) if line else None

    async def kill(self) -> list[Any]:
        """End it as a crash would; what it said before that."""
        if self.process.returncode is None:
            self.process.kill()
        said = await asyncio.wait_for(self.process.communicate(), BOUND)
        return [json.loads(line) for line in said[0].splitlines(keepends=True) if line.endswith(b"\n")]
