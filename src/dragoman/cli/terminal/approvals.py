"""Who has to approve a question, in words for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from dragoman.cli.terminal.screen import one_line
from dragoman.wire.json_types import JsonObject, objects


def approval_lines(approval: JsonObject) -> Iterator[str]:
    """Who has to approve, who did, and since when it waits; nothing for a question that the first answer decides."""
    if not approval:
        return
    for rule in objects(approval.get("rules")):
        approvers = rule.get("approvers")
        who = " or ".join(map(str, approvers)) if isinstance(approvers, list) and approvers else "anyone"
        yield one_line(f"needs {rule.get('approvals')} of {who} (rule {rule.get('rule')})")
    for one in objects(approval.get("said")):
        yield one_line(f"approved by {one.get('by')} at {one.get('at')}")
    yield one_line(f"prompted by {approval.get('promptedBy')}, waits since {approval.get('since')}")
