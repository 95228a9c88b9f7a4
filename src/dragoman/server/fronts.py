"""Which client of the gateway a path stands for."""

from __future__ import annotations

from dragoman.gateway.client import ClientConnection, Terms
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.identity import Identity
from dragoman.rpc.link import LinkHandler
from dragoman.server.asgi import HttpError
from dragoman.server.rpc_front import RpcFront
from dragoman.server.streamable import StreamableHttp

ACP = "/acp"


class Fronts:
    """`/acp` and `/acp/AGENT`, over WebSocket and over Streamable HTTP."""

    def __init__(self, gateway: Gateway, agent: str | None) -> None:
        self._gateway = gateway
        self._agent = agent
        self.streamable = StreamableHttp(gateway, self.connect)
        self.rpc = RpcFront(
            lambda identity: self.connect(ACP, identity), gateway.config.limits.max_message_bytes
        )

    def socket(self, path: str, identity: Identity) -> LinkHandler | None:
        """Who speaks on a WebSocket at `path`; None if there is none."""
        try:
            return self.connect(path, identity).peer
        except HttpError:
            return None

    def connect(self, path: str, identity: Identity) -> ClientConnection:
        """A new client of the gateway."""
        keep = self._gateway.journaling and self._gateway.config.sessions.on_disconnect == "keep"
        terms = Terms(
            agent=self.agent_of(path), keep_sessions=keep, repeat_initialize=False, identity=identity
        )
        return self._gateway.connect(terms)

    def agent_of(self, path: str) -> str | None:
        """The agent that `path` fixes; refuses a name that nobody has."""
        if path == ACP:
            return self._agent
        name = path.removeprefix(ACP + "/")
        if name == path or name not in self._gateway.agents.names():
            raise HttpError(404, "There is nothing here.")
        return name

    def close(self) -> None:
        self.streamable.close()
        self.rpc.close()
