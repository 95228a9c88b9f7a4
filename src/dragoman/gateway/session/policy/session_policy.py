"""The rules in force for one session: what they say about an act of its agent, with what the gateway itself knows."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from dragoman.gateway.json_types import JsonObject
from dragoman.gateway.session.policy.verdict import Verdict, decide, decide_service, is_passed, line_to_host

if TYPE_CHECKING:
    from dragoman.gateway.session.session import Session
    from dragoman.policy.decide import Policy
    from dragoman.policy.requests.request import Surroundings

log = logging.getLogger(__name__)

RESERVED = ("default", "built in")
"""Names in records that are not those of rules."""


class SessionPolicy:
    """Made for each look at it: it has no state of its own."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def rules(self) -> Policy:
        return self._session.gateway.policy_for(self._session.workspace)

    def verdict(self, tool: JsonObject) -> Verdict:
        """What the rules say about a tool call, filled with what was told of it before."""
        known = self._session.tools.filled(tool)
        return decide(self.rules, known, self.surroundings(known))

    def has_no_rule(self, tool: JsonObject) -> bool:
        """Whether no rule is about a tool call that its agent would not have asked about."""
        known = self._session.tools.filled(tool)
        return is_passed(self.rules, known, self.surroundings(known))

    def service_verdict(self, method: str, params: JsonObject) -> Verdict:
        """What the rules say about a call of `fs/*` or `terminal/create`, whose paths are those of the host."""
        return decide_service(self.rules, method, params, self.surroundings({}))

    def surroundings(self, tool: JsonObject) -> Surroundings:
        """What the gateway itself knows about an act."""
        from dragoman.policy.requests.request import Surroundings

        session = self._session
        agent, turn, mode = session.agent, session.turn, session.options.current().get("mode")
        paths = agent.paths if agent is not None else None
        return Surroundings(
            agent=session.agent_name,
            session=session.id,
            cwd=session.cwd,
            workspace=session.workspace,
            prompted_by=turn.prompter if turn is not None else "",
            mode=mode if isinstance(mode, str) else "",
            boxed=agent is not None and agent.box is not None and agent.box.apart,
            watched=any(each.client.may_answer for each in session.attachments),
            moved=session.tools.seen.moved(tool.get("toolCallId"), session.cwd, session.workspace),
            to_host=paths.to_host.value if paths is not None else None,
            line_to_host=line_to_host(paths),
        )

    def record(self, verdict: Verdict, tool: JsonObject, outcome: JsonObject) -> None:
        """Journal a decision that was taken without a person (G-104)."""
        session = self._session
        session.record(
            "decision",
            by=verdict.rule,
            decision=verdict.decision,
            toolCall=tool,
            outcome=outcome,
            why=verdict.why,
            act=verdict.act,
        )
        log.info(
            "permission decided by policy",
            extra={"session": session.id, "rule": verdict.rule, "decision": verdict.decision},
        )

    def names(self) -> frozenset[str]:
        """Names of the rules as they are in records."""
        policy = self.rules
        rules = (*policy.administrator, *policy.narrow, *policy.user)
        return frozenset((*RESERVED, *(rule.name for rule in rules)))
