"""What a person types in a terminal to have an answer remembered."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.cli.exec.approval import read_wish, remember_lines

OFFERED = {
    "pattern": ["run make test"],
    "scopes": ["session", "project", "everywhere"],
    "until": ["1h", "today"],
}


@pytest.mark.parametrize(
    ("text", "wish"),
    [
        ("project", {"scope": "project"}),
        (" Everywhere today ", {"scope": "everywhere", "until": "today"}),
        ("session 1h: run make *", {"scope": "session", "until": "1h", "pattern": ["run make *"]}),
        ("project: run make *; run ls", {"scope": "project", "pattern": ["run make *", "run ls"]}),
    ],
)
def test_a_scope_a_time_and_a_pattern_are_read(text: str, wish: dict[str, Any]) -> None:
    assert read_wish(text, OFFERED) == wish


@pytest.mark.parametrize(
    "text", ["", "y", "n", "2", "projects", "project:", "project today soon", "run make *"]
)
def test_any_other_line_is_no_wish(text: str) -> None:
    assert read_wish(text, OFFERED) is None


def test_what_is_answered_once_only_offers_nothing_more() -> None:
    assert read_wish("project", {}) is None
    assert remember_lines({}) == []
    assert "run make test" in remember_lines(OFFERED)[1]
