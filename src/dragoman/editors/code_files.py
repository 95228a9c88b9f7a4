"""Editors that are configured by code: a file of our own beside the user's, and for Emacs one marked block.

A file without our first line is somebody else's and is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dragoman.edited_file import Change, EditError, read_file
from dragoman.editors.editor import Found, Launch, Machine

_OURS = "Written by `dragoman editor install"
_FACTS = re.compile(r"^(?:--|;;) Name: (.*)\n(?:--|;;) Program: (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CodeFile:
    """A file in the language of the editor that the editor loads by itself."""

    title: str
    render: Callable[[Launch], str]
    where: Callable[[Machine], Path | None]
    note: str = ""
    block: tuple[Callable[[Path], Path | None], Callable[[Path], str]] | None = None
    """Another file, found by ours, that has to load ours, and the line that does it."""

    by_hand = False

    def file(self, machine: Machine) -> Path | None:
        return self.where(machine)

    def show(self, launch: Launch) -> str:
        return self.render(launch)

    def install(self, launch: Launch, file: Path) -> list[Change]:
        before = self._ours(file)
        changes = [Change(file, before, self.render(launch).encode())]
        if self.block is not None and (loader := self.block[0](file)) is not None:
            old = read_file(loader)
            changes.append(Change(loader, old, with_block(old or b"", self.block[1](file))))
        return changes

    def find(self, file: Path) -> list[Found]:
        text = (read_file(file) or b"").decode("utf-8", "replace")
        facts = _FACTS.search(text)
        return [Found(facts[1], facts[2], file)] if _OURS in text and facts is not None else []

    def remove(self, name: str, file: Path) -> list[Change]:
        before = self._ours(file)
        if [found.name for found in self.find(file)] != [name]:
            return [Change(file, before, before)]
        changes = [Change(file, before, None, keep=False)]
        if self.block is not None and (loader := self.block[0](file)) is not None:
            old = read_file(loader)
            rest = without_block(old or b"")
            changes.append(Change(loader, old, rest or None, keep=bool(rest)))
        return changes

    def _ours(self, file: Path) -> bytes | None:
        content = read_file(file)
        if content is not None and _OURS.encode() not in content[:400]:
            raise EditError(f"{file} is not from Dragoman, so it was left alone: move it, or give --file")
        return content


BEGIN, END = b";; >>> dragoman >>>", b";; <<< dragoman <<<"


def with_block(content: bytes, line: str) -> bytes:
    """The content with our block at its end, or with the block that it has brought up to date.

    A block behind a last line without a line feed has none either, which tells `without_block` what to restore.
    """
    newline = b"\r\n" if b"\r\n" in content else b"\n"
    block = newline.join([BEGIN, line.encode(), END])
    start, end = _span(content)
    if start >= 0:
        return content[:start] + block + content[end:]
    if content and not content.endswith(b"\n"):
        return content + newline + block
    return content + block + newline


def without_block(content: bytes) -> bytes:
    start, end = _span(content)
    if start < 0:
        return content
    newline = b"\r\n" if content[start - 2 : start] == b"\r\n" else b"\n"
    if end == len(content):
        return content[: max(0, start - len(newline))]
    after = content[end:]
    return content[:start] + after.removeprefix(newline if after.startswith(newline) else b"\n")


def _span(content: bytes) -> tuple[int, int]:
    """Where our block is; -1 if there is none."""
    start = content.find(BEGIN)
    end = content.find(END, start)
    if start >= 0 and end < 0:
        raise EditError(f"the block {BEGIN.decode()} has no end ({END.decode()}): remove its rest by hand")
    return start, end + len(END)


def lua_text(text: str) -> str:
    """A string of Lua and, since it has only quotes and backslashes to escape, of Emacs Lisp."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def lua_list(words: list[str]) -> str:
    return "{ " + ", ".join(map(lua_text, words)) + " }"


def header(comment: str, editor: str, launch: Launch) -> str:
    """The first lines of a file, by which it is known again."""
    return (
        f"{comment} {_OURS} {editor}`; `dragoman editor remove {editor}` deletes it.\n"
        f"{comment} Name: {launch.name}\n"
        f"{comment} Program: {launch.program}\n"
    )
