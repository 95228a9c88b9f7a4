"""A line on stderr that overwrites itself while a command works; nothing where stderr is no terminal."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from dragoman.terminal import backspaced, clean

WIDTH = 60
INTERVAL = 0.1
"""Seconds between two states: more often cannot be read."""
SLOW = 1.0
"""Seconds after which a wait is shown, and between two states of it."""


class Progress:
    """Shows the states that the work reports."""

    def __init__(self) -> None:
        self._last = 0.0
        self._terminal = _is_terminal()

    def __enter__(self) -> Callable[[str], None]:
        return self._show

    def _show(self, text: str) -> None:
        if self._terminal and time.monotonic() - self._last > INTERVAL:
            self._overwrite(f"{clean(text)[:WIDTH]:<{WIDTH}}")

    def __exit__(self, *_: object) -> None:
        if self._last:
            self._overwrite(" " * WIDTH)
            click.echo(_back(), nl=False, err=True)

    def _overwrite(self, text: str) -> None:
        """A carriage return would be removed: `terminal.guard` lets only marked backspaces move the cursor."""
        click.echo((_back() if self._last else "") + text, nl=False, err=True)
        self._last = time.monotonic()


@contextmanager
def waiting(text: str, *, slow: float = SLOW) -> Iterator[None]:
    """Show `text` with the seconds, from the first on, while the block waits for something that reports no states.

    The block prints nothing and asks nothing: the line is removed only when it ends.
    """
    if not _is_terminal():
        yield
        return
    over = threading.Event()

    def show() -> None:
        began = time.monotonic()
        with Progress() as progress:
            while not over.wait(slow):
                progress(f"{text}… {time.monotonic() - began:.0f} s")

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _back() -> str:
    return backspaced("\b" * WIDTH)
