"""axe finds nothing serious in the frame: the form, the list, a session, its menus, the drawer of a phone."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import expect

from support.agents.sample_prompts import QUESTION, USAGE, plan, script
from support.web.axe import findings
from support.web.browser import Arrive

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize("look", ["dark", "light", "phone"])
async def test_axe_finds_nothing_serious(arrive: Arrive, workspace: Path, look: str) -> None:
    me = await arrive(dark=look == "dark", phone=look == "phone")
    await expect(me.page.get_by_role("radio").first).to_be_attached()
    await me.page.get_by_text("not installed").click()
    await me.picture(f"{look}-agents")
    assert await findings(me.page) == []
    await me.start_session(workspace, script(plan("completed", "in_progress", "pending"), USAGE, QUESTION))
    await expect(me.page.get_by_role("region", name="Waiting for you")).to_be_visible()
    await me.say("queued meanwhile")
    await expect(me.page.get_by_role("list", name="Queued messages")).to_be_visible()
    await me.settled()
    assert await findings(me.page) == []
    await me.page.get_by_role("button", name="Mode: Ask").click()
    await expect(me.page.get_by_role("option", name="Code")).to_be_visible()
    await me.settled()
    assert await findings(me.page) == []
    await me.picture(f"{look}-select")
    await me.page.keyboard.press("Escape")
    if look == "phone":
        await me.page.get_by_role("button", name="Sessions", exact=True).tap()
        await expect(me.page.get_by_role("navigation", name="Sessions")).to_be_visible()
        await me.settled()
        assert await findings(me.page) == []
