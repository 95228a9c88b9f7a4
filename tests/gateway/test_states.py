"""The tables of states: every cell, random walks, and the facts that other code relies on."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from itertools import takewhile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.gateway.session import states
from dragoman.gateway.session.states import (
    PROMPT,
    QUESTION,
    SESSION,
    TURN,
    IllegalTransition,
    Life,
    PromptEvent,
    PromptState,
    QuestionEvent,
    QuestionState,
    SessionEvent,
    SessionState,
    TurnEvent,
    TurnState,
)

TABLES = [
    (SESSION, SessionState, SessionEvent),
    (TURN, TurnState, TurnEvent),
    (PROMPT, PromptState, PromptEvent),
    (QUESTION, QuestionState, QuestionEvent),
]
CELLS = [
    (table, state, event) for table, all_states, events in TABLES for state in all_states for event in events
]


@pytest.mark.parametrize(("table", "state", "event"), CELLS)
def test_every_cell_leads_to_its_state_or_raises(
    table: dict[Enum, dict[Enum, Enum]], state: Enum, event: Enum
) -> None:
    life: Life[Enum, Enum] = Life("dgm_x", table, state)
    expected = table[state].get(event)
    if expected is None:
        with pytest.raises(IllegalTransition, match="dgm_x"):
            life.send(event)
        assert life.state is state
    else:
        life.send(event)
        assert life.state is expected


@pytest.mark.parametrize(("table", "all_states", "events"), TABLES)
def test_every_state_is_in_its_table_and_can_be_reached(
    table: object, all_states: object, events: object
) -> None:
    assert isinstance(table, dict) and isinstance(all_states, type) and issubclass(all_states, Enum)
    assert set(table) == set(all_states)
    first = next(iter(all_states))
    reached, new = {first}, [first]
    while new:
        following = set(table[new.pop()].values()) - reached
        reached |= following
        new += following
    assert reached == set(all_states)


@given(st.lists(st.sampled_from(SessionEvent), max_size=40))
def test_a_session_never_has_an_agent_and_an_owner_at_once(events: list[SessionEvent]) -> None:
    """What answers for it, followed beside the table: an agent, the owner, or neither."""
    life, bound = states.session_life("dgm_x"), ""
    for event in events:
        try:
            life.send(event)
        except IllegalTransition:
            continue
        if event is SessionEvent.BOUND:
            bound = "agent"
        elif event is SessionEvent.FOLLOWED:
            bound = "owner"
        elif event in (SessionEvent.LOST, SessionEvent.PARKED, SessionEvent.CLOSED):
            bound = ""
        assert (life.state is SessionState.LIVE) == (bound == "agent")
        assert (life.state is SessionState.FOLLOWING) == (bound == "owner")


@given(st.lists(st.sampled_from(SessionEvent), max_size=40))
def test_an_orphan_gets_an_agent_only_after_it_was_taken(events: list[SessionEvent]) -> None:
    life, owned_elsewhere = states.session_life("dgm_x"), False
    for event in events:
        try:
            life.send(event)
        except IllegalTransition:
            continue
        owned_elsewhere = (owned_elsewhere or event is SessionEvent.HELD) and event is not SessionEvent.TAKEN
        if event is SessionEvent.BOUND:
            assert not owned_elsewhere


@given(st.lists(st.sampled_from(TurnEvent), max_size=20))
def test_a_turn_settles_once_and_is_cancelled_only_after_it_was_sent(events: list[TurnEvent]) -> None:
    life, done = states.turn_life("dgm_x"), []
    for event in events:
        try:
            life.send(event)
        except IllegalTransition:
            continue
        done.append(event)
    assert done.count(TurnEvent.SETTLED) <= 1
    assert TurnEvent.SETTLED not in done[:-1]
    if TurnEvent.CANCELLED in done:
        assert done[0] is TurnEvent.SENT


@given(st.lists(st.sampled_from(QuestionEvent), max_size=10))
def test_a_question_ends_once(events: list[QuestionEvent]) -> None:
    life, done = states.question_life("dgm_x"), []
    for event in events:
        try:
            life.send(event)
        except IllegalTransition:
            continue
        done.append(event)
    ends = [event for event in events if event is not QuestionEvent.APPROVED]
    assert [event for event in done if event is not QuestionEvent.APPROVED] == ends[:1]
    assert done == events[: events.index(ends[0]) + 1 if ends else None]  # nothing is approved after the end


def documented(first_cell: str) -> dict[str, dict[str, str]]:
    """A table of the architecture page: by state, the following state of each event."""
    lines = iter((Path(__file__).parents[2] / "docs" / "architecture.md").read_text().splitlines())
    head = next(line for line in lines if line.startswith(f"| {first_cell} |"))
    events = [cell.strip() for cell in head.split("|")[2:-1]]
    next(lines)
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in takewhile(lambda line: "|" in line, lines)
    ]
    return {
        state.partition(":")[0]: {event: cell for event, cell in zip(events, cells, strict=True) if cell}
        for state, *cells in rows
    }


@pytest.mark.parametrize(
    ("title", "table"), [("Session", SESSION), ("Turn", TURN), ("Prompt", PROMPT), ("Question", QUESTION)]
)
def test_the_architecture_page_shows_the_tables(
    title: str, table: Mapping[Enum, Mapping[Enum, Enum]]
) -> None:
    assert documented(title) == {
        state.name: {event.value: following.name for event, following in row.items()}
        for state, row in table.items()
    }
