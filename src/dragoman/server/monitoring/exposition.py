"""The Prometheus text format (https://prometheus.io/docs/instrumenting/exposition_formats)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping

Sample = tuple[Mapping[str, str], float]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Histogram:
    """Counts of values per bucket."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def add(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def lines(self, name: str, labels: Mapping[str, str]) -> Iterable[str]:
        below = 0
        for bound, count in zip((*self._bounds, float("inf")), self._counts, strict=True):
            below += count
            yield _line(f"{name}_bucket", {**labels, "le": _number(bound)}, below)
        yield _line(f"{name}_sum", labels, self._sum)
        yield _line(f"{name}_count", labels, below)


def head(name: str, kind: str, meaning: str) -> list[str]:
    return [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]


def lines(name: str, samples: Iterable[Sample]) -> Iterable[str]:
    return (_line(name, labels, value) for labels, value in samples)


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    shown = ",".join(f'{label}="{_escape(text)}"' for label, text in labels.items())
    return f"{name}{{{shown}}} {_number(value)}" if shown else f"{name} {_number(value)}"


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
