"""`_dragoman/restore`: undoes changes of a session's files; refused while a turn runs, the first of two wins.

The session must be live here, with or without an agent; a session of another process is restored by its owner.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import msgspec

from dragoman.gateway.json_types import JsonObject, decode_object, encode
from dragoman.gateway.ports.acts import from_threads
from dragoman.gateway.ports.checkpoints import CheckpointError, Restored, Wish
from dragoman.gateway.ports.store import StoreError
from dragoman.gateway.rewriting.rewrite import session_of
from dragoman.gateway.session.session import Session
from dragoman.rpc.request import Request
from dragoman.wire.errors import INTERNAL_ERROR, RpcError, internal, invalid_params, invalid_request

if TYPE_CHECKING:
    from dragoman.gateway.client import ClientConnection

T = TypeVar("T")
RESTORE = "_dragoman/restore"
OWNER_TIMEOUT = 120.0
"""Seconds that the owner of a session has to restore its files."""
LISTED = 100
"""Files that the journal names of one restore; the checkpoints have all."""


def restore(client: ClientConnection, request: Request) -> None:
    """Begin at once, so that the first of two wins, and a prompt that comes later is refused."""
    here = client.gateway.sessions.get(session_of(request.params) or "")
    session = here if here is not None and client.terms.local_process else client.require_session(request)
    wish = _read(request)
    if session.owned_elsewhere:
        client.setup(request, partial(_ask_owner, session, wish))
        return
    restoring = restore_files(session, wish, client.terms.identity.name)

    async def answer(client: ClientConnection, request: Request) -> None:
        request.reply(msgspec.json.encode(await asyncio.shield(restoring)))

    client.setup(request, answer)


async def _ask_owner(session: Session, wish: Wish, client: ClientConnection, request: Request) -> None:
    if session.agent is None:
        raise internal("The process that has this session cannot be reached", "session_held")
    params = {**msgspec.to_builtins(wish), "sessionId": session.agent_session_id}
    request.answer(await session.agent.ask(RESTORE, encode(params), OWNER_TIMEOUT))


def _read(request: Request) -> Wish:
    params = {name: value for name, value in decode_object(request.params).items() if name[:1] != "_"}
    params.pop("sessionId", None)
    try:
        return msgspec.convert(params, Wish)
    except msgspec.ValidationError as error:
        raise invalid_params(f"{RESTORE}: {error}", "params") from error


def restore_files(session: Session, wish: Wish, by: str) -> asyncio.Task[Restored]:
    """Restore files of a session that this process owns; raises `RpcError`, at once or in the task."""
    session.recovery.check_not_rewinding()
    check_no_turn(session, "restore files")
    return session.gateway.spawn(finish_restore(session, wish, by, begin_restore(session, wish, by)))


def check_no_turn(session: Session, then: str) -> None:
    if session.turn is not None:
        raise invalid_request(
            f"A turn is running: wait until it ends, or cancel it, then {then}", "prompt_in_flight"
        )


def begin_restore(session: Session, wish: Wish, by: str) -> Awaitable[Restored]:
    """Begin to restore files; raises `RpcError` at once if files of the session are being restored already."""
    session.services.checkpoints.catch_up()
    acting = from_threads(session.gateway.audit)

    def act(before: str, files: list[str]) -> AbstractContextManager[None]:
        told = {"session": session.id, "agent": session.agent_name, **_facts(wish, before, files, by)}
        return acting("files_restored", told)

    try:
        return session.gateway.checkpoints.restore(session.id, session.workspace, wish, act)
    except CheckpointError as error:
        raise as_rpc_error(error) from error


async def finish_restore(
    session: Session, wish: Wish, by: str, restoring: Awaitable[Restored], *, rewind: bool = False
) -> Restored:
    """Journal what was restored, even if the client does not wait for it; `rewind`: the conversation is rewound too."""
    try:
        restored = await restoring
    except CheckpointError as error:
        raise as_rpc_error(error) from error
    facts = _facts(wish, restored.before, restored.files, by)
    session.record("files_restored", **facts, after=restored.after, rewind=True if rewind else None)
    count = len(restored.files)
    session.notice(f"{count} file{'s were' if count != 1 else ' was'} restored by {by}.", "info")
    return restored


def _facts(wish: Wish, before: str, files: list[str], by: str) -> JsonObject:
    return {
        "wish": {name: value for name, value in msgspec.to_builtins(wish).items() if value},
        "before": before,
        "files": files[:LISTED],
        "count": len(files),
        "by": by,
    }


def as_rpc_error(error: CheckpointError) -> RpcError:
    paths = getattr(error, "paths", None)
    facts = {"paths": paths} if paths else {}
    return RpcError(INTERNAL_ERROR, str(error), {"reason": error.code, **facts})


async def explain_store_errors(work: Awaitable[T]) -> T:
    """Turn errors of the store into `RpcError`: the session may be deleted meanwhile."""
    try:
        return await work
    except StoreError as error:
        raise internal(str(error), error.code) from error
