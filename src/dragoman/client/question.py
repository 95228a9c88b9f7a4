"""A permission question of the agent; only the first answer counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from dragoman.client.errors import NoSuchOption
from dragoman.client.events import Event
from dragoman.rpc.request import Request
from dragoman.wire.errors import CANCELLED, RpcError
from dragoman.wire.json_types import JsonObject, as_object, decode_object, objects, own_meta

_LASTING = ("allow_always", "reject_always")


@dataclass(frozen=True, slots=True)
class Option:
    """One offered answer."""

    id: str
    name: str
    kind: str
    """`allow_once`, `allow_always`, `reject_once` or `reject_always`."""

    @property
    def lasting(self) -> bool:
        """Whether the answer holds for longer than this call."""
        return self.kind in _LASTING


@dataclass(slots=True)
class _Answering:
    request: Request
    on_settled: Callable[[], None] | None = None
    kept: bool = False
    allowed: bool | None = None
    elsewhere: Callable[[Callable[[], None]], None] | None = None
    """Runs the answer in the thread of the connection; None where that is this thread."""


@dataclass(frozen=True, slots=True)
class Question(Event):
    """The agent asks whether it may do something; answer it with `allow`, `reject` or `choose`."""

    title: str
    kind: str
    tool: Mapping[str, Any] = field(repr=False)
    """The tool call in question, as the agent described it."""
    options: tuple[Option, ...]
    _answering: _Answering = field(repr=False, compare=False)

    @classmethod
    def of(cls, request: Request) -> Question:
        params = decode_object(request.params)
        tool = as_object(params.get("toolCall"))
        options = tuple(
            Option(str(option.get("optionId")), str(option.get("name") or ""), str(option.get("kind") or ""))
            for option in objects(params.get("options"))
        )
        title, kind = str(tool.get("title") or "tool call"), str(tool.get("kind") or "")
        made = cls(title, kind, tool, options, _Answering(request), raw=params)
        request.on_cancel = made._withdraw
        return made

    @property
    def open(self) -> bool:
        """Whether it can still be answered: no client has, and its turn runs."""
        return not self._answering.request.answered

    @property
    def allowed(self) -> bool | None:
        """Whether this client's answer allowed it; None if it gave none."""
        return self._answering.allowed

    @property
    def remember(self) -> JsonObject:
        """What could be remembered (`pattern`, `scopes`, `until`); empty if it is answered once only."""
        return as_object(as_object(own_meta(dict(self.raw)).get("policy")).get("remember"))

    def allow(self) -> None:
        """Allow this call, once; raises `NoSuchOption` where the question is a choice between several."""
        self.choose(self._only("allow_once"))

    def reject(self, reason: str | None = None) -> None:
        """Refuse this call; where no option refuses, the question is answered as cancelled.

        An agent that can gets the `reason`, so that it does something else.
        """
        refusing = [option for option in self.options if option.kind.startswith("reject")]
        refusing.sort(key=lambda option: option.lasting)
        self.choose(refusing[0] if refusing else None, reason=reason)

    def choose(
        self,
        option: Option | str | None,
        *,
        rule: str | None = None,
        remember: Mapping[str, Any] | None = None,
        reason: str | None = None,
    ) -> None:
        """Answer with an offered option or its id; None answers `cancelled`.

        `rule` names what decided, if it was not a person; `remember` is what is to hold for longer; `reason` is for the
        agent.
        """
        id = option.id if isinstance(option, Option) else option
        known = next((offered for offered in self.options if offered.id == id), None)
        if id is not None and known is None:
            offered = ", ".join(option.id for option in self.options) or "none"
            raise NoSuchOption(f"{id!r} is not offered for {self.title!r}: offered are {offered}")
        if not self.open:
            return
        outcome = {"outcome": "cancelled"} if id is None else {"outcome": "selected", "optionId": id}
        own = {"rule": rule, "remember": remember, "reason": reason}
        told = {name: value for name, value in own.items() if value is not None}
        meta = {"_meta": {"dragoman": told}} if told else {}
        self._answering.allowed = known is not None and known.kind.startswith("allow")
        line = msgspec.json.encode({"outcome": outcome, **meta})
        self._run(lambda: self._answering.request.reply(line))

    def keep(self) -> None:
        """Leave it open when a loop over `Session.prompt` goes on without an answer."""
        self._answering.kept = True

    def on_withdrawn(self, call: Callable[[], None]) -> None:
        """Call this when another client answered, or the turn is over."""
        self._answering.on_settled = call

    def left_behind(self) -> None:
        """Refuse the question if a loop went on without an answer."""
        self._answering.elsewhere = None
        if self.open and not self._answering.kept:
            self.reject()

    def answered_in(self, run: Callable[[Callable[[], None]], None]) -> None:
        """Answer through `run`: the question is read in another thread than that of its connection."""
        self._answering.elsewhere = run

    def _run(self, reply: Callable[[], None]) -> None:
        run = self._answering.elsewhere
        reply() if run is None else run(reply)

    def _only(self, kind: str) -> Option:
        found = [option for option in self.options if option.kind == kind]
        if len(found) == 1:
            return found[0]
        offered = ", ".join(f"{option.id} ({option.kind})" for option in self.options) or "none"
        raise NoSuchOption(
            f"{self.title!r} has {len(found) or 'no'} options of the kind {kind}: choose one of {offered}"
        )

    def _withdraw(self) -> None:
        self._answering.request.fail(RpcError(CANCELLED, "Request cancelled"))
        if self._answering.on_settled is not None:
            self._answering.on_settled()
