"""A person answers for longer than once in the page, sees what is remembered, and revokes it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import expect

from support.gateway_process import GatewayProcess
from support.serve_process import ServeProcess, UrlFraming
from support.web.browser import Arrive, Person

from .conftest import AGENTS, close_pages, end_serving

pytestmark = pytest.mark.asyncio(loop_scope="session")

LINE = "cd src && make test && cat /etc/hostname"


def command(line: str) -> str:
    tool = {"toolCallId": "c1", "kind": "execute", "title": line, "rawInput": {"command": line}}
    return "permission " + json.dumps({"toolCall": tool})


@pytest_asyncio.fixture(loop_scope="session")
async def remembering(people: list[Person]) -> AsyncIterator[ServeProcess]:
    """A gateway with the default way of remembering."""
    with tempfile.TemporaryDirectory(prefix="dgm-") as home:
        framing = UrlFraming()
        config = {"default_agent": "scripted", "agents": AGENTS, "policy": {"remember": "gateway"}}
        gateway = await GatewayProcess.start(
            Path(home), "serve", "--port", "0", config=config, framing=framing
        )
        serving = ServeProcess(gateway, await framing.url())
        yield serving
        await close_pages(people)  # before the end of the gateway, which is no part of the test
        await end_serving(serving)


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
async def test_an_answer_for_today_is_edited_found_and_revoked(
    arrive: Arrive, remembering: ServeProcess, workspace: Path, phone: bool
) -> None:
    me = await arrive(serving=remembering, phone=phone)
    await me.start_session(workspace)
    await me.say(command(LINE))
    card = me.page.get_by_role("alertdialog")
    facts = card.get_by_role("group", name="What the rules see")
    await expect(facts.get_by_role("listitem").filter(has_text="make test")).to_be_visible()
    await expect(facts.get_by_role("listitem").filter(has_text="/etc/hostname").last).to_contain_text(
        "outside the project"
    )
    await expect(facts).to_contain_text("Asked because no rule is about make test.")
    await card.get_by_role("button", name="Remember this…").click()
    pattern = card.get_by_label("What is allowed")
    await expect(pattern).to_have_value("run make test\nrun cat /etc/hostname")
    if phone:
        await expect(card.get_by_role("button", name="in this project")).not_to_be_visible()
        await expect(card.get_by_role("button", name="Allow and remember")).to_be_in_viewport(ratio=1)
    await me.picture(f"remember-{'phone' if phone else 'desktop'}")
    await pattern.fill("run make *\nrun cat /etc/hostname")
    await pattern.press("y")  # a letter in the field is no answer
    await pattern.fill("run make *\nrun cat /etc/hostname")
    await card.get_by_label("Until when").select_option("today")
    await card.get_by_role("button", name="Allow and remember").click()
    await expect(me.page.get_by_text("Allowed in this project until").first).to_be_visible()
    await me.ready()
    await me.say(command("make lint"))
    await me.ready()
    await expect(card).to_have_count(0)
    if phone:
        await me.page.get_by_role("button", name="Sessions").first.click()
    await me.page.get_by_role("button", name="Policy: rules and decisions").click()
    entry = me.page.get_by_role("region", name="Remembered answers").get_by_role("listitem")
    await expect(entry).to_contain_text("commands that begin with `make`")
    await me.picture(f"remembered-{'phone' if phone else 'desktop'}")
    revoke = entry.get_by_role("button", name="Revoke")
    await expect(revoke).to_be_in_viewport(ratio=1)
    await revoke.click()
    await expect(me.page.get_by_text("Nothing is remembered.")).to_be_visible()
