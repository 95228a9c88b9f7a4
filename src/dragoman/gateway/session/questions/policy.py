"""Policy rules that answer a permission question instead of the user (G-100).

Only the kind of a tool call is known here. A rule on anything else never allows: it is left out if it would, and where
it would ask or deny, the user is asked.
"""

from __future__ import annotations

from dataclasses import dataclass

from dragoman.config.model import Decision, PolicyConfig, PolicyRule
from dragoman.gateway.json_types import JsonObject, as_object, own_meta

_STRICTNESS: dict[Decision, int] = {"allow": 0, "ask": 1, "deny": 2}
# Kinds of offered options in order of preference: `once` first, so that a rule does not decide for later calls.
_PREFERRED: dict[Decision, tuple[str, ...]] = {
    "allow": ("allow_once", "allow_always"),
    "deny": ("reject_once", "reject_always"),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    decision: Decision
    rule: str
    """Name of the rule that decided, for the record (G-104)."""


def decide(policy: PolicyConfig, tool: JsonObject) -> Verdict:
    """The first matching rule, or a stricter one that the workspace adds; without any, the user is asked."""
    verdict = _first(policy.rules, tool) or Verdict("ask", "default")
    for stricter in (_first(policy.narrow, tool), _asked_for_facts(policy, tool)):
        if stricter is not None and _STRICTNESS[stricter.decision] > _STRICTNESS[verdict.decision]:
            verdict = stricter
    return verdict


def choose_option(decision: Decision, options: object) -> str | None:
    """The id of the offered option for a decision, found by its kind and never by its id; None if there is none."""
    offered = [as_object(option) for option in options] if isinstance(options, list) else []
    for kind in _PREFERRED.get(decision, ()):
        for option in offered:
            guessed = own_meta(option).get("kindGuessed")
            if option.get("kind") == kind and not (guessed and decision == "allow"):
                return str(option.get("optionId"))
    return None


def names(policy: PolicyConfig) -> frozenset[str]:
    """Names of the rules as they are in records."""
    named = [
        _name(rule, index) for rules in (policy.rules, policy.narrow) for index, rule in enumerate(rules)
    ]
    return frozenset(("default", *named))


def _name(rule: PolicyRule, index: int) -> str:
    return rule.name or f"rule {index + 1}"


def _first(rules: list[PolicyRule], tool: JsonObject) -> Verdict | None:
    kind = tool.get("kind") or "other"
    for index, rule in enumerate(rules):
        if not _needs_facts(rule) and (not rule.kind or kind in rule.kind):
            return Verdict(rule.decision, _name(rule, index))
    return None


def _asked_for_facts(policy: PolicyConfig, tool: JsonObject) -> Verdict | None:
    """Ask where a rule on other facts than the kind may ask or deny."""
    kind = tool.get("kind") or "other"
    for rules in (policy.rules, policy.narrow):
        for index, rule in enumerate(rules):
            if rule.decision != "allow" and _needs_facts(rule) and (not rule.kind or kind in rule.kind):
                return Verdict("ask", _name(rule, index))
    return None


def _needs_facts(rule: PolicyRule) -> bool:
    """Whether a rule has a key that cannot be decided by the kind alone."""
    return any(getattr(rule, key) != getattr(_ON_KIND, key) for key in _FACTS)


_ON_KIND = PolicyRule(decision="ask")
_FACTS = tuple(
    key
    for key in _ON_KIND.__struct_fields__
    if key not in ("decision", "kind", "name", "match", "not_match", "reason")
)
