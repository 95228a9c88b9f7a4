"""Compares the strict reader's view of a line with the grammar's."""

from __future__ import annotations

from dragoman.policy.shell.syntax.parts import (
    AndOr,
    Background,
    Case,
    For,
    Group,
    If,
    Loop,
    Node,
    Pipeline,
    Redirect,
    Sequence,
    Simple,
    Test,
    Unreadable,
    Word,
)
from dragoman.policy.shell.syntax.tree import Places, places

_DECLARES = frozenset({"export", "declare", "typeset", "local", "readonly"})
_UNSETS = frozenset({"unset", "unsetenv"})


def check_agreement(line: bytes, read: Node) -> None:
    """Raise `Unreadable` unless the grammar sees exactly these commands, words, redirections and assignments."""
    seen = places(line)
    ours = Places()
    _add(read, ours)
    if ours != seen:
        raise Unreadable("a line that two readers understand differently")


def _add(node: Node, ours: Places) -> None:
    match node:
        case Simple():
            _add_simple(node, ours)
        case Pipeline() | AndOr() | Sequence():
            for item in node.items:
                _add(item, ours)
        case Background():
            _add(node.body, ours)
        case Group():
            _add(node.body, ours)
            _add_redirects(node.redirects, ours)
        case For():
            _add_words(node.words or [], ours)
            _add(node.body, ours)
            _add_redirects(node.redirects, ours)
        case Loop():
            _add(node.condition, ours)
            _add(node.body, ours)
            _add_redirects(node.redirects, ours)
        case If():
            for condition, body in node.branches:
                if condition is not None:
                    _add(condition, ours)
                _add(body, ours)
            _add_redirects(node.redirects, ours)
        case Case():
            for _, body in node.items:
                _add(body, ours)
            _add_redirects(node.redirects, ours)
        case Test():
            ours.names.add(node.span)
            _add_redirects(node.redirects, ours)


def _add_simple(node: Simple, ours: Places) -> None:
    for assignment in node.assignments:
        ours.assignments.add(assignment.span)
    _add_redirects(node.redirects, ours)
    if not node.words:
        return
    first = node.words[0]
    ours.names.add(first.span)
    if first.plain in _DECLARES:
        for word in node.words[1:]:
            if "=" in word.source and not word.source.startswith("-"):
                ours.assignments.add(word.span)
    elif first.plain != "[" and first.plain not in _UNSETS:
        _add_words(node.words[1:], ours)


def _add_words(words: list[Word], ours: Places) -> None:
    for word in words:
        ours.words.add(word.span)


def _add_redirects(redirects: list[Redirect], ours: Places) -> None:
    for redirect in redirects:
        if redirect.operator not in ("<<", "<<-"):
            ours.words.add(redirect.target.span)
