"""The page itself: who may see it, what it may load, how it fits."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest
from playwright.async_api import expect

from support.serve_process import ServeProcess
from support.web.browser import Arrive
from support.web.figures import FIRST_LOAD, first_load

pytestmark = pytest.mark.asyncio(loop_scope="session")

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)


GIVE = """(field, [kind, data]) => {
    const bytes = Uint8Array.from(atob(data), letter => letter.charCodeAt(0));
    const given = new DataTransfer();
    given.items.add(new File([bytes], `${kind}.png`, { type: "image/png" }));
    const how = { bubbles: true, cancelable: true };
    field.dispatchEvent(kind === "paste" ? new ClipboardEvent(kind, { ...how, clipboardData: given })
        : new DragEvent(kind, { ...how, dataTransfer: given }));
}"""
"""A picture, as a paste or a drop brings it."""


async def test_the_token_leaves_the_address_bar(arrive: Arrive) -> None:
    me = await arrive()
    assert "token" not in me.page.url
    assert "token" not in await me.page.evaluate("document.referrer + document.cookie")


async def test_without_a_token_there_is_a_page_that_says_what_to_do(
    arrive: Arrive, shared: ServeProcess
) -> None:
    stranger = await arrive("/healthz")
    await stranger.page.context.clear_cookies()
    answer = await stranger.page.goto(shared.base)
    assert answer is not None and answer.status == 401
    await stranger.sees("dragoman serve")
    await expect(stranger.page.get_by_text("Authorization")).to_have_count(0)
    await stranger.page.get_by_label("Token").fill(shared.token)
    await stranger.page.get_by_role("button", name="Open").click()
    await expect(stranger.page.get_by_role("heading", name="New session")).to_be_visible()
    assert "token" not in stranger.page.url
    stranger.complaints.clear()  # the browser calls a 401 an error


async def test_a_wrong_folder_is_said_once_and_until_it_is_corrected(arrive: Arrive, workspace: Path) -> None:
    me = await arrive()
    await me.page.get_by_label("Folder", exact=True).fill("/no/such/folder")
    await me.page.get_by_role("button", name="Start").click()
    said = me.page.get_by_text("folder: /no/such/folder")
    await expect(said).to_be_visible()
    await expect(said).to_have_count(1)
    await expect(me.page.get_by_text("cwd")).to_have_count(0)
    await me.page.get_by_label("Folder", exact=True).fill(str(workspace))
    await expect(said).to_have_count(0)


async def test_an_agent_without_a_model_says_what_one_can_write(arrive: Arrive, workspace: Path) -> None:
    me = await arrive()
    examples = me.page.get_by_role("group", name="Examples")
    await expect(examples).to_have_count(0)
    await me.page.locator("input[name=agent][value=builtin]").check(force=True)
    await examples.get_by_role("button", name="/run ls").click()
    first = me.page.get_by_label("First message")
    await expect(first).to_have_value("/run ls")
    await first.fill("")
    await first.press_sequentially("/se")
    await expect(me.page.get_by_role("option", name="/search PATTERN [FOLDER]")).to_be_visible()
    await first.press("Enter")
    await expect(first).to_have_value("/search ")
    await me.start_session(workspace, agent="builtin")
    await examples.get_by_role("button", name="/help").click()
    await expect(me.composer).to_have_value("/help")
    await me.page.get_by_role("button", name="Model: No model").click()
    await me.page.get_by_role("option", name="How to get a model").click()
    await me.sees("To get a language model")


async def test_a_wrong_address_leads_back_to_the_chat(arrive: Arrive, shared: ServeProcess) -> None:
    me = await arrive()
    answer = await me.page.goto(f"{shared.base}/sessions/x")
    assert answer is not None and answer.status == 404
    await me.page.get_by_role("link", name="the start page").click()
    await expect(me.page.get_by_role("heading", name="New session")).to_be_visible()
    me.complaints.clear()  # the browser calls a 404 an error


async def test_a_token_that_is_revoked_is_said_and_nothing_typed_is_lost(
    arrive: Arrive, workspace: Path, shared: ServeProcess
) -> None:
    admin = shared.http()
    made = await admin.post("/api/tokens", json={"name": "guest", "role": "control"})
    me = await arrive(token=made.json()["secret"])
    await me.start_session(workspace)
    await me.composer.fill("precious words")
    assert (await admin.delete("/api/tokens/guest")).status_code == 204
    await me.sees("The token is not valid any more.")
    await me.picture("token")
    await me.page.get_by_label("Token").fill(shared.token)
    await me.page.get_by_role("button", name="Enter", exact=True).click()
    await expect(me.composer).to_have_value("precious words")
    me.complaints.clear()  # the browser calls a 401 an error


async def test_an_observer_may_look_and_not_write(
    arrive: Arrive, workspace: Path, shared: ServeProcess
) -> None:
    owner = await arrive()
    await owner.start_session(workspace, "say look at this")
    await owner.ready()
    made = await shared.http().post("/api/tokens", json={"name": "observer", "role": "observe"})
    guest = await arrive(f"/#/s/{owner.session_id}", token=made.json()["secret"])
    await guest.sees("look at this")
    await expect(guest.composer).to_be_disabled()


async def test_what_a_running_command_needs_is_there_before_the_gateway_is_gone(arrive: Arrive) -> None:
    me = await arrive()
    await me.page.wait_for_function(
        """() => ['Terminal', 'emulator', 'Diff', 'Elicitation'].every((part) =>
            performance.getEntriesByType('resource').some((each) => each.name.includes(`/assets/${part}-`)))"""
    )


async def test_the_first_load_is_small() -> None:
    sizes = first_load()
    assert sum(sizes.values()) <= FIRST_LOAD, sizes


async def test_a_phone_has_the_session_list_in_a_drawer(arrive: Arrive, workspace: Path) -> None:
    me = await arrive(phone=True)
    await me.picture("phone-start")
    await me.start_session(workspace, "say " + "a long line of words " * 12)
    await me.ready()
    await me.picture("phone")
    assert await me.page.evaluate("document.documentElement.scrollWidth") == 360
    sessions = me.page.get_by_role("navigation", name="Sessions")
    await expect(sessions).not_to_be_visible()
    await me.page.get_by_role("button", name="Sessions", exact=True).tap()
    await expect(sessions).to_be_visible()
    await me.picture("phone-drawer")
    await sessions.get_by_role("button", name="New session (Alt+N)").tap()
    await expect(me.page.get_by_role("heading", name="New session")).to_be_visible()
    await expect(sessions).not_to_be_visible()


async def test_everything_is_reached_with_the_keyboard(arrive: Arrive, workspace: Path) -> None:
    me = await arrive()
    await me.start_session(workspace, "say first")
    await me.ready()
    await me.page.keyboard.press("Alt+n")
    await expect(me.page.get_by_label("First message")).to_be_focused()
    await me.page.get_by_role("heading", name="New session").click()
    await me.page.keyboard.press("?")
    await expect(me.page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    await me.picture("shortcuts")
    await me.page.keyboard.press("Escape")
    await expect(me.page.get_by_role("dialog")).to_have_count(0)
    await me.page.keyboard.press("Alt+ArrowDown")
    await expect(me.page).to_have_url(re.compile("#/s/"))
    await expect(me.composer).to_be_focused()


async def test_an_image_is_picked_pasted_or_dropped_and_one_that_is_too_large_is_refused(
    arrive: Arrive, workspace: Path, tmp_path: Path
) -> None:
    me = await arrive()
    await me.start_session(workspace)
    large = tmp_path / "wall.png"
    with large.open("wb") as file:
        file.truncate(30 * 1024 * 1024)
    await me.page.get_by_label("Files to attach").set_input_files(large)
    await me.sees("wall.png was not attached: it has 30 MB, and at most 24 MB fit into this message.")
    small = tmp_path / "dot.png"
    small.write_bytes(PIXEL)
    await me.page.get_by_label("Files to attach").set_input_files(small)
    attached = me.page.get_by_role("list", name="Attached").get_by_role("listitem")
    await expect(attached).to_have_count(1)
    for number, event in enumerate(("paste", "drop"), 2):
        await me.composer.evaluate(GIVE, [event, base64.b64encode(PIXEL).decode()])
        await expect(attached).to_have_count(number)
    await me.picture("attached")
    await me.composer.fill("echo-params")
    await me.composer.press("Enter")
    await me.sees('"mimeType": "image/png"')


async def test_light_and_dark_follow_the_system_or_the_choice(arrive: Arrive) -> None:
    me = await arrive(dark=False)
    ground = "getComputedStyle(document.body).backgroundColor"
    assert await me.page.evaluate(ground) == "rgb(252, 252, 253)"
    await expect(me.page.get_by_role("radio").first).to_be_attached()
    await me.picture("light-start")
    await me.page.get_by_role("button", name="Colours: system").click()
    await me.page.get_by_role("button", name="Colours: light").click()
    assert await me.page.evaluate(ground) == "rgb(16, 17, 19)"
    await me.page.reload()
    assert await me.page.evaluate(ground) == "rgb(16, 17, 19)"
