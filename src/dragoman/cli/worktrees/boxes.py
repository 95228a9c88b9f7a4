"""Runs commands in the boxes of sessions that work in clones: for a gateway, and for a command without one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dragoman.gateway.ports.agent import AgentUnavailable
from dragoman.gateway.ports.worktrees import WorktreeError
from dragoman.wire.errors import RpcError

if TYPE_CHECKING:
    from dragoman.agents.custody import Custody
    from dragoman.config.model import Config
    from dragoman.config.paths import Paths
    from dragoman.gateway.ports.sandbox import Box, Boxes
    from dragoman.worktrees.boxed import Enter
    from dragoman.worktrees.records import Record

PATIENCE = 600.0
"""Seconds for one command: one of `worktrees.setup` may install a lot."""


class BoxRunner:
    def __init__(self, config: Config, boxes: Boxes, custody: Custody) -> None:
        self._config = config
        self._boxes = boxes
        self._custody = custody

    async def run(self, record: Record, words: Sequence[str], env: Mapping[str, str], output: int) -> int:
        """Run a command to its end, in the folder of a record; returns its exit code."""
        from dragoman.agents.program import SpawnError
        from dragoman.services.spawn import Command, Spawn

        box = self._find(record)
        command = Command(words, {**box.environment, **env}, record.folder)
        try:
            running = await Spawn(self._custody, box)(command, output)
        except SpawnError as error:
            raise WorktreeError(f"The sandbox of {record.name} cannot be used: {error}", "no_box") from error
        try:
            async with asyncio.timeout(PATIENCE):
                ended = await running.wait()
        except TimeoutError:
            raise WorktreeError(
                f"A command in the sandbox of {record.name} did not end within {PATIENCE:g} s", "no_box"
            ) from None
        finally:
            await running.end()
        return ended.exit_code if ended.exit_code is not None else -1

    def _find(self, record: Record) -> Box:
        agent = self._config.agents.get(record.agent)
        try:
            if agent is None:
                raise AgentUnavailable(f"there is no agent {record.agent} any more")
            box = self._boxes.find(record.agent, agent, record.folder, record.folder, record.sandbox)
        except (RpcError, AgentUnavailable) as error:
            raise WorktreeError(f"The sandbox of {record.name} cannot be used: {error}", "no_box") from error
        if box is None or not box.apart or box.elsewhere:
            raise WorktreeError(
                f"{record.name} belongs to a session in the sandbox {record.sandbox}, which is not there now",
                "no_box",
            )
        return box


def entering(runner: BoxRunner) -> Enter:
    """The runner for threads of a process whose event loop runs."""
    loop = asyncio.get_running_loop()

    def enter(record: Record, words: Sequence[str], env: Mapping[str, str], output: int) -> int:
        return asyncio.run_coroutine_threadsafe(runner.run(record, words, env, output), loop).result()

    return enter


@contextmanager
def boxes_for_commands(config: Config, paths: Paths) -> Iterator[Enter]:
    """The runner for a command without an event loop; what it starts is ended with the block."""
    begun: list[tuple[asyncio.Runner, Custody, Boxes, BoxRunner]] = []

    def enter(record: Record, words: Sequence[str], env: Mapping[str, str], output: int) -> int:
        if not begun:
            begun.append(_begin(config, paths))
        loop, _, _, runner = begun[0]
        return loop.run(runner.run(record, words, env, output))

    try:
        yield enter
    finally:
        for loop, custody, boxes, _ in begun:
            with loop:
                loop.run(boxes.close())
                loop.run(custody.close())


def _begin(config: Config, paths: Paths) -> tuple[asyncio.Runner, Custody, Boxes, BoxRunner]:
    from dragoman.agents.custody import Custody
    from dragoman.sandbox import Sandboxes

    loop = asyncio.Runner()
    loop.get_loop()
    custody = Custody(None)
    boxes = Sandboxes(config, paths, custody)
    return loop, custody, boxes, BoxRunner(config, boxes, custody)
