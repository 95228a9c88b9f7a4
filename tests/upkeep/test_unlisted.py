"""Journals that the directory does not have."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from dragoman.store import FileStore
from dragoman.upkeep.unlisted import unlisted
from support.store.store_process import begin


async def test_only_journals_that_no_process_is_making_are_unlisted(tmp_path: Path) -> None:
    store = await FileStore.open(tmp_path / "dragoman.db", tmp_path / "run")
    await begin(store, "listed")
    live = await begin(store, "live")
    assert unlisted(tmp_path / "dragoman.db") == []
    journals = tmp_path / "journal"
    for name in ("dgm_lost", "dgm_described", "dgm_empty", ".deleted-dgm_gone", "no session"):
        (journals / name).mkdir()
    (journals / "dgm_lost" / "000000000001-1.log").touch()
    (journals / "dgm_described" / "session.json").touch()
    (journals / "dgm_file").touch()
    with closing(sqlite3.connect(tmp_path / "dragoman.db")) as connection, connection:
        connection.execute("DELETE FROM directory WHERE id = ?", (live,))
    assert unlisted(tmp_path / "dragoman.db") == ["dgm_described", "dgm_lost"]
    await store.close()
