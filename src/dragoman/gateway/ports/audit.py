"""The interface to the audit: one record of what agents did and who allowed it, which outlives sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class AnchorFigures:
    """A place where signed heads also go."""

    place: str
    waiting: int
    lag: float
    """Seconds that the oldest line waits."""


@dataclass(frozen=True, slots=True)
class AuditFigures:
    """What this process has recorded so far."""

    records: Mapping[str, int] = field(default_factory=dict)
    """By kind."""
    decisions: Mapping[str, int] = field(default_factory=dict)
    """By what was decided."""
    failures: int = 0
    """Records that could not be written."""
    waiting: int = 0
    """Acts that wait until they can be recorded."""
    anchors: Sequence[AnchorFigures] = ()


class Audit:
    """Keeps nothing by itself; `audit/gateway_audit.py` keeps an audit."""

    folder: Path | None = None
    """Where it is kept, for readers; None if it is not."""
    content: bool = False
    """Whether texts of prompts, and what tools were given and returned, are recorded too."""

    @property
    def ready(self) -> bool:
        """Whether records can be written, as far as known."""
        return True

    def stored(self, kind: str, facts: dict[str, Any], secrets: Iterable[str] = ()) -> bool:
        """Record what happens next; whether it may: the record is as safe as a journal event. Else `wait`.

        `secrets` are not recorded.
        """
        return True

    def wait(
        self,
        kind: str,
        facts: dict[str, Any],
        then: Callable[[], None],
        refuse: Callable[[str], None],
        secrets: Iterable[str] = (),
    ) -> None:
        """Call `then` when the record can be written, or `refuse` with the reason if it cannot for long."""
        then()

    def record(self, kind: str, facts: dict[str, Any], secrets: Iterable[str] = ()) -> None:
        """Record what has happened already; a failure is logged, and told by the next record."""

    def give_up(self, session: str, reason: str) -> None:
        """Refuse at once what waits for a session: its turn was cancelled, or it ends."""

    def hide(self, values: Iterable[str]) -> None:
        """Replace these values in all records from now on."""

    def watch(self, files: Iterable[Path]) -> None:
        """Record changes of these configuration files, those since the last look of any process too."""

    def figures(self) -> AuditFigures:
        return AuditFigures()
