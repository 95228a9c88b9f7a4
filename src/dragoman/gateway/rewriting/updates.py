"""Rewrites a `session/update` between an agent and the clients (G-043, G-061).

Two ways, the same result. Almost every update is a text chunk in the member order that agents use, so the session id is
spliced into the raw bytes. Everything else is decoded one level at a time, with all values still encoded, and only what
must change is changed: unknown members, explicit nulls and large integers stay as they are. Of a duplicate member the
last one stays, which is the one that the gateway uses.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import Raw

from dragoman.gateway.json_types import JsonObject, decode_object, encode
from dragoman.gateway.rewriting import dialects
from dragoman.wire import message
from dragoman.wire.errors import Malformed
from dragoman.wire.framing import is_utf8
from dragoman.wire.message import ABSENT

UPDATE = "session/update"
HISTORY_KINDS = frozenset(  # kinds in a replay (G-163); other kinds are state, of which the latest is sent
    {
        "user_message_chunk",
        "agent_message_chunk",
        "agent_thought_chunk",
        "tool_call",
        "tool_call_update",
        "plan",
        "plan_update",
        "plan_removed",
        "compaction_update",
        "compaction_summary_chunk",
    }
)
LOOKED_AT = frozenset(
    {
        *dialects.UPDATE_READERS,
        *dialects.RENAMED_KINDS,
        "user_message",
        "session_info_update",
        "usage_update",
        "current_model_update",
    }
)
"""Kinds that a session tracks or that have dialects; all others are spliced without decoding."""


class _Kind(msgspec.Struct, gc=False):
    sessionUpdate: str = ""  # noqa: N815  the wire's spelling
    meta: Raw = msgspec.field(name="_meta", default=ABSENT)
    toolCall: Raw = ABSENT  # noqa: N815  older forms nest their members here
    plan: Raw = ABSENT


class _Params(msgspec.Struct, gc=False):
    sessionId: str  # noqa: N815
    update: Raw
    meta: Raw = msgspec.field(name="_meta", default=ABSENT)


class _Message(msgspec.Struct, gc=False):
    params: _Params
    method: str = ""
    id: Raw = ABSENT


class UpdateHead(msgspec.Struct, gc=False):
    """The parts of a line that routing needs."""

    session_id: str
    kind: str
    size: int
    """Length of the update in bytes."""
    meta: Raw
    """`_meta` of the params."""
    marked: bool
    """The line has a member in which `_meta.dragoman` may be."""


_message = msgspec.json.Decoder(_Message)
_kind = msgspec.json.Decoder(_Kind)
_one_value = msgspec.json.Decoder(Raw)
_WITH_ID = (b'{"jsonrpc":"2.0","id":', b'{"jsonrpc": "2.0", "id": ')
"""First bytes of most requests and responses; an update has no id."""
_END = b"}}"
"""End of the params and of the message."""


def read_head(line: bytes) -> UpdateHead | None:
    """The head of a line that is a well-formed update; None for everything else, which `Peer.receive` handles."""
    if line.startswith(_WITH_ID):
        return None
    try:
        said = _message.decode(line)
        params = said.params
        kind = _kind.decode(params.update)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if said.method != UPDATE or said.id is not ABSENT or not (line.isascii() or is_utf8(line)):
        return None
    marked = not (params.meta is kind.meta is kind.toolCall is kind.plan is ABSENT)
    return UpdateHead(params.sessionId, kind.sessionUpdate, len(params.update), params.meta, marked)


def holds_update(params: bytes) -> bool:
    """Whether the params have a member `update` that is an object."""
    try:
        return bytes(message.members(params).get("update", ABSENT))[:1] == b"{"
    except Malformed:
        return False


class UpdateRewriter:
    """Rewrites the updates of one session; `see` gets each decoded update and returns True if it edited it."""

    def __init__(self, agent_session_id: str, session_id: str, see: Callable[[JsonObject], bool]) -> None:
        start = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%b,"update":'
        self._before = start % encode(agent_session_id)
        self.after = start % encode(session_id)
        self.cut = len(self._before)
        self.around = self.cut + len(_END)
        """Bytes of such a line that are not the update."""
        self.usual: bytes | tuple[bytes, ...] = self._before
        """First bytes of lines in which only `cut` bytes change: the session id (`AgentUpdates.receive`)."""
        self._session_id = Raw(encode(session_id))
        self._see = see

    def splice(self, line: bytes, size: int = -1) -> bytes:
        """The line with our session id and no other byte changed; `size`: length of the update, if known."""
        if line.startswith(self._before) and self.is_all(line, size):
            return self.after + line[self.cut :]
        envelope = message.members(line)
        params = message.members(envelope["params"])
        return self._rebuild(envelope, params, params["update"])

    def is_all(self, line: bytes, size: int) -> bool:
        """Whether nothing follows the update in a line that begins as usual.

        A second `sessionId` may follow, even with escaped letters, and a client may prefer it to the first.
        """
        if size == len(line) - self.cut - len(_END):
            return True
        try:
            _one_value.decode(line[self.cut : -len(_END)])
        except msgspec.DecodeError:
            return False
        return line.endswith(_END)

    def rewrite(self, line: bytes, size: int = -1) -> list[bytes]:
        """Rewrite a line of a kind in `LOOKED_AT`; several lines for a dialect that has several updates in one."""
        try:
            update, write = self._open(line)
        except Malformed:  # such as the number 1e400, which Python cannot hold: passed on as it is
            return [self.splice(line, size)]
        changed = dialects.read_update(update)
        if changed is None:
            return [write(update) if self._see(update) else self.splice(line, size)]
        for each in changed:
            self._see(each)
        return [write(each) for each in changed]

    def _open(self, line: bytes) -> tuple[JsonObject, Callable[[JsonObject], bytes]]:
        """The decoded update of a line, and a function that writes an update back into such a line."""
        if line.startswith(self._before) and line.endswith(_END):
            try:
                return decode_object(line[self.cut : -len(_END)]), self._usual_line
            except Malformed:
                pass  # more members follow the update
        envelope = message.members(line)
        params = message.members(envelope["params"])
        return decode_object(params["update"]), lambda each: self._rebuild(envelope, params, encode(each))

    def _usual_line(self, update: JsonObject) -> bytes:
        """The line that almost all agents write: nothing but session id and update."""
        return self.after + encode(update) + _END

    def _rebuild(self, envelope: dict[str, Raw], params: dict[str, Raw], update: bytes | Raw) -> bytes:
        params = {**params, "sessionId": self._session_id, "update": Raw(bytes(update))}
        return encode({**envelope, "params": Raw(encode(params))})


def update_line(session_id: str, update: object) -> bytes:
    """The line of an update that the gateway made."""
    return b'{"jsonrpc":"2.0","method":"session/update","params":%b}' % encode(
        {"sessionId": session_id, "update": update}
    )
