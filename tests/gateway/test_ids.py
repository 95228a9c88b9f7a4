"""Session ids are unique and fit into an HTTP header."""

from __future__ import annotations

import re

import pytest

from dragoman.gateway.ids import new_session_id


@pytest.mark.rule("G-040")
def test_ids_do_not_repeat() -> None:
    assert len({new_session_id() for _ in range(10_000)}) == 10_000


@pytest.mark.rule("G-041")
def test_ids_are_visible_ascii_without_anything_to_quote() -> None:
    for _ in range(100):
        assert re.fullmatch(r"dgm_[a-z2-7]{24}", new_session_id())
