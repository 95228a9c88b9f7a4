"""Runs `dragoman chat`: the prompt first, then the client library, then the session."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from dragoman.cli.chat.screen import ChatScreen
from dragoman.config.errors import ConfigError
from dragoman.config.paths import Paths

if TYPE_CHECKING:
    from dragoman.cli.chat.talk import Talk


class Conversation(Protocol):
    """What is behind the screen: `Talk`, or `Watching` for a chat that only shows."""

    failed: bool

    async def run(self) -> None: ...

    def farewell(self) -> list[str]: ...


def run(folder: Path, paths: Paths, *, agent: str | None, last: bool, pick: bool, session: str | None) -> int:
    """Returns the exit code."""
    talk: Talk | None = None
    typed: list[str] = []

    def commands() -> Mapping[str, str]:
        return talk.commands() if talk is not None else {}

    screen = ChatScreen(folder, _history(folder, paths), commands)
    screen.editor.on_line = typed.append

    def begin() -> Talk:
        nonlocal talk
        from dragoman.cli.chat.opening import Wanted
        from dragoman.cli.chat.talk import Talk

        talk = Talk(screen, Wanted(folder, agent, last, pick, session))
        for line in typed:
            talk.line(line)
        return talk

    return asyncio.run(_run(screen, begin))


def attach(session: str, paths: Paths) -> int:
    """Continue a session, as `dragoman chat -s` does; returns the exit code."""
    return run(Path.cwd(), paths, agent=None, last=False, pick=False, session=session)


def watch(session: str, paths: Paths) -> int:
    """Show a session without taking part in it; returns the exit code."""
    screen = ChatScreen(Path.cwd(), None, dict, read_only=True)

    def begin() -> Conversation:
        from dragoman.cli.chat.watching import Watching

        return Watching(screen, session, paths)

    return asyncio.run(_run(screen, begin))


async def _run(screen: ChatScreen, begin: Callable[[], Conversation]) -> int:
    """Show the screen; what `begin` imports and makes comes after the first drawing."""
    conversation: Conversation | None = None
    work: asyncio.Task[None] | None = None
    screen.status = lambda: "starting…"

    def started() -> None:
        nonlocal conversation, work
        conversation = begin()
        work = asyncio.get_running_loop().create_task(conversation.run())

    await screen.run(started)
    if conversation is None or work is None:
        return 0
    for line in conversation.farewell():
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
    work.cancel()  # the gateway of a child ends its agents, which may take a moment
    await asyncio.wait({work})
    return 1 if conversation.failed else 0


def _history(folder: Path, paths: Paths) -> Path | None:
    """The file of lines typed in this folder; None if it cannot be made, then they are not kept."""
    try:
        kept = paths.ensure(paths.state_dir / "chat")
    except ConfigError:
        return None
    file = kept / f"{hashlib.sha256(str(folder).encode()).hexdigest()[:24]}.history"
    try:
        file.touch(mode=0o600)
    except OSError:
        return None
    return file
