"""A person at the web chat: Debian's Chromium, driven by Playwright, and what the page complained about."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    Request,
    WebSocket,
    expect,
)

from support.serve_process import ServeProcess

PATIENCE_MS = 15_000
"""For a page on a machine that does much else."""

SCREENSHOTS = os.environ.get("DRAGOMAN_TEST_SCREENSHOTS")
"""A folder for pictures; none are made without."""

PROGRAMS = (
    "chromium-headless-shell",  # the same without windows, at half the work
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
)
FLAGS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--font-render-hinting=none"]

expect.set_options(timeout=PATIENCE_MS)


def chromium() -> str | None:
    return next((path for path in map(shutil.which, PROGRAMS) if path is not None), None)


class Outage:
    """Which loads of a page may fail: those that were open when the gateway was killed, or began while it was down.

    Each of them is an error to the console. A load that begins when the gateway is up again may not fail.
    """

    def __init__(self, page: Page) -> None:
        self._page = page
        self._down = False
        self._loading: set[Request] = set()
        self._may_fail: set[Request] = set()
        self._sockets: set[WebSocket] = set()
        self._sockets_may_fail: list[str] = []
        page.on("request", self._request_began)
        page.on("requestfinished", self._request_finished)
        page.on("requestfailed", self._request_failed)
        page.on("websocket", self._socket_began)

    def begin(self) -> None:
        """Call it before the gateway is killed."""
        self._down = True
        self._may_fail |= self._loading
        self._sockets_may_fail += [socket.url for socket in self._sockets]

    async def end(self) -> None:
        """Call it when the gateway listens again."""
        await self._page.evaluate("0")  # answered after the events of all loads that began before
        self._down = False

    def explains(self, message: ConsoleMessage) -> bool:
        """Whether the error is about a load that may fail; each load explains one."""
        if message.text.startswith("Failed to load resource: net::"):
            url = message.location["url"]
            failed = next((request for request in self._may_fail if request.url == url), None)
            if failed is not None:
                self._may_fail.remove(failed)
            return failed is not None
        dialled = re.match(r"WebSocket connection to '([^']*)' failed", message.text)
        if dialled is None or dialled[1] not in self._sockets_may_fail:
            return False
        self._sockets_may_fail.remove(dialled[1])
        return True

    def _request_began(self, request: Request) -> None:
        self._loading.add(request)
        if self._down:
            self._may_fail.add(request)

    def _request_finished(self, request: Request) -> None:
        self._loading.discard(request)
        self._may_fail.discard(request)

    def _request_failed(self, request: Request) -> None:
        self._loading.discard(request)

    def _socket_closed(self, socket: WebSocket) -> None:
        self._sockets.discard(socket)

    def _socket_began(self, socket: WebSocket) -> None:
        self._sockets.add(socket)
        socket.on("close", self._socket_closed)
        if self._down:
            self._sockets_may_fail.append(socket.url)


@dataclass
class Person:
    """One tab of one browser profile."""

    page: Page
    serving: ServeProcess
    complaints: list[str] = field(default_factory=list)
    """What the console called an error: violations of the content policy are among them."""

    def __post_init__(self) -> None:
        self.outage = Outage(self.page)
        self.page.set_default_timeout(PATIENCE_MS)
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not self.outage.explains(message):
            self.complaints.append(message.text)

    async def arrive(self, path: str = "/", token: str | None = None) -> None:
        """With the address that `serve` printed, or with a token; then on to a place in it."""
        before, _, place = path.partition("#")
        mark = "&" if "?" in before else "?"
        await self.page.goto(f"{self.serving.base}{before}{mark}token={token or self.serving.token}")
        if place:
            await self.page.goto(f"{self.serving.base}{before}#{place}")

    async def start_session(self, folder: Path, first: str = "", agent: str = "scripted") -> None:
        """Through the form, as a person does."""
        await self.page.locator(f"input[name=agent][value={agent}]").check(force=True)
        await self.page.get_by_label("Folder", exact=True).fill(str(folder))
        await self.page.get_by_label("First message").fill(first)
        await self.page.get_by_role("button", name="Start").click()
        await expect(self.composer).to_be_visible()

    @property
    def composer(self) -> Locator:
        return self.page.get_by_role("textbox", name="Message", exact=True)

    @property
    def session_id(self) -> str:
        found = re.search(r"#/s/(.+)$", self.page.url)
        assert found, f"no session at {self.page.url}"
        return found[1]

    async def say(self, text: str) -> None:
        await self.composer.fill(text)
        await self.composer.press("Enter")

    async def sees(self, text: str) -> None:
        await expect(self.page.get_by_text(text).first).to_be_visible()

    async def press_until(self, key: str, seen: Locator) -> None:
        """A question ignores keys in its first moment, so a person presses again."""
        async with asyncio.timeout(PATIENCE_MS / 1000):
            while await seen.count() == 0:
                await self.page.keyboard.press(key)

    async def ready(self) -> None:
        """The turn is over."""
        await expect(self.page.get_by_role("button", name="Stop (Esc)")).to_have_count(0)

    async def settled(self) -> None:
        """What is loaded late has come, and nothing moves: worth a picture."""
        await self.page.wait_for_load_state("networkidle")
        await self.page.evaluate(
            "Promise.allSettled(document.getAnimations().filter(a => a.effect.getTiming().iterations < 9)"
            ".map(a => a.finished))"
        )

    async def picture(self, name: str) -> None:
        if SCREENSHOTS:
            await self.page.screenshot(path=Path(SCREENSHOTS) / f"{name}.png")


Arrive = Callable[..., Awaitable[Person]]
"""What the fixture `arrive` gives."""


async def person(
    browser: Browser, serving: ServeProcess, *, phone: bool = False, dark: bool = True
) -> Person:
    """A user with their own browser."""
    context = await browser.new_context(
        viewport={"width": 360, "height": 740} if phone else {"width": 1280, "height": 800},
        color_scheme="dark" if dark else "light",
        has_touch=phone,
        is_mobile=phone,
        device_scale_factor=2 if phone else 1,
    )
    return await another_tab(context, serving)


async def another_tab(context: BrowserContext, serving: ServeProcess) -> Person:
    return Person(await context.new_page(), serving)
