"""The one way to a terminal: nothing that an agent, a file or a peer says can command it.

`guard` stands before stdout and stderr of every command. On a terminal it leaves out each character that moves the
cursor, starts an escape sequence (OSC 52 writes to the clipboard, OSC 0 to the title), or turns the order of the text
around. The rest of a sequence stays to be read. Our own colours, and steps back over a typed character, carry a random
mark, so that they alone become sequences again. Where no terminal reads, text passes as it is.

`escape` and `escape_json` are for the log and for JSON, where such a character is better seen than left out.
"""

from __future__ import annotations

import codecs
import os
import re
import sys
from collections.abc import Iterable
from typing import Any, TextIO, cast

_UNSAFE = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and line feed, DEL, C1
    "\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # order, lines, what is not seen
    "\ud800-\udfff"  # halves of characters, which cannot be written
    "\ufdd0-\ufdef\U000e0000-\U000e007f"  # our mark, tags
)
_FIND = re.compile(f"[{_UNSAFE}]")
_FIND_IN_LINE = re.compile(f"[{_UNSAFE}\t\n]")
_MARK = f"\ufdd0{os.urandom(6).hex()}"
_MARKED = re.compile(rf"{_MARK}(\[(?:[0-9;]{{0,20}}m|D))")
_GUARDED_BACK = f"{_MARK}[D"


def clean(text: str) -> str:
    """Text without the characters that command a terminal; lines stay lines."""
    return _FIND.sub("", text)


def escape(text: str) -> str:
    """One line of text in which such characters are seen: `\\x1b`."""
    return _FIND_IN_LINE.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode(), text)


def escape_json(text: str) -> str:
    """The same JSON, with such characters written as JSON does."""
    return _FIND.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[place : place + 2].hex()}" for place in range(0, len(units), 2))


def style(text: str, **how: Any) -> str:
    """Coloured text, as `click.style` has it; plain until there is a `guard` that knows the mark."""
    if not _is_guarded():
        return text
    import click

    return click.style(clean(text), **how).replace("\x1b", _MARK)


def backspaced(text: str) -> str:
    """Text of ours in which a backspace moves the cursor, also on a stream that leaves out all others."""
    return text.replace("\b", _GUARDED_BACK) if _is_guarded() else text


def guard() -> None:
    """Let everything that is written to stdout and stderr from now on pass through here."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, Guarded):
            setattr(sys, name, cast("TextIO", Guarded(stream)))


class Guarded:
    """A text stream that writes only what may be shown; all else it leaves to the stream behind it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._terminal = _is_terminal(stream)
        self.buffer = _Bytes(self) if self._terminal else getattr(stream, "buffer", None)

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"expected a string, got {type(text).__name__}")
        shown = self._coloured(text) if self._terminal else _MARKED.sub("", text)
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
    """The bytes below a guarded stream: decoded first, so that nothing passes by."""

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


def _is_guarded() -> bool:
    return isinstance(sys.stdout, Guarded) or isinstance(sys.stderr, Guarded)


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False
