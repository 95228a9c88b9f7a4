"""The numbers that the web chat is held to can be had; `make bench-web` reports them, machines that test are slow."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser

from support.web.figures import measured

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_opening_and_streaming_are_measured(browser: Browser, bench_site: str) -> None:
    figures = await measured(browser, bench_site, seconds=1, rounds=1, large=2_000, looks=())
    assert [figure.name for figure in figures][2] == "opening a session of 2,000 events"
    assert all(figure.value for figure in figures)
