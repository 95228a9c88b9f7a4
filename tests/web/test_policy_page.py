"""The page of rules and decisions in the browser."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.async_api import Route, expect

from support.web.axe import findings
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


@pytest.mark.parametrize("look", ["dark", "light", "phone"])
async def test_a_session_tells_its_mediation_level_and_leads_to_its_records(
    arrive: Arrive, workspace: Path, look: str
) -> None:
    me = await arrive(dark=look == "dark", phone=look == "phone")
    await expect(me.page.get_by_text("it was not tested whether it asks")).to_be_visible()
    await me.settled()
    await me.picture(f"levels-{look}")
    await me.start_session(workspace, "Hello", agent="builtin")
    await me.ready()
    await me.page.get_by_role("button", name="Mediation: full. About this session").click()
    details = me.page.get_by_role("dialog", name="This session")
    await expect(details).to_contain_text("Every tool call reaches the rules before it runs.")
    await expect(details).to_contain_text("its tools ask the rules before each call")
    await me.settled()
    await me.picture(f"details-{look}")
    assert await findings(me.page) == []
    await me.page.keyboard.press("Escape")
    await expect(details).to_have_count(0)
    await me.page.get_by_role("button", name="Mediation: full. About this session").click()
    await details.get_by_role("link", name="What is recorded of it").click()
    records = me.page.get_by_role("list", name="Records", exact=True).get_by_role("button")
    await expect(records.filter(has_text="session begun")).to_have_count(1)
    await me.page.goto(f"{me.serving.base}/#/policy")
    await expect(me.page.get_by_role("region", name="Recent decisions")).to_be_visible()
    await me.settled()
    await me.picture(f"policy-{look}")
    assert await findings(me.page) == []


async def test_decisions_are_listed_page_by_page_and_an_error_can_be_tried_again(arrive: Arrive) -> None:
    me = await arrive()
    pages = {
        "": {"decisions": [_decision(2, by="cancel")], "nextCursor": "older"},
        "older": {"decisions": [_decision(1, rule="tests")]},
    }
    refused: list[str] = []

    async def answer(route: Route) -> None:
        cursor = parse_qs(urlsplit(route.request.url).query).get("cursor", [""])[0]
        if not refused:
            refused.append(cursor)
            await route.fulfill(status=409, json={"error": "No audit is kept here.", "code": "no_audit"})
        else:
            await route.fulfill(json=pages[cursor])

    await me.page.route("**/api/policy/decisions*", answer)
    await me.page.evaluate("window.location.hash = '#/policy'")
    recent = me.page.get_by_role("region", name="Recent decisions")
    await expect(recent).to_contain_text("No audit is kept here.")
    await recent.get_by_role("button", name="Try again").click()
    await expect(recent.get_by_role("listitem")).to_have_count(1)
    await expect(recent.get_by_role("listitem")).to_contain_text("the turn was stopped")
    await recent.get_by_role("button", name="Show older decisions").click()
    await expect(recent.get_by_role("listitem")).to_have_count(2)
    await expect(recent.get_by_role("listitem").last).to_contain_text("by the rule “tests”")
    await expect(recent.get_by_role("button", name="Show older decisions")).to_have_count(0)
    me.complaints.clear()  # the browser calls a 409 an error


def _decision(number: int, **who: str) -> dict[str, str]:
    return {
        **who,
        "id": f"20261118-aaaaaaaa:{number}",
        "session": "dgm_x",
        "time": "2026-11-18T03:31:02.123Z",
        "title": f"make {number}",
        "decision": "allow",
    }
