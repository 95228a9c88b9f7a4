"""One permission request and its surroundings as an act.

Never raises, whatever the agent sends. What is missing or of an unknown shape never makes the act milder: a line that is
not told is opaque, a folder that is not known makes relative paths outside, a host that is not told may be any.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from dragoman.policy.act import Access, Act, Below, PathFact, Tool
from dragoman.policy.requests import shapes
from dragoman.policy.requests.places import Places
from dragoman.policy.requests.shapes import Does

MAX_NAME = 200
"""Characters of a tool's, a server's or a kind's name that are compared and recorded."""
MAX_OBJECTS = 2000
"""Objects inside one input that are looked at for a command or a path; beyond it the call is not understood."""
MAX_DEPTH = 6
"""How deep they are looked for."""
MAX_ENTRIES = 100
"""Paths and hosts of one request; each is resolved through symlinks, and an agent chooses how many there are."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the gateway knows about a request, whatever the agent says."""

    agent: str = ""
    session: str = ""
    cwd: str = ""
    workspace: str = ""
    project: str = ""
    """The repository, if `workspace` is a worktree of it; else empty."""
    prompted_by: str = "local"
    mode: str = ""
    boxed: bool = False
    watched: bool = False
    moved: bool = False
    """An earlier line of the session changed the folder of a shell that keeps it."""
    to_host: Callable[[str], str] | None = None
    """Translates a path inside the agent's sandbox; None if paths are the same on both sides."""
    line_to_host: Callable[[str], str] | None = None
    """The same for the paths in a shell line."""


def act_of_request(tool: dict[str, Any], around: Surroundings) -> Act:
    """The act that a tool call would be. `tool` is a request's `toolCall` with what was seen of that call before."""
    return _Reader(tool, around).act()


