"""A call of `fs/*` or `terminal/create`, or a switch of the mode, as a tool call and as an act.

These calls are what an agent does, not what it says about it: there is no label to believe. Paths are those of the
host, except in a command that runs in a sandbox.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from typing import Any

from dragoman.policy.act import Act
from dragoman.policy.requests.request import Surroundings, act_of_request

_KINDS = {"fs/read_text_file": "read", "fs/write_text_file": "edit", "terminal/create": "execute"}
_TITLES = {"fs/read_text_file": "Read", "fs/write_text_file": "Write"}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MOST_TITLE = 200


def tool_call_of(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The call as a permission question shows it, without an id."""
    shown: dict[str, Any] = {"name": method, "kind": _KINDS[method]}
    if method == "terminal/create":
        line = _words_line(params)
        given = {"command": line, **_told(params, "cwd")}
        return {**shown, "title": line[:_MOST_TITLE] or "Run a command", "rawInput": given}
    path = params.get("path")
    title = f"{_TITLES[method]} {path}"[:_MOST_TITLE]
    locations = [{"path": path}] if isinstance(path, str) else []
    return {**shown, "title": title, "rawInput": {"path": path}, "locations": locations}


def act_of_service(method: str, params: dict[str, Any], around: Surroundings) -> Act:
    """The act that the call would be."""
    tool = tool_call_of(method, params)
    tool.pop("locations", None)  # the path of the input once more
    if method == "terminal/create":
        tool["rawInput"] = {**tool["rawInput"], "command": _line(params)}
    return act_of_request(tool, replace(around, to_host=None))


def command_call_of(method: str, line: str) -> dict[str, Any]:
    """A command that the gateway runs for a client, as a tool call without an id."""
    return {"name": method, "kind": "execute", "title": line[:_MOST_TITLE], "rawInput": {"command": line}}


def act_of_command_call(tool: dict[str, Any], host: str, around: Surroundings) -> Act:
    """The act of such a command, which reaches `host`, if it reaches one."""
    act = act_of_request(tool, around)
    if not host:
        return act
    return replace(act, commands=tuple(replace(one, hosts=(*one.hosts, host)) for one in act.commands))


def switch_call_of(mode: str) -> dict[str, Any]:
    """A switch of the mode, as a tool call without an id."""
    title = f"Switch to the mode {mode!r}"
    return {"name": "session/set_mode", "kind": "switch_mode", "title": title, "rawInput": {"mode": mode}}


def act_of_switch(mode: str, around: Surroundings) -> Act:
    """The act of switching to a mode."""
    act = act_of_request(switch_call_of(mode), around)
    return replace(act, kind="switch_mode", mode=mode, switch=True)


def _told(params: dict[str, Any], member: str) -> dict[str, Any]:
    return {member: params[member]} if params.get(member) is not None else {}


def _words(params: dict[str, Any]) -> list[str] | None:
    """The command's words; None if they are of an unknown shape."""
    words = [params.get("command"), *(args if isinstance(args := params.get("args"), list) else [])]
    odd = params.get("args") is not None and not isinstance(params.get("args"), list)
    if odd or not all(isinstance(word, str) for word in words):
        return None
    return [str(word) for word in words]


def _words_line(params: dict[str, Any]) -> str:
    words = _words(params)
    if not words:
        return ""
    return words[0] if len(words) == 1 else shlex.join(words)


def _line(params: dict[str, Any]) -> str:
    """A shell line that does at least what the call does; empty, which is opaque, if its shape is unknown.

    A command without arguments may be a whole line, and some clients join the words and give them to a shell: where
    that would be another line, both count.
    """
    words, exports = _words(params), _exports(params.get("env"))
    if words is None or exports is None:
        return ""
    lines = dict.fromkeys((_words_line(params), " ".join(words)))
    return "\n".join([*exports, *lines])


def _exports(env: object) -> list[str] | None:
    found: list[str] = []
    for entry in env if isinstance(env, list) else [] if env is None else [None]:
        name = entry.get("name") if isinstance(entry, dict) else None
        value = entry.get("value") if isinstance(entry, dict) else None
        if not isinstance(name, str) or not isinstance(value, str) or not _VARIABLE.fullmatch(name):
            return None
        found.append(f"export {name}={shlex.quote(value)}")
    return found
