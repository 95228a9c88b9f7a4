"""Claude's tools as ACP tool calls: kind, title, locations, and results.

Each tool has a row; a tool without one (such as those of MCP servers) is shown by its name. Observed with claude
2.1.197 and 2.1.325: `tool_use_result` beside a result carries `structuredPatch` for edits and `stdout`/`stderr` for
commands, which the text of the result alone does not.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from dragoman.wire.json_types import JsonObject, objects

PLAN_TOOLS = frozenset({"TodoWrite", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet"})
"""Tools that are shown as the session's plan, not as tool calls."""


COMMANDS = frozenset({"Bash"})
"""Tools that are shown with a terminal."""


@dataclass(frozen=True, slots=True)
class ToolRow:
    """How a tool is shown; `title` is made from the tool's input."""

    kind: str
    title: Callable[[JsonObject], str]
    path: str | None = None
    """The input's member that names a file."""
    line: str | None = None
    """The input's member that names a line in it."""


def _named(word: str, *members: str) -> Callable[[JsonObject], str]:
    def title(given: JsonObject) -> str:
        found = next((str(given[name]) for name in members if given.get(name)), "")
        return f"{word} {found}".strip()

    return title


def _command(given: JsonObject) -> str:
    return str(given.get("command") or "Terminal")


def _grep(given: JsonObject) -> str:
    where = f" in {given['path']}" if given.get("path") else ""
    return f"grep {given.get('pattern', '')!s}{where}"


TOOLS: dict[str, ToolRow] = {
    "Read": ToolRow("read", _named("Read", "file_path"), "file_path", "offset"),
    "NotebookRead": ToolRow("read", _named("Read", "notebook_path"), "notebook_path"),
    "LS": ToolRow("search", _named("List", "path"), "path"),
    "Edit": ToolRow("edit", _named("Edit", "file_path"), "file_path"),
    "MultiEdit": ToolRow("edit", _named("Edit", "file_path"), "file_path"),
    "Write": ToolRow("edit", _named("Write", "file_path"), "file_path"),
    "NotebookEdit": ToolRow("edit", _named("Edit", "notebook_path"), "notebook_path"),
    "Glob": ToolRow("search", _named("Find", "pattern"), "path"),
    "Grep": ToolRow("search", _grep, "path"),
    "ToolSearch": ToolRow("search", _named("Find tools", "query")),
    "Bash": ToolRow("execute", _command),
    "BashOutput": ToolRow("execute", _named("Output of", "bash_id", "task_id")),
    "TaskOutput": ToolRow("execute", _named("Output of", "task_id")),
    "KillShell": ToolRow("execute", _named("Stop", "shell_id")),
    "TaskStop": ToolRow("execute", _named("Stop", "task_id")),
    "WebFetch": ToolRow("fetch", _named("Fetch", "url")),
    "WebSearch": ToolRow("fetch", _named("Search the web for", "query")),
    "Task": ToolRow("think", _named("Task", "description")),
    "Agent": ToolRow("think", _named("Task", "description")),
    "Skill": ToolRow("other", _named("Skill", "skill", "command")),
    "EnterPlanMode": ToolRow("switch_mode", _named("Make a plan")),
    "ExitPlanMode": ToolRow("switch_mode", _named("Ready to code?")),
    "AskUserQuestion": ToolRow("other", _named("Question")),
}


def describe(name: str, given: JsonObject) -> JsonObject:
    """Kind, title, locations, input and expected change of a call, as members of a tool call."""
    row = TOOLS.get(name)
    if row is None:
        return {"title": _mcp_title(name), "kind": "other", "rawInput": given}
    shown: JsonObject = {"title": row.title(given), "kind": row.kind, "rawInput": given}
    path = given.get(row.path) if row.path is not None else None
    if isinstance(path, str) and path:
        place: JsonObject = {"path": path}
        line = given.get(row.line) if row.line is not None else None
        if isinstance(line, int):
            place["line"] = line
        shown["locations"] = [place]
    content = expected(name, given)
    if content:
        shown["content"] = content
    return shown


def expected(name: str, given: JsonObject) -> list[JsonObject]:
    """Content to show before a call has run: its diff, plan or prompt."""
    path = given.get("file_path")
    if name == "Write" and isinstance(path, str):
        return [{"type": "diff", "path": path, "oldText": None, "newText": str(given.get("content", ""))}]
    if name == "Edit" and isinstance(path, str):
        return [_edit(path, given)]
    if name == "MultiEdit" and isinstance(path, str):
        edits = given.get("edits")
        return [_edit(path, edit) for edit in objects(edits)]
    if name == "ExitPlanMode" and given.get("plan"):
        return [text_content(str(given["plan"]))]
    if name in ("Task", "Agent") and given.get("prompt"):
        return [text_content(str(given["prompt"]))]
    return []


