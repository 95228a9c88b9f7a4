"""Asks the index: words and phrases as people write them, in; places with a piece of the text around, out."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right

from dragoman.gateway.ports.search import MOST_HITS, BadQuery, Hit, Wanted
from dragoman.search.index import COUNTER_BITS, Index, tag
from dragoman.wire.timestamps import timestamp

MOST_WORDS = 32
"""Words and phrases of one search; more are ignored."""
BEFORE, AFTER = 60, 140
"""Characters of context around the first match."""
_OPEN, _CLOSE = "\x02", "\x03"  # never in a passage: control characters are removed before
_BLANK = re.compile(r"\s+")
_TERM = re.compile(r'"([^"]*)"?(\*?)|(\S+)')


def expression(text: str) -> str:
    """The FTS5 expression for words, "phrases in quotation marks" and beginnings of words*, all of which must occur."""
    terms = []
    for phrase, star, word in _TERM.findall(text):
        prefix = bool(star) or word.endswith("*")
        words = phrase or word.strip('"').rstrip("*")
        if any(character.isalnum() for character in words):
            plain = words.replace('"', " ").replace("\0", " ")
            terms.append(f'"{plain}"' + ("*" if prefix else ""))
    if not terms:
        raise BadQuery("there is nothing to search for: give a word with letters or digits")
    return f"{{text}} : ({' AND '.join(terms[:MOST_WORDS])})"


def search(index: Index, wanted: Wanted) -> list[Hit]:
    """Where the words are found, the newest place first."""
    matched = expression(wanted.text)
    for kind, value in (("agent", wanted.agent), ("cwd", wanted.cwd)):
        if value is None:
            continue
        tags = _tags(index, kind, value)
        if not tags:
            return []
        matched = f"({matched}) AND {{tags}} : ({' OR '.join(tags)})"
    since = 0 if wanted.since is None else (wanted.since // 1000) << COUNTER_BITS
    order = "rank" if wanted.best else "rowid DESC"
    query = (
        "SELECT w.n, w.marked, p.who, p.marks, s.id, s.agent, s.cwd, s.title, s.source, s.undone FROM ("
        f"SELECT rowid AS n, highlight(words, 0, '{_OPEN}', '{_CLOSE}') AS marked FROM words"
        f" WHERE words MATCH ? AND rowid >= ? ORDER BY {order} LIMIT ?"
        ") w JOIN passages p ON p.n = w.n JOIN sessions s ON s.n = p.session"
    )
    values = (matched, since, max(1, min(wanted.limit, MOST_HITS)))
    rows = index.connection.execute(query, values).fetchall()
    return [_hit(*row) for row in rows]


def _tags(index: Index, kind: str, value: str) -> list[str]:
    """The tags of an agent, or of a folder and all below it."""
    where, values = "value = ?", [kind, value]
    if kind == "cwd":
        where, values = "(value = ? OR substr(value, 1, length(?3)) = ?3)", [*values, value.rstrip("/") + "/"]
    query = f"SELECT n FROM names WHERE kind = ? AND {where}"
    return [tag(row[0]) for row in index.connection.execute(query, values)]


def _hit(
    n: int, marked: str, who: str, marks: bytes, session_id: str, agent: str, cwd: str, title: str | None,
    source: str, undone: bytes,
) -> Hit:  # fmt: skip
    text, spans = _unmarked(marked)
    at = timestamp((n >> COUNTER_BITS) * 1000)
    found = spans[0][0] if spans else 0
    values = array("Q", marks)
    offsets = values[::2].tolist()
    event = values[1::2][max(0, bisect_right(offsets, found) - 1)]
    piece, start = _around(text, found)
    shown = [
        (max(0, a - start), min(len(piece), b - start))
        for a, b in spans
        if a < start + len(piece) and b > start
    ]
    numbers = array("Q", undone)
    ranges = zip(numbers[::2], numbers[1::2], strict=True)
    gone = any(first <= event <= last for first, last in ranges)
    return Hit(session_id, agent, cwd, title, event, who, at, piece, shown, source == "history", gone)


def _unmarked(marked: str) -> tuple[str, list[tuple[int, int]]]:
    """The text without the marks of matches, and where these are in it."""
    parts, spans, length, begin = [], [], 0, 0
    for piece in re.split(f"([{_OPEN}{_CLOSE}])", marked):
        if piece == _OPEN:
            begin = length
        elif piece == _CLOSE:
            spans.append((begin, length))
        else:
            parts.append(piece)
            length += len(piece)
    return "".join(parts), spans


def _around(text: str, found: int) -> tuple[str, int]:
    """The piece of the text around a match, cut between words, and where it begins."""
    start, end = max(0, found - BEFORE), min(len(text), found + AFTER)
    if start:
        blank = _BLANK.search(text, start, found)
        start = blank.end() if blank is not None else start
    if end < len(text):
        blanks = list(_BLANK.finditer(text, found, end))
        end = blanks[-1].start() if blanks else end
    return text[start:end], start
