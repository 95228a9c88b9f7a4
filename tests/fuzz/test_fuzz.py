"""The short form of the fuzzing that `make soak` does: each parser and each endpoint for a moment."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest

from fuzz import endpoints
from fuzz.run import SEEDS, changed, seeds
from fuzz.targets import TARGETS, listening_for_errors

SECONDS = float(os.environ.get("FUZZ_SECONDS", "0.3"))
SOURCES = Path(__file__).parents[2] / "src" / "dragoman"


@pytest.mark.parametrize("name", TARGETS)
def test_no_input_breaks_a_parser(name: str) -> None:
    end = time.monotonic() + SECONDS
    with listening_for_errors():
        for number, data in enumerate(changed(seeds(name), 10**9, seed=1)):
            TARGETS[name](data)
            if number > 100 and time.monotonic() > end:
                break


def test_every_parser_has_a_corpus_and_no_corpus_is_left_over() -> None:
    assert {folder.name for folder in SEEDS.iterdir() if any(folder.iterdir())} == set(TARGETS)


@pytest.mark.parametrize("name", ["acp inline", "api create", "websocket bridge", "stdio"])
async def test_no_input_breaks_an_endpoint(name: str) -> None:
    result = await endpoints.run(name, 300)
    assert (result.inputs, result.find) == (300, "")
    assert result.grown < 64


@pytest.mark.long
@pytest.mark.parametrize("name", endpoints.ENDPOINTS)
async def test_no_input_breaks_any_endpoint(name: str) -> None:
    result = await endpoints.run(name, 2000)
    assert (result.inputs, result.find) == (2000, "")
    assert result.grown < 64


def test_every_address_is_among_the_endpoints() -> None:
    """What the application routes, and every operation of REST."""
    routed = set(re.findall(r'\("(GET|POST)", "(/[^"]*)"\)', (SOURCES / "server" / "app.py").read_text()))
    known = {
        (each.method, each.path) for each in endpoints.ENDPOINTS.values() if isinstance(each, endpoints.Http)
    }
    assert routed and routed <= known
    table = (SOURCES / "server" / "api" / "api.py").read_text()
    operations = len(re.findall(r'\bOperation\(\s*"[A-Z]+"', table))
    assert sum(path.startswith("/api") for _, path in known) == operations
