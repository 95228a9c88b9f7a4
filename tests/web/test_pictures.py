"""The pictures in `docs/images`: what the chat looks like while somebody works with it.

`DRAGOMAN_TEST_SCREENSHOTS=FOLDER pytest tests/web/test_pictures.py` makes them anew, and more than the docs show.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import expect

from dragoman.audit.chain import Chain
from dragoman.wire import timestamps
from support.agents.sample_prompts import ANSWER, EDIT, QUESTION, RAN, READ, USAGE, plan, say, script
from support.gateway_process import GatewayProcess
from support.serve_process import ServeProcess, UrlFraming
from support.web.browser import Arrive, Person

from .conftest import AGENTS, close_pages, end_serving

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
    (folder / ".git").mkdir()  # it is a project of its own
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


RULES = [
    {
        "name": "deploys need two people",
        "decision": "ask",
        "command": [["kubectl", "apply"]],
        "approvals": 2,
        "approvers": ["role:approve"],
    },
    {"name": "nothing outside the project", "decision": "deny", "access": "write", "outside_workspace": True},
    {"name": "tests", "decision": "allow", "command": [["pytest"], ["git", ["status", "diff"]]]},
]
DEPLOY = "Deploy what we have"
HOUR = 3_600_000


def asks(line: str, call: str) -> str:
    tool = {"toolCallId": call, "kind": "execute", "title": line, "rawInput": {"command": line}}
    return "ask " + json.dumps({"toolCall": tool})


def record_a_week(home: Path, shop: Path) -> None:
    """What the days before left in the audit."""
    before, now = timestamps.now, time.time_ns() // 1_000_000
    lines = ["git status", "pytest -q", "git diff", "pytest -q tests/shop", "touch ../notes.txt", "npm test"]
    chain = Chain(home / "audit")
    try:
        for number in range(700):
            at = timestamps.timestamp(now - 6 * 24 * HOUR + number * 6 * 24 * HOUR // 700)
            timestamps.now = lambda at=at: at  # type: ignore[misc]
            if not 7 <= int(at[11:13]) < 19 or number * 7919 % 5 == 0:
                continue
            line = lines[number * 31 % len(lines)]
            denied = line.startswith("touch")
            words = {"commands": [{"words": line.split()}], "paths": [], "hosts": []}
            facts = {
                "session": f"dgm_{number // 40}",
                "agent": "claude" if number % 3 else "codex",
                "call": f"c{number}",
            }
            by = "nothing outside the project" if denied else "tests"
            chain.append(
                "decision", {**facts, "decision": "deny" if denied else "allow", "by": by, "act": words}
            )
            if number % 60 == 0:
                chain.append("unmediated", {**facts, "title": "Read src/shop.py"})
    finally:
        timestamps.now = before
    chain.close()


@pytest_asyncio.fixture(loop_scope="session")
async def ruled(home: Path, shop: Path, people: list[Person]) -> AsyncIterator[ServeProcess]:
    scripts = {
        DEPLOY: script(asks("cd deploy && kubectl apply -f app.yaml", "d1"), say("The new version runs.")),
        "Note it down": script(asks("date >> /etc/motd", "n1"), say("I may not write there.")),
    }
    (shop / "demo.json").write_text(json.dumps(scripts))
    record_a_week(home, shop)
    framing = UrlFraming()
    config = {"default_agent": "demo", "agents": AGENTS, "policy": {"rules": RULES, "remember": "gateway"}}
    gateway = await GatewayProcess.start(home, "serve", "--port", "0", config=config, framing=framing)
    serving = ServeProcess(gateway, await framing.url())
    yield serving
    await close_pages(people)  # before the end of the gateway, which is no part of the test
    await end_serving(serving)


async def test_people_approve_and_look_back(arrive: Arrive, ruled: ServeProcess, shop: Path) -> None:
    secrets = {}
    for name, role in (("mia", "control"), ("ann", "approve"), ("bob", "approve")):
        made = await ruled.http().post("/api/tokens", json={"name": name, "role": role})
        secrets[name] = made.json()["secret"]
    mia = await arrive(serving=ruled, token=secrets["mia"])
    await mia.start_session(shop, DEPLOY, agent="demo")
    place = f"/#/s/{mia.session_id}"
    ann = await arrive(place, serving=ruled, token=secrets["ann"])
    await ann.page.get_by_role("alertdialog").get_by_role("button", name="Allow").first.click()
    bob = await arrive(place, serving=ruled, token=secrets["bob"])
    question = bob.page.get_by_role("alertdialog")
    await expect(question).to_contain_text("ann approved")
    await bob.settled()
    await bob.picture("approval")
    await question.get_by_role("button", name="Allow").first.click()
    await mia.ready()
    me = await arrive(serving=ruled)
    await ask(me, shop, "Note it down")
    await me.ready()
    await me.page.goto(f"{ruled.base}/#/audit")
    rows = me.page.get_by_role("list", name="Records", exact=True).get_by_role("button")
    await rows.filter(has_text="deny").first.click()
    await expect(me.page.get_by_role("heading", name="The rule")).to_be_visible()
    await expect(me.page.get_by_text("Counting")).to_have_count(0)
    await me.settled()
    await me.picture("audit")
