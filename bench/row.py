"""A row of the benchmark: probes measured in turn, round by round, and what their medians must satisfy."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field

from bench.contenders import CONTENDERS, DRAGOMAN, Arena
from bench.installs import NotAvailable
from bench.noise import NOISY, ForeignLoad
from bench.peers.talk import ConversationError

Measure = Callable[[], float]
Probe = Callable[[Arena], AbstractContextManager[Measure]]


@dataclass(frozen=True)
class Must:
    """`subject` compared with `limit`, or with `limit` times `reference` where there is one; `target` is only shown."""

    comparison: str  # ">=" or "<="
    limit: float
    reference: str | None = None
    subject: str = DRAGOMAN
    target: float | None = None

    def holds(self, value: float) -> bool:
        return value >= self.limit if self.comparison == ">=" else value <= self.limit


@dataclass(frozen=True)
class Row:
    """One line of the table; a probe is set up once, then measured once in every round."""

    name: str
    title: str
    unit: str
    probes: Mapping[str, Probe]
    musts: tuple[Must, ...]
    rounds: int | None = None
    served: bool = False
    """Both sides work through a service, whose processor time looks like another process's."""


@dataclass(frozen=True)
class Verdict:
    """How a must came out; `outcome` is ok, FAIL, or NOT MEASURED where the machine lacks what it needs."""

    must: Must
    figure: float | None
    outcome: str


@dataclass
class Result:
    """What the rounds of a row gave, per probe, and why a probe gave nothing."""

    row: Row
    samples: dict[str, list[float]] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    foreign_load: float | None = None

    @property
    def noisy(self) -> bool:
        return self.foreign_load is not None and self.foreign_load > NOISY

    def median(self, probe: str) -> float | None:
        samples = self.samples.get(probe)
        return statistics.median(samples) if samples and probe not in self.errors else None

    def verdicts(self) -> list[Verdict]:
        return [self._verdict(must) for must in self.row.musts]

    def _verdict(self, must: Must) -> Verdict:
        if must.reference in self.absent or must.subject in self.absent:
            return Verdict(must, None, "NOT MEASURED")
        subject = self.median(must.subject)
        reference = 1.0 if must.reference is None else self.median(must.reference)
        if subject is None or not reference:
            return Verdict(must, None, "FAIL")
        figure = subject / reference
        return Verdict(must, figure, "ok" if must.holds(figure) else "FAIL")


def run_row(row: Row, arena: Arena) -> Result:
    """Set up every probe, measure them in turn in each round, and end them all."""
    result = Result(row)
    load = ForeignLoad()
    with ExitStack() as stack:
        measures: dict[str, Measure] = {}
        for name, probe in row.probes.items():
            try:
                measures[name] = stack.enter_context(probe(arena))
            except NotAvailable as reason:
                result.absent[name] = str(reason)
            except (ConversationError, OSError) as error:
                result.errors[name] = str(error)
        for _ in range(row.rounds or arena.rounds):
            for name, measure in measures.items():
                if name in result.errors:
                    continue
                try:
                    result.samples.setdefault(name, []).append(measure())
                except (ConversationError, OSError) as error:
                    result.errors[name] = str(error)
    if not row.served:
        result.foreign_load = load.share()
    return result


def title_of(probe: str) -> str:
    return CONTENDERS[probe].title if probe in CONTENDERS else probe
