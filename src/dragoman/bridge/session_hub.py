"""State shared by all pages that view one session: the message queue, known message ids, encoded events."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from msgspec import Raw

from dragoman.bridge import limits
from dragoman.bridge.background_client import BackgroundClients
from dragoman.bridge.errors import BridgeError, as_bridge_error, friendly
from dragoman.bridge.events.translate import translate
from dragoman.bridge.message import Message
from dragoman.bridge.restore import Restored
from dragoman.gateway.access.identity import Identity
from dragoman.gateway.json_types import JsonObject, decode_object, encode
from dragoman.gateway.rewriting.content import read_prompt
from dragoman.gateway.session.prompts.queue import Waiting
from dragoman.gateway.session.session import Session
from dragoman.rpc.request import Reply
from dragoman.wire.errors import RpcError

log = logging.getLogger(__name__)

Done = Callable[[BridgeError | None], None]

STOPPED = BridgeError("cancelled", "The turn was cancelled before this message reached the agent.")


class SessionHub:
    def __init__(self, session_id: str, background_clients: BackgroundClients, recalled: Restored) -> None:
        self.session_id = session_id
        self.state = recalled.state
        """The latest state found in the journal, used while no agent runs."""
        self.watchers = 0
        self._background_clients = background_clients
        kept = [Message.from_stored(stored) for stored in recalled.queue or []]
        self._queue = [message.stop() for message in kept] if recalled.stopped else kept
        self._ids: dict[str, None] = dict.fromkeys(reversed(recalled.message_ids))
        self._ids.update(dict.fromkeys(message.id for message in self._queue))
        self._running = False
        self._stopped = False
        """The running turn was stopped, and the messages queued at that time are held."""
        self._starting: str | None = None
        """Id of the message whose turn has begun and which is not in the journal yet: the agent may need a restart."""
        self._encoded: dict[int, bytes] = {}

    # -- events

    def encode_event(self, seq: int, stamp: str, event: bytes) -> bytes:
        """Translate an event, once for all pages."""
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
        """The queue as pages show it."""
        return [message.as_shown() for message in self._queue]

    def waiting(self) -> list[Waiting]:
        """The queue as other clients see it; a message whose turn begins does not wait any more."""
        return [message.as_waiting() for message in self._queue if message.id != self._starting]

    def knows(self, message_id: object) -> bool:
        return message_id in self._ids

    def submit(self, session: Session, message: Message, sender: Identity, done: Done) -> None:
        """Start a turn with the message, or queue it behind the running turn."""
        if (
            session.turn is None
            and not len(session.prompts)
            and all(waiting.stopped for waiting in self._queue)
        ):
            self._start(session, message, sender, done)
            return
        self._running = self._running or session.turn is not None
        if session.owned_elsewhere:
            raise BridgeError("busy", "A turn is running in this session, which another program has open.")
        _check(session, message)
        size = len(encode(message.blocks)) + sum(len(encode(each.blocks)) for each in self._queue)
        if len(self._queue) >= limits.QUEUED_MESSAGES or size > limits.QUEUED_BYTES:
            raise BridgeError("queue_full", "Too many messages wait for the end of this turn already.")
        self._remember(message.id)
        owned = replace(
            message, sender=self._background_clients.sender(sender), number=session.prompts.take_number()
        )
        self._set_queue(session, [*self._queue, owned])
        session.after_events(lambda: done(None))
        self.send_on(session)

    def edit(self, session: Session, queued_id: object, message: Message | None, editor: Identity) -> None:
        """Replace a queued message, whose sender becomes the editor, or drop it if `message` is None."""
        found = next((each for each in self._queue if each.id == queued_id), None)
        if found is None or found.id == self._starting:
            raise _not_queued()
        if message is None:
            self._set_queue(session, [each for each in self._queue if each is not found])
            return
        _check(session, message)
        sender = self._background_clients.sender(editor)
        if found.stopped:
            changed = replace(found, blocks=message.blocks, sender=sender)
        else:
            changed = replace(found, blocks=message.blocks, sender=sender, held="")
        self._set_queue(session, [changed if each is found else each for each in self._queue])
        if found.held and not found.stopped:
            self.send_on(session)

    def release(self, session: Session, queued_id: object, releaser: Identity) -> None:
        """Send a held message, or all held ones for None; their sender becomes the releaser."""
        chosen = [each for each in self._queue if queued_id is None or each.id == queued_id]
        if queued_id is not None and (not chosen or chosen[0].id == self._starting):
            raise _not_queued()
        sender = self._background_clients.sender(releaser)
        held = {each.id for each in chosen if each.held}
        if held:
            self._set_queue(
                session,
                [
                    replace(each, sender=sender, held="", stopped=False) if each.id in held else each
                    for each in self._queue
                ],
            )
        self.send_on(session, first=queued_id)

    def stop(self, session: Session) -> None:
        """Handle a cancel: hold the queued messages until a user releases them.

        A message that arrives after the stop is not held: its author knows that the turn was stopped.
        """
        self._stopped = session.turn is not None
        self._hold_all(session)

    def turn_over(self, session: Session) -> bool:
        """Whether a turn has ended and the queue continues; after a failed turn it waits for a user."""
        over = self._running and session.turn is None
        self._running = session.turn is not None
        if not over:
            return False
        if (
            session.recovery.stopped and not self._stopped
        ):  # the agent stopped by itself, as some do when a command is refused
            self._hold_all(session)
        self._stopped = False
        return not session.recovery.failed

    def _hold_all(self, session: Session) -> None:
        if session.owned_elsewhere or all(waiting.stopped for waiting in self._queue):
            return
        held = [waiting.stop() for waiting in self._queue]
        self._set_queue(session, held)
        log.info("queue held by a stop", extra={"session": session.id, "messages": len(held)})

    def send_on(self, session: Session, first: object = None) -> None:
        """Send the next message whose sender is still allowed, if no turn runs; `first` is an id that goes first.

        The message stays in the queue until it is a session event, so that a crash in between loses nothing.
        """
        if session.turn is not None or self._starting or session.owned_elsewhere or session.gateway.closing:
            return
        due = [message for message in self._queue if not message.stopped]
        for message in sorted(due, key=lambda each: each.id != first):
            if session.prompts.is_due_before(message.number):  # an ACP client's, which starts by itself
                return
            sender = self._background_clients.identity(message.sender)
            if isinstance(sender, Identity):
                self._send(session, message, sender)
                return
            self._hold(session, message, sender)

    def _send(self, session: Session, message: Message, sender: Identity) -> None:
        def done(error: BridgeError | None) -> None:
            if error is not None:
                session.notice(
                    f"A message that waited could not be sent: {error.message} It still waits: change it, drop it, "
                    "or send another to try again."
                )

        self._start(session, message, sender, done)

    def _hold(self, session: Session, message: Message, reason: str) -> None:
        """Hold a message whose sender is no longer allowed; the messages behind it do not wait for it."""
        if message.held == reason:
            return
        held = replace(message, held=reason)
        self._set_queue(session, [held if each is message else each for each in self._queue])
        session.notice(
            f"A message that waited is not sent: {reason} Change it to send it in your name, or drop it."
        )

    def _start(self, session: Session, message: Message, sender: Identity, done: Done) -> None:
        """Start a turn; `done` is called when the message is in the journal, or will certainly never be."""
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
            # In the loop turn that published the message, so that message and queue are stored together.
            self._starting = None
            if any(each.id == message.id for each in self._queue):
                self._set_queue(session, [each for each in self._queue if each.id != message.id])
            session.after_events(lambda: tell(None))

        def answered(reply: Reply) -> None:
            if self._starting == message.id:  # never shown
                self._not_started(message)
                tell(STOPPED if reply.ok else friendly(decode_object(reply.error)))

        self._remember(message.id)
        self._starting = message.id
        self._background_clients.gateway_client(sender).ask("session/prompt", params, answered)
        turn = session.turn
        if self._starting != message.id:  # refused
            return
        if turn is None:  # over already, so it was shown
            shown()
        else:
            turn.when_shown(shown)

    def _not_started(self, message: Message) -> None:
        """Forget the start; a message that is not in the queue may be sent again."""
        self._starting = None
        if not any(each.id == message.id for each in self._queue):
            self._ids.pop(message.id, None)

    def _set_queue(self, session: Session, queue: list[Message]) -> None:
        self._queue = queue
        session.record("queue", queue=[message.as_kept() for message in queue])

    def _remember(self, message_id: str) -> None:
        self._ids[message_id] = None
        if len(self._ids) > limits.REMEMBERED_MESSAGES:
            del self._ids[next(iter(self._ids))]


def _check(session: Session, message: Message) -> None:
    """Raise for a message that no agent would get: it would block the messages behind it."""
    try:
        read_prompt({"prompt": Raw(encode(message.blocks))}, session.gateway.config.limits.max_prompt_bytes)
    except RpcError as error:
        raise as_bridge_error(error) from error


def _not_queued() -> BridgeError:
    return BridgeError("not_queued", "This message does not wait any more: it was sent or dropped.")
