"""Which message of an agent's own session is meant."""

from __future__ import annotations

import pytest

from dragoman.agents.native.earlier import Earlier
from dragoman.wire.errors import RpcError

TOLD = ("one", "two\n  words", "one", "spoken in between", "last")


def at(drop: object, text: object) -> Earlier | None:
    return Earlier.read({"_meta": {"dragoman": {"at": {"drop": drop, "text": text}}}})


@pytest.mark.parametrize(
    ("drop", "text", "place"),
    [
        (1, "last", 4),
        (3, "one", 2),
        (2, "two words", 1),
        (9, "two wo…", 1),
    ],
)
def test_a_message_is_found_by_its_place_and_its_words(drop: int, text: str, place: int) -> None:
    wanted = at(drop, text)
    assert wanted is not None and wanted.find(TOLD) == place


@pytest.mark.parametrize(("drop", "text"), [(2, "one"), (5, "one"), (1, "unheard"), (1, ""), (0, "last now")])
def test_a_message_that_is_not_certain_is_refused(drop: int, text: str) -> None:
    wanted = at(drop, text)
    assert wanted is not None
    with pytest.raises(RpcError, match="cannot be forked there"):
        wanted.find(TOLD)


def test_a_fork_of_all_names_no_message() -> None:
    assert Earlier.read({}) is None
    assert at("1", "x") is None and at(1, None) is None
