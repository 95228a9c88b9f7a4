"""Tries the examples of rules once: rules that passed are remembered by their hash in the state folder."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from pathlib import Path

import msgspec

from dragoman import __version__
from dragoman.atomic_file import replace_file
from dragoman.policy.check import Bound, Problem, check_examples
from dragoman.policy.decide import Policy
from dragoman.policy.rules import Rule

log = logging.getLogger(__name__)

FILE = "policy-examples.json"
MOST_KEPT = 200
"""Hashes in the file; each is one version of the rules of one workspace."""


def try_examples(policy: Policy, state: Path) -> list[Problem]:
    """The problems of rules that do not do what their `match` and `not_match` say."""
    rules = [
        rule
        for rule in (*policy.administrator, *policy.narrow, *policy.user)
        if rule.config.match or rule.config.not_match
    ]
    if not rules:
        return []
    key, file = _hash(rules), state / FILE
    passed = _read(file)
    if key in passed:
        return []
    bound = Bound()
    problems = check_examples([rule for rule in rules if rule.source == "narrow"], bound)
    problems += check_examples([rule for rule in rules if rule.source != "narrow"])
    if bound.left_out:
        log.warning("%s", _not_tried(rules, bound.left_out))
    elif not problems:
        _write(file, [*passed, key])
    return problems


def _not_tried(rules: Sequence[Rule], count: int) -> str:
    file = next(rule.file for rule in rules if rule.source == "narrow")
    return (
        f"{file}: its rules hold, but {count} of their examples were not tried: all of them may take "
        f"{Bound.SECONDS} s, each may have {Bound.CHARACTERS} characters; `dragoman policy check` tries them all"
    )


def _hash(rules: Sequence[Rule]) -> str:
    """Of the rules, and of our version: another one may read a line differently."""
    encoded = msgspec.json.encode([__version__, [rule.config for rule in rules]])
    return hashlib.sha256(encoded).hexdigest()


def _read(file: Path) -> list[str]:
    try:
        return msgspec.json.decode(file.read_bytes(), type=list[str])
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return []  # they are tried again


def _write(file: Path, passed: list[str]) -> None:
    try:
        replace_file(file, msgspec.json.encode(passed[-MOST_KEPT:]))
    except OSError as error:
        log.info("the examples of the policy are tried again next time: %s", error)
