"""Starts a terminal's command, inside or outside of a sandbox.

Custody of `agents` is used for commands too: all processes that a command starts must end with the command and
with the gateway, under the same watcher.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.agents.custody import Child, Custody, CustodyError, Launch, Ward
from dragoman.agents.process import ExitStatus
from dragoman.agents.program import SpawnError, explain, find_program
from dragoman.gateway.ports.agent import AgentUnavailable
from dragoman.gateway.ports.sandbox import Box


@dataclass(frozen=True, slots=True)
class Command:
    """A command to run; its folder was checked to be inside the workspace."""

    words: Sequence[str]
    env: Mapping[str, str]
    cwd: str | None


class Running:
    """A running command."""

    def __init__(self, child: Child, custody: Custody, ward: Ward) -> None:
        self.leave: Callable[[], Awaitable[None]] | None = None
        """Called once after the end of a command in a sandbox."""
        self._custody = custody
        self._ward = ward
        self._exit: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        child.on_exit(self._exit.set_result)

    async def wait(self) -> ExitStatus:
        """Wait for the command's own exit; processes that it started may still run."""
        return ExitStatus.of(await asyncio.shield(self._exit))

    async def end(self) -> None:
        """End the command and all processes it started; takes bounded time, and has no effect after their end."""
        await self._custody.end(self._ward)
        leave, self.leave = self.leave, None
        if leave is not None:
            await leave()


class Spawn:
    """Starts commands in custody: beside the gateway, or inside a sandbox."""

    def __init__(self, custody: Custody, box: Box | None = None) -> None:
        self._custody = custody
        self._box = box

    async def __call__(self, command: Command, output: int) -> Running:
        """Start a command with stdout and stderr on a descriptor, without stdin; raises `SpawnError`."""
        if self._box is None:
            return await self._start(command, output)
        try:
            inside = await self._box.command(command.words, command.env, command.cwd or "/")
        except AgentUnavailable as error:
            raise SpawnError(str(error)) from error
        running = await self._start(Command(inside.words, inside.env, inside.cwd), output, inside.preface)
        running.leave = inside.leave
        return running

    async def _start(self, command: Command, output: int, preface: bytes = b"") -> Running:
        """Start a command whose stdin holds only the preface."""
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

    async def _launch(self, launch: Launch) -> Running:
        try:
            ward, child = await self._custody.launch(launch)
        except CustodyError as error:
            raise SpawnError(str(error)) from error
        except OSError as error:
            raise SpawnError(explain(launch.command[0], error, launch.cwd)) from error
        finally:
            for descriptor in launch.streams:
                os.close(descriptor)
        return Running(child, self._custody, ward)


def _give_up(starting: asyncio.Future[Running]) -> None:
    """End a command whose caller was cancelled during the start."""
    if not starting.cancelled() and starting.exception() is None:
        ending = asyncio.ensure_future(starting.result().end())
        _ENDINGS.add(ending)
        ending.add_done_callback(_ENDINGS.discard)


_ENDINGS: set[asyncio.Future[None]] = set()
"""Tasks that end given-up commands: the loop itself holds only weak references to tasks."""


def _streams(output: int, preface: bytes) -> tuple[int, int, int]:
    """Stdin, stdout and stderr as new descriptors: a cancelled caller closes `output` during the start."""
    with tempfile.TemporaryFile() if preface else Path(os.devnull).open("rb") as file:
        if preface:  # in a file: a pipe may be full before it is read
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
