"""The running turn of a session, and the prompts that wait for its end (`sessions.queue`).

The owner of a session has its queue. A queued prompt is a request that is not answered yet: it lives as long as its
process, and is answered exactly once, when its own turn ends or when it is taken out. Its states are in `states`.

Rules:

- Prompts start in the order in which they came; messages of pages have their place in the same order (`take_number`).
- The next one starts only after a turn that ended well. A cancelled turn answers what waits with `cancelled`; after a
  turn that failed, what waits fails too: it was written for another course of things.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from msgspec import Raw

from dragoman.gateway.access.client import Client
from dragoman.gateway.access.identity import Identity
from dragoman.gateway.json_types import JsonObject, encode
from dragoman.gateway.session.states import Life, OnIllegal, PromptEvent, PromptState, prompt_life
from dragoman.rpc.request import Reply, Request
from dragoman.wire import limits
from dragoman.wire.errors import RpcError, internal, invalid_params, invalid_request

CANCELLED = Reply(result=b'{"stopReason":"cancelled"}')
NOT_QUEUED = "This prompt does not wait any more: it was started, withdrawn or cancelled"

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class QueuedPrompt:
    id: str
    number: int
    client: Client
    request: Request
    prompt: Raw
    """The content blocks."""
    by: str
    """The identity that sent the prompt, or edited it last."""
    start: Callable[[QueuedPrompt], None]
    life: Life[PromptState, PromptEvent]
    edited: bool = False
    told: JsonObject = field(default_factory=dict)
    """Facts for `_meta.dragoman` of its answer."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A prompt or a page's message that waits, as lists show it."""

    number: int
    id: str
    prompt: Raw
    by: str
    edited: bool = False
    own: bool = False
    held: str = ""
    """Why it is not sent when its turn comes; only messages of pages are held."""

    def shown(self) -> JsonObject:
        facts: JsonObject = {"id": self.id, "prompt": self.prompt, "promptedBy": self.by}
        return {**facts, "edited": self.edited, "own": self.own, **({"held": self.held} if self.held else {})}


class QueueBeside:
    """Messages of pages that wait in sessions, beside the prompts of other clients."""

    def waiting_beside(self, session_id: str) -> list[Waiting]:
        return []

    def change_beside(self, session_id: str, id: str, prompt: Raw | None, editor: Identity) -> None:
        """Edit a message, or drop it if there is no prompt; raises `RpcError` if it does not wait any more."""
        raise not_queued()


