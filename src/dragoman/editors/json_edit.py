"""Puts one entry into a JSON text with comments, and takes it out again; every other character stays.

An entry stands in a container: an object, where its name is its key, or an array, where one of its fields has its
name. A missing container is made. Taking an entry out is the reverse: an object that is empty then goes with it, an
array stays.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dragoman.editors.jsonc import Item, JsoncError, Node, comments_on_line, ends_in_line_comment, parse

_BLANKS = " \t\r\n"


@dataclass(frozen=True, slots=True)
class Place:
    """Where entries stand: the keys of their container, and for an array the field that has the name."""

    keys: tuple[str, ...]
    field: str | None = None


def put(text: str, place: Place, name: str, entry: dict[str, Any], unit: str = "  ") -> str:
    """The text with this entry, in the place of one with the same name; the same text if it has it already.

    `unit` is the indentation of a level where the text shows none. Raises `JsoncError`.
    """
    root = parse(text)
    style = _Style(text, root, unit)
    if root is None:
        before = text if not text or text.endswith("\n") else text + style.newline
        return before + style.render(_nested(place.keys, place, name, entry), "") + style.newline
    container, missing = _descend(text, root, place)
    if missing:
        changed = _append(text, container, style, missing[0], _nested(missing[1:], place, name, entry))
    else:
        found = _find(text, container, place, name)
        if found is None:
            key = name if container.is_object else None
            changed = _append(text, container, style, key, entry)
        elif found.node.value == entry:
            return text
        else:
            shown = style.render(entry, style.indent_at(found.start))
            changed = text[: found.node.start] + shown + text[found.end :]
    again = parse(changed)
    assert again is not None and entries(changed, place).get(name) == entry, "an edit broke the text"
    return changed


def take_out(text: str, place: Place, name: str) -> str:
    """The text without the entry of this name; the same text if there is none. Raises `JsoncError`."""
    root = parse(text)
    if root is None:
        return text
    container, missing = _descend(text, root, place)
    found = None if missing else _find(text, container, place, name)
    if found is None:
        return text
    changed = _delete(text, container, found)
    for depth in range(len(place.keys), 0, -1):
        again = parse(changed)
        assert again is not None, "an edit broke the text"
        owner, _ = _descend(changed, again, Place(place.keys[: depth - 1]))
        (member,) = owner.named(place.keys[depth - 1])
        if member.node.items or not member.node.is_object or _inside(changed, member.node).strip():
            break
        changed = _delete(changed, owner, member)
    assert name not in entries(changed, place), "an edit broke the text"
    return changed


def entries(text: str, place: Place) -> dict[str, Any]:
    """Every entry of the container by its name. Raises `JsoncError`."""
    root = parse(text)
    if root is None:
        return {}
    container, missing = _descend(text, root, place)
    if missing:
        return {}
    if place.field is None:
        return dict(container.value)
    return {
        str(entry[place.field]): entry
        for entry in container.value
        if isinstance(entry, dict) and place.field in entry
    }


def _nested(keys: Sequence[str], place: Place, name: str, entry: dict[str, Any]) -> Any:
    value: Any = {name: entry} if place.field is None else [entry]
    for key in reversed(keys):
        value = {key: value}
    return value


def _descend(text: str, root: Node, place: Place) -> tuple[Node, tuple[str, ...]]:
    """The innermost container that exists, and the keys that are missing below it."""
    node = root
    for depth, key in enumerate(place.keys):
        _expect(text, node, True, place.keys[:depth])
        found = node.named(key)
        if not found:
            return node, place.keys[depth:]
        if len(found) > 1:
            raise JsoncError(text, found[1].start, f'"{key}" is there twice: keep one of them')
        node = found[0].node
    _expect(text, node, place.field is None, place.keys)
    return node, ()


def _expect(text: str, node: Node, is_object: bool, keys: Sequence[str]) -> None:
    if node.items is None or node.is_object != is_object:
        what = f'"{keys[-1]}"' if keys else "the file"
        kind = "an object" if is_object else "an array"
        raise JsoncError(text, node.start, f"{what} is not {kind}")


def _find(text: str, container: Node, place: Place, name: str) -> Item | None:
    if container.is_object:
        found = container.named(name)
    else:
        found = [
            item
            for item in container.items or ()
            if isinstance(item.node.value, dict) and item.node.value.get(place.field) == name
        ]
    if len(found) > 1:
        raise JsoncError(text, found[1].start, f'"{name}" is there twice: keep one of them')
    return found[0] if found else None


def _inside(text: str, container: Node) -> str:
    return text[container.start + 1 : container.end - 1]


class _Style:
    """The line ends and the indentation of a text."""

    def __init__(self, text: str, root: Node | None, unit: str) -> None:
        self.text = text
        first = text.find("\n")
        self.newline = "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"
        self.unit = unit
        if root is not None and root.items:
            shown = self.own_indent(root.items[0].start)
            outer = self.indent_at(root.start)
            if shown is not None and len(shown) > len(outer) and shown.startswith(outer):
                self.unit = shown[len(outer) :]

    def indent_at(self, offset: int) -> str:
        """The blanks at the begin of the line of `offset`."""
        start = self.text.rfind("\n", 0, offset) + 1
        line = self.text[start:offset].removeprefix("\ufeff")
        return line[: len(line) - len(line.lstrip(" \t"))]

    def own_indent(self, offset: int) -> str | None:
        """The blanks before `offset`; None if something else is before it on its line."""
        start = self.text.rfind("\n", 0, offset) + 1
        return self.text[start:offset] if start and not self.text[start:offset].strip(" \t") else None

    def render(self, value: Any, indent: str) -> str:
        """The value on several lines; a list of plain values stays on one."""
        inner = indent + self.unit
        if isinstance(value, dict) and value:
            members = [f"{_plain(key)}: {self.render(part, inner)}" for key, part in value.items()]
            opening, closing = "{}"
        elif isinstance(value, list) and any(isinstance(part, dict | list) for part in value):
            members = [self.render(part, inner) for part in value]
            opening, closing = "[]"
        else:
            return _plain(value)
        line = self.newline + inner
        return f"{opening}{line}{f',{line}'.join(members)}{self.newline}{indent}{closing}"


def _plain(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _append(text: str, container: Node, style: _Style, key: str | None, value: Any) -> str:
    def member(shown: str) -> str:
        return shown if key is None else f"{_plain(key)}: {shown}"

    outer = style.indent_at(container.start)
    if not container.items:
        return _fill(text, container, style, lambda indent: member(style.render(value, indent)), outer)
    last = container.items[-1]
    anchor = last.end if last.comma is None else last.comma + 1
    point, line_ends = anchor, False
    for point, line_ends in comments_on_line(text, anchor):  # noqa: B007 (the last one counts)
        pass
    if line_ends or "\n" in text[container.start : last.start] or "\n" in text[last.end : container.end]:
        indent = style.own_indent(last.start)
        indent = outer + style.unit if indent is None else indent
        added = style.newline + indent + member(style.render(value, indent))
    else:
        added = " " + member(_plain(value))
    if last.comma is None:
        return text[: last.end] + "," + text[last.end : point] + added + text[point:]
    return text[:point] + added + "," + text[point:]


def _fill(text: str, container: Node, style: _Style, member: Callable[[str], str], outer: str) -> str:
    """Put the first member into an empty container."""
    indent = outer + style.unit
    inside = _inside(text, container)
    kept = inside.rstrip(_BLANKS)
    rest = style.newline + outer if "\n" not in inside[len(kept) :] or not kept else inside[len(kept) :]
    filled = kept + style.newline + indent + member(indent) + rest
    return text[: container.start + 1] + filled + text[container.end - 1 :]


def _delete(text: str, container: Node, item: Item) -> str:
    """Take a member out with the blanks before it and one comma."""
    items = container.items or ()
    end = item.end if item.comma is None else item.comma + 1
    if (
        len(items) == 1
        and not (text[container.start + 1 : item.start] + text[end : container.end - 1]).strip()
    ):
        return text[: container.start + 1] + text[container.end - 1 :]
    start = len(text[: item.start].rstrip(_BLANKS))
    place = items.index(item)
    comma = items[place - 1].comma if place else None
    behind = container.start + 1 if comma is None else comma + 1
    following = text[end : end + 1000].lstrip(" \t")
    if ends_in_line_comment(text, behind, item.start) and not following.startswith(("\n", "\r")):
        start = text.index("\n", max(start - 1, 0)) + 1  # a line comment must keep its end
    before = text[:start]
    if item.comma is None and comma is not None:  # the last one: its comma stands behind the one before
        before = text[:comma] + text[comma + 1 : start]
    return before + text[end:]
