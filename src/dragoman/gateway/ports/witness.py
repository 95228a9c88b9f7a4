"""The interface for metrics and traces of the gateway. Nothing here is called per message.

An operation that takes time is an `Observed`: made when it begins, and ended once with its outcome.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from typing import Protocol

TRACE: ContextVar[Mapping[str, object]] = ContextVar("trace", default={})  # noqa: B039 (never written to)
"""`_meta` of the request that is being handled, which may have its trace context."""


class Observed(Protocol):
    """An operation that has begun."""

    @property
    def carried(self) -> Mapping[str, str]:
        """The trace context to pass on in `_meta`, so that the receiver continues the trace."""

    def first(self) -> None:
        """The first update of a turn has arrived."""

    def end(self, outcome: str, error: str = "") -> None: ...


class Witness(Protocol):
    """Receives what happens in the gateway; all calls come from the event loop."""

    def turn(self, session_id: str, agent: str, meta: Mapping[str, object]) -> Observed:
        """A turn begins; ends with its stop reason, or with `error`."""

    def start(self, agent: str) -> Observed:
        """An agent is being started; ends with `ok`, `error` or `cancelled`."""

    def crash(self, agent: str) -> None:
        """An agent ended unexpectedly."""

    def question(self, session_id: str, kind: str) -> Observed:
        """A question to the user is open; ends with `by` of its answer, such as `user`."""

    def request(self, method: str, failed: bool) -> None:
        """A client's request was answered."""


class Several:
    """Implements `Witness` for any number of witnesses, also for none."""

    def __init__(self, witnesses: Iterable[Witness] = ()) -> None:
        self._all = list(witnesses)

    def turn(self, session_id: str, agent: str, meta: Mapping[str, object]) -> Observed:
        return _SeveralObserved([each.turn(session_id, agent, meta) for each in self._all])

    def start(self, agent: str) -> Observed:
        return _SeveralObserved([each.start(agent) for each in self._all])

    def crash(self, agent: str) -> None:
        for each in self._all:
            each.crash(agent)

    def question(self, session_id: str, kind: str) -> Observed:
        return _SeveralObserved([each.question(session_id, kind) for each in self._all])

    def request(self, method: str, failed: bool) -> None:
        for each in self._all:
            each.request(method, failed)


class _SeveralObserved:
    def __init__(self, observed: list[Observed]) -> None:
        self._all = observed

    @property
    def carried(self) -> Mapping[str, str]:
        return {name: value for each in self._all for name, value in each.carried.items()}

    def first(self) -> None:
        for each in self._all:
            each.first()

    def end(self, outcome: str, error: str = "") -> None:
        members, self._all = self._all, []  # only the first end counts
        for each in members:
            each.end(outcome, error)


UNOBSERVED: Observed = _SeveralObserved([])
"""For work that no witness watches: every call does nothing."""
