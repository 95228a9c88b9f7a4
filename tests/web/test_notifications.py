"""Notifications: from a service worker where there is one, and never at the page's expense."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import expect

from support.agents.sample_prompts import QUESTION
from support.serve_process import ServeProcess
from support.web.browser import Arrive, Person

pytestmark = pytest.mark.asyncio(loop_scope="session")

ANDROID = """window.Notification = class {
    static permission = 'granted';
    static requestPermission = async () => 'granted';
    constructor() { throw new TypeError("Failed to construct 'Notification': Illegal constructor."); }
};"""
"""As Chrome on Android has it: notifications come from a service worker alone."""

NO_WORKERS = "Object.defineProperty(navigator, 'serviceWorker', { value: undefined });"
NO_STORAGE = """for (const name of ['localStorage', 'sessionStorage'])
    Object.defineProperty(window, name, { get() { throw new DOMException('Forbidden', 'SecurityError'); } });"""
WORKER = """window.shown = new Promise(heard => {
    ServiceWorkerRegistration.prototype.showNotification = async function (title, options) {
        if (this.active === null) throw new TypeError('no active worker');
        heard({ title, place: options.data });
    };
});"""
"""A browser without a screen shows no notifications: what the page asks its worker for."""
TOUCH = """place => {
    const touched = new ExtendableEvent('notificationclick');
    touched.notification = { data: place, close() {} };
    self.dispatchEvent(touched);
}"""


async def ask_while_away(arrive: Arrive, me: Person, workspace: Path) -> str:
    """`me` looks at a session while another one, which is returned, asks."""
    await me.page.get_by_role("button", name="Notify me when a session waits").click()
    await me.start_session(workspace, "say looked at")
    await me.sees("looked at")
    other = await arrive()
    await other.start_session(workspace, QUESTION)
    await expect(other.page.get_by_role("region", name="Waiting for you")).to_be_visible()
    return other.session_id


async def test_a_phone_is_told_by_the_service_worker(arrive: Arrive, workspace: Path) -> None:
    me = await arrive()
    await me.page.add_init_script(ANDROID + WORKER)
    await me.page.reload()
    waits = await ask_while_away(arrive, me, workspace)
    shown = await me.page.evaluate("shown")
    assert shown == {"title": "scripted waits for you", "place": f"#/s/{waits}"}
    (worker,) = me.page.context.service_workers
    await worker.evaluate(TOUCH, shown["place"])
    await expect(me.page.get_by_role("region", name="Waiting for you")).to_be_visible()
    assert me.session_id == waits


async def test_where_no_notification_can_be_shown_the_page_stays(arrive: Arrive, workspace: Path) -> None:
    me = await arrive()
    await me.page.add_init_script(ANDROID + NO_WORKERS)
    await me.page.reload()
    await ask_while_away(arrive, me, workspace)
    await expect(me.page).to_have_title("(1) waiting for you · say looked at · Dragoman")
    await me.say("say still here")
    await me.sees("still here")


async def test_a_browser_that_keeps_nothing_shows_the_page(arrive: Arrive, workspace: Path) -> None:
    me = await arrive("/healthz")
    await me.page.add_init_script(NO_STORAGE)
    await me.arrive()
    await me.start_session(workspace, "say remembered by nobody")
    await me.sees("remembered by nobody")
    await expect(me.page.get_by_role("navigation", name="Sessions")).to_be_visible()


async def test_an_address_that_was_cut_says_that_there_is_no_such_session(arrive: Arrive) -> None:
    me = await arrive("/#/s/%E0%A4%A")
    await me.sees("This session cannot be opened")
    await expect(me.page.get_by_role("navigation", name="Sessions")).to_be_visible()


async def test_the_worker_is_for_people_who_are_logged_in(shared: ServeProcess) -> None:
    assert (await shared.http(token=False).get("/worker.js")).status_code == 401
    login = await shared.login()
    answer = await shared.http(token=False, headers={"Cookie": login.cookie}).get("/worker.js")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/javascript")
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["content-security-policy"] == "default-src 'none'"
    assert "fetch" not in answer.text.replace("fetches", "")
