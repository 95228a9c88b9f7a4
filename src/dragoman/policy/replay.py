"""Runs rules over the acts of the past and tells what would have been decided otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from dragoman.policy.act import Act
from dragoman.policy.decide import DEFAULT, Policy
from dragoman.policy.recorded import act_of

WORKTREE = 3
"""Steps from the state folder to a worktree: `worktrees/KEY/NAME`."""
EXAMPLES = 3
"""Acts shown of each group."""


@dataclass(slots=True)
class Change:
    """Acts that were decided in one way and would be in another, by the same rule."""

    was: str
    now: str
    rule: str
    count: int = 0
    examples: list[dict[str, Any]] = field(default_factory=list)

    def facts(self) -> dict[str, Any]:
        return {
            "was": self.was,
            "now": self.now,
            "rule": self.rule,
            "count": self.count,
            "examples": self.examples,
        }


@dataclass(slots=True)
class Replay:
    acts: int = 0
    unreadable: int = 0
    changes: dict[tuple[str, str, str], Change] = field(default_factory=dict)

    def facts(self) -> dict[str, Any]:
        changes = sorted(self.changes.values(), key=lambda change: -change.count)
        return {
            "acts": self.acts,
            "unreadable": self.unreadable,
            "changed": sum(change.count for change in changes),
            "changes": [change.facts() for change in changes],
        }


def replay(policy: Policy, records: Iterable[dict[str, Any]]) -> Replay:
    """Decide again about each recorded act; acts that are the same are decided once."""
    found = Replay()
    decided: dict[bytes, tuple[str, str]] = {}
    for record in _deciding(records):
        try:
            act = _in_its_worktree(act_of(record["act"]), policy.protected)
        except (ValueError, KeyError, TypeError):
            found.unreadable += 1
            continue
        found.acts += 1
        key = _without_session(act)
        if key not in decided:
            verdict = policy.decide(act)
            decided[key] = (verdict.decision, verdict.rule)
        now, rule = decided[key]
        was = str(record.get("decision"))
        # Of a call that no rule is about, a hook is told that it may go on; a question is asked.
        unruled = was == "allow" and record.get("by") == rule == DEFAULT
        if was != now and not unruled:
            change = found.changes.setdefault((was, now, rule), Change(was, now, rule))
            change.count += 1
            if len(change.examples) < EXAMPLES:
                change.examples.append({"id": record.get("id"), "about": about(act)})
    return found


def _deciding(records: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """One record for each call: of one that its agent asked about after its hook, what was decided then (`again`)."""
    passed: dict[tuple[object, object], dict[str, Any]] = {}
    for record in records:
        call = (record.get("session"), record.get("call"))
        former = passed.pop(call, None)
        if former is not None and not record.get("again"):
            yield former
        if record.get("decision") == "allow" and record.get("by") == DEFAULT and isinstance(call[1], str):
            passed[call] = record
        else:
            yield record
    yield from passed.values()


def _in_its_worktree(act: Act, folders: Iterable[str]) -> Act:
    """The act of a session in a worktree of ours with a `project`, which records of earlier versions do not have."""
    if act.project:
        return act
    for folder in folders:
        steps = act.workspace.removeprefix(f"{folder.rstrip('/')}/").split("/")
        if len(steps) == WORKTREE and steps[0] == "worktrees":
            return replace(act, project=act.workspace)
    return act


def about(act: Act) -> str:
    """An act in one line: its commands, else its paths, hosts or tool."""
    told = [" ".join(command.words) for command in act.commands]
    told = told or [f"{path.access} {path.path}" for path in act.paths] or list(act.hosts)
    return "; ".join(told) or act.tool or act.kind


def _without_session(act: Act) -> bytes:
    return msgspec.json.encode({**msgspec.to_builtins(act), "session": ""})
