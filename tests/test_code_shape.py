"""The shape of the code: who writes a session's state, how large files and folders are, who knows whom."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "dragoman"
SESSION = SOURCE / "gateway" / "session"
FILES = sorted(SOURCE.rglob("*.py"))
MOST_ATTRIBUTES = 20
MOST_FILES = 16
SHARED_LINES = 12
MOST_LINES = 400
MOST_IN_A_CIRCLE = 8
FOLDERS = sorted(
    {file.parent for tree in ("src/dragoman", "tests/support") for file in (ROOT / tree).rglob("*.py")}
)
SESSION_NAMES = frozenset({"session", "_session", "original", "live"})


def targets(tree: ast.AST) -> Iterator[ast.Attribute]:
    """Attributes that are assigned, augmented or deleted."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            yield node


def own_attributes(file: Path, name: str) -> set[str]:
    tree = ast.parse(file.read_text())
    found = next(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == name)
    return {
        target.attr
        for target in targets(found)
        if isinstance(target.value, ast.Name) and target.value.id == "self"
    }


def path_of(node: ast.expr) -> list[str]:
    """`a.b.c` as its names, outermost first; empty for anything else."""
    if isinstance(node, ast.Attribute):
        return [*path_of(node.value), node.attr]
    return [node.id] if isinstance(node, ast.Name) else []


def test_a_session_has_at_most_twenty_attributes() -> None:
    attributes = own_attributes(SESSION / "stream.py", "Stream") | own_attributes(
        SESSION / "session.py", "Session"
    )
    assert len(attributes) <= MOST_ATTRIBUTES, sorted(attributes)


def test_only_its_package_assigns_what_belongs_to_a_session() -> None:
    """Neither a session's attributes nor the fields of its parts: other packages call verbs."""
    wrong = [
        f"{file.relative_to(SOURCE)}:{target.lineno} assigns {'.'.join(path_of(target))}"
        for file in FILES
        if file.is_relative_to(SOURCE / "gateway") and not file.is_relative_to(SESSION)
        for target in targets(ast.parse(file.read_text()))
        if SESSION_NAMES & set(path_of(target.value))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_a_folder_has_few_files(folder: Path) -> None:
    files = [file.name for file in folder.glob("*.py") if file.name != "__init__.py"]
    assert len(files) <= MOST_FILES, f"group the files of {folder.relative_to(ROOT)} by what changes together"


def module_name(file: Path) -> str:
    return ".".join(file.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")


def known_modules() -> dict[str, set[str]]:
    """By module, the modules that it imports, also those for type checking alone, and inside functions."""
    modules = {module_name(file): file for file in FILES}
    return {
        name: {
            target
            for node in ast.walk(ast.parse(file.read_text()))
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            for inner in [f"{node.module}.{alias.name}"]
            if (target := inner if inner in modules else str(node.module)) in modules
        }
        - {name}
        for name, file in modules.items()
    }


def reached(graph: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    new = [start]
    while new:
        following = graph[new.pop()] - found
        found |= following
        new += following
    return found


def test_no_more_than_eight_modules_know_each_other_in_a_circle() -> None:
    graph = known_modules()
    beyond = {name: reached(graph, name) for name in graph}
    circles = {frozenset(each for each in beyond[name] if name in beyond[each]) for name in graph}
    wrong = [sorted(circle) for circle in circles if len(circle) > MOST_IN_A_CIRCLE]
    assert not wrong, "\n".join(map(str, wrong))


def test_no_file_has_more_than_four_hundred_lines() -> None:
    long = {str(file.relative_to(ROOT)): file.read_text().count("\n") for file in FILES}
    assert not {name: lines for name, lines in long.items() if lines > MOST_LINES}


def lines_of_code(source: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, without indentation, blank lines and imports."""
    imports = {
        number
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    for number, line in enumerate(source.splitlines(), 1):
        if number not in imports and line.strip():
            yield number, line.strip()


def test_no_two_places_share_a_dozen_lines() -> None:
    seen: dict[tuple[str, ...], str] = {}
    shared: list[str] = []
    for file in FILES:
        lines = list(lines_of_code(file.read_text()))
        for start in range(len(lines) - SHARED_LINES + 1):
            window = tuple(text for _, text in lines[start : start + SHARED_LINES])
            place = f"{file.relative_to(ROOT)}:{lines[start][0]}"
            if (other := seen.setdefault(window, place)) != place:
                shared.append(f"{place} is {other}")
    assert not shared, "let one piece of code serve both:\n" + "\n".join(shared[:10])
