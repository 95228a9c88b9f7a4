"""A conversation in the browser, against a real gateway and a real agent."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import Dialog, expect

from support.agents.sample_prompts import ANSWER, EDIT, QUESTION, RAN, READ, TERMINAL, USAGE, plan, script
from support.web.browser import Arrive

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_conversation_with_thoughts_tools_a_diff_a_terminal_and_a_question(
    arrive: Arrive, workspace: Path
) -> None:
    me = await arrive()
    await me.picture("start")
    await me.start_session(workspace, "Make the greeting friendlier, please.")
    await me.ready()
    begin = plan("completed", "in_progress", "pending")
    await me.say(
        script("think Where is it?", begin, READ, EDIT, USAGE, QUESTION, RAN, TERMINAL, ANSWER,
               plan(*["completed"] * 3))
    )  # fmt: skip
    await expect(me.page.get_by_role("region", name="Waiting for you")).to_be_visible()
    await expect(me.page).to_have_title(re.compile(r"^\(\d\) waiting for you · Make the greeting"))
    await me.picture("permission")
    await me.page.get_by_role("button", name="Allow", exact=False).first.click()
    await me.sees("The greeting is friendlier now:")
    await me.ready()
    await expect(me.page.get_by_text("Good day,").first).to_be_visible()
    ran = me.page.get_by_role("group", name="Tool call: python -m pytest -q")
    await expect(ran.get_by_label("Last lines of the output")).to_have_text("12 passed in 0.31s")
    screen = me.page.get_by_role("region", name="Terminal output")
    await expect(screen.get_by_text("warm", exact=True)).to_have_attribute("style", re.compile("ansi-1"))
    await me.picture("conversation")


async def test_the_built_in_agent_answers(arrive: Arrive, workspace: Path) -> None:
    (workspace / "notes.md").write_text("remember the milk\n")
    me = await arrive()
    await me.start_session(workspace, agent="builtin")
    await me.composer.press_sequentially("/rea")
    await expect(me.page.get_by_role("listbox", name="Commands")).to_be_visible()
    await me.picture("commands")
    await me.composer.press("Tab")
    await me.composer.press_sequentially("notes.md")
    await me.composer.press("Enter")
    await me.ready()
    read = me.page.get_by_role("group", name="Tool call: Read notes.md, done")
    await expect(read).to_contain_text("remember the milk")
    await expect(me.page.get_by_role("feed").get_by_text("remember the milk")).to_have_count(1)
    await me.say("/run seq 3 9")
    await me.page.get_by_role("button", name="Allow", exact=False).first.click()
    ran = me.page.get_by_role("group", name="Tool call: `seq 3 9`, done")
    await expect(ran).to_contain_text("[exit code 0]")
    await expect(me.page.get_by_role("feed").get_by_text("[exit code 0]")).to_have_count(1)
    await me.say("/help")  # in full, so that Enter sends it
    await me.ready()
    await expect(me.composer).to_have_value("")


async def test_a_command_is_seen_while_it_runs_and_stopped_without_many_words(
    arrive: Arrive, workspace: Path
) -> None:
    me = await arrive()
    await me.start_session(workspace, "/run echo begun; sleep 60", agent="builtin")
    await expect(me.page.get_by_role("region", name="Waiting for you")).to_be_visible()
    await me.page.get_by_role("button", name="Allow", exact=False).first.click()
    card = me.page.get_by_role("group", name="Tool call: `echo begun; sleep 60`")
    await expect(card.get_by_label("Last lines of the output")).to_have_text("begun")
    await me.page.get_by_role("button", name="Stop (Esc)").click()
    await me.sees("You stopped this turn.")
    await expect(card.get_by_text("interrupted")).to_be_visible()
    await expect(card).to_contain_text("begun")
    await expect(me.page.get_by_role("feed").get_by_text("cancelled")).to_have_count(0)


async def test_what_failed_or_was_refused_is_said_once(arrive: Arrive, workspace: Path) -> None:
    me = await arrive()
    await me.start_session(workspace, "/read nope.py", agent="builtin")
    await me.ready()
    feed = me.page.get_by_role("feed")
    await expect(feed.get_by_text("There is no file nope.py.")).to_have_count(1)
    await me.say("/write a.txt hello")
    question = me.page.get_by_role("region", name="Waiting for you")
    await expect(question.get_by_text("hello")).to_be_visible()
    await expect(feed.get_by_text("hello", exact=True)).to_have_count(0)
    await question.get_by_role("button", name="Reject").click()
    await me.ready()
    card = me.page.get_by_role("group", name="Tool call: Make a.txt, refused")
    await expect(card).to_be_visible()
    await expect(feed.get_by_text("rejected this")).to_have_count(0)


async def test_a_turn_is_stopped_with_escape(arrive: Arrive, workspace: Path) -> None:
    me = await arrive()
    await me.start_session(workspace, "sleep-until-cancel I wait.")
    await me.sees("I wait.")
    await expect(me.page.get_by_role("button", name="Stop (Esc)")).to_be_visible()
    await me.composer.press("Escape")
    await me.ready()


async def test_a_message_waits_for_the_turn_and_can_be_changed_or_dropped(
    arrive: Arrive, workspace: Path
) -> None:
    me = await arrive()
    await me.start_session(workspace, "sleep-until-cancel busy")
    await me.sees("busy")
    await me.say("say one")
    await me.say("say two")
    queue = me.page.get_by_role("list", name="Queued messages")
    await expect(queue.get_by_role("listitem")).to_have_count(2)
    await me.picture("queue")
    await queue.get_by_role("listitem").nth(0).get_by_role("button", name="Edit").click()
    await queue.get_by_role("textbox").fill("say uno")
    await queue.get_by_role("textbox").press("Enter")
    await expect(queue.get_by_text("say uno")).to_be_visible()
    await queue.get_by_role("listitem").nth(1).get_by_role("button", name="Remove").click()
    await expect(queue.get_by_role("listitem")).to_have_count(1)
    await me.page.get_by_role("button", name="Stop (Esc)").click()
    await queue.get_by_role("button", name="Send now").click()
    await expect(me.page.get_by_text("uno", exact=True)).to_be_visible()
    await expect(queue).to_have_count(0)


async def test_escape_sends_nothing_that_waits_and_offers_it(arrive: Arrive, workspace: Path) -> None:
    me = await arrive()
    await me.start_session(workspace, "sleep-until-cancel busy")
    await me.sees("busy")
    for word in ("one", "two", "three"):
        await me.say(f"say {word}")
    queue = me.page.get_by_role("list", name="Queued messages")
    waiting = queue.get_by_role("listitem")
    await expect(waiting).to_have_count(3)
    await me.composer.press("Escape")
    await me.ready()
    await me.sees("Stopped. 3 messages not sent.")
    await me.picture("queue-held")
    await me.say("say afterwards")
    feed = me.page.get_by_role("feed")
    await expect(feed.get_by_text("afterwards", exact=True)).to_be_visible()
    await me.page.reload()
    await expect(waiting).to_have_count(3)
    await expect(feed.get_by_text("one", exact=True)).to_have_count(0)
    await waiting.nth(0).get_by_role("button", name="Edit").click()
    await queue.get_by_role("textbox").fill("say uno")
    await queue.get_by_role("textbox").press("Enter")
    await waiting.nth(1).get_by_role("button", name="Remove").click()
    await expect(waiting).to_have_count(2)
    await me.page.get_by_role("button", name="Send all").click()
    await expect(feed.get_by_text("uno", exact=True)).to_be_visible()
    await expect(feed.get_by_text("three", exact=True)).to_be_visible()
    await expect(feed.get_by_text("two", exact=True)).to_have_count(0)
    await expect(queue).to_have_count(0)


async def test_a_file_is_mentioned(arrive: Arrive, workspace: Path) -> None:
    (workspace / "src").mkdir()
    (workspace / "src" / "greeting.py").write_text("")
    me = await arrive()
    await me.start_session(workspace)
    await me.composer.fill("echo-params\n")
    await me.composer.press_sequentially("@sr")
    await expect(me.page.get_by_role("listbox", name="Files")).to_be_visible()
    await me.composer.press("Tab")
    await me.composer.press_sequentially("gre")
    await expect(me.page.get_by_role("option", name="greeting.py")).to_be_visible()
    await me.composer.press("Enter")
    await expect(me.composer).to_have_value("echo-params\n@src/greeting.py ")
    await me.composer.press("Enter")
    await me.sees(f"file://{workspace}/src/greeting.py")


async def test_a_mode_and_an_option_are_chosen(arrive: Arrive, workspace: Path) -> None:
    me = await arrive()
    await me.start_session(workspace)
    await me.page.get_by_role("button", name="Mode: Ask").click()
    await me.page.get_by_role("option", name="Code").click()
    await expect(me.page.get_by_role("combobox", name="Mode: Code")).to_be_visible()
    await me.page.get_by_role("button", name="Model: Small").press("ArrowDown")
    await me.page.get_by_role("option", name="Large").click()
    await expect(me.page.get_by_role("combobox", name="Model: Large")).to_be_visible()


async def test_what_looks_like_a_script_is_shown_and_not_run(arrive: Arrive, workspace: Path) -> None:
    me = await arrive()
    asked: list[str] = []

    async def note(dialog: Dialog) -> None:
        asked.append(dialog.message)
        await dialog.dismiss()

    me.page.on("dialog", note)
    await me.start_session(workspace, "say <img src=x onerror=alert(1)> [go](javascript:alert(2))")
    await me.ready()
    await expect(me.page.get_by_role("feed").get_by_text("<img src=x onerror=alert(1)>")).to_have_count(2)
    title = me.page.get_by_role("heading", level=1)
    await expect(title).to_contain_text("<img src=x onerror=alert(1)>")
    assert await me.page.locator("a[href^='javascript'], img[src=x]").count() == 0
    assert asked == []


async def test_an_own_message_is_scrolled_to_wherever_one_was(arrive: Arrive, workspace: Path) -> None:
    me = await arrive()
    await me.start_session(workspace, "\n".join(f"say line {number}  \nsay  \n\n" for number in range(60)))
    await me.ready()
    feed = me.page.get_by_role("feed")
    await feed.hover()
    await me.page.mouse.wheel(0, -2000)
    await expect(me.page.get_by_role("button", name="go to the latest")).to_be_visible()
    await me.say("say here at the end")
    await expect(feed.get_by_text("here at the end", exact=True)).to_be_in_viewport()
    await expect(me.page.get_by_role("button", name="go to the latest")).to_have_count(0)
