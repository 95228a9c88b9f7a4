"""Removes segments that are older than `audit.retain_days` keeps; what remains stays provable.

The index says what was removed, signed. Who has the key can say anything there; a false age is shown

- by itself, if records are said to have been too old within a day, or at a time that has not come yet;
- by heads that are kept elsewhere: each has the time of its record, and the setting that held then.

Else nothing here shows how old the removed records were.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.audit import folder as places
from dragoman.audit import record, seek
from dragoman.audit.keys import Key, load_key
from dragoman.wire.timestamps import milliseconds, timestamp

DAY = 86_400_000
"""Milliseconds; `audit.retain_days` is one day or more."""
AHEAD = 3_600_000
"""Milliseconds by which the clock that wrote a line may be ahead of the one that checks it."""


def prune(folder: Path, before: int) -> int:
    """Remove what was last written to before that time, in milliseconds; returns the number of segments.

    The index is told first, signed, how far a chain is removed and the hash of the last line: the rest begins with it.
    Raises `KeyProblem` and removes nothing if that cannot be signed.
    """
    removed = 0
    key: Key | None = None
    limit = timestamp(before)
    for chain in places.chains(folder):
        paths = places.segments(chain)
        old = []
        for path in paths if not places.is_alive(chain) else paths[:-1]:
            try:
                end = places.end_of_file(path)
            except (record.Broken, OSError):
                break  # `verify` tells; other chains are pruned all the same
            if end is None or end.at >= limit:
                break
            old.append((path, end))
        if not old:
            continue
        last = old[-1][1]
        key = key or load_key(folder)
        told: dict[str, Any] = {"chain": chain.name, "upTo": last.n, "hash": last.hash, "before": limit}
        places.add_to_index(folder, "pruned", key=key, **told)
        for path, _ in old:
            path.unlink()
            path.with_suffix(seek.SUFFIX).unlink(missing_ok=True)
            removed += 1
        if len(old) == len(paths):
            with suppress(OSError):
                (chain / places.LOCK).unlink()
                chain.rmdir()
    return removed


@dataclass(frozen=True, slots=True)
class Removal:
    """The first records of a chain, removed."""

    chain: str
    up_to: int
    hash: str
    at: str
    before: str
    """The age from which on records were kept."""

    def problem(self, now: int) -> str | None:
        """Why this cannot have been done by a setting; `now` is in milliseconds."""
        at = milliseconds(self.at)
        if at > now + AHEAD:
            return f"it is of {self.at}, a time that has not come yet"
        if milliseconds(self.before) > at - DAY:
            return (
                f"no setting removes records of the last day: at {self.at} it was those before {self.before}"
            )
        return None

    def problem_with(self, head: dict[str, Any], retention: Retention, now: int) -> str | None:
        """Why a head that is kept elsewhere cannot have been removed then."""
        at = str(head["at"])
        if at >= self.before:
            return f"it was removed, but is of {at}: it was still to be kept"
        days = retention.shortest_since(at)
        if days == 0:
            return f"it was removed, but audit.retain_days kept all records when it was written, at {at}"
        if days is not None and milliseconds(at) + days * DAY > min(milliseconds(self.at), now) + AHEAD:
            return f"it was removed, but is of {at}: audit.retain_days = {days} still kept it at {self.at}"
        return None

    def note(self, *, shown: bool) -> str:
        proof = (
            "heads kept elsewhere show that they were that old"
            if shown
            else "nothing kept elsewhere shows how old they were: who has the key could have removed them earlier"
        )
        return (
            f"chain {self.chain}: the records up to {self.up_to} were removed at {self.at}, as those before "
            f"{self.before} were no longer kept; {proof}"
        )


class Retention:
    """The settings of `audit.retain_days` that heads from elsewhere have."""

    def __init__(self, heads: Iterable[dict[str, Any]]) -> None:
        self._known = [
            (str(head["at"]), head["retainDays"]) for head in heads if type(head.get("retainDays")) is int
        ]

    def shortest_since(self, at: str) -> int | None:
        """The fewest days that records were kept at or after that time; 0 if always all; None if not known."""
        days = {days for when, days in self._known if when >= at}
        limited = [each for each in days if each > 0]
        return min(limited) if limited else (0 if days else None)


def read_removal(facts: dict[str, Any]) -> Removal | None:
    """What a line of the index says; None if it does not say how far."""
    up_to, before = facts.get("upTo"), facts.get("before")
    if type(up_to) is not int or not isinstance(before, str) or not milliseconds(before):
        return None
    return Removal(str(facts["chain"]), up_to, str(facts.get("hash")), str(facts["at"]), before)
