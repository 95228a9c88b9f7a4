"""Maps paths to gateway clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from dragoman.gateway.access.client import Terms
from dragoman.gateway.access.identity import Identity
from dragoman.gateway.access.rate_limit import RateLimit
from dragoman.gateway.client import ClientConnection
from dragoman.gateway.gateway import Gateway
from dragoman.rpc.link import LinkHandler
from dragoman.server.affinity import Affinity
from dragoman.server.api.api import Api
from dragoman.server.asgi import HttpError, Request, Response
from dragoman.server.auth.admission import Admission
from dragoman.server.fronts.inline import InlineFront
from dragoman.server.fronts.rpc_front import RpcFront
from dragoman.server.fronts.streamable import CONNECTION, StreamableHttp
from dragoman.wire import message
from dragoman.wire.errors import Malformed

ACP = "/acp"
API = "/api"
INLINE = "/acp/inline"


Opener = Callable[[Identity, RateLimit], LinkHandler]
"""Makes the handler of a new WebSocket."""


@dataclass(frozen=True, slots=True)
class Speaker:
    """The handler of a WebSocket."""

    handler: LinkHandler
    initialize_first: bool
    """The protocol is ACP, so `initialize` must come first."""


class Fronts:
    """The protocols by path: `/acp` and `/acp/AGENT` over WebSocket and Streamable HTTP, and the others."""

    def __init__(
        self,
        gateway: Gateway,
        agent: str | None,
        admission: Admission,
        sockets: Mapping[str, Opener] | None = None,
    ) -> None:
        """`sockets` are the paths of WebSockets with other protocols than ACP."""
        self._gateway = gateway
        self._agent = agent
        self._admission = admission
        self._sockets = sockets or {}
        self.affinity = Affinity()
        self.streamable = StreamableHttp(gateway, self.connect, self.affinity)
        self.api = Api(gateway, agent, admission)
        self.inline = InlineFront(
            gateway,
            lambda path: self.agent_of(ACP if path == INLINE else path),
            admission.credentials.lapsed,
        )
        config = gateway.config
        self.rpc = RpcFront(
            lambda identity: self.connect(ACP, identity),
            config.limits.max_message_bytes,
            config.serve.keep_alive,
        )

    def socket(self, path: str, identity: Identity, rate_limit: RateLimit) -> Speaker:
        """The handler of a WebSocket at `path`; raises `HttpError` for an unknown path."""
        opener = self._sockets.get(path)
        if opener is not None:
            return Speaker(opener(identity, rate_limit), initialize_first=False)
        return Speaker(self.connect(path, identity, rate_limit).peer, initialize_first=True)

    async def acp(self, request: Request) -> Response | None:
        """Answer `/acp` and `/acp/AGENT`; with `serve.inline`, a POST without a connection inline (G-131)."""
        inline = self._gateway.config.serve.inline and request.method == "POST"
        if inline and not request.header(CONNECTION) and not await self._is_initialize(request):
            return await self.inline.post(request)
        return await self.streamable.answer(request)

    async def _is_initialize(self, request: Request) -> bool:
        try:
            body = await request.body(self._gateway.config.limits.max_message_bytes)
            return message.decode(body).method == "initialize"
        except Malformed:
            return False

    def connect(self, path: str, identity: Identity, rate_limit: RateLimit | None = None) -> ClientConnection:
        """Make a new gateway client; `rate_limit` counts its messages if they are not HTTP requests."""
        keep = self._gateway.journaling and self._gateway.config.sessions.on_disconnect == "keep"
        terms = Terms(
            agent=self.agent_of(path),
            keep_sessions=keep,
            repeat_initialize=False,
            spare=False,
            identity=identity,
            rate_limit=rate_limit,
            lapsed=partial(self._admission.credentials.lapsed, identity),
        )
        return self._gateway.connect(terms)

    def agent_of(self, path: str) -> str | None:
        """The agent that `path` names; raises `HttpError` for an unknown one."""
        if path == ACP:
            return self._agent
        name = path.removeprefix(ACP + "/")
        if name == path or name not in self._gateway.agents.names():
            raise HttpError(404, "There is nothing here.")
        return name

    def close(self) -> None:
        self.streamable.close()
        self.inline.close()
        self.api.close()
        self.rpc.close()
