"""Colours the lines of a unified diff; in a line that was changed, the words that differ are marked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from dragoman.cli.chat.lines.markdown import Line, safe

ADDED, REMOVED, FAINT = "ansigreen", "ansired", "ansibrightblack"
STYLES = {"+": ADDED, "-": REMOVED, "@": "ansicyan"}
MARK = " reverse"
LIKE_ENOUGH = 0.5
"""Share of a line's words that must be the same for the others to be marked."""
MOST_CHARACTERS = 400
"""In longer lines no words are compared: it takes time, and marks little that can be seen."""
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")


def diff_lines(lines: Sequence[str]) -> Iterator[Line]:
    """The lines, indented by two; what is no diff is faint."""
    place = 0
    while place < len(lines):
        removed = _run(lines, place, "-")
        added = _run(lines, place + len(removed), "+")
        if removed and len(removed) == len(added):
            pairs = [_marked(old, new) for old, new in zip(removed, added, strict=True)]
            yield from (old for old, _ in pairs)
            yield from (new for _, new in pairs)
        else:
            yield from (_plain(line) for line in (*removed, *added))
        place += len(removed) + len(added)
        if place < len(lines) and not removed and not added:
            yield _plain(lines[place])
            place += 1


def _run(lines: Sequence[str], first: int, sign: str) -> Sequence[str]:
    """The lines from `first` on that have this sign, without the names of files above a diff."""
    last = first
    while last < len(lines) and lines[last][:1] == sign and not lines[last].startswith(sign * 3 + " "):
        last += 1
    return lines[first:last]


def _plain(line: str) -> Line:
    return [(STYLES.get(line[:1], FAINT), f"  {safe(line)}")]


def _marked(old: str, new: str) -> tuple[Line, Line]:
    old, new = safe(old), safe(new)
    if max(len(old), len(new)) > MOST_CHARACTERS:
        return _plain(old), _plain(new)
    before, after = _WORDS.findall(old[1:]), _WORDS.findall(new[1:])
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    if matcher.ratio() < LIKE_ENOUGH:
        return _plain(old), _plain(new)
    left: Line = [(REMOVED, "  -")]
    right: Line = [(ADDED, "  +")]
    for kind, a, b, c, d in matcher.get_opcodes():
        mark = "" if kind == "equal" else MARK
        if b > a:
            left.append((REMOVED + mark, "".join(before[a:b])))
        if d > c:
            right.append((ADDED + mark, "".join(after[c:d])))
    return left, right
