"""`authenticate` and `logout`: one login is valid for every process of an agent (G-050, G-051)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from dragoman.gateway.json_types import decode_object, encode
from dragoman.rpc.request import Reply, Request
from dragoman.wire import message
from dragoman.wire.errors import invalid_params, method_not_found

if TYPE_CHECKING:
    from dragoman.gateway.agent import AgentConnection
    from dragoman.gateway.client import ClientConnection


class Login:
    """One client's logins, by agent."""

    def __init__(self, client: ClientConnection) -> None:
        self._client = client
        self._done: dict[str, bytes] = {}

    async def authenticate(self, request: Request) -> None:
        """Log in at the agent that offers the method; on an unbound connection its name is a prefix of the id."""
        client = self._client
        method = decode_object(request.params).get("methodId")
        if not isinstance(method, str):
            raise invalid_params("methodId is required", "methodId")
        name = client.bound_agent or client.gateway.config.default_agent
        if client.bound_agent is None and ":" in method:
            name, _, method = method.partition(":")
        agent = await client.gateway.pool.borrow(client, name)
        if not agent.capabilities.auth_method_ids:
            request.reply(message.EMPTY)  # there is nothing to log in to, so the client is logged in
            return
        if method not in agent.capabilities.auth_method_ids:
            offered = ", ".join(agent.capabilities.auth_method_ids) or "none"
            raise invalid_params(
                f"Unknown authentication method {method!r}; {name} offers: {offered}", "methodId"
            )
        params = encode({**message.members(request.params), "methodId": method})
        reply = await agent.call("authenticate", params, request)
        if reply.ok:
            self._done[name] = params
            reply = Reply(result=message.EMPTY) if reply.result == b"null" else reply
        request.answer(reply)

    async def repeat(self, agent: AgentConnection) -> None:
        """Log in at an agent process that was started after the user logged in."""
        params = self._done.get(agent.name)
        if params is not None:
            await agent.call("authenticate", params)

    async def logout(self, request: Request) -> None:
        """Log out at every agent of this client that supports it."""
        self._done.clear()
        client = self._client
        name = client.bound_agent or client.gateway.config.default_agent
        agents = client.gateway.pool.agents_of(client) or [await client.gateway.pool.borrow(client, name)]
        able = [agent for agent in agents if agent.capabilities.logout]
        if not able:
            raise method_not_found("logout")
        replies = await asyncio.gather(*(agent.call("logout", request.params) for agent in able))
        failed = next((reply for reply in replies if not reply.ok), None)
        request.answer(failed or Reply(result=message.EMPTY))
