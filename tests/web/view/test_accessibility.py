"""axe finds nothing serious, in both themes, on a desk and on a phone."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser

from support.web.figures import LOOKS, conversation_findings

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize("look", LOOKS)
async def test_axe_finds_nothing_serious(browser: Browser, bench_site: str, look: str) -> None:
    assert await conversation_findings(browser, bench_site, look) == []
