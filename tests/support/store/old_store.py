"""A store as the version before journal files wrote it: everything in `dragoman.db`, one lock file per process."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from contextlib import closing
from pathlib import Path

SEQ_BITS = 36
TABLES = """
CREATE TABLE identity (store_id TEXT NOT NULL);
INSERT INTO identity VALUES ('0123456789abcdef');
CREATE TABLE owners (
    id TEXT PRIMARY KEY, lock_path TEXT NOT NULL, socket_path TEXT NOT NULL, pid INTEGER NOT NULL,
    place TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
CREATE TABLE heads (
    n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, owner TEXT, epoch INTEGER NOT NULL, first_seq INTEGER NOT NULL,
    last_seq INTEGER NOT NULL, bytes INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX heads_owner ON heads (owner) WHERE owner IS NOT NULL;
CREATE TABLE sessions (
    n INTEGER PRIMARY KEY, agent TEXT NOT NULL, agent_session_id TEXT, cwd TEXT NOT NULL, workspace TEXT NOT NULL,
    additional_directories TEXT NOT NULL, sandbox TEXT, title TEXT, created_at TEXT NOT NULL, updated_at TEXT NOT NULL,
    state TEXT NOT NULL, forked_from TEXT, extra TEXT NOT NULL
);
CREATE INDEX sessions_newest ON sessions (updated_at);
CREATE INDEX sessions_cwd ON sessions (cwd, updated_at);
CREATE INDEX sessions_agent ON sessions (agent, updated_at);
CREATE UNIQUE INDEX sessions_agent_session ON sessions (agent, agent_session_id) WHERE agent_session_id IS NOT NULL;
CREATE TABLE journal (key INTEGER PRIMARY KEY, count INTEGER NOT NULL, ts INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TRIGGER journal_grows AFTER INSERT ON journal BEGIN
    UPDATE heads SET last_seq = (NEW.key & 68719476735) + NEW.count - 1, bytes = bytes + length(NEW.data)
    WHERE n = NEW.key >> 36;
END;
"""
TS = 1_767_225_600_123


class OldStore:
    """Writes to the file as the old version did."""

    def __init__(self, path: Path, *, version: int = 2) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(self._open()) as connection:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute(f"PRAGMA application_id = {0x44474D4E}")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(TABLES)
            if version == 1:
                connection.execute("ALTER TABLE owners DROP COLUMN place")
            connection.execute(f"PRAGMA user_version = {version}")

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, isolation_level=None)

    def session(
        self,
        name: str,
        rows: list[list[bytes]],
        *,
        owner: str | None = None,
        first_seq: int = 1,
        **fields: str,
    ) -> str:
        """Add a session with these rows of events."""
        session_id = f"dgm_{name}"
        body = {
            "agent": "scripted", "agent_session_id": f"theirs-{name}", "cwd": "/project", "workspace": "/project",
            "additional_directories": "[]", "title": f"Talk {name}", "created_at": "2026-01-01T00:00:00.000Z",
            "updated_at": "2026-01-02T00:00:00.000Z", "state": "idle", "extra": '{"mode":"code"}', **fields,
        }  # fmt: skip
        with closing(self._open()) as connection:
            n = connection.execute(
                "INSERT INTO heads (id, owner, epoch, first_seq, last_seq) VALUES (?, ?, 4, ?, ?)",
                (session_id, owner, first_seq, first_seq - 1),
            ).lastrowid
            assert n is not None
            names = ", ".join(body)
            connection.execute(
                f"INSERT INTO sessions (n, {names}) VALUES (?{', ?' * len(body)})", (n, *body.values())
            )
            seq = first_seq
            for row in rows:
                key = n << SEQ_BITS | seq
                connection.execute(
                    "INSERT INTO journal VALUES (?, ?, ?, ?)", (key, len(row), TS, b"\n".join(row))
                )
                seq += len(row)
        return session_id

    def owner(self, name: str, *, alive: bool) -> int:
        """Register a process; returns the descriptor of its lock, which is held if it is alive."""
        lock = self.path.parent / "owners" / f"{name}.lock"
        lock.parent.mkdir(exist_ok=True)
        descriptor = os.open(lock, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
        if alive:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        with closing(self._open()) as connection:
            columns = (name, str(lock), "/gone.sock", os.getpid(), "boot namespace start machine")
            connection.execute("INSERT INTO owners VALUES (?, ?, ?, ?, ?)", columns)
        return descriptor
