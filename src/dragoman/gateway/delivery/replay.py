"""Lines from the journal, made fit for the client that reads them again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Container

import msgspec
from msgspec import Raw

from dragoman.gateway.delivery import events
from dragoman.gateway.json_types import JsonObject, as_object, decode_object, encode, own_meta
from dragoman.gateway.ports.store import Store
from dragoman.gateway.rewriting.quirks import Corrections
from dragoman.gateway.session import options
from dragoman.wire import message
from dragoman.wire.errors import Malformed, invalid_params
from dragoman.wire.message import ABSENT

READ_BYTES = 1024 * 1024
NOTHING = Raw(message.EMPTY)


def after_seq(params: JsonObject) -> int | None:
    """The last event that a client has, which it says when it comes back."""
    value = own_meta(params).get("afterSeq")
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise invalid_params(
            "_meta.dragoman.afterSeq must be the number of the last event that you have", "afterSeq"
        )
    return value


def with_after_seq(params: JsonObject, position: int) -> JsonObject:
    """The same, of a client that has everything up to `position` by now."""
    meta = as_object(params.get("_meta"))
    return {
        **params,
        "_meta": {**meta, "dragoman": {**as_object(meta.get("dragoman")), "afterSeq": position}},
    }


def is_intact(line: bytes) -> bool:
    """A disk may give back other bytes than it got; what is not JSON any more would cost the client its connection."""
    try:
        message.decode(line)
    except Malformed:
        return False
    return True


OWN = b',"own":true}}}}'
"""How a line of ours ends that tells a process what one of its own clients said."""


def with_seq(line: bytes, seq: int | None, *, own: bool = False) -> bytes:
    """`params._meta.dragoman.seq`, for clients that asked for it; without a number it says `kept: false`."""
    envelope = message.members(line)
    params = lenient_members(envelope.pop("params", NOTHING))
    meta = lenient_members(params.pop("_meta", NOTHING))
    facts = lenient_members(meta.pop("dragoman", NOTHING))
    for name in ("seq", "kept", "own"):
        facts.pop(name, None)
    mark: JsonObject = {"kept": False} if seq is None else {"seq": seq}
    ours = Raw(encode({**facts, **mark, **({"own": True} if own else {})}))
    shown = Raw(encode({**params, "_meta": Raw(encode({**meta, "dragoman": ours}))}))
    return encode({**envelope, "params": shown})


def without_own(line: bytes) -> bytes:
    """A line as `with_seq` wrote it, without the mark."""
    return line[: -len(OWN)] + b"}}}}" if line.endswith(OWN) else line


class OwnFacts(msgspec.Struct, gc=False, frozen=True):
    """What another process of ours says of an event beside it."""

    seq: int = 0
    own: bool = False
    """A client of the process that is told said it."""
    kept: bool = True
    """It is in the journal."""


class _OwnMeta(msgspec.Struct, gc=False):
    dragoman: OwnFacts = OwnFacts()


_facts = msgspec.json.Decoder(OwnFacts)
_own_meta = msgspec.json.Decoder(_OwnMeta)
_NO_FACTS = OwnFacts()


def own_facts(meta: Raw) -> OwnFacts:
    """What `with_seq` put into the `_meta` of an update's params."""
    try:
        return _own_meta.decode(meta).dragoman if meta is not ABSENT else _NO_FACTS
    except msgspec.DecodeError:
        return _NO_FACTS


def read_facts(params: bytes) -> OwnFacts:
    """The same in params of a notification of ours."""
    try:
        return _facts.decode(params)
    except msgspec.DecodeError:
        return _NO_FACTS


LOST = "lost"
UNKNOWN = "(the output of this terminal was not kept)"


def without_terminals(line: bytes, outputs: dict[str, str] | ForeignTerminals) -> bytes:
    """Terminal references are dead in a replay: their last output stands in for them (G-069)."""
    return edited(line, lambda update: replace_terminals(update, outputs))


def replace_terminals(update: JsonObject, outputs: dict[str, str] | ForeignTerminals) -> bool:
    content = update.get("content")
    if not isinstance(content, list):
        return False
    changed = False
    for index, item in enumerate(content):
        if as_object(item).get("type") == "terminal":
            text = outputs.get(str(item.get("terminalId")))
            if text is None:
                continue
            content[index] = {"type": "content", "content": {"type": "text", "text": text}}
            changed = True
    return changed


def without_booleans(line: bytes) -> bytes:
    """A `config_option_update` for a client that does not know boolean options."""
    return edited(line, _leave_out_booleans)


def _leave_out_booleans(update: JsonObject) -> bool:
    listed = update.get("configOptions")
    if not isinstance(listed, list):
        return False
    update["configOptions"] = options.without_booleans(listed)
    return len(update["configOptions"]) < len(listed)


def with_terminal_text(line: bytes, corrections: Corrections) -> bytes:
    """The output in `_meta` as text, for a client that does not draw it; `corrections` remember the story so far."""
    return edited(line, corrections.terminal_text)


def edited(line: bytes, edit: Callable[[JsonObject], bool]) -> bytes:
    """The line with its update changed by `edit`; what cannot be read, such as 1e400, stays as the agent wrote it."""
    try:
        envelope = message.members(line)
        params = message.members(envelope.get("params", NOTHING))
        update = decode_object(params.get("update", NOTHING))
    except Malformed:
        return line
    if not edit(update):
        return line
    return encode({**envelope, "params": Raw(encode({**params, "update": update}))})


def lenient_members(raw: Raw) -> dict[str, Raw]:
    """One level of an object; empty for everything else: an agent puts into `_meta` what it likes."""
    try:
        return message.members(raw)
    except Malformed:
        return {}


class ForeignTerminals:
    """Outputs of terminals that are another client's; None for all others, which stay as they are.

    An id that no client issued is the agent's own affair: codex-acp 2.6 refers to terminals that never were and puts
    their output into `_meta`.
    """

    def __init__(
        self, foreign: frozenset[str], outputs: dict[str, str], running: Container[str] = frozenset()
    ) -> None:
        """`running` have printed nothing so far where no output is known."""
        self._foreign = foreign
        self._outputs = outputs
        self._running = running

    def get(self, terminal: str) -> str | None:
        if terminal not in self._foreign:
            return None
        return self._outputs.get(terminal, "" if terminal in self._running else UNKNOWN)


async def terminal_outputs(store: Store, session_id: str) -> dict[str, str]:
    """The output of every terminal in a journal, put together of its pieces."""
    pieces: dict[str, list[str]] = {}
    running: set[str] = set()
    async for event in records(store, session_id):
        terminal, kind = str(event.get("terminalId")), event.get("dragoman")
        if kind == "terminal_created":  # clients issue ids again
            pieces[terminal] = []
            running.add(terminal)
        elif kind == "terminal_output":
            pieces.setdefault(terminal, []).append(str(event.get("output", "")))
            if event.get("exitStatus") is not None:
                running.discard(terminal)
        elif kind == LOST:
            for each in running:
                pieces[each].append(f"\n[{event['title']}]\n")
    return {terminal: "".join(told) if told else UNKNOWN for terminal, told in pieces.items()}


async def records(store: Store, session_id: str) -> AsyncIterator[JsonObject]:
    """The records of a journal, oldest first; one of the kind `LOST` stands for events that are damaged or missing."""
    position = 0
    while rows := await store.read(session_id, position, READ_BYTES):
        for row in rows:
            if row.damaged:
                yield {"dragoman": LOST, "title": events.lost_words(row.first_seq, row.last_seq)}
            for event in row.events():
                if event[:1] == events.RECORD:
                    yield events.read_record(event)
            position = row.last_seq
