"""The rules and dialects that code and tests cite, read from their page, `docs/reference/protocol-rules.md`.

A test names the rules that it proves with `@pytest.mark.rule(...)`; `test_requirements.py` and `test_protocol_rules.py`
keep page, code and tests in step.
"""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "protocol-rules.md"
_ROW = re.compile(r'^\| <a id="(?P<anchor>[^"]*)"></a>(?P<id>[GD]-\d+) \| (?P<text>.+) \|$', re.MULTILINE)


def rows() -> list[tuple[str, str, str]]:
    """Each row of the page: its anchor, its id, and what it says."""
    return [(row["anchor"], row["id"], row["text"]) for row in _ROW.finditer(PAGE.read_text())]


ENTRIES: dict[str, str] = {id: text for _, id, text in rows()}
"""Rules (G) and dialects (D), by their ids."""
RULES: dict[str, str] = {id: text for id, text in ENTRIES.items() if id.startswith("G")}
"""Each of these has a test."""
