"""A browser and a real `dragoman serve` for all tests of one worker: both take seconds to start.

They live in the session's loop, so every file here says `pytestmark = pytest.mark.asyncio(loop_scope="session")`.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright

from dragoman.server.pages import BUILT
from support import prerequisites
from support.gateway_process import GatewayProcess, agent
from support.serve_process import ServeProcess, UrlFraming
from support.session_client import free_port
from support.web.browser import FLAGS, Arrive, Person, another_tab, chromium, person

HERE = Path(__file__).parent

CAPABILITIES = {
    "loadSession": True,
    "sessionCapabilities": {"resume": {}},
    "promptCapabilities": {"image": True, "embeddedContext": True},
}
AGENTS = {
    "scripted": agent("--late-commands", "--modes", "--config-options", "--caps", json.dumps(CAPABILITIES)),
    "demo": agent("--modes", "--config-options", "--caps", json.dumps(CAPABILITIES), "--script", "demo.json"),
    "builtin": {"kind": "builtin"},
    "missing": {"kind": "acp", "command": ["an-agent-that-nobody-has"]},
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = None
    if chromium() is None:
        missing = prerequisites.missing("chromium", "the browser tests did not run")
    elif not (BUILT / "index.html").exists():
        missing = prerequisites.missing("web chat", "the browser tests did not run")
    for item in items:
        if missing is not None and HERE in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=missing))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield started
        await started.close()


async def start_serving(home: Path, port: int = 0) -> ServeProcess:
    framing = UrlFraming()
    config = {"default_agent": "scripted", "agents": AGENTS, "sandboxes": {"here": {"kind": "local"}}}
    gateway = await GatewayProcess.start(home, "serve", "--port", str(port), config=config, framing=framing)
    return ServeProcess(gateway, await framing.url())


@dataclass
class Mortal:
    home: Path
    serving: ServeProcess
    people: list[Person]
    killed: list[GatewayProcess] = field(default_factory=list)

    @property
    def visitors(self) -> list[Person]:
        return [each for each in self.people if each.serving.port == self.serving.port]

    async def kill(self) -> None:
        for visitor in self.visitors:
            visitor.outage.begin()
        self.killed.append(self.serving.gateway)
        await self.serving.gateway.kill()

    async def rise(self) -> None:
        """At the same address, with the same state."""
        self.serving = await start_serving(self.home, self.serving.port)
        for visitor in self.visitors:
            await visitor.outage.end()


async def end_serving(serving: ServeProcess) -> None:
    await serving.close()
    serving.gateway.leave()
    await serving.gateway.stop()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared() -> AsyncIterator[ServeProcess]:
    """A gateway for tests that do it no harm."""
    with tempfile.TemporaryDirectory(prefix="dgm-") as home:
        serving = await start_serving(Path(home))
        yield serving
        await end_serving(serving)


@pytest.fixture
def people() -> list[Person]:
    """All who came in this test."""
    return []


async def close_pages(people: list[Person]) -> None:
    for context in {someone.page.context for someone in people}:
        await context.close()


@pytest_asyncio.fixture(loop_scope="session")
async def own(home: Path, people: list[Person]) -> AsyncIterator[Mortal]:
    """A gateway that may be killed."""
    serving = await start_serving(home, free_port())  # the cookie is named after the port
    mortal = Mortal(home, serving, people)
    yield mortal
    await close_pages(mortal.visitors)  # before the end of the gateway, which is no part of the test
    await end_serving(mortal.serving)
    for gateway in mortal.killed:
        await gateway.no_process_left()  # what a killed one had started may still write into its folder


async def forget_sessions(serving: ServeProcess) -> None:
    """What one test left waiting would call for the people of the next."""
    async with serving.http() as admin:
        for session in (await admin.get("/api/sessions")).json()["sessions"]:
            (await admin.delete(f"/api/sessions/{session['id']}")).raise_for_status()


@pytest_asyncio.fixture(loop_scope="session")
async def arrive(browser: Browser, shared: ServeProcess, people: list[Person]) -> AsyncIterator[Arrive]:
    """People who open the page: `await arrive(phone=True)`. At the end no page may have complained."""

    async def come(
        path: str = "/", *, beside: Person | None = None, token: str | None = None, **options: Any
    ) -> Person:
        someone = (
            await another_tab(beside.page.context, beside.serving)
            if beside is not None
            else await person(browser, options.pop("serving", shared), **options)
        )
        people.append(someone)
        await someone.arrive(path, token)
        return someone

    yield come
    complaints = [complaint for someone in people for complaint in someone.complaints]
    await close_pages(people)
    await forget_sessions(shared)
    assert complaints == []
