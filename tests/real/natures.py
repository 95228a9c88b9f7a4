"""What each agent does by its own nature, seen through the gateway: observed, and expected until it changes.

A row says what the agent of that version did, not what would be right. A new version of an agent, or a gateway that
learns to make them alike, changes a row here and nothing else.
"""

from __future__ import annotations

USUAL: dict[str, object] = {
    "stop reason after a rejection": "end_turn",
    "status of a rejected tool": "failed",
    "status of a tool whose question was cancelled": "failed",
    "a model that answers 400": "error",
    "status of a command that was cancelled": "failed",
    "ways back after a kill": {"resume"},
    "loads a session in the minute of its beginning": True,
    "has a list of its sessions": True,
    "files are written through a client that offers it": True,
    "processes of two sessions that share an agent": 1,
    "a change of model is tested": True,
    "mediation": "asking",
    "rules see reads": True,
}
"""Behaviour, and what most agents do."""

OBSERVED: dict[tuple[str, str, str], object] = {
    ("claude", "2.1.325", "mediation"): "full",
    ("claude-agent-acp", "0.99.1", "mediation"): "full",
    ("opencode", "1.18.33", "mediation"): "full",
    ("qwen", "0.24.4", "mediation"): "full",
    ("gemini", "0.61.0", "rules see reads"): False,
    ("codex-acp", "2.6.0", "stop reason after a rejection"): "cancelled",
    # Within the minute of session/new its session/load fails; after it, load works.
    ("gemini", "0.61.0", "ways back after a kill"): {"seed", "load"},
    ("gemini", "0.61.0", "loads a session in the minute of its beginning"): False,
    # list and resume are Dragoman's own there.
    ("gemini", "0.61.0", "has a list of its sessions"): False,
    ("opencode", "1.18.33", "status of a command that was cancelled"): "completed",
    ("gemini", "0.61.0", "status of a command that was cancelled"): "completed",
    # All but the one in use need a login.
    ("qwen", "0.24.4", "a change of model is tested"): False,
    ("claude-agent-acp", "0.99.1", "files are written through a client that offers it"): False,
    # Not offered to it: an error for a file that is not there yet makes its write fail.
    ("gemini", "0.61.0", "files are written through a client that offers it"): False,
    ("claude", "2.1.325", "processes of two sessions that share an agent"): 2,
    ("claude", "2.1.325", "files are written through a client that offers it"): False,
    ("codex", "0.166.0", "files are written through a client that offers it"): False,
    ("codex-acp", "2.6.0", "files are written through a client that offers it"): False,
}
"""Agent, version, behaviour, and what is observed."""


def expected(agent: str, version: str, behaviour: str) -> object:
    """What this agent does; a behaviour that is not in the table of usual ones is a mistake."""
    return OBSERVED.get((agent, version, behaviour), USUAL[behaviour])
