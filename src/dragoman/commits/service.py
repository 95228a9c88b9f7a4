"""Implements `Commits`: the engine in threads."""

from __future__ import annotations

import asyncio
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.config.sections.checkpoints import CheckpointsConfig
from dragoman.gateway.ports.checkpoints import Touched
from dragoman.gateway.ports.commits import (
    CommitPlan,
    Committed,
    CommitWish,
    PullRequestPlan,
    Pushed,
    PushPlan,
    Uncommitted,
)

if TYPE_CHECKING:
    from dragoman.commits.engine import Engine
    from dragoman.worktrees.boxed import Enter


class CommitService:
    def __init__(self, state: Path, limits: CheckpointsConfig, enter: Enter | None = None) -> None:
        self._given = (state, limits, enter)

    @cached_property
    def _engine(self) -> Engine:
        from dragoman.commits.engine import Engine  # with the first use: an editor waits for the start

        return Engine(*self._given)

    async def uncommitted(self, root: str) -> Uncommitted:
        return await asyncio.to_thread(lambda: self._engine.uncommitted(root))

    async def patch(self, root: str) -> bytes:
        return await asyncio.to_thread(lambda: self._engine.patch(root))

    async def plan(self, root: str, wish: CommitWish, touched: Touched | None) -> CommitPlan:
        return await asyncio.to_thread(lambda: self._engine.plan(root, wish, touched))

    async def commit(self, plan: CommitPlan, message: str, *, hooks: bool) -> Committed:
        return await asyncio.to_thread(lambda: self._engine.commit(plan, message, hooks=hooks))

    async def plan_push(self, root: str) -> PushPlan:
        return await asyncio.to_thread(lambda: self._engine.plan_push(root))

    async def push(self, plan: PushPlan, *, hooks: bool) -> Pushed:
        return await asyncio.to_thread(lambda: self._engine.push(plan, hooks=hooks))

    async def plan_pull_request(self, plan: PushPlan, wish: CommitWish) -> PullRequestPlan:
        return await asyncio.to_thread(lambda: self._engine.plan_pull_request(plan, wish))

    async def open_pull_request(self, plan: PullRequestPlan) -> str:
        return await asyncio.to_thread(lambda: self._engine.open_pull_request(plan))
