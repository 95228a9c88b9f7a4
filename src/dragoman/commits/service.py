"""Implements `Commits`: the engine in threads."""

from __future__ import annotations

import asyncio
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.config.sections.checkpoints import CheckpointsConfig
from dragoman.gateway.ports.commits import Uncommitted

if TYPE_CHECKING:
    from dragoman.commits.engine import Engine


class CommitService:
    def __init__(self, state: Path, limits: CheckpointsConfig) -> None:
        self._given = (state, limits)

    @cached_property
    def _engine(self) -> Engine:
        from dragoman.commits.engine import Engine  # with the first use: an editor waits for the start

        return Engine(*self._given)

    async def uncommitted(self, root: str) -> Uncommitted:
        return await asyncio.to_thread(lambda: self._engine.uncommitted(root))

    async def patch(self, root: str) -> bytes:
        return await asyncio.to_thread(lambda: self._engine.patch(root))
