"""Events for the conversation's components, as the bridge would send them (without number and time)."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

Event = dict[str, Any]


def picture(width: int = 96, height: int = 64) -> str:
    """A small PNG with a gradient, in base64."""
    rows = b"".join(
        b"\0" + bytes(value for x in range(width) for value in (40 + 2 * x % 200, 90 + 2 * y % 150, 200))
        for y in range(height)
    )

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )
    return base64.b64encode(data).decode()


def user(text: str, *more: Event) -> list[Event]:
    return [{"type": "user_message", "content": block} for block in ({"type": "text", "text": text}, *more)]


def says(text: str) -> Event:
    return {"type": "message_chunk", "content": text}


def thinks(text: str) -> Event:
    return {"type": "thought_chunk", "content": text}


def started(call: str, title: str, kind: str, arguments: Any = None, **more: Any) -> Event:
    event = {"type": "tool_call_started", "toolCallId": call, "toolName": kind, "title": title, "kind": kind}
    return {**event, "arguments": arguments, **more}


def progress(call: str, **more: Any) -> Event:
    return {"type": "tool_call_progress", "toolCallId": call, **more}


def completed(call: str, status: str = "completed", result: Any = None, **more: Any) -> Event:
    return {"type": "tool_call_completed", "toolCallId": call, "status": status, "result": result, **more}


def text(value: str) -> Event:
    return {"type": "content", "content": {"type": "text", "text": value}}


def diff(path: str, before: str | None, after: str) -> Event:
    return {"type": "diff", "path": path, "oldText": before, "newText": after}


def ended(reason: str | None = "end_turn", **more: Any) -> Event:
    return {"type": "turn_complete", "stopReason": reason, **more}


OPTIONS = [
    {"optionId": "once", "name": "Allow once", "kind": "allow_once"},
    {"optionId": "always", "name": "Always allow", "kind": "allow_always"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]


def asks(request: str, call: Event, options: list[Event] | None = None) -> Event:
    return {
        "type": "permission_request",
        "requestId": request,
        "toolCall": call,
        "options": OPTIONS if options is None else options,
    }


def answered(request: str, option: str, by: str) -> Event:
    outcome = {"outcome": "selected", "optionId": option}
    return {"type": "permission_resolved", "requestId": request, "outcome": outcome, "by": by}


BEFORE = '''import json
from pathlib import Path


def load(path: Path) -> dict[str, str]:
    """Read the settings file."""
    with open(path) as file:
        data = json.load(file)
    return data


def names(settings: dict[str, str]) -> list[str]:
    return sorted(settings)


def first(settings: dict[str, str]) -> str:
    return names(settings)[0]


def describe(settings: dict[str, str]) -> str:
    lines = []
    for name in names(settings):
        lines.append(f"{name} = {settings[name]}")
    return "\\n".join(lines)


def count(settings: dict[str, str]) -> int:
    return len(settings)
'''
AFTER = BEFORE.replace(
    "    with open(path) as file:\n        data = json.load(file)\n    return data\n",
    '    if not path.exists():\n        return {}\n    data = json.loads(path.read_text(encoding="utf-8"))\n'
    "    return {str(name): str(value) for name, value in data.items()}\n",
).replace("    return len(settings)", "    return len(names(settings))")

COLOURS = (
    "\x1b[1m============================= test session starts =============================\x1b[0m\n"
    "collected 42 items\n\n"
    "tests/test_load.py \x1b[32m.\x1b[0m\x1b[32m.\x1b[0m\x1b[31mF\x1b[0m\x1b[33ms\x1b[0m\x1b[32m......\x1b[0m"
    "                                  [ 24%]\n"
    "\x1b[31m\x1b[1m______________________ test_missing_file_is_empty ______________________\x1b[0m\n"
    "    \x1b[94mdef\x1b[39;49;00m \x1b[92mtest_missing_file_is_empty\x1b[39;49;00m():\n"
    ">       \x1b[94massert\x1b[39;49;00m load(Path(\x1b[33m'none.json'\x1b[39;49;00m)) == {}\n"
    "\x1b[1m\x1b[31mE       FileNotFoundError: [Errno 2] No such file: 'none.json'\x1b[0m\n"
    "\x1b[38;5;208m256 colours\x1b[0m and \x1b[38;2;120;160;255mtrue colour\x1b[0m, "
    "\x1b[7minverse\x1b[0m, \x1b[4munderlined\x1b[0m, \x1b[2mdim\x1b[0m, \x1b[44;97m on blue \x1b[0m\n"
    "\x1b[31m=================== \x1b[31m\x1b[1m1 failed\x1b[0m, \x1b[32m40 passed\x1b[0m, "
    "\x1b[33m1 skipped\x1b[0m\x1b[31m in 0.62s ====================\x1b[0m\n"
)

PROSE = """I found it. `load` opens the file **before** it asks whether there is one, so a fresh checkout fails.

