"""The built-in commands without their code: the web chat lists them before a session exists."""

from __future__ import annotations

from typing import Any, NamedTuple

Json = dict[str, Any]


class Command(NamedTuple):
    name: str
    hint: str
    """The arguments, as shown after the name."""
    description: str


OFFERED = (
    Command("help", "", "what I can do"),
    Command("read", "PATH[:FIRST-LAST]", "show a file or a part of it"),
    Command("search", "PATTERN [FOLDER]", "find lines that match a regular expression"),
    Command("run", "COMMAND", "run a command, after you allowed it"),
    Command("edit", 'PATH "OLD" "NEW"', "replace text in a file, after you saw the diff"),
    Command("write", "PATH TEXT", "write a file, after you saw the diff"),
    Command("diff", "", "what this session changed"),
    Command("apply", "", "apply the changes of sandbox mode to the workspace, after you saw them"),
    Command("plan", "[STEP; STEP | done N]", "show, make or tick off a plan"),
    Command("model", "[PROVIDER:NAME]", "which language model answers, and how to get one"),
    Command("mode", "[NAME]", "what the tools may do"),
    Command("mcp", "", "the MCP servers of this session and their tools"),
    Command("compact", "", "shorten the conversation that the model is sent"),
)


def own_commands() -> list[Json]:
    return [available(command.name, command.description, command.hint) for command in OFFERED]


def available(name: str, description: str, hint: str) -> Json:
    """A row of `available_commands_update`."""
    return {"name": name, "description": description, "input": {"hint": hint} if hint else None}
