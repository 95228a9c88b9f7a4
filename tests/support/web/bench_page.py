"""The page that `web/bench.html` makes: the conversation's components over made-up events, in a real browser."""

from __future__ import annotations

import asyncio
import fcntl
import functools
import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, ConsoleMessage, Page, Request

from dragoman.server.pages import CONTENT_POLICY

ROOT = Path(__file__).resolve().parents[3]
BUILT = ROOT / "web" / "dist-bench"

STILL = """new Promise(done => {
    let before = '', still = 0, frames = 0;
    const look = () => {
        const feed = document.querySelector('[role=feed]');
        const now = feed ? `${feed.scrollHeight} ${feed.scrollTop}` : '';
        still = now === before ? still + 1 : 0;
        before = now;
        frames += 1;
        still === 2 || frames === 120 ? done() : requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
})"""
"""The list has its place: heights are measured once drawn, which takes frames, on a busy machine more of them."""


def build() -> Path:
    """Its folder, built anew when a source is newer than it."""
    # Several test processes want it at once; the first builds it.
    with (ROOT / "web" / ".bench.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _build_if_older()
    return BUILT


def _build_if_older() -> None:
    page = BUILT / "bench.html"
    sources = [
        *(ROOT / "web" / "src").rglob("*"),
        *(ROOT / "web" / "bench").rglob("*"),
        ROOT / "web" / "bench.html",
    ]
    if not page.exists() or any(source.stat().st_mtime > page.stat().st_mtime for source in sources):
        subprocess.run([sys.executable, str(ROOT / "web" / "build.py"), "bench"], check=True)


class _Files(http.server.SimpleHTTPRequestHandler):
    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", CONTENT_POLICY)
        super().end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The folder's address, under the policy of the product's own page."""
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(_Files, directory=str(folder))
    )
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class BenchPage:
    """One tab with the page, and what went wrong in it."""

    def __init__(self, page: Page, origin: str) -> None:
        self.page = page
        self.origin = origin
        self.troubles: list[str] = []
        self.foreign: list[str] = []
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.troubles.append(str(error)))
        page.on("request", self._asked)
        page.on("dialog", lambda dialog: self.troubles.append(f"a dialog: {dialog.message}"))

    @classmethod
    async def open(cls, browser: Browser, origin: str, **context: Any) -> BenchPage:
        page = await browser.new_page(**{"viewport": {"width": 1100, "height": 860}, **context})
        bench = cls(page, origin)
        await page.goto(f"{origin}/bench.html")
        await page.get_by_role("feed").wait_for()
        return bench

    async def show(self, events: Sequence[dict[str, Any]], *, anew: bool = True) -> None:
        """Draw these events, and wait until they are drawn."""
        if anew:
            await self.page.evaluate("bench.clear()")
        await self.page.evaluate("events => bench.add(events)", list(events))
        await self.painted()

    async def painted(self) -> None:
        await self.page.evaluate(STILL)

    async def until(self, condition: str, argument: Any = None) -> None:
        """Wait for a condition in the page; the page's policy forbids Playwright's own way, which is `eval`."""
        async with asyncio.timeout(20):
            while not await self.page.evaluate(condition, argument):
                await self.painted()

    async def asked(self) -> list[list[Any]]:
        """What the components asked the app for."""
        calls: list[list[Any]] = await self.page.evaluate("bench.asked")
        return calls

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and "favicon" not in message.location.get("url", ""):
            self.troubles.append(message.text)

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((self.origin, "data:", "blob:")):
            self.foreign.append(request.url)
