"""How long a client that does not read may hold an agent back, against sessions that note it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dragoman.gateway.delivery.backpressure import MOST_SECONDS, Backpressure


class Agent:
    """Knows who holds it, and tells when it goes on."""

    def __init__(self) -> None:
        self.holders: set[object] = set()
        self.went_on = asyncio.Event()

    def hold(self, holder: object) -> None:
        self.holders.add(holder)
        self.went_on.clear()

    def release(self, holder: object) -> None:
        self.holders.discard(holder)
        if not self.holders:
            self.went_on.set()


def attached(agent: Agent, *, journal: bool, live: bool = True, clients: int = 1) -> Any:
    session = SimpleNamespace(
        agent=agent,
        journal=SimpleNamespace(broken=False) if journal else None,
        owned_elsewhere=False,
        attachments=[None] * clients,
    )
    return SimpleNamespace(session=session, reads_journal=False, live=live, catch_up=lambda: None)


class Client:
    def __init__(self, *attachments: Any) -> None:
        self.attachments = dict(enumerate(attachments))


async def test_with_a_journal_an_agent_waits_for_a_moment_and_goes_on() -> None:
    agent = Agent()
    pressure = Backpressure(cast(Any, Client(attached(agent, journal=True))))
    pressure.writable_changed(False)
    assert agent.holders
    async with asyncio.timeout(MOST_SECONDS + 10):
        await agent.went_on.wait()


async def test_an_agent_goes_on_as_soon_as_the_client_reads() -> None:
    agent = Agent()
    pressure = Backpressure(cast(Any, Client(attached(agent, journal=True))))
    pressure.writable_changed(False)
    pressure.writable_changed(True)
    assert not agent.holders


async def test_a_client_that_used_its_moments_up_holds_nothing_until_they_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr("dragoman.gateway.delivery.backpressure.time", SimpleNamespace(monotonic=lambda: now))
    agent = Agent()
    pressure = Backpressure(cast(Any, Client(attached(agent, journal=True, clients=2))))
    pressure.writable_changed(False)
    now += MOST_SECONDS
    pressure.writable_changed(True)
    pressure.writable_changed(False)
    assert not agent.holders
    pressure.writable_changed(True)
    now += MOST_SECONDS / 2
    pressure.writable_changed(False)
    assert agent.holders


async def test_a_client_that_is_alone_and_reads_may_hold_the_agent_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr("dragoman.gateway.delivery.backpressure.time", SimpleNamespace(monotonic=lambda: now))
    agent = Agent()
    pressure = Backpressure(cast(Any, Client(attached(agent, journal=True))))
    for _ in range(3):
        pressure.writable_changed(False)
        assert agent.holders
        now += MOST_SECONDS * 0.9
        pressure.writable_changed(True)


async def test_without_a_journal_an_agent_waits_for_as_long_as_it_takes() -> None:
    agent = Agent()
    client = Client(attached(agent, journal=False))
    pressure = Backpressure(cast(Any, client))
    pressure.writable_changed(False)
    assert agent.holders == {client}
    pressure.writable_changed(True)
    assert not agent.holders


async def test_a_client_that_reads_from_the_journal_holds_nothing() -> None:
    agent = Agent()
    pressure = Backpressure(cast(Any, Client(attached(agent, journal=True, live=False))))
    pressure.writable_changed(False)
    assert not agent.holders
