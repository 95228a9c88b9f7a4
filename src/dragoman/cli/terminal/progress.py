"""A line on stderr that overwrites itself while a command works; nothing where stderr is no terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import click

from dragoman.terminal import backspaced

WIDTH = 60
INTERVAL = 0.1
"""Seconds between two states: more often cannot be read."""


class Progress:
    def __init__(self) -> None:
        self._last = 0.0
        self._terminal = sys.stderr is not None and sys.stderr.isatty()

    def __enter__(self) -> Callable[[str], None]:
        return self._show

    def _show(self, text: str) -> None:
        if self._terminal and time.monotonic() - self._last > INTERVAL:
            self._overwrite(f"{text[:WIDTH]:<{WIDTH}}")

    def __exit__(self, *_: object) -> None:
        if self._last:
            self._overwrite(" " * WIDTH)
            click.echo(_back(), nl=False, err=True)

    def _overwrite(self, text: str) -> None:
        """A carriage return would be removed: `terminal.guard` lets only marked backspaces move the cursor."""
        click.echo((_back() if self._last else "") + text, nl=False, err=True)
        self._last = time.monotonic()


def _back() -> str:
    return backspaced("\b" * WIDTH)
