"""The tables, as the steps that lead to them.

`heads` is what an append touches, so it is kept apart from the wide and seldom written `sessions`; both share
the integer `n`. A journal row's key is `n << SEQ_BITS | first_seq`: one b-tree holds each session's events in
order, with no second index to write. The trigger moves the head along in the same statement as the row, which
spares the writer thread one fight for the interpreter lock per commit.
"""

from __future__ import annotations

import sqlite3

APPLICATION_ID = 0x44474D4E  # "DGMN", so that another program's database is not taken for ours
SEQ_BITS = 36
SEQ_MASK = (1 << SEQ_BITS) - 1

STEPS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE identity (store_id TEXT NOT NULL)",
        "INSERT INTO identity VALUES (lower(hex(randomblob(16))))",
        """CREATE TABLE owners (
            id TEXT PRIMARY KEY,
            lock_path TEXT NOT NULL,
            socket_path TEXT NOT NULL,
            pid INTEGER NOT NULL
        ) WITHOUT ROWID""",
        """CREATE TABLE heads (
            n INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            owner TEXT,
            epoch INTEGER NOT NULL,
            first_seq INTEGER NOT NULL,
            last_seq INTEGER NOT NULL,
            bytes INTEGER NOT NULL DEFAULT 0
        )""",
        "CREATE INDEX heads_owner ON heads (owner) WHERE owner IS NOT NULL",
        """CREATE TABLE sessions (
            n INTEGER PRIMARY KEY,
            agent TEXT NOT NULL,
            agent_session_id TEXT,
            cwd TEXT NOT NULL,
            workspace TEXT NOT NULL,
            additional_directories TEXT NOT NULL,
            sandbox TEXT,
            title TEXT,
            created_at TEXT NOT NULL,
            updated_at TEXT NOT NULL,
            state TEXT NOT NULL,
            forked_from TEXT,
            extra TEXT NOT NULL
        )""",
        "CREATE INDEX sessions_newest ON sessions (updated_at)",
        "CREATE INDEX sessions_cwd ON sessions (cwd, updated_at)",
        "CREATE INDEX sessions_agent ON sessions (agent, updated_at)",
        """CREATE UNIQUE INDEX sessions_agent_session ON sessions (agent, agent_session_id)
            WHERE agent_session_id IS NOT NULL""",
        """CREATE TABLE journal (
            key INTEGER PRIMARY KEY,
            count INTEGER NOT NULL,
            ts INTEGER NOT NULL,
            data BLOB NOT NULL
        )""",
        f"""CREATE TRIGGER journal_grows AFTER INSERT ON journal BEGIN
            UPDATE heads SET
                last_seq = (NEW.key & {SEQ_MASK}) + NEW.count - 1,
                bytes = bytes + length(NEW.data)
            WHERE n = NEW.key >> {SEQ_BITS};
        END""",
    ),
    (
        # Where and when its process began, in case that its lock file is lost; empty for versions before this one.
        "ALTER TABLE owners ADD COLUMN place TEXT NOT NULL DEFAULT ''",
    ),
)
"""Step i brings version i to i + 1. Never change one that was released; add another."""


def version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection, steps: tuple[tuple[str, ...], ...] = STEPS) -> None:
    """Bring the schema up to date in one transaction; another process may have done so meanwhile."""
    if version(connection) >= len(steps):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in steps[version(connection) :]:
            for statement in step:
                connection.execute(statement)
        if version(connection) < len(steps):
            connection.execute(f"PRAGMA user_version = {len(steps)}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
