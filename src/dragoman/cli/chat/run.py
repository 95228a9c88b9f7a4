"""Runs `dragoman chat`: the prompt first, then the client library, then the session."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.chat.screen import ChatScreen
from dragoman.config.errors import ConfigError
from dragoman.config.paths import Paths

if TYPE_CHECKING:
    from dragoman.cli.chat.talk import Talk


def run(folder: Path, paths: Paths, *, agent: str | None, last: bool, pick: bool, session: str | None) -> int:
    """Returns the exit code."""
    return asyncio.run(_run(folder, paths, agent, last, pick, session))


async def _run(
    folder: Path, paths: Paths, agent: str | None, last: bool, pick: bool, session: str | None
) -> int:
    talk: Talk | None = None
    work: asyncio.Task[None] | None = None
    typed: list[str] = []

    def commands() -> Mapping[str, str]:
        return talk.commands() if talk is not None else {}

    screen = ChatScreen(folder, _history(folder, paths), commands)
    screen.on_line = typed.append
    screen.status = lambda: "starting…"

    def started() -> None:
        nonlocal talk, work
        from dragoman.cli.chat.opening import Wanted
        from dragoman.cli.chat.talk import Talk

        talk = Talk(screen, Wanted(folder, agent, last, pick, session))
        for line in typed:
            talk.line(line)
        work = asyncio.get_running_loop().create_task(talk.run())

    await screen.run(started)
    if talk is None or work is None:
        return 0
    for line in talk.farewell():
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
    work.cancel()  # the gateway of a child ends its agents, which may take a moment
    await asyncio.wait({work})
    return 1 if talk.failed else 0


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
