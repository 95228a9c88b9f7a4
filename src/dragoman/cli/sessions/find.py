"""Finds the session that the user names: by its whole id or a unique beginning of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from dragoman.config.errors import ConfigError
from dragoman.config.paths import Paths
from dragoman.gateway.ids import PREFIX
from dragoman.gateway.ports.store import SessionRecord, Store, StoreUnavailable
from dragoman.store import FileStore
from dragoman.upkeep.unlisted import unlisted

SHORTEST = 6
"""Characters required after `dgm_`: fewer would sooner or later match the wrong session."""
CANDIDATES = 5
PAGE = 1000

T = TypeVar("T")


async def find(store: Store, given: str) -> SessionRecord:
    """The session that `given` names; raises `ConfigError` if there is none or more than one."""
    exact = await store.get(given)
    if exact is not None:
        return exact
    start = given if given.startswith(PREFIX) else PREFIX + given
    if len(start) < len(PREFIX) + SHORTEST:
        raise ConfigError(
            f'"{given}" is too short for a session id: give at least {SHORTEST} characters after {PREFIX}'
        )
    found = [record async for record in every(store, query=start) if record.id.startswith(start)]
    if not found:
        left_out = await asyncio.to_thread(unlisted, store.path) if isinstance(store, FileStore) else []
        if any(session_id.startswith((given, start)) for session_id in left_out):
            raise ConfigError(
                f'the session "{given}" has a journal but is not in the directory: `dragoman doctor --fix` puts it back'
            )
        raise ConfigError(f'there is no session "{given}": `dragoman sessions list --all` shows all')
    if len(found) > 1:
        names = "\n".join(f"  {each.id}  {each.title or ''}".rstrip() for each in found[:CANDIDATES])
        more = f"\n  and {len(found) - CANDIDATES} more" if len(found) > CANDIDATES else ""
        raise ConfigError(f'"{given}" is the beginning of several sessions:\n{names}{more}')
    return found[0]


async def every(
    store: Store, *, cwd: str | None = None, agent: str | None = None, query: str | None = None
) -> AsyncIterator[SessionRecord]:
    """All sessions that match, newest first."""
    cursor = None
    while True:
        page = await store.list(cwd=cwd, agent=agent, query=query, cursor=cursor, limit=PAGE)
        for record in page.records:
            yield record
        cursor = page.next_cursor
        if cursor is None:
            return


@asynccontextmanager
async def reading(paths: Paths) -> AsyncIterator[FileStore]:
    """The store, opened read-only; sessions of an older version are converted first."""
    from dragoman.upkeep import conversion

    if conversion.is_needed(paths.database):
        from dragoman.cli.conversion.older_versions import convert_old_sessions
        from dragoman.cli.entry import complain

        await asyncio.to_thread(convert_old_sessions, paths, complain)
    store = await FileStore.open(paths.database, paths.runtime_dir, mode="ro")
    try:
        yield store
    finally:
        await store.close()


def with_store(paths: Paths, work: Callable[[FileStore], Awaitable[T]]) -> T:
    """Run `work` on the store, opened for reading."""

    async def run() -> T:
        if not paths.database.exists():
            raise StoreUnavailable(f"There are no sessions yet: {paths.database} does not exist.")
        async with reading(paths) as store:
            return await work(store)

    return asyncio.run(run())
