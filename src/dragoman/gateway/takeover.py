"""Becoming the one process that has a session, or finding the one that does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.gateway.ports.store import StoreError
from dragoman.wire.errors import RpcError, internal, session_not_found

if TYPE_CHECKING:
    from dragoman.gateway.client import ClientConnection
    from dragoman.gateway.directory import Kept
    from dragoman.gateway.gateway import Gateway
    from dragoman.gateway.session import Session


async def find(session: Session) -> Kept:
    """What the directory knows of it."""
    try:
        known = await session.gateway.directory.get(session.id)
    except StoreError as error:
        raise internal(str(error), error.code, sessionId=session.id) from error
    if known is None:
        raise unknown(session.gateway, session.id)
    return known


def unknown(gateway: Gateway, session_id: str) -> RpcError:
    """Why a session cannot be found: it may be there, in a store that cannot be used."""
    return session_not_found(session_id, gateway.trouble or "It was deleted, or belongs to another machine")


async def take(session: Session, client: ClientConnection, known: Kept) -> Session:
    """Own a stored session or reach its owner; another client of this process may have been faster."""
    gateway = session.gateway
    try:
        # One at a time: two that open the same journal would both number their events from its end.
        async with gateway.taking(session.id):
            live = gateway.sessions.get(session.id)
            if live is not None and (live is not session or not _orphaned(session)):
                return live
            held = await gateway.directory.own(session)
            if held is None:
                session.remote = False
                session.agent_session_id = known.agent_session_id or ""
            else:
                await gateway.reach(session, client, held)
            gateway.add(session)
            return session
    except StoreError as error:
        raise internal(str(error), error.code, sessionId=session.id) from error


async def take_over(session: Session, client: ClientConnection) -> None:
    """The process that had this session is gone; its clients here stay attached."""
    if _orphaned(session):
        await take(session, client, await find(session))


def _orphaned(session: Session) -> bool:
    return session.remote and session.agent is None
