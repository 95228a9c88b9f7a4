"""Converts the data of agents and clients to the documented types.

A reader takes any JSON value and returns a value of its type, or `WRONG` if that is impossible. Texts are never lost: a
value that should be a text and is not is shown as JSON. A list drops entries that cannot be read; an object keeps its
members beyond the documented ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from dragoman.gateway.json_types import JsonObject, as_object, encode

Reader = Callable[[object], object]
Members = dict[str, Reader]


class Wrong:
    """The type of `WRONG`."""


WRONG = Wrong()

TOOL_KINDS = frozenset(
    {"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"}
)
TOOL_STATES = frozenset({"pending", "in_progress", "completed", "failed"})
SEVERITIES = frozenset({"info", "warning", "error"})


# -- values


def text(value: object) -> str:
    """A text for the user; other values are shown as JSON, a missing value as an empty text."""
    if isinstance(value, str):
        return value
    return "" if value is None else encode(value).decode()


def name(value: object) -> str | Wrong:
    """A text for programs: an id, a path, a kind. Some agents send integers."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else WRONG


def number(value: object) -> float | Wrong:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else WRONG


def flag(value: object) -> bool | Wrong:
    return value if isinstance(value, bool) else WRONG


def anything(value: object) -> object:
    return value


def _or(value: object, otherwise: object) -> object:
    return otherwise if value is WRONG else value


def one_of(known: Collection[str], otherwise: object = WRONG) -> Reader:
    return lambda value: value if isinstance(value, str) and value in known else otherwise


# -- structures


def structure(required: Members, optional: Members | None = None) -> Reader:
    """Reader of an object; an optional member of another type counts as absent."""
    readers = {**required, **(optional or {})}

    def read(value: object) -> object:
        if not isinstance(value, dict):
            return WRONG
        made = {member: told for member, told in value.items() if member not in readers}
        for member, reader in readers.items():
            told = value.get(member)
            known = WRONG if told is None and member not in required else reader(told)
            if known is not WRONG:
                made[member] = known
            elif member in required:
                return WRONG
        return made

    return read


def entries(reader: Reader) -> Callable[[object], list[JsonObject]]:
    """Reader of a list; drops entries that cannot be read."""

    def read(value: object) -> list[JsonObject]:
        told = [reader(entry) for entry in value] if isinstance(value, list) else []
        return [entry for entry in told if isinstance(entry, dict)]

    return read


def named(reader: Reader, id: str) -> Reader:
    """Reader of an entry that is named after its id if it has no name."""
    return lambda value: reader(
        {**value, "name": value.get(id)} if isinstance(value, dict) and not value.get("name") else value
    )


# -- content

_BLOCKS: dict[str, Reader] = {
    "text": structure({"text": text}),
    "image": structure({"data": name, "mimeType": name}, {"uri": name}),
    "audio": structure({"data": name, "mimeType": name}),
    "resource_link": named(
        structure({"uri": name, "name": text}, {"title": text, "mimeType": name, "size": number}), "uri"
    ),
    "resource": structure(
        {"resource": structure({"uri": text}, {"mimeType": name, "text": text, "blob": name})}
    ),
}


def block(value: object) -> JsonObject:
    """A content block; a block of an unknown kind stays as it is."""
    kind = as_object(value).get("type")
    if kind == "text" and isinstance(value, dict) and isinstance(value.get("text"), str):
        return value  # the common case
    made = _BLOCKS.get(kind, anything)(value) if isinstance(kind, str) else WRONG
    return made if isinstance(made, dict) else {"type": "text", "text": text(value)}


def blocks(value: object) -> list[JsonObject]:
    told = value if isinstance(value, list) else [] if value is None else [value]
    return [block(part) for part in told]


_SHOWN = "content"
_CONTENT: dict[str, Reader] = {
    _SHOWN: structure({"content": block}),
    "diff": structure({"path": name, "newText": text}, {"oldText": text}),
    "terminal": structure({"terminalId": name}),
}


