"""The numbers that the web chat is held to, reported and not asserted: machines that run tests are slow and shared."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser

from support.bench_page import BenchPage

pytestmark = pytest.mark.asyncio(loop_scope="session")

SECONDS = float(os.environ.get("DRAGOMAN_BENCH_SECONDS", "2"))
"""How long to stream; the number is meant for 60."""


@pytest.fixture
def report(
    record_property: Callable[[str, object], None], tmp_path: Path
) -> Callable[[dict[str, Any]], None]:
    """Prints the figures, and puts them into the test's record."""

    def write(figures: dict[str, Any]) -> None:
        for name, value in figures.items():
            record_property(name, value)
        print(json.dumps(figures))

    return write


async def test_opening_and_streaming_are_measured(
    browser: Browser, bench_site: str, report: Callable[[dict[str, Any]], None]
) -> None:
    tab = await BenchPage.open(browser, bench_site)
    await tab.page.evaluate("bench.open(200)")  # the chunks are loaded, the code is warm
    small, large, tail = [
        min([await tab.page.evaluate(how) for _ in range(3)], key=lambda run: float(run["total"]))
        for how in ("bench.open(200)", "bench.open(20000)", "bench.openTail(20000, 600)")
    ]
    scrolled = await tab.page.evaluate("bench.scroll(60, 100)")
    await tab.page.evaluate("bench.history(20000, 600)")
    streamed = await tab.page.evaluate("seconds => bench.stream(300, seconds)", SECONDS)
    report(
        {
            "open_200_ms": round(small["total"]),
            "open_20000_ms": round(large["total"]),
            "open_20000_of_which_model_ms": round(large["model"]),
            "open_20000_as_the_app_does_ms": round(tail["total"]),
            "ratio": round(tail["total"] / small["total"], 2),
            "ratio_all_at_once": round(large["total"] / small["total"], 2),
            "scroll_frames": scrolled["frames"],
            "scroll_slow_frames": scrolled["slow"],
            "stream_seconds": streamed["seconds"],
            "stream_updates": streamed["sent"],
            "stream_long_tasks_ms": [round(task) for task in streamed["longTasks"]],
        }
    )
    assert streamed["sent"] > 0
    assert tab.troubles == []
    await tab.page.close()
