"""The benchmark's own judgement of a flood, without a clock."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from bench.contenders import AGENT
from bench.delivery import Faults, check_flood
from bench.peers.client import Conversation

COUNT = 50


@pytest.fixture(scope="module")
def flooded(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[bytes], str]:
    workspace = tmp_path_factory.mktemp("workspace")
    with Conversation([sys.executable, *AGENT[1:]], dict(os.environ), workspace) as talk:
        talk.initialize()
        session = talk.new_session(workspace)
        received = talk.flood([session], COUNT, 120)
    return b"".join(received.chunks).splitlines(keepends=True), session


def test_an_update_has_the_size_that_was_asked_for(flooded: tuple[list[bytes], str]) -> None:
    lines, _ = flooded
    update = lines[0].partition(b'"update":')[2].removesuffix(b"}}\n")
    assert len(update) == 120


SPOILED: dict[str, tuple[Callable[[list[bytes]], list[bytes]], Faults]] = {
    "nothing": (lambda lines: lines, Faults()),
    "an update is lost": (lambda lines: [*lines[:7], *lines[8:]], Faults(lost=1)),
    "an update comes twice": (lambda lines: [*lines[:8], *lines[7:]], Faults(doubled=1)),
    "two updates change places": (lambda lines: [lines[1], lines[0], *lines[2:]], Faults(reordered=1)),
    "the response comes too early": (
        lambda lines: [*lines[:-2], lines[-1], lines[-2]],
        Faults(after_response=1),
    ),
}


@pytest.mark.parametrize("what", SPOILED)
def test_a_flood_is_judged_by_its_numbers(flooded: tuple[list[bytes], str], what: str) -> None:
    lines, session = flooded
    spoil, faults = SPOILED[what]
    found = check_flood([b"".join(spoil(lines))], [session], COUNT)
    assert (found.lost, found.doubled, found.reordered, found.after_response) == (
        faults.lost,
        faults.doubled,
        faults.reordered,
        faults.after_response,
    )


def test_an_update_under_another_sessions_id_is_noticed(flooded: tuple[list[bytes], str]) -> None:
    lines, session = flooded
    astray = [line.replace(session.encode(), b"someone-else") for line in lines[:3]]
    assert check_flood([b"".join([*astray, *lines[3:]])], [session], COUNT).misrouted == 3


def test_the_relays_stand_beside_the_peers() -> None:
    relays = Path(__file__).resolve().parents[2] / "bench" / "relays"
    assert {"python_sdk.py", "typescript_sdk.mjs"} <= {path.name for path in relays.iterdir()}
