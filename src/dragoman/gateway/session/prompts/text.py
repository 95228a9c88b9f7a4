"""What the text of a prompt says: the title of a session, or a command of the agent."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Raw

from dragoman.gateway.delivery import transcript
from dragoman.gateway.json_types import as_object, read_object

TITLE_LENGTH = 80
_COMMAND = re.compile(r"/([A-Za-z][\w:.-]*)(?=\s|\Z)")
"""A slash command; a path such as `/etc/hosts` does not match."""


def is_command(blocks: list[Raw], updates: Mapping[str, bytes]) -> bool:
    """Whether the prompt is a command of the agent; if the commands are unknown, whether it looks like one.

    `updates`: the agent's last updates by kind.
    """
    found = _COMMAND.match(first_text(blocks))
    if found is None:
        return False
    told = transcript.read_update(updates.get("available_commands_update", b"")) or {}
    commands = told.get("availableCommands")
    names = [as_object(each).get("name") for each in commands] if isinstance(commands, list) else []
    return not names or found[1] in names


def title_of(blocks: list[Raw]) -> str | None:
    """The start of the first prompt, used as title until the agent sends one."""
    text = first_text(blocks)
    if not text:
        return None
    line = text.splitlines()[0].strip()
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1].rstrip() + "…"


def first_text(blocks: list[Raw]) -> str:
    for raw in blocks:
        block = read_object(raw)  # empty if it has numbers that we cannot decode
        text = str(block.get("text", "")).strip() if block.get("type") == "text" else ""
        if text:
            return text
    return ""
