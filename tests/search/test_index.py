"""The index beside the store: fed once per event by any number of processes, disposable, and never in the way."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from dragoman.gateway.ports.search import BadQuery, SearchUnavailable, Wanted
from dragoman.search import feed, index
from dragoman.search.lookup import look_up
from dragoman.search.query import expression

from .conftest import ENDED, Sessions, said


async def test_words_phrases_and_beginnings_are_found_with_their_place(sessions: Sessions) -> None:
    await sessions.say(
        "dgm_1",
        said("Why is it slow?", "user_message_chunk", "P"),
        said("The connec"),
        said("tion was refused"),
        ENDED,
    )
    assert sessions.places("refused") == [("dgm_1", 3, "agent")]
    assert sessions.places('"connection was refused"') == [("dgm_1", 2, "agent")]
    assert sessions.places('"refused connection"') == []
    assert sessions.places("conn*") == [("dgm_1", 2, "agent")]
    assert sessions.places("SLOW why") == [("dgm_1", 1, "user")]
    assert sessions.places("slow refused") == [], "not in one message"
    [hit] = sessions.find("was")
    assert hit.text == "The connection was refused"
    assert [hit.text[a:b] for a, b in hit.matches] == ["was"]


async def test_the_newest_is_first_and_filters_hold(sessions: Sessions) -> None:
    await sessions.say("dgm_1", said("needle one"), ENDED, agent="claude", cwd="/w/one")
    await sessions.say("dgm_2", said("needle two"), ENDED, agent="codex", cwd="/w/two")
    await sessions.say("dgm_3", said("needle three needle needle"), ENDED, agent="codex", cwd="/with")
    assert [hit.session_id for hit in sessions.find("needle")] == ["dgm_3", "dgm_2", "dgm_1"]
    assert sessions.find("needle", best=True)[0].session_id == "dgm_3"
    assert [hit.session_id for hit in sessions.find("needle", agent="codex")] == ["dgm_3", "dgm_2"]
    assert [hit.session_id for hit in sessions.find("needle", cwd="/w")] == ["dgm_2", "dgm_1"]
    assert sessions.find("needle", cwd="/nowhere") == []
    assert sessions.find("needle", since=32503680000000) == []
    assert len(sessions.find("needle", since=1000)) == 3
    assert len(sessions.find("needle", limit=2)) == 2
    await sessions.delete("dgm_2")
    assert [hit.session_id for hit in sessions.find("needle", agent="codex")] == ["dgm_3"]


async def test_every_event_is_in_it_once_however_a_turn_grows(sessions: Sessions) -> None:
    await sessions.say("dgm_1", said("the needle in "))
    assert len(sessions.find("needle")) == 1
    for words in ("the ", "hay ", "stack"):
        await sessions.say("dgm_1", said(words))
        sessions.find("needle")
    await sessions.say("dgm_1", ENDED, said("another needle"))
    assert sessions.places("needle") == [("dgm_1", 6, "agent"), ("dgm_1", 1, "agent")]
    assert len(sessions.find('"in the hay stack"')) == 1
    assert sessions.rows() == 2


async def test_several_processes_feed_it_at_once(sessions: Sessions) -> None:
    for number in range(20):
        await sessions.say(
            f"dgm_{number}", *(said(f"needle {turn}") if turn % 2 else ENDED for turn in range(40))
        )
    command = [sys.executable, "-m", "dragoman.search", str(sessions.state)]
    feeding = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(3)]
    for process in feeding:
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, b"")
    assert len(sessions.find("needle", limit=200)) == 200
    assert sessions.rows() == 400


async def test_a_turn_that_is_larger_than_a_step_is_read_in_steps(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "STEP_BYTES", 2000)
    for part in range(30):
        await sessions.say(
            "dgm_1", *(said(f"needle{part} ") for _ in range(5)), *([ENDED] if part in (3, 17) else [])
        )
    assert all(sessions.find(f"needle{part}") for part in range(30))
    count = sessions.rows()
    sessions.find("needle1")
    assert sessions.rows() == count


async def test_what_is_deleted_or_removed_by_retention_is_found_no_more(sessions: Sessions) -> None:
    await sessions.say("dgm_1", said("needle one"), ENDED)
    await sessions.say("dgm_2", said("needle two"), ENDED)
    assert len(sessions.find("needle")) == 2
    await sessions.delete("dgm_1")
    await sessions.empty("dgm_2")
    assert (sessions.rows(), sessions.rows("sessions")) == (0, 1), "at once, before anything is read again"
    assert sessions.find("needle") == []
    await sessions.say("dgm_2", said("needle three"), ENDED)
    assert sessions.places("needle") == [("dgm_2", 3, "agent")]


@pytest.mark.parametrize("trouble", ["damaged", "newer", "foreign", "torn"])
async def test_an_index_that_cannot_be_used_is_made_again_with_a_word(
    sessions: Sessions, trouble: str
) -> None:
    await sessions.say("dgm_1", said("needle"), ENDED)
    assert sessions.find("needle")
    path = sessions.state / index.FILE
    if trouble == "damaged":
        path.write_bytes(b"no database" * 1000)
    elif trouble == "torn":
        path.write_bytes(path.read_bytes()[:5000])
    else:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(
                "PRAGMA user_version = 99" if trouble == "newer" else "PRAGMA application_id = 5"
            )
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    assert sessions.places("needle") == [("dgm_1", 1, "agent")]
    [told] = sessions.told
    assert "made again from the journals" in told
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_what_is_not_read_in_time_is_counted(sessions: Sessions) -> None:
    await sessions.say("dgm_1", said("needle"), ENDED)
    found = look_up(sessions.state, Wanted("needle"), sessions.told.append, 0.0)
    assert (found.hits, found.behind) == ([], 1)


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SearchUnavailable, match="cannot be searched now"):
        look_up(tmp_path / "missing", Wanted("word"), print)


@pytest.mark.parametrize(
    "text",
    [
        '"',
        '""',
        "*",
        "NEAR(",
        "a AND",
        "text:",
        "(",
        '"a',
        "a* b*",
        "-x",
        "^y",
        "{tags}:t1",
        "x\0y",
        "ä" * 999,
        '"a b"*',
        "'",
    ],
)
async def test_no_query_is_a_syntax_error(sessions: Sessions, text: str) -> None:
    await sessions.say("dgm_1", said("tags t1 AND near text"), ENDED)
    try:
        sessions.find(text)
    except BadQuery as error:
        assert "letters or digits" in str(error)


def test_words_are_quoted() -> None:
    assert (
        expression('one "two three" four* (AND') == '{text} : ("one" AND "two three" AND "four"* AND "(AND")'
    )