class _Reader:
    def __init__(self, tool: dict[str, Any], around: Surroundings) -> None:
        self._tool = tool
        self._around = around
        given = tool.get("rawInput")
        self._input: dict[str, Any] = given if isinstance(given, dict) else {}
        self._odd = None if given is None or isinstance(given, dict) else "an input of an unknown shape"
        self._inner: list[dict[str, Any]] = []
        """Objects inside the input: a tool that wraps another one has the command there."""
        if not _collect(self._input, self._inner, MAX_DEPTH):
            self._odd = self._odd or "an input with many parts"
        self._name = _tool_name(tool)
        self._label = _text(tool.get("kind")) or "other"
        self._mcp = _mcp_tool(tool, self._name)
        self._unclear = self._mcp is not None and "__" in self._mcp.tool
        """`mcp__a__b__c` may be a tool of the server `a` or of `a__b`."""
        self._places = Places(around.cwd, around.workspace, around.to_host, MAX_ENTRIES)

    def act(self) -> Act:
        does = shapes.TOOLS.get(self._name)
        if self._mcp is not None and does is None:
            return self._made(self._label)
        self._mcp = None  # a tool of the agent's own is no server's, whatever else is told
        by_label = does is None
        does = does or shapes.BY_KIND.get(self._label, Does.WRITES)
        told = self._told_line()
        changes = self._changes()
        if told is not None or does is Does.RUNS:
            return self._run(told)
        if does is Does.WRITES or changes:
            paths = [*self._named("write"), *changes, *self._locations("write")]
            kind = "edit" if self._label in shapes.MILD else self._label
            return self._made(kind, paths=paths, hosts=self._hosts())
        if does is Does.NEITHER and not by_label:
            return self._made(self._label)
        if does is Does.FETCHES:
            return self._made(self._label, paths=self._named("write"), hosts=self._hosts() or ("?",))
        named = [*self._named("read"), *self._locations("read")]
        hosts = self._hosts()
        unsupported = by_label or not (named or hosts not in ((), ("?",)))
        return self._made(self._label, paths=self._searched(named), hosts=hosts, label_only=unsupported)

    def _searched(self, named: list[PathFact]) -> list[PathFact]:
        """The paths of a call that reads; a search reads what is in its folder, or in the session's if none is told."""
        searches = self._name in shapes.SEARCHES or self._label == "search"
        if searches and not named and self._input and self._around.cwd:
            named = self._places.facts([self._around.cwd], "read", mapped=True)
        if not searches and self._name in shapes.TOOLS:
            return named
        return [replace(path, below=Below(sure=False)) for path in named]

    def _made(
        self,
        kind: str,
        *,
        paths: list[PathFact] | None = None,
        hosts: tuple[str, ...] = (),
        label_only: bool = False,
        **line: Any,
    ) -> Act:
        found = tuple(dict.fromkeys(paths or ()))
        around = self._around
        opaque = line.pop("opaque", None) or self._grants() or self._odd
        supported = bool(found or line.get("commands") or hosts not in ((), ("?",)) or self._mcp)
        return Act(
            agent=around.agent,
            session=around.session,
            workspace=around.workspace,
            project=around.project,
            prompted_by=around.prompted_by,
            tool=self._name,
            kind=kind,
            paths=found,
            hosts=hosts,
            mcp=self._mcp,
            mode=around.mode,
            boxed=around.boxed,
            watched=around.watched,
            opaque=opaque,
            label_only=label_only or not supported or self._grants() is not None or self._unclear,
            question=self._is_question(),
            **line,
        )

    # -- shell lines

    def _told_line(self) -> str | None:
        """The shell line; None if there is none, empty if it is of an unknown shape."""
        told = [self._input[member] for member in shapes.COMMANDS if self._input.get(member) is not None]
        if told:
            return _line(told[0]) if len(told) == 1 else ""  # of two lines it is not clear which one runs
        inner = [
            one[member] for one in self._inner for member in shapes.COMMANDS if _is_command(one.get(member))
        ]
        if inner:
            return _line(inner[0]) if len(inner) == 1 else ""
        title = self._tool.get("title")
        if self._name in shapes.IN_TITLE and not self._input and isinstance(title, str):
            return title
        return None

    def _run(self, told: str | None) -> Act:
        changes = self._changes()
        if not told or not told.strip():
            why = "the agent does not say what it runs" if told is None else "a command of an unknown shape"
            paths = [*self._named("write"), *changes, *self._locations("write")]
            return self._made("execute", paths=paths, hosts=self._hosts(), label_only=True, opaque=why)
        from dragoman.policy.shell.line import read_line  # the parser comes with the first line

        around = self._around
        line = around.line_to_host(told) if around.line_to_host is not None else told
        folder = self._folder()
        read = read_line(line, cwd=folder, workspace=around.workspace)
        opaque = read.opaque
        return self._made(
            "execute",
            # An agent's locations repeat the line's own paths, so they count only where those are not understood.
            paths=[*read.paths, *changes, *(self._locations("write") if opaque is not None else ())],
            hosts=self._hosts(),
            commands=read.commands,
            wrappers=read.wrappers,
            folder=os.path.realpath(folder) if folder else "",
            opaque=opaque,
        )

    def _folder(self) -> str:
        """The folder that the line runs in; empty if not known."""
        for member in shapes.FOLDER_OF.get(self._name, shapes.FOLDERS):
            for one in (self._input, *self._inner):
                if one.get(member) is not None:
                    return self._places.folder(one[member])
        if self._name in shapes.KEEPS_FOLDER and self._around.moved:
            return ""
        if self._name in shapes.IN_TITLE and not self._input:
            return self._folder_in_content()
        return self._around.cwd

    def _folder_in_content(self) -> str:
        for item in _entries(self._tool.get("content")):
            content = item.get("content")
            text = content.get("text") if isinstance(content, dict) else None
            if isinstance(text, str) and text.startswith("[in "):
                found = shapes.GEMINI_FOLDER.fullmatch(text)
                return self._places.folder(found["folder"]) if found is not None else ""
            if isinstance(text, str) and text.startswith(shapes.GEMINI_NO_FOLDER):
                return self._around.cwd
        return ""

    # -- files and hosts

    def _named(self, access: Access) -> list[PathFact]:
        """Paths in members of the input."""
        told = [self._input[member] for member in shapes.PATHS if self._input.get(member) is not None]
        for member in shapes.PATH_LISTS:
            listed = self._input.get(member)
            told += (
                listed[: MAX_ENTRIES + 1] if isinstance(listed, list) else [] if listed is None else [listed]
            )
        for one in self._inner:
            told += [one[member] for member in shapes.PATHS if isinstance(one.get(member), str)]
        # OpenCode 1.18 joins the names of several changed files.
        told += [
            part
            for one in told
            if isinstance(one, str) and ", " in one
            for part in one.split(", ", MAX_ENTRIES)
        ]
        return self._places.facts(told, access)

    def _changes(self) -> list[PathFact]:
        """Files that a diff or a list of changes says are written."""
        told: list[object] = []
        for member, inner in shapes.CHANGES.items():
            for entry in _entries(self._input.get(member)):
                told += [found for steps in inner if (found := _member(entry, steps)) is not None]
        found = self._places.facts(told, "write")
        diffs = [
            item.get("path") for item in _entries(self._tool.get("content")) if item.get("type") == "diff"
        ]
        return found + self._places.facts(diffs, "write", mapped=True)

    def _locations(self, access: Access) -> list[PathFact]:
        told = [item.get("path") for item in _entries(self._tool.get("locations"))]
        return self._places.facts(told, access, mapped=True)

    def _hosts(self) -> tuple[str, ...]:
        told = [self._input[member] for member in shapes.ADDRESSES if self._input.get(member) is not None]
        for inner in self._inner:
            told += [inner[member] for member in shapes.ADDRESSES if isinstance(inner.get(member), str)]
        listed = [
            one for each in told for one in (each[: MAX_ENTRIES + 1] if isinstance(each, list) else [each])
        ]
        hosts = [_host(one) for one in listed]
        title = self._tool.get("title")
        network = shapes.NETWORK_TITLE.fullmatch(title[:MAX_NAME]) if isinstance(title, str) else None
        if network is not None:
            hosts.append(_host(network[1]))
        return tuple(dict.fromkeys([*hosts[:MAX_ENTRIES], *(["?"] if len(hosts) > MAX_ENTRIES else [])]))

    def _is_question(self) -> bool:
        """Whether the call asks a person something, by its tool or by the shape of its input."""
        given = self._input
        answers = "question" in given and ("options" in given or "choices" in given)
        return self._name in shapes.QUESTIONS or answers or isinstance(given.get("questions"), list)

    def _grants(self) -> str | None:
        granted = next((member for member in shapes.GRANTS if self._input.get(member)), None)
        return f"it asks for more than this call ({granted})" if granted is not None else None


