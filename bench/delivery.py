"""What became of a flood, worked out from the raw bytes after the clock has stopped."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, fields
from itertools import pairwise

NUMBERED = re.compile(rb'"sessionId":"([^"]+)"[^#\n]*#(\d+\.\d+):(\d{8})#')


@dataclass
class Faults:
    """Counts of what must not happen to an update; they add up over a whole run."""

    lost: int = 0
    doubled: int = 0
    reordered: int = 0
    misrouted: int = 0
    after_response: int = 0

    def __iadd__(self, other: Faults) -> Faults:
        for item in fields(self):
            setattr(self, item.name, getattr(self, item.name) + getattr(other, item.name))
        return self

    @property
    def total(self) -> int:
        return sum(getattr(self, item.name) for item in fields(self))

    def __str__(self) -> str:
        found = [
            f"{getattr(self, f.name)} {f.name.replace('_', ' ')}"
            for f in fields(self)
            if getattr(self, f.name)
        ]
        return ", ".join(found) or "none"


def check_flood(chunks: list[bytes], sessions: list[str], count: int) -> Faults:
    """Compare what arrived with `count` updates per session, each numbered from 0, then one response each.

    Several floods share no order with each other, so only a lone session's response must be the last line.
    """
    data = b"".join(chunks)
    numbers: dict[tuple[bytes, bytes], list[int]] = defaultdict(list)
    for session, tag, number in NUMBERED.findall(data):
        numbers[session, tag].append(int(number))
    expected = list(range(count))
    faults = Faults()
    for name in sessions:
        # Where two agents' updates came under one id, the larger part is the one that belongs there.
        keys = [key for key in numbers if key[0] == name.encode()]
        got = numbers.pop(max(keys, key=lambda key: len(numbers[key])), []) if keys else []
        if got != expected:
            faults += _compare(got, count)
    faults.misrouted += sum(map(len, numbers.values()))
    if len(sessions) == 1:
        faults.after_response += len(NUMBERED.findall(data, data.rfind(b'"stopReason"')))
    return faults


def _compare(got: list[int], count: int) -> Faults:
    distinct = set(got)
    return Faults(
        lost=count - len(distinct),
        doubled=len(got) - len(distinct),
        reordered=sum(later < earlier for earlier, later in pairwise(got)),
    )
