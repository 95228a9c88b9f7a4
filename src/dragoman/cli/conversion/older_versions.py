"""Converts what older versions stored otherwise: journals, and answers that the built-in agent remembered itself."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from dragoman.config.model import Config
from dragoman.config.paths import Paths
from dragoman.gateway.ports.store import StoreError

log = logging.getLogger(__name__)

OLD_ANSWERS = Path("builtin", "allowed")
"""In the state folder."""


def convert_old_sessions(paths: Paths, tell: Callable[[str], None]) -> None:
    """Convert the journals that older versions stored in the database to files; `tell` shows its progress."""
    from dragoman.upkeep import conversion

    try:
        conversion.convert(paths.database, tell)
    except StoreError as error:
        log.error("sessions of an older version are not converted: %s", error)


async def convert_old_answers(config: Config, paths: Paths) -> None:
    """Move answers of the built-in agent to the remembered ones, in a thread; without any, one folder is looked for."""
    if (paths.state_dir / OLD_ANSWERS).is_dir():
        await asyncio.to_thread(_convert_answers, config, paths)


def _convert_answers(config: Config, paths: Paths) -> None:
    from dragoman.builtin.history import Archive
    from dragoman.policy.memory import old_answers
    from dragoman.policy.memory.file import FILE, Remembered

    folder = paths.state_dir / OLD_ANSWERS
    if not old_answers.has_old_answers(folder):
        return
    cwds = {facts.cwd for _, facts in Archive(folder.parent / "sessions").sessions()}
    agents = [name for name, agent in config.agents.items() if agent.kind == "builtin"]
    old_answers.convert_old_answers(folder, cwds, agents, Remembered(paths.state_dir / FILE))
