"""Gateway clients that send queued messages and act in sessions without a page: a turn does not belong to a page.

There is one per token, so that the token's quotas apply here too.
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
    """The valid tokens."""

    def mark(self, identity: Identity) -> str:
        """Identifies this token, and no later one of the same name, in stored data."""

    def current(self, name: str, mark: str) -> Identity | str:
        """The token's present identity, or a sentence that says why the token is no longer valid."""


class BackgroundClients:
    def __init__(self, gateway: Gateway, tokens: Tokens) -> None:
        self._gateway = gateway
        self._tokens = tokens
        self._gateway_clients: dict[str, GatewayClient] = {}

    def sender(self, identity: Identity) -> Sender:
        return Sender(identity.name, self._tokens.mark(identity))

    def identity(self, sender: Sender | None) -> Identity | str:
        """The identity that sends this sender's messages, or a sentence that says why they may not be sent."""
        if sender is None:
            return "It is not known whose it is."
        current = self._tokens.current(sender.name, sender.mark)
        refused = current.refusal(Role.CONTROL, "send_message") if isinstance(current, Identity) else None
        return current if refused is None else f"{refused.message}."

    def check(self, identity: Identity) -> None:
        """Raise if the token is no longer valid: its client is about to be disconnected."""
        current = self._tokens.current(identity.name, self._tokens.mark(identity))
        if isinstance(current, str):
            raise BridgeError("role", current)

    def gateway_client(self, identity: Identity = LOCAL) -> GatewayClient:
        key = f"{identity.name}\n{identity.key}"
        gateway_client = self._gateway_clients.get(key)
        if gateway_client is None or gateway_client.client.peer.closed:
            terms = Terms(keep_sessions=True, start_ahead=False, restart_on_load=False, identity=identity)
            gateway_client = self._gateway_clients[key] = GatewayClient(
                self._gateway, terms, BackgroundClient()
            )
            self._gateway_clients = {
                each: known for each, known in self._gateway_clients.items() if not known.client.peer.closed
            }
        return gateway_client


class BackgroundClient:
    """Implements `Callbacks` and `JournalSink`; ignores all events."""

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
