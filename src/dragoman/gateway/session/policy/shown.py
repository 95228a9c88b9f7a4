"""The rules of a workspace for people: listed, and tried with a line. The engine is imported when it is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.gateway.json_types import JsonObject

if TYPE_CHECKING:
    from dragoman.policy.decide import Policy


def show_rules(policy: Policy) -> JsonObject:
    """The rules in the order of their authority, and the places that no agent may write to."""
    from dragoman.policy.decide import policy_facts

    return policy_facts(policy)


def try_line(
    policy: Policy, line: str, *, cwd: str, workspace: str, kind: str, agent: str, mode: str, tool: str
) -> JsonObject:
    """What the rules say about a shell line, or about a call of a kind without one."""
    from dragoman.policy.requests.line import act_of_command

    act = act_of_command(line, cwd=cwd, workspace=workspace, kind=kind, agent=agent, mode=mode, tool=tool)
    return policy.decide(act).facts()
