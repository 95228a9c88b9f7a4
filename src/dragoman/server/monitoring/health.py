"""Responses to liveness and readiness probes."""

from __future__ import annotations

from dragoman.gateway.gateway import Gateway
from dragoman.server.asgi import Request, Response


async def alive(request: Request) -> Response:
    """Liveness; needs no token, so the response is only `ok`."""
    return Response(200, b"ok\n", "text/plain; charset=utf-8")


async def ready(gateway: Gateway) -> Response:
    """Readiness; 503 during shutdown, or when sessions should be stored and cannot be."""
    trouble = "shutting down" if gateway.closing else gateway.trouble
    if trouble is not None:
        return Response.json({"ready": False, "reason": trouble}, 503)
    return Response.json({"ready": True, "sessions": len(gateway.sessions), "clients": len(gateway.clients)})
