"""One session: prompts, its events, cancelling, its queue and settings."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from dragoman.client.connection import Connection
from dragoman.client.errors import DragomanError, RequestRefused, error_of
from dragoman.client.events import Event, InfoChanged, Notice, OptionsChanged, TurnEnded
from dragoman.client.history import (
    Message,
    Rewound,
    SessionChanges,
    Shared,
    What,
    read_changes,
    read_message,
    read_rewound,
)
from dragoman.client.question import Question
from dragoman.client.reading import read_update
from dragoman.client.stream import EventStream
from dragoman.client.turn import Prompting, Turn
from dragoman.rpc.request import Reply
from dragoman.wire.errors import INTERNAL_ERROR
from dragoman.wire.json_types import JsonObject, objects, own_meta, read_object

log = logging.getLogger(__name__)

Content = str | Sequence[JsonObject]
"""A prompt: text, or ACP content blocks."""
OnQuestion = Callable[[Question], Awaitable[None] | None]


@dataclass(frozen=True, slots=True)
class QueuedPrompt:
    """A prompt that waits for the end of the running turn."""

    id: str
    prompt: tuple[JsonObject, ...]
    own: bool
    """Whether this client sent it."""
    prompted_by: str = ""
    """The identity that sent it, or edited it last."""
    edited: bool = False


@dataclass(slots=True, eq=False)
class _Waiting:
    """A prompt that the gateway refused while a turn runs."""

    id: str
    prompting: Prompting
    params: JsonObject
    again: bool = False
    """Whether it was sent before."""


class Session:
    """Made by `Gateway.new`, `resume` or `fork`; implements `Listener`."""

    def __init__(self, connection: Connection, id: str, cwd: str, on_question: OnQuestion | None) -> None:
        self.id = id
        self.cwd = cwd
        self.seq = 0
        """The number of the last event that arrived: what `Gateway.resume` takes as `after`."""
        self.title: str | None = None
        self.options: tuple[JsonObject, ...] = ()
        """The session's options, such as its model and mode, with their present values."""
        self.facts: JsonObject = {}
        """What the gateway said of the session when it was opened: `state`, `revived`, `worktree` …"""
        self._connection = connection
        self._on_question = on_question
        self._open: list[Prompting] = []
        """Prompts that the gateway has, in the order of their turns."""
        self._waiting: list[_Waiting] = []
        """Prompts that wait here."""
        self._numbers = 0
        self._cancelling = False
        """This client cancelled a turn of its own; prompts sent until its end are meant after it."""
        self._streams: list[EventStream] = []
        self._first: EventStream | None = None
        self._answering: set[asyncio.Task[None]] = set()

    # -- prompts

    def prompt(self, content: Content, *, steer: bool = False, wait: bool = True) -> Turn:
        """Send a prompt; iterate over the turn for its events, or await `turn.text()`.

        While a turn runs, the prompt waits for its end, or without `wait` is refused if the gateway has no queue; with
        `steer` it is handed to the running turn where the agent can take it. A question that the loop's body does not
        answer is refused when the loop goes on.
        """
        return Turn(self._send(content, steer, wait, EventStream(self._connection.flow)))

    def send(self, content: Content, *, steer: bool = False, wait: bool = True) -> Turn:
        """As `prompt`, for readers of `events`: the turn itself has no events, only an end."""
        return Turn(self._send(content, steer, wait, None))

    def _send(self, content: Content, steer: bool, wait: bool, stream: EventStream | None) -> Prompting:
        params: JsonObject = {"sessionId": self.id, "prompt": _blocks(content)}
        if steer:
            params["_meta"] = {"dragoman": {"steer": True}}
        prompting = Prompting(self._connection.flow, stream, may_wait=wait)
        if wait and (self._waiting or self._cancelling):
            self._wait(prompting, params)
        else:
            self._request(prompting, params)
        return prompting

    def _request(self, prompting: Prompting, params: JsonObject) -> None:
        connection = self._connection
        self._open.append(prompting)
        answered = partial(self._answered, prompting, params)
        call = connection.ask("session/prompt", params, answered)
        prompting.on_withdraw = partial(connection.peer.cancel, call)

    def _answered(self, prompting: Prompting, params: JsonObject, reply: Reply) -> None:
        self._open.remove(prompting)
        if reply.ok:
            result = read_object(reply.result)
            self._settle(prompting, TurnEnded(str(result.get("stopReason")), raw=result))
            return
        error = error_of(reply.as_error())
        in_flight = isinstance(error, RequestRefused) and error.reason == "prompt_in_flight"
        if in_flight and prompting.withdrawn:
            self._end(prompting, TurnEnded("cancelled"))
        elif in_flight and prompting.may_wait:
            self._wait(prompting, params, first=True)
        else:
            raw = {"error": read_object(reply.error)}
            self._settle(prompting, TurnEnded("error", str(error), raw=raw), error)

    def _settle(self, prompting: Prompting, end: TurnEnded, error: DragomanError | None = None) -> None:
        self._end(prompting, end, error)
        self._turn_over(end)

    def _end(self, prompting: Prompting, end: TurnEnded, error: DragomanError | None = None) -> None:
        prompting.settle(end, error)
        for stream in self._streams:
            stream.put(end, 0)

    def cancel(self) -> None:
        """Cancel the running turn, whichever client began it, and what waits for its end."""
        self._connection.notify("session/cancel", {"sessionId": self.id})
        self._drop_waiting(failed=False)
        for prompting in self._open:
            prompting.withdrawn = True  # one that is refused from now on does not wait
        self._cancelling = bool(self._open)

    # -- prompts that wait here, since the gateway has no queue (`sessions.queue = 0`)

    def _wait(self, prompting: Prompting, params: JsonObject, *, first: bool = False) -> None:
        """Keep a prompt until a turn ends; `first`: it was sent already, so it is older than those that wait."""
        self._numbers += 1
        waiting = _Waiting(f"local-{self._numbers}", prompting, params)
        prompting.on_withdraw = partial(self._withdraw, waiting)
        if first:
            older = sum(held.again for held in self._waiting)
            waiting.again = True
            self._waiting.insert(older, waiting)
        else:
            self._waiting.append(waiting)

    def _turn_over(self, end: TurnEnded) -> None:
        """Send the next prompt that waits; after a turn that was cancelled or failed, those that wait end too."""
        meant_after, self._cancelling = self._cancelling, False
        if (end.stop_reason == "cancelled" or end.error is not None) and not meant_after:
            self._drop_waiting(failed=end.error is not None)
        elif self._waiting and not self._open:
            waiting = self._waiting.pop(0)
            self._request(waiting.prompting, waiting.params)

    def _drop_waiting(self, *, failed: bool) -> None:
        held, self._waiting = self._waiting, []
        why = "the prompt before this one failed, so it was not sent: send it again"
        for waiting in held:
            error = RequestRefused(why, INTERNAL_ERROR, {"reason": "turn_before_failed"}) if failed else None
            end = TurnEnded("error", why) if failed else TurnEnded("cancelled")
            self._end(waiting.prompting, end, error)

    def _withdraw(self, waiting: _Waiting) -> None:
        if waiting in self._waiting:
            self._waiting.remove(waiting)
            self._end(waiting.prompting, TurnEnded("cancelled"))

    def _held(self, id: str) -> _Waiting | None:
        return next((waiting for waiting in self._waiting if waiting.id == id), None)

    # -- events

    def events(self) -> EventStream:
        """All events of the session from now on, also those between turns; close it when it is not read any more.

        For a session that was opened with `watch` or resumed `after` an event, the first one has all since then.
        """
        if self._first is not None:
            stream, self._first = self._first, None
            return stream
        stream = EventStream(self._connection.flow)
        self._streams = [other for other in self._streams if not other.ended]
        self._streams.append(stream)
        return stream

    def watch(self) -> None:
        """Keep the events from now on for the first call of `events`."""
        self._first = self.events()

    def update(self, update: JsonObject, seq: int | None, size: int) -> None:
        event = read_update(update, seq)
        if seq is not None:
            self.seq = max(self.seq, seq)
        if isinstance(event, OptionsChanged):
            self.options = tuple(dict(option) for option in event.options)
        elif isinstance(event, InfoChanged) and event.title is not None:
            self.title = event.title
        self._publish(event, size)
        if isinstance(event, TurnEnded):
            self._turn_over(event)

    def question(self, question: Question, size: int) -> None:
        if self._on_question is None:
            self._publish(question, size)
            return
        try:
            answering = self._on_question(question)
        except Exception:
            log.exception("the callback for questions failed; the question is refused")
            question.reject()
            return
        if inspect.isawaitable(answering):
            task = asyncio.ensure_future(self._answer(question, answering))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
        else:
            question.left_behind()

    async def _answer(self, question: Question, answering: Awaitable[None]) -> None:
        try:
            await answering
        except Exception:
            log.exception("the callback for questions failed; the question is refused")
            question.reject()
        question.left_behind()

    def told(self, text: str, severity: str) -> None:
        """Publish a remark of the library itself."""
        self._publish(Notice(text, severity), len(text))

    def _publish(self, event: Event, size: int) -> None:
        for stream in self._streams:
            stream.put(event, size)
        for prompting in self._open:  # the others wait for its end
            if prompting.stream is not None:
                prompting.stream.put(event, size)
            break

    def ended(self, error: DragomanError) -> None:
        held, self._waiting = self._waiting, []
        for waiting in held:
            waiting.prompting.settle(TurnEnded("error", str(error)), error)
        for stream in self._streams:
            stream.end(error)
        self._streams.clear()

    # -- the queue

    async def queue(self) -> list[QueuedPrompt]:
        """The prompts that wait for the end of the running turn: those of all clients, then those that wait here."""
        result = await self._call("_dragoman/queue")
        there = [
            QueuedPrompt(
                str(entry.get("id")),
                tuple(objects(entry.get("prompt"))),
                entry.get("own") is True,
                str(entry.get("promptedBy", "")),
                entry.get("edited") is True,
            )
            for entry in objects(result.get("queue"))
        ]
        here = (QueuedPrompt(held.id, tuple(held.params["prompt"]), own=True) for held in self._waiting)
        return [*there, *here]

    async def edit_queued(self, id: str, content: Content) -> None:
        """Replace what a waiting prompt says."""
        held = self._held(id)
        if held is not None:
            held.params["prompt"] = _blocks(content)
            return
        await self._call("_dragoman/queue/edit", id=id, prompt=_blocks(content))

    async def withdraw_queued(self, id: str) -> None:
        """Take a waiting prompt out of the queue; its turn ends as cancelled."""
        held = self._held(id)
        if held is not None:
            self._withdraw(held)
            return
        await self._call("_dragoman/queue/withdraw", id=id)

    # -- going back

    async def messages(self) -> list[Message]:
        """The messages that the session can go back to, the oldest first."""
        result = await self._call("_dragoman/messages")
        return [read_message(entry) for entry in objects(result.get("messages"))]

    async def rewind(
        self, to: int | str, what: What = "conversation", *, shared: Shared = "refuse"
    ) -> Rewound:
        """Go back to before a message, by its number; refused while a turn runs."""
        return read_rewound(await self._call("_dragoman/rewind", to=to, what=what, shared=shared))

    async def undo(self) -> Rewound:
        """Bring back what the last rewind or restore undid."""
        return read_rewound(await self._call("_dragoman/rewind", undo=True))

    async def changes(self, turn: int | None = None, *, since: int | None = None) -> SessionChanges:
        """What the session changed in its project: all, one turn, or all since a message."""
        wanted = {"turn": turn, "since": since}
        given = {name: value for name, value in wanted.items() if value is not None}
        return read_changes(await self._call("_dragoman/changes", **given))

    # -- settings and end

    async def set_option(self, id: str, value: object) -> None:
        """Set one of `options`, such as the model or the mode."""
        result = await self._call("session/set_config_option", configId=id, value=value)
        self.options = tuple(objects(result.get("configOptions"))) or self.options

    async def set_mode(self, mode: str) -> None:
        await self._call("session/set_mode", modeId=mode)

    async def rename(self, title: str) -> None:
        """Give the session a title, which its agent does not change any more."""
        await self._call("_dragoman/rename", title=title)

    async def close(self) -> None:
        """End the session's agent; the session can be resumed later."""
        await self._call("session/close")
        self._connection.sessions.pop(self.id, None)
        for stream in self._streams:
            stream.end()

    async def _call(self, method: str, **params: Any) -> JsonObject:
        return await self._connection.call(method, {"sessionId": self.id, **params})

    def opened(self, result: JsonObject) -> None:
        """Take the gateway's answer to the request that opened the session."""
        self.facts = own_meta(result)
        self.options = tuple(objects(result.get("configOptions")))
        seq = self.facts.get("afterSeq", self.facts.get("seq"))
        if isinstance(seq, int):
            self.seq = max(self.seq, seq)


def _blocks(content: Content) -> list[JsonObject]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
