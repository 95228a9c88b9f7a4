"""Breaks lines at spaces, where a terminal would break them inside words."""

from __future__ import annotations

import re

from prompt_toolkit.utils import get_cwidth

from dragoman.cli.chat.lines.markdown import Line

_INDENT = re.compile(r"\s*(?:[•●·?>!-]\s+)?")
_WORDS = re.compile(r"\s+|\S+")


def wrap(line: Line, columns: int) -> list[Line]:
    """The rows of a line; those after the first are indented as its text."""
    text = "".join(piece for _, piece in line)
    if get_cwidth(text) <= columns:
        return [line]
    found = _INDENT.match(text)
    indent = get_cwidth(found[0]) if found is not None else 0
    margin = " " * (indent if indent <= columns // 2 else 0)
    rows: list[Line] = [[]]
    room = columns
    for word in _words(line):
        width = sum(get_cwidth(piece) for _, piece in word)
        if width <= room:
            rows[-1] += word
            room -= width
            continue
        if word[0][1].isspace():
            room = 0  # the break takes its place
            continue
        if room < columns - len(margin):
            rows.append([("", margin)] if margin else [])
            room = columns - len(margin)
        for style, piece in word:
            for character in piece:
                width = get_cwidth(character)
                if width > room:
                    rows.append([("", margin)] if margin else [])
                    room = columns - len(margin)
                rows[-1].append((style, character))
                room -= width
    return [_joined(row) for row in rows]


def _words(line: Line) -> list[Line]:
    """The words and the spaces between them; a word may have pieces of several styles."""
    words: list[Line] = []
    for style, text in line:
        for part in _WORDS.findall(text):
            if words and not part.isspace() and not words[-1][-1][1].isspace():
                words[-1].append((style, part))
            else:
                words.append([(style, part)])
    return words


def _joined(row: Line) -> Line:
    """Neighbours of one style as one piece, without spaces at the end."""
    joined: Line = []
    for style, text in row:
        if joined and joined[-1][0] == style:
            joined[-1] = (style, joined[-1][1] + text)
        else:
            joined.append((style, text))
    if joined:
        joined[-1] = (joined[-1][0], joined[-1][1].rstrip())
    return joined
