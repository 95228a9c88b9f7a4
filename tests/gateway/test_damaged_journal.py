"""Readers of a journal whose middle is damaged: none of them goes on as if nothing were missing."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dragoman.bridge.restore import restore_state
from dragoman.gateway.delivery import events, export, replay, transcript
from dragoman.server.api import answering
from dragoman.store import FileStore
from support.store.store_process import append, begin


def said(text: str, kind: str = "agent_message_chunk", tag: bytes = events.HISTORY) -> bytes:
    update = {"sessionUpdate": kind, "content": {"type": "text", "text": text}}
    return (
        tag
        + json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": {"update": update}}).encode()
    )


def asked(text: str) -> bytes:
    return said(text, "user_message_chunk", events.PROMPT)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[FileStore]:
    opened = await FileStore.open(tmp_path / "dragoman.db", tmp_path / "run")
    yield opened
    await opened.close()


async def keep(store: FileStore, *batches: list[bytes]) -> str:
    """A session with these batches; those that say "gone" are damaged."""
    session = await begin(store)
    first = 1
    for batch in batches:
        assert await append(store, session, first, batch) is None
        first += len(batch)
    for file in (Path(store.owner.address.removeprefix("unix:")).parents[2] / "journal" / session).glob(
        "*.log"
    ):
        file.write_bytes(file.read_bytes().replace(b"gone", b"GONE"))
    return session


async def test_a_new_agent_is_told_that_a_part_of_the_conversation_is_lost(store: FileStore) -> None:
    session = await keep(store, [asked("one"), said("two")], [said("gone"), said("too")], [said("five")])
    told = await transcript.for_agent(store, session)
    lost = "[Events 3 to 4 are damaged or missing in the journal.]"
    assert f"User: one\n\nAssistant: two\n\n{lost}\n\nAssistant: five" in told


async def test_last_words_that_may_be_lost_are_not_those_before(store: FileStore) -> None:
    session = await keep(store, [said("before")], [said("gone")])
    assert await transcript.last_answer(store, session) is None


async def test_a_transcript_says_what_could_not_be_saved(store: FileStore) -> None:
    session = await keep(store, [said("a")], [events.record("unkept", events=7, since="x")], [said("b")])
    text = "".join([piece async for piece in transcript.as_markdown(store, session)])
    assert "*[7 events before this could not be saved: they cannot be shown again.]*" in text


async def test_the_output_of_a_terminal_says_where_it_may_lack_something(store: FileStore) -> None:
    session = await keep(
        store,
        [events.record("terminal_created", terminalId=name) for name in ("runs", "ended")],
        [events.record("terminal_output", terminalId=name, output="a") for name in ("runs", "ended")],
        [events.record("terminal_output", terminalId="ended", output="", exitStatus={"exitCode": 0})],
        [events.record("terminal_output", terminalId="runs", output="gone")],
        [events.record("terminal_output", terminalId="runs", output="b")],
    )
    found = await replay.terminal_outputs(store, session)
    assert found == {"runs": "a\n[Event 6 is damaged or missing in the journal.]\nb", "ended": "a"}


async def test_messages_that_may_have_been_sent_in_what_is_lost_are_held(store: FileStore) -> None:
    waiting = [{"clientMessageId": "m", "content": "do it"}]
    session = await keep(store, [events.record("queue", queue=waiting)], [asked("gone")])
    recalled = await restore_state(store, session)
    assert recalled.queue == waiting and recalled.stopped


async def test_an_answer_whose_decision_is_lost_is_not_called_unconfirmed_by_its_process(
    store: FileStore,
) -> None:
    session = await keep(store, [said("a")], [events.record("decision", id="q", by="gone")])
    assert "Event 2 is damaged or missing" in await answering._unconfirmed(store, session, 1)
    assert "did not confirm" in await answering._unconfirmed(store, session, 2)


async def test_an_export_names_the_lost_numbers(store: FileStore) -> None:
    session = await keep(store, [said("a")], [said("gone"), said("b")], [said("c")])
    record = await store.get(session)
    assert record is not None
    _, *lines = b"".join([piece async for piece in export.as_ndjson(store, record)]).splitlines()
    assert [json.loads(line)["seq"] for line in lines] == [1, 3, 4]
    assert json.loads(lines[1]) == {"seq": 3, "time": None, "type": "events_lost", "firstSeq": 2}


@pytest.mark.parametrize("behind", [[events.record("unkept", events=3)], [said("gone")]])
async def test_a_turn_whose_end_may_not_have_been_kept_is_not_called_interrupted(
    store: FileStore, behind: list[bytes]
) -> None:
    assert await transcript.is_in_turn(store, await keep(store, [asked("one"), said("two")], behind)) is None
