"""The schema of the directory, and its migrations from older versions.

Versions 1 and 2 had the events in the database too, in the tables `heads`, `sessions`, `journal` and `owners`. These
stay for processes of that version that still run; `conversion.py` moves the sessions out of them one by one.
"""

from __future__ import annotations

import sqlite3

APPLICATION_ID = 0x44474D4E  # "DGMN": tells our database from another program's
VERSION = 3

_IDENTITY = (
    "CREATE TABLE identity (store_id TEXT NOT NULL)",
    "INSERT INTO identity VALUES (lower(hex(randomblob(16))))",
)
_DIRECTORY = (
    """CREATE TABLE directory (
        n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
        owner TEXT, node TEXT, epoch INTEGER NOT NULL, first_seq INTEGER NOT NULL, last_seq INTEGER NOT NULL,
        agent TEXT NOT NULL, agent_session_id TEXT,
        cwd TEXT NOT NULL, workspace TEXT NOT NULL, additional_directories TEXT NOT NULL, sandbox TEXT,
        title TEXT, created_at TEXT NOT NULL, updated_at TEXT NOT NULL, state TEXT NOT NULL,
        forked_from TEXT, extra TEXT NOT NULL
    )""",
    "CREATE INDEX directory_newest ON directory (updated_at)",
    "CREATE INDEX directory_cwd ON directory (cwd, updated_at)",
    "CREATE INDEX directory_agent ON directory (agent, updated_at)",
    """CREATE UNIQUE INDEX directory_agent_session ON directory (agent, agent_session_id)
        WHERE agent_session_id IS NOT NULL""",
)

STEPS: dict[int, tuple[str, ...]] = {
    0: (*_IDENTITY, *_DIRECTORY),
    1: ("ALTER TABLE owners ADD COLUMN place TEXT NOT NULL DEFAULT ''", *_DIRECTORY),
    2: _DIRECTORY,
}
"""Statements that migrate each version to the present one."""


def version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection) -> None:
    """Migrate the schema in one transaction; another process may have done so meanwhile."""
    if version(connection) >= VERSION:
        return
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        for statement in STEPS.get(version(connection), ()):
            connection.execute(statement)
        if version(connection) < VERSION:
            connection.execute(f"PRAGMA user_version = {VERSION}")


def has_old_tables(connection: sqlite3.Connection) -> bool:
    query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'heads'"
    return connection.execute(query).fetchone() is not None
