"""How a terminal's command is started: the port, and the way without a sandbox.

Custody is taken from `agents` because a command is no different from an agent there: whatever it started has
to end with it, and with the gateway, under the same watcher.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dragoman.agents.custody import Child, Custody, CustodyError, Launch, Ward
from dragoman.agents.launch import SpawnError, explain, find_program
from dragoman.agents.process import ExitStatus
from dragoman.gateway.ports.agent import AgentUnavailable
from dragoman.gateway.ports.sandbox import Box


@dataclass(frozen=True, slots=True)
class Command:
    """What to run; the folder is known to lie inside the workspace."""

    words: Sequence[str]
    env: Mapping[str, str]
    cwd: str | None


class Running(Protocol):
    """A command that was started."""

    async def wait(self) -> ExitStatus:
        """How the command itself ended; what it left running is another matter."""

    async def end(self) -> None:
        """End the command and everything it started; bounded, and of no effect on what has ended."""


class Spawn(Protocol):
    """Starts commands; a sandbox brings its own."""

    async def __call__(self, command: Command, output: int) -> Running:
        """Start it with stdout and stderr on the descriptor `output`, without stdin; `SpawnError` if it cannot."""


class LocalSpawn:
    """Starts commands beside the gateway, in custody."""

    def __init__(self, custody: Custody) -> None:
        self._custody = custody

    async def __call__(self, command: Command, output: int) -> Running:
        return await self.start(command, output)

    async def start(self, command: Command, output: int, preface: bytes = b"") -> Running:
        """Start it with a stdin that holds the preface and nothing else."""
        program = find_program(command.words, command.env, command.cwd)
        try:
            streams = _streams(output, preface)
        except OSError as error:
            raise SpawnError(explain(command.words[0], error)) from error
        launch = Launch(program, command.words, command.env, command.cwd, streams)
        starting = asyncio.ensure_future(self._launch(launch))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(_give_up)
            raise

    async def _launch(self, launch: Launch) -> _LocalRunning:
        try:
            ward, child = await self._custody.launch(launch)
        except CustodyError as error:
            raise SpawnError(str(error)) from error
        except OSError as error:
            raise SpawnError(explain(launch.command[0], error, launch.cwd)) from error
        finally:
            for descriptor in launch.streams:
                os.close(descriptor)
        return _LocalRunning(child, self._custody, ward)


class BoxSpawn:
    """Starts commands inside a sandbox."""

    def __init__(self, custody: Custody, box: Box) -> None:
        self._local = LocalSpawn(custody)
        self._box = box

    async def __call__(self, command: Command, output: int) -> Running:
        try:
            inside = await self._box.command(command.words, command.env, command.cwd or "/")
        except AgentUnavailable as error:
            raise SpawnError(str(error)) from error
        outside = Command(inside.words, inside.env, inside.cwd)
        return _BoxRunning(await self._local.start(outside, output, inside.preface), inside.leave)


class _BoxRunning:
    def __init__(self, running: Running, leave: Callable[[], Awaitable[None]]) -> None:
        self._running = running
        self._leave: Callable[[], Awaitable[None]] | None = leave

    async def wait(self) -> ExitStatus:
        return await self._running.wait()

    async def end(self) -> None:
        await self._running.end()
        leave, self._leave = self._leave, None
        if leave is not None:
            await leave()


class _LocalRunning:
    def __init__(self, child: Child, custody: Custody, ward: Ward) -> None:
        self._custody = custody
        self._ward = ward
        self._exit: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        child.on_exit(self._exit.set_result)

    async def wait(self) -> ExitStatus:
        return ExitStatus.of(await asyncio.shield(self._exit))

    async def end(self) -> None:
        await self._custody.end(self._ward)


def _give_up(starting: asyncio.Future[_LocalRunning]) -> None:
    """End a command that was started for nobody."""
    if not starting.cancelled() and starting.exception() is None:
        ending = asyncio.ensure_future(starting.result().end())
        _ENDINGS.add(ending)
        ending.add_done_callback(_ENDINGS.discard)


_ENDINGS: set[asyncio.Future[None]] = set()
"""Of commands that were given up: the loop itself holds no reference to a task."""


def _streams(output: int, preface: bytes) -> tuple[int, int, int]:
    """Descriptors of its own: whoever gives up waiting closes `output` while the program may still be being started."""
    with tempfile.TemporaryFile() if preface else Path(os.devnull).open("rb") as file:
        if preface:  # in a file, since a pipe may be full before anybody reads it
            file.write(preface)
            file.seek(0)
        made: list[int] = []
        try:
            for descriptor in (file.fileno(), output, output):
                made.append(os.dup(descriptor))
        except OSError:
            for descriptor in made:
                os.close(descriptor)
            raise
    stdin, stdout, stderr = made
    return stdin, stdout, stderr
