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
        found = self._calls.get(tool_id, {})
        given = tool.get("rawInput")
        if isinstance(given, dict) and given:
            found["rawInput"] = _short(given)
            if isinstance(given.get("command"), str):
                self._see_moves(tool_id, given["command"])
        for member in ("name", "title"):
            if isinstance(tool.get(member), str) and len(tool[member]) <= limits.PEER_ID_LENGTH:
                found[member] = tool[member]
        if tool.get("locations"):
            found["locations"] = _paths(tool["locations"])
        if tool.get("content"):
            found["content"] = [{"type": "diff", **one} for one in _paths(tool["content"])]
        meta = tool.get("_meta")
        if isinstance(meta, dict) and (names := _names(meta)):
            found["_meta"] = names
        if found:
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
        if "cd" not in line and "pushd" not in line and "popd" not in line and "chdir" not in line:
            return
        short = len(line) <= _LONGEST
        targets = {found[1].strip("\"'").rstrip("/") for found in _MOVES.finditer(line)} if short else {"?"}
        if targets and len(tool_id) > limits.PEER_ID_LENGTH:
            self._lost_moves = True
        elif targets:
            self._moves[tool_id] = frozenset(targets)
            if len(self._moves) > _MOST_MOVES:
                del self._moves[next(iter(self._moves))]
                self._lost_moves = True


def _short(given: JsonObject) -> JsonObject:
    left = _LONGEST
    found: JsonObject = {}
    for name, value in islice(given.items(), _MEMBERS):
        if isinstance(value, str) and len(name) <= limits.PEER_ID_LENGTH:
            found[name] = value if len(value) <= left else False
            left -= len(value) if len(value) <= left else 0
    return found


def _paths(items: object) -> list[JsonObject]:
    entries = islice(items, _MEMBERS) if isinstance(items, list) else ()
    paths = (entry.get("path") for entry in entries if isinstance(entry, dict))
    return [{"path": path} for path in paths if isinstance(path, str) and len(path) <= limits.PEER_ID_LENGTH]


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
