"""A shell line to facts: commands, paths and hosts, or the reason why the line is opaque."""

from __future__ import annotations

import os
from dataclasses import dataclass

from dragoman.policy.act import Command, PathFact
from dragoman.policy.shell.limits import MAX_BYTES, MAX_DEPTH
from dragoman.policy.shell.programs.collector import Collector
from dragoman.policy.shell.syntax.agreement import check_agreement
from dragoman.policy.shell.syntax.parts import Unreadable
from dragoman.policy.shell.syntax.reader import Reader
from dragoman.policy.shell.values import Scope
from dragoman.policy.shell.walk import Walker


@dataclass(frozen=True, slots=True)
class Line:
    """What a shell line does. With a reason in `opaque` the rest is what could be seen, and may be incomplete."""

    commands: tuple[Command, ...] = ()
    wrappers: tuple[Command, ...] = ()
    paths: tuple[PathFact, ...] = ()
    opaque: str | None = None


def read_line(text: str, *, cwd: str, workspace: str, home: str | None = None) -> Line:
    """The facts of a line that runs in `cwd`. Never raises: what is not understood is opaque."""
    scope = Scope({}, (cwd,) if cwd else None, {}, home if home is not None else os.path.expanduser("~"))  # noqa: PTH111
    collector = Collector(workspace, lambda script, inner, depth: _read(script, inner, collector, depth))
    try:
        _read(text, scope, collector, 0)
    except Unreadable as error:
        collector.reasons.append(str(error))
    except RecursionError:
        collector.reasons.append("nested too deeply")
    return Line(
        commands=tuple(_unique(collector.commands)),
        wrappers=tuple(_unique(collector.wrappers)),
        paths=tuple(dict.fromkeys(collector.paths)),
        opaque=collector.reasons[0] if collector.reasons else None,
    )


def _unique(commands: list[Command]) -> list[Command]:
    """Loops are followed more than once."""
    if len(commands) < 2:
        return commands
    found: dict[tuple[object, ...], Command] = {}
    for command in commands:
        key = (command.words, command.paths, command.redirects, tuple(command.env.items()), command.effects)
        found.setdefault(key, command)
    return list(found.values())


def _read(text: str, scope: Scope, collector: Collector, depth: int) -> None:
    if len(text) > MAX_BYTES:
        raise Unreadable(f"longer than {MAX_BYTES // 1024} KiB")
    if depth > MAX_DEPTH:
        raise Unreadable("nested too deeply")
    try:
        line = text.encode()
    except UnicodeEncodeError as error:
        raise Unreadable("text that is not Unicode") from error
    if b"\0" in line:
        raise Unreadable("a character that no shell takes")
    reader = Reader(text if text.isascii() else line.decode("latin-1"))
    node = reader.read()
    collector.reasons += reader.notes
    walker = Walker(collector.add)
    for inner in reader.inner:
        walker.walk(inner, Scope({}, None, {}, scope.home))
    try:
        walker.walk(node, scope)
    finally:
        collector.reasons += walker.reasons
    if not collector.reasons:
        check_agreement(line, node)
