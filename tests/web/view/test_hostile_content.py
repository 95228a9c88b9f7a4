"""What agents may send is shown as what it is: nothing runs, nothing is fetched, nothing freezes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from playwright.async_api import expect

from support.web import sample_events as scene
from support.web.bench_page import BenchPage

pytestmark = pytest.mark.asyncio(loop_scope="session")

PROBES = [
    "<img src=x onerror=\"window.hit='img'\">",
    "<script>window.hit='script'</script>",
    "<svg onload=\"window.hit='svg'\"><circle r=5></svg>",
    "<svg><animate onbegin=\"window.hit='animate'\" attributeName=x dur=1s></svg>",
    "<iframe srcdoc=\"<script>parent.hit='frame'</script>\"></iframe>",
    "<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=1 onerror=window.hit='math'&gt;\">",
    "<details open ontoggle=\"window.hit='details'\">x</details>",
    "<style>@import 'https://elsewhere.example/x.css'; body{display:none}</style>",
    "[a](javascript:window.hit='link')",
    "[a](data:text/html,<script>window.hit='data'</script>)",
    "![a](https://elsewhere.example/pixel.png)",
    "<https://elsewhere.example/\"onmouseover=\"window.hit='auto'>",
    "```\"><img src=x onerror=window.hit='fence'>\n</code></pre><img src=x onerror=\"window.hit='code'\">\n```",
    "- x\n\n  ```html\n  <img src=x onerror=\"window.hit='nested'\">\n  ```",
]


async def _clicked_everywhere(tab: BenchPage) -> None:
    """Whatever can be clicked or hovered in the conversation, is."""
    await tab.page.evaluate(
        """() => { for (const link of document.querySelectorAll('[role=feed] a')) {
            link.dispatchEvent(new MouseEvent('mouseover', { bubbles: true }));
            if (!/^https?:|^mailto:/.test(link.getAttribute('href') ?? '')) link.click();
        } }"""
    )
    await tab.painted()


async def test_html_in_a_message_is_text(tab: BenchPage) -> None:
    await tab.show([scene.says("\n\n".join(PROBES)), scene.ended()])
    await _clicked_everywhere(tab)
    assert await tab.page.evaluate("window.hit") is None
    feed = tab.page.get_by_role("feed")
    await expect(feed).to_contain_text("<script>window.hit='script'</script>")
    assert await feed.locator("img, script, iframe, style, svg:not([aria-hidden]), form, object").count() == 0


async def test_html_anywhere_else_is_text_too(tab: BenchPage) -> None:
    probe = "<img src=x onerror=\"window.hit='elsewhere'\">"
    call = {"toolCallId": "c", "title": probe, "kind": "execute", "rawInput": {"command": probe}}
    await tab.show(
        [
            *scene.user(probe, {"type": "resource_link", "uri": "javascript:window.hit=1", "name": probe}),
            scene.thinks(probe),
            scene.started("c", probe, "edit", {"x": probe}, locations=[{"path": probe}]),
            scene.completed("c", "failed", probe, content=[scene.text(probe), scene.diff(probe, probe, f"{probe}!")]),
            {"type": "notice", "title": probe, "severity": "error"},
            {"type": "plan_created", "entries": [{"content": probe, "priority": "high", "status": "pending"}]},
            {"type": "unknown_update", "raw": {"sessionUpdate": probe}},
            scene.asks("q", call, [{"optionId": "o", "name": probe, "kind": "allow_once"}]),
            {"type": "elicitation_request", "requestId": "e", "mode": "url", "message": probe,
             "url": "javascript:window.hit='url'"},
        ]
    )  # fmt: skip
    await expect(tab.page.get_by_text("none that a browser should open")).to_be_visible()
    await _clicked_everywhere(tab)
    assert await tab.page.evaluate("window.hit") is None
    assert await tab.page.locator("img").count() == 0


async def test_links_leave_without_a_way_back(tab: BenchPage) -> None:
    await tab.show([scene.says("see [the docs](https://example.org/a)")])
    link = tab.page.get_by_role("link", name="the docs")
    assert await link.get_attribute("target") == "_blank"
    assert "noopener" in (await link.get_attribute("rel") or "")


async def test_broken_markdown_is_shown(tab: BenchPage) -> None:
    broken = [
        "**open",
        "[half](https://",
        "| a | b\n|--",
        "> " * 2000,
        "[" * 5000,
        "_a" * 20_000,
        "\x00\ufffe",
        "```\nnever closed",
    ]
    await tab.show([scene.says("\n\n".join(broken))])
    await expect(tab.page.get_by_role("feed")).to_contain_text("never closed")


async def test_an_event_without_a_name_is_shown_raw(tab: BenchPage) -> None:
    await tab.show(
        [{"type": "hologram", "depth": 3}, {"type": "unknown_update", "raw": {"sessionUpdate": "smell"}}]
    )
    await tab.page.get_by_role("button", name="hologram").click()
    await expect(tab.page.get_by_role("feed")).to_contain_text('"depth": 3')
    await expect(tab.page.get_by_role("button", name="smell")).to_be_visible()


async def test_five_megabytes_of_output_do_not_freeze_the_page(tab: BenchPage, tmp_path: Path) -> None:
    line = "\x1b[32mok\x1b[0m " + "x" * 70 + "\n"
    output = line * (5_000_000 // len(line)) + "the very end\n"
    began = time.monotonic()
    await tab.show(
        [
            scene.started("big", "Print a lot", "execute", {"command": "yes"}, content=[scene.text(output)]),
            scene.completed("big", "failed", result=output),
        ]
    )
    await expect(tab.page.get_by_text("the very end").first).to_be_visible()
    drawn = await tab.page.evaluate("document.querySelectorAll('*').length")
    assert drawn < 15_000
    assert time.monotonic() - began < 20
    async with tab.page.expect_download() as download:
        await tab.page.get_by_role("button", name="Save all as text").first.click()
    saved = tmp_path / "output.txt"
    await (await download.value).save_as(saved)
    text = saved.read_text()
    assert text.count("\n") == output.count("\n") - 1
    assert text.startswith("ok xxx")
    assert text.endswith("the very end")