## What I changed

1. `load` returns an empty mapping when the file is missing
2. values are read as text, so a number in the file is no surprise

   ```python
   load(Path("none.json"))  # {}
   ```
3. the tests cover both

| Case | Before | After |
|:---|---:|---:|
| missing file | error | `{}` |
| number as value | `TypeError` later | `"3"` |

```python
def load(path: Path) -> dict[str, str]:
    \"\"\"Read the settings file.\"\"\"
    if not path.exists():
        return {}
    data = json.loads(path.read_text(encoding="utf-8"))
    return {str(name): str(value) for name, value in data.items()}
```

> The format is described in [the docs](https://example.org/settings), which say nothing about missing files.

- [x] load
- [ ] write it back ~~today~~ tomorrow
"""


def gallery() -> list[Event]:
    """One of everything."""
    path = "/home/ada/project/src/settings.py"
    return [
        *user(
            "The settings in @src/settings.py fail on a fresh checkout, see the picture. Can you fix that?",
            {"type": "image", "data": picture(), "mimeType": "image/png"},
            {"type": "resource_link", "uri": f"file://{path}", "name": "settings.py", "size": 812},
        ),
        thinks("**Reading first.** The traceback says `FileNotFoundError`, so the file is opened without a check."),
        {
            "type": "plan_created",
            "entries": [
                {"content": "Read the settings module", "priority": "medium", "status": "completed"},
                {"content": "Make a missing file an empty mapping", "priority": "high", "status": "in_progress"},
                {"content": "Cover both cases with tests", "priority": "medium", "status": "pending"},
            ],
        },
        started("read", f"Read {path}", "read", {"path": path}, locations=[{"path": path, "line": 5}]),
        completed("read", content=[text(BEFORE)]),
        started("grep", "Search for `load(` in src", "search", {"pattern": "load\\("}),
        completed("grep", content=[text("src/settings.py:5\nsrc/app.py:18")]),
        says("The file is opened before anybody asks whether it is there. I change that now."),
        started("edit", f"Edit {path}", "edit", {"path": path}, locations=[{"path": path, "line": 5}]),
        asks("q0", {"toolCallId": "edit", "title": f"Edit {path}", "kind": "edit"}),
        answered("q0", "once", "zed"),
        completed("edit", content=[diff(path, BEFORE, AFTER)]),
        started("test", "`pytest tests/test_load.py`", "execute", {"command": "pytest tests/test_load.py --color=yes"},
                content=[{"type": "terminal", "terminalId": "t1"}]),
        {"type": "terminal_output", "terminalId": "t1", "output": COLOURS, "exitStatus": {"exitCode": 1}},
        completed("test", "failed"),
        started("fetch", "Fetch https://example.org/settings", "fetch", {"url": "https://example.org/settings"}),
        completed("fetch", "failed", content=[text("The server answered 503. Try again in a minute.")]),
        {"type": "mode_changed", "modeId": "code"},
        says(PROSE),
        {"type": "notice", "title": "The agent was restarted; it knows the conversation.", "severity": "warning"},
        {"type": "unknown_update", "raw": {"sessionUpdate": "hologram", "depth": 3}},
        ended("max_tokens"),
        *user("Go on."),
        ended(None, error={"code": "agent_failed", "message": "The model's server did not answer.",
                           "hint": "Check the network, then send your message again."}),
        *user("And now run the whole suite."),
        started("all", "`make test`", "execute", {"command": "make test"}, status="in_progress"),
    ]  # fmt: skip
