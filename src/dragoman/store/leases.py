"""Who owns which session, in SQL. Everything that decides runs inside a write transaction."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from dragoman.gateway.ports.store import HeldElsewhere, Lease, SessionHeld
from dragoman.store import directory
from dragoman.store.owners import Owner, is_alive, lock_of, unlocked

_OWNERS = "SELECT id, lock_path, socket_path, place, pid FROM owners"


def register(connection: sqlite3.Connection, owner: Owner, locks: Path) -> set[str]:
    """Make this process known to the others, and forget those that died; returns whose files can go now."""
    rows = connection.execute(_OWNERS).fetchall()
    dead = {owner_id for owner_id, *known in rows if not _is_alive(locks, owner_id, *known)}
    connection.executemany("DELETE FROM owners WHERE id = ?", [(owner_id,) for owner_id in dead])
    connection.execute(
        "INSERT INTO owners (id, lock_path, socket_path, pid, place) VALUES (?, ?, ?, ?, ?)",
        (owner.id, str(owner.lock_path), str(owner.socket_path), os.getpid(), owner.place),
    )
    return dead | unlocked(locks) - {row[0] for row in rows}


def unregister(connection: sqlite3.Connection, owner: Owner) -> None:
    connection.execute("UPDATE heads SET owner = NULL WHERE owner = ?", (owner.id,))
    connection.execute("DELETE FROM owners WHERE id = ?", (owner.id,))


def alive(connection: sqlite3.Connection, locks: Path) -> tuple[HeldElsewhere, ...]:
    rows = connection.execute(f"{_OWNERS} ORDER BY id").fetchall()
    return tuple(
        HeldElsewhere(owner_id, known[1]) for owner_id, *known in rows if _is_alive(locks, owner_id, *known)
    )


def acquire(connection: sqlite3.Connection, session_id: str, me: str, locks: Path) -> Lease | HeldElsewhere:
    head = connection.execute(
        "SELECT owner, epoch, last_seq FROM heads WHERE id = ?", (session_id,)
    ).fetchone()
    if head is None:
        raise directory.unknown(session_id)
    owner, epoch, last_seq = head
    if owner == me:
        return Lease(session_id, epoch, last_seq)
    holder = living(connection, owner, locks)
    if holder is not None:
        return holder
    connection.execute("UPDATE heads SET owner = ?, epoch = ? WHERE id = ?", (me, epoch + 1, session_id))
    return Lease(session_id, epoch + 1, last_seq, former_owner=owner)


def release(connection: sqlite3.Connection, session_id: str, epoch: int, me: str) -> None:
    connection.execute(
        "UPDATE heads SET owner = NULL WHERE id = ? AND owner = ? AND epoch = ?", (session_id, me, epoch)
    )


def delete(connection: sqlite3.Connection, session_id: str, me: str, locks: Path) -> bool:
    """Remove a session that no other living process holds."""
    head = connection.execute("SELECT n, owner FROM heads WHERE id = ?", (session_id,)).fetchone()
    if head is None:
        return False
    n, owner = head
    holder = None if owner == me else living(connection, owner, locks)
    if holder is not None:
        raise SessionHeld(
            f"Session {session_id} is live in another Dragoman process; close it there.", holder
        )
    directory.delete(connection, n)
    return True


def living(connection: sqlite3.Connection, owner: str | None, locks: Path) -> HeldElsewhere | None:
    """The owner, unless its process is known to be dead."""
    if owner is None:
        return None
    found = connection.execute(f"{_OWNERS} WHERE id = ?", (owner,)).fetchone()
    if found is None or not _is_alive(locks, *found):
        return None
    return HeldElsewhere(owner, found[2])


def _is_alive(locks: Path, owner_id: str, lock_path: str, socket_path: str, place: str, pid: int) -> bool:
    # By its name beside our data: a container may know the same folder by another path.
    return is_alive(lock_of(locks, owner_id) if place else Path(lock_path), place, pid)
