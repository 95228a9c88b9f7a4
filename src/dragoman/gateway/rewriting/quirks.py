"""Corrections for quirks of agents, so that all agents behave alike.

docs/reference/quirks.md lists them, with the agents and versions in which each was observed. A correction that cannot
harm an agent without the quirk is made for every agent, whatever its name.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from pathlib import PurePath

from dragoman.gateway.bounded_dict import BoundedDict
from dragoman.gateway.json_types import JsonObject, as_object, decode_object
from dragoman.rpc.request import Reply
from dragoman.wire import limits
from dragoman.wire.errors import AUTH_REQUIRED, INTERNAL_ERROR, Malformed, RpcError

RESTARTABLE = 1001
"""Error code of codex-acp: the program that it runs could not be started."""
MODE_TEXT = b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"[MODE_UPDATE]'
"""Compared where the update begins in the raw line: a search through every chunk would cost a tenth of the time."""
MODE_AT = MODE_TEXT.index(b"[")
"""Offset of the one byte that rules out almost every other chunk."""
_MODE = re.compile(r"\s*\[MODE_UPDATE\]\s*(\S+)\s*")
FS_BREAKS = frozenset({"gemini"})
"""Matched by executable: capabilities are sent before the agent names itself."""
REPLAYS_ON = frozenset({"gemini"})
"""Answer `session/load` in the middle of their replay; matched by executable."""
KEPT_OUTPUT = 30_000
"""Characters of a command's output that are sent as text: each update repeats them."""
CONSOLE = "```console\n"
"""First characters of the text of a command's output."""
_OUTPUT = ("terminal_output_delta", "terminal_output")
_TERMINAL = frozenset({*_OUTPUT, "terminal_info", "terminal_exit"})


class Corrections:
    """State of one session that the corrections need."""

    def __init__(self) -> None:
        self._printed: BoundedDict[str] = BoundedDict(limits.PRINTED_CALLS)
        self._failed = False

    def turn_begins(self) -> None:
        self._printed.clear()
        self._failed = False

    def failed(self, reply: Reply) -> bool:
        """Whether a turn that ended with `end_turn` has failed."""
        return self._failed and reply.ok and decode_object(reply.result).get("stopReason") == "end_turn"

    def follow_status(self, update: JsonObject) -> None:
        """Note a failed thread, which Codex reports in `_meta` of a `session_info_update`."""
        status = as_object(as_object(update.get("_meta")).get("codex")).get("threadStatus")
        if status is not None:
            kind = as_object(status).get("type", status)
            self._failed = kind == "systemError" or (self._failed and kind == "idle")

    def terminal_text(self, update: JsonObject) -> bool:
        """Add the output in the `_meta` of a tool call as text content; True if the call was edited."""
        tool, meta = str(update.get("toolCallId")), as_object(update.get("_meta"))
        if not tells_terminal(meta):
            return False
        code = as_object(meta.get("terminal_exit")).get("exit_code")
        printed = (self._printed.get(tool, "") + printed_in(meta))[-KEPT_OUTPUT:]
        self._printed[tool] = printed
        content = update.get("content")
        kept = [
            item
            for item in (content if isinstance(content, list) else [])
            if as_object(item).get("type") != "terminal"
        ]
        shown = printed.rstrip() + (f"\nexit code {code}" if code else "")
        if shown:
            block = {"type": "text", "text": f"{CONSOLE}{shown}\n```"}
            kept.append({"type": "content", "content": block})
        update["content"] = kept
        return True


def tells_terminal(meta: object) -> bool:
    """Whether this `_meta` of a tool call describes a command's terminal."""
    return isinstance(meta, dict) and not _TERMINAL.isdisjoint(meta)


def printed_in(meta: JsonObject) -> str:
    """The output in the `_meta` of a tool call."""
    told = next((meta[name] for name in _OUTPUT if name in meta), None)
    return told if isinstance(told, str) else str(as_object(told).get("data") or "")


def without_text(content: list[object]) -> tuple[list[object], list[object]]:
    """The content of a corrected tool call in two parts: all but the command's output, and that output as text."""
    shown: list[object] = []
    text: list[object] = []
    for item in content:
        block = as_object(as_object(item).get("content"))
        if str(block.get("text", "")).startswith(CONSOLE):
            text.append(item)
        elif as_object(item).get("type") != "terminal":
            shown.append(item)
    return shown, text


def absolute_paths(tool: JsonObject, cwd: str) -> bool:
    """Make the paths of a tool call's diffs and locations absolute, in place; True if one was relative."""
    changed = False
    for member in ("content", "locations"):
        items = tool.get(member)
        for item in items if isinstance(items, list) else ():
            path = item.get("path") if isinstance(item, dict) else None
            if not path or not isinstance(path, str) or path[0] == "/":
                continue
            if member == "locations" or item.get("type") == "diff":
                item["path"] = posixpath.normpath(posixpath.join(cwd, path))
                changed = True
    return changed


def survives_fs(command: Sequence[str]) -> bool:
    """Whether an agent may be offered `fs`; looks at two words, since the first may be an interpreter."""
    return not _is_one_of(FS_BREAKS, command)


def replays_on(command: Sequence[str]) -> bool:
    """Whether an agent goes on with its replay after the answer to `session/load`."""
    return _is_one_of(REPLAYS_ON, command)


def _is_one_of(names: frozenset[str], command: Sequence[str]) -> bool:
    return any(PurePath(word).stem in names for word in command[:2])


def mode_said(update: JsonObject) -> str | None:
    """The mode that a text chunk announces, if it has no other text; else None."""
    text = as_object(update.get("content")).get("text")
    found = _MODE.fullmatch(text) if isinstance(text, str) else None
    return found[1] if found else None


def with_rpc_code(reply: Reply) -> Reply:
    """Replace an HTTP status used as error code by a JSON-RPC code; the agent's own code stays in `data.code`."""
    if reply.ok:
        return reply
    try:
        error = decode_object(reply.error)
    except Malformed:
        return reply
    code = error.get("code")
    if not isinstance(code, int) or (not 100 <= code <= 599 and code != RESTARTABLE):
        return reply  # JSON-RPC leaves other numbers to applications
    data = error.get("data")
    kept = {**(data if isinstance(data, dict) else {} if data is None else {"data": data}), "code": code}
    meant = AUTH_REQUIRED if code == 401 else INTERNAL_ERROR
    return Reply.failed(RpcError(meant, str(error.get("message") or "The agent failed"), kept))


def announcement(tool: JsonObject) -> JsonObject:
    """The `tool_call` that the agent should have sent before a question about it."""
    title = tool.get("title") or tool.get("toolCallId")
    return {"status": "pending", **tool, "sessionUpdate": "tool_call", "title": title}
