"""The page of the fault matrix names tests and commands that exist, and every row says how it went."""

from __future__ import annotations

import re

import pytest

from fuzz import endpoints
from fuzz.targets import TARGETS
from support.reliability import BEGIN, END, NOT_RUN, PAGE, ROOT, ROWS, existing, matrix, results_in

RESULT = re.compile(r"\d+ passed(, \*\*\d+ failed\*\*)?(, \d+ skipped)?; \d{4}-\d\d-\d\d, [0-9a-f]{12}")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.promise[:40])
def test_each_row_names_tests_and_commands_that_exist(row) -> None:  # type: ignore[no-untyped-def]
    assert row.tests and all(existing(test) for test in row.tests)
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert "again" in targets and (not row.full or row.full.removeprefix("make ") in targets)


def test_the_page_has_the_matrix_with_its_last_results() -> None:
    page = PAGE.read_text()
    results = results_in(page)
    assert page.split(BEGIN)[1].split(END)[0] == matrix(results), "make reliability"
    for row in ROWS:
        assert results[row.promise] == NOT_RUN or RESULT.fullmatch(results[row.promise]), row.promise


def test_the_page_lists_every_parser_and_counts_the_endpoints() -> None:
    page = PAGE.read_text()
    assert set(TARGETS) <= set(re.findall(r"`(\w+)`", page))
    assert f"{len(TARGETS)} parsers" in page and f"{len(endpoints.ENDPOINTS)} endpoints" in page
