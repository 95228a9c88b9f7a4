"""The order of authority: who decides about an act, and why.

1. Any deny, from anywhere; the built-in ones are lifted by nothing.
2. An ask-rule with `approvals` or `approvers`, which nothing remembered answers.
3. The stricter of what administrator, workspace and `policy.narrow` say; this level only restricts.
4. What a person told us to remember.
5. The user's rules: for each part of the act the first allow- or ask-rule; allowed when all parts are.
6. Ask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import msgspec

from dragoman.config.model import Decision, PolicyConfig
from dragoman.policy.act import Act
from dragoman.policy.high_water import HighWater
from dragoman.policy.index import RuleIndex
from dragoman.policy.protected import denied_place, doubtful_place
from dragoman.policy.rules import Part, Rule, make_rules, parts_of

DEFAULT = "default"
"""The name in a verdict for which there was no rule."""


LEVELS = (
    "any deny",
    "ask-rules with approvals or approvers",
    "administrator, workspace and policy.narrow",
    "what a person had us remember",
    "your rules",
    "ask",
)
"""The order of authority, in the words of `policy explain`; a verdict has the number of one, from 1."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Approvals that one rule wants."""

    rule: str
    approvals: int
    approvers: tuple[str, ...] = ()
    """Names of tokens and `role:X`; empty: anyone who may answer questions."""

    def facts(self) -> dict[str, Any]:
        return {"rule": self.rule, "approvals": self.approvals, "approvers": list(self.approvers)}


@dataclass(frozen=True, slots=True)
class Verdict:
    decision: Decision
    rule: str
    """Name of the rule that decided; `built in` and `default` are ours."""
    why: str
    act: Act
    reason: str | None = None
    """For the agent, so that it can do something else."""
    wanted: tuple[Wanted, ...] = ()
    """Of every rule with `approvals` or `approvers` that matches: a rule must not weaken another one."""
    level: int = 6
    """Of the order of authority: which one decided."""

    @property
    def approvals(self) -> int:
        return self.wanted[0].approvals if self.wanted else 1

    @property
    def approvers(self) -> tuple[str, ...]:
        return self.wanted[0].approvers if self.wanted else ()

    def facts(self) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "decision": self.decision,
            "rule": self.rule,
            "why": self.why,
            "level": self.level,
            "act": self.act.facts(),
        }
        if self.reason is not None:
            shown["reason"] = self.reason
        if self.wanted:
            shown |= {"approvals": self.approvals, "approvers": list(self.approvers)}
            shown["wanted"] = [one.facts() for one in self.wanted]
        return shown


