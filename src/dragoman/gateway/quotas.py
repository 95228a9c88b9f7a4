"""How much one token may have at once: live sessions and turns. Counted when asked for, so nothing can be lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.wire.errors import too_many

if TYPE_CHECKING:
    from dragoman.gateway.client import ClientConnection

WAIT_FOR_TURN = 5.0
WAIT_FOR_SESSION = 60.0
"""Seconds until it is worth asking again; nobody knows when a turn ends."""

MAKES_SESSION = frozenset({"session/new", "session/fork"})


def check(client: ClientConnection, method: str) -> None:
    """Raises when this method would be one too many."""
    if method in MAKES_SESSION:
        check_sessions(client)
    elif method == "session/prompt":
        check_turns(client)


def check_sessions(client: ClientConnection) -> None:
    """Live ones that were created, or brought back, with this token; parked and stored ones do not count."""
    owner, limit = client.terms.identity.name, client.terms.identity.quota.sessions
    if not limit:
        return
    live = sum(each.owner == owner and not each.parked for each in client.gateway.sessions.values())
    if live >= limit:
        raise too_many(
            f"The token {owner} has {live} live sessions already; close one first",
            WAIT_FOR_SESSION,
            "sessions",
        )


def check_turns(client: ClientConnection) -> None:
    owner, limit = client.terms.identity.name, client.terms.identity.quota.turns
    if not limit:
        return
    turns = (each.turn for each in client.gateway.sessions.values())
    running = sum(turn is not None and turn.client.terms.identity.name == owner for turn in turns)
    if running >= limit:
        raise too_many(f"The token {owner} has {running} turns running already", WAIT_FOR_TURN, "turns")
