"""Reads a session's options, which clients may set."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.wire.json_types import JsonObject, objects

BUILTIN = "builtin"
NO_MODEL = """\
no model: set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or agents.builtin.model;
/model PROVIDER:NAME takes one for this session, such as /model anthropic:claude-sonnet-4-5"""


def find_option(options: Sequence[JsonObject], name: str) -> JsonObject | None:
    """The option of that category or id, such as `model`."""
    return next((option for option in options if name in (option.get("category"), option.get("id"))), None)


def choices_of(option: JsonObject) -> list[tuple[str, str]]:
    """Values and labels of an option; those of groups are joined."""
    found: list[tuple[str, str]] = []
    for entry in objects(option.get("options")):
        within = objects(entry.get("options"))
        for choice in within or [entry]:
            value = choice.get("value")
            if isinstance(value, str):
                found.append((value, str(choice.get("name") or value)))
    return found


def lacks_model(option: JsonObject) -> bool:
    """Whether the model that is set is the built-in agent's word for none."""
    return option.get("currentValue") == "none"
