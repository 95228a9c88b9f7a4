"""Who sends messages and looks after sessions that nobody looks at: a turn is no tab's own.

One for each token, so that what a token may have at once counts here too.
"""

from __future__ import annotations

from typing import Protocol

from dragoman.bridge.errors import BridgeError
from dragoman.bridge.gateway_client import GatewayClient
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


class BackgroundClients:
    def __init__(self, gateway: Gateway, tokens: Tokens) -> None:
        self._gateway = gateway
        self._tokens = tokens
        self._gateway_clients: dict[str, GatewayClient] = {}

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

    def gateway_client(self, identity: Identity = LOCAL) -> GatewayClient:
        key = f"{identity.name}\n{identity.key}"
        gateway_client = self._gateway_clients.get(key)
        if gateway_client is None or gateway_client.client.peer.closed:
            terms = Terms(keep_sessions=True, warm=False, wake=False, identity=identity)
            gateway_client = self._gateway_clients[key] = GatewayClient(
                self._gateway, terms, BackgroundClient()
            )
            self._gateway_clients = {
                each: known for each, known in self._gateway_clients.items() if not known.client.peer.closed
            }
        return gateway_client


class BackgroundClient:
    """Implements `Owner` and `JournalSink`: it reads nothing."""

    backlog = 0

    def journal_sink(self, session_id: str) -> BackgroundClient:
        return self

    def events(self, first_seq: int, ts: int, events: list[bytes]) -> None:
        pass

    def unkept(self, ts: int, events: list[bytes]) -> None:
        pass

    def missing(self, first_seq: int, last_seq: int, damaged: bool) -> None:
        pass

    def gateway_client_closed(self, gateway_client: GatewayClient, code: int | None, reason: str) -> None:
        gateway_client.leave(reason or None)
