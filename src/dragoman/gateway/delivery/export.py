"""Exports a session: every event as NDJSON, or the conversation as Markdown; streamed in pieces."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec

from dragoman.gateway.delivery import events, transcript
from dragoman.gateway.delivery.conversation.undone import read_undone
from dragoman.gateway.delivery.decisions import DecisionReader
from dragoman.gateway.json_types import encode
from dragoman.gateway.ports.store import SessionRecord, Store
from dragoman.wire.framing import single_line
from dragoman.wire.timestamps import timestamp

_KINDS = {
    events.HISTORY: (b"update", b"message"),
    events.PROMPT: (b"prompt", b"message"),
    events.STATE: (b"state", b"message"),
    events.RECORD: (b"record", b"record"),
}
"""Tag of an event: its `type` in an export, and the member that holds it."""
OF_THIS_MACHINE = frozenset({"owner", "epoch", "node"})
"""Fields of a session record that only this machine understands; exports leave them out."""


async def as_ndjson(store: Store, record: SessionRecord) -> AsyncIterator[bytes]:
    """The session's record first, then each event with its number, its time and its content.

    A run of lost events is one line, with the numbers of the last and the first of them. What was undone is marked.
    """
    undone = await read_undone(store, record.id)
    facts = {key: value for key, value in msgspec.to_builtins(record).items() if key not in OF_THIS_MACHINE}
    yield encode({"type": "session", **facts}) + b"\n"
    async for row in events.rows(store, record.id):
        if row.damaged:
            lost = b'{"seq":%d,"time":null,"type":"events_lost","firstSeq":%d}\n'
            yield lost % (row.last_seq, row.first_seq)
            continue
        time = timestamp(row.ts).encode()
        numbered = enumerate(row.events(), row.first_seq)
        yield b"".join(_line(seq, time, event, undone=seq in undone) for seq, event in numbered)


def _line(seq: int, time: bytes, event: bytes, *, undone: bool) -> bytes:
    kind, member = _KINDS.get(event[:1], (b"record", b"record"))
    mark = b',"undone":true' if undone else b""
    told = single_line(event[1:])
    return b'{"seq":%d,"time":"%b","type":"%b"%b,"%b":%b}\n' % (seq, time, kind, mark, member, told)


async def as_markdown(store: Store, record: SessionRecord) -> AsyncIterator[bytes]:
    title = record.title or record.id
    yield f"# {title}\n\n".encode(errors="replace")
    yield f"Session `{record.id}` with {record.agent} in `{record.cwd}`, {record.created_at}\n\n".encode()
    async for piece in transcript.as_markdown(store, record.id, DecisionReader().note):
        yield piece.encode(errors="replace")
