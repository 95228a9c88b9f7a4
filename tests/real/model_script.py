"""What the scripted model answers: decided by the last line that the user wrote, whichever API asked.

run: CMD        calls the agent's shell tool, then reports what the tool said
do: CMD         the same, without a wish to leave the agent's own sandbox
read: PATH      calls the agent's tool that reads files, or its shell if it has none, then reports what the tool said
write: PATH     calls the agent's tool that writes files, then reports what the tool said
slow            text, a tick at a time, until the test says that it is enough
think           a few thoughts, then text
fail: STATUS    an HTTP error in the shape of the API
anything else   is repeated
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Json = dict[str, Any]

TICK = 0.2
MOST_TICKS = 600
WRITTEN = "written by the scripted model\n"

SHELL_TOOLS = ("Bash", "bash", "run_shell_command", "exec_command")
READ_TOOLS = ("Read", "read", "read_file")
WRITE_TOOLS = ("Write", "write", "write_file", "apply_patch")

# Agents wrap what they add to a prompt (dates, folders, reminders, a transcript) in tags of their own.
ADDED = re.compile(r"<([a-zA-Z][\w -]*)[^<>]*>.*?</\1>", re.DOTALL)
NOT_THE_USER = ("[Request interrupted", "# AGENTS.md", "<")


@dataclass(frozen=True)
class Asked:
    """A request as all APIs mean it: the user's last words, what tools answered since, the tools on offer."""

    text: str
    results: Sequence[str]
    tools: Mapping[str, Json | None]
    """Schemas by name; None for a tool that takes free text."""
    model: str
    streams: bool
    schema: Json | None = None


@dataclass(frozen=True)
class Said:
    kind: Literal["text", "thought"]
    chunks: AsyncIterator[str]


@dataclass(frozen=True)
class Call:
    name: str
    arguments: Json | str


@dataclass(frozen=True)
class Failure:
    status: int


Reply = list[Said | Call]


def user_text(parts: Sequence[str]) -> str:
    """The last of a message's parts that a user wrote, or nothing."""
    written = [ADDED.sub("", part).strip() for part in parts]
    return next((part for part in reversed(written) if part and not part.startswith(NOT_THE_USER)), "")


def reply_to(asked: Asked, enough: asyncio.Event) -> Reply | Failure:
    """The whole script."""
    line = asked.text.splitlines()[-1] if asked.text else ""
    if asked.schema is not None:
        return [_text(json.dumps(_sample(asked.schema)))]
    if not asked.tools:  # agents ask for titles and summaries on the side, without tools
        return [_text("A title")]
    if asked.results:
        return [_text("The tool ", "said: ", " ".join(asked.results[-1].split())[:200])]
    if found := re.search(r"\bfail: (\d+)", line):
        return Failure(int(found[1]))
    if found := re.search(r"\b(run|do|write|read): (.+)", line):
        call = {"run": _shell, "do": _plain_shell, "write": _write, "read": _read}[found[1]](asked, found[2])
        return [_text("Let me ", "do that."), call]
    if re.search(r"\bslow\b", line):
        return [Said("text", _ticks(enough))]
    thoughts = [Said("thought", _chunks("Let me ", "think."))] if re.search(r"\bthink\b", line) else []
    return [*thoughts, _text("You said: ", line)]


def _text(*chunks: str) -> Said:
    return Said("text", _chunks(*chunks))


async def _chunks(*chunks: str) -> AsyncIterator[str]:
    for chunk in chunks:
        yield chunk


async def _ticks(enough: asyncio.Event) -> AsyncIterator[str]:
    for number in range(MOST_TICKS):
        yield f"tick {number} "
        try:
            await asyncio.wait_for(enough.wait(), TICK)
            return
        except TimeoutError:
            continue


def _shell(asked: Asked, command: str) -> Call:
    # codex asks people only if the model wants to leave the sandbox
    escalation = {"sandbox_permissions": "require_escalated", "justification": "May this run?"}
    about = {"description": "Run a command", "is_background": False}
    return _call(asked, SHELL_TOOLS, {"command": command, "cmd": command, **about, **escalation}, "")


def _plain_shell(asked: Asked, command: str) -> Call:
    about = {"description": "Run a command", "is_background": False}
    return _call(asked, SHELL_TOOLS, {"command": command, "cmd": command, **about}, "")


def _read(asked: Asked, path: str) -> Call:
    if not any(name in asked.tools for name in READ_TOOLS):
        return _call(asked, SHELL_TOOLS, dict.fromkeys(("command", "cmd"), f"cat {path}"), "")
    return _call(
        asked, READ_TOOLS, dict.fromkeys(("file_path", "filePath", "path", "absolute_path"), path), ""
    )


def _write(asked: Asked, path: str) -> Call:
    places = dict.fromkeys(("file_path", "filePath", "path"), path)
    patch = f"*** Begin Patch\n*** Add File: {path}\n+{WRITTEN}*** End Patch\n"
    return _call(asked, WRITE_TOOLS, {**places, "content": WRITTEN}, patch)


def _call(asked: Asked, names: Sequence[str], values: Json, free_text: str) -> Call:
    """Calls the first tool that is on offer, with those values that its schema knows."""
    name = next(name for name in names if name in asked.tools)
    schema = asked.tools[name]
    if schema is None:
        return Call(name, free_text)
    known = schema.get("properties", {})
    return Call(name, {key: value for key, value in values.items() if key in known})


def _sample(schema: Json) -> Any:
    """Any value that fits: side requests want JSON, and none of what they ask matters here."""
    if schema.get("enum"):
        return schema["enum"][0]
    properties = schema.get("properties", {})
    samples: dict[str, Any] = {"array": [], "integer": 1, "number": 1, "boolean": False}
    kind = str(schema.get("type", "object" if properties else "string")).lower()
    if kind == "object":
        return {name: _sample(inner) for name, inner in properties.items()}
    return samples.get(kind, "sample")
