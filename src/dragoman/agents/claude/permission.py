"""`can_use_tool` as a permission question: the user's choices, and the answer to `claude` for each."""

from __future__ import annotations

from collections.abc import Callable

from dragoman.agents.native.permission import Choice, choice, picked
from dragoman.wire.json_types import JsonObject, as_object, objects

SCOPES = {
    "session": "in this session",
    "localSettings": "in this project",
    "projectSettings": "in this project, for all its users",
    "userSettings": "in all projects",
    "cliArg": "in this session",
}
PLAN_EXITS = (
    ("acceptEdits", "Yes, and accept edits", "allow_always"),
    ("default", "Yes, and ask before edits", "allow_once"),
)
"""Choices for a finished plan: the mode that follows it."""


def choices(request: JsonObject) -> list[Choice]:
    """Once, always, or no; each of claude's suggestions is a separate "always", so that its name says all it allows."""
    name, given = str(request.get("tool_name")), request.get("input")
    allow: JsonObject = {"behavior": "allow", "updatedInput": given if isinstance(given, dict) else {}}
    if name == "ExitPlanMode":
        return [*_plan_exits(allow), _reject("No, keep planning")]
    always = [
        choice(
            f"allow_always_{number}",
            f"Always allow {_scope(name, suggestion)}",
            "allow_always",
            {**allow, "updatedPermissions": [suggestion]},
        )
        for number, suggestion in enumerate(objects(request.get("permission_suggestions")), 1)
    ]
    return [choice("allow", "Allow once", "allow_once", allow), *always, _reject("Reject")]


def answers(given: JsonObject, question: JsonObject) -> list[Choice]:
    """The choices for one question of `AskUserQuestion`; the chosen label is returned with the input."""
    text = str(question.get("question", ""))
    options = question.get("options")
    found = []
    for number, option in enumerate(options if isinstance(options, list) else []):
        label = str(option.get("label", "")) if isinstance(option, dict) else str(option)
        earlier = given.get("answers")
        answered = {**(earlier if isinstance(earlier, dict) else {}), text: label}
        found.append(
            choice(
                f"answer_{number}",
                label,
                "allow_once",
                {"behavior": "allow", "updatedInput": {**given, "answers": answered}},
            )
        )
    return [*found, _reject("Do not answer")]


WITHDRAWN: JsonObject = {"behavior": "deny", "message": "The question was withdrawn.", "interrupt": True}
"""The answer for any outcome but a selected choice: denies, and ends the turn."""


def chosen(offered: list[Choice], outcome: object) -> JsonObject:
    """The answer to `claude`."""
    answer = as_object(picked(offered, outcome, WITHDRAWN))
    reason = as_object(outcome).get("reason")
    if answer.get("behavior") == "deny" and isinstance(reason, str):
        return {**answer, "message": f"A rule does not allow this: {reason}"}
    return answer


def _plan_exits(allow: JsonObject) -> list[Choice]:
    return [
        choice(
            mode,
            title,
            kind,
            {**allow, "updatedPermissions": [{"type": "setMode", "mode": mode, "destination": "session"}]},
        )
        for mode, title, kind in PLAN_EXITS
    ]


def _scope(name: str, suggestion: JsonObject) -> str:
    """What one suggestion would allow, and where."""
    scope = SCOPES.get(str(suggestion.get("destination")), "")
    read = SUGGESTED.get(str(suggestion.get("type")))
    what = read(suggestion) if read is not None else ""
    return f"{what or name} {scope}".strip()


def _rules(suggestion: JsonObject) -> str:
    rules = objects(suggestion.get("rules"))
    return ", ".join(
        f"`{rule['ruleContent']}`" if rule.get("ruleContent") else str(rule.get("toolName")) for rule in rules
    )


def _mode(suggestion: JsonObject) -> str:
    return "all edits" if suggestion.get("mode") == "acceptEdits" else f"mode {suggestion.get('mode')}"


def _folders(suggestion: JsonObject) -> str:
    folders = suggestion.get("directories")
    return f"access to {', '.join(map(str, folders))}" if isinstance(folders, list) else ""


SUGGESTED: dict[str, Callable[[JsonObject], str]] = {
    "addRules": _rules,
    "setMode": _mode,
    "addDirectories": _folders,
}


def _reject(name: str) -> Choice:
    answer = {"behavior": "deny", "message": "The user said no to this."}
    return choice("reject", name, "reject_once", answer)
