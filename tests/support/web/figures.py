"""The figures that the web chat is held to: how small it loads, opens, streams, and what axe finds."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from playwright.async_api import Browser

from dragoman.server.pages import BUILT
from support.web import sample_events as scene
from support.web.axe import findings
from support.web.bench_page import BenchPage

FIRST_LOAD = 150 * 1024
LOOKS = {
    "dark": {"color_scheme": "dark", "viewport": {"width": 1100, "height": 2600}},
    "light": {"color_scheme": "light", "viewport": {"width": 1100, "height": 2600}},
    "phone": {"color_scheme": "dark", "viewport": {"width": 360, "height": 740}},
}
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


@dataclass(frozen=True)
class Figure:
    name: str
    value: str
    limit: str
    holds: bool


def first_load() -> dict[str, int]:
    """What has to come before the page is there: each file with its size, compressed where it is sent so."""
    manifest = json.loads((BUILT / ".vite" / "manifest.json").read_text())
    needed: set[str] = set()
    names = ["index.html"]
    while names:
        entry = manifest[names.pop()]
        if entry["file"] not in needed:
            needed.update((entry["file"], *entry.get("css", [])))
            names.extend(entry.get("imports", []))
    packed = {name: BUILT / f"{name}.gz" for name in needed}
    return {name: (path if path.exists() else BUILT / name).stat().st_size for name, path in packed.items()}


async def conversation_findings(browser: Browser, site: str, look: str) -> list[str]:
    """One of everything, all of it unfolded, under two open questions."""
    tab = await BenchPage.open(browser, site, reduced_motion="reduce", **LOOKS[look])
    await tab.show(scene.gallery())
    await tab.page.evaluate(
        "document.querySelectorAll('[role=feed] button[aria-expanded=false]').forEach(one => one.click())"
    )
    await tab.page.locator(".hljs-keyword").first.wait_for(state="attached")
    await tab.show([QUESTION, FORM], anew=False)
    await tab.page.get_by_role("alertdialog").nth(1).wait_for()
    found = await findings(tab.page)
    await tab.page.close()
    return found


async def measured(
    browser: Browser, site: str, *, seconds: float, rounds: int = 3, large: int = 20_000,
    looks: Iterable[str] = tuple(LOOKS),
) -> list[Figure]:  # fmt: skip
    """All of it; the figures are meant for 60 seconds and 20,000 events."""
    size = sum(first_load().values())
    tab = await BenchPage.open(browser, site)
    await tab.page.evaluate("bench.open(200)")  # the chunks are loaded, the code is warm
    ways = ("bench.open(200)", f"bench.openTail({large}, 600)", f"bench.open({large})")
    opened = [min([await _total(tab, way) for _ in range(rounds)]) for way in ways]
    scrolled: dict[str, Any] = await tab.page.evaluate("bench.scroll(60, 100)")
    await tab.page.evaluate("large => bench.history(large, 600)", large)
    streamed: dict[str, Any] = await tab.page.evaluate("seconds => bench.stream(300, seconds)", seconds)
    assert tab.troubles == []
    await tab.page.close()
    found = [one for look in looks for one in await conversation_findings(browser, site, look)]
    few, tail, all_at_once = opened
    long = [round(task) for task in streamed["longTasks"]]
    return [
        Figure("first load, gzip", f"{size / 1024:.0f} KB", "150 KB", size <= FIRST_LOAD),
        Figure("opening 200 events", f"{few:.0f} ms", "", True),
        Figure(f"opening a session of {large:,} events", f"{tail:.0f} ms, {tail / few:.2f} times as long",
               "3 times", tail <= 3 * few),
        Figure(f"drawing {large:,} events at once", f"{all_at_once:.0f} ms", "", True),
        Figure("slow frames while scrolling", f"{scrolled['slow']} of {scrolled['frames']}", "", True),
        Figure(f"tasks over 50 ms in {streamed['seconds']:.0f} s at 300 updates/s",
               f"{len(long)}{f' (longest {max(long)} ms)' if long else ''}", "one in 10 s",
               len(long) * 10 <= max(10, streamed["seconds"])),
        Figure("serious findings of axe", f"{len(found)}", "none", not found),
    ]  # fmt: skip


async def _total(tab: BenchPage, way: str) -> float:
    return float((await tab.page.evaluate(way))["total"])
