"""What a check of the audit found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Problem:
    chain: str
    record: int
    text: str

    def facts(self) -> dict[str, Any]:
        return {"chain": self.chain, "record": self.record, "problem": self.text}


@dataclass(slots=True)
class ChainReport:
    chain: str
    first: int = 1
    last: int = 0
    signed: int = 0
    """Number of the last record under a valid signature."""
    signed_at: str = ""
    anchored: int = 0
    anchored_at: str = ""
    open_since: str = ""
    """Time of the first record that no anchor covers; empty if all are covered."""
    alive: bool = False
    ended: bool = False
    killed: bool = False

    def facts(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__ if name != "open_since"}


@dataclass(slots=True)
class Report:
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    chains: list[ChainReport] = field(default_factory=list)
    removed: list[dict[str, Any]] = field(default_factory=list)
    """Records that are said to be gone by their age; `shown` if heads from elsewhere show that they were that old."""
    records: int = 0
    anchors: int = 0

    @property
    def consistent(self) -> bool:
        return not self.problems

    @property
    def anchored_up_to(self) -> str | None:
        """Before this time nothing can have been changed unseen; None without anchors."""
        if not self.anchors or self.problems:
            return None
        begun = [chain.open_since for chain in self.chains if chain.open_since]
        latest = max((chain.anchored_at for chain in self.chains), default="")
        return min(begun) if begun else latest or None

    def facts(self) -> dict[str, Any]:
        return {
            "consistent": self.consistent,
            "anchoredUpTo": self.anchored_up_to,
            "records": self.records,
            "problems": [problem.facts() for problem in self.problems],
            "notes": self.notes,
            "removed": self.removed,
            "chains": [chain.facts() for chain in self.chains],
        }
