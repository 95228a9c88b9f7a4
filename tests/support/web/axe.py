"""axe over a page: what makes it hard or impossible to use for some people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.async_api import Page

AXE = Path(__file__).resolve().parents[3] / "web" / "node_modules" / "axe-core" / "axe.min.js"
SERIOUS = ("serious", "critical")


async def findings(page: Page) -> list[str]:
    """Each serious one, with the element and what is wrong with it.

    Focus guards are hidden and focusable on purpose: a user who tabs into one is led back to the popup.
    """
    # The page's policy forbids inline scripts, so axe is evaluated, as a debugger would.
    await page.evaluate(AXE.read_text())
    result: dict[str, Any] = await page.evaluate(
        "axe.run({ exclude: [['[data-base-ui-focus-guard]']] }, { resultTypes: ['violations'] })"
    )
    return [
        f"{finding['id']}: {node['html'][:160]} {node['failureSummary'][:300]}"
        for finding in result["violations"]
        if finding["impact"] in SERIOUS
        for node in finding["nodes"]
    ]
