"""The page with the conversation's components in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from support.web import bench_page
from support.web.bench_page import BenchPage


@pytest.fixture(scope="session")
def bench_site() -> Iterator[str]:
    with bench_page.served(bench_page.build()) as origin:
        yield origin


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def tab(browser: Browser, bench_site: str) -> AsyncIterator[BenchPage]:
    """One tab for all tests of a process; `show` starts each of them with an empty conversation."""
    bench = await BenchPage.open(browser, bench_site)
    yield bench
    await bench.page.close()


@pytest.fixture(autouse=True)
def nothing_went_wrong(request: pytest.FixtureRequest) -> Iterator[None]:
    """No script error, no breach of the page's policy, no request to anywhere else, in any of these tests."""
    yield
    if "tab" in request.fixturenames:
        bench: BenchPage = request.getfixturevalue("tab")
        troubles, foreign = [*bench.troubles], [*bench.foreign]
        bench.troubles.clear()
        bench.foreign.clear()
        assert troubles == []
        assert foreign == []
