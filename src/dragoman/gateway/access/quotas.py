"""Limits of live sessions of the gateway, and of live sessions and turns of one token.

They are counted anew for each check, so no count can drift. A session takes its place before the first await of its
setup (`Places.take`), so that simultaneous requests, in one write or in one batch, count each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dragoman.wire.errors import internal, too_many

if TYPE_CHECKING:
    from dragoman.gateway.access.client import Client
    from dragoman.gateway.client import ClientConnection
    from dragoman.gateway.registry import Registry
    from dragoman.gateway.session.session import Session

WAIT_FOR_TURN = 5.0
WAIT_FOR_SESSION = 60.0
"""Seconds that a refused client is asked to wait; the end of a turn is not known."""

MAKES_SESSION = frozenset({"session/new", "session/fork"})


class Places:
    """Counts live sessions and those being set up; parked and stored ones do not count."""

    def __init__(self, gateway: Registry) -> None:
        self._gateway = gateway
        self._coming: list[tuple[str, str]] = []
        """Sessions being set up, each with the name of its token; one session may be in the list twice."""

    @contextmanager
    def take(self, client: Client, session_id: str) -> Iterator[None]:
        """Hold a place until the session is live or its setup fails; raises when there is none.

        Observers have no quota of sessions: the sessions they view are parked, or started by others.
        """
        self._check_room(session_id)
        if client.may_control:
            self.check_sessions(client, session_id)
        place = (session_id, client.terms.identity.name)
        self._coming.append(place)
        try:
            yield
        finally:
            self._coming.remove(place)

    @contextmanager
    def wake(self, client: Client, session: Session) -> Iterator[None]:
        """Hold a place while an agent is restarted; a session that is not parked has its place already."""
        if not session.parked:
            yield
            return
        with self.take(client, session.id):
            yield
            session.setup.woken_by(client.terms.identity.name)

    def of(self, token_name: str) -> set[str]:
        """Ids of the live sessions that were created, or made live again, with the token of this name."""
        live = {each.id for each in self._live() if each.setup.token_name == token_name}
        return live | {session_id for session_id, name in self._coming if name == token_name}

    def check_sessions(self, client: Client, session_id: str = "") -> None:
        """Raise if the token has all the live sessions that it may have; `session_id` itself does not count."""
        token, limit = client.terms.identity.name, client.terms.identity.quota.sessions
        if not limit:
            return
        live = len(self.of(token) - {session_id})
        if live >= limit:
            raise too_many(
                f"The token {token} has {live} live sessions already; close one first",
                WAIT_FOR_SESSION,
                "sessions",
            )

    def _check_room(self, session_id: str) -> None:
        gateway = self._gateway
        limit = gateway.config.limits.max_sessions
        taken = {each.id for each in self._live()} | {each for each, _ in self._coming}
        if len(taken - {session_id}) >= limit:
            raise internal(
                f"There are {limit} live sessions already (limits.max_sessions); close one first",
                "session_limit",
            )
        if gateway.closing:
            raise internal("Dragoman is shutting down", "shutdown")

    def _live(self) -> list[Session]:
        return [session for session in self._gateway.sessions.values() if not session.parked]


def check(client: ClientConnection, method: str) -> None:
    """Raise if this method would exceed a quota of the client's token."""
    if method in MAKES_SESSION:
        client.gateway.places.check_sessions(client)
    elif method == "session/prompt":
        check_turns(client)


def check_turns(client: ClientConnection) -> None:
    token, limit = client.terms.identity.name, client.terms.identity.quota.turns
    if not limit:
        return
    turns = (each.turn for each in client.gateway.sessions.values())
    running = sum(turn is not None and turn.client.terms.identity.name == token for turn in turns)
    if running >= limit:
        raise too_many(f"The token {token} has {running} turns running already", WAIT_FOR_TURN, "turns")
