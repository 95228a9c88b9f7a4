"""The states of a journal, against a store that answers as the test says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from dragoman.gateway.delivery import events
from dragoman.gateway.delivery.batch import Batch
from dragoman.gateway.delivery.journal_feed import HEAL_SECONDS, JournalFeed
from dragoman.gateway.delivery.journal_state import MOVES, JournalState, check_move
from dragoman.gateway.ports.store import BadEvent, Fenced, SequenceGap, StoreError, StoreFull, UnknownSession

FULL = StoreFull("No space is left.")
GAP = SequenceGap("Does not follow.", 0)


class ScriptedStore:
    """Takes appends and answers none of them by itself."""

    def __init__(self) -> None:
        self.appends: list[tuple[int, list[bytes]]] = []
        self._waiting: list[Callable[[StoreError | None], None]] = []
        self._asked = asyncio.Event()

    def append(
        self, session_id: str, epoch: int, first_seq: int, batch: list[bytes], done: Callable[..., None]
    ) -> None:
        self.appends.append((first_seq, batch))
        self._waiting.append(done)
        self._asked.set()

    def answer(self, *errors: StoreError | None) -> None:
        for error in errors:
            self._waiting.pop(0)(error)

    async def asked(self) -> tuple[int, list[bytes]]:
        """Wait for the next append; returns it."""
        async with asyncio.timeout(20):
            while not self._waiting:
                self._asked.clear()
                await self._asked.wait()
        return self.appends[-1]


class Client:
    """An attachment and a session: keeps what it is shown and told."""

    position = 0

    def __init__(self) -> None:
        self.shown: list[tuple[int | None, bytes]] = []
        self.told: list[JournalState] = []
        self.delayed: list[StoreError | None] = []

    def push(self, batch: Batch) -> None:
        numbers = range(batch.first_seq, batch.last_seq + 1) if batch.kept else [None] * len(batch.events)
        self.shown += zip(numbers, batch.events, strict=True)

    def journal_state_changed(self, state: JournalState, error: StoreError | None) -> None:
        self.told.append(state)

    def journal_delayed(self, error: StoreError | None) -> None:
        self.delayed.append(error)

    def journal_congested(self, congested: bool) -> None:
        pass

    def claim_journal(self) -> None:
        pass


class Bench:
    def __init__(self, patience: float) -> None:
        self.store = ScriptedStore()
        self.client = Client()
        self.feed = JournalFeed(cast(Any, self.store), "dgm_1", 1, 0, self.client, patience)
        self.feed.add(cast(Any, self.client))
        self.answered: list[str] = []

    async def say(self, *words: str) -> None:
        """Each word a batch of its own, with an answer behind it."""
        for word in words:
            self.feed.record(word.encode())
            self.feed.then(lambda word=word: self.answered.append(word))  # type: ignore[misc]
            await asyncio.sleep(0)

    @property
    def shown(self) -> list[tuple[int | None, str]]:
        return [(seq, event.decode()) for seq, event in self.client.shown]


@pytest.fixture
async def patient() -> Bench:
    return Bench(60.0)


@pytest.fixture
async def hasty() -> Bench:
    return Bench(1e-9)


def missing(count: int) -> str:
    return f'R{{"dragoman":"unkept","events":{count},'


async def test_appends_that_failed_together_are_tried_again_one_first(patient: Bench) -> None:
    await patient.say("a", "b", "c")
    patient.store.answer(FULL, GAP, GAP)
    assert (patient.shown, patient.answered, patient.feed.state) == ([], [], JournalState.WAITING)
    assert await patient.store.asked() == (1, [b"a"])
    await patient.say("d")
    patient.store.answer(None)
    assert [first for first, _ in patient.store.appends[-3:]] == [2, 3, 4]
    patient.store.answer(None, None, None)
    assert patient.shown == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
    assert patient.answered == ["a", "b", "c", "d"]


async def test_an_append_that_failed_and_is_there_all_the_same_is_not_stored_twice(patient: Bench) -> None:
    """A disk may fail after it has written."""
    await patient.say("a", "b")
    patient.store.answer(FULL, FULL)
    assert await patient.store.asked() == (1, [b"a"])
    there = SequenceGap("Event 1 does not follow 2.", 2)
    patient.store.answer(there)
    patient.store.answer(there)
    assert (patient.shown, patient.feed.delivered) == ([(1, "a"), (2, "b")], 2)
    await patient.say("c")
    assert patient.store.appends[-1] == (3, [b"c"])


async def test_numbers_of_what_was_shown_unkept_are_given_to_what_is_kept_next(hasty: Bench) -> None:
    await hasty.say("a", "b")
    hasty.store.answer(FULL, GAP)
    await hasty.store.asked()
    hasty.store.answer(FULL)
    assert (hasty.shown, hasty.feed.state) == ([(None, "a"), (None, "b")], JournalState.UNKEPT)
    first, (gap,) = await hasty.store.asked()
    assert first == 1 and gap.decode().startswith(missing(2))
    await hasty.say("c")  # waits for the outcome
    hasty.store.answer(FULL)
    assert hasty.shown[2:] == [(None, "c")]
    first, (gap,) = await hasty.store.asked()
    assert first == 1 and gap.decode().startswith(missing(3))
    await hasty.say("d")
    hasty.store.answer(None)
    assert hasty.store.appends[-1] == (2, [b"d"])
    hasty.store.answer(None)
    assert [seq for seq, _ in hasty.shown] == [None, None, None, 1, 2]
    assert hasty.client.told == [JournalState.WAITING, JournalState.UNKEPT, JournalState.STORED]
    assert hasty.answered == ["a", "b", "c", "d"]


async def test_events_that_nobody_can_store_cost_only_themselves(patient: Bench) -> None:
    await patient.say("a", "bad", "c")
    patient.store.answer(None, BadEvent("It has a line feed in it."), GAP)
    assert patient.shown == [(1, "a"), (None, "bad")]
    gap, again = patient.store.appends[-2:]
    assert (gap[0], again) == (2, (3, [b"c"]))
    assert gap[1][0].decode().startswith(missing(1))
    patient.store.answer(None, None)
    assert patient.shown[-1] == (3, "c")
    assert patient.feed.state is JournalState.STORED


async def test_what_waits_behind_events_that_cannot_be_stored_is_stored_once(patient: Bench) -> None:
    await patient.say("bad", "c", "d")
    patient.store.answer(FULL, GAP, GAP)
    assert await patient.store.asked() == (1, [b"bad"])
    patient.store.answer(BadEvent("It has a line feed in it."))
    assert patient.store.appends[-2:] == [(2, [b"c"]), (3, [b"d"])]
    sent = len(patient.store.appends)
    patient.store.answer(None, None, None)
    assert len(patient.store.appends) == sent
    assert [seq for seq, _ in patient.shown] == [None, 1, 2, 3]
    assert patient.feed.state is JournalState.STORED


async def test_a_session_that_is_gone_from_the_store_does_not_wait(patient: Bench) -> None:
    await patient.say("a")
    patient.store.answer(UnknownSession("Deleted."))
    assert (patient.shown, patient.answered) == ([(None, "a")], ["a"])


async def test_what_is_refused_is_never_shown_and_nobody_waits_for_it(patient: Bench) -> None:
    await patient.say("a", "b", "c")
    patient.store.answer(None, Fenced("Owned by another process."), Fenced("Owned by another process."))
    await patient.say("d")
    assert patient.shown == [(1, "a")]
    assert patient.answered == ["a", "b", "c", "d"]
    assert patient.client.told == [JournalState.FENCED]
    assert len(patient.store.appends) == 3


async def test_what_waits_when_it_is_refused_is_never_shown(patient: Bench) -> None:
    await patient.say("a")
    patient.store.answer(FULL)
    await patient.store.asked()
    patient.store.answer(Fenced("Owned by another process."))
    assert (patient.shown, patient.answered) == ([], ["a"])


@pytest.mark.parametrize("answered", [True, False])
async def test_answers_go_out_when_the_process_ends(patient: Bench, answered: bool) -> None:
    """Whether the store fails or says nothing at all."""
    await patient.say("a", "b")
    if answered:
        patient.store.answer(FULL, GAP)
    patient.feed.end(answered=False)
    await patient.say("c")
    assert patient.shown == [(None, "a"), (None, "b"), (None, "c")]
    assert patient.answered == ["a", "b", "c"]
    if not answered:
        patient.store.answer(None, None)  # too late
    assert len(patient.shown) == 3


async def test_what_is_on_its_way_to_a_store_that_answers_is_not_shown_at_the_end(patient: Bench) -> None:
    """It will have a number; a client that comes back would see it a second time."""
    await patient.say("a")
    patient.store.answer(None)
    await patient.say("b")
    patient.feed.end(answered=True)
    assert patient.shown == [(1, "a")]
    patient.store.answer(None)
    assert patient.shown == [(1, "a"), (2, "b")]
    assert patient.answered == ["a", "b"]


async def test_an_answer_that_fails_does_not_cost_the_others(patient: Bench) -> None:
    patient.feed.record(b"a")
    for action in (lambda: 1 / 0, lambda: patient.answered.append("a")):
        patient.feed.then(action)  # type: ignore[arg-type]
    await patient.say("b")
    patient.store.answer(None, None)
    assert patient.answered == ["a", "b"]


async def test_a_clients_own_event_is_stored_behind_what_the_client_asked_for(patient: Bench) -> None:
    order: list[str] = []
    patient.feed.publish(events.PROMPT, b"{}", cast(Any, object()))
    asyncio.get_running_loop().call_soon(lambda: order.append(f"asked, {len(patient.store.appends)} stored"))
    await patient.store.asked()
    assert order == ["asked, 0 stored"]


async def test_authors_of_what_was_not_kept_are_not_those_of_what_has_its_number_next(hasty: Bench) -> None:
    hasty.feed.publish(events.PROMPT, b"mine", cast(Any, "me"))
    await hasty.store.asked()
    hasty.store.answer(FULL)
    await hasty.store.asked()
    hasty.store.answer(FULL)
    assert hasty.feed.authors == {}


def test_every_state_is_left_only_by_a_known_way() -> None:
    assert set(MOVES) == set(JournalState)
    for before, after in (
        (JournalState.FENCED, JournalState.STORED),
        (JournalState.UNKEPT, JournalState.WAITING),
    ):
        with pytest.raises(AssertionError, match="cannot be"):
            check_move(before, after)
    assert HEAL_SECONDS <= 1.0
