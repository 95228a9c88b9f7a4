"""Going back in a session, and what it changed: the answers of the gateway, typed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from dragoman.wire.json_types import JsonObject, as_object, objects

What = Literal["conversation", "files", "both"]
Shared = Literal["refuse", "include", "leave"]
"""What a rewind does with changes of files that not only the session made."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message that a session can go back to."""

    number: int
    time: str
    text: str
    """Its beginning, as one line."""
    undone: bool = False


@dataclass(frozen=True, slots=True)
class Rewound:
    """What a rewind did."""

    message: int | None
    """The message that the session is before now; None after an undo."""
    prompt: tuple[JsonObject, ...]
    """Its content, to send it again, changed or not."""
    undone: int
    """Messages that were undone, or brought back by an undo."""
    agent: str
    """How the agent went back: `rewind` or `resume` by itself, `seed` with a recap; empty: with its next start."""
    files: tuple[str, ...] | None
    """Files that were restored; None if none was meant to be."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """What happened to one file."""

    path: str
    added: int
    removed: int
    status: str = ""
    """`added`, `deleted`, `modified`, `renamed` or `type_changed`; empty where several turns are told together."""
    shared: bool = False
    """Not only this session changed it."""
    hunks: tuple[str, ...] = field(default=(), repr=False)
    """Unified diffs; invalid UTF-8 is replaced."""


@dataclass(frozen=True, slots=True)
class SessionChanges:
    """What a session changed in its project."""

    files: tuple[FileChange, ...]
    recorded: bool = True
    """False: the files at that time are not recorded."""


def read_message(entry: JsonObject) -> Message:
    number = entry.get("number")
    return Message(
        number if isinstance(number, int) else 0,
        str(entry.get("time") or ""),
        str(entry.get("text") or ""),
        entry.get("undone") is True,
    )


def read_rewound(result: JsonObject) -> Rewound:
    message, restored = result.get("message"), result.get("restored")
    files = as_object(restored).get("files") or []
    return Rewound(
        message if isinstance(message, int) else None,
        tuple(objects(result.get("prompt"))),
        _count(result.get("undone")),
        str(result.get("agent") or ""),
        None if restored is None else tuple(map(str, files)),
    )


def read_changes(result: JsonObject) -> SessionChanges:
    files = tuple(
        FileChange(
            str(entry.get("path")),
            _count(entry.get("added")),
            _count(entry.get("removed")),
            str(entry.get("status") or ""),
            entry.get("shared") is True,
            tuple(str(hunk.get("text")) for hunk in objects(entry.get("hunks"))),
        )
        for entry in objects(result.get("files"))
    )
    return SessionChanges(files, recorded=result.get("unrecorded") is not True)


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0
