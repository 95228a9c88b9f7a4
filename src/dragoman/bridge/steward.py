"""Who sends messages and looks after sessions that nobody looks at: a turn is no tab's own.

One for each token, so that what a token may have at once counts here too.
"""

from __future__ import annotations

from dragoman.bridge.hand import Hand
from dragoman.gateway.client import Terms
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.identity import LOCAL, Identity


class Stewards:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._hands: dict[str, Hand] = {}

    def hand(self, identity: Identity = LOCAL) -> Hand:
        key = f"{identity.name}\n{identity.key}"
        hand = self._hands.get(key)
        if hand is None or hand.client.peer.closed:
            terms = Terms(keep_sessions=True, warm=False, wake=False, identity=identity)
            hand = self._hands[key] = Hand(self._gateway, terms, Steward())
            self._hands = {each: known for each, known in self._hands.items() if not known.client.peer.closed}
        return hand


class Steward:
    """Implements `Owner` and `Tap`: it reads nothing."""

    backlog = 0

    def tap(self, session_id: str) -> Steward:
        return self

    def events(self, first_seq: int, ts: int, events: list[bytes]) -> None:
        pass

    def unkept(self, ts: int, events: list[bytes]) -> None:
        pass

    def missing(self, first_seq: int, last_seq: int) -> None:
        pass

    def hand_closed(self, hand: Hand, code: int | None, reason: str) -> None:
        hand.leave(reason or None)
