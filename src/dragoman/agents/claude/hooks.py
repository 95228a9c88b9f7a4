"""Hooks of `claude` over its control protocol: every tool call is told before it runs, reads too.

`claude` 2.1 asks `can_use_tool` only about what its own rules do not allow. A hook is called for each call, in every
mode and before those rules. An answer without a decision leaves the call to them.
"""

from __future__ import annotations

from dragoman.agents.native.permission import Opinion
from dragoman.wire.json_types import JsonObject

PRE_TOOL_USE = "PreToolUse"
REGISTRATION: JsonObject = {
    PRE_TOOL_USE: [{"matcher": None, "hookCallbackIds": ["dragoman_rules"], "timeout": 600}]
}
"""For `initialize`. The seconds are far above what rules need: after them the call would go on."""


def answer(opinion: Opinion) -> JsonObject:
    """The hook's answer to `claude`. With `ask` it sends `can_use_tool`, and a person is asked."""
    if opinion.decision == "none":
        return {}
    decided = {"hookEventName": PRE_TOOL_USE, "permissionDecision": opinion.decision}
    if opinion.decision == "deny":
        told = f": {opinion.reason}" if opinion.reason is not None else "."
        decided["permissionDecisionReason"] = f"A rule does not allow this{told}"
    return {"hookSpecificOutput": decided}
