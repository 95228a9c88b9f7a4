"""Keeps text of agents, files and peers from controlling the terminal.

`guard` wraps stdout and stderr of every command. On a terminal it removes each character that moves the cursor, starts
an escape sequence (OSC 52 writes to the clipboard, OSC 0 to the title) or changes the text direction; the printable
rest of a sequence stays. Our own colours, backspaces and moves up carry a random mark in place of the escape character,
so that only they become sequences. Text that does not go to a terminal only loses the marks.

`escape` and `escape_json` are for the log and for JSON: there such characters are escaped, not removed.
"""

from __future__ import annotations

import codecs
import os
import re
import sys
from collections.abc import Iterable
from typing import Any, Literal, TextIO, cast

_UNSAFE = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and line feed, DEL, C1
    "\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # direction, line breaks, invisible
    "\ud800-\udfff"  # surrogates, which cannot be encoded
    "\ufdd0-\ufdef\U000e0000-\U000e007f"  # noncharacters (our mark is one), tags
)
_FIND = re.compile(f"[{_UNSAFE}]")
_FIND_IN_LINE = re.compile(f"[{_UNSAFE}\t\n]")
_MARK = f"\ufdd0{os.urandom(6).hex()}"
_MARKED = re.compile(rf"{_MARK}(\[(?:[0-9;]{{0,20}}[mAJ]|D))")
_GUARDED_BACK = f"{_MARK}[D"


def clean(text: str) -> str:
    """The text without the characters that control a terminal; tabs and line feeds stay."""
    return _FIND.sub("", text)


def escape(text: str) -> str:
    """The text as one line, control characters escaped as `\\x1b`."""
    return _FIND_IN_LINE.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode(), text)


def escape_json(text: str) -> str:
    """The same JSON, control characters escaped as `\\u001b`."""
    return _FIND.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[place : place + 2].hex()}" for place in range(0, len(units), 2))


Colour = Literal["auto", "always", "never"]
_chosen: Colour = "auto"


def choose_colour(colour: Colour) -> None:
    """Use colours as `--color` says; `auto` follows `NO_COLOR` and `TERM`."""
    global _chosen
    _chosen = colour


def _is_plain() -> bool:
    """Whether colours are off: https://no-color.org, a terminal that knows no sequences, or the user's choice."""
    if _chosen == "auto":
        return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return _chosen == "never"


def style(text: str, **how: Any) -> str:
    """Style text like `click.style`; plain unless `guard` is active, which turns the mark into an escape character."""
    if not _is_guarded() or _is_plain():
        return text
    import click

    return click.style(clean(text), **how).replace("\x1b", _MARK)


def backspaced(text: str) -> str:
    """Our own text, with its backspaces marked so that they move the cursor on a guarded stream."""
    return text.replace("\b", _GUARDED_BACK) if _is_guarded() else text


def cleared(lines: int) -> str:
    """What moves the cursor up so many lines and removes what is below, on a guarded stream."""
    return f"{_MARK}[{lines}A{_MARK}[J" if lines and _is_guarded() else ""


def guard() -> None:
    """Wrap stdout and stderr in `Guarded`."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, Guarded):
            setattr(sys, name, cast("TextIO", Guarded(stream)))


class Guarded:
    """A text stream that removes terminal control characters; all but writing is left to the wrapped stream."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._terminal = _is_terminal(stream)
        self.buffer = _Bytes(self) if self._terminal else getattr(stream, "buffer", None)

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"expected a string, got {type(text).__name__}")
        coloured = self._terminal or _chosen == "always"
        shown = self._coloured(text) if coloured else _MARKED.sub("", text)
        try:
            self._stream.write(shown)
        except UnicodeEncodeError:
            encoding = self._stream.encoding or "ascii"
            self._stream.write(shown.encode(encoding, "backslashreplace").decode(encoding))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @staticmethod
    def _coloured(text: str) -> str:
        first, *rest = _MARKED.split(text)
        parts = [clean(first)]
        for sequence, plain in zip(rest[::2], rest[1::2], strict=True):
            parts += ["\x1b", sequence, clean(plain)]
        return "".join(parts)


class _Bytes:
    """The `buffer` of a guarded stream: bytes are decoded and filtered like text."""

    def __init__(self, above: Guarded) -> None:
        self._above = above
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def write(self, data: bytes) -> int:
        self._above.write(self._decoder.decode(bytes(data)))
        return len(data)

    def flush(self) -> None:
        self._above.flush()

    def writable(self) -> bool:
        return True

    @property
    def closed(self) -> bool:
        return bool(self._above.closed)


def unguarded_stdout() -> TextIO:
    """stdout itself, for a library that draws with sequences of its own; what uses it must `clean` all text."""
    stream = sys.stdout
    return stream._stream if isinstance(stream, Guarded) else stream


def _is_guarded() -> bool:
    return isinstance(sys.stdout, Guarded) or isinstance(sys.stderr, Guarded)


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False
