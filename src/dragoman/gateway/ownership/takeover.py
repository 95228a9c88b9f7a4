"""Becoming the one process that has a session, or finding the one that does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from dragoman.gateway.ports.store import StoreError
from dragoman.wire.errors import RpcError, internal, session_not_found

if TYPE_CHECKING:
    from dragoman.gateway.client import ClientConnection
    from dragoman.gateway.gateway import Gateway
    from dragoman.gateway.session.session import Session


class ClosedMeanwhile(RpcError):
    """The last client that looked at it left while it was being taken: a client that comes again finds it."""

    @classmethod
    def of(cls, session: Session) -> ClosedMeanwhile:
        error = session_not_found(session.id, "It was closed meanwhile")
        return cls(error.code, error.message, error.data)


async def _check_known(session: Session) -> None:
    """Raises unless the directory knows it; what it knows is read once the lease is ours."""
    try:
        known = await session.gateway.directory.get(session.id)
    except StoreError as error:
        raise internal(str(error), error.code, sessionId=session.id) from error
    if known is None:
        raise unknown(session.gateway, session.id)


def unknown(gateway: Gateway, session_id: str) -> RpcError:
    """Why a session cannot be found: it may be there, in a store that cannot be used."""
    return session_not_found(session_id, gateway.trouble or "It was deleted, or belongs to another machine")


async def take(session: Session, client: ClientConnection) -> Session:
    """Own a stored session or reach its owner; another client of this process may have been faster.

    Not to be stopped half way: whoever asked may lose interest, others wait for the same.
    """
    while True:
        taking = session.gateway.spawn(_take(session, client))
        try:
            taken = await asyncio.shield(taking)
        except StoreError as error:
            raise internal(str(error), error.code, sessionId=session.id) from error
        except asyncio.CancelledError:
            taking.add_done_callback(lambda _: _unless_used(session))
            raise
        if taken is session or session.gateway.sessions.get(session.id) is taken:
            return taken
        # It was taken for somebody else who lost interest, and given up before we could use it.


def _unless_used(session: Session) -> None:
    """It was taken for somebody who does not want it any more."""
    if session.attachments:
        return
    if session.remote:
        session.gateway.spawn(_close_unless_used(session))
    else:
        if session.agent is None:
            session.park()
        session.gateway.left(session)


async def _close_unless_used(session: Session) -> None:
    if not session.attachments:
        await session.gateway.close_session(session)


async def _take(session: Session, client: ClientConnection) -> Session:
    gateway = session.gateway
    # One at a time: two that open the same journal would both number their events from its end.
    async with gateway.taking(session.id):
        live = gateway.sessions.get(session.id)
        if live is not None and (live is not session or not session.orphaned):
            return live
        if live is None and session.remote:
            raise ClosedMeanwhile.of(session)
        held = await gateway.directory.own(session)
        if held is None:
            session.taken()
        else:
            await gateway.reach(session, client, held)
        if live is not None and gateway.sessions.get(session.id) is not session:
            _leave(session)
            raise ClosedMeanwhile.of(session)
        gateway.add(session)
        return session


def _leave(session: Session) -> None:
    """It was closed while it was taken; whoever closed it waits for us and gives the lease back."""
    owner = session.agent
    if owner is not None:
        owner.sessions.pop(session.agent_session_id, None)
        session.lose_agent()
        session.gateway.pool.reap(owner)


async def take_over(session: Session, client: ClientConnection) -> Session:
    """The process that had this session is gone; its clients here stay attached."""
    if not session.orphaned:
        return session
    await _check_known(session)
    return await take(session, client)