def _tool_name(tool: dict[str, Any]) -> str:
    for steps in shapes.NAMES:
        found = _member(tool, steps)
        if isinstance(found, str) and found:
            return _text(found)
    call = tool.get("toolCallId")
    # Elsewhere ids are the model's, which must not choose the tool: only Gemini CLI has no input beside them.
    found = shapes.NAME_IN_ID.match(call) if isinstance(call, str) and not tool.get("rawInput") else None
    return found[1] if found is not None else ""


def _mcp_tool(tool: dict[str, Any], name: str) -> Tool | None:
    own = _member(tool, ("_meta", "dragoman", "mcp"))
    if isinstance(own, dict) and isinstance(own.get("server"), str) and isinstance(own.get("tool"), str):
        return Tool(_text(own["server"]), _text(own["tool"]))
    found = shapes.MCP_NAME.fullmatch(name)
    if found is not None:
        return Tool(_text(found["server"]), _text(found["tool"]))
    server, inner = _member(tool, ("rawInput", "server")), _member(tool, ("rawInput", "tool"))
    title = tool.get("title")  # codex-acp 2.6; a question about it has no title of its own
    runs = any(_member(tool, ("rawInput", member)) is not None for member in shapes.COMMANDS)
    if isinstance(server, str) and isinstance(inner, str) and title == f"mcp.{server}.{inner}" and not runs:
        return Tool(_text(server), _text(inner))
    return None


def _line(told: object) -> str:
    """A shell line from a string or a list of words; empty for anything else."""
    if isinstance(told, str):
        return told
    if isinstance(told, list) and told and all(isinstance(word, str) for word in told):
        return shlex.join(told) if not re.search(r"\s", told[0]) else ""  # lines, and no words of one
    return ""


def _host(address: object) -> str:
    """The host of an address; `?` if it cannot be told."""
    if not isinstance(address, str) or len(address) > 4096:
        return "?"
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        return _text(parts.hostname) or "?"
    except ValueError:
        return "?"


def _text(value: object) -> str:
    """A name, cut so that no cut one equals another name."""
    if not isinstance(value, str):
        return ""
    return value if len(value) <= MAX_NAME else value[:MAX_NAME] + "…"


def _is_command(value: object) -> bool:
    return bool(value) and isinstance(value, str | list)


def _collect(value: object, found: list[dict[str, Any]], depth: int) -> bool:
    """Gather the objects inside a value, without itself; false if there are too many, or some are too deep."""
    entries = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for entry in entries:
        if not isinstance(entry, dict | list):
            continue
        if depth == 0 or len(found) >= MAX_OBJECTS:
            return False
        if isinstance(entry, dict):
            found.append(entry)
        if not _collect(entry, found, depth - 1):
            return False
    return True


def _member(value: object, steps: tuple[str, ...]) -> object:
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _entries(value: object) -> Iterator[dict[str, Any]]:
    """Entries of a list that are objects; one more than the limit, which the reader then sees as too many."""
    for entry in value[: MAX_ENTRIES + 1] if isinstance(value, list) else ():
        if isinstance(entry, dict):
            yield entry
