"""Who owns which session, in SQL. Everything that decides runs inside a write transaction."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from dragoman.gateway.ports.store import HeldElsewhere, Lease, SessionHeld
from dragoman.store import directory
from dragoman.store.owners import Owner, is_alive


def register(connection: sqlite3.Connection, owner: Owner) -> None:
    """Make this process known to the others, and forget those that died."""
    for owner_id, lock_path in connection.execute("SELECT id, lock_path FROM owners").fetchall():
        if not is_alive(Path(lock_path)):
            connection.execute("DELETE FROM owners WHERE id = ?", (owner_id,))
    connection.execute(
        "INSERT INTO owners (id, lock_path, socket_path, pid) VALUES (?, ?, ?, ?)",
        (owner.id, str(owner.lock_path), str(owner.socket_path), os.getpid()),
    )


def unregister(connection: sqlite3.Connection, owner: Owner) -> None:
    connection.execute("UPDATE heads SET owner = NULL WHERE owner = ?", (owner.id,))
    connection.execute("DELETE FROM owners WHERE id = ?", (owner.id,))


def alive(connection: sqlite3.Connection) -> tuple[HeldElsewhere, ...]:
    rows = connection.execute("SELECT id, socket_path, lock_path FROM owners ORDER BY id").fetchall()
    return tuple(HeldElsewhere(row[0], row[1]) for row in rows if is_alive(Path(row[2])))


def acquire(connection: sqlite3.Connection, session_id: str, me: str) -> Lease | HeldElsewhere:
    head = connection.execute(
        "SELECT owner, epoch, last_seq FROM heads WHERE id = ?", (session_id,)
    ).fetchone()
    if head is None:
        raise directory.unknown(session_id)
    owner, epoch, last_seq = head
    if owner == me:
        return Lease(session_id, epoch, last_seq)
    holder = living(connection, owner)
    if holder is not None:
        return holder
    connection.execute("UPDATE heads SET owner = ?, epoch = ? WHERE id = ?", (me, epoch + 1, session_id))
    return Lease(session_id, epoch + 1, last_seq, former_owner=owner)


def release(connection: sqlite3.Connection, session_id: str, epoch: int, me: str) -> None:
    connection.execute(
        "UPDATE heads SET owner = NULL WHERE id = ? AND owner = ? AND epoch = ?", (session_id, me, epoch)
    )


def delete(connection: sqlite3.Connection, session_id: str, me: str) -> bool:
    """Remove a session that no other living process holds."""
    head = connection.execute("SELECT n, owner FROM heads WHERE id = ?", (session_id,)).fetchone()
    if head is None:
        return False
    n, owner = head
    holder = None if owner == me else living(connection, owner)
    if holder is not None:
        raise SessionHeld(
            f"Session {session_id} is live in another Dragoman process; close it there.", holder
        )
    directory.delete(connection, n)
    return True


def living(connection: sqlite3.Connection, owner: str | None) -> HeldElsewhere | None:
    """The owner, if its process still runs."""
    if owner is None:
        return None
    found = connection.execute("SELECT lock_path, socket_path FROM owners WHERE id = ?", (owner,)).fetchone()
    if found is None or not is_alive(Path(found[0])):
        return None
    return HeldElsewhere(owner, found[1])
