"""The documented types of the bridge's events, as `web/src/bridge/events.ts` has them: to check what is emitted."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

Json = dict[str, Any]
Maybe = UnsetType | None

KINDS = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"
]
STATES = Literal["pending", "in_progress", "completed", "failed"]


class Shape(msgspec.Struct, rename="camel"):
    """Members beyond these may come."""


class Location(Shape):
    path: str
    line: float | Maybe = UNSET


class ExitStatus(Shape):
    exit_code: float | Maybe = UNSET
    signal: str | Maybe = UNSET


class Terminal(Shape):
    terminal_id: str
    output: str
    exit_status: ExitStatus | UnsetType = UNSET
    truncated: bool | UnsetType = UNSET
    tool_call_id: str | UnsetType = UNSET


class Call(Shape):
    tool_call_id: str
    title: str | UnsetType = UNSET
    kind: KINDS | UnsetType = UNSET
    status: STATES | UnsetType = UNSET
    content: list[Json] | UnsetType = UNSET
    locations: list[Location] | UnsetType = UNSET
    terminal: Terminal | UnsetType = UNSET

    def __post_init__(self) -> None:
        for part in self.content or []:
            check_content(part)


class Started(Call):
    tool_name: str = msgspec.field(default="")
    arguments: Any = None


class Option(Shape):
    option_id: str
    name: str
    kind: str


class Outcome(Shape):
    outcome: Literal["selected", "cancelled"]
    option_id: str | UnsetType = UNSET


class Resolved(Shape):
    request_id: str | None
    outcome: Outcome
    by: str
    client: str | UnsetType = UNSET
    tool_call_id: str | UnsetType = UNSET


class Approved(Shape):
    request_id: str
    by: str
    at: str
    client: str | UnsetType = UNSET


class Question(Shape):
    request_id: str
    tool_call: Call
    options: list[Option]


class Form(Shape):
    request_id: str
    mode: Literal["form", "url"]
    message: str
    requested_schema: Json | UnsetType = UNSET
    url: str | UnsetType = UNSET


class FormResolved(Shape):
    request_id: str
    action: Literal["accept", "decline", "cancel"]
    by: str
    client: str | UnsetType = UNSET


class Entry(Shape):
    content: str
    priority: Literal["high", "medium", "low"] | UnsetType = UNSET
    status: Literal["pending", "in_progress", "completed"] | UnsetType = UNSET


class Plan(Shape):
    entries: list[Entry]


class Hint(Shape):
    hint: str | UnsetType = UNSET


class Command(Shape):
    name: str
    description: str
    input: Hint | UnsetType = UNSET


class Commands(Shape):
    commands: list[Command]


class Choice(Shape):
    name: str
    value: str | UnsetType = UNSET
    group: str | UnsetType = UNSET
    options: list[Choice] | UnsetType = UNSET
    description: str | UnsetType = UNSET

    def __post_init__(self) -> None:
        if (self.value is UNSET) == (self.options is UNSET) and self.options is UNSET:
            raise ValueError("neither a choice nor a group")


class ConfigOption(Shape):
    id: str
    name: str
    type: str
    current_value: str | bool
    options: list[Choice] | UnsetType = UNSET
    category: str | UnsetType = UNSET
    description: str | UnsetType = UNSET


class ConfigOptions(Shape):
    options: list[ConfigOption]


class Mode(Shape):
    id: str
    name: str
    description: str | UnsetType = UNSET


class Modes(Shape):
    current_mode_id: str | None
    available_modes: list[Mode]


class Info(Shape):
    title: str | Maybe = UNSET
    state: str | UnsetType = UNSET
    modes: Modes | UnsetType = UNSET
    config_options: list[ConfigOption] | UnsetType = UNSET


class Cost(Shape):
    amount: float
    currency: str


class Usage(Shape):
    used: float | UnsetType = UNSET
    size: float | UnsetType = UNSET
    cost: Cost | UnsetType = UNSET


class Notice(Shape):
    title: str
    severity: Literal["info", "warning", "error"]


class Message(Shape):
    content: Json
    client_message_id: str | UnsetType = UNSET
    author: Literal["agent"] | UnsetType = UNSET

    def __post_init__(self) -> None:
        check_block(self.content)


class Chunk(Shape):
    content: str
    block: Json | UnsetType = UNSET
    message_id: str | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.block is not UNSET:
            check_block(self.block)


class Failure(Shape):
    code: str
    message: str
    hint: str | UnsetType = UNSET


class TurnEnd(Shape):
    stop_reason: str | None
    error: Failure | UnsetType = UNSET


class Queued(Shape):
    client_message_id: str
    content: list[Json]
    held: str | UnsetType = UNSET
    stopped: bool | UnsetType = UNSET

    def __post_init__(self) -> None:
        for part in self.content:
            check_block(part)


class Queue(Shape):
    queue: list[Queued]


class ModeChanged(Shape):
    mode_id: str


class ModelChanged(Shape):
    model_id: str


class Setting(Shape):
    name: str
    value: Any


class Exited(Shape):
    message: str
    expected: bool


class Revived(Shape):
    rung: str


class Unknown(Shape):
    raw: Any


class Rewound(Shape):
    undone: list[tuple[int, int]]
    by: str
    message: int | UnsetType = UNSET
    undo: bool | UnsetType = UNSET


class Nothing(Shape):
    pass


DOCUMENTED: dict[str, type] = {
    "user_message": Message,
    "message_chunk": Chunk,
    "thought_chunk": Chunk,
    "tool_call_started": Started,
    "tool_call_progress": Call,
    "tool_call_completed": Call,
    "permission_request": Question,
    "permission_approved": Approved,
    "permission_resolved": Resolved,
    "elicitation_request": Form,
    "elicitation_resolved": FormResolved,
    "terminal_output": Terminal,
    "plan_created": Plan,
    "mode_changed": ModeChanged,
    "model_changed": ModelChanged,
    "config_options": ConfigOptions,
    "setting_chosen": Setting,
    "commands_available": Commands,
    "usage": Usage,
    "session_info": Info,
    "notice": Notice,
    "queue_changed": Queue,
    "turn_complete": TurnEnd,
    "agent_exited": Exited,
    "agent_revived": Revived,
    "session_parked": Nothing,
    "conversation_rewound": Rewound,
    "unknown_update": Unknown,
}
BLOCKS: dict[str, dict[str, type]] = {
    "text": {"text": str},
    "image": {"data": str, "mimeType": str},
    "audio": {"data": str, "mimeType": str},
    "resource_link": {"uri": str, "name": str},
    "resource": {"resource": dict},
}
CONTENT: dict[str, dict[str, type]] = {
    "content": {"content": dict},
    "diff": {"path": str, "newText": str},
    "terminal": {"terminalId": str},
}


def check_members(value: Json, table: dict[str, dict[str, type]]) -> None:
    assert isinstance(value["type"], str)
    for member, wanted in table.get(value["type"], {}).items():
        assert isinstance(value[member], wanted), value


def check_block(value: Json) -> None:
    check_members(value, BLOCKS)
    if value["type"] == "resource":
        assert all(isinstance(told, str) for name, told in value["resource"].items() if name in RESOURCE)


def check_content(value: Json) -> None:
    check_members(value, CONTENT)
    if value["type"] == "content":
        check_block(value["content"])


RESOURCE = ("uri", "mimeType", "text", "blob")


def check_event(event: Json) -> None:
    """Raises when an event of the journal has other types than its documented ones."""
    msgspec.convert(event, DOCUMENTED[event["type"]], strict=True)


class Snapshot(Shape):
    title: str | None
    modes: Modes | None
    config_options: list[ConfigOption]
    commands: list[Command]
    plan: list[Entry]
    queue: list[Queued]
    usage: Usage | None


def check_snapshot(session: Json) -> None:
    msgspec.convert(session, Snapshot, strict=True)
