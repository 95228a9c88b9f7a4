"""Takes over a session: this process becomes its owner, or connects to the owner."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from dragoman.gateway.ownership import owner_connection
from dragoman.gateway.ports.store import StoreError, UnknownSession
from dragoman.gateway.session.binding import ClosedMeanwhile
from dragoman.wire.errors import RpcError, internal, session_not_found

if TYPE_CHECKING:
    from dragoman.gateway.access.client import Client
    from dragoman.gateway.registry import Registry
    from dragoman.gateway.session.session import Session


async def _check_known(gateway: Registry, session: Session) -> None:
    """Raise unless the directory has the session; its record is read later, with the lease held."""
    try:
        known = await gateway.directory.get(session.id)
    except StoreError as error:
        raise internal(str(error), error.code, sessionId=session.id) from error
    if known is None:
        raise unknown(gateway, session.id)


def unknown(gateway: Registry, session_id: str) -> RpcError:
    """The error for a session that cannot be found; it may exist in a store that cannot be used."""
    return session_not_found(session_id, gateway.trouble or "It was deleted, or belongs to another machine")


async def take(gateway: Registry, session: Session, client: Client) -> Session:
    """Own a stored session or connect to its owner; returns the live session if another client was faster.

    Runs to its end even if the caller is cancelled: other clients may wait for the same.
    """
    while True:
        taking = gateway.spawn(_take(gateway, session, client))
        try:
            taken = await asyncio.shield(taking)
        except asyncio.CancelledError:
            taking.add_done_callback(lambda _: _let_go_unless_used(gateway, session))
            raise
        if taken is session or gateway.has(taken):
            return taken
        # Taken for another client that was cancelled, and closed before this one could use it.


def _let_go_unless_used(gateway: Registry, session: Session) -> None:
    """Let go of a session that was taken for a cancelled request, unless a client is attached."""
    if session.attachments:
        return
    if session.owned_elsewhere:
        gateway.spawn(_close_unless_used(gateway, session))
    else:
        if session.agent is None:
            session.binding.park()
        gateway.detached(session)


async def _close_unless_used(gateway: Registry, session: Session) -> None:
    if not session.attachments:
        await gateway.close_session(session)


async def _take(gateway: Registry, session: Session, client: Client) -> Session:
    while True:
        await gateway.closings.wait_over(session.id)
        # One at a time: two feeds on the same journal would both number their events from its end.
        async with gateway.taking(session.id):
            if not gateway.closings.has(session.id):
                return await _take_now(gateway, session, client)


async def _take_now(gateway: Registry, session: Session, client: Client) -> Session:
    live = gateway.sessions.get(session.id)
    if live is not None and (live is not session or not session.orphaned):
        return live
    if session.closed or (live is None and session.owned_elsewhere):
        raise ClosedMeanwhile.of(session.id)
    if session.id in gateway.closings.deleting:
        raise unknown(gateway, session.id)
    try:
        held = await gateway.directory.own(session)
    except UnknownSession as error:  # deleted meanwhile
        raise unknown(gateway, session.id) from error
    except StoreError as error:
        raise internal(str(error), error.code, sessionId=session.id) from error
    session.binding.check_open()  # closing it waits for the lock, then releases the lease
    if held is None:
        session.binding.taken()
    else:
        await owner_connection.reach(
            gateway, session, client, lambda handler: gateway.dialer.dial(held.owner.address, handler)
        )
    if live is not None and not gateway.has(session):
        _leave(gateway, session)
        raise ClosedMeanwhile.of(session.id)
    gateway.add(session)
    return session


def _leave(gateway: Registry, session: Session) -> None:
    """Disconnect from the owner of a session that was closed meanwhile; closing it also releases the lease."""
    owner = session.agent
    if owner is not None:
        session.binding.lose()
        gateway.pool.reap(owner)


async def take_over(gateway: Registry, session: Session, client: Client) -> Session:
    """Take a session over if the connection to its owner is lost; its clients here stay attached."""
    if not session.orphaned:
        return session
    await _check_known(gateway, session)
    return await take(gateway, session, client)
