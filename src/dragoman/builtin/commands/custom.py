"""Slash commands from Markdown files: `.dragoman/commands/NAME.md` of the workspace, and those of the user."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from pathlib import Path

from dragoman.builtin.files.project_file import ANYWHERE, read_start
from dragoman.config.root import find_root

log = logging.getLogger(__name__)

MAX_BYTES = 64 * 1024
MAX_COMMANDS = 500
"""Files read from one folder each time that commands are listed."""
_NAME = re.compile(r"[a-z][\w-]{0,63}")
_FRONT = re.compile(r"---\n(.*?)\n---\n(.*)", re.DOTALL)
_DESCRIPTION = re.compile(r"^description:\s*(.+?)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CustomCommand:
    """A named prompt template."""

    name: str
    description: str
    template: str

    def prompt(self, rest: str) -> str:
        """The prompt with the typed arguments, in place of `$ARGUMENTS` or else at the end."""
        if "$ARGUMENTS" in self.template:
            return self.template.replace("$ARGUMENTS", rest)
        return f"{self.template}\n\n{rest}".strip()


def find_commands(cwd: str) -> dict[str, CustomCommand]:
    """The commands by name; the workspace's win over the user's."""
    from dragoman.config.errors import ConfigError
    from dragoman.config.paths import find_paths

    folders = [(Path(cwd, ".dragoman", "commands"), find_root(Path(cwd)))]
    try:
        folders.insert(0, (find_paths().config_file.parent / "commands", ANYWHERE))
    except ConfigError as error:
        log.warning("the user's own commands are left out: %s", error)
    return {command.name: command for folder, root in folders for command in _commands_in(folder, root)}


def _commands_in(folder: Path, root: Path) -> list[CustomCommand]:
    if not folder.is_dir():
        return []
    files = [file for file in sorted(folder.glob("*.md")) if _NAME.fullmatch(file.stem)][:MAX_COMMANDS]
    texts = ((file.stem, read_start(file, root, MAX_BYTES)) for file in files)
    return [_command(name, text.decode(errors="replace")) for name, text in texts if text]


def _command(name: str, text: str) -> CustomCommand:
    front = _FRONT.fullmatch(text)
    body = (front[2] if front else text).strip()
    named = _DESCRIPTION.search(front[1]) if front else None
    first = body.splitlines()[0].lstrip("# ") if body else ""
    return CustomCommand(name, (named[1].strip("\"'") if named else first)[:200] or name, body)
