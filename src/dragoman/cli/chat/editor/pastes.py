"""Large pastes, which the line shows as a short mark."""

from __future__ import annotations

FOLD_LINES = 10
FOLD_CHARACTERS = 1500


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
