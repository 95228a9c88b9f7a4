"""What each mode lets the tools do; the toolbox enforces the table, whatever the model's instructions say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

Effect = Literal["read", "note", "write", "execute", "fetch", "external", "export"]
"""What a tool does: reads, changes the agent's own state such as the plan, changes files, runs programs, uses the
network, calls a tool of an MCP server, or copies the changes in the box to the workspace."""

Verdict = Literal["allow", "ask", "deny"]


@dataclass(frozen=True, slots=True)
class Mode:
    """One row of the table."""

    id: str
    name: str
    description: str
    verdicts: Mapping[Effect, Verdict]
    boxed: bool = False
    """File and command tools work in a box that holds only a copy of the workspace, unless configured otherwise."""
    guidance: str = ""
    """Part of the model's instructions, so that it does not try what the mode denies."""


def _verdicts(*, ask: Sequence[Effect], allow: Sequence[Effect] = ()) -> Mapping[Effect, Verdict]:
    """Reading and notes are allowed in every mode; what is not named is denied."""
    always: Sequence[Effect] = ("read", "note")
    return {
        **dict.fromkeys(get_args(Effect), "deny"),
        **dict.fromkeys(ask, "ask"),
        **dict.fromkeys((*always, *allow), "allow"),
    }


MODES: dict[str, Mode] = {
    mode.id: mode
    for mode in (
        Mode(
            "full",
            "Full Access",
            "All tools available; changes and commands ask first",
            _verdicts(ask=("write", "execute", "fetch", "external")),
        ),
        Mode(
            "read-only",
            "Read-Only",
            "No local writes or execution",
            _verdicts(ask=("fetch",)),
            guidance="You can read and search, but not change files or run commands.",
        ),
        Mode(
            "safe",
            "Safe Mode",
            "Excludes potentially dangerous tools: no commands, no network, edits ask first",
            _verdicts(ask=("write",)),
            guidance="You cannot run commands or reach the network; edits are shown to the user first.",
        ),
        Mode(
            "sandbox",
            "Sandbox Mode",
            "Disables local file and shell tools: they, and `sandbox_*`, work in a box without network, and nothing "
            "asks; /apply takes changes over",
            _verdicts(allow=("write", "execute"), ask=("export",)),
            boxed=True,
            guidance="Your tools for files and commands (also under the names `sandbox_...`) work in a box: a copy of "
            "this workspace, without network. The user's files change only when they let `apply` take yours over.",
        ),
        Mode(
            "plan",
            "Plan",
            "Reads, thinks and writes a plan; changes nothing",
            _verdicts(ask=("fetch",)),
            guidance="Investigate, then record a plan with the `plan` tool and stop. Change nothing.",
        ),
    )
}
"""In the order that clients show them; the first is the default."""

DEFAULT = "full"


def modes_state(current: str) -> dict[str, Any]:
    """The `modes` of a session in ACP's form."""
    return {
        "currentModeId": current,
        "availableModes": [
            {"id": mode.id, "name": mode.name, "description": mode.description} for mode in MODES.values()
        ],
    }
