"""What everybody who looks at one session shares: its queue, the messages that came, the events as they are sent."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from dragoman.bridge import limits
from dragoman.bridge.errors import BridgeError, as_bridge_error, friendly
from dragoman.bridge.lookback import Recalled
from dragoman.bridge.steward import Stewards
from dragoman.bridge.translate import translate
from dragoman.gateway.identity import LOCAL, Identity
from dragoman.gateway.json_types import JsonObject, decode_object, encode
from dragoman.gateway.session import Session
from dragoman.rpc.peer import Reply
from dragoman.wire.errors import RpcError

Done = Callable[[BridgeError | None], None]

STOPPED = BridgeError("cancelled", "The turn was cancelled before this message reached the agent.")


@dataclass(frozen=True, slots=True)
class Message:
    id: str
    blocks: list[JsonObject]

    def as_json(self) -> JsonObject:
        return {"clientMessageId": self.id, "content": self.blocks}

    @classmethod
    def read(cls, command: JsonObject, id: object) -> Message:
        """From a command's `content`: a string, or ACP's blocks."""
        content = command.get("content")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        if (
            not isinstance(content, list)
            or not content
            or not all(isinstance(each, dict) for each in content)
        ):
            raise BridgeError("bad_request", "`content` must be a text or a list of content blocks.")
        return cls(id if isinstance(id, str) else f"q_{secrets.token_hex(8)}", content)


class Room:
    def __init__(self, session_id: str, stewards: Stewards, recalled: Recalled) -> None:
        self.session_id = session_id
        self.state = recalled.state
        """What the journal says still holds, for the time in which no agent runs."""
        self.watchers = 0
        self._stewards = stewards
        self._senders: dict[str, Identity] = {}
        """Whose the messages of the queue are."""
        self._queue = [
            Message(str(each.get("clientMessageId")), each.get("content") or [])
            for each in recalled.queue or []
        ]
        self._ids: dict[str, None] = dict.fromkeys(reversed(recalled.message_ids))
        self._ids.update(dict.fromkeys(message.id for message in self._queue))
        self._running = False
        self._starting: str | None = None
        """The message whose turn has begun and which is not in the journal yet: an agent may have to be brought back."""
        self._encoded: dict[int, bytes] = {}

    # -- events

    def encoded(self, seq: int, stamp: str, event: bytes) -> bytes:
        """Translated once for all who look."""
        if self.watchers < 2:
            return translate(self.session_id, seq, stamp, event)
        known = self._encoded.get(seq)
        if known is not None:
            return known
        made = translate(self.session_id, seq, stamp, event)
        if len(made) <= limits.SHARED_EVENT_BYTES:
            self._encoded[seq] = made
            if len(self._encoded) > limits.SHARED_EVENTS:
                del self._encoded[next(iter(self._encoded))]
        return made

    # -- messages

    @property
    def queue(self) -> list[JsonObject]:
        return [message.as_json() for message in self._queue]

    def knows(self, message_id: object) -> bool:
        return message_id in self._ids

    def submit(self, session: Session, message: Message, sender: Identity, done: Done) -> None:
        """Start a turn with it, or let it wait for the end of the one that runs."""
        if session.turn is None and not self._queue:
            self._start(session, message, sender, done)
            return
        if session.remote:
            raise BridgeError("busy", "A turn is running in this session, which another program has open.")
        size = len(encode(message.blocks)) + sum(len(encode(each.blocks)) for each in self._queue)
        if len(self._queue) >= limits.QUEUED_MESSAGES or size > limits.QUEUED_BYTES:
            raise BridgeError("queue_full", "Too many messages wait for the end of this turn already.")
        self._remember(message.id)
        self._senders[message.id] = sender
        self._set_queue(session, [*self._queue, message])
        session.after_events(lambda: done(None))
        self.send_on(session)

    def edit(self, session: Session, queued_id: object, message: Message | None) -> None:
        """Replace a waiting message, or with None drop it."""
        found = next((index for index, each in enumerate(self._queue) if each.id == queued_id), None)
        if found is None:
            raise BridgeError("not_queued", "This message does not wait any more: it was sent or dropped.")
        changed = [] if message is None else [Message(self._queue[found].id, message.blocks)]
        self._set_queue(session, [*self._queue[:found], *changed, *self._queue[found + 1 :]])

    def turn_over(self, session: Session) -> bool:
        """Whether a turn has ended since the last look; after one that failed, the queue waits for people."""
        over = self._running and session.turn is None
        self._running = session.turn is not None
        return over and not session.failed

    def send_on(self, session: Session) -> None:
        """The next message of the queue, if nothing runs."""
        if session.turn is not None or self._starting or not self._queue or session.gateway.closing:
            return
        message = self._queue[0]
        sender = self._senders.get(message.id, LOCAL)
        self._set_queue(session, self._queue[1:])

        def done(error: BridgeError | None) -> None:
            if error is not None:
                self._put_back(session, message, sender, error)

        try:
            self._start(session, message, sender, done)
        except BridgeError as error:
            done(error)

    def _put_back(self, session: Session, message: Message, sender: Identity, error: BridgeError) -> None:
        """It could not start: it waits where it was, and the queue with it, until people send another."""
        self._remember(message.id)
        self._senders[message.id] = sender
        self._set_queue(session, [message, *self._queue])
        session.notice(
            f"A message that waited could not be sent: {error.message} It still waits: change it, drop it, "
            "or send another to try again."
        )

    def _start(self, session: Session, message: Message, sender: Identity, done: Done) -> None:
        """`done` when it is in the journal, or when it is certain that it never will be."""
        params = {
            "sessionId": session.id,
            "prompt": message.blocks,
            "_meta": {"dragoman": {"clientMessageId": message.id}},
        }
        told = False

        def tell(error: BridgeError | None) -> None:
            nonlocal told
            if not told:
                told = True
                done(error)

        def shown() -> None:
            self._starting = None
            session.after_events(lambda: tell(None))

        def answered(reply: Reply) -> None:
            if self._starting == message.id:  # never shown
                self._forget(message.id)
                tell(STOPPED if reply.ok else friendly(decode_object(reply.error)))

        self._remember(message.id)
        self._starting = message.id
        try:
            self._stewards.hand(sender).prompt(session, params, answered)
        except RpcError as error:
            self._forget(message.id)
            raise as_bridge_error(error) from error
        turn = session.turn
        if turn is None:  # over already, so it was shown
            shown()
        else:
            turn.when_shown(shown)

    def _forget(self, message_id: str) -> None:
        """It may be sent again."""
        self._starting = None
        self._ids.pop(message_id, None)

    def _set_queue(self, session: Session, queue: list[Message]) -> None:
        self._queue = queue
        self._senders = {each.id: self._senders[each.id] for each in queue if each.id in self._senders}
        session.record("queue", queue=self.queue)

    def _remember(self, message_id: str) -> None:
        self._ids[message_id] = None
        if len(self._ids) > limits.REMEMBERED_MESSAGES:
            del self._ids[next(iter(self._ids))]
