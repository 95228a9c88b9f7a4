"""`exec -s ID` while a turn of another client runs there: nothing of that turn is printed or answered.

The prompt waits in the queue of the session (`sessions.queue`). Turns of other clients end with a `TurnEnded` that is
not the own one, so what follows the last of them is the own turn. A turn that begins with a prompt that is sent to this
client is that of another one, unless its own was edited: if it does not wait any more, what follows is held until that
turn ends, or asks something.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from dragoman.client.errors import DragomanError
from dragoman.client.events import Event, TurnEnded, UserMessage
from dragoman.client.question import Question
from dragoman.client.session import Session
from dragoman.client.turn import Turn
from dragoman.gateway.json_types import JsonObject, as_object, encode, own_meta
from dragoman.gateway.rewriting.updates import update_line
from dragoman.wire.json_types import read_object

MOST_HELD = 1000


class Behind:
    """Tells the events of other clients' turns from those of the own one."""

    def __init__(self) -> None:
        self.waits = False
        """The own prompt is in the queue."""
        self.waited = False
        self._held: list[Event] | None = None
        """Events of a turn that may be another client's."""

    async def look(self, session: Session) -> None:
        try:
            self.waits = any(queued.own for queued in await session.queue())
        except DragomanError:  # the owner of the session is gone; the prompt's own answer says so
            self.waits = False
        self.waited = self.waited or self.waits

    async def own_events(
        self, session: Session, turn: Turn, say: Callable[[str], None]
    ) -> AsyncIterator[Event]:
        """The events of the own turn; `say` is called when another one asks something."""
        async for event in turn:
            if isinstance(event, Question):
                event.keep()
            for own in await self._own(session, event):
                yield own
            if self.waits and isinstance(event, Question):
                say(waiting_line(session.id, 1))

    async def _own(self, session: Session, event: Event) -> list[Event]:
        """What is known to be of the own turn, now that this event came."""
        if not self.waited:
            return [event]
        if isinstance(event, TurnEnded) and not event.own:
            self.waits, self._held = False, None
            return []
        if isinstance(event, TurnEnded):
            return [*self._take(), event]
        if not self.waits and self._held is None and _begins_a_turn(event):
            await self.look(session)
            self._held = []
        if self.waits:
            self._held = None
            return []
        if self._held is None:
            return [event]
        self._held.append(event)
        if isinstance(event, Question):
            await self.look(session)  # it holds up the turn that runs
            return self._take() if not self.waits and event.open else []
        return self._take() if len(self._held) == MOST_HELD else []

    def _take(self) -> list[Event]:
        held, self._held = self._held or [], None
        return held


def _begins_a_turn(event: Event) -> bool:
    return isinstance(event, UserMessage) and "steer" not in own_meta(dict(event.raw))


class Lines:
    """The messages of the wire for `--json`, without those of other clients' turns.

    passing ──hold──► holding ──let_go(False)──► passing
                         └─────let_go(True)────► sorted: the reader of events passes on what is its own ──end──► passing
    """

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._held: list[bytes] | None = None
        self._sorted = False

    def message(self, line: bytes) -> None:
        if self._held is None:
            self._write(line)
            return
        read = read_object(line)
        if "queue" in as_object(read.get("result")) or (self._sorted and "method" in read):
            return
        self._held.append(line)

    def hold(self) -> None:
        """A session is resumed: whether a turn of another client runs there is not known yet."""
        self._held = []

    def let_go(self, behind: bool) -> None:
        held, self._held = self._held or [], [] if behind else None
        self._sorted = behind
        for line in held:
            if not behind or "method" not in read_object(line):
                self._write(line)

    def event(self, session_id: str, event: Event) -> None:
        """Pass an event of the own turn on, if messages are sorted."""
        if not self._sorted or (isinstance(event, TurnEnded) and event.own):
            return
        if isinstance(event, Question):
            asked: JsonObject = {"jsonrpc": "2.0", "method": "session/request_permission"}
            self._write(encode({**asked, "params": dict(event.raw)}))
        else:
            self._write(update_line(session_id, dict(event.raw)))

    def end(self) -> None:
        """The turn is over: pass on the answers that came meanwhile."""
        held, self._held, self._sorted = self._held or [], None, False
        for line in held:
            self._write(line)


def waiting_line(session_id: str, questions: int) -> str:
    asked = ""
    if questions:
        asked = (
            f" {questions} question{'s' * (questions > 1)} of it {'is' if questions == 1 else 'are'} open;"
        )
    return (
        f"waiting: a turn of another client runs in {session_id};{asked} `dragoman cancel {session_id}` ends it, "
        "Ctrl-C takes this prompt back"
    )
