"""How much of the machine other programs used while a row was measured.

Contention is not neutral: a chain of three busy processes gets more of a crowded machine than one busy relay,
so a ratio from a noisy run says less than it seems to, and the table must show that.
"""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

# More than this and a row is marked; an idle desktop stays well below.
NOISY = 0.15
STAT = Path("/proc/stat")
IDLE_COLUMNS = (3, 4)
# Columns after these repeat what is already counted as user time.
COUNTED_COLUMNS = 8


class ForeignLoad:
    """Measures from its creation the share of all cores that went to processes not started here."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._busy, self._own = busy_seconds(), own_seconds()

    def share(self) -> float | None:
        """Return the share, or nothing where the system does not tell; ask after the children have ended."""
        busy = busy_seconds()
        if busy is None or self._busy is None:
            return None
        available = (time.perf_counter() - self._started) * (os.cpu_count() or 1)
        foreign = (busy - self._busy) - (own_seconds() - self._own)
        return min(1.0, max(0.0, foreign / available))


def busy_seconds() -> float | None:
    """Return the processor time all processes of the machine have used."""
    if not STAT.exists():
        return None
    columns = [int(text) for text in STAT.read_text().splitlines()[0].split()[1 : 1 + COUNTED_COLUMNS]]
    busy = sum(ticks for column, ticks in enumerate(columns) if column not in IDLE_COLUMNS)
    return busy / os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    """Return the processor time of this process and of all its children that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
