"""Renames a session at a user's request."""

from __future__ import annotations

import asyncio

from dragoman.gateway.gateway import Gateway
from dragoman.gateway.ownership.directory import SessionEntry
from dragoman.gateway.ports.store import SessionChanges, StoreError
from dragoman.server.asgi import HttpError


async def rename(gateway: Gateway, kept: SessionEntry, title: str) -> None:
    """Rename a session: live in this process, for all attached clients, or only in the store."""
    session = gateway.sessions.get(kept.id)
    if session is not None and not session.owned_elsewhere:
        session.rename(title)
        await session.settled()
    elif kept.live:
        raise HttpError(409, "Another program has this session open; name it there.", code="session_held")
    elif gateway.store is None:
        kept.title = title
    else:
        await _rename_stored(gateway, kept, title)


async def _rename_stored(gateway: Gateway, kept: SessionEntry, title: str) -> None:
    store = gateway.store
    record = await store.get(kept.id) if store is not None else None
    if store is None or record is None:
        raise HttpError(404, "There is no such session.", code="unknown_session")
    done: asyncio.Future[StoreError | None] = asyncio.get_running_loop().create_future()
    changes = SessionChanges(title=title, extra={**record.extra, "named": True})
    store.update(kept.id, record.epoch, changes, done.set_result)
    error = await done
    if error is not None:
        raise error
