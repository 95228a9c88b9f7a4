"""axe finds nothing serious, in both themes, on a desk and on a phone."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser

from support import web_scenes as scene
from support.axe import findings
from support.bench_page import BenchPage

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUESTION = scene.asks(
    "q", {"toolCallId": "c", "title": "Clean up", "kind": "execute", "rawInput": {"command": "rm -rf build"}}
)
FORM = {
    "type": "elicitation_request",
    "requestId": "e",
    "mode": "form",
    "message": "Which one?",
    "requestedSchema": {
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "title": "Name", "description": "Its name."},
            "kinds": {"type": "array", "title": "Kinds", "items": {"enum": ["a", "b"]}},
            "tell": {"type": "boolean", "title": "Tell everybody"},
        },
    },
}


@pytest.mark.parametrize("theme", ["dark", "light"])
@pytest.mark.parametrize("size", [(1100, 2600), (360, 740)], ids=["desk", "phone"])
async def test_axe_finds_nothing_serious(
    browser: Browser, bench_site: str, theme: str, size: tuple[int, int]
) -> None:
    viewport = {"width": size[0], "height": size[1]}
    tab = await BenchPage.open(
        browser, bench_site, color_scheme=theme, viewport=viewport, reduced_motion="reduce"
    )
    await tab.show(scene.gallery())
    await tab.page.evaluate(
        "document.querySelectorAll('[role=feed] button[aria-expanded=false]').forEach(one => one.click())"
    )
    await tab.page.locator(".hljs-keyword").first.wait_for(state="attached")
    await tab.painted()
    assert await findings(tab.page) == []
    await tab.show([QUESTION, FORM], anew=False)
    await tab.page.get_by_role("alertdialog").nth(1).wait_for()
    assert await findings(tab.page) == []
    await tab.page.close()