class Prompts(Generic[T]):
    """`T` is the type of a turn."""

    def __init__(self, session_id: str, on_illegal: OnIllegal) -> None:
        self.turn: T | None = None
        self.forwarded: dict[int, tuple[Client, Callable[[], None]]] = {}
        """Prompts that wait or run at the owner of a session that this process follows, besides `turn`: by their call
        there, with the client and what withdraws it."""
        self._session_id = session_id
        self._on_illegal = on_illegal
        self._waiting: list[QueuedPrompt] = []
        self._numbers = 0
        self._ending = False
        """A turn ended, and the next prompt has not been looked for yet."""

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def waiting(self) -> list[QueuedPrompt]:
        return list(self._waiting)

    def occupied(self, limit: int) -> bool:
        """Whether a prompt that comes now must wait; without a queue (`limit` 0), whether a turn runs."""
        return bool(self.turn is not None or self._waiting or self.forwarded or (limit and self._ending))

    @property
    def forwarded_author(self) -> Client | None:
        """The client of the first forwarded prompt: the owner starts them in their order."""
        return next((client for client, _ in self.forwarded.values()), None)

    def take_number(self) -> int:
        """The place of a message that comes now, also of one that waits elsewhere."""
        self._numbers += 1
        return self._numbers

    def is_due_before(self, number: int) -> bool:
        """Whether a prompt waits here that came before that one."""
        return bool(self._waiting) and self._waiting[0].number < number

    # -- in and out

    def add(
        self,
        client: Client,
        request: Request,
        prompt: Raw,
        by: str,
        start: Callable[[QueuedPrompt], None],
        limit: int,
        wanted_id: str = "",
    ) -> QueuedPrompt:
        """Append a prompt; raises if `limit` prompts wait, or too many bytes."""
        size = len(prompt) + sum(len(each.prompt) for each in self._waiting)
        if len(self._waiting) >= limit or size > limits.QUEUED_PROMPT_BYTES:
            raise invalid_request(
                f"{len(self._waiting)} prompts wait for the end of this turn already (sessions.queue = {limit}): "
                "withdraw one, or send this one later",
                "queue_full",
            )
        number = self.take_number()
        taken = {each.id for each in self._waiting}
        named = wanted_id if wanted_id and wanted_id not in taken else f"q{number}"
        life = prompt_life(self._session_id, self._on_illegal)
        queued = QueuedPrompt(named, number, client, request, prompt, by, start, life)
        self._waiting.append(queued)
        request.on_cancel = lambda: self._end(queued, CANCELLED)
        return queued

    def holds(self, id: object) -> bool:
        return any(each.id == id for each in self._waiting)

    def find(self, id: object) -> QueuedPrompt:
        found = next((each for each in self._waiting if each.id == id), None)
        if found is None:
            raise not_queued()
        return found

    def edit(self, id: object, prompt: Raw, by: str) -> None:
        """Replace what a prompt says; it is the editor's from then on."""
        found = self.find(id)
        size = len(prompt) + sum(len(each.prompt) for each in self._waiting if each is not found)
        if size > limits.QUEUED_PROMPT_BYTES:
            raise invalid_request("The prompts that wait would be too large together", "queue_full")
        found.life.send(PromptEvent.EDITED)
        found.prompt, found.by, found.edited = prompt, by, True

    def withdraw(self, id: object) -> None:
        self._end(self.find(id), CANCELLED)

    def withdraw_of(self, client: Client) -> None:
        """The client left, and what it started ends with it."""
        for queued in [each for each in self._waiting if each.client is client]:
            self._end(queued, CANCELLED)
        if not client.leaves_turns:
            for author, cancel in list(self.forwarded.values()):
                if author is client:
                    cancel()

    def cancel_all(self) -> None:
        for queued in self.waiting:
            self._end(queued, CANCELLED)

    def fail_all(self, error: RpcError) -> None:
        for queued in self.waiting:
            self._end(queued, Reply.failed(error))

    def _end(self, queued: QueuedPrompt, reply: Reply) -> None:
        if queued not in self._waiting:
            return
        self._waiting.remove(queued)
        queued.life.send(PromptEvent.WITHDRAWN)
        queued.request.answer(
            _cancelled_edited(queued.prompt) if queued.edited and reply is CANCELLED else reply
        )

    # -- turns

    def turn_ended(self, turn: T) -> None:
        if self.turn is turn:
            self.turn = None
            self._ending = True

    def drop(self, *, failed: bool, stopped: bool) -> None:
        """Answer what waited for a turn that failed or was stopped; what comes after its end is meant after it."""
        if failed:
            why = "The prompt before this one failed, so it was not sent: send it again"
            self.fail_all(internal(why, "turn_before_failed"))
        elif stopped:
            self.cancel_all()

    def turn_over(self) -> None:
        """The turn's answer was sent: the next prompt may start."""
        asyncio.get_running_loop().call_soon(self._start_next)  # after pages, whose message may be next

    def _start_next(self) -> None:
        self._ending = False
        if self.turn is not None or not self._waiting:
            return
        queued = self._waiting.pop(0)
        queued.life.send(PromptEvent.STARTED)
        queued.request.on_cancel = None
        queued.start(queued)
        if self.turn is None:  # refused at once
            asyncio.get_running_loop().call_soon(self._start_next)


def not_queued() -> RpcError:
    return invalid_params(NOT_QUEUED, "not_queued")


def _cancelled_edited(prompt: Raw) -> Reply:
    """The answer for a prompt that another client changed: its client knows only what it sent."""
    return Reply(result=encode({"stopReason": "cancelled", "_meta": {"dragoman": {"prompt": prompt}}}))
