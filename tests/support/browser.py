"""A person at the web chat: Debian's Chromium, driven by Playwright, and what the page complained about."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, expect

from support.serving import Serving

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


@dataclass
class Person:
    """One tab of one browser profile."""

    page: Page
    serving: Serving
    complaints: list[str] = field(default_factory=list)
    """What the console called an error: violations of the content policy are among them."""

    def __post_init__(self) -> None:
        self.page.set_default_timeout(PATIENCE_MS)
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _heard(self, message: ConsoleMessage) -> None:
        # A lost connection is an error for the console, and a part of some tests.
        if (
            message.type == "error"
            and "ERR_CONNECTION" not in message.text
            and "WebSocket" not in message.text
        ):
            self.complaints.append(message.text)

    async def arrive(self, path: str = "/", token: str | None = None) -> None:
        """With the address that `serve` printed, or with a token that somebody was given; then on to a place in it."""
        mark = "&" if "?" in path else "?"
        before, _, place = path.partition("#")
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


async def person(browser: Browser, serving: Serving, *, phone: bool = False, dark: bool = True) -> Person:
    """Somebody with a browser of their own."""
    context = await browser.new_context(
        viewport={"width": 360, "height": 740} if phone else {"width": 1280, "height": 800},
        color_scheme="dark" if dark else "light",
        has_touch=phone,
        is_mobile=phone,
        device_scale_factor=2 if phone else 1,
    )
    return await another_tab(context, serving)


async def another_tab(context: BrowserContext, serving: Serving) -> Person:
    return Person(await context.new_page(), serving)
