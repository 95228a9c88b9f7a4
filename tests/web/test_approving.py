"""Questions that several people have to approve, in the page: who said what, who is waited for, and what ends it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Locator, expect

from support.gateway_process import GatewayProcess
from support.serve_process import ServeProcess, UrlFraming
from support.web.axe import findings
from support.web.browser import Arrive, Person

from .conftest import AGENTS, close_pages, end_serving

pytestmark = pytest.mark.asyncio(loop_scope="session")

RULE = {
    "name": "deploys need two people",
    "decision": "ask",
    "command": [["kubectl", "apply"]],
    "approvals": 2,
    "approvers": ["role:approve"],
}
LINE = "cd deploy && kubectl apply -f app.yaml && cat /etc/hostname"


@pytest_asyncio.fixture(loop_scope="session")
async def guarded(people: list[Person]) -> AsyncIterator[ServeProcess]:
    with tempfile.TemporaryDirectory(prefix="dgm-") as home:
        framing = UrlFraming()
        policy = {"rules": [RULE], "remember": "gateway"}
        config = {"default_agent": "scripted", "agents": AGENTS, "policy": policy}
        gateway = await GatewayProcess.start(
            Path(home), "serve", "--port", "0", config=config, framing=framing
        )
        serving = ServeProcess(gateway, await framing.url())
        yield serving
        await close_pages(people)  # before the end of the gateway, which is no part of the test
        await end_serving(serving)


def command(line: str, call: str) -> str:
    tool = {"toolCallId": call, "kind": "execute", "title": line, "rawInput": {"command": line}}
    return "permission " + json.dumps({"toolCall": tool})


async def comes(
    arrive: Arrive, guarded: ServeProcess, name: str, role: str, place: str = "/", look: str = "dark"
) -> Person:
    made = await guarded.http().post("/api/tokens", json={"name": name, "role": role})
    secret = made.json()["secret"]
    return await arrive(place, serving=guarded, token=secret, dark=look != "light", phone=look == "phone")


def card(person: Person) -> Locator:
    return person.page.get_by_role("alertdialog")


@pytest.mark.parametrize("look", ["dark", "light", "phone"])
async def test_two_people_approve_and_the_one_who_prompted_does_not_count(
    arrive: Arrive, guarded: ServeProcess, workspace: Path, look: str
) -> None:
    writer = await comes(arrive, guarded, f"writer-{look}", "control", look=look)
    await writer.start_session(workspace, command(LINE, "c1"))
    await expect(card(writer)).to_contain_text("You sent the prompt: another person has to approve.")
    await expect(card(writer)).to_contain_text("it needs 2 approvals of those with the role approve")
    assert await card(writer).get_by_role("button", name="Allow").count() == 0
    place = f"/#/s/{writer.session_id}"
    ann = await comes(arrive, guarded, f"ann-{look}", "approve", place, look)
    facts = card(ann).get_by_role("group", name="What the rules see")
    await expect(
        facts.get_by_role("listitem").filter(has_text="kubectl apply -f app.yaml").first
    ).to_be_visible()
    await expect(facts.get_by_role("listitem").filter(has_text="/etc/hostname").last).to_contain_text(
        "outside the project"
    )
    await expect(card(ann)).to_contain_text(f"Prompted by writer-{look}")
    await ann.settled()
    await ann.picture(f"approve-{look}")
    assert await findings(ann.page) == []
    await card(ann).get_by_role("button", name="Allow").first.click()
    await expect(card(ann)).to_contain_text("You approved. It waits for another person.")
    await expect(card(writer)).to_contain_text(f"ann-{look} approved")
    await writer.settled()
    await ann.picture(f"approve-{look}-said")
    await writer.picture(f"approve-{look}-writer")
    assert await findings(writer.page) == []
    bob = await comes(arrive, guarded, f"bob-{look}", "approve", place, look)
    await expect(card(bob)).to_contain_text(f"ann-{look} approved")
    await card(bob).get_by_role("button", name="Allow").first.click()
    for person in (writer, ann, bob):
        await expect(card(person)).to_have_count(0)
        await expect(person.page.get_by_role("group", name="Permission: Allowed once")).to_contain_text(
            f"ann-{look} and bob-{look}"
        )
    await writer.ready()
    await writer.settled()
    await writer.picture(f"approve-{look}-done")


async def test_one_rejection_ends_it(arrive: Arrive, guarded: ServeProcess, workspace: Path) -> None:
    writer = await comes(arrive, guarded, "writer", "control")
    await writer.start_session(workspace, command("kubectl apply -f x", "c1"))
    place = f"/#/s/{writer.session_id}"
    ann = await comes(arrive, guarded, "ann", "approve", place)
    bob = await comes(arrive, guarded, "bob", "approve", place)
    await card(ann).get_by_role("button", name="Allow").first.click()
    await expect(card(bob)).to_contain_text("ann approved")
    await card(bob).get_by_role("button", name="Reject").first.click()
    for person in (writer, ann, bob):
        await expect(card(person)).to_have_count(0)
        await expect(person.page.get_by_role("group", name="Permission: Refused")).to_be_visible()
    await expect(ann.page.get_by_role("group", name="Permission: Refused")).to_contain_text("bob")
    await writer.ready()


async def test_an_approver_sees_what_waits_and_can_do_nothing_else(
    arrive: Arrive, guarded: ServeProcess, workspace: Path
) -> None:
    writer = await comes(arrive, guarded, "writer-2", "control")
    await writer.start_session(workspace, command("kubectl apply -f y", "c1"))
    ann = await comes(arrive, guarded, "ann-2", "approve")
    await expect(ann.page.get_by_role("heading", name="What waits for an answer")).to_be_visible()
    row = ann.page.get_by_role("list", name="Waiting sessions").get_by_role("link")
    await expect(row).to_contain_text("1 question")
    await ann.settled()
    await ann.picture("approver-start")
    assert await findings(ann.page) == []
    await row.click()
    await expect(card(ann)).to_be_visible()
    await expect(ann.composer).to_be_disabled()
    for absent in ("Stop (Esc)", "Attach files"):
        assert await ann.page.get_by_role("button", name=absent).count() == 0
    await card(ann).get_by_role("button", name="Reject").first.click()
    await writer.ready()
    await ann.page.goto(f"{guarded.base}/#/")
    await expect(ann.page.get_by_text("Nothing waits now.")).to_be_visible()
