"""Gateway clients that send queued messages and act in sessions without a page: a turn does not belong to a page.

There is one per token, so that the token's quotas apply here too.
"""

from __future__ import annotations

import logging
from typing import Protocol

from dragoman.bridge.message import Sender
from dragoman.gateway.access.client import Terms
from dragoman.gateway.access.identity import LOCAL, Identity
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.gateway_client import GatewayClient
from dragoman.gateway.json_types import JsonObject
from dragoman.gateway.session.questions.question import CANCEL_ANSWER
from dragoman.rpc.link import JournalSink
from dragoman.rpc.request import Request
from dragoman.wire.errors import RpcError, method_not_found

log = logging.getLogger(__name__)

CAPABILITIES: JsonObject = {
    "fs": {"readTextFile": False, "writeTextFile": False},
    "terminal": False,
    "elicitation": {"form": {}, "url": {}},
    "session": {"configOptions": {"boolean": {}}, "notices": {}},
    "_meta": {"terminal_output": True},
}
"""The gateway serves files and terminals: a page has none."""

OF_THIS_MACHINE = Sender(LOCAL.name, "")
"""Clients without a token, which edit a message of a page; no token has this name."""


class BackgroundClient(GatewayClient):
    """Implements `JournalLink` and `JournalSink`; ignores all events."""

    def __init__(self, gateway: Gateway, terms: Terms) -> None:
        super().__init__()
        self.connect(gateway, terms)
        self.initialize(CAPABILITIES, "bridge", "Dragoman's page")

    def journal_sink(self, session_id: str) -> JournalSink:
        return self

    def events(self, first_seq: int, ts: int, events: list[bytes]) -> None:
        pass

    def unkept(self, ts: int, events: list[bytes]) -> None:
        pass

    def missing(self, first_seq: int, last_seq: int, damaged: bool) -> None:
        pass

    def peer_request(self, request: Request) -> None:
        """Refuse what an agent asks without a session; a session's questions are in its journal."""
        if request.method not in CANCEL_ANSWER:
            log.info("the bridge does not offer this", extra={"method": request.method})
            raise method_not_found(request.method)
        request.reply(CANCEL_ANSWER[request.method])


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
        self._gateway_clients: dict[str, BackgroundClient] = {}

    def sender(self, identity: Identity) -> Sender:
        return Sender(identity.name, self._tokens.mark(identity)) if identity != LOCAL else OF_THIS_MACHINE

    def identity(self, sender: Sender | None) -> Identity | str:
        """The identity that sends this sender's messages, or a sentence that says why they may not be sent."""
        if sender is None:
            return "It is not known whose it is."
        if sender == OF_THIS_MACHINE:
            return LOCAL
        current = self._tokens.current(sender.name, sender.mark)
        if isinstance(current, Identity):
            try:
                self.gateway_client(current).client.check("send_message")
            except RpcError as error:
                return f"{error.message}."
        return current

    def revoked(self, identity: Identity) -> str | None:
        """Why the token is no longer valid: its client is about to be disconnected."""
        current = self._tokens.current(identity.name, self._tokens.mark(identity))
        return current if isinstance(current, str) else None

    def gateway_client(self, identity: Identity = LOCAL) -> BackgroundClient:
        key = f"{identity.name}\n{identity.key}"
        gateway_client = self._gateway_clients.get(key)
        if gateway_client is None or gateway_client.client.peer.closed:
            terms = Terms(
                keep_sessions=True,
                start_ahead=False,
                restart_on_load=False,
                unattached=True,
                own_queue=True,
                identity=identity,
            )
            gateway_client = self._gateway_clients[key] = BackgroundClient(self._gateway, terms)
            self._gateway_clients = {
                each: known for each, known in self._gateway_clients.items() if not known.client.peer.closed
            }
        return gateway_client