@dataclass(slots=True)
class Policy:
    """All rules in force, ready for matching. `protected` are our own folders, as real paths."""

    user: list[Rule] = field(default_factory=list)
    narrow: list[Rule] = field(default_factory=list)
    administrator: list[Rule] = field(default_factory=list)
    protected: tuple[str, ...] = ()
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    mark: HighWater = field(default_factory=HighWater)
    """What allows and ends goes by it; what restricts goes by the clock as it is."""
    _restricting: RuleIndex = field(init=False)
    _granting: RuleIndex = field(init=False)
    _by_kind: dict[str, list[Rule]] = field(init=False)
    _ends: bool = field(init=False)
    """Whether a rule that allows, or asks, ends."""
    _digest: str = field(init=False, default="")

    def __post_init__(self) -> None:
        everything = [*self.administrator, *self.narrow, *self.user]
        self._restricting = RuleIndex([rule for rule in everything if rule.decision != "allow"])
        self._granting = RuleIndex([rule for rule in self.user if rule.decision != "deny"])
        self._ends = any(rule.ends is not None for rule in self.user)
        ordered = {"user": self.user, "narrow": self.narrow}
        self._by_kind = {
            source: [rule for rule in rules if rule.on_kind_only] for source, rules in ordered.items()
        }

    @property
    def digest(self) -> str:
        """Names these rules in records: after any change it is another."""
        if not self._digest:
            every = [(rule.source, rule.config) for rule in (*self.administrator, *self.narrow, *self.user)]
            self._digest = sha256(msgspec.json.encode(every)).hexdigest()[:16]
        return self._digest

    def text_of(self, name: str) -> dict[str, Any] | None:
        """The rule of this name as it is configured; None for what is no rule."""
        for rule in (*self.administrator, *self.narrow, *self.user):
            if rule.name == name:
                given = msgspec.to_builtins(rule.config)
                return {key: value for key, value in given.items() if value not in ([], None, False)}
        return None

    def decide(self, act: Act, remembered: Sequence[Rule] = ()) -> Verdict:
        """What holds for an act, by whom and why."""
        now = self.now()
        if (denied := denied_place(act, self.protected)) is not None:
            does = "write to" if denied[0].access == "write" else "read"
            why = f"no agent may {does} {denied[1]}"
            return Verdict("deny", "built in", why, act, "This place is protected.", level=1)
        parts = parts_of(act)
        seen = _seen(act, parts)
        doubt: Rule | None = None
        hidden: Rule | None = None
        approving: list[Rule] = []
        asking: Rule | None = None
        for rule in (*self._restricting.about(act), *(one for one in remembered if one.decision == "deny")):
            if self._comes_too_late(rule, act):
                continue
            match = rule.touches(act, seen, now)
            if match == "no":
                if rule.decision == "deny" or rule.approved:
                    hidden = hidden or (rule if rule.may_hide(act, now) else None)
                continue
            if rule.approved:
                approving.append(rule)  # also in doubt: a word that is not known must not save an approval
            elif match == "maybe" and rule.decision == "deny":
                doubt = doubt or rule
            elif rule.decision == "deny":
                held = rule.held(act, seen)
                why = f"denied by {_named(rule)}" + (f": {held}" if held else "")
                return Verdict("deny", rule.name, why, act, rule.config.reason, level=1)
            elif rule.source != "user":
                asking = asking or rule
        if approving:
            why = " and ".join(f"{_named(rule)} wants {_people(rule)}" for rule in approving)
            wanted = tuple(
                Wanted(rule.name, max(rule.config.approvals, 1), tuple(rule.config.approvers))
                for rule in approving
            )
            return Verdict("ask", approving[0].name, why, act, wanted=wanted, level=2)
        if doubt is not None:
            why = f"{doubt.held(act, seen) or 'an unknown word'} may make it one for {_named(doubt)}"
            return Verdict("ask", doubt.name, why, act, level=1)
        if asking is not None:
            return Verdict("ask", asking.name, f"{_named(asking)} asks", act, level=3)
        latest = self.mark.advance(now) if self._ends or remembered else now
        verdict = self._granted(act, parts, remembered, latest)
        if hidden is not None and verdict.decision == "allow":
            why = f"what is not understood may be one for {_named(hidden)}"
            return Verdict("ask", hidden.name, why, act, level=1)
        if verdict.decision == "allow" and (place := doubtful_place(act, self.protected)) is not None:
            why = f"which files it writes is not known, and no agent may write to {place}"
            return Verdict("ask", "built in", why, act, level=1)
        if act.question and verdict.decision == "allow":
            return Verdict("ask", DEFAULT, "it is a question to a person, and no permission", act)
        return verdict

    def decide_unasked(self, act: Act, remembered: Sequence[Rule] = ()) -> Verdict:
        """What holds for an act that its agent does not ask about: what no rule is about is allowed, as `default`."""
        verdict = self.decide(act, remembered)
        if verdict.rule != DEFAULT:
            return verdict
        now = self.now()
        for part in _seen(act, parts_of(act)):
            found, _ = self._first(part, act, now)
            if found is not None and found.decision == "ask":
                return _asks(found, part, act)
        if act.opaque is not None:
            for rule in self._restricting.about(act):
                if (rule.decision == "deny" or rule.approved) and rule.may_hide(act, now):
                    why = f"what is not understood may be one for {_named(rule)}"
                    return Verdict("ask", rule.name, why, act, level=1)
        return Verdict("allow", DEFAULT, verdict.why, act)

    def _comes_too_late(self, rule: Rule, act: Act) -> bool:
        """Rules on `kind` and nothing else are in order: of each list the first one decides, also before a deny."""
        if not rule.on_kind_only or rule.source not in self._by_kind:
            return False
        earlier = (
            one for one in self._by_kind[rule.source] if not one.config.kind or act.kind in one.config.kind
        )
        return next(earlier, rule) is not rule

    def _granted(self, act: Act, parts: list[Part], remembered: Sequence[Rule], now: datetime) -> Verdict:
        if remembered and parts:
            covering = [
                next((one for one in remembered if one.covers(part, act, now) is None), None)
                for part in parts
            ]
            if covering[0] is not None and all(covering):
                why = f"{covering[0].name}: {covering[0].file}"
                return Verdict("allow", covering[0].name, why, act, level=4)
        if not parts:
            parts = [Part()]  # builtins alone: rules on kind may still allow the call as such
        deciding: list[Rule] = []
        unruled: str | None = None
        for part in parts:
            found, why = self._first(part, act, now)
            if found is None:
                unruled = why if unruled is None else unruled
            elif (
                found.decision == "ask"
            ):  # also after a part without a rule, which an unasked act does not need
                return _asks(found, part, act)
            else:
                deciding.append(found)
        if unruled is not None:
            return Verdict("ask", DEFAULT, unruled, act)
        names = list(dict.fromkeys(rule.name for rule in deciding))
        return Verdict("allow", names[0], "allowed by " + " and ".join(names), act, level=5)

    def _first(self, part: Part, act: Act, now: datetime) -> tuple[Rule | None, str]:
        """The first of the user's rules for a part; without one, the reason of the nearest."""
        nearest = ""
        for rule in self._granting.about(act, part):
            if rule.decision == "ask":
                if rule.touches(act, [part], now) != "no":
                    return rule, ""
                continue
            missing = rule.covers(part, act, now)
            if missing is None:
                return rule, ""
            if (
                part.command is not None
                and part.command.names[0] in rule.programs
                and missing != "its words are others"
            ):
                nearest = nearest or f"rule {rule.name} does not cover {part.shown()}: {missing}"
        if act.opaque is not None and not nearest:
            return None, f"the line is not understood: {act.opaque}"
        return None, nearest or f"no rule is about {part.shown()}"


