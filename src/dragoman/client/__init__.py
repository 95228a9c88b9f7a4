"""Drive coding agents from Python: `async with connect() as gateway`. `dragoman.client.sync` is the same without async.

The names in `__all__` are public and change as semantic versioning says; see docs/reference/python-api.md.
"""

from __future__ import annotations

from dragoman.client.connecting import connect
from dragoman.client.errors import (
    CannotConnect,
    ConnectionLost,
    DragomanError,
    LoginRequired,
    NoSuchOption,
    RequestRefused,
    StreamOverflow,
)
from dragoman.client.events import (
    CaughtUp,
    CommandsChanged,
    Event,
    InfoChanged,
    ModeChanged,
    Notice,
    OptionsChanged,
    Plan,
    PlanStep,
    Text,
    Thought,
    ToolStarted,
    ToolUpdated,
    TurnEnded,
    Unknown,
    Usage,
    UserMessage,
)
from dragoman.client.gateway import Gateway, SessionInfo
from dragoman.client.history import FileChange, Message, Rewound, SessionChanges
from dragoman.client.question import Option, Question
from dragoman.client.session import QueuedPrompt, Session
from dragoman.client.stream import EventStream
from dragoman.client.turn import Turn

__all__ = [
    "CannotConnect",
    "CaughtUp",
    "CommandsChanged",
    "ConnectionLost",
    "DragomanError",
    "Event",
    "EventStream",
    "FileChange",
    "Gateway",
    "InfoChanged",
    "LoginRequired",
    "Message",
    "ModeChanged",
    "NoSuchOption",
    "Notice",
    "Option",
    "OptionsChanged",
    "Plan",
    "PlanStep",
    "Question",
    "QueuedPrompt",
    "RequestRefused",
    "Rewound",
    "Session",
    "SessionChanges",
    "SessionInfo",
    "StreamOverflow",
    "Text",
    "Thought",
    "ToolStarted",
    "ToolUpdated",
    "Turn",
    "TurnEnded",
    "Unknown",
    "Usage",
    "UserMessage",
    "connect",
]
