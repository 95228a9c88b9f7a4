"""Events in a journal: one line each, with a tag as its first byte.

    U  an update that belongs to the conversation; replayed
    P  a part of a prompt, as the update that other clients get; replayed. Only these are certainly the user's words:
       a `user_message_chunk` with the tag U is the agent's account of them
    u  an update that is state (usage, commands, options): sent live, not replayed (G-163)
    R  a record: something that happened but is no update (a question, a decision, the end of a turn)

Updates are stored exactly as clients get them, so that a replay is a copy.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from dragoman.gateway.json_types import JsonObject, decode_object, encode
from dragoman.gateway.ports.store import Row, Store
from dragoman.gateway.rewriting.updates import HISTORY_KINDS

READ_BYTES = 1024 * 1024
"""Bytes of a journal that are read at once."""

HISTORY = b"U"
PROMPT = b"P"
STATE = b"u"
RECORD = b"R"
SHOWN = frozenset(b"UPu")
REPLAYED = frozenset(b"UP")


STATE_KINDS = frozenset(
    {
        "available_commands_update",
        "current_mode_update",
        "current_model_update",
        "config_option_update",
        "session_info_update",
        "usage_update",
        "notice",
        "state_update",
    }
)


class _Tags(dict[str, bytes]):
    def __missing__(self, kind: str) -> bytes:
        """An unknown kind counts as conversation, so that replays include it."""
        return HISTORY


tag_of = _Tags({**dict.fromkeys(HISTORY_KINDS, HISTORY), **dict.fromkeys(STATE_KINDS, STATE)}).__getitem__
"""The tag of an update by its kind; a table, since every update is looked up."""


def record(kind: str, **facts: object) -> bytes:
    """Encode a record for the journal, without facts that are None."""
    return RECORD + encode(
        {"dragoman": kind, **{name: value for name, value in facts.items() if value is not None}}
    )


UNKEPT = record("unkept")[:-1]
"""First bytes of a record that counts events which were sent to clients but not stored."""


TURN_ENDED = record("turn_ended")[:-1]
"""First bytes of the record of a turn's end."""


INTERRUPTED = "This turn was interrupted, or its end could not be saved."
"""The error of a turn without an end in the journal: its process died, or could not write any more before it ended."""


def lost_notice(first_seq: int, last_seq: int) -> str:
    """The sentence shown in the place of events that are damaged or missing in a journal."""
    which = f"Event {first_seq} is" if first_seq == last_seq else f"Events {first_seq} to {last_seq} are"
    return f"{which} damaged or missing in the journal."


def copied_loss(count: int) -> bytes:
    """The record in a fork's journal that replaces events which are lost in the original's."""
    return record("unkept", events=count, damaged=True)


def unkept_notice(unkept: JsonObject) -> str:
    """The sentence shown for a record of the kind `unkept`."""
    if unkept.get("damaged") is True:
        return (
            f"{unkept.get('events')} events before this are lost: this session was forked from a damaged one."
        )
    return f"{unkept.get('events')} events before this could not be saved: they cannot be shown again."


def read_record(event: bytes) -> JsonObject:
    return decode_object(event[1:])


async def rows(store: Store, session_id: str, after: int = 0) -> AsyncIterator[Row]:
    """A journal from the event after `after` to its end, read in pieces: a long one is never in memory as a whole."""
    while found := await store.read(session_id, after, READ_BYTES):
        for row in found:
            yield row
        after = found[-1].last_seq
