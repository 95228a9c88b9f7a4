"""How a terminal's command is started: the port, and the way without a sandbox.

Custody is taken from `agents` because a command is no different from an agent there: whatever it started has
to end with it, and with the gateway, under the same watcher.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dragoman.agents.custody import Custody, CustodyError, Ward
from dragoman.agents.custody.exits import on_exit
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
            ward = self._custody.admit()
        except CustodyError as error:
            raise SpawnError(str(error)) from error
        try:
            child = _start(program, command, ward.mark(command.env), output, preface)
        except OSError as error:
            self._custody.release(ward)
            raise SpawnError(explain(command.words[0], error)) from error
        self._custody.started(ward, child.pid)
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
    def __init__(self, child: subprocess.Popen[bytes], custody: Custody, ward: Ward) -> None:
        self._custody = custody
        self._ward = ward
        self._exit: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        on_exit(child, self._exit.set_result)

    async def wait(self) -> ExitStatus:
        return ExitStatus.of(await asyncio.shield(self._exit))

    async def end(self) -> None:
        await self._custody.end(self._ward)


def _start(
    program: str, command: Command, env: Mapping[str, str], output: int, preface: bytes
) -> subprocess.Popen[bytes]:
    with tempfile.TemporaryFile() if preface else Path(os.devnull).open("rb") as stdin:
        if preface:  # in a file, since a pipe may be full before anybody reads it
            stdin.write(preface)
            stdin.seek(0)
        return subprocess.Popen(
            [program, *command.words[1:]],
            stdin=stdin,
            stdout=output,
            stderr=output,
            env=env,
            cwd=command.cwd,
            start_new_session=True,
        )
