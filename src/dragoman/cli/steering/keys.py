"""Single keys of the terminal, without echo."""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from types import TracebackType
from typing import Any


class Keys:
    """Reads keys while it is entered; the terminal is as before afterwards."""

    def __init__(self) -> None:
        self._fd = sys.stdin.fileno()
        self._saved: list[Any] = []

    def __enter__(self) -> Keys:
        self._saved = termios.tcgetattr(self._fd)
        tty.setcbreak(self._fd)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        termios.tcsetattr(self._fd, termios.TCSADRAIN, self._saved)

    def read(self, seconds: float) -> str | None:
        """The next key, an arrow as its escape sequence; None if there is none in this time, EOT at the end."""
        if not select.select([self._fd], [], [], seconds)[0]:
            return None
        return os.read(self._fd, 16).decode(errors="replace") or "\x04"
