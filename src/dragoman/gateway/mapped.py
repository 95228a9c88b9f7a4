"""Where paths are translated: at the agent's door, so that everything behind it knows host paths only (G-151)."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Raw

from dragoman.gateway import pathfields
from dragoman.gateway.json_types import JsonObject, decode_object, encode
from dragoman.gateway.paths import PathMap
from dragoman.gateway.updates import UpdateRewriter
from dragoman.rpc.peer import OnReply, Peer, Receiver, Reply
from dragoman.wire import message
from dragoman.wire.errors import Malformed

TEXT_CHUNKS = tuple(
    b'{"sessionUpdate":"%b","content":{"type":"text",' % kind
    for kind in (b"agent_message_chunk", b"agent_thought_chunk", b"user_message_chunk")
)
"""How almost every update begins; text holds no paths, and to see that here is cheaper than to search the line."""


class MappedPeer(Peer):
    """An agent in a box: what it is asked goes in translated, what it answers comes out translated."""

    def __init__(
        self, name: str, receiver: Receiver, paths: PathMap, intercept: Callable[[bytes], bool]
    ) -> None:
        super().__init__(name, receiver, strict=False, intercept=intercept)
        self._paths = paths

    def request(self, method: str, params: bytes, on_reply: OnReply) -> int:
        heard = on_reply
        if method in pathfields.ANSWERED:

            def heard(reply: Reply) -> None:
                on_reply(self._outside(method, reply))

        return super().request(method, pathfields.asked(method, params, self._paths.to_box), heard)

    def _outside(self, method: str, reply: Reply) -> Reply:
        if not reply.ok:
            return reply
        return Reply(result=pathfields.answered(method, reply.result, self._paths.to_host))


class MappedRewriter(UpdateRewriter):
    """Updates of an agent in a box; those that are not looked into stay undecoded unless a `file:` URI is in them."""

    def __init__(
        self, agent_session_id: str, session_id: str, see: Callable[[JsonObject], bool], paths: PathMap
    ) -> None:
        def translate_and_see(update: JsonObject) -> bool:
            translated = pathfields.updated(update, paths.to_host)
            return see(update) or translated

        super().__init__(agent_session_id, session_id, translate_and_see)
        self._paths = paths
        self._plain = tuple(self._before + start for start in TEXT_CHUNKS)

    def splice(self, line: bytes) -> bytes:
        if line.startswith(self._plain) and self.is_all(line):
            return self._after + line[self.cut :]
        return super().splice(self._translated(line) if pathfields.FILE_URI in line else line)

    def _translated(self, line: bytes) -> bytes:
        envelope = message.members(line)
        params = update_params(envelope["params"], self._paths)
        return encode({**envelope, "params": Raw(bytes(params))})


def update_params(params: bytes | Raw, paths: PathMap) -> bytes | Raw:
    """The params of a `session/update` with host paths."""
    try:
        members = message.members(params)
        update = decode_object(members["update"])
    except (Malformed, KeyError):  # such as a number that Python cannot hold: passed on unread
        return params
    return encode({**members, "update": update}) if pathfields.updated(update, paths.to_host) else params
