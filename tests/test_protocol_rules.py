"""The page of rules and dialects, and the code, tests and documents that cite them, stay in step."""

from __future__ import annotations

import functools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from support.protocol_rules import ENTRIES, rows

ROOT = Path(__file__).resolve().parents[1]
CITING = ("src", "tests", "bench", "docs")
SUFFIXES = frozenset({".py", ".md"})
_ID = r"(?<![\w-])([GD])-(\d+)(?![\w-])"
_CITED = re.compile(_ID)
_RANGE = re.compile(rf"{_ID}\s+to\s+\1-(\d+)(?![\w-])")


def ids_in(text: str) -> set[str]:
    """The ids that a text spells out, the ends of its ranges included."""
    return {match[0] for match in _CITED.finditer(text)}


def cited_in(text: str, known: Iterable[str]) -> set[str]:
    """The ids that a text cites: a range stands for every known id between its ends."""
    cited = ids_in(text)
    for kind, first, last in _RANGE.findall(text):
        cited |= {each for each in known if each[0] == kind and int(first) <= int(each[2:]) <= int(last)}
    return cited


@functools.cache
def texts() -> dict[str, str]:
    """Everything that may cite, by its path; this file has ids that are only examples."""
    files = [ROOT / "README.md", *(file for folder in CITING for file in _files(ROOT / folder))]
    return {
        str(file.relative_to(ROOT)): file.read_text() for file in files if file != Path(__file__).resolve()
    }


def _files(folder: Path) -> Iterator[Path]:
    for file in folder.rglob("*"):
        if file.suffix in SUFFIXES and file.is_file() and "node_modules" not in file.parts:
            yield file


def test_every_rule_that_the_code_cites_is_on_the_page() -> None:
    missing: defaultdict[str, list[str]] = defaultdict(list)
    for path, text in texts().items():
        for each in ids_in(text) - ENTRIES.keys():
            missing[each].append(path)
    assert not missing, "\n".join(f"{each}: {', '.join(sorted(missing[each]))}" for each in sorted(missing))


def test_every_rule_on_the_page_is_cited_in_the_code_or_its_tests() -> None:
    cited = {
        each
        for path, text in texts().items()
        if path.startswith(("src/", "tests/"))
        for each in cited_in(text, ENTRIES)
    }
    unused = sorted(ENTRIES.keys() - cited)
    assert not unused, "on the page, but not in src or tests: " + ", ".join(unused)


def test_every_entry_has_an_id_and_an_anchor_of_its_own() -> None:
    found = rows()
    assert found
    assert {id: anchor for anchor, id, _ in found} == {id: id.lower() for _, id, _ in found}
    assert [id for id, count in Counter(id for _, id, _ in found).items() if count > 1] == []


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("(G-002)", {"G-002"}),
        ("G-001, D-14.", {"G-001", "D-14"}),
        ("`G-001 to G-003` and D-15", {"G-001", "G-002", "G-003", "D-15"}),
        ("(D-14 to\nD-16, G-009)", {"D-14", "D-15", "D-16", "G-009"}),
        ("G-001 to D-16", {"G-001", "D-16"}),
        ("AG-001, D-16-x, BSD-3-Clause", set()),
    ],
)
def test_lists_and_ranges_are_read(text: str, cited: set[str]) -> None:
    assert cited_in(text, known={"G-001", "G-002", "G-003", "D-14", "D-15", "D-16"}) == cited
