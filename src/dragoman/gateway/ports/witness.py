"""Who is told what the gateway does, to count, time or trace it. Nothing here happens per message.

Something that takes time is an `Observed`: it is made when it begins and told once how it ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from typing import Protocol

TRACE: ContextVar[Mapping[str, object]] = ContextVar("trace", default={})  # noqa: B039 (never written to)
"""`_meta` of the request that the present work is done for: it may say whose trace that belongs to."""


class Observed(Protocol):
    """Something that has begun."""

    @property
    def carried(self) -> Mapping[str, str]:
        """What whoever continues this elsewhere is told in `_meta`."""

    def first(self) -> None:
        """Of a turn: the agent says something."""

    def end(self, outcome: str, error: str = "") -> None: ...


class Witness(Protocol):
    """All of it is told in the event loop."""

    def turn(self, session_id: str, agent: str, meta: Mapping[str, object]) -> Observed:
        """Ends with its stop reason, or with `error`."""

    def start(self, agent: str) -> Observed:
        """An agent is being started; ends with `ok` or `error`."""

    def crash(self, agent: str) -> None:
        """An agent ended that should not have."""

    def question(self, session_id: str, kind: str) -> Observed:
        """An agent waits for a person; ends with who answered."""

    def request(self, method: str, failed: bool) -> None:
        """A client's request was answered."""


class Several:
    """Implements `Witness` for many, also for none."""

    def __init__(self, witnesses: Iterable[Witness] = ()) -> None:
        self._all = list(witnesses)

    def turn(self, session_id: str, agent: str, meta: Mapping[str, object]) -> Observed:
        if not self._all:
            return UNOBSERVED
        if len(self._all) == 1:
            return self._all[0].turn(session_id, agent, meta)
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
        everybody, self._all = self._all, []  # what ends twice ended the first time
        for each in everybody:
            each.end(outcome, error)


UNOBSERVED: Observed = _SeveralObserved([])
"""For work that no witness watches: every call does nothing."""
