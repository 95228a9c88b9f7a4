"""The ordered stream of a session: actions stand for themselves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dragoman.gateway.delivery.feed import DirectFeed, Feed
from dragoman.gateway.delivery.journal_feed import JournalFeed
from dragoman.gateway.delivery.journal_state import JournalState
from dragoman.gateway.ports.store import StoreError
from dragoman.store import FileStore
from support.store.store_process import begin


class Nobody:
    """Watches a journal that does not fail."""

    def journal_state_changed(self, state: JournalState, error: StoreError | None) -> None:
        raise AssertionError(f"{state}: {error}")

    def journal_delayed(self, error: StoreError | None) -> None:
        raise AssertionError(error)

    def journal_congested(self, congested: bool) -> None: ...

    def claim_journal(self) -> None: ...


@pytest.fixture(params=["direct", "journal"])
async def feed(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Feed]:
    if request.param == "direct":
        yield DirectFeed("dgm_one")
        return
    store = await FileStore.open(tmp_path / "dragoman.db", tmp_path / "run")
    session = await begin(store)
    yield JournalFeed(store, session, 1, 0, Nobody(), 2.0)
    await store.close()


def fails() -> None:
    raise ValueError("a bug in one action")


@pytest.mark.parametrize("published", [True, False])
async def test_an_action_that_fails_costs_no_other_its_turn(
    feed: Feed, published: bool, caplog: pytest.LogCaptureFixture
) -> None:
    ran: list[str] = []
    done = asyncio.Event()
    if published:
        feed.publish(b"U", b"{}")
    feed.then(fails)
    feed.then(lambda: ran.append("same batch"))
    feed.then(fails)
    feed.publish(b"U", b"{}")
    feed.then(lambda: ran.append("next batch"))
    feed.then(done.set)
    await asyncio.wait_for(done.wait(), 20)
    assert ran == ["same batch", "next batch"]
    failed = [each for each in caplog.records if each.exc_info]
    assert len(failed) == 2
    assert {each.__dict__["session"] for each in failed} == {"dgm_one"}


async def test_an_update_is_stored_in_the_turn_that_brings_it(tmp_path: Path) -> None:
    store = await FileStore.open(tmp_path / "dragoman.db", tmp_path / "run")
    feed = JournalFeed(store, await begin(store), 1, 0, Nobody(), 2.0)
    for number, line in enumerate(
        [b"{}", b"x" * 65536, b"x" * 65536], 1
    ):  # small, and as much as a pipe holds
        feed.publish(b"U", line)
        await asyncio.sleep(0)
        assert feed.delivered == number
    await store.close()
