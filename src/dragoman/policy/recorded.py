"""An act as it is recorded: with all that rules are matched against, so that other rules can be tried on it later."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

import msgspec

from dragoman.policy.act import Act

HIDDEN = "***"
"""Stands for the values of variables before a command, which may be secrets; rules look at their names alone."""
SETTING = frozenset({"declare", "env", "export", "local", "readonly", "set", "typeset"})
"""Programs whose arguments `NAME=value` are variables."""
_NAMES = {"promptedBy": "prompted_by", "labelOnly": "label_only"}
_MORE = ("project", "switch")
"""Members that `Act.facts` leaves out, and a decision depends on."""
_WHOLE = ("commands", "wrappers", "paths")


def recorded(act: Act) -> dict[str, Any]:
    """As `Act.facts`, with commands and their paths whole; what is as usual is left out of a command."""
    facts = act.facts()
    facts.update({name: [_told(each) for each in getattr(act, name)] for name in _WHOLE})
    facts["hosts"] = list(act.hosts)
    facts.update({name: value for name in _MORE if (value := getattr(act, name))})
    assigned = _assigned(act)
    names = "|".join(map(re.escape, assigned))
    in_words = re.compile(rf"\b({names})=.*", re.DOTALL) if names else None
    for command in (*facts["commands"], *facts["wrappers"]):
        if "env" in command:
            command["env"] = dict.fromkeys(command["env"], HIDDEN)
        if (
            in_words is not None
        ):  # `env TOKEN=abc`, `bash -c "TOKEN=abc …"`: a short value is not searched for
            for member in ("words", "names"):
                command[member] = [in_words.sub(rf"\1={HIDDEN}", word) for word in command.get(member, ())]
    return facts


def secrets_of(act: Act) -> list[str]:
    """The values of variables before commands, which must not be recorded elsewhere either."""
    return [value for values in _assigned(act).values() for value in values]


def _assigned(act: Act) -> dict[str, list[str]]:
    """The values of all variables that the commands are given or set, by name."""
    found: dict[str, list[str]] = {}
    for command in (*act.commands, *act.wrappers):
        for name, value in command.env.items():
            found.setdefault(name, []).append(value)
        for word in command.words[1:] if command.words[:1] and command.words[0] in SETTING else ():
            name, equals, value = word.partition("=")
            if equals and name.isidentifier():
                found.setdefault(name, []).append(value)
    return found


def act_of(facts: dict[str, Any]) -> Act:
    """The act that was recorded. Raises `ValueError` for what is none."""
    told = {_NAMES.get(name, name): value for name, value in facts.items()}
    known = {field.name for field in fields(Act)}
    try:
        return msgspec.convert({name: told[name] for name in told if name in known}, Act)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error


def _told(value: Any) -> dict[str, Any]:
    """A command or one of its parts."""
    return {
        field.name: _plain(found)
        for field in fields(value)
        if (found := getattr(value, field.name)) != _default(field)
    }


def _default(field: Any) -> object:
    if field.default is not MISSING:
        return field.default
    return field.default_factory() if field.default_factory is not MISSING else MISSING


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return _told(value)
    return [_plain(each) for each in value] if isinstance(value, tuple) else value
