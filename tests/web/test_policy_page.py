"""The page of rules and decisions in the browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import expect

from support.web.browser import Arrive

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_rules_and_decisions_are_listed(arrive: Arrive, workspace: Path) -> None:
    me = await arrive()
    await me.start_session(workspace, "Hello")
    await me.ready()
    await me.page.get_by_role("button", name="Policy: rules and decisions").click()
    await expect(me.page.get_by_role("region", name="Rules in force")).to_contain_text("no rules")
    await expect(me.page.get_by_role("region", name="Recent decisions")).to_be_visible()
    await me.picture("policy")
    phone = await arrive(phone=True, dark=False)
    await phone.page.evaluate("window.location.hash = '#/policy'")
    await expect(phone.page.get_by_role("heading", name="Policy", exact=True)).to_be_visible()
    await phone.picture("policy-phone")
