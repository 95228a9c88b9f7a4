"""Implements `Worktrees`: the engine in threads, with the settings of each repository."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from dragoman.config.root import find_root
from dragoman.config.sections.worktrees import WorktreesConfig
from dragoman.gateway.ports.acts import Acting, unrecorded
from dragoman.gateway.ports.worktrees import (
    BoxChoice,
    Cleaned,
    Made,
    Merged,
    RecordedTree,
    Worktree,
    WorktreeWish,
)
from dragoman.worktrees.boxed import Enter
from dragoman.worktrees.engine import Engine


class WorktreeService:
    def __init__(
        self,
        folder: Path,
        settings_for: Callable[[Path], WorktreesConfig],
        acting: Acting = unrecorded,
        enter: Enter | None = None,
    ) -> None:
        """`settings_for` reads the settings that hold in a repository; what it does not trust is left out."""
        self._folder = folder
        self._engine = Engine(folder, acting, enter)
        self._settings_for = settings_for

    def wanted(self, cwd: str) -> bool:
        root = find_root(Path(cwd))
        return (root / ".git").exists() and self._settings_for(root).enabled

    async def create(
        self, session_id: str, cwd: str, wish: WorktreeWish, *, box: BoxChoice | None, by: str
    ) -> Made:
        return await asyncio.to_thread(self._create, session_id, cwd, wish, box, by)

    def _create(self, session_id: str, cwd: str, wish: WorktreeWish, box: BoxChoice | None, by: str) -> Made:
        real = str(Path(cwd).resolve())
        root = str(find_root(Path(real)))
        settings = self._settings_for(Path(root))
        return self._engine.create(session_id, root, real, wish, settings, box=box, by=by)

    async def fork(
        self,
        session_id: str,
        original: str,
        cwd: str,
        wish: WorktreeWish,
        recorded: RecordedTree | None = None,
        *,
        box: BoxChoice | None,
        by: str,
    ) -> Made | None:
        return await asyncio.to_thread(
            self._engine.fork, session_id, original, cwd, wish, recorded, box=box, by=by
        )

    async def setup_lines(self, session_id: str) -> list[str]:
        return await asyncio.to_thread(self._engine.setup_lines, session_id, self._settings_for)

    async def set_up(self, session_id: str, lines: list[str], by: str) -> None:
        await asyncio.to_thread(self._engine.set_up, session_id, lines, by)

    async def all(self, repository: str | None = None) -> list[Worktree]:
        return await asyncio.to_thread(self._engine.all, repository)

    async def merge(
        self, name: str, repository: str | None, message: str | None, into: str | None, by: str
    ) -> Merged:
        return await asyncio.to_thread(self._engine.merge, name, repository, message, into, by)

    async def rebase(self, name: str, repository: str | None, by: str) -> Merged:
        return await asyncio.to_thread(self._engine.rebase, name, repository, by)

    async def keep(self, name: str, repository: str | None) -> Worktree:
        return await asyncio.to_thread(self._engine.keep, name, repository)

    async def discard(self, name: str, repository: str | None, by: str, *, force: bool = False) -> Worktree:
        return await asyncio.to_thread(self._engine.discard, name, repository, by, force=force)

    async def sessions(self) -> list[str]:
        return await asyncio.to_thread(self._engine.sessions)

    async def again(self, session_id: str, folder: str) -> list[str]:
        return await asyncio.to_thread(self._engine.again, session_id, folder, self._settings_for)

    async def clean(self, live: list[str], by: str, *, stored: list[str]) -> Cleaned:
        return await asyncio.to_thread(self._engine.clean, live, by, stored=stored)

    async def session_deleted(self, session_id: str, by: str, *, discard: bool = False) -> Worktree | None:
        if not self._folder.is_dir():
            return None
        return await asyncio.to_thread(self._engine.session_deleted, session_id, by, discard=discard)
