"""Runs an agent's program with `--version`: checks that it is installed, runs, and is not too old."""

from __future__ import annotations

import asyncio
import re

from dragoman.agents.adapter import Spawn
from dragoman.gateway.ports.agent import AgentUnavailable
from dragoman.rpc.link import LinkHandler
from dragoman.wire.errors import RpcError, internal
from dragoman.wire.framing import Frame

PATIENCE = 30.0
"""Seconds to wait; a program that is not in the disk cache yet takes long on a loaded machine."""
_VERSION = re.compile(r"\d+\.\d+\.\d+\S*")


class _Listener(LinkHandler):
    """Collects the program's output."""

    def __init__(self) -> None:
        self.printed: list[str] = []

    def link_messages(self, frames: list[Frame]) -> None:
        self.printed += [frame.decode(errors="replace") for frame in frames if isinstance(frame, bytes)]


async def ask_version(spawn: Spawn, name: str, least: tuple[int, int, int], update: str) -> str:
    """The version of the agent `name`; raises `RpcError` if it cannot be found out or is lower than `least`.

    `update` is the command that installs a newer version.
    """
    listener = _Listener()
    try:
        program = await spawn(["--version"], listener, None)
    except AgentUnavailable as error:
        raise internal(str(error), "agent_unavailable", agent=name) from error
    try:
        async with asyncio.timeout(PATIENCE):
            await program.wait_closed()
    except TimeoutError as error:
        await program.stop(0)
        raise _broken(name, f"did not report its version within {PATIENCE:g} s", update) from error
    text = " ".join(listener.printed)
    found = _VERSION.search(text)
    if found is None:
        tail = program.end().stderr_tail.strip()
        raise _broken(
            name, f"{program.end().describe()} when asked for its version. {tail or text}".strip(), update
        )
    if _numbers(found[0]) < least:
        wanted = ".".join(map(str, least))
        raise _broken(name, f"is too old: it is {found[0]}, at least {wanted} is needed", update)
    return found[0]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _broken(name: str, what: str, update: str) -> RpcError:
    return internal(f"The agent {name} {what}. Install it again: {update}", "agent_unavailable", agent=name)
