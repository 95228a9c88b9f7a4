"""Who has to approve a question, and who said what: the rules of `approvals` and `approvers`. No IO.

- Each requirement of a rule needs its number of different identities; an identity is the name of a token, or `local`.
- The identity that prompted does not count, nor does one twice.
- `role:X` is X or a higher role; without `approvers` every identity that may answer questions counts.
- One rejection of an identity that counts ends the question.

The process that owns the session decides. A process that follows it has a copy, to know which of its clients to ask.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dragoman.gateway.access.identity import ROLES, Identity
from dragoman.gateway.json_types import JsonObject, as_object
from dragoman.wire import timestamps

if TYPE_CHECKING:
    from dragoman.policy.decide import Wanted

ROLE = "role:"


@dataclass(frozen=True, slots=True)
class Requirement:
    rule: str
    approvals: int
    approvers: tuple[str, ...]

    def admits(self, identity: Identity) -> bool:
        return not self.approvers or any(_is(identity, approver) for approver in self.approvers)

    def facts(self) -> JsonObject:
        return {"rule": self.rule, "approvals": self.approvals, "approvers": list(self.approvers)}


@dataclass(frozen=True, slots=True)
class Said:
    """One approval."""

    identity: Identity
    client: str | None
    at: str

    def facts(self) -> JsonObject:
        shown: JsonObject = {"by": self.identity.name, "role": str(self.identity.role), "at": self.at}
        return shown if self.client is None else {**shown, "client": self.client}


@dataclass(slots=True)
class Approval:
    requirements: tuple[Requirement, ...]
    prompter: str
    since: str = field(default_factory=timestamps.now)
    said: list[Said] = field(default_factory=list)

    @classmethod
    def wanted(cls, wanted: Iterable[Wanted], prompter: str) -> Approval | None:
        """The approval for what rules want; None if they leave it to anyone who may answer."""
        made = tuple(Requirement(one.rule, one.approvals, one.approvers) for one in wanted)
        return cls(made, prompter) if made else None

    @classmethod
    def read(cls, facts: JsonObject) -> Approval | None:
        """The copy of a process that follows the session; None if these are no facts of an approval."""
        rules = facts.get("rules")
        made = tuple(_requirement(as_object(rule)) for rule in rules) if isinstance(rules, list) else ()
        if not made:
            return None
        found = cls(made, str(facts.get("promptedBy")), str(facts.get("since")))
        found.update(facts)
        return found

    def update(self, facts: JsonObject) -> None:
        """Take over what the owner says has been said."""
        said = facts.get("said")
        self.said = [_said(as_object(one)) for one in said] if isinstance(said, list) else []

    def refusal(self, identity: Identity) -> str | None:
        """Why an answer of this identity does not count; None if it does."""
        if not identity.may_answer:
            return f"{identity.name} has the role {identity.role} and may not answer questions"
        if identity.name == self.prompter:
            return f"{identity.name} sent the prompt: another person has to approve"
        if any(one.identity.name == identity.name for one in self.said):
            return f"{identity.name} has approved already: another person has to approve too"
        if not any(rule.admits(identity) for rule in self._open):
            return f"{identity.name} is not one of those who may approve: {self.whom()}"
        return None

    def approve(self, identity: Identity, client: str | None) -> bool:
        """Count an approval; returns whether it was the last one needed."""
        self.said.append(Said(identity, client, timestamps.now()))
        return not self._open

    @property
    def _open(self) -> list[Requirement]:
        return [
            rule
            for rule in self.requirements
            if sum(rule.admits(one.identity) for one in self.said) < rule.approvals
        ]

    def whom(self) -> str:
        """The approvals that are still missing, in words."""
        missing = []
        for rule in self._open:
            count = rule.approvals - sum(rule.admits(one.identity) for one in self.said)
            who = f" of {' or '.join(rule.approvers)}" if rule.approvers else ""
            missing.append(f"{count} approval{'s' if count > 1 else ''}{who} (rule {rule.rule})")
        return " and ".join(missing)

    def facts(self) -> JsonObject:
        return {
            "rules": [rule.facts() for rule in self.requirements],
            "promptedBy": self.prompter,
            "since": self.since,
            "said": [one.facts() for one in self.said],
        }


def is_allowing(outcome: JsonObject, options: object) -> bool:
    """Whether an outcome selects an option that allows; of two options with one id, either may be meant."""
    chosen = outcome.get("optionId") if outcome.get("outcome") == "selected" else None
    offered = [as_object(option) for option in options] if isinstance(options, list) else []
    kinds = [str(option.get("kind")) for option in offered if option.get("optionId") == chosen]
    return chosen is not None and len(kinds) == 1 and kinds[0].startswith("allow")


def _is(identity: Identity, approver: str) -> bool:
    if not approver.startswith(ROLE):
        return identity.name == approver
    role = ROLES.get(approver.removeprefix(ROLE))
    return role is not None and identity.role >= role


def _requirement(facts: JsonObject) -> Requirement:
    approvals, approvers = facts.get("approvals"), facts.get("approvers")
    return Requirement(
        str(facts.get("rule")),
        approvals if isinstance(approvals, int) else 1,
        tuple(str(one) for one in approvers) if isinstance(approvers, list) else (),
    )


def identity_of(facts: JsonObject) -> Identity:
    """An identity as another process of ours tells it; without a known role it may do nothing but observe."""
    return Identity(
        str(facts.get("name") or facts.get("by")), ROLES.get(str(facts.get("role")), ROLES["observe"])
    )


def _said(facts: JsonObject) -> Said:
    client = facts.get("client")
    return Said(identity_of(facts), client if isinstance(client, str) else None, str(facts.get("at")))
