"""The page about the bridge, its TypeScript types and its tables name the same events and commands."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from dragoman.bridge.commands.table import COMMANDS
from dragoman.gateway.access.identity import NEEDED, Role

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "src" / "dragoman" / "bridge"
PAGE = (ROOT / "docs" / "reference" / "bridge.md").read_text()
TYPES = (ROOT / "web" / "src" / "bridge" / "events.ts").read_text()


def section(title: str) -> set[str]:
    """The names in the first column of a section's table."""
    (text,) = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return set(re.findall(r"^\| `(\w+)`", text, re.MULTILINE))


def types(declaration: str) -> set[str]:
    """The members of a union, up to the next declaration."""
    (text,) = re.findall(rf"export type {declaration} =(.*?)\n(?:export|// --|\Z)", TYPES, re.DOTALL)
    return set(re.findall(r'\btype: "(\w+)"', text))


def told_in(*files: str) -> set[str]:
    """Every `"type": "..."` that the source writes."""
    found = set()
    for file in files:
        for node in ast.walk(ast.parse((SOURCE / file).read_text())):
            if isinstance(node, ast.Dict):
                for key, value in zip(node.keys, node.values, strict=True):
                    if (
                        isinstance(key, ast.Constant)
                        and key.value == "type"
                        and isinstance(value, ast.Constant)
                    ):
                        found.add(str(value.value))
    return found - {""}


def test_events_of_the_journal_are_the_same_everywhere() -> None:
    chunks = {"message_chunk", "thought_chunk"}  # made by one function
    made = told_in("events/translate.py", "events/records.py") - {"result"} | chunks
    assert made == section("From the bridge: events of the journal") == types("JournalEvent")


def test_events_about_the_moment_are_the_same_everywhere() -> None:
    names = {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py")}
    files = names - {"events/translate.py", "events/records.py"}
    assert (
        told_in(*files) - {"text", "boolean"}
        == section("From the bridge: about the moment")
        == types("LooseEvent")
    )


def test_commands_are_the_same_everywhere() -> None:
    assert set(COMMANDS) == section("To the bridge") == types("BridgeCommand")


def test_the_page_says_what_observers_and_approvers_may_do() -> None:
    marked = dict(re.findall(r"^\| `(\w+)` (\\\*|†) ", PAGE, re.MULTILINE))
    observers = {name for name, mark in marked.items() if mark == r"\*"}
    assert observers == {name for name, command in COMMANDS.items() if command.observers}
    assert {name for name, mark in marked.items() if mark == "†"} == {
        name for name, role in NEEDED.items() if role is Role.APPROVE
    }
