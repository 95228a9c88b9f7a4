"""The page about the benchmark and the benchmark itself speak of the same rows."""

import re

from bench.documentation import PAGE
from bench.rows import ROWS


def test_every_row_is_explained_and_no_other() -> None:
    rows = re.findall(r"^\| (`[a-z`, -]+`) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert {name for cell in rows for name in re.findall(r"`([a-z-]+)`", cell)} == {row.name for row in ROWS}
