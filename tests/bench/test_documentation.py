"""The page about the benchmark and the benchmark itself speak of the same rows."""

import re
from pathlib import Path

import pytest
from bench.documentation import PAGE, write_section
from bench.rows import ROWS


def test_every_row_is_explained_and_no_other() -> None:
    rows = re.findall(r"^\| (`[a-z`, -]+`) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert {name for cell in rows for name in re.findall(r"`([a-z-]+)`", cell)} == {row.name for row in ROWS}


def test_a_section_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "a\n<!-- one:begin -->\nold\n<!-- one:end -->\n<!-- two:begin -->\nkept\n<!-- two:end -->\n"
    )
    write_section("one", "new", page)
    assert page.read_text() == (
        "a\n<!-- one:begin -->\nnew\n<!-- one:end -->\n<!-- two:begin -->\nkept\n<!-- two:end -->\n"
    )
    with pytest.raises(ValueError, match="three:begin"):
        write_section("three", "new", page)
