"""What is sent for a typed line: pastes unfolded, `@` files as links."""

from __future__ import annotations

import re
from pathlib import Path

from dragoman.cli.chat.markdown import safe
from dragoman.wire.json_types import JsonObject, objects, own_meta

FOLD_LINES = 10
FOLD_CHARACTERS = 1500
_FILE = re.compile(r"(?:^|(?<=\s))@(\S+)")


class Pastes:
    """Large pastes, which the line shows as a short mark."""

    def __init__(self) -> None:
        self._kept: dict[str, str] = {}

    def fold(self, text: str) -> str:
        """The text itself if it is short, else a mark for it."""
        count = text.count("\n") + 1
        if count <= FOLD_LINES and len(text) <= FOLD_CHARACTERS:
            return text
        mark = f"[paste {len(self._kept) + 1}: {count} lines]"
        self._kept[mark] = text
        return mark

    def unfold(self, line: str) -> str:
        for mark, text in self._kept.items():
            line = line.replace(mark, text)
        return line


def blocks_of(text: str, folder: Path) -> list[JsonObject]:
    """The content of a prompt: the text, and a link to each file that it names with `@`."""
    blocks: list[JsonObject] = [{"type": "text", "text": text}]
    names = (name.rstrip(",.;:!?)") for name in _FILE.findall(text))
    for name in dict.fromkeys(names):
        path = folder / name
        if path.is_file():
            blocks.append({"type": "resource_link", "name": path.name, "uri": path.absolute().as_uri()})
    return blocks


def edited_text(result: JsonObject) -> str | None:
    """The text of a prompt that another client changed while it waited, from the answer when it was taken out."""
    blocks = objects(own_meta(result).get("prompt"))
    texts = [str(block.get("text")) for block in blocks if block.get("type") == "text"]
    return safe("\n".join(texts)) if texts else None
