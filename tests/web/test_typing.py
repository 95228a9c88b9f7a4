"""Questions arrive while somebody writes: no key that was meant for the message answers them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import expect

from support.agents.sample_prompts import QUESTION
from support.web.browser import Arrive, Person

pytestmark = pytest.mark.asyncio(loop_scope="session")

TEXT = "Actually, any 1 of 2 yes"
"""Holds every letter and digit that ever answered a question."""


@asynccontextmanager
async def another_asks(me: Person) -> AsyncIterator[None]:
    """Another client's prompt makes the agent ask; the question is refused with a click at the end."""
    async with me.serving.http() as rest:
        path = f"/api/sessions/{me.session_id}/prompt"
        turn = asyncio.create_task(rest.post(path, json={"prompt": QUESTION}, timeout=60))
        yield
        waiting = me.page.get_by_role("region", name="Waiting for you")
        await waiting.get_by_role("button", name="Reject", exact=False).first.click()
        await expect(waiting).to_have_count(0)
        (await turn).raise_for_status()
        await me.ready()


async def test_typing_through_an_arriving_question_answers_nothing_and_loses_nothing(
    arrive: Arrive, workspace: Path
) -> None:
    me = await arrive()
    await me.start_session(workspace, "say ready")
    await me.ready()
    question = me.page.get_by_role("region", name="Waiting for you")
    for moment in range(0, len(TEXT), 4):
        await me.composer.fill("")
        await me.composer.focus()
        await me.page.keyboard.type(TEXT[:moment])
        async with another_asks(me):
            await me.page.keyboard.type(TEXT[moment:])
            await expect(question).to_be_visible()
            await me.page.keyboard.type(TEXT)
            await expect(me.composer).to_have_value(TEXT + TEXT)
            await expect(me.composer).to_be_focused()
            await expect(question).to_be_visible()
    await expect(me.page.get_by_text("Always allowed")).to_have_count(0)
    await expect(me.page.get_by_text("Allowed once")).to_have_count(0)


async def test_alt_q_goes_to_the_question_where_y_and_n_answer_and_the_composer_is_next(
    arrive: Arrive, workspace: Path
) -> None:
    me = await arrive()
    await me.start_session(workspace, QUESTION)
    question = me.page.get_by_role("alertdialog")
    await expect(question).to_be_visible()
    await expect(me.composer).to_be_focused()
    await me.composer.fill("a draft")
    await me.page.keyboard.press("Alt+q")
    await expect(question).to_be_focused()
    for key in ("a", "1", "2", "3", "Enter", " "):
        await me.page.keyboard.press(key)
    await expect(question).to_be_visible()
    await me.press_until("y", me.page.get_by_text('"optionId": "yes"'))
    await me.ready()
    await expect(me.composer).to_be_focused()
    # A key pressed once more than needed is text again.
    await expect(me.composer).to_have_value(re.compile("^a drafty*$"))


async def test_a_key_pressed_as_the_question_appears_does_not_answer_it(
    arrive: Arrive, workspace: Path
) -> None:
    me = await arrive()
    await me.start_session(workspace, "say ready")
    await me.ready()
    await me.page.evaluate(
        """() => new MutationObserver((_, observer) => {
            const question = document.querySelector("[data-question]");
            if (question === null) return;
            observer.disconnect();
            question.focus();
            for (const key of ["y", "n", "Y"])
                question.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
            document.body.dataset.pressed = "yes";
        }).observe(document.body, {childList: true, subtree: true})"""
    )
    async with another_asks(me):
        await expect(me.page.locator("body[data-pressed=yes]")).to_be_attached()
        await expect(me.page.get_by_role("alertdialog")).to_be_visible()


async def test_a_click_into_the_question_moves_the_focus_there(arrive: Arrive, workspace: Path) -> None:
    me = await arrive()
    await me.start_session(workspace, QUESTION)
    question = me.page.get_by_role("alertdialog")
    await question.get_by_role("heading").click()
    await expect(question).to_be_focused()
    await me.press_until("n", me.page.get_by_text('"optionId": "no"'))
    await me.ready()
    await expect(me.composer).to_be_focused()
