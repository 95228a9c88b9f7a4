"""Prompts for the scripted agent that look like work: what a page has to show, in one place."""

from __future__ import annotations

import json
from typing import Any

DIFF = {
    "type": "diff",
    "path": "src/greeting.py",
    "oldText": "def greet(name):\n    print('hello ' + name)\n",
    "newText": "def greet(name: str) -> None:\n    print(f'Good day, {name}!')\n",
}


def update(update_kind: str, /, **fields: Any) -> str:
    return "update " + json.dumps({"sessionUpdate": update_kind, **fields})


def say(markdown: str) -> str:
    """One chunk, whatever lines it has: a directive is a line."""
    return update("agent_message_chunk", content={"type": "text", "text": markdown})


def plan(*states: str) -> str:
    steps = ("Find the greeting", "Make it friendlier", "Run the tests")
    entries = [
        {"content": step, "priority": "medium", "status": state}
        for step, state in zip(steps, states, strict=True)
    ]
    return update("plan", entries=entries)


READ = update(
    "tool_call",
    toolCallId="read-1",
    title="Read src/greeting.py",
    kind="read",
    status="completed",
    locations=[{"path": "src/greeting.py"}],
    rawInput={"path": "src/greeting.py"},
    rawOutput={"text": "def greet(name):\n    print('hello ' + name)\n"},
)
EDIT = update(
    "tool_call",
    toolCallId="edit-1",
    title="Edit src/greeting.py",
    kind="edit",
    status="completed",
    locations=[{"path": "src/greeting.py", "line": 1}],
    content=[DIFF],
)
USAGE = update("usage_update", used=48_200, size=200_000, cost={"amount": 0.137, "currency": "USD"})
QUESTION = "permission " + json.dumps(
    {
        "toolCall": {
            "toolCallId": "run-1",
            "title": "python -m pytest -q",
            "kind": "execute",
            "status": "pending",
            "rawInput": {"command": "python -m pytest -q", "cwd": "/work"},
        }
    }
)
RAN = update(
    "tool_call_update",
    toolCallId="run-1",
    status="completed",
    content=[{"type": "content", "content": {"type": "text", "text": "12 passed in 0.31s"}}],
)
TERMINAL = update(
    "tool_call",
    toolCallId="heat-1",
    title="heat",
    kind="execute",
    status="in_progress",
    content=[{"type": "terminal", "terminalId": "heat-1"}],
) + "\n" + update(
    "tool_call_update",
    toolCallId="heat-1",
    status="completed",
    _meta={
        "terminal_output": {"terminal_id": "heat-1", "data": "getting \x1b[31mwarm\x1b[0m\n"},
        "terminal_exit": {"terminal_id": "heat-1", "exit_code": 0, "signal": None},
    },
)  # fmt: skip
ANSWER = say(
    "The greeting is **friendlier** now:\n\n"
    "```python\ndef greet(name: str) -> None:\n    print(f'Good day, {name}!')\n```\n\n"
    "- the type hints are new\n- nothing else calls `greet`\n"
)


def script(*lines: str) -> str:
    return "\n".join(lines)
