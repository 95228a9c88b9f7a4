"""The pictures in `docs/images`: what the chat looks like while somebody works with it.

`DRAGOMAN_TEST_SCREENSHOTS=FOLDER pytest tests/web/test_pictures.py` makes them anew, and more than the docs show.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.async_api import expect

from support.agents.sample_prompts import ANSWER, EDIT, QUESTION, RAN, READ, USAGE, plan, say, script
from support.web.browser import Arrive, Person

pytestmark = pytest.mark.asyncio(loop_scope="session")

ASKED = "Make the greeting friendlier, and run the tests"
SCRIPTS = {
    ASKED: script(
        "think The greeting is in src/greeting.py. I look at it first, then I change it.",
        plan("completed", "in_progress", "pending"),
        READ,
        EDIT,
        USAGE,
        QUESTION.replace("permission", "ask", 1),
        RAN,
        plan("completed", "completed", "completed"),
        ANSWER,
    ),
    "Why is the build slow?": script(say("Because of the **linker**."), "sleep-until-cancel looking on"),
    "Add a changelog": say("Done: `CHANGELOG.md` has an entry for each release."),
}
NAMES = {
    "dark": ("start", "question", "chat"),
    "light": ("light-start", "light-question", "light-chat"),
    "phone": ("phone-start", "phone", "phone-chat"),
}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "demo.json").write_text(json.dumps(SCRIPTS))
    return folder


async def ask(me: Person, folder: Path, text: str) -> None:
    await me.page.goto(f"{me.serving.base}/#/")
    await me.start_session(folder, text, agent="demo")


@pytest.mark.parametrize("look", NAMES)
async def test_somebody_works_with_it(arrive: Arrive, own: object, shop: Path, look: str) -> None:
    start, asked, done = NAMES[look]
    me = await arrive(serving=own.serving, dark=look != "light", phone=look == "phone")  # type: ignore[attr-defined]
    await me.picture(start)
    await ask(me, shop, "Add a changelog")
    await me.ready()
    await ask(me, shop, "Why is the build slow?")
    await me.sees("looking on")
    await ask(me, shop, ASKED)
    question = me.page.get_by_role("region", name="Waiting for you")
    await expect(question).to_be_visible()
    await expect(me.page.get_by_text("Good day").first).to_be_attached()
    await me.settled()
    await me.picture(asked)
    await question.get_by_role("button", name="Allow", exact=False).first.click()
    await me.sees("The greeting is friendlier now:")
    await me.ready()
    await me.settled()
    await me.picture(done)
