"""Adapts lines from the journal to the client that they are replayed to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Container

import msgspec
from msgspec import Raw

from dragoman.gateway.delivery import events
from dragoman.gateway.json_types import JsonObject, as_object, decode_object, encode, own_meta
from dragoman.gateway.ports.store import Store
from dragoman.gateway.rewriting.quirks import Corrections
from dragoman.gateway.session.settings import options
from dragoman.wire import message
from dragoman.wire.errors import Malformed, invalid_params
from dragoman.wire.message import ABSENT, lenient_members

NOTHING = Raw(message.EMPTY)


def after_seq(params: JsonObject) -> int | None:
    """The number of the last event that a reconnecting client has; None if its params do not say."""
    value = own_meta(params).get("afterSeq")
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise invalid_params(
            "_meta.dragoman.afterSeq must be the number of the last event that you have", "afterSeq"
        )
    return value


def is_intact(line: bytes) -> bool:
    """Whether a stored line is still JSON: a disk may corrupt it, and a client may disconnect on invalid JSON."""
    try:
        message.decode(line)
    except Malformed:
        return False
    return True


OWN = b',"own":true}}}}'
"""End of a line that `with_seq` marked as written by a client of the receiving process."""


def with_seq(line: bytes, seq: int | None, *, own: bool = False) -> bytes:
    """The line with `params._meta.dragoman.seq`, for clients that asked for it; without a number `kept: false`."""
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
    """The line without the `own` mark of `with_seq`."""
    return line[: -len(OWN)] + b"}}}}" if line.endswith(OWN) else line


class OwnFacts(msgspec.Struct, gc=False, frozen=True):
    """`_meta.dragoman` of an event from another process of Dragoman."""

    seq: int = 0
    own: bool = False
    """The author is a client of the receiving process."""
    kept: bool = True
    """The event is in the journal."""


class _OwnMeta(msgspec.Struct, gc=False):
    dragoman: OwnFacts = OwnFacts()


_facts = msgspec.json.Decoder(OwnFacts)
_own_meta = msgspec.json.Decoder(_OwnMeta)
_NO_FACTS = OwnFacts()


def own_facts(meta: Raw) -> OwnFacts:
    """Decode what `with_seq` put into the `_meta` of an update's params."""
    try:
        return _own_meta.decode(meta).dragoman if meta is not ABSENT else _NO_FACTS
    except msgspec.DecodeError:
        return _NO_FACTS


def read_facts(params: bytes) -> OwnFacts:
    """Decode `OwnFacts` from the params of one of Dragoman's own notifications, where they are not in `_meta`."""
    try:
        return _facts.decode(params)
    except msgspec.DecodeError:
        return _NO_FACTS


LOST = "lost"
UNKNOWN = "(the output of this terminal was not kept)"


def without_terminals(line: bytes, outputs: dict[str, str] | ForeignTerminals) -> bytes:
    """Replace terminal references, which are dead in a replay, by the terminals' last output (G-069)."""
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
    """Remove boolean options from a `config_option_update`, for a client that does not know them."""
    return edited(line, _leave_out_booleans)


def _leave_out_booleans(update: JsonObject) -> bool:
    listed = update.get("configOptions")
    if not isinstance(listed, list):
        return False
    update["configOptions"] = options.without_booleans(listed)
    return len(update["configOptions"]) < len(listed)


def with_terminal_text(line: bytes, corrections: Corrections) -> bytes:
    """Show terminal output from `_meta` as text, for a client that does not draw it; `corrections` carry the state."""
    return edited(line, corrections.terminal_text)


def edited(line: bytes, edit: Callable[[JsonObject], bool]) -> bytes:
    """The line with its update changed by `edit`; a line that cannot be decoded, such as with 1e400, is unchanged."""
    try:
        envelope = message.members(line)
        params = message.members(envelope.get("params", NOTHING))
        update = decode_object(params.get("update", NOTHING))
    except Malformed:
        return line
    if not edit(update):
        return line
    return encode({**envelope, "params": Raw(encode({**params, "update": update}))})


class ForeignTerminals:
    """Outputs of terminals that belong to other clients; None for any other id, whose reference is left unchanged.

    An id that no client issued is left alone: codex-acp 2.6 refers to terminals that never existed and puts their
    output into `_meta`.
    """

    def __init__(
        self, foreign: frozenset[str], outputs: dict[str, str], running: Container[str] = frozenset()
    ) -> None:
        """A terminal in `running` without a known output counts as having printed nothing."""
        self._foreign = foreign
        self._outputs = outputs
        self._running = running

    def get(self, terminal: str) -> str | None:
        if terminal not in self._foreign:
            return None
        return self._outputs.get(terminal, "" if terminal in self._running else UNKNOWN)


async def terminal_outputs(store: Store, session_id: str) -> dict[str, str]:
    """The output of every terminal in a journal, joined from its `terminal_output` records."""
    pieces: dict[str, list[str]] = {}
    running: set[str] = set()
    async for event in records(store, session_id):
        terminal, kind = str(event.get("terminalId")), event.get("dragoman")
        if kind == "terminal_created":  # clients reuse ids
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
    """The records of a journal, oldest first; a record of kind `LOST` replaces damaged or missing events."""
    async for row in events.rows(store, session_id):
        if row.damaged:
            yield {"dragoman": LOST, "title": events.lost_notice(row.first_seq, row.last_seq)}
        for event in row.events():
            if event[:1] == events.RECORD:
                yield events.read_record(event)
