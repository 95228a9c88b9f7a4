"""What a person types: lines, or single keys while a question waits for one."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
import threading
from collections.abc import Callable
from typing import Any

READ_SIZE = 4096


class Keyboard:
    """Reads stdin in the background; `on_line` gets None at its end, `on_key` is set while keys are wanted."""

    def __init__(self) -> None:
        self.on_line: Callable[[str | None], None] = lambda line: None
        self._on_key: Callable[[str], None] | None = None
        self._loop = asyncio.get_running_loop()
        self._rest = b""
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

    def want_key(self, on_key: Callable[[str], None]) -> None:
        """The next keys go to `on_key`, without Enter and unseen; what was typed before is dropped."""
        self._on_key = on_key
        if self.terminal and self._saved is None:
            self._saved = termios.tcgetattr(self._fd)
            wanted = list(self._saved)
            wanted[3] &= ~(termios.ICANON | termios.ECHO)
            termios.tcsetattr(self._fd, termios.TCSAFLUSH, wanted)  # an answer must be meant as one

    def want_lines(self) -> None:
        self._on_key = None
        if self._saved is not None:
            termios.tcsetattr(self._fd, termios.TCSADRAIN, self._saved)
            self._saved = None

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
        if self._on_key is None or not data:
            self._take(data)
            return
        asked = self._on_key
        for key in data.decode("utf-8", "replace"):
            if self._on_key is asked:  # what was typed for one question is no answer to the next
                asked(key)

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
            except RuntimeError:  # the loop ended: nobody wants to know any more
                return
