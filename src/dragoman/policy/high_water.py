"""The latest time that was seen, so that what allowed and ended does not hold again when the clock is set back.

Without a file it is known until the process ends. The file's time of change is the mark: it is moved on once a minute at
most, while something that ends decides, and read when a process begins.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path

log = logging.getLogger(__name__)

FILE = "latest-time"
SAVE_AFTER = timedelta(minutes=1)
REASONABLE = timedelta(days=366)
"""A mark further ahead than any answer may hold comes from a clock that was wrong then, not from one that is now."""
_NEVER = datetime.min.replace(tzinfo=UTC)


class HighWater:
    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._latest = _NEVER
        self._saved: datetime | None = None
        """The mark of the file, if it was read."""

    def advance(self, now: datetime) -> datetime:
        """The latest time that was seen; this one, unless the clock was set back."""
        if self._saved is None:
            self._saved = self._read(now)
            self._latest = max(self._latest, self._saved)
        if now > self._latest:
            self._latest = now
            if now - self._saved >= SAVE_AFTER:
                self._save(now)
        return self._latest

    def _read(self, now: datetime) -> datetime:
        try:
            found = datetime.fromtimestamp(os.stat(self._path).st_mtime, UTC) if self._path else _NEVER  # noqa: PTH116
        except (OSError, ValueError, OverflowError):
            return _NEVER
        if found <= now + SAVE_AFTER:
            return min(found, now)
        if found > now + REASONABLE:
            log.warning("%s: its time, %s, is too far ahead to be true, and is ignored", self._path, found)
            return _NEVER
        log.warning(
            "the clock was set back: it is %s, and %s was seen before. Rules and remembered answers that allow until "
            "then count as ended. If the clock is right now, delete %s and start anew.", now, found, self._path,
        )  # fmt: skip
        return found

    def _save(self, now: datetime) -> None:
        self._saved = now
        if self._path is None:
            return
        with suppress(
            OSError
        ):  # a folder that cannot be written, or is not there: known in this process alone
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                at = int(now.timestamp() * 1_000_000_000)
                if os.fstat(descriptor).st_mtime_ns < at:
                    os.utime(descriptor, ns=(at, at))
            finally:
                os.close(descriptor)


@lru_cache(maxsize=8)
def high_water(folder: Path) -> HighWater:
    """The mark of a state folder; one for all that is decided in this process."""
    return HighWater(folder / FILE)
