"""Keyboard input: lines, or single keys while a question is open.

A question may appear while the user types a line. No key answers it while that line is unfinished, nor within `GRACE`:
such a key was meant for the line, which continues and is no answer when it ends. Normally the terminal edits lines, and
its driver delivers whole lines only. While a question is open that mode is off, and the few keys that edit a line are
handled here.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import select
import sys
import termios
import threading
import unicodedata
from collections.abc import Callable
from typing import Any

READ_SIZE = 4096
GRACE = 0.5
"""Seconds after a question is shown in which no key answers it."""
ENTER, ERASE, KILL, END = "\r\n", "\x7f\b", "\x15", "\x04"

Answers = Callable[[str], bool]
"""Takes a key or a line; returns whether it is an answer to the question."""


class Keyboard:
    """Reads stdin in the background; `on_line` gets None at its end."""

    def __init__(self) -> None:
        self.on_line: Callable[[str | None], None] = lambda line: None
        self._question: tuple[Answers, Answers] | None = None
        """The handlers of a key and of a line while a question is open."""
        self._shown_at = 0.0
        self._echo: Callable[[str], None] = lambda text: None
        self._loop = asyncio.get_running_loop()
        self._rest = b""
        self._begun_before = False
        """The line was begun before the question was shown."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        """Holds an incomplete UTF-8 character while a question is open."""
        self._saved: list[Any] | None = None
        self._fd = sys.stdin.fileno() if sys.stdin is not None else -1
        self.terminal = self._fd >= 0 and os.isatty(self._fd)
        self._reading = False

    def start(self) -> None:
        if self._fd < 0:
            self._loop.call_soon(self.on_line, None)
        elif self.terminal:
            self._loop.add_reader(self._fd, self._read)
            self._reading = True
        else:  # files cannot be polled
            threading.Thread(target=self._read_all, daemon=True).start()

    def ask(self, on_key: Answers, on_line: Answers, echo: Callable[[str], None]) -> None:
        """Begin a question: single keys and whole lines go to its handlers first."""
        if self._question is None:
            self._decoder.reset()
        self._question, self._echo = (on_key, on_line), echo
        self._shown_at = self._loop.time()
        if self.terminal and self._saved is None:
            self._saved = termios.tcgetattr(self._fd)
            wanted = list(self._saved)
            wanted[3] &= ~(termios.ICANON | termios.ECHO)
            termios.tcsetattr(self._fd, termios.TCSANOW, wanted)
            if select.select([self._fd], [], [], 0)[0]:  # the unfinished line can be read now
                self._take(os.read(self._fd, READ_SIZE))
            self._rest = self._decoder.decode(self._rest).encode()
        self._begun_before = bool(self._rest)

    def want_lines(self) -> None:
        """End the question; an unfinished line continues."""
        self._question = None
        self._rest += self._decoder.getstate()[0]
        self._decoder.reset()
        if self._saved is not None:
            termios.tcsetattr(self._fd, termios.TCSADRAIN, self._saved)
            self._saved = None

    @property
    def begun(self) -> str:
        """The unfinished line, as far as it was read."""
        return self._rest.decode("utf-8", "replace")

    def stop(self) -> None:
        self.want_lines()
        if self._reading:
            self._loop.remove_reader(self._fd)
            self._reading = False

    def _read(self) -> None:
        try:
            data = os.read(self._fd, READ_SIZE)
        except OSError:  # the terminal is gone
            data = b""
        if self._question is None or not data:
            self._take(data)
            return
        asked = self._question
        text = self._decoder.decode(data)
        for index, key in enumerate(text):
            if self._question is not asked:  # what was typed for one question is no answer to the next
                part, self._rest = self._rest, b""
                self._take(part + text[index:].encode())
                return
            self._key(key, *asked)

    def _key(self, key: str, on_key: Answers, on_line: Answers) -> None:
        line = self.begun
        if key in ENTER:
            before, self._begun_before = self._begun_before, False
            self._rest = b""
            self._shown_at = self._loop.time()  # the next key may still belong to what was being written
            if line:
                self._echo("\n")
            if line and (before or not on_line(line)):
                self.on_line(line)
        elif key in ERASE or key == KILL:
            gone = len(line) if key == KILL else min(1, len(line))
            left = len(line) - gone
            self._rest = line[:left].encode()
            self._begun_before = self._begun_before and bool(left)
            self._echo("\b \b" * _columns(line[left:]))
        elif key == END and not line:
            self.on_line(None)
        elif not line and self._loop.time() - self._shown_at >= GRACE and on_key(key):
            return
        elif key.isprintable():
            self._rest += key.encode()
            self._echo(key)

    def _take(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        if not data and self._rest:
            lines, self._rest = [self._rest], b""
        for line in lines:
            self.on_line(line.decode("utf-8", "replace").rstrip("\r"))
        if not data:
            self.on_line(None)  # on a terminal that is Ctrl-D, and more may follow

    def _read_all(self) -> None:
        data = b"."
        while data:
            try:
                data = os.read(self._fd, READ_SIZE)
            except OSError:
                data = b""
            try:
                self._loop.call_soon_threadsafe(self._take, data)
            except RuntimeError:  # the loop has ended
                return


def _columns(text: str) -> int:
    """The width of the text on a terminal, in columns."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide - sum(unicodedata.combining(letter) != 0 for letter in text)
