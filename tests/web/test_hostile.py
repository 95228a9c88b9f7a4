"""An agent that sends nonsense costs the page that nonsense, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.async_api import expect

from bridge.test_hostile import HOSTILE, NAMES, STRANGE
from support.web.browser import Arrive

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_hostile_agent_does_not_empty_the_page_also_after_a_reload(
    arrive: Arrive, workspace: Path
) -> None:
    me = await arrive()
    await me.start_session(workspace, "say before it")
    await me.sees("before it")
    await me.ready()
    await me.say("\n".join([*(f"update {json.dumps(update)}" for update in HOSTILE), "say after it"]))
    await me.sees("after it")
    await me.ready()
    await me.page.reload()
    feed = me.page.get_by_role("feed")
    await expect(feed.get_by_text("before it", exact=True)).to_be_visible()
    await expect(feed.get_by_text("after it", exact=True)).to_be_visible()
    await expect(me.page.get_by_text("a step")).to_be_visible()
    await expect(me.page.get_by_text("could not be shown")).to_have_count(0)
    await me.say("say goes on")
    await expect(feed.get_by_text("goes on", exact=True)).to_be_visible()


async def test_strange_values_cost_the_page_nothing(arrive: Arrive, workspace: Path) -> None:
    me = await arrive()
    await me.start_session(workspace, "say before it")
    await me.sees("before it")
    await me.ready()
    await me.say("\n".join([*(f"update {json.dumps(update)}" for update in STRANGE), "say after it"]))
    await me.sees("after it")
    await me.ready()
    feed = me.page.get_by_role("feed")
    for part in range(10, -1, -1):
        await feed.evaluate(f"e => e.scrollTop = e.scrollHeight * {part / 10}")
        await me.page.evaluate(
            "() => new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))"
        )
        await expect(me.page.get_by_text("could not be shown")).to_have_count(0)
    await me.composer.fill("/")
    await expect(me.page.get_by_role("option", name="toString")).to_be_visible()
    question = json.dumps(
        {
            "sessionId": "{sid}",
            "toolCall": {"toolCallId": "q", "kind": "constructor", "rawInput": {"command": [None]}},
            "options": [{"optionId": name, "name": f"Take {name}", "kind": name} for name in NAMES],
        }
    )
    await me.say(f"request session/request_permission {question}")
    await me.page.get_by_role("button", name="Take toString").click()
    await me.sees('"optionId": "toString"')
    await me.ready()
