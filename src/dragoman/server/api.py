"""REST for people who do not speak JSON-RPC: what sessions and agents there are."""

from __future__ import annotations

from dragoman.gateway.directory import Kept
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.json_types import JsonObject
from dragoman.gateway.ports.store import BadCursor, StoreError
from dragoman.server.asgi import HttpError, Request, Response

SESSIONS = "/api/sessions"


class Api:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def agents(self, request: Request) -> Response:
        default = self._gateway.config.default_agent
        names = self._gateway.agents.names()
        return Response.json({"agents": [{"name": name, "default": name == default} for name in names]})

    async def sessions(self, request: Request) -> Response:
        """A page of them, the most recently used first; `?cwd=`, `?agent=` and `?cursor=` narrow it."""
        wanted = {name: request.query(name) for name in ("cwd", "agent", "cursor")}
        try:
            page = await self._gateway.directory.list(**wanted)
        except BadCursor as error:
            raise HttpError(400, str(error)) from error
        except StoreError as error:
            raise HttpError(503, str(error)) from error
        result: JsonObject = {"sessions": [self._shown(kept) for kept in page.sessions]}
        if page.next_cursor is not None:
            result["nextCursor"] = page.next_cursor
        return Response.json(result)

    async def session(self, request: Request) -> Response:
        session_id = request.path.removeprefix(SESSIONS + "/")
        try:
            kept = await self._gateway.directory.get(session_id)
        except StoreError as error:
            raise HttpError(503, str(error)) from error
        if kept is None:
            raise HttpError(404, "There is no such session.")
        return Response.json(self._shown(kept))

    def _shown(self, kept: Kept) -> JsonObject:
        live = self._gateway.sessions.get(kept.id)
        return {
            "id": kept.id,
            "agent": kept.agent,
            "cwd": kept.cwd,
            "title": live.title if live is not None else kept.title,
            "updatedAt": kept.updated_at,
            "live": live is not None or kept.live,
            "state": live.state if live is not None else kept.state,
            "clients": len(live.attachments) if live is not None else 0,
        }
