"""A permission question: the user's choices, and the answer to the agent for each."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.agents.adapter import Upstream
from dragoman.wire.errors import RpcError
from dragoman.wire.json_types import JsonObject, as_object, own_meta

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Choice:
    """One option, and the answer to the agent if it is selected."""

    option: JsonObject
    answer: object


def choice(id: str, name: str, kind: str, answer: object) -> Choice:
    return Choice({"optionId": id, "name": name, "kind": kind}, answer)


def picked(offered: Sequence[Choice], outcome: object, otherwise: object) -> object:
    """The answer of the selected choice; `otherwise` for any other outcome."""
    if isinstance(outcome, dict) and outcome.get("outcome") == "selected":
        for candidate in offered:
            if candidate.option["optionId"] == outcome.get("optionId"):
                return candidate.answer
    return otherwise


async def ask(handle: Upstream, session_id: str, tool: JsonObject, offered: Sequence[Choice]) -> object:
    """Ask the user; returns the outcome, None if the question failed. `reason` in it is a rule's, for the agent."""
    options = [candidate.option for candidate in offered]
    question = {"sessionId": session_id, "toolCall": tool, "options": options}
    try:
        answer = await handle.ask("session/request_permission", question)
    except RpcError as error:
        log.warning("permission question failed: %s", error, extra={"agent_session": session_id})
        return None
    outcome = answer.get("outcome")
    reason = own_meta(answer).get("reason")
    return {**outcome, "reason": reason} if isinstance(outcome, dict) and reason else outcome


@dataclass(frozen=True, slots=True)
class Opinion:
    """What the gateway's rules say about a call that the agent has not asked about."""

    decision: str
    """`allow`, `deny`, `ask`, or `none` if no rule is about it."""
    reason: str | None = None


NO_OPINION = Opinion("none")


async def consult(handle: Upstream, session_id: str, tool: JsonObject) -> Opinion:
    """Ask the rules about a tool call, before it runs; no person is asked."""
    options = [choice("allow", "Allow", "allow_once", None), choice("reject", "Reject", "reject_once", None)]
    question = {
        "sessionId": session_id,
        "toolCall": tool,
        "options": [each.option for each in options],
        "_meta": {"dragoman": {"unasked": "rules"}},
    }
    answer = await handle.ask("session/request_permission", question)
    own = own_meta(answer)
    outcome = as_object(answer.get("outcome"))
    if own.get("by") == "default":
        return NO_OPINION
    if own.get("decision") == "ask":
        return Opinion("ask")
    reason = own.get("reason")
    allowed = outcome.get("outcome") == "selected" and outcome.get("optionId") == "allow"
    return Opinion("allow" if allowed else "deny", reason if isinstance(reason, str) else None)
