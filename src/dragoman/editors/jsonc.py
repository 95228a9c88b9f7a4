"""Reads JSON with comments and trailing commas, and tells where in the text every value stands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

MAX_CHARACTERS = 4_000_000
"""Settings are written by hand; a larger file is none, and would only cost memory."""
MAX_DEPTH = 100
"""The reader calls itself for every level, so that a hostile file could exhaust the stack."""

_BLANK = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*"')
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_WORDS = {"true": True, "false": False, "null": None}
_CLOSING = {"{": "}", "[": "]"}


class JsoncError(ValueError):
    """The text is not JSON with comments; says where."""

    def __init__(self, text: str, offset: int, problem: str) -> None:
        line = text.count("\n", 0, offset) + 1
        column = offset - (text.rfind("\n", 0, offset) + 1) + 1
        super().__init__(f"line {line}, column {column}: {problem}")


@dataclass(frozen=True, slots=True)
class Node:
    """A value at `text[start:end]`; `items` are its members if it is an object or an array."""

    start: int
    end: int
    scalar: Any = None
    items: tuple[Item, ...] | None = None
    is_object: bool = False

    @property
    def value(self) -> Any:
        if self.items is None:
            return self.scalar
        if self.is_object:
            return {item.key: item.node.value for item in self.items}
        return [item.node.value for item in self.items]

    def named(self, key: str) -> list[Item]:
        """The members with this key, in order; more than one if the key is repeated."""
        return [item for item in self.items or () if item.key == key]


@dataclass(frozen=True, slots=True)
class Item:
    """A member of an object or an array: from its key, or its value, to the value's end."""

    start: int
    node: Node
    key: str | None
    comma: int | None
    """Where the comma behind it stands."""

    @property
    def end(self) -> int:
        return self.node.end


def parse(text: str) -> Node | None:
    """The value of the whole text; None if it has only blanks and comments.

    Raises `JsoncError`.
    """
    if len(text) > MAX_CHARACTERS:
        raise JsoncError(text, 0, f"the file has more than {MAX_CHARACTERS:,} characters")
    reader = _Reader(text)
    reader.skip()
    if reader.at == len(text):
        return None
    node = reader.value(0)
    reader.skip()
    if reader.at < len(text):
        raise reader.error("nothing may follow the value but comments")
    return node


def comments_on_line(text: str, start: int) -> Iterator[tuple[int, bool]]:
    """The ends of the comments that follow `start` on its line, and whether each ends with its line."""
    at = start
    while True:
        while text[at : at + 1] in {" ", "\t"}:
            at += 1
        found = _COMMENT.match(text, at)
        if found is None or "\n" in found[0]:
            return
        at = found.end() - (found[0].endswith("\r") and found[0].startswith("//"))
        yield at, found[0].startswith("//")


def ends_in_line_comment(text: str, start: int, end: int) -> bool:
    """Whether `text[start:end]`, which is blanks and comments, has a comment at its end that ends with its line."""
    last = None
    for last in _COMMENT.finditer(text, start, end):  # noqa: B007 (the last one counts)
        pass
    return last is not None and last[0].startswith("//")


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 1 if text.startswith("\ufeff") else 0

    def error(self, problem: str) -> JsoncError:
        return JsoncError(self.text, self.at, problem)

    def skip(self) -> None:
        """Go past blanks and comments."""
        while True:
            self.at = self._past(_BLANK)
            if not self.text.startswith(("//", "/*"), self.at):
                return
            found = _COMMENT.match(self.text, self.at)
            if found is None:
                raise self.error("this comment has no end")
            self.at = found.end()

    def _past(self, pattern: re.Pattern[str]) -> int:
        found = pattern.match(self.text, self.at)
        return found.end() if found is not None else self.at

    def value(self, depth: int) -> Node:
        start = self.at
        first = self.text[start : start + 1]
        if first in _CLOSING:
            if depth >= MAX_DEPTH:
                raise self.error(f"values are nested more than {MAX_DEPTH} deep")
            return self._container(first, depth)
        if first == '"':
            read = self._string()
            return Node(start, self.at, read)
        number = self._past(_NUMBER)
        if number > start:
            self.at = number
            return Node(start, number, json.loads(self.text[start:number]))
        for word, meaning in _WORDS.items():
            if self.text.startswith(word, start):
                self.at = start + len(word)
                return Node(start, self.at, meaning)
        raise self.error("a value is missing here" if first else "the file ends where a value is expected")

    def _string(self) -> str:
        found = _STRING.match(self.text, self.at)
        if found is None:
            raise self.error("this text has no closing quote on its line, or a control character in it")
        try:
            read: str = json.loads(found[0])
        except ValueError:
            raise self.error("this text has an escape that JSON does not know") from None
        self.at = found.end()
        return read

    def _container(self, opening: str, depth: int) -> Node:
        start, closing = self.at, _CLOSING[opening]
        self.at += 1
        items: list[Item] = []
        while True:
            self.skip()
            if self.text.startswith(closing, self.at):
                self.at += 1
                return Node(start, self.at, items=tuple(items), is_object=opening == "{")
            if items and items[-1].comma is None:
                raise self.error(f'"," or "{closing}" is missing here')
            items.append(self._item(opening, depth))

    def _item(self, opening: str, depth: int) -> Item:
        start, key = self.at, None
        if opening == "{":
            if not self.text.startswith('"', self.at):
                raise self.error('a name in quotes, or "}", is missing here')
            key = self._string()
            self.skip()
            if not self.text.startswith(":", self.at):
                raise self.error('":" is missing here')
            self.at += 1
            self.skip()
        node = self.value(depth + 1)
        after = self.at
        self.skip()
        comma = None
        if self.text.startswith(",", self.at):
            comma = self.at
            self.at += 1
        else:
            self.at = after
        return Item(start, node, key, comma)
