"""Reads journals straight from the database file, with SQL of its own."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SEQ_BITS = 36


@dataclass(frozen=True)
class Event:
    seq: int
    tag: str
    body: Any


def read_journal(home: Path, session: str) -> list[Event]:
    """All events of a session; fails if their numbers are not 1, 2, 3, …"""
    with closing(sqlite3.connect(home / "dragoman.db")) as database:
        database.execute("BEGIN")  # as it is at one moment: its process may be writing
        head = database.execute("SELECT n, last_seq FROM heads WHERE id = ?", (session,)).fetchone()
        assert head, f"no journal for {session}"
        span = (head[0] << SEQ_BITS, (head[0] + 1) << SEQ_BITS)
        query = "SELECT key, count, data FROM journal WHERE key >= ? AND key < ? ORDER BY key"
        rows = database.execute(query, span).fetchall()
    events: list[Event] = []
    for key, count, data in rows:
        lines = bytes(data).split(b"\n")
        assert len(lines) == count, f"row {key} of {session} has {len(lines)} events and says {count}"
        assert key - span[0] == len(events) + 1, f"row {key - span[0]} of {session} follows {len(events)}"
        for line in lines:
            events.append(Event(len(events) + 1, line[:1].decode(), json.loads(line[1:])))
    assert len(events) == head[1], f"{session} says that it ends with {head[1]}, it has {len(events)}"
    return events


def records(home: Path, session: str, kind: str) -> list[Any]:
    """What happened in a session beside its updates."""
    found = [event.body for event in read_journal(home, session) if event.tag == "R"]
    return [body for body in found if body["dragoman"] == kind]
