"""What is old goes, if the settings say so; whatever goes is said in the log, and live sessions are told."""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from dragoman.gateway.lifecycle import end_session
from dragoman.gateway.ports.store import Removed, Store, StoreError

if TYPE_CHECKING:
    from dragoman.gateway.gateway import Gateway
    from dragoman.gateway.session import Session

log = logging.getLogger(__name__)

FIRST_LOOK = 5.0
"""Seconds after the start: not while an editor waits for us."""
INTERVAL = 600.0


async def keep_house(gateway: Gateway, store: Store) -> None:
    """Runs as long as the gateway does; does nothing by default."""
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


async def _expire(gateway: Gateway) -> None:
    """Close live sessions that nobody used for long (seed 002 §8.4)."""
    limit = gateway.config.sessions.expire_after
    if not limit:
        return
    for session in list(gateway.sessions.values()):
        if session.turn is None and not len(session.questions) and _idle_seconds(session) > limit:
            session.notice(
                f"This session was not used for {limit:g} s (sessions.expire_after) and was closed."
            )
            await session.settled()
            await end_session(session)


async def _forget(gateway: Gateway, store: Store) -> None:
    settings = gateway.config.sessions
    if settings.retain_days:
        since = datetime.now(UTC) - timedelta(days=settings.retain_days)
        older_than = since.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        expired = await store.expire(older_than)
        _tell("sessions.retain_days", expired)
        for each in expired:
            gateway.deleted(each.session_id)
    if settings.retain_bytes:
        _tell("sessions.retain_bytes", await store.prune(max_bytes=settings.retain_bytes))


def _idle_seconds(session: Session) -> float:
    return time.monotonic() - session.last_used


def _tell(setting: str, removed: tuple[Removed, ...]) -> None:
    for each in removed:
        log.warning(
            "session removed by %s",
            setting,
            extra={"session": each.session_id, "events": each.events, "bytes": each.bytes},
        )