def _tool_content(value: object) -> JsonObject:
    kind = as_object(value).get("type")
    if isinstance(kind, str) and kind in _BLOCKS:  # a bare block instead of content with a block in it
        return {"type": _SHOWN, "content": block(value)}
    made = _CONTENT.get(kind, anything)(value) if isinstance(kind, str) else WRONG
    return made if isinstance(made, dict) else {"type": _SHOWN, "content": block(text(value))}


def _all_tool_content(value: object) -> list[JsonObject]:
    return [_tool_content(part) for part in (value if isinstance(value, list) else [value])]


_TOOL: Members = {
    "title": text,
    "kind": one_of(TOOL_KINDS, "other"),
    "status": one_of(TOOL_STATES),
    "content": _all_tool_content,
    "locations": entries(structure({"path": name}, {"line": number})),
}
tool_call = structure({"toolCallId": name}, _TOOL)
tool_question = structure({"toolCallId": lambda value: _or(name(value), "")}, _TOOL)
"""The tool call of a question; it is asked even if the agent gives no tool call id."""
exit_status = structure({}, {"exitCode": number, "signal": name})


# -- what an agent offers, plans and costs


def _plan_entry(value: object) -> object:
    return _PLAN_ENTRY({"content": value} if isinstance(value, str) else value)


_PLAN_ENTRY = structure(
    {"content": text},
    {
        "priority": one_of({"high", "medium", "low"}),
        "status": one_of({"pending", "in_progress", "completed"}),
    },
)
plan = entries(_plan_entry)
commands = entries(structure({"name": name, "description": text}, {"input": structure({}, {"hint": text})}))
_MODE = named(structure({"id": name, "name": text}, {"description": text}), "id")
_mode_list = structure(
    {"availableModes": entries(_MODE), "currentModeId": lambda value: _or(name(value), None)}
)


def modes(value: object) -> JsonObject | None:
    made = _mode_list(value) if isinstance(as_object(value).get("availableModes"), list) else None
    return made if isinstance(made, dict) else None


_CHOICE = named(structure({"value": name, "name": text}, {"description": text}), "value")
_CHOICES = entries(_CHOICE)


def _choice(value: object) -> object:
    """A choice, or a group of choices."""
    if "options" not in as_object(value):
        return _CHOICE(value)
    group = as_object(value)
    label = text(group.get("name") or group.get("group"))
    named_group = _or(name(group.get("group")), label)
    return {**group, "group": named_group, "name": label, "options": _CHOICES(group["options"])}


_OPTION = named(
    structure(
        {"id": name, "name": text},
        {"description": text, "category": name, "options": entries(_choice)},
    ),
    "id",
)


def _option(value: object) -> object:
    made = _OPTION(value)
    if not isinstance(made, dict):
        return WRONG
    current, kind = made.get("currentValue"), made.get("type")
    if not isinstance(kind, str):
        kind = "boolean" if isinstance(current, bool) else "select"
    if kind == "boolean":
        current = current is True
    elif not isinstance(current, bool):
        current = _or(name(current), "")
    return {**made, "type": kind, "currentValue": current}


options = entries(_option)
permission_options = entries(
    named(
        structure({"optionId": name, "name": text, "kind": lambda value: _or(name(value), "other")}),
        "optionId",
    )
)
usage = structure(
    {},
    {"used": number, "size": number, "cost": structure({"amount": number, "currency": name})},
)


def with_offer(fields: JsonObject) -> JsonObject:
    """The fields, with `modes` and `configOptions` only if they are valid."""
    made = {member: told for member, told in fields.items() if member not in ("modes", "configOptions")}
    offered = modes(fields.get("modes"))
    if offered is not None:
        made["modes"] = offered
    if isinstance(fields.get("configOptions"), list):
        made["configOptions"] = options(fields["configOptions"])
    return made
