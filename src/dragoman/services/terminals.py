"""`terminal/*`: the commands of one session's agent."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec

from dragoman.agents.program import SpawnError
from dragoman.services.params import decode
from dragoman.services.roots import Roots
from dragoman.services.spawn import Command, Spawn
from dragoman.services.terminal import Terminal
from dragoman.wire import message
from dragoman.wire.errors import NOT_FOUND, RpcError, internal, invalid_params

MAX_TERMINALS = 64
"""Terminals per session. An agent in a loop must not fork without end. Some agents never release (D-92), so the
oldest one that has exited is removed first; a new one is refused only if all are running."""

MAX_OUTPUT_BYTES = 1024 * 1024
"""Output stored per terminal, even if the agent asks for more or sets no limit: a build that writes for hours
must not fill our memory, and no model reads more."""

_NEEDS_SHELL = re.compile(r"[^\w./+,:@%=-]|^\w+=")
"""Matches what no program name has: blanks, quotes, operators, expansions, and assignments before the name."""


class _Variable(msgspec.Struct):
    name: str
    value: str


class _Create(msgspec.Struct):
    command: str
    args: list[str] | None = None
    env: list[_Variable] | None = None
    cwd: str | None = None
    output_byte_limit: Annotated[int, msgspec.Meta(ge=0)] | None = msgspec.field(
        name="outputByteLimit", default=None
    )


class _Named(msgspec.Struct):
    terminal_id: str = msgspec.field(name="terminalId")


class Terminals:
    """The terminals of one session, by id."""

    def __init__(self, roots: Roots, cwd: str, environment: Mapping[str, str], spawn: Spawn) -> None:
        """`environment` is for every command; the agent's own variables are added."""
        self._roots = roots
        self._cwd = cwd
        self._environment = environment
        self._spawn = spawn
        self._terminals: dict[str, Terminal] = {}
        self._closed = False

    async def create(self, params: bytes) -> bytes:
        wanted = decode(params, _Create)
        command = self._command(wanted)
        await self._make_room()
        terminal = await self._start(command, wanted.output_byte_limit)
        if self._closed:
            await _dispose(terminal)
            raise internal("The session was closed", "session_closed")
        # Random: one agent process may have several sessions, each with its own terminals (G-069).
        id = f"term_{secrets.token_hex(8)}"
        self._terminals[id] = terminal
        return msgspec.json.encode({"terminalId": id})

    async def output(self, params: bytes) -> bytes:
        return msgspec.json.encode(self._find(params).output())

    def output_of(self, id: str) -> bytes | None:
        """The result of `terminal/output` by id, for clients that display it; None if the terminal is gone."""
        terminal = self._terminals.get(id)
        return None if terminal is None else msgspec.json.encode(terminal.output())

    async def wait_for_exit(self, params: bytes) -> bytes:
        return msgspec.json.encode(await self._find(params).wait())

    async def kill(self, params: bytes) -> bytes:
        """Answered after all processes have ended, so that the next `terminal/output` is complete."""
        await self._find(params).end()
        return message.EMPTY

    async def release(self, params: bytes) -> bytes:
        terminal = self._find(params)
        self._terminals.pop(decode(params, _Named).terminal_id)
        await _dispose(terminal)
        return message.EMPTY

    async def close(self) -> None:
        """End every command."""
        self._closed = True
        await asyncio.gather(*(_dispose(terminal) for terminal in self._terminals.values()))
        self._terminals.clear()  # only now, so that pending waits are answered

    def _find(self, params: bytes) -> Terminal:
        id = decode(params, _Named).terminal_id
        if id not in self._terminals:
            raise RpcError(NOT_FOUND, f"Terminal not found: {id}", {"terminalId": id})
        return self._terminals[id]

    def _command(self, wanted: _Create) -> Command:
        cwd = self._cwd if wanted.cwd is None else wanted.cwd
        # Replacing folders meanwhile gains nothing: the sandbox decides what the command may reach.
        if not Path(self._roots.resolve(cwd)).is_dir():
            raise invalid_params(f"cwd does not exist or is not a folder: {cwd}", "cwd", cwd=cwd)
        # PWD: the inherited one is the gateway's own folder.
        env = {**self._environment, "PWD": cwd, **_variables(wanted.env or [])}
        return Command(_words(wanted), env, cwd)

    async def _start(self, command: Command, limit: int | None) -> Terminal:
        kept = MAX_OUTPUT_BYTES if limit is None else min(limit, MAX_OUTPUT_BYTES)
        try:
            return await Terminal.start(self._spawn, command, kept)
        except SpawnError as error:
            raise invalid_params(str(error), "command", command=command.words[0]) from error

    async def _make_room(self) -> None:
        if len(self._terminals) < MAX_TERMINALS:
            return
        for id, terminal in self._terminals.items():
            if terminal.exited:
                del self._terminals[id]
                await _dispose(terminal)
                return
        raise internal(
            f"{MAX_TERMINALS} commands of this session are running; kill or release some",
            "too_many_terminals",
        )


async def _dispose(terminal: Terminal) -> None:
    await terminal.end()
    terminal.close()


def _words(wanted: _Create) -> list[str]:
    """The program and its arguments. Some agents put a whole shell line into `command` and leave out `args`."""
    words = [wanted.command, *(wanted.args or [])]
    if not wanted.command or any("\0" in word for word in words):
        raise invalid_params("command is empty or contains a NUL character", "command")
    if not wanted.args and _NEEDS_SHELL.search(wanted.command):
        return ["/bin/sh", "-c", wanted.command]
    return words


def _variables(given: list[_Variable]) -> dict[str, str]:
    for variable in given:
        if not variable.name or "=" in variable.name or "\0" in variable.name + variable.value:
            raise invalid_params(f"{variable.name!r} is not an environment variable", "env")
    return {variable.name: variable.value for variable in given}