def policy_of(config: PolicyConfig) -> Policy:
    """The policy of a configuration alone, without an administrator's rules and without folders of ours."""
    return Policy(
        user=make_rules(config.rules, "user", "the configuration"),
        narrow=make_rules(config.narrow, "narrow", "the configuration"),
    )


def _seen(act: Act, parts: list[Part]) -> list[Part]:
    """All that rules which restrict look at: the parts, and what needs no allow of its own."""
    builtins = [command for command in act.commands if command.neutral]
    seen = [*parts, *(Part(command, command.paths) for command in (*act.wrappers, *builtins))]
    if act.commands:  # without, they are parts of their own already
        seen += [Part(None, (path,)) for path in act.paths]
    return seen


def _asks(rule: Rule, part: Part, act: Act) -> Verdict:
    return Verdict("ask", rule.name, f"{_named(rule)} asks about {part.shown()}", act, level=5)


def _named(rule: Rule) -> str:
    return (
        f"rule {rule.name} of {rule.file}"
        if not rule.name.startswith("rule ")
        else f"{rule.name} of {rule.file}"
    )


def _people(rule: Rule) -> str:
    count = max(rule.config.approvals, 1)
    who = f" of {', '.join(rule.config.approvers)}" if rule.config.approvers else ""
    return f"{count} approval{'s' if count > 1 else ''}{who}"


def rule_facts(rule: Rule) -> dict[str, Any]:
    """What a rule says and where it stands, without keys that have their default."""
    config = msgspec.to_builtins(rule.config)
    given = {
        key: value
        for key, value in config.items()
        if value not in ([], None, False) and (key, value) != ("approvals", 1) and key != "name"
    }
    return {"name": rule.name, "from": rule.source, "file": rule.file, **given}


def policy_facts(policy: Policy) -> dict[str, Any]:
    """The rules in force, in the order of their authority, and the places that no agent may write to."""
    rules = [*policy.administrator, *policy.narrow, *policy.user]
    return {"rules": [rule_facts(rule) for rule in rules], "protected": list(policy.protected)}
