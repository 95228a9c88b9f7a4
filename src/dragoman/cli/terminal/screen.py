"""Where a conversation is shown: the answer on stdout, everything else on stderr.

On a terminal both land in the same place, so a line that one began is ended before the other writes; what an agent
says cannot move the cursor or change the terminal (`dragoman.terminal`).
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
        """Both are in the same place."""
        self._unfinished: set[object] = set()
        self.terminal = progress.isatty()
        """Progress is read by a person, now."""
        self.broken = asyncio.Event()
        """Set when nobody reads any more."""

    def answer(self, text: str) -> None:
        if text:
            self._write(self._answers, text, text.endswith("\n"))

    def progress(self, text: str, *, finished: bool = True, **how: Any) -> None:
        """A line of its own; one that is not `finished` may be continued with `more`."""
        self.end_line(self._progress)
        self._style(text, how, finished)

    def more(self, text: str, *, finished: bool = False, **how: Any) -> None:
        """Go on in the line that is there."""
        self._style(text, how, finished)

    def typed(self, text: str) -> None:
        """What a person types while the terminal does not show it by itself."""
        if text:
            self._write(self._progress, backspaced(text), text.endswith("\n"), styled=True)

    def end_line(self, stream: TextIO | None = None) -> None:
        """Begin a new line, if there is something in this one."""
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
        """Nothing can be written there any more: a reader that left, or a full disk, which is said once."""
        if not isinstance(error, BrokenPipeError) and not self.broken.is_set():
            complain(f"cannot write the output: {error.strerror}")
        self.broken.set()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())  # what is still buffered goes there, without a second complaint
        os.close(nowhere)


def one_line(text: str, width: int = 100) -> str:
    """Text that fits where one line is meant."""
    line = " ".join(clean(text.replace("\n", " ")).split())
    return line if len(line) <= width else line[: width - 1].rstrip() + "…"
