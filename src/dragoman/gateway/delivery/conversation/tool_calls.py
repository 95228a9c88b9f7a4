"""The tool calls of a conversation for people: each by its last title, with who allowed it and its output."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from dragoman.gateway.json_types import JsonObject, as_object, own_meta
from dragoman.gateway.rewriting import tool_text

OUTPUT_LINES = 500
"""Most lines of one tool call's output."""
KEPT_CALLS = 1000
"""Calls that are open at once: agents may never end some, and the oldest are told first."""
ENDED = ("completed", "failed")


@dataclass(slots=True)
class _Call:
    title: str = ""
    command: str = ""
    unmediated: bool = False
    decided: list[str] = field(default_factory=list)


class ToolCalls:
    """Takes updates and decisions in their order, and tells each call once, when it ends."""

    def __init__(self) -> None:
        self._open: dict[str, _Call] = {}
        self._contents = tool_text.ToolContents()

    def see(self, update: JsonObject) -> Iterator[tuple[str, str]]:
        """The line about the call and its output, if the update ends it."""
        id = str(update.get("toolCallId"))
        call = self._open.setdefault(id, _Call())
        call.title = str(update.get("title") or call.title or update.get("kind") or "")
        command = as_object(update.get("rawInput")).get("command")
        if isinstance(command, list):
            command = " ".join(map(str, command))
        call.command = command if isinstance(command, str) else call.command
        call.unmediated = call.unmediated or own_meta(update).get("unmediated") is True
        self._contents.see(update)
        status = update.get("status")
        if status in ENDED:
            del self._open[id]
            content = self._contents.take(update)
            yield "Tool", _line(call, failed=status == "failed")
            yield "Output", _output(call, [] if tool_text.said_already(update) else content)
        elif len(self._open) > KEPT_CALLS:
            oldest = next(iter(self._open))
            yield "Tool", _line(self._open.pop(oldest))

    def decided(self, id: str, words: str) -> bool:
        """Keep a decision for the line about its call; False if there is no such call."""
        call = self._open.get(id)
        if call is not None:
            call.decided.append(words)
        return call is not None

    def rest(self) -> Iterator[tuple[str, str]]:
        """The calls that did not end."""
        left, self._open = self._open, {}
        for call in left.values():
            yield "Tool", _line(call)
            yield "Output", _output(call, [])


def _line(call: _Call, *, failed: bool = False) -> str:
    title = " ".join(call.title.split()) or "tool call"
    ran = " ran before the rules saw it (unmediated)" if call.unmediated else ""
    words = "".join(f": {words}" for words in call.decided)
    refused = any(words.startswith(("rejected", "denied", "cancelled")) for words in call.decided)
    return f"{title}{' failed' if failed and not refused else ''}{ran}{words}"


def _output(call: _Call, content: list[object]) -> str:
    """The command, if the title does not have all of it, and what it printed or changed."""
    found = list(tool_text.lines(content))
    if call.command and call.command not in call.title:
        found = [*f"$ {call.command}".splitlines(), *found]
    more = len(found) - OUTPUT_LINES
    return "\n".join([*found[:OUTPUT_LINES], *([f"… {more} more lines"] if more > 0 else [])])
