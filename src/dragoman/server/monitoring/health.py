"""For probes: is it alive, may it get work."""

from __future__ import annotations

from dragoman.gateway.gateway import Gateway
from dragoman.server.asgi import Request, Response


async def alive(request: Request) -> Response:
    """Open to everybody, so it says nothing but ok."""
    return Response(200, b"ok\n", "text/plain; charset=utf-8")


async def ready(gateway: Gateway) -> Response:
    """503 while it shuts down, or when sessions should be kept and cannot be."""
    trouble = "shutting down" if gateway.closing else gateway.trouble
    if trouble is not None:
        return Response.json({"ready": False, "reason": trouble}, 503)
    return Response.json({"ready": True, "sessions": len(gateway.sessions), "clients": len(gateway.clients)})
