"""Every kind of record is in one table, which the documentation shows, and each has a test."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from dragoman.audit.kinds import KINDS

ROOT = Path(__file__).parents[2]
WRITERS = {"record", "stored", "wait", "append", "tell", "_tell", "_record", "_tool", "_write"}
ACTS = {"acting", "telling", "_act", "act", "_tell_of_another", "to_thread"}
"""Call these with a kind, and it is recorded by `gateway/ports/acts.py` or the function that they name."""


def written() -> Iterator[str]:
    """Kinds in calls such as `audit.record("login", …)` and `_record(session, "login", …)`."""
    for file in (ROOT / "src" / "dragoman").rglob("*.py"):
        text = file.read_text()
        if "audit" not in text.lower() and "_act(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and len(node.args) + len(node.keywords) > 1:
                name = (
                    node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                )
                of_audit = "audit" in ast.unparse(node.func) or "audit" in str(file.relative_to(ROOT))
                for argument in node.args[:2]:
                    told = name in ACTS or (name in WRITERS and (of_audit or "cli" in file.parts))
                    either = (
                        (argument.body, argument.orelse) if isinstance(argument, ast.IfExp) else (argument,)
                    )
                    yield from (str(each.value) for each in either if told and isinstance(each, ast.Constant))


def test_no_kind_is_missing_in_the_table() -> None:
    found = set(written())
    assert found <= set(KINDS)
    assert found >= set(KINDS) - {"configuration_changed"}


def test_the_documentation_has_the_table() -> None:
    page = (ROOT / "docs" / "explanation" / "audit.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", page, re.MULTILINE))
    assert rows == KINDS


def test_each_kind_has_a_test() -> None:
    folders = [
        ROOT / "tests" / name
        for name in ("audit", "checkpoints", "commits", "registry", "sessions", "worktrees")
    ]
    files = [
        ROOT / "tests" / "server" / "test_audit.py",
        ROOT / "tests" / "cli" / "test_doctor_faults.py",
        *(f for one in folders for f in one.glob("test_*.py")),
    ]
    tests = "\n".join(file.read_text() for file in files if file != Path(__file__))
    assert [kind for kind in KINDS if f'"{kind}"' not in tests] == []
