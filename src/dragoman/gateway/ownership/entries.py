"""What the directory says of sessions, live or not: their state as their journals and owners show it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress

import msgspec
from msgspec import structs

from dragoman.gateway.delivery import transcript
from dragoman.gateway.json_types import JsonObject, as_object
from dragoman.gateway.ports.store import Owner, SessionRecord, Store, StoreError

log = logging.getLogger(__name__)

RUNNING_STATES = frozenset({"working", "silent", "waiting_for_permission"})


class SessionEntry(msgspec.Struct, kw_only=True):
    """What the directory knows of a session, live or not."""

    id: str
    agent: str
    cwd: str
    agent_session_id: str | None = None
    title: str | None = None
    updated_at: str | None = None
    state: str = "stored"
    live: bool = False
    """Another living process owns the session; sessions live in this process are in `Gateway.sessions`."""
    additional_directories: tuple[str, ...] = ()
    created_at: str | None = None
    workspace: str | None = None
    sandbox: str | None = None
    first_seq: int = 1
    last_seq: int = 0
    epoch: int = 0
    extra: JsonObject = {}
    info: JsonObject = {}
    """Further members of the session's entry in the agent's own list."""


class SessionEntryPage(msgspec.Struct):
    sessions: list[SessionEntry]
    next_cursor: str | None = None


async def examine(
    store: Store, records: Sequence[SessionRecord]
) -> tuple[list[SessionRecord], dict[str, Owner]]:
    """The records with their current state, and the living owners of sessions that have one.

    A session that cannot be examined, because its journal is newer or its lock unreadable, keeps the state that the
    directory has.
    """
    holders = await _holders(store, records)
    examined = []
    for record in records:
        if record.owner is not None and record.id not in holders:
            try:
                record = await _without_holder(store, record, holders)
            except StoreError as error:
                log.warning("session cannot be examined: %s", error, extra={"session": record.id})
        examined.append(record)
    return examined, holders


async def _holders(store: Store, records: Sequence[SessionRecord]) -> dict[str, Owner]:
    try:
        return await store.holders(records)
    except StoreError:
        found: dict[str, Owner] = {}
        for record in records:
            with suppress(StoreError):  # `examine` asks again, and logs it
                found.update(await store.holders([record]))
        return found


async def _without_holder(store: Store, record: SessionRecord, holders: dict[str, Owner]) -> SessionRecord:
    """The record of a session without a living owner, read again: only then can its turn be called interrupted."""
    record = await store.get(record.id) or record
    holders.update(await store.holders([record]))  # another process may have taken it since
    if record.owner is None or record.id in holders:
        return record
    return structs.replace(record, state=await _last_state(store, record))


async def _last_state(store: Store, record: SessionRecord) -> str:
    """The state of a session whose owner died, by its journal: the directory may be a second behind."""
    in_turn = await transcript.is_in_turn(store, record.id, pages=1)
    if in_turn is None:
        return record.state
    return "interrupted" if in_turn else "idle" if record.state in RUNNING_STATES else record.state


def entry_of(record: SessionRecord, owner: Owner | None, me: Owner) -> SessionEntry:
    state = record.state if owner is not None or record.state not in RUNNING_STATES else "interrupted"
    entry = msgspec.convert(record, SessionEntry, from_attributes=True)
    entry.state, entry.live = state, owner is not None and owner.id != me.id
    entry.info = as_object(record.extra.get("info"))
    return entry


def read_info(info: JsonObject) -> tuple[str | None, str | None, JsonObject]:
    """Title, time and the rest of an agent's `SessionInfo`; nulls count as absent (D-37)."""
    rest = {key: value for key, value in info.items() if value is not None}
    for name in ("sessionId", "cwd"):
        rest.pop(name, None)
    title, updated_at = rest.pop("title", None), rest.pop("updatedAt", None)
    return (
        title if isinstance(title, str) and not transcript.is_recap(title) else None,
        updated_at if isinstance(updated_at, str) else None,
        rest,
    )
