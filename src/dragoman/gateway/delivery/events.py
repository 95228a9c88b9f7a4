"""What a journal holds: one line per event, told apart by its first byte.

    U  an update that belongs to the conversation; a replay shows it
    P  a part of a prompt, as the update that other clients see; a replay shows it. Nothing else is the user's own
       word: a `user_message_chunk` with the tag U is what an agent says that the user said
    u  an update that is state (usage, commands, options): shown live, not replayed (G-163)
    R  a record: something that happened but is no update (a question, a decision, the end of a turn)

Updates are kept exactly as clients see them, so that a replay is a copy.
"""

from __future__ import annotations

from datetime import UTC, datetime

from dragoman.gateway.json_types import JsonObject, decode_object, encode
from dragoman.gateway.rewriting.updates import HISTORY_KINDS

HISTORY = b"U"
PROMPT = b"P"
STATE = b"u"
RECORD = b"R"
SHOWN = frozenset(b"UPu")
REPLAYED = frozenset(b"UP")


def tag_of(kind: str) -> bytes:
    """The tag of an update; a kind that nobody knows yet is taken for conversation, so that it is not lost."""
    return STATE if kind in _STATE_KINDS else HISTORY


_STATE_KINDS = frozenset(
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
assert not _STATE_KINDS & HISTORY_KINDS


def record(kind: str, **facts: object) -> bytes:
    """A record as it is journaled."""
    return RECORD + encode(
        {"dragoman": kind, **{name: value for name, value in facts.items() if value is not None}}
    )


UNKEPT = record("unkept")[:-1]
"""How a record begins that stands for events which were shown and not kept."""


TURN_ENDED = record("turn_ended")[:-1]
"""How the record of a turn's end begins."""


INTERRUPTED = "This turn was interrupted, or its end could not be saved."
"""The error of a turn that has no end in the journal: its process died, or could not write any more before it ended."""


def lost_words(first_seq: int, last_seq: int) -> str:
    """What stands in the place of events that a journal does not have any more."""
    which = f"Event {first_seq} is" if first_seq == last_seq else f"Events {first_seq} to {last_seq} are"
    return f"{which} damaged or missing in the journal."


def copied_loss(count: int) -> bytes:
    """A record in a fork, in the place of events that its original has lost."""
    return record("unkept", events=count, damaged=True)


def unkept_words(unkept: JsonObject) -> str:
    """What a record of the kind `unkept` says."""
    if unkept.get("damaged") is True:
        return (
            f"{unkept.get('events')} events before this are lost: this session was forked from a damaged one."
        )
    return f"{unkept.get('events')} events before this could not be saved: they cannot be shown again."


def read_record(event: bytes) -> JsonObject:
    return decode_object(event[1:])


def now() -> str:
    """ISO 8601 in UTC with milliseconds, as the store keeps times."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
