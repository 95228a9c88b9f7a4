"""The messages of a conversation: the prompts that began its turns, counted from 1, also those that are undone.

They are found in the journal. A prompt has one event for each of its parts; the first begins a message unless a turn
runs already, as a message to a running turn does.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from dragoman.gateway.delivery import events
from dragoman.gateway.delivery.conversation.undone import MARK, NOTHING, Range, read_undone_record
from dragoman.gateway.delivery.transcript import read_update, said
from dragoman.gateway.json_types import JsonObject, as_object, own_meta
from dragoman.gateway.ports.store import Store
from dragoman.wire import timestamps
from dragoman.wire.errors import RpcError, invalid_params

SHOWN_TEXT = 200
"""Characters of a message in a list."""


class Message(Struct, frozen=True, omit_defaults=True):
    """A message that a conversation can go back to."""

    number: int
    event: int
    """The number of its first event."""
    time: str
    text: str
    """Its beginning."""
    id: str | None = None
    """The client's own id of it."""
    undone: bool = False


class Messages:
    def __init__(self, found: Sequence[Message], last_seq: int) -> None:
        self.all = found
        self._last_seq = last_seq

    @property
    def shown(self) -> list[Message]:
        """Those that are not undone."""
        return [message for message in self.all if not message.undone]

    def find(self, wanted: int | str) -> Message:
        """The message with this number or client's id; raises for one that is unknown or undone."""
        by_id = [message for message in self.all if isinstance(wanted, str) and message.id == wanted]
        number = wanted if isinstance(wanted, int) else _number(wanted)
        found = (by_id or [message for message in self.all if message.number == number])[-1:]
        if not found:
            count = f"it has {len(self.all)}" if self.all else "it has none"
            raise _refusal(f"There is no message {wanted} in this session: {count}")
        if found[0].undone:
            raise _refusal(f"Message {wanted} is undone already: undo the rewind to have it back")
        return found[0]

    def last(self) -> Message:
        if not self.shown:
            raise _refusal("There is no message in this session")
        return self.shown[-1]

    def ranges(self, undone: set[int]) -> list[Range]:
        """The events of the messages with these numbers; those of neighbours are one range."""
        found: list[Range] = []
        for message, until in zip(self.all, self._ends(), strict=True):
            if message.number not in undone:
                continue
            if found and found[-1][1] == message.event - 1:
                found[-1] = found[-1][0], until
            else:
                found.append((message.event, until))
        return found

    def _ends(self) -> list[int]:
        return [*(message.event - 1 for message in self.all[1:]), self._last_seq]


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _refusal(message: str) -> RpcError:
    return invalid_params(message, "unknown_message")


async def read_messages(store: Store, session_id: str) -> Messages:
    """Read the messages of a whole journal."""
    found: list[Message] = []
    undone = NOTHING
    ended, last_seq = True, 0
    async for row in events.rows(store, session_id):
        last_seq = row.last_seq
        ended = ended or row.damaged
        for seq, event in enumerate(row.events(), row.first_seq):
            if event.startswith(events.TURN_ENDED):
                ended = True
            elif event[:1] == events.PROMPT:
                update = read_update(event[1:]) or {}
                if ended and own_meta(update).get("steer") is not True:
                    found.append(_message(len(found) + 1, seq, row.ts, update))
                    ended = False
            elif event.startswith(MARK):
                undone = read_undone_record(event)
    shown = [Message(one.number, one.event, one.time, one.text, one.id, one.event in undone) for one in found]
    return Messages(shown, last_seq)


def _message(number: int, seq: int, ts: int, update: JsonObject) -> Message:
    known = own_meta(update).get("clientMessageId")
    text = " ".join(said(update)[1].split())
    shown = text if len(text) <= SHOWN_TEXT else text[: SHOWN_TEXT - 1] + "…"
    return Message(number, seq, timestamps.timestamp(ts), shown, known if isinstance(known, str) else None)


async def prompt_of(store: Store, session_id: str, message: Message) -> list[JsonObject]:
    """The content of a message, as it was sent."""
    blocks: list[JsonObject] = []
    async for row in events.rows(store, session_id, message.event - 1):
        if row.damaged:
            return blocks
        for event in row.events():
            if event.startswith(events.TURN_ENDED):
                return blocks
            update = read_update(event[1:]) if event[:1] == events.PROMPT else None
            if update is not None and own_meta(update).get("steer") is not True:
                blocks.append(as_object(update.get("content")))
    return blocks
