"""`initialize`: checks the client's token, and answers with the agent's capabilities (G-030 to G-034)."""

from __future__ import annotations

import asyncio
import hmac
import logging
from typing import TYPE_CHECKING

from dragoman.gateway.access.capabilities import ClientCapabilities, bound_result, unbound_result
from dragoman.gateway.json_types import JsonObject, as_object, decode_object, encode, own_meta
from dragoman.rpc.request import Request
from dragoman.wire.errors import RpcError, forbidden, invalid_params, invalid_request

if TYPE_CHECKING:
    from dragoman.gateway.client import ClientConnection

log = logging.getLogger(__name__)


LOGGED_INFO = 100
"""Characters logged of each member of `clientInfo`."""


def _client_name(info: object) -> str:
    """`clientInfo` for the log, such as `zed 1.2.3 (Zed)`, with a bounded length."""
    told = [as_object(info).get(name) for name in ("name", "version", "title")]
    name, version, title = (each[:LOGGED_INFO] if isinstance(each, str) else "" for each in told)
    words = " ".join(filter(None, (name, version, title and f"({title})")))
    return words or f"unreadable: {str(info)[:LOGGED_INFO]}"


class Handshake:
    """The handshake of one client; `done` is set by a valid `initialize`, before it is answered."""

    def __init__(self, client: ClientConnection) -> None:
        self._client = client
        self.done = False
        self._answer: bytes | None = None

    def initialize(self, request: Request) -> None:
        client = self._client
        params = decode_object(request.params)
        version = params.get("protocolVersion")
        if type(version) is not int or not 0 <= version <= 65535:
            raise invalid_params("protocolVersion must be an integer from 0 to 65535", "protocolVersion")
        self._check_token(params)
        self._log_client(params)
        if self.done:
            if not client.terms.repeat_initialize:
                raise invalid_request(
                    "initialize was already called on this connection", "already_initialized"
                )
            if self._answer is not None:
                request.reply(self._answer)
                return
        self.done = True
        client.capabilities = ClientCapabilities(as_object(params.get("clientCapabilities")))
        client.info = params.get("clientInfo")
        client.setup(request, lambda _, each: self._reply(each))

    def _check_token(self, params: JsonObject) -> None:
        terms = self._client.terms
        if terms.token is not None:
            given = own_meta(params).get("token")
            # In constant time, so that a token cannot be guessed character by character.
            if not isinstance(given, str) or not hmac.compare_digest(given.encode(), terms.token.encode()):
                self._hang_up()
                raise invalid_request(
                    "A valid token is required in initialize: _meta.dragoman.token", "token"
                )
        if terms.refusal is not None:
            self._hang_up()
            raise forbidden(terms.refusal, reason="allow_from")

    def _hang_up(self) -> None:
        asyncio.get_running_loop().call_soon(self._client.peer.link.close)  # the answer goes first

    def _log_client(self, params: JsonObject) -> None:
        """Log which program the client is."""
        if params.get("clientInfo") is not None:
            extra = {"client": self._client.key, "clientInfo": _client_name(params["clientInfo"])}
            log.info("client initializes", extra=extra)

    async def _reply(self, request: Request) -> None:
        client = self._client
        name = client.bound_agent or client.gateway.config.default_agent
        agent: JsonObject | None = None
        if client.terms.start_ahead and client.may_control:
            try:
                agent = await self._agent_result(name)
            except RpcError as error:
                if client.bound_agent is not None:
                    self.done = False
                    raise
                log.warning("default agent is not available: %s", error.message, extra={"agent": name})
        self._answer = encode(self._merged(name, agent))
        request.reply(self._answer)
        if client.terms.initialized is not None:
            client.terms.initialized()

    async def _agent_result(self, name: str) -> JsonObject:
        """The agent's `initialize` result: from the cache while the agent starts, else when it has answered."""
        gateway = self._client.gateway
        config = gateway.agent_config(name)
        box = gateway.box_for(name, None, None)
        sent = gateway.pool.capabilities_sent(self._client, name, box)
        cached = gateway.cached_capabilities(config, sent, box)
        # The sandbox of a later session is not known yet, so an agent is started only to ask it.
        if cached is not None and (box is not None or not self._client.terms.spare):
            return cached
        if not self._client.terms.spare:
            return await gateway.pool.describe(self._client, name)
        warming = gateway.pool.start_ahead(self._client, name)
        if cached is not None:
            return cached
        agent = await asyncio.shield(warming)
        if box is not None:
            gateway.pool.reap(agent)
        return agent.capabilities.result

    def _merged(self, name: str, agent: JsonObject | None) -> JsonObject:
        gateway = self._client.gateway
        if self._client.bound_agent is not None:
            return bound_result(name, agent or {}, journal=gateway.journaling)
        return unbound_result(name, gateway.agents.names(), agent, journal=gateway.journaling)
