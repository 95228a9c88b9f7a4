"""The rules of a workspace for people: listed, and tried with a line. The engine is imported when it is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.gateway.json_types import JsonObject

if TYPE_CHECKING:
    from dragoman.policy.decide import Policy
    from dragoman.policy.memory.file import Remembered


def show_rules(policy: Policy) -> JsonObject:
    """The rules in the order of their authority, and the places that no agent may write to."""
    from dragoman.policy.decide import policy_facts

    return policy_facts(policy)


def try_line(
    policy: Policy,
    line: str,
    remembered: Remembered | None = None,
    *,
    cwd: str,
    workspace: str,
    kind: str,
    agent: str,
    mode: str,
    tool: str,
    session: str = "",
) -> JsonObject:
    """What rules and remembered answers say about a shell line, or about a call of a kind without one."""
    from dragoman.policy.requests.line import act_of_command

    act = act_of_command(
        line, cwd=cwd, workspace=workspace, kind=kind, agent=agent, mode=mode, tool=tool, session=session
    )
    if remembered is None:
        return policy.decide(act).facts()
    verdict = policy.decide(act, remembered.rules(act))
    memory = next((one for one in remembered.all() if one.name == verdict.rule), None)
    return verdict.facts() | ({"remembered": memory.facts()} if memory is not None else {})
