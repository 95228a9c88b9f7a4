"""Translates paths at the connection to an agent in a sandbox; all other code sees host paths only (G-151)."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Raw

from dragoman.gateway.json_types import JsonObject, decode_object, encode
from dragoman.gateway.path_mapping import path_fields
from dragoman.gateway.path_mapping.paths import PathMap, Translation
from dragoman.gateway.rewriting.updates import UpdateRewriter
from dragoman.rpc.peer import Peer, Receiver
from dragoman.rpc.request import OnReply, Reply, Request
from dragoman.wire import message
from dragoman.wire.errors import Malformed, RpcError

TEXT_CHUNKS = tuple(
    b'{"sessionUpdate":"%b","content":{"type":"text",' % kind
    for kind in (b"agent_message_chunk", b"agent_thought_chunk", b"user_message_chunk")
)
"""First bytes of almost every update; text has no paths to translate, and this check is cheaper than a search."""


class MappedRequest(Request):
    """A request from an agent in a sandbox; paths in the answer become sandbox paths."""

    __slots__ = ()

    def reply(self, result: bytes) -> None:
        if self.on_result is not None and not self.answered:
            self.on_result(result)
            self.on_result = None
        super().reply(path_fields.translate_result(self.method, result, self._to_box))

    def fail(self, error: RpcError | bytes) -> None:
        raw = error if isinstance(error, bytes) else error.encode()
        super().fail(path_fields.translate_error(path_fields.shortened(raw), self._to_box))

    @property
    def _to_box(self) -> Translation:
        assert isinstance(self.peer, MappedPeer)
        return self.peer.paths.to_box


class MappedPeer(Peer):
    """The peer of an agent in a sandbox: paths in messages to and from the agent are translated."""

    request_type = MappedRequest

    def __init__(
        self, name: str, receiver: Receiver, paths: PathMap, intercept: Callable[[bytes], bool]
    ) -> None:
        super().__init__(name, receiver, strict=False, intercept=intercept)
        self.paths = paths

    def request(self, method: str, params: bytes, on_reply: OnReply) -> int:
        heard = on_reply
        if method in path_fields.ANSWERED:

            def heard(reply: Reply) -> None:
                on_reply(self._outside(method, reply))

        return super().request(method, path_fields.translate_params(method, params, self.paths.to_box), heard)

    def notify(self, method: str, params: bytes) -> None:
        super().notify(method, path_fields.translate_params(method, params, self.paths.to_box))

    def _outside(self, method: str, reply: Reply) -> Reply:
        if not reply.ok:
            return reply
        return Reply(result=path_fields.translate_result(method, reply.result, self.paths.to_host))

    def _error_object(self, raw: bytes) -> bytes:
        """Translate an error from the agent; errors that the gateway makes have host paths already."""
        return path_fields.translate_error(super()._error_object(raw), self.paths.to_host)


class MappedRewriter(UpdateRewriter):
    """Rewrites updates of an agent in a sandbox; kinds not in `LOOKED_AT` are decoded only if they have a URI."""

    def __init__(
        self, agent_session_id: str, session_id: str, see: Callable[[JsonObject], bool], paths: PathMap
    ) -> None:
        def translate_and_see(update: JsonObject) -> bool:
            translated = path_fields.translate_update(update, paths.to_host)
            return see(update) or translated

        super().__init__(agent_session_id, session_id, translate_and_see)
        self._paths = paths
        self.usual = tuple(self._before + start for start in TEXT_CHUNKS)

    def splice(self, line: bytes, size: int = -1) -> bytes:
        if line.startswith(self.usual) and self.is_all(line, size):
            return self.after + line[self.cut :]
        if path_fields.URI_MEMBER in line:
            return super().splice(self._translated(line))
        return super().splice(line, size)

    def _translated(self, line: bytes) -> bytes:
        envelope = message.members(line)
        params = update_params(envelope["params"], self._paths)
        return encode({**envelope, "params": Raw(bytes(params))})


def update_params(params: bytes | Raw, paths: PathMap) -> bytes | Raw:
    """The params of a `session/update` with host paths."""
    try:
        members = message.members(params)
        update = decode_object(members["update"])
    except (Malformed, KeyError):  # such as a number that Python cannot hold: passed on as it is
        return params
    return (
        encode({**members, "update": update})
        if path_fields.translate_update(update, paths.to_host)
        else params
    )
