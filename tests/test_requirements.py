"""The table of rules and the tests that prove them stay in step."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

from support.protocol_rules import RULES

TESTS = Path(__file__).parent


def rules_in(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.rule":
            yield from (argument.value for argument in node.args if isinstance(argument, ast.Constant))  # type: ignore[misc]


@functools.cache
def proven() -> set[str]:
    return {rule for path in TESTS.rglob("test_*.py") for rule in rules_in(path.read_text())}


def test_every_rule_has_a_test() -> None:
    missing = sorted(RULES.keys() - proven())
    assert not missing, "\n".join(f"{rule}: {RULES[rule]}" for rule in missing)


def test_every_rule_that_a_test_names_is_in_the_table() -> None:
    assert not proven() - RULES.keys()
