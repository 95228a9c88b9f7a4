"""Who sends messages and looks after sessions that nobody looks at: a turn is no tab's own.

One for each token, so that what a token may have at once counts here too.
"""

from __future__ import annotations

from typing import Protocol

from dragoman.bridge.errors import BridgeError
from dragoman.bridge.gateway_client import Hand
from dragoman.bridge.message import Sender
from dragoman.gateway.access.identity import LOCAL, Identity, Role
from dragoman.gateway.client import Terms
from dragoman.gateway.gateway import Gateway


class Tokens(Protocol):
    """The tokens that are valid now."""

    def mark(self, identity: Identity) -> str:
        """Names this token, and no later one of the same name, in what is kept."""

    def current(self, name: str, mark: str) -> Identity | str:
        """The token as it is now, or a sentence that says why it opens nothing any more."""


class Stewards:
    def __init__(self, gateway: Gateway, tokens: Tokens) -> None:
        self._gateway = gateway
        self._tokens = tokens
        self._hands: dict[str, Hand] = {}

    def sender(self, identity: Identity) -> Sender:
        return Sender(identity.name, self._tokens.mark(identity))

    def identity(self, sender: Sender | None) -> Identity | str:
        """Whoever may send this sender's messages now; a sentence if that is no one."""
        if sender is None:
            return "It is not known whose it is."
        current = self._tokens.current(sender.name, sender.mark)
        refused = current.refusal(Role.CONTROL, "send_message") if isinstance(current, Identity) else None
        return current if refused is None else f"{refused.message}."

    def check(self, identity: Identity) -> None:
        """Raises when a token that came in has ended since: its client is about to be sent out."""
        current = self._tokens.current(identity.name, self._tokens.mark(identity))
        if isinstance(current, str):
            raise BridgeError("role", current)

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

    def missing(self, first_seq: int, last_seq: int, damaged: bool) -> None:
        pass

    def hand_closed(self, hand: Hand, code: int | None, reason: str) -> None:
        hand.leave(reason or None)
