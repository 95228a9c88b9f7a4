"""Reports journals that are not in the directory, some time after the start."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from dragoman.gateway.ports.store import Store, StoreError

log = logging.getLogger(__name__)

UNLISTED_SECONDS = 1.0
"""Seconds until journals are compared with the directory, so as not to slow the start; the end waits as long for it."""


async def log_unlisted(store: Store | None, ending: asyncio.Event) -> None:
    """Log how many journals are not in the directory, for example because it was removed and made again."""
    from dragoman.store import FileStore
    from dragoman.upkeep.unlisted import unlisted

    if not isinstance(store, FileStore) or not store.writable:
        return
    with suppress(TimeoutError):
        await asyncio.wait_for(ending.wait(), UNLISTED_SECONDS)
    try:
        found = await asyncio.to_thread(unlisted, store.path)
    except StoreError as error:
        log.info("journals were not compared with the directory: %s", error)
        return
    if found:
        log.warning("%s", unlisted_notice(len(found)))


def unlisted_notice(count: int) -> str:
    """The message about journals that are not in the directory."""
    which, them = (
        ("1 session has a journal but is", "it")
        if count == 1
        else (f"{count} sessions have journals but are", "them")
    )
    return f"{which} not in the directory: `dragoman doctor --fix` puts {them} back"
