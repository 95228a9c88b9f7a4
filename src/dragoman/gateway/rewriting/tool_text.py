"""The content of a tool call as text: its output, and its diffs in unified format."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from dragoman.gateway.json_types import JsonObject, as_object, own_meta

MAX_COMPARED_LINES = 4000
"""Longer files are not compared: that takes seconds, while the user waits for a question."""
MAX_KEPT_CALLS = 1000
"""Calls remembered: agents may never end some, and the oldest are forgotten first."""


class ToolContents:
    """The content of open calls: an update without content leaves the earlier content valid."""

    def __init__(self) -> None:
        self._kept: dict[str, list[object]] = {}

    def see(self, update: JsonObject) -> None:
        content = update.get("content")
        if isinstance(content, list):
            self._kept[str(update.get("toolCallId"))] = content
            if len(self._kept) > MAX_KEPT_CALLS:
                del self._kept[next(iter(self._kept))]

    def of(self, tool: JsonObject) -> list[object]:
        """The content of the call in an update or a question."""
        content = tool.get("content")
        return content if isinstance(content, list) else self._kept.get(str(tool.get("toolCallId")), [])

    def take(self, update: JsonObject) -> list[object]:
        """The content of a call that has ended; it is forgotten."""
        content = self.of(update)
        self._kept.pop(str(update.get("toolCallId")), None)
        return content


def said_already(update: JsonObject) -> bool:
    """Whether the agent's message repeats the output of the call."""
    return own_meta(update).get("told") is True


def lines(content: list[object]) -> Iterator[str]:
    """The content as lines of text; images and terminals have none."""
    for part in map(as_object, content):
        if part.get("type") == "diff":
            yield from diff_lines(part)
        elif part.get("type") == "content":
            block = as_object(part.get("content"))
            if block.get("type") == "text":
                yield from unfenced(str(block.get("text", "")))


def diff_lines(part: JsonObject) -> Iterator[str]:
    old, new = part.get("oldText"), str(part.get("newText") or "")
    before, after = str(old or "").splitlines(), new.splitlines()
    path = str(part.get("path"))
    if max(len(before), len(after)) > MAX_COMPARED_LINES:
        yield f"{path}: {len(before)} lines become {len(after)}"
        return
    origin = path if isinstance(old, str) else "/dev/null"
    yield from difflib.unified_diff(before, after, origin, path, lineterm="")


def unfenced(text: str) -> list[str]:
    """The lines of a text without the Markdown fence that agents put around output."""
    found = text.strip("\n").splitlines()
    fenced = len(found) > 1 and found[0].startswith("```") and set(found[-1]) == {"`"}
    return found[1:-1] if fenced and found[0].startswith(found[-1]) else found
