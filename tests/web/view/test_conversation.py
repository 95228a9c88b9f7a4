"""How the conversation looks and behaves: tools, diffs, terminals, the list itself."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import expect

from support.web import sample_events as scene
from support.web.bench_page import BenchPage

pytestmark = pytest.mark.asyncio(loop_scope="session")

PATH = "/home/ada/project/src/settings.py"


async def test_one_of_everything_is_drawn(tab: BenchPage) -> None:
    await tab.show(scene.gallery())
    feed = tab.page.get_by_role("feed")
    await expect(feed.get_by_text("The model's server did not answer.")).to_be_visible()
    await expect(feed.get_by_text("Check the network, then send your message again.")).to_be_visible()
    await expect(feed.get_by_text("ran out of tokens")).to_be_visible()
    await expect(tab.page.get_by_role("progressbar", name="Plan")).to_have_attribute("aria-valuenow", "1")


async def test_markdown_grows_block_by_block(tab: BenchPage) -> None:
    await tab.show([scene.says("First paragraph.\n\nSecond ")])
    await tab.page.evaluate("document.querySelector('[role=feed] p').dataset.same = 'yes'")
    await tab.show([scene.says("one, **finished**.\n\n```python\nx = 1\n```")], anew=False)
    feed = tab.page.get_by_role("feed")
    await expect(feed.locator("strong")).to_have_text("finished")
    assert await feed.locator("p").first.get_attribute("data-same") == "yes"
    await tab.show([scene.ended()], anew=False)
    await expect(feed.locator(".hljs-number")).to_have_text("1")


async def test_a_thought_is_folded_and_says_how_long_it_took(tab: BenchPage) -> None:
    await tab.page.evaluate("bench.clear()")
    await tab.page.evaluate(
        "events => bench.add(events, 2000)",
        [scene.thinks("**Hm.** "), scene.thinks("All of it."), scene.says("So")],
    )
    head = tab.page.get_by_role("button", name="Thought for 4.0 s")
    await head.click()
    await expect(tab.page.get_by_label("Agent's thought")).to_contain_text("All of it.")


async def test_a_call_that_ran_before_the_rules_saw_it_is_marked(tab: BenchPage) -> None:
    seen, unseen = (scene.started(id, title, "read", {}) for id, title in (("a", "Read a"), ("b", "Read b")))
    await tab.show([seen, unseen, scene.completed("a"), {**scene.completed("b"), "unmediated": True}])
    marked = tab.page.get_by_role("button").filter(has_text="unmediated")
    await expect(marked).to_have_count(1)
    await expect(marked).to_contain_text("Read b")
    await expect(marked.get_by_title("It ran before the rules saw it")).to_be_visible()


async def test_a_diff_has_numbers_words_and_two_layouts(tab: BenchPage) -> None:
    call = scene.started("e", "Edit", "edit", {}, content=[scene.diff(PATH, scene.BEFORE, scene.AFTER)])
    await tab.show([call, scene.completed("e")])
    figure = tab.page.get_by_role("figure", name="Changes to src/settings.py")
    await expect(figure.get_by_label("5 lines added")).to_be_visible()
    removed = figure.locator("tr[data-kind=removed]").first
    assert await removed.locator("td").first.get_attribute("data-number") == "7"
    await expect(figure.locator("tr[data-kind=added]").last).to_contain_text("return len(names(settings))")
    await figure.get_by_role("button", name="12 unchanged lines").click()
    await expect(figure).to_contain_text("def describe")
    await figure.get_by_role("button", name="Side by side").click()
    await expect(figure).to_have_attribute("data-diff", "split")
    await tab.page.set_viewport_size({"width": 400, "height": 860})
    await expect(figure).to_have_attribute("data-diff", "inline")
    await tab.page.set_viewport_size({"width": 1100, "height": 860})
    await figure.get_by_role("button", name="One column").click()


async def test_a_large_diff_is_folded_by_hunk(tab: BenchPage) -> None:
    old = [f"line {number}" for number in range(4_000)]
    new = [f"{line} changed" if number % 8 == 0 else line for number, line in enumerate(old)]
    whole = scene.diff("/a.txt", None, "\n".join(old))
    part = scene.diff("/b.txt", "\n".join(old), "\n".join([*new[:400], *old[400:3000], *new[3000:]]))
    await tab.show([scene.started("e", "Edit", "edit", {}, content=[whole, part]), scene.completed("e")])
    await expect(tab.page.get_by_role("button", name="Show 1,000 more lines").first).to_be_visible()
    assert await tab.page.locator("tr").count() < 1_500


async def test_a_terminal_has_colours_and_an_exit_code(tab: BenchPage) -> None:
    terminal = {"type": "terminal", "terminalId": "t"}
    await tab.show(
        [
            scene.started("x", "Test", "execute", {"command": "pytest -q"}, content=[terminal]),
            {
                "type": "terminal_output",
                "terminalId": "t",
                "output": scene.COLOURS,
                "exitStatus": {"exitCode": 1},
            },
            scene.completed("x", "failed"),
        ]
    )
    screen = tab.page.get_by_role("region", name="Terminal output")
    failed = screen.get_by_text("1 failed")
    assert await failed.evaluate("node => getComputedStyle(node).color") != await screen.evaluate(
        "node => getComputedStyle(node).color"
    )
    await expect(tab.page.get_by_text("exit 1")).to_be_visible()
    await expect(tab.page.get_by_text("$ pytest -q")).to_be_visible()


async def test_a_progress_bar_is_shown_as_it_stands_in_the_end(tab: BenchPage) -> None:
    terminal = {"type": "terminal", "terminalId": "t"}
    output = "".join(f"\r\x1b[32m{part:3d}%\x1b[0m done" for part in range(0, 101, 5)) + "\nready\n"
    await tab.show(
        [
            scene.started("x", "Build", "execute", {"command": "make"}, content=[terminal]),
            {"type": "terminal_output", "terminalId": "t", "output": output, "exitStatus": {"exitCode": 0}},
        ]
    )
    screen = tab.page.get_by_role("region", name="Terminal output")
    await expect(screen).to_have_text(re.compile(r"^\s*100% doneready\s*$"))


async def test_a_failed_call_says_so(tab: BenchPage) -> None:
    await tab.show(
        [
            scene.started("f", "Fetch it", "fetch", {}),
            scene.completed("f", "failed", content=[scene.text("503, try later")]),
        ]
    )
    card = tab.page.get_by_label("Tool call: Fetch it, failed")
    await expect(card.get_by_text("503, try later")).to_be_visible()
    await expect(card.get_by_text("failed", exact=True)).to_be_visible()


async def test_the_list_opens_at_its_end_and_follows_it(tab: BenchPage) -> None:
    await tab.page.evaluate("bench.history(2000, 400)")
    await tab.painted()
    assert await _distance_to_end(tab) < 2
    await tab.show([scene.says("growing " * 300)], anew=False)
    assert await _distance_to_end(tab) < 2


async def test_a_reader_who_scrolled_up_stays_there(tab: BenchPage) -> None:
    await tab.page.evaluate("bench.history(2000, 400)")
    await tab.painted()
    await tab.page.get_by_role("feed").hover()
    await tab.page.mouse.wheel(0, -1500)
    jump = tab.page.get_by_role("button", name="go to the latest")
    await expect(jump).to_be_visible()
    text, before = await _a_message_in_sight(tab)
    await tab.show([*scene.user("more"), scene.says("and more " * 200), scene.ended()], anew=False)
    assert abs(await _top_of(tab, text) - before) < 3
    await expect(jump).to_contain_text("3 new items")
    await jump.click()
    await expect(jump).to_have_count(0)
    assert await _distance_to_end(tab) < 2


async def test_older_events_come_in_without_moving_what_is_read(tab: BenchPage) -> None:
    await tab.page.evaluate("bench.history(3000, 300)")
    await tab.painted()
    feed = tab.page.get_by_role("feed")
    height = await feed.evaluate("node => node.scrollHeight")
    await feed.evaluate("node => { node.scrollTop = 700 }")
    await tab.painted()
    text, before = await _a_message_in_sight(tab)
    await _older_events_came(tab, height)
    await tab.painted()
    assert abs(await _top_of(tab, text) - before) < 3


async def test_a_message_that_gets_its_beginning_is_measured_with_it(tab: BenchPage) -> None:
    """The first message is cut in two by where the history begins; it grows when the older half of it comes."""
    await tab.page.evaluate("bench.history(3000, 300)")
    await tab.painted()
    height = await tab.page.get_by_role("feed").evaluate("node => node.scrollHeight")
    await tab.page.evaluate(
        """() => {
            const feed = document.querySelector('[role=feed]');
            const sight = feed.getBoundingClientRect();
            let row;
            window.tops = [];
            // After each drawing at once: what a scroll event would find, long before the next frame.
            new MutationObserver(() => {
                row ??= [...feed.querySelectorAll('article')].find(one => one.getBoundingClientRect().top > sight.top);
                window.tops.push(row.getBoundingClientRect().top);
            }).observe(feed, { subtree: true, childList: true, attributes: true });
            feed.scrollTop = 700;
        }"""
    )
    await _older_events_came(tab, height)
    tops: list[float] = await tab.page.evaluate("window.tops")
    assert len(tops) > 1
    assert max(tops) - min(tops) < 3


async def test_only_what_is_in_sight_is_in_the_page(tab: BenchPage) -> None:
    await tab.page.evaluate("bench.open(20000)")
    assert await tab.page.locator("[role=feed] article").count() < 60


async def test_a_card_opens_where_it_was_clicked(tab: BenchPage) -> None:
    read = [
        scene.started("r", "Read it", "read", {}),
        scene.completed("r", content=[scene.text(scene.BEFORE * 3)]),
    ]
    await tab.show([*scene.gallery()[:6], *read])
    head = tab.page.get_by_role("button", name="Read it")
    before = await head.bounding_box()
    await head.click()
    await expect(tab.page.get_by_role("region", name="Code").last).to_be_visible()
    after = await head.bounding_box()
    assert before is not None and after is not None
    assert abs(before["y"] - after["y"]) < 3


async def _older_events_came(tab: BenchPage, height: float) -> None:
    """They are more than all that was there; measuring what was there makes it taller too, but never so much."""
    await tab.until("height => document.querySelector('[role=feed]').scrollHeight > 2 * height", height)


async def _distance_to_end(tab: BenchPage) -> float:
    feed = tab.page.get_by_role("feed")
    distance: float = await feed.evaluate("node => node.scrollHeight - node.scrollTop - node.clientHeight")
    return distance


async def _a_message_in_sight(tab: BenchPage) -> tuple[str, float]:
    """The text of a paragraph that is in sight and unlike all others, and where it is."""
    found: list[object] = await tab.page.evaluate(
        """() => {
            const feed = document.querySelector('[role=feed]');
            const sight = feed.getBoundingClientRect();
            const texts = [...feed.querySelectorAll('p')];
            const same = (one) => texts.filter(other => other.textContent === one.textContent);
            const text = texts.find(one => {
                const { top, bottom } = one.getBoundingClientRect();
                return top >= sight.top && bottom <= sight.bottom && same(one).length === 1;
            });
            return [text.textContent, text.getBoundingClientRect().top];
        }"""
    )
    return str(found[0]), float(str(found[1]))


async def _top_of(tab: BenchPage, text: str) -> float:
    box = await tab.page.get_by_role("feed").get_by_text(text, exact=True).bounding_box()
    assert box is not None
    return box["y"]
