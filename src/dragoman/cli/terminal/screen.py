"""The output of a conversation: the answer on stdout, everything else on stderr.

On a terminal both appear in the same place, so an unfinished line of one is ended before the other writes; an agent's
text cannot move the cursor or change the terminal (`dragoman.terminal`).
"""

from __future__ import annotations

import asyncio
import os
from typing import Any, TextIO

from dragoman.cli.entry import complain
from dragoman.terminal import backspaced, clean, style


class Screen:
    def __init__(self, answers: TextIO, progress: TextIO) -> None:
        self._answers = answers
        self._progress = progress
        self.shared = answers is progress or (answers.isatty() and progress.isatty())
        """Both streams appear in the same place."""
        self._unfinished: set[object] = set()
        self.terminal = progress.isatty()
        """Progress is shown on a terminal."""
        self.broken = asyncio.Event()
        """Set when the output cannot be written any more."""

    def answer(self, text: str) -> None:
        if text:
            self._write(self._answers, text, text.endswith("\n"))

    def progress(self, text: str, *, finished: bool = True, **how: Any) -> None:
        """Write a line of its own; one that is not `finished` may be continued with `more`."""
        self.end_line(self._progress)
        self._style(text, how, finished)

    def more(self, text: str, *, finished: bool = False, **how: Any) -> None:
        """Continue the current line."""
        self._style(text, how, finished)

    def echo(self, text: str) -> None:
        """Show what the user types while the terminal does not echo it."""
        if text:
            self._write(self._progress, backspaced(text), text.endswith("\n"), styled=True)

    def end_line(self, stream: TextIO | None = None) -> None:
        """Begin a new line, if the current one is unfinished."""
        stream = self._answers if stream is None else stream
        if self._key(stream) in self._unfinished:
            self._write(stream, "\n", True)

    def _style(self, text: str, how: dict[str, Any], finished: bool) -> None:
        if self.terminal:
            text = style(clean(text), **how)
        self._write(self._progress, text + ("\n" if finished else ""), finished, styled=True)

    def _key(self, stream: TextIO) -> object:
        return "both" if self.shared else stream

    def _write(self, stream: TextIO, text: str, finished: bool, *, styled: bool = False) -> None:
        (self._unfinished.discard if finished else self._unfinished.add)(self._key(stream))
        if not styled and stream.isatty():
            text = clean(text)
        try:
            stream.write(text)
            stream.flush()
        except OSError as error:
            self.lost(stream, error)

    def lost(self, stream: TextIO, error: OSError) -> None:
        """Stop writing to a stream that is closed or whose disk is full; any error but a broken pipe is shown once."""
        if not isinstance(error, BrokenPipeError) and not self.broken.is_set():
            complain(f"cannot write the output: {error.strerror}")
        self.broken.set()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())  # buffered output goes there, without a second error
        os.close(nowhere)


def one_line(text: str, width: int = 100) -> str:
    """The text as one line of at most `width` characters."""
    line = " ".join(clean(text.replace("\n", " ")).split())
    return line if len(line) <= width else line[: width - 1].rstrip() + "…"
