"""Finds what a change of the rules allows that was asked or denied before.

The rules themselves are compared, not what they match, so that nothing is missed: a change counts as wider if a rule
that allows is new or other than before, if one that asks or denies is gone or other than before, or if one that allows
now stands before one that stood before it. Names, reasons and examples of rules do not count.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dragoman.config.model import PolicyRule
from dragoman.policy.decide import Policy
from dragoman.policy.rules import Rule

MOST_TOLD = 3
"""Differences that are told of one change; the files have the others."""


def find_wider(old: Policy, new: Policy) -> list[str]:
    """What is wider now, in words; empty if nothing is."""
    found = [f"{_named(rule)} is gone or changed" for rule in _missing(_restricting(old), _restricting(new))]
    found += [f"{_named(rule)} is new or changed" for rule in _missing(_granting(new), _granting(old))]
    found += [f"{_named(rule)} comes first now" for rule in _moved_up(old.user, new.user)]
    rest = len(found) - MOST_TOLD
    return found if rest <= 0 else [*found[:MOST_TOLD], f"{rest} more"]


def _restricting(policy: Policy) -> list[Rule]:
    return [
        rule
        for rule in (*policy.administrator, *policy.narrow, *policy.user)
        if rule.config.decision != "allow"
    ]


def _granting(policy: Policy) -> list[Rule]:
    return [rule for rule in policy.user if rule.config.decision == "allow"]


def _missing(rules: Sequence[Rule], among: Sequence[Rule]) -> list[Rule]:
    known = [(rule.source, _meaning(rule)) for rule in among]
    return [rule for rule in rules if (rule.source, _meaning(rule)) not in known]


def _moved_up(old: Sequence[Rule], new: Sequence[Rule]) -> list[Rule]:
    """Rules that allow and come before one that asks or denies, which came before them."""
    places = {_key(rule): place for place, rule in enumerate(old)}
    found = []
    for index, rule in enumerate(new):
        place = places.get(_key(rule))
        if rule.config.decision != "allow" or place is None:
            continue
        later = [places.get(_key(one)) for one in new[index:] if one.config.decision != "allow"]
        if any(former is not None and former < place for former in later):
            found.append(rule)
    return found


def _meaning(rule: Rule) -> PolicyRule:
    return msgspec.structs.replace(rule.config, name=None, reason=None, match=[], not_match=[])


def _key(rule: Rule) -> bytes:
    return msgspec.json.encode(_meaning(rule))


def _named(rule: Rule) -> str:
    return f"the {rule.config.decision} rule “{rule.name}” of {rule.file}"
