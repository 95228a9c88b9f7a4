"""All sessions of this process, and those on disk."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dragoman.agents.custody import Custody
from dragoman.builtin.client import Client
from dragoman.builtin.history import Archive, Facts, History
from dragoman.builtin.models.choice import ModelConfig, Models
from dragoman.builtin.modes import DEFAULT
from dragoman.builtin.session import Session, Surroundings
from dragoman.wire.errors import invalid_params, session_not_found

Json = dict[str, Any]

_ID = re.compile(r"bi_[0-9a-f]+")
PAGE = 100
"""Sessions in one answer to `session/list`."""


class Sessions:
    @classmethod
    def open(cls, client: Client, config: ModelConfig, folder: Path | None) -> Sessions:
        around = Surroundings(
            client,
            Custody(),
            Models(config, os.environ),
            boxes=folder / "boxes" if folder is not None else None,
            box_in_place=config.sandbox_files == "workspace",
        )
        return cls(around, folder)

    def __init__(self, around: Surroundings, folder: Path | None) -> None:
        """`folder` is where sessions are stored; None stores nothing."""
        self._around = around
        self._archive = Archive(folder / "sessions" if folder is not None else None)
        self._live: dict[str, Session] = {}

    def new(self, cwd: str, roots: Sequence[str]) -> Session:
        id = f"bi_{secrets.token_hex(12)}"
        facts = Facts(
            cwd=_folder(cwd), roots=[cwd, *roots], mode=DEFAULT, model=self._around.models.default()
        )
        return self._open(id, facts, History(self._archive.file(id)))

    def reopen(self, id: str, cwd: str, roots: Sequence[str]) -> Session:
        """The session, live or loaded from disk; one from disk continues in the given `cwd`."""
        if id in self._live:
            return self._live[id]
        history = self._archive.load(id)
        if history is None or history.facts is None:
            raise session_not_found(id)
        facts = history.facts
        facts.cwd, facts.roots = _folder(cwd), [cwd, *roots]
        session = self._open(id, facts, history)
        session.workspace.originals.update(_originals(history.updates))
        return session

    def find(self, id: object) -> Session:
        session = self._live.get(id) if isinstance(id, str) else None
        if session is None:
            raise session_not_found(str(id))
        return session

    def get(self, id: object) -> Session | None:
        return self._live.get(id) if isinstance(id, str) else None

    def list(self, cwd: str | None, cursor: str | None) -> Json:
        start = int(cursor) if cursor is not None and cursor.isdecimal() else 0
        every = [(id, facts) for id, facts in self._archive.sessions() if cwd is None or facts.cwd == cwd]
        page = every[start : start + PAGE]
        answer: Json = {"sessions": [_info(id, facts) for id, facts in page]}
        if start + PAGE < len(every):
            answer["nextCursor"] = str(start + PAGE)
        return answer

    async def close(self, id: str) -> None:
        session = self.find(id)
        del self._live[id]
        await session.close()

    async def delete(self, id: str) -> None:
        if id in self._live:
            await self.close(id)
        self._archive.delete(id)
        if self._around.boxes is not None and _ID.fullmatch(id):
            await asyncio.to_thread(shutil.rmtree, self._around.boxes / id, ignore_errors=True)

    async def close_all(self) -> None:
        """Close every session and end everything that was started here."""
        for id in list(self._live):
            await self.close(id)
        await self._around.custody.close()

    @property
    def models(self) -> Models:
        return self._around.models

    def _open(self, id: str, facts: Facts, history: History) -> Session:
        session = Session(id, facts, history, self._around)
        self._live[id] = session
        return session


def _originals(updates: Sequence[Json]) -> dict[str, str | None]:
    """The contents of files before the edits of an earlier process of the session, for `/diff`."""
    found: dict[str, str | None] = {}
    for update in updates:
        if update.get("sessionUpdate") == "tool_call_update" and update.get("status") == "completed":
            for part in update.get("content") or ():
                if part.get("type") == "diff":
                    found.setdefault(part["path"], part.get("oldText"))
    return found


def _folder(cwd: str) -> str:
    if not cwd.startswith("/"):
        raise invalid_params(f"cwd must be an absolute path: {cwd!r}", "cwd", cwd=cwd)
    if not Path(cwd).is_dir():
        raise invalid_params(f"cwd does not exist or is not a folder: {cwd}", "cwd", cwd=cwd)
    return cwd


def _info(id: str, facts: Facts) -> Json:
    updated = datetime.fromtimestamp(facts.updated, UTC).isoformat()
    return {"sessionId": id, "cwd": facts.cwd, "title": facts.title, "updatedAt": updated}
