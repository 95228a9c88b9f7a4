"""Styles an answer line by line, so that each line can be printed once and never again.

Only what a line shows by itself is styled: headings, lists, quotes, emphasis, code. Tables stay as they were written.
"""

from __future__ import annotations

import re

from dragoman.terminal import clean

Line = list[tuple[str, str]]
"""Pieces of a line: a style of prompt_toolkit and a text."""
TAB = 4
MOST_OF_A_LINE = 100
"""Characters shown of a title or a description."""
_HEADING = re.compile(r"#{1,6}\s+")
_FENCE = re.compile(r"\s*(?:(?:[-*+>]|[0-9]+[.)])\s+)*(?:(```+)[^`]*|(~~~+).*)")
_FENCE_END = re.compile(r"[\s>]*(```+|~~~+)\s*")
_BULLET = re.compile(r"(\s*)([-*+])(\s+)")
_INLINE = re.compile(r"(`[^`\n]+`)|(\*\*[^*\n]+\*\*)")
CODE = "ansicyan"


def safe(text: str) -> str:
    """Text of an agent or a file that cannot control the terminal, its tabs as spaces."""
    return clean(text).expandtabs(TAB)


def one_line(text: str) -> str:
    """Text of an agent as one short line."""
    line = " ".join(safe(text).split())
    return line if len(line) <= MOST_OF_A_LINE else line[: MOST_OF_A_LINE - 1] + "…"


class Markdown:
    """Reads the lines of one answer in order."""

    def __init__(self) -> None:
        self._fence = ""

    def line(self, text: str) -> Line:
        text = safe(text)
        if self._fence:
            end = _FENCE_END.fullmatch(text)
            if end is not None and end[1].startswith(self._fence):
                self._fence = ""
                return [("ansibrightblack", text)]
            return [(CODE, text)]
        fence = _FENCE.fullmatch(text)
        if fence is not None:
            self._fence = fence[1] or fence[2]
            return [("ansibrightblack", text)]
        heading = _HEADING.match(text)
        if heading is not None:
            return [("bold underline", text[heading.end() :])]
        if text.lstrip().startswith(">"):
            return [("italic", text)]
        bullet = _BULLET.match(text)
        if bullet is not None:
            return [("", bullet[1]), ("ansiyellow", "•"), ("", bullet[3]), *inline(text[bullet.end() :])]
        return inline(text)


def inline(text: str) -> Line:
    """Emphasis and code inside a line."""
    pieces: Line = []
    end = 0
    for found in _INLINE.finditer(text):
        pieces.append(("", text[end : found.start()]))
        pieces.append((CODE, found[1][1:-1]) if found[1] else ("bold", found[2][2:-2]))
        end = found.end()
    pieces.append(("", text[end:]))
    return [piece for piece in pieces if piece[1]]
