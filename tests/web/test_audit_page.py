"""The page of the audit: what agents did, found, counted, shown in full, checked and exported."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, expect

from dragoman.audit.chain import Chain
from support.gateway_process import GatewayProcess
from support.serve_process import ServeProcess, UrlFraming
from support.web.axe import findings
from support.web.browser import Arrive, Person

from .conftest import AGENTS, close_pages, end_serving

pytestmark = pytest.mark.asyncio(loop_scope="session")

RULES = [
    {"name": "listing", "decision": "allow", "command": [["ls"]]},
    {"name": "no rm", "decision": "deny", "command": [["rm"]], "reason": "Move it to the bin."},
]
HOSTILE = '<img src=x onerror="window.hacked=1"> \u202egnp.exe [x](javascript:alert(1)) ' + "w" * 400
MANY = 5000


def fill(home: Path) -> None:
    """What another process recorded before: much of one kind, and one record that an agent meant to be harmful."""
    chain = Chain(home / "audit")
    act = {"commands": [{"words": ["make", "test"]}], "paths": [], "hosts": []}
    for number in range(MANY):
        facts: dict[str, Any] = {"session": f"dgm_{number % 9}", "agent": "old", "call": f"c{number}"}
        chain.append("decision", {**facts, "decision": "allow", "by": "make", "act": act})
    chain.append("unmediated", {"session": "dgm_evil", "agent": "old", "call": HOSTILE, "title": HOSTILE})
    chain.close()


@pytest_asyncio.fixture(loop_scope="session")
async def recording(home: Path, people: list[Person]) -> AsyncIterator[ServeProcess]:
    await asyncio.to_thread(fill, home)
    framing = UrlFraming()
    config = {"default_agent": "scripted", "agents": AGENTS, "policy": {"rules": RULES}}
    gateway = await GatewayProcess.start(home, "serve", "--port", "0", config=config, framing=framing)
    serving = ServeProcess(gateway, await framing.url())
    yield serving
    await close_pages(people)  # before the end of the gateway, which is no part of the test
    await end_serving(serving)


def command(line: str, call: str) -> str:
    tool = {"toolCallId": call, "kind": "execute", "title": line, "rawInput": {"command": line}}
    return "permission " + json.dumps({"toolCall": tool})


def rows(page: Page) -> Locator:
    return page.get_by_role("list", name="Records", exact=True).get_by_role("button")


async def work(me: Person, workspace: Path) -> str:
    """A session in which one thing was allowed and one denied."""
    await me.start_session(workspace, command("ls src", "c1"))
    await me.ready()
    await me.say(command("rm -rf /etc/x", "c2"))
    await me.ready()
    return me.session_id


async def open_audit(me: Person) -> None:
    await me.page.get_by_role("button", name="Audit: what agents did").click()
    await expect(me.page.get_by_role("heading", name="Audit", exact=True)).to_be_visible()
    await expect(rows(me.page).first).to_be_visible()


@pytest.mark.parametrize("look", ["dark", "light", "phone"])
async def test_what_was_denied_is_found_and_shown_in_full(
    arrive: Arrive, recording: ServeProcess, workspace: Path, look: str
) -> None:
    me = await arrive(serving=recording, dark=look == "dark", phone=look == "phone")
    session = await work(me, workspace)
    if look == "phone":
        await me.page.get_by_role("button", name="Sessions", exact=True).tap()
    await open_audit(me)
    await expect(me.page.get_by_role("region", name="Timeline")).to_contain_text("1 denied")
    await me.settled()
    await me.picture(f"audit-{look}")
    assert await findings(me.page) == []
    if look == "phone":
        await me.page.get_by_text("Filters").first.tap()
    await me.page.get_by_label("Decision", exact=True).select_option("deny")
    await expect(rows(me.page)).to_have_count(1)
    await expect(me.page).to_have_url(re.compile("decision=deny"))
    await rows(me.page).first.click()
    detail = me.page.get_by_role("region", name="Record", exact=True)
    await expect(detail.get_by_role("list", name="What would be done")).to_contain_text("rm -rf /etc/x")
    await expect(detail.get_by_role("listitem").filter(has_text="/etc/x").last).to_contain_text(
        "outside the project"
    )
    await expect(detail.get_by_role("group", name="The rule")).to_contain_text('name = "no rm"')
    await expect(detail.get_by_text(re.compile("^[0-9a-f]{64}$")).first).to_be_visible()
    await expect(detail.get_by_role("heading", name="The same call")).to_be_visible()
    await me.settled()
    await me.picture(f"audit-{look}-record")
    assert await findings(me.page) == []
    await me.page.keyboard.press("Escape")
    await expect(detail).to_have_count(0)
    await me.page.reload()
    await expect(rows(me.page)).to_have_count(1)  # the address has the filter
    await me.page.evaluate("id => { window.location.hash = `#/audit?session=${id}` }", session)
    await expect(rows(me.page).filter(has_text="session begun")).to_have_count(1)


async def test_a_bar_of_the_timeline_narrows_the_time(
    arrive: Arrive, recording: ServeProcess, workspace: Path
) -> None:
    me = await arrive(serving=recording)
    await open_audit(me)
    bars = me.page.get_by_role("group", name=re.compile("^Records of each")).get_by_role("button")
    await expect(bars.last).to_have_accessible_name(re.compile("record"))
    await bars.last.focus()
    await me.page.keyboard.press("Enter")
    await expect(me.page).to_have_url(re.compile("since=.*until="))
    await me.page.get_by_role("button", name="Show the whole time").click()
    await expect(me.page).not_to_have_url(re.compile("since="))


async def test_thousands_of_records_are_a_few_rows_at_a_time(arrive: Arrive, recording: ServeProcess) -> None:
    me = await arrive("/#/audit", serving=recording)
    await expect(me.page.get_by_role("region", name="Timeline")).to_contain_text(f"{MANY:,}"[:2])
    await expect(rows(me.page).first).to_be_visible()
    await rows(me.page).first.focus()
    for _ in range(12):
        await me.page.keyboard.press("End")
        await expect(me.page.get_by_role("list", name="Records", exact=True)).to_have_attribute(
            "aria-busy", "false"
        )
    assert await rows(me.page).count() < 80
    await expect(me.page.locator("[data-row]:focus")).to_have_count(1)
    assert int(await me.page.locator("[data-row]:focus").get_attribute("data-row") or 0) > 1000


async def test_what_an_agent_wrote_is_text_and_nothing_else(arrive: Arrive, recording: ServeProcess) -> None:
    me = await arrive("/#/audit?unmediated=true", serving=recording)
    await expect(rows(me.page)).to_have_count(1)
    await rows(me.page).first.click()
    detail = me.page.get_by_role("region", name="Record", exact=True)
    await expect(detail).to_contain_text('<img src=x onerror="window.hacked=1">')
    await expect(rows(me.page)).to_contain_text(
        "⟨U+202E⟩gnp.exe"
    )  # it does not turn the words after it around
    await detail.get_by_text("All of it, as JSON").click()
    assert await me.page.evaluate("window.hacked") is None
    assert await me.page.locator("main img").count() == 0
    assert await me.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    await me.picture("audit-hostile")


async def test_the_check_says_what_is_proved_and_then_what_is_wrong(
    arrive: Arrive, recording: ServeProcess, home: Path
) -> None:
    me = await arrive("/#/audit", serving=recording)
    await me.page.get_by_role("button", name="Check that nothing was changed").click()
    check = me.page.get_by_role("region", name="Check of the audit")
    await expect(check).to_contain_text("Consistent here.")
    await expect(check).to_contain_text("Not anchored elsewhere")
    await me.picture("audit-check")
    assert await findings(me.page) == []
    [segment] = [path for path in home.glob("audit/*/*1.ndjson") if path.stat().st_size > 500_000]
    segment.write_bytes(segment.read_bytes().replace(b'"call":"c7"', b'"call":"c8"', 1))
    await check.get_by_role("button", name="Check again").click()
    await expect(check).to_contain_text("Not consistent.")
    await expect(check.get_by_role("list", name="Problems")).to_contain_text(
        "it was changed after it was written"
    )
    await me.settled()
    await me.picture("audit-check-broken")
    assert await findings(me.page) == []
    await check.get_by_role("list", name="Problems").get_by_role("button").first.click()
    await expect(me.page.get_by_role("region", name="Record", exact=True)).to_contain_text("c8")


async def test_what_is_shown_can_be_saved(arrive: Arrive, recording: ServeProcess) -> None:
    me = await arrive("/#/audit?kind=unmediated", serving=recording)
    await expect(rows(me.page)).to_have_count(1)
    await me.page.get_by_role("button", name="Export").click()
    async with me.page.expect_download() as saving:
        await me.page.get_by_role("menuitem", name="Export what is shown as CSV").click()
    saved = (await (await saving.value).path()).read_text()
    assert len(saved.splitlines()) == 2 and "dgm_evil" in saved


async def test_nothing_found_and_no_gateway_say_what_to_do(arrive: Arrive, recording: ServeProcess) -> None:
    me = await arrive("/#/audit?tool=none", serving=recording)
    await me.sees("No record matches these filters.")
    await me.page.get_by_role("list", name="Records").count()
    await me.page.get_by_role("button", name="Clear filters").last.click()
    await expect(rows(me.page).first).to_be_visible()
    await me.page.route("**/api/audit**", lambda route: route.abort())
    await me.page.get_by_role("button", name="Look again").click()
    await me.sees("The gateway cannot be reached.")
    await me.picture("audit-unreachable")
    await me.page.unroute("**/api/audit**")
    await me.page.get_by_role("button", name="Try again").click()
    await expect(rows(me.page).first).to_be_visible()
    me.complaints.clear()  # the browser calls an aborted request an error


async def test_others_are_told_what_is_not_shown(arrive: Arrive, recording: ServeProcess) -> None:
    tokens = recording.http()
    made = await tokens.post("/api/tokens", json={"name": "worker", "role": "control"})
    me = await arrive("/#/audit", serving=recording, token=made.json()["secret"])
    await me.sees("are for the role admin")
    await expect(rows(me.page).first).to_be_visible()
    await expect(rows(me.page).filter(has_text="token made")).to_have_count(0)
    made = await tokens.post("/api/tokens", json={"name": "eye", "role": "observe"})
    eye = await arrive("/#/audit", serving=recording, token=made.json()["secret"])
    await eye.sees("needs the role control")
    await eye.sees("Ask for a token with that role.")
    eye.complaints.clear()  # the browser calls a 403 an error
