"""What clients answer and advertise, ready to use."""

from __future__ import annotations

from typing import Any

ALLOW: dict[str, Any] = {"outcome": {"outcome": "selected", "optionId": "yes"}}
REJECT: dict[str, Any] = {"outcome": {"outcome": "selected", "optionId": "no"}}
CANCELLED: dict[str, Any] = {"outcome": {"outcome": "cancelled"}}

EVERYTHING: dict[str, Any] = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "elicitation": {"form": {}, "url": {}},
    "session": {"configOptions": {"boolean": {}}},
}
"""Client capabilities of an editor that can do all."""
