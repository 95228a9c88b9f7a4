"""Commands that the agent runs: in the client's terminals if it has them, else as local processes in custody."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from dragoman.agents.custody import Custody
from dragoman.agents.custody.tree import MARKER_VARIABLE
from dragoman.agents.environment import inherited
from dragoman.agents.program import SpawnError
from dragoman.builtin.client import Client
from dragoman.builtin.errors import ToolError
from dragoman.sandbox.allowlist import GENERAL, SAME_FILES, allowed
from dragoman.services.spawn import Command, Spawn
from dragoman.services.terminal import Terminal
from dragoman.wire.errors import RpcError

OUTPUT_BYTES = 256 * 1024
"""How much of the end of a command's output is kept in memory: no model reads more."""

MAX_BACKGROUND = 16
"""Commands that may run in the background at once."""

QUIET: Mapping[str, str] = {"PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "TERM": "dumb"}
"""Turns off pagers and prompts, which would wait for a key."""


@dataclass(frozen=True, slots=True)
class Output:
    text: str
    truncated: bool
    exit_code: int | None = None
    signal: str | None = None

    @property
    def ended(self) -> bool:
        return self.exit_code is not None or self.signal is not None

    def describe(self) -> str:
        if self.signal is not None:
            return f"ended by {self.signal}"
        return f"exit code {self.exit_code}" if self.exit_code is not None else "still running"

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Output:
        status = answer.get("exitStatus") or {}
        return cls(
            str(answer.get("output", "")),
            answer.get("truncated") is True,
            status.get("exitCode"),
            status.get("signal"),
        )


class RunningCommand(Protocol):
    """A command that was started."""

    terminal_id: str | None
    """The client's terminal that shows it, if one does."""

    async def wait(self) -> None: ...

    async def output(self) -> Output: ...

    async def kill(self) -> None:
        """End the command with everything that it started; its output stays."""

    async def release(self) -> None:
        """Free what the command holds; ends it if it still runs."""


def _environment(*, here: bool) -> Mapping[str, str]:
    """The environment of a command; `here` (in a box) without secrets. A gateway has filtered its agent's already."""
    if here:
        return allowed(os.environ, (*GENERAL, *SAME_FILES))
    return os.environ if MARKER_VARIABLE in os.environ else inherited(os.environ)


def shell(command: str) -> list[str]:
    """The arguments that run a command line: with bash if it is installed, since models write bash."""
    return [shutil.which("bash") or "/bin/sh", "-c", command]


class Commands:
    """The commands of one session."""

    def __init__(self, session: str, client: Client, custody: Custody) -> None:
        self._session = session
        self._client = client
        self._custody = custody
        self.background: dict[str, RunningCommand] = {}

    async def start(self, words: Sequence[str], cwd: str, *, here: bool = False) -> RunningCommand:
        """Start a command; `here` (in a box) not in the client's terminals, and without secrets in its environment."""
        if self._client.has_terminals and not here:
            return await _ClientCommand.start(self._client, self._session, words, cwd)
        env = {**_environment(here=here), **QUIET, "PWD": cwd}
        try:
            terminal = await Terminal.start(Spawn(self._custody), Command(words, env, cwd), OUTPUT_BYTES)
        except SpawnError as error:
            raise ToolError(str(error)) from error
        return _LocalCommand(terminal)

    async def make_room(self) -> None:
        """Make room for a background command: drop the oldest that has ended; `ToolError` if all still run."""
        if len(self.background) < MAX_BACKGROUND:
            return
        for id, command in self.background.items():
            if await _has_ended(command):
                del self.background[id]
                with contextlib.suppress(ToolError):  # see `_has_ended`
                    await command.release()
                return
        raise ToolError(f"{MAX_BACKGROUND} commands run in the background already: stop one first.")

    def keep(self, command: RunningCommand) -> str:
        """Register a command that runs in the background; returns its id for `find`."""
        id = secrets.token_hex(3)
        self.background[id] = command
        return id

    def find(self, id: str) -> RunningCommand:
        if id not in self.background:
            known = ", ".join(self.background) or "none"
            raise ToolError(f"No command {id} runs in the background; there are: {known}.")
        return self.background[id]

    async def close(self) -> None:
        commands, self.background = list(self.background.values()), {}
        await asyncio.gather(*(command.release() for command in commands))


async def _has_ended(command: RunningCommand) -> bool:
    try:
        return (await command.output()).ended
    except ToolError:
        return True  # the client closed its terminal


class _LocalCommand:
    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self.terminal_id: str | None = None

    async def wait(self) -> None:
        await self._terminal.wait()

    async def output(self) -> Output:
        return Output.of(self._terminal.output())

    async def kill(self) -> None:
        await self._terminal.end()

    async def release(self) -> None:
        await self._terminal.end()
        self._terminal.close()


class _ClientCommand:
    def __init__(self, client: Client, session: str, terminal_id: str) -> None:
        self._client = client
        self._params = {"sessionId": session, "terminalId": terminal_id}
        self.terminal_id: str | None = terminal_id

    @classmethod
    async def start(cls, client: Client, session: str, words: Sequence[str], cwd: str) -> _ClientCommand:
        params = {
            "sessionId": session,
            "command": words[0],
            "args": list(words[1:]),
            "env": [{"name": name, "value": value} for name, value in QUIET.items()],
            "cwd": cwd,
            "outputByteLimit": OUTPUT_BYTES,
        }
        try:
            answer = await client.request("terminal/create", params)
        except RpcError as error:
            raise ToolError(f"The command could not be started: {error.message}.") from error
        return cls(client, session, str(answer["terminalId"]))

    async def wait(self) -> None:
        await self._ask("terminal/wait_for_exit")

    async def output(self) -> Output:
        return Output.of(await self._ask("terminal/output"))

    async def kill(self) -> None:
        await self._ask("terminal/kill")

    async def release(self) -> None:
        await self._ask("terminal/release")

    async def _ask(self, method: str) -> Any:
        try:
            return await self._client.request(method, self._params)
        except RpcError as error:
            raise ToolError(f"The terminal no longer works: {error.message}.") from error
