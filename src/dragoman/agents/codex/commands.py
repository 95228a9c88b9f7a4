"""The slash commands of Codex: its own requests, prompts of ours where it has no request, and its skills."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dragoman.wire.json_types import JsonObject, objects

INIT = (
    "Look through this repository and write a file AGENTS.md for the next developers: how it is laid out, how it "
    "is built and tested, which conventions it follows. Keep it short and true. If there is one already, improve it."
)


@dataclass(frozen=True, slots=True)
class Command:
    description: str
    hint: str
    begin: Callable[[str], tuple[str, JsonObject]]
    """The request that begins the command's turn, from the text after the command."""


def _review(typed: str) -> tuple[str, JsonObject]:
    target = {"type": "custom", "instructions": typed} if typed else {"type": "uncommittedChanges"}
    return "review/start", {"target": target}


def _review_branch(typed: str) -> tuple[str, JsonObject]:
    return "review/start", {"target": {"type": "baseBranch", "branch": typed or "main"}}


def _review_commit(typed: str) -> tuple[str, JsonObject]:
    return "review/start", {"target": {"type": "commit", "sha": typed or "HEAD", "title": None}}


COMMANDS: dict[str, Command] = {
    "compact": Command("Shorten the conversation to make room", "", lambda _: ("thread/compact/start", {})),
    "review": Command("Review the changes that are not committed", "what to look for", _review),
    "review-branch": Command("Review the changes against a branch", "branch", _review_branch),
    "review-commit": Command("Review one commit", "sha", _review_commit),
    "init": Command(
        "Write AGENTS.md for this repository", "", lambda _: ("turn/start", {"input": [_text(INIT)]})
    ),
}


def find(blocks: object) -> tuple[str, JsonObject] | None:
    """The request for a prompt that is a command; None for any other prompt."""
    first = next(iter(objects(blocks)), {})
    text = str(first.get("text") or "").strip()
    name, _, typed = text.removeprefix("/").partition(" ")
    if not text.startswith("/") or name not in COMMANDS:
        return None
    return COMMANDS[name].begin(typed.strip())


def commands_update(skills: object) -> JsonObject:
    """`available_commands_update`; `skills` is the answer to `skills/list`."""
    found: list[JsonObject] = []
    for name, command in COMMANDS.items():
        hint = {"input": {"hint": command.hint}} if command.hint else {}
        found.append({"name": name, "description": command.description, **hint})
    for place in objects(skills):
        found += [
            {"name": f"${skill['name']}", "description": str(skill.get("description") or "")}
            for skill in objects(place.get("skills"))
            if skill.get("name") and skill.get("enabled") is not False
        ]
    return {"sessionUpdate": "available_commands_update", "availableCommands": found}


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text, "text_elements": []}
