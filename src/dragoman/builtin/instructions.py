"""The instructions of a model: its role, the project's instruction files, and facts of the session."""

from __future__ import annotations

import logging
import platform
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from dragoman.builtin.files.project_file import ANYWHERE, read_start
from dragoman.builtin.modes import Mode
from dragoman.config.errors import ConfigError
from dragoman.config.paths import find_paths
from dragoman.config.root import find_root

log = logging.getLogger(__name__)

MAX_BYTES = 64 * 1024
"""Bytes read of each file: a huge AGENTS.md would leave no room for the conversation."""

WHO = """\
You are Dragoman's built-in coding agent. You work with the user on the project in the working folder, with the tools
you are given. Be brief and exact. Look before you answer: read and search instead of guessing. Make the smallest
change that does what was asked, and check it with a command where there is one. For work of several steps keep a plan
with the plan tool. When a tool call is rejected, do not try the same thing in another way: ask."""


def instructions(cwd: str, mode: Mode) -> str:
    """The whole text; folder, system, date and mode come last."""
    parts = [WHO]
    for file, text in project_files(cwd):
        parts.append(f"What {file} says:\n\n{text}")
    facts = f"Working folder: {cwd}\nSystem: {platform.system()}\nDate: {date.today().isoformat()}"
    parts.append(f"{facts}\nMode: {mode.name}. {mode.guidance}".rstrip())
    return "\n\n".join(parts)


def project_files(cwd: str) -> Iterator[tuple[str, str]]:
    """Paths and texts: the user's AGENTS.md, then the files from the project's root down to the working folder."""
    here = Path(cwd).resolve()
    root = find_root(here)
    between = [folder for folder in (here, *here.parents) if folder.is_relative_to(root)]
    candidates = []
    try:
        candidates.append((find_paths().config_file.parent / "AGENTS.md", ANYWHERE))
    except ConfigError as error:
        log.warning("the user's own AGENTS.md is left out: %s", error)
    for folder in reversed(between):
        candidates += [(folder / "AGENTS.md", root), (folder / ".dragoman" / "instructions.md", root)]
    for file, allowed in candidates:
        text = _read(file, allowed)
        if text:
            yield str(file), text


def _read(file: Path, root: Path) -> str:
    data = read_start(file, root, MAX_BYTES + 1)
    text = data[:MAX_BYTES].decode(errors="replace").strip()
    return f"{text}\n[cut here]" if len(data) > MAX_BYTES else text
