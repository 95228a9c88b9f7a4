"""Removes old sessions if configured; each removal is logged, and clients of a live session get a notice."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from dragoman.gateway.lifecycle import worktrees
from dragoman.gateway.ports.store import (
    LEASE_RENEWAL,
    Removed,
    SessionAway,
    SessionHeld,
    SessionRecord,
    Store,
    StoredSession,
    StoreError,
)
from dragoman.wire.timestamps import timestamp

if TYPE_CHECKING:
    from dragoman.gateway.registry import Registry
    from dragoman.gateway.session.session import Session

log = logging.getLogger(__name__)

FIRST_LOOK = 5.0
"""Seconds after the start, so that an editor does not wait for the removal."""
INTERVAL = 600.0
RETAIN_DAYS = "sessions.retain_days"


async def run_retention(gateway: Registry, store: Store) -> None:
    """Remove old sessions again and again until the gateway closes; does nothing by default."""
    settings = gateway.config.sessions
    if not (settings.expire_after or settings.retain_days or settings.retain_bytes):
        return
    await asyncio.sleep(min(FIRST_LOOK, settings.expire_after or FIRST_LOOK))
    while not gateway.closing:
        try:
            await _expire(gateway)
            await _forget(gateway, store)
        except StoreError as error:
            log.error("old sessions could not be removed: %s", error)
        await asyncio.sleep(min(INTERVAL, settings.expire_after / 2 or INTERVAL))


async def renew_leases(gateway: Registry, store: Store) -> None:
    """Renew this process's leases until the gateway closes."""
    while not gateway.closing and store.writable:
        await asyncio.sleep(LEASE_RENEWAL)
        try:
            await store.renew()
        except StoreError as error:
            log.error("leases could not be renewed: %s", error)


async def _expire(gateway: Registry) -> None:
    """Close live sessions that were not used for long (`sessions.expire_after`)."""
    limit = gateway.config.sessions.expire_after
    if not limit:
        return
    for session in list(gateway.sessions.values()):
        if session.turn is None and not len(session.questions) and _idle_seconds(session) > limit:
            session.notice(
                f"This session was not used for {limit:g} s (sessions.expire_after) and was closed."
            )
            await session.wait_settled()
            await gateway.end_session(session)


async def _forget(gateway: Registry, store: Store) -> None:
    settings = gateway.config.sessions
    if settings.retain_days:
        since = datetime.now(UTC) - timedelta(days=settings.retain_days)
        expired = await expire(store, timestamp(int(since.timestamp() * 1000)), partial(_record, gateway))
        _tell(RETAIN_DAYS, expired)
        for each in expired:
            gateway.deleted(each.session_id)
            await worktrees.release(gateway, each.session_id, RETAIN_DAYS)
    if settings.retain_bytes:
        _tell("sessions.retain_bytes", await prune(store, settings.retain_bytes))


def _record(gateway: Registry, session: SessionRecord) -> None:
    facts = {"session": session.id, "agent": session.agent, "by": RETAIN_DAYS}
    gateway.audit.record("session_deleted", facts)


async def expire(
    store: Store, older_than: str, tell: Callable[[SessionRecord], None] = lambda session: None
) -> list[Removed]:
    """Delete sessions not updated since that time, `tell` called before; those with a living owner stay."""
    stored = await store.stored(older_than)
    return [gone for session in stored if (gone := await _remove(store, session, store.delete, tell))]


async def prune(store: Store, max_bytes: int) -> list[Removed]:
    """Empty the least recently updated journals until all fit into `max_bytes`; those with a living owner stay."""
    stored = await store.stored()
    total, removed = sum(session.bytes for session in stored), []
    for session in stored:
        if total > max_bytes and session.bytes and (gone := await _remove(store, session, store.empty)):
            total -= gone.bytes
            removed.append(gone)
    return removed


async def _remove(
    store: Store,
    session: StoredSession,
    remove: Callable[[str], Awaitable[bool]],
    tell: Callable[[SessionRecord], None] = lambda session: None,
) -> Removed | None:
    """Remove one session; None if it stays: it is live, was used since it was listed, or cannot be removed."""
    try:
        record = await store.get(session.id)
        if record is None or record.owner == store.owner.id or record.updated_at != session.updated_at:
            return None
        tell(record)
        if not await remove(record.id):
            return None
    except (SessionHeld, SessionAway):
        return None
    except StoreError as error:
        log.error("old session could not be removed: %s", error, extra={"session": session.id})
        return None
    return Removed(record.id, record.title, record.last_seq - record.first_seq + 1, session.bytes)


def _idle_seconds(session: Session) -> float:
    return time.monotonic() - session.recovery.last_used


def _tell(setting: str, removed: list[Removed]) -> None:
    for each in removed:
        log.warning(
            "session removed by %s",
            setting,
            extra={"session": each.session_id, "events": each.events, "bytes": each.bytes},
        )
