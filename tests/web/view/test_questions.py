"""Permission questions and forms: they cannot be missed, and answer to a click or a key."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import Locator, expect

from support.web import sample_events as scene
from support.web.bench_page import BenchPage

pytestmark = pytest.mark.asyncio(loop_scope="session")

COMMAND = "rm -rf build && make wheel\nls dist"
CALL = {"toolCallId": "c", "title": "Clean and build", "kind": "execute", "rawInput": {"command": COMMAND}}


async def _asked(tab: BenchPage, *more: dict[str, Any]) -> Locator:
    await tab.show([*scene.user("Build it."), scene.asks("q1", CALL), *more])
    card = tab.page.get_by_role("alertdialog")
    await expect(card.first).to_be_visible()
    return card


async def _press(tab: BenchPage, key: str, expected: list[Any]) -> None:
    """Keys are ignored for a moment after a question appeared, so press until it is heard."""
    for _ in range(40):
        await tab.page.keyboard.press(key)
        if await tab.asked():
            break
        await tab.page.wait_for_timeout(50)
    assert await tab.asked() == [expected]


async def test_all_of_the_command_is_shown(tab: BenchPage) -> None:
    card = await _asked(tab)
    await expect(card.get_by_role("region", name="Code, Command")).to_have_text(COMMAND)
    await expect(tab.page.get_by_role("feed")).to_contain_text("Waiting for you")


async def test_all_of_a_diff_is_shown(tab: BenchPage) -> None:
    after = "\n".join(f"line {number}" for number in range(600))
    call = {
        "toolCallId": "c",
        "title": "Write",
        "kind": "edit",
        "content": [scene.diff("/home/ada/project/new.txt", None, after)],
    }
    await tab.show([scene.asks("q1", call)])
    await expect(tab.page.get_by_role("alertdialog")).to_contain_text("line 599")


async def test_a_click_answers(tab: BenchPage) -> None:
    card = await _asked(tab)
    await card.get_by_role("button", name="Always allow").click()
    assert await tab.asked() == [["answerPermission", "q1", "always"]]


@pytest.mark.parametrize(("key", "option"), [("y", "once"), ("n", "no")])
async def test_a_key_answers_where_the_question_has_the_focus(tab: BenchPage, key: str, option: str) -> None:
    card = await _asked(tab)
    await card.focus()
    await _press(tab, key, ["answerPermission", "q1", option])


async def test_no_key_answers_elsewhere_or_for_longer_than_once(tab: BenchPage) -> None:
    card = await _asked(tab)
    await tab.page.wait_for_timeout(550)  # keys are ignored for as long, wherever they go
    await tab.page.get_by_role("feed").focus()
    await tab.page.keyboard.type("yna13")
    await card.focus()
    await tab.page.keyboard.type("a13")
    assert await tab.asked() == []


async def test_letters_in_a_text_field_stay_letters(tab: BenchPage) -> None:
    await tab.show(scene.user("Build it."))
    field = tab.page.get_by_role("textbox", name="Message")
    await field.focus()
    await tab.page.keyboard.type("ya")
    await tab.show([scene.asks("q1", CALL)], anew=False)
    await expect(tab.page.get_by_role("alertdialog")).to_be_visible()
    await tab.page.wait_for_timeout(550)  # keys are ignored for as long, wherever they go
    await tab.page.keyboard.type("yan1")
    await expect(field).to_have_value("yayan1")
    await expect(field).to_be_focused()
    assert await tab.asked() == []


async def test_keys_answer_the_one_of_several_that_has_the_focus(tab: BenchPage) -> None:
    card = await _asked(tab, scene.asks("q2", {**CALL, "toolCallId": "d", "title": "Another"}))
    await card.first.focus()
    await _press(tab, "y", ["answerPermission", "q1", "once"])


async def test_an_answer_from_elsewhere_closes_it_and_says_whose(tab: BenchPage) -> None:
    card = await _asked(tab)
    await tab.show([scene.answered("q1", "once", "zed")], anew=False)
    await expect(card).to_have_count(0)
    line = tab.page.get_by_label("Permission: Allowed once")
    await expect(line).to_contain_text("elsewhere, in zed")


FORM: dict[str, Any] = {
    "type": "object",
    "required": ["name", "channel"],
    "properties": {
        "name": {"type": "string", "title": "Name", "minLength": 2},
        "channel": {"type": "string", "title": "Channel", "enum": ["stable", "beta"]},
        "days": {"type": "integer", "title": "Days", "minimum": 1},
        "tell": {"type": "boolean", "title": "Tell everybody"},
    },
}


async def test_a_form_is_checked_and_sent(tab: BenchPage) -> None:
    form = {
        "type": "elicitation_request",
        "requestId": "e1",
        "mode": "form",
        "message": "Where to?",
        "requestedSchema": FORM,
    }
    await tab.show([form])
    card = tab.page.get_by_role("alertdialog")
    await card.get_by_role("button", name="Send").click()
    await expect(card.get_by_text("This is needed.")).to_have_count(2)
    await card.get_by_label("Name").fill("one")
    await card.get_by_label("Channel").select_option("beta")
    await card.get_by_label("Days").fill("0.5")
    await card.get_by_role("button", name="Send").click()
    await expect(card.get_by_text("This must be a whole number.")).to_be_visible()
    await card.get_by_label("Days").fill("3")
    await card.get_by_label("Tell everybody").check()
    await card.get_by_role("button", name="Send").click()
    answer = {"name": "one", "channel": "beta", "days": 3, "tell": True}
    assert await tab.asked() == [["answerElicitation", "e1", "accept", answer]]


async def test_an_address_is_shown_before_it_is_opened(tab: BenchPage) -> None:
    url = "https://tracker.example.org/oauth?client=dragoman"
    await tab.show(
        [{"type": "elicitation_request", "requestId": "e1", "mode": "url", "message": "Sign in.", "url": url}]
    )
    card = tab.page.get_by_role("alertdialog")
    await expect(card).to_contain_text(url)
    await expect(card.get_by_role("link", name="Open tracker.example.org")).to_have_attribute("href", url)
    await card.get_by_role("button", name="Decline").click()
    assert await tab.asked() == [["answerElicitation", "e1", "decline"]]
