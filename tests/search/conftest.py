"""A store with sessions to search in."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dragoman.gateway.delivery import events
from dragoman.gateway.ports.search import Hit, Wanted
from dragoman.gateway.ports.store import SessionRecord
from dragoman.search import index
from dragoman.search.lookup import look_up
from dragoman.store import FileStore


def event(update: dict[str, Any], tag: str = "U") -> bytes:
    params = {"sessionId": "x", "update": update}
    return (tag + json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params})).encode()


def said(text: str, kind: str = "agent_message_chunk", tag: str = "U", **more: Any) -> bytes:
    return event({"sessionUpdate": kind, "content": {"type": "text", "text": text}, **more}, tag)


ENDED = events.record("turn_ended", stopReason="end_turn")


class Sessions:
    """A store to write sessions into; each call is one process's work."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.told: list[str] = []

    async def _store(self) -> FileStore:
        return await FileStore.open(self.state / "dragoman.db", self.state / "run")

    async def say(
        self,
        session: str,
        *lines: bytes,
        agent: str = "a",
        cwd: str = "/w",
        agent_session_id: str | None = None,
    ) -> None:
        store = await self._store()
        if await store.get(session) is None:
            record = SessionRecord(
                id=session, agent=agent, cwd=cwd, workspace=cwd, created_at="2026-01-01T00:00:00.000Z",
                updated_at="2026-01-01T00:00:00.000Z", state="closed", owner=store.owner.id, epoch=1,
                agent_session_id=agent_session_id,
            )  # fmt: skip
            await store.create(record)
            epoch, last = 1, 0
        else:
            lease = await store.acquire(session)
            epoch, last = lease.epoch, lease.last_seq  # type: ignore[union-attr]
        stored = asyncio.get_running_loop().create_future()
        store.append(session, epoch, last + 1, list(lines), stored.set_result)
        assert await stored is None
        await store.close()

    async def delete(self, session: str) -> None:
        store = await self._store()
        assert await store.delete(session)
        await store.close()

    async def empty(self, session: str) -> None:
        store = await self._store()
        assert await store.empty(session)
        await store.close()

    def find(self, text: str, seconds: float = 60.0, **more: object) -> list[Hit]:
        wanted = Wanted(text, **more)  # type: ignore[arg-type]
        return look_up(self.state, wanted, self.told.append, seconds).hits

    def places(self, text: str, **more: object) -> list[tuple[str, int, str]]:
        return [(hit.session_id, hit.event, hit.by) for hit in self.find(text, **more)]  # type: ignore[arg-type]

    def rows(self, table: str = "passages") -> int:
        with closing(sqlite3.connect(self.state / index.FILE)) as connection:
            return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


@pytest.fixture
def sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sessions:
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.delenv("CODEX_HOME", raising=False)
    state = tmp_path / "state"
    state.mkdir()
    return Sessions(state)
