"""What each mode lets the tools do; the table is enforced where tools run, whatever the model was told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Effect = Literal["read", "note", "write", "execute", "fetch", "external"]
"""What a tool does to the world: looks, keeps a plan, changes files, runs programs, reaches the network, or
whatever the tool of an MCP server does."""

Verdict = Literal["allow", "ask", "deny"]


@dataclass(frozen=True, slots=True)
class Mode:
    """One row of the table."""

    id: str
    name: str
    description: str
    verdicts: Mapping[Effect, Verdict]
    boxed: bool = False
    """Commands run in a box that has the workspace and nothing else."""
    guidance: str = ""
    """What a model is told, so that it does not run into walls."""


MODES: dict[str, Mode] = {
    mode.id: mode
    for mode in (
        Mode(
            "full",
            "Full Access",
            "All tools available; changes and commands ask first",
            {
                "read": "allow",
                "note": "allow",
                "write": "ask",
                "execute": "ask",
                "fetch": "ask",
                "external": "ask",
            },
        ),
        Mode(
            "read-only",
            "Read-Only",
            "No local writes or execution",
            {
                "read": "allow",
                "note": "allow",
                "write": "deny",
                "execute": "deny",
                "fetch": "ask",
                "external": "deny",
            },
            guidance="You can read and search, but not change files or run commands.",
        ),
        Mode(
            "safe",
            "Safe Mode",
            "Excludes potentially dangerous tools: no commands, no network, edits ask first",
            {
                "read": "allow",
                "note": "allow",
                "write": "ask",
                "execute": "deny",
                "fetch": "deny",
                "external": "deny",
            },
            guidance="You cannot run commands or reach the network; edits are shown to the user first.",
        ),
        Mode(
            "sandbox",
            "Sandbox Mode",
            "Changes stay in the workspace and commands run in a box without network; nothing asks",
            {
                "read": "allow",
                "note": "allow",
                "write": "allow",
                "execute": "allow",
                "fetch": "deny",
                "external": "deny",
            },
            boxed=True,
            guidance="Commands run in a box that has this workspace and no network.",
        ),
        Mode(
            "plan",
            "Plan",
            "Reads, thinks and writes a plan; changes nothing",
            {
                "read": "allow",
                "note": "allow",
                "write": "deny",
                "execute": "deny",
                "fetch": "ask",
                "external": "deny",
            },
            guidance="Investigate, then record a plan with the `plan` tool and stop. Change nothing.",
        ),
    )
}
"""In the order that clients show them; the first is the default."""

DEFAULT = "full"


def modes_state(current: str) -> dict[str, Any]:
    """The `modes` of a session as ACP has them."""
    return {
        "currentModeId": current,
        "availableModes": [
            {"id": mode.id, "name": mode.name, "description": mode.description} for mode in MODES.values()
        ],
    }