def outcome(name: str, given: JsonObject, block: JsonObject, detail: object) -> JsonObject:
    """The members of the update that ends a call: status, raw output, and content to show."""
    failed = block.get("is_error") is True
    shown: JsonObject = {"status": "failed" if failed else "completed"}
    shown["rawOutput"] = detail if detail is not None else block.get("content")
    patches = _patches(given, detail) if not failed else []
    if patches:
        shown["content"], shown["locations"] = patches, _changed_lines(given, detail)
        return shown
    if not failed and TOOLS.get(name, _OTHER).kind == "edit":
        return shown  # the expected change was already shown
    if name in COMMANDS and exit_code(block) is not None:
        return shown  # its terminal shows the output
    content = _output(block.get("content"))
    if content:
        shown["content"] = content
    return shown


def text_content(text: str) -> JsonObject:
    return {"type": "content", "content": {"type": "text", "text": text}}


def command_output(detail: object, content: object) -> str:
    """The output of a command."""
    if isinstance(detail, dict) and ("stdout" in detail or "stderr" in detail):
        parts = [str(detail.get(name) or "").rstrip("\n") for name in ("stdout", "stderr")]
        return "\n".join(part for part in parts if part)
    return "\n".join(_texts(content))


def exit_code(block: JsonObject) -> int | None:
    """The exit code, which `claude` gives only in the first line of a failed command's output; None if not run."""
    if block.get("is_error") is not True:
        return 0
    found = re.match(r"(?:Error: )?Exit code (\d+)", "\n".join(_texts(block.get("content"))))
    return int(found[1]) if found else None


_OTHER = ToolRow("other", _named(""))


def _mcp_title(name: str) -> str:
    """A readable title for `mcp__server__tool`."""
    if name.startswith("mcp__"):
        server, _, tool = name.removeprefix("mcp__").partition("__")
        return f"{server}: {tool}" if tool else server
    return name


def _edit(path: str, edit: JsonObject) -> JsonObject:
    return {
        "type": "diff",
        "path": path,
        "oldText": str(edit.get("old_string", "")),
        "newText": str(edit.get("new_string", "")),
    }


def _hunks(detail: object) -> list[JsonObject]:
    patch = detail.get("structuredPatch") if isinstance(detail, dict) else None
    return objects(patch)


def _path(given: JsonObject, detail: object) -> str:
    found = detail.get("filePath") if isinstance(detail, dict) else None
    return str(found or given.get("file_path") or "")


def _patches(given: JsonObject, detail: object) -> list[JsonObject]:
    """One diff per hunk, with its context lines."""
    path = _path(given, detail)
    shown = []
    for hunk in _hunks(detail):
        raw = hunk.get("lines")
        lines = [str(line) for line in raw] if isinstance(raw, list) else []
        old = [line[1:] for line in lines if line[:1] in (" ", "-")]
        new = [line[1:] for line in lines if line[:1] in (" ", "+")]
        shown.append({"type": "diff", "path": path, "oldText": "\n".join(old), "newText": "\n".join(new)})
    return shown


def _changed_lines(given: JsonObject, detail: object) -> list[JsonObject]:
    path = _path(given, detail)
    return [{"path": path, "line": hunk["newStart"]} for hunk in _hunks(detail) if "newStart" in hunk]


def _output(content: object) -> list[JsonObject]:
    shown = []
    for block in content if isinstance(content, list) else []:
        source = block.get("source") if isinstance(block, dict) else None
        if isinstance(block, dict) and block.get("type") == "image" and isinstance(source, dict):
            image = {
                "type": "image",
                "data": source.get("data", ""),
                "mimeType": source.get("media_type", ""),
            }
            shown.append({"type": "content", "content": image})
    return [*(text_content(text) for text in _texts(content)), *shown]


def _texts(content: object) -> list[str]:
    """A result's content is a string or a list of blocks (D-111)."""
    if isinstance(content, str):
        return [content] if content else []
    blocks = content if isinstance(content, list) else []
    found = [block.get("text") for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
    return [text for text in found if isinstance(text, str) and text]
