"""Requests about a session that is live, or stored and opened for them without its agent."""

from __future__ import annotations

from dragoman.gateway.gateway import Gateway
from dragoman.gateway.json_types import JsonObject, encode
from dragoman.rpc.request import Reply
from dragoman.server.asgi import HttpError, Request
from dragoman.server.fronts.shared_client import SharedClient, SharedClients


class StoredSessions:
    def __init__(self, gateway: Gateway, gateway_clients: SharedClients) -> None:
        self._gateway = gateway
        self._gateway_clients = gateway_clients

    async def ask(
        self, request: Request, session_id: str, method: str, params: JsonObject, *, wake: bool = False
    ) -> Reply:
        """Send a request through the session's owner; raises if it fails. `wake`: its agent is started for it."""
        cwd = await self.check(session_id)
        client = self._gateway_clients.get(request.identity, None)
        await client.ready()
        async with client.listening(session_id, comes_back=True):
            await self._open(client, session_id, cwd, wake)
            reply = await client.call(method, encode({**params, "sessionId": session_id}))
        if not reply.ok:
            raise reply.as_error()
        return reply

    async def check(self, session_id: str) -> str:
        """The folder of the session, whose last turn is recorded to its end; raises if there is none."""
        live = self._gateway.sessions.get(session_id)
        if live is not None:
            live.services.checkpoints.catch_up()
        kept = await self._gateway.directory.get(session_id)
        if kept is None:
            raise HttpError(404, "There is no such session.", code="unknown_session")
        return kept.cwd

    async def agent(self, session_id: str) -> str | None:
        kept = await self._gateway.directory.get(session_id)
        return kept.agent if kept is not None else None

    async def _open(self, client: SharedClient, session_id: str, cwd: str, wake: bool) -> None:
        if session_id in self._gateway.sessions:
            await client.attach(session_id)
            return
        params = {"sessionId": session_id, "cwd": cwd, "_meta": {"dragoman": {"wake": wake}}}
        await client.result("session/resume", params)
