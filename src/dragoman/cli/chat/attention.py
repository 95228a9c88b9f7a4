"""Calls the user to a terminal that is not in front: a notification (OSC 9) and the bell.

Terminals say whether they are in front once focus reporting is on (`CSI ? 1004 h`); one that never said so counts as
in front.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.keys import Keys

from dragoman.cli.chat.lines.markdown import one_line

REPORT, DO_NOT_REPORT = "\x1b[?1004h", "\x1b[?1004l"
FOCUS_IN, FOCUS_OUT = Keys.F23, Keys.F24
"""Keys that stand for the two reports: prompt_toolkit has none of its own, and no keyboard has these."""
ANSI_SEQUENCES |= {"\x1b[I": FOCUS_IN, "\x1b[O": FOCUS_OUT}

When = Literal["unfocused", "always", "never"]


class Attention:
    def __init__(self, write: Callable[[str], None]) -> None:
        """`write` gets sequences for the terminal."""
        self._write = write
        self._in_front = True
        self.when: When = "unfocused"

    def focused(self, in_front: bool) -> None:
        self._in_front = in_front

    def call(self, text: str) -> None:
        if self.when == "always" or (self.when == "unfocused" and not self._in_front):
            self._write(f"\x1b]9;{one_line(text)}\x1b\\\x07")
