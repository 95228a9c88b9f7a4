"""The parts of a shell line as the reader sees them. Positions are byte offsets in the line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from msgspec import Struct

Span: TypeAlias = tuple[int, int]
PieceKind = Literal["raw", "quoted", "variable", "quoted_variable", "unknown"]


class Unreadable(Exception):
    """The line is not understood; the text says why."""


class Piece(Struct, frozen=True):
    """A part of a word. `raw` and `quoted` are text; a variable has its name; `unknown` is any other expansion."""

    kind: PieceKind
    text: str


class Word(Struct, frozen=True):
    source: str
    span: Span
    pieces: tuple[Piece, ...]

    @property
    def plain(self) -> str | None:
        """The text of an unquoted word without expansions: the only form in which a reserved word is one."""
        if len(self.pieces) == 1 and self.pieces[0].kind == "raw":
            return self.pieces[0].text
        return None

    @property
    def fixed(self) -> str | None:
        """The text of a word without variables and other expansions; patterns and braces are still in it."""
        if all(piece.kind in ("raw", "quoted") for piece in self.pieces):
            return "".join(piece.text for piece in self.pieces)
        return None


@dataclass(frozen=True, slots=True)
class Assignment:
    name: str
    value: Word | None
    """None for an array."""
    appends: bool
    span: Span


@dataclass(slots=True)
class Redirect:
    operator: str
    descriptor: str
    target: Word
    body: tuple[Piece, ...] | None = None
    """The text of a here-document, once its lines have been read."""


@dataclass(slots=True)
class Simple:
    """Assignments, words and redirections: what runs at most one program."""

    assignments: list[Assignment] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)


@dataclass(slots=True)
class Pipeline:
    items: list[Node]


@dataclass(slots=True)
class AndOr:
    items: list[Node]
    operators: list[str]


@dataclass(slots=True)
class Sequence:
    items: list[Node]


@dataclass(slots=True)
class Background:
    body: Node


@dataclass(slots=True)
class Group:
    body: Node
    redirects: list[Redirect]
    subshell: bool


@dataclass(slots=True)
class For:
    name: str
    words: list[Word] | None
    body: Node
    redirects: list[Redirect]


@dataclass(slots=True)
class Loop:
    condition: Node
    body: Node
    redirects: list[Redirect]


@dataclass(slots=True)
class If:
    branches: list[tuple[Node | None, Node]]
    redirects: list[Redirect]


@dataclass(slots=True)
class Case:
    subject: Word
    items: list[tuple[list[Word], Node]]
    redirects: list[Redirect]


@dataclass(slots=True)
class Test:
    """`[[ … ]]`."""

    span: Span
    words: list[Word]
    redirects: list[Redirect]


Node: TypeAlias = Simple | Pipeline | AndOr | Sequence | Background | Group | For | Loop | If | Case | Test
