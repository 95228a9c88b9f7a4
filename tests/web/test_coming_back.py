"""Reloads, other tabs, other devices, a gateway that dies: nothing is lost and nothing comes twice."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import expect

from support.agents.sample_prompts import QUESTION, script
from support.web.browser import Arrive

from .conftest import Mortal

pytestmark = pytest.mark.asyncio(loop_scope="session")

NOTED = """window.noted = new Promise(heard => {
    window.Notification = class {
        static permission = 'granted';
        static requestPermission = async () => 'granted';
        constructor(title, options) { Object.assign(this, options, { title }); heard(this); }
        close() {}
    };
});"""
"""Notifications as the standard has them, and a promise of the first: a browser without a screen has none to show."""


async def test_a_reload_in_the_middle_of_a_turn_keeps_the_place(
    arrive: Arrive, workspace: Path, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    me = await arrive()
    await me.start_session(workspace, script("say before", f"wait-file {go}", "say after"))
    await me.sees("before")
    await me.composer.fill("half a thought")
    await me.page.reload()
    await me.sees("before")
    await expect(me.composer).to_have_value("half a thought")
    go.touch()
    await me.sees("beforeafter")
    await me.ready()
    await expect(me.page.get_by_text("beforeafter", exact=True)).to_have_count(1)


async def test_a_question_is_there_again_after_a_reload(arrive: Arrive, workspace: Path) -> None:
    me = await arrive()
    await me.start_session(workspace, QUESTION)
    region = me.page.get_by_role("region", name="Waiting for you")
    await expect(region).to_be_visible()
    await me.page.reload()
    await expect(region).to_be_visible()
    await region.get_by_role("button", name="Allow", exact=False).first.click()
    await me.sees('"optionId": "yes"')


async def test_two_tabs_show_the_same_session(arrive: Arrive, workspace: Path) -> None:
    one = await arrive()
    await one.start_session(workspace, "say hello")
    await one.sees("hello")
    two = await arrive(f"/#/s/{one.session_id}", beside=one)
    await two.sees("hello")
    await two.say(QUESTION)
    region = one.page.get_by_role("region", name="Waiting for you")
    await expect(region).to_be_visible()
    await region.get_by_role("button", name="Allow", exact=False).first.click()
    await two.sees('"optionId": "yes"')
    await expect(two.page.get_by_role("region", name="Waiting for you")).to_have_count(0)
    await two.ready()


async def test_a_session_deleted_in_another_tab_says_so(arrive: Arrive, workspace: Path) -> None:
    one = await arrive()
    await one.start_session(workspace, "say short lived")
    await one.ready()
    two = await arrive(f"/#/s/{one.session_id}", beside=one)
    await two.sees("short lived")
    await one.page.get_by_role("button", name="Session actions").click()
    await one.page.get_by_role("menuitem", name="Delete").click()
    await one.sees("Deleted “say short lived”.")
    await two.sees("This session was deleted somewhere else.")
    await two.sees("short lived")


async def test_a_deletion_is_undone(arrive: Arrive, workspace: Path) -> None:
    me = await arrive()
    await me.start_session(workspace, "say keep me please")
    await me.ready()
    row = me.page.get_by_role("navigation").get_by_role("link", name=re.compile("keep me please"))
    await me.page.get_by_role("button", name="Session actions").click()
    await me.page.get_by_role("menuitem", name="Delete").click()
    await expect(row).to_have_count(0)
    await me.picture("undo")
    await me.page.get_by_role("button", name="Undo").click()
    await expect(row).to_be_visible()


async def test_a_session_is_renamed_and_found(arrive: Arrive, workspace: Path) -> None:
    me = await arrive()
    await me.start_session(workspace, "say anything")
    await me.ready()
    await me.page.get_by_role("button", name="Session actions").click()
    await me.page.get_by_role("menuitem", name="Rename").click()
    await me.page.get_by_role("textbox", name="Session title").fill("A very particular name")
    await me.page.get_by_role("textbox", name="Session title").press("Enter")
    await expect(me.page.get_by_role("heading", name="A very particular name")).to_be_visible()
    await me.page.keyboard.press("Control+k")
    await me.page.keyboard.type("particular")
    await expect(me.page.get_by_role("navigation").get_by_role("listitem")).to_have_count(1)


async def test_what_is_typed_behind_ctrl_k_is_searched_for_on_any_screen(arrive: Arrive) -> None:
    me = await arrive()
    await expect(me.page.locator("textarea")).to_be_focused()  # the page is whole
    field = me.page.get_by_role("searchbox")
    for width in (1280, 390):
        await me.page.set_viewport_size({"width": width, "height": 800})
        focused = await me.page.evaluate(
            """() => {
                document.activeElement.blur();
                document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "k", ctrlKey: true, bubbles: true}));
                return document.activeElement.type;
            }"""
        )
        assert focused == "search", "at once, not with the next frame"
        await me.page.keyboard.type("here")
        await expect(field).to_have_value("here")
        await field.fill("")
        await me.page.keyboard.press("Escape")


async def test_a_session_in_a_sandbox_is_closed_and_goes_on(arrive: Arrive, workspace: Path) -> None:
    me = await arrive()
    await me.page.get_by_role("button", name="Sandbox: As configured").click()
    await me.page.get_by_role("option", name="here").click()
    await me.start_session(workspace, "say in a box")
    await me.ready()
    await expect(me.page.get_by_title("The agent runs in this sandbox")).to_have_text("here")
    await me.page.get_by_role("button", name="Session actions").click()
    await me.page.get_by_role("menuitem", name="Close").click()
    await expect(me.page.get_by_role("main").get_by_label("Asleep")).to_be_visible()
    await me.say("say back again")
    await expect(me.page.get_by_text("back again", exact=True)).to_be_visible()


async def test_who_looks_elsewhere_is_notified(arrive: Arrive, workspace: Path, tmp_path: Path) -> None:
    go = tmp_path / "go"
    me = await arrive()
    await me.page.add_init_script(NOTED)
    await me.page.reload()
    await me.page.get_by_role("button", name="Notify me when a session waits").click()
    await me.start_session(workspace, script(f"wait-file {go}", QUESTION))
    await expect(me.page.get_by_role("button", name="Stop (Esc)")).to_be_visible()
    asking = me.page.url
    await me.page.get_by_role("link", name="Dragoman", exact=True).click()
    go.touch()
    await expect(me.page).to_have_title(re.compile(r"^\(1\) waiting for you"))
    assert await me.page.evaluate("noted.then(note => note.title)") == "scripted waits for you"
    await me.page.evaluate("noted.then(note => note.onclick())")
    await expect(me.page).to_have_url(asking)
    await expect(me.page.get_by_role("region", name="Waiting for you")).to_be_visible()


async def test_a_session_is_taken_along_as_a_file(arrive: Arrive, workspace: Path) -> None:
    me = await arrive()
    await me.start_session(workspace, "say for posterity")
    await me.ready()
    await me.page.get_by_role("button", name="Session actions").click()
    async with me.page.expect_download() as coming:
        await me.page.get_by_role("menuitem", name="Export as Markdown").click()
    download = await coming.value
    assert download.suggested_filename.endswith(".md")
    assert "for posterity" in (await download.path()).read_text()


async def test_a_gateway_killed_in_the_middle_of_a_turn_comes_back_and_nothing_is_lost(
    arrive: Arrive, own: Mortal, workspace: Path, tmp_path: Path
) -> None:
    me = await arrive(serving=own.serving)
    await me.start_session(workspace, script("say before the end", f"wait-file {tmp_path / 'never'}"))
    await expect(
        me.page.get_by_text("before the end", exact=True)
    ).to_be_visible()  # by the agent, not in the script
    await own.kill()
    await me.sees("The connection to the gateway is lost. Reconnecting…")
    await me.say("say written offline")
    await me.sees("1 message waits to be sent.")
    await me.picture("offline")
    await own.rise()
    await expect(me.page.get_by_text("Reconnecting")).to_have_count(0)
    await expect(me.page.get_by_text("written offline", exact=True)).to_be_visible()
    await me.ready()
    await expect(me.page.get_by_text("before the end", exact=True)).to_have_count(1)
    await expect(me.page.get_by_text("say written offline")).to_have_count(1)


async def test_a_load_that_fails_is_forgiven_only_while_the_gateway_is_down(arrive: Arrive) -> None:
    me = await arrive()
    await me.page.route("**/api/sessions", lambda route: route.abort("connectionreset"))
    me.outage.begin()
    for expected in ([], ["Failed to load resource: net::ERR_CONNECTION_RESET"]):
        async with me.page.expect_console_message(lambda message: message.type == "error"):
            await me.page.evaluate("fetch('/api/sessions').catch(() => null)")
        assert me.complaints == expected
        await me.outage.end()
    me.complaints.clear()
