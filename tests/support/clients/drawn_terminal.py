"""What a terminal shows of a program that moves the cursor: just enough of one to read the lines of a chat."""

from __future__ import annotations

import re
import time

from dragoman.cli.chat.menu import GRACE
from support.command_line import CommandLine
from support.pseudo_terminal import COLUMNS, Terminal
from support.rpc_peer import PATIENCE

ENTER, UP = "\r", "\x1b[A"

_PART = re.compile(
    r"\x1b\[([?0-9;]*)([A-Za-z])|\x1b[=>]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x07|"
    r"([\r\n\b])|([^\x1b\x07\r\n\b]+)|(\x1b)"
)


class Lines:
    """A screen without a bottom: what scrolls out of a real one stays, as in its scrollback."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._rows: list[list[str]] = [[]]
        self._row = self._column = 0

    @property
    def text(self) -> str:
        return "\n".join("".join(row).rstrip() for row in self._rows)

    def feed(self, data: str) -> str:
        """Draw it; returns an unfinished sequence at its end."""
        for found in _PART.finditer(data):
            arguments, letter, move, text, half = found.groups()
            if half:
                return data[found.start() :]
            if move == "\r":
                self._column = 0
            elif move == "\n":
                self._go(self._row + 1)
            elif move == "\b":
                self._column = max(0, self._column - 1)
            elif letter and not arguments.startswith("?"):
                self._control(letter, int(arguments.partition(";")[0] or 0))
            for character in text or "":
                self._put(character)
        return ""

    def _control(self, letter: str, number: int) -> None:
        if letter in "AB":
            self._go(self._row + max(number, 1) * (1 if letter == "B" else -1))
        elif letter in "CD":
            self._column = max(0, self._column + max(number, 1) * (1 if letter == "C" else -1))
        elif letter in "JK":
            del self._rows[self._row][self._column :]
            if letter == "J":
                del self._rows[self._row + 1 :]

    def _go(self, row: int) -> None:
        self._row = max(0, row)
        while len(self._rows) <= self._row:
            self._rows.append([])

    def _put(self, character: str) -> None:
        if self._column >= self._columns:
            self._column = 0
            self._go(self._row + 1)
        row = self._rows[self._row]
        row.extend(" " * (self._column + 1 - len(row)))
        row[self._column] = character
        self._column += 1


class DrawnTerminal(Terminal):
    """`shown` is what the terminal shows, with all that scrolled out of it."""

    def __init__(self, shell: CommandLine, *arguments: str) -> None:
        super().__init__(*arguments, env={**shell.env, "TERM": "xterm-256color"}, cwd=shell.folder)
        self._lines = Lines(COLUMNS)
        self._fed = 0

    @property
    def shown(self) -> str:
        new = self.raw[self._fed :]
        rest = self._lines.feed(new)
        self._fed += len(new) - len(rest)
        return self._lines.text


def chat(shell: CommandLine, *arguments: str) -> DrawnTerminal:
    """`dragoman chat`, once its prompt is there."""
    terminal = DrawnTerminal(shell, "chat", *arguments)
    terminal.until(">", PATIENCE)
    return terminal


def answer(terminal: Terminal, keys: str) -> None:
    """Press keys once they count for a question."""
    time.sleep(GRACE + 0.1)
    terminal.type(keys)
