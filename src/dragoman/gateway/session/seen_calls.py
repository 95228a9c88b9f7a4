"""What was seen of tool calls before a permission question about them, for the policy.

A question may leave out what its `tool_call` had: OpenCode 1.18 tells the folder of a command only there, codex-acp 2.6
the changed files. Only short members are stored: names, commands and paths, never the contents of files.
"""

from __future__ import annotations

import re
from itertools import islice

from dragoman.gateway.bounded_dict import BoundedDict
from dragoman.gateway.json_types import JsonObject, as_object
from dragoman.wire import limits

_MEMBERS = 32
_LONGEST = 8 * 1024
"""Characters of a member of the input; a longer one is stored as `False`, which no reader takes for a value."""
_MOVES = re.compile(r"(?:^|[\s;&|(){}`\"'])(?:cd|pushd|popd|chdir)(?![\w.-])[ \t]*([^\s;&|)]*)")
_MOST_MOVES = 64


class SeenCalls:
    def __init__(self) -> None:
        self._calls: BoundedDict[JsonObject] = BoundedDict(limits.SEEN_TOOL_CALLS)
        self._moves: dict[str, frozenset[str]] = {}
        """Folders that the shell line of a call changes to, by the call's id."""
        self._lost_moves = False

    def see(self, tool_id: str, tool: JsonObject) -> None:
        """Store what an update tells; most updates of a call only show its output, and cost next to nothing."""
        given, content, locations = tool.get("rawInput"), tool.get("content"), tool.get("locations")
        diffs = _paths(content, "diff") if content else None
        if not given and not locations and not diffs:
            return
        found = self._calls.get(tool_id, {})
        if isinstance(given, dict):
            found["rawInput"] = _short(given)
            command = given.get("command")
            if isinstance(command, str) and _may_move(command):
                self._see_moves(tool_id, command)
        if diffs:
            found["content"] = diffs
        if locations:
            found["locations"] = _paths(locations)
        for member in ("name", "title"):
            value = tool.get(member)
            if isinstance(value, str) and len(value) <= limits.PEER_ID_LENGTH:
                found[member] = value
        meta = tool.get("_meta")
        if isinstance(meta, dict) and (names := _names(meta)):
            found["_meta"] = names
        self._calls[tool_id] = found

    def forget(self, tool_id: str) -> None:
        self._calls.pop(tool_id, None)

    def clear(self) -> None:
        """The turn ended; folders that shells changed to stay."""
        self._calls.clear()

    def filled(self, tool: JsonObject) -> JsonObject:
        """The tool call of a question with what was seen of it before."""
        seen = self._calls.get(str(tool.get("toolCallId")))
        if not seen:
            return tool
        told = {member: value for member, value in tool.items() if value is not None}
        given = told.get("rawInput", {})
        if isinstance(given, dict) and "rawInput" in seen:
            told["rawInput"] = {**seen["rawInput"], **given}
        for member in ("locations", "content"):
            own = told.get(member, [])
            if isinstance(own, list) and member in seen:
                told[member] = [*own, *seen[member]]
        told["_meta"] = {**as_object(seen.get("_meta")), **as_object(told.get("_meta"))}
        return {**seen, **told}

    def moved(self, tool_id: object, *homes: str) -> bool:
        """Whether the line of any other call changed to a folder that is not one of `homes`."""
        at_home = {home.rstrip("/") for home in homes}
        others = (targets for each, targets in self._moves.items() if each != tool_id)
        return self._lost_moves or any(not targets <= at_home for targets in others)

    def _see_moves(self, tool_id: str, line: str) -> None:
        short = len(line) <= _LONGEST
        targets = {found[1].strip("\"'").rstrip("/") for found in _MOVES.finditer(line)} if short else {"?"}
        if targets and len(tool_id) > limits.PEER_ID_LENGTH:
            self._lost_moves = True
        elif targets:
            self._moves[tool_id] = frozenset(targets)
            if len(self._moves) > _MOST_MOVES:
                del self._moves[next(iter(self._moves))]
                self._lost_moves = True


def _may_move(line: str) -> bool:
    return "cd" in line or "pushd" in line or "popd" in line or "chdir" in line


def _short(given: JsonObject) -> JsonObject:
    left = _LONGEST
    found: JsonObject = {}
    for name, value in islice(given.items(), _MEMBERS):
        if isinstance(value, str) and len(name) <= limits.PEER_ID_LENGTH:
            size = len(value)
            found[name] = value if size <= left else False
            left -= size if size <= left else 0
    return found


def _paths(items: object, kind: str | None = None) -> list[JsonObject]:
    """The entries of `locations` with their paths alone, or, with `kind`, the entries of that kind in `content`."""
    found: list[JsonObject] = []
    for entry in items[:_MEMBERS] if isinstance(items, list) else ():
        if not isinstance(entry, dict) or (kind is not None and entry.get("type") != kind):
            continue
        path = entry.get("path")
        if isinstance(path, str) and len(path) <= _LONGEST:
            found.append({"path": path} if kind is None else {"type": kind, "path": path})
    return found


def _names(meta: JsonObject) -> JsonObject:
    found: JsonObject = {}
    for member in ("claudeCode", "dragoman"):
        inner = meta.get(member)
        name = inner.get("toolName") if isinstance(inner, dict) else None
        if isinstance(name, str) and len(name) <= limits.PEER_ID_LENGTH:
            found[member] = {"toolName": name}
    if isinstance(meta.get("toolName"), str) and len(meta["toolName"]) <= limits.PEER_ID_LENGTH:
        found["toolName"] = meta["toolName"]
    return found
